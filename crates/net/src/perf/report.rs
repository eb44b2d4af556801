//! How a test ended.

use super::clocks::ClockOffset;
use super::record::{BadPerfRecord, Interval, Measured, Sent, Test};
use fulmar_proto::transport::aerotp::ConnectError;
use fulmar_proto::units::{Bitrate, ByteCount, Duration};

/// What both ends know of a test.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was asked for.
    pub test: Test,
    /// The end that sent the messages; not known of a test that was stopped before that end said it.
    pub sent: Option<Sent>,
    /// The end that received them.
    pub received: Measured,
    /// The clocks; only the client knows.
    pub clocks: Option<ClockOffset>,
    /// Every interval, as far as this end heard of them.
    pub intervals: Vec<Interval>,
    /// Whether it was stopped before its time.
    pub stopped: bool,
}

impl Report {
    /// User data delivered per second, from the first message handed over to the last arrived.
    pub fn goodput(&self) -> Bitrate {
        Bitrate::of(ByteCount(self.received.bytes), self.received.elapsed)
    }

    /// TPDUs whose first copy was lost or damaged beyond its parity, of all; `None` without any.
    pub fn loss_before_repair(&self) -> Option<f64> {
        let received = &self.received;
        let all = received
            .accepted_tpdus
            .saturating_add(received.residual_tpdus);
        let lost = received
            .wire_lost_tpdus
            .saturating_add(received.wire_damaged_tpdus);
        (all > 0).then(|| (lost as f64 / all as f64).min(1.0))
    }

    /// Messages that were sent and did not arrive.
    pub fn missing_messages(&self) -> Option<u64> {
        Some(self.sent?.messages.saturating_sub(self.received.messages))
    }

    /// Messages that did not arrive, of all that were sent; `None` without any.
    pub fn loss_after_repair(&self) -> Option<f64> {
        let sent = self.sent?.messages;
        let missing = self.missing_messages()?;
        (sent > 0).then(|| missing as f64 / sent as f64)
    }

    /// Octets on the wire for each of user data delivered, less one; `None` if none was.
    pub fn overhead(&self) -> Option<f64> {
        let delivered = self.received.bytes;
        let wire = self.sent?.wire_total().0;
        (delivered > 0).then(|| wire as f64 / delivered as f64 - 1.0)
    }
}

/// Why there is no report.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PerfError {
    /// Nobody answers.
    #[error(
        "nobody answers: silence for {}; check the address, and that nothing on the way drops UDP",
        fulmar_proto::units::format_duration(*.0)
    )]
    Unreachable(Duration),
    /// The network says that nobody listens.
    #[error(
        "nobody answers: the port is closed; start `fulmar perf -s` there, or check the address"
    )]
    PortClosed,
    /// The other end was there and is gone.
    #[error("the other end was not heard for {}", fulmar_proto::units::format_duration(*.0))]
    Vanished(Duration),
    /// The other end ended the conversation.
    #[error("the other end was stopped")]
    Ended,
    /// The server does not want to, or cannot.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// The settings cannot work.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The other end speaks something else.
    #[error("the other end sent {0}")]
    Protocol(#[from] BadPerfRecord),
    /// The other end speaks out of turn.
    #[error("the other end says {0} out of turn")]
    Sequence(&'static str),
    /// The caller asked to stop, before there was anything to report.
    #[error("stopped before there was anything to report")]
    Stopped,
}

#[cfg(test)]
mod tests {
    use super::super::record::Direction;
    use super::*;
    use fulmar_proto::wire::aerotp::Mode;

    #[test]
    fn figures_of_a_peer_that_lies_are_nonsense_and_nothing_worse() {
        let sent = Sent {
            messages: u64::MAX,
            wire_bytes: [u64::MAX; 4],
            ..Sent::default()
        };
        let received = Measured {
            messages: 1,
            bytes: 1,
            reordered: 0,
            elapsed: Duration::ZERO,
            accepted_tpdus: u64::MAX,
            wire_lost_tpdus: u64::MAX,
            wire_damaged_tpdus: u64::MAX,
            recovered_fec_words_tpdus: 0,
            recovered_fec_block_tpdus: 0,
            residual_tpdus: u64::MAX,
            delay: None,
        };
        let report = Report {
            test: Test::new(1, Mode::Reliable, Direction::Up),
            sent: Some(sent),
            received,
            clocks: None,
            intervals: Vec::new(),
            stopped: false,
        };
        assert_eq!(report.loss_before_repair(), Some(1.0));
        assert!(report.loss_after_repair().is_some_and(|loss| loss <= 1.0));
        assert!(report.overhead().is_some());
        assert_eq!(report.goodput(), Bitrate::of(ByteCount(1), Duration::ZERO));
    }
}
