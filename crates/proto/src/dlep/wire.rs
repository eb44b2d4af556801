//! Signals, messages and data items of DLEP (RFC 8175, sections 10 to 13).
//!
//! A datagram holds one signal: "DLEP", type, length, items. A TCP connection is a row of messages: type, length, items. An
//! item is type, length, value. All numbers are in network order.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The UDP port of discovery and the usual TCP port (RFC 8175, section 15.14).
pub const DLEP_PORT: u16 = 854;
/// The group to which routers send discoveries (section 15.15).
pub const DLEP_GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 117);
/// The hop limit of discoveries and of the session (section 7.1).
pub const DLEP_HOPS: u8 = 255;

const SIGNAL_WORD: &[u8; 4] = b"DLEP";
const HEADER_BYTES: usize = 4;

/// Types of signals.
pub mod signal {
    /// A router looks for modems.
    pub const PEER_DISCOVERY: u16 = 1;
    /// A modem is there.
    pub const PEER_OFFER: u16 = 2;
}

/// Types of messages.
pub mod message {
    /// The router begins a session.
    pub const SESSION_INITIALIZATION: u16 = 1;
    /// The modem's answer.
    pub const SESSION_INITIALIZATION_RESPONSE: u16 = 2;
    /// Values for the whole session have changed.
    pub const SESSION_UPDATE: u16 = 3;
    /// The answer to that.
    pub const SESSION_UPDATE_RESPONSE: u16 = 4;
    /// An end of the session.
    pub const SESSION_TERMINATION: u16 = 5;
    /// The answer to that.
    pub const SESSION_TERMINATION_RESPONSE: u16 = 6;
    /// A destination can be reached.
    pub const DESTINATION_UP: u16 = 7;
    /// The answer to that.
    pub const DESTINATION_UP_RESPONSE: u16 = 8;
    /// The answer to an announced destination, which this router does not announce.
    pub const DESTINATION_ANNOUNCE_RESPONSE: u16 = 10;
    /// A destination cannot be reached any more.
    pub const DESTINATION_DOWN: u16 = 11;
    /// The answer to that.
    pub const DESTINATION_DOWN_RESPONSE: u16 = 12;
    /// Values of a destination have changed.
    pub const DESTINATION_UPDATE: u16 = 13;
    /// The answer to a request for other characteristics, which this router does not make.
    pub const LINK_CHARACTERISTICS_RESPONSE: u16 = 15;
    /// A sign of life.
    pub const HEARTBEAT: u16 = 16;
}

/// Types of data items.
pub mod item {
    /// A status code, and a text.
    pub const STATUS: u16 = 1;
    /// Where the modem listens, by IPv4.
    pub const IPV4_CONNECTION_POINT: u16 = 2;
    /// Where the modem listens, by IPv6.
    pub const IPV6_CONNECTION_POINT: u16 = 3;
    /// The sort of device.
    pub const PEER_TYPE: u16 = 4;
    /// The time between heartbeats, in milliseconds.
    pub const HEARTBEAT_INTERVAL: u16 = 5;
    /// The extensions that an end has.
    pub const EXTENSIONS_SUPPORTED: u16 = 6;
    /// A destination's address on the link.
    pub const MAC_ADDRESS: u16 = 7;
    /// The most that the link receives, in bits a second.
    pub const MDRR: u16 = 12;
    /// The most that the link transmits.
    pub const MDRT: u16 = 13;
    /// The rate at which the link receives now.
    pub const CDRR: u16 = 14;
    /// The rate at which it transmits now.
    pub const CDRT: u16 = 15;
    /// The delay over the link, in microseconds.
    pub const LATENCY: u16 = 16;
    /// The resources left, in per cent.
    pub const RESOURCES: u16 = 17;
    /// The quality of the link as it receives, 0 to 100.
    pub const RLQR: u16 = 18;
    /// The quality of the link as it transmits.
    pub const RLQT: u16 = 19;
    /// The longest packet.
    pub const MTU: u16 = 20;
}

