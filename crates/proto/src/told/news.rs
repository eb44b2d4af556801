//! One message of a link about itself.

use super::facts::ToldFacts;
use crate::units::{BitErrorRate, Bitrate, Duration, Instant};
use core::ops::RangeInclusive;

/// An outage that is known beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedOutage {
    /// Its beginning.
    pub begins: Instant,
    /// Its length.
    pub lasts: Duration,
}

impl PlannedOutage {
    /// The time at which the link is back.
    pub fn ends(self) -> Instant {
        self.begins + self.lasts
    }

    /// Whether it lasts at `now`.
    pub fn covers(self, now: Instant) -> bool {
        (self.begins..self.ends()).contains(&now)
    }
}

/// The rates that a link may tell, in bits a second: below, a packet would take longer than anybody waits for it.
pub const TOLD_RATES: RangeInclusive<u64> = 1_000..=1_000_000_000_000;

/// A message of a link about itself, whole: what it does not name is not known any more.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkNews {
    /// Whether the link carries anything.
    pub is_up: Option<bool>,
    /// The rate towards the peer, IP headers included.
    pub rate_out: Option<Bitrate>,
    /// The rate on the way here.
    pub rate_back: Option<Bitrate>,
    /// The most that the medium could carry towards the peer, such as the bit rate of a Wi-Fi station or the speed of a port:
    /// data get less of it, and how much less it does not know.
    pub ceiling_out: Option<Bitrate>,
    /// The power of the signal that is received here, in dBm.
    pub signal_dbm: Option<f64>,
    /// The signal-to-noise ratio, in decibels.
    pub signal_to_noise_decibels: Option<f64>,
    /// The share of wrong bits towards the peer, after the link's own decoding.
    pub bit_errors_out: Option<BitErrorRate>,
    /// The share of wrong bits on the way here.
    pub bit_errors_back: Option<BitErrorRate>,
    /// The time that a datagram queued now would wait in the link's own queue.
    pub queue: Option<Duration>,
    /// The next outage, or the present one.
    pub outage: Option<PlannedOutage>,
    /// The cost of the path among several: 0 is used first.
    pub cost: Option<u8>,
}

impl LinkNews {
    /// The part that a session takes, outages aside.
    pub(super) fn facts(&self) -> ToldFacts {
        ToldFacts {
            is_up: self.is_up,
            rate: self.rate_out,
            ceiling: self.ceiling_out,
            bit_errors: self.bit_errors_out,
            bit_errors_back: self.bit_errors_back,
            queue: self.queue,
            cost: self.cost,
        }
    }
}
