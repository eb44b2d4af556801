//! Parity over the sources so far, for a block that is still being filled.
//!
//! A repair symbol spans the sources before it: its row is the row of a repair unit of the block
//! code, cut after the span. Lost sources are rebuilt as soon as as many repair symbols as there
//! are lost sources have arrived behind them. Sources that are still to come do not matter.
//!
//! Sources have the unit numbers 0 to 63 and rows the numbers from 64 on, whatever the span. So
//! symbols of equal span are those of the block code, and any set of them will do. Rows of
//! different spans make a matrix that is singular once in a few hundred times; one more row mends
//! that.
//!
//! # Does not
//! - Know when a block ends, or how many rows there will be.
//! - Detect damage, except by a length that does not fit.
//!
//! # Sources
//! The rows of [`super::encode_repair`]; `docs/models/link.md`.

use super::{LENGTH_PREFIX, cauchy};
use crate::fec::gf256;

/// The number of sources that such a block can have.
pub const SPAN_MAX: u8 = 64;
/// The number of rows that such a block can have.
pub const ROWS_MAX: u8 = 192;

/// A payload as a symbol.
fn symbol_of(payload: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(payload.len()).ok()?;
    let mut symbol = Vec::with_capacity(LENGTH_PREFIX + payload.len());
    symbol.extend_from_slice(&length.to_be_bytes());
    symbol.extend_from_slice(payload);
    Some(symbol)
}

/// The payload inside a symbol.
fn payload_of(symbol: &[u8]) -> Option<&[u8]> {
    let (&length, rest) = symbol.split_first_chunk::<LENGTH_PREFIX>()?;
    rest.get(..usize::from(u16::from_be_bytes(length)))
}

/// The sources of a block that is being filled.
#[derive(Clone, Debug, Default)]
pub struct SpanEncoder {
    symbols: Vec<Vec<u8>>,
}

impl SpanEncoder {
    /// Adds the next source and returns its index; `None` if the block is full or the payload longer
    /// than 65,535 octets.
    pub fn push(&mut self, payload: &[u8]) -> Option<u8> {
        let index = self.span();
        if index >= SPAN_MAX {
            return None;
        }
        self.symbols.push(symbol_of(payload)?);
        Some(index)
    }

    /// The number of sources.
    pub fn span(&self) -> u8 {
        u8::try_from(self.symbols.len()).unwrap_or(SPAN_MAX)
    }

    /// The payload of source `index`.
    pub fn source(&self, index: u8) -> Option<&[u8]> {
        payload_of(self.symbols.get(usize::from(index))?)
    }

    /// Appends the repair symbol of `row` over the first `span` sources to `out`. Returns `false`
    /// if no such symbol exists.
    pub fn repair(&self, row: u8, span: u8, out: &mut Vec<u8>) -> bool {
        let Some(symbols) = self.symbols.get(..usize::from(span)) else {
            return false;
        };
        if row >= ROWS_MAX || symbols.is_empty() {
            return false;
        }
        let symbols: Vec<&[u8]> = symbols.iter().map(Vec::as_slice).collect();
        let longest = symbols.iter().map(|symbol| symbol.len()).max();
        let start = out.len();
        out.resize(start + longest.unwrap_or_default(), 0);
        if let Some(symbol) = out.get_mut(start..) {
            gf256::dot(symbol, &symbols, &cauchy::row(SPAN_MAX + row, span));
        }
        true
    }
}

#[derive(Clone, Debug)]
struct Repair {
    row: u8,
    span: u8,
    symbol: Vec<u8>,
}

/// A decoder that collects sources and repair symbols, and rebuilds sources as soon as it can.
///
/// Holds at most [`SPAN_MAX`] sources and as many repair symbols.
#[derive(Clone, Debug, Default)]
pub struct SpanDecoder {
    /// The symbols that arrived or were rebuilt, by index.
    symbols: Vec<Option<Vec<u8>>>,
    /// The repair symbols that have not rebuilt anything yet.
    repairs: Vec<Repair>,
}

