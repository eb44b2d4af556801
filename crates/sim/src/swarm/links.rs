//! Random sessions of link layers: what leaves one end comes out at the other once, whole, in
//! order and in time, whatever the medium does to frames and however often an end restarts.
//!
//! A seed draws, for every layer, a hop with loss, bursts, inverted bits, duplicates, reordering
//! and outages, frames of nonsense and repeats of old ones, restarts of either end, and packets of
//! all lengths both ways. Then the faults end, and what is offered from then on must all arrive.
//! The plain layer has no numbers, so its media do not duplicate. Frames that are sound and lie are
//! the fuzzer's (`fuzz/fuzz_targets/link_machine.rs`): a link layer trusts its peer.

mod hop;

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use fulmar_proto::link::{ArqConfig, ArqScheme, HarqConfig, LinkLayer, SlacpConfig};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration};
use hop::{Faults, Hop, LONGEST};

/// What a seed's sessions did.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkReport {
    pub(super) broken: Vec<String>,
    /// Octets of packets that came out.
    pub(super) delivered_bytes: u64,
    pub(super) frames: u64,
    pub(super) frames_lost: u64,
    pub(super) frames_damaged: u64,
    pub(super) restarts: u64,
}

/// Every layer by name, and whether it keeps the order of packets.
const LAYERS: [(&str, bool); 7] = [
    ("plain", true),
    ("stop-and-wait", true),
    ("go-back-n", true),
    ("selective-repeat", false),
    ("ll-arq", true),
    ("ll-harq", true),
    ("slacp", true),
];

/// Draws, runs and checks a session of each layer.
///
/// # Panics
/// A machine or its driver broke the contract, in builds that check it.
pub(super) fn session(seed: u64, cancel: &AtomicBool) -> LinkReport {
    let mut report = LinkReport::default();
    for (name, in_order) in LAYERS {
        if cancel.load(Relaxed) {
            break;
        }
        let rng = Rng::from_seed(seed).child("swarm-links").child(name);
        let mut hop = drawn(name, in_order, rng);
        hop.run();
        report.delivered_bytes += hop.delivered_bytes;
        report.frames += hop.frames;
        report.frames_lost += hop.frames_lost;
        report.frames_damaged += hop.frames_damaged;
        report.restarts += hop.restarts;
        let broken = hop.broken.iter();
        report
            .broken
            .extend(broken.map(|what| format!("{name}: {what}")));
    }
    report
}

/// Uniform over the orders of magnitude between `low` and `high`.
fn scale(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.unit_f64())
}

fn share(rng: &mut Rng, likely: f64, most: f64) -> f64 {
    if rng.chance(likely) {
        most * rng.unit_f64()
    } else {
        0.0
    }
}

fn narrow(value: u64) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

fn drawn(name: &str, in_order: bool, mut rng: Rng) -> Hop {
    let rate = scale(&mut rng, 1e5, 1e8).round();
    let delay = Duration::from_secs_f64(scale(&mut rng, 1e-5, 0.1));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "100,000 to 100,000,000"
    )]
    let rate = Bitrate::from_bits_per_second(rate as u64);
    let repeats = name != "plain";
    let faults = Faults {
        loss: share(&mut rng, 0.8, 0.6),
        damage: share(&mut rng, 0.5, 0.2),
        duplicate: if repeats {
            share(&mut rng, 0.3, 0.1)
        } else {
            0.0
        },
        // What is late may be overtaken, which a layer without numbers cannot notice.
        late: if repeats {
            share(&mut rng, 0.3, 0.2)
        } else {
            0.0
        },
        nonsense: share(&mut rng, 0.5, 0.1),
        old: if repeats {
            share(&mut rng, 0.3, 0.05)
        } else {
            0.0
        },
        outages: rng.below(3),
        // SLACP's restarts are tested with its machine: what is offered right after one may be lost.
        restarts: if name == "slacp" { 0 } else { rng.below(4) },
    };
    let (layer, patience) = layer(name, &mut rng, rate, delay);
    Hop::new(layer, in_order, (rate, delay), faults, patience, rng)
}

/// The layer with settings of its own, and how long a packet may take from being taken to coming
/// out; `None` where no clock bounds it but the peer's next frame.
fn layer(
    name: &str,
    rng: &mut Rng,
    rate: Bitrate,
    delay: Duration,
) -> (LinkLayer, Option<Duration>) {
    let frame = rate.time_to_send(ByteCount::from_usize(LONGEST + 50));
    let window = narrow(1 + rng.below(64));
    let retries = u8::try_from(rng.below(8)).unwrap_or_default();
    let arq = |preset: ArqConfig| {
        let config = ArqConfig {
            window: window.min(preset.window),
            retries,
            ..preset
        };
        // Each try waits for its timer and for a window of others at most, and what arrived for one
        // and a half times as long.
        let wait = delay * 2 + frame * 4 + frame * 2 * u32::from(window);
        let tries = u32::from(retries) + 1;
        // In go-back-N only the timer of the first counts tries, so those before a frame come first.
        let before = if preset.scheme == ArqScheme::GoBackN {
            u32::from(config.window)
        } else {
            1
        };
        (
            LinkLayer::Arq(config),
            Some(wait * (tries * 3 + 2) * before),
        )
    };
    match name {
        "stop-and-wait" => arq(ArqConfig::STOP_AND_WAIT),
        "go-back-n" => arq(ArqConfig::GO_BACK_N),
        "selective-repeat" => arq(ArqConfig::SELECTIVE_REPEAT),
        "ll-arq" => arq(ArqConfig::LL_ARQ),
        "ll-harq" => {
            let config = HarqConfig {
                fragments: u8::try_from(1 + rng.below(20)).unwrap_or(1),
                memory: u32::from(narrow(10 + rng.below(2_000))),
                window,
                ..HarqConfig::default()
            };
            // Both rounds of a window of blocks, each of as many units as the code has, and the
            // receiver's patience with them.
            let unit = rate.time_to_send(ByteCount(70)) + frame / u32::from(config.fragments);
            let blocks = unit * 255 * u32::from(window) * 2;
            let verdict = delay * 2 + unit * (3 * 255 + 10);
            (LinkLayer::LlHarq(config), Some(blocks + verdict * 2))
        }
        "slacp" => (LinkLayer::Slacp(SlacpConfig::default()), None),
        _ => (LinkLayer::Plain, Some(delay + frame * 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seeds_sessions_are_the_same_each_time_and_see_faults() {
        let never = AtomicBool::new(false);
        let mut total = LinkReport::default();
        for seed in 0..20 {
            let report = session(seed, &never);
            assert_eq!(report.broken, session(seed, &never).broken, "seed {seed}");
            assert!(report.broken.is_empty(), "seed {seed}: {:?}", report.broken);
            total.frames_lost += report.frames_lost;
            total.frames_damaged += report.frames_damaged;
            total.restarts += report.restarts;
        }
        assert!(total.frames_lost > 1_000, "{total:?}");
        assert!(
            total.frames_damaged > 200 && total.restarts > 50,
            "{total:?}"
        );
    }
}
