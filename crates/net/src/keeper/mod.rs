//! A small process that holds the gateway's TCP sockets, so that `kill -9` of the gateway closes none.
//!
//! ```text
//!   gateway ── unix socket in the state directory ── keeper
//!     every TCP socket of a flow, and a record of it  ->  duplicates
//!     (killed)                                            waits for the next gateway
//!   gateway (started again)                           <-  all sockets and records
//! ```
//!
//! The gateway starts the keeper as a child with a session of its own. A socket that two processes
//! have stays open when one of them dies: the other host notices nothing, and its octets wait in the
//! kernel. The next gateway with the same state directory takes the sockets back, and a
//! [`Baseline`] tells from the kernel's own counters exactly which octets went through each.
//!
//! # Promises
//! - A socket that [`Keeper::keep`] was given is the keeper's, even if the gateway dies right after.
//! - The keeper itself accepts clients at its ports, so that they are the keeper's from their first moment
//!   ([`Keeper::accept`]). Apart from the calls that begin a line, no other call waits for the keeper.
//! - Without a gateway it ends after a time, and resets the connections that are not finished.
//! - Only processes of the same user are heard.
//!
//! # Does not
//! - Survive a reboot, or a service manager that kills the gateway's whole control group.
//! - Read or write flows' octets.

mod client;
mod message;
mod position;
mod process;
mod record;
mod seqpacket;
mod tcp_info;

pub use client::{AcceptedClient, Keeper, KeeperError, TakenSocket};
pub use message::{KeeperMessage, NoMessage};
pub use position::{Baseline, Position};
pub use process::{KeeperConfig, run};
pub use record::{NOTE_BYTES_MAX, SocketRecord};
pub(crate) use tcp_info::unacknowledged;
