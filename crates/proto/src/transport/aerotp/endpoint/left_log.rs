//! The numbered datagrams that left lately, so that one of which the remote says that it is damaged is found again.

use crate::transport::aerotp::ConnectionId;
use crate::units::{ByteCount, Duration, Instant};
use crate::wire::TpduSeq;
use std::collections::VecDeque;

/// The most datagrams that are remembered: 160 ms of full packets at 1 gbit.
const LEFT_MAX: usize = 16_384;
/// The longest time for which one is remembered; its TPDU is held for lost by then.
const KEPT: Duration = Duration::from_secs(4);

/// Datagrams for which there is room while nothing is remembered.
const KEPT_EMPTY: usize = 64;

/// A datagram that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left {
    number: u64,
    pub(super) at: Instant,
    /// Its octets, headers of the layers below included.
    pub(super) wire: ByteCount,
    /// Its TPDU with data, until somebody asked for it.
    pub(super) tpdu: Option<(ConnectionId, TpduSeq)>,
    is_taken: bool,
    /// Whether what mends it was sent.
    pub(super) is_mending: bool,
}

/// The datagrams that left on one path, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct LeftLog(VecDeque<Left>);

impl LeftLog {
    /// Notes a datagram.
    pub(super) fn on_left(
        &mut self,
        now: Instant,
        number: u64,
        wire: ByteCount,
        tpdu: Option<(ConnectionId, TpduSeq)>,
    ) {
        let is_old = |left: &Left| now.saturating_since(left.at) > KEPT;
        while self.0.len() >= LEFT_MAX || self.0.front().is_some_and(is_old) {
            self.0.pop_front();
        }
        // An idle session sends something every ten seconds, which frees what the last flow took.
        if self.0.is_empty() && self.0.capacity() > KEPT_EMPTY {
            self.0.shrink_to(KEPT_EMPTY);
        }
        // Numbers rise; whatever else would make the search below wrong.
        if self.0.back().is_none_or(|last| last.number < number) {
            let (at, is_taken, is_mending) = (now, false, false);
            self.0.push_back(Left {
                number,
                at,
                wire,
                tpdu,
                is_taken,
                is_mending,
            });
        }
    }

    fn find(&mut self, number: u64) -> Option<&mut Left> {
        let place = self.0.partition_point(|left| left.number < number);
        self.0.get_mut(place).filter(|left| left.number == number)
    }

    /// The datagram with this number, for which what mends it leaves, and whether that is for the first time; it may be
    /// [taken](LeftLog::take) later.
    pub(super) fn mend(&mut self, number: u64) -> Option<(Left, bool)> {
        let left = self.find(number).filter(|left| !left.is_taken)?;
        let is_first = !core::mem::replace(&mut left.is_mending, true);
        Some((*left, is_first))
    }

    /// The datagram with this number, once.
    pub(super) fn take(&mut self, number: u64) -> Option<Left> {
        let left = self.find(number)?;
        let is_new = !core::mem::replace(&mut left.is_taken, true);
        is_new.then_some(*left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_datagram_is_found_once_while_it_is_young_and_among_the_last() {
        let mut log = LeftLog::default();
        let at = |millis| Instant::START + Duration::from_millis(millis);
        let wire = ByteCount(1_500);
        let tpdu = |n| Some((ConnectionId(1), TpduSeq(n)));
        for n in 0..20_000_u32 {
            log.on_left(at(0), 2 * u64::from(n), wire, tpdu(n));
        }
        assert_eq!(log.0.len(), LEFT_MAX);
        assert_eq!(log.take(0), None, "too many left since");
        assert_eq!(log.take(39_997), None, "no such number");
        assert_eq!(log.take(40_000), None, "it has not left yet");
        assert_eq!(log.take(39_998).and_then(|left| left.tpdu), tpdu(19_999));
        assert_eq!(log.take(39_998), None, "told twice");
        assert_eq!(log.mend(39_998), None, "it is sent again");
        for is_first in [true, false] {
            let mending = log.mend(39_996);
            assert_eq!(
                mending.map(|(left, first)| (left.tpdu, first)),
                Some((tpdu(19_998), is_first))
            );
        }
        assert!(log.take(39_996).is_some_and(|left| left.is_mending));
        log.on_left(at(4_001), 40_000, wire, None);
        assert_eq!(log.0.len(), 1, "the others are old");
        assert!(log.0.capacity() <= 2 * KEPT_EMPTY, "{}", log.0.capacity());
        log.on_left(at(4_001), 39_000, wire, None);
        assert_eq!(log.0.len(), 1, "numbers rise");
    }
}
