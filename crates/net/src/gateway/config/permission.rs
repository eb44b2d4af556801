//! The setting that would permit a destination.

use super::GatewayConfig;
use fulmar_proto::splice::{Destination, Host};

impl GatewayConfig {
    /// The setting that would permit a destination, in words; `None` where no setting would.
    pub(in crate::gateway) fn permission_of(&self, destination: &Destination) -> Option<String> {
        let leads_back = match &destination.host {
            Host::Address(ip) => self.tunnels.iter().any(|tunnel| tunnel.leads_to(*ip)),
            Host::Name(_) => false,
            // Other lines say what is missing for these.
            Host::Tunnel(_) | Host::Beyond(_) => return None,
        };
        (!leads_back).then(|| {
            format!(
                "add \"{destination}\" to allow of [egress] of `{}`; its own addresses are permitted one by one only",
                self.name
            )
        })
    }
}
