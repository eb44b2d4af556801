//! The common parts of transports of octet streams that open and close as TCP does (RFC 9293).
//!
//! | part | work |
//! |---|---|
//! | `endpoint` | an application's calls |
//! | `connection` | hands these calls, and timers, to the halves of a connection |
//! | `table` | a node's connections: listeners, turns to send, deadlines, resets |
//! | `states` | RFC 9293's states from the SYN to TIME-WAIT, and the events for the application |
//! | `numbers` | sequence numbers of both directions, as positions of their streams |
//! | `answers` | the answer owed to the peer, and its time |
//! | `challenges` | the limit on answers to segments that cannot be accepted |

mod answers;
mod challenges;
mod connection;
mod endpoint;
mod numbers;
mod states;
mod table;

pub(crate) use answers::{Owed, OwedAnswers};
pub(crate) use challenges::Challenges;
pub(crate) use connection::{SegmentReply, stream_connection};
pub use endpoint::StreamEndpoint;
pub(crate) use endpoint::stream_endpoint;
pub(crate) use numbers::{Numbers, SHIFT_MAX, asks_for_ecn, shift_for, wire};
pub(crate) use states::{Passed, StreamKey, StreamStates};
pub(crate) use table::{StreamConnection, StreamDeparture, StreamTable};
