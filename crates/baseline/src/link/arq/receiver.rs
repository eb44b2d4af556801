//! The receiving half: releases packets and acknowledges frames.

use super::ArqConfig;
use super::ArqScheme;
use super::requests::ArqRequests;
use crate::link::parts::{Acquaintance, Placed, ReleaseWindow};
use crate::link::{FrameTransmit, LinkCounters};
use crate::wire::link::arq::{ARQ_BITS_MAX, ArqFrame, Epoch};
use crate::wire::link::{Challenge, FrameNumber};
use fulmar_proto::machine::Deadline;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant};

/// A frame with a packet, as it arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArqArrival<'a> {
    pub(super) epoch: Epoch,
    pub(super) number: FrameNumber,
    pub(super) base: FrameNumber,
    pub(super) again: bool,
    pub(super) packet: &'a [u8],
}

/// An arrival that is kept until its sender is trusted.
#[derive(Clone, Debug)]
struct Waiting {
    number: FrameNumber,
    base: FrameNumber,
    again: bool,
    packet: Vec<u8>,
}

/// The receiving half of one end.
#[derive(Clone, Debug)]
pub(super) struct ArqReceiver {
    config: ArqConfig,
    /// The peer's life that is followed, with its numbers.
    peer: Acquaintance<Waiting>,
    window: ReleaseWindow,
    ack_due: bool,
    /// The frames that are asked for, if this end asks.
    requests: Option<ArqRequests>,
    /// The time at which the first waiting packet is released in spite of the hole before it.
    release_at: Option<Instant>,
}

impl ArqReceiver {
    /// A receiver that knows no peer; challenges are drawn from `rng`.
    pub(super) fn new(config: ArqConfig, rng: &mut Rng) -> Self {
        let size = config.effective_window();
        Self {
            config,
            peer: Acquaintance::new(rng, usize::from(size)),
            window: ReleaseWindow::new(config.keeps_order(), size, FrameNumber(0)),
            ack_due: false,
            requests: (config.scheme == ArqScheme::NakOnly)
                .then(|| ArqRequests::new(config.retries)),
            release_at: None,
        }
    }

    /// Whether the sender that is followed may have this base: at most a window away. A sender
    /// whose base is farther away gave up more frames than that without being heard, or is another
    /// one of the same name.
    fn is_near(&self, base: FrameNumber) -> bool {
        is_near(base, self.window.next())
    }

    /// Whether a frame with this base belongs to the life that is followed. The first life heard of
    /// is followed.
    fn knows(&mut self, epoch: Epoch, base: FrameNumber) -> bool {
        match self.peer.known() {
            None => {
                self.peer.follow(epoch);
                self.restart_at(base);
                true
            }
            Some(known) => known == epoch && self.is_near(base),
        }
    }

    /// Follows another life, or another time of this one, from this number on.
    fn restart_at(&mut self, base: FrameNumber) {
        self.window.restart_at(base);
        if let Some(requests) = &mut self.requests {
            requests.restart_at(base);
        }
    }

    /// Nothing can come any more for the numbers before `base`.
    fn advance_to(&mut self, base: FrameNumber) {
        self.window.advance_to(base);
        if let Some(requests) = &mut self.requests {
            requests.forget_before(self.window.next());
        }
    }

    pub(super) fn data(
        &mut self,
        now: Instant,
        arrival: ArqArrival<'_>,
        hold: Duration,
        counters: &mut LinkCounters,
    ) {
        let ArqArrival {
            epoch,
            number,
            base,
            again,
            packet,
        } = arrival;
        if number.ahead_of(base) >= ArqConfig::WINDOW_MAX {
            counters.unexpected += 1;
            return;
        }
        if !self.knows(epoch, base) {
            counters.unexpected += 1;
            let is_copy = |waiting: &Waiting| waiting.number == number;
            let is_known = self.peer.renew(now, epoch, is_copy);
            let waiting = (!is_known).then(|| Waiting {
                number,
                base,
                again,
                packet: packet.to_vec(),
            });
            let next = self.window.next();
            self.peer.doubt(now, next, epoch, waiting);
            return;
        }
        self.advance_to(base);
        self.place(now, (number, again), packet.to_vec(), counters);
        self.set_release(hold);
    }

    fn place(
        &mut self,
        since: Instant,
        (number, again): (FrameNumber, bool),
        packet: Vec<u8>,
        counters: &mut LinkCounters,
    ) {
        self.ack_due = true;
        let in_turn = self.config.scheme != ArqScheme::GoBackN || number == self.window.next();
        let placed = if in_turn {
            self.window.place(since, number, packet)
        } else {
            Placed::Known
        };
        if let Some(requests) = &mut self.requests
            && placed != Placed::Beyond
        {
            requests.arrived(number, self.window.next());
        }
        match placed {
            Placed::Taken => counters.recovered_by_arq += u64::from(again),
            Placed::Known => counters.duplicates += 1,
            Placed::Beyond => counters.unexpected += 1,
        }
    }

    pub(super) fn advance(
        &mut self,
        now: Instant,
        (epoch, base): (Epoch, FrameNumber),
        hold: Duration,
        counters: &mut LinkCounters,
    ) {
        if self.knows(epoch, base) {
            self.advance_to(base);
            self.ack_due = true;
            self.set_release(hold);
        } else {
            counters.unexpected += 1;
            let next = self.window.next();
            self.peer.doubt(now, next, epoch, None);
        }
    }

