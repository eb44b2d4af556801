//! The carriers of the paths where peers are.

use crate::gateway::Link;
use crate::gateway::config::{CarrierChoice, GatewayConfig};
use crate::session::SessionEvent;
use crate::udp::Carrier;
use fulmar_proto::machine::PathId;
use fulmar_proto::splice::FlowEvent;
use std::collections::VecDeque;

/// The name of a form of UDP in configurations.
pub(in crate::gateway) const fn carrier_name(is_unchecked: bool) -> &'static str {
    if is_unchecked {
        "udp-nochecksum"
    } else {
        "udp"
    }
}

/// The carrier of data to a peer that is armoured or not, by its name in configurations. Without armour, no data leaves
/// without checksum.
pub(in crate::gateway) fn carrier_in_use(choice: &CarrierChoice, is_armoured: bool) -> String {
    match choice {
        CarrierChoice::Auto | CarrierChoice::UdpNoChecksum => carrier_name(is_armoured).to_owned(),
        CarrierChoice::Udp | CarrierChoice::UdpLite | CarrierChoice::Ethernet(_) => {
            choice.to_string()
        }
    }
}

/// Paths whose carriers the driver has still to be told.
#[derive(Debug, Default)]
pub(in crate::gateway) struct CarrierChanges(VecDeque<(PathId, Carrier)>);

impl CarrierChanges {
    /// Sends what goes to `path` by `carrier` from now on.
    pub(in crate::gateway) fn add(&mut self, path: PathId, carrier: Carrier) {
        self.0.push_back((path, carrier));
    }

    /// The next one.
    pub(in crate::gateway) fn next(&mut self) -> Option<(PathId, Carrier)> {
        self.0.pop_front()
    }

    /// Gives the path where an event says that a peer is the carrier of that peer.
    pub(in crate::gateway) fn follow(
        &mut self,
        config: &GatewayConfig,
        link: &Link,
        event: &SessionEvent<FlowEvent>,
    ) {
        if !config.lets_damage_in() {
            return;
        }
        if let SessionEvent::CarrierChosen {
            peer,
            is_unchecked,
            why,
        } = event
        {
            let place = usize::try_from(peer.0).unwrap_or(usize::MAX);
            tracing::info!(
                event = "carrier",
                peer = config.peer_name(place),
                carrier = carrier_name(*is_unchecked),
                why = why.to_string()
            );
        }
        let (peer, path) = match event {
            SessionEvent::Up { peer, .. } => (*peer, link.path_to(*peer)),
            SessionEvent::Moved { peer, path } => (*peer, Some(*path)),
            _ => return,
        };
        let place = usize::try_from(peer.0).unwrap_or(usize::MAX);
        let (Some(settings), Some(path)) = (config.peers.get(place), path) else {
            return;
        };
        if settings.carrier == CarrierChoice::Auto {
            return;
        }
        let wanted = settings.carrier.carrier();
        let is_armoured = link.armours(peer);
        let name = settings.name.as_str();
        let carrier = if wanted == Carrier::UdpNoChecksum && !is_armoured {
            Carrier::Udp
        } else {
            wanted
        };
        if wanted.lets_damage_in() {
            let chosen = match carrier {
                Carrier::Udp => CarrierChoice::Udp.to_string(),
                _ => settings.carrier.to_string(),
            };
            if is_armoured {
                let why = "configured";
                let words = config.fec_words.words();
                let parity = if words == 0 { "follows" } else { "fixed" };
                tracing::info!(
                    event = "carrier",
                    peer = name,
                    carrier = chosen,
                    parity,
                    why
                );
            } else {
                let why = "it mends nothing that is damaged: its `carrier` is `udp`, or its release is older";
                tracing::warn!(event = "carrier", peer = name, carrier = chosen, why);
            }
        }
        // Other carriers than UDP's two have addresses of their own.
        if matches!(wanted, Carrier::Udp | Carrier::UdpNoChecksum) {
            self.add(path, carrier);
        }
    }
}
