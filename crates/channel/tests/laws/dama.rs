//! Capacity on demand: a terminal gets the capacity it asks for, no sooner than the loop allows,
//! and no more.
//!
//! The link is the SLACP tests' return link: 128 kbit/s, super-frames of 265 ms, 632.5 ms from a
//! request to its answer. So there are three super-frames from the one that a request opens to the
//! one in which its answer is valid.

use fulmar_channel::{
    Assignment, Channel, ChannelConfig, ChannelDropReason, ChannelVerdict, Dama, QueueLimit,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use proptest::prelude::*;

const RATE: Bitrate = Bitrate::from_bits_per_second(128_000);
const FRAME: Duration = Duration::from_millis(265);
const RESPONSE_FRAMES: u32 = 3;
const PACKET: ByteCount = ByteCount(1450);
/// 1450 octets at 128 kbit/s.
const AIRTIME: Duration = Duration::from_micros(90_625);

fn link(assignment: Assignment, queue: QueueLimit, seed: u64) -> Channel {
    let config = ChannelConfig {
        rate: Some(RATE),
        queue,
        dama: Some(Dama::new(assignment)),
        ..ChannelConfig::default()
    };
    Channel::new(config, &Rng::from_seed(seed)).unwrap()
}

/// The departures of packets handed over at these instants, polled only when the link says.
fn departures(channel: &mut Channel, arrivals: &[(Instant, ByteCount)]) -> Vec<Instant> {
    let mut ends = Vec::new();
    let mut arrivals = arrivals.iter().copied().peekable();
    loop {
        let arrival = arrivals.peek().map(|&(at, _)| at);
        let wake = channel.wake_at();
        let Some(now) = arrival.into_iter().chain(wake).min() else {
            return ends;
        };
        while let Some(verdict) = channel.poll_departure(now) {
            ends.push(arrival_of(verdict));
        }
        if arrival == Some(now)
            && let Some((at, len)) = arrivals.next()
        {
            assert_eq!(channel.admit(at, len), ChannelVerdict::Waits);
        }
    }
}

/// The link has no delay, so an arrival is a departure.
fn arrival_of(verdict: ChannelVerdict) -> Instant {
    match verdict {
        ChannelVerdict::Deliver(delivery) => delivery.at,
        other => panic!("nothing is lost here: {other:?}"),
    }
}

fn seconds(value: f64) -> Instant {
    Instant::START + Duration::from_secs_f64(value)
}

#[test]
fn the_first_packet_after_silence_waits_for_a_request_and_its_answer() {
    for assignment in [Assignment::Rate, Assignment::Volume] {
        for seed in 0..200 {
            let mut channel = link(assignment, QueueLimit::UNLIMITED, seed);
            let sent = seconds(20.0);
            let [end] = *departures(&mut channel, &[(sent, PACKET)]) else {
                panic!("one packet")
            };
            let waited = end.saturating_since(sent);
            // With these times the loop takes 0.55 to 1.1 s before the first bit. The last bit
            // takes up to a super-frame more, because the rate requested for a packet is the one
            // that sends it in a super-frame.
            let air = match assignment {
                Assignment::Volume => AIRTIME..=AIRTIME,
                _ => AIRTIME..=FRAME,
            };
            let wait = Duration::from_millis(550)..=Duration::from_millis(1_100);
            let range = *wait.start() + *air.start()..=*wait.end() + *air.end();
            assert!(
                range.contains(&waited),
                "{assignment:?}, seed {seed}: {waited:?}"
            );
            assert!(
                waited >= FRAME * RESPONSE_FRAMES + *air.start(),
                "{waited:?}"
            );
            assert!(
                waited <= FRAME * (RESPONSE_FRAMES + 1) + *air.end(),
                "{waited:?}"
            );
        }
    }
}

#[test]
fn a_constant_rate_needs_no_request() {
    let mut channel = link(Assignment::Constant, QueueLimit::UNLIMITED, 1);
    let sent = seconds(20.0);
    assert_eq!(
        departures(&mut channel, &[(sent, PACKET)]),
        [sent + AIRTIME]
    );
}

#[test]
fn a_requested_rate_holds_for_its_time_out_and_is_gone_after_it() {
    for seed in 0..50 {
        // Twenty packets, then silence, then one more after `silence`.
        let wait_after = |silence: Duration| {
            let mut channel = link(Assignment::Rate, QueueLimit::UNLIMITED, seed);
            let mut arrivals = vec![(seconds(5.0), PACKET); 20];
            let bulk = departures(&mut channel, &arrivals);
            let last = bulk[19] + silence;
            arrivals.push((last, PACKET));
            let mut channel = link(Assignment::Rate, QueueLimit::UNLIMITED, seed);
            departures(&mut channel, &arrivals)[20].saturating_since(last)
        };
        // Requests stop with the backlog; the last is answered three super-frames later and holds
        // for two.
        let gone = FRAME * (1 + RESPONSE_FRAMES + 2);
        assert!(wait_after(gone) >= FRAME * RESPONSE_FRAMES, "seed {seed}");
        assert!(
            wait_after(FRAME / 8) < FRAME * RESPONSE_FRAMES,
            "seed {seed}"
        );
    }
}

#[test]
fn a_full_buffer_refuses_and_what_is_sent_makes_room() {
    let mut channel = link(
        Assignment::Constant,
        QueueLimit::bytes(ByteCount(28_800)),
        1,
    );
    let start = seconds(1.0);
    for _ in 0..19 {
        assert_eq!(channel.admit(start, PACKET), ChannelVerdict::Waits);
    }
    // 19 packets are 27,550 octets: 200 have to leave before the twentieth fits, 12.5 ms.
    let almost = start + Duration::from_micros(12_499);
    assert!(!channel.takes(almost, PACKET));
    assert_eq!(
        channel.admit(almost, PACKET),
        ChannelVerdict::Drop(ChannelDropReason::Queue)
    );
    let then = start + Duration::from_micros(12_500);
    assert!(channel.takes(then, PACKET));
    assert_eq!(channel.admit(then, PACKET), ChannelVerdict::Waits);
    assert_eq!(channel.queue(then).bytes, ByteCount(28_800));
}

#[test]
fn a_terminal_without_a_rate_is_refused() {
    let config = ChannelConfig {
        dama: Some(Dama::new(Assignment::Volume)),
        ..ChannelConfig::default()
    };
    let refused = config.validate().unwrap_err().to_string();
    assert!(refused.contains("dama is vbdc"), "{refused}");
}

/// Gaps in milliseconds and lengths, as arrivals in order.
fn arrivals(gaps: &[(u64, u64)]) -> Vec<(Instant, ByteCount)> {
    let mut now = seconds(3.0);
    gaps.iter()
        .map(|&(gap, len)| {
            now += Duration::from_millis(gap);
            (now, ByteCount(len))
        })
        .collect()
}

fn traffic() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let gap = prop_oneof![3 => 0_u64..20, 2 => 50_u64..400, 1 => 1_000_u64..4_000];
    prop::collection::vec((gap, 1_u64..2_000), 1..60)
}

