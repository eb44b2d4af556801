//! The way from one TPDU to octets and back.

use super::descriptor::{BlockDescriptor, strength_from_word, strength_to_word};
use super::header::{Header, Parts, SmallFields};
use super::kind::TpduKind;
use super::overhead::{CRC_BYTES, DESCRIPTOR_BYTES, HEADER_BYTES};
use super::reject::Reject;
use super::seq_list::SeqList;
use super::short::{Order, Ranges};
use super::window_descriptor::WindowDescriptor;
use crate::units::FecStrength;
use crate::wire::Mode;
use crate::wire::checksum::{crc32, hec};

/// A TPDU to send. For MACKs and NACKs use [`Feedback`](super::Feedback), which writes their bodies.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The header.
    pub header: Header,
    /// Whether to append the CRC-32; with FEC it is appended in any case.
    pub crc: bool,
    /// The parity the caller will append.
    pub fec_words: FecStrength,
    /// The symbol and the block of a repair TPDU.
    pub block: Option<BlockDescriptor>,
    /// The payload or repair symbol.
    pub body: &'a [u8],
}

/// Appends header, descriptors, body and CRC-32 to `out`. The caller then appends the parity over
/// exactly these octets: [`FecStrength::parity_bytes`] of them.
pub fn encode(tpdu: &Outgoing<'_>, out: &mut Vec<u8>) {
    let parts = Parts {
        crc: tpdu.crc || !tpdu.fec_words.is_none(),
        fec: tpdu.fec_words,
        block: tpdu.block,
    };
    encode_with(tpdu.header, parts, out, |out| {
        out.extend_from_slice(tpdu.body);
    });
}

/// The same as [`encode`], with the body written in place.
pub(super) fn encode_with(
    header: Header,
    parts: Parts,
    out: &mut Vec<u8>,
    write_body: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    let head = header.to_octets(parts);
    let mut descriptors = [0; 2 * DESCRIPTOR_BYTES];
    let mut descriptor_bytes = 0;
    let words = [
        (!parts.fec.is_none()).then(|| strength_to_word(parts.fec)),
        parts.block.map(BlockDescriptor::to_word),
    ];
    for word in words.into_iter().flatten() {
        descriptors[descriptor_bytes..descriptor_bytes + 4].copy_from_slice(&word);
        descriptor_bytes += DESCRIPTOR_BYTES;
    }
    let descriptors = &descriptors[..descriptor_bytes];
    out.extend_from_slice(&head);
    out.extend_from_slice(&hec(&head, descriptors).to_be_bytes());
    out.extend_from_slice(descriptors);
    let body_start = out.len();
    write_body(out);
    debug_assert!(
        TpduKind::of(&header, parts.block.is_some(), out.len() - body_start).is_ok(),
        "a TPDU no receiver accepts: {header:?}"
    );
    if parts.crc {
        let check = crc32(&out[start..]);
        out.extend_from_slice(&check.to_be_bytes());
    }
}

/// The result of checking the CRC-32 against the octets before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BodyCheck {
    /// The CRC-32 matches.
    Intact,
    /// The CRC-32 does not match: body or check is damaged.
    Damaged,
    /// There is no CRC-32; the link below is trusted.
    Unchecked,
}

/// A TPDU that arrived with an intact header.
#[derive(Clone, Copy, Debug)]
pub struct Tpdu<'a> {
    /// The header.
    pub header: Header,
    /// The parity it carries.
    pub fec_words: FecStrength,
    /// The symbol and the block of a repair TPDU.
    pub block: Option<BlockDescriptor>,
    /// The sources of a repair symbol over a window.
    pub window: Option<WindowDescriptor>,
    /// The payload, repair symbol or list; trust it only as far as `check` goes.
    pub body: &'a [u8],
    /// Whether the body arrived as sent.
    pub check: BodyCheck,
    /// The octets that the parity covers: everything before it.
    pub covered: &'a [u8],
    /// The parity octets; empty without FEC.
    pub parity: &'a [u8],
    kind: TpduKind,
    is_short: bool,
}

impl<'a> Tpdu<'a> {
    /// The kind of TPDU.
    pub fn kind(&self) -> TpduKind {
        self.kind
    }

    /// Whether it came in the short form, where times are cut and nothing is checked.
    pub const fn is_short(&self) -> bool {
        self.is_short
    }

    /// A TPDU from the short form, of which the layer below vouches for every octet.
    pub(super) fn under_seal(
        header: Header,
        block: Option<BlockDescriptor>,
        body: &'a [u8],
        kind: TpduKind,
    ) -> Self {
        Self {
            header,
            fec_words: FecStrength::NONE,
            block,
            window: None,
            body,
            check: BodyCheck::Unchecked,
            covered: &[],
            parity: &[],
            kind,
            is_short: true,
        }
    }

