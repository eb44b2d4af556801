//! The sending end of a link: a drop-tail queue in front of a transmitter of fixed rate.
//!
//! A packet is transmitted after those admitted before it. The queue holds the packets that wait,
//! without the one in transmission (ns-3's `DropTailQueue` in a `PointToPointNetDevice` counts the
//! same way). So a limit of 100 packets lets 101 be inside, and a limit of 0 admits a packet only
//! to an idle link. A transmission that ends at `now` has left. A packet that waits for its slot counts as the one in transmission if
//! it is the first.
//!
//! # Exactness
//! The fraction of a nanosecond by which a transmission ends after a whole one is carried into the
//! next, so N packets back to back take N × 8 × len / rate, rounded up once, not N times.

use crate::tdma::Tdma;
use core::num::NonZeroU64;
use fulmar_proto::units::{ByteCount, Duration, Instant};
use std::collections::VecDeque;

const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// The most packets in a queue: it bounds the memory (16 octets each), also under a limit in octets
/// alone.
pub(crate) const WAITING_PACKETS_MAX: u32 = 1 << 24;

/// The limit of a queue in front of the link: the tighter of the two bounds counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimit {
    /// Packets, not counting the one in transmission. `None` sets no bound except that of memory
    /// (2^24 packets).
    pub packets: Option<u32>,
    /// Octets of those packets. `None` sets no bound.
    pub bytes: Option<ByteCount>,
}

impl QueueLimit {
    /// A queue that never refuses a packet.
    pub const UNLIMITED: Self = Self {
        packets: None,
        bytes: None,
    };

    /// A limit of `packets` waiting.
    pub const fn packets(packets: u32) -> Self {
        Self {
            packets: Some(packets),
            bytes: None,
        }
    }

    /// A limit of `bytes` waiting.
    pub const fn bytes(bytes: ByteCount) -> Self {
        Self {
            packets: None,
            bytes: Some(bytes),
        }
    }

    /// Whether neither bound is set.
    pub const fn is_unlimited(self) -> bool {
        self.packets.is_none() && self.bytes.is_none()
    }

    /// Whether so many waiting packets and octets are within the bounds.
    pub(crate) fn allows(self, packets: usize, octets: u64) -> bool {
        packets as u64 <= u64::from(self.packets.unwrap_or(WAITING_PACKETS_MAX))
            && self.bytes.is_none_or(|limit| octets <= limit.0)
    }
}

impl Default for QueueLimit {
    /// 100 packets, the default of ns-3's `DropTailQueue`.
    fn default() -> Self {
        Self::packets(100)
    }
}

/// The time that a packet is on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmission {
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    /// Whether the queue was above the marking threshold with this packet in it.
    pub(crate) marked: bool,
}

/// The queue and the transmitter behind it.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter {
    /// Bits per second; with `None` a transmission takes no time and nothing queues.
    rate: Option<NonZeroU64>,
    limit: QueueLimit,
    threshold: Option<QueueLimit>,
    /// Admitted packets whose transmission has not ended, the first being transmitted. Stays empty
    /// when there is no limit or threshold to compare it with.
    inside: VecDeque<Inside>,
    octets_inside: u64,
    /// Whether the queue's length is asked for, though nothing here is compared with it.
    is_watched: bool,
    /// The slots in which it sends, if not always.
    slots: Option<Tdma>,
    /// The end of the last transmission, in nanoseconds: `whole` + `carry` / `rate`.
    whole: u64,
    carry: u64,
}

#[derive(Clone, Copy, Debug)]
struct Inside {
    end: Instant,
    octets: u64,
}

impl Transmitter {
    pub(crate) fn new(
        rate: Option<NonZeroU64>,
        limit: QueueLimit,
        threshold: Option<QueueLimit>,
    ) -> Self {
        Self {
            rate,
            limit,
            threshold,
            inside: VecDeque::new(),
            octets_inside: 0,
            is_watched: false,
            slots: None,
            whole: 0,
            carry: 0,
        }
    }

    /// The same, and it always knows how long its queue is.
    pub(crate) const fn watched(mut self) -> Self {
        self.is_watched = true;
        self
    }

    /// The same, and it sends in its slots alone.
    pub(crate) const fn in_slots(mut self, slots: Option<Tdma>) -> Self {
        self.slots = slots;
        self
    }

