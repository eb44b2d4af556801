//! The one place that asks the system for entropy.
//!
//! Connection identifiers must not be guessable. Everything that must be repeatable takes its seed from the user
//! instead.

use rustix::rand::{GetRandomFlags, getrandom};
use std::io;

/// Sixty-four unpredictable bits from the kernel.
///
/// # Errors
/// The kernel has no entropy source (it predates `getrandom`).
pub fn seed() -> io::Result<u64> {
    let mut octets = [0_u8; 8];
    // Requests of up to 256 octets are never cut short (getrandom(2)).
    getrandom(&mut octets, GetRandomFlags::empty())?;
    Ok(u64::from_le_bytes(octets))
}
