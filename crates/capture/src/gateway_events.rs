//! Events of a gateway beside those of its machines, under the names of its log.

use serde::Serialize;

/// The share of a cause among all losses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TracedCause<'a> {
    /// The cause, by its name in `/status`.
    pub cause: &'a str,
    /// The likeliest share.
    pub ratio: f64,
    /// The lower end of an interval that should have the true share in nine cases of ten.
    pub low_ratio: f64,
    /// Its upper end.
    pub high_ratio: f64,
}

/// Something that happened in a gateway. `why` is in words.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum GatewayEvent<'a> {
    /// Keys are agreed on with the peer, for the first time or again.
    PeerUp {
        /// Whether the peer still knows its flows.
        resumed: bool,
        /// The version of the data between the ends, 1 or 2.
        wire: u8,
        /// The reason.
        why: &'a str,
    },
    /// The peer lost its state.
    PeerRestarted {
        /// The consequences for its flows.
        why: &'a str,
    },
    /// The peer shuts down.
    PeerClosed {
        /// The reason.
        why: &'a str,
    },
    /// Newer keys are in use with the peer.
    PeerRekeyed,
    /// Nothing arrives from the peer any more: an outage begins.
    LinkDown {
        /// Seconds since the last arrival.
        silent_seconds: f64,
        /// The reason.
        why: &'a str,
    },
    /// Something arrived from the peer: an outage is over.
    LinkUp {
        /// Seconds that the outage lasted.
        outage_seconds: f64,
        /// The reason.
        why: &'a str,
    },
    /// Nothing arrives on one of several paths to the peer any more; the others carry on.
    PathDown {
        /// The number of the path; 0 is the first.
        path: u8,
        /// Seconds since the last arrival on it.
        silent_seconds: f64,
        /// The reason.
        why: &'a str,
    },
    /// One of several paths to the peer carries data from now on.
    PathUp {
        /// The number of the path; 0 is the first.
        path: u8,
        /// Seconds that it was down; 0 for one that is new.
        outage_seconds: f64,
        /// The reason.
        why: &'a str,
    },
    /// The gateway follows the peer to another path.
    PeerMoved {
        /// The reason.
        why: &'a str,
    },
    /// Packets of another size are known to arrive.
    PathMtu {
        /// IP packets up to this size.
        packet_bytes: u64,
        /// The reason.
        why: &'a str,
    },
    /// Data to the peer leaves in this form of UDP from now on.
    Carrier {
        /// The carrier, by its name in configurations.
        carrier: &'a str,
        /// The reason.
        why: &'a str,
    },
    /// The ends are configured differently.
    PeerMismatch {
        /// The difference.
        why: &'a str,
    },
    /// A handshake was refused here.
    HandshakeRefused {
        /// The reason.
        why: &'a str,
    },
    /// Somebody says why the peer does not answer.
    RefusedByPeer {
        /// The reason.
        why: &'a str,
    },
    /// The peer answers no handshake.
    NoAnswer {
        /// Seconds since the first handshake.
        waited_seconds: f64,
        /// The reason.
        why: &'a str,
    },
    /// The gateway sends at another rate, or for another reason.
    Rate {
        /// The number of the path, if it is a further one of several.
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<u8>,
        /// The rate from now on.
        bits_per_second: u64,
        /// The reason, by its name in `/status`.
        reason: &'a str,
        /// The reason in words.
        why: &'a str,
        /// Where the rate is found: `own` or `shared`, as the bottleneck is believed to be.
        #[serde(skip_serializing_if = "Option::is_none")]
        bottleneck: Option<&'a str>,
        /// Where the rate is found: the delay in queues.
        #[serde(skip_serializing_if = "Option::is_none")]
        queue_seconds: Option<f64>,
        /// Where the rate is found: the share that is lost whatever the rate.
        #[serde(skip_serializing_if = "Option::is_none")]
        random_loss_ratio: Option<f64>,
    },
    /// Losses of streams to the peer by cause since the gateway began, as it knows now.
    LossCauses {
        /// The number of the path, if these are of one of several alone.
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<u8>,
        /// Packets whose fate is known.
        sent_packets: u64,
        /// Those that were lost or damaged beyond repair.
        lost_packets: u64,
        /// Damaged ones that parity put right, which count as no loss.
        mended_packets: u64,
        /// The share of each cause among those lost.
        causes: &'a [TracedCause<'a>],
    },
    /// The path carries much less than configured.
    RateDeclaredWrong {
        /// The remedy.
        why: &'a str,
    },
    /// The configured rate limits, and not the path.
    RateDeclaredLow {
        /// The remedy.
        why: &'a str,
    },
    /// A flow began.
    FlowOpened {
        /// The flow's name in the log and in `/status`.
        id: &'a str,
        /// `tcp` or `udp`.
        protocol: &'a str,
        /// `in` if its client is here, `out` if its server is.
        direction: &'a str,
        /// The flow's destination.
        destination: &'a str,
    },
    /// A flow continues over another connection.
    FlowResumed {
        /// The first octet, of what this gateway sends, that goes over the new connection.
        position_bytes: u64,
    },
    /// A flow is over.
    FlowEnded {
        /// The way in which it ended.
        reason: &'a str,
        /// Octets received from the local socket.
        from_client_bytes: u64,
        /// Octets written to the local socket.
        to_client_bytes: u64,
        /// Seconds that the flow lasted.
        seconds: f64,
    },
    /// A flow that a client here wanted did not begin.
    FlowNotOpened {
        /// The flow's destination.
        destination: &'a str,
        /// The reason.
        reason: &'a str,
    },
    /// A flow that the peer wanted did not begin.
    ExitRefused {
        /// The flow's destination.
        destination: &'a str,
        /// The reason.
        reason: &'a str,
    },
    /// Both ends of a tunnel are there, and take each other's packets.
    TunnelUp {
        /// The tunnel's name.
        tunnel: &'a str,
        /// Its device here.
        device: &'a str,
        /// The addresses of both ends.
        why: &'a str,
    },
    /// Packets of one end of a tunnel are dropped at the other.
    TunnelNetworksDiffer {
        /// The tunnel's name.
        tunnel: &'a str,
        /// Its device here.
        device: &'a str,
        /// The packets that are dropped, by their source.
        why: &'a str,
    },
    /// The peer has no tunnel of this name.
    TunnelMissingThere {
        /// The tunnel's name.
        tunnel: &'a str,
        /// Its device here.
        device: &'a str,
    },
    /// The device of a tunnel was removed.
    TunnelDeviceLost {
        /// The tunnel's name.
        tunnel: &'a str,
        /// Its device here.
        device: &'a str,
        /// The kernel's word.
        why: &'a str,
    },
    /// The configuration was read again.
    Reloaded,
    /// The gateway was told to stop.
    Stopping {
        /// Flows that are open.
        flows: u64,
    },
}

