//! One flow's local end at one gateway: the host behind it, and the gateway's custody for it.
//!
//! It does what a gateway's sockets do: it reads from its host into custody as far as there is room, offers
//! the splicer the octets in custody, and delivers octets to the host at the pace at which the host reads.

use fulmar_proto::machine::PathId;
use fulmar_proto::splice::{
    Destination, FlowClass, FlowEvent, FlowId, FlowKind, ResetCode, Restored, Retention, Role,
    Splicer,
};
use fulmar_proto::units::Instant;
use std::net::SocketAddr;

/// The bit of a flow's class that says that the opener's end survives its gateway's restart.
pub(super) const OPENER_DURABLE: u8 = 1;
/// The bit that says the same of the acceptor's end.
pub(super) const ACCEPTOR_DURABLE: u8 = 2;

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each one bit of the state"
)]
pub(super) struct LocalEnd {
    pub(super) role: Role,
    pub(super) peer: PathId,
    pub(super) kind: FlowKind,
    pub(super) class: FlowClass,
    pub(super) destination: Destination,
    pub(super) bound: Option<SocketAddr>,
    /// Whether socket and custody survive the gateway's restart.
    pub(super) durable: bool,
    /// Everything that the host sends.
    pub(super) says: Vec<u8>,
    /// Whether the host sends nothing after `says`.
    pub(super) finishes: bool,
    finished: bool,
    /// The octets that were read from the host and may have to be sent again; of flows that resume.
    custody: Retention,
    /// The largest amount that the splicer ever accepted.
    most: u64,
    /// The octets that the host has read.
    pub(super) received: Vec<u8>,
    /// The number of octets that the host reads at each turn; `None` for all.
    pub(super) appetite: Option<usize>,
    /// Whether the host reads without acknowledging.
    pub(super) withholds: bool,
    /// Whether the host's connection broke; what was read from it is carried on.
    pub(super) broke: bool,
    /// Whether the far host's connection is gone.
    unheard: bool,
    far_ended: bool,
    /// Messages, each with the time of its arrival at the host.
    pub(super) messages: Vec<(Instant, Vec<u8>)>,
    pub(super) last: Option<FlowEvent>,
    pub(super) resumptions: u64,
    /// Requests of its splicer that break the contract.
    pub(super) wrongs: Vec<String>,
}

/// The properties of which a flow's local end is made.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) role: Role,
    pub(super) peer: PathId,
    pub(super) kind: FlowKind,
    pub(super) class: FlowClass,
    pub(super) destination: Destination,
}

impl LocalEnd {
    pub(super) fn new(asked: Asked, custody_bytes: u64) -> Self {
        let durable = match asked.role {
            Role::Opener => OPENER_DURABLE,
            Role::Acceptor => ACCEPTOR_DURABLE,
        };
        Self {
            role: asked.role,
            peer: asked.peer,
            kind: asked.kind,
            class: asked.class,
            destination: asked.destination,
            bound: None,
            durable: asked.class.id.0 & durable != 0,
            says: Vec::new(),
            finishes: false,
            finished: false,
            custody: Retention::new(0, custody_bytes),
            most: 0,
            received: Vec::new(),
            appetite: None,
            withholds: false,
            broke: false,
            unheard: false,
            far_ended: false,
            messages: Vec::new(),
            last: None,
            resumptions: 0,
            wrongs: Vec::new(),
        }
    }

    /// Moves octets both ways between the host and the splicer.
    pub(super) fn pump(&mut self, now: Instant, id: FlowId, splicer: &mut Splicer) {
        if self.last.is_some() {
            return;
        }
        if self.broke {
            self.carry_on(now, id, splicer);
            return;
        }
        self.read(now, id, splicer);
        while let Some(message) = splicer.poll_datagram(now, id) {
            self.messages.push((now, message));
        }
        if self.kind == FlowKind::Stream {
            self.write(now, id, splicer);
        }
        if self.unheard
            && self.finishes
            && self.far_ended
            && !self.withholds
            && splicer.peek(id).is_none()
        {
            // Both ends were said, and one of them to nobody.
            self.reset(now, id, splicer);
        }
    }

    /// Goes on without the host: the octets in custody are still sent, those that arrive are dropped.
    fn carry_on(&mut self, now: Instant, id: FlowId, splicer: &mut Splicer) {
        self.write(now, id, splicer);
        if self.is_drained() && !self.finished {
            self.reset(now, id, splicer);
            return;
        }
        splicer.stop(now, id);
        while let Some(len) = splicer.peek(id).map(<[u8]>::len) {
            splicer.consume(now, id, len);
        }
    }

