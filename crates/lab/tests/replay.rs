//! Links read out of packets that were passed on late, as on any real machine.

use fulmar_lab::ObservedPacket;
use fulmar_lab::replay::hop_tables;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration, Instant};
use toml::Value;

/// A link with a queue without end, and the lateness of what passes packets on.
struct LateLink {
    /// The times in seconds from which each rate in Mbit/s holds.
    rates: &'static [(f64, f64)],
    /// The times in seconds from which each delay in milliseconds holds.
    delays: &'static [(f64, f64)],
    loss: f64,
    /// The mean time in microseconds by which a packet is passed on late, one in 200 by thirty times as much.
    late_us: f64,
}

fn at(steps: &[(f64, f64)], time: f64) -> f64 {
    let begun = steps.iter().rev().find(|(from, _)| *from <= time);
    begun.expect("a step from 0 on").1
}

impl LateLink {
    /// The packets of so many octets that are handed over at these times.
    fn pass(&self, sent: impl Iterator<Item = f64>, octets: u64, seed: u64) -> Vec<ObservedPacket> {
        self.pass_all(sent.map(|sent| (sent, octets)), seed)
    }

    /// The packets that are handed over at these times, each with its octets.
    fn pass_all(
        &self,
        packets: impl Iterator<Item = (f64, u64)>,
        seed: u64,
    ) -> Vec<ObservedPacket> {
        let mut rng = Rng::from_seed(seed);
        let instant = |seconds: f64| Instant::START + Duration::from_secs_f64(seconds);
        let (mut free, mut passed) = (0.0_f64, 0.0_f64);
        let packets = packets.map(|(sent, octets)| {
            let begun = free.max(sent);
            free = begun + octets as f64 * 8e-6 / at(self.rates, begun);
            let arrived = free + at(self.delays, sent) / 1e3;
            let late = -(1.0 - rng.unit_f64()).ln() * self.late_us / 1e6;
            let late = if rng.chance(0.005) { 30.0 * late } else { late };
            // What is passed on later holds up what is behind it.
            passed = passed.max(arrived + late);
            ObservedPacket {
                sent_at: instant(sent),
                len: ByteCount(octets),
                arrived_at: (!rng.chance(self.loss)).then(|| instant(passed)),
            }
        });
        packets.collect()
    }

    /// Packets at this pace in Mbit/s for eight seconds, handed over late as well: now and then several at once.
    fn paced(&self, mbit: f64, seed: u64) -> Vec<ObservedPacket> {
        self.pass(paced_times(mbit, seed), 1_500, seed)
    }

    /// The same with a sounding of 68 octets every 10 ms.
    fn sounded(&self, mbit: f64, seed: u64) -> Vec<ObservedPacket> {
        let soundings = (0..800).map(|number| (f64::from(number) / 100.0, 68));
        let data = paced_times(mbit, seed).map(|sent| (sent, 1_500));
        let mut all: Vec<(f64, u64)> = data.chain(soundings).collect();
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        self.pass_all(all.into_iter(), seed)
    }
}

/// The times of packets of 1,500 octets at this pace in Mbit/s for eight seconds.
fn paced_times(mbit: f64, seed: u64) -> impl Iterator<Item = f64> {
    let mut rng = Rng::from_seed(seed).child("pace");
    let gap = 1_500.0 * 8e-6 / mbit;
    let mut woken = 0.0_f64;
    let mut due = 0.0;
    let times = core::iter::from_fn(move || {
        due += gap;
        let late = -(1.0 - rng.unit_f64()).ln() * 1e-4;
        let late = if rng.chance(0.01) { 50.0 * late } else { late };
        woken = woken.max(due + late);
        Some(woken)
    });
    times.take_while(|sent| *sent < 8.0)
}

