//! The times at which the receiver acknowledges, and the content of a MACK.
//!
//! An arrival beyond a hole is listed in several MACKs, so that a lost MACK costs nothing. A new
//! hole is told at once; everything else waits for `every` arrivals or the flush timer. In the
//! papers' style each number is listed once and no MACK is hurried.

use super::answer::Answer;
use super::config::{AckPolicy, AckStyle, ConnectionConfig};
use super::modes::AckScheme;
use super::prompt_answers::PromptAnswers;
use crate::machine::Deadline;
use crate::timer::{TimerKind, TimerTable};
use crate::units::Instant;
use crate::wire::TpduSeq;
use crate::wire::aerotp::{
    CHANNEL_NUMBERS, ChannelWord, CumulativeWords, EcnField, Handshake, HoldTime,
    LISTED_NUMBERS_MAX, PathReport, REPORT_NUMBERS, ReceiverWord,
};
use core::num::NonZeroU8;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
enum AckTimer {
    Flush,
    Prompt,
}

impl TimerKind for AckTimer {
    const COUNT: usize = 2;
    fn index(self) -> usize {
        self as usize
    }
    fn why(self) -> &'static str {
        match self {
            Self::Flush => "MACK flush",
            Self::Prompt => "MACK that was asked for",
        }
    }
}

/// The receiver's state that a cumulative MACK reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiverState {
    pub(super) next_expected: TpduSeq,
    pub(super) window: u16,
    pub(super) has_holes: bool,
    /// The report on the channel, if the channel is estimated.
    pub(super) channel: Option<ChannelWord>,
    /// The report on the path, if one is due.
    pub(super) report: Option<PathReport>,
}

/// A TPDU that arrived.
#[derive(Clone, Copy, Debug)]
struct Recent {
    seq: TpduSeq,
    /// The number of MACKs in which it was listed.
    told: u16,
    stamp: u32,
}

#[derive(Debug)]
pub(super) struct Acknowledger {
    acks: AckScheme,
    policy: AckPolicy,
    /// Whether each TPDU is sent several times, so that a duplicate says nothing by itself.
    expects_copies: bool,
    pending: u16,
    due: bool,
    handshake: Option<Handshake>,
    /// Arrivals not yet listed often enough, oldest first.
    recent: VecDeque<Recent>,
    echo: Option<(u32, Instant)>,
    marked: bool,
    window_told: u16,
    /// The answers to TPDUs that ask for one at once, if they get it.
    prompt: Option<Box<PromptAnswers>>,
    timers: TimerTable<AckTimer>,
}

impl Acknowledger {
    pub(super) fn new(acks: AckScheme, config: &ConnectionConfig) -> Self {
        Self {
            acks,
            policy: config.ack.in_mode(acks),
            expects_copies: config.copies > NonZeroU8::MIN,
            pending: 0,
            due: false,
            handshake: None,
            recent: VecDeque::new(),
            echo: None,
            marked: false,
            window_told: config.window_tpdus,
            prompt: config
                .thin
                .filter(|_| {
                    acks == AckScheme::Aggregated && config.ack.style == AckStyle::Cumulative
                })
                .map(|_| Box::default()),
            timers: TimerTable::default(),
        }
    }

    pub(super) fn give_back(&mut self) {
        self.recent.shrink_to_fit();
        if let Some(prompt) = &mut self.prompt {
            prompt.give_back();
        }
    }

    /// Notes the timestamp of an arrived TPDU of any kind, which the next answer echoes.
    pub(super) const fn note_stamp(&mut self, now: Instant, stamp: u32, marked: bool) {
        self.echo = Some((stamp, now));
        self.marked |= marked;
    }

    /// The newest of these timestamps, and the time at which it arrived.
    pub(super) const fn newest_stamp(&self) -> Option<(u32, Instant)> {
        self.echo
    }

    /// The timestamp to echo.
    pub(super) fn echo(&self) -> u32 {
        self.echo.map_or(0, |(stamp, _)| stamp)
    }

    /// Notes that an intact data TPDU arrived that is new; `urgent` if the sender should know at once.
    pub(super) fn on_arrival(&mut self, now: Instant, seq: TpduSeq, urgent: bool) {
        let stamp = self.echo();
        if let Some(prompt) = &mut self.prompt {
            prompt.on_arrival(seq, stamp);
        }
        self.note_arrival(now, seq, urgent);
    }

    /// Notes TPDUs that turn out to be missing.
    pub(super) fn on_holes(&mut self, holes: u32) {
        if let Some(prompt) = &mut self.prompt {
            prompt.on_holes(holes);
        }
    }

