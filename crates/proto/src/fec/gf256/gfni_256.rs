//! The bulk operations on 32 octets at a time: the GFNI affine instruction applies the 8 x 8 bit
//! matrix of the factor. (GFNI's multiply instruction is of no use, since it reduces by 0x11B.)
#![expect(unsafe_code, reason = "vector loads and stores go through pointers")]
#![expect(
    clippy::cast_ptr_alignment,
    reason = "only unaligned loads and stores use the pointers"
)]

use super::scalar;
use super::table::AFFINE;
use super::vector::{padded, vector_kernel};
use core::arch::x86_64::{
    __m256i, _mm256_gf2p8affine_epi64_epi8, _mm256_loadu_si256, _mm256_set1_epi64x,
    _mm256_setzero_si256, _mm256_storeu_si256, _mm256_xor_si256,
};

const WIDTH: usize = 32;

#[inline]
#[target_feature(enable = "gfni,avx2")]
fn load(octets: &[u8; WIDTH]) -> __m256i {
    // SAFETY: the reference covers the 32 octets read, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(octets.as_ptr().cast::<__m256i>()) }
}

#[inline]
#[target_feature(enable = "gfni,avx2")]
fn store(octets: &mut [u8; WIDTH], vector: __m256i) {
    // SAFETY: the reference covers the 32 octets written, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(octets.as_mut_ptr().cast::<__m256i>(), vector) }
}

#[inline]
#[target_feature(enable = "gfni,avx2")]
fn zero() -> __m256i {
    _mm256_setzero_si256()
}

#[inline]
#[target_feature(enable = "gfni,avx2")]
fn xor(a: __m256i, b: __m256i) -> __m256i {
    _mm256_xor_si256(a, b)
}

#[inline]
#[target_feature(enable = "gfni,avx2")]
fn prepare(factor: u8) -> __m256i {
    _mm256_set1_epi64x(AFFINE[usize::from(factor)].cast_signed())
}

#[inline]
#[target_feature(enable = "gfni,avx2")]
fn multiply(by: __m256i, octets: __m256i) -> __m256i {
    _mm256_gf2p8affine_epi64_epi8::<0>(octets, by)
}

vector_kernel!("gfni,avx2");
