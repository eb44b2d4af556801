//! Outages drop exactly the packets that are on the link while it is out.

use crate::{PACKET, channel, is_lost, run};
use fulmar_channel::{ChannelConfig, ChannelDropReason, ChannelVerdict};
use fulmar_proto::units::{Duration, Instant};

const OUT: ChannelVerdict = ChannelVerdict::Drop(ChannelDropReason::Outage);

#[test]
fn packets_handed_over_during_an_outage_are_dropped_and_no_others() {
    let config = ChannelConfig {
        outages: "20ms+5ms, 100ms+1ms, every 200ms for 10ms from 300ms"
            .parse()
            .unwrap(),
        ..ChannelConfig::default()
    };
    let mut channel = channel(config, 51);
    let verdicts = run(&mut channel, 1000, Duration::from_millis(1));
    let expected =
        |ms: u64| (20..25).contains(&ms) || ms == 100 || (ms >= 300 && (ms - 300) % 200 < 10);
    for (ms, verdict) in (0..).zip(&verdicts) {
        assert_eq!(*verdict == OUT, expected(ms), "{ms} ms: {verdict:?}");
    }
    let dropped = channel.counters().dropped(ChannelDropReason::Outage);
    assert_eq!(dropped, 5 + 1 + 4 * 10);
}

#[test]
fn a_packet_is_dropped_when_its_transmission_meets_an_outage_not_when_it_is_handed_over() {
    // 1 ms on the link each: packet i is sent from i to i + 1 ms, all handed over at once.
    let config = ChannelConfig {
        rate: Some("12mbit".parse().unwrap()),
        delay: Duration::from_millis(50),
        outages: "10500us+2ms".parse().unwrap(),
        ..ChannelConfig::default()
    };
    let verdicts = run(&mut channel(config, 52), 20, Duration::ZERO);
    let dropped: Vec<usize> = (0..20).filter(|&i| verdicts[i] == OUT).collect();
    // 10.5 to 12.5 ms; packets that left by 10 ms are in flight and arrive.
    assert_eq!(dropped, [10, 11, 12]);
}

#[test]
fn what_an_outage_takes_has_occupied_the_link() {
    let config = ChannelConfig {
        rate: Some("12mbit".parse().unwrap()),
        outages: "0s+100ms".parse().unwrap(),
        ..ChannelConfig::default()
    };
    let mut channel = channel(config, 53);
    run(&mut channel, 10, Duration::ZERO);
    let free_at = channel.queue(Instant::START).free_at;
    assert_eq!(free_at, Instant::START + Duration::from_millis(10));
    assert_eq!(channel.counters().transmitted_bytes.0, 10 * PACKET.0);
}

#[test]
fn an_outage_moves_no_loss_of_another_packet() {
    for loss in ["30%", "30% burst 3", "on-off 30% period 5ms exponential"] {
        let with = |outages: &str| ChannelConfig {
            loss: loss.parse().unwrap(),
            outages: outages.parse().unwrap(),
            ..ChannelConfig::default()
        };
        let always = run(
            &mut channel(with("none"), 54),
            500,
            Duration::from_millis(1),
        );
        let cut = run(
            &mut channel(with("100ms+200ms"), 54),
            500,
            Duration::from_millis(1),
        );
        for (ms, (always, cut)) in always.iter().zip(&cut).enumerate() {
            if (100..300).contains(&ms) {
                assert_eq!(*cut, OUT);
            } else {
                assert_eq!(is_lost(always), is_lost(cut), "{loss}, {ms} ms");
            }
        }
    }
}
