//! Repair symbols over a window: the part between the connection and the window code.
//!
//! The sender makes a symbol of what it had to repeat, straight from its send buffer. The receiver keeps the payloads
//! that a symbol may span from the first symbol on, since the application may have read them; without symbols it keeps
//! nothing.

use crate::bytes::SendBuffer;
use crate::fec::window::{Density, RepairSpan, WindowDecoder, WindowEncoder, WindowLimits};
use crate::transport::parts::Scoreboard;
use crate::wire::TpduSeq;
use crate::wire::aerotp::WindowDescriptor;

/// The most TPDUs that a symbol of ours spans.
const SPANNED_MAX: usize = 64;
/// The most that a receiver keeps: twice that span, since symbols and TPDUs come late.
const LIMITS: WindowLimits = WindowLimits {
    sources: 2 * SPANNED_MAX,
    equations: 64,
    memory_bytes: 1 << 20,
};
/// The TPDUs that a symbol may name before anything else has.
const AHEAD_MAX: i32 = 64;
/// The TPDUs without a symbol after which a receiver keeps nothing any more.
const KEPT_WITHOUT_SYMBOL: u32 = 1_024;
/// Ordinals begin here, so that numbers before the first have some, too.
const ORDINALS_FROM: u64 = 1 << 32;

/// The payloads from `first` on, one for each of `wrapped`: only one that wraps around the buffer's end is copied there.
pub(super) fn payloads<'a>(
    first: TpduSeq,
    (board, buffer): (&Scoreboard, &'a SendBuffer),
    wrapped: &'a mut [Vec<u8>],
) -> Vec<&'a [u8]> {
    let payload = |(offset, copy): (u32, &'a mut Vec<u8>)| {
        let entry = board.get(first.plus(offset));
        entry.map_or(&[][..], |entry| {
            buffer.slice(entry.position, entry.len as usize, copy)
        })
    };
    (0..).zip(wrapped).map(payload).collect()
}

/// Makes a connection's symbols.
#[derive(Debug, Default)]
pub(super) struct WindowSymbols {
    encoder: WindowEncoder,
    next_key: u16,
}

impl WindowSymbols {
    /// Writes a symbol over these TPDUs, oldest first, to `symbol`. Returns its first number. It spans all from the first
    /// to the last of them; what arrived between is known to the decoder if its window is that old. `None` if there is
    /// one TPDU at most, which a copy mends as well.
    pub(super) fn write(
        &mut self,
        mut open: impl Iterator<Item = TpduSeq>,
        (board, buffer): (&Scoreboard, &SendBuffer),
        symbol: &mut Vec<u8>,
    ) -> Option<(TpduSeq, WindowDescriptor)> {
        let first = open.next()?;
        let within = |last: &TpduSeq| (last.offset_from(first) as usize) < SPANNED_MAX;
        let last = open.take_while(within).last()?;
        let count = u16::try_from(last.offset_from(first) + 1).ok()?;
        let mut wrapped = vec![Vec::new(); usize::from(count)];
        let slices = payloads(first, (board, buffer), &mut wrapped);
        let key = self.next_key;
        let descriptor = WindowDescriptor::new(count, Density::FULL.threshold(), key)?;
        symbol.clear();
        self.encoder
            .encode_repair(&slices, key, Density::FULL, symbol)
            .ok()?;
        self.next_key = key.wrapping_add(1);
        Some((first, descriptor))
    }
}

/// The payloads that were rebuilt.
pub(super) type RebuiltTpdus = Vec<(TpduSeq, Vec<u8>)>;

/// Takes the peer's symbols.
#[derive(Debug, Default)]
pub(super) struct WindowAssembly {
    decoder: Option<Box<WindowDecoder>>,
    since_symbol: u32,
}

/// The ordinal near `end` of a number; what has no place is far from all others.
fn ordinal(seq: TpduSeq, end: u64) -> u64 {
    let near = TpduSeq(u32::try_from(end & u64::from(u32::MAX)).unwrap_or_default());
    end.saturating_add_signed(i64::from(seq.distance_from(near)))
}

fn number(ordinal: u64) -> TpduSeq {
    TpduSeq(u32::try_from(ordinal & u64::from(u32::MAX)).unwrap_or_default())
}

fn numbered(rebuilt: Vec<(u64, Vec<u8>)>) -> RebuiltTpdus {
    let of = |(at, octets)| (number(at), octets);
    rebuilt.into_iter().map(of).collect()
}

impl WindowAssembly {
    /// Takes the payload of a data TPDU that is new. Returns what it determines besides.
    pub(super) fn on_source(&mut self, seq: TpduSeq, octets: &[u8]) -> RebuiltTpdus {
        let Some(decoder) = &mut self.decoder else {
            return Vec::new();
        };
        self.since_symbol += 1;
        if self.since_symbol > KEPT_WITHOUT_SYMBOL {
            self.decoder = None;
            return Vec::new();
        }
        let at = ordinal(seq, decoder.end());
        numbered(decoder.add_source(at, octets).unwrap_or_default())
    }

    /// Takes a symbol whose first TPDU is `first`, while those before `end_seen` have come or are missing. Returns what it
    /// determines; `None` if it is of no use. One that names TPDUs far ahead would push those that are needed out.
    pub(super) fn on_symbol(
        &mut self,
        (first, end_seen): (TpduSeq, TpduSeq),
        descriptor: WindowDescriptor,
        symbol: &[u8],
    ) -> Option<RebuiltTpdus> {
        let end = first.plus(u32::from(descriptor.sources()));
        if end.distance_from(end_seen) > AHEAD_MAX {
            return None;
        }
        self.since_symbol = 0;
        let decoder = self.decoder.get_or_insert_with(|| {
            let first = ORDINALS_FROM + u64::from(first.0);
            Box::new(WindowDecoder::new(first, LIMITS))
        });
        let span = RepairSpan {
            first: ordinal(first, decoder.end()),
            count: descriptor.sources(),
            key: descriptor.key,
            density: Density::new(descriptor.threshold())?,
        };
        decoder.add_repair(span, symbol).ok().map(numbered)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.decoder
            .as_ref()
            .map_or(0, |decoder| decoder.memory_bytes())
    }

    pub(super) fn give_back(&mut self) {
        self.decoder = None;
    }
}
