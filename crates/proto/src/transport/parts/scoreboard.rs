//! The scoreboard: which TPDUs are in flight, and which of them are lost.
//!
//! A TPDU is held for lost when a transmission *later* than its own is known to have arrived
//! (the time-based rule of RFC 8985, on the TPDU timestamp that acknowledgements echo), when the
//! receiver asks for it, or when its timeout passes. Order is judged by sending time, so
//! retransmissions are judged like first transmissions and no duplicate counting is needed.
//!
//! # Reordering
//! A TPDU may be overtaken by others within the reorder window. The window starts at zero and is
//! learned: an acknowledgement that arrives sooner after a retransmission than any round trip must
//! belong to the earlier transmission. It says nothing of order after a repetition that was made
//! as a precaution.

mod fates;
mod mending;
mod outstanding;
mod path_log;
mod stamps;

use super::mean_time::MeanTime;
use crate::timer::{TimerKind, TimerTable};
use crate::trace::LossSign;
use crate::units::{Duration, Instant};
use crate::wire::TpduSeq;
use mending::AwaitedRepairs;
use outstanding::{HeldLost, State};
use path_log::PathLog;
use stamps::{NewestArrival, Stamps, stamp_before};
use std::collections::VecDeque;

pub use fates::{AttemptFate, AttemptOutcome, FirstFate, LateRepetition, Settled};
pub use outstanding::Outstanding;

/// One transmission, in the order of sending.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    seq: TpduSeq,
    number: u16,
    sent_at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct OvertakenTimer;

impl TimerKind for OvertakenTimer {
    const COUNT: usize = 1;
    fn index(self) -> usize {
        0
    }
    fn why(self) -> &'static str {
        "overtaken TPDU is past the reorder window"
    }
}

/// A scoreboard of every TPDU between its first transmission and its release.
#[derive(Debug)]
pub struct Scoreboard {
    base: TpduSeq,
    entries: VecDeque<Outstanding>,
    /// The transmissions by path, of which there is one at least.
    paths: Vec<PathLog>,
    /// The path on which the next transmission leaves.
    leaving_on: u8,
    lost: VecDeque<TpduSeq>,
    held_lost: Vec<(TpduSeq, LossSign)>,
    /// The outcomes of attempts, if anybody wants to know.
    outcomes: Option<Vec<AttemptOutcome>>,
    in_flight: usize,
    has_sent: bool,
    newest: Option<NewestArrival>,
    stamps: Stamps,
    /// TPDUs that were sent again for being held lost, in the order in which they left last; some may be settled.
    lost_before: VecDeque<TpduSeq>,
    reorder_window: Duration,
    /// The time at which a repair symbol left last.
    symbol_at: Option<Instant>,
    /// The time by which a symbol's answer comes later than that to the TPDU that it follows.
    symbol_wait: Duration,
    /// The transmissions that arrived damaged and are being mended.
    awaited: AwaitedRepairs,
    /// The stamp of the newest transmission that the answer in hand knows of.
    echo: Option<u32>,
    timers: TimerTable<OvertakenTimer>,
    /// The time from a first transmission until nothing is missing up to it.
    in_order_after: MeanTime,
}

impl Scoreboard {
    /// An empty scoreboard whose first TPDU will be `first`.
    pub fn new(first: TpduSeq) -> Self {
        Self {
            base: first,
            entries: VecDeque::new(),
            paths: vec![PathLog::default()],
            leaving_on: 0,
            lost: VecDeque::new(),
            held_lost: Vec::new(),
            outcomes: None,
            in_flight: 0,
            has_sent: false,
            newest: None,
            stamps: Stamps::default(),
            lost_before: VecDeque::new(),
            reorder_window: Duration::ZERO,
            symbol_at: None,
            symbol_wait: Duration::ZERO,
            awaited: AwaitedRepairs::default(),
            echo: None,
            timers: TimerTable::default(),
            in_order_after: MeanTime::default(),
        }
    }

