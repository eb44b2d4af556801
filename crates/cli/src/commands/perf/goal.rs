//! The goal of a test that leaves most of the rate unused: `--deadline`, `--residual` and `--overhead`.

use crate::commands::connection;
use fulmar_net::perf::{Outcome, Spread};
use fulmar_proto::repair::{Deliver, DeliveryGoal, DeliveryOrder};
use fulmar_proto::transport::aerotp::{AckScheme, ModeRules, ThinRepair};
use fulmar_proto::units::{Duration, Probability};
use fulmar_proto::wire::Mode;

/// The overhead where a deadline is given and nothing else is said, in hundredths.
const OVERHEAD_BY_DEADLINE: u8 = 90;
/// The most that `--residual` says.
const RESIDUAL_MAX: f64 = 0.5;

/// The options of a goal.
#[derive(clap::Args, Debug, Default)]
pub(super) struct GoalArgs {
    /// Client: the time in which messages are to arrive in order, with -b below the rate: losses are repaired ahead, or
    /// repeated several times, as that takes. In modes reliable and nack-mack.
    #[arg(long, value_name = "TIME", value_parser = connection::span, requires = "client")]
    #[arg(conflicts_with = "reverse")]
    deadline: Option<Duration>,
    /// Client: the share of messages that may take longer than --deadline, 50% at most; 1% if not given. If more do, the exit
    /// code is 1.
    #[arg(long, value_name = "SHARE", requires = "deadline")]
    residual: Option<Probability>,
    /// Client: octets of copies and repair symbols as a share of the data, at most, with -b below the rate; 90% with
    /// --deadline, else nothing is repaired this way.
    #[arg(
        long,
        value_name = "SHARE",
        requires = "client",
        conflicts_with = "reverse"
    )]
    overhead: Option<Probability>,
}

impl GoalArgs {
    /// The repair that follows the goal, if there is one.
    ///
    /// # Errors
    /// The messages have no rate, the mode does not confirm soon, or a figure is out of range; with the cure.
    pub(super) fn thin(&self, mode: Mode, has_rate: bool) -> Result<Option<ThinRepair>, String> {
        let Some(option) =
            (self.deadline.map(|_| "--deadline")).or_else(|| self.overhead.map(|_| "--overhead"))
        else {
            return Ok(None);
        };
        if !has_rate {
            return Err(format!(
                "{option} is for messages that leave most of the link unused: give their rate too, well below the link's, such as \
                 -b 480k -l 1200 for one of 1200 octets every 20 ms"
            ));
        }
        if ModeRules::of(mode).acks != AckScheme::Aggregated {
            return Err(format!(
                "{option}: mode {mode} does not confirm soon enough to repeat to a goal; give --mode reliable or nack-mack, \
                 or leave {option} out"
            ));
        }
        let overhead = self.overhead.map(|share| parts(share, 100.0));
        let overhead = overhead.and_then(|parts| u8::try_from(parts).ok());
        let Some(deadline) = self.deadline else {
            return Ok(overhead.map(ThinRepair::at_most));
        };
        if (self.residual).is_some_and(|share| share.value() > RESIDUAL_MAX) {
            return Err(
                "--residual is 50% at most; 1% lets one message in a hundred take longer"
                    .to_owned(),
            );
        }
        let usual = DeliveryGoal::usual_miss(Deliver::All);
        let goal = DeliveryGoal {
            deadline,
            missed_millionths: self.residual.map_or(usual, |share| parts(share, 1e6)),
            deliver: Deliver::All,
            order: DeliveryOrder::Kept,
        };
        let thin = ThinRepair::at_most(overhead.unwrap_or(OVERHEAD_BY_DEADLINE)).with_goal(goal);
        thin.map(Some)
            .map_err(|refused| format!("--{} {}", refused.field, refused.problem))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of at most a million parts"
)]
fn parts(share: Probability, of: f64) -> u32 {
    (share.value() * of).round() as u32
}

/// The share of a test's messages that took longer than its goal allows, beside the share that may.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GoalOutcome {
    /// The goal's deadline.
    pub(super) deadline: Duration,
    /// The share that may take longer.
    pub(super) residual: f64,
    /// The least and the greatest share that did, or never came: percentiles tell no more.
    pub(super) late: (f64, f64),
}

impl GoalOutcome {
    /// The outcome of a test with this goal; `None` if no message was sent.
    pub(super) fn of(goal: &DeliveryGoal, outcome: &Outcome) -> Option<Self> {
        let missing = outcome.loss_after_repair()?;
        let (least, most) = outcome
            .received
            .delay
            .map_or((0.0, 0.0), |delay| late_shares(&delay, goal.deadline));
        let of_all = |late: f64| (missing + (1.0 - missing) * late).clamp(0.0, 1.0);
        Some(Self {
            deadline: goal.deadline,
            residual: f64::from(goal.missed_millionths) / 1e6,
            late: (of_all(least), of_all(most)),
        })
    }

