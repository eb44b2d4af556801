//! One end of a hop: routes frames to lanes, and decides which frame is sent next.
//!
//! Control goes before retransmissions, and these before new packets: the slides call this the
//! control channel of high priority. What lanes with precedence have to send goes before that of the others, and among these
//! the lane of the higher precedence comes first.

use super::collector::{Collector, Rebuilt};
use super::config::{SlacpConfig, Timing};
use super::receiver::{LaneReceiver, Outcome, Released, Way};
use super::retransmissions::{Outgoing, Retransmissions};
use super::sender::LaneSender;
use crate::link::{FrameClass, FrameTransmit, LinkCounters, LinkMachine, LinkPacket, Medium};
use crate::wire::link::slacp::{
    self, Ack, BlockPlace, FrameSeq, Incarnation, LANES, Lane, LaneSet, SlacpFrame,
};
use crate::wire::link::{Challenge, FrameReject};
use fulmar_proto::machine::{Deadline, Priority, TransmitKind};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Instant};
use std::collections::VecDeque;

/// The longest packet: number and packet together are a symbol, whose length has 16 bits.
const PACKET_MAX: usize = 65_533;

#[derive(Clone, Debug)]
struct Waiting {
    octets: Vec<u8>,
    lane: Lane,
    kind: TransmitKind,
    priority: Priority,
}

/// The state of this end's introduction to the peer.
#[derive(Clone, Debug)]
struct Introduction {
    me: Incarnation,
    /// Whether a hello is sent before the next frame.
    due: bool,
    /// Whether it is sent even if there is no other frame.
    asked: bool,
    last: Option<Instant>,
    /// The challenge that the peer wants answered in it.
    answer: Challenge,
}

/// One end of a SLACP hop.
#[derive(Clone, Debug)]
pub struct Slacp {
    config: SlacpConfig,
    timing: Timing,
    introduction: Introduction,
    peer: Incarnation,
    /// The challenge that a hello of another life has to answer; it changes when one did.
    challenge: Challenge,
    /// Whether a challenge is to be sent.
    challenge_due: bool,
    pub(super) senders: Vec<LaneSender>,
    pub(super) receivers: Vec<LaneReceiver>,
    collectors: Vec<Collector>,
    pub(super) retransmissions: Retransmissions,
    /// Packets that were not sent yet: one, and one more for each lane of higher precedence that overtook it.
    waiting: Vec<Waiting>,
    /// The time to answer a frame that failed its check: it may be of a life that is not known
    /// here.
    doubt: Option<Instant>,
    inbox: VecDeque<Vec<u8>>,
    counters: LinkCounters,
}

impl Slacp {
    /// One end of a hop over `medium`; its incarnation is drawn from `rng`.
    pub fn new(config: SlacpConfig, medium: Medium, rng: &mut Rng) -> Self {
        let me = u32::try_from(rng.next_u64() >> 32).unwrap_or(u32::MAX);
        Self {
            config,
            timing: Timing::new(&config, medium),
            introduction: Introduction {
                me: Incarnation(me.max(1)),
                due: true,
                asked: false,
                last: None,
                answer: Challenge::NONE,
            },
            peer: Incarnation::UNKNOWN,
            challenge: Challenge::NONE.after(me),
            challenge_due: false,
            senders: Lane::all()
                .map(|lane| LaneSender::new(settings(&config, lane)))
                .collect(),
            receivers: Lane::all()
                .map(|lane| LaneReceiver::new(settings(&config, lane), FrameSeq::default()))
                .collect(),
            collectors: vec![Collector::default(); LANES],
            retransmissions: Retransmissions::new(config.redundancy),
            waiting: Vec::new(),
            doubt: None,
            inbox: VecDeque::new(),
            counters: LinkCounters::default(),
        }
    }

    fn lane_of(&self, packet: &LinkPacket<'_>) -> Lane {
        let urgent = self.config.urgent_lanes();
        let fits = urgent.filter(|(_, least, _)| packet.priority >= *least);
        if let Some((lane, ..)) = fits.max_by_key(|(_, least, _)| *least) {
            return Lane::new(lane);
        }
        let lanes = u32::from(self.config.lanes.max(1));
        Lane::new(u8::try_from(packet.flow.0 % lanes).unwrap_or_default())
    }

