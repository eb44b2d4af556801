use super::*;
use fulmar_proto::units::Duration;
use proptest::prelude::*;

fn refusal<T: FromStr<Err = TextError> + fmt::Debug>(text: &str) -> String {
    text.parse::<T>().unwrap_err().to_string()
}

#[test]
fn loss_reads_the_forms_that_people_type() {
    let read = |text: &str| text.parse::<LossModel>().unwrap();
    assert_eq!(read("none"), LossModel::None);
    assert_eq!(read(" 2% "), LossModel::Bernoulli("0.02".parse().unwrap()));
    let bursts = GilbertElliott {
        mean_loss: "2%".parse().unwrap(),
        mean_burst: 4.0,
    };
    assert_eq!(read("2% burst 4"), LossModel::GilbertElliott(bursts));
    let mut on_off = OnOff {
        mean_loss: "30%".parse().unwrap(),
        period: Duration::from_millis(50),
        sojourn: Sojourn::Fixed,
    };
    assert_eq!(read("on-off 30% period 50ms"), LossModel::OnOff(on_off));
    on_off.sojourn = Sojourn::Exponential;
    assert_eq!(
        read("on-off 30% period 50ms exponential"),
        LossModel::OnOff(on_off)
    );
    let states = TwoState {
        off: LossState {
            loss: "1%".parse().unwrap(),
            mean: Duration::from_millis(80),
        },
        on: LossState {
            loss: "50%".parse().unwrap(),
            mean: Duration::from_millis(20),
        },
        sojourn: Sojourn::Fixed,
    };
    assert_eq!(
        read("two-state 1% 80ms 50% 20ms"),
        LossModel::TwoState(states)
    );
}

#[test]
fn loss_reads_states_by_packet_series_and_traces() {
    let read = |text: &str| text.parse::<LossModel>().unwrap();
    let state = |loss: &str, mean_packets| PacketState {
        loss: loss.parse().unwrap(),
        mean_packets,
    };
    let states = PacketStates {
        good: state("0.1%", 200.0),
        bad: state("60%", 8.5),
    };
    let text = "gilbert-elliott 0.1% 200 60% 8.5";
    assert_eq!(read(text), LossModel::PacketStates(states));
    let millis = |min, max| Lengths {
        min: Duration::from_millis(min),
        max: Duration::from_millis(max),
    };
    let series = LossModel::Series(Series {
        good: millis(10_000, 30_000),
        bad: millis(60, 60),
    });
    assert_eq!(read("good 10s..30s bad 60ms"), series);
    assert_eq!(read("slacp low"), series);
    assert_eq!(read("slacp low").to_string(), "good 10s..30s bad 60ms");
    for (text, name, at_end) in [
        ("trace a.csv", "a.csv", AtEnd::Stop),
        ("trace my loss.csv loop", "my loss.csv", AtEnd::Loop),
        ("trace a.csv loop shifted", "a.csv", AtEnd::LoopShifted),
        ("trace loop", "loop", AtEnd::Stop),
        ("trace loop loop", "loop", AtEnd::Loop),
        ("trace shifted", "shifted", AtEnd::Stop),
        ("trace a.loop", "a.loop", AtEnd::Stop),
    ] {
        let replay = Replay {
            name: name.to_owned(),
            at_end,
            trace: None,
        };
        assert_eq!(read(text), LossModel::Replay(replay));
        assert_eq!(read(text).to_string(), text);
    }
    for (text, expected) in [
        (
            "gilbert-elliott 0.1% 200 60%",
            "`gilbert-elliott 0.1% 200 60% 8`",
        ),
        (
            "gilbert-elliott 0.1% many 60% 8",
            "`gilbert-elliott 0.1% 200 60% 8`",
        ),
        (
            "gilbert-elliott 0.1% 0.5 60% 8",
            "loss.good is 0.5; allowed is a mean",
        ),
        ("gilbert-elliott 0.1% NaN 60% 8", "loss.good is NaN"),
        ("good 10s bad", "`good 5s..15s bad 100ms..300ms`"),
        (
            "good 10s..5s bad 1s",
            "loss.good is 10s..5s; allowed is the shorter length first",
        ),
        ("good 10..20 bad 1s", "has no unit"),
        (
            "slacp mild",
            "write low, medium, high, vhigh, huge-literal or huge-calibrated",
        ),
        ("trace", "`trace FILE [loop [shifted]]`"),
    ] {
        let refused = refusal::<LossModel>(text);
        assert!(refused.contains(expected), "{text}: {refused}");
    }
}

