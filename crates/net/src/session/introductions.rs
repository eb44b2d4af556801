//! The hub's side of meetings: which of its peers want to meet which, what each may have, and how much of it.

use super::asking::ASK_LAST;
use super::config::PeerIndex;
use super::sources::{Bucket, Rate};
use super::wire::Capability;
use fulmar_proto::units::{Bitrate, Duration, Instant};
use std::collections::BTreeMap;

const CAPABILITY: &str = "rendezvous";
const VALUE: &str = "1";

/// The time for which a wish holds: an end repeats it each minute, and two repetitions may be lost.
const WISH_LIFE: Duration = Duration::from_secs(ASK_LAST.as_secs() * 3);
/// The wishes of one peer that are remembered; the oldest gives way.
const WISHES_MAX: usize = 16;
/// The questions of one peer that are heeded.
const ASK_RATE: Rate = Rate::per_second(4, 16);
/// The time for which a peer may send through the hub at more than its rate.
const RELAY_BURST: Duration = Duration::from_millis(100);

/// The capability of an end that introduces its peers to each other, in wire 2.
pub fn rendezvous() -> Capability {
    Capability {
        name: CAPABILITY.to_owned(),
        value: VALUE.to_owned(),
        must_agree: false,
    }
}

/// Whether an end that says these introduces its peers.
pub(super) fn introduces(capabilities: &[Capability]) -> bool {
    let mut said = capabilities.iter();
    said.any(|one| one.name == CAPABILITY && one.value == VALUE)
}

/// The help that a peer may have from this end, as a hub, to meet another that may have it, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Introduce {
    /// None.
    #[default]
    Nothing,
    /// Each is told the address of the other.
    Address,
    /// Also, datagrams of the two are carried on, of each at this rate.
    Relay(Bitrate),
}

/// A peer's part in meetings at this end.
#[derive(Clone, Copy)]
pub(super) struct Introduced {
    pub(super) help: Introduce,
    asks: Bucket,
    relayed: Bucket,
    /// Octets that the others have had relayed to it.
    received: Bucket,
}

impl Default for Introduced {
    fn default() -> Self {
        Self {
            help: Introduce::Nothing,
            asks: Bucket::FULL,
            relayed: Bucket::FULL,
            received: Bucket::FULL,
        }
    }
}

impl Introduced {
    /// Whether one more question is heeded.
    pub(super) fn may_ask(&mut self, now: Instant) -> bool {
        self.asks.take(now, ASK_RATE)
    }

    /// Whether something of it may be carried on at all now.
    pub(super) fn may_relay(&self, now: Instant) -> bool {
        self.is_relayed() && self.relayed.has_octets(now, RELAY_BURST)
    }

    /// Whether so many octets of it are carried on.
    pub(super) fn relays(&mut self, now: Instant, octets: usize) -> bool {
        match self.help {
            Introduce::Relay(rate) => self.relayed.take_octets(now, octets, rate, RELAY_BURST),
            Introduce::Nothing | Introduce::Address => false,
        }
    }

    /// Whether so many octets are carried on to it: of all senders together no more than it may send itself, and no more than half of what
    /// its link carries, if that is known. The rest is for the hub's own flows.
    pub(super) fn receives(&mut self, now: Instant, octets: usize, link: Option<Bitrate>) -> bool {
        let Introduce::Relay(rate) = self.help else {
            return false;
        };
        let half = link.map(|link| Bitrate::from_bits_per_second(link.as_bits_per_second() / 2));
        let rate = half.map_or(rate, |half| half.min(rate));
        self.received.take_octets(now, octets, rate, RELAY_BURST)
    }

    /// Whether datagrams to and from it are carried on.
    pub(super) const fn is_relayed(&self) -> bool {
        matches!(self.help, Introduce::Relay(_))
    }

    /// Whether it is introduced at all.
    pub(super) const fn is_introduced(&self) -> bool {
        !matches!(self.help, Introduce::Nothing)
    }
}

/// The wishes of peers to meet each other.
#[derive(Default)]
pub(super) struct Wishes(BTreeMap<(PeerIndex, PeerIndex), Instant>);

