//! Segments to send.

use super::TcpConnection;
use crate::stream::{Owed, StreamDeparture, shift_for, wire};
use crate::tcp::event::TcpState;
use crate::tcp::sender::SegmentPlan;
use crate::wire::tcp::{AddressPair, TcpFlags, TcpHeader, TcpOptions, TcpSeq, Timestamps};
use fulmar_proto::machine::{Ecn, TransmitKind};
use fulmar_proto::units::Instant;

impl TcpConnection {
    /// Our timestamp at `now`: milliseconds, from an offset of the connection's own.
    pub(super) fn clock(&self, now: Instant) -> u32 {
        self.clock_offset
            .wrapping_add(wire(now.as_nanos() / 1_000_000))
    }

    /// Appends the next segment to `out`, if one is to be sent.
    pub(in crate::tcp) fn poll_transmit(
        &mut self,
        now: Instant,
        addresses: &AddressPair,
        out: &mut Vec<u8>,
    ) -> Option<StreamDeparture> {
        if self.states.is_closed() {
            return None;
        }
        if core::mem::take(&mut self.states.handshake.due) {
            return Some(self.send_syn(now, addresses, out));
        }
        if !self.states.state().is_synchronized() {
            return None;
        }
        // An acknowledgement that shows a hole goes by itself, or it would not count as a
        // duplicate.
        let owed = self.receiver.answers.owed() == Owed::Now;
        if owed && self.receiver.blocks().next().is_some() {
            return Some(self.send_ack(now, addresses, out));
        }
        if self.states.state().may_send() {
            let plan = self.sender.next_plan(now);
            self.sender.wait_for_window(now);
            if let Some(plan) = plan {
                return Some(self.send_octets(now, &plan, addresses, out));
            }
        }
        owed.then(|| self.send_ack(now, addresses, out))
    }

    fn header(&self, now: Instant, seq: TcpSeq, flags: TcpFlags) -> TcpHeader {
        let shift = self.agreed.shifts.map_or(0, |(own, _)| own);
        let window = self.receiver.window() >> shift;
        let echo = self.ts_recent.map_or(0, |(value, _)| value);
        let value = self.clock(now);
        let timestamps = Timestamps { value, echo };
        TcpHeader {
            source: self.states.key().local,
            destination: self.states.key().remote,
            seq,
            ack: self.numbers.their_seq(self.receiver.next()),
            flags: (flags | TcpFlags::ACK).with(
                TcpFlags::ECE,
                self.agreed.ecn && self.receiver.answers.echoes_congestion(),
            ),
            window: u16::try_from(window).unwrap_or(u16::MAX),
            urgent: 0,
            options: TcpOptions {
                timestamps: self.agreed.timestamps.then_some(timestamps),
                ..TcpOptions::default()
            },
        }
    }

    fn send_syn(
        &mut self,
        now: Instant,
        addresses: &AddressPair,
        out: &mut Vec<u8>,
    ) -> StreamDeparture {
        let answers = self.states.state() == TcpState::SynReceived;
        let config = &self.config;
        let mut header = self.header(now, self.numbers.ours, TcpFlags::SYN);
        header.window = u16::try_from(self.receiver.window()).unwrap_or(u16::MAX);
        header.options.mss = Some(config.mss);
        if answers {
            header.options.sack_permitted = self.agreed.sack;
            header.options.window_scale = self.agreed.shifts.map(|(own, _)| own);
            header.flags = header.flags.with(TcpFlags::ECE, self.agreed.ecn);
        } else {
            header.ack = TcpSeq(0);
            header.options.sack_permitted = config.recovery.sack;
            header.options.window_scale = config
                .window_scaling
                .then(|| shift_for(config.receive_buffer));
            // A SYN that is retransmitted does not ask for ECN, which may be what stops it (RFC
            // 3168, section 6.1.1.1).
            let asks = config.ecn && self.states.handshake.tries == 0;
            header.flags = TcpFlags::SYN.with(TcpFlags::ECE | TcpFlags::CWR, asks);
        }
        self.receiver.on_acknowledged();
        self.states.handshake.tries = self.states.handshake.tries.saturating_add(1);
        self.states.handshake.sent_at = Some(now);
        self.states.handshake.timer = Some(now + self.sender.rto());
        let len = header.write(addresses, &[], out);
        StreamDeparture::control(len)
    }

    fn send_ack(
        &mut self,
        now: Instant,
        addresses: &AddressPair,
        out: &mut Vec<u8>,
    ) -> StreamDeparture {
        let seq = self.numbers.our_seq(self.sender.next());
        let mut header = self.header(now, seq, TcpFlags::NONE);
        self.add_blocks(&mut header);
        self.note_acknowledged();
        let len = header.write(addresses, &[], out);
        StreamDeparture::control(len)
    }

    fn add_blocks(&self, header: &mut TcpHeader) {
        if !self.agreed.sack {
            return;
        }
        let room = header.options.sack_room();
        for run in self.receiver.blocks().take(room) {
            header.options.sack.push(self.numbers.block_of(&run));
        }
    }

    fn note_acknowledged(&mut self) {
        self.acked_position = self.receiver.next();
        self.receiver.on_acknowledged();
    }

    fn send_octets(
        &mut self,
        now: Instant,
        plan: &SegmentPlan,
        addresses: &AddressPair,
        out: &mut Vec<u8>,
    ) -> StreamDeparture {
        let seq = self.numbers.our_seq(plan.range.start);
        let reduced = self.sender.tells_reduced(plan);
        let flags = TcpFlags::NONE
            .with(TcpFlags::FIN, plan.fin)
            .with(TcpFlags::PSH, self.sender.is_pushed(plan))
            .with(TcpFlags::CWR, reduced && self.agreed.ecn);
        let header = self.header(now, seq, flags);
        let mut scratch = core::mem::take(&mut self.scratch);
        let octets = self.sender.octets(plan, &mut scratch);
        let carries = !octets.is_empty();
        let len = header.write(addresses, octets, out);
        self.scratch = scratch;
        self.sender.on_sent(now, plan);
        self.tell_room();
        self.note_acknowledged();
        // Retransmissions are not marked (RFC 3168, section 6.1.5), nor are FINs without data.
        let capable = self.agreed.ecn && !plan.again && carries;
        StreamDeparture {
            len,
            kind: match (carries, plan.again) {
                (false, _) => TransmitKind::Control,
                (true, false) => TransmitKind::Source,
                (true, true) => TransmitKind::Retransmission,
            },
            ecn: if capable {
                Ecn::Capable
            } else {
                Ecn::NotCapable
            },
        }
    }

    /// Appends a reset that the peer will accept.
    pub(in crate::tcp) fn write_reset(
        &self,
        now: Instant,
        addresses: &AddressPair,
        out: &mut Vec<u8>,
    ) -> usize {
        let seq = self.numbers.our_seq(self.sender.next());
        self.header(now, seq, TcpFlags::RST)
            .write(addresses, &[], out)
    }
}
