//! The emulator's report, as it appears in JSON. Base units; a share of nothing is `null`, never NaN.

use serde::Serialize;

/// The version of the JSON records; it changes when a field changes its meaning.
pub(super) const SCHEMA: &str = "fulmar.emulate/1";
/// The version of the JSON records of a link between TUN devices.
pub(super) const TUN_SCHEMA: &str = "fulmar.emulate-tun/1";
/// The same between TAP devices.
pub(super) const TAP_SCHEMA: &str = "fulmar.emulate-tap/1";

/// Packets dropped in one direction, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DropReport {
    /// Packets longer than the path carries; never on the link.
    pub too_large: u64,
    /// The queue was full; never on the link.
    pub queue: u64,
    /// The policer had too few tokens; never on the link.
    pub policer: u64,
    /// The managed queue signalled congestion, and the packet cannot be marked; never on the link.
    pub early: u64,
    /// The link was out.
    pub outage: u64,
    /// The loss model took it.
    pub loss: u64,
    /// A bit of the lower header was inverted.
    pub header_damage: u64,
    /// A bit of the payload was inverted and damage is not delivered.
    pub payload_damage: u64,
}

/// One direction. A packet is a datagram with its lower header; `_bytes` of the link include it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DirectionReport {
    /// Packets handed to the link.
    pub offered_packets: u64,
    /// Octets of these packets, lower headers included.
    pub offered_bytes: u64,
    /// Packets sent by the link, whether they arrive or not.
    pub transmitted_packets: u64,
    /// Octets of these packets, lower headers included: the load.
    pub transmitted_bytes: u64,
    /// Arrivals, duplicates included; up to the propagation delay they may still be in flight.
    pub arrived_packets: u64,
    /// Payload octets of these arrivals.
    pub arrived_payload_bytes: u64,
    /// Arrivals with inverted bits.
    pub damaged_packets: u64,
    /// Inverted bits in arrivals.
    pub flipped_bits: u64,
    /// Arrivals marked as having experienced congestion.
    pub marked_packets: u64,
    /// Packets held back so that others overtook them.
    pub reordered_packets: u64,
    /// Second arrivals, before damage.
    pub duplicated_packets: u64,
    /// Packets that did not arrive.
    pub dropped_packets: DropReport,
}

/// The clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlowReport {
    /// Clients known now.
    pub open: usize,
    /// Clients ever known.
    pub opened: u64,
    /// Clients forgotten after silence.
    pub reclaimed: u64,
    /// Datagrams of clients for which there was no room or no socket.
    pub refused_packets: u64,
}

/// The machine's punctuality; the fields of this stand beside the others in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Punctuality {
    /// Packets dropped because too many octets were in flight.
    pub overflow_packets: u64,
    /// The mean lateness of packets that were passed on; `null` before the first.
    pub lateness_mean_s: Option<f64>,
    /// The largest lateness.
    pub lateness_max_s: f64,
    /// Packets passed on more than a millisecond late.
    pub late_1ms_packets: u64,
}

/// Everything that a relay did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EmulatorReport {
    /// The version of these records: `fulmar.emulate/1`.
    pub schema: &'static str,
    /// Seconds since the start.
    pub t_s: f64,
    /// The seed.
    pub seed: u64,
    /// The direction from the clients to the target.
    pub up: DirectionReport,
    /// The direction from the target to the clients.
    pub down: DirectionReport,
    /// The clients.
    pub flows: FlowReport,
    /// Packets that arrived but could not be passed on: the kernel refused, or the client was gone.
    pub unsent_packets: u64,
    /// ICMP errors from the target: nobody listens there.
    pub target_refused: u64,
    /// The machine's punctuality.
    #[serde(flatten)]
    pub punctuality: Punctuality,
}

/// Everything that a link between TUN devices did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TunReport {
    /// The version of these records: `fulmar.emulate-tun/1`, or `fulmar.emulate-tap/1`.
    pub schema: &'static str,
    /// Seconds since the start.
    pub t_s: f64,
    /// The seed.
    pub seed: u64,
    /// The direction from a to b.
    pub up: DirectionReport,
    /// The direction from b to a.
    pub down: DirectionReport,
    /// Packets that the hosts sent and the kernel dropped because they were not read in time; never
    /// on the link. `null` if the kernel does not say.
    pub unread_packets: Option<u64>,
    /// Packets that arrived and the kernel refused: damaged beyond the name of IP, or the interface
    /// was taken down.
    pub unsent_packets: u64,
    /// The machine's punctuality.
    #[serde(flatten)]
    pub punctuality: Punctuality,
}
