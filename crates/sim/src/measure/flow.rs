//! The meter of one flow: it checks every delivered octet and times its delivery.
//!
//! The stream is cut into pieces of fixed length (the application's writes, or TPDU-sized pieces
//! of a bulk transfer). A piece is delivered when its last missing octet is handed over; its delay
//! counts from its submission. Every octet handed over is compared with what belongs there.

use crate::pattern::Pattern;
use core::time::Duration;
use fulmar_proto::units::{ByteCount, Instant};
use std::collections::{BTreeMap, VecDeque};

/// The promise of a transport about what it delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The octets that come, and their order.
    pub order: PromisedOrder,
    /// Whether octets may be wrong; they are then counted.
    pub damage_permitted: bool,
}

/// The octets that come, and their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromisedOrder {
    /// Every octet, in order, once.
    Complete,
    /// Octets in order and at most once, with holes.
    Holes,
    /// Out of order, and more than once.
    Any,
}

impl Promise {
    /// UDP's promise: its checksum overlooks some damage.
    pub const NOTHING: Self = Self {
        order: PromisedOrder::Any,
        damage_permitted: true,
    };
}

/// A transport broke its promise; the run is in error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Octets differ from what was sent.
    #[error("{count} wrong octets in {len} delivered at position {offset}")]
    Altered {
        /// Position of the delivery in the stream.
        offset: u64,
        /// Its length.
        len: usize,
        /// The number of wrong octets.
        count: u64,
    },
    /// Something was skipped by a transport that promises not to.
    #[error("position {offset} delivered where {expected} was due")]
    Skipped {
        /// Position of the delivery in the stream.
        offset: u64,
        /// The position that was due.
        expected: u64,
    },
    /// Octets came a second time, or after later ones.
    #[error("position {offset} delivered again or late, {expected} was due")]
    Repeated {
        /// Position of the delivery in the stream.
        offset: u64,
        /// The position that was due.
        expected: u64,
    },
    /// More was delivered than sent.
    #[error("delivery up to position {end} of a stream of {total} octets")]
    Beyond {
        /// End of the delivery.
        end: u64,
        /// Length of the stream.
        total: u64,
    },
}

/// The meter of one flow.
#[derive(Debug)]
pub struct FlowMeter {
    pattern: Pattern,
    promise: Promise,
    total: u64,
    piece_len: u64,
    start: Instant,
    /// Pieces that were submitted, beginning with the first that is not yet delivered.
    pieces: VecDeque<Piece>,
    /// The number of pieces before `pieces`, all delivered.
    pieces_before: u64,
    submitted: u64,
    next_offset: u64,
    /// Ranges before `next_offset` that did not come, where order is not promised.
    holes: BTreeMap<u64, u64>,
    delays: Vec<Delay>,
    deadline: Option<Duration>,
    /// The submissions of the pieces whose delays are in `delays`, where there is a deadline.
    submissions: Vec<Instant>,
    /// The deliveries of those pieces, where they are recorded.
    deliveries: Option<Vec<Instant>>,
    delivered: u64,
    corrupt: u64,
    repeated_pieces: u64,
    first_submission: Option<Instant>,
    first_arrival: Option<Instant>,
    first_delivery: Option<Instant>,
    last_delivery: Option<Instant>,
    violation: Option<Violation>,
}

/// The delay of a piece, in half the memory of a [`Duration`]: a run keeps one for each piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Delay {
    nanoseconds: u64,
}

impl Delay {
    fn between(submission: Instant, delivery: Instant) -> Self {
        Self {
            nanoseconds: delivery.as_nanos().saturating_sub(submission.as_nanos()),
        }
    }
}

impl From<Delay> for Duration {
    fn from(delay: Delay) -> Self {
        Self::from_nanos(delay.nanoseconds)
    }
}

/// The fates of pieces that are due at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowPunctuality {
    /// Pieces that came in time.
    pub in_time: u64,
    /// Pieces that came too late.
    pub late: u64,
    /// Pieces that did not come.
    pub lost: u64,
}

