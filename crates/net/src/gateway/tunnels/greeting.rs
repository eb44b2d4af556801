//! The first word of a tunnel's end to the other: its networks, so that both notice a slip before traffic does.

use crate::gateway::config::TunnelSettings;
use crate::tun::InterfaceAddress;
use core::fmt;
use std::net::IpAddr;

/// The first octet of a greeting. That of an IP packet begins with 4 or 6.
pub(super) const GREETING_MARK: u8 = 0;
/// The longest greeting that is read or sent.
const GREETING_BYTES_MAX: usize = 60_000;
/// The most addresses and the most routes of an end that are compared: the addresses of either end with the networks of the other.
const ADDRESSES_MAX: usize = 64;
const ROUTES_MAX: usize = 1_024;
/// The networks that a line names.
const NAMED_MAX: usize = 10;

/// The networks of one end of a tunnel, as it tells them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TunnelGreeting {
    /// The addresses of its device, with their networks.
    pub(super) addresses: Vec<InterfaceAddress>,
    /// Networks that it sends into the tunnel besides.
    pub(super) routes: Vec<InterfaceAddress>,
}

impl TunnelGreeting {
    /// The greeting of an end with these settings.
    pub(super) fn of(settings: &TunnelSettings) -> Self {
        Self {
            addresses: settings.addresses.clone(),
            routes: settings.routes.clone(),
        }
    }

    /// The message; `None` if the other end would not read it.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        if self.addresses.len() > ADDRESSES_MAX || self.routes.len() > ROUTES_MAX {
            return None;
        }
        let text = format!("{}\n{}", Listed(&self.addresses), Listed(&self.routes));
        let mut message = vec![GREETING_MARK];
        message.extend_from_slice(text.as_bytes());
        (message.len() <= GREETING_BYTES_MAX).then_some(message)
    }

    /// The greeting in a message; `None` if there is none.
    pub(super) fn decode(message: &[u8]) -> Option<Self> {
        let (mark, text) = message.split_first()?;
        if *mark != GREETING_MARK || message.len() > GREETING_BYTES_MAX {
            return None;
        }
        let text = core::str::from_utf8(text).ok()?;
        let mut lines = text.lines();
        let mut networks = |max: usize| -> Option<Vec<InterfaceAddress>> {
            let words = lines.next().unwrap_or_default().split_ascii_whitespace();
            let some = words.take(max + 1).map(|word| word.parse().ok());
            let all: Vec<InterfaceAddress> = some.collect::<Option<_>>()?;
            (all.len() <= max).then_some(all)
        };
        // Further lines are a later version's.
        Some(Self {
            addresses: networks(ADDRESSES_MAX)?,
            routes: networks(ROUTES_MAX)?,
        })
    }

    /// The hosts for which an end with these networks lets the other one speak.
    pub(super) fn speakers(&self) -> Speakers {
        Speakers {
            networks: self.addresses.iter().chain(&self.routes).copied().collect(),
            own: self.addresses.iter().map(|address| address.ip()).collect(),
        }
    }

    /// The addresses here whose packets an end with `others` drops.
    pub(super) fn dropped_by(&self, others: &Speakers) -> Vec<InterfaceAddress> {
        let addresses = self.addresses.iter().copied();
        addresses.filter(|one| !others.include(one.ip())).collect()
    }
}

/// The hosts for which the peer may speak: those of the tunnel's networks, without this one.
#[derive(Clone, Debug)]
pub(super) struct Speakers {
    networks: Vec<InterfaceAddress>,
    own: Vec<IpAddr>,
}

impl Speakers {
    pub(super) fn include(&self, source: IpAddr) -> bool {
        let mut networks = self.networks.iter();
        !self.own.contains(&source) && networks.any(|network| network.has(source))
    }
}

/// Networks with blanks between them.
pub(super) struct Listed<'a>(pub(super) &'a [InterfaceAddress]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, network) in self.0.iter().enumerate() {
            let gap = if place > 0 { " " } else { "" };
            write!(f, "{gap}{network}")?;
        }
        Ok(())
    }
}

/// The first of these networks, and the number of the others.
pub(super) struct Shortened<'a>(pub(super) &'a [InterfaceAddress]);

