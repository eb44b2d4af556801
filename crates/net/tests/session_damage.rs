//! Damaged bits on a link whose datagrams carry parity.
//!
//! Method: two sessions with AeroTP inside, in virtual time, on a medium that changes bits.

use crate::session_pair::{Medium, Pair, Way, noise, octets, preset_pair};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, FecStrength};

const DELAY: Duration = Duration::from_millis(5);

#[test]
fn damaged_bits_are_corrected_behind_the_encryption_and_never_get_inside() {
    const BIT_ERROR_RATE: f64 = 2e-4;
    for mut configs in [noise(), preset_pair()] {
        for config in &mut configs {
            config.fec_words = FecStrength::from_words(16).unwrap();
        }
        let mut rng = Rng::from_seed(8).child("bits");
        let medium: Medium = Box::new(move |_, _, path, octets| {
            let mut octets = octets.to_vec();
            let bits = octets.len() * 8;
            // Bit errors at random, drawn by the gaps between them.
            let mut bit = 0_f64;
            loop {
                bit += -(1.0 - rng.unit_f64()).ln() / BIT_ERROR_RATE;
                if bit >= bits as f64 {
                    break;
                }
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "in range"
                )]
                let place = bit as usize;
                octets[place / 8] ^= 1 << (place % 8);
            }
            vec![(DELAY, path, octets)]
        });
        let mut pair = Pair::new(configs, medium);
        let sent = octets(300_000);
        pair.send(&sent);
        pair.run_to_end(Duration::from_secs(10));
        assert!(pair.app(Way::Back).received == sent, "at {}", pair.now);
        let counters = pair.session(Way::Back).counters();
        // 270 datagrams of 10,000 bits have two wrong bits each.
        assert!(counters.corrected_symbols > 200, "{counters:?}");
        let inner = pair.session(Way::Back).inner().endpoint_counters();
        assert_eq!(inner.rejected, 0, "damage got inside");
    }
}
