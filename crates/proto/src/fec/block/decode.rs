//! Collects a block's units and rebuilds those that are lost.

use super::{LENGTH_PREFIX, UNITS_MAX, cauchy};
use crate::fec::gf256;
use core::num::NonZeroU8;

/// The reason why a unit was not taken. The decoder is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RejectedUnit {
    /// A block of this k has no such unit.
    #[error("unit {index} lies outside the block")]
    OutOfRange {
        /// The source or repair index given.
        index: u8,
    },
    /// The decoder holds the unit already, or has rebuilt it.
    #[error("unit {index} is here already")]
    Duplicate {
        /// The source or repair index given.
        index: u8,
    },
    /// The unit's length contradicts the units that came before.
    #[error("{octets} octets where the block's symbols have {expected}")]
    Length {
        /// Octets of this unit, as a symbol.
        octets: usize,
        /// Octets of a symbol, or (for the first repair symbol) the least a symbol must have.
        expected: usize,
    },
    /// The block has k units: another repair symbol adds nothing.
    #[error("the block has all the units it needs")]
    Surplus,
}

/// The reason why a block was not rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecodable {
    /// Too few units so far.
    #[error("{units} more units are needed")]
    Missing {
        /// The number of further units, any of the block's, that would do.
        units: usize,
    },
    /// A rebuilt symbol contradicts itself, so a unit was damaged without notice. Nothing shows
    /// which one, so nothing is delivered and the repair symbols are forgotten. If the damage was
    /// in them, other repair symbols, or the same ones received again, may still rebuild the block.
    #[error("rebuilt source {index} is no symbol: a unit of the block was damaged")]
    Corrupt {
        /// The first source that came out wrong.
        index: u8,
    },
}

#[derive(Clone, Debug)]
enum Source {
    Lost,
    Held(Vec<u8>),
    /// The source was rebuilt and handed over; nothing is kept.
    Rebuilt,
}

/// Collects the units of one block until any k of them are there.
///
/// Holds at most k units, so at most k times the longest symbol.
#[derive(Clone, Debug)]
pub struct BlockDecoder {
    sources: Vec<Source>,
    /// The repair symbols by repair index, in order of arrival.
    repairs: Vec<(u8, Vec<u8>)>,
    /// The number of `sources` that are [`Source::Lost`].
    lost: usize,
    /// The longest payload held.
    longest: usize,
}

impl BlockDecoder {
    /// A decoder for a block of `k` sources.
    pub fn new(k: NonZeroU8) -> Self {
        let k = usize::from(k.get());
        Self {
            sources: vec![Source::Lost; k],
            repairs: Vec::new(),
            lost: k,
            longest: 0,
        }
    }

    /// The number of sources in the block.
    pub fn k(&self) -> usize {
        self.sources.len()
    }

    /// The number of units, any of the block's, that are still needed: the value in LT-TCP's
    /// feedback.
    pub fn needed(&self) -> usize {
        self.lost.saturating_sub(self.repairs.len())
    }

    /// Whether every source has arrived or was rebuilt.
    pub fn is_complete(&self) -> bool {
        self.lost == 0
    }

    /// Octets of the units held.
    pub fn memory_bytes(&self) -> usize {
        let source = |source: &Source| match source {
            Source::Held(payload) => payload.len(),
            Source::Lost | Source::Rebuilt => 0,
        };
        let repairs = self.repairs.iter().map(|(_, symbol)| symbol.len());
        self.sources.iter().map(source).chain(repairs).sum()
    }

    /// The payload of source `index`, if it arrived as a source.
    pub fn source(&self, index: u8) -> Option<&[u8]> {
        match self.sources.get(usize::from(index)) {
            Some(Source::Held(payload)) => Some(payload),
            _ => None,
        }
    }

    /// Takes the payload of source `index`.
    ///
    /// # Errors
    /// [`RejectedUnit`], with the decoder as before.
    pub fn add_source(&mut self, index: u8, payload: &[u8]) -> Result<(), RejectedUnit> {
        let octets = payload.len() + LENGTH_PREFIX;
        let longest = self
            .symbol_len()
            .unwrap_or(usize::from(u16::MAX) + LENGTH_PREFIX);
        match self.sources.get_mut(usize::from(index)) {
            None => Err(RejectedUnit::OutOfRange { index }),
            Some(Source::Held(_) | Source::Rebuilt) => Err(RejectedUnit::Duplicate { index }),
            Some(Source::Lost) if octets > longest => Err(RejectedUnit::Length {
                octets,
                expected: longest,
            }),
            Some(source) => {
                *source = Source::Held(payload.to_vec());
                self.lost -= 1;
                self.longest = self.longest.max(payload.len());
                // A source needs no decoding, so it takes the place of a repair symbol.
                self.repairs.truncate(self.lost);
                Ok(())
            }
        }
    }

