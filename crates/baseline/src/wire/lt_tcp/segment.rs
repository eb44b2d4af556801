//! A whole segment.

use super::feedback::LtTcpFeedback;
use super::unit::{UNIT_EXTENSION_BYTES, UnitHeader};
use crate::wire::tcp::{AddressPair, TcpHeader, TcpReject, TcpSegment};

const UNIT: u8 = 1;
const FEEDBACK: u8 = 2;

/// The reason why a segment is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum LtReject {
    /// The TCP header is wrong.
    #[error(transparent)]
    Tcp(#[from] TcpReject),
    /// There is no extension of this protocol, or one that contradicts itself or its payload.
    #[error("impossible LT-TCP extension")]
    Extension,
}

/// The part of a segment behind the TCP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extension<'a> {
    /// No extension: handshake and reset.
    None,
    /// A unit and its octets.
    Unit(UnitHeader, &'a [u8]),
    /// The receiver's feedback.
    Feedback(LtTcpFeedback),
}

/// A segment that passed its checks.
#[derive(Clone, Debug)]
pub struct LtSegment<'a> {
    /// TCP's header.
    pub header: TcpHeader,
    /// The extension behind it.
    pub extension: Extension<'a>,
}

impl<'a> LtSegment<'a> {
    /// Reads the segment in `octets`.
    ///
    /// # Errors
    /// [`LtReject`]; nothing is trusted before the checksum matches.
    pub fn parse(addresses: &AddressPair, octets: &'a [u8]) -> Result<Self, LtReject> {
        let TcpSegment { header, payload } = TcpHeader::parse(addresses, octets)?;
        let extension = match payload.split_first() {
            None => Some(Extension::None),
            Some((&UNIT, body)) => unit(body),
            Some((&FEEDBACK, body)) => LtTcpFeedback::parse(body).map(Extension::Feedback),
            Some(_) => None,
        };
        let extension = extension.ok_or(LtReject::Extension)?;
        Ok(Self { header, extension })
    }
}

fn unit(body: &[u8]) -> Option<Extension<'_>> {
    let (head, octets) = body.split_first_chunk::<{ UNIT_EXTENSION_BYTES - 1 }>()?;
    let unit = UnitHeader::parse(head)?;
    (octets.len() == unit.payload_len()).then_some(Extension::Unit(unit, octets))
}

/// Appends a segment to `out` and returns its length. `scratch` is any vector; its contents are
/// lost.
pub fn write_segment(
    header: &TcpHeader,
    extension: &Extension<'_>,
    addresses: &AddressPair,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> usize {
    scratch.clear();
    match extension {
        Extension::None => {}
        Extension::Unit(unit, octets) => {
            scratch.push(UNIT);
            unit.write(scratch);
            scratch.extend_from_slice(octets);
        }
        Extension::Feedback(feedback) => {
            scratch.push(FEEDBACK);
            feedback.write(scratch);
        }
    }
    header.write(addresses, scratch, out)
}
