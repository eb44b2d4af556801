//! Goals: `deliver`, `deadline`, `residual` and `overhead` of a class, and `overhead` of `[gateway]`.

use core::time::Duration;
use fulmar_proto::repair::{Deliver, DeliveryGoal, DeliveryOrder};
use fulmar_proto::transport::aerotp::ThinRepair;
use fulmar_proto::units::Probability;
use fulmar_settings::{SettingsError, TableReader};

/// The overhead of a flow with a deadline for which nothing else is said, in hundredths.
const OVERHEAD_BY_DEADLINE: u8 = 90;
/// The keys of a class that only `mode = "auto"` heeds.
const OF_AUTO: [&str; 2] = ["deliver", "residual"];

/// The repair of flows whose class says nothing.
pub(super) fn general(overhead: Option<u8>) -> ThinRepair {
    overhead.map_or_else(ThinRepair::default, ThinRepair::at_most)
}

/// Reads `overhead`, in hundredths.
pub(super) fn overhead(reader: Option<&TableReader<'_>>) -> Result<Option<u8>, SettingsError> {
    let share = reader.map(|reader| reader.value::<Probability>("overhead"));
    Ok(share.transpose()?.flatten().map(percent))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to 100"
)]
fn percent(share: Probability) -> u8 {
    (share.value() * 100.0).round() as u8
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to a million"
)]
fn millionths(share: Probability) -> u32 {
    (share.value() * 1e6).round() as u32
}

/// The repair of a class's flows, if it says more than the mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClassRepair {
    pub(super) streams: Option<ThinRepair>,
    pub(super) messages: Option<ThinRepair>,
}

