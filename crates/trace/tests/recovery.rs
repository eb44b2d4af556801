//! The parameters come back: losses drawn from a model of known parameters are fitted, and the
//! parameters lie within the stated intervals as often as stated; other models are rejected.
//!
//! Method: the channel of the simulator makes the losses, from fixed seeds. A 95 % interval that
//! holds its level misses about one in twenty; for N independent ones the misses are binomial, and
//! four standard deviations above the mean are allowed.

#![expect(
    clippy::unwrap_used,
    reason = "a case that cannot be made is a failed case"
)]

use fulmar_channel::{Channel, ChannelConfig, ChannelVerdict};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration, Instant};
use fulmar_trace::Losses;
use fulmar_trace::fit::{Fit, Fitted, Model, fit};

/// Packets sent at these instants, in microseconds, over a channel with this loss.
fn losses(loss: &str, seed: u64, sent: impl Iterator<Item = u64>, timed: bool) -> Losses {
    let config = ChannelConfig {
        loss: loss.parse().unwrap(),
        ..ChannelConfig::default()
    };
    let mut channel = Channel::new(config, &Rng::from_seed(seed)).unwrap();
    let mut losses = Losses::default();
    for micros in sent {
        let now = Instant::START + Duration::from_micros(micros);
        let lost = matches!(channel.admit(now, ByteCount(100)), ChannelVerdict::Drop(_));
        let time = timed.then(|| now.as_secs_f64());
        losses.push(lost, time).unwrap();
    }
    losses
}

/// `count` packets, one each millisecond.
fn evenly(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(|index| index * 1000)
}

/// `count` packets with pauses between 0.1 and 30 ms, most of them short.
fn unevenly(count: u64, seed: u64) -> impl Iterator<Item = u64> {
    let mut rng = Rng::from_seed(seed).child("pauses");
    (0..count).scan(0, move |at, _| {
        *at += if rng.chance(0.05) {
            30_000
        } else {
            100 + rng.below(900)
        };
        Some(*at)
    })
}

fn of(fit: &Fit, model: Model) -> &Fitted {
    fit.models
        .iter()
        .find(|fitted| fitted.model == model)
        .unwrap()
}

/// Counts the parameters of `wanted` that lie outside of their intervals.
fn misses(fitted: &Fitted, wanted: &[(&str, f64)]) -> usize {
    let outside = |&&(name, value): &&(&str, f64)| {
        let found = fitted
            .parameters
            .iter()
            .find(|parameter| parameter.name == name)
            .unwrap();
        assert!(found.low.is_some(), "{fitted:?}");
        let (low, high) = (found.low.unwrap(), found.high.unwrap());
        assert!(low <= found.value && found.value <= high, "{found:?}");
        !(low <= value && value <= high)
    };
    wanted.iter().filter(outside).count()
}

/// Misses that 95 % intervals are allowed: the mean and four standard deviations.
fn assert_covered(what: &str, missed: usize, trials: usize) {
    let n = trials as f64;
    let allowed = 0.05 * n + 4.0 * (0.05 * 0.95 * n).sqrt();
    println!(
        "{what}: {missed} of {trials} outside, expected {:.1}, allowed {allowed:.1}",
        0.05 * n
    );
    assert!(
        missed as f64 <= allowed,
        "{what}: {missed} of {trials}, allowed {allowed}"
    );
}

#[test]
fn independent_loss_is_recovered_and_chosen() {
    let (mut missed, mut trials, mut others) = (0, 0, 0);
    for (loss, p) in [("0.1%", 0.001), ("2%", 0.02), ("30%", 0.3), ("80%", 0.8)] {
        for seed in 0..12 {
            let fit = fit(&losses(loss, seed, evenly(20_000), false));
            missed += misses(of(&fit, Model::Bernoulli), &[("mean_loss", p)]);
            trials += 1;
            others += usize::from(fit.chosen != Model::Bernoulli);
        }
    }
    assert_covered("Bernoulli", missed, trials);
    // The criterion takes a parameter for ln(20,000) = 9.9: chi-square above that is 0.16 %.
    assert!(others <= 2, "{others} of {trials}");
}

