//! Goals: `deliver`, `deadline`, `residual` and `overhead` of a class, and `overhead` of `[gateway]`.

use core::time::Duration;
use fulmar_proto::repair::{Deliver, DeliveryGoal, DeliveryOrder};
use fulmar_proto::transport::aerotp::ThinRepair;
use fulmar_settings::goal::{self, GoalContext};
use fulmar_settings::{SettingsError, TableReader};

/// The repair of flows whose class says nothing.
pub(super) fn general(overhead: Option<u8>) -> ThinRepair {
    overhead.map_or_else(ThinRepair::default, ThinRepair::at_most)
}

/// Reads `overhead`, in hundredths.
pub(super) fn overhead(reader: Option<&TableReader<'_>>) -> Result<Option<u8>, SettingsError> {
    Ok(reader.map(goal::overhead).transpose()?.flatten())
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
    let with_order = |order| {
        let context = GoalContext {
            is_auto,
            deadline,
            order,
            deliver: Deliver::ByDeadline,
            overhead: general,
        };
        goal::thin_repair(reader, &context)
    };
    // A stream has no use for what comes behind a hole.
    let whole = |goal| DeliveryGoal {
        deliver: Deliver::All,
        ..goal
    };
    // Messages that are worth nothing late are not waited for either; the others keep their order.
    let as_worth = |goal: DeliveryGoal| match goal.deliver {
        Deliver::All => DeliveryGoal {
            order: DeliveryOrder::Kept,
            ..goal
        },
        Deliver::ByDeadline => goal,
    };
    Ok(ClassRepair {
        streams: with_order(DeliveryOrder::Kept)?.map(|thin| changed(thin, whole)),
        messages: with_order(DeliveryOrder::Any)?.map(|thin| changed(thin, as_worth)),
    })
}

/// The repair with another goal of the same deadline and the same share of misses.
fn changed(thin: ThinRepair, change: impl Fn(DeliveryGoal) -> DeliveryGoal) -> ThinRepair {
    let Some(goal) = thin.goal() else {
        return thin;
    };
    thin.with_goal(change(goal))
        .expect("its deadline and its residual were accepted before")
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
