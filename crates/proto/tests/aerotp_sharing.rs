//! Flows of one path: precedence, shares, idle time, and TPDUs that become smaller on the way.

use super::bottleneck;
use super::bottleneck::{Bottleneck, Medium};
use fulmar_proto::machine::{PathId, PathSizes, Priority, TransmitKind};
use fulmar_proto::transport::aerotp::{ConnectionConfig, Share};
use fulmar_proto::units::{Bitrate, ByteCount, Duration};

const RATE: Bitrate = Bitrate::from_bits_per_second(5_000_000);
/// The time of one packet of 1500 octets at [`RATE`].
const PACKET_TIME: Duration = Duration::from_micros(2_400);

const MEDIUM: Medium = Medium {
    rate: RATE,
    queue_packets: 100,
    delay: Duration::from_millis(20),
    jitter: Duration::ZERO,
    loss: 0.1,
    down: false,
};

#[test]
fn a_message_of_higher_priority_is_delayed_by_two_packet_times_at_most_under_full_load() {
    let mut link = Bottleneck::new(RATE, MEDIUM);
    let bulk = link.connect(ConnectionConfig::default());
    assert_eq!(link.write(bulk, 4_000_000), 4_000_000);
    let urgent = link.connect(ConnectionConfig {
        priority: Priority(7),
        ..ConnectionConfig::default()
    });
    link.run(Duration::from_secs(1));
    for round in 0..100 {
        link.run(Duration::from_micros(31_300));
        let written = link.now;
        link.write(urgent, 100);
        link.run(2 * PACKET_TIME);
        let is_it = |sent: &&bottleneck::Sent| {
            sent.at >= written && sent.priority == Priority(7) && sent.kind == TransmitKind::Source
        };
        let sent = link.sent.iter().find(is_it);
        let sent = sent.unwrap_or_else(|| panic!("round {round}: still waiting"));
        let delay = sent.at.saturating_since(written) + sent.queued;
        assert!(delay <= 2 * PACKET_TIME, "round {round}: {delay:?}");
    }
}

#[test]
fn classes_of_one_priority_share_the_rate_by_weight_and_flows_of_a_class_take_turns() {
    let mut link = Bottleneck::new(RATE, MEDIUM);
    let in_class = |class, weight| ConnectionConfig {
        share: Share { class, weight },
        ..ConnectionConfig::default()
    };
    let flows = [(1, 1), (2, 3), (2, 3), (2, 3)];
    for (class, weight) in flows {
        let id = link.connect(in_class(class, weight));
        assert_eq!(link.write(id, 6_000_000), 6_000_000);
    }
    link.run(Duration::from_secs(20));
    let got: Vec<u64> = link.received.values().copied().collect();
    let total: u64 = got.iter().sum();
    // Each flow has a quarter. Losses are drawn per flow: 2000 TPDUs at 10 % have a standard
    // deviation of 0.7 %, and 3 % are four of them.
    assert_eq!(got.len(), 4, "{got:?}");
    for octets in &got {
        let quarter = total / 4;
        assert!(octets.abs_diff(quarter) < quarter * 3 / 100, "{got:?}");
    }
}

/// Counts the data TPDUs that a flow of 100 sends over 300 ms that lose 30 %, alone or beside
/// another.
fn tpdus_of_a_short_flow(beside: bool) -> usize {
    let medium = Medium {
        delay: Duration::from_millis(300),
        loss: 0.3,
        ..MEDIUM
    };
    let mut link = Bottleneck::new(RATE, medium);
    if beside {
        let other = link.connect(ConnectionConfig {
            share: Share {
                class: 9,
                weight: 1,
            },
            ..ConnectionConfig::default()
        });
        assert_eq!(link.write(other, 6_000_000), 6_000_000);
        link.run(Duration::from_millis(100));
    }
    let port_of_other = link.sent.first().map(|sent| sent.port);
    let id = link.connect(ConnectionConfig::default());
    assert_eq!(link.write(id, 144_000), 144_000);
    link.close(id);
    link.run(Duration::from_secs(6));
    let own = link.sent.iter();
    let own = own.filter(|sent| !beside || Some(sent.port) != port_of_other);
    own.filter(|sent| sent.kind != TransmitKind::Control)
        .count()
}

#[test]
fn repeating_the_tail_takes_nothing_from_another_flow() {
    let (alone, beside) = (tpdus_of_a_short_flow(false), tpdus_of_a_short_flow(true));
    // 99 TPDUs at 30 % loss take 141 transmissions with a standard deviation of 8.
    assert!(beside < 170, "{beside} beside another flow");
    assert!(alone > 200, "{alone} alone, though the link is idle");
}

#[test]
fn tpdus_become_smaller_at_once_when_the_path_does_and_nothing_is_lost() {
    let mut link = Bottleneck::new(RATE, MEDIUM);
    let id = link.connect(ConnectionConfig::default());
    link.write(id, 1_000_000);
    link.run(Duration::from_millis(500));
    let changed = link.sender(|endpoint, now| endpoint.set_tpdu_bytes_max(now, id, 1000));
    assert_eq!(changed, Ok(true));
    let before = link.sent.len();
    link.close(id);
    link.run(Duration::from_secs(10));
    assert_eq!(link.received_bytes(), 1_000_000);
    let after = &link.sent[before..];
    let new = after
        .iter()
        .filter(|sent| sent.kind == TransmitKind::Source);
    assert_eq!(new.map(|sent| sent.octets).max(), Some(1000));
    let again = after.iter().map(|sent| sent.octets).max();
    assert_eq!(again, Some(1480), "what was lost before keeps its octets");
}

#[test]
fn a_path_tells_its_connections_of_now_and_later_how_large_tpdus_may_be() {
    let mut link = Bottleneck::new(RATE, MEDIUM);
    let before = link.connect(ConnectionConfig::default());
    let sizes = PathSizes {
        tpdu_bytes_max: 700,
        lower_overhead: ByteCount(300),
    };
    link.sender(|endpoint, now| endpoint.set_path_sizes(now, PathId(0), sizes))
        .expect("there is room for data");
    let after = link.connect(ConnectionConfig::default());
    for id in [before, after] {
        link.write(id, 1_000_000);
    }
    link.run(Duration::from_secs(2));
    let source = link
        .sent
        .iter()
        .filter(|sent| sent.kind == TransmitKind::Source);
    assert_eq!(source.map(|sent| sent.octets).max(), Some(700));
    // The budget counts the declared overhead around each datagram: 5 mbit for 2 s.
    let wire: usize = link.sent.iter().map(|sent| sent.octets + 300).sum();
    assert!((1_240_000..=1_260_000).contains(&wire), "{wire}");
    let hopeless = PathSizes {
        tpdu_bytes_max: 8,
        ..sizes
    };
    let refused = link.sender(|endpoint, now| endpoint.set_path_sizes(now, PathId(0), hopeless));
    assert!(refused.is_err(), "no room for data");
}
