//! The field GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1 (0x11D) and its two bulk operations.
//!
//! RFC 8681, ISA-L and most erasure codecs use this field, so rows can be compared with theirs
//! octet by octet. All coding time is spent in [`mul_add`] and [`dot`]. Each has a scalar form,
//! against which the others are tested, and vector forms for x86-64. The best form that the
//! processor has is chosen once. On other targets the scalar form serves.
//!
//! # Promises
//! - Every [`Kernel`] gives the same octets as [`Kernel::scalar`], for any lengths and alignment.
//! - Nothing here panics or reads outside its slices, whatever the lengths.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod gfni_256;
#[cfg(target_arch = "x86_64")]
mod gfni_512;
mod kernel;
mod scalar;
mod table;
#[cfg(target_arch = "x86_64")]
mod vector;

pub use kernel::{Kernel, dot, mul_add};
pub(crate) use table::power;
pub use table::{inverse, product};

#[cfg(test)]
mod tests;