    /// The number that the next new TPDU gets.
    pub fn next_seq(&self) -> TpduSeq {
        // The sender's window keeps the length far below 2^32.
        self.base
            .plus(u32::try_from(self.entries.len()).unwrap_or(u32::MAX))
    }

    /// The oldest TPDU not released.
    pub const fn base(&self) -> TpduSeq {
        self.base
    }

    /// The number of TPDUs that are not released.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether anything was ever sent.
    pub const fn has_sent(&self) -> bool {
        self.has_sent
    }

    /// The mean time from a TPDU's first transmission until it and all before it are known to have arrived.
    pub const fn in_order_after(&self) -> Option<Duration> {
        self.in_order_after.get()
    }

    /// Whether every TPDU is released.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether a TPDU waits for retransmission.
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The stream position of the oldest octet that may still be retransmitted.
    pub fn base_position(&self) -> Option<u64> {
        self.entries.front().map(|entry| entry.position)
    }

    fn index(&self, seq: TpduSeq) -> Option<usize> {
        let offset = usize::try_from(seq.offset_from(self.base)).ok()?;
        (offset < self.entries.len()).then_some(offset)
    }

    /// The entry of `seq`, unless it is released or was never sent.
    pub fn get(&self, seq: TpduSeq) -> Option<&Outstanding> {
        self.index(seq).map(|index| &self.entries[index])
    }

    /// Notes that a new TPDU was sent.
    pub fn on_first_sent(&mut self, now: Instant, position: u64, len: u32) -> TpduSeq {
        let seq = self.next_seq();
        let state = State::InFlight;
        self.entries.push_back(Outstanding {
            position,
            len,
            attempts: 1,
            repeats: 0,
            repetitions: 0,
            first_sent_at: now,
            written_at: now,
            transmission: 1,
            attempt_at: now,
            sent_at: now,
            path: self.leaving_on,
            first_path: self.leaving_on,
            state,
            repeated_at: None,
            held_lost: HeldLost::Never,
            is_precaution: false,
            was_late: false,
            was_on_dead_path: false,
            is_mended_later: false,
            is_withdrawn: false,
        });
        self.push(Transmission {
            seq,
            number: 1,
            sent_at: now,
        });
        self.in_flight += 1;
        self.has_sent = true;
        seq
    }

    /// Notes when the first octet of `seq` was written.
    pub fn note_written(&mut self, seq: TpduSeq, at: Instant) {
        if let Some(index) = self.index(seq) {
            self.entries[index].written_at = at;
        }
    }

    /// Notes that a TPDU was sent again: after [`Scoreboard::next_lost`], as a probe, or as a
    /// precaution.
    pub fn on_sent_again(&mut self, now: Instant, seq: TpduSeq) {
        let Some(index) = self.index(seq) else { return };
        let entry = &mut self.entries[index];
        if entry.state == State::Settled {
            return;
        }
        if entry.state == State::Lost {
            entry.state = State::InFlight;
            entry.repeats = 0;
            entry.is_precaution = false;
            entry.repetitions = entry.repetitions.saturating_add(1);
            self.in_flight += 1;
            self.lost_before.push_back(seq);
        } else {
            entry.repeats = entry.repeats.saturating_add(1);
            entry.is_precaution = true;
            if self.lost_before.front() == Some(&seq) {
                self.lost_before.rotate_left(1);
            }
        }
        entry.attempts = entry.attempts.saturating_add(1);
        entry.attempt_at = now;
        entry.repeated_at.get_or_insert(now);
        self.log_transmission(now, index, seq);
    }

    /// Notes that a copy of a TPDU in flight left, as part of the same attempt: the TPDU is lost when its
    /// last copy is.
    pub fn on_copied(&mut self, now: Instant, seq: TpduSeq) {
        if let Some(index) = self.in_flight_index(seq) {
            let entry = &mut self.entries[index];
            entry.repeats = entry.repeats.saturating_add(1);
            self.log_transmission(now, index, seq);
        }
    }

    /// Notes that a repair symbol left: what it spans may arrive without a transmission of its own, so for two round trips
    /// an early answer is no sign of order.
    pub const fn on_symbol(&mut self, now: Instant) {
        self.symbol_at = Some(now);
    }