impl FlowPunctuality {
    /// Pieces that came too late or not at all.
    pub const fn missed(&self) -> u64 {
        self.late + self.lost
    }

    /// All of them.
    pub const fn total(&self) -> u64 {
        self.in_time + self.late + self.lost
    }
}

impl core::ops::AddAssign for FlowPunctuality {
    fn add_assign(&mut self, other: Self) {
        self.in_time += other.in_time;
        self.late += other.late;
        self.lost += other.lost;
    }
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    submitted_at: Instant,
    /// Octets that did not come yet.
    missing: u64,
}

impl FlowMeter {
    /// A meter for a stream of `total` octets in pieces of `piece`, asked for at `start`.
    pub fn new(
        pattern: Pattern,
        promise: Promise,
        total: ByteCount,
        piece: ByteCount,
        start: Instant,
    ) -> Self {
        Self {
            pattern,
            promise,
            total: total.0,
            piece_len: piece.0.max(1),
            start,
            pieces: VecDeque::new(),
            pieces_before: 0,
            submitted: 0,
            next_offset: 0,
            holes: BTreeMap::new(),
            delays: Vec::new(),
            deadline: None,
            submissions: Vec::new(),
            deliveries: None,
            delivered: 0,
            corrupt: 0,
            repeated_pieces: 0,
            first_submission: None,
            first_arrival: None,
            first_delivery: None,
            last_delivery: None,
            violation: None,
        }
    }

    /// The same, where pieces are due so long after their submission.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Option<Duration>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Keeps the times at which pieces are delivered from now on.
    pub(crate) fn record(&mut self) {
        self.deliveries = Some(Vec::new());
    }

    /// The times at which the pieces of [`FlowMeter::delays`] were delivered, if they are recorded.
    pub fn delivery_times(&self) -> &[Instant] {
        self.deliveries.as_deref().unwrap_or_default()
    }

    /// The next `len` octets were submitted. A piece counts from the submission of its last octet.
    pub fn submit(&mut self, now: Instant, len: u64) {
        if len > 0 {
            self.first_submission.get_or_insert(now);
        }
        self.submitted += len;
        let complete = if self.submitted >= self.total {
            self.total.div_ceil(self.piece_len)
        } else {
            self.submitted / self.piece_len
        };
        for index in self.submitted_pieces()..complete {
            let start = index * self.piece_len;
            let end = (start + self.piece_len).min(self.total);
            // Its first octets may have been submitted, and have come, before the others.
            let missing = end - self.next_offset.clamp(start, end);
            if missing == 0 {
                // Nobody knew that it was whole when its last octet came.
                self.delays.push(Delay::between(now, now));
                if self.deadline.is_some() {
                    self.submissions.push(now);
                }
                if let Some(deliveries) = &mut self.deliveries {
                    deliveries.push(now);
                }
            }
            self.pieces.push_back(Piece {
                submitted_at: now,
                missing,
            });
        }
    }

    /// The stream has only so many octets, of which all are submitted if it is shorter than was said.
    pub fn end_at(&mut self, now: Instant, total: ByteCount) {
        if total.0 < self.total {
            self.total = total.0;
            self.submit(now, 0);
        }
    }

    fn submitted_pieces(&self) -> u64 {
        self.pieces_before + self.pieces.len() as u64
    }

    /// A datagram with data reached the receiving transport.
    pub fn arrive(&mut self, now: Instant) {
        self.first_arrival.get_or_insert(now);
    }

