//! A stream that a gateway between two others carries on: it is the acceptor of one flow and the opener of the next.
//!
//! The octets of each direction are in a store between the two flows. With [`Acknowledge::Custody`], the side that sent
//! them is told *delivered* when the store has them safe: from then on this gateway answers for them, also after a
//! restart, and carries them on whatever becomes of the flow that they came from. With [`Acknowledge::Destination`], it is
//! told what the next gateway was told, so the word comes from the host at the end.
//!
//! # Promises
//! - No octet is acknowledged before the store has it safe, or before the far host has it.
//! - An octet that was acknowledged leaves, and before a reset does. An end is passed on only if it was noted.
//! - Octets for a side that is gone are dropped and never reported as delivered.
//!
//! The driver gives a relay every event of its two flows, and calls [`StreamRelay::pump`] after them and at least every few
//! milliseconds while [`RelayTurn::has_unsafe`], more rarely while [`RelayTurn::lacks_room`].

use super::address::FlowId;
use super::codes::ResetCode;
use super::event::FlowEvent;
use super::splicer::Splicer;
use crate::units::Instant;

/// Octets moved each way in one turn, so that one flow's abundance delays no other flow for long.
const TURN_BYTES: usize = 256 << 10;

/// The moment at which octets count as delivered for the side that sent them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledge {
    /// When this gateway's store has them safe.
    Custody,
    /// When the host at the end has acknowledged them.
    Destination,
}

/// The store of one direction's octets, by their offset since the flow's start.
pub trait RelayStore {
    /// The reason why the store fails.
    type Fault;

    /// Appends octets and says how many were taken: fewer than offered when it is full.
    ///
    /// # Errors
    /// The store cannot take octets any more; nothing was taken.
    fn append(&mut self, octets: &[u8]) -> Result<usize, Self::Fault>;

    /// Octets from offset `from` on that lie in one piece, at most `max` of them; empty at the end.
    ///
    /// # Errors
    /// The store cannot give them, or they were released.
    fn read(&mut self, from: u64, max: usize) -> Result<&[u8], Self::Fault>;

    /// Releases everything before offset `to`.
    fn release(&mut self, to: u64);

    /// The octets that [`RelayStore::append`] would take now.
    fn room(&self) -> usize;

    /// The offset of the first octet kept.
    fn start(&self) -> u64;

    /// The offset after the last octet kept.
    fn end(&self) -> u64;

    /// The offset up to which octets are as safe as the store promises.
    fn safe_end(&self) -> u64;

    /// Whether [`RelayStore::finish`] was called, also before a restart.
    fn is_finished(&self) -> bool;

    /// Notes that nothing follows.
    ///
    /// # Errors
    /// The store cannot write that down.
    fn finish(&mut self) -> Result<(), Self::Fault>;
}

/// The state of one of a relay's flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// It carries octets.
    Alive,
    /// Its far side's local connection is gone: octets still come from it, and none reach it.
    Unheard,
    /// It is over, complete in both directions.
    Closed,
    /// It was cut off.
    Cut(ResetCode),
}

/// One direction.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    /// Octets that the next side has, as it told.
    next_has: u64,
    /// Octets that the sending side was told of.
    told: u64,
    /// The next side was told of the end.
    is_finished: bool,
}

/// The result of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayTurn {
    /// There is more to do at once.
    pub more: bool,
    /// A store has octets that become safe in some milliseconds.
    pub has_unsafe: bool,
    /// A store has no room: other stores may leave some.
    pub lacks_room: bool,
    /// The flow, if there is one, that was cut off in this turn, as it had to.
    pub cut: Option<(FlowId, ResetCode)>,
}

/// Two flows and the octets between them.
#[derive(Debug)]
pub struct StreamRelay {
    acknowledge: Acknowledge,
    flows: [FlowId; 2],
    sides: [Side; 2],
    /// The way from the flow in the same place to the other.
    ways: [Way; 2],
}

