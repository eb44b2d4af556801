//! A machine on a UDP socket: one thread, one blocking loop, no async (ADR-0006).
//!
//! [`port`] is the socket with its batches, [`paths`] turns addresses into the machines' path ids, [`carrier`] says
//! how datagrams travel to them, [`driver`] is the loop.

mod application;
mod batch;
mod beside;
mod carrier;
mod driver;
mod group;
mod outbox;
mod paths;
mod port;
mod receiving;

pub use application::{Application, DatagramOrigin, Step};
pub use batch::{Batch, Train};
pub use beside::{PortBeside, PortChange};
pub use carrier::{Carrier, PortProtocol};
pub use driver::{DriverError, UdpDriver};
pub use paths::{Path, PathTable, PathTableConfig};
pub use port::{BURST_TIME, Offloads, PortConfig, PortCounters, SocketBuffers, UdpPort};
pub(crate) use receiving::Received;
