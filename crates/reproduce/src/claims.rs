//! A paper's claims, and the verdicts that the runs give.

use crate::data::Data;
use serde::{Deserialize, Serialize};

/// A sentence of a paper that states a result, with its check.
#[derive(Debug)]
pub(crate) struct PaperClaim {
    pub(crate) id: &'static str,
    /// The place in the paper.
    pub(crate) place: &'static str,
    /// The paper's statement, in our words.
    pub(crate) says: &'static str,
    /// The conditions for the verdicts "reproduced" and "partly".
    pub(crate) criterion: &'static str,
    /// Figures that show it, by id.
    pub(crate) see: &'static [&'static str],
    /// The check; it gives `None` if the runs have no value to judge by.
    pub(crate) check: fn(&Data) -> Option<ClaimFinding>,
}

/// The result of a claim's check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimFinding {
    pub(crate) verdict: ClaimVerdict,
    /// Our figure.
    pub(crate) figure: String,
    /// Further facts that a reader should know.
    pub(crate) comment: String,
    /// Whether the verdict is `not` because the runs do not decide.
    open: bool,
    /// The verdicts under the other readings of the conditions, if there are such readings; one of them that
    /// has no value gives none.
    others: Option<Vec<ClaimVerdict>>,
}

/// The beginning of a comment's line that says why a verdict decides nothing.
const OPEN: &str = "Too close to tell: ";
/// The beginning of a comment's line that says which of our settings makes a claim hold.
const GIVEN: &str = "Given, not found: ";

impl ClaimFinding {
    /// A verdict with our figure, and further facts that a reader should know.
    pub(crate) const fn new(verdict: ClaimVerdict, figure: String, comment: String) -> Self {
        Self {
            verdict,
            figure,
            comment,
            open: false,
            others: None,
        }
    }

    /// A verdict with our figure alone.
    pub(crate) const fn bare(verdict: ClaimVerdict, figure: String) -> Self {
        Self::new(verdict, figure, String::new())
    }

    /// The finding with the verdicts under other readings of the conditions.
    pub(crate) fn beside(self, others: Vec<ClaimVerdict>) -> Self {
        let others = Some(others);
        Self { others, ..self }
    }

    /// Leaves a claim open that did not come out, but whose opposite did not either, for the reason `why`.
    /// Another verdict stays as it is.
    pub(crate) fn open_if(self, open: bool, why: &str) -> Self {
        if !open || self.verdict != ClaimVerdict::Not {
            return self;
        }
        let open = true;
        Self { open, ..self }.because(OPEN, why)
    }

    /// Marks a claim that holds, whole or in part, because a setting of ours was fitted to it or taken from
    /// its own words, for the reason `why`: that is no evidence for the claim. If it does not even hold
    /// then, that is a finding, and stays one.
    pub(crate) fn given(self, why: &str) -> Self {
        if self.verdict == ClaimVerdict::Not {
            return self;
        }
        let verdict = ClaimVerdict::Given;
        Self { verdict, ..self }.because(GIVEN, why)
    }

    /// The finding with a line before its comment.
    fn because(self, lead: &str, why: &str) -> Self {
        let comment = format!("{lead}{why}\n{}", self.comment.trim_start());
        Self {
            comment: comment.trim_end().to_owned(),
            ..self
        }
    }
}

/// Whether a claim came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClaimVerdict {
    /// The runs show what the paper says.
    Reproduced,
    /// The runs show it in direction or in part of the range.
    Partly,
    /// The runs show otherwise.
    Not,
    /// It holds by our own making, which says nothing: a setting was fitted to it, or taken from its words.
    Given,
}

impl ClaimVerdict {
    /// The name on the page and in the records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Partly => "partly",
            Self::Not => "not",
            Self::Given => "given",
        }
    }

    /// Reproduced if `all` holds, else partly if `part` does.
    pub(crate) const fn of(all: bool, part: bool) -> Self {
        match (all, part) {
            (true, _) => Self::Reproduced,
            (false, true) => Self::Partly,
            (false, false) => Self::Not,
        }
    }
}

