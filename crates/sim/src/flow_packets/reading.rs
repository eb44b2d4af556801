//! The purpose and the numbers of a packet, out of its octets.

use super::PacketPurpose;
use crate::flow::flow_of;
use crate::stack::seal;
use core::fmt::Write as _;
use fulmar_baseline::wire::tcp::{AddressPair, TcpFlags, TcpHeader, TcpSegment, TcpSeq};
use fulmar_proto::machine::TransmitKind;
use fulmar_proto::wire::aerotp::short::{Content, Frame, FrameKind};
use fulmar_proto::wire::aerotp::{Acks, BodyCheck, Mack, Nack, Tpdu, TpduKind, parse};
use fulmar_proto::wire::network::{NetworkHeader, NetworkProtocol};
use fulmar_proto::wire::{Port, TpduSeq};

/// Numbers of a request that are named, at most.
const NAMED_MAX: usize = 4;

/// A packet in a few words.
#[derive(Debug)]
pub(super) struct PacketReading {
    pub(super) purpose: PacketPurpose,
    pub(super) number: Option<u64>,
    pub(super) text: String,
}

impl PacketReading {
    fn of(purpose: PacketPurpose, text: impl Into<String>) -> Self {
        Self {
            purpose,
            number: None,
            text: text.into(),
        }
    }

    /// The same with its number, unless that lies before the flow's first.
    fn numbered(self, number: i64) -> Self {
        Self {
            number: u64::try_from(number).ok(),
            ..self
        }
    }
}

/// A reader of a flow's packets, which counts from the first that it was shown.
#[derive(Debug)]
pub(super) struct PacketReader {
    flow: usize,
    protocol: NetworkProtocol,
    /// Whether packets are sealed or between gateways, so that no port names the flow.
    under_seal: bool,
    first_tpdu: Option<TpduSeq>,
    first_octet: Option<TcpSeq>,
}

/// The purpose that the transport, or the link layer, gave for a packet.
pub(super) fn of_kind(kind: TransmitKind, onward: bool) -> PacketReading {
    let purpose = match kind {
        TransmitKind::Source => PacketPurpose::Data,
        TransmitKind::Retransmission => PacketPurpose::Repetition,
        TransmitKind::Repair => PacketPurpose::Parity,
        TransmitKind::Control if onward => PacketPurpose::Control,
        TransmitKind::Control => PacketPurpose::Acknowledgement,
    };
    PacketReading::of(purpose, purpose.name())
}

/// Data for the first time or again.
const fn data(kind: TransmitKind) -> PacketPurpose {
    match kind {
        TransmitKind::Retransmission => PacketPurpose::Repetition,
        _ => PacketPurpose::Data,
    }
}

impl PacketReader {
    pub(super) const fn new(flow: usize, protocol: NetworkProtocol, under_seal: bool) -> Self {
        Self {
            flow,
            protocol,
            under_seal,
            first_tpdu: None,
            first_octet: None,
        }
    }

    /// Reads a packet on its way; `None` if it belongs to another flow.
    pub(super) fn read(
        &mut self,
        octets: &[u8],
        kind: TransmitKind,
        onward: bool,
    ) -> Option<PacketReading> {
        let parsed = NetworkHeader::parse(octets).ok()?;
        let (header, payload) = (parsed.header, parsed.payload);
        if header.protocol != self.protocol || !(self.under_seal || self.owns(payload, onward)) {
            return None;
        }
        let read = match header.protocol {
            NetworkProtocol::AEROTP => match parse(payload) {
                Ok(tpdu) => Some(self.tpdu(&tpdu, kind)),
                Err(_) if self.under_seal => sealed(payload, kind),
                Err(_) => None,
            },
            NetworkProtocol::TCP => {
                let ends = AddressPair::nodes(header.source, header.destination);
                let segment = TcpHeader::parse(&ends, payload).ok();
                segment.and_then(|segment| self.segment(&segment, kind, onward))
            }
            NetworkProtocol::UDP => Some(PacketReading::of(data(kind), "datagram")),
            _ => None,
        };
        Some(read.unwrap_or_else(|| of_kind(kind, onward)))
    }

    /// Whether the ports, with which every transport's header begins, are this flow's.
    fn owns(&self, payload: &[u8], onward: bool) -> bool {
        let Some(&[s0, s1, d0, d1]) = payload.first_chunk() else {
            return false;
        };
        let receiver = if onward { [d0, d1] } else { [s0, s1] };
        flow_of(Port(u16::from_be_bytes(receiver))) == Some(self.flow)
    }

    /// The number of a TPDU, from 1.
    fn number(&self, seq: TpduSeq) -> i32 {
        seq.distance_from(self.first_tpdu.unwrap_or(seq))
            .saturating_add(1)
    }

