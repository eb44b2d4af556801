//! Codes that repair bit errors inside a packet, and packets that never came.
//!
//! - [`gf256`] is the arithmetic that all share: the field GF(2^8) and its two bulk operations,
//!   with vector kernels chosen once at run time.
//! - [`block`] repairs erasures across packets: any k of a block's units rebuild its k sources.
//! - [`long_block`] does the same in blocks of thousands, where nobody can ask for more.
//! - [`window`] repairs erasures across packets without blocks: repair symbols over any consecutive sources.
//! - [`packet`] repairs bit errors inside a packet: interleaved Reed-Solomon parity behind it.
//!
//! The codes know neither sequence numbers nor headers; they see octets, indices and opaque
//! ordinals. `docs/models/fec.md` is the model page, ADR 0004 says why these codes.

pub mod block;
pub mod gf256;
pub mod long_block;
pub mod packet;
pub mod window;
