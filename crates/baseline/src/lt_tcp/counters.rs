//! The counters of LT-TCP.

/// Counters over all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LtTcpCounters {
    /// Segments dropped because their checksum does not match.
    pub checksum: u64,
    /// Segments dropped because header or extension are impossible.
    pub malformed: u64,
    /// Segments of a connection with numbers that its peer cannot mean, and SYNs and resets that
    /// the peer would not send now.
    pub unbelieved: u64,
    /// Resets sent to segments without a connection.
    pub strangers: u64,
    /// SYNs dropped because there are as many connections as allowed.
    pub refused: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Reductions for congestion marks.
    pub marks: u64,
    /// Blocks begun.
    pub blocks: u64,
    /// Parity units sent before any feedback.
    pub proactive: u64,
    /// Parity units sent in answer to feedback.
    pub reactive: u64,
    /// Source units that were retransmitted.
    pub resent: u64,
    /// Source units rebuilt from parity.
    pub recovered: u64,
}
