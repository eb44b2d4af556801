//! Loss in two states that alternate with time, whether packets flow or not: ON (worse) and OFF.
//!
//! The process is stationary from the first instant on: the initial state is ON with the share of
//! time that ON has, and the first visit is the rest of one already begun. So the mean loss holds
//! at every moment, and seeds differ in phase.
//!
//! The path of states is a function of the seed alone as long as no silence lasts longer than
//! 16,384 mean cycles. After a longer one the state is drawn anew: no measurement can tell this
//! from waiting, and it bounds the work for a packet.
//!
//! # Sources
//! LT-TCP + LL-HARQ slides, error process. The slides say "ON = 1.5 x OFF", but their example (50 %
//! on average, 75 % in ON, 25 % in OFF) means ON = 1.5 × mean and OFF = 0.5 × mean for equal times.

use crate::config_error::{ChannelConfigError, Field, Setting};
use crate::geometric::{exponential, saturating_whole};
use crate::rate::computed_rate;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant, PacketErrorRate, format_duration};

/// The silence, in mean cycles, after which the state is drawn anew.
const CYCLES_FOLLOWED_MAX: u64 = 16_384;

/// The distribution of the time spent in a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sojourn {
    /// Fixed at the mean; only the phase is random.
    #[default]
    Fixed,
    /// Exponential: a Markov process in time.
    Exponential,
}

/// One of the two states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossState {
    /// The share of packets lost in this state.
    pub loss: PacketErrorRate,
    /// The mean length of a visit.
    pub mean: Duration,
}

/// Two states by time, each with its loss and its mean duration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoState {
    /// The better state.
    pub off: LossState,
    /// The worse state.
    pub on: LossState,
    /// The distribution of the visits' lengths.
    pub sojourn: Sojourn,
}

impl TwoState {
    /// The share of time spent in ON.
    pub fn on_share(&self) -> f64 {
        self.on.mean.as_secs_f64() / (self.on.mean.as_secs_f64() + self.off.mean.as_secs_f64())
    }

    /// The loss averaged over time.
    pub fn mean_loss(&self) -> PacketErrorRate {
        let on = self.on_share();
        computed_rate(on * self.on.loss.value() + (1.0 - on) * self.off.loss.value())
    }

    pub(crate) fn check(&self) -> Result<(), ChannelConfigError> {
        for (field, state) in [
            (Setting::Loss.part("off.mean"), self.off),
            (Setting::Loss.part("on.mean"), self.on),
        ] {
            check_mean(field, state.mean)?;
        }
        Ok(())
    }
}

/// The ON-OFF process of the LT-TCP experiments: 1.5 × the mean loss in ON, 0.5 × in OFF, both
/// equally long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnOff {
    /// The loss averaged over time, at most 2/3, because the loss in ON is 1.5 times as high.
    pub mean_loss: PacketErrorRate,
    /// The mean length of one visit to one state: half of a whole cycle.
    pub period: Duration,
    /// The distribution of the visits' lengths.
    pub sojourn: Sojourn,
}

impl OnOff {
    /// The two states this stands for.
    ///
    /// # Errors
    /// [`ChannelConfigError`] if the mean loss is above 2/3 or the period is out of range.
    pub fn two_state(&self) -> Result<TwoState, ChannelConfigError> {
        let mean = self.mean_loss.value();
        let share = |factor: f64| {
            PacketErrorRate::new(mean * factor).ok_or_else(|| {
                let allowed = "0 to 2/3, because the ON state loses 1.5 times the mean";
                ChannelConfigError::new(Setting::Loss.part("mean_loss"), mean, allowed)
            })
        };
        check_mean(Setting::Loss.part("period"), self.period)?;
        let state = |loss| LossState {
            loss,
            mean: self.period,
        };
        Ok(TwoState {
            off: state(share(0.5)?),
            on: state(share(1.5)?),
            sojourn: self.sojourn,
        })
    }
}

