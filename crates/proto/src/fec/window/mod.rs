//! Erasures across packets without blocks: a systematic random linear code over a window that slides.
//!
//! The sources are sent as they are. A repair symbol is a linear combination of consecutive sources, any that the
//! sender still has: those under way before a loss is known, or exactly those that a receiver lacks. Each symbol is
//! worth one lost source of its span, whichever was lost, so one symbol may mend different losses at different
//! receivers. Nothing waits for a block to fill or to end.
//!
//! # The code
//! A source stands as the symbol `length (2 octets, big-endian) ‖ payload ‖ zeros`, as long as the longest payload of
//! the repair symbol's span plus two. The coefficients come from a key of 16 bits and a density (RFC 8681 with GF(2^8),
//! section 3.6). With r unknown sources, r symbols solve for them but in about one case of 255; one more mends that.
//!
//! # Parts
//! - [`WindowEncoder`]: one repair symbol, from the sender's own buffers.
//! - [`WindowDecoder`]: takes sources and repair symbols in any order, gives each lost source as soon as what has
//!   come determines it, and says how many symbols are still needed.
//!
//! # Does not
//! - Know about headers or wrapped numbers. Sources have ordinals, which count from zero and never wrap.
//! - Detect damage: a unit with a wrong octet spoils what is rebuilt from it. Check units first.
//!
//! # Sources
//! RFC 8681 (code), RFC 8682 (coefficients). `docs/models/fec.md` has the model.

mod coefficients;
mod decode;
mod encode;
mod equations;

pub use super::block::LENGTH_PREFIX;
pub use coefficients::Density;
pub use decode::{Rebuilt, RejectedSymbol, RepairSpan, WindowDecoder, WindowLimits};
pub use encode::{CannotSpan, WindowEncoder};

/// The most sources that a repair symbol spans: what 12 bits count (RFC 8681, section 4.1.3).
pub const SPAN_MAX: usize = 4095;

#[cfg(test)]
mod tests;