#[test]
fn refused_losses_say_what_would_be_accepted() {
    for text in [
        "",
        "heavy",
        "2% bursts 4",
        "2% burst four",
        "on-off 30%",
        "on-off 30% period 5ms x",
    ] {
        let refused = refusal::<LossModel>(text);
        assert!(
            refused.contains("`2% burst 4` (packets)"),
            "{text}: {refused}"
        );
    }
    assert!(refusal::<LossModel>("2").contains("between 0 and 1"));
    assert!(refusal::<LossModel>("on-off 30% period 50").contains("no unit"));
    assert!(refusal::<LossModel>("on-off 80% period 50ms").contains("0 to 2/3"));
    assert!(refusal::<LossModel>("on-off 30% period 0s").contains("loss.period is 0s"));
    assert!(refusal::<LossModel>("90% burst 2").contains("at least 9"));
}

#[test]
fn outages_read_single_and_repeated_ones() {
    let plan: OutagePlan = "10s+2s, every 30s for 2s, every 1min for 500ms from 5s"
        .parse()
        .unwrap();
    let second = |s: u64| Instant::from_nanos(s * 1_000_000_000);
    let single = Outage {
        start: second(10),
        length: Duration::from_secs(2),
    };
    assert_eq!(plan.single, [single]);
    let cycle = |first, every, millis| OutageCycle {
        first: second(first),
        every: Duration::from_secs(every),
        length: Duration::from_millis(millis),
    };
    assert_eq!(plan.cycles, [cycle(30, 30, 2000), cycle(5, 60, 500)]);
    assert_eq!("none".parse::<OutagePlan>().unwrap(), OutagePlan::NONE);
    for text in ["", "10s", "every 30s", "10s+2s,"] {
        let refused = refusal::<OutagePlan>(text);
        assert!(
            refused.contains("`10s+2s` (start+length)"),
            "{text}: {refused}"
        );
    }
    assert!(refusal::<OutagePlan>("10+2").contains("no unit"));
    assert!(refusal::<OutagePlan>("10s+0s").contains("above zero"));
    assert!(refusal::<OutagePlan>("every 2s for 3s").contains("below the cycle of 2s"));
}

#[test]
fn queues_need_to_say_packets_or_octets() {
    assert_eq!("100 packets".parse(), Ok(QueueLimit::packets(100)));
    assert_eq!(
        "150kB".parse(),
        Ok(QueueLimit::bytes(fulmar_proto::units::ByteCount(150_000)))
    );
    assert_eq!("unlimited".parse(), Ok(QueueLimit::UNLIMITED));
    for text in ["100", "many", "-1 packets", "100 packets 3 kB"] {
        let refused = refusal::<QueueLimit>(text);
        assert!(refused.contains("`100 packets`"), "{text}: {refused}");
    }
    assert!(refusal::<QueueLimit>("100kbit").contains("not a unit here"));
}

#[test]
fn bit_errors_jitter_and_reordering_read_their_forms() {
    assert_eq!(
        "1e-5".parse(),
        Ok(BitErrors::Independent("1e-5".parse().unwrap()))
    );
    assert_eq!(
        "1e-5 per octet".parse(),
        Ok(BitErrors::PerOctet("1e-5".parse().unwrap()))
    );
    let received = BitErrors::Received("-45dBm".parse().unwrap());
    assert_eq!("received -45dBm".parse(), Ok(received));
    assert_eq!(received.to_string().parse(), Ok(received));
    assert!(refusal::<BitErrors>("some").contains("`1e-5` (each bit)"));
    assert_eq!("2ms".parse::<Jitter>().unwrap().order, PacketOrder::Kept);
    assert_eq!(
        "2ms reordering".parse::<Jitter>().unwrap().order,
        PacketOrder::Free
    );
    assert!(refusal::<Jitter>("2ms or so").contains("`2ms reordering`"));
    let held = "1% by 5ms".parse::<Reorder>().unwrap();
    assert_eq!(held.extra, Duration::from_millis(5));
    assert!(refusal::<Reorder>("1%").contains("`1% by 5ms`"));
}

fn span() -> impl Strategy<Value = Duration> + Clone {
    (1_000_u64..4_000_000_000_000).prop_map(Duration::from_nanos)
}

