//! The scoreboard: segments that are in flight, that arrived, and that are lost (RFC 6675).
//!
//! Positions are those of the stream, counted from 0 without wrapping; a FIN takes the position
//! after the last octet. Segments keep the limits they were sent with until a retransmission joins
//! or cuts them.

use core::ops::Range;
use fulmar_proto::units::Instant;
use std::collections::VecDeque;

/// A segment that was sent and is not cumulatively acknowledged.
#[expect(
    clippy::struct_excessive_bools,
    reason = "four facts without a common order"
)]
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: u64,
    end: u64,
    at: Instant,
    /// Whether the receiver said that it has it.
    sacked: bool,
    lost: bool,
    /// Whether it was retransmitted since it was last held lost.
    resent: bool,
    /// Whether it was ever retransmitted, so that it gives no sample of the round trip (Karn).
    ever_resent: bool,
}

impl Sent {
    const fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Its share of the pipe: octets that are probably in the network.
    const fn in_network(&self) -> u64 {
        if self.sacked || (self.lost && !self.resent) {
            0
        } else {
            self.len()
        }
    }

    const fn wants_sending(&self) -> bool {
        self.lost && !self.resent && !self.sacked
    }
}

/// The segments that a cumulative acknowledgement covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Covered {
    /// The time at which the newest covered segment was sent, if none of them was sent twice.
    pub(super) sent_at: Option<Instant>,
    /// Whether it covers a segment that was sent only once.
    pub(super) any_original: bool,
}

/// The segments between the cumulative acknowledgement and the newest octet sent.
#[derive(Debug, Default)]
pub(super) struct SackScoreboard {
    segments: VecDeque<Sent>,
    pipe: u64,
    lost_waiting: u64,
    sacked: u64,
}

/// The number of segments up to which a receiver that tells odd limits may cut them.
const CUTS_MAX: usize = 65_536;

impl SackScoreboard {
    /// Octets that are probably in the network.
    pub(super) const fn pipe(&self) -> u64 {
        self.pipe
    }

    /// Octets of memory allocated, used or not.
    pub(super) fn memory_bytes(&self) -> usize {
        self.segments.capacity() * size_of::<Sent>()
    }

    /// The most memory for `octets` of a stream in flight: each octet may be a segment, and memory
    /// grows by doubling.
    pub(super) const fn memory_max(octets: usize) -> usize {
        2 * (octets + 2) * size_of::<Sent>()
    }

    /// Whether a lost segment waits for retransmission.
    pub(super) const fn has_lost(&self) -> bool {
        self.lost_waiting > 0
    }

    /// Octets that arrived beyond a hole.
    pub(super) const fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Whether the oldest segment was retransmitted since it was last held lost.
    pub(super) fn is_head_resent(&self) -> bool {
        self.segments.front().is_some_and(|head| head.resent)
    }

    fn count_in(&mut self, segment: &Sent) {
        self.pipe += segment.in_network();
        if segment.wants_sending() {
            self.lost_waiting += segment.len();
        }
        if segment.sacked {
            self.sacked += segment.len();
        }
    }

    fn count_out(&mut self, segment: &Sent) {
        self.pipe -= segment.in_network();
        if segment.wants_sending() {
            self.lost_waiting -= segment.len();
        }
        if segment.sacked {
            self.sacked -= segment.len();
        }
    }

    /// Changes segment `index` and keeps the sums right.
    fn change(&mut self, index: usize, change: impl FnOnce(&mut Sent)) {
        let Some(&before) = self.segments.get(index) else {
            return;
        };
        self.count_out(&before);
        if let Some(segment) = self.segments.get_mut(index) {
            change(segment);
            let after = *segment;
            self.count_in(&after);
        }
    }

    /// The index of the first segment that ends after `position`.
    fn index_after(&self, position: u64) -> usize {
        self.segments.partition_point(|s| s.end <= position)
    }

    /// Notes that new octets were sent.
    pub(super) fn on_sent(&mut self, now: Instant, range: Range<u64>) {
        let segment = Sent {
            start: range.start,
            end: range.end,
            at: now,
            sacked: false,
            lost: false,
            resent: false,
            ever_resent: false,
        };
        self.count_in(&segment);
        self.segments.push_back(segment);
    }

    /// Cuts the segment that holds `position` in its middle, so that one begins there.
    fn cut(&mut self, position: u64) {
        let index = self.index_after(position);
        if let Some(segment) = self.segments.get_mut(index)
            && segment.start < position
        {
            let mut rest = *segment;
            rest.start = position;
            segment.end = position;
            self.segments.insert(index + 1, rest);
        }
    }

