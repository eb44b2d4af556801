//! The order in which segments leave.
//!
//! RFEC of the oldest block comes first, because a hole there holds everything up; then the rest of
//! the block that was begun; then a new block, the FIN, and probes.

use super::super::block::SentBlock;
use super::super::flight::UNSETTLED_MAX;
use super::super::granulation::{grain, shape};
use super::{LtTcpSender, Silence};
use crate::wire::lt_tcp::UnitHeader;
use fulmar_proto::fec::block::encode_repair;
use fulmar_proto::machine::TransmitKind;
use fulmar_proto::units::Instant;

/// A segment to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lt_tcp) struct Planned {
    /// The position of its sequence number.
    pub(in crate::lt_tcp) position: u64,
    pub(in crate::lt_tcp) unit: UnitHeader,
    pub(in crate::lt_tcp) fin: bool,
    pub(in crate::lt_tcp) kind: TransmitKind,
    /// Whether it tells that the window was reduced.
    pub(in crate::lt_tcp) reduced: bool,
}

impl LtTcpSender {
    /// Takes the next segment to leave at `now`; its octets are written to `out`.
    pub(in crate::lt_tcp) fn next_planned(
        &mut self,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Option<Planned> {
        out.clear();
        if let Some(fewer) = self.probes_due.checked_sub(1) {
            self.probes_due = fewer;
            return Some(self.bare(now, self.next, false));
        }
        if self.silence.is_some_and(|silence| silence.allowance == 0)
            || self.flight.unsettled() >= UNSETTLED_MAX
        {
            return None;
        }
        if let Some(planned) = self.uncoded(now, out) {
            return Some(planned);
        }
        let index = match self.next_repaired() {
            Some(index) => index,
            None if self.begin_block() => self.blocks.len().checked_sub(1)?,
            None => return self.fin(now),
        };
        let block = self.blocks.get(index)?;
        let len = u64::from(block.unit(0).unit_len());
        let pipe = self.flight.pipe();
        if pipe > 0 && pipe + len > self.control.window() {
            self.limited = true;
            return None;
        }
        self.unit_of(now, index, out)
    }

    /// The block whose unit is to leave: the oldest with RFEC, or the one that was begun.
    fn next_repaired(&self) -> Option<usize> {
        let waits = |block: &SentBlock| block.queued > 0 || block.unsent() > 0;
        self.blocks.iter().position(waits)
    }

    /// Begins a block if there are octets for it.
    fn begin_block(&mut self) -> bool {
        let unsent = self.buffer.end().saturating_sub(self.next);
        let available = unsent.min(self.edge.saturating_sub(self.next));
        if available == 0 || !self.has_room_for_block() {
            return false;
        }
        let window = self.control.window();
        let (unit, _) = grain(&self.config, window);
        // A unit that the peer's window allows only in part waits for more room (RFC 9293, section
        // 3.8.6.2.1), as long as something is in flight that will bring an answer.
        if available < unsent && available < u64::from(unit) && self.flight.pipe() > 0 {
            return false;
        }
        let shape = shape(&self.config, window, available, self.expected_loss());
        let block = SentBlock::new(self.next_block, self.next, shape);
        self.next_block += 1;
        self.next = block.end();
        self.blocks.push_back(block);
        self.counts.blocks += 1;
        true
    }

    /// The next unit of block `index`.
    fn unit_of(&mut self, now: Instant, index: usize, out: &mut Vec<u8>) -> Option<Planned> {
        let runs = core::mem::take(&mut self.runs);
        let una = self.una;
        let missing =
            |position: u64| position >= una && !runs.iter().any(|run| run.contains(&position));
        let block = self.blocks.get_mut(index)?;
        let before = block.next_index;
        let proactive = block.unsent() > 0;
        let unit_index = block.next_unit(missing);
        if !proactive {
            block.queued = block.queued.saturating_sub(1);
        }
        let again = block.next_index == before;
        self.runs = runs;
        let Some(unit_index) = unit_index else {
            // Everything arrived after all; feedback will show it.
            self.blocks.get_mut(index)?.queued = 0;
            return None;
        };
        let source = unit_index < self.blocks.get(index)?.shape.k;
        let kind = match (source, again) {
            (true, false) => TransmitKind::Source,
            (true, true) => TransmitKind::Retransmission,
            (false, _) => TransmitKind::Repair,
        };
        match (kind, proactive) {
            (TransmitKind::Retransmission, _) => self.counts.resent += 1,
            (TransmitKind::Repair, true) => self.counts.proactive += 1,
            (TransmitKind::Repair, false) => self.counts.reactive += 1,
            _ => {}
        }
        self.send_unit(now, index, unit_index, (kind, !proactive), out)
    }

    /// Sends unit `unit_index` of block `index`.
    fn send_unit(
        &mut self,
        now: Instant,
        index: usize,
        unit_index: u8,
        (kind, reactive): (TransmitKind, bool),
        out: &mut Vec<u8>,
    ) -> Option<Planned> {
        let block = self.blocks.get_mut(index)?;
        let mut unit = block.unit(unit_index);
        block.open += 1;
        block.round += u16::from(reactive);
        let (number, start) = (block.number, block.start);
        let position = if unit.is_source() {
            let offset = u64::from(unit.offset_of(unit_index));
            let len = unit.source_len(unit_index) as usize;
            let octets = self.buffer.slice(start + offset, len, &mut self.scratch);
            out.extend_from_slice(octets);
            start + offset
        } else {
            let len = unit.length as usize;
            let octets = self.buffer.slice(start, len, &mut self.scratch);
            let sources: Vec<&[u8]> = octets.chunks(unit.unit_len().max(1) as usize).collect();
            // The index lies behind k sources and among 256 units.
            encode_repair(&sources, unit_index - unit.k, out).ok()?;
            start
        };
        let octets = u32::try_from(out.len()).unwrap_or(u32::MAX);
        unit.ordinal = self.flight.on_sent(now, octets, Some(number), reactive);
        self.on_departure(now);
        let reduced = self.tell_reduced > 0;
        self.tell_reduced = self.tell_reduced.saturating_sub(1);
        Some(Planned {
            position,
            unit,
            fin: false,
            kind,
            reduced,
        })
    }

    /// After a timeout the oldest missing source is retransmitted as it is: the last resort.
    fn uncoded(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Planned> {
        let silence = self.silence.as_mut().filter(|s| s.uncoded > 0)?;
        silence.uncoded -= 1;
        let una = self.una;
        let block = self.blocks.front()?;
        if block.next_index < u16::from(block.shape.k) {
            return None;
        }
        let unit = block.missing_source(0, |position| position >= una)?;
        self.counts.resent += 1;
        self.send_unit(now, 0, unit, (TransmitKind::Retransmission, true), out)
    }

    /// The FIN, once everything before it left.
    fn fin(&mut self, now: Instant) -> Option<Planned> {
        let fin = self.fin_at?;
        // It is retransmitted only when nothing else is missing: then it was lost.
        let is_due = !self.fin_sent || (!self.fin_out && self.una == fin);
        if self.next < fin || !is_due {
            return None;
        }
        self.fin_sent = true;
        self.fin_out = true;
        Some(self.bare(now, fin, true))
    }

    /// A segment without octets that feedback answers: a FIN or a probe.
    fn bare(&mut self, now: Instant, position: u64, fin: bool) -> Planned {
        let ordinal = self.flight.on_sent(now, 0, None, false);
        self.on_departure(now);
        Planned {
            position,
            unit: UnitHeader {
                ordinal,
                ..UnitHeader::default()
            },
            fin,
            kind: TransmitKind::Control,
            reduced: false,
        }
    }

    fn on_departure(&mut self, now: Instant) {
        if let Some(Silence { allowance, .. }) = &mut self.silence {
            *allowance = allowance.saturating_sub(1);
        }
        if self.timer.is_none() {
            self.start_timer(now);
        }
    }
}
