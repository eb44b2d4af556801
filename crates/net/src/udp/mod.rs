//! A machine on a UDP socket: one thread, one blocking loop, no async (ADR-0006).
//!
//! [`port`] is the socket with its batches, [`paths`] turns addresses into the machines' path ids,
//! [`driver`] is the loop.

mod batch;
mod driver;
mod outbox;
mod paths;
mod port;
mod receiving;

pub use batch::{Batch, Train};
pub use driver::{Application, DriverError, Origin, Step, UdpDriver};
pub use paths::{Path, PathTable, PathTableConfig};
pub use port::{BURST_TIME, Offloads, PortConfig, PortCounters, SocketBuffers, UdpPort};
