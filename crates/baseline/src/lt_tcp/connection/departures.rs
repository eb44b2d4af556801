//! Segments to send.

use super::LtTcpConnection;
use crate::lt_tcp::sender::Planned;
use crate::stream::{Owed, StreamDeparture, shift_for};
use crate::tcp::TcpState;
use crate::wire::lt_tcp::{Extension, LtTcpFeedback, write_segment};
use crate::wire::tcp::{AddressPair, TcpFlags, TcpHeader, TcpSeq};
use fulmar_proto::machine::Ecn;
use fulmar_proto::units::Instant;

impl LtTcpConnection {
    /// Appends the next segment to `out`, if one is to be sent.
    pub(in crate::lt_tcp) fn poll_transmit(
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
        if self.receiver.answers.owed() == Owed::Now {
            return Some(self.send_feedback(addresses, out));
        }
        if !self.states.state().may_send() {
            return None;
        }
        let mut octets = core::mem::take(&mut self.octets);
        let planned = self.sender.next_planned(now, &mut octets);
        let departure = planned.map(|planned| self.send_unit(&planned, &octets, addresses, out));
        self.octets = octets;
        if departure.is_none() {
            self.sender.wait_for_window(now);
        }
        departure
    }

    fn header(&self, seq: TcpSeq, flags: TcpFlags) -> TcpHeader {
        let window = self.receiver.window() >> self.agreed.shifts.0;
        TcpHeader {
            source: self.states.key().local,
            destination: self.states.key().remote,
            seq,
            ack: self.numbers.their_seq(self.receiver.next()),
            flags: flags | TcpFlags::ACK,
            window: u16::try_from(window).unwrap_or(u16::MAX),
            ..TcpHeader::default()
        }
    }

    fn write_bare(
        &mut self,
        header: &TcpHeader,
        addresses: &AddressPair,
        out: &mut Vec<u8>,
    ) -> StreamDeparture {
        let len = write_segment(header, &Extension::None, addresses, &mut self.scratch, out);
        StreamDeparture::control(len)
    }

    fn send_syn(
        &mut self,
        now: Instant,
        addresses: &AddressPair,
        out: &mut Vec<u8>,
    ) -> StreamDeparture {
        let answers = self.states.state() == TcpState::SynReceived;
        let mut header = self.header(self.numbers.ours, TcpFlags::SYN);
        header.window = u16::try_from(self.receiver.window()).unwrap_or(u16::MAX);
        header.options.mss = Some(self.config.mss);
        header.options.window_scale = Some(shift_for(self.config.receive_buffer));
        if answers {
            header.flags = header.flags.with(TcpFlags::ECE, self.agreed.ecn);
        } else {
            header.ack = TcpSeq(0);
            // A SYN that is retransmitted does not ask for ECN, which may be what stops it (RFC
            // 3168, section 6.1.1.1). Here that would leave the window without any signal, so only
            // after a third try.
            let asks = self.config.ecn && self.states.handshake.tries < 3;
            header.flags = TcpFlags::SYN.with(TcpFlags::ECE | TcpFlags::CWR, asks);
        }
        self.syn_sent_again |= self.states.handshake.sent_at.replace(now).is_some();
        if !core::mem::take(&mut self.syn_asked) {
            self.states.handshake.tries = self.states.handshake.tries.saturating_add(1);
            self.states.handshake.timer = Some(now + self.sender.rto());
        }
        self.write_bare(&header, addresses, out)
    }

    fn send_feedback(&mut self, addresses: &AddressPair, out: &mut Vec<u8>) -> StreamDeparture {
        let position = self.sender.sent_end();
        let echoes = self.agreed.ecn && self.receiver.answers.echoes_congestion();
        let flags = TcpFlags::NONE.with(TcpFlags::ECE, echoes);
        let header = self.header(self.numbers.our_seq(position), flags);
        let estimate = self.receiver.estimate();
        let (loss, deviation) = estimate.told();
        let runs = self.receiver.runs().map(|run| self.numbers.block_of(&run));
        let feedback = LtTcpFeedback {
            arrived_end: estimate.end(),
            arrivals: estimate.arrivals(),
            loss,
            deviation,
            reports: self.receiver.reports(),
            runs: runs.collect(),
        };
        self.receiver.on_feedback_sent();
        let extension = Extension::Feedback(feedback);
        let len = write_segment(&header, &extension, addresses, &mut self.scratch, out);
        StreamDeparture::control(len)
    }

    fn send_unit(
        &mut self,
        planned: &Planned,
        octets: &[u8],
        addresses: &AddressPair,
        out: &mut Vec<u8>,
    ) -> StreamDeparture {
        let flags = TcpFlags::NONE
            .with(TcpFlags::FIN, planned.fin)
            .with(TcpFlags::CWR, planned.reduced);
        let header = self.header(self.numbers.our_seq(planned.position), flags);
        let extension = Extension::Unit(planned.unit, octets);
        let len = write_segment(&header, &extension, addresses, &mut self.scratch, out);
        StreamDeparture {
            len,
            kind: planned.kind,
            ecn: if self.agreed.ecn && planned.unit.is_coded() {
                Ecn::Capable
            } else {
                Ecn::NotCapable
            },
        }
    }

    /// Appends a reset; its number is the newest that the peer is known to expect.
    pub(in crate::lt_tcp) fn write_reset(
        &mut self,
        _now: Instant,
        addresses: &AddressPair,
        out: &mut Vec<u8>,
    ) -> usize {
        let header = self.header(self.numbers.our_seq(self.sender.una()), TcpFlags::RST);
        self.write_bare(&header, addresses, out).len
    }
}
