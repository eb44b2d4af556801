//! The settings of SLACP.

use crate::link::Medium;
use fulmar_proto::machine::Priority;
use fulmar_proto::units::{Duration, Probability};

/// The error control of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneSettings {
    /// Whether lost packets are asked for again. Without ARQ, packets are handed up as they come.
    pub arq: bool,
    /// Whether retransmissions are accompanied by parity.
    pub fec: bool,
    /// The number of retransmissions of a packet, 0 to 4.
    pub persistence: u8,
}

impl LaneSettings {
    /// Settings with ARQ and FEC, and two retransmissions at most.
    pub const REPAIRED: Self = Self {
        arq: true,
        fec: true,
        persistence: 2,
    };

    /// Settings without error control.
    pub const BARE: Self = Self {
        arq: false,
        fec: false,
        persistence: 0,
    };

    /// Whether any packet is ever retransmitted.
    pub(super) const fn repairs(self) -> bool {
        self.arq && self.persistence > 0
    }
}

/// A class of packets with a lane of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneClass {
    /// The least precedence of its packets; those of a class above are not among them.
    pub priority: Priority,
    /// The error control of its lane.
    pub settings: LaneSettings,
}

/// The settings of SLACP at both ends of a hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlacpConfig {
    /// Lanes for ordinary packets, 1 to 7, less one for each class; flows are spread over them.
    pub lanes: u8,
    /// The error control of these lanes.
    pub ordinary: LaneSettings,
    /// The error control of packets with precedence and without a class, which have a lane of their own.
    pub urgent: LaneSettings,
    /// Classes with lanes of their own, by the precedence of their packets.
    pub classes: [Option<LaneClass>; SlacpConfig::CLASSES_MAX],
    /// Parity symbols of a block's first round, as a share of its packets; at least one. Later
    /// rounds have as many symbols as packets.
    pub redundancy: Probability,
    /// The time for which the receiver collects packets that came in order before it acknowledges
    /// them.
    pub ack_delay: Duration,
}

impl Default for SlacpConfig {
    /// The defaults: one lane, so that ordinary packets keep their order on the hop; parity for a
    /// quarter of a block; acknowledgements after the time of a 1450-octet frame at 128 kbit/s and
    /// 100 ms. The slides give none of these (`docs/models/slacp.md`).
    fn default() -> Self {
        Self {
            lanes: 1,
            ordinary: LaneSettings::REPAIRED,
            urgent: LaneSettings::REPAIRED,
            classes: [None; Self::CLASSES_MAX],
            redundancy: Probability::new(0.25).unwrap_or_default(),
            ack_delay: Duration::from_millis(190),
        }
    }
}

/// The error about a setting out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} must be {allowed}")]
pub struct SlacpConfigError {
    /// The setting.
    pub field: &'static str,
    /// The values accepted.
    pub allowed: &'static str,
}

/// The time beyond a round trip that an end waits for a frame that should have come. The slides give
/// none.
const SLACK: Duration = Duration::from_millis(50);

/// The lane of packets with precedence and without a class; classes have those before it.
const URGENT_LANE: u8 = 7;

impl SlacpConfig {
    /// The most classes.
    pub const CLASSES_MAX: usize = 3;

    /// The lanes of packets with precedence: the number of each, the least precedence of its packets, and its error control.
    pub(super) fn urgent_lanes(&self) -> impl Iterator<Item = (u8, Priority, LaneSettings)> + '_ {
        let urgent = (URGENT_LANE, Priority(1), self.urgent);
        let classes = (0..URGENT_LANE).rev().zip(self.classes.iter().flatten());
        let classes = classes.map(|(lane, class)| (lane, class.priority, class.settings));
        core::iter::once(urgent).chain(classes)
    }

    /// The longest time from the first transmission of an ordinary packet to its release, without
    /// the time that its frame is on the way. It contains the time in which the packet may be
    /// retransmitted, and the time for which a packet that came waits for those before it.
    pub fn delay_max(&self, medium: Medium) -> Duration {
        let timing = Timing::new(self, medium);
        let persistence = self.ordinary.persistence;
        timing.lifetime(persistence) + timing.patience(persistence)
    }

    /// # Errors
    /// The first setting out of range.
    pub fn check(&self) -> Result<(), SlacpConfigError> {
        let refused = |field, allowed| Err(SlacpConfigError { field, allowed });
        let mut classes: Vec<u8> = (self.classes.iter().flatten())
            .map(|class| class.priority.0)
            .collect();
        if !(1..=7).contains(&self.lanes) {
            return refused("lanes", "1 to 7");
        }
        if usize::from(self.lanes) + classes.len() > 7 {
            return refused("lanes", "at most 7, less one for each class");
        }
        for (field, lane) in [
            ("ordinary.persistence", self.ordinary),
            ("urgent.persistence", self.urgent),
        ] {
            if lane.persistence > 4 {
                return refused(field, "0 to 4");
            }
        }
        let persistent = |class: &LaneClass| class.settings.persistence > 4;
        if self.classes.iter().flatten().any(persistent) {
            return refused("classes.persistence", "0 to 4");
        }
        let count = classes.len();
        classes.sort_unstable();
        classes.dedup();
        if classes.len() < count || classes.iter().any(|priority| !(2..=63).contains(priority)) {
            return refused("classes.priority", "2 to 63, and another in each class");
        }
        let spans = Duration::from_millis(1)..=Duration::from_secs(60);
        if !spans.contains(&self.ack_delay) {
            return refused("ack_delay", "1ms to 60s");
        }
        Ok(())
    }
}

/// The times that follow from the settings and the hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timing {
    /// The longest time from sending a frame to the arrival of an acknowledgement that could tell
    /// of it.
    pub(super) round_trip: Duration,
    /// The time from the receiver's first look at a packet in order to its acknowledgement.
    pub(super) ack_delay: Duration,
    /// The time between acknowledgements while nothing comes.
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

    /// The time after its first transmission in which a packet may be retransmitted: as long as the
    /// receiver's timer may ask for it. A packet that is asked for later was only missed when later
    /// packets came.
    pub(super) fn lifetime(&self, persistence: u8) -> Duration {
        self.ack_delay + self.repeat * (u32::from(persistence) + 2) + self.round_trip
    }

    /// The time for which the receiver waits for a packet: each round may need a repeated request,
    /// and the first round may also have to replace a lost acknowledgement.
    pub(super) fn patience(&self, persistence: u8) -> Duration {
        (self.repeat + self.ack_delay) * (u32::from(persistence) + 1)
    }
}
