//! The lateness of a sleeping thread's wake-up, on which a pacer's gaps and the emulator's delays rest.

use super::finding::Finding;
use crate::clock::Clock;
use crate::wait::{precise_timers, wait};
use core::time::Duration;
use std::fs;

const SLEEP: Duration = Duration::from_millis(1);
const SLEEPS: usize = 20;
/// The lateness from which on a wake-up is poor; the emulator promises a tenth of a millisecond.
const LATE_MAX: Duration = Duration::from_micros(500);

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Sleeps a few times and measures how late the thread is woken.
pub(super) fn wake_ups() -> Finding {
    const CHECK: &str = "wake-ups";
    // The slack of 50 us is within the bound.
    drop(precise_timers());
    let clock = Clock::start();
    let mut late: Vec<Duration> = Vec::with_capacity(SLEEPS);
    for _ in 0..SLEEPS {
        let begun = clock.now();
        if let Err(error) = wait(&[], Some(SLEEP), &mut Vec::new()) {
            return Finding::bad(CHECK, error.to_string(), "let this process call ppoll(2)");
        }
        late.push(clock.now().saturating_since(begun).saturating_sub(SLEEP));
    }
    late.sort_unstable();
    let source = fs::read_to_string(CLOCK_SOURCE).unwrap_or_default();
    judge(late[SLEEPS / 2], source.trim())
}

fn judge(late: Duration, source: &str) -> Finding {
    let clock = if source.is_empty() {
        String::new()
    } else {
        format!(", clock source {source}")
    };
    let found = format!("{} us late (median of {SLEEPS}){clock}", late.as_micros());
    if late <= LATE_MAX {
        Finding::good("wake-ups", found)
    } else {
        let remedy = "the machine is loaded or its timers are coarse: give the process a processor of \
                      its own or a real-time priority, and prefer the clock source tsc";
        Finding::poor("wake-ups", found, remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::FindingVerdict;

    #[test]
    fn lateness_is_judged_by_the_bound_and_the_clock_source_is_named() {
        let finding = judge(Duration::from_millis(4), "hpet");
        assert_eq!(finding.verdict, FindingVerdict::Poor);
        assert!(finding.found.contains("4000 us") && finding.found.contains("hpet"));
        assert_eq!(judge(LATE_MAX, "").verdict, FindingVerdict::Good);
    }
}