fn check_mean(field: Field, mean: Duration) -> Result<(), ChannelConfigError> {
    // A shorter state would cost more draws than packets; a longer one overflows the clock.
    if (Duration::from_micros(1)..=Duration::from_secs(31_536_000)).contains(&mean) {
        Ok(())
    } else {
        let given = format_duration(mean);
        Err(ChannelConfigError::new(
            field,
            given,
            "1us to 8760h (one year)",
        ))
    }
}

/// The state of the process.
#[derive(Clone, Debug)]
pub(crate) struct TwoStateProcess {
    model: TwoState,
    off_nanos: u64,
    on_nanos: u64,
    /// Fixed sojourns: the place in its cycle (ON first) where the process was at time zero.
    phase: u64,
    /// Exponential sojourns: the current state and the instant at which it ends.
    on: bool,
    ends: u64,
    rng: Rng,
}

impl TwoStateProcess {
    pub(crate) fn new(model: TwoState, mut rng: Rng) -> Self {
        let nanos = |state: LossState| u64::try_from(state.mean.as_nanos()).unwrap_or(u64::MAX / 4);
        let (off_nanos, on_nanos) = (nanos(model.off), nanos(model.on));
        let phase = rng.below(off_nanos + on_nanos);
        let mut process = Self {
            model,
            off_nanos,
            on_nanos,
            phase,
            on: false,
            ends: 0,
            rng,
        };
        process.restart(0);
        process
    }

    /// The probability that a packet on the medium at `now` is lost. `now` never decreases.
    pub(crate) fn loss_at(&mut self, now: Instant) -> f64 {
        let state = if self.is_on(now.as_nanos()) {
            self.model.on
        } else {
            self.model.off
        };
        state.loss.value()
    }

    fn is_on(&mut self, now: u64) -> bool {
        let cycle = self.off_nanos + self.on_nanos;
        match self.model.sojourn {
            Sojourn::Fixed => now.wrapping_add(self.phase) % cycle < self.on_nanos,
            Sojourn::Exponential => {
                if now.saturating_sub(self.ends) > cycle.saturating_mul(CYCLES_FOLLOWED_MAX) {
                    self.restart(now);
                }
                while self.ends <= now && self.ends < u64::MAX {
                    self.on = !self.on;
                    self.ends = self.ends.saturating_add(self.visit());
                }
                self.on
            }
        }
    }

    /// Draws the state from the shares of time. The rest of an exponential visit has the law of a
    /// whole one.
    fn restart(&mut self, now: u64) {
        self.on = self.rng.chance(self.model.on_share());
        self.ends = now.saturating_add(self.visit());
    }

