//! Repair symbols over a window.
//!
//! ```text
//!  0011 001 O | name 2 | first number 3 | density 4 bits, count 12 bits | key 2 | symbol
//! ```
//!
//! They name no time: an answer to one says nothing that an answer to data would not.

use super::super::header::Flags;
use super::super::reject::Reject;
use super::super::tpdu::Tpdu;
use super::super::window_descriptor::WindowDescriptor;
use super::content::{Frame, REPAIR_OPENED, WINDOW};
use super::known::{Known, Lookup};
use super::name::Named;
use super::octets::{number, split};
use crate::wire::{TpduSeq, cut};

/// Octets before the symbol, type included.
pub const WINDOW_BYTES: usize = 10;

/// Appends all of a repair symbol but its octets, which the caller appends. Its sources begin with number `first`.
pub fn write_window(named: Named, first: TpduSeq, descriptor: WindowDescriptor, out: &mut Vec<u8>) {
    let opened = if named.sender_opened {
        REPAIR_OPENED
    } else {
        0
    };
    out.push(WINDOW | opened);
    out.extend_from_slice(&named.name.0.to_be_bytes());
    out.extend_from_slice(&cut::to_octets(first.0));
    out.extend_from_slice(&descriptor.to_octets());
}

/// Reads a repair symbol.
pub(super) fn read_window<'a>(frame: &Frame<'a>, known: &impl Known) -> Result<Tpdu<'a>, Reject> {
    let (_, rest) = split::<2>(frame.fields())?;
    let (first, rest) = split::<3>(rest)?;
    let (descriptor, symbol) = split::<4>(rest)?;
    let ends = known.ends_of(frame)?;
    let descriptor = WindowDescriptor::from_octets(descriptor)?;
    if symbol.is_empty() {
        return Err(Reject::BodyLength);
    }
    let header = ends.header(number(ends.next_expected, first), 0, Flags::NONE);
    Ok(Tpdu::over_window(header, descriptor, symbol))
}
