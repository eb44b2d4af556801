//! LT-TCP, the loss-tolerant TCP: losses are repaired by parity, congestion is told by ECN alone.
//!
//! A connection is like TCP's in its handshake, numbers, window and close. The repair differs: the
//! stream is sent in blocks of source units and parity (PFEC), sized by the loss that the receiver
//! estimates. A block that still needs units after that gets more parity (RFEC), of which any unit
//! serves as well as any other. A missing unit never shrinks the window.
//!
//! | part | work |
//! |---|---|
//! | `endpoint` | ports, listeners, resets for strangers; the [`fulmar_proto::machine::Machine`] |
//! | `connection` | handshake and close; translates sequence numbers into positions |
//! | `sender` | blocks, repair, the answer to marks, timers |
//! | `receiver` | decoding, reassembly, the time and content of feedback |
//! | `loss_estimate` | EWMA of loss and of its deviation, at the receiver |
//! | `granulation` | the length of units and blocks in a window |
//! | `redundancy` | the number of parity units: the binomial law |
//! | `flight` | the transmissions in flight |
//!
//! # Does not
//! - Take loss for congestion: on a path whose queues drop without marking, the window grows to
//!   the peer's buffer. A timeout halves the window, at most once in a silence.
//! - Open from both sides at once: a SYN without an acknowledgement, which anyone can forge, does
//!   not answer ours.
//! - Pace, open with data, scale beyond 2^16 transmissions in flight, or resume after idle.
//!
//! # Sources
//! LT-TCP + LL-HARQ slides; RFC 9293, 3168, 5681, 6298. `docs/models/lt-tcp.md` has the parameters
//! with their reasons, `docs/protocol/lt-tcp.md` the octets.

mod block;
mod config;
mod connection;
mod counters;
mod endpoint;
mod flight;
mod granulation;
mod loss_estimate;
mod receiver;
mod redundancy;
mod sender;

pub use config::{LtFec, LtTcpConfig};
pub use counters::LtTcpCounters;
pub use endpoint::{LtTcpEndpoint, LtTcpStatus};
