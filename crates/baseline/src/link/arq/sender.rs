//! The sending half: numbers, timers, retransmissions, and frames given up.

use super::{ArqConfig, ArqScheme};
use crate::link::{FrameClass, FrameTransmit, LinkCounters, LinkPacket};
use crate::wire::link::FrameNumber;
use crate::wire::link::arq::{ArqFrame, Epoch};
use fulmar_proto::machine::{Deadline, Priority, TransmitKind};
use fulmar_proto::units::{Duration, Instant};
use std::collections::VecDeque;

#[derive(Clone, Debug)]
struct Outstanding {
    octets: Vec<u8>,
    priority: Priority,
    /// The number of transmissions so far; it tells a timer of an earlier one from the current one.
    sent: u16,
    /// The number of its timers that ran out, or of the requests for it.
    timeouts: u8,
    /// The end of its first transmission's time in which it may be asked for.
    wanted_until: Instant,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    /// To be retransmitted.
    Due,
    /// Acknowledged or given up.
    Done,
}

#[derive(Clone, Debug)]
struct Fresh {
    octets: Vec<u8>,
    kind: TransmitKind,
    priority: Priority,
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    at: Instant,
    number: FrameNumber,
    sent: u16,
}

/// An announcement to the receiver that the base moved over frames that were given up.
#[derive(Clone, Copy, Debug)]
struct Announcement {
    /// The time to repeat it; now if `None`.
    next: Option<Instant>,
    left: u8,
}

/// The sending half of one end.
#[derive(Clone, Debug)]
pub(super) struct ArqSender {
    config: ArqConfig,
    epoch: Epoch,
    base: FrameNumber,
    /// The frames from `base` on; at most a window.
    frames: VecDeque<Outstanding>,
    fresh: Option<Fresh>,
    /// Timers in the order of expiry; entries of frames that were acknowledged or retransmitted are
    /// stale.
    timers: VecDeque<Timer>,
    /// Numbers to retransmit, in order; entries whose frame is not due any more are stale.
    due: VecDeque<FrameNumber>,
    announcement: Option<Announcement>,
}

impl ArqSender {
    pub(super) fn new(config: ArqConfig, epoch: Epoch, first: FrameNumber) -> Self {
        Self {
            config,
            epoch,
            base: first,
            frames: VecDeque::new(),
            fresh: None,
            timers: VecDeque::new(),
            due: VecDeque::new(),
            announcement: None,
        }
    }

    /// The lowest number that may still be sent.
    pub(super) const fn base(&self) -> FrameNumber {
        self.base
    }

    /// Octets of packets kept here.
    pub(super) fn held_octets(&self) -> usize {
        let fresh = self.fresh.as_ref().map_or(0, |fresh| fresh.octets.len());
        let outstanding: usize = self.frames.iter().map(|frame| frame.octets.len()).sum();
        fresh + outstanding
    }

    pub(super) fn ready(&self) -> bool {
        self.fresh.is_none() && (self.is_asked() || !self.is_full())
    }

    fn is_full(&self) -> bool {
        self.frames.len() >= usize::from(self.config.effective_window())
    }

    /// Whether the receiver asks, so that this end has no timers.
    fn is_asked(&self) -> bool {
        self.config.scheme == ArqScheme::NakOnly
    }

    /// Takes a request for frames. One that was asked for more than `retries` times, or too late, is given up. One that is not kept
    /// any more is counted.
    pub(super) fn request(
        &mut self,
        now: Instant,
        ranges: impl Iterator<Item = (FrameNumber, u16)>,
        counters: &mut LinkCounters,
    ) {
        let retries = self.config.retries;
        for (first, count) in ranges {
            let count = usize::from(count);
            let (skipped, named) = if first.is_behind(self.base) {
                let gone = count.min(usize::from(self.base.ahead_of(first)));
                counters.asked_too_late += gone as u64;
                (0, count - gone)
            } else {
                (usize::from(first.ahead_of(self.base)), count)
            };
            let mut number = self.base.plus(u16::try_from(skipped).unwrap_or(u16::MAX));
            for frame in self.frames.iter_mut().skip(skipped).take(named) {
                if frame.state == State::InFlight {
                    if frame.timeouts >= retries || now > frame.wanted_until {
                        frame.state = State::Done;
                        counters.given_up += 1;
                    } else {
                        frame.timeouts += 1;
                        frame.state = State::Due;
                        self.due.push_back(number);
                    }
                }
                number = number.plus(1);
            }
        }
        self.move_base();
    }