impl SpanDecoder {
    /// The payload of source `index`, if it arrived or was rebuilt.
    pub fn source(&self, index: u8) -> Option<&[u8]> {
        payload_of(self.symbols.get(usize::from(index))?.as_ref()?)
    }

    /// The number of further symbols that must come until all of the first `span` sources are
    /// known.
    pub fn needed(&self, span: u8) -> usize {
        let repairs = self.repairs.iter().filter(|repair| repair.span <= span);
        self.lost(span).saturating_sub(repairs.count())
    }

    /// The number of octets held.
    pub fn octets(&self) -> usize {
        let symbols = self.symbols.iter().flatten().map(Vec::len);
        let repairs = self.repairs.iter().map(|repair| repair.symbol.len());
        symbols.chain(repairs).sum()
    }

    fn lost(&self, span: u8) -> usize {
        let known = self.symbols.iter().take(usize::from(span)).flatten();
        usize::from(span) - known.count()
    }

    fn keep(&mut self, index: u8, symbol: Vec<u8>) {
        let index = usize::from(index);
        if self.symbols.len() <= index {
            self.symbols.resize(index + 1, None);
        }
        self.symbols[index] = Some(symbol);
    }

    /// Takes source `index`. Returns `false` if it brings nothing new, or if no such source is
    /// possible.
    pub fn add_source(&mut self, index: u8, payload: &[u8]) -> bool {
        if index >= SPAN_MAX || self.source(index).is_some() {
            return false;
        }
        let Some(symbol) = symbol_of(payload) else {
            return false;
        };
        self.keep(index, symbol);
        self.rebuild();
        true
    }

    /// Takes the symbol of `row` over the first `span` sources. Returns `false` if it brings
    /// nothing new, or if no such symbol is possible.
    pub fn add_repair(&mut self, row: u8, span: u8, symbol: &[u8]) -> bool {
        let sound = row < ROWS_MAX && (1..=SPAN_MAX).contains(&span);
        let fits = (LENGTH_PREFIX..=LENGTH_PREFIX + usize::from(u16::MAX)).contains(&symbol.len());
        let known = self.repairs.iter().any(|repair| repair.row == row);
        if !sound || !fits || known || self.needed(span) == 0 {
            return false;
        }
        let symbol = symbol.to_vec();
        self.repairs.push(Repair { row, span, symbol });
        self.rebuild();
        true
    }

    /// Rebuilds the sources that the repair symbols allow, shortest spans first.
    fn rebuild(&mut self) {
        let mut spans: Vec<u8> = self.repairs.iter().map(|repair| repair.span).collect();
        spans.sort_unstable();
        spans.dedup();
        for span in spans {
            while self.needed(span) == 0 && self.repairs.iter().any(|r| r.span <= span) {
                if self.lost(span) == 0 || self.solve(span) {
                    self.repairs.retain(|repair| repair.span > span);
                }
            }
        }
    }