    /// Takes repair symbol `repair_index`.
    ///
    /// # Errors
    /// [`RejectedUnit`], with the decoder as before.
    pub fn add_repair(&mut self, repair_index: u8, symbol: &[u8]) -> Result<(), RejectedUnit> {
        let index = repair_index;
        if self.k() + usize::from(index) >= UNITS_MAX {
            return Err(RejectedUnit::OutOfRange { index });
        }
        if self.repairs.iter().any(|&(held, _)| held == index) {
            return Err(RejectedUnit::Duplicate { index });
        }
        let octets = symbol.len();
        let fits = match self.symbol_len() {
            Some(expected) => octets == expected,
            None => (self.longest + LENGTH_PREFIX..=usize::from(u16::MAX) + LENGTH_PREFIX)
                .contains(&octets),
        };
        if !fits {
            let expected = self.symbol_len().unwrap_or(self.longest + LENGTH_PREFIX);
            return Err(RejectedUnit::Length { octets, expected });
        }
        if self.needed() == 0 {
            return Err(RejectedUnit::Surplus);
        }
        self.repairs.push((index, symbol.to_vec()));
        Ok(())
    }

    /// Rebuilds the lost sources. Returns index and payload of each, in order; empty when none is
    /// lost.
    ///
    /// Afterwards the block is complete, and the decoder keeps none of the sources that it returned.
    ///
    /// # Errors
    /// [`Undecodable`]. If units are missing, the decoder is as before.
    pub fn decode(&mut self) -> Result<Vec<(u8, Vec<u8>)>, Undecodable> {
        let units = self.needed();
        if units > 0 {
            return Err(Undecodable::Missing { units });
        }
        let indices = (0u8..=u8::MAX).zip(&self.sources);
        let lost = indices.filter_map(|(j, source)| matches!(source, Source::Lost).then_some(j));
        let lost: Vec<u8> = lost.collect();
        let stripped = self.strip_held_sources();
        let stripped: Vec<&[u8]> = stripped.iter().map(Vec::as_slice).collect();
        let units: Vec<u8> = self.repairs.iter().map(|&(i, _)| self.unit(i)).collect();
        let inverse = cauchy::inverted(&units, &lost);
        let mut rebuilt = Vec::with_capacity(lost.len());
        let mut symbol = vec![0; self.symbol_len().unwrap_or(LENGTH_PREFIX)];
        for (&index, row) in lost.iter().zip(inverse.chunks(lost.len().max(1))) {
            gf256::dot(&mut symbol, &stripped, row);
            let Some(payload) = payload_of(&symbol) else {
                self.repairs.clear();
                return Err(Undecodable::Corrupt { index });
            };
            rebuilt.push((index, payload.to_vec()));
        }
        for &(index, _) in &rebuilt {
            self.sources[usize::from(index)] = Source::Rebuilt;
        }
        self.lost = 0;
        self.repairs = Vec::new();
        Ok(rebuilt)
    }

    /// The part of each held repair symbol that the lost sources alone contribute.
    fn strip_held_sources(&self) -> Vec<Vec<u8>> {
        let indices = (0u8..=u8::MAX).zip(&self.sources);
        let (held, mut payloads): (Vec<u8>, Vec<&[u8]>) = indices
            .filter_map(|(j, source)| match source {
                Source::Held(payload) => Some((j, payload.as_slice())),
                Source::Lost | Source::Rebuilt => None,
            })
            .unzip();
        let mut coefficients = [0; UNITS_MAX];
        // The symbol itself is the last term, with coefficient one.
        coefficients[held.len()] = 1;
        payloads.push(&[]);
        let own = held.len();
        let mut stripped = Vec::with_capacity(self.repairs.len());
        for (repair_index, symbol) in &self.repairs {
            let unit = self.unit(*repair_index);
            for (coefficient, &j) in coefficients.iter_mut().zip(&held) {
                *coefficient = cauchy::coefficient(unit, j);
            }
            let mut sum = vec![0; symbol.len()];
            let (prefix, rest) = sum.split_at_mut(LENGTH_PREFIX);
            let (symbol_prefix, symbol_rest) = symbol.split_at(LENGTH_PREFIX);
            prefix.copy_from_slice(symbol_prefix);
            for (payload, &coefficient) in payloads[..own].iter().zip(&coefficients) {
                // Lengths above 65535 were refused on arrival.
                let length = u16::try_from(payload.len())
                    .unwrap_or(u16::MAX)
                    .to_be_bytes();
                gf256::Kernel::scalar().mul_add(prefix, &length, coefficient);
            }
            payloads[own] = symbol_rest;
            gf256::dot(rest, &payloads, &coefficients);
            stripped.push(sum);
        }
        stripped
    }

    /// The unit number of a repair index that `add_repair` accepted.
    fn unit(&self, repair_index: u8) -> u8 {
        // k is at most 255 and the sum was checked to stay below 256 on arrival.
        u8::try_from(self.k() + usize::from(repair_index)).unwrap_or(u8::MAX)
    }

    /// Octets of the block's symbols, known from the first repair symbol on.
    fn symbol_len(&self) -> Option<usize> {
        self.repairs.first().map(|(_, symbol)| symbol.len())
    }
}

/// The payload inside a symbol, if its length fits and only zeros follow.
pub(in crate::fec) fn payload_of(symbol: &[u8]) -> Option<&[u8]> {
    let (&length, rest) = symbol.split_first_chunk::<LENGTH_PREFIX>()?;
    let length = usize::from(u16::from_be_bytes(length));
    let (payload, padding) = rest.split_at_checked(length)?;
    padding.iter().all(|&octet| octet == 0).then_some(payload)
}
