//! The wish of this end to meet a peer through a hub: when the hub is asked, and how much is sent to an address that it tells.

use super::config::PeerIndex;
use super::wire::{Met, RemoteNumber};
use fulmar_proto::machine::PathId;
use fulmar_proto::units::{Duration, Instant};
use std::net::{IpAddr, SocketAddr};

/// The questions to the hub that are a second apart: the peer may start within a few seconds of us.
const ASKED_SOON: u32 = 5;
const ASK_FIRST: Duration = Duration::from_secs(1);
/// The longest pause between questions, and the pause while the peer is reached directly: the hub then still knows that we want to
/// meet it when the peer asks.
pub(super) const ASK_LAST: Duration = Duration::from_secs(60);
/// Datagrams to an address that the hub told, until the peer answers there: those of four seconds.
pub(super) const TOLD_CALLS_MAX: u8 = 16;
/// The shortest time between two addresses that are heeded.
const HEEDED_APART: Duration = Duration::from_secs(4);

/// The reason why a hub does not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotIntroduced {
    /// It does not say that it does.
    #[error(
        "it introduces nobody: write introduce = \"relay\" or \"address\" in both [[peer]] of its file, or update it"
    )]
    Unable,
    /// We know no public key of the peer, by which the hub could be asked.
    #[error("the peer has no public key here: only kind = \"noise\" has them")]
    Nameless,
    /// It does not know the peer, or may not introduce the two.
    #[error(
        "it has no [[peer]] with that public key, or may not introduce the two: write introduce = \"relay\" or \"address\" in the [[peer]] of both in its file"
    )]
    Refused,
}

/// An address at which the peer is to be called now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heeded {
    pub(super) address: SocketAddr,
    /// Whether it is another one than was heeded last.
    pub(super) is_news: bool,
}

/// An address that the hub told.
struct Told {
    path: PathId,
    /// Datagrams that may still leave for it before it answers.
    left: u8,
}

/// The wish to meet a peer.
pub(super) struct Asking {
    /// The hub.
    pub(super) hub: PeerIndex,
    /// The hub's number of the peer.
    number: Option<RemoteNumber>,
    /// Whether the hub carries datagrams, and the peer is there to take them.
    is_relayed: bool,
    questions: u32,
    asked_at: Option<Instant>,
    /// The keys of the last question that the hub has not refused yet: a peer may have two.
    unrefused: usize,
    heeded: Option<(SocketAddr, Instant)>,
    told: Option<Told>,
    said: Option<NotIntroduced>,
    was_direct: bool,
    /// The life of the hub that was asked last.
    hub_boot: Option<u64>,
}

/// Whether a peer may be at an address at all. What is here, and what is many, is nobody's outside address.
fn is_callable(address: SocketAddr) -> bool {
    let ip = address.ip();
    let is_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let is_nobody = ip.is_unspecified() || ip.is_loopback() || ip.is_multicast();
    address.port() != 0 && !is_local && !is_nobody
}

impl Asking {
    pub(super) const fn new(hub: PeerIndex) -> Self {
        Self {
            hub,
            number: None,
            is_relayed: false,
            questions: 0,
            asked_at: None,
            unrefused: 0,
            heeded: None,
            told: None,
            said: None,
            was_direct: false,
            hub_boot: None,
        }
    }

    /// Notes the life of the hub. One that started anew has forgotten our wish, and may number its peers anew: it is asked at once.
    pub(super) fn see_hub(&mut self, boot: Option<u64>) {
        if core::mem::replace(&mut self.hub_boot, boot) != boot {
            self.questions = 0;
            self.asked_at = None;
            self.number = None;
            self.is_relayed = false;
        }
    }

    /// Notes whether the peer is reached directly. When it no longer is, the hub is asked at once.
    pub(super) const fn see_direct(&mut self, is_direct: bool) {
        if self.was_direct && !is_direct {
            self.questions = 0;
            self.asked_at = None;
        }
        self.was_direct = is_direct;
    }

    /// The time of the next question, while the hub is there.
    pub(super) fn ask_at(&self) -> Instant {
        let doublings = self.questions.saturating_sub(ASKED_SOON).min(6);
        let pause = if self.was_direct {
            ASK_LAST
        } else {
            (ASK_FIRST * (1 << doublings)).min(ASK_LAST)
        };
        self.asked_at.map_or(Instant::START, |at| at + pause)
    }

    /// Notes that the hub was asked, by so many keys of the peer.
    pub(super) const fn on_asked(&mut self, now: Instant, keys: usize) {
        self.questions = self.questions.saturating_add(1);
        self.asked_at = Some(now);
        self.unrefused = keys;
    }

    /// Notes that the hub refused one of the keys by which it was asked. Returns whether that was the last of them.
    pub(super) const fn on_key_refused(&mut self) -> bool {
        let is_last = self.unrefused == 1;
        self.unrefused = self.unrefused.saturating_sub(1);
        is_last
    }

