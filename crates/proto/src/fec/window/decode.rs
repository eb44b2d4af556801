//! Collects sources and repair symbols, and rebuilds what is lost as soon as it is determined.

use super::coefficients::{self, Density};
use super::equations::{Contradiction, Equations};
use super::{LENGTH_PREFIX, SPAN_MAX};
use crate::fec::block::payload_of;
use crate::fec::gf256;
use std::collections::VecDeque;

/// The sources of a repair symbol, and how it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairSpan {
    /// The ordinal of the first source.
    pub first: u64,
    /// The number of consecutive sources, 1 to [`SPAN_MAX`].
    pub count: u16,
    /// The key of the coefficients.
    pub key: u16,
    /// The density of the coefficients.
    pub density: Density,
}

/// The most that a [`WindowDecoder`] keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimits {
    /// Sources between the oldest that is kept and the newest, whether they have come or not. Twice the sender's
    /// span loses nothing to a symbol that is late.
    pub sources: usize,
    /// Repair symbols that wait for others.
    pub equations: usize,
    /// Octets of sources and equations.
    pub memory_bytes: usize,
}

/// The reason why a source or repair symbol was not taken. The decoder is as before, but for
/// [`Corrupt`](Self::Corrupt).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RejectedSymbol {
    /// It needs a source that the decoder has forgotten.
    #[error("source {ordinal} lies before the window")]
    Expired {
        /// The oldest source it needs.
        ordinal: u64,
    },
    /// The source is here already.
    #[error("source {ordinal} is here already")]
    Duplicate {
        /// Its ordinal.
        ordinal: u64,
    },
    /// It says nothing that the decoder does not know.
    #[error("the symbol says nothing new")]
    Useless,
    /// It spans no source, or more than the decoder keeps, or ends behind the last ordinal.
    #[error("a repair symbol over {count} sources from {first} on")]
    Span {
        /// The first source of the span.
        first: u64,
        /// The number of sources of the span.
        count: u16,
    },
    /// It is shorter than a source of its span, or longer than a source can be.
    #[error("a symbol of {octets} octets where it has {least} to 65537")]
    Length {
        /// Octets of the symbol.
        octets: usize,
        /// The least that it must have.
        least: usize,
    },
    /// As many repair symbols wait as the limits allow.
    #[error("{equations} repair symbols wait already")]
    Full {
        /// The number that waits.
        equations: usize,
    },
    /// The units contradict each other, so one was damaged without notice. Nothing shows which one, so the
    /// waiting repair symbols are forgotten. A source that came is kept.
    #[error("units contradict each other: one was damaged")]
    Corrupt,
}

impl From<Contradiction> for RejectedSymbol {
    fn from(Contradiction: Contradiction) -> Self {
        Self::Corrupt
    }
}

/// Sources that were rebuilt: ordinal and payload, oldest first.
pub type Rebuilt = Vec<(u64, Vec<u8>)>;

/// A repair symbol without the sources that are known.
struct Stripped {
    symbol: Vec<u8>,
    /// The ordinals of the others, with their coefficients.
    unknown: Vec<(u64, u8)>,
}

/// Takes the units of a window in any order, within [`WindowLimits`].
///
/// The window follows the newest source that is named; what leaves it is forgotten, and costs at most one waiting
/// repair symbol for each source that was still unknown.
#[derive(Clone, Debug)]
pub struct WindowDecoder {
    limits: WindowLimits,
    /// The ordinal of the first of `sources`.
    base: u64,
    /// The payloads from `base` on; `None` is unknown.
    sources: VecDeque<Option<Vec<u8>>>,
    /// The number of `sources` that are unknown.
    unknown: usize,
    /// Octets of the payloads.
    source_bytes: usize,
    equations: Equations,
    coefficients: Vec<u8>,
}

impl WindowDecoder {
    /// A decoder for sources from ordinal `first` on.
    pub fn new(first: u64, limits: WindowLimits) -> Self {
        Self {
            limits,
            base: first,
            sources: VecDeque::new(),
            unknown: 0,
            source_bytes: 0,
            equations: Equations::default(),
            coefficients: Vec::new(),
        }
    }

