//! Places for connections that anyone may open, divided among the hosts that open them.
//!
//! Hosts are told apart by the part of their addresses that they cannot choose ([`host_and_network`]), as for the
//! limits of handshakes. Peers of a session are told apart by their keys.
//!
//! # Promises
//! - The first half of the places goes to whoever asks. Of the rest a host gets one only while it has fewer than an
//!   eighth of what is left, and a network a quarter, so that none ever has more than half of all. Nobody
//!   takes all of 128 places with hosts in fewer than 12 networks.
//! - A newcomer above that share, or one that finds all places taken, gets the place of a connection with which nothing
//!   is agreed yet: one of its own host or network, or of the host that has most. The oldest gives way.
//! - A connection with which something was agreed gives way to nobody.

use crate::session::{host_and_network, source_octets};
use fulmar_proto::machine::PathId;
use std::cmp::Reverse;
use std::net::SocketAddr;

/// The part of the places, one in so many, that goes to whoever asks.
const OPEN_PART: usize = 2;
/// A host's part of the places that are left then, one in so many, but at least the places that one transfer takes in
/// a mode that may lose data.
const HOST_PART: usize = 8;
const HOST_LEAST: usize = 2;
/// A network's part of the places that are left then, one in so many.
const NETWORK_PART: usize = 4;
const NETWORK_LEAST: usize = 4;

/// The one who opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guest {
    /// Somebody with a key.
    Peer(PathId),
    /// Somebody at an address: the octets that name its host, and its network.
    Host { host: u64, network: u64 },
}

fn number(octets: &[u8]) -> u64 {
    let join = |number: u64, octet: &u8| number << 8 | u64::from(*octet);
    octets.iter().fold(0, join)
}

impl Guest {
    fn is_host_of(self, other: Self) -> bool {
        self == other
    }

    fn is_network_of(self, other: Self) -> bool {
        match (self, other) {
            (Self::Host { network: a, .. }, Self::Host { network: b, .. }) => a == b,
            _ => self == other,
        }
    }
}

impl From<SocketAddr> for Guest {
    fn from(from: SocketAddr) -> Self {
        let source = source_octets(from);
        let [host, network] = host_and_network(&source).map(number);
        Self::Host { host, network }
    }
}

/// The sender of the latest datagram, and so of a connection that it opened: drivers drain after each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Latest(Option<(PathId, SocketAddr)>);

impl Latest {
    /// Notes a datagram that came over `path`, from the address `from`.
    pub(crate) const fn note(&mut self, path: PathId, from: SocketAddr) {
        self.0 = Some((path, from));
    }

    /// The guest that opened a connection over `path` just now. On top of a session nobody notes addresses, and paths
    /// are
    /// peers.
    pub(crate) fn guest(&self, path: PathId) -> Guest {
        let latest = self.0.filter(|(of, _)| *of == path);
        latest.map_or(Guest::Peer(path), |(_, from)| from.into())
    }
}

/// A place that is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakenPlace<K> {
    pub(crate) id: K,
    pub(crate) guest: Guest,
    /// Whether nothing is agreed with it yet.
    pub(crate) gives_way: bool,
}

/// The place that a newcomer gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seat<K> {
    Free,
    /// The place of this connection, which has to go.
    Of(K),
    Nowhere,
}

