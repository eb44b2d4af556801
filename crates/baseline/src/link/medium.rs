//! The knowledge that a link layer has of its hop.

use fulmar_proto::units::{Bitrate, ByteCount, Duration};

/// The knowledge that an end has of its hop, as a radio has of its own: from settings, not by
/// measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Medium {
    /// The rate at which this end transmits; with `None` a transmission takes no time.
    pub rate: Option<Bitrate>,
    /// The rate at which the other end transmits.
    pub back_rate: Option<Bitrate>,
    /// Propagation there and back.
    pub round_trip: Duration,
    /// The longest time from handing over a frame of [`Medium::FRAME`] octets, and then an answer of
    /// the same length, until their last bits have left. It contains transmission, buffers below,
    /// and waiting for capacity.
    pub access: Duration,
}

impl Medium {
    /// The size of the frame to which [`Medium::access`] refers: one with a full Ethernet packet.
    pub const FRAME: ByteCount = ByteCount(1_500);

    /// The part of [`Medium::access`] that is not transmission: buffers below, and waiting for
    /// capacity. Zero where a frame's transmission begins at once.
    pub(super) fn waiting(self) -> Duration {
        let transmission = self.frame_time(Self::FRAME) + self.back_frame_time(Self::FRAME);
        self.access.saturating_sub(transmission)
    }

    /// The time that a frame of `octets` occupies the way there.
    pub(super) fn frame_time(self, octets: ByteCount) -> Duration {
        self.rate
            .map_or(Duration::ZERO, |rate| rate.time_to_send(octets))
    }

    /// The time that a frame of `octets` occupies the way back.
    pub(super) fn back_frame_time(self, octets: ByteCount) -> Duration {
        self.back_rate
            .map_or(Duration::ZERO, |rate| rate.time_to_send(octets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_transmission_is_no_waiting() {
        let rate = |bits| Some(Bitrate::from_bits_per_second(bits));
        let medium = |access| Medium {
            rate: rate(128_000),
            back_rate: rate(512_000),
            round_trip: Duration::from_millis(500),
            access,
        };
        // 1500 octets at 128 and at 512 kbit/s: 93.75 and 23.4375 ms.
        let transmission = Duration::from_nanos(117_187_500);
        assert_eq!(medium(transmission).waiting(), Duration::ZERO);
        let wait = Duration::from_secs(2);
        assert_eq!(medium(transmission + wait).waiting(), wait);
        assert_eq!(medium(Duration::ZERO).waiting(), Duration::ZERO);
    }
}
