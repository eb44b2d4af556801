//! Goals of flows with `mode = "auto"`: `deliver`, `deadline`, `residual`, `overhead` and `order`, in the same words wherever
//! they are written.

use super::error::SettingsError;
use super::reader::TableReader;
use fulmar_proto::repair::{Deliver, DeliveryGoal, DeliveryOrder};
use fulmar_proto::transport::aerotp::ThinRepair;
use fulmar_proto::units::{Duration, Probability};

/// The overhead of a flow with a deadline for which nothing else is said, in hundredths.
const OVERHEAD_BY_DEADLINE: u8 = 90;
/// The keys that only `mode = "auto"` heeds.
const OF_AUTO: [&str; 2] = ["deliver", "residual"];
const DELIVERIES: [(&str, Deliver); 2] =
    [("all", Deliver::All), ("by deadline", Deliver::ByDeadline)];

/// The part of a goal that is known before its table is read.
#[derive(Clone, Copy, Debug)]
pub struct GoalContext {
    /// Whether the mode is `auto`.
    pub is_auto: bool,
    /// The deadline that the table says.
    pub deadline: Option<Duration>,
    /// The order that counts.
    pub order: DeliveryOrder,
    /// The worth of late messages where nothing is said of it.
    pub deliver: Deliver,
    /// The overhead that holds where the table says none, in hundredths.
    pub overhead: Option<u8>,
}

/// Reads `overhead`, in hundredths.
///
/// # Errors
/// [`SettingsError`]: it is no share.
pub fn overhead(reader: &TableReader<'_>) -> Result<Option<u8>, SettingsError> {
    Ok(reader.value::<Probability>("overhead")?.map(percent))
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

/// Reads `deliver`, `residual` and `overhead`, and gives the repair that they ask for, if they ask for any.
///
/// # Errors
/// [`SettingsError`]: a value is out of range, or nothing follows a goal that is said.
pub fn thin_repair(
    reader: &TableReader<'_>,
    context: &GoalContext,
) -> Result<Option<ThinRepair>, SettingsError> {
    let is_auto = context.is_auto;
    let named = (!is_auto).then(|| OF_AUTO.into_iter().find(|key| reader.has(key)));
    if let Some(key) = named.flatten() {
        let problem =
            "is a goal, which a named mode does not follow; write mode = \"auto\", or remove it";
        return Err(reader.wrong(key, problem));
    }
    let deliver = reader.choice("deliver", &DELIVERIES)?;
    let residual = reader.value::<Probability>("residual")?;
    let overhead = overhead(reader)?;
    let Some(deadline) = context.deadline.filter(|_| is_auto) else {
        let lacking = OF_AUTO.into_iter().find(|key| reader.has(key));
        if let Some(key) = lacking.filter(|_| deliver != Some(Deliver::All)) {
            let problem = "needs a deadline; write deadline = \"150ms\", or remove it";
            return Err(reader.wrong(key, problem));
        }
        return Ok(overhead.map(ThinRepair::at_most));
    };
    let deliver = deliver.unwrap_or(context.deliver);
    // Of what is read in order one message in a hundred may be late: a stream has no use for less.
    let usual = match context.order {
        DeliveryOrder::Kept => DeliveryGoal::usual_miss(Deliver::All),
        DeliveryOrder::Any => DeliveryGoal::usual_miss(deliver),
    };
    let goal = DeliveryGoal {
        deadline,
        missed_millionths: residual.map_or(usual, millionths),
        deliver,
        order: context.order,
    };
    let overhead = overhead
        .or(context.overhead)
        .unwrap_or(OVERHEAD_BY_DEADLINE);
    let thin = ThinRepair::at_most(overhead).with_goal(goal);
    let thin = thin.map_err(|error| match error.field {
        "deadline" => reader.wrong("deadline", error.problem),
        _ => reader.wrong("residual", "must be 50% at most; write residual = \"1%\""),
    });
    thin.map(Some)
}
