//! Serialization and the queue, as a driver sees them.

use crate::{PACKET, channel, delivery, run};
use fulmar_channel::{ChannelConfig, ChannelDropReason, ChannelVerdict, QueueLimit};
use fulmar_proto::units::{ByteCount, Duration, Instant};

const FULL: ChannelVerdict = ChannelVerdict::Drop(ChannelDropReason::Queue);

fn config(rate: &str, queue: &str) -> ChannelConfig {
    ChannelConfig {
        rate: Some(rate.parse().unwrap()),
        queue: queue.parse().unwrap(),
        ..ChannelConfig::default()
    }
}

#[test]
fn a_backlog_leaves_at_exactly_the_rate() {
    // 1500 octets at 5 mbit/s are 2.4 ms; at 7 mbit/s a run of 7 is 12 ms and one alone is not
    // whole in nanoseconds.
    for (rate, packets, nanos) in [
        ("5mbit", 1000, 2_400_000_000),
        ("7mbit", 7000, 12_000_000_000),
    ] {
        let mut channel = channel(config(rate, "unlimited"), 61);
        let verdicts = run(&mut channel, packets, Duration::ZERO);
        let last = delivery(verdicts.last().unwrap()).unwrap().at;
        assert_eq!(last, Instant::from_nanos(nanos), "{rate}");
    }
}

#[test]
fn the_queue_drops_one_past_its_limit_and_not_before() {
    let mut channel = channel(config("5mbit", "100 packets"), 62);
    let verdicts = run(&mut channel, 103, Duration::ZERO);
    let dropped: Vec<usize> = (0..103).filter(|&i| verdicts[i] == FULL).collect();
    // One in transmission and 100 waiting.
    assert_eq!(dropped, [101, 102]);
    assert_eq!(channel.queue(Instant::START).packets, 100);
}

#[test]
fn queue_drops_occupy_nothing_and_draw_nothing() {
    let mut lossy = config("5mbit", "3 packets");
    lossy.loss = "50%".parse().unwrap();
    lossy.bits = "1e-4".parse().unwrap();
    let mut roomy = lossy.clone();
    roomy.queue = QueueLimit::UNLIMITED;
    let (mut tight, mut roomy) = (channel(lossy, 63), channel(roomy, 63));
    // Ten at once every 24 ms: four get in and six do not; the roomy one is given only the four.
    let mut now = Instant::START;
    for _ in 0..500 {
        for index in 0..10 {
            let verdict = tight.admit(now, PACKET);
            if index < 4 {
                assert_eq!(verdict, roomy.admit(now, PACKET));
            } else {
                assert_eq!(verdict, FULL);
            }
        }
        now += Duration::from_millis(24);
    }
    assert_eq!(tight.counters().transmitted_packets, 2000);
}

#[test]
fn lost_packets_occupy_the_link() {
    let mut lossy = config("5mbit", "100 packets");
    lossy.loss = "100%".parse().unwrap();
    let mut channel = channel(lossy, 64);
    let verdicts = run(&mut channel, 102, Duration::ZERO);
    assert_eq!(verdicts.iter().filter(|&v| *v == FULL).count(), 1);
    let free_at = channel.queue(Instant::START).free_at;
    assert_eq!(free_at, Instant::START + Duration::from_micros(101 * 2400));
}

#[test]
fn marks_begin_above_the_threshold() {
    let mut marking = config("5mbit", "10 packets");
    marking.ecn_threshold = Some("7500B".parse().unwrap());
    let mut channel = channel(marking, 65);
    let verdicts = run(&mut channel, 12, Duration::ZERO);
    let marked: Vec<usize> = (0..12)
        .filter(|&i| delivery(&verdicts[i]).is_some_and(|delivery| delivery.marked))
        .collect();
    // One is sent, five of 1500 octets wait within 7500, the other five are above.
    assert_eq!(marked, [6, 7, 8, 9, 10]);
    assert_eq!(verdicts[11], FULL);
    assert_eq!(channel.counters().marked_packets, 5);
}

#[test]
fn time_that_goes_back_is_read_as_standing_still() {
    let mut channel = channel(config("5mbit", "100 packets"), 66);
    let later = Instant::from_nanos(5_000_000);
    channel.admit(later, ByteCount(40));
    let verdict = channel.admit(Instant::START, ByteCount(40));
    let at = delivery(&verdict).unwrap().at;
    assert_eq!(at, later + Duration::from_micros(2 * 64));
}

