//! The reader of frames with TPDUs: what they leave out is known at this end.

use super::super::header::Flags;
use super::super::kind::TpduKind;
use super::super::reject::Reject;
use super::super::tpdu::{Tpdu, parse};
use super::content::{Frame, FrameKind, UNKNOWN_NAME};
use super::known::{Known, Lookup};
use super::name::{Named, OPENED};
use super::octets::split;
use super::{data, feedback, repair, window};

/// Reads the TPDU in `frame`, which came from the peer whose connections are `known`.
///
/// It is vouched for by the layer below: nothing in it is checked, and it has no parity. A TPDU in the long form is read as
/// [`parse`] reads it. The timestamp is what arrived: in the short form multiples of 16 us modulo 2^28, of which
/// [`cut::latest`](crate::wire::cut::latest) makes a moment. [`FrameKind::UnknownName`] reads as an RST.
///
/// # Errors
/// [`Reject::FrameType`] if it is no frame of this transport; [`Reject::UnknownName`] if there is no
/// connection of its name, which is to be said to the peer unless the frame says the same itself; else
/// [`Reject::Truncated`], [`Reject::Flags`], [`Reject::ReservedMode`], [`Reject::Ranges`] or [`Reject::BodyLength`].
pub fn read<'a>(frame: &Frame<'a>, known: &impl Known) -> Result<Tpdu<'a>, Reject> {
    match frame.kind() {
        Some(FrameKind::Long) => parse(frame.fields()),
        Some(FrameKind::Data) => data::read_named(frame, known),
        Some(FrameKind::Full) => data::read_full(frame, known),
        Some(FrameKind::Repair) => repair::read_repair(frame, known),
        Some(FrameKind::Window) => window::read_window(frame, known),
        Some(FrameKind::Mack) => feedback::read_mack(frame, known),
        Some(FrameKind::Nack) => feedback::read_nack(frame, known),
        Some(FrameKind::UnknownName) => read_unknown_name(frame, known),
        Some(FrameKind::Session | FrameKind::Padding) | None => {
            Err(Reject::FrameType(frame.code()))
        }
    }
}

/// Appends the word that this end has no connection of this name, for a frame of the peer that has it.
pub fn write_unknown_name(named: Named, out: &mut Vec<u8>) {
    out.push(UNKNOWN_NAME);
    out.push(named.answered().opened_bit());
    out.extend_from_slice(&named.name.0.to_be_bytes());
}

fn read_unknown_name<'a>(frame: &Frame<'a>, known: &impl Known) -> Result<Tpdu<'a>, Reject> {
    let ([flags], rest) = split::<1>(frame.fields())?;
    let (_, body) = split::<2>(rest)?;
    if flags & !OPENED != 0 {
        return Err(Reject::Flags);
    }
    let ends = known.ends_of(frame)?;
    let header = ends.header(ends.next_expected, 0, Flags::RST);
    let kind = TpduKind::of(&header, false, body.len())?;
    Ok(Tpdu::under_seal(header, None, body, kind))
}
