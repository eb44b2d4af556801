//! AeroTP whose payload length and parity follow the bit error rate.
//!
//! Method: 622 Mbit/s over the optical presets; each setting meets the same courses of light. Fixed seeds.

mod fixture;

use fixture::run;
use fulmar_sim::experiment::PointResult;

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
    let adaptive = goodput(&optical(fading, &["flow.adapt=2ms"]));
    for words in ["0", "6", "12", "24"] {
        let strength = format!("flow.fec_words={words}");
        let fixed = goodput(&optical(fading, &[&strength]));
        println!("{words} words {fixed:.4}, adaptive {adaptive:.4}");
        assert!(adaptive > fixed, "{words} words: {fixed}, {adaptive}");
    }
}

/// The best fixed strength for independent errors is known: the adaptive one has to find it, but for
/// what it loses while it learns and what its own steps cost.
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
fn over_a_clean_link_it_costs_four_octets_an_acknowledgement() {
    let plain = optical("", &[]);
    let adaptive = optical("", &["flow.adapt=2ms"]);
    for (plain, adaptive) in plain.runs.iter().zip(&adaptive.runs) {
        let (plain, adaptive) = (&plain.metrics, &adaptive.metrics);
        assert_eq!(plain.flow.delivered_bytes, adaptive.flow.delivered_bytes);
        assert_eq!(adaptive.wire_bytes.repair, 0);
        // A MACK of one word has 44 octets with its network header.
        let ratio = adaptive.wire_bytes.control as f64 / plain.wire_bytes.control as f64;
        assert!((1.0..=48.0 / 44.0).contains(&ratio), "{ratio}");
    }
}