/// Status codes (section 13.1).
pub mod status {
    /// Done.
    pub const SUCCESS: u8 = 0;
    /// No more than the router keeps.
    pub const REQUEST_DENIED: u8 = 2;
    /// The message has a type that nobody knows; from here on the session ends.
    pub const UNKNOWN_MESSAGE: u8 = 128;
    /// The message has no place now.
    pub const UNEXPECTED_MESSAGE: u8 = 129;
    /// An item is missing or makes no sense.
    pub const INVALID_DATA: u8 = 130;
    /// The destination is none.
    pub const INVALID_DESTINATION: u8 = 131;
    /// Nothing came for two heartbeats.
    pub const TIMED_OUT: u8 = 132;
    /// The sender ends.
    pub const SHUTTING_DOWN: u8 = 255;
}

/// The address of a destination on its link: 6 octets (EUI-48) or 8 (EUI-64).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress {
    octets: [u8; 8],
    len: u8,
}

impl MacAddress {
    /// The address of 6 or 8 octets.
    pub fn of(octets: &[u8]) -> Option<Self> {
        let len = u8::try_from(octets.len())
            .ok()
            .filter(|len| matches!(len, 6 | 8))?;
        let mut own = [0; 8];
        own.iter_mut()
            .zip(octets)
            .for_each(|(own, octet)| *own = *octet);
        Some(Self { octets: own, len })
    }

    /// Its octets.
    pub fn octets(&self) -> &[u8] {
        self.octets.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl core::fmt::Display for MacAddress {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (place, octet) in self.octets().iter().enumerate() {
            let colon = if place == 0 { "" } else { ":" };
            write!(f, "{colon}{octet:02x}")?;
        }
        Ok(())
    }
}

impl core::str::FromStr for MacAddress {
    type Err = MacAddressError;

    fn from_str(text: &str) -> Result<Self, MacAddressError> {
        let octets = text.split(':').map(|pair| {
            let is_pair = pair.len() == 2 && pair.bytes().all(|c| c.is_ascii_hexdigit());
            u8::from_str_radix(pair, 16).ok().filter(|_| is_pair)
        });
        let octets: Option<Vec<u8>> = octets.take(9).collect();
        octets
            .and_then(|octets| Self::of(&octets))
            .ok_or_else(|| MacAddressError(text.to_owned()))
    }
}

/// A text that is no address of a destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the address of a destination; write 02:00:00:00:00:01")]
pub struct MacAddressError(String);

/// A data item, whose length and value make sense together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataItem {
    /// The result of what was asked for.
    Status(u8),
    /// Where the modem listens; without a port at the usual one. `is_tls` asks for TLS.
    ConnectionPoint {
        /// The address.
        address: IpAddr,
        /// The TCP port.
        port: Option<u16>,
        /// Whether TLS is asked for.
        is_tls: bool,
    },
    /// The time between heartbeats, in milliseconds; at least 1.
    HeartbeatInterval(u32),
    /// A destination's address.
    Mac(MacAddress),
    /// A number by its item type: rates, latency, resources, qualities, MTU.
    Metric(u16, u64),
    /// Something that the router has no use for, or does not know.
    Other(u16),
}

/// The reason why octets are no signal or message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DlepFault {
    /// Lengths do not add up.
    Length,
    /// It does not begin with "DLEP".
    Word,
    /// The value of an item of this type makes no sense.
    Item(u16),
}

fn two(octets: &[u8]) -> Option<u16> {
    octets
        .first_chunk::<2>()
        .map(|two| u16::from_be_bytes(*two))
}

impl DataItem {
    fn read(kind: u16, value: &[u8]) -> Result<Self, DlepFault> {
        let wrong = DlepFault::Item(kind);
        let number = |octets: usize, most: u64| {
            let fits = value.len() == octets;
            let number = value
                .iter()
                .fold(0_u64, |sum, octet| sum << 8 | u64::from(*octet));
            let known = fits && number <= most;
            known.then_some(Self::Metric(kind, number)).ok_or(wrong)
        };
        match kind {
            item::STATUS => value.first().map(|code| Self::Status(*code)).ok_or(wrong),
            item::IPV4_CONNECTION_POINT => point(value, |rest| {
                let (address, port) = rest.split_first_chunk::<4>()?;
                Some((IpAddr::V4(Ipv4Addr::from(*address)), port))
            })
            .ok_or(wrong),
            item::IPV6_CONNECTION_POINT => point(value, |rest| {
                let (address, port) = rest.split_first_chunk::<16>()?;
                Some((IpAddr::V6(Ipv6Addr::from(*address)), port))
            })
            .ok_or(wrong),
            item::HEARTBEAT_INTERVAL => {
                let millis = value
                    .try_into()
                    .map(u32::from_be_bytes)
                    .map_err(|_| wrong)?;
                (millis > 0)
                    .then_some(Self::HeartbeatInterval(millis))
                    .ok_or(wrong)
            }
            item::MAC_ADDRESS => MacAddress::of(value).map(Self::Mac).ok_or(wrong),
            item::MDRR | item::MDRT | item::CDRR | item::CDRT | item::LATENCY => {
                number(8, u64::MAX)
            }
            item::RESOURCES | item::RLQR | item::RLQT => number(1, 100),
            item::MTU => number(2, u64::MAX),
            other => Ok(Self::Other(other)),
        }
    }
}

