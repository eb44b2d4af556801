//! Messages that arrived: parts are put together, and whole messages wait to be fetched.

use super::super::counters::ClassCounters;
use super::super::credit::{CreditPool, Reservation};
use super::super::records::MessageRecord;
use super::super::report::MessageTotals;
use super::cost;
use super::lateness::Lateness;
use super::seen::Seen;
use crate::units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// Messages in reassembly at one time, at most; the oldest gives way.
const PARTIALS_MAX: usize = 16;

#[derive(Debug)]
struct Partial {
    since: Instant,
    stamp: u32,
    parts: BTreeMap<u8, Vec<u8>>,
    last: u8,
    bytes: u64,
}

/// A message whose parts have all arrived.
#[derive(Debug)]
struct Whole {
    octets: Vec<u8>,
    /// The octets reserved for it.
    bytes: u64,
}

/// A flow's messages from the far side. Their memory is reserved in the splicer's pool.
#[derive(Debug, Default)]
pub(in super::super) struct Inbox {
    held: Reservation,
    partials: BTreeMap<u32, Partial>,
    ready: VecDeque<Whole>,
    seen: Seen,
    lateness: Lateness,
    /// Totals since the last call of `take_news`.
    news: MessageTotals,
}

impl Inbox {
    /// Notes the transmission that brings the next message: its stamp, and its arrival.
    pub(in super::super) const fn note_transmission(&mut self, sent: (u32, Instant)) {
        self.lateness.note_transmission(sent);
    }

    /// Takes a message, or a part of one, that arrived. Returns whether there is a message to fetch
    /// now and was none before.
    pub(in super::super) fn on_message(
        &mut self,
        now: Instant,
        message: &MessageRecord<'_>,
        deadline: Option<Duration>,
        pool: &mut CreditPool,
        counters: &mut ClassCounters,
    ) -> bool {
        let known = self.partials.get(&message.number);
        let repeated = known.is_some_and(|partial| partial.parts.contains_key(&message.index));
        if repeated || self.seen.contains(message.number) {
            counters.duplicates += 1;
            return false;
        }
        let bytes = cost(message.octets) as u64;
        if !pool.take(&mut self.held, bytes) {
            counters.dropped_unread += 1;
            return false;
        }
        let whole = if message.last == 0 {
            let octets = message.octets.to_vec();
            Some((message.stamp, Whole { octets, bytes }))
        } else {
            self.add_part(now, message, pool, counters)
        };
        let Some((stamp, whole)) = whole else {
            return false;
        };
        self.note_seen(message.number);
        let late = self.lateness.of(now, stamp);
        if deadline.is_some_and(|deadline| late > deadline) {
            counters.late_arrived += 1;
            pool.give_back(&mut self.held, whole.bytes);
            return false;
        }
        self.ready.push_back(whole);
        self.ready.len() == 1
    }

    /// Adds a part. Returns the message, if it was the last part missing.
    fn add_part(
        &mut self,
        now: Instant,
        message: &MessageRecord<'_>,
        pool: &mut CreditPool,
        counters: &mut ClassCounters,
    ) -> Option<(u32, Whole)> {
        let partial = self.partials.entry(message.number);
        let partial = partial.or_insert_with(|| Partial {
            since: now,
            stamp: message.stamp,
            parts: BTreeMap::new(),
            last: message.last,
            bytes: 0,
        });
        partial.bytes += cost(message.octets) as u64;
        partial.parts.insert(message.index, message.octets.to_vec());
        // Parts that do not agree on how many there are leave it incomplete.
        let agrees = partial.last == message.last;
        if agrees && partial.parts.len() == usize::from(message.last) + 1 {
            let partial = self.partials.remove(&message.number)?;
            let (stamp, bytes) = (partial.stamp, partial.bytes);
            let octets = partial.parts.into_values().flatten().collect();
            return Some((stamp, Whole { octets, bytes }));
        }
        if self.partials.len() > PARTIALS_MAX {
            let oldest = self
                .partials
                .iter()
                .min_by_key(|(_, partial)| partial.since);
            let oldest = oldest.map(|(number, _)| *number);
            self.abandon(oldest, pool, counters);
        }
        None
    }

    fn abandon(
        &mut self,
        number: Option<u32>,
        pool: &mut CreditPool,
        counters: &mut ClassCounters,
    ) {
        if let Some(number) = number
            && let Some(partial) = self.partials.remove(&number)
        {
            counters.dropped_incomplete += 1;
            self.note_seen(number);
            pool.give_back(&mut self.held, partial.bytes);
        }
    }

    /// Gives up messages that lack parts for longer than `wait`.
    pub(in super::super) fn expire(
        &mut self,
        now: Instant,
        wait: Duration,
        pool: &mut CreditPool,
        counters: &mut ClassCounters,
    ) {
        let old = |(_, partial): &(&u32, &Partial)| now.saturating_since(partial.since) >= wait;
        while let Some(number) = self.partials.iter().find(old).map(|(number, _)| *number) {
            self.abandon(Some(number), pool, counters);
        }
    }

    /// The time at which [`Inbox::expire`] next has something to do.
    pub(in super::super) fn expires_at(&self, wait: Duration) -> Option<Instant> {
        let since = self.partials.values().map(|partial| partial.since).min();
        since.map(|since| since + wait)
    }