/// The repair of a class. `general` is the overhead that `[gateway]` names.
pub(super) fn of_class(
    reader: &TableReader<'_>,
    (is_auto, deadline): (bool, Option<Duration>),
    general: Option<u8>,
) -> Result<ClassRepair, SettingsError> {
    let named = (!is_auto).then(|| OF_AUTO.into_iter().find(|key| reader.has(key)));
    if let Some(key) = named.flatten() {
        let problem =
            "is a goal, which a named mode does not follow; write mode = \"auto\", or remove it";
        return Err(reader.wrong(key, problem));
    }
    let deliver = [("all", Deliver::All), ("by deadline", Deliver::ByDeadline)];
    let deliver = reader.choice("deliver", &deliver)?;
    let residual = reader.value::<Probability>("residual")?;
    let overhead = overhead(Some(reader))?;
    let Some(deadline) = deadline.filter(|_| is_auto) else {
        let lacking = OF_AUTO.into_iter().find(|key| reader.has(key));
        if let Some(key) = lacking.filter(|_| deliver != Some(Deliver::All)) {
            let problem = "needs a deadline; write deadline = \"150ms\", or remove it";
            return Err(reader.wrong(key, problem));
        }
        let plain = overhead.map(ThinRepair::at_most);
        return Ok(ClassRepair {
            streams: plain,
            messages: plain,
        });
    };
    let deliver = deliver.unwrap_or(Deliver::ByDeadline);
    let overhead = overhead.or(general).unwrap_or(OVERHEAD_BY_DEADLINE);
    let repair = |deliver, order| {
        let goal = DeliveryGoal {
            deadline,
            missed_millionths: residual.map_or(DeliveryGoal::usual_miss(deliver), millionths),
            deliver,
            order,
        };
        let thin = ThinRepair::at_most(overhead).with_goal(goal);
        thin.map_err(|error| match error.field {
            "deadline" => reader.wrong("deadline", error.problem),
            _ => reader.wrong("residual", "must be 50% at most; write residual = \"1%\""),
        })
    };
    // Messages that are worth nothing late are not waited for either.
    let order = match deliver {
        Deliver::All => DeliveryOrder::Kept,
        Deliver::ByDeadline => DeliveryOrder::Any,
    };
    Ok(ClassRepair {
        streams: Some(repair(Deliver::All, DeliveryOrder::Kept)?),
        messages: Some(repair(deliver, order)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::config::{GatewayConfig, explain};

    fn read_all(own: &str, class: &str) -> Result<GatewayConfig, String> {
        let text = format!(
            "[gateway]\n{own}\n[security]\nkind = \"none\"\n[[peer]]\nname = \"a\"\n[class.default]\n{class}\n[egress]\nallow = [\"10.0.0.1:80\"]\n"
        );
        GatewayConfig::read("file", &text).map_err(|error| error.to_string())
    }

    fn goal(own: &str, class: &str) -> Result<Option<ThinRepair>, String> {
        read_all(own, class).map(|config| config.classes[0].flow.thin)
    }

    #[test]
    fn messages_of_a_class_with_a_deadline_are_given_up_in_any_order_unless_all_are_wanted() {
        let goal = |class: &str| {
            let config = read_all("", class).expect("sound");
            let thin = config.classes[0].flow.thin_messages.expect("a repair");
            (thin.overhead_percent, thin.goal())
        };
        let by_deadline = DeliveryGoal {
            deadline: Duration::from_millis(150),
            missed_millionths: 700,
            deliver: Deliver::ByDeadline,
            order: DeliveryOrder::Any,
        };
        assert_eq!(goal("deadline = \"150ms\""), (90, Some(by_deadline)));
        let all = DeliveryGoal {
            missed_millionths: 10_000,
            deliver: Deliver::All,
            order: DeliveryOrder::Kept,
            ..by_deadline
        };
        let lines = "deadline = \"150ms\"\ndeliver = \"all\"";
        assert_eq!(goal(lines), (90, Some(all)));
        let lines = "deadline = \"150ms\"\nresidual = \"2%\"\noverhead = \"50%\"";
        let looser = DeliveryGoal {
            missed_millionths: 20_000,
            ..by_deadline
        };
        assert_eq!(goal(lines), (50, Some(looser)));
        assert_eq!(goal("overhead = \"50%\""), (50, None));
    }

    #[test]
    fn the_overhead_of_thin_flows_is_a_share() {
        let read = |line: &str| read_all(line, "").map(|config| config.thin.overhead_percent);
        assert_eq!(read(""), Ok(40));
        assert_eq!(read("overhead = \"0%\""), Ok(0));
        assert_eq!(read("overhead = \"70%\""), Ok(70));
        assert!(read("overhead = \"170%\"").is_err());
    }

    #[test]
    fn a_class_with_a_deadline_has_a_goal_and_one_without_has_the_gateway_s_repair() {
        assert_eq!(goal("", ""), Ok(None));
        assert_eq!(
            goal("", "mode = \"reliable\"\ndeadline = \"90ms\""),
            Ok(None)
        );
        let thin = goal("", "deadline = \"90ms\"").unwrap().expect("a goal");
        assert_eq!(thin.overhead_percent, 90);
        let wanted = thin.goal().expect("a deadline");
        assert_eq!(wanted.deadline, Duration::from_millis(90));
        assert_eq!(wanted.missed_millionths, 10_000);
        let lines =
            "deadline = \"90ms\"\nresidual = \"0.1%\"\noverhead = \"30%\"\ndeliver = \"all\"";
        let thin = goal("overhead = \"60%\"", lines).unwrap().expect("a goal");
        assert_eq!(thin.overhead_percent, 30);
        let wanted = thin.goal().expect("a deadline");
        assert_eq!(wanted.missed_millionths, 1_000);
        assert_eq!(wanted.deliver, Deliver::All);
        let thin = goal("overhead = \"60%\"", "deadline = \"90ms\"").unwrap();
        assert_eq!(thin.expect("a goal").overhead_percent, 60);
    }

    #[test]
    fn a_goal_that_nothing_follows_is_refused_with_the_fix() {
        for (class, field, fix) in [
            (
                "mode = \"reliable\"\ndeadline = \"90ms\"\nresidual = \"1%\"",
                "residual",
                "mode = \"auto\"",
            ),
            ("residual = \"1%\"", "residual", "write deadline = "),
            ("deliver = \"by deadline\"", "deliver", "write deadline = "),
            (
                "deadline = \"90ms\"\nresidual = \"51%\"",
                "residual",
                "50% at most",
            ),
            ("deadline = \"61min\"", "deadline", "1us to 1h"),
        ] {
            let error = goal("", class).expect_err("it is refused");
            for word in ["file", field, fix] {
                assert!(error.contains(word), "{word} in {error}");
            }
        }
        assert!(goal("", "deliver = \"all\"").is_ok());
    }

    #[test]
    fn what_auto_will_do_is_said() {
        let said = |class: &str| explain::explain(&read_all("", class).expect("sound"));
        let plain = said("");
        assert!(plain.contains("mode auto"), "{plain}");
        let goal = said("deadline = \"90ms\"");
        for words in [
            "99 % of the messages of a thin stream within 90ms",
            "90 % more octets",
        ] {
            assert!(goal.contains(words), "{words} in {goal}");
        }
    }
}