#[cfg(test)]
pub(crate) use tests::EACH;

#[cfg(test)]
mod tests {
    use super::{GatewayEvent, TracedCause};

    const WHY: &str = "because";

    /// One event of each kind, in the order above.
    pub(crate) const EACH: [GatewayEvent<'static>; 30] = [
        GatewayEvent::PeerUp {
            resumed: true,
            wire: 2,
            why: WHY,
        },
        GatewayEvent::PeerRestarted { why: WHY },
        GatewayEvent::PeerClosed { why: WHY },
        GatewayEvent::PeerRekeyed,
        GatewayEvent::LinkDown {
            silent_seconds: 2.0,
            why: WHY,
        },
        GatewayEvent::LinkUp {
            outage_seconds: 3.5,
            why: WHY,
        },
        GatewayEvent::PathDown {
            path: 1,
            silent_seconds: 0.5,
            why: WHY,
        },
        GatewayEvent::PathUp {
            path: 1,
            outage_seconds: 1.5,
            why: WHY,
        },
        GatewayEvent::PeerMoved { why: WHY },
        GatewayEvent::PathMtu {
            packet_bytes: 1_500,
            why: WHY,
        },
        GatewayEvent::Carrier {
            carrier: "udp",
            why: WHY,
        },
        GatewayEvent::PeerMismatch { why: WHY },
        GatewayEvent::HandshakeRefused { why: WHY },
        GatewayEvent::RefusedByPeer { why: WHY },
        GatewayEvent::NoAnswer {
            waited_seconds: 10.0,
            why: WHY,
        },
        GatewayEvent::Rate {
            path: Some(1),
            bits_per_second: 4_000_000,
            reason: "link",
            why: WHY,
            bottleneck: Some("own"),
            queue_seconds: Some(0.25),
            random_loss_ratio: Some(0.5),
        },
        GatewayEvent::LossCauses {
            path: Some(1),
            sent_packets: 1_000,
            lost_packets: 20,
            mended_packets: 3,
            causes: &[TracedCause {
                cause: "random",
                ratio: 0.75,
                low_ratio: 0.5,
                high_ratio: 1.0,
            }],
        },
        GatewayEvent::RateDeclaredWrong { why: WHY },
        GatewayEvent::RateDeclaredLow { why: WHY },
        GatewayEvent::FlowOpened {
            id: "00",
            protocol: "tcp",
            direction: "in",
            destination: "192.0.2.1:80",
        },
        GatewayEvent::FlowResumed { position_bytes: 9 },
        GatewayEvent::FlowEnded {
            reason: "finished",
            from_client_bytes: 1,
            to_client_bytes: 2,
            seconds: 0.5,
        },
        GatewayEvent::FlowNotOpened {
            destination: "192.0.2.1:80",
            reason: "too many",
        },
        GatewayEvent::ExitRefused {
            destination: "192.0.2.1:80",
            reason: "not_allowed",
        },
        GatewayEvent::TunnelUp {
            tunnel: "field",
            device: "tunnel0",
            why: WHY,
        },
        GatewayEvent::TunnelNetworksDiffer {
            tunnel: "field",
            device: "tunnel0",
            why: WHY,
        },
        GatewayEvent::TunnelMissingThere {
            tunnel: "field",
            device: "tunnel0",
        },
        GatewayEvent::TunnelDeviceLost {
            tunnel: "field",
            device: "tunnel0",
            why: WHY,
        },
        GatewayEvent::Reloaded,
        GatewayEvent::Stopping { flows: 3 },
    ];

