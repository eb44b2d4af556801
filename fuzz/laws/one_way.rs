//! Any octets as a one-way datagram, or as the content of a genuine one: what is read is written again and reads as the same, and a
//! datagram that nobody with the key has sealed changes nothing but a counter.

use fulmar_net::one_way::{OneWayReceiver, OneWayRefusal, rewrite_content};
use fulmar_net::session::PresetKey;
use fulmar_proto::machine::{Datagram, Ecn, Machine, PathId};
use fulmar_proto::units::Instant;

/// The forms of a datagram on the wire, and one that there is not.
const FORMS: [u8; 4] = [0x71, 0x72, 0x73, 0x74];
/// The octets of a preset key in base64.
const KEY: &str = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";

/// The first octet says what the rest is.
///
/// # Panics
/// A law is broken.
pub(crate) fn holds(octets: &[u8]) {
    let Some((kind, octets)) = octets.split_first() else {
        return;
    };
    if let Some(form) = FORMS.get(usize::from(kind % 5)) {
        if let Some(written) = rewrite_content(*form, octets) {
            assert!(written.len() <= octets.len(), "nothing is made up");
            assert_eq!(rewrite_content(*form, &written), Some(written.clone()));
        }
        return;
    }
    let key: PresetKey = KEY.parse().expect("32 octets");
    let mut receiver = OneWayReceiver::new(key);
    let mut out = Vec::new();
    for (path, octets) in (0..).zip(octets.chunks(64)) {
        let datagram = Datagram {
            path: PathId(path),
            octets,
            ecn: Ecn::NotCapable,
        };
        receiver.handle_datagram(Instant::START, datagram);
        assert_eq!(receiver.poll_transmit(Instant::START, &mut out), None);
        assert!(receiver.poll_event().is_none(), "nobody sealed it");
    }
    let refused = [OneWayRefusal::Form, OneWayRefusal::Seal].map(|why| receiver.refused(why));
    assert_eq!(refused.iter().sum::<u64>(), receiver.came());
}
