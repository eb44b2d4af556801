//! Random sessions: whatever the medium and the ends do, the promises hold.

use super::pair::{MEDIUM, Pair, intact, packets};
use crate::link::LinkMachine;
use crate::link::slacp::config::Timing;
use crate::link::slacp::{LaneSettings, SlacpConfig, WINDOW};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::Duration;

/// Whether the packets, which carry their number in front, are in order and none twice.
pub(super) fn in_order_and_once(released: &[Vec<u8>]) -> bool {
    let number = |packet: &Vec<u8>| packet.get(..4).map(<[u8]>::to_vec);
    released
        .windows(2)
        .all(|two| number(&two[0]) < number(&two[1]))
}

/// The treatment of frames by a random medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weather {
    pub(super) loss: f64,
    pub(super) repeat: f64,
    pub(super) late: f64,
    pub(super) damage: f64,
}

pub(super) fn storm(pair: &mut Pair, weather: Weather, seed: u64) {
    let mut rng = Rng::from_seed(seed);
    pair.fate = Box::new(move |_, _, frame| {
        if rng.chance(weather.loss) {
            return Vec::new();
        }
        if rng.chance(weather.damage) {
            let bit = usize::try_from(rng.below(frame.len() as u64 * 8)).unwrap_or_default();
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        let copies = 1 + usize::from(rng.chance(weather.repeat));
        (0..copies)
            .map(|_| {
                let late = if rng.chance(weather.late) {
                    rng.below(1_000)
                } else {
                    0
                };
                Duration::from_millis(late)
            })
            .collect()
    });
}

/// Weather of a random kind.
fn any_weather(rng: &mut Rng) -> Weather {
    Weather {
        loss: rng.unit_f64() * 0.6,
        repeat: rng.unit_f64() * 0.2,
        late: rng.unit_f64() * 0.2,
        damage: rng.unit_f64() * 0.1,
    }
}

fn any_config(rng: &mut Rng) -> SlacpConfig {
    let small = |rng: &mut Rng, below| u8::try_from(rng.below(below)).unwrap_or_default();
    SlacpConfig {
        lanes: 1 + small(rng, 3),
        ordinary: LaneSettings {
            arq: true,
            fec: rng.chance(0.5),
            persistence: small(rng, 5),
        },
        ..SlacpConfig::default()
    }
}

/// Asserts that the memory of either end is bounded.
fn assert_bounded(pair: &Pair, seed: u64) {
    for end in 0..2 {
        let machine = pair.machine(end);
        for sender in &machine.senders {
            let kept = sender.next().offset_from(sender.floor());
            assert!(kept <= WINDOW, "{kept} packets kept, seed {seed}");
        }
        for receiver in &machine.receivers {
            let held = receiver.end().offset_from(receiver.expected());
            assert!(held <= WINDOW, "{held} places held, seed {seed}");
        }
    }
}

/// Runs a session: frames are lost, repeated, late and damaged, ends restart, and octets come out
/// of nowhere; then the medium heals.
fn session(seed: u64) {
    let mut rng = Rng::from_seed(seed);
    let mut pair = Pair::new(any_config(&mut rng), seed);
    let weather = any_weather(&mut rng);
    storm(&mut pair, weather, seed);
    for round in 0..4_u32 {
        pair.offer(0, 0, 0, packets(round * 20, 20));
        pair.offer(1, 0, 0, packets(round * 20, 5));
        pair.run_for(Duration::from_millis(rng.below(900)));
        assert_bounded(&pair, seed);
        if rng.chance(0.3) {
            let end = usize::from(rng.chance(0.5));
            pair.restart(end);
        }
        let nonsense: Vec<u8> = (0..rng.below(60))
            .map(|_| rng.next_u64().to_le_bytes()[0])
            .collect();
        pair.inject(0, &nonsense);
        pair.inject(1, &nonsense);
    }
    pair.run_out();
    pair.fate = Box::new(|_, _, _| intact());
    // The storm may have dropped every frame that told of an end's existence: one exchange each
    // way.
    pair.offer(0, 0, 0, packets(900, 1));
    pair.offer(1, 0, 0, packets(900, 1));
    pair.run_out();
    for from in 0..2 {
        pair.offer(from, 0, 0, packets(1_000, 20));
    }
    pair.run_out();
    for end in 0..2 {
        let released = pair.released(end);
        assert!(in_order_and_once(released), "seed {seed}");
        let healed = packets(1_000, 20);
        assert!(
            released.ends_with(&healed),
            "seed {seed}: not all came when the medium had healed"
        );
        let sent: Vec<Vec<u8>> = (0..5)
            .flat_map(|round| packets([0, 20, 40, 60, 900][round], 20))
            .collect();
        let known = |packet: &Vec<u8>| sent.contains(packet) || healed.contains(packet);
        assert!(
            released.iter().all(known),
            "seed {seed}: a packet that nobody sent"
        );
    }
    assert_bounded(&pair, seed);
}

#[test]
fn ten_thousand_random_sessions_keep_what_is_promised() {
    for seed in 0..10_000 {
        session(seed);
    }
}

/// No packet that arrives waits longer for those before it than the receiver's patience.
#[test]
fn persistence_bounds_how_long_a_packet_waits_for_those_before_it() {
    for seed in 0..1_000 {
        let mut rng = Rng::from_seed(seed);
        let config = SlacpConfig {
            lanes: 1,
            ..any_config(&mut rng)
        };
        let patience = Timing::new(&config, MEDIUM).patience(config.ordinary.persistence);
        let mut pair = Pair::new(config, seed);
        // The ends know each other; frames that are not understood would not count as arrived.
        pair.offer(0, 0, 0, packets(0, 1));
        pair.run_out();
        let weather = Weather {
            damage: 0.0,
            ..any_weather(&mut rng)
        };
        storm(&mut pair, weather, seed);
        pair.offer(0, 0, 0, packets(1, 60));
        pair.run_out();
        let longest = pair
            .released(1)
            .iter()
            .zip(pair.released_at(1))
            .map(|(packet, at)| {
                // A packet that parity rebuilt came in no frame of its own.
                let arrived = pair.arrived.get(packet).copied().unwrap_or(*at);
                at.saturating_since(arrived)
            });
        let longest = longest.max().unwrap_or_default();
        assert!(
            longest <= patience,
            "{longest:?} of {patience:?}, {config:?}, seed {seed}"
        );
    }
}

/// Packets that nobody understood for long are not retransmitted, so that new ones come in time.
#[test]
fn a_backlog_that_nobody_heard_is_given_up_when_the_peer_is_met() {
    let mut pair = Pair::new(SlacpConfig::default(), 1);
    pair.fate = Box::new(|_, _, _| Vec::new());
    for number in 0..60 {
        pair.offer(0, 0, 0, packets(number, 1));
        pair.run_for(Duration::from_millis(50));
    }
    pair.run_for(Duration::from_secs(2));
    pair.fate = Box::new(|_, _, _| intact());
    pair.offer(0, 0, 0, packets(60, 10));
    pair.run_out();
    assert_eq!(pair.released(1), packets(60, 10));
    assert_eq!(pair.machine(0).counters().given_up, 60);
}

#[test]
fn packets_for_an_end_that_restarted_come_when_it_has_been_met_again() {
    for restarted in 0..2 {
        let mut pair = Pair::new(SlacpConfig::default(), 1);
        pair.offer(0, 0, 0, packets(0, 20));
        pair.offer(1, 0, 0, packets(0, 20));
        pair.run_out();
        assert_eq!(pair.released(1), packets(0, 20));
        // The first frames that it sends are lost.
        pair.fate = Box::new(|_, _, _| Vec::new());
        pair.restart(restarted);
        pair.run_for(Duration::from_secs(1));
        pair.fate = Box::new(|_, _, _| intact());
        for end in 0..2 {
            pair.offer(end, 0, 0, packets(20, 10));
        }
        pair.run_out();
        for end in 0..2 {
            assert!(pair.released(end).ends_with(&packets(20, 10)), "end {end}");
        }
    }
}
