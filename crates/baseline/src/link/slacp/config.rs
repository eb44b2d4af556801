//! SLACP's settings.

use crate::link::Medium;
use fulmar_proto::units::{Duration, Probability};

/// The error control of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneSettings {
    /// Whether lost packets are asked for again. Without, packets are handed up as they come.
    pub arq: bool,
    /// Whether retransmissions are accompanied by parity.
    pub fec: bool,
    /// How often a packet is sent again, 0 to 4.
    pub persistence: u8,
}

impl LaneSettings {
    /// With ARQ and FEC, two retransmissions at most.
    pub const REPAIRED: Self = Self {
        arq: true,
        fec: true,
        persistence: 2,
    };

    /// Without error control.
    pub const BARE: Self = Self {
        arq: false,
        fec: false,
        persistence: 0,
    };

    /// Whether anything is ever sent again.
    pub(super) const fn repairs(self) -> bool {
        self.arq && self.persistence > 0
    }
}

/// SLACP at both ends of a hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlacpConfig {
    /// Lanes for ordinary packets, 1 to 7; flows are spread over them.
    pub lanes: u8,
    /// Their error control.
    pub ordinary: LaneSettings,
    /// The error control of packets with precedence, which have a lane of their own.
    pub urgent: LaneSettings,
    /// Parity symbols of a block's first round, as a share of its packets; at least one. In later
    /// rounds there are as many as packets.
    pub redundancy: Probability,
    /// How long the receiver collects before it acknowledges what came in order.
    pub ack_delay: Duration,
}

impl Default for SlacpConfig {
    /// One lane, so that ordinary packets keep their order on the hop; parity for a quarter of
    /// a block; acknowledgements after the time of a 1450-octet frame at 128 kbit/s and 100 ms
    /// (spec/protocols.md 3.1).
    fn default() -> Self {
        Self {
            lanes: 1,
            ordinary: LaneSettings::REPAIRED,
            urgent: LaneSettings::REPAIRED,
            redundancy: Probability::new(0.25).unwrap_or_default(),
            ack_delay: Duration::from_millis(190),
        }
    }
}

/// A setting out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} must be {allowed}")]
pub struct SlacpConfigError {
    /// Which setting.
    pub field: &'static str,
    /// What would be accepted.
    pub allowed: &'static str,
}

/// How much longer than a round trip an end waits for what should have come (spec/protocols.md 3.1).
const SLACK: Duration = Duration::from_millis(50);

impl SlacpConfig {
    /// From the first transmission of an ordinary packet to its release at most, but for the time
    /// in which its frame is on the way: as long as it may go out again, and as long as a packet
    /// that came waits for those before it.
    pub fn delay_max(&self, medium: Medium) -> Duration {
        let timing = Timing::new(self, medium);
        let persistence = self.ordinary.persistence;
        timing.lifetime(persistence) + timing.patience(persistence)
    }

    /// # Errors
    /// The first setting out of range.
    pub fn check(&self) -> Result<(), SlacpConfigError> {
        let refused = |field, allowed| Err(SlacpConfigError { field, allowed });
        if !(1..=7).contains(&self.lanes) {
            return refused("lanes", "1 to 7");
        }
        let persistences = [self.ordinary.persistence, self.urgent.persistence];
        if persistences.iter().any(|&times| times > 4) {
            return refused("persistence", "0 to 4");
        }
        let spans = Duration::from_millis(1)..=Duration::from_secs(60);
        if !spans.contains(&self.ack_delay) {
            return refused("ack_delay", "1ms to 60s");
        }
        Ok(())
    }
}

/// The spans that follow from the settings and the hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timing {
    /// From sending a frame to the arrival of an acknowledgement that could tell of it, at most.
    pub(super) round_trip: Duration,
    /// From the receiver's first look at a packet in order to its acknowledgement.
    pub(super) ack_delay: Duration,
    /// Between acknowledgements while nothing comes.
    pub(super) repeat: Duration,
}

impl Timing {
    pub(super) fn new(config: &SlacpConfig, medium: Medium) -> Self {
        let round_trip = medium.round_trip + medium.access;
        Self {
            round_trip,
            ack_delay: config.ack_delay,
            repeat: round_trip + SLACK,
        }
    }

    /// How long after its first transmission a packet may go out again: as long as the receiver's
    /// timer may ask for it. What is asked for later was only missed when later packets came.
    pub(super) fn lifetime(&self, persistence: u8) -> Duration {
        self.ack_delay + self.repeat * (u32::from(persistence) + 2) + self.round_trip
    }

    /// How long the receiver waits for a packet: each round may need a repeated request, and the
    /// first one an acknowledgement that was lost.
    pub(super) fn patience(&self, persistence: u8) -> Duration {
        (self.repeat + self.ack_delay) * (u32::from(persistence) + 1)
    }
}