impl StreamRelay {
    /// A relay between `flows`: the one that was asked for here, and the one that carries it on.
    pub const fn new(acknowledge: Acknowledge, flows: [FlowId; 2]) -> Self {
        let way = Way {
            next_has: 0,
            told: 0,
            is_finished: false,
        };
        Self {
            acknowledge,
            flows,
            sides: [Side::Alive; 2],
            ways: [way; 2],
        }
    }

    /// It, after a restart that has left only one of the flows: the other had ended in order, or was cut off.
    #[must_use]
    pub fn without(mut self, flow: FlowId, in_order: bool) -> Self {
        let place = usize::from(self.flows[1] == flow);
        self.sides[place] = if in_order {
            Side::Closed
        } else {
            Side::Cut(ResetCode::CustodyLost)
        };
        self
    }

    /// The two flows.
    pub const fn flows(&self) -> [FlowId; 2] {
        self.flows
    }

    /// The moment at which octets count as delivered.
    pub const fn acknowledge(&self) -> Acknowledge {
        self.acknowledge
    }

    /// The other flow.
    pub fn other(&self, flow: FlowId) -> FlowId {
        if self.flows[0] == flow {
            self.flows[1]
        } else {
            self.flows[0]
        }
    }

    /// Whether `flow` is over.
    pub fn is_over(&self, flow: FlowId) -> bool {
        matches!(self.sides[self.place(flow)], Side::Closed | Side::Cut(_))
    }

    /// Whether both flows are over.
    pub fn is_done(&self) -> bool {
        self.flows.iter().all(|flow| self.is_over(*flow))
    }

    fn place(&self, flow: FlowId) -> usize {
        usize::from(self.flows[1] == flow)
    }

    /// Takes an event of one of the flows. `stores` are those of the octets from the first flow and from the second.
    ///
    /// # Errors
    /// A store fails: cut both flows off.
    pub fn on_event<S: RelayStore>(
        &mut self,
        now: Instant,
        event: &FlowEvent,
        splicer: &mut Splicer,
        stores: [&mut S; 2],
    ) -> Result<(), S::Fault> {
        let place = self.place(event.flow());
        let [first, second] = stores;
        // Octets to a flow are those that came from the other.
        let (inward, outward) = if place == 0 {
            (first, second)
        } else {
            (second, first)
        };
        match event {
            FlowEvent::Delivered { offset, .. } => {
                let way = &mut self.ways[1 - place];
                way.next_has = way.next_has.max(*offset);
                outward.release(*offset);
            }
            // Everything was read. The flow may be over with the next event, so this is the time to write it down. Where octets
            // were dropped the end would be that of a shorter stream.
            FlowEvent::PeerFinished(_) => {
                if !matches!(self.sides[1 - place], Side::Unheard | Side::Cut(_)) {
                    inward.finish()?;
                }
            }
            FlowEvent::Stopped(_) => {
                if self.sides[place] == Side::Alive {
                    self.sides[place] = Side::Unheard;
                }
                // Nobody behind this flow hears what the other one brings.
                splicer.stop(now, self.flows[1 - place]);
            }
            FlowEvent::Reset { code, .. } => self.cut(now, event.flow(), *code, splicer),
            FlowEvent::Refused { .. } => {
                self.cut(now, event.flow(), ResetCode::Reset, splicer);
            }
            FlowEvent::Closed(_) => {
                let way = &mut self.ways[1 - place];
                way.next_has = outward.end();
                outward.release(way.next_has);
                self.sides[place] = Side::Closed;
            }
            FlowEvent::Requested { .. }
            | FlowEvent::Connected { .. }
            | FlowEvent::Readable(_)
            | FlowEvent::Writable(_)
            | FlowEvent::Resume { .. } => {}
        }
        Ok(())
    }

    /// Notes that `flow` was cut off. What came from it is carried on before the other flow is cut off, too.
    pub fn cut(&mut self, now: Instant, flow: FlowId, code: ResetCode, splicer: &mut Splicer) {
        let place = self.place(flow);
        if !self.is_over(flow) {
            self.sides[place] = Side::Cut(code);
            splicer.stop(now, self.flows[1 - place]);
        }
    }