    pub(super) fn offer(&mut self, packet: LinkPacket<'_>) {
        self.fresh = Some(Fresh {
            octets: packet.octets.to_vec(),
            kind: packet.kind,
            priority: packet.priority,
        });
    }

    /// Takes an acknowledgement: numbers below `next` have arrived, and behind it those whose bit
    /// is set. Returns `false` if these are not numbers of ours.
    pub(super) fn acknowledge(&mut self, next: FrameNumber, bits: &[u8]) -> bool {
        if next.is_behind(self.base) {
            // An acknowledgement that was overtaken by a later one.
            return true;
        }
        let arrived = usize::from(next.ahead_of(self.base));
        if arrived > self.frames.len() {
            return false;
        }
        for frame in self.frames.iter_mut().take(arrived) {
            frame.state = State::Done;
        }
        let set = bits
            .iter()
            .flat_map(|octet| (0..8).map(move |bit| octet & (0x80 >> bit) != 0));
        for (frame, set) in self.frames.iter_mut().skip(arrived + 1).zip(set) {
            if set {
                frame.state = State::Done;
            }
        }
        self.move_base();
        // The receiver waits for no frame that was given up.
        self.announcement = None;
        self.forget_stale_timers();
        true
    }

    fn move_base(&mut self) {
        while self.frames.front().is_some_and(|f| f.state == State::Done) {
            self.frames.pop_front();
            self.base = self.base.plus(1);
        }
    }

    fn frame(&mut self, number: FrameNumber) -> Option<&mut Outstanding> {
        let index = usize::from(number.ahead_of(self.base));
        self.frames.get_mut(index)
    }

    fn is_current(&mut self, timer: Timer) -> bool {
        self.frame(timer.number)
            .is_some_and(|frame| frame.state == State::InFlight && frame.sent == timer.sent)
    }

    fn forget_stale_timers(&mut self) {
        while let Some(&timer) = self.timers.front()
            && !self.is_current(timer)
        {
            self.timers.pop_front();
        }
    }

    pub(super) fn handle_deadline(&mut self, now: Instant, counters: &mut LinkCounters) {
        self.forget_stale_timers();
        while let Some(&timer) = self.timers.front()
            && timer.at <= now
        {
            self.timers.pop_front();
            self.expire(timer.number, counters);
            self.forget_stale_timers();
        }
        if let Some(announcement) = &mut self.announcement
            && announcement.next.is_some_and(|at| at <= now)
        {
            announcement.next = None;
            if announcement.left == 0 {
                self.announcement = None;
            }
        }
    }

    /// A frame was not acknowledged in time.
    fn expire(&mut self, number: FrameNumber, counters: &mut LinkCounters) {
        let retries = self.config.retries;
        let Some(frame) = self.frame(number) else {
            return;
        };
        frame.timeouts = frame.timeouts.saturating_add(1);
        if frame.timeouts > retries {
            frame.state = State::Done;
            counters.given_up += 1;
            self.move_base();
            self.announcement = Some(Announcement {
                next: None,
                left: retries.max(1),
            });
        } else {
            frame.state = State::Due;
            self.due.push_back(number);
        }
        if self.config.scheme == ArqScheme::GoBackN {
            self.go_back();
        }
    }

    /// Retransmits every outstanding frame.
    fn go_back(&mut self) {
        self.due.clear();
        let mut number = self.base;
        for frame in &mut self.frames {
            if frame.state != State::Done {
                frame.state = State::Due;
                self.due.push_back(number);
            }
            number = number.plus(1);
        }
    }

