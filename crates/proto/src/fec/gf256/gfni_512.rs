//! The bulk operations on 64 octets at a time: the GFNI affine instruction applies the 8 x 8 bit
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
    __m512i, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_storeu_si512, _mm512_xor_si512,
};

const WIDTH: usize = 64;

#[inline]
#[target_feature(enable = "gfni,avx512f")]
fn load(octets: &[u8; WIDTH]) -> __m512i {
    // SAFETY: the reference covers the 64 octets read, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(octets.as_ptr().cast::<__m512i>()) }
}

#[inline]
#[target_feature(enable = "gfni,avx512f")]
fn store(octets: &mut [u8; WIDTH], vector: __m512i) {
    // SAFETY: the reference covers the 64 octets written, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(octets.as_mut_ptr().cast::<__m512i>(), vector) }
}

#[inline]
#[target_feature(enable = "gfni,avx512f")]
fn zero() -> __m512i {
    _mm512_setzero_si512()
}

#[inline]
#[target_feature(enable = "gfni,avx512f")]
fn xor(a: __m512i, b: __m512i) -> __m512i {
    _mm512_xor_si512(a, b)
}

#[inline]
#[target_feature(enable = "gfni,avx512f")]
fn prepare(factor: u8) -> __m512i {
    _mm512_set1_epi64(AFFINE[usize::from(factor)].cast_signed())
}

#[inline]
#[target_feature(enable = "gfni,avx512f")]
fn multiply(by: __m512i, octets: __m512i) -> __m512i {
    _mm512_gf2p8affine_epi64_epi8::<0>(octets, by)
}

vector_kernel!("gfni,avx512f");
