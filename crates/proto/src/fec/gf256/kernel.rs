//! The choice among the forms of the bulk operations.

use super::scalar;
#[cfg(target_arch = "x86_64")]
use super::{avx2, gfni_256, gfni_512};
use core::fmt;
use std::sync::OnceLock;

/// One form of the bulk operations that this processor can run.
///
/// Only detection makes vector forms, so holding one proves that its instructions exist.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Kernel(Form);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Gfni256,
    #[cfg(target_arch = "x86_64")]
    Gfni512,
}

impl Kernel {
    /// The scalar form, one octet at a time, on every target: the one that the others must equal.
    pub const fn scalar() -> Self {
        Self(Form::Scalar)
    }

    /// Every form that this processor can run, slowest first.
    pub fn available() -> Vec<Self> {
        #[cfg_attr(
            not(target_arch = "x86_64"),
            expect(unused_mut, reason = "the vector forms are for x86-64")
        )]
        let mut forms = vec![Self::scalar()];
        #[cfg(target_arch = "x86_64")]
        {
            let gfni = is_x86_feature_detected!("gfni");
            if is_x86_feature_detected!("avx2") {
                forms.push(Self(Form::Avx2));
                if gfni {
                    forms.push(Self(Form::Gfni256));
                }
            }
            if gfni && is_x86_feature_detected!("avx512f") {
                forms.push(Self(Form::Gfni512));
            }
        }
        forms
    }

    /// The fastest form that this processor can run; detected on the first call.
    pub fn best() -> Self {
        static BEST: OnceLock<Kernel> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().pop().unwrap_or(Self::scalar()))
    }

    /// The name in reports and benchmarks.
    pub const fn name(self) -> &'static str {
        match self.0 {
            Form::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Form::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Form::Gfni256 => "gfni-256",
            #[cfg(target_arch = "x86_64")]
            Form::Gfni512 => "gfni-512",
        }
    }

    /// Does the same as [`mul_add`], in this form.
    #[cfg_attr(
        target_arch = "x86_64",
        expect(
            unsafe_code,
            reason = "calls into functions that need a processor feature"
        )
    )]
    pub fn mul_add(self, destination: &mut [u8], source: &[u8], factor: u8) {
        match self.0 {
            Form::Scalar => scalar::mul_add(destination, source, factor),
            // SAFETY: `available` makes this form only where AVX2 was detected.
            #[cfg(target_arch = "x86_64")]
            Form::Avx2 => unsafe { avx2::mul_add(destination, source, factor) },
            // SAFETY: `available` makes this form only where GFNI and AVX2 were detected.
            #[cfg(target_arch = "x86_64")]
            Form::Gfni256 => unsafe { gfni_256::mul_add(destination, source, factor) },
            // SAFETY: `available` makes this form only where GFNI and AVX-512F were detected.
            #[cfg(target_arch = "x86_64")]
            Form::Gfni512 => unsafe { gfni_512::mul_add(destination, source, factor) },
        }
    }

    /// Does the same as [`dot`], in this form.
    #[cfg_attr(
        target_arch = "x86_64",
        expect(
            unsafe_code,
            reason = "calls into functions that need a processor feature"
        )
    )]
    pub fn dot(self, destination: &mut [u8], sources: &[&[u8]], coefficients: &[u8]) {
        match self.0 {
            Form::Scalar => scalar::dot(destination, sources, coefficients),
            // SAFETY: `available` makes this form only where AVX2 was detected.
            #[cfg(target_arch = "x86_64")]
            Form::Avx2 => unsafe { avx2::dot(destination, sources, coefficients) },
            // SAFETY: `available` makes this form only where GFNI and AVX2 were detected.
            #[cfg(target_arch = "x86_64")]
            Form::Gfni256 => unsafe { gfni_256::dot(destination, sources, coefficients) },
            // SAFETY: `available` makes this form only where GFNI and AVX-512F were detected.
            #[cfg(target_arch = "x86_64")]
            Form::Gfni512 => unsafe { gfni_512::dot(destination, sources, coefficients) },
        }
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Adds `factor` · `source` to `destination`, octet by octet, over the length of the shorter.
pub fn mul_add(destination: &mut [u8], source: &[u8], factor: u8) {
    Kernel::best().mul_add(destination, source, factor);
}

/// Sets `destination` to Σ `coefficients[j]` · `sources[j]`.
///
/// A source shorter than `destination` counts as followed by zeros, a longer one as cut; sources
/// without a coefficient, and coefficients without a source, are ignored.
pub fn dot(destination: &mut [u8], sources: &[&[u8]], coefficients: &[u8]) {
    Kernel::best().dot(destination, sources, coefficients);
}