    fn tpdu(&mut self, tpdu: &Tpdu<'_>, kind: TransmitKind) -> PacketReading {
        let seq = tpdu.header.seq;
        if matches!(tpdu.kind(), TpduKind::Asyn | TpduKind::Data { .. }) {
            self.first_tpdu.get_or_insert(seq);
        }
        let number = self.number(seq);
        let control = |text: &str| PacketReading::of(PacketPurpose::Control, text);
        match tpdu.kind() {
            TpduKind::Data { asyn } => {
                let purpose = data(kind);
                let opens = if asyn { "ASYN + " } else { "" };
                let text = format!("{opens}{} {number}", purpose.name());
                PacketReading::of(purpose, text).numbered(number.into())
            }
            TpduKind::Repair | TpduKind::Window => {
                let text = tpdu.block.map_or_else(
                    || "parity".to_owned(),
                    |block| {
                        let last = i64::from(number) + i64::from(block.sources()) - 1;
                        format!("parity of {number} to {last}")
                    },
                );
                PacketReading::of(PacketPurpose::Parity, text)
            }
            TpduKind::Mack { asyn, afin } => match (asyn, afin) {
                (true, _) => PacketReading::of(PacketPurpose::Acknowledgement, "ASYNACK"),
                (_, true) => PacketReading::of(PacketPurpose::Acknowledgement, "AFINACK"),
                _ => self.acknowledged(tpdu),
            },
            TpduKind::Nack => PacketReading::of(PacketPurpose::Request, self.requested(tpdu)),
            TpduKind::Asyn => control("ASYN"),
            TpduKind::Afin => control("AFIN"),
            TpduKind::Reset => control("RST"),
            TpduKind::Challenge => control("challenge"),
            TpduKind::Response => control("response"),
        }
    }

    fn acknowledged(&self, tpdu: &Tpdu<'_>) -> PacketReading {
        let answer = |text: String, others: usize| {
            let text = match others {
                0 => text,
                others => format!("{text} and {others} more"),
            };
            PacketReading::of(PacketPurpose::Acknowledgement, text)
        };
        match Mack::of(tpdu).map(|mack| mack.acks) {
            Ok(Acks::Listed { first, further }) => {
                answer(format!("ACK {}", self.number(first)), further.len())
            }
            Ok(Acks::Cumulative {
                next_expected,
                above,
                ..
            }) => {
                let last = self.number(next_expected) - 1;
                answer(format!("ACK to {last}"), above.count()).numbered(last.into())
            }
            Err(_) => answer("ACK".to_owned(), 0),
        }
    }

    fn requested(&self, tpdu: &Tpdu<'_>) -> String {
        let mut text = "NACK".to_owned();
        let Ok(nack) = Nack::of(tpdu) else {
            return text;
        };
        for seq in nack.wanted().take(NAMED_MAX) {
            // Writing to a String cannot fail.
            let _ = write!(text, " {}", self.number(seq));
        }
        match nack.wanted().skip(NAMED_MAX).count() {
            0 => text,
            count => format!("{text} and {count} more"),
        }
    }

    fn segment(
        &mut self,
        segment: &TcpSegment<'_>,
        kind: TransmitKind,
        onward: bool,
    ) -> Option<PacketReading> {
        let TcpHeader {
            seq, ack, flags, ..
        } = segment.header;
        if onward && flags.has(TcpFlags::SYN) {
            self.first_octet.get_or_insert(seq);
        }
        let flag = [
            (TcpFlags::RST, "RST"),
            (TcpFlags::SYN, "SYN"),
            (TcpFlags::FIN, "FIN"),
        ]
        .into_iter()
        .find(|(flag, _)| flags.has(*flag));
        let first = self.first_octet?;
        if onward && !segment.payload.is_empty() {
            let purpose = data(kind);
            let from = seq.distance_from(first);
            let to = i64::from(from) + i64::try_from(segment.payload.len()).ok()? - 1;
            let text = format!("{} {from} to {to}", purpose.name());
            return Some(PacketReading::of(purpose, text).numbered(to));
        }
        if let Some((_, name)) = flag {
            let answers = if flags.has(TcpFlags::ACK) && !onward {
                " ACK"
            } else {
                ""
            };
            let text = format!("{name}{answers}");
            return Some(PacketReading::of(PacketPurpose::Control, text));
        }
        let known = i64::from(ack.distance_from(first)) - 1;
        let text = format!("ACK to {known}");
        let answer = PacketReading::of(PacketPurpose::Acknowledgement, text).numbered(known);
        (!onward).then_some(answer)
    }
}

/// A sealed datagram: its frames, of which the first that matters names the purpose.
fn sealed(payload: &[u8], kind: TransmitKind) -> Option<PacketReading> {
    let (content, label) = seal::open(payload)?;
    let purposes = Content::of(content)
        .filter_map(Result::ok)
        .filter_map(|frame| purpose_of(&frame, kind));
    let mut purposes: Vec<PacketPurpose> = purposes.collect();
    purposes.sort_unstable();
    purposes.dedup();
    let purpose = *purposes.first()?;
    let names: Vec<&str> = purposes.iter().map(|purpose| purpose.name()).collect();
    let mut text = names.join(" + ");
    if label.number > 0 {
        // Writing to a String cannot fail.
        let _ = write!(text, ", datagram {}", label.number);
    }
    Some(PacketReading::of(purpose, text))
}

fn purpose_of(frame: &Frame<'_>, kind: TransmitKind) -> Option<PacketPurpose> {
    Some(match frame.kind()? {
        FrameKind::Data | FrameKind::Full => data(kind),
        FrameKind::Repair | FrameKind::Window => PacketPurpose::Parity,
        FrameKind::Mack => PacketPurpose::Acknowledgement,
        FrameKind::Nack => PacketPurpose::Request,
        FrameKind::Long => {
            let tpdu = parse(frame.fields()).ok();
            match tpdu.filter(|tpdu| tpdu.check != BodyCheck::Damaged)?.kind() {
                TpduKind::Data { .. } => data(kind),
                TpduKind::Repair | TpduKind::Window => PacketPurpose::Parity,
                TpduKind::Mack { .. } => PacketPurpose::Acknowledgement,
                TpduKind::Nack => PacketPurpose::Request,
                _ => PacketPurpose::Control,
            }
        }
        FrameKind::Session | FrameKind::UnknownName => PacketPurpose::Control,
        FrameKind::Padding => return None,
    })
}
