//! AeroTP whose payload length and parity follow the bit error rate.
//!
//! Method: 622 Mbit/s over the optical presets; each setting meets the same courses of received power.
//! Fixed seeds.

use crate::fixture::run;
use fulmar_sim::experiment::PointResult;
use fulmar_sim::report::adaptation::AdaptationMetrics;

fn optical(channel: &str, more: &[&str]) -> PointResult {
    let text = format!(
        "[run]\nduration = \"1s\"\nruns = 2\n[hop]\nrate = \"622mbit\"\ndelay = \"1334ns\"\n\
         queue = \"unlimited\"\n{channel}\n[flow]\ntransport = \"aerotp\"\nmode = \"nack-mack\"\n\
         bytes = \"100GB\"\nmtu = \"1540B\"\nwindow = 16384\nsend_buffer = \"32MB\"\n"
    );
    let result = run(&text, more).remove(0);
    for run in &result.runs {
        assert_eq!(run.error, None, "seed {}", run.seed);
    }
    result
}

fn goodput(result: &PointResult) -> f64 {
    let summary = result.aggregate.summary("goodput_bps").copied();
    summary.and_then(|summary| summary.mean).expect("it runs") / 622e6
}

#[test]
fn over_a_fading_link_it_beats_every_fixed_strength_chosen_in_hindsight() {
    let fading = "fading = \"testbed ber 1e-4 seed run over 1s\"";
    let adaptive = optical(fading, &["flow.adapt=2ms"]);
    for run in &adaptive.runs {
        let chosen = run.metrics.adaptation;
        println!("seed {}: {chosen:?}", run.seed);
        assert!(chosen.switched > 0, "{chosen:?}");
        assert!(
            chosen
                .payload_mean_bytes
                .is_some_and(|payload| (500.0..1500.0).contains(&payload))
        );
        assert!(chosen.fec_words_mean.is_some_and(|words| words > 0.0));
        assert!(
            chosen
                .expected_ber
                .is_some_and(|rate| (1e-12..1e-4).contains(&rate))
        );
    }
    let adaptive = goodput(&adaptive);
    for words in ["0", "6", "12", "24"] {
        let strength = format!("flow.fec_words={words}");
        let fixed = goodput(&optical(fading, &[&strength]));
        println!("{words} words {fixed:.4}, adaptive {adaptive:.4}");
        assert!(adaptive > fixed, "{words} words: {fixed}, {adaptive}");
    }
}

/// Fades of 2 ms, a round trip of 17 ms: a report about one fade arrives during another. The best fixed
/// strength of the page (`fulmar reproduce fso`, table `rough`) is 12 words.
#[test]
fn where_fades_are_shorter_than_the_round_trip_it_is_within_one_per_cent_of_the_best_fixed_strength()
 {
    let fading = "fading = \"kiodo ber 1e-4 seed run over 2s\"";
    let over = |more: &[&str]| {
        let sets = [&["hop.delay=0s", "run.duration=2s"], more].concat();
        goodput(&optical(fading, &sets))
    };
    let (adaptive, fixed) = (over(&["flow.adapt=2ms"]), over(&["flow.fec_words=12"]));
    println!("12 words {fixed:.4}, adaptive {adaptive:.4}");
    assert!(adaptive > 0.99 * fixed, "{adaptive}, {fixed}");
}

/// The received power is known at once: over a short link hardly a TPDU meets a fade unprepared.
#[test]
fn received_power_as_another_source_of_the_estimate_loses_nothing() {
    let fading = "fading = \"testbed ber 1e-4 seed run over 1s\"";
    let errors = optical(fading, &["flow.adapt=2ms"]);
    let power = optical(fading, &["flow.adapt=2ms", "flow.adapt_power=true"]);
    assert_ne!(errors.runs[0].metrics, power.runs[0].metrics, "it is heard");
    let (errors, power) = (goodput(&errors), goodput(&power));
    println!("by errors {errors:.4}, by power too {power:.4}");
    assert!(power > errors - 0.002, "{errors}, {power}");
}

/// The best fixed strength for independent errors is known. The adaptive one has to find it; it may lose
/// only what learning and the size of its own steps cost.
#[test]
fn over_a_steady_link_it_comes_within_two_per_cent_of_the_best_fixed_strength() {
    for ber in ["1e-5", "1e-4"] {
        let channel = format!("ber = \"{ber}\"");
        let adaptive = goodput(&optical(&channel, &["flow.adapt=2ms"]));
        let strengths = ["6", "9", "12", "15", "18", "24"];
        let fixed = strengths.map(|words| {
            let strength = format!("flow.fec_words={words}");
            goodput(&optical(&channel, &[&strength]))
        });
        let best = fixed.iter().copied().fold(0.0, f64::max);
        println!("{ber}: adaptive {adaptive:.4}, best fixed {best:.4}");
        assert!(adaptive > 0.98 * best, "{ber}: {adaptive} of {best}");
    }
}

#[test]
fn over_a_clean_link_it_costs_four_octets_an_acknowledgement_and_nothing_after_the_first_round_trip()
 {
    let plain = optical("", &[]);
    let adaptive = optical("", &["flow.adapt=2ms"]);
    for (plain, adaptive) in plain.runs.iter().zip(&adaptive.runs) {
        let (plain, adaptive) = (&plain.metrics, &adaptive.metrics);
        // TPDUs are 48 octets shorter until the first MACK is back.
        let fewer = plain.flow.delivered_bytes - adaptive.flow.delivered_bytes;
        assert!(fewer < 100 * 48, "{fewer}");
        assert_eq!(adaptive.wire_bytes.repair, 0);
        assert_eq!(plain.adaptation, AdaptationMetrics::default());
        assert_eq!(adaptive.adaptation.fec_words_mean, Some(0.0));
        // A MACK of one word has 44 octets with its network header.
        let ratio = adaptive.wire_bytes.control as f64 / plain.wire_bytes.control as f64;
        assert!((1.0..=48.0 / 44.0).contains(&ratio), "{ratio}");
    }
}