    /// The oldest ordinal that is not forgotten.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The ordinal behind the newest source that was named by anything that came.
    pub fn end(&self) -> u64 {
        self.base + self.sources.len() as u64
    }

    /// Whether source `ordinal` has come or was rebuilt, and is not forgotten.
    pub fn knows(&self, ordinal: u64) -> bool {
        self.source(ordinal).is_some()
    }

    /// The payload of source `ordinal`, if it has come or was rebuilt.
    pub fn source(&self, ordinal: u64) -> Option<&[u8]> {
        let place = usize::try_from(ordinal.checked_sub(self.base)?).ok()?;
        self.sources.get(place)?.as_deref()
    }

    /// The number of further repair symbols, over all that is unknown, that would do in most cases.
    pub fn needed(&self) -> usize {
        self.unknown.saturating_sub(self.equations.rank())
    }

    /// Octets that are kept.
    pub fn memory_bytes(&self) -> usize {
        self.source_bytes + self.equations.memory_bytes()
    }

    /// Takes the payload of source `ordinal`. Returns what it determines besides.
    ///
    /// # Errors
    /// [`RejectedSymbol`]; with [`Corrupt`](RejectedSymbol::Corrupt) the source is taken all the same.
    pub fn add_source(&mut self, ordinal: u64, payload: &[u8]) -> Result<Rebuilt, RejectedSymbol> {
        let Some(place) = ordinal.checked_sub(self.base) else {
            return Err(RejectedSymbol::Expired { ordinal });
        };
        let Ok(length) = u16::try_from(payload.len()) else {
            let octets = payload.len() + LENGTH_PREFIX;
            return Err(RejectedSymbol::Length {
                octets,
                least: LENGTH_PREFIX,
            });
        };
        if self.knows(ordinal) {
            return Err(RejectedSymbol::Duplicate { ordinal });
        }
        let was_named = place < self.sources.len() as u64;
        self.extend(ordinal, 1);
        self.hold(ordinal, payload.to_vec());
        let rebuilt = if was_named {
            let mut symbol = length.to_be_bytes().to_vec();
            symbol.extend_from_slice(payload);
            let done = self.equations.substitute(ordinal, &symbol);
            done.map_err(RejectedSymbol::from)
                .and_then(|()| self.rebuild())
        } else {
            Ok(Vec::new())
        };
        self.keep_within_memory();
        rebuilt.inspect_err(|_| self.equations.clear())
    }

    /// Takes the repair symbol of `span`. Returns what it determines.
    ///
    /// # Errors
    /// [`RejectedSymbol`].
    pub fn add_repair(
        &mut self,
        span: RepairSpan,
        symbol: &[u8],
    ) -> Result<Rebuilt, RejectedSymbol> {
        let RepairSpan { first, count, .. } = span;
        let width = usize::from(count);
        let last = first.checked_add(u64::from(count));
        if width == 0 || width > SPAN_MAX.min(self.limits.sources) || last.is_none() {
            return Err(RejectedSymbol::Span { first, count });
        }
        if first < self.base {
            return Err(RejectedSymbol::Expired { ordinal: first });
        }
        if self.equations.rank() >= self.limits.equations {
            let equations = self.equations.rank();
            return Err(RejectedSymbol::Full { equations });
        }
        coefficients::draw(span.key, span.density, width, &mut self.coefficients);
        let stripped = self.strip(first, symbol)?;
        if stripped.unknown.is_empty() {
            return if stripped.symbol.iter().all(|&octet| octet == 0) {
                Err(RejectedSymbol::Useless)
            } else {
                self.equations.clear();
                Err(RejectedSymbol::Corrupt)
            };
        }
        self.extend(first, width);
        let terms = stripped.unknown.into_iter();
        let rebuilt = match self.equations.add(terms, stripped.symbol) {
            Ok(true) => self.rebuild(),
            Ok(false) => Err(RejectedSymbol::Useless),
            Err(contradiction) => Err(contradiction.into()),
        };
        self.keep_within_memory();
        rebuilt.inspect_err(|error| {
            if *error == RejectedSymbol::Corrupt {
                self.equations.clear();
            }
        })
    }