    /// Notes that the hub does not help. Returns whether that is news.
    pub(super) fn on_refused(&mut self, why: NotIntroduced) -> bool {
        self.number = None;
        self.is_relayed = false;
        self.said.replace(why) != Some(why)
    }

    /// Takes the hub's word. Returns the address at which the peer is to be called now, if it is.
    pub(super) fn on_met(&mut self, now: Instant, met: &Met) -> Option<Heeded> {
        self.said = None;
        self.unrefused = 0;
        self.number = Some(met.number);
        self.is_relayed = met.is_relayed && (met.is_there || met.address.is_some());
        let address = met.address.filter(|address| is_callable(*address))?;
        let is_soon = |(_, at): (SocketAddr, Instant)| now.saturating_since(at) < HEEDED_APART;
        if self.was_direct || self.heeded.is_some_and(is_soon) {
            return None;
        }
        let before = self.heeded.replace((address, now));
        let is_news = before.is_none_or(|(before, _)| before != address);
        Some(Heeded { address, is_news })
    }

    /// The number under which the hub carries datagrams to the peer, if it would.
    pub(super) fn relayed_as(&self) -> Option<RemoteNumber> {
        self.number.filter(|_| self.is_relayed)
    }

    /// Whether what the hub carried from the remote of this number is the peer's.
    pub(super) fn is_number(&self, number: RemoteNumber) -> bool {
        self.number == Some(number)
    }

    /// Notes the path to the address that the hub told.
    pub(super) const fn on_path(&mut self, path: PathId) {
        let left = TOLD_CALLS_MAX;
        self.told = Some(Told { path, left });
    }

    /// Counts a datagram for `path`, where nobody answered yet.
    pub(super) fn on_called(&mut self, path: PathId) {
        if let Some(told) = self.told.as_mut().filter(|told| told.path == path) {
            told.left = told.left.saturating_sub(1);
        }
    }

    /// Notes that the peer is at `path`: what leaves for it is no longer counted.
    pub(super) fn on_proven(&mut self, path: PathId) {
        self.told.take_if(|told| told.path == path);
    }

    /// Whether `path` leads to an address that the hub told and that did not answer yet.
    pub(super) fn is_unproven(&self, path: PathId) -> bool {
        self.told.as_ref().is_some_and(|told| told.path == path)
    }

