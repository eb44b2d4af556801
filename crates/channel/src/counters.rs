//! The counters of a channel.

use crate::verdict::ChannelDropReason;
use fulmar_proto::units::ByteCount;

/// Counts of one channel since its birth. Conservation: `offered_packets` = `dropped` for reasons before the link
/// ([`ChannelDropReason::is_before_the_link`]) + `transmitted_packets` + the packets in a terminal's buffer, and
/// `transmitted_packets` = `delivered_packets` + `dropped` for all other reasons. Copies are in `duplicated_packets` only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelCounters {
    /// Packets handed to the channel.
    pub offered_packets: u64,
    /// Octets of those packets.
    pub offered_bytes: ByteCount,
    /// Packets that occupied the link, whether they arrive or not.
    pub transmitted_packets: u64,
    /// Octets of those packets: the load on the link.
    pub transmitted_bytes: ByteCount,
    /// Packets that arrive, intact or not.
    pub delivered_packets: u64,
    /// Octets of those packets.
    pub delivered_bytes: ByteCount,
    /// Delivered packets with at least one inverted bit.
    pub damaged_packets: u64,
    /// Inverted bits in delivered packets.
    pub flipped_bits: u64,
    /// Delivered packets that met a queue above the ECN threshold, or one that signalled early.
    pub marked_packets: u64,
    /// Delivered packets that were held back to be overtaken.
    pub reordered_packets: u64,
    /// Second arrivals.
    pub duplicated_packets: u64,
    dropped: [u64; ChannelDropReason::ALL.len()],
}

impl ChannelCounters {
    /// Packets dropped for `reason`.
    pub const fn dropped(&self, reason: ChannelDropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Packets dropped for any reason.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    pub(crate) fn count_drop(&mut self, reason: ChannelDropReason) {
        self.dropped[reason as usize] += 1;
    }
}
