//! Random sessions of link layers: packets come out at the other end once, whole, in order and in time,
//! whatever the medium does to frames and however often an end restarts.
//!
//! A seed draws, for every layer, a hop with loss, bursts, inverted bits, duplicates, reordering and
//! outages, frames of nonsense and frames that were held up, some from before a restart, restarts of either
//! end, and packets of all lengths both ways. Then the faults end, and packets offered from then on must
//! all arrive. After every event the octets that an end keeps are checked. At every release the packet must
//! be one that was sent, later than the last, and in time. The plain layer has no numbers, so its media do
//! not duplicate. Frames that are sound and lie are left to the fuzzer
//! (`fuzz/fuzz_targets/link_machine.rs`): a link layer trusts its peer.

mod hop;

use crate::experiment::{ExperimentError, ExperimentProgress, pool};
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use fulmar_baseline::link::{
    ArqConfig, ArqScheme, HarqConfig, LaneSettings, LinkLayer, SlacpConfig,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration};
use hop::{Faults, Hop, LONGEST, Promise, medium};
use rayon::prelude::*;
use serde::Serialize;

/// The totals of the sessions of one link layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkLayerTotals {
    /// The layer, as scenarios name it.
    pub layer: &'static str,
    /// Sessions that ran to their end.
    pub sessions: u64,
    /// Sessions that broke a promise.
    pub broken: u64,
    /// Octets of packets that came out.
    pub delivered_bytes: u64,
    /// Frames that were sent.
    pub frames: u64,
    /// Frames that the medium lost.
    pub frames_lost: u64,
    /// Frames that the medium damaged.
    pub frames_damaged: u64,
    /// Restarts of ends.
    pub restarts: u64,
}

/// The report of a seed's sessions.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkReport {
    pub(super) broken: Vec<String>,
    /// The totals of each layer whose session was not cancelled.
    pub(super) layers: Vec<LinkLayerTotals>,
}

impl LinkReport {
    /// A count over all layers.
    pub(super) fn sum(&self, count: impl Fn(&LinkLayerTotals) -> u64) -> u64 {
        self.layers.iter().map(count).sum()
    }
}

/// The totals of many seeds' sessions of link layers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkSwarmTotals {
    /// Layer by layer.
    pub layers: Vec<LinkLayerTotals>,
    /// The seeds whose sessions broke promises, in order, and the promises.
    pub failures: Vec<LinkFailure>,
}

/// A seed whose session of some link layer broke a promise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkFailure {
    /// The seed.
    pub seed: u64,
    /// The layers, and the promises that they broke.
    pub broken: Vec<String>,
}

/// Runs the sessions of `seeds`, one of each link layer for each, on `jobs` threads (0: one for each core).
/// Cancelling ends early with the sessions done until then.
///
/// # Errors
/// The threads could not be started.
pub fn link_sessions(
    seeds: Range<u64>,
    jobs: usize,
    progress: &ExperimentProgress,
) -> Result<LinkSwarmTotals, ExperimentError> {
    let reports: Vec<(u64, LinkReport)> = pool(jobs)?.install(|| {
        seeds
            .into_par_iter()
            .map(|seed| {
                let caught = std::panic::catch_unwind(|| session(seed, &progress.cancel));
                let report = caught.unwrap_or_else(|_| LinkReport {
                    broken: vec!["panicked".to_owned()],
                    layers: Vec::new(),
                });
                progress.advance(1);
                (seed, report)
            })
            .collect()
    });
    let layers = LAYERS.map(|layer| LinkLayerTotals {
        layer,
        ..LinkLayerTotals::default()
    });
    let mut totals = LinkSwarmTotals {
        layers: layers.to_vec(),
        failures: Vec::new(),
    };
    for (seed, report) in reports {
        for (total, of_seed) in totals.layers.iter_mut().zip(&report.layers) {
            total.sessions += 1;
            total.broken += of_seed.broken;
            total.delivered_bytes += of_seed.delivered_bytes;
            total.frames += of_seed.frames;
            total.frames_lost += of_seed.frames_lost;
            total.frames_damaged += of_seed.frames_damaged;
            total.restarts += of_seed.restarts;
        }
        if !report.broken.is_empty() {
            let broken = report.broken;
            totals.failures.push(LinkFailure { seed, broken });
        }
    }
    Ok(totals)
}

