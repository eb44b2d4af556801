//! Time division: a station sends in its own slot of each frame, and a packet goes whole into a slot.
//!
//! ```text
//! frame   |  slot  |        slots of others         |  slot  |  ...
//!         | packets, guard |                        | packets, guard |
//! ```
//!
//! A packet that does not fit into what is left of a slot waits for the next one, and what is left stays empty. So packets that fill a
//! slot use it best: the AeroTP papers take the MTU from the slot (multi-mode paper, section III.A).

mod text;

use crate::config_error::{ChannelConfigError, Setting};
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant, format_duration};

/// The longest frame.
const FRAME_MAX: Duration = Duration::from_secs(60);

/// The slots of one station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tdma {
    /// The length of the station's slot.
    pub slot: Duration,
    /// The time from one of its slots to the next.
    pub frame: Duration,
    /// The start of its slot in the frame.
    pub offset: Duration,
    /// The end of the slot in which nothing is sent, so that slots do not run into each other.
    pub guard: Duration,
}

impl Tdma {
    /// A slot at the start of each frame, without a guard.
    pub const fn new(slot: Duration, frame: Duration) -> Self {
        Self {
            slot,
            frame,
            offset: Duration::ZERO,
            guard: Duration::ZERO,
        }
    }

    /// The part of a slot in which packets are sent.
    const fn usable(self) -> Duration {
        self.slot.saturating_sub(self.guard)
    }

    /// Octets that fill a slot at this rate: the longest packet that is ever sent.
    pub fn octets(self, rate: Bitrate) -> ByteCount {
        rate.bytes_in(self.usable())
    }

    /// The rate over many frames, if slots are full.
    pub fn mean_rate(self, rate: Bitrate) -> Bitrate {
        let frame = self.frame.as_nanos().max(1);
        let bits = u128::from(rate.as_bits_per_second()) * self.usable().as_nanos() / frame;
        Bitrate::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX).max(1))
    }

    pub(crate) fn check(self) -> Result<(), ChannelConfigError> {
        let refused = |part, span, allowed: &str| {
            Err(ChannelConfigError::new(
                Setting::Tdma.part(part),
                format_duration(span),
                allowed,
            ))
        };
        if self.frame.is_zero() || self.frame > FRAME_MAX {
            return refused("frame", self.frame, "1ns to 60s");
        }
        if self.slot.is_zero() || self.slot > self.frame {
            return refused("slot", self.slot, "above 0 and at most the frame");
        }
        if self.guard >= self.slot {
            return refused("guard", self.guard, "less than the slot");
        }
        if self.offset.saturating_add(self.slot) > self.frame {
            return refused(
                "offset",
                self.offset,
                "such that the slot ends in the frame",
            );
        }
        Ok(())
    }

    /// The earliest start, from `from` on, of a transmission that takes so long; `None` if no slot is long enough.
    pub(crate) fn start(self, from: Instant, takes: Duration) -> Option<Instant> {
        let usable = self.usable();
        if takes > usable {
            return None;
        }
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let (frame, offset) = (nanos(self.frame), nanos(self.offset));
        let number = from.as_nanos().saturating_sub(offset) / frame;
        let slot = Instant::from_nanos(offset.saturating_add(number.saturating_mul(frame)));
        if from <= slot {
            Some(slot)
        } else if from + takes <= slot + usable {
            Some(from)
        } else {
            Some(slot + self.frame)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Channel, ChannelConfig, ChannelVerdict};
    use fulmar_proto::rng::Rng;

    const RATE: Bitrate = Bitrate::from_bits_per_second(8_000_000);

    fn tdma(text: &str) -> Tdma {
        text.parse().unwrap()
    }

    #[test]
    fn a_slot_holds_its_octets_and_the_station_has_its_share_of_the_rate() {
        // 1.95 ms at 8 Mbit/s: a thousand octets a millisecond.
        let tdma = tdma("2ms of 20ms guard 50us");
        assert_eq!(tdma.octets(RATE), ByteCount(1_950));
        assert_eq!(tdma.mean_rate(RATE).as_bits_per_second(), 780_000);
    }

    #[test]
    fn packets_leave_in_their_slots_whole_and_one_that_fits_no_slot_never() {
        let config = ChannelConfig {
            rate: Some(RATE),
            tdma: Some(tdma("2ms of 20ms at 4ms")),
            ..ChannelConfig::default()
        };
        let mut channel = Channel::new(config, &Rng::from_seed(1)).unwrap();
        let mut ends = |at_ms: u64, octets: u64| {
            let now = Instant::START + Duration::from_millis(at_ms);
            match channel.admit(now, ByteCount(octets)) {
                ChannelVerdict::Deliver(delivery) => Some(delivery.at.as_nanos() / 1_000),
                _ => None,
            }
        };
        // Before the slot; the rest of it; what does not fit any more; what fits behind that; a later frame, within the slot.
        assert_eq!(ends(0, 1_200), Some(5_200));
        assert_eq!(ends(0, 800), Some(6_000));
        assert_eq!(ends(0, 1_500), Some(25_500));
        assert_eq!(ends(5, 500), Some(26_000));
        assert_eq!(ends(45, 900), Some(45_900));
        assert_eq!(ends(45, 2_001), None);
        assert_eq!(ends(45, 2_000), Some(66_000));
    }
}