/// Rate in Mbit/s and delay in milliseconds of a way at a time in seconds.
fn seen(tables: &str, way: &str, time: f64) -> (f64, f64) {
    let document: toml::Table = tables.parse().expect("TOML");
    let number = |text: &Value, unit: &str| {
        let text = text.as_str().expect("a text").strip_suffix(unit);
        text.and_then(|text| text.parse::<f64>().ok())
            .expect("a number")
    };
    let mut now = document["hop"][0][way].as_table().expect("keys").clone();
    let none = Vec::new();
    let changes = document.get("change").and_then(Value::as_array);
    for change in changes.unwrap_or(&none) {
        let changed = change.get(way).and_then(Value::as_table);
        if number(&change["at"], "ms") / 1e3 <= time {
            now.extend(changed.cloned().unwrap_or_default());
        }
    }
    (
        number(&now["rate"], "bit") / 1e6,
        number(&now["delay"], "us") / 1e3,
    )
}

fn near(what: &str, value: f64, expected: f64, part: f64) {
    let off = (value / expected - 1.0).abs();
    assert!(off <= part, "{what}: {value} for {expected}");
}

#[test]
fn a_link_at_its_rate_is_read_though_packets_are_passed_on_late() {
    for (mbit, late_us) in [(5.0, 300.0), (8.0, 100.0), (20.0, 100.0), (20.0, 0.0)] {
        let link = LateLink {
            rates: &[(0.0, 0.0)],
            delays: &[(0.0, 20.0)],
            loss: 0.05,
            late_us,
        };
        let rates = [(0.0, mbit)].to_vec().leak();
        let link = LateLink { rates, ..link };
        let tables = hop_tables(&link.paced(0.98 * mbit, 901), &[], None).expect("a link");
        for time in [0.5, 2.0, 4.0, 7.0] {
            let (rate, delay) = seen(&tables, "forward", time);
            near(&format!("rate at {time} s"), rate, mbit, 0.03);
            near(&format!("delay at {time} s"), delay, 20.0, 0.05);
        }
    }
}

#[test]
fn a_rate_that_halves_under_a_sender_that_goes_on_is_no_delay() {
    // At the beginning of a span, and at its end.
    for halved in [3.0, 2.99] {
        let rates = [(0.0, 8.0), (halved, 4.0)].to_vec().leak();
        let link = LateLink {
            rates,
            delays: &[(0.0, 20.0)],
            loss: 0.02,
            late_us: 200.0,
        };
        let tables = hop_tables(&link.paced(7.8, 902), &[], None).expect("a link");
        for (time, mbit) in [(1.0, 8.0), (2.7, 8.0), (3.3, 4.0), (5.0, 4.0), (7.0, 4.0)] {
            let (rate, delay) = seen(&tables, "forward", time);
            near(&format!("rate at {time} s, {halved}"), rate, mbit, 0.03);
            near(&format!("delay at {time} s, {halved}"), delay, 20.0, 0.05);
        }
    }
}

#[test]
fn a_rate_that_nobody_asked_for_is_seen_by_long_and_short_packets() {
    let link = LateLink {
        rates: &[(0.0, 5.0), (3.0, 10.0), (6.0, 7.0)],
        delays: &[(0.0, 20.0)],
        loss: 0.02,
        late_us: 0.0,
    };
    let tables = hop_tables(&link.sounded(4.7, 918), &[], None).expect("a link");
    let rates = [
        (1.0, 5.0),
        (2.6, 5.0),
        (3.3, 10.0),
        (5.6, 10.0),
        (6.3, 7.0),
        (7.6, 7.0),
    ];
    for (time, mbit) in rates {
        let (rate, delay) = seen(&tables, "forward", time);
        near(&format!("rate at {time} s"), rate, mbit, 0.05);
        near(&format!("delay at {time} s"), delay, 20.0, 0.02);
    }
}

#[test]
fn the_rate_of_the_wire_is_not_that_of_a_link_which_never_carried_as_much() {
    let link = LateLink {
        rates: &[(0.0, 1_000.0)],
        delays: &[(0.0, 20.0)],
        loss: 0.0,
        late_us: 0.0,
    };
    let tables = hop_tables(&link.sounded(4.9, 919), &[], None).expect("a link");
    let (rate, _) = seen(&tables, "forward", 4.0);
    near("rate", rate, 4.9, 0.1);
}

