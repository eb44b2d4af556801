//! Counts of the packets put on the links, and of their losses.

use fulmar_proto::machine::TransmitKind;
use fulmar_proto::units::Instant;
use serde::{Deserialize, Serialize};

/// The reason why a packet did not reach the node at the other end of a hop, or was refused there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WireLoss {
    /// The error process lost the whole packet.
    Loss,
    /// The medium was interrupted.
    Outage,
    /// The queue before the link was full.
    Queue,
    /// The link's frame check, where a hop has one, noticed inverted bits.
    FrameCheck,
    /// The network header's check failed.
    NetworkHeader,
    /// The network header names no node of this chain; its check did not notice the damage.
    Address,
}

impl WireLoss {
    /// All causes, in report order.
    pub const ALL: [Self; 6] = [
        Self::Loss,
        Self::Outage,
        Self::Queue,
        Self::FrameCheck,
        Self::NetworkHeader,
        Self::Address,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Outage => "outage",
            Self::Queue => "queue",
            Self::FrameCheck => "frame_check",
            Self::NetworkHeader => "network_header",
            Self::Address => "address",
        }
    }
}

/// Octets by [`TransmitKind`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByKind {
    /// Application octets sent for the first time.
    pub source: u64,
    /// Parity across datagrams.
    pub repair: u64,
    /// Application octets sent again.
    pub retransmission: u64,
    /// Set-up, acknowledgements, close.
    pub control: u64,
}

impl ByKind {
    /// Adds `octets` of `kind`.
    pub fn add(&mut self, kind: TransmitKind, octets: u64) {
        *match kind {
            TransmitKind::Source => &mut self.source,
            TransmitKind::Repair => &mut self.repair,
            TransmitKind::Retransmission => &mut self.retransmission,
            TransmitKind::Control => &mut self.control,
        } += octets;
    }

    /// All kinds together.
    pub const fn total(&self) -> u64 {
        self.source + self.repair + self.retransmission + self.control
    }
}

/// Packets lost on the wire, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossCounts {
    /// See [`WireLoss::Loss`].
    pub loss: u64,
    /// See [`WireLoss::Outage`].
    pub outage: u64,
    /// See [`WireLoss::Queue`].
    pub queue: u64,
    /// See [`WireLoss::FrameCheck`].
    pub frame_check: u64,
    /// See [`WireLoss::NetworkHeader`].
    pub network_header: u64,
    /// See [`WireLoss::Address`].
    pub address: u64,
}

impl LossCounts {
    /// Adds one packet.
    pub fn add(&mut self, cause: WireLoss) {
        *match cause {
            WireLoss::Loss => &mut self.loss,
            WireLoss::Outage => &mut self.outage,
            WireLoss::Queue => &mut self.queue,
            WireLoss::FrameCheck => &mut self.frame_check,
            WireLoss::NetworkHeader => &mut self.network_header,
            WireLoss::Address => &mut self.address,
        } += 1;
    }

    /// The packets lost to `cause`.
    pub const fn of(&self, cause: WireLoss) -> u64 {
        match cause {
            WireLoss::Loss => self.loss,
            WireLoss::Outage => self.outage,
            WireLoss::Queue => self.queue,
            WireLoss::FrameCheck => self.frame_check,
            WireLoss::NetworkHeader => self.network_header,
            WireLoss::Address => self.address,
        }
    }

    /// All causes together.
    pub fn total(&self) -> u64 {
        WireLoss::ALL.iter().map(|&cause| self.of(cause)).sum()
    }
}

/// The counts of one direction of a hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WayMeter {
    /// Packets that were put on it.
    pub packets: u64,
    /// Their octets, with the link's framing.
    pub octets: u64,
    /// Packets that were lost on it or before it.
    pub lost: LossCounts,
    /// The times of the first and the last packet.
    pub span: Option<(Instant, Instant)>,
}

impl WayMeter {
    /// A packet of so many octets was put on it.
    pub(crate) fn add(&mut self, now: Instant, octets: u64) {
        self.packets += 1;
        self.octets += octets;
        let first = self.span.map_or(now, |(first, _)| first);
        self.span = Some((first, now));
    }
}

/// Everything counted on the links of one run. Octets and packets are those of measured hops;
/// losses are those of every hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireMeter {
    /// Octets put on measured hops, both directions, network headers included.
    pub octets: ByKind,
    /// Packets put on measured hops.
    pub packets: u64,
    /// Packets that crossed any hop, for the speed of the simulator itself.
    pub packet_hops: u64,
    /// Packets lost.
    pub lost: LossCounts,
    /// Packets that went on with inverted bits.
    pub damaged: u64,
    /// Bits inverted.
    pub inverted_bits: u64,
    /// Second copies made by the medium.
    pub duplicated: u64,
    /// Packets marked "congestion experienced".
    pub marked: u64,
}