fn point<'a>(
    value: &'a [u8],
    address: impl FnOnce(&'a [u8]) -> Option<(IpAddr, &'a [u8])>,
) -> Option<DataItem> {
    let (flags, rest) = value.split_first()?;
    let (address, port) = address(rest)?;
    let port = match port {
        [] => None,
        [_, _] => Some(two(port)?),
        _ => return None,
    };
    let is_tls = flags & 1 != 0;
    Some(DataItem::ConnectionPoint {
        address,
        port,
        is_tls,
    })
}

/// Reads the items that `octets` are made of.
///
/// # Errors
/// [`DlepFault`]: lengths do not add up, or a value makes no sense.
pub fn read_items(octets: &[u8]) -> Result<Vec<DataItem>, DlepFault> {
    let mut items = Vec::new();
    let mut rest = octets;
    while !rest.is_empty() {
        let (kind, len, after) = header(rest).ok_or(DlepFault::Length)?;
        let value = after.get(..len).ok_or(DlepFault::Length)?;
        items.push(DataItem::read(kind, value)?);
        rest = after.get(len..).unwrap_or_default();
    }
    Ok(items)
}

/// The type and length of a header, and what follows it.
fn header(octets: &[u8]) -> Option<(u16, usize, &[u8])> {
    let (head, rest) = octets.split_first_chunk::<HEADER_BYTES>()?;
    let [a, b, c, d] = *head;
    let len = usize::from(u16::from_be_bytes([c, d]));
    Some((u16::from_be_bytes([a, b]), len, rest))
}

/// Reads a datagram: the signal's type, and its items.
///
/// # Errors
/// [`DlepFault`].
pub fn read_signal(octets: &[u8]) -> Result<(u16, Vec<DataItem>), DlepFault> {
    let rest = octets.strip_prefix(SIGNAL_WORD).ok_or(DlepFault::Word)?;
    let (kind, len, items) = header(rest).ok_or(DlepFault::Length)?;
    if items.len() != len {
        return Err(DlepFault::Length);
    }
    Ok((kind, read_items(items)?))
}

/// The first whole message of a stream: its type, the octets of its items, and the octets that it takes. `None` until it is
/// whole.
pub fn first_message(octets: &[u8]) -> Option<(u16, &[u8], usize)> {
    let (kind, len, rest) = header(octets)?;
    Some((kind, rest.get(..len)?, HEADER_BYTES + len))
}

/// A signal or message in the making. What would not fit a length is left out: nothing that is written here does.
#[derive(Clone, Debug)]
pub struct DlepWriter {
    octets: Vec<u8>,
    head: usize,
}

impl DlepWriter {
    /// A message.
    pub fn message(kind: u16) -> Self {
        let mut octets = kind.to_be_bytes().to_vec();
        octets.extend([0, 0]);
        Self { octets, head: 0 }
    }

    /// A signal.
    pub fn signal(kind: u16) -> Self {
        let mut octets = SIGNAL_WORD.to_vec();
        octets.extend(kind.to_be_bytes());
        octets.extend([0, 0]);
        Self { octets, head: 4 }
    }

    /// The same with an item behind it.
    pub fn item(mut self, kind: u16, value: &[u8]) -> Self {
        if let Ok(len) = u16::try_from(value.len()) {
            self.octets.extend(kind.to_be_bytes());
            self.octets.extend(len.to_be_bytes());
            self.octets.extend(value);
        }
        self
    }

    /// The same with a status behind it.
    pub fn status(self, code: u8) -> Self {
        self.item(item::STATUS, &[code])
    }

