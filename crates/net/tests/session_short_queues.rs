//! A rate that nobody told, alone over queues of three packets and policers, loses little by its own doing through sessions.
//!
//! Method: two sessions without encryption, with AeroTP inside, in virtual time, set up as gateways set them up: packets are
//! cut short to learn whether length matters, and answers and words of the session leave beside data. The medium counts what its
//! queue or its policer drops, apart from what it loses at random.

use super::session_pair::{Copies, Medium, Pair, Way, endpoint_config, octets, unprotected};
use fulmar_net::session::{path_acks, wire_2};
use fulmar_proto::rate::RateSharing;
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{EndpointConfig, RateSource};
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

const RATE: Bitrate = Bitrate::from_bits_per_second(10_000_000);
const LINE: Bitrate = Bitrate::from_bits_per_second(1_000_000_000);
const DELAY: Duration = Duration::from_millis(5);
/// Headers of IPv4 and UDP.
const HEADERS: usize = 28;
/// The packets that wait in the short queue, and the octets of the policer's bucket.
const QUEUE: usize = 3;
const BUCKET: f64 = 15_000.0;
const SECONDS: u64 = 20;

#[derive(Clone, Copy, Debug)]
enum Narrow {
    Queue,
    Policer,
}

/// What the narrow place did.
#[derive(Default)]
struct Counted {
    offered: u64,
    dropped: u64,
}

/// A way of 10 mbit: behind a queue of three packets, or behind a policer on a fast line.
struct Lane {
    narrow: Narrow,
    leaving: VecDeque<Instant>,
    tokens: f64,
    filled_at: Instant,
}

impl Lane {
    fn new(narrow: Narrow) -> Self {
        Self {
            narrow,
            leaving: VecDeque::new(),
            tokens: BUCKET,
            filled_at: Instant::START,
        }
    }

    /// The delay of a datagram that enters now, if it is not dropped.
    fn pass(&mut self, now: Instant, octets: usize) -> Option<Duration> {
        let wire = octets + HEADERS;
        let rate = match self.narrow {
            Narrow::Queue => RATE,
            Narrow::Policer => {
                let filled = now.saturating_since(self.filled_at).as_secs_f64();
                self.filled_at = now;
                let rate = RATE.as_bits_per_second() as f64 / 8.0;
                self.tokens = (self.tokens + rate * filled).min(BUCKET);
                if self.tokens < wire as f64 {
                    return None;
                }
                self.tokens -= wire as f64;
                LINE
            }
        };
        while self.leaving.front().is_some_and(|at| *at <= now) {
            self.leaving.pop_front();
        }
        // One is on its way.
        if self.leaving.len() > QUEUE && matches!(self.narrow, Narrow::Queue) {
            return None;
        }
        let free = self.leaving.back().copied().unwrap_or(now);
        let leaves = free + rate.time_to_send(ByteCount::from_usize(wire));
        self.leaving.push_back(leaves);
        Some(leaves.saturating_since(now) + DELAY)
    }
}

fn narrow(narrow: Narrow, loss: f64, seed: u64, counted: &Rc<RefCell<Counted>>) -> Medium {
    let mut lanes = [Lane::new(narrow), Lane::new(narrow)];
    let mut rng = Rng::from_seed(seed).child("medium");
    let counted = Rc::clone(counted);
    Box::new(move |way, now, path, octets| -> Copies {
        let passes = lanes[way as usize].pass(now, octets.len());
        if way == Way::Forward {
            let mut counted = counted.borrow_mut();
            counted.offered += 1;
            counted.dropped += u64::from(passes.is_none());
        }
        let arrives = passes.filter(|_| !rng.chance(loss));
        arrives
            .into_iter()
            .map(|delay| (delay, path, octets.to_vec()))
            .collect()
    })
}

/// The share of the ideal that arrived after the first 7 s, and the part of all packets that was dropped by the sender's own doing.
fn alone(place: Narrow, loss: f64, sharing: RateSharing, seed: u64) -> [f64; 2] {
    let counted = Rc::default();
    let configs = unprotected().map(|mut config| {
        config.capabilities = vec![wire_2(), path_acks()];
        config
    });
    let config = EndpointConfig {
        rate: RateSource::Found {
            bound: None,
            first: None,
            sharing,
        },
        burst: Duration::from_micros(500),
        follows_length: true,
        ..endpoint_config()
    };
    let medium = narrow(place, loss, seed, &counted);
    let mut pair = Pair::with_endpoints(configs, config, medium);
    pair.run(Duration::from_millis(1_000 + 37 * seed));
    let began = pair.now;
    pair.send(&octets(30_000_000));
    pair.run(Duration::from_secs(SECONDS));
    let from = began + Duration::from_secs(7);
    let before = pair.app(Way::Back).arrivals.iter();
    let before = before.take_while(|(at, _)| *at <= from).last();
    let came = pair.app(Way::Back).received.len() - before.map_or(0, |(_, octets)| *octets);
    let seconds = pair.now.saturating_since(from).as_secs_f64();
    let ideal = RATE.as_bits_per_second() as f64 / 8.0 * (1.0 - loss) * 1_472.0 / 1_500.0;
    let counted = counted.borrow();
    let dropped = counted.dropped as f64 / counted.offered as f64;
    [came as f64 / seconds / ideal, dropped]
}

#[test]
fn short_queues_and_policers_drop_little_of_what_sessions_send() {
    const SEEDS: u64 = 2;
    for (place, loss, sharing, most) in [
        (Narrow::Queue, 0.0, RateSharing::Own, 0.004),
        (Narrow::Queue, 0.1, RateSharing::Own, 0.02),
        (Narrow::Policer, 0.0, RateSharing::Own, 0.02),
    ] {
        let all: Vec<[f64; 2]> = (0..SEEDS)
            .map(|seed| alone(place, loss, sharing, seed))
            .collect();
        let mean = |part: usize| all.iter().map(|of| of[part]).sum::<f64>() / SEEDS as f64;
        let (name, share, dropped) = (format!("{place:?}, {loss}, {sharing:?}"), mean(0), mean(1));
        println!("{name}: {share:.3}, dropped {dropped:.4}");
        assert!(share > 0.9, "{name}: {share}");
        assert!(dropped < most, "{name}: {dropped}");
    }
}
