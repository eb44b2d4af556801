//! The closed forms give the source's own figures.
//!
//! Method: the published numbers, to the digits that are printed. `reference/fso_table1.csv` is Table 1 of
//! Epple's paper. Its bracketed values come out with no processing time at the far end, with the user data
//! alone open to errors, and with distances of 400 m and 1500 m where the text says 500 m and 1400 m.

#![expect(
    clippy::unwrap_used,
    reason = "a table that cannot be read is a failed case"
)]

use fulmar_proto::units::{
    BitErrorRate, Bitrate, ByteCount, Distance, Duration, PacketErrorRate, Probability,
};
use fulmar_sim::theory::{
    ArqClass, BestLength, BlockDemand, Goodput, Packing, RoundTripCapacity, back_channel_share,
    best_length, packet_loss, packet_or_acknowledgement_loss, round_trip_time, search_best_length,
    window,
};

const TABLE_1: &str = include_str!("../../../reference/fso_table1.csv");
/// The link rate of the reference receiver, 622 Mbit/s.
const RATE: Bitrate = Bitrate::from_bits_per_second(622_000_000);

fn rate(value: f64) -> BitErrorRate {
    BitErrorRate::new(value).unwrap()
}

fn metres(value: f64) -> Distance {
    Distance::from_metres(value).unwrap()
}

/// The distance behind a scenario's bracketed values, which is not always the text's.
fn distance(scenario: &str) -> Distance {
    metres(match scenario {
        "awgn-testbed" | "testbed" => 400.0,
        "atenaa" => 1_500.0,
        "fasolt" => 61_000.0,
        "awgn-kiodo" | "kiodo" => 2_500_000.0,
        other => panic!("unknown scenario {other}"),
    })
}

fn goodput(arq: ArqClass, scenario: &str, packing: Packing) -> Goodput {
    let round_trip = round_trip_time(distance(scenario), Duration::ZERO);
    let capacity = RoundTripCapacity::new(round_trip, RATE, packing.packet());
    arq.goodput(packing, packet_loss(rate(1e-6), packing.user), capacity)
}