    /// `octets` were handed to the application as what belongs at position `offset`.
    pub fn deliver(&mut self, now: Instant, offset: u64, octets: &[u8]) {
        if octets.is_empty() {
            return;
        }
        let end = offset.saturating_add(octets.len() as u64);
        if end > self.total {
            let total = self.total;
            self.violate(Violation::Beyond { end, total });
            return;
        }
        if offset != self.next_offset && !self.tolerates_jump_to(offset) {
            return;
        }
        if self.promise.order == PromisedOrder::Any && !self.fill_hole(offset, end) {
            self.repeated_pieces += 1;
            return;
        }
        self.next_offset = self.next_offset.max(end);
        let wrong = self.pattern.mismatches(offset, octets);
        if wrong > 0 && !self.promise.damage_permitted {
            self.violate(Violation::Altered {
                offset,
                len: octets.len(),
                count: wrong,
            });
        }
        self.corrupt += wrong;
        self.delivered += octets.len() as u64 - wrong;
        self.first_delivery.get_or_insert(now);
        self.last_delivery = Some(now);
        self.time_pieces(now, offset, end);
    }

    /// Whether a delivery at `offset` instead of the next position is within the promise.
    fn tolerates_jump_to(&mut self, offset: u64) -> bool {
        let expected = self.next_offset;
        let violation = match self.promise.order {
            PromisedOrder::Any => return true,
            PromisedOrder::Holes if offset > expected => return true,
            PromisedOrder::Complete if offset > expected => Violation::Skipped { offset, expected },
            _ => Violation::Repeated { offset, expected },
        };
        self.violate(violation);
        false
    }

    /// Fills the holes before the furthest delivery with a datagram; `false` if it is a second copy. A
    /// datagram always has the same limits, so it lies in a hole as a whole or not at all.
    fn fill_hole(&mut self, offset: u64, end: u64) -> bool {
        if offset >= self.next_offset {
            if offset > self.next_offset {
                self.holes.insert(self.next_offset, offset);
            }
            return true;
        }
        let Some((&start, &stop)) = self.holes.range(..=offset).next_back() else {
            return false;
        };
        if end > stop {
            return false;
        }
        self.holes.remove(&start);
        for (start, stop) in [(start, offset), (end, stop)] {
            if start < stop {
                self.holes.insert(start, stop);
            }
        }
        true
    }

    fn time_pieces(&mut self, now: Instant, offset: u64, end: u64) {
        let mut at = offset;
        while at < end {
            let index = at / self.piece_len;
            let piece_end = ((index + 1) * self.piece_len).min(self.total);
            let covered = piece_end.min(end) - at;
            let known = index.checked_sub(self.pieces_before);
            let known = known.and_then(|known| usize::try_from(known).ok());
            if let Some(piece) = known.and_then(|known| self.pieces.get_mut(known))
                && piece.missing > 0
            {
                piece.missing = piece.missing.saturating_sub(covered);
                if piece.missing == 0 {
                    self.delays.push(Delay::between(piece.submitted_at, now));
                    if self.deadline.is_some() {
                        self.submissions.push(piece.submitted_at);
                    }
                    if let Some(deliveries) = &mut self.deliveries {
                        deliveries.push(now);
                    }
                }
            }
            at += covered;
        }
        while self.pieces.front().is_some_and(|piece| piece.missing == 0) {
            self.pieces.pop_front();
            self.pieces_before += 1;
        }
    }

    fn violate(&mut self, violation: Violation) {
        self.violation.get_or_insert(violation);
    }

    /// Octets delivered unaltered.
    pub const fn delivered(&self) -> ByteCount {
        ByteCount(self.delivered)
    }

    /// Octets delivered and wrong.
    pub const fn corrupt(&self) -> ByteCount {
        ByteCount(self.corrupt)
    }

    /// Octets of one piece.
    pub const fn piece(&self) -> ByteCount {
        ByteCount(self.piece_len)
    }

    /// Octets submitted so far.
    pub const fn submitted(&self) -> ByteCount {
        ByteCount(self.submitted)
    }

    /// Octets of the whole stream.
    pub const fn total(&self) -> ByteCount {
        ByteCount(self.total)
    }

    /// The first broken promise.
    pub const fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// The position after everything delivered in order so far.
    pub const fn next_offset(&self) -> u64 {
        self.next_offset
    }

    /// Whether the transport gives up nothing.
    pub fn is_reliable(&self) -> bool {
        self.promise.order == PromisedOrder::Complete
    }

