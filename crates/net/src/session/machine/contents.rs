//! The content of datagrams that opened: the session's own messages, and what goes on to the inner machine.

use super::Session;
use super::arrivals::Origin;
use super::departures::{CHECKSUM_PROBE, SIZE_PROBE, UNCHECKED_PROBE};
use crate::session::counters::DropReason;
use crate::session::event::SessionEvent;
use crate::session::fragments::Fragment;
use crate::session::path_acks::Asks;
use crate::session::path_mtu::FULL_ARRIVAL;
use crate::session::path_slot::PathSlot;
use crate::session::reports::Passage;
use crate::session::wire::{Message, Probe, RELAYED};
use fulmar_proto::liveness::Wants;
use fulmar_proto::machine::{Carried, Datagram, Ecn, PathId, TpduForm};
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::aerotp::short::{Content, Frame, FrameKind};

/// A datagram for the inner machine that waits until the application has heard of its sender's restart.
pub(super) struct Held {
    path: PathId,
    ecn: Ecn,
    form: TpduForm,
    octets: Vec<u8>,
}

impl Held {
    pub(super) fn hand_to(&self, inner: &mut impl Carried, now: Instant) {
        let datagram = Datagram {
            path: self.path,
            octets: &self.octets,
            ecn: self.ecn,
        };
        hand_to(inner, now, self.form, datagram);
    }
}

fn hand_to(inner: &mut impl Carried, now: Instant, form: TpduForm, datagram: Datagram<'_>) {
    match form {
        TpduForm::Long => inner.handle_datagram(now, datagram),
        TpduForm::Short => inner.handle_frames(now, datagram),
    }
}

/// The last of the types of frames that are the session's own, or kept for it.
const OWN_TYPES_LAST: u8 = 0x1F;

/// Whether reports count a datagram with this message.
const fn is_counted(message: &Message<'_>) -> bool {
    matches!(
        message,
        Message::Tpdu(_) | Message::Fragment(_) | Message::Heartbeat | Message::Relayed(_)
    )
}

/// Whether only wire 2 has such a message.
const fn is_of_two(message: &Message<'_>) -> bool {
    matches!(
        message,
        Message::PathAck(_)
            | Message::DamageReport(_)
            | Message::FurtherParity(_)
            | Message::ArrivalMap(_)
            | Message::Meet(_)
            | Message::Met(_)
            | Message::Relayed(_)
    )
}

const fn wants(message: &Message<'_>) -> Wants {
    match message {
        Message::Tpdu(_) | Message::Fragment(_) | Message::Relayed(_) => Wants::Answer,
        _ => Wants::Nothing,
    }
}

