//! The rate of a path, found from what arrives: one controller for each path to a peer, below all of
//! its flows.
//!
//! [`RateController`] is told each datagram that leaves and each report of the receiver, and says how
//! fast datagrams may leave. Loss alone never lowers the rate. What lowers it is a queue that grows, or
//! that more sent is not more arrived. `docs/adr/0032-the-rate-is-found.md` has the reasons.

mod answer_watch;
mod answers;
mod belief;
mod competing;
mod config;
mod controller;
mod delay_gauge;
mod epoch;
mod evidence;
mod queue_gauge;
mod sent_log;
mod start;
mod window;

pub use answer_watch::AnswerWatch;
pub use answers::{AnswerRate, AnswersReport};
pub use belief::{RateBelief, RateCause};
pub use config::{RateConfig, RateSharing};
pub use controller::RateController;

use crate::units::{ByteCount, Duration};

/// A receiver's report on the datagrams that arrived on a path. All counts are totals, so a lost
/// report costs freshness only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalReport {
    /// The number of the newest datagram that arrived; datagrams are numbered as they leave.
    pub newest: u64,
    /// The receiver's clock when it arrived. The two clocks need not agree.
    pub arrived_at: Duration,
    /// The time from that arrival to the report's departure.
    pub hold: Duration,
    /// The octets that arrived up to that moment, headers of the layers below included.
    pub octets: ByteCount,
    /// The datagrams that arrived up to that moment with the mark "congestion experienced" (RFC 3168).
    pub marked: u64,
}
