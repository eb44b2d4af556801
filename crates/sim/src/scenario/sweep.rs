//! The points of an experiment: every combination of the swept values.
//!
//! ```toml
//! [sweep]
//! "hop.ber" = ["0", "1e-5", "1e-4"]                      # crossed with
//! "flow.mode, flow.fec_words" = [["reliable", 0], ["nack-mack", 24]]   # a pair of paths, zipped
//! ```

use super::ScenarioError;
use super::plan::Plan;
use fulmar_settings::{Document, Node, Tree};
use std::collections::BTreeMap;

/// One point: what varies, and the plan it gives.
#[derive(Clone, Debug)]
pub struct Point {
    /// The swept paths and their values here, as written.
    pub varied: Vec<(String, String)>,
    /// Everything written, with this point's values in place.
    pub parameters: BTreeMap<String, String>,
    /// What it means.
    pub plan: Plan,
}

/// Bounds what a slip of the keyboard can ask for.
const POINTS_MAX: usize = 100_000;

/// One factor of the cross product: paths, and for each level a value for each path.
struct Axis {
    paths: Vec<String>,
    levels: Vec<Vec<Tree>>,
}

/// Lists the points of `document`, the last axis varying fastest. Without a sweep there is one.
///
/// # Errors
/// A sweep is malformed, or a point means nothing.
pub fn points(document: &Document) -> Result<Vec<Point>, ScenarioError> {
    let axes = axes(document)?;
    let count = axes
        .iter()
        .try_fold(1_usize, |count, axis| count.checked_mul(axis.levels.len()))
        .filter(|count| *count <= POINTS_MAX);
    let Some(count) = count else {
        let origin = document.root["sweep"].origin.clone();
        let problem = format!("gives more than {POINTS_MAX} points");
        return Err(ScenarioError::new(origin, "sweep", problem));
    };
    (0..count)
        .map(|index| point(document, &axes, index))
        .collect()
}

fn point(document: &Document, axes: &[Axis], index: usize) -> Result<Point, ScenarioError> {
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
    Ok(Point {
        varied,
        parameters: document.parameters(),
        plan: Plan::read(&document)?,
    })
}

fn axes(document: &Document) -> Result<Vec<Axis>, ScenarioError> {
    let mut found = Vec::new();
    if let Some(sweep) = document.root.get("sweep") {
        collect("", sweep, &mut found)?;
    }
    Ok(found)
}

fn collect(path: &str, tree: &Tree, into: &mut Vec<Axis>) -> Result<(), ScenarioError> {
    let error =
        |problem: &str| ScenarioError::new(tree.origin.clone(), format!("sweep.{path}"), problem);
    match &tree.node {
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
        Node::Leaf(_) => Err(error("must be a list of the values to take")),
        Node::List(levels) if levels.is_empty() => Err(error("must have at least one value")),
        Node::List(levels) => {
            let paths: Vec<String> = path.split(',').map(|p| p.trim().to_owned()).collect();
            let levels = levels
                .iter()
                .map(|level| match &level.node {
                    Node::List(values) if values.len() == paths.len() => Ok(values.clone()),
                    Node::Leaf(_) if paths.len() == 1 => Ok(vec![level.clone()]),
                    _ => Err(error(
                        "every value must be a list with one entry for each path",
                    )),
                })
                .collect::<Result<_, _>>()?;
            into.push(Axis { paths, levels });
            Ok(())
        }
    }
}