    /// Sets the time for which what was overtaken may still come out of the symbol that follows what overtook it.
    pub const fn wait_for_symbols(&mut self, wait: Duration) {
        self.symbol_wait = wait;
    }

    /// The time that [`Scoreboard::wait_for_symbols`] set.
    #[cfg(test)]
    pub const fn symbol_wait(&self) -> Duration {
        self.symbol_wait
    }

    /// Whether `seq` was sent and is neither known to have arrived nor held lost.
    pub fn is_in_flight(&self, seq: TpduSeq) -> bool {
        self.in_flight_index(seq).is_some()
    }

    fn in_flight_index(&self, seq: TpduSeq) -> Option<usize> {
        self.index(seq)
            .filter(|&index| self.entries[index].state == State::InFlight)
    }

    fn log_transmission(&mut self, now: Instant, index: usize, seq: TpduSeq) {
        let entry = &mut self.entries[index];
        entry.transmission = entry.transmission.wrapping_add(1);
        entry.sent_at = now;
        entry.path = self.leaving_on;
        let number = entry.transmission;
        self.push(Transmission {
            seq,
            number,
            sent_at: now,
        });
    }

    fn push(&mut self, transmission: Transmission) {
        if let Some(path) = self.paths.get_mut(usize::from(self.leaving_on)) {
            path.log.push_back(transmission);
        }
    }

    /// Notes that what follows leaves on this path of the peer, where answers come later than on the quickest by `lag`.
    pub fn leave_on(&mut self, path: u8, lag: Duration) {
        let index = usize::from(path);
        if self.paths.len() <= index {
            self.paths.resize_with(index + 1, PathLog::default);
        }
        self.paths[index].lag = lag;
        self.leaving_on = path;
    }

    /// The path on which the latest transmission left.
    pub const fn left_on(&self) -> u8 {
        self.leaving_on
    }

    /// Whether what left may have left on several paths.
    const fn has_several_paths(&self) -> bool {
        self.paths.len() > 1
    }

    /// The path on which `seq` left last.
    pub fn path_of(&self, seq: TpduSeq) -> Option<u8> {
        self.get(seq).map(|entry| entry.path)
    }

    fn log_of(&mut self, index: usize) -> Option<&mut PathLog> {
        let path = self.entries.get(index)?.path;
        self.paths.get_mut(usize::from(path))
    }

    /// Takes the next TPDU to retransmit.
    pub fn next_lost(&mut self) -> Option<TpduSeq> {
        while let Some(seq) = self.lost.pop_front() {
            if self
                .get(seq)
                .is_some_and(|entry| entry.state == State::Lost)
            {
                return Some(seq);
            }
        }
        None
    }

    /// The TPDU that [`Scoreboard::next_lost`] would take; it stays.
    pub fn first_lost(&mut self) -> Option<TpduSeq> {
        let seq = self.next_lost()?;
        self.lost.push_front(seq);
        Some(seq)
    }

    /// The TPDU in flight whose answer is due first, and the time at which its latest transmission left; on a slower path as
    /// if it had left later.
    pub fn oldest_in_flight(&mut self) -> Option<(TpduSeq, Instant)> {
        self.prune_logs();
        let oldest = |path: &PathLog| path.log.front().map(|t| (t.seq, t.sent_at + path.lag));
        let oldest = self.paths.iter().filter_map(oldest);
        oldest.min_by_key(|(_, at)| *at)
    }

    /// The TPDUs that were sent more than once and are not known to have arrived, oldest first.
    pub fn repeated(&self) -> impl Iterator<Item = TpduSeq> {
        let is_open = |entry: &Outstanding| entry.attempts > 1 && entry.state != State::Settled;
        let open = self.behind_withdrawn();
        open.filter(move |(_, entry)| is_open(entry))
            .map(|(seq, _)| seq)
    }

    /// Takes the payload back of a TPDU that has not arrived.
    pub fn withdraw(&mut self, seq: TpduSeq) {
        if let Some(index) = self.index(seq) {
            self.entries[index].is_withdrawn = true;
        }
    }