    /// A new event does not compile here until it has a place in [`EACH`].
    #[test]
    fn each_event_is_among_the_samples() {
        for (place, event) in EACH.iter().enumerate() {
            let expected = match event {
                GatewayEvent::PeerUp { .. } => 0,
                GatewayEvent::PeerRestarted { .. } => 1,
                GatewayEvent::PeerClosed { .. } => 2,
                GatewayEvent::PeerRekeyed => 3,
                GatewayEvent::LinkDown { .. } => 4,
                GatewayEvent::LinkUp { .. } => 5,
                GatewayEvent::PathDown { .. } => 6,
                GatewayEvent::PathUp { .. } => 7,
                GatewayEvent::PeerMoved { .. } => 8,
                GatewayEvent::PathMtu { .. } => 9,
                GatewayEvent::Carrier { .. } => 10,
                GatewayEvent::PeerMismatch { .. } => 11,
                GatewayEvent::HandshakeRefused { .. } => 12,
                GatewayEvent::RefusedByPeer { .. } => 13,
                GatewayEvent::NoAnswer { .. } => 14,
                GatewayEvent::Rate { .. } => 15,
                GatewayEvent::LossCauses { .. } => 16,
                GatewayEvent::RateDeclaredWrong { .. } => 17,
                GatewayEvent::RateDeclaredLow { .. } => 18,
                GatewayEvent::FlowOpened { .. } => 19,
                GatewayEvent::FlowResumed { .. } => 20,
                GatewayEvent::FlowEnded { .. } => 21,
                GatewayEvent::FlowNotOpened { .. } => 22,
                GatewayEvent::ExitRefused { .. } => 23,
                GatewayEvent::TunnelUp { .. } => 24,
                GatewayEvent::TunnelNetworksDiffer { .. } => 25,
                GatewayEvent::TunnelMissingThere { .. } => 26,
                GatewayEvent::TunnelDeviceLost { .. } => 27,
                GatewayEvent::Reloaded => 28,
                GatewayEvent::Stopping { .. } => 29,
            };
            assert_eq!(place, expected, "{event:?}");
        }
    }
}