    /// Whether the goal was met; `None` if the percentiles do not tell.
    pub(super) fn is_met(&self) -> Option<bool> {
        // A percentile that is just met has as many messages behind it as may be late.
        const ROUNDING: f64 = 1e-9;
        let (least, most) = self.late;
        if most <= self.residual + ROUNDING {
            Some(true)
        } else if least + ROUNDING >= self.residual {
            Some(false)
        } else {
            None
        }
    }
}

/// The least and the greatest share of the messages that arrived which took longer than so much.
fn late_shares(delay: &Spread, deadline: Duration) -> (f64, f64) {
    let deadline = u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX);
    let behind = [
        (delay.min, 1.0),
        (delay.p50, 0.5),
        (delay.p90, 0.1),
        (delay.p99, 0.01),
        (delay.p999, 0.001),
        (delay.max, 0.0),
    ];
    let most = behind.iter().filter(|(at, _)| *at <= deadline);
    let least = behind.iter().filter(|(at, _)| *at > deadline);
    (
        least.map(|(_, share)| *share).fold(0.0, f64::max),
        most.map(|(_, share)| *share).fold(1.0, f64::min),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_net::perf::{Measured, Sent};

    fn share(text: &str) -> Probability {
        text.parse().expect("a share")
    }

    #[test]
    fn a_deadline_makes_a_goal_and_an_overhead_alone_a_bound() {
        let none = GoalArgs::default().thin(Mode::Unreliable, true);
        assert_eq!(none, Ok(None));
        let bound = GoalArgs {
            overhead: Some(share("25%")),
            ..GoalArgs::default()
        };
        assert_eq!(
            bound.thin(Mode::Reliable, true),
            Ok(Some(ThinRepair::at_most(25)))
        );
        let by = GoalArgs {
            deadline: Some(Duration::from_millis(90)),
            residual: Some(share("0.2%")),
            overhead: None,
        };
        let thin = by
            .thin(Mode::HybridNackMack, true)
            .expect("sound")
            .expect("a goal");
        let goal = thin.goal().expect("a deadline");
        assert_eq!((thin.overhead_percent, goal.missed_millionths), (90, 2_000));
        assert_eq!(goal.deadline, Duration::from_millis(90));
    }

    #[test]
    fn a_goal_that_nothing_follows_is_refused_with_the_cure() {
        let by = |deadline, residual| GoalArgs {
            deadline: Some(deadline),
            residual,
            overhead: None,
        };
        let soon = Duration::from_millis(90);
        for (goal, mode, words) in [
            (by(soon, None), Mode::Unreliable, "--mode reliable"),
            (by(soon, Some(share("60%"))), Mode::Reliable, "50% at most"),
            (
                by(Duration::from_secs(4_000), None),
                Mode::Reliable,
                "--deadline must be 1us to 1h",
            ),
        ] {
            let error = goal.thin(mode, true).expect_err("it is refused");
            assert!(error.contains(words), "{words} in {error}");
        }
    }

    #[test]
    fn a_goal_without_a_rate_is_refused_with_an_example() {
        let by = GoalArgs {
            deadline: Some(Duration::from_millis(90)),
            ..GoalArgs::default()
        };
        let error = by.thin(Mode::Reliable, false).expect_err("no rate");
        assert!(error.contains("-b 480k"), "{error}");
    }

    #[test]
    fn a_goal_is_met_if_no_more_messages_are_late_than_may_be() {
        let met = |millis: u64, missed_millionths: u32, messages: u64| {
            let goal = DeliveryGoal {
                deadline: Duration::from_millis(millis),
                missed_millionths,
                deliver: Deliver::All,
                order: DeliveryOrder::Kept,
            };
            let delay = Spread {
                count: messages,
                early: 0,
                min: 1_000_000,
                mean: 25e6,
                p50: 20_000_000,
                p90: 50_000_000,
                p99: 90_000_000,
                p999: 120_000_000,
                max: 200_000_000,
            };
            let outcome = Outcome {
                sent: Some(Sent {
                    messages: 1_000,
                    ..Sent::default()
                }),
                received: Measured {
                    messages,
                    delay: (messages > 0).then_some(delay),
                    ..Measured::default()
                },
            };
            GoalOutcome::of(&goal, &outcome).and_then(|outcome| outcome.is_met())
        };
        assert_eq!(met(90, 10_000, 1_000), Some(true));
        assert_eq!(met(89, 10_000, 1_000), Some(false));
        assert_eq!(met(49, 100_000, 1_000), Some(false));
        // One in fifty may be late, and from one in a hundred to one in ten are.
        assert_eq!(met(60, 20_000, 1_000), None);
        assert_eq!(met(90, 20_000, 1_000), Some(true));
        // Those that never came are late, too.
        assert_eq!(met(200, 10_000, 990), Some(true));
        assert_eq!(met(200, 10_000, 980), Some(false));
        assert_eq!(met(90, 10_000, 0), Some(false));
    }
}