    fn reset(&mut self, now: Instant, id: FlowId, splicer: &mut Splicer) {
        let code = ResetCode::Reset;
        splicer.reset(now, id, code);
        self.last = Some(FlowEvent::Reset { flow: id, code });
    }

    /// Whether the far host has acknowledged all that was read from this one.
    pub(super) fn is_drained(&self) -> bool {
        self.custody.from() == self.custody.end()
    }

    /// The number of octets read from the host.
    pub(super) fn kept_until(&self) -> u64 {
        self.custody.end()
    }

    fn read(&mut self, now: Instant, id: FlowId, splicer: &mut Splicer) {
        let mut left = self.appetite.unwrap_or(usize::MAX);
        while left > 0 {
            let Some(octets) = splicer.peek(id) else {
                break;
            };
            let len = octets.len().min(left);
            self.received.extend_from_slice(&octets[..len]);
            splicer.consume(now, id, len);
            left -= len;
        }
        if !self.withholds {
            splicer.delivered(now, id, self.received.len() as u64);
        }
    }

    fn write(&mut self, now: Instant, id: FlowId, splicer: &mut Splicer) {
        loop {
            let kept = usize::try_from(self.custody.end()).unwrap_or(usize::MAX);
            let new = self.says.get(kept..).unwrap_or_default();
            if self.class.resume && !self.broke {
                self.custody.push(new);
            }
            if self.unheard {
                break;
            }
            let Some(from) = splicer.accepted_offset(id) else {
                return;
            };
            let octets = if self.class.resume {
                self.custody.read(from)
            } else {
                usize::try_from(from)
                    .ok()
                    .and_then(|from| self.says.get(from..))
            };
            let Some(octets) = octets else {
                self.wrongs
                    .push(format!("octet {from} is asked for and gone"));
                return;
            };
            let offered = octets.len().min(splicer.capacity(id));
            let taken = splicer.accept(now, id, &octets[..offered]);
            self.most = self.most.max(from + taken as u64);
            if taken == 0 {
                break;
            }
        }
        let said = self.most == self.says.len() as u64;
        if self.finishes && said && !self.finished && !self.broke && !self.unheard {
            self.finished = true;
            splicer.finish(now, id);
        }
    }

    /// Notes that the far host has acknowledged everything up to `offset`.
    pub(super) fn on_delivered(&mut self, offset: u64) {
        if offset > self.most {
            self.wrongs
                .push(format!("{offset} octets of {} delivered", self.most));
        }
        self.custody.release(offset);
    }

    /// Restarts this end with its gateway; `false` if it dies with it.
    pub(super) fn restart(&mut self, now: Instant, id: FlowId, splicer: &mut Splicer) -> bool {
        if !(self.class.resume && self.durable) {
            return false;
        }
        let restored = Restored {
            flow: id,
            peer: self.peer,
            role: self.role,
            destination: self.destination.clone(),
            class: self.class,
            bound: self.bound,
            received: self.received.len() as u64,
            kept_from: self.custody.from(),
            accepted: self.most,
        };
        if let Err(error) = splicer.restore(now, restored) {
            self.wrongs.push(format!("not restored: {error}"));
        }
        if self.finished {
            splicer.finish(now, id);
        }
        true
    }
}

impl LocalEnd {
    /// Handles the splicer's events of the flow, except the request for it.
    pub(super) fn on_event(&mut self, event: FlowEvent) {
        if let Some(last) = &self.last {
            self.wrongs.push(format!("{event:?} after {last:?}"));
            return;
        }
        match event {
            FlowEvent::Connected { bound, .. } => self.bound = Some(bound),
            FlowEvent::Delivered { offset, .. } => self.on_delivered(offset),
            FlowEvent::Resume { .. } => self.resumptions += 1,
            FlowEvent::Refused { .. } | FlowEvent::Reset { .. } | FlowEvent::Closed(_) => {
                self.last = Some(event);
            }
            FlowEvent::PeerFinished(_) => self.far_ended = true,
            FlowEvent::Stopped(_) => self.unheard = true,
            FlowEvent::Requested { .. } | FlowEvent::Readable(_) | FlowEvent::Writable(_) => {}
        }
    }
}
