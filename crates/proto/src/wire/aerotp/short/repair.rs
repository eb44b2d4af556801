//! Repair TPDUs of a block.
//!
//! ```text
//!  0011 000 O | name 2 | first number 3 | time 3 | k - 1 | index | symbol
//! ```

use super::super::descriptor::BlockDescriptor;
use super::super::header::{EcnField, Flags, Header};
use super::super::kind::TpduKind;
use super::super::reject::Reject;
use super::super::tpdu::Tpdu;
use super::content::{Frame, REPAIR, REPAIR_OPENED};
use super::known::{Known, Lookup};
use super::name::Named;
use super::octets::{number, split, time};
use crate::wire::cut;

/// Octets before the symbol, type included.
pub const REPAIR_BYTES: usize = 11;

/// Whether a repair TPDU with this header and block can be written by [`write_repair`]: of the Cauchy code, no flags, and no word
/// on congestion.
pub const fn has_repair_form(header: &Header, block: BlockDescriptor) -> bool {
    header.ecn.bits() == EcnField::NONE.bits()
        && !header.flags.beyond(Flags::NONE)
        && block.code == BlockDescriptor::CAUCHY_GF256
}

/// Appends all of a repair TPDU but its symbol, which the caller appends. The name says the ports and the mode.
pub fn write_repair(named: Named, header: &Header, block: BlockDescriptor, out: &mut Vec<u8>) {
    debug_assert!(
        has_repair_form(header, block),
        "no short form: {header:?}, {block:?}"
    );
    let opened = if named.sender_opened {
        REPAIR_OPENED
    } else {
        0
    };
    let [_, sources_less_one, index, _] = block.to_word();
    out.push(REPAIR | opened);
    out.extend_from_slice(&named.name.0.to_be_bytes());
    out.extend_from_slice(&cut::to_octets(header.seq.0));
    out.extend_from_slice(&cut::to_octets(cut::time24(header.timestamp)));
    out.extend_from_slice(&[sources_less_one, index]);
}

/// Reads a repair TPDU.
pub(super) fn read_repair<'a>(frame: &Frame<'a>, known: &impl Known) -> Result<Tpdu<'a>, Reject> {
    let (_, rest) = split::<2>(frame.fields())?;
    let (first, rest) = split::<3>(rest)?;
    let (at, rest) = split::<3>(rest)?;
    let ([sources_less_one, index], symbol) = split::<2>(rest)?;
    let ends = known.ends_of(frame)?;
    let word = [BlockDescriptor::CAUCHY_GF256, sources_less_one, index, 0];
    let block = BlockDescriptor::from_word(word)?;
    let header = ends.header(number(ends.next_expected, first), time(at), Flags::NONE);
    let kind = TpduKind::of(&header, true, symbol.len())?;
    Ok(Tpdu::under_seal(header, Some(block), symbol, kind))
}