    /// The entries behind the last one that was withdrawn, with their numbers, oldest first.
    fn behind_withdrawn(&self) -> impl Iterator<Item = (TpduSeq, &Outstanding)> {
        let withdrawn = self.entries.iter().rposition(|entry| entry.is_withdrawn);
        let numbered = (0..)
            .map(|offset| self.base.plus(offset))
            .zip(&self.entries);
        numbered.skip(withdrawn.map_or(0, |at| at + 1))
    }

    /// The TPDUs that are not known to have arrived, oldest first. What was withdrawn ends them: nobody can mend others with
    /// the help of it.
    pub fn open(&self) -> impl Iterator<Item = TpduSeq> {
        let open = self.behind_withdrawn();
        let open = open.filter(|(_, entry)| entry.state != State::Settled);
        open.map(|(seq, _)| seq)
    }

    /// The in-flight TPDU sent least recently among those repeated fewer than `repeats_max` times
    /// since they were last held lost.
    pub fn least_recent(&self, repeats_max: u16) -> Option<TpduSeq> {
        let is_wanted = |t: &&Transmission| {
            let entry = self.get(t.seq);
            self.is_live(t) && entry.is_some_and(|entry| entry.repeats < repeats_max)
        };
        let first = |path: &PathLog| path.log.iter().find(is_wanted).copied();
        let first = self.paths.iter().filter_map(first);
        first.min_by_key(|t| t.sent_at).map(|t| t.seq)
    }

    /// The first of the TPDUs in flight that were held lost before, in the order in which they left last, if it was repeated fewer than
    /// `repeats_max` times since. [`Scoreboard::prune_lost_before`] makes it the first that was.
    pub fn first_lost_before(&self, repeats_max: u16) -> Option<TpduSeq> {
        let first = self.lost_before.front().copied();
        first.filter(|seq| self.is_repeated_less(*seq, repeats_max))
    }

    /// Forgets those of them in front that are not in flight any more or were repeated so often.
    pub fn prune_lost_before(&mut self, repeats_max: u16) {
        while let Some(first) = self.lost_before.front()
            && !self.is_repeated_less(*first, repeats_max)
        {
            self.lost_before.pop_front();
        }
    }

    fn is_repeated_less(&self, seq: TpduSeq, repeats_max: u16) -> bool {
        let is_less =
            |entry: &Outstanding| entry.state == State::InFlight && entry.repeats < repeats_max;
        self.get(seq).is_some_and(is_less)
    }

    /// Notes the stamp of the newest transmission that the answer in hand knows of, if it tells order.
    pub fn on_echo(&mut self, echo: Option<u32>) {
        // It says nothing of what left on another path.
        self.echo = echo.filter(|_| !self.has_several_paths());
    }

    /// Notes that every TPDU before `next` arrived.
    pub fn on_acked_before(
        &mut self,
        now: Instant,
        next: TpduSeq,
        rtt_min: Option<Duration>,
        mut on_settled: impl FnMut(Settled),
    ) {
        let count = next.offset_from(self.base);
        if usize::try_from(count).map_or(true, |count| count > self.entries.len()) {
            return;
        }
        for offset in 0..count {
            if let Some(settled) = self.on_acked(now, self.base.plus(offset), rtt_min) {
                on_settled(settled);
            }
        }
        self.release_settled(now);
    }

    /// Drops settled TPDUs at the front.
    pub fn release_settled(&mut self, now: Instant) {
        while let Some(entry) = self.entries.front()
            && entry.state == State::Settled
        {
            let took = now.saturating_since(entry.first_sent_at);
            self.in_order_after.note(took);
            self.entries.pop_front();
            self.base = self.base.plus(1);
        }
        self.prune_logs();
    }

    /// Drops everything before `seq`, whatever its state: nobody will ask for it again.
    pub fn release_before(&mut self, seq: TpduSeq) {
        while self.base.before(seq) {
            let Some(entry) = self.entries.pop_front() else {
                return;
            };
            if entry.state == State::InFlight {
                self.in_flight -= 1;
            }
            self.base = self.base.plus(1);
        }
        self.prune_logs();
    }