    /// Notes that the TPDU that just arrived asks for an answer at once.
    pub(super) fn on_asked(&mut self, now: Instant) {
        if let Some(prompt) = &mut self.prompt {
            let at = prompt.on_asked(now);
            if at <= now {
                self.due = true;
            } else {
                self.timers.set(AckTimer::Prompt, at);
            }
        }
    }

    fn note_arrival(&mut self, now: Instant, seq: TpduSeq, urgent: bool) {
        if self.acks == AckScheme::None {
            return;
        }
        self.list(seq);
        self.pending = self.pending.saturating_add(1);
        let urgent = urgent
            && self.acks == AckScheme::Aggregated
            && self.policy.style == AckStyle::Cumulative;
        if urgent || self.pending >= self.policy.every {
            self.due = true;
        } else {
            self.timers
                .set_if_idle(AckTimer::Flush, now + self.policy.flush);
        }
    }

    fn list(&mut self, seq: TpduSeq) {
        if self.recent.len() > LISTED_NUMBERS_MAX {
            self.recent.pop_front();
        }
        let stamp = self.echo();
        self.recent.push_back(Recent {
            seq,
            told: 0,
            stamp,
        });
    }

    /// Notes a data TPDU that had arrived before. Its sender may have missed the MACK that said so, unless the
    /// TPDU is one of the copies that are always sent: these do not hurry the next MACK.
    pub(super) fn on_duplicate(&mut self, now: Instant, seq: TpduSeq) {
        let stamp = self.echo();
        if let Some(prompt) = &mut self.prompt {
            prompt.on_duplicate(seq, stamp);
        }
        if !self.expects_copies {
            self.note_arrival(now, seq, false);
            return;
        }
        let is_listed = |last: &Recent| last.seq == seq && last.told == 0;
        if self.acks == AckScheme::None || self.recent.back().is_some_and(is_listed) {
            return;
        }
        self.list(seq);
        // The MACK that lists it is news, after which another duplicate asks for another one.
        self.pending = self.pending.max(1);
        self.timers
            .set_if_idle(AckTimer::Flush, now + self.policy.flush);
    }

    /// Makes a MACK due now, whatever has arrived.
    pub(super) const fn demand(&mut self) {
        self.due = true;
    }

    /// Answers a set-up or a close with the next MACK, which is due at once.
    pub(super) const fn answer(&mut self, handshake: Handshake) {
        self.handshake = Some(handshake);
    }

    /// Notes the window after the application has read: a sender may be waiting for room.
    pub(super) fn on_window(&mut self, window: u16, capacity: u16) {
        let was_tight = self.window_told <= capacity / 4;
        if self.acks != AckScheme::None && was_tight && window >= capacity / 2 {
            self.due = true;
        }
    }

    pub(super) const fn is_due(&self) -> bool {
        self.due || self.handshake.is_some()
    }

