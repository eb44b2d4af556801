//! The content of a sealed datagram: one octet that names its kind, then a TPDU or a few fields.
//!
//! In wire 2 content is one frame or several, of which each message is one with the same type and the same fields.

use super::arrival_map::ArrivedCounters;
use super::damage_report::DamageReport;
use super::further_parity::FurtherParity;
use super::meeting::{Meet, Met, Relayed};
use super::path_ack::PathAck;
use crate::session::fragments::Fragment;

/// Octets before a TPDU: its message type.
pub(in crate::session) const MESSAGE_TYPE_BYTES: usize = 1;

const TPDU: u8 = 0;
const HEARTBEAT: u8 = 1;
const PROBE: u8 = 2;
const PROBE_REPLY: u8 = 3;
const CLOSE: u8 = 4;
const FRAGMENT: u8 = 5;
const REPORT: u8 = 6;
const PATH_ACK: u8 = 0x10;
const FURTHER_PARITY: u8 = 0x14;
const DAMAGE_REPORT: u8 = 0x16;
const ARRIVAL_MAP: u8 = 0x18;
const MEET: u8 = 0x1A;
const MET: u8 = 0x1C;
pub(in crate::session) const RELAYED: u8 = 0x1E;

/// Octets of a fragment's fields.
pub(in crate::session) const FRAGMENT_BYTES: usize = 6;

/// The fields of a probe and of its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) struct Probe {
    /// The number of the probe; the reply repeats it.
    pub(in crate::session) id: u32,
    /// The time of sending, in microseconds modulo 2^32; the reply repeats it.
    pub(in crate::session) sent_micros: u32,
    /// The cost of the further path on which a probe leaves, in its first octet of padding.
    pub(in crate::session) cost: u8,
}

/// Octets of a probe with its type, if its path costs nothing.
pub(in crate::session) const PROBE_BYTES: usize = 9;

/// The datagrams that one end has sent, and those of the other end that it knows of; see
/// [`mod@crate::session::reports`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) struct Report<'a> {
    /// Datagrams that count, sent before this one.
    pub(in crate::session) sent: u64,
    /// The same field of the last report that came.
    pub(in crate::session) heard: u64,
    /// The datagrams counted in `heard` that had arrived then.
    pub(in crate::session) arrived: u64,
    /// Octets for the application.
    pub(in crate::session) rest: &'a [u8],
}

/// Octets of a report's numbers.
pub(in crate::session) const REPORT_BYTES: usize = 24;

