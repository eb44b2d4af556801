//! Bit errors inside a packet: interleaved Reed-Solomon parity behind the message.
//!
//! The message stays as it is; 0 to 256 words of 32 bits follow it. A receiver that finds a wrong
//! CRC has the damage corrected and learns how many symbols were wrong. That count measures the
//! link's bit errors.
//!
//! # The code
//! Message and parity together are the region. Its length L needs n = ⌈L / 255⌉ codewords, and octet
//! p of the region belongs to codeword p mod n, message and parity alike. So codewords differ in
//! length by at most one octet, parity is spread evenly (⌊4w/n⌋ or ⌈4w/n⌉ octets each), and a burst
//! hits all codewords alike. Each codeword is a shortened systematic Reed-Solomon code over GF(256),
//! 0x11D, with generator Π_{i=1..r} (x - α^i) for its r parity octets, the first octet carrying the
//! highest power. It corrects up to ⌊r/2⌋ wrong octets.
//!
//! # Promises
//! - Up to ⌊r/2⌋ wrong octets in each codeword are always corrected, and counted.
//! - More than that are noticed or, rarely, turned into another valid codeword. Fewer parity octets
//!   make this less rare: check the CRC after correcting as well as before.
//!
//! # Does not
//! - Look at the CRC: skipping the decoder for intact packets is the caller's gain.
//! - Correct anything in a codeword with less than two parity octets: 1500 octets need two words for
//!   the first such codeword, and three for all six.
//!
//! # Sources
//! Reed, Solomon 1960; Massey 1969 (shift-register synthesis); Forney 1965 (error values); `AeroTP`
//! papers (strength in 32-bit words). `docs/models/fec.md` has the model, ADR 0004 the reasons.

mod code;
mod further;
mod generator;
mod layout;
mod locate;

pub use code::{Corrected, PacketCode, Uncorrectable};

#[cfg(test)]
mod tests;