    /// The path to an address that did not answer, when no more may leave for it. It is told once.
    pub(super) fn take_given_up(&mut self) -> Option<PathId> {
        let told = self.told.take_if(|told| told.left == 0);
        told.map(|told| told.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::PublicKey;

    const HUB: PeerIndex = PeerIndex(0);
    const NOW: Instant = Instant::START;

    fn at(host: u8) -> SocketAddr {
        ([192, 0, 2, host], 4_914).into()
    }

    fn met(address: Option<SocketAddr>) -> Met {
        Met {
            remote: PublicKey::from_octets([1; 32]),
            is_introduced: true,
            is_relayed: true,
            is_there: address.is_some(),
            number: RemoteNumber(3),
            address,
        }
    }

    /// The address that is heeded of what the hub says.
    fn heeded(asking: &mut Asking, now: Instant, met: &Met) -> Option<SocketAddr> {
        asking.on_met(now, met).map(|heeded| heeded.address)
    }

    fn seconds(seconds: u64) -> Instant {
        NOW + Duration::from_secs(seconds)
    }

    #[test]
    fn the_hub_is_asked_each_second_at_first_and_each_minute_at_last() {
        let mut asking = Asking::new(HUB);
        let mut now = NOW;
        let mut pauses = Vec::new();
        for _ in 0..13 {
            let at = asking.ask_at();
            pauses.push(at.saturating_since(now).as_secs());
            now = at.max(now);
            asking.on_asked(now, 1);
        }
        assert_eq!(pauses, [0, 1, 1, 1, 1, 1, 2, 4, 8, 16, 32, 60, 60]);
        asking.see_direct(true);
        assert_eq!(asking.ask_at(), now + ASK_LAST);
        asking.see_direct(false);
        assert!(asking.ask_at() <= now, "the direct way was lost");
    }

    #[test]
    fn a_hub_that_started_anew_is_asked_at_once() {
        let mut asking = Asking::new(HUB);
        asking.see_hub(Some(1));
        (0..9).for_each(|at| asking.on_asked(seconds(at), 1));
        asking.see_hub(Some(1));
        assert!(asking.ask_at() > seconds(9));
        asking.on_met(seconds(9), &met(Some(at(1))));
        asking.see_hub(Some(2));
        assert!(asking.ask_at() <= seconds(9));
        let number = RemoteNumber(3);
        assert!(!asking.is_number(number), "it may be another's");
    }

    #[test]
    fn an_address_that_does_not_answer_gets_sixteen_datagrams_and_four_seconds_later_sixteen_more()
    {
        let mut asking = Asking::new(HUB);
        let mut calls = 0;
        for millis in (0..12_000).step_by(50) {
            let now = NOW + Duration::from_millis(millis);
            // A hub that lies tells another address each time.
            let host = u8::try_from(millis / 50 % 200).expect("small");
            if asking.on_met(now, &met(Some(at(host)))).is_some() {
                asking.on_path(PathId(u32::from(host)));
            }
            if asking.take_given_up().is_none() {
                let path = asking.told.as_ref().map(|told| told.path);
                calls += u32::from(path.is_some());
                if let Some(path) = path {
                    asking.on_called(path);
                }
            }
        }
        assert_eq!(calls, 3 * 16);
    }

    #[test]
    fn an_address_that_is_told_again_is_no_news() {
        let mut asking = Asking::new(HUB);
        let mut news = |second, host| {
            let heeded = asking.on_met(seconds(second), &met(Some(at(host))));
            heeded.map(|heeded| heeded.is_news)
        };
        assert_eq!(news(0, 1), Some(true));
        assert_eq!(news(1, 2), None, "too soon");
        assert_eq!(news(10, 1), Some(false));
        assert_eq!(news(20, 2), Some(true));
        assert_eq!(news(30, 1), Some(true));
    }

    #[test]
    fn a_hub_that_refuses_one_of_two_keys_may_know_the_other() {
        let mut asking = Asking::new(HUB);
        asking.on_asked(NOW, 2);
        assert!(!asking.on_key_refused());
        assert!(asking.on_key_refused(), "both");
        assert!(!asking.on_key_refused(), "said");
        for is_known_first in [false, true] {
            asking.on_asked(NOW, 2);
            if is_known_first {
                asking.on_met(NOW, &met(None));
            }
            assert!(!asking.on_key_refused());
            if !is_known_first {
                asking.on_met(NOW, &met(None));
            }
            assert_eq!(asking.number, Some(RemoteNumber(3)));
        }
    }

    #[test]
    fn a_peer_that_is_there_without_an_address_is_reached_through_the_hub_alone() {
        let mut asking = Asking::new(HUB);
        let is_there = true;
        let told = Met {
            is_there,
            ..met(None)
        };
        assert_eq!(asking.on_met(NOW, &told), None);
        assert_eq!(asking.relayed_as(), Some(RemoteNumber(3)));
        // A hub of the first form of the word says no more than the address.
        let is_there = false;
        let told = Met {
            is_there,
            ..met(Some(at(1)))
        };
        asking.on_met(NOW, &told);
        assert_eq!(asking.relayed_as(), Some(RemoteNumber(3)));
        asking.on_met(NOW, &met(None));
        assert_eq!(asking.relayed_as(), None, "it is gone");
    }

    #[test]
    fn an_address_that_answers_is_no_longer_counted() {
        let mut asking = Asking::new(HUB);
        assert_eq!(heeded(&mut asking, NOW, &met(Some(at(1)))), Some(at(1)));
        asking.on_path(PathId(7));
        assert!(asking.is_unproven(PathId(7)) && !asking.is_unproven(PathId(8)));
        asking.on_called(PathId(7));
        asking.on_proven(PathId(7));
        (0..100).for_each(|_| asking.on_called(PathId(7)));
        assert_eq!(asking.take_given_up(), None);
    }

    #[test]
    fn no_address_is_heeded_while_the_peer_is_reached_directly_nor_one_that_is_nobody_s() {
        let mut asking = Asking::new(HUB);
        for nobody in [
            "0.0.0.0:1",
            "127.0.0.1:1",
            "224.0.0.1:1",
            "255.255.255.255:1",
            "169.254.1.1:1",
            "192.0.2.1:0",
            "[::]:1",
            "[::1]:1",
            "[ff02::1]:1",
            "[fe80::1]:1",
        ] {
            let address = nobody.parse().expect("an address");
            assert_eq!(
                heeded(&mut asking, NOW, &met(Some(address))),
                None,
                "{nobody}"
            );
        }
        asking.see_direct(true);
        assert_eq!(heeded(&mut asking, NOW, &met(Some(at(1)))), None);
        asking.see_direct(false);
        assert_eq!(heeded(&mut asking, NOW, &met(Some(at(1)))), Some(at(1)));
    }

    #[test]
    fn the_hub_carries_datagrams_once_the_peer_has_asked_too() {
        let mut asking = Asking::new(HUB);
        assert_eq!(asking.relayed_as(), None);
        asking.on_met(NOW, &met(None));
        assert_eq!(asking.relayed_as(), None, "the peer has not asked");
        asking.on_met(NOW, &met(Some(at(1))));
        assert_eq!(asking.relayed_as(), Some(RemoteNumber(3)));
        assert!(asking.is_number(RemoteNumber(3)) && !asking.is_number(RemoteNumber(4)));
        assert!(asking.on_refused(NotIntroduced::Refused));
        assert!(!asking.on_refused(NotIntroduced::Refused), "told once");
        assert_eq!(asking.relayed_as(), None);
        assert_eq!(
            heeded(&mut asking, seconds(9), &met(Some(at(1)))),
            Some(at(1))
        );
        assert!(
            asking.on_refused(NotIntroduced::Refused),
            "it helped meanwhile"
        );
    }
}
