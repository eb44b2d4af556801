//! The receiving side of a lane: order, holes, and the time and content of its acknowledgements.

use super::WINDOW;
use super::config::{LaneSettings, Timing};
use crate::wire::link::slacp::{FrameSeq, Missing};
use fulmar_proto::units::Instant;
use std::collections::VecDeque;

/// The way in which a packet came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    First,
    Again,
    Rebuilt,
}

/// A packet to hand up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Released {
    pub(super) packet: Vec<u8>,
    pub(super) way: Way,
}

/// The outcome of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) released: Vec<Released>,
    /// Packets that are no longer awaited.
    pub(super) skipped: u64,
    /// Whether the packet had come before, or is no longer awaited.
    pub(super) duplicate: bool,
}

#[derive(Clone, Debug)]
enum Place {
    Missing { since: Instant },
    Held(Released),
}

/// The receiver of a lane: packets from `expected` on, of which the first is missing.
#[derive(Clone, Debug)]
pub(super) struct LaneReceiver {
    settings: LaneSettings,
    expected: FrameSeq,
    places: VecDeque<Place>,
    /// Whether an acknowledgement is to be sent with the next frame.
    pub(super) ack_due: bool,
    /// The time at which the timer makes an acknowledgement due.
    ack_at: Option<Instant>,
    /// The number of times that the timer still repeats an acknowledgement without news.
    repeats: u8,
}

impl LaneReceiver {
    pub(super) const fn new(settings: LaneSettings, start: FrameSeq) -> Self {
        Self {
            settings,
            expected: start,
            places: VecDeque::new(),
            ack_due: false,
            ack_at: None,
            repeats: 0,
        }
    }

    pub(super) const fn expected(&self) -> FrameSeq {
        self.expected
    }

    /// Octets of packets kept here.
    pub(super) fn held_octets(&self) -> usize {
        let place = |place: &Place| match place {
            Place::Held(released) => released.packet.len(),
            Place::Missing { .. } => 0,
        };
        self.places.iter().map(place).sum()
    }

    /// The number after the last packet that came.
    pub(super) fn end(&self) -> FrameSeq {
        // The window bounds the length.
        self.expected
            .plus(u16::try_from(self.places.len()).unwrap_or(u16::MAX))
    }

    /// The holes, in order.
    pub(super) fn missing(&self) -> impl Iterator<Item = Missing> {
        let mut places = (0_u16..).zip(&self.places).peekable();
        core::iter::from_fn(move || {
            let is_missing = |place: &Place| matches!(place, Place::Missing { .. });
            let (first, _) = places.find(|(_, place)| is_missing(place))?;
            let mut count = 1;
            while places.next_if(|(_, place)| is_missing(place)).is_some() {
                count += 1;
            }
            Some(Missing {
                start: self.expected.plus(first),
                count,
            })
        })
    }

    /// Takes a packet.
    pub(super) fn accept(
        &mut self,
        now: Instant,
        seq: FrameSeq,
        released: Released,
        timing: &Timing,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let offset = seq.offset_from(self.expected);
        self.acknowledge_by(now, timing);
        if offset > u16::MAX / 2 {
            outcome.duplicate = true;
            return outcome;
        }
        if !self.settings.repairs() {
            outcome.skipped = u64::from(offset);
            self.expected = seq.plus(1);
            outcome.released.push(released);
            return outcome;
        }
        if offset >= WINDOW {
            // The sender keeps no more than a window, so packets before it will not come.
            self.pass(offset - WINDOW + 1, &mut outcome);
        }
        let offset = usize::from(seq.offset_from(self.expected));
        // If a number was skipped since the last packet, the receiver asks at once.
        self.ack_due |= offset > self.places.len();
        while self.places.len() <= offset {
            self.places.push_back(Place::Missing { since: now });
        }
        if let Some(place @ Place::Missing { .. }) = self.places.get_mut(offset) {
            *place = Place::Held(released);
        } else {
            outcome.duplicate = true;
        }
        self.release(&mut outcome);
        outcome
    }

    /// Notes that the sender will retransmit no packet before `floor`.
    pub(super) fn floor(&mut self, floor: FrameSeq) -> Outcome {
        let mut outcome = Outcome::default();
        let offset = floor.offset_from(self.expected);
        if offset <= WINDOW {
            self.pass(offset, &mut outcome);
            self.release(&mut outcome);
        }
        outcome
    }

    /// Hands up everything that is held, without waiting: the sender has begun anew.
    pub(super) fn give_all(&mut self) -> Outcome {
        let mut outcome = Outcome::default();
        let count = u16::try_from(self.places.len()).unwrap_or(u16::MAX);
        self.pass(count, &mut outcome);
        outcome
    }

    /// The earliest instant at which [`LaneReceiver::handle_deadline`] has something to do.
    pub(super) fn deadline(&self, timing: &Timing) -> Option<(Instant, &'static str)> {
        let acknowledge = self.ack_at.map(|at| (at, "slacp acknowledgement"));
        let give_up = match self.places.front() {
            Some(&Place::Missing { since }) => {
                let patience = timing.patience(self.settings.persistence);
                Some((since + patience, "slacp hole"))
            }
            _ => None,
        };
        acknowledge.into_iter().chain(give_up).min_by_key(|d| d.0)
    }

    pub(super) fn handle_deadline(&mut self, now: Instant, timing: &Timing) -> Outcome {
        let mut outcome = Outcome::default();
        let patience = timing.patience(self.settings.persistence);
        while let Some(&Place::Missing { since }) = self.places.front()
            && since + patience <= now
        {
            self.pass(1, &mut outcome);
            self.release(&mut outcome);
            // The sender need not retransmit it any more.
            self.ack_due = true;
        }
        if self.ack_at.is_some_and(|at| at <= now) {
            self.ack_due = true;
            self.repeats = self.repeats.saturating_sub(1);
            let again = self.repeats > 0 || !self.places.is_empty();
            self.ack_at = again.then(|| now + timing.repeat);
        }
        outcome
    }

    /// Acknowledges soon, and repeats that a few times if nothing more comes: as often as the last
    /// packets may be lost, and once more for a lost acknowledgement.
    pub(super) fn acknowledge_by(&mut self, now: Instant, timing: &Timing) {
        if !self.settings.repairs() {
            return;
        }
        let at = now + timing.ack_delay;
        self.ack_at = Some(self.ack_at.map_or(at, |known| known.min(at)));
        self.repeats = self.settings.persistence.saturating_add(2);
    }

    /// Moves `count` numbers on; packets held among them are handed up.
    fn pass(&mut self, count: u16, outcome: &mut Outcome) {
        self.expected = self.expected.plus(count);
        for _ in 0..count {
            match self.places.pop_front() {
                Some(Place::Held(released)) => outcome.released.push(released),
                Some(Place::Missing { .. }) | None => outcome.skipped += 1,
            }
        }
    }

    fn release(&mut self, outcome: &mut Outcome) {
        while let Some(Place::Held(_)) = self.places.front() {
            self.pass(1, outcome);
        }
    }
}
