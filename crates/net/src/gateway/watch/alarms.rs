//! The verdict on a link, and alarms, as [`verdict`](super::verdict) makes them and `/status` tells them.

use serde::Serialize;

/// The grade of a link or an alarm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkGrade {
    /// As it should be.
    #[default]
    Good,
    /// It works, but less well than it could.
    Poor,
    /// It does not do what it is for.
    Bad,
}

impl LinkGrade {
    /// The word in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Poor => "poor",
            Self::Bad => "bad",
        }
    }
}

/// A link in one sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkVerdict {
    /// The worst grade among the rules that hold.
    pub grade: LinkGrade,
    /// The first of these rules; where none holds `idle`, `good`, `lossy`, `unchecked` or `removed`.
    pub state: &'static str,
    /// The sentence.
    pub text: String,
}

/// A rule that holds now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alarm {
    /// The rule's name.
    pub rule: &'static str,
    /// Its grade.
    pub grade: LinkGrade,
    /// The peer that it is about; none if it is about the gateway.
    pub peer: Option<String>,
    /// The finding, in words.
    pub text: String,
    /// The usual cause.
    pub cause: &'static str,
    /// The cure.
    pub cure: &'static str,
}
