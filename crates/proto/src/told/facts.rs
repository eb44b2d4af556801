//! The facts that a link's words amount to now.

use crate::units::{BitErrorRate, Bitrate, Duration};

/// The facts that a link tells and that hold now, for the path that it serves. What is absent is found as without them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ToldFacts {
    /// Whether the link carries anything.
    pub is_up: Option<bool>,
    /// The rate towards the peer, IP headers included: no more is sent, and as much is tried.
    pub rate: Option<Bitrate>,
    /// The most that its medium could carry: no more is sent, and nothing says that as much would arrive.
    pub ceiling: Option<Bitrate>,
    /// The share of wrong bits on the way to the peer: the first guess of parity and length.
    pub bit_errors: Option<BitErrorRate>,
    /// The share of wrong bits on the way here.
    pub bit_errors_back: Option<BitErrorRate>,
    /// The time that a datagram queued now would wait in the link's own queue.
    pub queue: Option<Duration>,
    /// The cost of the path among several, in place of the configured one.
    pub cost: Option<u8>,
}

impl ToldFacts {
    /// Whether nothing is told.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