    /// The least precedence of a lane's packets.
    fn precedence(&self, lane: Lane) -> Priority {
        let mut urgent = self.config.urgent_lanes();
        let found = urgent.find(|(number, ..)| Lane::new(*number) == lane);
        found.map_or(Priority(0), |(_, least, _)| least)
    }

    /// The highest precedence among packets that were not sent yet, if there are any.
    fn waiting_precedence(&self) -> Option<Priority> {
        let last = self.waiting.last();
        last.map(|waiting| self.precedence(waiting.lane))
    }

    fn settle(&mut self, outcome: Outcome) {
        self.counters.skipped += outcome.skipped;
        self.counters.duplicates += u64::from(outcome.duplicate);
        for Released { packet, way } in outcome.released {
            match way {
                Way::First => {}
                Way::Again => self.counters.recovered_by_arq += 1,
                Way::Rebuilt => self.counters.recovered_by_parity += 1,
            }
            self.inbox.push_back(packet);
        }
    }

    fn accept(&mut self, now: Instant, lane: Lane, seq: FrameSeq, packet: Vec<u8>, way: Way) {
        let released = Released { packet, way };
        let receiver = &mut self.receivers[lane.index()];
        let outcome = receiver.accept(now, seq, released, &self.timing);
        self.settle(outcome);
    }

    fn accept_rebuilt(&mut self, now: Instant, lane: Lane, rebuilt: Vec<Rebuilt>) {
        for Rebuilt { seq, packet } in rebuilt {
            self.accept(now, lane, seq, packet, Way::Rebuilt);
        }
    }

    /// Takes a hello of a life that is not the known one. It may have been held up since that life
    /// was over; only a hello that answers the present challenge is trusted.
    fn hello(
        &mut self,
        now: Instant,
        (incarnation, answer): (Incarnation, Challenge),
        under_way: LaneSet,
        starts: [FrameSeq; LANES],
    ) {
        if incarnation == self.peer {
            // The new life may not have understood what this end acknowledged before.
            for (lane, receiver) in Lane::all().zip(&mut self.receivers) {
                receiver.ack_due |= under_way.contains(lane);
            }
            return;
        }
        if self.peer != Incarnation::UNKNOWN {
            if answer != self.challenge {
                self.challenge_due = true;
                return;
            }
            self.challenge = self.challenge.after(self.introduction.me.0);
            // A new life knows nobody.
            self.introduction.due = true;
            self.introduction.asked = true;
        }
        self.peer = incarnation;
        for (lane, start) in Lane::all().zip(starts) {
            let outcome = self.receivers[lane.index()].give_all();
            self.settle(outcome);
            let mut receiver = LaneReceiver::new(settings(&self.config, lane), start);
            if under_way.contains(lane) {
                // The new life did not understand frames that came before this hello.
                receiver.acknowledge_by(now, &self.timing);
                receiver.ack_due = true;
            }
            self.receivers[lane.index()] = receiver;
            self.collectors[lane.index()] = Collector::default();
        }
    }

    fn acknowledged(&mut self, now: Instant, lane: Lane, ack: &Ack<'_>) {
        if ack.peer != self.introduction.me {
            // The peer has not heard of this life, or has forgotten it. When it has heard of it,
            // packets under way are asked for again, as far as they are still worth sending.
            self.introduce(now);
            return;
        }
        let room = self.retransmissions.room();
        let sender = &mut self.senders[lane.index()];
        let Some(answer) = sender.acknowledge(now, ack, &self.timing, room) else {
            self.counters.unexpected += 1;
            return;
        };
        self.counters.given_up += answer.given_up;
        let fec = sender.settings().fec;
        let precedence = self.precedence(lane);
        self.retransmissions
            .extend((lane, precedence), &answer.wanted, fec);
    }

    /// Sends a hello, but not more often than an answer to it takes.
    fn introduce(&mut self, now: Instant) {
        let introduction = &mut self.introduction;
        let recent = |last: Instant| last + self.timing.round_trip > now;
        if !introduction.last.is_some_and(recent) {
            introduction.due = true;
            introduction.asked = true;
        }
    }

    /// Answers a challenge, each one once a round trip.
    fn challenged(&mut self, now: Instant, challenge: Challenge) {
        if core::mem::replace(&mut self.introduction.answer, challenge) == challenge {
            self.introduce(now);
        } else {
            self.introduction.due = true;
            self.introduction.asked = true;
        }
    }

