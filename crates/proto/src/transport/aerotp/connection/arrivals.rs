//! Arriving TPDUs: each kind goes to its part.

use super::super::event::{CloseReason, Event, State};
use super::super::receiver::Arrival;
use super::timers::ConnectionTimer;
use super::{Connection, RateSign};
use crate::damage::{SeenErrors, corrected_for_certain};
use crate::machine::TpduForm;
use crate::trace::TraceRecord;
use crate::transport::parts::DeliveryReport;
use crate::units::Instant;
use crate::wire::TpduSeq;
use crate::wire::aerotp::{Acks, BodyCheck, ChannelWord, Flags, Mack, Nack, Tpdu, TpduKind};

impl Connection {
    /// Notes that the listener accepted the connection: the first answer says so.
    pub(in super::super) const fn on_accepted(&mut self) {
        self.receiver.answer_setup();
    }

    /// Takes a TPDU of this connection.
    pub(in super::super) fn on_tpdu(
        &mut self,
        now: Instant,
        tpdu: &Tpdu<'_>,
        corrected_symbols: u32,
        marked: bool,
    ) -> RateSign {
        self.last_received = now;
        self.rearm_patience();
        if tpdu.is_short() {
            // The peer cuts what it echoes.
            self.sender.cut_stamps();
        }
        if !tpdu.fec_words.is_none() {
            self.receiver.note_strength(tpdu.fec_words);
        }
        if let Some(errors) = wrong_bits(tpdu, corrected_symbols) {
            let octets = tpdu.covered.len() + tpdu.parity.len();
            self.receiver.note_errors(now, octets, errors);
        }
        let sign = self.route(now, tpdu, corrected_symbols, marked);
        if !self.heard && self.why_closed.is_none() {
            self.heard = true;
            if self.form == TpduForm::Short {
                self.repack();
                self.use_windows(self.windows);
            }
            if self.state == State::AsynSent {
                self.enter(now, State::Established);
            }
            self.setup_due = false;
            self.timers.stop(ConnectionTimer::Setup);
            self.events.push_back(Event::Connected(self.id));
        }
        sign
    }

    /// Notes that the peer is to hear how its answers arrive, of which the newest left when its clock was `clock`.
    pub(in super::super) const fn tell_of_answers(&mut self, now: Instant, clock: u32) {
        self.receiver.note_stamp(now, clock, false);
        self.receiver.want_report();
    }

    /// Notes that the peer is to hear what arrived on the path with a TPDU of this kind, if it names a time of the
    /// peer's.
    pub(in super::super) const fn on_report_owed(&mut self, kind: TpduKind) {
        if matches!(
            kind,
            TpduKind::Data { .. } | TpduKind::Repair | TpduKind::Asyn
        ) {
            self.receiver.want_report();
        }
    }

    fn route(
        &mut self,
        now: Instant,
        tpdu: &Tpdu<'_>,
        corrected_symbols: u32,
        marked: bool,
    ) -> RateSign {
        let arrival = Arrival {
            seq: tpdu.header.seq,
            stamp: tpdu.header.timestamp,
            marked,
            asks: tpdu.header.flags.has(Flags::PSH),
            is_withdrawn: tpdu.header.flags.has(Flags::URG),
            corrected_symbols,
            body: tpdu.body,
        };
        let damaged = tpdu.check == BodyCheck::Damaged;
        match tpdu.kind() {
            TpduKind::Data { asyn } => {
                if asyn && self.why_closed.is_none() {
                    self.receiver.answer_setup();
                }
                if self.why_closed.is_none() && !damaged && self.receiver.cannot_miss(&arrival) {
                    self.refuse_withdrawal(now);
                } else if damaged {
                    self.receiver
                        .on_damaged(now, &arrival, &mut self.counters, &mut self.trace);
                } else {
                    self.receiver
                        .on_data(now, &arrival, &mut self.counters, &mut self.trace);
                }
            }
            TpduKind::Repair => {
                if let Some(block) = tpdu.block.filter(|_| !damaged && self.rules.blocks) {
                    let (counters, trace) = (&mut self.counters, &mut self.trace);
                    self.receiver
                        .on_repair(now, block, &arrival, counters, trace);
                }
            }
            TpduKind::Window => {
                if let Some(window) = tpdu.window.filter(|_| self.rules.complete) {
                    let (counters, trace) = (&mut self.counters, &mut self.trace);
                    let symbol = (arrival.seq, tpdu.body);
                    self.receiver
                        .on_window(now, window, symbol, counters, trace);
                }
            }
            TpduKind::Asyn => {
                self.receiver.note_stamp(now, arrival.stamp, marked);
                self.receiver.answer_setup();
            }
            // To act on a wrong number, or on a reset that is none, could lose data for good.
            TpduKind::Afin | TpduKind::Reset if damaged => self.counters.nonsense += 1,
            TpduKind::Afin if self.why_closed.is_none() && self.receiver.is_beyond(arrival.seq) => {
                self.end_forgotten(now);
            }
            TpduKind::Afin => {
                self.receiver.note_stamp(now, arrival.stamp, marked);
                self.receiver.on_end(now, arrival.seq, &mut self.counters);
                if self.state == State::Established {
                    self.enter(now, State::AfinReceived);
                }
            }
            TpduKind::Reset => {
                self.end(now, self.unless_finished(CloseReason::Reset));
                self.gone = true;
            }
            // The endpoint handles these.
            TpduKind::Challenge | TpduKind::Response => {}
            TpduKind::Mack { afin, .. } => return self.on_mack(now, tpdu, afin),
            TpduKind::Nack => self.on_nack(now, tpdu),
        }
        RateSign::default()
    }