/// The seat for `newcomer` among `places`, of which those in `taken` are taken, the oldest first.
pub(crate) fn seat<K: Copy>(places: usize, newcomer: Guest, taken: &[TakenPlace<K>]) -> Seat<K> {
    let room = places.saturating_sub(taken.len());
    let is_scarce = room <= places / OPEN_PART;
    let has = |guest: Guest| {
        let its = taken.iter().filter(|one| one.guest.is_host_of(guest));
        its.count()
    };
    let network = taken
        .iter()
        .filter(|one| one.guest.is_network_of(newcomer))
        .count();
    let mut idle = taken.iter().filter(|one| one.gives_way);
    let goes = if is_scarce && has(newcomer) >= HOST_LEAST.max(room / HOST_PART) {
        idle.find(|one| one.guest.is_host_of(newcomer))
    } else if is_scarce && network >= NETWORK_LEAST.max(room / NETWORK_PART) {
        idle.find(|one| one.guest.is_network_of(newcomer))
    } else if room > 0 {
        return Seat::Free;
    } else {
        idle.min_by_key(|one| Reverse(has(one.guest)))
    };
    goes.map_or(Seat::Nowhere, |one| Seat::Of(one.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: usize = 128;

    fn at(address: &str) -> Guest {
        let address: SocketAddr = format!("{address}:4914").parse().expect("an address");
        address.into()
    }

    /// The places that newcomers have taken, and the number of the latest newcomer.
    #[derive(Default)]
    struct House {
        taken: Vec<TakenPlace<usize>>,
        last: usize,
    }

    impl House {
        fn comes(&mut self, places: usize, guest: Guest, gives_way: bool) -> Seat<usize> {
            let seat = seat(places, guest, &self.taken);
            if let Seat::Of(goes) = seat {
                self.taken.retain(|one| one.id != goes);
            }
            if seat != Seat::Nowhere {
                self.last += 1;
                let id = self.last;
                self.taken.push(TakenPlace {
                    id,
                    guest,
                    gives_way,
                });
            }
            assert!(self.taken.len() <= places);
            seat
        }

        fn of(&self, guest: Guest) -> usize {
            let its = self.taken.iter().filter(|one| one.guest == guest);
            its.count()
        }
    }

    #[test]
    fn one_host_has_half_at_most_whatever_ports_it_takes_and_others_come_in() {
        for places in [32, PLACES] {
            let mut house = House::default();
            let greedy = at("192.0.2.1");
            for _ in 0..1_000 {
                house.comes(places, greedy, false);
            }
            assert_eq!(house.of(greedy), places / 2);
            assert_eq!(house.comes(places, at("198.51.100.7"), false), Seat::Free);
        }
        let [a, b] = ["[2001:db8:1:1::1]", "[2001:db8:1:1:ffff::2]"].map(at);
        assert_eq!(a, b, "a host chooses the lower half of its address");
    }

    #[test]
    fn many_networks_are_needed_to_take_all_places_and_many_hosts_of_one_do_not() {
        for (places, least) in [(PLACES, 12), (32, 5)] {
            let mut house = House::default();
            for host in 0..=255 {
                for _ in 0..places {
                    house.comes(places, at(&format!("192.0.2.{host}")), false);
                    let v6 = at(&format!("[2001:db8:1:{host:x}::1]"));
                    house.comes(places, v6, false);
                }
            }
            let has = house.taken.len();
            assert!(has < places, "two networks have {has} of {places}");
            let mut networks = 2;
            while house.taken.len() < places {
                networks += 1;
                for host in 0..=255 {
                    for _ in 0..places {
                        house.comes(places, at(&format!("10.0.{networks}.{host}")), false);
                    }
                }
            }
            assert!(networks >= least, "{networks} networks");
        }
    }

    #[test]
    fn what_nothing_was_agreed_with_gives_way_the_oldest_of_the_greediest_first() {
        let mut house = House::default();
        let (patient, greedy) = (at("192.0.2.1"), at("198.51.100.1"));
        house.comes(PLACES, patient, true);
        let mut n = 0;
        while house.taken.len() < PLACES {
            n += 1;
            let crowd = at(&format!("10.{}.{}.1", n / 250, n % 250));
            let guest = if n <= 2 { greedy } else { crowd };
            house.comes(PLACES, guest, true);
        }
        let newcomer = at("203.0.113.1");
        assert_eq!(house.comes(PLACES, newcomer, false), Seat::Of(2));
        assert_eq!(
            house.comes(PLACES, newcomer, false),
            Seat::Of(1),
            "now all have one: the oldest"
        );
        // It has its two places; a third would be at the cost of others.
        assert_eq!(house.comes(PLACES, newcomer, false), Seat::Nowhere);
        // A host with enough places gets only places of its own connections.
        while house.of(greedy) < 2 {
            let seat = house.comes(PLACES, greedy, true);
            assert!(matches!(seat, Seat::Of(_)), "{seat:?}");
        }
        let own = house.taken.iter().find(|one| one.guest == greedy);
        let own = own.expect("it is there").id;
        assert_eq!(house.comes(PLACES, greedy, true), Seat::Of(own));
    }

    #[test]
    fn what_was_agreed_stays() {
        let mut house = House::default();
        for peer in (0..).map(PathId).take(PLACES) {
            house.comes(PLACES, Guest::Peer(peer), false);
        }
        assert_eq!(house.taken.len(), PLACES);
        assert_eq!(house.comes(PLACES, at("192.0.2.1"), false), Seat::Nowhere);
    }
}