    fn visit(&mut self) -> u64 {
        let mean = if self.on {
            self.on_nanos
        } else {
            self.off_nanos
        };
        saturating_whole(exponential(&mut self.rng) * mean as f64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(sojourn: Sojourn, seed: u64) -> TwoStateProcess {
        let state = |loss, millis| LossState {
            loss: PacketErrorRate::new(loss).unwrap(),
            mean: Duration::from_millis(millis),
        };
        let model = TwoState {
            off: state(0.0, 30),
            on: state(1.0, 20),
            sojourn,
        };
        TwoStateProcess::new(model, Rng::from_seed(seed))
    }

    fn visits(process: &mut TwoStateProcess, until_ms: u64) -> (Vec<f64>, Vec<f64>) {
        let (mut on, mut off) = (Vec::new(), Vec::new());
        let (mut state, mut since) = (process.is_on(0), 0);
        for now in (0..until_ms * 1_000_000).step_by(50_000) {
            if process.is_on(now) != state {
                let length = (now - since) as f64 / 1e6;
                if state { &mut on } else { &mut off }.push(length);
                (state, since) = (!state, now);
            }
        }
        (on, off)
    }

    #[test]
    fn fixed_visits_last_their_mean_and_start_at_a_random_phase() {
        let mut starts_on = 0;
        for seed in 0..200 {
            let mut process = process(Sojourn::Fixed, seed);
            starts_on += u32::from(process.is_on(0));
            let (on, off) = visits(&mut process, 300);
            // The first visit is the rest of one already begun. Probes are 0.05 ms apart.
            assert!(
                on.iter().skip(1).all(|&ms| (ms - 20.0).abs() < 0.051),
                "{on:?}"
            );
            assert!(
                off.iter().skip(1).all(|&ms| (ms - 30.0).abs() < 0.051),
                "{off:?}"
            );
            assert!(on.len() >= 5);
        }
        // Binomial(200, 0.4): standard deviation 6.9, z = 4.
        assert!((52..=108).contains(&starts_on), "{starts_on}");
    }

    #[test]
    fn fixed_visits_are_exact_to_the_nanosecond() {
        let state = LossState {
            loss: PacketErrorRate::ZERO,
            mean: Duration::from_micros(1),
        };
        let model = TwoState {
            off: state,
            on: state,
            sojourn: Sojourn::Fixed,
        };
        let mut process = TwoStateProcess::new(model, Rng::from_seed(1));
        let on = (0..20_000).filter(|&now| process.is_on(now)).count();
        assert_eq!(on, 10_000);
    }

    #[test]
    fn exponential_visits_have_the_exponential_law() {
        let mut process = process(Sojourn::Exponential, 17);
        let (on, off) = visits(&mut process, 200_000);
        for (lengths, mean) in [(on, 20.0), (off, 30.0)] {
            let n = lengths.len() as f64;
            assert!(n > 3000.0);
            for multiple in [0.25, 1.0, 2.0] {
                let expected = f64::exp(-multiple);
                let share = lengths.iter().filter(|&&ms| ms > multiple * mean).count() as f64 / n;
                // Four standard errors of a share, plus what probing every 0.05 ms can shift:
                // a visit is seen up to 0.05 ms too long or short, and visits under 0.05 ms
                // (density 1 / mean) may be missed, each of them merging two others.
                let blur = 3.0 * 0.05 / mean;
                let error = (expected * (1.0 - expected) / n).sqrt();
                let deviation = (share - expected).abs();
                assert!(
                    deviation < 4.0 * error + blur,
                    "{mean} x {multiple}: {deviation}"
                );
            }
        }
    }

    #[test]
    fn the_path_of_states_does_not_depend_on_who_looks() {
        let mut often = process(Sojourn::Exponential, 3);
        let mut rarely = process(Sojourn::Exponential, 3);
        for step in 0..200_000_u64 {
            let state = often.is_on(step * 100_000);
            if step % 977 == 0 {
                assert_eq!(rarely.is_on(step * 100_000), state, "step {step}");
            }
        }
    }

    #[test]
    fn a_long_silence_costs_a_bounded_number_of_draws() {
        let mut process = process(Sojourn::Exponential, 3);
        process.is_on(0);
        // A year in one step would be 10^9 visits.
        process.is_on(31_536_000_000_000_000);
        assert!(process.ends > 31_536_000_000_000_000);
        process.is_on(u64::MAX);
    }

    #[test]
    fn more_than_two_thirds_on_average_cannot_be_on_off() {
        let on_off = |mean: f64| OnOff {
            mean_loss: PacketErrorRate::new(mean).unwrap(),
            period: Duration::from_millis(20),
            sojourn: Sojourn::Fixed,
        };
        let refused = on_off(0.67).two_state().unwrap_err().to_string();
        assert!(refused.contains("loss.mean_loss"), "{refused}");
        let states = on_off(0.5).two_state().unwrap();
        assert!((states.on.loss.value() - 0.75).abs() < 1e-12);
        assert!((states.off.loss.value() - 0.25).abs() < 1e-12);
        assert!((states.mean_loss().value() - 0.5).abs() < 1e-12);
    }
}
