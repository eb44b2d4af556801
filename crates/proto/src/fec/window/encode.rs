//! Repair symbols, made one at a time.

use super::coefficients::{self, Density};
use super::{LENGTH_PREFIX, SPAN_MAX};
use crate::fec::gf256;

/// The reason why a repair symbol was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotSpan {
    /// A repair symbol spans 1 to [`SPAN_MAX`] sources.
    #[error("a repair symbol over {sources} sources; it spans 1 to {SPAN_MAX}")]
    SourceCount {
        /// The number of sources given.
        sources: usize,
    },
    /// A payload's length does not fit its two-octet prefix.
    #[error("a payload of {octets} octets; the length prefix ends at 65535")]
    PayloadTooLong {
        /// The length of the payload.
        octets: usize,
    },
}

/// Makes repair symbols, and keeps its buffers from one to the next.
#[derive(Clone, Debug, Default)]
pub struct WindowEncoder {
    coefficients: Vec<u8>,
    lengths: Vec<u8>,
}

impl WindowEncoder {
    /// An encoder. It keeps no sources: any symbol can be made at any time.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends to `out` the repair symbol of `key` and `density` over consecutive sources with these payloads.
    ///
    /// The symbol has the longest payload's length plus [`LENGTH_PREFIX`]. Two symbols over the
    /// same sources must have different keys to be worth two.
    ///
    /// # Errors
    /// [`CannotSpan`], with `out` as it was.
    pub fn encode_repair(
        &mut self,
        sources: &[&[u8]],
        key: u16,
        density: Density,
        out: &mut Vec<u8>,
    ) -> Result<(), CannotSpan> {
        let count = sources.len();
        if count == 0 || count > SPAN_MAX {
            return Err(CannotSpan::SourceCount { sources: count });
        }
        self.lengths.clear();
        let mut longest = 0;
        for payload in sources {
            let octets = payload.len();
            let length =
                u16::try_from(octets).map_err(|_| CannotSpan::PayloadTooLong { octets })?;
            self.lengths.extend(length.to_be_bytes());
            longest = longest.max(octets);
        }
        coefficients::draw(key, density, count, &mut self.coefficients);
        let start = out.len();
        out.resize(start + LENGTH_PREFIX + longest, 0);
        let (prefix, payload) = out[start..].split_at_mut(LENGTH_PREFIX);
        for (length, &factor) in self
            .lengths
            .chunks_exact(LENGTH_PREFIX)
            .zip(&self.coefficients)
        {
            gf256::Kernel::scalar().mul_add(prefix, length, factor);
        }
        gf256::dot(payload, sources, &self.coefficients);
        Ok(())
    }
}