/// A sealed datagram's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Message<'a> {
    /// A TPDU for the inner machine.
    Tpdu(&'a [u8]),
    /// "I heard you and have nothing to say." Wants no answer.
    Heartbeat,
    /// A probe, which wants a reply at once. It may be padded with anything to try a size.
    Probe(Probe),
    /// The answer to a probe, never padded.
    ProbeReply(Probe),
    /// The sender is shutting down and forgets the session.
    Close,
    /// A piece of a TPDU that is too long for the path.
    Fragment(Fragment<'a>),
    /// Datagrams sent and received so far. Wants no answer.
    Report(Report<'a>),
    /// The arrivals among a path's datagrams, in wire 2. Wants no answer.
    PathAck(PathAck),
    /// The fate of a path's armoured datagrams, in wire 2. Wants no answer.
    DamageReport(DamageReport<'a>),
    /// Further parity for a path's datagrams that came damaged, in wire 2. Wants no answer.
    FurtherParity(FurtherParity<'a>),
    /// The datagrams of a path that arrived, in wire 2. Wants no answer.
    ArrivalMap(ArrivedCounters<'a>),
    /// The wish to meet another peer of the receiver, in wire 2. Wants no answer by itself.
    Meet(Meet),
    /// The word about a remote that the receiver wants to meet, in wire 2. Wants no answer.
    Met(Met),
    /// A datagram between two ends that goes by a hub, in wire 2. Wants no answer.
    Relayed(Relayed<'a>),
}

impl<'a> Message<'a> {
    /// Appends the message; a TPDU's octets are appended by the caller, after its type.
    pub(in crate::session) fn write(&self, out: &mut Vec<u8>) {
        let (code, probe) = match self {
            Self::Tpdu(octets) => {
                out.push(TPDU);
                out.extend_from_slice(octets);
                return;
            }
            Self::Heartbeat => (HEARTBEAT, None),
            Self::Probe(probe) => (PROBE, Some(probe)),
            Self::ProbeReply(probe) => (PROBE_REPLY, Some(probe)),
            Self::Close => (CLOSE, None),
            Self::Fragment(piece) => {
                out.push(FRAGMENT);
                out.extend_from_slice(&piece.id.to_be_bytes());
                out.extend_from_slice(&[piece.index, piece.count]);
                out.extend_from_slice(piece.octets);
                return;
            }
            Self::Report(report) => {
                out.push(REPORT);
                for number in [report.sent, report.heard, report.arrived] {
                    out.extend_from_slice(&number.to_be_bytes());
                }
                out.extend_from_slice(report.rest);
                return;
            }
            Self::PathAck(ack) => {
                out.push(PATH_ACK);
                ack.write(out);
                return;
            }
            Self::DamageReport(report) => {
                out.push(DAMAGE_REPORT);
                report.write(out);
                return;
            }
            Self::FurtherParity(further) => {
                out.push(FURTHER_PARITY);
                further.write(out);
                return;
            }
            Self::ArrivalMap(map) => {
                out.push(ARRIVAL_MAP);
                map.write(out);
                return;
            }
            Self::Meet(meet) => {
                out.push(MEET);
                meet.write(out);
                return;
            }
            Self::Met(met) => {
                out.push(MET);
                met.write(out);
                return;
            }
            Self::Relayed(relayed) => {
                out.push(RELAYED);
                relayed.write(out);
                return;
            }
        };
        out.push(code);
        if let Some(probe) = probe {
            out.extend_from_slice(&probe.id.to_be_bytes());
            out.extend_from_slice(&probe.sent_micros.to_be_bytes());
            if probe.cost > 0 {
                out.push(probe.cost);
            }
        }
    }

    /// Reads a message; `None` when it has no meaning. Octets behind a probe's fields are padding.
    pub(in crate::session) fn read(octets: &'a [u8]) -> Option<Self> {
        let (&code, fields) = octets.split_first()?;
        Self::of(code, fields)
    }

    /// The message of type `code`; `None` when it has no meaning.
    pub(in crate::session) fn of(code: u8, rest: &'a [u8]) -> Option<Self> {
        Some(match code {
            TPDU => Self::Tpdu(rest),
            HEARTBEAT => Self::Heartbeat,
            CLOSE => Self::Close,
            PROBE | PROBE_REPLY => {
                let fields: &[u8; PROBE_BYTES - 1] = rest.first_chunk()?;
                let [i0, i1, i2, i3, s0, s1, s2, s3] = *fields;
                let probe = Probe {
                    id: u32::from_be_bytes([i0, i1, i2, i3]),
                    sent_micros: u32::from_be_bytes([s0, s1, s2, s3]),
                    cost: rest.get(PROBE_BYTES - 1).copied().unwrap_or_default(),
                };
                if code == PROBE {
                    Self::Probe(probe)
                } else {
                    Self::ProbeReply(probe)
                }
            }
            FRAGMENT => {
                let (fields, octets) = rest.split_first_chunk::<FRAGMENT_BYTES>()?;
                let [i0, i1, i2, i3, index, count] = *fields;
                Self::Fragment(Fragment {
                    id: u32::from_be_bytes([i0, i1, i2, i3]),
                    index,
                    count,
                    octets,
                })
            }
            REPORT => {
                let (fields, rest) = rest.split_first_chunk::<REPORT_BYTES>()?;
                let (numbers, _) = fields.as_chunks::<8>();
                let mut numbers = numbers.iter().copied().map(u64::from_be_bytes);
                Self::Report(Report {
                    sent: numbers.next()?,
                    heard: numbers.next()?,
                    arrived: numbers.next()?,
                    rest,
                })
            }
            PATH_ACK => Self::PathAck(PathAck::read(rest)?),
            FURTHER_PARITY => Self::FurtherParity(FurtherParity::read(rest)?),
            DAMAGE_REPORT => Self::DamageReport(DamageReport::read(rest)?),
            ARRIVAL_MAP => Self::ArrivalMap(ArrivedCounters::read(rest)?),
            MEET => Self::Meet(Meet::read(rest)?),
            MET => Self::Met(Met::read(rest)?),
            RELAYED => Self::Relayed(Relayed::read(rest)?),
            _ => return None,
        })
    }
}

/// The octets of the message that these octets are, written anew; `None` if they are none. For tests of hostile input.
pub fn rewrite_message(octets: &[u8]) -> Option<Vec<u8>> {
    let message = Message::read(octets)?;
    let mut written = Vec::new();
    message.write(&mut written);
    Some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROBE_FIELDS: Probe = Probe {
        id: 0x0102_0304,
        sent_micros: 0x0A0B_0C0D,
        cost: 0,
    };

    #[test]
    fn messages_are_these_octets_and_read_back() {
        let piece = Fragment {
            id: 0x0102_0304,
            index: 1,
            count: 2,
            octets: b"xyz",
        };
        let report = Report {
            sent: 258,
            heard: 3,
            arrived: 2,
            rest: b"xyz",
        };
        let examples: [(Message<'_>, &[u8]); 7] = [
            (Message::Tpdu(b"xyz"), b"\x00xyz"),
            (Message::Heartbeat, b"\x01"),
            (
                Message::Probe(PROBE_FIELDS),
                b"\x02\x01\x02\x03\x04\x0a\x0b\x0c\x0d",
            ),
            (
                Message::ProbeReply(PROBE_FIELDS),
                b"\x03\x01\x02\x03\x04\x0a\x0b\x0c\x0d",
            ),
            (Message::Close, b"\x04"),
            (Message::Fragment(piece), b"\x05\x01\x02\x03\x04\x01\x02xyz"),
            (
                Message::Report(report),
                b"\x06\0\0\0\0\0\0\x01\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x02xyz",
            ),
        ];
        for (message, golden) in examples {
            let mut octets = Vec::new();
            message.write(&mut octets);
            assert_eq!(octets, golden);
            assert_eq!(Message::read(&octets), Some(message));
        }
    }

    #[test]
    fn what_has_no_meaning_is_none_and_padding_is_ignored() {
        assert_eq!(Message::read(&[]), None);
        assert_eq!(Message::read(&[7]), None);
        assert_eq!(Message::read(&[REPORT; 24]), None, "one octet short");
        assert_eq!(Message::read(&[FRAGMENT, 1, 2, 3, 4, 5]), None);
        assert_eq!(Message::read(&[PROBE, 1, 2, 3, 4, 5, 6, 7]), None);
        let mut padded = Vec::new();
        Message::Probe(PROBE_FIELDS).write(&mut padded);
        padded.push(0);
        padded.resize(1_400, 0xEE);
        assert_eq!(Message::read(&padded), Some(Message::Probe(PROBE_FIELDS)));
    }

    #[test]
    fn the_cost_of_a_path_is_the_first_octet_of_a_probe_s_padding() {
        let probe = Message::Probe(Probe {
            cost: 3,
            ..PROBE_FIELDS
        });
        let mut octets = Vec::new();
        probe.write(&mut octets);
        assert_eq!(octets, b"\x02\x01\x02\x03\x04\x0a\x0b\x0c\x0d\x03");
        assert_eq!(Message::read(&octets), Some(probe));
    }
}
