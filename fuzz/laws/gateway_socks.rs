//! Any octets as a SOCKS client's messages: each reader waits, refuses or takes a bounded number of octets, more octets never
//! change what was read, and a datagram's header comes back as it was.

use fulmar_net::gateway::socks::codec::{self, Read};

/// The longest message: a login with two fields of 255 octets (RFC 1929).
const MESSAGE_BYTES_MAX: usize = 513;

/// The first octet says what the rest is.
///
/// # Panics
/// A law is broken.
pub(crate) fn holds(octets: &[u8]) {
    let Some((kind, octets)) = octets.split_first() else {
        return;
    };
    match kind % 5 {
        0 => is_settled(octets, |octets| codec::greeting(octets, false)),
        1 => is_settled(octets, |octets| codec::greeting(octets, true)),
        2 => is_settled(octets, codec::login),
        3 => is_settled(octets, codec::request),
        _ => datagram(octets),
    }
}

/// Reads all beginnings of `octets`.
fn is_settled<T: PartialEq + core::fmt::Debug>(octets: &[u8], read: impl Fn(&[u8]) -> Read<T>) {
    let octets = &octets[..octets.len().min(2 * MESSAGE_BYTES_MAX)];
    let first = (0..=octets.len()).find(|end| read(&octets[..*end]) != Read::More);
    let Some(first) = first else {
        assert!(octets.len() < MESSAGE_BYTES_MAX, "it waits for ever");
        return;
    };
    let settled = read(&octets[..first]);
    if let Read::Done(_, taken) = &settled {
        assert_eq!(*taken, first, "it takes what it needed");
    }
    for end in first..=octets.len() {
        assert_eq!(read(&octets[..end]), settled, "{end} octets");
    }
}

fn datagram(octets: &[u8]) {
    let Some((to, message)) = codec::datagram(octets) else {
        return;
    };
    let wrapped = codec::wrap(&to, message);
    assert_eq!(codec::datagram(&wrapped), Some((to, message)));
    assert!(wrapped.len() <= octets.len() + 16);
}
