//! The ends' counts of a test's messages, and what follows from them.

use super::test::Test;
use fulmar_proto::transport::aerotp::Counters;
use fulmar_proto::units::{Bitrate, ByteCount, Duration};
use serde::{Deserialize, Serialize};

/// The messages that arrived in an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Its begin, from the arrival of the first message.
    pub from: Duration,
    /// Its end.
    pub until: Duration,
    /// Whole messages of each stream.
    pub messages: Vec<u64>,
}

impl Interval {
    /// Whole messages of all streams.
    pub fn total(&self) -> u64 {
        self.messages.iter().copied().fold(0, u64::saturating_add)
    }

    /// User data delivered per second, if `messages` of `test` came in it.
    pub fn goodput(&self, test: &Test, messages: u64) -> Bitrate {
        let span = self.until.saturating_sub(self.from);
        Bitrate::of(test.bytes_of(messages), span)
    }
}

/// Delays, in nanoseconds but for the counts; percentiles within 0.1 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Messages.
    pub count: u64,
    /// Messages of them that arrived before they were sent, by the clocks; counted as 0.
    pub early: u64,
    /// The shortest delay.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// Nine messages in ten take no longer.
    pub p90: u64,
    /// Ninety-nine messages in a hundred take no longer.
    pub p99: u64,
    /// All but one message in a thousand take no longer.
    pub p999: u64,
    /// The longest.
    pub max: u64,
}

/// The knowledge of the end that received the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Whole messages.
    pub messages: u64,
    /// Octets of these messages.
    pub bytes: u64,
    /// Messages behind one with a higher number.
    pub reordered: u64,
    /// The time from the handing over of the first to the arrival of the last.
    pub elapsed: Duration,
    /// TPDUs accepted.
    pub accepted_tpdus: u64,
    /// Holes noticed: TPDUs lost on the wire.
    pub wire_lost_tpdus: u64,
    /// TPDUs that arrived damaged beyond their parity.
    pub wire_damaged_tpdus: u64,
    /// TPDUs put right by their parity words.
    pub recovered_fec_words_tpdus: u64,
    /// TPDUs rebuilt from blocks.
    pub recovered_fec_block_tpdus: u64,
    /// TPDUs given up.
    pub residual_tpdus: u64,
    /// One-way delays, if any message came.
    pub delay: Option<Spread>,
}

/// The knowledge of the end that sent the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Messages handed over.
    pub messages: u64,
    /// Octets of these messages.
    pub bytes: u64,
    /// Octets on the wire of first copies, parity across TPDUs, retransmissions and control.
    pub wire_bytes: [u64; 4],
    /// TPDUs confirmed after one, two, or more retransmissions.
    pub recovered_arq_tpdus: [u64; 3],
    /// Times that a whole timeout passed in silence.
    pub stalls: u64,
}

impl Sent {
    pub(super) fn of(messages: u64, message_bytes: u32, counters: Option<&Counters>) -> Self {
        let counters = counters.copied().unwrap_or_default();
        Self {
            messages,
            bytes: messages.saturating_mul(u64::from(message_bytes)),
            wire_bytes: counters.sent_bytes,
            recovered_arq_tpdus: counters.recovered_arq,
            stalls: counters.stalls,
        }
    }

    /// The sum over several streams. A peer's numbers may be anything: a sum that overflows is the largest number.
    pub fn sum(all: &[Self]) -> Self {
        let mut sum = Self::default();
        for one in all {
            let Self {
                messages,
                bytes,
                wire_bytes,
                recovered_arq_tpdus,
                stalls,
            } = &mut sum;
            let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
            add(messages, one.messages);
            add(bytes, one.bytes);
            add(stalls, one.stalls);
            for (to, more) in wire_bytes.iter_mut().zip(one.wire_bytes) {
                add(to, more);
            }
            for (to, more) in recovered_arq_tpdus.iter_mut().zip(one.recovered_arq_tpdus) {
                add(to, more);
            }
        }
        sum
    }

    /// Octets on the wire, all kinds.
    pub fn wire_total(&self) -> ByteCount {
        let sum = |sum: u64, kind: &u64| sum.saturating_add(*kind);
        ByteCount(self.wire_bytes.iter().fold(0, sum))
    }
}

/// The outcome for one stream's messages, or for all streams' together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The figures of the end that sent them; not known where a test was stopped before that end told them.
    pub sent: Option<Sent>,
    /// The figures of the end that received them.
    pub received: Measured,
}

impl Outcome {
    /// User data delivered per second, from the first message handed over to the last arrived.
    pub fn goodput(&self) -> Bitrate {
        Bitrate::of(ByteCount(self.received.bytes), self.received.elapsed)
    }

    /// The share of TPDUs whose first copy was lost or damaged beyond its parity; `None` without any TPDU.
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

    /// The share of sent messages that did not arrive; `None` without any message.
    pub fn loss_after_repair(&self) -> Option<f64> {
        let sent = self.sent?.messages;
        let missing = self.missing_messages()?;
        (sent > 0).then(|| missing as f64 / sent as f64)
    }

    /// The octets on the wire for each delivered octet of user data, less one; `None` if none was delivered.
    pub fn overhead(&self) -> Option<f64> {
        let delivered = self.received.bytes;
        let wire = self.sent?.wire_total().0;
        (delivered > 0).then(|| wire as f64 / delivered as f64 - 1.0)
    }
}

/// Jain's index of fairness: 1 if all have the same, 1/n if one of n has everything (Jain, Chiu, Hawe 1984);
/// `None` if all have nothing.
pub(super) fn jain(shares: impl Iterator<Item = u64> + Clone) -> Option<f64> {
    let shares = shares.map(|share| share as f64);
    let count = shares.clone().count() as f64;
    let sum: f64 = shares.clone().sum();
    let squares: f64 = shares.map(|share| share * share).sum();
    (sum > 0.0).then(|| sum * sum / (count * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            accepted_tpdus: u64::MAX,
            wire_lost_tpdus: u64::MAX,
            wire_damaged_tpdus: u64::MAX,
            residual_tpdus: u64::MAX,
            ..Measured::default()
        };
        let outcome = Outcome {
            sent: Some(Sent::sum(&[sent, sent])),
            received,
        };
        assert_eq!(outcome.loss_before_repair(), Some(1.0));
        assert!(outcome.loss_after_repair().is_some_and(|loss| loss <= 1.0));
        assert!(outcome.overhead().is_some());
        assert_eq!(outcome.goodput(), Bitrate::of(ByteCount(1), Duration::ZERO));
    }

    #[test]
    fn the_index_of_fairness_is_that_of_its_paper() {
        let of = |shares: &[u64]| jain(shares.iter().copied());
        assert_eq!(of(&[7]), Some(1.0));
        assert_eq!(of(&[3, 3, 3, 3]), Some(1.0));
        assert_eq!(of(&[1, 0, 0, 0]), Some(0.25));
        // Their example: of 100 users, 10 get all in equal parts.
        let tenth: Vec<u64> = (0..100).map(|user| u64::from(user < 10) * 9).collect();
        assert_eq!(of(&tenth), Some(0.1));
        assert_eq!(of(&[0, 0]), None);
        assert!(of(&[u64::MAX; 128]).is_some_and(|index| (index - 1.0).abs() < 1e-9));
    }
}
