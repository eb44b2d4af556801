//! What transports of octet streams that open and close as TCP does (RFC 9293) have in common.
//!
//! | part | what it does |
//! |---|---|
//! | `endpoint` | what an application asks |
//! | `connection` | how a connection hands that, and its timers, to its halves |
//! | `table` | a node's connections: listeners, who may send, who is due, resets |
//! | `states` | RFC 9293's states from the SYN to TIME-WAIT, and what the application is told |
//! | `numbers` | sequence numbers of both directions, as positions of their streams |
//! | `answers` | whether and when something is owed to the peer |
//! | `challenges` | how often what cannot be accepted is answered |

mod answers;
mod challenges;
mod connection;
mod endpoint;
mod numbers;
mod states;
mod table;

pub(crate) use answers::{Answers, Owed};
pub(crate) use challenges::Challenges;
pub(crate) use connection::{Reply, stream_connection};
pub use endpoint::StreamEndpoint;
pub(crate) use endpoint::stream_endpoint;
pub(crate) use numbers::{Numbers, SHIFT_MAX, asks_for_ecn, shift_for, wire};
pub(crate) use states::{Key, Passed, States};
pub(crate) use table::{Departure, StreamConnection, Table};
