//! The frames by which a hub brings two together (0x1A, 0x1C and 0x1E, in wire 2).

use crate::session::keys::{KEY_BYTES, PublicKey};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Octets of an address with its port, IPv4 in the form of IPv6.
const ADDRESS_BYTES: usize = 18;
/// Octets of the fields of the word about a remote.
const MET_BYTES: usize = KEY_BYTES + 1 + 2 + ADDRESS_BYTES;
/// Octets before a relayed datagram: its type, the direction, the number.
pub(in crate::session) const RELAYED_BYTES: usize = 4;

const IS_INTRODUCED: u8 = 1;
const IS_RELAYED: u8 = 2;
const IS_TOLD: u8 = 4;
const IS_THERE: u8 = 8;

/// The number by which a hub knows one of its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::session) struct RemoteNumber(pub(in crate::session) u16);

/// The wish to meet the remote with a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) struct Meet {
    /// The key.
    pub(in crate::session) remote: PublicKey,
}

impl Meet {
    /// Appends the fields.
    pub(in crate::session) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.remote.octets());
    }

    /// Reads the fields; `None` if they are not there in full. What is behind them is for later versions.
    pub(in crate::session) fn read(fields: &[u8]) -> Option<Self> {
        let remote = PublicKey::from_octets(*fields.first_chunk()?);
        Some(Self { remote })
    }
}

/// The hub's word about a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) struct Met {
    /// The remote's public key, by which it was asked for.
    pub(in crate::session) remote: PublicKey,
    /// Whether the hub introduces the two to each other at all.
    pub(in crate::session) is_introduced: bool,
    /// Whether it carries datagrams between the two.
    pub(in crate::session) is_relayed: bool,
    /// Whether the remote has a session with the hub, and has asked, too.
    pub(in crate::session) is_there: bool,
    /// The remote's number.
    pub(in crate::session) number: RemoteNumber,
    /// The address from which the remote talks to the hub, if it is there and its first path is up.
    pub(in crate::session) address: Option<SocketAddr>,
}

impl Met {
    /// Appends the fields.
    pub(in crate::session) fn write(&self, out: &mut Vec<u8>) {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        out.extend_from_slice(self.remote.octets());
        out.push(
            flag(self.is_introduced, IS_INTRODUCED)
                | flag(self.is_relayed, IS_RELAYED)
                | flag(self.is_there, IS_THERE)
                | flag(self.address.is_some(), IS_TOLD),
        );
        out.extend_from_slice(&self.number.0.to_be_bytes());
        let (ip, port) = match self.address.map(|told| (told.ip(), told.port())) {
            None => ([0; 16], 0),
            Some((IpAddr::V4(ip), port)) => (ip.to_ipv6_mapped().octets(), port),
            Some((IpAddr::V6(ip), port)) => (ip.octets(), port),
        };
        out.extend_from_slice(&ip);
        out.extend_from_slice(&port.to_be_bytes());
    }

    /// Reads the fields; `None` if they are not there in full. What is behind them is for later versions.
    pub(in crate::session) fn read(fields: &[u8]) -> Option<Self> {
        let fields: &[u8; MET_BYTES] = fields.first_chunk()?;
        let (remote, rest) = fields.split_first_chunk::<KEY_BYTES>()?;
        let (&[flags, n0, n1], rest) = rest.split_first_chunk()?;
        let (ip, port) = rest.split_first_chunk::<16>()?;
        let port = u16::from_be_bytes(*port.first_chunk()?);
        let ip = Ipv6Addr::from(*ip).to_canonical();
        let address = (flags & IS_TOLD != 0).then(|| SocketAddr::new(ip, port));
        Some(Self {
            remote: PublicKey::from_octets(*remote),
            is_introduced: flags & IS_INTRODUCED != 0,
            is_relayed: flags & IS_RELAYED != 0,
            is_there: flags & IS_THERE != 0,
            number: RemoteNumber(u16::from_be_bytes([n0, n1])),
            address,
        })
    }
}

/// The direction of a relayed datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum RelayedWay {
    /// To the hub, which carries it on to the remote of this number.
    To(RemoteNumber),
    /// From the hub, to which the remote of this number sent it.
    From(RemoteNumber),
}