#[test]
fn packets_and_octets_are_conserved() {
    let mut everything = config("5mbit", "5 packets");
    everything.loss = "10% burst 3".parse().unwrap();
    everything.outages = "every 300ms for 20ms".parse().unwrap();
    everything.bits = "1e-5".parse().unwrap();
    everything.aqm = Some("codel".parse().unwrap());
    everything.policer = Some("5600kbit,15kB".parse().unwrap());
    let mut channel = channel(everything, 67);
    run(&mut channel, 20_000, Duration::from_millis(2));
    let counters = channel.counters();
    let dropped = |reason| counters.dropped(reason);
    assert!(
        ChannelDropReason::ALL
            .iter()
            .all(|&reason| dropped(reason) > 0),
        "{counters:?}"
    );
    assert_eq!(counters.offered_packets, 20_000);
    assert_eq!(
        counters.transmitted_packets,
        20_000
            - (ChannelDropReason::ALL.into_iter())
                .filter(|reason| reason.is_before_the_link())
                .map(dropped)
                .sum::<u64>()
    );
    let in_flight = dropped(ChannelDropReason::Outage) + dropped(ChannelDropReason::Loss);
    assert_eq!(
        counters.delivered_packets,
        counters.transmitted_packets - in_flight
    );
    assert_eq!(
        counters.delivered_packets + counters.dropped_total(),
        20_000
    );
    assert_eq!(
        counters.delivered_bytes.0,
        counters.delivered_packets * PACKET.0
    );
}

/// Packets of 1500 octets at 12 mbit/s, one a millisecond, offered a tenth too fast for `seconds`: those marked, dropped
/// early, and the longest wait.
fn managed(aqm: &str, capable: bool, seconds: u32) -> (u32, u32, Duration) {
    let mut config = config("12mbit", "1000 packets");
    config.aqm = Some(aqm.parse().unwrap());
    let mut channel = channel(config, 71);
    let (mut marked, mut early, mut longest) = (0, 0, Duration::ZERO);
    for index in 0..seconds * 1_100 {
        let now = Instant::START + Duration::from_secs(1) * index / 1_100;
        let wait = channel.queue(now).free_at.saturating_since(now);
        match channel.admit_capable(now, PACKET, capable) {
            ChannelVerdict::Deliver(delivery) => {
                longest = longest.max(wait);
                marked += u32::from(delivery.marked);
            }
            ChannelVerdict::Drop(ChannelDropReason::Early) => early += 1,
            verdict => panic!("{verdict:?}"),
        }
    }
    (marked, early, longest)
}

#[test]
fn a_managed_queue_marks_what_it_can_and_keeps_itself_short_by_drops_of_the_rest() {
    for aqm in ["codel", "red 20 60"] {
        let (marked, early, longest) = managed(aqm, true, 8);
        assert!(marked > 20 && early == 0, "{aqm}: {marked} {early}");
        // Nobody heeds the marks: a tenth of 8 s is waiting.
        assert!(longest > Duration::from_millis(700), "{aqm}: {longest:?}");
        let (marked, early, longest) = managed(aqm, false, 8);
        assert!(marked == 0 && early > 200, "{aqm}: {marked} {early}");
        assert!(longest < Duration::from_millis(450), "{aqm}: {longest:?}");
    }
}

#[test]
fn codel_leaves_a_queue_alone_that_empties_within_its_interval() {
    let mut config = config("12mbit", "1000 packets");
    config.aqm = Some("codel".parse().unwrap());
    let mut channel = channel(config, 72);
    // Fifty at once each 100 ms: 50 ms of queue, and 50 ms without one.
    for burst in 0..50 {
        for _ in 0..50 {
            let now = Instant::START + Duration::from_millis(100) * burst;
            let verdict = channel.admit(now, PACKET);
            assert!(matches!(verdict, ChannelVerdict::Deliver(_)), "{burst}");
        }
    }
}

#[test]
fn a_policer_passes_its_rate_and_no_more() {
    let mut config = config("1gbit", "1000 packets");
    config.policer = Some("12mbit,15kB".parse().unwrap());
    let mut channel = channel(config, 73);
    // Twice the rate for a second: a thousand, and the ten that the bucket held.
    let mut passed = 0;
    for index in 0..2_000_u32 {
        let now = Instant::START + Duration::from_micros(500) * index;
        match channel.admit(now, PACKET) {
            ChannelVerdict::Deliver(_) => passed += 1,
            verdict => assert_eq!(verdict, ChannelVerdict::Drop(ChannelDropReason::Policer)),
        }
    }
    assert!((1_008..=1_010).contains(&passed), "{passed}");
}
