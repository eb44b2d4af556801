//! Random sessions of LT-TCP. Its queues mark before they drop, for loss is no signal to it.

use super::{
    Draw, PATIENT, SYN_RETRIES_MAX, Session, draw_buffers, draw_flow_head, draw_path, run,
};
use crate::scenario::SettingsError;
use crate::swarm::broken;
use core::sync::atomic::AtomicBool;

/// Draws, runs and checks the session of `seed`.
pub(super) fn session(seed: u64, cancel: &AtomicBool) -> Result<Session, SettingsError> {
    run(&scenario(seed), seed, cancel, |_, world, end| {
        broken(world, end)
    })
}

/// Draws the scenario of `seed` as TOML.
fn scenario(seed: u64) -> String {
    let mut draw = Draw::new(seed, "swarm-lt-tcp");
    draw_path(&mut draw, seed, |draw| {
        let packets = draw.between(20, 200);
        let mark = draw.between(5, packets / 2);
        draw.line(format_args!("queue = \"{packets} packets\""));
        draw.line(format_args!("ecn_threshold = \"{mark} packets\""));
    });
    for _ in 0..=draw.rng.below(3) {
        flow(&mut draw);
    }
    draw.text
}

fn flow(draw: &mut Draw) {
    draw_flow_head(draw, "lt-tcp", "lt_tcp");
    draw.line(format_args!("data_retries = {PATIENT}"));
    draw.line(format_args!("syn_retries = {SYN_RETRIES_MAX}"));
    for chance in ["pfec", "rfec"] {
        if draw.rng.chance(0.5) {
            let percent = 99.0 * draw.rng.unit_f64();
            draw.line(format_args!("{chance} = \"{percent:.2}%\""));
        }
    }
    if draw.rng.chance(0.3) {
        let units = draw.between(1, 40);
        draw.line(format_args!("granularity = {units}"));
    }
    draw_buffers(draw);
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_drawn_scenario_can_be_read() {
        super::super::assert_readable(super::scenario);
    }
}
