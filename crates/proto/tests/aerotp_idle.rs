//! The memory of a connection that has nothing to do.

use super::bottleneck::{Bottleneck, Medium, Sent};
use fulmar_proto::machine::TransmitKind;
use fulmar_proto::transport::aerotp::ConnectionConfig;
use fulmar_proto::units::{Bitrate, ByteCount, Duration};
use fulmar_proto::wire::Mode;

const RATE: Bitrate = Bitrate::from_bits_per_second(100_000_000);

const MEDIUM: Medium = Medium {
    rate: RATE,
    queue_packets: 100,
    delay: Duration::from_millis(5),
    jitter: Duration::ZERO,
    loss: 0.01,
    down: false,
};

#[test]
fn a_connection_gives_back_what_its_traffic_took_and_goes_on_afterwards() {
    for mode in [Mode::Reliable, Mode::NearReliable, Mode::QuasiReliable] {
        let mut link = Bottleneck::new(RATE, MEDIUM);
        let id = link.connect(ConnectionConfig {
            mode,
            ..ConnectionConfig::default()
        });
        for _ in 0..3 {
            let before = link.received_bytes();
            assert_eq!(link.write(id, 4_000_000), 4_000_000);
            link.run(Duration::from_millis(100));
            assert!(link.end(0).memory_bytes() > ByteCount(1_000_000), "{mode}");
            link.run(Duration::from_secs(6));
            let [sending, receiving] = [0, 1].map(|side| link.end(side).memory_bytes());
            assert_eq!((sending, receiving), (ByteCount(0), ByteCount(0)), "{mode}");
            let got = link.received_bytes() - before;
            let complete = got == 4_000_000;
            assert!(
                complete || mode == Mode::QuasiReliable && got > 3_900_000,
                "{mode}: {got}"
            );
        }
    }
}

#[test]
fn the_tail_of_what_was_written_comes_soon_though_the_connection_stays_open() {
    const ROUNDS: u32 = 12;
    const OCTETS: usize = 4_000_000;
    let medium = Medium {
        queue_packets: 4_000,
        delay: Duration::from_millis(300),
        loss: 0.05,
        ..MEDIUM
    };
    let mut link = Bottleneck::new(RATE, medium);
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

#[test]
fn a_writer_that_pauses_between_pictures_is_repeated_for_what_is_lost() {
    let medium = Medium {
        queue_packets: 4_000,
        delay: Duration::from_millis(30),
        loss: 0.05,
        ..MEDIUM
    };
    let mut link = Bottleneck::new(RATE, medium);
    let id = link.connect(ConnectionConfig::default());
    for _ in 0..300 {
        assert_eq!(link.write(id, 90_000), 90_000);
        link.run(Duration::from_millis(33));
    }
    let repeated = |sent: &&Sent| sent.kind == TransmitKind::Retransmission;
    let repeated = link.sent.iter().filter(repeated).count();
    let part = repeated as f64 / (link.sent.len() - repeated) as f64;
    // The first picture passes for the last; from then on a pause of that length says nothing.
    assert!(part < 0.06, "{part}");
}

/// Prints the figures of memory for `docs/models/aerotp.md`; run with `--ignored --nocapture`.
#[test]
#[ignore = "measures the process's memory"]
fn ten_thousand_idle_connections() {
    let pages = || {
        let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
        let resident = statm.split(' ').nth(1).map(str::parse::<u64>);
        resident.expect("two fields").expect("a number") * 4096
    };
    let before = pages();
    let mut link = Bottleneck::new(
        RATE,
        Medium {
            loss: 0.0,
            ..MEDIUM
        },
    );
    for round in 0..4000 {
        let id = link.connect(ConnectionConfig::default());
        assert_eq!(link.write(id, 100_000), 100_000);
        link.run(Duration::from_millis(20));
        link.sent.clear();
        if round % 1000 == 999 {
            let after = (pages() - before) / (round + 1) / 2;
            println!("{} connections: {after} octets for each end", round + 1);
        }
    }
    link.run(Duration::from_secs(20));
    println!("idle: {} octets for each end", (pages() - before) / 8000);
    println!(
        "payloads: {:?}",
        [0, 1].map(|side| link.end(side).memory_bytes())
    );
}
