//! Damaged bits on a link whose datagrams carry parity.
//!
//! Method: two sessions with AeroTP inside, in virtual time, on a medium that changes bits.

use super::session_pair::{Medium, Pair, Way, noise, octets, preset_pair};
use crate::bit_errors::flip;
use fulmar_net::session::{DropReason, SessionConfig};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, FecStrength};

const DELAY: Duration = Duration::from_millis(5);

/// A medium that changes each bit with this probability.
fn noisy(bit_error_rate: f64) -> Medium {
    let mut rng = Rng::from_seed(8).child("bits");
    Box::new(move |_, _, path, octets| {
        let mut octets = octets.to_vec();
        flip(&mut rng, bit_error_rate, &mut octets);
        vec![(DELAY, path, octets)]
    })
}

/// Datagrams that arrived forward and named no keys, as far as their headers could be read.
fn unread(pair: &Pair) -> u64 {
    let counters = pair.session(Way::Back).counters();
    counters.dropped(DropReason::HeaderCheck) + counters.dropped(DropReason::NoSession)
}

/// Sends `len` octets over a link that damages them, with so many words of parity. Also returns the number of those
/// [`unread`] before.
fn crosses(
    mut configs: [SessionConfig; 2],
    words: u16,
    bit_error_rate: f64,
    len: usize,
) -> (Pair, u64) {
    for config in &mut configs {
        config.fec_words = FecStrength::from_words(words).expect("a strength");
    }
    let mut pair = Pair::new(configs, noisy(bit_error_rate));
    // Until each end has noted where the other is, it corrects no more than for strangers.
    pair.run(Duration::from_millis(300));
    let unread_before = unread(&pair);
    let sent = octets(len);
    pair.send(&sent);
    pair.run_to_end(Duration::from_secs(10));
    assert!(pair.app(Way::Back).received == sent, "at {}", pair.now);
    for way in [Way::Forward, Way::Back] {
        let inner = pair.session(way).inner().endpoint_counters();
        assert_eq!(inner.rejected, 0, "damage got inside");
    }
    (pair, unread_before)
}

#[test]
fn damaged_bits_are_corrected_behind_the_encryption_and_never_get_inside() {
    for configs in [noise(), preset_pair()] {
        let (pair, _) = crosses(configs, 16, 2e-4, 300_000);
        let counters = pair.session(Way::Back).counters();
        // 270 datagrams of 10,000 bits have two wrong bits each.
        assert!(counters.corrected_symbols > 200, "{counters:?}");
    }
}

#[test]
fn at_one_wrong_bit_in_a_thousand_nearly_every_datagram_is_put_right_its_header_too() {
    let (mut pair, unread_before) = crosses(noise(), 64, 1e-3, 2_000_000);
    // The last of it arrives.
    pair.run(Duration::from_secs(1));
    let (from, to) = (
        pair.session(Way::Forward).counters(),
        pair.session(Way::Back).counters(),
    );
    // Twelve wrong bits each, and one header in eight has one of them.
    assert!(to.corrected_symbols > 10 * to.received, "{to:?}");
    let lost = from.sent.saturating_sub(to.received);
    assert!(lost * 200 < from.sent, "{lost} of {}: {to:?}", from.sent);
    let headers = unread(&pair) - unread_before;
    assert!(headers <= 2, "{headers} headers of {} were lost", from.sent);
}