    /// Moves what can be moved, both ways. `stores` are those of the octets from the first flow and from the second.
    ///
    /// # Errors
    /// A store fails: cut both flows off.
    pub fn pump<S: RelayStore>(
        &mut self,
        now: Instant,
        splicer: &mut Splicer,
        stores: [&mut S; 2],
    ) -> Result<RelayTurn, S::Fault> {
        let mut turn = RelayTurn::default();
        for (place, store) in stores.into_iter().enumerate() {
            self.take_in(now, place, splicer, store, &mut turn)?;
            self.feed(now, place, splicer, store)?;
            let (from, to) = (self.sides[place], self.flows[1 - place]);
            let is_unheard = self.sides[1 - place] == Side::Unheard;
            let is_drained = store.start() == store.end() && !store.is_finished();
            let end = match from {
                Side::Cut(code) if is_drained || is_unheard => Some(code),
                // What was for it reaches nobody, and nothing comes from it.
                Side::Closed if is_unheard => Some(ResetCode::Reset),
                _ => None,
            };
            if let Some(code) = end.filter(|_| !self.is_over(to)) {
                splicer.reset(now, to, code);
                self.sides[1 - place] = Side::Cut(code);
                turn.cut = Some((to, code));
            }
        }
        Ok(turn)
    }

    /// Moves octets from the flow in `place` into its store, and tells it which count as delivered.
    fn take_in<S: RelayStore>(
        &mut self,
        now: Instant,
        place: usize,
        splicer: &mut Splicer,
        store: &mut S,
        turn: &mut RelayTurn,
    ) -> Result<(), S::Fault> {
        let (from, next) = (self.flows[place], self.sides[1 - place]);
        if matches!(self.sides[place], Side::Closed | Side::Cut(_)) {
            return Ok(());
        }
        let way = &mut self.ways[place];
        if matches!(next, Side::Unheard | Side::Cut(_)) {
            while let Some(len) = splicer.peek(from).map(<[u8]>::len) {
                splicer.consume(now, from, len);
            }
            return Ok(());
        }
        let mut moved = 0;
        while let Some(octets) = splicer.peek(from) {
            if moved >= TURN_BYTES {
                turn.more = true;
                break;
            }
            let room = store.room().min(octets.len());
            let taken = if room == 0 {
                0
            } else {
                store.append(&octets[..room])?
            };
            if taken == 0 {
                turn.lacks_room = true;
                break;
            }
            splicer.consume(now, from, taken);
            moved += taken;
        }
        let delivered = match self.acknowledge {
            Acknowledge::Custody => store.safe_end(),
            Acknowledge::Destination => way.next_has,
        };
        turn.has_unsafe |= store.safe_end() < store.end();
        if delivered > way.told {
            way.told = delivered;
            splicer.delivered(now, from, delivered);
        }
        Ok(())
    }

    /// Moves the octets of the store of the flow in `place` into the other flow, and the end behind them.
    fn feed<S: RelayStore>(
        &mut self,
        now: Instant,
        place: usize,
        splicer: &mut Splicer,
        store: &mut S,
    ) -> Result<(), S::Fault> {
        let to = self.flows[1 - place];
        if self.sides[1 - place] != Side::Alive {
            return Ok(());
        }
        // What the next gateway has must be here after a restart, too.
        let safe_end = store.safe_end();
        while let Some(from) = splicer.accepted_offset(to)
            && from < safe_end
        {
            let safe = usize::try_from(safe_end - from).unwrap_or(usize::MAX);
            let room = splicer.capacity(to).min(safe);
            if room == 0 {
                return Ok(());
            }
            let octets = store.read(from, room)?;
            if splicer.accept(now, to, octets) == 0 {
                return Ok(());
            }
        }
        if safe_end < store.end() {
            return Ok(());
        }
        let way = &mut self.ways[place];
        // An end that was written down came before the side was cut off.
        if store.is_finished() && !way.is_finished {
            way.is_finished = true;
            splicer.finish(now, to);
        }
        Ok(())
    }
}
