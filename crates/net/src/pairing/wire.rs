//! The frame of pairing datagrams: form, version, kind, call, body, check.

use fulmar_proto::wire::checksum::crc32;

/// The version that is written and read here.
pub const PAIRING_VERSION: u8 = 1;

/// The first octet of each datagram of pairing, which no datagram of a session or a one-way sender has.
const FORM: u8 = 0x7A;
const CALL_BYTES: usize = 16;
/// Octets before the body.
pub(super) const HEADER_BYTES: usize = 3 + CALL_BYTES;
const CHECK_BYTES: usize = 4;

/// Octets of a cookie, and of the room for it in a knock.
pub(super) const COOKIE_BYTES: usize = 16;

/// The number of a call, drawn by its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallId(pub(super) [u8; CALL_BYTES]);

/// The meaning of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Knock = 1,
    Cookie = 2,
    Open = 3,
    Opened = 4,
    Confirm = 5,
    Accept = 6,
    Done = 7,
    Bye = 8,
    Refuse = 9,
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Knock,
        Self::Cookie,
        Self::Open,
        Self::Opened,
        Self::Confirm,
        Self::Accept,
        Self::Done,
        Self::Bye,
        Self::Refuse,
    ];

    fn of_octet(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == octet)
    }
}

/// The reason of a `Refuse`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The caller's code is not this one.
    WrongCode = 1,
    /// The code was spent by another try, or another caller is being served.
    Spent = 2,
    /// The called end could not write its files.
    NotWritten = 3,
    /// The called end pairs in the version of this datagram alone.
    Version = 4,
}

impl Refusal {
    pub(super) fn of_octet(octet: u8) -> Option<Self> {
        [
            Self::WrongCode,
            Self::Spent,
            Self::NotWritten,
            Self::Version,
        ]
        .into_iter()
        .find(|reason| *reason as u8 == octet)
    }
}

/// A datagram as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read<'a> {
    /// A whole one of our version.
    Ours {
        kind: Kind,
        call: CallId,
        body: &'a [u8],
    },
    /// A whole one of another version.
    Other { version: u8, call: CallId },
}

/// The octets before the body.
pub(super) fn header(kind: Kind, call: CallId) -> [u8; HEADER_BYTES] {
    let mut octets = [0; HEADER_BYTES];
    octets[..3].copy_from_slice(&[FORM, PAIRING_VERSION, kind as u8]);
    octets[3..].copy_from_slice(&call.0);
    octets
}

/// A datagram with its check.
pub(super) fn write(kind: Kind, call: CallId, body: &[u8]) -> Vec<u8> {
    let mut octets = [&header(kind, call), body].concat();
    let check = crc32(&octets);
    octets.extend_from_slice(&check.to_be_bytes());
    octets
}

/// Reads a datagram; `None` if it is damaged or something else.
pub(super) fn read(octets: &[u8]) -> Option<Read<'_>> {
    let (whole, check) = octets.split_last_chunk::<CHECK_BYTES>()?;
    let (&[form, version, kind], rest) = whole.split_first_chunk::<3>()?;
    let (call, body) = rest.split_first_chunk::<CALL_BYTES>()?;
    if form != FORM || crc32(whole).to_be_bytes() != *check {
        return None;
    }
    let call = CallId(*call);
    if version != PAIRING_VERSION {
        return Some(Read::Other { version, call });
    }
    let kind = Kind::of_octet(kind)?;
    Some(Read::Ours { kind, call, body })
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_any_flipped_bit_is_noticed() {
        let call = CallId([7; CALL_BYTES]);
        for kind in Kind::ALL {
            let octets = write(kind, call, b"body");
            let body = b"body".as_slice();
            assert_eq!(read(&octets), Some(Read::Ours { kind, call, body }));
            for bit in 0..octets.len() * 8 {
                let mut damaged = octets.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(read(&damaged), None, "bit {bit}");
            }
            for len in 0..octets.len() {
                assert_eq!(read(&octets[..len]), None, "{len} octets");
            }
        }
    }

    #[test]
    fn another_version_is_told_whatever_it_says_besides() {
        let call = CallId([9; CALL_BYTES]);
        let mut octets = write(Kind::Refuse, call, &[1, 2, 3]);
        octets.truncate(octets.len() - CHECK_BYTES);
        octets[1] = 2;
        octets[2] = 200;
        let check = crc32(&octets);
        octets.extend_from_slice(&check.to_be_bytes());
        assert_eq!(read(&octets), Some(Read::Other { version: 2, call }));
    }
}
