//! Every form equals the scalar one, and the scalar one equals shift-and-reduce arithmetic.
#![expect(
    clippy::cast_possible_truncation,
    reason = "a draw is below the bound it was given"
)]

use super::table::{ORDER, power};
use super::{Kernel, inverse, product};
use crate::rng::Rng;

/// The product from the definition: multiply as polynomials, then reduce by 0x11D.
fn product_by_definition(a: u8, b: u8) -> u8 {
    let mut wide = 0u16;
    for bit in 0..8 {
        if b >> bit & 1 == 1 {
            wide ^= u16::from(a) << bit;
        }
    }
    for bit in (8..15).rev() {
        if wide >> bit & 1 == 1 {
            wide ^= 0x11D << (bit - 8);
        }
    }
    u8::try_from(wide).unwrap()
}

#[test]
fn all_65536_products_and_every_inverse_are_those_of_the_definition() {
    for a in 0..=255 {
        for b in 0..=255 {
            assert_eq!(product(a, b), product_by_definition(a, b), "{a} · {b}");
        }
        assert_eq!(product(a, inverse(a)), u8::from(a != 0), "1 / {a}");
    }
}

#[test]
fn x_is_primitive() {
    assert_eq!(power(1), 2);
    assert_eq!(power(ORDER), 1);
    assert!((1..ORDER).all(|exponent| power(exponent) != 1));
}

#[test]
fn every_form_knows_all_65536_products() {
    let octets: Vec<u8> = (0..=255).collect();
    for kernel in Kernel::available() {
        for factor in 0..=255 {
            let mut added = [0; 256];
            kernel.mul_add(&mut added, &octets, factor);
            let mut summed = [1; 256];
            kernel.dot(&mut summed, &[&octets], &[factor]);
            for (&octet, (&a, &s)) in octets.iter().zip(added.iter().zip(&summed)) {
                assert_eq!(a, product(factor, octet), "{kernel:?}: {factor} · {octet}");
                assert_eq!(s, product(factor, octet), "{kernel:?}: {factor} · {octet}");
            }
        }
    }
}

fn random_octets(stream: &mut Rng, len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    stream.fill(&mut octets);
    octets
}

#[test]
fn mul_add_equals_the_scalar_form_at_every_length_and_alignment() {
    let mut stream = Rng::from_seed(0x11D).child("mul-add");
    let pool = random_octets(&mut stream, 4096);
    for kernel in Kernel::available() {
        for len in 0..2000 {
            let (from, to) = (stream.below(64) as usize, stream.below(64) as usize);
            let factor = stream.below(256) as u8;
            let source = &pool[from..from + len];
            // One more octet on either side shows a write out of bounds.
            let mut expected = pool[2048 - to..2048 - to + len + 2].to_vec();
            let mut found = expected.clone();
            Kernel::scalar().mul_add(&mut expected[1..=len], source, factor);
            kernel.mul_add(&mut found[1..=len], source, factor);
            assert_eq!(found, expected, "{kernel:?}, {len} octets, factor {factor}");
        }
    }
}

#[test]
fn dot_equals_the_scalar_form_for_sources_of_any_length() {
    let mut stream = Rng::from_seed(0x11D).child("dot");
    let pool = random_octets(&mut stream, 8192);
    for kernel in Kernel::available() {
        for len in 0..2000 {
            let count = stream.below(9) as usize;
            let coefficients = random_octets(&mut stream, count);
            let equal = stream.chance(0.5);
            let sources: Vec<&[u8]> = (0..count)
                .map(|_| {
                    let from = stream.below(4096) as usize;
                    let other = stream.below(2100) as usize;
                    &pool[from..from + if equal { len } else { other }]
                })
                .collect();
            let mut expected = vec![0xA5; len + 2];
            let mut found = expected.clone();
            Kernel::scalar().dot(&mut expected[1..=len], &sources, &coefficients);
            kernel.dot(&mut found[1..=len], &sources, &coefficients);
            assert_eq!(found, expected, "{kernel:?}, {len} octets, {count} sources");
        }
    }
}

#[test]
fn surplus_sources_and_coefficients_are_ignored() {
    for kernel in Kernel::available() {
        let mut sum = [7; 40];
        kernel.dot(&mut sum, &[&[1; 40], &[9; 40]], &[3]);
        assert_eq!(sum, [3; 40], "{kernel:?}");
        kernel.dot(&mut sum, &[&[1; 40]], &[5, 9]);
        assert_eq!(sum, [5; 40], "{kernel:?}");
        kernel.dot(&mut sum, &[], &[]);
        assert_eq!(sum, [0; 40], "{kernel:?}");
    }
}
