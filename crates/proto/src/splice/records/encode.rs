//! The way from records to octets.

use super::{BODY_BYTES_MAX, HEADER_BYTES, Hearer, MessageRecord, Open, SpliceRecord, kind};
use crate::repair::{Deliver, DeliveryOrder};
use crate::splice::address::{Beyond, FlowKind, Host, HostName};
use crate::transport::aerotp::ThinRepair;
use core::net::{IpAddr, SocketAddr};

/// Flags of an `OPEN`.
pub(super) mod flags {
    pub(in super::super) const DATAGRAMS: u8 = 1;
    pub(in super::super) const RESUME: u8 = 2;
    pub(in super::super) const AGAIN: u8 = 4;
    pub(in super::super) const REFRESH: u8 = 8;
    pub(in super::super) const FAREWELL: u8 = 16;
    pub(in super::super) const DURABLE: u8 = 32;
    pub(in super::super) const EARLIER: u8 = 64;
    pub(in super::super) const UNKNOWN: u8 = 128;
    pub(in super::super) const ANSWERED: u8 = EARLIER | UNKNOWN;
}

/// Flags of a `GOAL`.
pub(super) mod goal_flags {
    pub(in super::super) const BY_DEADLINE: u8 = 1;
    pub(in super::super) const ANY_ORDER: u8 = 2;
    pub(in super::super) const ALL: u8 = BY_DEADLINE | ANY_ORDER;
}

/// The kinds of host fields.
pub(super) mod host {
    pub(in super::super) const NAME: u8 = 1;
    pub(in super::super) const TUNNEL: u8 = 2;
    pub(in super::super) const BEYOND: u8 = 3;
    pub(in super::super) const V4: u8 = 4;
    pub(in super::super) const V6: u8 = 6;
}

/// The header before the `len` octets of a `DATA` record.
pub(in crate::splice) fn data_header(len: usize) -> [u8; HEADER_BYTES] {
    let [high, low] = u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes();
    [kind::DATA, high, low]
}

impl SpliceRecord<'_> {
    /// Appends the record to `out`. A body beyond 65,535 octets, which only a caller could make, is
    /// cut off there.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[self.kind(), 0, 0]);
        match self {
            Self::Open(open) => encode_open(open, out),
            Self::Accepted(accepted) => {
                out.extend_from_slice(&accepted.received.to_be_bytes());
                out.extend_from_slice(&accepted.limit.to_be_bytes());
                encode_address(accepted.bound, out);
            }
            Self::Refused(code) => out.push(code.number()),
            Self::Data(octets) => out.extend_from_slice(octets),
            Self::End { total } => out.extend_from_slice(&total.to_be_bytes()),
            Self::Reset(code) => out.push(code.number()),
            Self::Delivered(delivered) => {
                out.extend_from_slice(&delivered.offset.to_be_bytes());
                out.extend_from_slice(&delivered.limit.to_be_bytes());
            }
            Self::Message(message) => encode_message(message, out),
            Self::Flow(flow) => out.extend_from_slice(&flow.0),
            Self::Ask(questions) => {
                for question in questions {
                    out.extend_from_slice(&question.flow.0);
                    out.extend_from_slice(&question.attempt.to_be_bytes());
                }
            }
            Self::Gone(flows) => flows.iter().for_each(|flow| out.extend_from_slice(&flow.0)),
            Self::Goal(thin) => encode_goal(*thin, out),
            Self::Finished | Self::Stop | Self::Ignored => {}
        }
        let body = start + HEADER_BYTES;
        out.truncate(body + BODY_BYTES_MAX);
        let length = u16::try_from(out.len() - body).unwrap_or(u16::MAX);
        out[start + 1..body].copy_from_slice(&length.to_be_bytes());
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::Open(_) => kind::OPEN,
            Self::Accepted(_) => kind::ACCEPTED,
            Self::Refused(_) => kind::REFUSED,
            Self::Data(_) => kind::DATA,
            Self::End { .. } => kind::END,
            Self::Reset(_) => kind::RESET,
            Self::Delivered(_) => kind::DELIVERED,
            Self::Message(_) => kind::MESSAGE,
            Self::Flow(_) => kind::FLOW,
            Self::Finished => kind::FINISHED,
            Self::Stop => kind::STOP,
            Self::Ask(_) => kind::ASK,
            Self::Gone(_) => kind::GONE,
            Self::Goal(_) => kind::GOAL,
            Self::Ignored => kind::UNKNOWN,
        }
    }
}