    /// The time at which the oldest unreleased TPDU was last sent.
    pub fn front_sent_at(&self) -> Option<Instant> {
        self.entries.front().map(|entry| entry.sent_at)
    }

    /// Takes timestamps for rounded down to the unit of [`cut::floor`](crate::wire::cut::floor) from now on.
    pub const fn cut_stamps(&mut self) {
        self.stamps.cut();
    }

    /// Whether timestamps are taken for rounded down.
    pub const fn cuts_stamps(&self) -> bool {
        self.stamps.are_cut()
    }

    /// Notes that the transmission stamped `stamp` arrived. TPDUs that were sent before it and are
    /// not acknowledged are lost, or will be once the reorder window has passed.
    pub fn on_arrival_of(&mut self, now: Instant, stamp: u32) {
        if self
            .newest
            .is_none_or(|newest| newest.gives_way_to(now, stamp))
        {
            self.newest = Some(NewestArrival {
                stamp,
                learned_at: now,
            });
        }
        self.detect_overtaken(now);
    }

    fn is_live(&self, transmission: &Transmission) -> bool {
        self.get(transmission.seq).is_some_and(|entry| {
            entry.state == State::InFlight && entry.transmission == transmission.number
        })
    }

    /// Drops what is not under way any more from the front of a path's log. Returns the first that is.
    fn prune(&mut self, path: usize) -> Option<Transmission> {
        while let Some(front) = self.paths.get(path)?.log.front().copied() {
            if self.is_live(&front) {
                return Some(front);
            }
            self.paths.get_mut(path)?.log.pop_front();
        }
        None
    }

    fn prune_logs(&mut self) {
        for path in 0..self.paths.len() {
            self.prune(path);
        }
    }

    fn hold_lost(&mut self, seq: TpduSeq, sign: LossSign) {
        let Some(index) = self.index(seq) else { return };
        if self.entries[index].state == State::InFlight {
            self.entries[index].state = State::Lost;
            self.entries[index].was_late = false;
            self.entries[index].was_on_dead_path = false;
            self.in_flight -= 1;
            self.lost.push_back(seq);
            self.held_lost.push((seq, sign));
            self.note_lost(index, sign);
        }
    }

    /// Takes the TPDUs that were held lost since the last call, for counters and traces.
    pub fn take_held_lost(&mut self) -> Vec<(TpduSeq, LossSign)> {
        core::mem::take(&mut self.held_lost)
    }

    fn detect_overtaken(&mut self, now: Instant) {
        self.timers.stop(OvertakenTimer);
        let overtaken = self.hold_overtaken(now);
        let unmended = self.end_awaited(now);
        if let Some(at) = overtaken.into_iter().chain(unmended).min() {
            self.timers.set(OvertakenTimer, at);
        }
    }

    /// Holds lost what was overtaken for long enough. Returns the time at which the next one is.
    fn hold_overtaken(&mut self, now: Instant) -> Option<Instant> {
        let paths = 0..self.paths.len();
        paths
            .filter_map(|path| self.hold_overtaken_on(now, path))
            .min()
    }

    /// The same for what left on one path.
    fn hold_overtaken_on(&mut self, now: Instant, path: usize) -> Option<Instant> {
        loop {
            let front = self.prune(path)?;
            let (lead, learned_at) = self.overtaken_by(path, front)?;
            let overtaken = self.reorder_window.saturating_sub(lead);
            // Its word leaves soon after it came, which was so long before the newest arrival.
            let word = self.awaited.word_wait(now).saturating_sub(lead);
            let waits = self.symbol_wait.max(word);
            let lost_at = learned_at + overtaken.max(waits);
            if lost_at > now {
                return Some(lost_at);
            }
            self.hold_lost(front.seq, LossSign::Overtaken);
        }
    }

