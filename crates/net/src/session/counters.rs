//! The counters of a session.

use fulmar_proto::units::Duration;

/// The reason why an arriving datagram was dropped. Nothing of it went further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// Too short for what it claims to be.
    Truncated,
    /// The header's check does not match.
    HeaderCheck,
    /// A type, or a sealed message or frame, without a meaning.
    Unknown,
    /// Another version of the format.
    Version,
    /// For no session of ours: forged, or from before a restart.
    NoSession,
    /// Its counter was seen before, or is too old to tell.
    Replayed,
    /// The tag does not verify: forged or damaged.
    Forged,
    /// Under keys that are used no more.
    Expired,
    /// An initiation whose first check fails.
    WrongMac,
    /// An initiation, while too many came: a cookie was asked for.
    CookieAsked,
    /// An initiation, or a response to one of ours, while too many came.
    Flood,
    /// A genuine initiation of an unknown peer.
    UnknownPeer,
    /// A genuine initiation that is older than another, or our own, sent back to us.
    OldEpoch,
    /// An initiation that lost against ours, sent at the same time.
    Simultaneous,
    /// A genuine handshake of a peer with which we do not agree.
    Mismatch,
    /// Armoured data beyond repair: its header names keys of the peer at the address that it came from.
    Damaged,
}

impl DropReason {
    /// All reasons, in report order.
    pub const ALL: [Self; 16] = [
        Self::Truncated,
        Self::HeaderCheck,
        Self::Unknown,
        Self::Version,
        Self::NoSession,
        Self::Replayed,
        Self::Forged,
        Self::Expired,
        Self::WrongMac,
        Self::CookieAsked,
        Self::Flood,
        Self::UnknownPeer,
        Self::OldEpoch,
        Self::Simultaneous,
        Self::Mismatch,
        Self::Damaged,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::HeaderCheck => "header_check",
            Self::Unknown => "unknown",
            Self::Version => "version",
            Self::NoSession => "no_session",
            Self::Replayed => "replayed",
            Self::Forged => "forged",
            Self::Expired => "expired",
            Self::WrongMac => "wrong_mac",
            Self::CookieAsked => "cookie_asked",
            Self::Flood => "flood",
            Self::UnknownPeer => "unknown_peer",
            Self::OldEpoch => "old_epoch",
            Self::Simultaneous => "simultaneous",
            Self::Mismatch => "mismatch",
            Self::Damaged => "damaged",
        }
    }
}

/// Counters of a whole session, over all peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounters {
    dropped: [u64; DropReason::ALL.len()],
    /// Inner datagrams sealed and sent.
    pub sent: u64,
    /// Inner datagrams of them that left under a preset key alone.
    pub sent_early: u64,
    /// Inner datagrams that arrived genuine.
    pub received: u64,
    /// Inner datagrams of them that came under a preset key alone.
    pub received_early: u64,
    /// Inner datagrams for a peer whose link is down or not yet up, while another's was up.
    pub unsent: u64,
    /// Initiations sent, repetitions included.
    pub initiations_sent: u64,
    /// Responses sent, repetitions included.
    pub responses_sent: u64,
    /// Cookies sent.
    pub cookies_sent: u64,
    /// Notices sent: hints to ends that nobody vouches for.
    pub notices_sent: u64,
    /// Handshakes completed, either way.
    pub handshakes: u64,
    /// Handshakes of them that renewed keys while older ones were still in use.
    pub rekeys: u64,
    /// Octets that parity put right.
    pub corrected_symbols: u64,
    /// Damaged datagrams that were not corrected, since too many corrections were in vain.
    pub uncorrected: u64,
    /// Times a link was held for down.
    pub outages: u64,
    /// The sum, over all peers, of the outages that are over.
    pub outage_time: Duration,
    /// Times a peer was followed to another path.
    pub moves: u64,
    /// Inner datagrams that were made for a larger path and left in pieces.
    pub fragmented: u64,
    /// Inner datagrams that arrived in pieces and were put together.
    pub reassembled: u64,
    /// Datagrams carried on, as a hub, from one peer to another.
    pub relayed: u64,
    /// Datagrams for another peer that were not carried on: it may not be, is not there, or too many came. At an end, those for a peer
    /// that its hub takes none for now.
    pub unrelayed: u64,
    /// Own datagrams that found no room in the queue.
    pub queue_full: u64,
}

impl SessionCounters {
    pub(super) fn drop(&mut self, reason: DropReason) {
        if let Some(count) = self.dropped.get_mut(reason as usize) {
            *count += 1;
        }
    }

    /// Counts frames without a meaning in a datagram with others that have one.
    pub(super) fn drop_frames(&mut self, frames: u64) {
        if let Some(count) = self.dropped.get_mut(DropReason::Unknown as usize) {
            *count += frames;
        }
    }

    /// The number of datagrams that were dropped for `reason`.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped.get(reason as usize).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_counter_of_its_own() {
        let mut counters = SessionCounters::default();
        for (n, reason) in DropReason::ALL.into_iter().enumerate() {
            for _ in 0..=n {
                counters.drop(reason);
            }
        }
        let counts = DropReason::ALL.map(|reason| counters.dropped(reason));
        assert!(counts.into_iter().eq(1..=16));
    }
}
