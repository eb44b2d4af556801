//! The memory of a connection that has nothing to do.

use super::bottleneck::{Bottleneck, Medium};
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
