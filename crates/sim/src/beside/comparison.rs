//! The result of one scenario: a row for each setting, and the best of them in hindsight.

use super::hindsight::{LinkPart, switched};
use super::score::{Achieved, OVERHEAD_TOLERATED, ScoredGoal};
use super::{AutoScenario, FixedSetting, RunAchieved};
use serde::Serialize;

/// The name of the row of `auto`.
pub const AUTO: &str = "auto";
/// The place of [`FixedSetting::ONCE`] in the grid.
const ONCE_AT: usize = 1;
/// The part of the best score that a setting must reach in each part of a run, to be the best one throughout.
const AS_GOOD: f64 = 0.99;

/// The reason why a setting has no score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unfit {
    /// It loses what the goal wants delivered.
    Loses,
    /// It sends more than the goal's overhead allows.
    Overhead,
}

impl Unfit {
    /// The reason in a word or two, for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loses => "loses",
            Self::Overhead => "over its overhead",
        }
    }
}

/// The means over all runs of one setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingScore {
    /// The setting.
    pub setting: String,
    /// The score, whether or not the setting fits the goal.
    pub score: f64,
    /// The reason why it does not count.
    pub unfit: Option<Unfit>,
    /// The share of messages in time.
    pub in_time: Option<f64>,
    /// The share of messages that came late.
    pub late: Option<f64>,
    /// The share of messages that did not come.
    pub lost: Option<f64>,
    /// Octets sent for each octet of message.
    pub octets: f64,
    /// Octets delivered in a second, times 8.
    pub goodput_bps: f64,
    /// The score in each part between changes of hops; none if hops do not change.
    pub parts: Vec<f64>,
}

/// The rows of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AutoComparison {
    /// The name of the scenario.
    pub scenario: String,
    /// `auto`.
    pub auto: SettingScore,
    /// The fixed settings, the best first, those that do not count last.
    pub fixed: Vec<SettingScore>,
    /// The score of `auto` over that of the best fixed setting; `None` if none fits. 0 if `auto` does not fit.
    pub of_best: Option<f64>,
    /// Whether no fixed setting is within a hundredth of the best in every part of the run.
    pub best_changes: bool,
    /// The score of one who switches between the fixed settings over that of the best of them, knowing of each change on time, and
    /// following it a round trip and 16 messages later; none if hops do not change, or if it is bulk.
    pub knowing_of_best: Option<f64>,
    /// The same, following.
    pub following_of_best: Option<f64>,
    /// The first promise that was broken.
    pub error: Option<String>,
}