    /// Its octets.
    pub fn finish(mut self) -> Vec<u8> {
        let len = self.octets.len() - self.head - HEADER_BYTES;
        let len = u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes();
        let place = self.octets.iter_mut().skip(self.head + 2);
        place.zip(len).for_each(|(octet, own)| *octet = own);
        self.octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read_and_has_the_octets_of_the_specification() {
        let offer = DlepWriter::signal(signal::PEER_OFFER)
            .item(item::PEER_TYPE, b"\0modem")
            .item(item::IPV4_CONNECTION_POINT, &[1, 192, 0, 2, 9, 0x03, 0x56])
            .finish();
        assert_eq!(offer[..12], *b"DLEP\0\x02\0\x15\0\x04\0\x06");
        let (kind, items) = read_signal(&offer).expect("sound");
        let point = DataItem::ConnectionPoint {
            address: IpAddr::from([192, 0, 2, 9]),
            port: Some(854),
            is_tls: true,
        };
        assert_eq!((kind, items), (2, vec![DataItem::Other(4), point]));
        let up = DlepWriter::message(message::DESTINATION_UP)
            .item(item::MAC_ADDRESS, &[2, 0, 0, 0, 0, 1])
            .item(item::CDRT, &2_000_000_u64.to_be_bytes())
            .item(item::RLQT, &[90])
            .finish();
        assert_eq!(up.len(), 4 + 10 + 12 + 5);
        let (kind, items, len) = first_message(&up).expect("whole");
        assert_eq!((kind, len), (7, up.len()));
        let mac = MacAddress::of(&[2, 0, 0, 0, 0, 1]).expect("six");
        assert_eq!(
            read_items(items).expect("sound"),
            [
                DataItem::Mac(mac),
                DataItem::Metric(item::CDRT, 2_000_000),
                DataItem::Metric(item::RLQT, 90)
            ]
        );
        assert_eq!("02:00:00:00:00:01".parse(), Ok(mac));
        assert_eq!(mac.to_string(), "02:00:00:00:00:01");
        assert!("02:00:00:00:00".parse::<MacAddress>().is_err());
    }

    #[test]
    fn every_truncation_and_every_item_of_a_wrong_length_is_refused() {
        let up = DlepWriter::message(message::DESTINATION_UP)
            .item(item::MAC_ADDRESS, &[2, 0, 0, 0, 0, 1])
            .item(item::LATENCY, &[0; 8])
            .finish();
        for len in 0..up.len() {
            assert!(first_message(&up[..len]).is_none(), "{len}");
        }
        for (kind, value) in [
            (item::STATUS, &[][..]),
            (item::MAC_ADDRESS, &[1; 7]),
            (item::CDRT, &[1; 7]),
            (item::RLQR, &[101]),
            (item::RESOURCES, &[]),
            (item::MTU, &[1]),
            (item::HEARTBEAT_INTERVAL, &[0; 4]),
            (item::IPV4_CONNECTION_POINT, &[0, 1, 2, 3, 4, 5]),
            (item::IPV6_CONNECTION_POINT, &[0; 18]),
        ] {
            let octets = DlepWriter::message(0).item(kind, value).finish();
            assert_eq!(read_items(&octets[4..]), Err(DlepFault::Item(kind)));
        }
        assert_eq!(read_items(&[0, 1, 0, 9, 0]), Err(DlepFault::Length));
        assert_eq!(read_signal(b"DELP\0\x02\0\0"), Err(DlepFault::Word));
        assert_eq!(read_signal(b"DLEP\0\x02\0\0\0"), Err(DlepFault::Length));
    }

    proptest! {
        #[test]
        fn whatever_comes_nothing_panics(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
            drop(read_items(&octets));
            drop(read_signal(&octets));
            if let Some((_, items, len)) = first_message(&octets) {
                prop_assert!(len <= octets.len() && items.len() + 4 == len);
            }
        }

        #[test]
        fn items_that_are_written_are_read_in_number(kinds in proptest::collection::vec((21_u16.., proptest::collection::vec(any::<u8>(), 0..40)), 0..20)) {
            let mut writer = DlepWriter::message(7);
            for (kind, value) in &kinds {
                writer = writer.item(*kind, value);
            }
            let octets = writer.finish();
            let (_, items, len) = first_message(&octets).expect("whole");
            prop_assert_eq!(len, octets.len());
            prop_assert_eq!(read_items(items).expect("sound").len(), kinds.len());
        }
    }
}