/// A claim with its verdict: one object of `claims.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// The id, which stays the same when claims are added.
    pub id: String,
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// The paper's statement, in our words.
    pub claim: String,
    /// The verdict of the runs.
    pub verdict: ClaimVerdict,
    /// Our figure, with its unit.
    pub figure: String,
    /// The criterion, and further facts that a reader should know.
    pub comment: String,
    /// Whether the verdict is `not` because the runs do not decide: the claim is neither reproduced nor
    /// refuted. The record tells it in the comment alone.
    #[serde(skip)]
    pub open: bool,
    /// Whether another reading of the conditions gives another verdict; `None` if the claim is judged under
    /// one reading alone. The record tells it in the comment alone.
    #[serde(skip)]
    pub changes: Option<bool>,
}

/// The number of claims that are judged under several readings, and the number of those whose verdict
/// changes with them.
pub(crate) fn changes(claims: &[Checked]) -> (usize, usize) {
    let read: Vec<bool> = claims.iter().filter_map(|claim| claim.changes).collect();
    (read.len(), read.iter().filter(|changes| **changes).count())
}

impl PaperClaim {
    /// Judges the claim by `data`.
    pub(crate) fn judge(&self, data: &Data) -> Checked {
        let none = || ClaimFinding::bare(ClaimVerdict::Not, "none".to_owned());
        let finding = (self.check)(data).unwrap_or_else(|| {
            none().open_if(
                true,
                "the runs have no value to judge by; take more of them.",
            )
        });
        let comment = format!("{}\n{}", self.criterion, finding.comment.trim());
        Checked {
            id: self.id.to_owned(),
            place: self.place.to_owned(),
            claim: self.says.to_owned(),
            verdict: finding.verdict,
            figure: finding.figure,
            comment: comment.trim_end().to_owned(),
            open: finding.open,
            changes: finding
                .others
                .map(|others| others.iter().any(|other| *other != finding.verdict)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(verdict: ClaimVerdict, open: bool) -> Checked {
        let data = Data {
            families: Vec::new(),
        };
        let claim = PaperClaim {
            id: "a",
            place: "slide 1",
            says: "A beats B.",
            criterion: "Reproduced if it does.",
            see: &[],
            check: match (verdict, open) {
                (ClaimVerdict::Not, true) => {
                    |_| Some(found(ClaimVerdict::Not).open_if(true, "1 ± 2."))
                }
                (ClaimVerdict::Not, false) => {
                    |_| Some(found(ClaimVerdict::Not).open_if(false, "1 ± 2."))
                }
                _ => |_| Some(found(ClaimVerdict::Partly).open_if(true, "1 ± 2.")),
            },
        };
        claim.judge(&data)
    }

    fn found(verdict: ClaimVerdict) -> ClaimFinding {
        ClaimFinding::new(verdict, "1".to_owned(), "Above all.".to_owned())
    }

    #[test]
    fn what_the_runs_do_not_decide_is_told_from_what_they_refute() {
        let open = judged(ClaimVerdict::Not, true);
        assert!(open.open && open.verdict == ClaimVerdict::Not);
        let comment = "Reproduced if it does.\nToo close to tell: 1 ± 2.\nAbove all.";
        assert_eq!(open.comment, comment);
        assert!(!judged(ClaimVerdict::Not, false).open);
        assert!(!judged(ClaimVerdict::Partly, true).open);
    }

    #[test]
    fn what_our_own_settings_make_so_is_no_reproduction_and_a_failed_fit_is_told() {
        for verdict in [ClaimVerdict::Reproduced, ClaimVerdict::Partly] {
            let given = found(verdict).given("the timer was fitted to it.");
            assert_eq!(given.verdict, ClaimVerdict::Given);
            let comment = "Given, not found: the timer was fitted to it.\nAbove all.";
            assert_eq!(given.comment, comment);
        }
        let failed = found(ClaimVerdict::Not);
        assert_eq!(failed.clone().given("the timer was fitted to it."), failed);
    }
}