    /// A repair symbol over a window, which has the short form alone.
    pub(super) fn over_window(header: Header, window: WindowDescriptor, symbol: &'a [u8]) -> Self {
        Self {
            window: Some(window),
            ..Self::under_seal(header, None, symbol, TpduKind::Window)
        }
    }

    /// The numbers in `octets`, a part of the body: in the short form they are `order`ed from the header's.
    pub(super) fn numbers(&self, order: Order, octets: &'a [u8]) -> SeqList<'a> {
        if self.is_short {
            SeqList::ranges(Ranges::new(order, self.header.seq, octets))
        } else {
            SeqList::words(octets)
        }
    }
}

/// Splits `octets` into the part that the parity covers and the parity. It is meant for a TPDU
/// whose header is too damaged to tell its strength, but whose connection is known to use
/// `strength`. `None` if there are not enough octets. After repair the covered octets go to
/// [`parse`] with the parity behind them, which shows whether the guess was right.
pub fn split_parity(octets: &[u8], strength: FecStrength) -> Option<(&[u8], &[u8])> {
    let covered = octets.len().checked_sub(strength.parity_bytes())?;
    let least = HEADER_BYTES + DESCRIPTOR_BYTES + CRC_BYTES;
    if strength.is_none() || covered < least {
        return None;
    }
    octets.split_at_checked(covered)
}

/// Reads one TPDU, which must fill `octets` exactly: the layer below knows where it ends.
///
/// # Errors
/// The first [`Reject`] in this order: too short for the header and its descriptors; HEC; mode;
/// descriptors; too short for CRC-32 and parity; flags; body length.
pub fn parse(octets: &[u8]) -> Result<Tpdu<'_>, Reject> {
    let (head, rest) = octets.split_first_chunk::<14>().ok_or(Reject::Truncated)?;
    let (check, rest) = rest.split_first_chunk::<2>().ok_or(Reject::Truncated)?;
    let small = SmallFields::of([head[12], head[13]]);
    let descriptor_bytes = DESCRIPTOR_BYTES * (usize::from(small.fec) + usize::from(small.block));
    let (descriptors, rest) = rest
        .split_at_checked(descriptor_bytes)
        .ok_or(Reject::Truncated)?;
    if hec(head, descriptors) != u16::from_be_bytes(*check) {
        return Err(Reject::HeaderCheck);
    }
    let mode = Mode::from_code(small.mode_code).ok_or(Reject::ReservedMode(small.mode_code))?;
    let (fec_words, block) = read_descriptors(small, descriptors)?;
    let (body_and_crc, parity) = rest
        .len()
        .checked_sub(fec_words.parity_bytes())
        .and_then(|covered| rest.split_at_checked(covered))
        .ok_or(Reject::Truncated)?;
    let covered = &octets[..octets.len() - parity.len()];
    let (body, check) = check_body(small.crc, covered, body_and_crc)?;
    let header = Header::from_octets(head, mode, small);
    let kind = TpduKind::of(&header, block.is_some(), body.len())?;
    Ok(Tpdu {
        header,
        fec_words,
        block,
        window: None,
        body,
        check,
        covered,
        parity,
        kind,
        is_short: false,
    })
}

fn read_descriptors(
    small: SmallFields,
    descriptors: &[u8],
) -> Result<(FecStrength, Option<BlockDescriptor>), Reject> {
    let mut words = descriptors
        .chunks_exact(DESCRIPTOR_BYTES)
        .map(|word| [word[0], word[1], word[2], word[3]]);
    let mut fec_words = FecStrength::NONE;
    if small.fec {
        if !small.crc {
            // Without a check nothing tells when to decode, nor whether decoding helped.
            return Err(Reject::FecDescriptor);
        }
        fec_words = strength_from_word(words.next().ok_or(Reject::Truncated)?)?;
    }
    let block = if small.block {
        Some(BlockDescriptor::from_word(
            words.next().ok_or(Reject::Truncated)?,
        )?)
    } else {
        None
    };
    Ok((fec_words, block))
}

fn check_body<'a>(
    crc: bool,
    covered: &'a [u8],
    body_and_crc: &'a [u8],
) -> Result<(&'a [u8], BodyCheck), Reject> {
    if !crc {
        return Ok((body_and_crc, BodyCheck::Unchecked));
    }
    let (body, sent) = body_and_crc
        .split_last_chunk::<CRC_BYTES>()
        .ok_or(Reject::Truncated)?;
    let computed = crc32(&covered[..covered.len() - CRC_BYTES]);
    let check = if computed == u32::from_be_bytes(*sent) {
        BodyCheck::Intact
    } else {
        BodyCheck::Damaged
    };
    Ok((body, check))
}