    /// Appends the next frame: a retransmission, else an announcement of frames given up, else a
    /// new frame. The first span is the time to wait for its acknowledgement, the second the time in which it may be asked for.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        (timeout, lifetime): (Duration, Duration),
        out: &mut Vec<u8>,
    ) -> Option<FrameTransmit> {
        let start = out.len();
        let (class, kind, priority) = self
            .poll_again(now, timeout, out)
            .or_else(|| self.poll_fresh(now, (timeout, lifetime), out))
            .or_else(|| self.poll_announcement(now, timeout, out))?;
        Some(FrameTransmit {
            len: out.len() - start,
            class,
            kind,
            priority,
        })
    }

    fn poll_again(
        &mut self,
        now: Instant,
        timeout: Duration,
        out: &mut Vec<u8>,
    ) -> Option<(FrameClass, TransmitKind, Priority)> {
        while let Some(number) = self.due.pop_front() {
            let (epoch, base) = (self.epoch, self.base);
            let Some(frame) = self.frame(number).filter(|f| f.state == State::Due) else {
                continue;
            };
            frame.state = State::InFlight;
            frame.sent = frame.sent.wrapping_add(1);
            let (sent, priority) = (frame.sent, frame.priority);
            ArqFrame::Data {
                epoch,
                number,
                base,
                again: true,
                packet: &frame.octets,
            }
            .encode(out);
            self.start_timer(now + timeout, number, sent);
            return Some((FrameClass::Again, TransmitKind::Retransmission, priority));
        }
        None
    }

    fn poll_fresh(
        &mut self,
        now: Instant,
        (timeout, lifetime): (Duration, Duration),
        out: &mut Vec<u8>,
    ) -> Option<(FrameClass, TransmitKind, Priority)> {
        let Fresh {
            octets,
            kind,
            priority,
        } = self.fresh.take()?;
        if self.is_asked() && self.is_full() {
            // Nobody says whether it arrived.
            self.frames.pop_front();
            self.base = self.base.plus(1);
            self.move_base();
        }
        let distance = u16::try_from(self.frames.len()).unwrap_or(u16::MAX);
        let number = self.base.plus(distance);
        ArqFrame::Data {
            epoch: self.epoch,
            number,
            base: self.base,
            again: false,
            packet: &octets,
        }
        .encode(out);
        self.frames.push_back(Outstanding {
            octets,
            priority,
            sent: 1,
            timeouts: 0,
            wanted_until: now + lifetime,
            state: State::InFlight,
        });
        self.start_timer(now + timeout, number, 1);
        Some((FrameClass::Data, kind, priority))
    }

    fn poll_announcement(
        &mut self,
        now: Instant,
        timeout: Duration,
        out: &mut Vec<u8>,
    ) -> Option<(FrameClass, TransmitKind, Priority)> {
        let announcement = self.announcement.as_mut()?;
        if announcement.next.is_some() {
            return None;
        }
        announcement.left = announcement.left.saturating_sub(1);
        announcement.next = Some(now + timeout);
        ArqFrame::Advance {
            epoch: self.epoch,
            base: self.base,
        }
        .encode(out);
        Some((
            FrameClass::Control,
            TransmitKind::Control,
            Priority(u8::MAX),
        ))
    }

    /// Starts a frame's timer. Every frame carries the base, so an announcement counts as made with
    /// each.
    fn start_timer(&mut self, at: Instant, number: FrameNumber, sent: u16) {
        if self.is_asked() {
            return;
        }
        // Timers run out in the order of transmission even where a longer frame raised the timeout.
        let at = self.timers.back().map_or(at, |last| at.max(last.at));
        self.timers.push_back(Timer { at, number, sent });
        if let Some(announcement) = &mut self.announcement {
            announcement.next = Some(at);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        let retransmit = self.timers.front().map(|timer| Deadline {
            at: timer.at,
            why: "retransmit",
        });
        let announce = self.announcement.and_then(|a| a.next).map(|at| Deadline {
            at,
            why: "announce",
        });
        Deadline::earlier(retransmit, announce)
    }
}