    /// Whether every octet came, unaltered.
    pub const fn is_complete(&self) -> bool {
        self.delivered >= self.total
    }

    /// Datagrams that came a second time.
    pub const fn repeated_pieces(&self) -> u64 {
        self.repeated_pieces
    }

    /// The time from the start of the flow to the first arrival of data at the receiving transport.
    pub fn first_arrival(&self) -> Option<Duration> {
        self.first_arrival.map(|at| at.saturating_since(self.start))
    }

    /// The time from the start of the flow to the first delivery.
    pub fn first_delivery(&self) -> Option<Duration> {
        self.first_delivery
            .map(|at| at.saturating_since(self.start))
    }

    /// The time from the start of the flow to the last delivery.
    pub fn last_delivery(&self) -> Option<Duration> {
        self.last_delivery.map(|at| at.saturating_since(self.start))
    }

    /// The start of the flow, and its last delivery.
    pub fn lifetime(&self) -> Option<(Instant, Instant)> {
        Some((self.start, self.last_delivery?))
    }

    /// The first submission, and the last delivery.
    pub fn span(&self) -> Option<(Instant, Instant)> {
        Some((self.first_submission?, self.last_delivery?))
    }

    /// The delays of the delivered pieces, in order of delivery.
    pub fn delays(&self) -> &[Delay] {
        &self.delays
    }

    /// The fates of the pieces that were submitted from `from` to before `to`, if pieces are due at a time.
    pub fn punctuality(&self, from: Instant, to: Instant) -> Option<FlowPunctuality> {
        let deadline = self.deadline?;
        let within = |at: &Instant| (from..to).contains(at);
        let mut fates = FlowPunctuality::default();
        for (at, delay) in self.submissions.iter().zip(&self.delays) {
            if within(at) {
                let in_time = Duration::from(*delay) <= deadline;
                *if in_time {
                    &mut fates.in_time
                } else {
                    &mut fates.late
                } += 1;
            }
        }
        let missing = self.pieces.iter().filter(|piece| piece.missing > 0);
        fates.lost = missing.filter(|piece| within(&piece.submitted_at)).count() as u64;
        Some(fates)
    }