    pub(super) fn handle_deadline(&mut self, now: Instant) {
        while self.timers.expire(now).is_some() {
            self.due = true;
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        self.timers.next_deadline()
    }

    /// Appends the MACK that is due.
    pub(super) fn write(
        &mut self,
        now: Instant,
        mut answer: Answer,
        state: ReceiverState,
        out: &mut Vec<u8>,
    ) {
        let ecn = if core::mem::take(&mut self.marked) {
            EcnField::ECHO
        } else {
            EcnField::NONE
        };
        answer.template.ecn = ecn;
        answer.template.echo = self.echo();
        let handshake = self.handshake.take();
        self.due = false;
        let is_news = core::mem::take(&mut self.pending) > 0 || self.prompt.is_none();
        self.timers.stop(AckTimer::Flush);
        match self.prompt.as_mut().and_then(|prompt| prompt.on_told(now)) {
            Some(at) => self.timers.set(AckTimer::Prompt, at),
            None => self.timers.stop(AckTimer::Prompt),
        }
        let listed = self.policy.style == AckStyle::Listed && handshake.is_none();
        if let Some(first) = self.recent.front().copied().filter(|_| listed) {
            let room = answer.listed_max();
            // Arrivals left for the next MACK must not look lost, so this one answers no later
            // TPDU.
            let answered = self
                .recent
                .get(room)
                .filter(|_| self.recent.len() > room + 1);
            if let Some(last) = answered {
                answer.template.echo = last.stamp;
            }
            let further = self
                .recent
                .iter()
                .skip(1)
                .take(room)
                .map(|recent| recent.seq);
            let told = 1 + answer.listed(first.seq, further, out);
            self.recent.drain(..told.min(self.recent.len()));
            self.due = !self.recent.is_empty();
            return;
        }
        // There is nothing to echo yet: an unknown hold keeps the peer from taking this for a
        // sample.
        let hold = self.echo.map_or(HoldTime::UNKNOWN, |(_, at)| {
            HoldTime::from_duration(now.saturating_since(at))
        });
        let receiver = ReceiverWord {
            window: state.window,
            hold,
        };
        if state.has_holes {
            self.recent
                .retain(|recent| state.next_expected.before(recent.seq));
        } else {
            self.recent.clear();
        }
        let handshake = handshake.unwrap_or_default();
        let room = answer.cumulative_max();
        let report = state
            .report
            .filter(|_| room >= REPORT_NUMBERS + CHANNEL_NUMBERS);
        let words = CumulativeWords {
            receiver,
            channel: state.channel.filter(|_| room >= CHANNEL_NUMBERS),
            report,
        };
        let room = answer.numbers_max(room - words.numbers());
        let newest_first = self.recent.iter().rev().take(room).map(|recent| recent.seq);
        let next = state.next_expected;
        answer.cumulative(handshake, next, words, newest_first, out);
        if self.policy.style == AckStyle::Cumulative {
            let repeats = self.policy.repeats.max(1);
            // An answer that is said again at once may be lost with the first.
            let told = u16::from(is_news);
            self.recent
                .iter_mut()
                .for_each(|recent| recent.told += told);
            self.recent.retain(|recent| recent.told < repeats);
        }
        self.window_told = state.window;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::aerotp::ThinRepair;
    use crate::transport::aerotp::packing::Packing;
    use crate::units::Duration;
    use crate::wire::aerotp::{self as wire, FecStrength, Feedback, Mack, parse};
    use crate::wire::{Mode, Port};

    /// The MACK that `acks` writes at `now`, with a hole at the beginning.
    fn tell(acks: &mut Acknowledger, now: Instant) -> Vec<u8> {
        let template = Feedback {
            source: Port(1),
            destination: Port(2),
            mode: Mode::Reliable,
            ecn: EcnField::NONE,
            echo: 0,
            crc: true,
            fec_words: FecStrength::NONE,
        };
        let state = ReceiverState {
            next_expected: TpduSeq(0),
            window: 8,
            has_holes: true,
            channel: None,
            report: None,
        };
        let answer = Answer {
            template,
            packing: Packing::Long,
            named: None,
            bytes_max: 1_480,
        };
        let mut out = Vec::new();
        acks.demand();
        acks.write(now, answer, state, &mut out);
        out
    }

    /// The hold time in the MACK that `acks` writes at `now`.
    fn hold(acks: &mut Acknowledger, now: Instant) -> Option<Duration> {
        let out = tell(acks, now);
        let tpdu = parse(&out).expect("our own");
        match Mack::of(&tpdu).expect("a MACK").acks {
            wire::Acks::Cumulative { receiver, .. } => receiver.hold.to_duration(),
            wire::Acks::Listed { .. } => panic!("the style is cumulative"),
        }
    }

    /// Copies with answers at once: a duplicate is listed, told, and comes again.
    #[test]
    fn a_copy_that_comes_behind_the_answer_to_it_is_answered_again() {
        let config = ConnectionConfig {
            copies: NonZeroU8::new(2).expect("two"),
            thin: Some(ThinRepair::default()),
            ..ConnectionConfig::default()
        };
        let mut acks = Acknowledger::new(AckScheme::Aggregated, &config);
        let mut now = Instant::START;
        let answered = |acks: &mut Acknowledger, now: Instant| {
            let at = acks.next_deadline().map(|deadline| deadline.at);
            at.is_some_and(|at| at <= now + AckPolicy::default().flush)
        };
        // A hole before it keeps it listed.
        acks.on_arrival(now, TpduSeq(3), true);
        tell(&mut acks, now);
        for _ in 0..3 {
            now += Duration::from_millis(50);
            acks.on_duplicate(now, TpduSeq(3));
            assert!(answered(&mut acks, now), "the sender missed the answer");
            now += Duration::from_millis(5);
            acks.handle_deadline(now);
            tell(&mut acks, now);
        }
    }

    #[test]
    fn before_anything_arrived_the_hold_is_unknown_so_that_no_round_trip_is_taken_from_it() {
        let mut acks = Acknowledger::new(AckScheme::Aggregated, &ConnectionConfig::default());
        let now = Instant::START + Duration::from_millis(5);
        assert_eq!(hold(&mut acks, now), None);
        acks.note_stamp(now, 1, false);
        assert_eq!(hold(&mut acks, now), Some(Duration::ZERO));
    }
}
