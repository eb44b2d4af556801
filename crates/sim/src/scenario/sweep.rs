//! The points of an experiment: every combination of the swept values.
//!
//! ```toml
//! [sweep]
//! "hop.ber" = ["0", "1e-5", "1e-4"]                      # crossed with
//! "flow.mode, flow.fec_words" = [["reliable", 0], ["nack-mack", 24]]   # a pair of paths, zipped
//! ```

use super::SettingsError;
use super::path::{covers, overlap, set_paths};
use super::plan::PointPlan;
use super::recordings::Recordings;
use fulmar_settings::{Document, Node, Origin, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// One point: the values that vary, and the plan that they give.
#[derive(Clone, Debug)]
pub struct SweepPoint {
    /// The swept paths and their values here, as written.
    pub varied: Vec<(String, String)>,
    /// Everything written, with this point's values in place.
    pub parameters: BTreeMap<String, String>,
    /// The plan of this point.
    pub plan: PointPlan,
}

/// The most points: bounds what a typing mistake can ask for.
const POINTS_MAX: usize = 100_000;
const PATHS_MAX: usize = 1_000;
/// The most runs of a sweep: as Parquet 33 gigabytes, which one process still puts together within an hour
/// (`docs/guide/clusters.md`).
pub const SWEEP_RUNS_MAX: usize = 1_000_000_000;
/// The most runs of a sweep that is written as records: two gigabytes and more for each million.
pub const RECORDS_MAX: usize = 10_000_000;

/// One factor of the cross product: paths, and for each level a value for each path.
struct Axis {
    origin: Origin,
    paths: Vec<String>,
    levels: Vec<Vec<Tree>>,
}

/// The points of a document that names no traces, as [`points_with`] lists them.
///
/// # Errors
/// As [`points_with`].
pub fn points(document: &Document) -> Result<Vec<SweepPoint>, SettingsError> {
    points_of(document, &PointPlan::read)
}

/// Lists the points of `document`, the last axis varying fastest. Without a sweep there is one point.
/// Traces come from `recordings`, once for every point that names them.
///
/// # Errors
/// A sweep is malformed, or a point means nothing.
pub fn points_with(
    document: &Document,
    recordings: &dyn Recordings,
) -> Result<Vec<SweepPoint>, SettingsError> {
    points_of(document, &|document| {
        PointPlan::read_with(document, recordings)
    })
}

type ReadPlan<'a> = &'a dyn Fn(&Document) -> Result<PointPlan, SettingsError>;

fn points_of(document: &Document, read: ReadPlan<'_>) -> Result<Vec<SweepPoint>, SettingsError> {
    let axes = axes(document)?;
    let count = axes
        .iter()
        .try_fold(1_usize, |count, axis| count.checked_mul(axis.levels.len()))
        .filter(|count| *count <= POINTS_MAX);
    let Some(count) = count else {
        let origin = document.root["sweep"].origin.clone();
        let factors: Vec<String> = axes
            .iter()
            .map(|axis| axis.levels.len().to_string())
            .collect();
        let problem = format!(
            "gives {} points, more than {POINTS_MAX}; take fewer values, or zip paths: \
             \"a, b\" = [[1, 2], [3, 4]]",
            factors.join(" x ")
        );
        return Err(SettingsError::new(origin, "sweep", problem));
    };
    let points: Vec<SweepPoint> = (0..count)
        .map(|index| point(document, &axes, index, read))
        .collect::<Result<_, _>>()?;
    let runs = points.iter().map(|point| point.plan.run.runs);
    if runs.clone().sum::<usize>() > SWEEP_RUNS_MAX {
        let (count, runs) = (points.len(), runs.max().unwrap_or_default());
        let problem = format!(
            "{runs} at each of {count} points are more than {SWEEP_RUNS_MAX} in all; take fewer runs or \
             split the sweep"
        );
        return Err(SettingsError::new(
            document.origin_of("run.runs"),
            "run.runs",
            problem,
        ));
    }
    for axis in &axes {
        check_replaced(document, &axes, axis, read)?;
    }
    refuse_idle(&axes, &points)?;
    Ok(points)
}

/// Refuses an axis that changes nothing: rows that differ in their label alone would pass for a result.
fn refuse_idle(axes: &[Axis], points: &[SweepPoint]) -> Result<(), SettingsError> {
    let mut stride = points.len();
    for axis in axes {
        let levels = axis.levels.len();
        let above = stride;
        stride /= levels;
        // The points at this axis's first level, each beside its neighbours at the others.
        let differs = points.iter().enumerate().any(|(index, point)| {
            index % above < stride
                && (1..levels).any(|level| points[index + level * stride].plan != point.plan)
        });
        if levels > 1 && !differs {
            let problem = "changes nothing: each value gives the same runs; they may be one value in \
                           several notations, another key may stand over it, such as one of \
                           [flow.tcp] over [tcp], or the transport has no use for it";
            let field = format!("sweep.{}", axis.paths.join(", "));
            return Err(SettingsError::new(axis.origin.clone(), field, problem));
        }
    }
    Ok(())
}

/// Checks a value that the sweep replaces at every point: a wrong one is reported all the same, because the
/// sweep may be taken out next.
fn check_replaced(
    document: &Document,
    axes: &[Axis],
    replaced: &Axis,
    read: ReadPlan<'_>,
) -> Result<(), SettingsError> {
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let written = replaced.paths.iter().filter(|path| document.has(path));
    let written: Vec<String> = written.map(|path| last(path)).collect();
    if written.is_empty() {
        return Ok(());
    }
    let mut document = document.clone();
    for axis in axes.iter().filter(|axis| !core::ptr::eq(*axis, replaced)) {
        let values = axis.levels.first().into_iter().flatten();
        for (path, value) in axis.paths.iter().zip(values) {
            document.put(path, value)?;
        }
    }
    match read(&document) {
        Err(error) if written.contains(&last(&error.field)) => Err(error),
        _ => Ok(()),
    }
}

fn point(
    document: &Document,
    axes: &[Axis],
    index: usize,
    read: ReadPlan<'_>,
) -> Result<SweepPoint, SettingsError> {
    let mut document = document.clone();
    let mut varied = Vec::new();
    let mut stride = axes.iter().map(|axis| axis.levels.len()).product::<usize>();
    for axis in axes {
        stride /= axis.levels.len();
        let level = &axis.levels[index / stride % axis.levels.len()];
        for (path, value) in axis.paths.iter().zip(level) {
            document.put(path, value)?;
            if let Node::Leaf(text) = &value.node {
                varied.push((path.clone(), text.clone()));
            }
        }
    }
    Ok(SweepPoint {
        varied,
        parameters: document.parameters(),
        plan: read(&document)?,
    })
}

fn axes(document: &Document) -> Result<Vec<Axis>, SettingsError> {
    let mut found = Vec::new();
    if let Some(sweep) = document.root.get("sweep") {
        if !matches!(sweep.node, Node::Table(_)) {
            let problem = "must be one table, [sweep], with a list of values for each path";
            return Err(SettingsError::new(sweep.origin.clone(), "sweep", problem));
        }
        collect("", sweep, &mut found)?;
        if found.is_empty() {
            let problem = "varies nothing; name what is to vary, such as \"hop.ber\" = [0, 1e-5], or \
                           leave [sweep] out";
            return Err(SettingsError::new(sweep.origin.clone(), "sweep", problem));
        }
    }
    refuse_overlaps(&found)?;
    refuse_unused(document, &found)?;
    found.iter().try_for_each(refuse_repeated)?;
    Ok(found)
}

/// Refuses two axes over one value: only the second would have an effect, without a word.
fn refuse_overlaps(axes: &[Axis]) -> Result<(), SettingsError> {
    let paths: Vec<(&str, &Origin)> = axes
        .iter()
        .flat_map(|axis| axis.paths.iter().map(|path| (path.as_str(), &axis.origin)))
        .collect();
    if let Some((_, origin)) = paths.get(PATHS_MAX) {
        let problem = format!("varies more than {PATHS_MAX} values; split the sweep");
        return Err(SettingsError::new((*origin).clone(), "sweep", problem));
    }
    for (index, (path, origin)) in paths.iter().enumerate() {
        let earlier = paths[..index]
            .iter()
            .find(|(earlier, _)| overlap(earlier, path));
        if let Some((earlier, _)) = earlier {
            let problem = format!("varies what `{earlier}` varies already; keep one of them");
            return Err(SettingsError::new(
                (*origin).clone(),
                format!("sweep.{path}"),
                problem,
            ));
        }
    }
    Ok(())
}

/// Refuses a value of the command line that the sweep replaces at every point: it would be ignored.
fn refuse_unused(document: &Document, axes: &[Axis]) -> Result<(), SettingsError> {
    for (set, origin) in set_paths(document) {
        for axis in axes {
            let Some(swept) = axis.paths.iter().find(|swept| covers(swept, &set)) else {
                continue;
            };
            let place = &axis.origin;
            let problem = format!(
                "is never used: the sweep ({place}) gives `{swept}` at every point; take one value \
                 by --set 'sweep.{}=[...]'",
                axis.paths.join(", ")
            );
            return Err(SettingsError::new(origin.clone(), set, problem));
        }
    }
    Ok(())
}

/// Refuses two equal points: they would stand in a table as two results.
fn refuse_repeated(axis: &Axis) -> Result<(), SettingsError> {
    let mut known = BTreeSet::new();
    for level in &axis.levels {
        let written: Vec<String> = level.iter().map(|value| value.node.to_string()).collect();
        let shown = written.join(", ");
        if !known.insert(written) {
            let field = format!("sweep.{}", axis.paths.join(", "));
            let problem = format!("takes `{shown}` twice; write each value once");
            return Err(SettingsError::new(axis.origin.clone(), field, problem));
        }
    }
    Ok(())
}

fn collect(path: &str, tree: &Tree, into: &mut Vec<Axis>) -> Result<(), SettingsError> {
    let error =
        |problem: &str| SettingsError::new(tree.origin.clone(), format!("sweep.{path}"), problem);
    match &tree.node {
        Node::Table(table) if table.is_empty() && !path.is_empty() => Err(error(
            "must be a list of the values to take, such as [0, 1e-5]",
        )),
        Node::Table(table) => {
            for (key, entry) in table {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                collect(&path, entry, into)?;
            }
            Ok(())
        }
        Node::Leaf(_) => Err(error(
            "must be a list of the values to take, such as [0, 1e-5]",
        )),
        Node::List(levels) if levels.is_empty() => Err(error("must have at least one value")),
        Node::List(levels) => {
            let paths: Vec<String> = path.split(',').map(|p| p.trim().to_owned()).collect();
            for path in &paths {
                if path.split('.').any(str::is_empty) {
                    let example = "\"hop.ber\" = [0, \"1e-5\"]";
                    return Err(error(&format!("is not a path; write it as in {example}")));
                }
                if path.split('.').next() == Some("sweep") {
                    return Err(error(
                        "cannot vary the sweep itself; name what is to vary, as hop.ber",
                    ));
                }
            }
            let levels = levels
                .iter()
                .map(|level| match &level.node {
                    Node::List(values) if values.len() == paths.len() => Ok(values.clone()),
                    Node::Leaf(_) if paths.len() == 1 => Ok(vec![level.clone()]),
                    _ => Err(error(
                        "every value must be a list with one entry for each path: \"a, b\" = [[1, 2]]",
                    )),
                })
                .collect::<Result<_, _>>()?;
            into.push(Axis {
                origin: tree.origin.clone(),
                paths,
                levels,
            });
            Ok(())
        }
    }
}