    /// Sends at this rate what is admitted from now on.
    pub(crate) fn set_rate(&mut self, rate: Option<NonZeroU64>) {
        // The carry counts parts of the former rate.
        self.whole = self.free_at().as_nanos();
        self.carry = 0;
        self.rate = rate;
    }

    /// Whether the queue has room for a packet of `len` octets.
    pub(crate) fn has_room(&mut self, now: Instant, len: ByteCount) -> bool {
        self.forget_ended(now);
        self.inside.front().is_none_or(|sending| {
            let octets = len.0.clamp(1, u64::from(u32::MAX));
            let waiting = self.octets_inside - sending.octets + octets;
            self.limit.allows(self.inside.len(), waiting)
        })
    }

    /// Takes a packet of `len` octets, or refuses it for lack of room.
    pub(crate) fn admit(&mut self, now: Instant, len: ByteCount) -> Option<Transmission> {
        let Some(rate) = self.rate else {
            return Some(Transmission {
                start: now,
                end: now,
                marked: false,
            });
        };
        // A packet without octets takes no time but still takes a place. Sums stay below 2^57.
        let octets = len.0.clamp(1, u64::from(u32::MAX));
        let mut marked = false;
        let tracked = self.is_watched || !self.limit.is_unlimited() || self.threshold.is_some();
        if tracked {
            self.forget_ended(now);
            if let Some(sending) = self.inside.front() {
                let packets = self.inside.len();
                let waiting = self.octets_inside - sending.octets + octets;
                if !self.limit.allows(packets, waiting) {
                    return None;
                }
                marked = self
                    .threshold
                    .is_some_and(|threshold| !threshold.allows(packets, waiting));
            }
        }
        let ready = now.max(self.free_at());
        let start = match self.slots {
            None => ready,
            Some(slots) => {
                let bits = u128::from(octets) * 8 * u128::from(NANOS_PER_SECOND);
                let takes = bits.div_ceil(u128::from(rate.get()));
                let takes = Duration::from_nanos(u64::try_from(takes).unwrap_or(u64::MAX));
                slots.start(ready, takes)?
            }
        };
        self.occupy(if start > ready { start } else { now }, len, rate);
        let end = self.free_at();
        if tracked && end > now {
            self.inside.push_back(Inside { end, octets });
            self.octets_inside += octets;
        }
        Some(Transmission { start, end, marked })
    }

    /// The time at which the transmitter will have sent everything it holds.
    pub(crate) fn free_at(&self) -> Instant {
        Instant::from_nanos(self.whole.saturating_add(u64::from(self.carry > 0)))
    }

    /// Packets and octets waiting at `now`, without the packet in transmission.
    pub(crate) fn waiting(&mut self, now: Instant) -> (usize, ByteCount) {
        self.forget_ended(now);
        match self.inside.front() {
            Some(sending) => (
                self.inside.len() - 1,
                ByteCount(self.octets_inside - sending.octets),
            ),
            None => (0, ByteCount::ZERO),
        }
    }

    fn forget_ended(&mut self, now: Instant) {
        while let Some(&first) = self.inside.front()
            && first.end <= now
        {
            self.octets_inside -= first.octets;
            self.inside.pop_front();
        }
    }

    /// Moves the end of the last transmission by the time that `len` takes.
    fn occupy(&mut self, now: Instant, len: ByteCount, rate: NonZeroU64) {
        if self.free_at() <= now {
            self.whole = now.as_nanos();
            self.carry = 0;
        }
        let parts = len
            .bits()
            .checked_mul(NANOS_PER_SECOND)
            .and_then(|parts| parts.checked_add(self.carry));
        let (nanos, carry) = if let Some(parts) = parts {
            (parts / rate, parts % rate)
        } else {
            // Two gigabytes and more: the rest of a nanosecond no longer matters.
            let parts = u128::from(len.bits()) * u128::from(NANOS_PER_SECOND);
            let nanos = parts.div_ceil(u128::from(rate.get()));
            (u64::try_from(nanos).unwrap_or(u64::MAX), 0)
        };
        self.whole = self.whole.saturating_add(nanos);
        self.carry = carry;
    }
}

#[cfg(test)]
mod tests;
