//! The connection's next TPDU: control first, then the sender's data.

use super::super::event::{CloseReason, State};
use super::super::intake::append_parity;
use super::super::packing::Packing;
use super::super::sender::{PathTaken, Unit};
use super::Connection;
use super::timers::ConnectionTimer;
use crate::fec::packet::PacketCode;
use crate::machine::{TpduForm, TransmitKind};
use crate::trace::TraceRecord;
use crate::units::Instant;
use crate::wire::Port;
use crate::wire::TpduSeq;
use crate::wire::aerotp::{
    EcnField, FecStrength, Flags, Header, Outgoing, PathReport, encode, short,
};

impl Connection {
    /// Sends what follows on this path.
    pub(in super::super) fn leave_on(&mut self, path: PathTaken) {
        self.sender.leave_on(path);
    }

    /// The octets that leave before what is written next would, or `None` if they are bulk, of which there is always more.
    /// Repetitions go ahead of all.
    pub(in super::super) fn octets_ahead(&self) -> Option<u64> {
        self.sender.octets_ahead()
    }

    /// Whether little is under way, of a flow whose data are repaired as they leave.
    pub(in super::super) fn is_thin(&self) -> bool {
        self.sender.is_thin()
    }

    /// The path on which the TPDU that is to be repeated next, or mended, left before, if the flow is thin.
    pub(in super::super) fn repeats_on(&mut self) -> Option<u8> {
        self.sender.repeats_on()
    }

    pub(in super::super) fn wants_to_answer(&self) -> bool {
        self.reset_due
            || (self
                .why_closed
                .is_none_or(|why| why == CloseReason::Finished)
                && (self.receiver.wants_to_answer() || self.afin_due || self.wants_setup()))
    }

    /// Whether a pure ASYN is to be sent: the application has nothing to say yet.
    fn wants_setup(&self) -> bool {
        self.setup_due && !self.sender.wants_to_send()
    }

    pub(in super::super) fn wants_to_send(&self) -> bool {
        self.why_closed.is_none() && self.sender.wants_to_send()
    }

    /// Whether there is something worth sending while the link would otherwise be idle.
    pub(in super::super) fn wants_spare(&self) -> bool {
        self.why_closed.is_none() && self.sender.wants_spare()
    }

    fn header(&self, now: Instant, seq: TpduSeq, flags: Flags) -> Header {
        Header {
            source: Port(self.key.local),
            destination: Port(self.key.remote),
            seq,
            timestamp: now.as_wrapping_micros(),
            mode: self.config.mode,
            ecn: EcnField::NONE,
            flags,
        }
    }

    fn bare(&mut self, now: Instant, seq: TpduSeq, flags: Flags, out: &mut Vec<u8>) {
        let header = self.header(now, seq, flags);
        self.packing().begin_long(out);
        encode(
            &Outgoing {
                header,
                crc: self.form == TpduForm::Long,
                fec_words: FecStrength::NONE,
                block: None,
                body: &[],
            },
            out,
        );
    }

    /// Appends one control TPDU, if one is due, and says whether it is an answer. An acknowledgement takes the report. Where
    /// the way back carries little, an answer has at most so many octets.
    pub(in super::super) fn write_control(
        &mut self,
        now: Instant,
        code: &mut PacketCode,
        (report, bytes_max): (&mut Option<PathReport>, Option<usize>),
        out: &mut Vec<u8>,
    ) -> Option<bool> {
        if !self.wants_to_answer() {
            return None;
        }
        let start = out.len();
        let mut is_answer = false;
        if core::mem::take(&mut self.reset_due) {
            self.bare(now, self.sender.end_seq(), Flags::RST, out);
            self.gone = true;
        } else if self.wants_setup() {
            self.setup_due = false;
            self.timers
                .set(ConnectionTimer::Setup, now + self.sender.rto());
            self.bare(now, self.config.first_seq, Flags::ASYN, out);
        } else if core::mem::take(&mut self.afin_due) {
            self.afin_attempts += 1;
            self.timers
                .set(ConnectionTimer::Afin, now + self.sender.rto());
            // Modes that confirm nothing wait for no peer until they close.
            self.timers
                .set_if_idle(ConnectionTimer::Silence, now + self.config.give_up_after);
            self.enter(now, State::AfinSent);
            self.bare(now, self.sender.end_seq(), Flags::AFIN, out);
        } else {
            let strength = self.receiver.feedback_strength();
            let mut answer = self.answer(strength);
            answer.bytes_max = bytes_max.map_or(answer.bytes_max, |max| max.min(answer.bytes_max));
            if !self.receiver.write_answer(now, answer, report, out) {
                return None;
            }
            // What has parity is in the long form.
            let tpdu_start = start + self.packing().long_type_bytes();
            append_parity(code, out, tpdu_start, strength);
            is_answer = true;
        }
        self.on_sent(now, TransmitKind::Control, out.len() - start);
        Some(is_answer)
    }

