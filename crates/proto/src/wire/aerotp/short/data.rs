//! Data under a name, and data with the ports in full.
//!
//! ```text
//!  010 O T P U 0 | name 2                            | number 3 | time 3 | payload
//!  011 A T mode  | source port 2, destination port 2 | number 3 | time 3 | payload
//! ```
//!
//! T is always set: a capability to come leaves the time out. An end that has not stated it refuses such data, since it could not echo
//! the time.

use super::super::header::{EcnField, Flags, Header};
use super::super::kind::TpduKind;
use super::super::reject::Reject;
use super::super::tpdu::Tpdu;
use super::content::{
    DATA, DATA_OPENED, DATA_PSH, DATA_TIME, DATA_URG, FULL, FULL_ASYN, FULL_MODE, FULL_TIME, Frame,
};
use super::known::{Known, Lookup};
use super::name::Named;
use super::octets::{number, port, split, time};
use crate::wire::cut;
use crate::wire::{Mode, TpduSeq};

/// Octets before the payload under a name, type included.
pub const NAMED_BYTES: usize = 9;
/// Octets before the payload with the ports in full, type included.
pub const FULL_BYTES: usize = 11;

/// Whether data with this header can be written by [`write_named`]: no set-up, and no word on congestion.
pub const fn has_named_form(header: &Header) -> bool {
    let carried = Flags::PSH.with(Flags::URG);
    header.ecn.bits() == EcnField::NONE.bits() && !header.flags.beyond(carried)
}

/// Whether data with this header can be written by [`write_full`]: neither PSH nor URG, and no word on congestion. Set-up
/// without data has the long form alone: a reader refuses one without a payload.
pub const fn has_full_form(header: &Header) -> bool {
    header.ecn.bits() == EcnField::NONE.bits() && !header.flags.beyond(Flags::ASYN)
}

/// Appends all of a data TPDU but its payload, which the caller appends. The name says the ports and the mode.
pub fn write_named(named: Named, header: &Header, out: &mut Vec<u8>) {
    debug_assert!(has_named_form(header), "no form under a name: {header:?}");
    let mut code = DATA | DATA_TIME;
    for (bit, set) in [
        (DATA_OPENED, named.sender_opened),
        (DATA_PSH, header.flags.has(Flags::PSH)),
        (DATA_URG, header.flags.has(Flags::URG)),
    ] {
        if set {
            code |= bit;
        }
    }
    out.push(code);
    out.extend_from_slice(&named.name.0.to_be_bytes());
    out.extend_from_slice(&cut::to_octets(header.seq.0));
    out.extend_from_slice(&cut::to_octets(cut::time24(header.timestamp)));
}

/// Appends all of a data TPDU but its payload, which the caller appends.
pub fn write_full(header: &Header, out: &mut Vec<u8>) {
    debug_assert!(has_full_form(header), "no form in full: {header:?}");
    let asyn = if header.flags.has(Flags::ASYN) {
        FULL_ASYN
    } else {
        0
    };
    out.push(FULL | FULL_TIME | asyn | header.mode.code());
    out.extend_from_slice(&header.source.0.to_be_bytes());
    out.extend_from_slice(&header.destination.0.to_be_bytes());
    out.extend_from_slice(&cut::to_octets(header.seq.0));
    out.extend_from_slice(&cut::to_octets(cut::time24(header.timestamp)));
}

/// Reads data under a name.
pub(super) fn read_named<'a>(frame: &Frame<'a>, known: &impl Known) -> Result<Tpdu<'a>, Reject> {
    let (_, rest) = split::<2>(frame.fields())?;
    let (seq, rest) = split::<3>(rest)?;
    let (at, body) = timed(frame.code() & DATA_TIME, rest)?;
    let ends = known.ends_of(frame)?;
    let mut flags = Flags::NONE;
    for (bit, flag) in [(DATA_PSH, Flags::PSH), (DATA_URG, Flags::URG)] {
        if frame.code() & bit != 0 {
            flags = flags.with(flag);
        }
    }
    let header = ends.header(number(ends.next_expected, seq), time(at), flags);
    data(header, body)
}

/// Reads data with the ports in full.
pub(super) fn read_full<'a>(frame: &Frame<'a>, known: &impl Known) -> Result<Tpdu<'a>, Reject> {
    let (source, rest) = split::<2>(frame.fields())?;
    let (destination, rest) = split::<2>(rest)?;
    let (seq, rest) = split::<3>(rest)?;
    let (at, body) = timed(frame.code() & FULL_TIME, rest)?;
    let code = frame.code() & FULL_MODE;
    let mode = Mode::from_code(code).ok_or(Reject::ReservedMode(code))?;
    let (source, destination) = (port(source), port(destination));
    let expected: TpduSeq = known.next_expected(source, destination);
    let flags = if frame.code() & FULL_ASYN == 0 {
        Flags::NONE
    } else {
        Flags::ASYN
    };
    let header = Header {
        source,
        destination,
        seq: number(expected, seq),
        timestamp: time(at),
        mode,
        ecn: EcnField::NONE,
        flags,
    };
    data(header, body)
}

/// The time, which the bit T says is there, and the payload.
fn timed(is_there: u8, rest: &[u8]) -> Result<([u8; 3], &[u8]), Reject> {
    if is_there == 0 {
        return Err(Reject::Flags);
    }
    split::<3>(rest)
}

/// The TPDU with this header; a pure set-up among them has a form of its own, the long one.
fn data(header: Header, body: &[u8]) -> Result<Tpdu<'_>, Reject> {
    match TpduKind::of(&header, false, body.len())? {
        kind @ TpduKind::Data { .. } => Ok(Tpdu::under_seal(header, None, body, kind)),
        _ => Err(Reject::BodyLength),
    }
}
