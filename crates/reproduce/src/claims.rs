//! A paper's claims, and the verdicts that the runs give.

use crate::data::Data;
use serde::{Deserialize, Serialize};

/// A sentence of a paper that states a result, with its check.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) id: &'static str,
    /// Where in the paper.
    pub(crate) place: &'static str,
    /// What it says, in our words.
    pub(crate) says: &'static str,
    /// What counts as reproduced, and as partly.
    pub(crate) criterion: &'static str,
    /// Figures that show it, by id.
    pub(crate) see: &'static [&'static str],
    /// `None` if the runs have no value to judge by.
    pub(crate) check: fn(&Data) -> Option<Finding>,
}

/// What the runs say of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    /// Our figure.
    pub(crate) figure: String,
    /// What else there is to know.
    pub(crate) comment: String,
}

/// Whether a claim came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As the paper says.
    Reproduced,
    /// In direction or in part of the range.
    Partly,
    /// Otherwise.
    Not,
}

impl Verdict {
    /// As the page and the records write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Partly => "partly",
            Self::Not => "not",
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checked {
    /// Stays the same when claims are added.
    pub id: String,
    /// Where in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// What the paper says, in our words.
    pub claim: String,
    /// What the runs say.
    pub verdict: Verdict,
    /// Our figure, with its unit.
    pub figure: String,
    /// The criterion, and what else there is to know.
    pub comment: String,
}

impl Claim {
    /// Judges the claim by `data`.
    pub(crate) fn judge(&self, data: &Data) -> Checked {
        let finding = (self.check)(data).unwrap_or_else(|| Finding {
            verdict: Verdict::Not,
            figure: "none".to_owned(),
            comment: "The runs have no value to judge by; take more of them.".to_owned(),
        });
        let comment = format!("{}\n{}", self.criterion, finding.comment.trim());
        Checked {
            id: self.id.to_owned(),
            place: self.place.to_owned(),
            claim: self.says.to_owned(),
            verdict: finding.verdict,
            figure: finding.figure,
            comment: comment.trim_end().to_owned(),
        }
    }
}