    /// The time by which the newest arrival on a path left later than a transmission there, and when that was learned.
    /// A single path goes by the times that are echoed, several by what is known to have arrived on each.
    fn overtaken_by(&self, path: usize, front: Transmission) -> Option<(Duration, Instant)> {
        if self.has_several_paths() {
            let newest = self.paths.get(path)?.newest?;
            let is_later = front.sent_at < newest.sent_at;
            let lead = newest.sent_at.saturating_since(front.sent_at);
            return is_later.then_some((lead, newest.learned_at));
        }
        let newest = self.newest?;
        let stamp = self.stamps.of(front.sent_at);
        let is_later = front.sent_at < newest.learned_at && stamp_before(stamp, newest.stamp);
        let lead = Duration::from_micros(u64::from(newest.stamp.wrapping_sub(stamp)));
        is_later.then_some((lead, newest.learned_at))
    }

    /// Holds lost what is under way on a path that went down.
    pub fn on_path_down(&mut self, path: u8) {
        while let Some(front) = self.prune(usize::from(path)) {
            self.hold_lost(front.seq, LossSign::Timeout);
            if let Some(index) = self.index(front.seq) {
                self.entries[index].was_on_dead_path = true;
            }
        }
    }

    /// Takes the receiver's request for `seq`, made after it last saw the transmission stamped
    /// `stamp`. A request older than the latest transmission of `seq` is already answered.
    pub fn on_nack(&mut self, seq: TpduSeq, stamp: u32) {
        let Some(entry) = self.get(seq) else { return };
        let knew_later = if self.has_several_paths() {
            let path = self.paths.get(usize::from(entry.path));
            path.is_some_and(|path| path.knows_later(entry.sent_at))
        } else {
            !stamp_before(stamp, self.stamps.of(entry.sent_at))
        };
        if knew_later && !self.awaited.include(seq) {
            self.hold_lost(seq, LossSign::Nack);
        }
    }

    /// Takes the news that the transmission of `seq` that left at `left_at` arrived damaged. If a later one is under way, it
    /// may still arrive whole.
    pub fn on_damaged(&mut self, seq: TpduSeq, left_at: Instant) {
        if self.get(seq).is_some_and(|entry| entry.sent_at <= left_at) {
            self.take_loss_back(seq);
            self.hold_lost(seq, LossSign::Damaged);
        }
    }

    /// Holds lost every TPDU whose latest transmission was made at or before `sent_before`; on a slower path so much earlier as
    /// answers come later from there.
    pub fn on_timeout(&mut self, sent_before: Instant) {
        for path in 0..self.paths.len() {
            let lag = self.paths[path].lag;
            while let Some(front) = self.prune(path)
                && front.sent_at + lag <= sent_before
            {
                self.hold_lost(front.seq, LossSign::Timeout);
            }
        }
    }

    /// Does the same because no answer came in time, though others came.
    pub fn on_late(&mut self, sent_before: Instant) {
        let before = self.lost.len();
        self.on_timeout(sent_before);
        for place in before..self.lost.len() {
            if let Some(index) = self.index(self.lost[place]) {
                self.entries[index].was_late = true;
            }
        }
    }

    /// Frees memory that the TPDUs in flight do not need.
    pub fn give_back(&mut self) {
        self.entries.shrink_to_fit();
        for path in &mut self.paths {
            path.log.shrink_to_fit();
        }
        self.lost.shrink_to_fit();
        self.lost_before.shrink_to_fit();
        self.held_lost.shrink_to_fit();
        if let Some(outcomes) = &mut self.outcomes {
            outcomes.shrink_to_fit();
        }
    }

    /// The time for which a TPDU may be overtaken without being held lost.
    pub const fn reorder_window(&self) -> Duration {
        self.reorder_window
    }

    /// The number of TPDUs in flight.
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Re-examines overtaken TPDUs when the reorder window has passed.
    pub fn handle_deadline(&mut self, now: Instant) {
        if self.timers.expire(now).is_some() {
            self.detect_overtaken(now);
        }
    }

    /// The time at which to call [`Scoreboard::handle_deadline`].
    pub fn next_deadline(&self) -> Option<crate::machine::Deadline> {
        self.timers.next_deadline()
    }
}

#[cfg(test)]
mod tests;
