//! The equations over lost sources, in reduced form: each has one source of its own, its pivot, that no other has.

use crate::fec::gf256;

/// Two equations that cannot both hold: a unit was damaged without notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contradiction;

#[derive(Clone, Debug)]
struct Equation {
    /// One for each entry of `Equations::unknowns`.
    factors: Vec<u8>,
    /// The place of the pivot, whose factor is one.
    pivot: usize,
    /// The sum; behind its end it is zero.
    symbol: Vec<u8>,
}

impl Equation {
    /// Adds `factor` times `other`.
    fn add(&mut self, other: &Self, factor: u8) {
        gf256::mul_add(&mut self.factors, &other.factors, factor);
        add_symbol(&mut self.symbol, &other.symbol, factor);
    }

    fn divide(&mut self, by: u8) {
        if by != 1 {
            let factor = gf256::inverse(by);
            for octets in [&mut self.factors, &mut self.symbol] {
                let mut product = vec![0; octets.len()];
                gf256::mul_add(&mut product, octets, factor);
                *octets = product;
            }
        }
    }
}

/// Adds `factor` times `symbol` to `sum`, as if both went on with zeros.
fn add_symbol(sum: &mut Vec<u8>, symbol: &[u8], factor: u8) {
    if sum.len() < symbol.len() {
        sum.resize(symbol.len(), 0);
    }
    gf256::mul_add(sum, symbol, factor);
}

/// A system of equations over lost sources, named by their ordinals.
#[derive(Clone, Debug, Default)]
pub(super) struct Equations {
    /// The ordinals over which the equations are, in no order.
    unknowns: Vec<u64>,
    rows: Vec<Equation>,
}

impl Equations {
    /// The number of equations, each worth one lost source.
    pub(super) fn rank(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let row = |row: &Equation| row.factors.len() + row.symbol.len();
        8 * self.unknowns.len() + self.rows.iter().map(row).sum::<usize>()
    }

    pub(super) fn clear(&mut self) {
        self.unknowns.clear();
        self.rows.clear();
    }

    /// Takes the equation Σ factor · source = `symbol`. Returns whether it said anything new.
    pub(super) fn add(
        &mut self,
        terms: impl Iterator<Item = (u64, u8)>,
        symbol: Vec<u8>,
    ) -> Result<bool, Contradiction> {
        let mut factors = vec![0; self.unknowns.len()];
        for (ordinal, factor) in terms.filter(|&(_, factor)| factor != 0) {
            if let Some(place) = self.place(ordinal) {
                factors[place] = factor;
            } else {
                self.unknowns.push(ordinal);
                factors.push(factor);
                for row in &mut self.rows {
                    row.factors.push(0);
                }
            }
        }
        let mut new = Equation {
            factors,
            pivot: 0,
            symbol,
        };
        for row in &self.rows {
            let factor = new.factors[row.pivot];
            if factor != 0 {
                new.add(row, factor);
            }
        }
        self.insert(new)
    }

    /// Takes an equation that holds no pivot of the others.
    fn insert(&mut self, mut new: Equation) -> Result<bool, Contradiction> {
        // The oldest as pivot: it leaves the window first, and then takes no other equation with it.
        let places = (0..self.unknowns.len()).filter(|&place| new.factors[place] != 0);
        let Some(pivot) = places.min_by_key(|&place| self.unknowns[place]) else {
            return if new.symbol.iter().all(|&octet| octet == 0) {
                Ok(false)
            } else {
                Err(Contradiction)
            };
        };
        new.divide(new.factors[pivot]);
        new.pivot = pivot;
        for row in &mut self.rows {
            let factor = row.factors[pivot];
            if factor != 0 {
                row.add(&new, factor);
            }
        }
        self.rows.push(new);
        Ok(true)
    }

    /// Puts in a source that has come, as a symbol.
    pub(super) fn substitute(&mut self, ordinal: u64, symbol: &[u8]) -> Result<(), Contradiction> {
        let Some(place) = self.place(ordinal) else {
            return Ok(());
        };
        let mut without_pivot = None;
        for (index, row) in self.rows.iter_mut().enumerate() {
            let factor = row.factors[place];
            if factor != 0 {
                if symbol.len() > row.symbol.len() {
                    return Err(Contradiction);
                }
                add_symbol(&mut row.symbol, symbol, factor);
                row.factors[place] = 0;
                if row.pivot == place {
                    without_pivot = Some(index);
                }
            }
        }
        let without_pivot = without_pivot.map(|index| self.rows.swap_remove(index));
        if let Some(row) = without_pivot {
            self.insert(row)?;
        }
        self.remove(place);
        Ok(())
    }

    /// Gives up a source; costs at most one equation.
    pub(super) fn forget(&mut self, ordinal: u64) {
        let Some(place) = self.place(ordinal) else {
            return;
        };
        let pivot = self.rows.iter().position(|row| row.pivot == place);
        let lost = pivot.or_else(|| self.rows.iter().position(|row| row.factors[place] != 0));
        if let Some(index) = lost {
            let mut lost = self.rows.swap_remove(index);
            lost.divide(lost.factors[place]);
            for row in &mut self.rows {
                let factor = row.factors[place];
                if factor != 0 {
                    // The other's pivot is a source that none of the rows left has.
                    row.add(&lost, factor);
                }
            }
        }
        self.remove(place);
    }

    /// Takes out the sources that are determined, each with its symbol, oldest first.
    pub(super) fn take_solved(&mut self) -> Vec<(u64, Vec<u8>)> {
        let mut solved = Vec::new();
        let mut index = 0;
        while let Some(row) = self.rows.get(index) {
            if row.factors.iter().filter(|&&factor| factor != 0).count() == 1 {
                let row = self.rows.swap_remove(index);
                solved.push((self.unknowns[row.pivot], row.symbol));
                self.remove(row.pivot);
            } else {
                index += 1;
            }
        }
        solved.sort_unstable_by_key(|&(ordinal, _)| ordinal);
        solved
    }

    fn place(&self, ordinal: u64) -> Option<usize> {
        self.unknowns.iter().position(|&unknown| unknown == ordinal)
    }

    /// Removes an unknown that no equation holds any more; the last one takes its place.
    fn remove(&mut self, place: usize) {
        self.unknowns.swap_remove(place);
        let last = self.unknowns.len();
        for row in &mut self.rows {
            row.factors.swap_remove(place);
            if row.pivot == last {
                row.pivot = place;
            }
        }
    }
}