    /// Solves for all lost sources among the first `span`. Returns `false` if the rows did not
    /// suffice; one that adds nothing new was then dropped.
    fn solve(&mut self, span: u8) -> bool {
        let lost: Vec<u8> = (0..span).filter(|&j| self.source(j).is_none()).collect();
        let rows: Vec<&Repair> = self.repairs.iter().filter(|r| r.span <= span).collect();
        let coefficients = rows.iter().map(|repair| {
            let of = |&j: &u8| {
                let within = j < repair.span;
                let unit = SPAN_MAX + repair.row;
                if within {
                    cauchy::coefficient(unit, j)
                } else {
                    0
                }
            };
            lost.iter().map(of).collect()
        });
        match inverted(coefficients.collect(), lost.len()) {
            Ok(inverse) => {
                let stripped: Vec<Vec<u8>> = rows.iter().map(|r| self.stripped(r)).collect();
                let stripped: Vec<&[u8]> = stripped.iter().map(Vec::as_slice).collect();
                let longest = stripped.iter().map(|symbol| symbol.len()).max();
                let mut rebuilt = Vec::with_capacity(lost.len());
                for (&index, row) in lost.iter().zip(&inverse) {
                    let mut symbol = vec![0; longest.unwrap_or_default()];
                    gf256::dot(&mut symbol, &stripped, row);
                    // A length that does not fit shows damage: the source is not usable.
                    let len = payload_of(&symbol).map_or(0, <[u8]>::len);
                    symbol.truncate(LENGTH_PREFIX + len);
                    rebuilt.push((index, symbol));
                }
                for (index, symbol) in rebuilt {
                    self.keep(index, symbol);
                }
                true
            }
            Err(dependent) => {
                let row = rows.get(dependent).map(|repair| repair.row);
                self.repairs.retain(|repair| Some(repair.row) != row);
                false
            }
        }
    }

    /// The part of a repair symbol that the lost sources alone contribute.
    fn stripped(&self, repair: &Repair) -> Vec<u8> {
        let unit = SPAN_MAX + repair.row;
        let known = (0..repair.span).zip(&self.symbols);
        let (mut coefficients, mut symbols): (Vec<u8>, Vec<&[u8]>) = known
            .filter_map(|(j, symbol)| {
                let symbol = symbol.as_ref()?;
                Some((cauchy::coefficient(unit, j), symbol.as_slice()))
            })
            .unzip();
        coefficients.push(1);
        symbols.push(&repair.symbol);
        let mut sum = vec![0; repair.symbol.len()];
        gf256::dot(&mut sum, &symbols, &coefficients);
        sum
    }
}