/// Every layer by name.
const LAYERS: [&str; 8] = [
    "plain",
    "stop-and-wait",
    "go-back-n",
    "selective-repeat",
    "nak-only",
    "ll-arq",
    "ll-harq",
    "slacp",
];

/// Draws, runs and checks a session of each layer.
///
/// # Panics
/// A machine or its driver broke the contract, in builds that check it.
pub(super) fn session(seed: u64, cancel: &AtomicBool) -> LinkReport {
    let mut report = LinkReport::default();
    for name in LAYERS {
        if cancel.load(Relaxed) {
            break;
        }
        let rng = Rng::from_seed(seed).child("swarm-links").child(name);
        let mut hop = drawn(name, rng);
        hop.run();
        report.layers.push(LinkLayerTotals {
            layer: name,
            sessions: 1,
            broken: u64::from(!hop.broken.is_empty()),
            delivered_bytes: hop.delivered_bytes,
            frames: hop.frames,
            frames_lost: hop.frames_lost,
            frames_damaged: hop.frames_damaged,
            restarts: hop.restarts,
        });
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

fn drawn(name: &str, mut rng: Rng) -> Hop {
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
        restarts: rng.below(4),
    };
    let (layer, mut promise) = layer(name, &mut rng, rate, delay);
    if name == "nak-only" {
        // A sender that hears of no arrival does not wait until its new life is known.
        promise.repairs = faults.restarts == 0;
    }
    Hop::new(layer, promise, (rate, delay), faults, rng)
}

/// The layer with settings of its own, and its promise under them.
fn layer(name: &str, rng: &mut Rng, rate: Bitrate, delay: Duration) -> (LinkLayer, Promise) {
    match name {
        "stop-and-wait" => arq(ArqConfig::STOP_AND_WAIT, rng, rate, delay),
        "go-back-n" => arq(ArqConfig::GO_BACK_N, rng, rate, delay),
        "selective-repeat" => arq(ArqConfig::SELECTIVE_REPEAT, rng, rate, delay),
        "nak-only" => arq(ArqConfig::NAK_ONLY, rng, rate, delay),
        "ll-arq" => arq(ArqConfig::LL_ARQ, rng, rate, delay),
        "ll-harq" => harq(rng, rate, delay),
        "slacp" => slacp(rng, rate, delay),
        _ => {
            let promise = Promise {
                in_order: true,
                repairs: true,
                patience: delay + frame_time(rate) * 2,
                memory: packets(1),
            };
            (LinkLayer::Plain, promise)
        }
    }
}

/// The sending time of the longest frame, with a layer's own octets.
fn frame_time(rate: Bitrate) -> Duration {
    rate.time_to_send(ByteCount::from_usize(LONGEST + 50))
}

/// The octets of `count` of the longest packets.
fn packets(count: usize) -> ByteCount {
    ByteCount::from_usize(count * LONGEST)
}

fn arq(preset: ArqConfig, rng: &mut Rng, rate: Bitrate, delay: Duration) -> (LinkLayer, Promise) {
    let window = narrow(1 + rng.below(64)).min(preset.window);
    let retries = u8::try_from(rng.below(8)).unwrap_or_default();
    let config = ArqConfig {
        window,
        retries,
        ..preset
    };
    let frame = frame_time(rate);
    let tries = u32::from(retries) + 1;
    let way = delay * 2 + frame;
    let timeout = way + (way / 4).max(frame * 3);
    // Each try waits for its timer, and for a window of other frames that are sent again, each with an
    // acknowledgement or a frame about its life.
    let sending = (timeout + frame * 2 * u32::from(window)) * tries;
    let sending = match preset.scheme {
        // Of the frames that are outstanding only the first's timer counts a try, and those after it
        // go again with it.
        ArqScheme::GoBackN => sending * u32::from(window),
        // It may be asked for as long as its receiver asks, and once more.
        ArqScheme::NakOnly => sending + timeout,
        ArqScheme::StopAndWait | ArqScheme::SelectiveRepeat => sending,
    };
    // The receiver holds what came behind a hole, and in every scheme what came from a life that is not
    // confirmed yet.
    let hold = timeout * (tries + tries / 2 + 1);
    let promise = Promise {
        in_order: config.keeps_order(),
        repairs: true,
        patience: sending + hold + delay + frame * 2,
        // A window to send and one more, one to release, and one of a life that is not confirmed yet.
        memory: packets(usize::from(window) * 3 + 1),
    };
    (LinkLayer::Arq(config), promise)
}

/// The sources of a block of LL-HARQ, or as many repair symbols in their place.
const HARQ_BLOCK_UNITS: usize = HarqConfig::FRAGMENTS_MAX as usize;

fn harq(rng: &mut Rng, rate: Bitrate, delay: Duration) -> (LinkLayer, Promise) {
    let window = narrow(1 + rng.below(64));
    let config = HarqConfig {
        fragments: u8::try_from(1 + rng.below(20)).unwrap_or(1),
        // A stream of its own moves no other draw.
        adaptive: rng.child("adaptive").chance(0.5),
        units: u8::try_from(1 + rng.below(192)).unwrap_or(1),
        memory: u32::from(narrow(10 + rng.below(2_000))),
        window,
        ..HarqConfig::default()
    };
    // Both rounds of a window of blocks, each of as many units as the code has; the receiver's wait for the sender's
    // word about its life, and for a second round; and the way there.
    let least = if config.adaptive { 1 } else { config.fragments };
    let unit = rate.time_to_send(ByteCount(70)) + frame_time(rate) / u32::from(least);
    let part = LONGEST / usize::from(least) + 54;
    let blocks = unit * 255 * u32::from(window) * 2;
    let verdict = delay * 2 + unit * (3 * 255 + 10);
    let promise = Promise {
        in_order: true,
        repairs: true,
        patience: blocks + verdict * 2 + delay,
        // A window of blocks to send, one to release, a block that is not in it, and 1,024 units of a life
        // that is not confirmed yet. A block has 64 units, and a packet that is put together.
        memory: ByteCount::from_usize(
            (usize::from(window) * 2 + 1) * (HARQ_BLOCK_UNITS * part + LONGEST) + 1_024 * part,
        ),
    };
    (LinkLayer::LlHarq(config), promise)
}

fn slacp(rng: &mut Rng, rate: Bitrate, delay: Duration) -> (LinkLayer, Promise) {
    let persistence = u8::try_from(rng.below(5)).unwrap_or_default();
    let config = SlacpConfig {
        ordinary: LaneSettings {
            arq: true,
            fec: rng.chance(0.5),
            persistence,
        },
        ack_delay: Duration::from_millis(1 + rng.below(400)),
        ..SlacpConfig::default()
    };
    let promise = Promise {
        in_order: true,
        repairs: persistence > 0,
        // A hello and acknowledgements may go before a packet.
        patience: config.delay_max(medium(rate, delay)) + delay + frame_time(rate) * 4,
        // Packets that are sent and packets that wait for others are at most a window each; frames that are
        // sent again and frames that are rebuilt are at most 512 packets and four blocks.
        memory: packets(4_096 * 2 + 512 + 4 * 64),
    };
    (LinkLayer::Slacp(config), promise)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seeds_sessions_are_the_same_each_time_and_see_faults() {
        let seeds = || link_sessions(0..20, 1, &ExperimentProgress::default()).unwrap();
        let totals = seeds();
        assert_eq!(totals.failures, []);
        assert_eq!(totals, seeds());
        assert_eq!(totals.layers.len(), LAYERS.len());
        for layer in &totals.layers {
            assert_eq!(layer.sessions, 20);
            assert!(layer.frames_lost > 100, "{layer:?}");
            assert!(
                layer.frames_damaged > 20 && layer.restarts > 10,
                "{layer:?}"
            );
        }
    }
}
