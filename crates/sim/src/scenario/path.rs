//! Paths of values: `hop.ber` is the error rate of every hop, `hop.0.ber` that of the first, and a
//! table that stands alone is the first of its name.

use super::Origin;
use fulmar_settings::{Document, Node, Tree};

/// The relation of two paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meeting {
    /// They part.
    None,
    /// The first ends where the second goes on.
    FirstEnds,
    /// The second ends where the first goes on.
    SecondEnds,
    /// They end together.
    Whole,
}

fn meeting(a: &str, b: &str) -> Meeting {
    let is_number = |step: &str| step.parse::<usize>().is_ok();
    let (mut a, mut b) = (a.split('.').peekable(), b.split('.').peekable());
    loop {
        match (a.peek().copied(), b.peek().copied()) {
            (None, None) => return Meeting::Whole,
            (None, Some(_)) => return Meeting::FirstEnds,
            (Some(_), None) => return Meeting::SecondEnds,
            (Some(one), Some(other)) => match (is_number(one), is_number(other)) {
                (true, false) => drop(a.next()),
                (false, true) => drop(b.next()),
                _ if one == other => {
                    a.next();
                    b.next();
                }
                _ => return Meeting::None,
            },
        }
    }
}

/// Whether two paths name, wholly or in part, the same values.
pub(super) fn overlap(a: &str, b: &str) -> bool {
    meeting(a, b) != Meeting::None
}

/// Whether all that stands at `inner` stands at or below `outer`.
pub(super) fn covers(outer: &str, inner: &str) -> bool {
    matches!(meeting(outer, inner), Meeting::FirstEnds | Meeting::Whole)
}

/// Whether both paths name the same value, or one names several of which the other is one.
pub(crate) fn same(a: &str, b: &str) -> bool {
    meeting(a, b) == Meeting::Whole
}

/// The paths of the values that came from the command line, without those of the sweep.
pub(super) fn set_paths(document: &Document) -> Vec<(String, &Origin)> {
    fn below<'a>(path: &str, tree: &'a Tree, into: &mut Vec<(String, &'a Origin)>) {
        match &tree.node {
            Node::Table(table) => {
                for (key, entry) in table {
                    below(&format!("{path}.{key}"), entry, into);
                }
            }
            Node::List(list)
                if list
                    .iter()
                    .any(|entry| matches!(entry.node, Node::Table(_))) =>
            {
                for (index, entry) in list.iter().enumerate() {
                    below(&format!("{path}.{index}"), entry, into);
                }
            }
            Node::Leaf(_) | Node::List(_) => {
                if matches!(tree.origin, Origin::Set(_)) {
                    into.push((path.to_owned(), &tree.origin));
                }
            }
        }
    }
    let mut found = Vec::new();
    for (key, tree) in document.root.iter().filter(|(key, _)| *key != "sweep") {
        below(key, tree, &mut found);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_without_a_number_means_every_entry() {
        for (a, b, expected) in [
            ("hop.ber", "hop.ber", Meeting::Whole),
            ("hop.ber", "hop.0.ber", Meeting::Whole),
            ("hop.1.ber", "hop.0.ber", Meeting::None),
            ("hop.link", "hop.0.link.window", Meeting::FirstEnds),
            ("hop.reverse.ber", "hop.reverse", Meeting::SecondEnds),
            ("hop.reverse.ber", "hop.ber", Meeting::None),
            ("run.seed", "run.runs", Meeting::None),
        ] {
            assert_eq!(meeting(a, b), expected, "{a} {b}");
        }
        assert!(covers("hop.link", "hop.0.link.window") && !covers("hop.link.window", "hop.link"));
        assert!(same("flow.0.mode", "flow.mode") && overlap("hop.link.window", "hop.link"));
    }

    #[test]
    fn only_values_of_the_command_line_are_found() {
        let mut document =
            Document::parse("a", "[[hop]]\nrate=1\n[[hop]]\nrate=2\n").expect("TOML");
        for set in ["hop.1.ber=1e-5", "sweep.hop.loss=[0%,1%]", "run.runs=2"] {
            document.set(set).expect("a path");
        }
        let found: Vec<String> = set_paths(&document)
            .into_iter()
            .map(|(path, _)| path)
            .collect();
        assert_eq!(found, ["hop.1.ber", "run.runs"]);
    }
}
