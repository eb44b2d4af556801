//! Data crosses between two sessions whole and at once, whatever the security and the loss.
//!
//! Method: two sessions in `Strict`, each around a real AeroTP endpoint, in virtual time.

use super::session_pair::{Pair, Way, lossy, noise, octets, preset_pair, unprotected};
use fulmar_net::session::{Capability, SessionConfig, SessionEvent};
use fulmar_proto::units::Duration;

const DELAY: Duration = Duration::from_millis(5);

fn crosses(configs: [SessionConfig; 2], loss: f64, len: usize, limit: Duration) -> Pair {
    let mut pair = Pair::new(configs, lossy(DELAY, loss, 1));
    let sent = octets(len);
    pair.send(&sent);
    pair.run_to_end(limit);
    assert!(
        pair.app(Way::Back).received == sent,
        "{} of {len} octets at {}; {:?}",
        pair.app(Way::Back).received.len(),
        pair.now,
        pair.events(Way::Forward),
    );
    pair
}

#[test]
fn data_follows_the_handshake_at_once_in_every_kind_of_security() {
    for configs in [noise(), preset_pair(), unprotected()] {
        let pair = crosses(configs, 0.0, 1_000, Duration::from_secs(1));
        // Three one-way delays: initiation, response, data.
        assert_eq!(
            pair.app(Way::Back).finished,
            Some(fulmar_proto::units::Instant::START + DELAY * 3)
        );
        for way in [Way::Forward, Way::Back] {
            let ups = pair.count(way, |event| {
                matches!(event, SessionEvent::Up { resumed: false, .. })
            });
            // The other event tells the sizes of packets.
            assert_eq!(
                (ups, pair.events(way).len()),
                (1, 2),
                "{:?}",
                pair.events(way)
            );
        }
    }
}

#[test]
fn ends_agree_on_a_cipher_whichever_of_them_are_made_for_aes() {
    let aes = Capability {
        name: "cipher".to_owned(),
        value: "aes-256-gcm".to_owned(),
        must_agree: false,
    };
    for made_for_aes in [[true, true], [true, false], [false, true]] {
        for mut configs in [noise(), preset_pair()] {
            for (config, is_made_for_it) in configs.iter_mut().zip(made_for_aes) {
                config
                    .capabilities
                    .extend(is_made_for_it.then(|| aes.clone()));
                config.rekey.after_datagrams = 250;
            }
            let pair = crosses(configs, 0.05, 1_000_000, Duration::from_secs(2));
            assert!(pair.session(Way::Forward).counters().rekeys > 0);
        }
    }
}

#[test]
fn a_transfer_completes_at_every_loss_with_keys_replaced_every_few_hundred_datagrams() {
    for (loss, seconds, least) in [(0.0, 4, 8), (0.05, 4, 5), (0.2, 5, 5), (0.5, 10, 3)] {
        for mut configs in [noise(), preset_pair()] {
            for config in &mut configs {
                config.rekey.after_datagrams = 250;
            }
            let pair = crosses(configs, loss, 3_000_000, Duration::from_secs(seconds));
            let rekeys = pair.session(Way::Forward).counters().rekeys;
            assert!(rekeys >= least, "loss {loss}: {rekeys} rekeys");
        }
    }
}
