//! The application's octets: in order on their way out, with holes on their way in.

mod ranges;
mod reassembly;
mod send_buffer;
mod stream_reassembly;

pub use ranges::RangeSet;
pub use reassembly::{Chunk, Inserted, Reassembly, Skipped};
pub use send_buffer::SendBuffer;
pub use stream_reassembly::StreamReassembly;
