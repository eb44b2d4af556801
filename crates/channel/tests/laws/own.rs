//! A channel written outside of this workspace, in line with the models.

use super::{channel, delivery, is_lost, run};
use fulmar_channel::{ChannelConfig, ChannelLaw, FlightFate, Flips, OwnChannel, PacketFlight};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, Duration, Instant};

const MS: Duration = Duration::from_millis(1);

/// Loses every third packet, delays the second of three, inverts two bits of the first; doubles the rate after a second.
#[derive(Debug, Default)]
struct Thirds {
    seen: u64,
}

impl ChannelLaw for Thirds {
    fn rate(&mut self, now: Instant) -> Option<Bitrate> {
        (now >= Instant::START + 1_000 * MS).then(|| Bitrate::from_bits_per_second(24_000_000))
    }

    fn fly(&mut self, flight: PacketFlight) -> FlightFate {
        assert!(flight.start < flight.end, "it is on the link for a while");
        self.seen += 1;
        match self.seen % 3 {
            0 => FlightFate::LOST,
            1 => FlightFate {
                flips: Flips::from_positions([9, 100]),
                ..FlightFate::ARRIVES
            },
            _ => FlightFate {
                later: 7 * MS,
                ..FlightFate::ARRIVES
            },
        }
    }
}

fn own() -> ChannelConfig {
    ChannelConfig {
        rate: Some(Bitrate::from_bits_per_second(12_000_000)),
        delay: 10 * MS,
        own: Some(OwnChannel::new("thirds", |_| Thirds::default())),
        ..ChannelConfig::default()
    }
}

#[test]
fn a_law_of_ones_own_loses_delays_and_inverts() {
    let verdicts = run(&mut channel(own(), 1), 3, 10 * MS);
    let first = delivery(&verdicts[0]).expect("it arrives");
    assert_eq!(first.flips.as_slice(), [9, 100]);
    // 1500 octets at 12 Mbit/s take a millisecond.
    assert_eq!(first.at, Instant::START + 11 * MS);
    let second = delivery(&verdicts[1]).expect("it arrives");
    assert_eq!(second.at, Instant::START + (10 + 11 + 7) * MS);
    assert!(second.flips.is_empty());
    assert!(is_lost(&verdicts[2]));
}

#[test]
fn a_law_of_ones_own_sets_the_rate() {
    let mut channel = channel(own(), 1);
    run(&mut channel, 300, 4 * MS);
    let at = Instant::START + 1_200 * MS;
    let verdict = channel.admit(at, super::PACKET);
    let arrived = delivery(&verdict).expect("the first of three").at;
    assert_eq!(arrived.saturating_since(at), Duration::from_micros(10_500));
}

#[test]
fn a_law_of_ones_own_moves_no_draw_of_a_model() {
    let lossy = ChannelConfig {
        loss: "20%".parse().unwrap(),
        ..own()
    };
    let alone = ChannelConfig {
        own: None,
        ..lossy.clone()
    };
    let with = run(&mut channel(lossy, 7), 900, 10 * MS);
    let without = run(&mut channel(alone, 7), 900, 10 * MS);
    for (index, (with, without)) in with.iter().zip(&without).enumerate() {
        assert_eq!(is_lost(with), is_lost(without) || index % 3 == 2, "{index}");
    }
}

#[test]
fn each_direction_and_run_has_a_law_with_chance_of_its_own() {
    #[derive(Debug)]
    struct Chance(Rng);
    impl ChannelLaw for Chance {
        fn fly(&mut self, _: PacketFlight) -> FlightFate {
            FlightFate {
                lost: self.0.chance(0.5),
                ..FlightFate::ARRIVES
            }
        }
    }
    let config = ChannelConfig {
        own: Some(OwnChannel::new("chance", |rng| Chance(rng.clone()))),
        ..ChannelConfig::default()
    };
    let lost = |seed| {
        let verdicts = run(&mut channel(config.clone(), seed), 64, MS);
        verdicts.iter().map(is_lost).collect::<Vec<_>>()
    };
    assert_eq!(lost(1), lost(1));
    assert_ne!(lost(1), lost(2));
}
