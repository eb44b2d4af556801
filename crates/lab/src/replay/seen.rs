//! Packets in seconds and octets, and the spans of a recording.

use super::ObservedPacket;
use fulmar_proto::units::Instant;

/// The length of the spans that a recording is cut into.
pub(super) const SPAN_S: f64 = 0.25;

/// A packet in seconds and octets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) sent: f64,
    pub(super) octets: f64,
    pub(super) arrived: Option<f64>,
}

impl Seen {
    /// Packets with times that count from `start`.
    pub(super) fn all(packets: &[ObservedPacket], start: Instant) -> Vec<Self> {
        let seconds = |at: Instant| at.saturating_since(start).as_secs_f64();
        let packets = packets.iter().map(|packet| Self {
            sent: seconds(packet.sent_at),
            octets: packet.len.0 as f64,
            arrived: packet.arrived_at.map(seconds),
        });
        packets.collect()
    }

    /// The span in which it was handed over.
    pub(super) fn span(&self) -> usize {
        span_of(self.sent)
    }

    /// The time that it is on a link of this rate, in seconds.
    pub(super) fn time_at(&self, rate_bps: f64) -> f64 {
        self.octets * 8.0 / rate_bps
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time of a run in seconds"
)]
pub(super) fn span_of(at: f64) -> usize {
    (at / SPAN_S) as usize
}

/// The spans of these packets.
pub(super) fn span_count(seen: &[Seen]) -> usize {
    let last = seen.iter().map(Seen::span).max();
    last.unwrap_or_default() + 1
}

/// The value that this share of the others is not above.
pub(super) fn quantile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in the values"
    )]
    let place = (last as f64 * share).round() as usize;
    values.get(place).copied()
}
