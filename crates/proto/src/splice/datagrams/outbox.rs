//! Messages that wait to be sent.

use super::super::counters::ClassCounters;
use super::super::records::MessageRecord;
use super::cost;
use crate::tunnel::{Codel, CodelVerdict, mark_packet};
use crate::units::{Duration, Instant};
use std::collections::VecDeque;

/// The time beyond an interval after which a tunnel's packet is dropped whatever the queue does: the least timeout of a
/// TCP (RFC 6298, section 2.4).
const STALE: Duration = Duration::from_secs(1);
/// The most parts of a message: a part's index has one octet.
const PARTS_MAX: usize = 256;

#[derive(Debug)]
struct Waiting {
    /// The message's number. It is set when the first part leaves, so that messages that are never
    /// sent leave no gap.
    number: Option<u32>,
    taken_at: Instant,
    octets: Vec<u8>,
    /// Parts that were sent.
    sent: usize,
    /// The length of the parts sent.
    part_bytes: usize,
}

/// A bounded queue of messages. The oldest give way, since they are worth least.
#[derive(Debug, Default)]
pub(in super::super) struct Outbox {
    queue: VecDeque<Waiting>,
    held_bytes: usize,
    next_number: u32,
}

impl Outbox {
    pub(in super::super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The octets of memory that its messages count as.
    pub(in super::super) const fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Takes a message of a flow that may have `max` octets waiting; `false` if it is not possible.
    pub(in super::super) fn push(
        &mut self,
        now: Instant,
        octets: &[u8],
        max: usize,
        counters: &mut ClassCounters,
    ) -> bool {
        let bytes = cost(octets);
        while self.held_bytes + bytes > max && self.pop().is_some() {
            counters.dropped_full += 1;
        }
        if octets.len() > max {
            counters.dropped_full += 1;
            return false;
        }
        counters.messages_accepted += 1;
        counters.octets_accepted += octets.len() as u64;
        self.held_bytes += bytes;
        self.queue.push_back(Waiting {
            number: None,
            taken_at: now,
            octets: octets.to_vec(),
            sent: 0,
            part_bytes: 0,
        });
        true
    }

    fn pop(&mut self) -> Option<Waiting> {
        let first = self.queue.pop_front()?;
        self.held_bytes -= cost(&first.octets);
        Some(first)
    }

    pub(in super::super) fn clear(&mut self) {
        self.queue = VecDeque::new();
        self.held_bytes = 0;
    }

    /// Drops messages that have waited for longer than `deadline`, and messages too long for parts
    /// of `part_bytes` octets.
    pub(in super::super) fn drop_hopeless(
        &mut self,
        now: Instant,
        deadline: Option<Duration>,
        part_bytes: usize,
        counters: &mut ClassCounters,
    ) {
        while let Some(first) = self.queue.front() {
            let late = deadline.is_some_and(|d| now.saturating_since(first.taken_at) > d);
            let fits = first.octets.len() <= part_bytes.saturating_mul(PARTS_MAX);
            if late {
                counters.late_unsent += 1;
            } else if fits {
                return;
            } else {
                counters.dropped_oversize += 1;
            }
            self.pop();
        }
    }

    /// Drops packets of a tunnel for which nobody waits any more: senders repeat what is so late.
    pub(in super::super) fn drop_stale(
        &mut self,
        now: Instant,
        interval: Duration,
        counters: &mut ClassCounters,
    ) {
        let since = |first: &Waiting| now.saturating_since(first.taken_at);
        while self
            .queue
            .front()
            .is_some_and(|it| since(it) > STALE + interval)
        {
            counters.queue_dropped += 1;
            self.pop();
        }
    }

    /// Keeps the queue of a tunnel's packets short, before the first of them leaves: `codel` decides which are dropped
    /// or marked. Call it once for each packet that leaves.
    pub(in super::super) fn keep_short(
        &mut self,
        now: Instant,
        codel: &mut Codel,
        interval: Duration,
        counters: &mut ClassCounters,
    ) {
        while let Some(first) = self.queue.front() {
            let waited = now.saturating_since(first.taken_at);
            let is_stale = waited > STALE + interval;
            let is_last = self.queue.len() == 1;
            let verdict = codel.judge(now, waited, is_last, interval);
            if !is_stale && verdict == CodelVerdict::Send {
                return;
            }
            if !is_stale
                && let Some(first) = self.queue.front_mut()
                && mark_packet(&mut first.octets)
            {
                counters.queue_marked += 1;
                return;
            }
            counters.queue_dropped += 1;
            self.pop();
        }
    }

    /// The time at which the first message was taken.
    pub(in super::super) fn first_taken_at(&self) -> Option<Instant> {
        self.queue.front().map(|first| first.taken_at)
    }

    /// The next part to send, of at most `part_bytes` octets. It stays until [`Outbox::sent`].
    pub(in super::super) fn next(&mut self, part_bytes: usize) -> Option<MessageRecord<'_>> {
        if self.queue.front()?.part_bytes != part_bytes {
            self.begin_again();
        }
        let first = self.queue.front_mut()?;
        first.part_bytes = part_bytes;
        let parts = parts(first.octets.len(), part_bytes);
        let rest = first.octets.get(first.sent * part_bytes..)?;
        Some(MessageRecord {
            number: first.number.unwrap_or(self.next_number),
            stamp: first.taken_at.as_wrapping_micros(),
            index: u8::try_from(first.sent).ok()?,
            last: u8::try_from(parts - 1).ok()?,
            octets: &rest[..rest.len().min(part_bytes)],
        })
    }

