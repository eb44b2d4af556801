//! Rebuilds a long block out of any k of its units.
//!
//! Let P be the polynomial of the block, and E the polynomial whose zeros are the points of the units that are not here. The values
//! of P E are known everywhere: at those points they are zero. Its derivative P' E + P E' is P E' there. So P follows from a
//! transform, a derivative, a transform, and the values of E', whose logarithms are sums over the missing points.

use super::field::{Factor, ORDER, exp, inverse, log};
use super::transform::{Rows, slope};
use super::{LongBlock, push_octets, to_words};
use std::collections::BTreeMap;

/// The reason why a unit was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RejectedLongUnit {
    /// The block has no such unit.
    #[error("unit {0} lies outside the block")]
    OutOfRange(u32),
    /// The unit is here already.
    #[error("unit {0} is here already")]
    Duplicate(u32),
    /// The unit has another length than the block's.
    #[error("{0} octets are not a unit of this block")]
    Length(usize),
    /// The block has as many units as it needs.
    #[error("the block has all the units it needs")]
    Surplus,
}

/// The units of one long block, until there are as many as it has sources.
#[derive(Clone, Debug)]
pub struct LongBlockDecoder {
    block: LongBlock,
    units: BTreeMap<u32, Vec<u8>>,
}

impl LongBlockDecoder {
    /// A decoder without any unit.
    pub const fn new(block: LongBlock) -> Self {
        Self {
            block,
            units: BTreeMap::new(),
        }
    }

    /// The number of further units, any of the block's, that are needed.
    pub fn needed(&self) -> usize {
        usize::from(self.block.sources()).saturating_sub(self.units.len())
    }

    /// Takes a unit: a source by its place in the block, or a repair symbol by its number behind the sources.
    ///
    /// # Errors
    /// [`RejectedLongUnit`], with the decoder as before.
    pub fn add(&mut self, unit: u32, octets: &[u8]) -> Result<(), RejectedLongUnit> {
        if unit >= self.block.units() {
            return Err(RejectedLongUnit::OutOfRange(unit));
        }
        if octets.len() != usize::from(self.block.symbol_bytes()) {
            return Err(RejectedLongUnit::Length(octets.len()));
        }
        if self.units.contains_key(&unit) {
            return Err(RejectedLongUnit::Duplicate(unit));
        }
        if self.needed() == 0 {
            return Err(RejectedLongUnit::Surplus);
        }
        self.units.insert(unit, octets.to_vec());
        Ok(())
    }

    /// The sources, one behind the other; `None` while units are needed.
    pub fn rebuild(self) -> Option<Vec<u8>> {
        if self.needed() > 0 {
            return None;
        }
        let sources = u32::from(self.block.sources());
        let mut out = Vec::with_capacity(sources as usize * usize::from(self.block.symbol_bytes()));
        if self.units.keys().all(|&unit| unit < sources) {
            for octets in self.units.values() {
                out.extend_from_slice(octets);
            }
            return Some(out);
        }
        let rebuilt = self.solve();
        for unit in 0..sources {
            match self.units.get(&unit) {
                Some(octets) => out.extend_from_slice(octets),
                None => push_octets(rebuilt.row(unit), &mut out),
            }
        }
        Some(out)
    }

    /// The values of the polynomial at the places of the sources that are not here. The others mean nothing.
    fn solve(&self) -> Rows {
        let block = self.block;
        let span = block.span();
        let points = |unit: &u32| block.point(*unit);
        let last = self.units.keys().map(points).max().unwrap_or(0);
        let count = (last + 1).next_power_of_two().max(span);
        let mut missing = vec![true; count as usize];
        for point in (u32::from(block.sources())..span).chain(self.units.keys().map(points)) {
            missing[point as usize] = false;
        }
        let locators = locator_logs(&missing);
        let mut rows = Rows::zeros(count, block.words());
        for (&unit, octets) in &self.units {
            let point = block.point(unit);
            let row = rows.row_mut(point);
            to_words(octets, row);
            Factor::new(exp(locators[point as usize])).scale(row);
        }
        rows.interpolate();
        derive(&mut rows, count, span);
        rows.octets.truncate(span as usize * block.words());
        rows.evaluate(0);
        for source in 0..u32::from(block.sources()) {
            if missing[source as usize] {
                let slope_there = exp(locators[source as usize]);
                Factor::new(inverse(slope_there)).scale(rows.row_mut(source));
            }
        }
        rows
    }
}

/// Replaces coefficients by those of the derivative, of which only the first `kept` are right.
fn derive(rows: &mut Rows, count: u32, kept: u32) {
    // With each coefficient times the slopes of its bits, the derivative is a sum without factors.
    for index in 0..count {
        Factor::new(slope(index)).scale(rows.row_mut(index));
    }
    for index in 0..kept {
        rows.row_mut(index).fill(0);
        let mut bit = 1;
        while bit < count {
            if index & bit == 0 {
                rows.add_later(index, index | bit);
            }
            bit <<= 1;
        }
        Factor::new(inverse(slope(index))).scale(rows.row_mut(index));
    }
}

/// The logarithm, at each point, of the product of the differences to the missing points, its own left out.
///
/// Differences are exclusive ors, so the sums are one convolution, by the transform of Walsh and Hadamard modulo the order.
fn locator_logs(missing: &[bool]) -> Vec<u16> {
    let mut sums: Vec<u32> = missing.iter().map(|&missing| u32::from(missing)).collect();
    let mut logs: Vec<u32> = (0..=u16::MAX)
        .take(missing.len())
        .map(|point| log(point).into())
        .collect();
    walsh_hadamard(&mut sums);
    walsh_hadamard(&mut logs);
    for (sum, log) in sums.iter_mut().zip(&logs) {
        *sum = reduced(u64::from(*sum) * u64::from(*log)).into();
    }
    walsh_hadamard(&mut sums);
    // Twice the transform multiplies by the length, 2^b; 2^16 is 1 modulo the order.
    let divided_by_length = 1_u64 << (16 - missing.len().trailing_zeros());
    let divided = sums
        .iter()
        .map(|&sum| reduced(u64::from(sum) * divided_by_length));
    divided.collect()
}

fn reduced(number: u64) -> u16 {
    u16::try_from(number % u64::from(ORDER)).unwrap_or(0)
}

fn walsh_hadamard(values: &mut [u32]) {
    let mut half = 1;
    while half < values.len() {
        for group in values.chunks_exact_mut(2 * half) {
            let (lower, upper) = group.split_at_mut(half);
            for (a, b) in lower.iter_mut().zip(upper) {
                let (sum, difference) = (*a + *b, *a + ORDER - *b);
                *a = if sum >= ORDER { sum - ORDER } else { sum };
                *b = if difference >= ORDER {
                    difference - ORDER
                } else {
                    difference
                };
            }
        }
        half *= 2;
    }
}
