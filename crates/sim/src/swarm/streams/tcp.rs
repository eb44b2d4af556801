//! Random sessions of TCP, of any preset with any of its options turned around.

use super::{
    Draw, PATIENT, SYN_RETRIES_MAX, Session, draw_buffers, draw_flow_head, draw_path, run,
};
use crate::scenario::{PointPlan, SettingsError, TransportPlan};
use crate::stack::stream::GAVE_UP;
use crate::swarm::broken_but;
use crate::world::{EndReason, World};
use core::sync::atomic::AtomicBool;

/// The options that may be turned on or off.
const SWITCHES: [&str; 18] = [
    "byte_counting",
    "window_validation",
    "growth_at_recovery_end",
    "growth_at_repair_end",
    "restart_after_idle",
    "ack_after_slow_start",
    "ack_first_at_once",
    "sack",
    "limited_transmit",
    "rescue",
    "rate_reduction",
    "frto",
    "careful",
    "samples_of_retransmissions",
    "window_scaling",
    "timestamps",
    "ecn",
    "nagle",
];
const PRESETS: [&str; 6] = [
    "reference",
    "enhanced",
    "newreno-2005",
    "linux-like",
    "rfc793-no-cc",
    "sack-no-cc",
];
/// Draws, runs and checks the session of `seed`.
pub(super) fn session(seed: u64, cancel: &AtomicBool) -> Result<Session, SettingsError> {
    run(&scenario(seed), seed, cancel, broken)
}

/// Every promise that was not kept. A flow of which a side gave up early need not be whole: the octets that
/// came are still those that were sent, in order and once, but the other side may wait for the rest for
/// ever, or be reset.
fn broken(plan: &PointPlan, world: &World, end: EndReason) -> Vec<String> {
    let given_up: Vec<bool> = world.closings().map(|ends| gave_up(&ends)).collect();
    let excused = |index: usize| {
        let transport = plan.flows.get(index).map(|flow| &flow.transport);
        let is_impatient = matches!(transport, Some(TransportPlan::Tcp(own)) if u64::from(own.config.data_retries) < PATIENT);
        is_impatient && given_up.get(index) == Some(&true)
    };
    broken_but(world, end, excused)
}

/// Whether either side gave up. A listener that gave up before its SYN was acknowledged tells nobody, and
/// resets a sender that heard it.
fn gave_up(ends: &[Option<&'static str>; 2]) -> bool {
    ends.contains(&Some(GAVE_UP)) || *ends == [Some("reset"), None]
}

/// Draws the scenario of `seed` as TOML.
fn scenario(seed: u64) -> String {
    let mut draw = Draw::new(seed, "swarm-tcp");
    let marks = draw.rng.chance(0.5);
    draw_path(&mut draw, seed, |draw| {
        let packets = draw.between(5, 200);
        draw.line(format_args!("queue = \"{packets} packets\""));
        if marks {
            let mark = draw.between(2, packets);
            draw.line(format_args!("ecn_threshold = \"{mark} packets\""));
        }
    });
    for _ in 0..=draw.rng.below(3) {
        flow(&mut draw);
    }
    draw.text
}

fn flow(draw: &mut Draw) {
    draw_flow_head(draw, "tcp", "tcp");
    let preset = draw.one_of(&PRESETS);
    draw.line(format_args!("preset = \"{preset}\""));
    let impatient = draw.rng.chance(0.1);
    let retries = if impatient {
        draw.between(0, 8)
    } else {
        PATIENT
    };
    draw.line(format_args!("data_retries = {retries}"));
    let syn_retries = retries.min(SYN_RETRIES_MAX);
    draw.line(format_args!("syn_retries = {syn_retries}"));
    let (first, least) = (draw.between(200, 3_000), draw.between(50, 1_000));
    let most = draw.between(3_000, 8_000);
    draw.line(format_args!("rto_initial = \"{first}ms\""));
    draw.line(format_args!("rto_min = \"{least}ms\""));
    draw.line(format_args!("rto_max = \"{most}ms\""));
    for switch in SWITCHES {
        if draw.rng.chance(0.2) {
            let on = draw.rng.chance(0.5);
            draw.line(format_args!("{switch} = {on}"));
        }
    }
    if draw.rng.chance(0.3) {
        let rule = draw.one_of(&["newreno", "cubic", "cubic-rfc8312", "none"]);
        draw.line(format_args!("congestion = \"{rule}\""));
    }
    if draw.rng.chance(0.3) {
        let base = draw.one_of(&["flight", "pipe", "window"]);
        draw.line(format_args!("reduce = \"{base}\""));
    }
    if draw.rng.chance(0.3) {
        let (every, wait) = (draw.between(1, 4), draw.between(0, 500));
        draw.line(format_args!("ack_every = {every}"));
        draw.line(format_args!("delayed_ack = \"{wait}ms\""));
    }
    if draw.rng.chance(0.2) {
        let duplicates = draw.rng.below(6);
        draw.line(format_args!("duplicates = {duplicates}"));
    }
    if draw.rng.chance(0.2) {
        let runs = draw.between(1, 8);
        draw.line(format_args!("runs_kept = {runs}"));
    }
    if draw.rng.chance(0.2) {
        let segments = draw.between(1, 40);
        draw.line(format_args!("initial_window = {segments}"));
    }
    if draw.rng.chance(0.2) {
        let unsent = draw.between(3_000, 20_000);
        draw.line(format_args!("unsent = \"{unsent}B\""));
    }
    draw_buffers(draw);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_unbroken(seed: u64, about: &str) {
        let session = session(seed, &AtomicBool::new(false)).expect("it can be read");
        assert!(
            session.broken.is_empty(),
            "seed {seed}, {about}: {:?}",
            session.broken
        );
    }

    #[test]
    fn what_a_random_tcp_delivers_is_what_was_sent() {
        for seed in 0..200 {
            assert_unbroken(seed, "a sample");
        }
    }

    #[test]
    fn seeds_that_failed_once_hold() {
        let late = "a driver that woke late brought a segment before a deadline that had passed";
        let reset =
            "a peer that had left TIME-WAIT reset what waited for its FIN's acknowledgement";
        for (seeds, found) in [
            (&[8, 12, 26, 38][..], late),
            (&[3654, 7751, 7821, 10_267], reset),
        ] {
            for &seed in seeds {
                assert_unbroken(seed, found);
            }
        }
    }

    #[test]
    fn every_drawn_scenario_can_be_read() {
        super::super::assert_readable(scenario);
    }
}
