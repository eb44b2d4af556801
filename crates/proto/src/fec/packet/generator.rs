//! Division by a generator polynomial: parity for the sender, the remainder for the receiver.
//!
//! A shift register takes one octet a step. The multiples of the generator stand in a table, so a
//! step is a shift and an xor of r octets, held in words of 64 bits. Codewords are independent, and
//! up to four registers side by side hide one another's latency.

use super::layout::{CODEWORD_OCTETS_MAX, Layout};
use crate::fec::gf256;
use core::ops::Range;

/// The generator of a code with `parity` parity octets, as its multiples.
#[derive(Clone, Debug)]
pub(super) struct Generator {
    parity: usize,
    /// 64-bit words of a register: a power of two from 1 to 32.
    stride: usize,
    /// `stride` words for each factor: factor times the generator without its leading term, highest
    /// power first, left-aligned.
    multiples: Vec<u64>,
}

impl Generator {
    /// The generator for 1 to 254 parity octets.
    pub(super) fn new(parity: usize) -> Self {
        // Highest power first, leading one included: multiply by (x - α^i) for each root.
        let mut polynomial = [0; CODEWORD_OCTETS_MAX + 1];
        polynomial[0] = 1;
        for root in 1..=parity {
            for term in (1..=root).rev() {
                polynomial[term] ^= gf256::product(polynomial[term - 1], gf256::power(root));
            }
        }
        let stride = parity.div_ceil(8).next_power_of_two();
        let mut multiples = Vec::with_capacity(256 * stride);
        for factor in 0..=u8::MAX {
            let mut octets = [0; 32 * 8];
            gf256::mul_add(&mut octets, &polynomial[1..=parity], factor);
            let words = octets.as_chunks().0.iter().take(stride);
            multiples.extend(words.map(|&word| u64::from_be_bytes(word)));
        }
        Self {
            parity,
            stride,
            multiples,
        }
    }

    pub(super) fn parity(&self) -> usize {
        self.parity
    }

    /// Calls `visit` with each codeword of `first..first + count` and the remainder of its message
    /// octets, times x^parity, by the generator: `parity` octets, highest power first.
    pub(super) fn divide(
        &self,
        message: &[u8],
        layout: Layout,
        (first, count): (usize, usize),
        mut visit: impl FnMut(usize, &[u8]),
    ) {
        let codewords = first..first + count;
        match self.stride {
            1 => self.divide_all::<1>(message, layout, codewords, &mut visit),
            2 => self.divide_all::<2>(message, layout, codewords, &mut visit),
            4 => self.divide_all::<4>(message, layout, codewords, &mut visit),
            8 => self.divide_all::<8>(message, layout, codewords, &mut visit),
            16 => self.divide_all::<16>(message, layout, codewords, &mut visit),
            _ => self.divide_all::<32>(message, layout, codewords, &mut visit),
        }
    }

    /// The division with registers of `WORDS` words, which is the stride.
    fn divide_all<const WORDS: usize>(
        &self,
        message: &[u8],
        layout: Layout,
        mut codewords: Range<usize>,
        visit: &mut impl FnMut(usize, &[u8]),
    ) {
        while let Some(first) = codewords.next() {
            let others = match codewords.len() {
                0 => {
                    self.divide_some::<WORDS, 1>(message, layout, first, visit);
                    0
                }
                1 | 2 => {
                    self.divide_some::<WORDS, 2>(message, layout, first, visit);
                    1
                }
                _ => {
                    self.divide_some::<WORDS, 4>(message, layout, first, visit);
                    3
                }
            };
            codewords.start += others;
        }
    }

    /// The division of `REGISTERS` codewords from `first` on.
    fn divide_some<const WORDS: usize, const REGISTERS: usize>(
        &self,
        message: &[u8],
        layout: Layout,
        first: usize,
        visit: &mut impl FnMut(usize, &[u8]),
    ) {
        let multiples = self.multiples.as_chunks::<WORDS>().0;
        let Some(multiples) = multiples.first_chunk::<256>() else {
            return;
        };
        let mut registers = [[0; WORDS]; REGISTERS];
        let rows = message.chunks_exact(layout.codewords);
        let last = rows.remainder();
        for row in rows {
            if let Some(octets) = row.get(first..).and_then(|r| r.first_chunk::<REGISTERS>()) {
                for (register, &octet) in registers.iter_mut().zip(octets) {
                    step(register, octet, multiples);
                }
            }
        }
        for (register, &octet) in registers.iter_mut().zip(last.iter().skip(first)) {
            step(register, octet, multiples);
        }
        for (codeword, register) in (first..).zip(registers) {
            let octets = register.map(u64::to_be_bytes);
            visit(codeword, &octets.as_flattened()[..self.parity]);
        }
    }
}

#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "a handful of instructions per message octet"
)]
fn step<const WORDS: usize>(
    register: &mut [u64; WORDS],
    octet: u8,
    multiples: &[[u64; WORDS]; 256],
) {
    let feedback = register[0].to_be_bytes()[0] ^ octet;
    let multiple = &multiples[usize::from(feedback)];
    for word in 0..WORDS {
        let carried = if word + 1 < WORDS {
            register[word + 1] >> 56
        } else {
            0
        };
        register[word] = (register[word] << 8 | carried) ^ multiple[word];
    }
}