#[test]
fn the_time_that_the_ends_take_is_in_both_delays() {
    let link = LateLink {
        rates: &[(0.0, 8.0)],
        delays: &[(0.0, 20.0)],
        loss: 0.0,
        late_us: 0.0,
    };
    let there = link.paced(7.8, 920);
    let delays = |after: f64| {
        let arrived = there
            .iter()
            .step_by(8)
            .filter_map(|packet| packet.arrived_at);
        let arrived = arrived.map(|at| at.saturating_since(Instant::START).as_secs_f64());
        let answers = link.pass(arrived.map(|at| at + after), 60, 920);
        let tables = hop_tables(&there, &answers, None).expect("a link");
        ["forward", "reverse"].map(|way| seen(&tables, way, 4.0).1)
    };
    let (without, with) = (delays(0.0), delays(0.000_2));
    for (without, with) in without.into_iter().zip(with) {
        assert!((with - without - 0.2).abs() < 0.005, "{with} {without} ms");
    }
}

#[test]
fn a_delay_that_changes_is_seen_though_packets_are_passed_on_late() {
    let link = LateLink {
        rates: &[(0.0, 8.0)],
        delays: &[(0.0, 20.0), (3.0, 60.0), (6.0, 30.0)],
        loss: 0.1,
        late_us: 200.0,
    };
    let tables = hop_tables(&link.paced(7.8, 903), &[], None).expect("a link");
    for (time, delay) in [
        (1.0, 20.0),
        (3.4, 60.0),
        (5.5, 60.0),
        (6.4, 30.0),
        (7.5, 30.0),
    ] {
        let (rate, seen) = seen(&tables, "forward", time);
        near(&format!("rate at {time} s"), rate, 8.0, 0.03);
        near(&format!("delay at {time} s"), seen, delay, 0.05);
    }
}

#[test]
fn a_queue_of_one_packet_is_no_delay_and_one_of_two_is() {
    // A packet takes 2.4 ms. A sender at nearly the link's rate may leave one in its queue for seconds, and the link looks idle behind.
    for (waits, seen_ms) in [(2.4, 20.0), (3.2, 20.0), (4.8, 24.8)] {
        let delays = [(0.0, 20.0), (3.0, 20.0 + waits), (6.0, 20.0)];
        let link = LateLink {
            rates: &[(0.0, 5.0)],
            delays: delays.to_vec().leak(),
            loss: 0.0,
            late_us: 0.0,
        };
        let tables = hop_tables(&link.paced(4.7, 921), &[], None).expect("a link");
        for (time, delay) in [(1.0, 20.0), (4.5, seen_ms), (7.5, 20.0)] {
            let (_, seen) = seen(&tables, "forward", time);
            near(&format!("delay at {time} s, {waits} ms"), seen, delay, 0.02);
        }
    }
}

#[test]
fn a_way_back_with_few_answers_is_as_fast_as_the_way_there() {
    let link = LateLink {
        rates: &[(0.0, 8.0)],
        delays: &[(0.0, 20.0)],
        loss: 0.0,
        late_us: 100.0,
    };
    let answers = link.pass((1..80).map(|number| f64::from(number) / 10.0), 60, 904);
    let tables = hop_tables(&link.paced(7.8, 904), &answers, None).expect("a link");
    let (rate, delay) = seen(&tables, "reverse", 4.0);
    near("rate", rate, 8.0, 0.03);
    near("delay", delay, 20.0, 0.05);
}

