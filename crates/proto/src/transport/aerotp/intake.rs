//! The way from octets to a TPDU that can be trusted: checks first, correction only where they
//! fail.

use crate::fec::packet::PacketCode;
use crate::wire::aerotp::{BodyCheck, FecStrength, Reject, Tpdu, parse};

/// Appends the parity over everything in `out` from `start`.
pub(super) fn append_parity(
    code: &mut PacketCode,
    out: &mut Vec<u8>,
    start: usize,
    strength: FecStrength,
) {
    if !strength.is_none() {
        code.append_parity(out, start, strength);
    }
}

/// A reader of datagrams that corrects bit errors where there is parity for it.
#[derive(Debug, Default)]
pub(super) struct Intake {
    code: PacketCode,
    corrected: Vec<u8>,
}

/// A TPDU, and the number of octets that were corrected in it.
#[derive(Debug)]
pub(super) struct Read<'a> {
    pub(super) tpdu: Tpdu<'a>,
    pub(super) corrected_symbols: u32,
}

impl Intake {
    pub(super) const fn code(&mut self) -> &mut PacketCode {
        &mut self.code
    }

    /// Reads `octets`. A damaged header can still be corrected when `known`, the strength in use on
    /// this path, is right: the parity covers the header too.
    pub(super) fn read<'a>(
        &'a mut self,
        octets: &'a [u8],
        known: FecStrength,
    ) -> Result<Read<'a>, Reject> {
        let strength = match parse(octets) {
            Ok(tpdu) if tpdu.check != BodyCheck::Damaged || tpdu.fec_words.is_none() => {
                return Ok(Read {
                    tpdu,
                    corrected_symbols: 0,
                });
            }
            Ok(tpdu) => tpdu.fec_words,
            Err(Reject::HeaderCheck) if !known.is_none() => known,
            Err(reject) => return Err(reject),
        };
        self.corrected.clear();
        self.corrected.extend_from_slice(octets);
        let corrected_symbols = self
            .code
            .correct(&mut self.corrected, strength)
            .map_or(None, |corrected| Some(corrected.symbols));
        // Weak parity may "correct" into another codeword: only the CRC-32 decides.
        if let Some(corrected_symbols) = corrected_symbols
            && let Ok(tpdu) = parse(&self.corrected)
            && tpdu.check == BodyCheck::Intact
        {
            return Ok(Read {
                tpdu,
                corrected_symbols,
            });
        }
        Ok(Read {
            tpdu: parse(octets)?,
            corrected_symbols: 0,
        })
    }
}
