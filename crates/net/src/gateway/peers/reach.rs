//! The way by which a peer is reached that a hub introduces.

use crate::gateway::config::GatewayConfig;
use crate::session::Reach;

/// The way in words.
pub(in crate::gateway) fn way_of(config: &GatewayConfig, reach: Reach) -> String {
    match reach {
        Reach::Direct => "directly".to_owned(),
        Reach::Through(hub) => {
            let hub = usize::try_from(hub.0).unwrap_or(usize::MAX);
            format!("through `{}`", config.peer_name(hub))
        }
    }
}
