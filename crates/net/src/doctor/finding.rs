//! The result of one check.

use core::error::Error;
use serde::Serialize;

/// The quality of the machine for a purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingVerdict {
    /// As it should be.
    Good,
    /// It works, but slower or less exactly, or some other use would not work.
    Poor,
    /// The thing asked for cannot work.
    Bad,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The thing that was looked at.
    pub check: String,
    /// Its quality.
    pub verdict: FindingVerdict,
    /// The value seen, with its unit.
    pub found: String,
    /// The cure; present unless the verdict is good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    pub(super) fn good(check: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            check: check.into(),
            verdict: FindingVerdict::Good,
            found: found.into(),
            remedy: None,
        }
    }

    pub(super) fn poor(
        check: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            verdict: FindingVerdict::Poor,
            remedy: Some(remedy.into()),
            ..Self::good(check, found)
        }
    }

    pub(super) fn bad(
        check: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            verdict: FindingVerdict::Bad,
            ..Self::poor(check, found, remedy)
        }
    }
}

/// An error with its causes, in one line.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !line.contains(&said) {
            line += ": ";
            line += &said;
        }
        cause = inner.source();
    }
    line
}