proptest! {
    #[test]
    fn a_constant_assignment_is_a_transmitter_of_that_rate(gaps in traffic(), seed in any::<u64>()) {
        let arrivals = arrivals(&gaps);
        let assigned = departures(&mut link(Assignment::Constant, QueueLimit::UNLIMITED, seed), &arrivals);
        let config = ChannelConfig {
            rate: Some(RATE),
            queue: QueueLimit::UNLIMITED,
            ..ChannelConfig::default()
        };
        let mut plain = Channel::new(config, &Rng::from_seed(seed)).unwrap();
        let fixed: Vec<Instant> = arrivals
            .iter()
            .map(|&(at, len)| arrival_of(plain.admit(at, len)))
            .collect();
        prop_assert_eq!(assigned, fixed);
    }

    #[test]
    fn everything_leaves_in_order_and_never_above_the_rate(
        gaps in traffic(),
        seed in any::<u64>(),
        volume in any::<bool>(),
    ) {
        let assignment = if volume { Assignment::Volume } else { Assignment::Rate };
        let arrivals = arrivals(&gaps);
        let ends = departures(&mut link(assignment, QueueLimit::UNLIMITED, seed), &arrivals);
        prop_assert_eq!(ends.len(), arrivals.len());
        for first in 0..ends.len() {
            let mut octets = ByteCount::ZERO;
            for last in first + 1..ends.len() {
                octets += arrivals[last].1;
                // An end is rounded up by less than a nanosecond.
                let span = ends[last].saturating_since(ends[first]) + Duration::from_nanos(1);
                prop_assert!(RATE.time_to_send(octets) <= span, "{first}..{last}");
            }
        }
    }

    #[test]
    fn a_volume_is_served_when_its_own_request_is_answered_and_not_before(
        gaps in traffic(),
        seed in any::<u64>(),
    ) {
        // If more were assigned than asked for, a packet would use capacity left by others; if
        // less, the last would never leave.
        let arrivals = arrivals(&gaps);
        let ends = departures(&mut link(Assignment::Volume, QueueLimit::UNLIMITED, seed), &arrivals);
        prop_assert_eq!(ends.len(), arrivals.len());
        let mut free = Instant::START;
        for (&(at, len), end) in arrivals.iter().zip(ends) {
            let airtime = RATE.time_to_send(len);
            prop_assert!(end.saturating_since(at) + Duration::from_nanos(1) >= FRAME * RESPONSE_FRAMES + airtime);
            // No later than the answer, or the packets before it, and the assignments in between.
            let latest = (at + FRAME * (RESPONSE_FRAMES + 1)).max(free) + airtime;
            prop_assert!(end <= latest + Duration::from_nanos(1), "{end} after {latest}");
            free = end;
        }
    }

    #[test]
    fn it_does_not_matter_how_often_the_driver_asks(
        gaps in traffic(),
        seed in any::<u64>(),
        volume in any::<bool>(),
        step in 1_u64..500,
    ) {
        let assignment = if volume { Assignment::Volume } else { Assignment::Rate };
        let arrivals = arrivals(&gaps);
        let expected = departures(&mut link(assignment, QueueLimit::UNLIMITED, seed), &arrivals);
        let mut channel = link(assignment, QueueLimit::UNLIMITED, seed);
        let mut ends = Vec::new();
        let mut now = Instant::START;
        let mut next = arrivals.iter().peekable();
        while ends.len() < arrivals.len() {
            while let Some(&&(at, len)) = next.peek()
                && at <= now
            {
                prop_assert_eq!(channel.admit(at, len), ChannelVerdict::Waits);
                next.next();
            }
            now += Duration::from_millis(step);
            // Arrivals of the step come first: time does not go backwards.
            if next.peek().is_none_or(|&&(at, _)| at > now) {
                while let Some(verdict) = channel.poll_departure(now) {
                    ends.push(arrival_of(verdict));
                }
            }
        }
        prop_assert_eq!(ends, expected);
    }
}