impl fmt::Display for Shortened<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (named, others) = self.0.split_at(self.0.len().min(NAMED_MAX));
        write!(f, "{}", Listed(named))?;
        match others.len() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn greeting(addresses: &[&str], routes: &[&str]) -> TunnelGreeting {
        let networks = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        TunnelGreeting {
            addresses: networks(addresses),
            routes: networks(routes),
        }
    }

    #[test]
    fn the_peer_speaks_for_hosts_of_the_tunnel_s_networks_and_never_for_this_one() {
        let here = greeting(&["10.88.0.1/24", "fd88::1/64"], &["192.168.7.0/24"]);
        for (source, may) in [
            ("10.88.0.2", true),
            ("192.168.7.30", true),
            ("fd88::2", true),
            ("10.88.0.1", false),
            ("fd88::1", false),
            ("192.168.8.30", false),
            ("8.8.8.8", false),
        ] {
            let included = here.speakers().include(source.parse().unwrap());
            assert_eq!(included, may, "{source}");
        }
    }

    #[test]
    fn addresses_of_another_network_and_the_same_address_are_dropped() {
        let here = greeting(&["10.88.0.1/24"], &[]);
        let dropped = |other: &TunnelGreeting| other.dropped_by(&here.speakers()).len();
        assert_eq!(dropped(&greeting(&["10.88.0.2/24"], &[])), 0);
        assert_eq!(dropped(&greeting(&["10.88.0.1/24"], &[])), 1);
        assert_eq!(
            dropped(&greeting(&["10.88.0.2/24", "10.89.0.2/24"], &[])),
            1
        );
    }

    #[test]
    fn a_greeting_comes_back_as_it_was_and_anything_else_is_none() {
        let one = greeting(&["10.88.0.1/24", "fd88::1/64"], &["10.79.0.0/16"]);
        let message = one.encode().unwrap();
        assert_eq!(message, b"\x0010.88.0.1/24 fd88::1/64\n10.79.0.0/16");
        assert_eq!(TunnelGreeting::decode(&message), Some(one));
        let later = b"\x0010.88.0.1/24\n\nanother line";
        assert_eq!(
            TunnelGreeting::decode(later),
            Some(greeting(&["10.88.0.1/24"], &[]))
        );
        for odd in [
            &b""[..],
            b"\x45\0\0\x14",
            b"\0x",
            b"\x0010.88.0.1/33",
            b"\0\xff",
        ] {
            assert_eq!(TunnelGreeting::decode(odd), None, "{odd:?}");
        }
        for (addresses, routes, is_read) in [
            (ADDRESSES_MAX, ROUTES_MAX, true),
            (ADDRESSES_MAX + 1, 0, false),
            (1, ROUTES_MAX + 1, false),
        ] {
            let many = greeting(
                &vec!["10.88.0.1/24"; addresses],
                &vec!["10.79.0.0/16"; routes],
            );
            assert_eq!(many.encode().is_some(), is_read, "{addresses} {routes}");
            let [addresses, routes] = [&many.addresses, &many.routes].map(|all| Listed(all));
            let message = format!("\0{addresses}\n{routes}");
            let read = TunnelGreeting::decode(message.as_bytes());
            assert_eq!(read.is_some(), is_read, "{addresses} {routes}");
        }
        let long = vec![b' '; GREETING_BYTES_MAX];
        assert_eq!(TunnelGreeting::decode(&[&[0], &long[..]].concat()), None);
    }
    proptest! {
        #[test]
        fn any_octets_after_the_mark_are_one_greeting_or_none(
            octets in prop_oneof![vec(any::<u8>(), 0..200), "[0-9a-f.:/ \n]{0,200}".prop_map(String::into_bytes)],
        ) {
            let message = [&[GREETING_MARK], &octets[..]].concat();
            if let Some(greeting) = TunnelGreeting::decode(&message) {
                let again = greeting.encode().expect("what was read may be sent");
                prop_assert_eq!(TunnelGreeting::decode(&again), Some(greeting));
            }
        }

        #[test]
        fn networks_that_are_told_are_read_as_they_are(
            addresses in vec((any::<[u8; 4]>(), 0_u8..=32), 0..5),
            routes in vec((any::<[u16; 8]>(), 0_u8..=128), 0..5),
        ) {
            let told = |ip: IpAddr, len: u8| format!("{ip}/{len}").parse().expect("a network");
            let greeting = TunnelGreeting {
                addresses: addresses.iter().map(|(ip, len)| told((*ip).into(), *len)).collect(),
                routes: routes.iter().map(|(ip, len)| told((*ip).into(), *len)).collect(),
            };
            let message = greeting.encode().expect("few networks");
            prop_assert_eq!(TunnelGreeting::decode(&message), Some(greeting));
        }
    }
}