    /// Pieces that were submitted and did not arrive whole.
    pub fn missing_pieces(&self) -> u64 {
        self.submitted_pieces() - self.delays.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELIABLE: Promise = promise(PromisedOrder::Complete, false);

    const fn promise(order: PromisedOrder, damage_permitted: bool) -> Promise {
        Promise {
            order,
            damage_permitted,
        }
    }

    fn meter(promise: Promise) -> FlowMeter {
        let mut meter = FlowMeter::new(
            Pattern::new(1),
            promise,
            ByteCount(1000),
            ByteCount(100),
            Instant::START,
        );
        meter.submit(Instant::from_nanos(10), 1000);
        meter
    }

    fn octets(offset: u64, len: usize) -> Vec<u8> {
        let mut octets = Vec::new();
        Pattern::new(1).append(offset, len, &mut octets);
        octets
    }

    fn delays(meter: &FlowMeter) -> Vec<u64> {
        let nanoseconds = |delay: &Delay| delay.nanoseconds;
        meter.delays().iter().map(nanoseconds).collect()
    }

    const LATER: Instant = Instant::from_nanos(110);

    #[test]
    fn a_piece_is_delivered_with_its_last_octet() {
        let mut meter = meter(RELIABLE);
        meter.deliver(LATER, 0, &octets(0, 150));
        assert_eq!(delays(&meter), [100]);
        meter.deliver(LATER + Duration::from_nanos(5), 150, &octets(150, 850));
        assert_eq!(meter.delays().len(), 10);
        assert_eq!(meter.delays()[1].nanoseconds, 105);
        assert!(meter.is_complete());
        assert_eq!(meter.violation(), None);
    }

    #[test]
    fn a_piece_counts_from_its_last_octet_though_the_others_came_before() {
        let mut meter = FlowMeter::new(
            Pattern::new(1),
            RELIABLE,
            ByteCount(250),
            ByteCount(100),
            Instant::START,
        );
        meter.submit(Instant::from_nanos(10), 130);
        meter.deliver(Instant::from_nanos(15), 0, &octets(0, 130));
        meter.submit(Instant::from_nanos(20), 120);
        meter.deliver(Instant::from_nanos(40), 130, &octets(130, 120));
        assert_eq!(delays(&meter), [5, 20, 20]);
        assert_eq!(meter.missing_pieces(), 0);
    }

    #[test]
    fn a_reliable_stream_may_not_skip_repeat_or_alter() {
        let mut skipping = meter(RELIABLE);
        skipping.deliver(LATER, 100, &octets(100, 10));
        assert!(matches!(
            skipping.violation(),
            Some(Violation::Skipped { .. })
        ));

        let mut repeating = meter(RELIABLE);
        repeating.deliver(LATER, 0, &octets(0, 10));
        repeating.deliver(LATER, 0, &octets(0, 10));
        assert!(matches!(
            repeating.violation(),
            Some(Violation::Repeated { .. })
        ));

        let mut altering = meter(RELIABLE);
        altering.deliver(LATER, 0, &octets(1, 10));
        assert!(matches!(
            altering.violation(),
            Some(Violation::Altered { .. })
        ));
    }

    #[test]
    fn pieces_are_in_time_late_or_lost_by_their_deadline_and_submission() {
        let any = promise(PromisedOrder::Any, false);
        let at = Instant::from_nanos;
        let mut meter = FlowMeter::new(
            Pattern::new(1),
            any,
            ByteCount(400),
            ByteCount(100),
            Instant::START,
        )
        .with_deadline(Some(Duration::from_nanos(50)));
        for time in [10, 20, 30, 40] {
            meter.submit(at(time), 100);
        }
        meter.deliver(at(60), 0, &octets(0, 100));
        meter.deliver(at(71), 100, &octets(100, 100));
        meter.deliver(at(75), 300, &octets(300, 100));
        let fates = |from, to| meter.punctuality(at(from), at(to)).expect("they are due");
        let of = |in_time, late, lost| FlowPunctuality {
            in_time,
            late,
            lost,
        };
        assert_eq!(fates(0, 100), of(2, 1, 1));
        assert_eq!(fates(0, 20), of(1, 0, 0));
        assert_eq!(fates(20, 40), of(0, 1, 1));
    }

    #[test]
    fn datagrams_may_come_in_any_order_and_a_second_copy_counts_once() {
        let mut meter = meter(Promise::NOTHING);
        for (offset, len) in [(300, 100), (100, 40), (300, 100), (140, 60), (100, 40)] {
            meter.deliver(LATER, offset, &octets(offset, len));
        }
        assert_eq!(meter.delivered(), ByteCount(200));
        assert_eq!(meter.repeated_pieces(), 2);
        assert_eq!(meter.missing_pieces(), 8);
        assert_eq!(meter.violation(), None);
    }

    #[test]
    fn holes_are_fine_where_promised_but_the_past_is_not() {
        let mut meter = meter(promise(PromisedOrder::Holes, false));
        meter.deliver(LATER, 200, &octets(200, 100));
        assert_eq!(meter.violation(), None);
        meter.deliver(LATER, 100, &octets(100, 100));
        assert!(matches!(
            meter.violation(),
            Some(Violation::Repeated { .. })
        ));
    }

    #[test]
    fn wrong_octets_count_as_corrupt_where_permitted() {
        let mut meter = meter(promise(PromisedOrder::Holes, true));
        let mut damaged = octets(0, 100);
        damaged[3] ^= 1;
        meter.deliver(LATER, 0, &damaged);
        assert_eq!(meter.corrupt(), ByteCount(1));
        assert_eq!(meter.delivered(), ByteCount(99));
        assert_eq!(meter.violation(), None);
    }
}