    fn note_seen(&mut self, number: u32) {
        self.news.expected += u64::from(self.seen.insert(number));
    }

    /// Takes the totals since the last call.
    pub(in super::super) fn take_news(&mut self) -> MessageTotals {
        core::mem::take(&mut self.news)
    }

    /// The next message to fetch.
    pub(in super::super) fn pop(
        &mut self,
        pool: &mut CreditPool,
        counters: &mut ClassCounters,
    ) -> Option<Vec<u8>> {
        let Whole { octets, bytes } = self.ready.pop_front()?;
        pool.give_back(&mut self.held, bytes);
        counters.messages_received += 1;
        counters.octets_received += octets.len() as u64;
        self.news.delivered += 1;
        self.news.octets += octets.len() as u64;
        Some(octets)
    }

    /// Begins again for a new process at the far side, which counts from the start and by another
    /// clock.
    pub(in super::super) fn begin_again(
        &mut self,
        pool: &mut CreditPool,
        counters: &mut ClassCounters,
    ) {
        while let Some(number) = self.partials.keys().next().copied() {
            self.abandon(Some(number), pool, counters);
        }
        self.seen = Seen::default();
        self.lateness = Lateness::default();
    }

    /// Discards the messages that nobody will fetch.
    pub(in super::super) fn discard(&mut self, pool: &mut CreditPool) {
        self.partials = BTreeMap::new();
        self.ready = VecDeque::new();
        pool.release(&mut self.held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const NOW: Instant = Instant::START;

    struct Fixture {
        inbox: Inbox,
        pool: CreditPool,
        counters: ClassCounters,
    }

    impl Fixture {
        fn new(total: u64) -> Self {
            Self {
                inbox: Inbox::default(),
                pool: CreditPool::new(total, 1).expect("one floor fits"),
                counters: ClassCounters::default(),
            }
        }

        fn part(&mut self, number: u32, index: u8, last: u8, octets: &[u8]) -> bool {
            let message = MessageRecord {
                number,
                stamp: 0,
                index,
                last,
                octets,
            };
            let (pool, counters) = (&mut self.pool, &mut self.counters);
            self.inbox.on_message(NOW, &message, None, pool, counters)
        }

        fn pop(&mut self) -> Option<Vec<u8>> {
            self.inbox.pop(&mut self.pool, &mut self.counters)
        }
    }

    #[test]
    fn parts_make_a_message_in_any_order_and_once() {
        let mut rng = Rng::from_seed(3);
        let mut fixture = Fixture::new(1 << 20);
        for number in 0..200 {
            let whole: Vec<u8> = (0..25).collect();
            let mut order: Vec<u8> = (0..5).chain(0..5).collect();
            for i in (1..order.len()).rev() {
                order.swap(i, usize::try_from(rng.below(i as u64 + 1)).expect("small"));
            }
            for index in order {
                let start = usize::from(index) * 5;
                fixture.part(number, index, 4, &whole[start..start + 5]);
            }
            assert_eq!(fixture.pop(), Some(whole), "message {number}");
            assert_eq!(fixture.pop(), None);
        }
        assert_eq!(fixture.counters.duplicates, 1_000);
        assert_eq!(fixture.pool.reserved(), 0);
    }

    #[test]
    fn messages_being_put_together_are_bounded_in_number_time_and_memory() {
        let mut fixture = Fixture::new(20 << 10);
        for number in 0..20 {
            fixture.part(number, 0, 1, &[1; 100]);
        }
        assert_eq!(fixture.inbox.partials.len(), PARTIALS_MAX);
        assert_eq!(fixture.counters.dropped_incomplete, 4);
        assert!(!fixture.part(3, 1, 1, &[1; 100]), "3 was given up");
        let wait = Duration::from_secs(2);
        assert_eq!(fixture.inbox.expires_at(wait), Some(NOW + wait));
        let (pool, counters) = (&mut fixture.pool, &mut fixture.counters);
        fixture.inbox.expire(NOW + wait, wait, pool, counters);
        assert_eq!(fixture.inbox.expires_at(wait), None);
        assert_eq!(fixture.pool.reserved(), 0);
        for number in 100..200 {
            fixture.part(number, 0, 0, &[1; 1_024]);
        }
        assert_eq!(fixture.pool.reserved(), 20 << 10);
        assert_eq!(fixture.counters.dropped_unread, 80);
        assert!(fixture.pop().is_some());
        assert!(!fixture.part(300, 0, 0, &[1; 1_024]), "not the first");
        assert_eq!(fixture.counters.dropped_unread, 80);
    }

    #[test]
    fn empty_messages_take_memory_too() {
        let mut fixture = Fixture::new(20 << 10);
        for number in 0..1_000 {
            fixture.part(number, 0, 0, &[]);
        }
        assert_eq!(fixture.inbox.ready.len(), (20 << 10) / 64);
        while fixture.pop().is_some() {}
        assert_eq!(fixture.pool.reserved(), 0);
    }

    #[test]
    fn parts_that_disagree_on_their_number_make_no_message() {
        let mut fixture = Fixture::new(1 << 20);
        fixture.part(1, 0, 1, b"a");
        assert!(!fixture.part(1, 1, 2, b"b"));
        assert!(!fixture.part(1, 2, 2, b"c"));
        assert_eq!(fixture.pop(), None);
    }
}