fn encode_goal(thin: ThinRepair, out: &mut Vec<u8>) {
    let goal = thin.goal();
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    out.push(goal.map_or(0, |goal| {
        flag(goal.deliver == Deliver::ByDeadline, goal_flags::BY_DEADLINE)
            | flag(goal.order == DeliveryOrder::Any, goal_flags::ANY_ORDER)
    }));
    out.push(thin.overhead_percent);
    let (missed, deadline) = goal.map_or((0, 0), |goal| {
        let micros = u32::try_from(goal.deadline.as_micros()).unwrap_or(u32::MAX);
        (goal.missed_millionths, micros)
    });
    out.extend_from_slice(&missed.to_be_bytes());
    out.extend_from_slice(&deadline.to_be_bytes());
}

const fn again_bits(again: Option<Hearer>) -> u8 {
    let hearer = match again {
        None => return 0,
        Some(Hearer::Present) => 0,
        Some(Hearer::Earlier) => flags::EARLIER,
        Some(Hearer::Unknown) => flags::UNKNOWN,
        Some(Hearer::Answered) => flags::ANSWERED,
    };
    flags::AGAIN | hearer
}

fn encode_open(open: &Open, out: &mut Vec<u8>) {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    out.extend_from_slice(&open.flow.0);
    out.extend_from_slice(&open.attempt.to_be_bytes());
    out.push(
        flag(open.kind == FlowKind::Datagrams, flags::DATAGRAMS)
            | flag(open.resume, flags::RESUME)
            | again_bits(open.again)
            | flag(open.refresh, flags::REFRESH)
            | flag(open.farewell, flags::FAREWELL)
            | flag(open.durable, flags::DURABLE),
    );
    out.extend_from_slice(&[open.priority.0, open.class.0, open.weight]);
    out.extend_from_slice(&open.fec_words.words().to_be_bytes());
    let (k, repairs, close_after) = open.block.map_or((0, 0, 0), |plan| {
        let close_after = u32::try_from(plan.close_after().as_micros()).unwrap_or(u32::MAX);
        (plan.k().get(), plan.repairs(), close_after)
    });
    out.extend_from_slice(&[k, repairs]);
    out.extend_from_slice(&close_after.to_be_bytes());
    let deadline = open
        .deadline
        .map_or(0, |d| u32::try_from(d.as_micros()).unwrap_or(u32::MAX));
    out.extend_from_slice(&deadline.to_be_bytes());
    out.extend_from_slice(&open.window.to_be_bytes());
    out.extend_from_slice(&open.presumed.to_be_bytes());
    out.extend_from_slice(&open.received.to_be_bytes());
    out.extend_from_slice(&open.limit.to_be_bytes());
    out.extend_from_slice(&open.kept_from.to_be_bytes());
    encode_host(&open.destination.host, open.destination.port, out);
}

fn encode_host(host: &Host, port: u16, out: &mut Vec<u8>) {
    match host {
        Host::Address(ip) => encode_address(SocketAddr::new(*ip, port), out),
        Host::Name(name) => encode_name(host::NAME, port, name, out),
        Host::Tunnel(name) => encode_name(host::TUNNEL, port, name, out),
        Host::Beyond(beyond) => encode_beyond(beyond, port, out),
    }
}

fn encode_beyond(beyond: &Beyond, port: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&[host::BEYOND, beyond.passed()]);
    let left = beyond.left().map_or(0, |left| {
        u32::try_from(left.as_micros()).unwrap_or(u32::MAX)
    });
    out.extend_from_slice(&left.to_be_bytes());
    let octet = |len: usize| u8::try_from(len).unwrap_or(u8::MAX);
    out.push(octet(beyond.gateways().len()));
    for name in beyond.gateways() {
        out.push(octet(name.as_str().len()));
        out.extend_from_slice(name.as_str().as_bytes());
    }
    encode_host(beyond.host(), port, out);
}

fn encode_name(kind: u8, port: u16, name: &HostName, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&port.to_be_bytes());
    out.extend_from_slice(name.as_str().as_bytes());
}

fn encode_address(address: SocketAddr, out: &mut Vec<u8>) {
    let port = address.port().to_be_bytes();
    match address.ip() {
        IpAddr::V4(ip) => {
            out.push(host::V4);
            out.extend_from_slice(&port);
            out.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(host::V6);
            out.extend_from_slice(&port);
            out.extend_from_slice(&ip.octets());
        }
    }
}

fn encode_message(message: &MessageRecord<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&message.number.to_be_bytes());
    out.extend_from_slice(&message.stamp.to_be_bytes());
    out.extend_from_slice(&[message.index, message.last]);
    out.extend_from_slice(message.octets);
}