    /// Notes that octets were retransmitted.
    pub(super) fn on_resent(&mut self, now: Instant, range: &Range<u64>) {
        self.cut(range.start);
        self.cut(range.end);
        let first = self.index_after(range.start);
        let mut index = first;
        while self.segments.get(index).is_some_and(|s| s.end <= range.end) {
            self.change(index, |s| {
                s.resent = true;
                s.ever_resent = true;
                s.at = now;
            });
            index += 1;
        }
        self.join(first, index);
    }

    /// Joins the segments `from..to`, which were sent as one.
    fn join(&mut self, from: usize, to: usize) {
        let Some(last) = to.checked_sub(1).filter(|&last| last > from) else {
            return;
        };
        let same = |s: &Sent| (s.sacked, s.lost);
        let state = self.segments.get(from).map(same);
        if self
            .segments
            .range(from..to)
            .any(|s| Some(same(s)) != state)
        {
            return;
        }
        let end = self.segments.get(last).map_or(0, |s| s.end);
        if let Some(first) = self.segments.get_mut(from) {
            first.end = end;
        }
        self.segments.drain(from + 1..to);
    }

    /// Notes that everything before `position` arrived.
    pub(super) fn on_acked_before(&mut self, position: u64) -> Covered {
        let mut covered = Covered::default();
        let mut ambiguous = false;
        self.cut(position);
        while let Some(&head) = self.segments.front() {
            if head.end > position {
                break;
            }
            self.count_out(&head);
            self.segments.pop_front();
            ambiguous |= head.ever_resent;
            covered.any_original |= !head.ever_resent;
            covered.sent_at = Some(head.at);
        }
        if ambiguous {
            covered.sent_at = None;
        }
        covered
    }

    /// Notes that the receiver has `range`, beyond a hole. Returns how many of its octets were not
    /// known to have arrived.
    pub(super) fn on_sacked(&mut self, range: &Range<u64>) -> u64 {
        let before = self.sacked;
        if self.segments.len() < CUTS_MAX {
            self.cut(range.start);
            self.cut(range.end);
        }
        let mut index = self.segments.partition_point(|s| s.start < range.start);
        while let Some(segment) = self.segments.get(index) {
            if segment.end > range.end {
                break;
            }
            if !segment.sacked {
                self.change(index, |s| s.sacked = true);
            }
            index += 1;
        }
        self.sacked - before
    }

    /// Guesses, without SACK, which segment after the oldest arrived.
    pub(super) fn guess_sacked(&mut self) {
        let segments = self.segments.iter().enumerate().skip(1);
        let mut candidates = segments.filter(|(_, s)| !s.sacked && !s.lost);
        if let Some((index, _)) = candidates.next() {
            self.change(index, |s| s.sacked = true);
        }
    }

    /// Forgets the receiver's reports (RFC 2018, section 8: it may take them back).
    pub(super) fn forget_sacks(&mut self) {
        if self.sacked == 0 {
            return;
        }
        for index in 0..self.segments.len() {
            self.change(index, |s| s.sacked = false);
        }
    }

    /// Holds segments lost that have `duplicates` segments above them that arrived (RFC 6675,
    /// `IsLost`). The RFC leaves open whether segments or octets are counted; here segments are,
    /// because they may be short.
    pub(super) fn detect_lost(&mut self, duplicates: usize) {
        if self.sacked == 0 || duplicates == 0 {
            return;
        }
        let mut above = 0;
        for index in (0..self.segments.len()).rev() {
            let Some(segment) = self.segments.get(index) else {
                return;
            };
            if segment.sacked {
                above += 1;
            } else if above >= duplicates && !segment.lost {
                self.change(index, |s| s.lost = true);
            }
        }
    }

    /// Whether the oldest segment is held lost.
    pub(super) fn is_head_lost(&self) -> bool {
        self.segments.front().is_some_and(|head| head.lost)
    }

    /// Whether the oldest segment is said to have arrived.
    pub(super) fn is_head_sacked(&self) -> bool {
        self.segments.front().is_some_and(|head| head.sacked)
    }

    /// Holds the oldest segment lost, also when it was retransmitted and is lost again.
    pub(super) fn hold_head_lost(&mut self) {
        self.change(0, |s| {
            // If it had arrived, it would be acknowledged: the guess was wrong.
            s.sacked = false;
            s.lost = true;
            s.resent = false;
        });
    }

