//! Families of runs: a scenario, the parameter that is swept, and the lines in which it is run.

use crate::parameter::SweptParameter;
use fulmar_sim::scenario::Override;

/// Runs of several lines over the same values of one parameter.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) id: &'static str,
    /// The scenario's file name, and its text.
    pub(crate) scenario: (&'static str, &'static str),
    /// Settings in which every line differs from it.
    pub(crate) sets: &'static [&'static str],
    /// The swept parameter.
    pub(crate) x: SweptParameter,
    pub(crate) lines: &'static [FamilyLine],
    /// The conditions in words.
    pub(crate) conditions: &'static str,
}

/// One curve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FamilyLine {
    pub(crate) label: &'static str,
    /// Settings in which it differs from the family's scenario.
    pub(crate) sets: &'static [&'static str],
}

impl FamilyLine {
    pub(crate) const fn of(label: &'static str, sets: &'static [&'static str]) -> Self {
        Self { label, sets }
    }
}

impl Family {
    /// Whether some of its lines get damaged frames and others do not.
    pub(crate) fn gives_some_damaged(&self) -> bool {
        let damaged = Override {
            path: "hop.frame_check",
            value: "false",
        };
        let sets = |set: &&str| Override::parse(set) == Some(damaged);
        let gets = |all: &[&str]| all.iter().any(sets);
        let all = gets(self.sets);
        let lines = || self.lines.iter();
        !all && lines().any(|line| gets(line.sets)) && !lines().all(|line| gets(line.sets))
    }
}