fn loss() -> impl Strategy<Value = LossModel> {
    let sojourn = prop_oneof![Just(Sojourn::Fixed), Just(Sojourn::Exponential)];
    let rate = (0.0..=0.66).prop_map(|p| PacketErrorRate::new(p).unwrap());
    let state = (rate.clone(), span()).prop_map(|(loss, mean)| LossState { loss, mean });
    let packets = (rate.clone(), 1.0..1e6)
        .prop_map(|(loss, mean_packets)| PacketState { loss, mean_packets });
    prop_oneof![
        Just(LossModel::None),
        rate.clone().prop_map(LossModel::Bernoulli),
        (rate.clone(), 2.0..1e6).prop_map(|(mean_loss, mean_burst)| {
            LossModel::GilbertElliott(GilbertElliott {
                mean_loss,
                mean_burst,
            })
        }),
        (rate, span(), sojourn.clone()).prop_map(|(mean_loss, period, sojourn)| {
            LossModel::OnOff(OnOff {
                mean_loss,
                period,
                sojourn,
            })
        }),
        (state.clone(), state, sojourn)
            .prop_map(|(off, on, sojourn)| LossModel::TwoState(TwoState { off, on, sojourn })),
        (packets.clone(), packets)
            .prop_map(|(good, bad)| LossModel::PacketStates(PacketStates { good, bad })),
        (span(), span(), span(), span()).prop_map(|(a, b, c, d)| {
            LossModel::Series(Series {
                good: Lengths {
                    min: a.min(b),
                    max: a.max(b),
                },
                bad: Lengths {
                    min: c.min(d),
                    max: c.max(d),
                },
            })
        }),
    ]
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(
        loss in loss(),
        packets in proptest::option::of(0_u32..1_000_000),
        bytes in proptest::option::of(0_u64..1_000_000_000_000),
        outages in prop::collection::vec((span(), span()), 0..4),
        rate in 0.0..=1.0,
        length in span(),
    ) {
        prop_assert_eq!(loss.to_string().parse(), Ok(loss.clone()));
        let queue = QueueLimit { packets, bytes: bytes.map(fulmar_proto::units::ByteCount) };
        prop_assert_eq!(queue.to_string().parse(), Ok(queue));
        let start = |at: Duration| Instant::START + at;
        let plan = OutagePlan {
            single: outages
                .iter()
                .map(|&(at, length)| Outage { start: start(at), length })
                .collect(),
            cycles: outages
                .iter()
                .map(|&(at, length)| OutageCycle { first: start(at), every: length * 2, length })
                .collect(),
        };
        prop_assert_eq!(plan.to_string().parse(), Ok(plan));
        let probability = fulmar_proto::units::Probability::new(rate).unwrap();
        let bits = BitErrors::PerOctet(probability);
        prop_assert_eq!(bits.to_string().parse(), Ok(bits));
        let jitter = Jitter { spread: length, order: PacketOrder::Free };
        prop_assert_eq!(jitter.to_string().parse(), Ok(jitter));
        let reorder = Reorder { probability, extra: length };
        prop_assert_eq!(reorder.to_string().parse(), Ok(reorder));
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in "[ -~]{0,40}|(on-off|every|two-state|good|bad|trace|slacp|[.][.]|[0-9.e%+,-]|ms|s| )*") {
        let read = (
            text.parse::<LossModel>().is_ok(),
            text.parse::<OutagePlan>().is_ok(),
            text.parse::<QueueLimit>().is_ok(),
            text.parse::<BitErrors>().is_ok(),
            text.parse::<Jitter>().is_ok(),
            text.parse::<Reorder>().is_ok(),
        );
        // At most one of them can read a text that has a word of its own.
        prop_assert!(!(read.0 && read.1) || text.trim() == "none");
    }
}

#[test]
fn policers_and_managed_queues_are_read_and_printed() {
    let policer: Policer = "10mbit, 15kB".parse().unwrap();
    assert_eq!(policer.to_string(), "10Mbit/s,15000B");
    assert_eq!(policer.to_string().parse(), Ok(policer));
    assert!(refusal::<Policer>("10mbit").contains("`10Mbit/s,15kB`"));
    assert!(refusal::<Policer>("10mbit,0B").contains("policer.burst is 0B"));
    for text in ["codel", "red 20 60"] {
        let law: Aqm = text.parse().unwrap();
        assert_eq!(law.to_string(), text);
    }
    assert!(refusal::<Aqm>("fq").contains("`codel`"));
    assert!(refusal::<Aqm>("red 60 20").contains("red.max is 20"));
}