    /// Notes that the part that [`Outbox::next`] showed has been sent.
    pub(in super::super) fn sent(&mut self, part_bytes: usize) {
        if let Some(first) = self.queue.front_mut() {
            if first.number.is_none() {
                first.number = Some(self.next_number);
                self.next_number = self.next_number.wrapping_add(1);
            }
            first.sent += 1;
            if first.sent >= parts(first.octets.len(), part_bytes) {
                self.pop();
            }
        }
    }

    /// Begins the message under way again, because parts have another length from now on or those
    /// sent may be lost. It gets a new number, since parts of two lengths would make a wrong
    /// message.
    pub(in super::super) fn begin_again(&mut self) {
        if let Some(first) = self.queue.front_mut().filter(|first| first.sent > 0) {
            first.sent = 0;
            first.number = None;
        }
    }
}

/// The number of parts of a message; an empty message is one part.
fn parts(len: usize, part_bytes: usize) -> usize {
    len.div_ceil(part_bytes.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::START;

    #[test]
    fn a_message_leaves_in_parts_that_cover_it() {
        let mut outbox = Outbox::default();
        let mut counters = ClassCounters::default();
        let octets: Vec<u8> = (0..=255).collect();
        assert!(outbox.push(NOW, &octets, 1_000, &mut counters));
        assert!(outbox.push(NOW, &[], 1_000, &mut counters));
        let mut seen = Vec::new();
        for index in 0..3 {
            let part = outbox.next(100).expect("three parts");
            assert_eq!((part.number, part.index, part.last), (0, index, 2));
            seen.extend_from_slice(part.octets);
            outbox.sent(100);
        }
        assert_eq!(seen, octets);
        let empty = outbox.next(100).expect("an empty message is a message");
        assert_eq!((empty.number, empty.index, empty.last), (1, 0, 0));
        outbox.sent(100);
        assert!(outbox.is_empty());
    }

    #[test]
    fn the_oldest_give_way_to_the_newest_and_both_bounds_are_exact() {
        let mut outbox = Outbox::default();
        let mut counters = ClassCounters::default();
        assert!(!outbox.push(NOW, &[0; 201], 200, &mut counters));
        for _ in 0..3 {
            assert!(outbox.push(NOW, &[0; 100], 200, &mut counters));
        }
        assert_eq!(counters.dropped_full, 2);
        assert_eq!(
            outbox.next(100).map(|part| part.number),
            Some(0),
            "what gave way was never numbered"
        );
        outbox.clear();
        outbox.push(NOW, &[0; 512], 1_000, &mut counters);
        outbox.drop_hopeless(NOW, None, 2, &mut counters);
        assert_eq!(counters.dropped_oversize, 0, "256 parts of 2");
        outbox.drop_hopeless(NOW, None, 1, &mut counters);
        assert_eq!(counters.dropped_oversize, 1);
        assert!(outbox.is_empty());
    }

    #[test]
    fn parts_of_two_sizes_never_have_one_number() {
        let mut outbox = Outbox::default();
        let mut counters = ClassCounters::default();
        let octets: Vec<u8> = (0..200).collect();
        outbox.push(NOW, &octets, 1_000, &mut counters);
        outbox.push(NOW, b"behind", 1_000, &mut counters);
        assert_eq!(outbox.next(120).map(|part| part.number), Some(0));
        outbox.sent(120);
        // The path carries longer or shorter datagrams than before.
        let mut seen = Vec::new();
        for index in 0..2 {
            let part = outbox.next(150).expect("two parts");
            assert_eq!((part.number, part.index, part.last), (1, index, 1));
            seen.extend_from_slice(part.octets);
            outbox.sent(150);
        }
        assert_eq!(seen, octets);
        assert_eq!(outbox.next(150).map(|part| part.number), Some(2));
    }

    #[test]
    fn a_message_that_was_begun_on_another_connection_has_another_number() {
        let mut outbox = Outbox::default();
        let mut counters = ClassCounters::default();
        outbox.push(NOW, &[7; 200], 1_000, &mut counters);
        outbox.begin_again();
        assert_eq!(outbox.next(120).map(|part| part.number), Some(0));
        outbox.sent(120);
        outbox.begin_again();
        let part = outbox.next(150).expect("the first part again");
        assert_eq!((part.number, part.index), (1, 0));
    }

    #[test]
    fn empty_messages_take_room_too() {
        let mut outbox = Outbox::default();
        let mut counters = ClassCounters::default();
        for _ in 0..1_000 {
            assert!(outbox.push(NOW, &[], 6_400, &mut counters));
        }
        assert_eq!(outbox.queue.len(), 100);
        assert_eq!(counters.dropped_full, 900);
    }

    /// One IPv4 packet each millisecond that asks for marks or does not, and a link that takes every second one.
    fn kept_short(ecn: u8) -> (ClassCounters, Duration) {
        let mut outbox = Outbox::default();
        let mut counters = ClassCounters::default();
        let mut codel = Codel::default();
        let mut waited = Duration::ZERO;
        let packet = [
            0x45, ecn, 0, 20, 0, 0, 0, 0, 64, 47, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        for ms in 0..4_000 {
            let now = NOW + Duration::from_millis(ms);
            outbox.push(now, &packet, 1 << 20, &mut counters);
            if ms % 2 == 0 {
                outbox.keep_short(now, &mut codel, Duration::from_millis(100), &mut counters);
                waited = now.saturating_since(outbox.first_taken_at().expect("one waits"));
                outbox.next(1_500).expect("one waits");
                outbox.sent(1_500);
            }
        }
        (counters, waited)
    }

    #[test]
    fn packets_that_ask_for_marks_are_marked_before_any_is_dropped() {
        let (plain, _) = kept_short(0);
        assert_eq!(plain.queue_marked, 0);
        assert!(plain.queue_dropped > 40, "{plain:?}");
        let (capable, waited) = kept_short(2);
        assert!(capable.queue_marked > 40, "{capable:?}");
        // A sender that does not heed the marks: its packets are dropped once they are stale.
        assert!(waited <= STALE + Duration::from_millis(100), "{waited:?}");
        assert!(capable.queue_dropped > 0, "{capable:?}");
    }

    #[test]
    fn packets_for_which_nobody_waits_any_more_give_way_without_a_link_that_takes_any() {
        let mut outbox = Outbox::default();
        let mut counters = ClassCounters::default();
        let interval = Duration::from_millis(200);
        for ms in 0..10_000 {
            let now = NOW + Duration::from_millis(ms);
            outbox.drop_stale(now, interval, &mut counters);
            outbox.push(now, &[0; 100], 1 << 20, &mut counters);
        }
        // One each millisecond for the least timeout of a TCP and the interval.
        assert_eq!(outbox.queue.len(), 1_201);
        assert_eq!(counters.queue_dropped, 10_000 - 1_201);
    }

    #[test]
    fn what_waited_beyond_its_deadline_is_not_sent() {
        let mut outbox = Outbox::default();
        let mut counters = ClassCounters::default();
        let deadline = Duration::from_millis(20);
        outbox.push(NOW, b"old", 1_000, &mut counters);
        outbox.push(NOW + deadline, b"new", 1_000, &mut counters);
        outbox.drop_hopeless(NOW + deadline, Some(deadline), 100, &mut counters);
        assert_eq!(counters.late_unsent, 0, "just in time");
        let later = NOW + deadline + Duration::from_nanos(1);
        outbox.drop_hopeless(later, Some(deadline), 100, &mut counters);
        assert_eq!(counters.late_unsent, 1);
        assert_eq!(outbox.next(100).map(|part| part.octets), Some(&b"new"[..]));
    }
}
