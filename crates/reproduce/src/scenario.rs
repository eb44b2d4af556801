//! The runs of a line as a scenario, and as a command that makes them by itself.

use crate::family::{Family, FamilyLine};
use core::fmt::Write as _;
use fulmar_sim::scenario::{Document, Override, SettingsError, points};

/// The number of runs of a line, as its scenario and settings say.
pub(crate) fn own_runs(family: &Family, line: &FamilyLine) -> Result<usize, SettingsError> {
    let points = points(&document(family, line, None)?)?;
    Ok(points.first().map_or(0, |point| point.plan.run.runs))
}

/// The scenario of a line, swept as its family is, with `runs` for each point instead of its own number.
pub(crate) fn document(
    family: &Family,
    line: &FamilyLine,
    runs: Option<usize>,
) -> Result<Document, SettingsError> {
    let (name, text) = family.scenario;
    let mut document = Document::parse(name, text)?;
    for set in sets(family, line) {
        document.set(set)?;
    }
    document.set(&sweep(family))?;
    if let Some(runs) = runs {
        document.set(&format!("run.runs={runs}"))?;
    }
    Ok(document)
}

/// The settings in which a line differs from the scenario, without those that the sweep gives: families
/// share the sweep's.
fn sets(family: &Family, line: &FamilyLine) -> impl Iterator<Item = &'static str> {
    let path = family.x.path();
    let sets = family.sets.iter().chain(line.sets).copied();
    sets.filter(move |set| !sets_path(set, path))
}

/// Whether a setting, written as `--set` takes it, is of `path`.
fn sets_path(set: &str, path: &str) -> bool {
    Override::parse(set).is_some_and(|set| set.path == path)
}

/// A command that makes the runs of a line, `runs` at each point.
pub(crate) fn line_command(family: &Family, line: &FamilyLine, runs: usize) -> String {
    let (scenario, _) = family.scenario;
    let sets = sets(family, line);
    // The number of runs stands in the command once, as asked for.
    let sets = sets.filter(|set| !sets_path(set, "run.runs"));
    let mut command = format!("fulmar sim {scenario} --runs {runs}");
    for set in sets.map(str::to_owned).chain([sweep(family)]) {
        let _ = write!(command, " --set '{set}'");
    }
    command
}

/// The family's sweep as `--set` takes it.
fn sweep(family: &Family) -> String {
    let (path, values) = (family.x.path(), family.x.written());
    format!("sweep.{path}=[{}]", values.join(","))
}