/// A frame of the session's own.
fn own(frame: Frame<'_>) -> Option<Message<'_>> {
    let is_own = frame.kind() == Some(FrameKind::Session);
    is_own.then(|| Message::of(frame.code(), frame.fields()))?
}

/// The way in which a frame for the inner machine wants the sender to hear that it arrived.
const fn asks(frame: &Frame<'_>) -> Asks {
    match frame.kind() {
        Some(FrameKind::Mack | FrameKind::Nack | FrameKind::UnknownName) => Asks::Rarely,
        _ => Asks::Often,
    }
}

/// The parts of content in wire 2.
struct Parts {
    /// Whether there is a frame for the inner machine, which judges those of its types that it does not know.
    for_machine: bool,
    /// Whether there is any with a meaning, here or there.
    is_any_known: bool,
    /// Whether reports count the datagram.
    is_counted: bool,
    wants: Wants,
    asks: Asks,
    /// Frames of the session's types without a meaning, and what is cut off.
    unknown: u64,
}

impl Parts {
    fn of(content: &[u8]) -> Self {
        let mut parts = Self {
            for_machine: false,
            is_any_known: false,
            is_counted: false,
            wants: Wants::Nothing,
            asks: Asks::Nothing,
            unknown: 0,
        };
        for frame in Content::of(content) {
            let message = match frame {
                Ok(frame) if frame.kind() == Some(FrameKind::Padding) => {
                    parts.is_any_known = true;
                    continue;
                }
                // The inner machine meets the end of its frames, too, and counts it.
                Err(_) if parts.for_machine => break,
                Ok(frame) if !(1..=OWN_TYPES_LAST).contains(&frame.code()) => {
                    parts.for_machine = true;
                    parts.asks = parts.asks.max(asks(&frame));
                    Some(Message::Tpdu(frame.fields()))
                }
                Ok(frame) => own(frame),
                Err(_) => None,
            };
            let Some(message) = message else {
                parts.unknown += 1;
                continue;
            };
            parts.is_any_known = true;
            parts.is_counted |= is_counted(&message);
            if matches!(message, Message::Fragment(_)) {
                parts.asks = Asks::Often;
            }
            if wants(&message) == Wants::Answer {
                parts.wants = Wants::Answer;
            }
        }
        parts
    }
}

impl<M: Carried> Session<M> {
    /// Takes content in wire 1: one message.
    pub(super) fn take_message(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        index: usize,
        plain: &[u8],
    ) -> Result<(), DropReason> {
        let message = Message::read(plain).filter(|message| !is_of_two(message));
        let message = message.ok_or(DropReason::Unknown)?;
        self.on_content(
            now,
            (index, origin.place),
            wants(&message),
            is_counted(&message),
        );
        self.take_own(now, origin, index, TpduForm::Long, message);
        Ok(())
    }

    /// Takes content in wire 2: frames.
    pub(super) fn take_frames(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        index: usize,
        plain: &[u8],
    ) -> Result<(), DropReason> {
        let parts = Parts::of(plain);
        if !parts.is_any_known {
            return Err(DropReason::Unknown);
        }
        self.counters.drop_frames(parts.unknown);
        self.on_content(now, (index, origin.place), parts.wants, parts.is_counted);
        if let Some(state) = self.peers.get_mut(index) {
            let place = origin.place;
            if let Some(acks) = place.and_then(|place| state.acks_in(place)) {
                acks.on_asked(now, parts.asks);
            }
            state.damage.on_asked(now, parts.asks);
            if state.maps.are_agreed()
                && place == Some(PathSlot::FIRST)
                && let Some(keys) = state.keys.current(now)
            {
                state.maps.on_asked(now, parts.asks, keys.arrived());
            }
        }
        if let Some(place) = origin.place {
            self.send_path_ack(now, (index, place));
        }
        if parts.for_machine {
            self.hand_inwards(now, (index, origin), plain, TpduForm::Short);
        }
        let (mut is_probed, mut is_relayed) = (false, false);
        for message in Content::of(plain).flatten().filter_map(own) {
            // One question of a datagram is answered, and one datagram in it carried on, so that what leaves is no larger.
            match message {
                Message::Probe(_) if core::mem::replace(&mut is_probed, true) => {}
                Message::Relayed(_) if core::mem::replace(&mut is_relayed, true) => {
                    self.counters.unrelayed += 1;
                }
                _ => self.take_own(now, origin, index, TpduForm::Short, message),
            }
        }
        Ok(())
    }

    /// Notes that content with a meaning came from a peer.
    fn on_content(
        &mut self,
        now: Instant,
        (index, place): (usize, Option<PathSlot>),
        wants: Wants,
        is_counted: bool,
    ) {
        if let Some(place) = place {
            self.on_heard(now, (index, place), wants);
        }
        let counting = self.peers.get_mut(index).filter(|_| is_counted);
        if let Some(state) = counting {
            state.reports.on_received(now);
        }
    }

    /// Takes one message; what a fragment completes is in `form`.
    fn take_own(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        index: usize,
        form: TpduForm,
        message: Message<'_>,
    ) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        match message {
            Message::Tpdu(octets) => self.hand_inwards(now, (index, origin), octets, form),
            Message::Fragment(piece) => self.take_piece(now, (index, origin), form, piece),
            // It answers what came in this place.
            Message::Heartbeat => {
                if let Some(place) = origin.place {
                    self.on_path_proved(now, (index, place));
                }
            }
            Message::PathAck(ack) => {
                let place = ack.slot;
                let Some(acks) = state.acks_in(place) else {
                    return;
                };
                if let Some(ack) = acks.read(&ack) {
                    let is_news = acks.note_told(ack.newest);
                    let path = state.index.inner_path_in(place);
                    if is_news {
                        self.on_path_proved(now, (index, place));
                    }
                    self.inner.on_path_ack(now, path, ack);
                }
            }
            Message::ArrivalMap(map) => {
                let path = state.index.inner_path();
                let is_ours = map.slot == PathSlot::FIRST && state.path_acks.ways().mapped;
                let keys = state.keys.sealed_under(map.keys).filter(|_| is_ours);
                let map = keys.and_then(|(numbered, is_in_use)| {
                    let is_final = state.maps.is_final(map.keys, is_in_use);
                    map.numbered(numbered, is_final)
                });
                if let Some(map) = map {
                    self.inner.on_arrival_map(now, path, map);
                }
            }
            Message::Meet(meet) => self.take_wish(now, index, meet),
            Message::Met(met) => self.take_met(now, index, &met),
            Message::Relayed(relayed) => self.take_relayed(now, (index, origin), relayed),
            Message::DamageReport(report) => self.take_damage_report(now, index, &report),
            Message::FurtherParity(further) => self.take_further(now, origin, index, further),
            // The reply goes to where the question came from, which may be a path that is being tried.
            Message::Probe(probe) => match origin.place {
                Some(PathSlot::FIRST) => {
                    let reply = Message::ProbeReply(Probe { cost: 0, ..probe });
                    self.send_message_to(now, index, origin.path, reply, Wants::Nothing);
                }
                Some(place) => self.on_place_probed(now, (index, place), origin.path, probe),
                // What nobody answers is not used.
                None => {}
            },
            Message::ProbeReply(probe) => {
                if let Some(place) = origin.place {
                    self.on_probe_reply(now, (index, place), probe);
                }
            }
            Message::Close => {
                let peer = state.index;
                self.forget_keys(now, index);
                self.events.push_back(SessionEvent::Closed(peer));
            }
            Message::Report(report) => {
                let ours = Passage {
                    sent: report.heard,
                    arrived: report.arrived,
                };
                state.reports.on_report(report.sent, ours);
                let passed = state.reports.outward();
                let choice = state.checksum.as_mut();
                let decision = choice.and_then(|choice| choice.on_passage(now, passed));
                let (peer, octets) = (state.index, report.rest.to_vec());
                self.events
                    .push_back(SessionEvent::Reported { peer, octets });
                self.take_decision(index, decision);
            }
        }
    }

    /// Takes a piece of what was too long for the path. What it completes is in `form`.
    fn take_piece(
        &mut self,
        now: Instant,
        (index, origin): (usize, Origin<'_>),
        form: TpduForm,
        piece: Fragment<'_>,
    ) {
        let state = self.peers.get_mut(index);
        let Some(octets) = state.and_then(|state| state.reassembly.take(piece)) else {
            return;
        };
        self.counters.reassembled += 1;
        match (form, octets.first()) {
            (TpduForm::Short, Some(&RELAYED)) => {
                if let Some(Message::Relayed(relayed)) = Message::read(&octets) {
                    self.take_relayed(now, (index, origin), relayed);
                }
            }
            _ => self.hand_inwards(now, (index, origin), &octets, form),
        }
    }

    /// Gives the inner machine the octets that a peer sent: at once, or after the news that the peer has restarted,
    /// which the same datagram may have brought. Drivers drain after each datagram, so at most one waits.
    fn hand_inwards(
        &mut self,
        now: Instant,
        (index, origin): (usize, Origin<'_>),
        octets: &[u8],
        form: TpduForm,
    ) {
        let ecn = origin.ecn;
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        if octets.len() >= FULL_ARRIVAL {
            state.mtu.on_full_arrived(now);
        }
        let (peer, path) = (
            state.index,
            state.inner_path_of(origin.place.unwrap_or_default()),
        );
        self.counters.received += 1;
        let is_news = |event: &SessionEvent<M::Event>| matches!(event, SessionEvent::PeerRestarted(of) if *of == peer);
        if self.events.iter().any(is_news) {
            let octets = octets.to_vec();
            self.after_restart.push_back(Held {
                path,
                ecn,
                form,
                octets,
            });
        } else {
            hand_to(&mut self.inner, now, form, Datagram { path, octets, ecn });
        }
    }

    fn on_probe_reply(&mut self, now: Instant, (index, place): (usize, PathSlot), probe: Probe) {
        self.on_path_proved(now, (index, place));
        let micros = now.as_wrapping_micros().wrapping_sub(probe.sent_micros);
        if place != PathSlot::FIRST {
            // Half the range is the future: nothing that we sent.
            if micros < 1 << 31 {
                let sample = Duration::from_micros(u64::from(micros));
                self.on_place_answered(now, (index, place), (probe.id, sample));
            }
            return;
        }
        self.follow(now, index, probe.id);
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        if micros < 1 << 31 {
            let sample = Duration::from_micros(u64::from(micros));
            state.liveness.on_rtt_sample(sample);
            state.round_trips.on_sample(sample);
            let (path, round_trip) = (state.index.inner_path(), state.liveness.rtt());
            self.back_paths(index);
            if let Some(round_trip) = round_trip {
                self.inner.on_round_trip(now, path, round_trip);
            }
        }
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        if probe.id & SIZE_PROBE != 0 {
            let changed = state.mtu.on_answer(now, probe.id & !SIZE_PROBE);
            if changed.is_some() {
                self.say_sizes(index);
            }
        } else if probe.id & CHECKSUM_PROBE != 0
            && let Some(choice) = &mut state.checksum
        {
            let decision = choice.on_answer(now, probe.id & UNCHECKED_PROBE != 0);
            self.take_decision(index, decision);
        }
    }
}
