//! Replayed traces: packet by packet and by time, looped or not.

use crate::statistics::assert_share;
use crate::{MILLISECOND, PACKET, channel, is_lost, run};
use fulmar_channel::{
    AtEnd, Channel, ChannelConfig, ChannelDropReason, ChannelVerdict, LossModel, LossTrace,
    PacketTrace, Replay, TimeTrace,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, Duration, Instant, PacketErrorRate};
use std::sync::Arc;

fn packets(pattern: &str) -> LossTrace {
    let mut trace = PacketTrace::default();
    for digit in pattern.chars() {
        trace.push(digit == '1').unwrap();
    }
    LossTrace::Packets(trace)
}

fn by_time(intervals: &[(u64, f64)]) -> LossTrace {
    let mut trace = TimeTrace::default();
    for &(millis, loss) in intervals {
        let loss = PacketErrorRate::new(loss).unwrap();
        trace.push(Duration::from_millis(millis), loss).unwrap();
    }
    LossTrace::Time(trace)
}

fn replay(trace: LossTrace, at_end: AtEnd) -> ChannelConfig {
    let name = "a.csv".to_owned();
    let trace = Some(Arc::new(trace));
    ChannelConfig {
        loss: LossModel::Replay(Replay {
            name,
            at_end,
            trace,
        }),
        ..ChannelConfig::default()
    }
}

fn pattern(verdicts: &[ChannelVerdict]) -> String {
    let digit = |verdict| if is_lost(verdict) { '1' } else { '0' };
    verdicts.iter().map(digit).collect()
}

#[test]
fn packets_are_lost_exactly_as_recorded() {
    // Longer than a word of the bitmap.
    let recorded: String = (0..150)
        .map(|i| if i % 7 < 2 { '1' } else { '0' })
        .collect();
    let mut link = channel(replay(packets(&recorded), AtEnd::Stop), 1);
    assert_eq!(pattern(&run(&mut link, 150, MILLISECOND)), recorded);
    assert_eq!(link.trace_used_up(), None);
    let mut looped = channel(replay(packets(&recorded), AtEnd::Loop), 1);
    let twice = pattern(&run(&mut looped, 300, MILLISECOND));
    assert_eq!(twice, format!("{recorded}{recorded}"));
    assert_eq!(looped.trace_used_up(), None);
}

#[test]
fn a_shifted_loop_begins_anywhere_and_goes_round() {
    let mut begins = [0_u64; 4];
    for seed in 0..2_000 {
        let mut link = channel(replay(packets("1000"), AtEnd::LoopShifted), seed);
        let seen = pattern(&run(&mut link, 8, MILLISECOND));
        let first = seen.find('1').unwrap();
        assert_eq!(&seen[first..], &"10001000"[..8 - first]);
        begins[first] += 1;
    }
    for (first, &count) in begins.iter().enumerate() {
        assert_share(&format!("first loss at {first}"), count, 2_000, 0.25);
    }
}

#[test]
fn a_trace_that_is_too_short_says_so_and_what_is_behind_it_is_lost() {
    for (trace, length) in [
        (packets("000"), "3 packets"),
        (by_time(&[(2, 0.0), (1, 0.0)]), "3ms"),
    ] {
        let mut link = channel(replay(trace, AtEnd::Stop), 1);
        assert_eq!(pattern(&run(&mut link, 3, MILLISECOND)), "000");
        assert_eq!(link.trace_used_up(), None);
        let beyond = link.admit(Instant::START + 3 * MILLISECOND, PACKET);
        assert_eq!(beyond, ChannelVerdict::Drop(ChannelDropReason::Loss));
        let told = link.trace_used_up().unwrap().to_string();
        let expected = format!("the trace a.csv ({length}) is used up; write `trace a.csv loop`");
        assert!(told.starts_with(&expected), "{told}");
    }
}

#[test]
fn by_time_a_packet_meets_the_worst_interval_it_touches() {
    let trace = [(10, 0.0), (5, 1.0), (10, 0.0)];
    let mut link = channel(replay(by_time(&trace), AtEnd::Loop), 1);
    let seen = pattern(&run(&mut link, 50, MILLISECOND));
    let once = format!("{}{}{}", "0".repeat(10), "1".repeat(5), "0".repeat(10));
    assert_eq!(seen, format!("{once}{once}"));
    // 1500 octets at 2 mbit take 6 ms: the second is on the link from 6 to 12 ms, the third to 18,
    // and the fifth from 24 ms to 30, over the end and the beginning.
    let mut config = replay(by_time(&trace), AtEnd::Loop);
    config.rate = Some(Bitrate::from_bits_per_second(2_000_000));
    let mut link = channel(config, 1);
    assert_eq!(pattern(&run(&mut link, 6, 6 * MILLISECOND)), "011001");
}

#[test]
fn by_time_the_loss_may_be_a_share() {
    let trace = by_time(&[(10, 0.2), (10, 0.7)]);
    assert!((trace.mean_loss().value() - 0.45).abs() < 1e-12);
    let mut link = channel(replay(trace, AtEnd::Loop), 41);
    let verdicts = run(&mut link, 400_000, MILLISECOND);
    let mut lost = [0_u64; 2];
    for (index, verdict) in verdicts.iter().enumerate() {
        lost[index / 10 % 2] += u64::from(is_lost(verdict));
    }
    assert_share("first half", lost[0], 200_000, 0.2);
    assert_share("second half", lost[1], 200_000, 0.7);
}

#[test]
fn a_trace_that_was_not_read_or_says_nothing_makes_no_channel() {
    let unread = ChannelConfig {
        loss: "trace b.csv loop".parse().unwrap(),
        ..ChannelConfig::default()
    };
    for config in [
        unread,
        replay(packets(""), AtEnd::Loop),
        replay(by_time(&[]), AtEnd::Loop),
    ] {
        let error = Channel::new(config, &Rng::from_seed(1)).unwrap_err();
        assert_eq!(error.field.to_string(), "loss.trace");
    }
}

#[test]
fn traces_are_bounded() {
    let mut trace = TimeTrace::default();
    let one = PacketErrorRate::new(1.0).unwrap();
    for _ in 0..TimeTrace::INTERVALS_MAX {
        trace.push(Duration::from_nanos(1), one).unwrap();
    }
    let refused = trace.push(Duration::from_nanos(1), one).unwrap_err();
    assert!(
        refused.to_string().contains("at most 4194304 intervals"),
        "{refused}"
    );
    assert!(PacketTrace::default().get(0).is_none());
}

#[test]
fn written_fates_go_round_and_go_on_through_a_change_of_the_rate() {
    let fates = |text: &str| ChannelConfig {
        loss: text.parse().unwrap(),
        ..ChannelConfig::default()
    };
    let mut link = channel(fates("fates 3+2"), 1);
    let begun = pattern(&run(&mut link, 7, MILLISECOND));
    assert_eq!(begun, "0001100");
    let slower = ChannelConfig {
        delay: Duration::from_millis(9),
        ..fates("fates 3+2")
    };
    link.change(&slower, &Rng::from_seed(2)).unwrap();
    assert_eq!(pattern(&run(&mut link, 5, MILLISECOND)), "01100");
    link.change(&fates("fates 0+1 1+0"), &Rng::from_seed(2))
        .unwrap();
    assert_eq!(pattern(&run(&mut link, 4, MILLISECOND)), "1010");
}
