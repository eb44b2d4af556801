//! The bulk operations on 32 octets at a time with AVX2: two byte shuffles look up the products of
//! the two nibbles (Plank, Greenan, Miller, FAST 2013).
#![expect(unsafe_code, reason = "vector loads and stores go through pointers")]
#![expect(
    clippy::cast_ptr_alignment,
    reason = "only unaligned loads and stores use the pointers"
)]

use super::scalar;
use super::table::NIBBLES;
use super::vector::{padded, vector_kernel};
use core::arch::x86_64::{
    __m128i, __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256,
    _mm256_loadu_si256, _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8,
    _mm256_srli_epi64, _mm256_storeu_si256, _mm256_xor_si256,
};

const WIDTH: usize = 32;

/// The products of the factor with each low and each high nibble.
#[derive(Clone, Copy)]
struct Factor {
    low: __m256i,
    high: __m256i,
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(octets: &[u8; WIDTH]) -> __m256i {
    // SAFETY: the reference covers the 32 octets read, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(octets.as_ptr().cast::<__m256i>()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(octets: &mut [u8; WIDTH], vector: __m256i) {
    // SAFETY: the reference covers the 32 octets written, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(octets.as_mut_ptr().cast::<__m256i>(), vector) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn zero() -> __m256i {
    _mm256_setzero_si256()
}

#[inline]
#[target_feature(enable = "avx2")]
fn xor(a: __m256i, b: __m256i) -> __m256i {
    _mm256_xor_si256(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn both_halves(octets: &[u8; 16]) -> __m256i {
    // SAFETY: the reference covers the 16 octets read, and the load needs no alignment.
    let half = unsafe { _mm_loadu_si128(octets.as_ptr().cast::<__m128i>()) };
    _mm256_broadcastsi128_si256(half)
}

#[inline]
#[target_feature(enable = "avx2")]
fn prepare(factor: u8) -> Factor {
    let [low, high] = &NIBBLES[usize::from(factor)];
    Factor {
        low: both_halves(low),
        high: both_halves(high),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn multiply(by: Factor, octets: __m256i) -> __m256i {
    let nibble = _mm256_set1_epi8(0x0F);
    let low = _mm256_and_si256(octets, nibble);
    let high = _mm256_and_si256(_mm256_srli_epi64::<4>(octets), nibble);
    _mm256_xor_si256(
        _mm256_shuffle_epi8(by.low, low),
        _mm256_shuffle_epi8(by.high, high),
    )
}

vector_kernel!("avx2");