/// The inverse of `matrix`: rows that, multiplied by it, give the unit matrix of `size`. If there
/// is none, the error is the row of `matrix` that is a sum of those before it.
fn inverted(mut matrix: Vec<Vec<u8>>, size: usize) -> Result<Vec<Vec<u8>>, usize> {
    let count = matrix.len();
    for (i, row) in matrix.iter_mut().enumerate() {
        row.extend((0..count).map(|j| u8::from(i == j)));
    }
    // The column in which each row leads.
    let mut leads = Vec::with_capacity(count);
    for i in 0..count {
        let Some(lead) = (0..size).find(|&j| matrix[i][j] != 0) else {
            return Err(i);
        };
        let scale = gf256::inverse(matrix[i][lead]);
        let mut row = vec![0; size + count];
        gf256::mul_add(&mut row, &matrix[i], scale);
        for (other, values) in matrix.iter_mut().enumerate() {
            if other != i {
                let factor = values[lead];
                gf256::mul_add(values, &row, factor);
            }
        }
        matrix[i] = row;
        leads.push(lead);
        if leads.len() == size {
            break;
        }
    }
    let mut inverse = vec![Vec::new(); size];
    for (&lead, row) in leads.iter().zip(&matrix) {
        inverse[lead] = row.get(size..).unwrap_or_default().to_vec();
    }
    Ok(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn payloads(rng: &mut Rng, count: u8) -> Vec<Vec<u8>> {
        let payload = |_| {
            let mut octets = vec![0; usize::try_from(rng.below(200)).unwrap()];
            rng.fill(&mut octets);
            octets
        };
        (0..count).map(payload).collect()
    }

    /// Sends a block with a row after every third source and rows at its end until the receiver has
    /// every source. A share `loss` of the symbols does not arrive. Returns the number of symbols
    /// that arrived, and the number needed.
    fn session(seed: u64, count: u8, loss: f64) -> (usize, usize) {
        let mut rng = Rng::from_seed(seed);
        let payloads = payloads(&mut rng, count);
        let (mut encoder, mut decoder) = (SpanEncoder::default(), SpanDecoder::default());
        let (mut row, mut useful) = (0, 0);
        let mut repair = |encoder: &SpanEncoder, decoder: &mut SpanDecoder, arrives: bool| {
            let mut symbol = Vec::new();
            assert!(encoder.repair(row, encoder.span(), &mut symbol));
            let needed = decoder.needed(encoder.span());
            let taken = arrives && decoder.add_repair(row, encoder.span(), &symbol);
            assert_eq!(taken, arrives && needed > 0, "seed {seed}");
            row += 1;
            usize::from(taken)
        };
        for (index, payload) in (0..).zip(&payloads) {
            assert_eq!(encoder.push(payload), Some(index));
            if !rng.chance(loss) {
                assert!(decoder.add_source(index, payload));
                useful += 1;
            }
            if index % 3 == 2 {
                let arrives = !rng.chance(loss);
                useful += repair(&encoder, &mut decoder, arrives);
            }
        }
        while decoder.needed(count) > 0 {
            let arrives = !rng.chance(loss);
            useful += repair(&encoder, &mut decoder, arrives);
        }
        for (index, payload) in (0..).zip(&payloads) {
            assert_eq!(
                decoder.source(index),
                Some(payload.as_slice()),
                "seed {seed}"
            );
        }
        (useful, usize::from(count))
    }

    #[test]
    fn whatever_is_lost_comes_back_with_hardly_more_symbols_than_sources() {
        let (mut used, mut sources) = (0, 0);
        for seed in 0..400 {
            let loss = [0.05, 0.2, 0.5, 0.7][usize::try_from(seed % 4).unwrap()];
            let count = u8::try_from(1 + seed % 40).unwrap();
            let (useful, count) = session(seed, count, loss);
            used += useful;
            sources += count;
        }
        // A random square matrix over GF(256) is singular with 0.4 %, and a block solves a few.
        assert!(used - sources <= sources / 50, "{used} for {sources}");
    }

    #[test]
    fn a_row_rebuilds_what_was_lost_before_it_and_not_what_comes_after() {
        let mut encoder = SpanEncoder::default();
        let mut decoder = SpanDecoder::default();
        for payload in [&b"first"[..], b"second one", b"third"] {
            encoder.push(payload).unwrap();
        }
        decoder.add_source(0, b"first");
        let mut symbol = Vec::new();
        assert!(encoder.repair(0, 2, &mut symbol));
        assert!(decoder.add_repair(0, 2, &symbol));
        assert_eq!(decoder.source(1), Some(&b"second one"[..]));
        assert_eq!((decoder.needed(2), decoder.needed(3)), (0, 1));
        assert!(
            !decoder.add_repair(1, 2, &symbol),
            "nothing is needed there"
        );
        assert!(!decoder.add_source(1, b"another"), "it is here");
    }

    #[test]
    fn what_cannot_be_is_refused_and_what_is_full_stays_as_it_is() {
        let mut encoder = SpanEncoder::default();
        for _ in 0..SPAN_MAX {
            assert!(encoder.push(b"x").is_some());
        }
        assert_eq!(encoder.push(b"x"), None);
        let mut out = Vec::new();
        assert!(!encoder.repair(0, 0, &mut out));
        assert!(!encoder.repair(ROWS_MAX, 1, &mut out));
        assert!(!encoder.repair(0, SPAN_MAX + 1, &mut out));
        assert!(out.is_empty());
        let mut decoder = SpanDecoder::default();
        assert!(!decoder.add_source(SPAN_MAX, b"x"));
        for (row, span, len) in [(0, 0, 3), (0, SPAN_MAX + 1, 3), (ROWS_MAX, 1, 3), (0, 1, 1)] {
            assert!(!decoder.add_repair(row, span, &vec![1; len]));
        }
        // Octets that are no symbol give a wrong source and do no other harm.
        assert!(decoder.add_repair(3, 1, &[0xFF; 9]));
        assert_eq!(decoder.needed(1), 0);
    }
}
