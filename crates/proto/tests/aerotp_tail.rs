//! The end of what was written, on a connection that stays open.

use super::bottleneck::{Bottleneck, Medium, Sent};
use fulmar_proto::machine::TransmitKind;
use fulmar_proto::transport::aerotp::{ConnectionConfig, ThinRepair};
use fulmar_proto::units::{Bitrate, Duration};

const RATE: Bitrate = Bitrate::from_bits_per_second(100_000_000);

/// 100 mbit with one TPDU in twenty lost.
fn lossy(delay: Duration) -> Medium {
    Medium {
        rate: RATE,
        queue_packets: 4_000,
        delay,
        jitter: Duration::ZERO,
        loss: 0.05,
        down: false,
    }
}

#[test]
fn the_tail_of_what_was_written_comes_soon_though_the_connection_stays_open() {
    const ROUNDS: u32 = 12;
    const OCTETS: usize = 4_000_000;
    let mut link = Bottleneck::new(RATE, lossy(Duration::from_millis(300)));
    let id = link.connect(ConnectionConfig::default());
    let mut taken = Duration::ZERO;
    for round in 1..=ROUNDS {
        assert_eq!(link.write(id, OCTETS), OCTETS);
        while link.received_bytes() < OCTETS as u64 * u64::from(round) {
            link.run(Duration::from_millis(10));
            taken += Duration::from_millis(10);
        }
    }
    // Of 2,700 TPDUs 140 are lost, 7 of those again, and every third time one a third time: each time costs 600 ms where it is
    // sent once. Where each is repeated while the link is idle, once is enough: 350 + 600 + 300 ms.
    let mean = taken / ROUNDS;
    assert!(mean < Duration::from_millis(1_350), "{mean:?}");
}

/// The part of what was sent that was sent again, of a picture of 60 TPDUs each 33 ms.
fn repeated_of_pictures(delay: Duration, thin: Option<ThinRepair>) -> f64 {
    let mut link = Bottleneck::new(RATE, lossy(delay));
    let id = link.connect(ConnectionConfig {
        thin,
        ..ConnectionConfig::default()
    });
    for _ in 0..300 {
        assert_eq!(link.write(id, 90_000), 90_000);
        link.run(Duration::from_millis(33));
    }
    let repeated = |sent: &&Sent| sent.kind == TransmitKind::Retransmission;
    let repeated = link.sent.iter().filter(repeated).count();
    repeated as f64 / (link.sent.len() - repeated) as f64
}

#[test]
fn pauses_within_half_a_round_trip_are_no_ends_and_longer_ones_cost_a_bounded_part() {
    let within = repeated_of_pictures(Duration::from_millis(30), None);
    assert!(within < 0.06, "as much as is lost: {within}");
    let ends = repeated_of_pictures(Duration::from_millis(10), None);
    assert!((0.1..0.053 + 0.12).contains(&ends), "{ends}");
    let none = Some(ThinRepair::at_most(0));
    let plain = repeated_of_pictures(Duration::from_millis(10), none);
    assert!(plain < 0.06, "nothing beyond repetition: {plain}");
}