#[test]
fn a_queue_that_empties_at_the_end_of_a_span_is_no_delay() {
    // A queue of 90 ms that stands from 0.5 s on, and is empty at 3.03 s: the link was idle behind the span that ends at 3 s.
    let link = LateLink {
        rates: &[(0.0, 5.0), (2.85, 10.0)],
        delays: &[(0.0, 30.0)],
        loss: 0.0,
        late_us: 0.0,
    };
    let every = |from: f64, count: u32, gap_ms: f64| {
        (0..count).map(move |number| from + f64::from(number) * gap_ms / 1e3)
    };
    let sent = every(0.0, 204, 2.45)
        .chain(every(0.5, 50, 0.6))
        .chain(every(0.53, 2_000, 2.4));
    let packets = link.pass(sent, 1_500, 905);
    let tables = hop_tables(&packets, &[], None).expect("a link");
    for time in [1.0, 2.3, 2.6, 2.8, 3.1, 4.0] {
        let (_, delay) = seen(&tables, "forward", time);
        near(&format!("delay at {time} s"), delay, 30.0, 0.05);
    }
}

/// The outages of a way, in seconds: start and length.
fn outages(tables: &str, way: &str) -> Vec<(f64, f64)> {
    let document: toml::Table = tables.parse().expect("TOML");
    let Some(text) = document["hop"][0][way].get("outages") else {
        return Vec::new();
    };
    let seconds = |text: &str| {
        let text = text.strip_suffix("us").expect("its unit");
        text.parse::<f64>().expect("a number") / 1e6
    };
    let each = text.as_str().expect("a text").split(", ");
    let each = each.map(|outage| outage.split_once('+').expect("a start and a length"));
    each.map(|(start, length)| (seconds(start), seconds(length)))
        .collect()
}

/// These packets, but for those handed over from 3 s to 4 s.
fn without_the_third_second(mut packets: Vec<ObservedPacket>) -> Vec<ObservedPacket> {
    let from = Instant::START + Duration::from_secs(3);
    for packet in &mut packets {
        if packet.sent_at >= from && packet.sent_at < from + Duration::from_secs(1) {
            packet.arrived_at = None;
        }
    }
    packets
}

#[test]
fn an_outage_is_one_of_both_ways_unless_something_came_through_meanwhile() {
    let link = LateLink {
        rates: &[(0.0, 8.0)],
        delays: &[(0.0, 20.0)],
        loss: 0.0,
        late_us: 100.0,
    };
    let there = without_the_third_second(link.paced(7.8, 906));
    let all = || link.pass((1..80).map(|number| f64::from(number) / 10.0), 60, 906);
    let few = all().into_iter().filter(|answer| {
        let sent = answer
            .sent_at
            .saturating_since(Instant::START)
            .as_secs_f64();
        !(3.05..4.2).contains(&sent)
    });
    // An answer that is lost when it begins, and none until it is over.
    let answers = without_the_third_second(few.collect());
    let tables = hop_tables(&there, &answers, None).expect("a link");
    let seen = outages(&tables, "forward");
    assert!((seen[0].0 - 3.0).abs() < 0.02 && (seen[0].1 - 1.0).abs() < 0.02);
    assert_eq!(seen.len(), 1);
    assert_eq!(outages(&tables, "reverse"), seen, "{tables}");
    // The answer is lost in the outage, and not by a share.
    let reverse = tables.lines().filter(|line| line.starts_with("reverse"));
    assert!(reverse.clone().count() > 0);
    for keys in reverse {
        assert!(!keys.contains("fates"), "{keys}");
    }
    let tables = hop_tables(&there, &all(), None).expect("a link");
    assert_eq!(outages(&tables, "reverse"), [], "{tables}");
}

#[test]
fn bursts_of_losses_are_no_outages() {
    for seed in 907..917 {
        let link = LateLink {
            rates: &[(0.0, 5.0)],
            delays: &[(0.0, 10.0)],
            loss: 0.0,
            late_us: 100.0,
        };
        let mut packets = link.paced(4.9, seed);
        let mut rng = Rng::from_seed(seed).child("bursts");
        let mut is_bad = false;
        for packet in &mut packets {
            is_bad = rng.chance(if is_bad { 0.75 } else { 0.013 });
            packet.arrived_at = packet.arrived_at.filter(|_| !is_bad);
        }
        let tables = hop_tables(&packets, &[], None).expect("a link");
        assert_eq!(outages(&tables, "forward"), [], "seed {seed}");
    }
}
