//! A queue of packets before a link that takes one at a time: drop-tail, with marks by threshold or
//! by RED.
//!
//! The queue inside [`crate::Channel`] knows at once when a packet's turn will come. This one waits
//! until the layer below asks for a packet: a link layer sends repair first.

use crate::red::{Red, RedConfig};
use crate::transmitter::QueueLimit;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration, Instant};
use std::collections::VecDeque;

/// The fate of a packet at a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// The packet waits.
    Waits {
        /// Whether it is to be marked "congestion experienced".
        marked: bool,
    },
    /// The packet is dropped: there is no room.
    Full,
    /// The packet is dropped: RED signals congestion, and the packet cannot be marked.
    Early,
}

/// A queue of `T`, each with its length in octets.
#[derive(Clone, Debug)]
pub struct PacketQueue<T> {
    waiting: VecDeque<(T, ByteCount)>,
    octets: ByteCount,
    limit: QueueLimit,
    threshold: Option<QueueLimit>,
    red: Option<Red>,
}

impl<T> PacketQueue<T> {
    /// A queue within `limit` that marks above `threshold`.
    pub fn new(limit: QueueLimit, threshold: Option<QueueLimit>) -> Self {
        Self {
            waiting: VecDeque::new(),
            octets: ByteCount::ZERO,
            limit,
            threshold,
            red: None,
        }
    }

    /// This queue with RED. `packet_time` is the time that a typical packet occupies the link;
    /// draws come from `rng`.
    #[must_use]
    pub fn with_red(mut self, config: RedConfig, packet_time: Duration, rng: Rng) -> Self {
        self.red = Some(Red::new(config, packet_time, rng));
        self
    }

    /// Takes a packet of `len` octets, or drops it. `capable` says whether it may be marked instead
    /// of dropped (RFC 3168).
    pub fn push(&mut self, now: Instant, packet: T, len: ByteCount, capable: bool) -> Queued {
        let waiting = self.waiting.len();
        let signalled = self
            .red
            .as_mut()
            .is_some_and(|red| red.arrival(now, waiting));
        let octets = self.octets + len;
        if !self.limit.allows(waiting + 1, octets.0) {
            return Queued::Full;
        }
        if signalled && !capable {
            return Queued::Early;
        }
        let above = |threshold: QueueLimit| !threshold.allows(waiting + 1, octets.0);
        let marked = capable && (signalled || self.threshold.is_some_and(above));
        self.waiting.push_back((packet, len));
        self.octets = octets;
        Queued::Waits { marked }
    }

    /// Takes the packet that waits longest.
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        self.take(now, 0)
    }

    /// The packets that wait, the one that waits longest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.waiting.iter().map(|(packet, _)| packet)
    }

    /// Takes the packet at `place`, counted from 0 for the one that waits longest.
    pub fn take(&mut self, now: Instant, place: usize) -> Option<T> {
        let (packet, len) = self.waiting.remove(place)?;
        self.octets = self.octets.saturating_sub(len);
        if self.waiting.is_empty()
            && let Some(red) = &mut self.red
        {
            red.idle(now);
        }
        Some(packet)
    }

    /// The number of packets that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Octets of the packets that wait.
    pub const fn bytes(&self) -> ByteCount {
        self.octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::units::Probability;

    const LEN: ByteCount = ByteCount(1_000);

    fn push(queue: &mut PacketQueue<u32>, packet: u32, capable: bool) -> Queued {
        queue.push(Instant::START, packet, LEN, capable)
    }

    #[test]
    fn packets_leave_in_order_and_the_one_past_the_limit_is_dropped() {
        let mut queue = PacketQueue::new(QueueLimit::packets(2), None);
        let waits = Queued::Waits { marked: false };
        assert_eq!(push(&mut queue, 1, true), waits);
        assert_eq!(push(&mut queue, 2, true), waits);
        assert_eq!(push(&mut queue, 3, true), Queued::Full);
        assert_eq!((queue.len(), queue.bytes()), (2, ByteCount(2_000)));
        assert_eq!(queue.pop(Instant::START), Some(1));
        assert_eq!(push(&mut queue, 4, true), waits);
        assert_eq!(queue.take(Instant::START, 1), Some(4));
        assert_eq!(queue.take(Instant::START, 1), None);
        assert_eq!(queue.iter().collect::<Vec<_>>(), [&2]);
        assert_eq!(queue.bytes(), LEN);
        assert_eq!(queue.pop(Instant::START), Some(2));
        assert_eq!(queue.bytes(), ByteCount::ZERO);
    }

    #[test]
    fn above_the_threshold_capable_packets_are_marked_and_others_only_wait() {
        let threshold = Some(QueueLimit::packets(1));
        let mut queue = PacketQueue::new(QueueLimit::packets(10), threshold);
        assert_eq!(push(&mut queue, 1, true), Queued::Waits { marked: false });
        assert_eq!(push(&mut queue, 2, true), Queued::Waits { marked: true });
        assert_eq!(push(&mut queue, 3, false), Queued::Waits { marked: false });
    }

    #[test]
    fn red_drops_early_what_it_cannot_mark() {
        let config = RedConfig {
            probability: Probability::new(1.0).expect("a share"),
            weight: 1.0,
            ..RedConfig::between(0, 1)
        };
        let rng = Rng::from_seed(1);
        let mut queue = PacketQueue::new(QueueLimit::packets(10), None).with_red(
            config,
            Duration::from_millis(1),
            rng,
        );
        assert_eq!(push(&mut queue, 1, true), Queued::Waits { marked: false });
        assert_eq!(push(&mut queue, 2, true), Queued::Waits { marked: true });
        assert_eq!(push(&mut queue, 3, false), Queued::Early);
        assert_eq!(queue.len(), 2);
    }
}