impl Wishes {
    /// Notes that `asker` wants to meet `wanted`.
    pub(super) fn note(&mut self, now: Instant, asker: PeerIndex, wanted: PeerIndex) {
        let own = (asker, PeerIndex(0))..=(asker, PeerIndex(u32::MAX));
        let is_new = !self.0.contains_key(&(asker, wanted));
        if is_new && self.0.range(own.clone()).count() >= WISHES_MAX {
            let oldest = self.0.range(own).min_by_key(|(_, at)| **at);
            let oldest = oldest.map(|(pair, _)| *pair);
            oldest.and_then(|pair| self.0.remove(&pair));
        }
        self.0.insert((asker, wanted), now);
    }

    /// Whether `asker` wants to meet `wanted`.
    pub(super) fn has(&self, now: Instant, asker: PeerIndex, wanted: PeerIndex) -> bool {
        let at = self.0.get(&(asker, wanted));
        at.is_some_and(|at| now.saturating_since(*at) < WISH_LIFE)
    }

    /// Forgets the wishes of a peer, and those to meet it.
    pub(super) fn forget(&mut self, peer: PeerIndex) {
        self.0
            .retain(|(asker, wanted), _| *asker != peer && *wanted != peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::START;

    #[test]
    fn a_wish_holds_for_three_minutes_and_is_the_asker_s_alone() {
        let mut wishes = Wishes::default();
        wishes.note(NOW, PeerIndex(1), PeerIndex(2));
        let last = NOW + Duration::from_millis(179_999);
        assert!(wishes.has(last, PeerIndex(1), PeerIndex(2)));
        assert!(!wishes.has(last, PeerIndex(2), PeerIndex(1)));
        assert!(!wishes.has(NOW + WISH_LIFE, PeerIndex(1), PeerIndex(2)));
        wishes.forget(PeerIndex(2));
        assert!(!wishes.has(NOW, PeerIndex(1), PeerIndex(2)));
    }

    #[test]
    fn a_peer_that_asks_for_everybody_is_remembered_with_its_last_wishes_and_no_other_loses_one() {
        let mut wishes = Wishes::default();
        wishes.note(NOW, PeerIndex(2), PeerIndex(1));
        for wanted in 0..200 {
            let now = NOW + Duration::from_millis(u64::from(wanted));
            wishes.note(now, PeerIndex(1), PeerIndex(wanted));
        }
        assert_eq!(wishes.0.len(), 1 + WISHES_MAX);
        assert!(wishes.has(NOW, PeerIndex(2), PeerIndex(1)));
        assert!(wishes.has(NOW, PeerIndex(1), PeerIndex(199)));
        assert!(!wishes.has(NOW, PeerIndex(1), PeerIndex(199 - 16)));
    }

    #[test]
    fn a_peer_s_questions_and_octets_have_a_rate() {
        let mut introduced = Introduced {
            help: Introduce::Relay(Bitrate::from_bits_per_second(800_000)),
            ..Introduced::default()
        };
        let mut heeded = 0;
        let mut octets = 0;
        for millis in 0..10_000 {
            let now = NOW + Duration::from_millis(millis);
            heeded += u32::from(introduced.may_ask(now));
            octets += 1_000 * u32::from(introduced.relays(now, 1_000));
        }
        assert!((40..=56).contains(&heeded), "{heeded}");
        // 100 kB a second, and those of the burst.
        assert!((1_000_000..=1_011_000).contains(&octets), "{octets}");
        introduced.help = Introduce::Address;
        assert!(!introduced.relays(NOW + Duration::from_secs(99), 1));
    }

    #[test]
    fn what_goes_to_one_peer_has_its_own_rate_and_half_of_its_link_at_most() {
        for (link, bytes_a_second) in [(None, 100_000), (Some(400_000), 25_000)] {
            let mut introduced = Introduced {
                help: Introduce::Relay(Bitrate::from_bits_per_second(800_000)),
                ..Introduced::default()
            };
            let link = link.map(Bitrate::from_bits_per_second);
            let times = (0..10_000).map(|millis| NOW + Duration::from_millis(millis));
            let taken = times.filter(|now| introduced.receives(*now, 1_000, link));
            let octets = 1_000 * taken.count();
            // Those of ten seconds, and of the burst.
            let bounds = bytes_a_second * 10..=bytes_a_second * 10 + bytes_a_second / 10 + 1_000;
            assert!(bounds.contains(&octets), "{link:?}: {octets}");
        }
    }
}
