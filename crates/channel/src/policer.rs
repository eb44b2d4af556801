//! A policer: a token bucket before the link, without a queue.
//!
//! ```text
//! tokens <- min(burst, tokens + rate × time); a packet of len octets takes len of them, or is dropped
//! ```
//!
//! It begins full. Packets that it drops never occupy the link.

use crate::config_error::{ChannelConfigError, Setting};
use fulmar_proto::units::{Bitrate, ByteCount, Instant};

/// Parts of a bit that the bucket counts, so that a rate times nanoseconds is whole.
const PARTS_PER_BIT: u128 = 1_000_000_000;

/// The settings of a policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policer {
    /// The rate of the tokens.
    pub rate: Bitrate,
    /// The most tokens.
    pub burst: ByteCount,
}

impl Policer {
    pub(crate) fn check(self) -> Result<(), ChannelConfigError> {
        let part = |part, value: String, allowed| {
            Err(ChannelConfigError::new(
                Setting::Policer.part(part),
                value,
                allowed,
            ))
        };
        if self.rate == Bitrate::ZERO {
            return part("rate", self.rate.to_string(), "at least 1bit");
        }
        if self.burst == ByteCount::ZERO {
            let allowed = "at least 1B, and as much as the longest packet for any of it to pass";
            return part("burst", self.burst.to_string(), allowed);
        }
        Ok(())
    }
}

/// The tokens of a [`Policer`].
#[derive(Clone, Debug)]
pub struct TokenBucket {
    policer: Policer,
    /// In parts of a bit.
    tokens: u128,
    since: Instant,
}

impl TokenBucket {
    /// A full bucket.
    pub fn new(policer: Policer) -> Self {
        Self {
            policer,
            tokens: u128::from(policer.burst.bits()) * PARTS_PER_BIT,
            since: Instant::START,
        }
    }

    /// Takes the tokens of a packet of `len` octets, or says that there are too few. `now` never decreases.
    pub fn takes(&mut self, now: Instant, len: ByteCount) -> bool {
        let span = now.saturating_since(self.since).as_nanos();
        self.since = self.since.max(now);
        let rate = u128::from(self.policer.rate.as_bits_per_second());
        let most = u128::from(self.policer.burst.bits()) * PARTS_PER_BIT;
        self.tokens = (self.tokens + rate.saturating_mul(span)).min(most);
        let wanted = u128::from(len.bits()) * PARTS_PER_BIT;
        let has = self.tokens >= wanted;
        if has {
            self.tokens -= wanted;
        }
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::units::Duration;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let policer = Policer {
            rate: Bitrate::from_bits_per_second(12_000),
            burst: ByteCount(4_500),
        };
        let mut bucket = TokenBucket::new(policer);
        let len = ByteCount(1_500);
        let at = |millis| Instant::START + Duration::from_millis(millis);
        let mut takes = |millis| bucket.takes(at(millis), len);
        assert_eq!(
            [takes(0), takes(0), takes(0), takes(0)],
            [true, true, true, false]
        );
        // 12 kbit a second are one packet.
        assert_eq!(
            [takes(999), takes(1_000), takes(1_001)],
            [false, true, false]
        );
        // After a long silence no more than the burst.
        let passed = (0..10).filter(|_| takes(60_000)).count();
        assert_eq!(passed, 3);
    }
}