#[test]
fn bursts_are_recovered_and_chosen_over_a_grid() {
    let (mut missed, mut trials, mut others) = (0, 0, 0);
    for loss in [0.01, 0.05, 0.2, 0.5] {
        for burst in [1.5_f64, 4.0, 20.0] {
            if burst < loss / (1.0 - loss) {
                continue;
            }
            for seed in 0..6 {
                let text = format!("{}% burst {burst}", loss * 100.0);
                let fit = fit(&losses(&text, seed, evenly(60_000), false));
                let wanted = [
                    ("mean_loss", loss),
                    ("mean_burst_packets", burst),
                    ("mean_gap_packets", burst * (1.0 - loss) / loss),
                ];
                missed += misses(of(&fit, Model::Gilbert), &wanted);
                trials += wanted.len();
                others += usize::from(fit.chosen != Model::Gilbert);
            }
        }
    }
    assert_covered("Gilbert", missed, trials);
    assert!(others <= 3, "{others} of {}", trials / 3);
}

#[test]
fn hidden_states_are_recovered_and_chosen_over_a_grid() {
    let (mut missed, mut trials, mut others, mut fits) = (0, 0, 0, 0);
    for (good, bad) in [(0.0, 0.5), (0.002, 0.3), (0.01, 0.8), (0.05, 1.0)] {
        for (good_packets, bad_packets) in [(300.0, 30.0), (1000.0, 200.0)] {
            for seed in 0..3 {
                let text = format!(
                    "gilbert-elliott {}% {good_packets} {}% {bad_packets}",
                    good * 100.0,
                    bad * 100.0
                );
                let fit = fit(&losses(&text, seed, evenly(150_000), false));
                let share = bad_packets / (good_packets + bad_packets);
                let wanted = [
                    ("mean_loss", share * bad + (1.0 - share) * good),
                    ("loss_good", good),
                    ("mean_good_packets", good_packets),
                    ("loss_bad", bad),
                    ("mean_bad_packets", bad_packets),
                ];
                let fitted = of(&fit, Model::GilbertElliott);
                missed += misses(fitted, &wanted);
                trials += wanted.len();
                others += usize::from(fit.chosen != Model::GilbertElliott);
                fits += 1;
                assert!(
                    fitted.loss.parse::<fulmar_channel::LossModel>().is_ok(),
                    "{}",
                    fitted.loss
                );
            }
        }
    }
    assert_covered("Gilbert-Elliott", missed, trials);
    assert!(others <= 2, "{others} of {fits}");
}

#[test]
fn states_by_time_are_recovered_and_told_from_states_by_packet() {
    let (mut missed, mut trials, mut others, mut fits) = (0, 0, 0, 0);
    for seed in 0..5 {
        let sent = || unevenly(60_000, seed);
        let total = fit(&losses(
            "two-state 0% 500ms 100% 60ms exponential",
            seed,
            sent(),
            true,
        ));
        let wanted = [
            ("mean_good_s", 0.5),
            ("mean_bad_s", 0.06),
            ("mean_loss", 0.06 / 0.56),
        ];
        missed += misses(of(&total, Model::Intervals), &wanted);
        others += usize::from(total.chosen != Model::Intervals);
        let partial = fit(&losses(
            "two-state 1% 600ms 60% 150ms exponential",
            seed,
            sent(),
            true,
        ));
        let states = [
            ("loss_good", 0.01),
            ("mean_good_s", 0.6),
            ("loss_bad", 0.6),
            ("mean_bad_s", 0.15),
            ("mean_loss", 0.2 * 0.6 + 0.8 * 0.01),
        ];
        missed += misses(of(&partial, Model::TwoState), &states);
        others += usize::from(partial.chosen != Model::TwoState);
        trials += wanted.len() + states.len();
        fits += 2;
    }
    assert_covered("by time", missed, trials);
    assert!(others <= 1, "{others} of {fits}");
}

