//! LT-TCP, the loss-tolerant TCP: losses are repaired by parity, congestion is told by ECN alone.
//!
//! A connection is TCP's in its handshake, numbers, window and close. What differs is the repair:
//! the stream leaves in blocks of source units and parity (PFEC), sized by the loss that the
//! receiver estimates; what a block still needs after that is answered with more parity (RFEC),
//! of which any unit serves as well as any other. A missing unit never shrinks the window.
//!
//! | part | what it does |
//! |---|---|
//! | `endpoint` | ports, listeners, resets for strangers; the [`fulmar_proto::machine::Machine`] |
//! | `connection` | handshake and close; translates sequence numbers into positions |
//! | `sender` | blocks, repair, the answer to marks, timers |
//! | `receiver` | decoding, reassembly, when to send feedback and what it says |
//! | `loss_estimate` | EWMA of loss and of its deviation, at the receiver |
//! | `granulation` | how long units and blocks are in a window |
//! | `redundancy` | how many parity units: the binomial law |
//! | `flight` | which transmissions are in the network |
//!
//! # Does not
//! - Take loss for congestion: on a path whose queues drop without marking, the window grows to
//!   the peer's buffer. A timeout halves the window, at most once in a silence.
//! - Open from both sides at once: a SYN without an acknowledgement, which anyone can forge, is no
//!   answer to ours.
//! - Pace, open with data, scale beyond 2^16 transmissions in flight, or resume after idle.
//!
//! # Sources
//! LT-TCP + LL-HARQ slides; spec, section 2.3; RFC 9293, 3168, 5681, 6298. `docs/models/lt-tcp.md`
//! has the parameters with their reasons, `docs/protocol/lt-tcp.md` the octets.

mod block;
mod config;
mod connection;
mod endpoint;
mod flight;
mod granulation;
mod loss_estimate;
mod receiver;
mod redundancy;
mod sender;

pub use config::{LtFec, LtTcpConfig};
pub use endpoint::{LtTcpCounters, LtTcpEndpoint, LtTcpStatus};