    fn something_to_send(&self) -> bool {
        self.introduction.asked
            || self.challenge_due
            || !self.waiting.is_empty()
            || !self.retransmissions.is_empty()
            || self.receivers.iter().any(|receiver| receiver.ack_due)
            || self.senders.iter().any(|sender| sender.floor_due)
    }

    fn write_hello(&mut self, now: Instant, out: &mut Vec<u8>) {
        let mut starts = [FrameSeq::default(); LANES];
        let mut under_way = LaneSet::default();
        for ((lane, start), sender) in Lane::all().zip(&mut starts).zip(&self.senders) {
            *start = sender.floor();
            if sender.next() != sender.floor() {
                under_way = under_way.with(lane);
            }
        }
        self.introduction.due = false;
        self.introduction.asked = false;
        self.introduction.last = Some(now);
        let Introduction { me, answer, .. } = self.introduction;
        slacp::encode_hello(me, answer, under_way, starts, out);
    }

    /// Appends a challenge, an acknowledgement or a floor, if one is due.
    fn write_control(&mut self, out: &mut Vec<u8>) -> bool {
        let me = self.introduction.me;
        if core::mem::take(&mut self.challenge_due) {
            slacp::encode_challenge(self.challenge, out);
            return true;
        }
        for (lane, receiver) in Lane::all().zip(&mut self.receivers) {
            if core::mem::take(&mut receiver.ack_due) {
                let ends = (receiver.expected(), receiver.end());
                slacp::encode_ack(me, lane, self.peer, ends, receiver.missing(), out);
                return true;
            }
        }
        for (lane, sender) in Lane::all().zip(&mut self.senders) {
            if core::mem::take(&mut sender.floor_due) {
                slacp::encode_floor(me, lane, sender.floor(), out);
                return true;
            }
        }
        false
    }

    fn write_again(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameClass> {
        let me = self.introduction.me;
        match self.retransmissions.poll(now)? {
            Outgoing::Again {
                lane,
                seq,
                place,
                packet,
            } => {
                self.senders[lane.index()].sent_again(now, seq);
                slacp::encode_again(me, lane, seq, place, &packet, out);
                Some(FrameClass::Again)
            }
            Outgoing::Parity {
                lane,
                sources,
                place,
                symbol,
            } => {
                slacp::encode_parity(me, lane, sources, place, &symbol, out);
                Some(FrameClass::Parity)
            }
        }
    }

    fn again(&mut self, now: Instant, lane: Lane, seq: FrameSeq, place: BlockPlace, packet: &[u8]) {
        self.accept(now, lane, seq, packet.to_vec(), Way::Again);
        let rebuilt = self.collectors[lane.index()].again(place, seq, packet);
        self.accept_rebuilt(now, lane, rebuilt);
    }
}

fn settings(config: &SlacpConfig, lane: Lane) -> super::LaneSettings {
    let mut urgent = config.urgent_lanes();
    let found = urgent.find(|(number, ..)| Lane::new(*number) == lane);
    found.map_or(config.ordinary, |(.., settings)| settings)
}

impl LinkMachine for Slacp {
    fn ready(&self) -> bool {
        self.waiting.is_empty()
    }

    fn overtaken_by(&self) -> Option<Priority> {
        let again = self.retransmissions.precedence();
        let first = again.max(self.waiting_precedence())?;
        let above = self.config.urgent_lanes().map(|(_, least, _)| least);
        above.filter(|least| *least > first).min()
    }

    fn offer(&mut self, _now: Instant, packet: LinkPacket<'_>) {
        let octets = packet.octets;
        let lane = self.lane_of(&packet);
        let overtakes = self.waiting_precedence() < Some(self.precedence(lane));
        if !overtakes || octets.is_empty() || octets.len() > PACKET_MAX {
            self.counters.refused += 1;
            return;
        }
        self.counters.offered += 1;
        self.waiting.push(Waiting {
            octets: octets.to_vec(),
            lane,
            kind: packet.kind,
            priority: packet.priority,
        });
    }