    /// Forgets the sources before `ordinal`, as nothing that comes needs them any more.
    pub fn forget_before(&mut self, ordinal: u64) {
        while self.base < ordinal {
            match self.sources.pop_front() {
                Some(Some(payload)) => self.source_bytes -= payload.len(),
                Some(None) => {
                    self.unknown -= 1;
                    self.equations.forget(self.base);
                }
                None => {
                    self.base = ordinal;
                    return;
                }
            }
            self.base += 1;
        }
    }

    /// Names `count` sources from `first` on, and moves the window so that they lie in it.
    fn extend(&mut self, first: u64, count: usize) {
        let end = first.saturating_add(count as u64);
        self.forget_before(end.saturating_sub(self.limits.sources as u64));
        while self.end() < end {
            self.sources.push_back(None);
            self.unknown += 1;
        }
    }

    /// Keeps a payload whose source is in the window and unknown.
    fn hold(&mut self, ordinal: u64, payload: Vec<u8>) {
        let place = usize::try_from(ordinal - self.base).ok();
        if let Some(slot) = place.and_then(|place| self.sources.get_mut(place)) {
            self.source_bytes += payload.len();
            self.unknown -= 1;
            *slot = Some(payload);
        }
    }

    /// The part of a repair symbol that its unknown sources alone contribute.
    fn strip(&self, first: u64, symbol: &[u8]) -> Result<Stripped, RejectedSymbol> {
        let octets = symbol.len();
        let longest = usize::from(u16::MAX) + LENGTH_PREFIX;
        let mut least = LENGTH_PREFIX;
        let mut payloads = Vec::with_capacity(self.coefficients.len() + 1);
        let mut factors = Vec::with_capacity(self.coefficients.len() + 1);
        let mut unknown = Vec::new();
        for (ordinal, &factor) in (first..).zip(&self.coefficients) {
            if factor == 0 {
                continue;
            }
            match self.source(ordinal) {
                Some(payload) => {
                    least = least.max(payload.len() + LENGTH_PREFIX);
                    payloads.push(payload);
                    factors.push(factor);
                }
                None => unknown.push((ordinal, factor)),
            }
        }
        if !(least..=longest).contains(&octets) {
            return Err(RejectedSymbol::Length { octets, least });
        }
        let mut sum = vec![0; octets];
        let (prefix, rest) = sum.split_at_mut(LENGTH_PREFIX);
        let (symbol_prefix, symbol_rest) = symbol.split_at(LENGTH_PREFIX);
        prefix.copy_from_slice(symbol_prefix);
        for (payload, &factor) in payloads.iter().zip(&factors) {
            // Longer ones were refused on arrival.
            let length = u16::try_from(payload.len()).unwrap_or(u16::MAX);
            gf256::Kernel::scalar().mul_add(prefix, &length.to_be_bytes(), factor);
        }
        payloads.push(symbol_rest);
        factors.push(1);
        gf256::dot(rest, &payloads, &factors);
        Ok(Stripped {
            symbol: sum,
            unknown,
        })
    }

    /// Keeps and returns the sources that are determined.
    fn rebuild(&mut self) -> Result<Rebuilt, RejectedSymbol> {
        let solved = self.equations.take_solved();
        let mut rebuilt = Vec::with_capacity(solved.len());
        for (ordinal, symbol) in &solved {
            let payload = payload_of(symbol).ok_or(RejectedSymbol::Corrupt)?;
            rebuilt.push((*ordinal, payload.to_vec()));
        }
        for (ordinal, payload) in &rebuilt {
            self.hold(*ordinal, payload.clone());
        }
        Ok(rebuilt)
    }

    /// Forgets the oldest sources until the rest fits.
    fn keep_within_memory(&mut self) {
        while self.memory_bytes() > self.limits.memory_bytes && !self.sources.is_empty() {
            self.forget_before(self.base + 1);
        }
    }
}