#[test]
fn all_36_bracketed_values_of_table_1_come_out() {
    let mut lines = TABLE_1.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut compared = 0;
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |name: &str| cells[names.iter().position(|known| *known == name).unwrap()];
        let number = |name: &str| cell(name).parse::<f64>().unwrap();
        let user: u64 = cell("user_data_bytes").parse().unwrap();
        for (arq, header, column) in [
            (ArqClass::GoBackN, 20, "gbn_theory"),
            (ArqClass::SelectiveRepeat, 60, "sr_theory"),
        ] {
            let packing = Packing {
                user: ByteCount(user),
                header: ByteCount(header),
            };
            let ours = goodput(arq, cell("scenario"), packing).share();
            let published = number(column);
            // Four digits are printed, and the speed of light behind them was rounded to 3e8 m/s.
            assert!(
                (ours - published).abs() <= 1e-4,
                "{line}: {column} is {ours}, not {published}"
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 36);
}

#[test]
fn the_window_of_the_low_satellite_is_the_papers_2_084_775_octets() {
    let round_trip = round_trip_time(metres(2_500_000.0), Duration::ZERO);
    let gigabit = Bitrate::from_bits_per_second(1_000_000_000);
    assert_eq!(window(round_trip, gigabit), ByteCount(2_084_775));
    let with_processing = round_trip_time(metres(2_500_000.0), Duration::from_micros(20));
    assert_eq!(with_processing, round_trip + Duration::from_micros(20));
}

/// Reference: values of equation 11 computed apart from this code, to the octet.
#[test]
fn the_best_lengths_of_equation_11_are_those_of_the_specification() {
    for (header, errors, octets) in [
        (20, 1e-7, 4990),
        (20, 1e-6, 1571),
        (20, 1e-5, 490),
        (20, 1e-4, 148),
        (60, 1e-6, 2709),
        (60, 1e-5, 837),
    ] {
        let best = best_length(ByteCount(header), rate(errors));
        assert_eq!(
            best,
            BestLength::Octets(ByteCount(octets)),
            "{header} octets, {errors}"
        );
    }
    assert_eq!(best_length(ByteCount(20), rate(0.0)), BestLength::Unbounded);
    // Certain errors, and no header to share out: as short as can be.
    for (header, errors) in [(20, 1.0), (0, 1e-5), (0, 1.0)] {
        let best = best_length(ByteCount(header), rate(errors));
        assert_eq!(best, BestLength::Octets(ByteCount(1)));
    }
}

#[test]
fn no_length_beats_the_one_of_equation_11() {
    for (header, errors) in [(20, 1e-6), (20, 1e-4), (60, 1e-5), (60, 3e-3)] {
        let header = ByteCount(header);
        let reached = |user: ByteCount| {
            let packing = Packing { user, header };
            let loss = packet_loss(rate(errors), packing.packet());
            let capacity = RoundTripCapacity::new(Duration::ZERO, RATE, packing.packet());
            ArqClass::SelectiveRepeat.goodput(packing, loss, capacity)
        };
        let (searched, greatest) = search_best_length(1..=9_000, reached).unwrap();
        let BestLength::Octets(closed) = best_length(header, rate(errors)) else {
            panic!("errors bound the length");
        };
        // The closed form is that of a real number of octets, rounded afterwards.
        assert!(closed.0.abs_diff(searched.0) <= 1, "{closed} {searched}");
        assert!(greatest.share() - reached(closed).share() < 1e-9);
    }
}

#[test]
fn waiting_costs_stop_and_wait_the_round_trip() {
    let packing = Packing {
        user: ByteCount(980),
        header: ByteCount(20),
    };
    // 8000 bits at 8 Mbit/s are 1 ms; a round trip of 9 ms leaves one part in ten.
    let rate = Bitrate::from_bits_per_second(8_000_000);
    let capacity = RoundTripCapacity::new(Duration::from_millis(9), rate, packing.packet());
    let loss = PacketErrorRate::new(0.5).unwrap();
    let share = |arq: ArqClass| arq.goodput(packing, loss, capacity).share();
    assert!((capacity.packets() - 9.0).abs() < 1e-12);
    assert!((share(ArqClass::SelectiveRepeat) - 0.49).abs() < 1e-12);
    assert!((share(ArqClass::StopAndWait) - 0.049).abs() < 1e-12);
    assert!((share(ArqClass::GoBackN) - 0.49 / 5.5).abs() < 1e-12);
    assert_eq!(
        ArqClass::SelectiveRepeat.window(packing, capacity),
        ByteCount(10_000)
    );
    assert_eq!(
        ArqClass::StopAndWait.window(packing, capacity),
        ByteCount(1_000)
    );
    let on_the_way_back =
        |arq: ArqClass| back_channel_share(arq, packing.packet(), ByteCount(40), capacity);
    assert!((on_the_way_back(ArqClass::GoBackN) - 0.04).abs() < 1e-12);
    assert!((on_the_way_back(ArqClass::StopAndWait) - 0.004).abs() < 1e-12);
}

#[test]
fn a_lost_acknowledgement_counts_as_a_lost_packet_up_to_certainty() {
    let p = |value: f64| PacketErrorRate::new(value).unwrap();
    let both = packet_or_acknowledgement_loss(p(0.02), p(0.03)).value();
    assert!((both - 0.05).abs() < 1e-15);
    assert_eq!(packet_or_acknowledgement_loss(p(0.7), p(0.6)), p(1.0));
}

/// Reference: equation 12 gives 9 to 10 blocks in the scenario KIODO; the four of TCP do not suffice.
#[test]
fn the_satellite_needs_more_blocks_than_tcp_has() {
    let packet = Packing {
        user: ByteCount(500),
        header: ByteCount(60),
    };
    let round_trip = round_trip_time(distance("kiodo"), Duration::ZERO);
    let capacity = RoundTripCapacity::new(round_trip, RATE, packet.packet());
    let loss = packet_loss(rate(1e-6), packet.user);
    let blocks = BlockDemand::new(capacity, loss).unwrap();
    assert!((9.0..10.0).contains(&blocks.mean()), "{}", blocks.mean());
    let needed = |p: f64| blocks.quantile(Probability::new(p).unwrap());
    assert!((needed(0.5).unwrap() - blocks.mean()).abs() < 1e-9);
    // 2.326348 deviations hold 99 % of a normal variable (any table).
    let at_99 = blocks.mean() + 2.326_348 * blocks.deviation();
    assert!((needed(0.99).unwrap() - at_99).abs() < 1e-5);
    assert_eq!((needed(0.0), needed(1.0)), (None, None));
    assert!(needed(1e-9).unwrap() >= 0.0);
    assert_eq!(
        BlockDemand::new(capacity, PacketErrorRate::new(1.0).unwrap()),
        None
    );
}