    /// Takes the peer's answer that it is `epoch`, with its base.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        (epoch, base): (Epoch, FrameNumber),
        challenge: Challenge,
        hold: Duration,
        counters: &mut LinkCounters,
    ) {
        let Some(asked_at) = self.peer.believes(challenge) else {
            counters.unexpected += 1;
            return;
        };
        let waited = self.peer.take(epoch);
        // The sender that is followed is at most a window behind the number that was next when it
        // was asked.
        let is_other = base.is_behind(asked_at) && asked_at.ahead_of(base) > ArqConfig::WINDOW_MAX;
        let next = self.window.next();
        let is_far = !base.is_behind(next) && base.ahead_of(next) > ArqConfig::WINDOW_MAX;
        if self.peer.known() == Some(epoch) && !is_other && !is_far {
            // The frames that waited belong to another time.
            return;
        }
        self.peer.follow(epoch);
        // The sender may have given frames up since it sent this one. It has given up those that
        // waited for longer than a packet may.
        let is_of_now = |(since, waiting): &(Instant, Waiting)| {
            is_near(waiting.base, base) && *since + hold >= now
        };
        let waited: Vec<(Instant, Waiting)> = waited.into_iter().filter(is_of_now).collect();
        let bases = waited.iter().map(|(_, waiting)| waiting.base);
        let first = bases.fold(
            base,
            |first, base| {
                if base.is_behind(first) { base } else { first }
            },
        );
        self.restart_at(first);
        for (since, waiting) in waited {
            let Waiting {
                number,
                base,
                again,
                packet,
            } = waiting;
            self.advance_to(base);
            self.place(since, (number, again), packet, counters);
        }
        self.advance_to(base);
        self.ack_due = true;
        self.set_release(hold);
    }

    /// Takes the peer's question who this end is.
    pub(super) fn challenged(&mut self, challenge: Challenge) {
        self.peer.challenged(challenge);
    }

    /// The challenge that this end is asked to answer.
    pub(super) fn poll_answer(&mut self) -> Option<Challenge> {
        self.peer.poll_answer()
    }

    /// Octets of packets kept here.
    pub(super) fn held_octets(&self) -> usize {
        let waiting = self.peer.all_waiting().map(|waiting| waiting.packet.len());
        self.window.held_octets() + waiting.sum::<usize>()
    }

    /// Passes over first holes that nobody asks for any more, and sets the time for those that stay.
    fn set_release(&mut self, hold: Duration) {
        while let Some(number) = self.requests.as_mut().and_then(ArqRequests::pop_hopeless) {
            self.advance_to(number.plus(1));
        }
        self.release_at = self.window.blocked_since().map(|since| since + hold);
    }

    pub(super) fn handle_deadline(&mut self, now: Instant, hold: Duration) {
        if let Some(requests) = &mut self.requests {
            requests.handle_deadline(now);
            self.set_release(hold);
        }
        while self.release_at.is_some_and(|at| at <= now) {
            self.window.pass_first_holes();
            if let Some(requests) = &mut self.requests {
                requests.forget_before(self.window.next());
            }
            self.set_release(hold);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        let release = self.release_at.map(|at| Deadline { at, why: "release" });
        let requests = self.requests.as_ref();
        let request = requests.and_then(ArqRequests::next_deadline);
        Deadline::earlier(release, request)
    }

    /// Appends a challenge, a request or an acknowledgement, if one is due. A request is repeated after `timeout`.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        timeout: Duration,
        out: &mut Vec<u8>,
    ) -> Option<FrameTransmit> {
        let start = out.len();
        if let Some(challenge) = self.peer.poll_challenge() {
            ArqFrame::Challenge(challenge).encode(out);
        } else if let Some(requests) = &mut self.requests {
            let epoch = self.peer.known()?;
            requests.poll(now, timeout, epoch, out)?;
        } else {
            self.acknowledge(out)?;
        }
        Some(FrameTransmit::control(out.len() - start))
    }

    /// Appends an acknowledgement of everything that is known, if it is due.
    fn acknowledge(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let epoch = self.peer.known()?;
        if !core::mem::take(&mut self.ack_due) {
            return None;
        }
        let mut bits = [0; ARQ_BITS_MAX];
        let mut used = 0;
        let known = self.window.beyond_next().take(ARQ_BITS_MAX * 8);
        for (index, arrived) in known.enumerate() {
            if arrived && let Some(octet) = bits.get_mut(index / 8) {
                *octet |= 0x80 >> (index % 8);
                used = index / 8 + 1;
            }
        }
        ArqFrame::Ack {
            epoch,
            next: self.window.next(),
            bits: bits.get(..used).unwrap_or_default(),
        }
        .encode(out);
        Some(())
    }

    pub(super) fn pop(&mut self, out: &mut Vec<u8>) -> Option<usize> {
        let packet = self.window.pop()?;
        out.extend_from_slice(&packet);
        Some(packet.len())
    }

    pub(super) const fn passed_over(&self) -> u64 {
        self.window.passed_over()
    }
}

fn is_near(number: FrameNumber, other: FrameNumber) -> bool {
    number.ahead_of(other) <= ArqConfig::WINDOW_MAX
        || other.ahead_of(number) <= ArqConfig::WINDOW_MAX
}