    /// The number of the TPDU that was appended last, unless it was parity.
    pub(in super::super) const fn last_source(&self) -> Option<TpduSeq> {
        self.last_source
    }

    fn on_sent(&mut self, now: Instant, kind: TransmitKind, octets: usize) {
        self.last_sent = now;
        self.counters.on_sent(kind, octets);
    }

    /// Appends a TPDU that fills idle time, if there is one.
    pub(in super::super) fn write_spare(
        &mut self,
        now: Instant,
        code: &mut PacketCode,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Option<TransmitKind> {
        let unit = self.sender.next_spare(now)?;
        Some(self.write_unit(now, unit, code, scratch, out))
    }

    /// Appends one TPDU with data or parity, if there is one to send. Of a stream no more octets than `payload_max` go into
    /// a new one.
    pub(in super::super) fn write_data(
        &mut self,
        now: Instant,
        payload_max: usize,
        code: &mut PacketCode,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Option<TransmitKind> {
        self.sender.cut_next(payload_max);
        let unit = self.sender.next_unit(now, scratch)?;
        Some(self.write_unit(now, unit, code, scratch, out))
    }

    fn write_unit(
        &mut self,
        now: Instant,
        unit: Unit,
        code: &mut PacketCode,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> TransmitKind {
        let start = out.len();
        let is_symbol = unit.repair.is_some() || unit.window.is_some();
        self.last_source = (!is_symbol).then_some(unit.seq);
        let first = unit.seq == self.config.first_seq && !is_symbol;
        let flags = if first && self.rules.connection && !self.heard {
            self.setup_due = false;
            self.timers
                .set(ConnectionTimer::Setup, now + self.sender.rto());
            Flags::ASYN
        } else if !is_symbol && self.sender.asks_at_once() && self.packing() != Packing::Full {
            // Data in full cannot ask.
            Flags::PSH
        } else {
            Flags::NONE
        };
        let flags = if !is_symbol && self.sender.is_withdrawn(unit.seq) {
            flags.with(Flags::URG)
        } else {
            flags
        };
        let header = self.header(now, unit.seq, flags);
        let fec_words = match &self.adaptation {
            Some(adaptation) if !is_symbol => adaptation.strength_for(unit.len),
            _ => self.config.fec_words,
        };
        let body = if is_symbol {
            scratch.as_slice()
        } else {
            self.sender.body(&unit, scratch)
        };
        let outgoing = Outgoing {
            header,
            crc: self.has_crc(),
            fec_words,
            block: unit.repair,
            body,
        };
        if let Some((named, window)) = unit.window {
            short::write_window(named, unit.seq, window, out);
            out.extend_from_slice(body);
        } else if !self.config.keeps_check() && self.write_short(&outgoing, out) {
            out.extend_from_slice(body);
        } else {
            self.packing().begin_long(out);
            let tpdu_start = out.len();
            encode(&outgoing, out);
            append_parity(code, out, tpdu_start, fec_words);
        }
        let expected = self
            .adaptation
            .as_ref()
            .filter(|_| unit.kind == TransmitKind::Source);
        if let Some(quarters) = expected.and_then(|adaptation| adaptation.rate_quarter_octaves()) {
            self.counters.on_adapted(unit.len, fec_words, quarters);
        }
        self.counters.copied_tpdus += u64::from(unit.is_copy);
        self.note_unit(now, &unit);
        self.on_sent(now, unit.kind, out.len() - start);
        unit.kind
    }

    /// Appends the fields of the short form that come before the body. Returns whether the TPDU has that form.
    fn write_short(&self, tpdu: &Outgoing<'_>, out: &mut Vec<u8>) -> bool {
        let header = &tpdu.header;
        match (self.packing(), self.named(), tpdu.block) {
            (Packing::Long, _, _) => return false,
            (_, Some(named), None) if short::has_named_form(header) => {
                short::write_named(named, header, out);
            }
            (_, _, None) if short::has_full_form(header) => short::write_full(header, out),
            (_, Some(named), Some(block)) if short::has_repair_form(header, block) => {
                short::write_repair(named, header, block, out);
            }
            _ => return false,
        }
        true
    }

    fn note_unit(&mut self, now: Instant, unit: &Unit) {
        let record = match (unit.repair, unit.window) {
            (Some(block), _) => TraceRecord::RepairSent {
                first: unit.seq,
                index: block.repair_index,
            },
            // Of its key the lower bits are enough to tell it from its neighbours.
            (None, Some((_, window))) => TraceRecord::RepairSent {
                first: unit.seq,
                index: window.key.to_be_bytes()[1],
            },
            (None, None) => TraceRecord::Sent {
                seq: unit.seq,
                position: unit.position,
                len: u32::try_from(unit.len).unwrap_or(u32::MAX),
                again: unit.kind == TransmitKind::Retransmission,
            },
        };
        self.trace.note(now, record);
    }
}