    /// Holds every segment lost that has not arrived, after a timeout.
    pub(super) fn hold_all_lost(&mut self) {
        for index in 0..self.segments.len() {
            self.change(index, |s| {
                s.lost = !s.sacked;
                s.resent = false;
            });
        }
    }

    /// Undoes that after a spurious timeout: segments that were not retransmitted are in the
    /// network after all.
    pub(super) fn hold_none_lost(&mut self) {
        for index in 0..self.segments.len() {
            self.change(index, |s| s.lost = s.lost && s.resent);
        }
    }

    /// The oldest octets that are lost and not retransmitted, at most `max` in one piece.
    pub(super) fn next_lost(&self, max: u64) -> Option<Range<u64>> {
        if !self.has_lost() {
            return None;
        }
        let mut waiting = self.segments.iter().skip_while(|s| !s.wants_sending());
        let first = waiting.next()?;
        let limit = first.start + max;
        let joined = waiting.take_while(|s| s.wants_sending() && s.start < limit);
        let end = joined.last().map_or(first.end, |s| s.end);
        Some(first.start..end.min(limit))
    }

    /// The oldest octets below the highest arrival that are neither held lost nor retransmitted:
    /// RFC 6675's third rule.
    pub(super) fn next_doubtful(&self, max: u64) -> Option<Range<u64>> {
        let highest = self.segments.iter().rposition(|s| s.sacked)?;
        let doubtful = |s: &&Sent| !s.sacked && !s.lost && !s.resent;
        let segment = self.segments.range(..highest).find(doubtful)?;
        Some(segment.start..segment.end.min(segment.start + max))
    }

    /// The newest octets that did not arrive, at most `max`: RFC 6675's rescue.
    pub(super) fn last_missing(&self, max: u64) -> Option<Range<u64>> {
        let segment = self.segments.iter().rev().find(|s| !s.sacked)?;
        Some(segment.start.max(segment.end.saturating_sub(max))..segment.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::START;

    /// Ten segments of 100 octets.
    fn board() -> SackScoreboard {
        let mut board = SackScoreboard::default();
        for i in 0..10 {
            board.on_sent(NOW, i * 100..(i + 1) * 100);
        }
        board
    }

    #[test]
    fn the_pipe_leaves_out_what_arrived_and_what_is_lost_until_it_is_sent_again() {
        let mut board = board();
        assert_eq!(board.on_sacked(&(200..400)), 200);
        assert_eq!(board.on_sacked(&(200..500)), 100, "only news count");
        board.detect_lost(3);
        assert_eq!(board.pipe(), 1000 - 300 - 200);
        assert_eq!(board.next_lost(1000), Some(0..200), "in one piece");
        assert_eq!(board.next_lost(150), Some(0..150));
        board.on_resent(NOW, &(0..150));
        assert_eq!(board.pipe(), 650);
        assert_eq!(board.next_lost(1000), Some(150..200));
        board.on_acked_before(200);
        assert_eq!((board.pipe(), board.has_lost()), (500, false));
        board.on_acked_before(1000);
        assert_eq!((board.pipe(), board.sacked()), (0, 0));
    }

    #[test]
    fn one_more_arrival_above_makes_a_segment_lost() {
        let mut board = board();
        board.on_sacked(&(100..200));
        board.on_sacked(&(300..400));
        board.detect_lost(3);
        assert!(!board.has_lost());
        board.on_sacked(&(400..500));
        board.detect_lost(3);
        assert_eq!(board.next_lost(1000), Some(0..100));
        assert_eq!(board.next_doubtful(1000), Some(200..300));
        assert_eq!(board.last_missing(50), Some(950..1000));
    }

    #[test]
    fn no_sample_comes_from_what_was_sent_twice() {
        let mut board = board();
        board.hold_head_lost();
        board.on_resent(NOW, &(0..100));
        assert_eq!(board.on_acked_before(200).sent_at, None);
        assert_eq!(board.on_acked_before(300).sent_at, Some(NOW));
    }

    #[test]
    fn a_spurious_timeout_gives_back_what_was_not_sent_again() {
        let mut board = board();
        board.hold_all_lost();
        assert_eq!(board.pipe(), 0);
        board.on_resent(NOW, &(0..100));
        board.hold_none_lost();
        assert_eq!((board.pipe(), board.has_lost()), (1000, false));
    }

    #[test]
    fn an_acknowledgement_in_the_middle_of_a_segment_keeps_its_rest() {
        let mut board = board();
        board.on_acked_before(150);
        assert_eq!(board.pipe(), 850);
        board.hold_all_lost();
        assert_eq!(board.next_lost(1000), Some(150..1000));
    }
}
