//! The ground that every turn stands on.

use crate::gateway::Link;
use crate::gateway::config::GatewayConfig;
use crate::gateway::repeats::Repeats;
use crate::gateway::sockets::Sockets;
use fulmar_proto::machine::PathId;
use fulmar_proto::units::Instant;

/// The time, and what lies below all rooms that carry flows. No room is in it.
pub(in crate::gateway) struct Floor<'a> {
    pub(in crate::gateway) now: Instant,
    pub(in crate::gateway) config: &'a GatewayConfig,
    pub(in crate::gateway) link: &'a mut Link,
    pub(in crate::gateway) sockets: &'a mut Sockets,
    pub(in crate::gateway) repeats: &'a mut Repeats,
}

impl Floor<'_> {
    /// Tells the transport the rate configured of the peer's link, or that it is found.
    pub(in crate::gateway) fn report_link(&mut self, peer: usize) {
        let Some(settings) = self.config.peers.get(peer) else {
            return;
        };
        let path = PathId(u32::try_from(peer).unwrap_or(u32::MAX));
        let endpoint = self.link.inner_mut().endpoint_mut();
        endpoint.set_rate_source(self.now, path, settings.rate);
    }
}
