//! Random scenarios: loss, bursts, round trips, load and goals, half of them with changes on the way.
//!
//! A scenario is a text that `fulmar sim` takes as well. What is drawn, and from what, stands in `docs/models/auto.md`.

use core::fmt::Write as _;
use fulmar_proto::rng::Rng;

/// The time in which messages are written, in seconds.
const SECONDS: u64 = 30;
/// The longest time for bulk, in seconds.
const BULK_SECONDS: u64 = 60;
/// The share of the rate that messages may take, with room for their repair.
const MESSAGES_SHARE: f64 = 0.15;

/// One of these.
fn one<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    let index = usize::try_from(rng.below(of.len() as u64)).unwrap_or_default();
    of[index]
}

/// The loss of a hop, as scenarios write it.
fn loss(rng: &mut Rng, percent_max: u64) -> String {
    let percents: Vec<u64> = [1, 2, 5, 10, 20, 30]
        .into_iter()
        .filter(|percent| *percent <= percent_max)
        .collect();
    let percent = one(rng, &percents);
    match rng.below(20) {
        0..3 => "0%".to_owned(),
        3..12 => format!("{percent}%"),
        12..17 => format!("{percent}% burst {}", one(rng, &[2, 4, 8])),
        _ => format!("on-off {percent}% period {}ms", one(rng, &[50, 100, 200])),
    }
}

/// The times at which something changes, in milliseconds, every three to eight seconds.
fn changes(rng: &mut Rng) -> Vec<u64> {
    let mut times = Vec::new();
    if rng.below(2) == 0 {
        return times;
    }
    let mut at = 0;
    loop {
        at += 3_000 + rng.below(5_001);
        if at + 3_000 > SECONDS * 1_000 {
            return times;
        }
        times.push(at);
    }
}

/// The scenario of a seed, a TOML text.
pub fn scenario(seed: u64) -> String {
    let mut rng = Rng::from_seed(seed).child("auto-vs-fixed");
    let is_bulk = rng.below(5) == 0;
    let percent_max = if is_bulk { 10 } else { 30 };
    let mbit = one(&mut rng, &[2, 5, 10, 20]);
    let mut delay = one(&mut rng, &[5, 10, 20, 40, 80, 150]);
    let mut delay_max = delay;
    let duration = if is_bulk { BULK_SECONDS } else { SECONDS + 10 };
    let mut text = format!(
        "[run]\nseed = {seed}\nduration = \"{duration}s\"\n[[hop]]\nrate = \"{mbit}mbit\"\nqueue = \"200 packets\"\ndelay = \"{delay}ms\"\nloss = \"{}\"\n",
        loss(&mut rng, percent_max)
    );
    let times = changes(&mut rng);
    for at in &times {
        let _ = write!(
            text,
            "[[change]]\nat = \"{at}ms\"\nloss = \"{}\"\n",
            loss(&mut rng, percent_max)
        );
        if rng.below(3) == 0 {
            delay = one(&mut rng, &[5, 10, 20, 40, 80, 150]);
            delay_max = delay_max.max(delay);
            let _ = writeln!(text, "delay = \"{delay}ms\"");
        }
    }
    text.push_str(&if is_bulk {
        bulk(&mut rng, mbit)
    } else {
        messages(&mut rng, mbit, delay_max)
    });
    let begins = [0].into_iter().chain(times.iter().copied());
    let ends = times.iter().copied().chain([SECONDS * 1_000]);
    for (from, to) in begins.zip(ends) {
        text.push_str(&load(&mut rng, mbit, (from, to)));
    }
    text
}

/// A transfer that takes two to six seconds of a clean link.
fn bulk(rng: &mut Rng, mbit: u64) -> String {
    let kilobytes = mbit * 125 * one(rng, &[2, 4, 6]);
    format!(
        "[[flow]]\ntransport = \"aerotp\"\nmode = \"auto\"\ntraffic = \"bulk\"\nbytes = \"{kilobytes}kB\"\nsend_rate = \"found\"\n"
    )
}

fn messages(rng: &mut Rng, mbit: u64, delay_max: u64) -> String {
    let (size, interval) = loop {
        let size = one(rng, &[100, 300, 600, 1_200]);
        let interval = one(rng, &[10, 20, 40, 80]);
        let share = (size * 8) as f64 / (interval * mbit * 1_000) as f64;
        if share <= MESSAGES_SHARE {
            break (size, interval);
        }
    };
    let bytes = SECONDS * 1_000 / interval * size;
    let tenths = one(rng, &[13, 16, 22, 35, 50, 80]);
    let deadline = delay_max * tenths / 10 + 10;
    let order = one(rng, &["kept", "kept", "kept", "any", "any"]);
    let deliver = one(rng, &["all", "all", "by deadline"]);
    let mut text = format!(
        "[[flow]]\ntransport = \"aerotp\"\nmode = \"auto\"\ntraffic = \"messages\"\nsize = \"{size}B\"\ninterval = \"{interval}ms\"\nbytes = \"{bytes}B\"\ndeadline = \"{deadline}ms\"\norder = \"{order}\"\ndeliver = \"{deliver}\"\n"
    );
    if rng.below(3) == 0 {
        text.push_str("residual = \"5%\"\n");
    }
    if rng.below(3) == 0 {
        text.push_str("overhead = \"40%\"\n");
    }
    text
}

/// The load of others, from one time in milliseconds to another.
fn load(rng: &mut Rng, mbit: u64, (from, to): (u64, u64)) -> String {
    let percent = one(rng, &[0, 0, 20, 40, 60]);
    if percent == 0 {
        return String::new();
    }
    let kilobits = mbit * 10 * percent;
    let bytes = kilobits * (to - from) / 8;
    format!(
        "[[flow]]\ntransport = \"udp\"\ntraffic = \"constant-rate\"\nmeasured = false\nstart = \"{from}ms\"\nrate = \"{kilobits}kbit\"\nwrite = \"1000B\"\nbytes = \"{bytes}B\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beside::AutoScenario;
    use crate::scenario::{Document, PointPlan};

    #[test]
    fn every_drawn_scenario_can_be_compared_and_half_of_them_change() {
        let mut changing = 0;
        for seed in 1..=200 {
            let text = scenario(seed);
            assert_eq!(text, scenario(seed));
            let document = Document::parse("drawn.toml", &text).expect("TOML");
            let plan = PointPlan::read(&document).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert!(AutoScenario::of(String::new(), &plan).is_ok(), "{text}");
            changing += usize::from(!plan.hops[0].changes.is_empty());
        }
        assert!((70..130).contains(&changing), "{changing}");
    }
}
