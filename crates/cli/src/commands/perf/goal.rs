//! The goal of a test that leaves most of the rate unused: `--deadline`, `--residual` and `--overhead`.

use crate::commands::connection;
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
    #[arg(long, value_name = "TIME", value_parser = connection::span, requires_all = ["client", "bitrate"])]
    #[arg(conflicts_with = "reverse")]
    deadline: Option<Duration>,
    /// Client: the share of messages that may take longer than --deadline, 50% at most; 1% if not given.
    #[arg(long, value_name = "SHARE", requires = "deadline")]
    residual: Option<Probability>,
    /// Client: octets of copies and repair symbols as a share of the data, at most, with -b below the rate; 90% with
    /// --deadline, else nothing is repaired this way.
    #[arg(long, value_name = "SHARE", requires_all = ["client", "bitrate"], conflicts_with = "reverse")]
    overhead: Option<Probability>,
}

impl GoalArgs {
    /// The repair that follows the goal, if there is one.
    ///
    /// # Errors
    /// The mode does not confirm soon, or a figure is out of range; with the cure.
    pub(super) fn thin(&self, mode: Mode) -> Result<Option<ThinRepair>, String> {
        let Some(option) =
            (self.deadline.map(|_| "--deadline")).or_else(|| self.overhead.map(|_| "--overhead"))
        else {
            return Ok(None);
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn share(text: &str) -> Probability {
        text.parse().expect("a share")
    }

    #[test]
    fn a_deadline_makes_a_goal_and_an_overhead_alone_a_bound() {
        let none = GoalArgs::default().thin(Mode::Unreliable);
        assert_eq!(none, Ok(None));
        let bound = GoalArgs {
            overhead: Some(share("25%")),
            ..GoalArgs::default()
        };
        assert_eq!(
            bound.thin(Mode::Reliable),
            Ok(Some(ThinRepair::at_most(25)))
        );
        let by = GoalArgs {
            deadline: Some(Duration::from_millis(90)),
            residual: Some(share("0.2%")),
            overhead: None,
        };
        let thin = by
            .thin(Mode::HybridNackMack)
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
            let error = goal.thin(mode).expect_err("it is refused");
            assert!(error.contains(words), "{words} in {error}");
        }
    }
}