/// A datagram of the session between two ends, whole and sealed, inside that with the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) struct Relayed<'a> {
    /// Whose it is.
    pub(in crate::session) way: RelayedWay,
    /// The datagram.
    pub(in crate::session) octets: &'a [u8],
}

impl<'a> Relayed<'a> {
    /// Appends the fields.
    pub(in crate::session) fn write(&self, out: &mut Vec<u8>) {
        let (way, number) = match self.way {
            RelayedWay::To(number) => (0, number),
            RelayedWay::From(number) => (1, number),
        };
        out.push(way);
        out.extend_from_slice(&number.0.to_be_bytes());
        out.extend_from_slice(self.octets);
    }

    /// Reads the fields; `None` if they are not there in full, or in a direction that there is not.
    pub(in crate::session) fn read(fields: &'a [u8]) -> Option<Self> {
        let (&[way, n0, n1], octets) = fields.split_first_chunk()?;
        let number = RemoteNumber(u16::from_be_bytes([n0, n1]));
        let way = match way {
            0 => RelayedWay::To(number),
            1 => RelayedWay::From(number),
            _ => return None,
        };
        Some(Self { way, octets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REMOTE: PublicKey = PublicKey::from_octets([0xAB; KEY_BYTES]);

    fn met(address: Option<SocketAddr>) -> Met {
        Met {
            remote: REMOTE,
            is_introduced: true,
            is_relayed: false,
            is_there: true,
            number: RemoteNumber(0x0102),
            address,
        }
    }

    fn octets(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn the_frames_are_these_octets_and_read_back() {
        let meet = Meet { remote: REMOTE };
        let written = octets(|out| meet.write(out));
        assert_eq!(written, [0xAB; 32]);
        assert_eq!(Meet::read(&written), Some(meet));
        assert_eq!(Meet::read(&written[1..]), None);

        let told = met(Some(([192, 0, 2, 1], 4_914).into()));
        let written = octets(|out| told.write(out));
        let mut golden = vec![0xAB; 32];
        golden.extend_from_slice(b"\x0D\x01\x02\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\x02\x01\x13\x32");
        assert_eq!(written, golden);
        assert_eq!(Met::read(&written), Some(told));
        assert_eq!(Met::read(&written[1..]), None);

        let waiting = met(None);
        let written = octets(|out| waiting.write(out));
        assert_eq!(written[32], 1 | 8);
        assert!(written[35..].iter().all(|octet| *octet == 0));
        assert_eq!(Met::read(&written), Some(waiting));

        for (way, first) in [
            (RelayedWay::To(RemoteNumber(7)), b"\0\0\x07xyz"),
            (RelayedWay::From(RemoteNumber(7)), b"\x01\0\x07xyz"),
        ] {
            let relayed = Relayed {
                way,
                octets: b"xyz",
            };
            let written = octets(|out| relayed.write(out));
            assert_eq!(written, first);
            assert_eq!(Relayed::read(&written), Some(relayed));
        }
        assert_eq!(Relayed::read(b"\x02\0\x07xyz"), None, "no such direction");
        assert_eq!(Relayed::read(b"\0\0"), None);
    }

    proptest! {
        #[test]
        fn what_reads_is_written_and_reads_as_the_same(fields: Vec<u8>) {
            if let Some(meet) = Meet::read(&fields) {
                prop_assert_eq!(&octets(|out| meet.write(out))[..], &fields[..KEY_BYTES]);
            }
            if let Some(met) = Met::read(&fields) {
                prop_assert_eq!(Met::read(&octets(|out| met.write(out))), Some(met));
            }
            if let Some(relayed) = Relayed::read(&fields) {
                prop_assert_eq!(octets(|out| relayed.write(out)), fields);
            }
        }

        #[test]
        fn any_address_is_told_as_it_is(ip: [u8; 16], v4: bool, port: u16) {
            let ip = if v4 {
                IpAddr::from([ip[0], ip[1], ip[2], ip[3]])
            } else {
                Ipv6Addr::from(ip).to_canonical()
            };
            let told = met(Some(SocketAddr::new(ip, port)));
            prop_assert_eq!(Met::read(&octets(|out| told.write(out))), Some(told));
        }
    }
}