    fn handle_frame(&mut self, now: Instant, octets: &[u8]) {
        match slacp::parse(octets, self.peer) {
            Ok(SlacpFrame::Data { lane, seq, packet }) => {
                self.accept(now, lane, seq, packet.to_vec(), Way::First);
            }
            Ok(SlacpFrame::Again {
                lane,
                seq,
                place,
                packet,
            }) => self.again(now, lane, seq, place, packet),
            Ok(SlacpFrame::Parity {
                lane,
                sources,
                place,
                symbol,
            }) => {
                let rebuilt = self.collectors[lane.index()].parity(place, sources, symbol);
                self.accept_rebuilt(now, lane, rebuilt);
            }
            Ok(SlacpFrame::Ack { lane, ack }) => self.acknowledged(now, lane, &ack),
            Ok(SlacpFrame::Floor { lane, floor }) => {
                let outcome = self.receivers[lane.index()].floor(floor);
                self.settle(outcome);
            }
            Ok(SlacpFrame::Hello {
                incarnation,
                answer,
                under_way,
                starts,
            }) => self.hello(now, (incarnation, answer), under_way, starts),
            Ok(SlacpFrame::Challenge { challenge }) => self.challenged(now, challenge),
            Err(reason) => {
                self.counters.reject(reason);
                if reason == FrameReject::Check {
                    let at = now + self.timing.ack_delay;
                    self.doubt.get_or_insert(at);
                }
            }
        }
    }

    fn handle_deadline(&mut self, now: Instant) {
        for index in 0..LANES {
            let outcome = self.receivers[index].handle_deadline(now, &self.timing);
            self.settle(outcome);
        }
        if self.doubt.is_some_and(|at| at <= now) {
            self.doubt = None;
            // This tells whom this end knows, so that a sender that is somebody else introduces itself.
            // It also tells who this end is, since such a sender may not know that either, and then
            // reads only a hello.
            self.receivers[0].ack_due = true;
            self.introduce(now);
        }
    }

    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameTransmit> {
        if !self.something_to_send() {
            return None;
        }
        let start = out.len();
        let mut kind = TransmitKind::Control;
        let mut priority = Priority(u8::MAX);
        let class = if self.introduction.due {
            self.write_hello(now, out);
            FrameClass::Control
        } else if self.write_control(out) {
            FrameClass::Control
        } else if self.waiting_precedence() <= self.retransmissions.precedence()
            && let Some(class) = self.write_again(now, out)
        {
            kind = match class {
                FrameClass::Parity => TransmitKind::Repair,
                _ => TransmitKind::Retransmission,
            };
            class
        } else {
            let waiting = self.waiting.pop()?;
            (kind, priority) = (waiting.kind, waiting.priority);
            let lane = waiting.lane;
            // The packet is framed before it is kept: its number is the lane's next one.
            let me = self.introduction.me;
            let sender = &mut self.senders[lane.index()];
            slacp::encode_data(me, lane, sender.next(), &waiting.octets, out);
            self.counters.given_up += sender.send(now, waiting.octets);
            FrameClass::Data
        };
        self.counters.frames.add(class, 1);
        Some(FrameTransmit {
            len: out.len() - start,
            class,
            kind,
            priority,
        })
    }

    fn poll_packet(&mut self, out: &mut Vec<u8>) -> Option<usize> {
        let packet = self.inbox.pop_front()?;
        out.extend_from_slice(&packet);
        self.counters.released += 1;
        Some(packet.len())
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let lanes = self.receivers.iter();
        lanes
            .filter_map(|receiver| receiver.deadline(&self.timing))
            .chain(self.doubt.map(|at| (at, "slacp doubt")))
            .min_by_key(|&(at, _)| at)
            .map(|(at, why)| Deadline { at, why })
    }

    fn held(&self) -> ByteCount {
        let waiting: usize = self.waiting.iter().map(|w| w.octets.len()).sum();
        let inbox: usize = self.inbox.iter().map(Vec::len).sum();
        let senders: usize = self.senders.iter().map(LaneSender::held_octets).sum();
        let receivers: usize = self.receivers.iter().map(LaneReceiver::held_octets).sum();
        let collectors: usize = self.collectors.iter().map(Collector::held_octets).sum();
        let again = self.retransmissions.held_octets();
        ByteCount::from_usize(waiting + inbox + senders + receivers + collectors + again)
    }

    fn counters(&self) -> &LinkCounters {
        &self.counters
    }
}
