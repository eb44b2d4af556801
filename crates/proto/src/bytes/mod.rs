//! The application's octets: in order on their way out, with holes on their way in.

mod reassembly;
mod send_buffer;

pub use reassembly::{Chunk, Inserted, Reassembly, Skipped};
pub use send_buffer::SendBuffer;
