//! The wrong octets of a damaged codeword and their error values, from its remainder.
//!
//! The remainder of the received polynomial by the generator has the same values at the roots as
//! the errors have, and only r terms, so syndromes cost r^2 steps instead of 255 r. The rest is
//! standard: shift-register synthesis gives the locator polynomial, its roots the positions,
//! Forney's formula the values.

use super::layout::CODEWORD_OCTETS_MAX;
use crate::fec::gf256::{dot, inverse, mul_add, power, product};

/// The powers of α: `POWERS[i][j]` = α^(ij).
static POWERS: [[u8; CODEWORD_OCTETS_MAX]; CODEWORD_OCTETS_MAX] = {
    let mut table = [[0; CODEWORD_OCTETS_MAX]; CODEWORD_OCTETS_MAX];
    let mut i = 0;
    while i < CODEWORD_OCTETS_MAX {
        let mut j = 0;
        while j < CODEWORD_OCTETS_MAX {
            table[i][j] = power(i * j);
            j += 1;
        }
        i += 1;
    }
    table
};

type Symbols = [u8; CODEWORD_OCTETS_MAX];

/// Calls `correct` with index and error value of each wrong octet of a codeword of `len` octets,
/// whose remainder (highest power first) is not all zero. Returns how many there are, or `None`,
/// without a call, when no pattern of up to `remainder.len()` / 2 errors explains the remainder.
pub(super) fn locate(remainder: &[u8], len: usize, correct: impl FnMut(usize, u8)) -> Option<u32> {
    let mut syndromes = [0; CODEWORD_OCTETS_MAX];
    let syndromes = syndromes.get_mut(..remainder.len())?;
    // Syndrome j is the remainder's value at α^(j + 1): roots begin at α^1.
    let mut terms = [0; CODEWORD_OCTETS_MAX];
    let mut rows: [&[u8]; CODEWORD_OCTETS_MAX] = [&[]; CODEWORD_OCTETS_MAX];
    for (power, &term) in remainder.iter().rev().enumerate() {
        terms[power] = term;
        rows[power] = &POWERS[power][1..];
    }
    dot(syndromes, &rows[..remainder.len()], &terms);
    locate_by(syndromes, len, correct)
}

/// Does the same by the values of the errors at α^1, α^2 and so on, of which not all are zero.
pub(super) fn locate_by(
    syndromes: &[u8],
    len: usize,
    mut correct: impl FnMut(usize, u8),
) -> Option<u32> {
    let (locator, errors) = synthesise(syndromes)?;
    let locator = &locator[..=errors];

    // At power p of x stands the octet with index len - 1 - p; the locator is zero at α^-p.
    let mut values = [0; CODEWORD_OCTETS_MAX];
    let values = values.get_mut(..len)?;
    let mut rows: [&[u8]; CODEWORD_OCTETS_MAX] = [&[]; CODEWORD_OCTETS_MAX];
    for (i, row) in rows.iter_mut().enumerate().take(locator.len()) {
        *row = &POWERS[(CODEWORD_OCTETS_MAX - i) % CODEWORD_OCTETS_MAX];
    }
    dot(values, &rows[..locator.len()], locator);
    let is_root = |&(_, &value): &(usize, &u8)| value == 0;
    if values.iter().enumerate().filter(is_root).count() != errors {
        return None;
    }
    let evaluator = evaluator(locator, syndromes);
    let mut found = 0;
    for (position, _) in values.iter().enumerate().filter(is_root) {
        let x = power(CODEWORD_OCTETS_MAX - position);
        let numerator = at(evaluator[..errors].iter().copied(), x);
        let denominator = at(derivative(locator), x);
        correct(len - 1 - position, product(numerator, inverse(denominator)));
        found += 1;
    }
    Some(found)
}

/// The shortest shift register that makes the syndromes (Massey 1969): its connection polynomial,
/// lowest power first, and its length, which is the number of errors. `None` if that exceeds what
/// the syndromes can correct.
fn synthesise(syndromes: &[u8]) -> Option<(Symbols, usize)> {
    let correctable = syndromes.len() / 2;
    let mut locator = [0; CODEWORD_OCTETS_MAX];
    locator[0] = 1;
    let mut before = locator;
    let mut length = 0;
    let mut length_before = 0;
    let mut discrepancy_before = 1;
    let mut shift = 1;
    for n in 0..syndromes.len() {
        let earlier = syndromes[..=n].iter().rev();
        let terms = locator[..=length].iter().zip(earlier);
        let discrepancy = terms.fold(0, |sum, (&c, &s)| sum ^ product(c, s));
        if discrepancy == 0 {
            shift += 1;
            continue;
        }
        let factor = product(discrepancy, inverse(discrepancy_before));
        let grows = 2 * length <= n;
        if grows && n + 1 - length > correctable {
            return None;
        }
        let unchanged = locator;
        mul_add(&mut locator[shift..], &before[..=length_before], factor);
        if grows {
            before = unchanged;
            length_before = length;
            discrepancy_before = discrepancy;
            length = n + 1 - length;
            shift = 1;
        } else {
            shift += 1;
        }
    }
    Some((locator, length))
}

/// The lowest terms of Ω = S · Λ, as many as there are errors.
fn evaluator(locator: &[u8], syndromes: &[u8]) -> Symbols {
    let mut terms = [0; CODEWORD_OCTETS_MAX];
    let errors = locator.len() - 1;
    for (shift, &term) in locator[..errors].iter().enumerate() {
        mul_add(&mut terms[shift..errors], syndromes, term);
    }
    terms
}

/// The terms of Λ', lowest power first: in characteristic two the odd terms of Λ, moved down.
fn derivative(locator: &[u8]) -> impl DoubleEndedIterator<Item = u8> {
    let terms = locator.iter().enumerate().skip(1);
    terms.map(|(power, &term)| if power % 2 == 1 { term } else { 0 })
}

/// The value of a polynomial at `x`; its terms are given lowest power first.
fn at(terms: impl DoubleEndedIterator<Item = u8>, x: u8) -> u8 {
    terms.rev().fold(0, |sum, term| product(sum, x) ^ term)
}