impl AutoComparison {
    /// The comparison of all runs, by setting; `None` of no runs.
    pub(super) fn of(scenario: &AutoScenario, runs: &[(usize, &RunAchieved)]) -> Option<Self> {
        let of_setting = |setting: usize| -> Option<(Achieved, Vec<LinkPart>)> {
            let mut own = runs.iter().filter(|(of, _)| *of == setting);
            let (_, first) = own.next()?;
            let (mut all, mut parts) = (first.all, first.parts.clone());
            for (_, run) in own {
                all += run.all;
                for (sum, part) in parts.iter_mut().zip(&run.parts) {
                    sum.unknown += part.unknown;
                    sum.known += part.known;
                }
            }
            Some((all, parts))
        };
        let (auto_all, auto_parts) = of_setting(0)?;
        let most = scenario.overhead.and_then(|(base, more)| {
            let (base, _) = of_setting(base + 1)?;
            let (once, _) = of_setting(ONCE_AT + 1)?;
            Some(base.octets() + (more + OVERHEAD_TOLERATED) * once.octets())
        });
        let row = |setting: String, all: &Achieved, parts: &[LinkPart]| {
            let is_messages = matches!(scenario.goal, ScoredGoal::Messages { .. });
            let share =
                |count: u64| is_messages.then(|| count as f64 / all.fates.total().max(1) as f64);
            let loses = all.delivered < all.written && scenario.wants_all;
            let unfit = if loses {
                Some(Unfit::Loses)
            } else {
                most.filter(|most| all.octets() > *most)
                    .map(|_| Unfit::Overhead)
            };
            let several = parts.len() > 1;
            SettingScore {
                setting,
                score: all.score(scenario.goal),
                unfit,
                in_time: share(all.fates.in_time),
                late: share(all.fates.late),
                lost: share(all.fates.lost),
                octets: all.octets(),
                goodput_bps: all.delivered as f64 * 8.0 / all.seconds.max(1e-9),
                parts: parts
                    .iter()
                    .filter(|_| several)
                    .map(|part| part.all().score(scenario.goal))
                    .collect(),
            }
        };
        let auto = row(AUTO.to_owned(), &auto_all, &auto_parts);
        let grid = FixedSetting::grid();
        let mut fitting: Vec<Vec<LinkPart>> = Vec::new();
        let mut fixed: Vec<SettingScore> = grid
            .iter()
            .enumerate()
            .filter_map(|(index, setting)| {
                let (all, parts) = of_setting(index + 1)?;
                let row = row(setting.to_string(), &all, &parts);
                if row.unfit.is_none() && !row.parts.is_empty() {
                    fitting.push(parts);
                }
                Some(row)
            })
            .collect();
        let is_messages = matches!(scenario.goal, ScoredGoal::Messages { .. });
        let switched = of_setting(1)
            .filter(|_| is_messages)
            .and_then(|(_, plain)| {
                let parts: Vec<&[LinkPart]> = fitting.iter().map(Vec::as_slice).collect();
                switched(scenario.goal, &parts, &plain, most)
            });
        fixed.sort_by(|a, b| {
            let fits = |row: &SettingScore| row.unfit.is_some();
            (fits(a).cmp(&fits(b))).then(b.score.total_cmp(&a.score))
        });
        let best = fixed.first().filter(|row| row.unfit.is_none());
        let own = auto.unfit.map_or(auto.score, |_| 0.0);
        let of_best = |score: Option<f64>| Some(score? / best?.score);
        Some(Self {
            scenario: scenario.name.clone(),
            of_best: of_best(Some(own)),
            best_changes: best_changes(&fixed),
            knowing_of_best: of_best(switched.map(|switched| switched.knowing)),
            following_of_best: of_best(switched.map(|switched| switched.following)),
            error: runs.iter().find_map(|(_, run)| run.error.clone()),
            auto,
            fixed,
        })
    }

    /// The best fixed setting.
    pub fn best(&self) -> Option<&SettingScore> {
        self.fixed.first().filter(|row| row.unfit.is_none())
    }
}

/// Whether each fixed setting that counts is clearly worse than another in some part.
fn best_changes(fixed: &[SettingScore]) -> bool {
    let fit: Vec<&SettingScore> = fixed.iter().filter(|row| row.unfit.is_none()).collect();
    let parts = fit.first().map_or(0, |row| row.parts.len());
    let best: Vec<f64> = (0..parts)
        .map(|part| fit.iter().map(|row| row.parts[part]).fold(0.0, f64::max))
        .collect();
    let is_best_throughout = |row: &&SettingScore| {
        (row.parts.iter().zip(&best)).all(|(own, best)| *own >= AS_GOOD * best)
    };
    parts > 1 && !fit.iter().any(is_best_throughout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(setting: &str, parts: &[f64]) -> SettingScore {
        SettingScore {
            setting: setting.to_owned(),
            score: parts.iter().sum(),
            unfit: None,
            in_time: None,
            late: None,
            lost: None,
            octets: 1.0,
            goodput_bps: 0.0,
            parts: parts.to_vec(),
        }
    }

    #[test]
    fn the_best_setting_changes_if_none_is_nearly_the_best_in_every_part() {
        let (early, late) = (row("early", &[1.0, 0.8]), row("late", &[0.8, 1.0]));
        assert!(best_changes(&[early.clone(), late.clone()]));
        let both = row("both", &[0.995, 0.992]);
        assert!(!best_changes(&[early.clone(), late, both]));
        assert!(!best_changes(&[early]));
        assert!(!best_changes(&[row("one part", &[])]));
    }
}