#[test]
fn the_test_of_runs_accepts_the_true_model_at_its_level_and_rejects_the_others() {
    let (mut rejected, mut fits) = (0, 0);
    for (text, model) in [
        ("5%", Model::Bernoulli),
        ("5% burst 3", Model::Gilbert),
        ("gilbert-elliott 1% 300 50% 30", Model::GilbertElliott),
    ] {
        for seed in 100..120 {
            let fit = fit(&losses(text, seed, evenly(40_000), false));
            let p = |model| of(&fit, model).goodness.unwrap().p;
            rejected += usize::from(p(model) < 0.05);
            fits += 1;
            if model != Model::Bernoulli {
                assert!(p(Model::Bernoulli) < 1e-6, "{text}, seed {seed}");
            }
            if model == Model::GilbertElliott {
                assert!(
                    p(Model::Gilbert) < 1e-3,
                    "{text}, seed {seed}: {}",
                    p(Model::Gilbert)
                );
                let ratio = fit.comparisons.iter().find(|c| c.larger == model).unwrap();
                assert!(ratio.p < 1e-6, "{text}, seed {seed}");
            }
        }
    }
    assert_covered("rejections of the truth", rejected, fits);
}

/// A test that never rejects would be believed too readily: where the model is true, p is uniform. The
/// mean of 64 has a standard deviation of 0.036; four are allowed to either side.
#[test]
fn the_p_values_of_the_true_model_are_neither_too_small_nor_too_large() {
    const FITS: u64 = 64;
    for (text, model) in [("10%", Model::Bernoulli), ("10% burst 3", Model::Gilbert)] {
        let p = |seed| {
            let fit = fit(&losses(text, seed, evenly(4000), false));
            of(&fit, model).goodness.unwrap().p
        };
        let mean = (1..=FITS).map(p).sum::<f64>() / FITS as f64;
        let allowed = 4.0 / (12.0 * FITS as f64).sqrt();
        assert!(
            (mean - 0.5).abs() < allowed,
            "{text}, seeds 1 to {FITS}: {mean}"
        );
    }
}

#[test]
fn what_no_model_makes_is_believed_by_none() {
    // Seven lost, ninety-three kept, for ever: no model without a memory of counts does that.
    let mut periodic = Losses::default();
    for index in 0..50_000 {
        periodic.push(index % 100 < 7, None).unwrap();
    }
    let fit = fit(&periodic);
    assert_eq!(fit.is_believable(0.01), Some(false), "{fit:?}");
}

#[test]
fn short_and_one_sided_recordings_get_what_they_can_have() {
    let of_digits = |digits: &str| {
        let mut losses = Losses::default();
        for digit in digits.chars() {
            losses.push(digit == '1', None).unwrap();
        }
        fit(&losses)
    };
    for digits in [
        "0",
        "1",
        "01",
        "10",
        "0000",
        "1111",
        "010",
        "0101010101",
        "110110110",
        "0110",
    ] {
        let fit = of_digits(digits);
        assert_eq!(fit.packets, digits.len() as u64);
        let mean = fit.models[0].parameters[0];
        let (low, high) = (mean.low.unwrap(), mean.high.unwrap());
        assert!((0.0..=1.0).contains(&low) && (0.0..=1.0).contains(&high) && low < high);
        assert!(
            fit.models
                .iter()
                .all(|fitted| !fitted.log_likelihood.is_nan()),
            "{fit:?}"
        );
        let text = &fit.best().unwrap().loss;
        assert!(
            text.parse::<fulmar_channel::LossModel>().is_ok(),
            "{digits}: {text}"
        );
    }
    let clean = of_digits(&"0".repeat(1000));
    // Wilson's upper end of nothing out of n: z^2 / (n + z^2).
    let high = clean.models[0].parameters[0].high.unwrap();
    assert!((high - 3.8415 / 1003.8415).abs() < 1e-5, "{high}");
    assert_eq!(clean.skipped.len(), 4);
}

#[test]
fn every_text_that_is_printed_is_a_loss_that_a_scenario_takes() {
    for seed in 0..30 {
        let mut rng = Rng::from_seed(seed).child("texts");
        let mut recording = Losses::default();
        let (stay, lose) = (rng.unit_f64(), rng.unit_f64());
        let (mut bad, mut at) = (false, 0.0);
        for _ in 0..3_000 {
            bad ^= !rng.chance(stay);
            at += 0.001 * (1.0 + rng.unit_f64());
            recording.push(bad && rng.chance(lose), Some(at)).unwrap();
        }
        for fitted in fit(&recording).models {
            let read = fitted.loss.parse::<fulmar_channel::LossModel>();
            assert!(read.is_ok(), "seed {seed}: {}: {read:?}", fitted.loss);
        }
    }
}