    fn on_nack(&mut self, now: Instant, tpdu: &Tpdu<'_>) {
        let Ok(mut nack) = Nack::of(tpdu) else {
            self.counters.nonsense += 1;
            return;
        };
        nack.echo = self.echoed(now, nack.echo);
        if self.why_closed.is_none() && self.sender.is_forgotten_in(now, &nack) {
            self.end_forgotten(now);
        } else {
            self.sender
                .on_nack(now, &nack, &mut self.counters, &mut self.trace);
        }
    }

    /// Takes the word of the layer below that a TPDU, as it left at a time, arrived damaged beyond repair.
    pub(in super::super) fn on_damaged(&mut self, now: Instant, left: (TpduSeq, Instant)) {
        if self.why_closed.is_none() {
            let (counters, trace) = (&mut self.counters, &mut self.trace);
            self.sender.on_damaged(now, left, counters, trace);
        }
    }

    /// Takes the word of the layer below that one of the peer's paths is down: what is under way there is lost.
    pub(in super::super) fn on_path_down(&mut self, now: Instant, place: u8) {
        if self.why_closed.is_none() {
            let (counters, trace) = (&mut self.counters, &mut self.trace);
            self.sender.on_path_down(now, place, counters, trace);
        }
    }

    /// Goes on by the other paths of the peer, if an outage of one had stopped it.
    pub(in super::super) fn go_on_by_others(&mut self, now: Instant) {
        if self.why_closed.is_none() {
            self.sender.go_on_by_others(now, &mut self.trace);
        }
    }

    /// Takes the word of the layer below that a TPDU, as it left at a time, arrived damaged and is being mended.
    pub(in super::super) fn on_mending(&mut self, now: Instant, left: (TpduSeq, Instant)) {
        if self.why_closed.is_none() {
            let (counters, trace) = (&mut self.counters, &mut self.trace);
            self.sender.on_mending(now, left, counters, trace);
        }
    }

    /// Takes the peer's estimate.
    fn adapt(&mut self, now: Instant, word: ChannelWord) {
        let Some(adaptation) = &mut self.adaptation else {
            return;
        };
        let rtt = self.sender.rtt().smoothed().unwrap_or_default();
        let Some(shape) = adaptation.on_word(now, word, rtt) else {
            return;
        };
        let deferred_over = adaptation.longest_hopeful(self.sender.payload_bytes());
        self.sender.cut_into(shape.payload, deferred_over);
        self.counters.adaptations += 1;
        let record = TraceRecord::Adapted {
            payload: u32::try_from(shape.payload).unwrap_or(u32::MAX),
            words: shape.fec_words.words(),
            rate_octaves: adaptation.rate_quarter_octaves().unwrap_or_default() / 4,
        };
        self.trace.note(now, record);
    }

    fn on_mack(&mut self, now: Instant, tpdu: &Tpdu<'_>, afin: bool) -> RateSign {
        let Ok(mut mack) = Mack::of(tpdu) else {
            self.counters.nonsense += 1;
            return RateSign::default();
        };
        mack.echo = self.echoed(now, mack.echo);
        if self.why_closed.is_none() && self.sender.is_forgotten(now, &mack) {
            self.end_forgotten(now);
            return RateSign::default();
        }
        if !self
            .sender
            .on_mack(now, &mack, &mut self.counters, &mut self.trace)
        {
            self.counters.nonsense += 1;
            if self.initiator && self.why_closed.is_none() && !self.sender.has_confirmation() {
                // It confirms data that was never sent here: under these ports the peer still
                // remembers another connection, from before a restart of this side.
                self.end(now, CloseReason::Reset);
            }
            return RateSign::default();
        }
        if let Acks::Cumulative {
            channel: Some(word),
            ..
        } = mack.acks
        {
            self.adapt(now, word);
        }
        if afin && self.afin_attempts > 0 {
            self.afin_answered = true;
            self.afin_due = false;
            self.timers.stop(ConnectionTimer::Afin);
        }
        RateSign {
            marked: Some(mack.ecn.echoes()),
            report: delivery_report(&mack).map(|report| self.counting_the_echoed(now, report)),
        }
    }
}

/// The number of wrong bits in a TPDU, as far as its check and its parity tell.
fn wrong_bits(tpdu: &Tpdu<'_>, corrected_symbols: u32) -> Option<SeenErrors> {
    match tpdu.check {
        BodyCheck::Intact => Some(SeenErrors::Counted(corrected_symbols)),
        BodyCheck::Damaged => {
            let corrected =
                corrected_for_certain(tpdu.covered.len() + tpdu.parity.len(), tpdu.fec_words);
            let least = u32::try_from(corrected).unwrap_or(u32::MAX);
            Some(SeenErrors::AtLeast(least.saturating_add(1)))
        }
        BodyCheck::Unchecked => None,
    }
}

/// An acknowledgement's report on the path, if anything arrived there whose delay it tells.
fn delivery_report(mack: &Mack<'_>) -> Option<DeliveryReport> {
    let Acks::Cumulative {
        receiver,
        report: Some(report),
        ..
    } = &mack.acks
    else {
        return None;
    };
    Some(DeliveryReport {
        echo: mack.echo,
        hold: receiver.hold.to_duration()?,
        arrived: report.arrived,
        clock: report.clock,
    })
}
