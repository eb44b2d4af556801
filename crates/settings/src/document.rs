//! Settings as written: a tree of texts that remember where they stand.
//!
//! Numbers stay as they were typed until a reader knows their quantity, so that `5` can be refused
//! for want of a unit and `1e-4` is not printed back as something else. Changes from the command
//! line and from sweeps are made here, before anything is understood, and every later error can
//! therefore name the line or the `--set` that is to blame.

use super::error::{Origin, SettingsError};
use core::fmt;
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// The node itself: a text, a list or a table.
    pub node: Node,
    /// The place where it stands.
    pub origin: Origin,
}

/// The shapes of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A text, number or truth value, as typed.
    Leaf(String),
    /// A list.
    List(Vec<Tree>),
    /// A table.
    Table(BTreeMap<String, Tree>),
}

/// A value in place of what stands at a path, as `--set` takes it: `path=value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Override<'a> {
    /// The path of the key, with a dot between its steps.
    pub path: &'a str,
    /// The value, as a file would have it but for quotes.
    pub value: &'a str,
}

impl<'a> Override<'a> {
    /// Reads `path=value`; `None` if it has no `=`.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (path, value) = text.split_once('=')?;
        Some(Self {
            path: path.trim(),
            value: value.trim(),
        })
    }
}

impl Node {
    fn describe(&self) -> &'static str {
        match self {
            Self::Leaf(_) => "a value",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl fmt::Display for Node {
    /// Writes the value as `--set` takes it; a table as TOML's inline tables are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leaf(text) => f.write_str(text),
            Self::List(list) => {
                let items: Vec<String> = list.iter().map(|item| item.node.to_string()).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Self::Table(table) => {
                let entries = table.iter();
                let entries: Vec<String> = entries
                    .map(|(key, entry)| format!("{key} = {}", entry.node))
                    .collect();
                write!(f, "{{{}}}", entries.join(", "))
            }
        }
    }
}

/// A whole file as written.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Its tables and values.
    pub root: BTreeMap<String, Tree>,
    /// The name of the text in errors.
    pub name: String,
    /// Tables that a name alone may stand for, each with the key that has the name then: by
    /// `("link", "layer")`, a path below `link = "x"` makes `link = { layer = "x" }` of it.
    pub named_by: &'static [(&'static str, &'static str)],
}

impl Document {
    /// Reads TOML. `name` is the name of the text in errors.
    ///
    /// # Errors
    /// The text is not TOML.
    pub fn parse(name: &str, text: &str) -> Result<Self, SettingsError> {
        let lines = Lines::new(name, text);
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            if holds_key(text) {
                let problem = "this is the file of a key; name the file with the settings";
                return SettingsError::new(lines.origin(at), "", problem);
            }
            let message = error.message();
            let remedy = match message {
                "duplicate key" => "; write it once, or several tables of one name as [[name]]",
                _ => "",
            };
            SettingsError::new(
                lines.origin(at),
                key_near(text, at),
                format!("{message}{remedy}"),
            )
        })?;
        Ok(Self {
            root: lines.table(table.get_ref()),
            name: name.to_owned(),
            named_by: &[],
        })
    }

    /// Applies `path=value` from the command line.
    ///
    /// # Errors
    /// There is no `=`, or the path runs through a value.
    pub fn set(&mut self, assignment: &str) -> Result<(), SettingsError> {
        let origin = Origin::Set(assignment.to_owned());
        let Some(Override { path, value }) = Override::parse(assignment) else {
            let problem = "write it as path=value, such as hop.ber=1e-4";
            return Err(SettingsError::new(origin, assignment, problem));
        };
        if value.starts_with('[') != value.ends_with(']') {
            let problem = format!("`{value}` is half a list; write it in brackets, as [1, 2]");
            return Err(SettingsError::new(origin, path, problem));
        }
        let node = value_node(value, LIST_DEPTH_MAX, &origin);
        self.put(path, &Tree { node, origin })
    }

    /// Replaces or creates what stands at `path`. A step from a list to a name takes every entry
    /// of the list (`hop.ber` is the error rate of all hops), a number takes one (`hop.0.ber`).
    ///
    /// # Errors
    /// The path runs through a value or past the end of a list.
    pub fn put(&mut self, path: &str, value: &Tree) -> Result<(), SettingsError> {
        let mut steps = path.split('.');
        let first = steps.next().unwrap_or_default();
        let rest: Vec<&str> = steps.collect();
        // Sweep paths contain dots themselves: `sweep.hop.ber` is the key `hop.ber` of `sweep`.
        if first == "sweep" && !rest.is_empty() {
            let sweep = self.entry("sweep", value);
            if let Node::Table(table) = &mut sweep.node {
                table.insert(rest.join("."), value.clone());
            }
            return Ok(());
        }
        if rest.is_empty() {
            self.root.insert(first.to_owned(), value.clone());
            return Ok(());
        }
        let named_by = self.named_by;
        put_below(self.entry(first, value), &rest, path, value, named_by)
    }

    fn entry(&mut self, key: &str, value: &Tree) -> &mut Tree {
        let origin = value.origin.clone();
        self.root.entry(key.to_owned()).or_insert_with(|| Tree {
            node: Node::Table(BTreeMap::new()),
            origin,
        })
    }

    /// Whether something stands at `path`, read as [`Document::put`] reads it.
    pub fn has(&self, path: &str) -> bool {
        fn below(tree: &Tree, steps: &[&str]) -> bool {
            let Some((step, rest)) = steps.split_first() else {
                return true;
            };
            match &tree.node {
                Node::Table(table) => match table.get(*step) {
                    Some(next) => below(next, rest),
                    None => *step == "0" && below(tree, rest),
                },
                Node::List(list) => match step.parse::<usize>() {
                    Ok(index) => list.get(index).is_some_and(|entry| below(entry, rest)),
                    Err(_) => list.iter().any(|entry| below(entry, steps)),
                },
                Node::Leaf(_) => false,
            }
        }
        let steps: Vec<&str> = path.split('.').collect();
        let first = self.root.get(steps[0]);
        first.is_some_and(|tree| below(tree, &steps[1..]))
    }

    /// The place where the value at `path` stands. For a value that was not written it is the place
    /// of the nearest table around it; without such a table, the first line.
    pub fn origin_of(&self, path: &str) -> Origin {
        let mut origin = Origin::File {
            name: self.name.clone(),
            line: 1,
        };
        let mut table = &self.root;
        for step in path.split('.') {
            let Some(tree) = table.get(step) else { break };
            origin = tree.origin.clone();
            let Node::Table(below) = &tree.node else {
                break;
            };
            table = below;
        }
        origin
    }

    /// Every value by its path, as typed: the parameters of a run.
    pub fn parameters(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for (key, tree) in &self.root {
            if key != "sweep" {
                flatten(key, tree, &mut all);
            }
        }
        all
    }
}

/// Levels of lists in a value: a sweep over pairs takes a list of lists.
const LIST_DEPTH_MAX: u8 = 2;

/// The meaning of a value on the command line: a list in brackets, of lists up to `depth` levels,
/// or text.
fn value_node(text: &str, depth: u8, origin: &Origin) -> Node {
    let inner = text.strip_prefix('[').and_then(|v| v.strip_suffix(']'));
    let Some(inner) = inner.filter(|_| depth > 0) else {
        return Node::Leaf(text.trim_matches('"').to_owned());
    };
    let mut open = 0_usize;
    let items = inner.split(|letter| {
        match letter {
            '[' => open += 1,
            ']' => open = open.saturating_sub(1),
            _ => {}
        }
        letter == ',' && open == 0
    });
    let items = items.map(str::trim).filter(|item| !item.is_empty());
    Node::List(
        items
            .map(|item| Tree {
                node: value_node(item, depth - 1, origin),
                origin: origin.clone(),
            })
            .collect(),
    )
}

fn put_below(
    tree: &mut Tree,
    steps: &[&str],
    path: &str,
    value: &Tree,
    named_by: &'static [(&'static str, &'static str)],
) -> Result<(), SettingsError> {
    let Some((step, rest)) = steps.split_first() else {
        *tree = value.clone();
        return Ok(());
    };
    let beyond = |len: usize| {
        let known = match len {
            1 => "there is only 0".to_owned(),
            _ => format!("there are {len}, counted from 0"),
        };
        SettingsError::new(value.origin.clone(), path, format!("`{step}`: {known}"))
    };
    match &mut tree.node {
        // A table that stands alone is the first and only one of its name.
        Node::Table(table) if !table.is_empty() && step.parse::<usize>().is_ok() => {
            if *step == "0" {
                put_below(tree, rest, path, value, named_by)
            } else {
                Err(beyond(1))
            }
        }
        Node::Table(table) => {
            let next = table.entry((*step).to_owned()).or_insert_with(|| Tree {
                node: Node::Table(BTreeMap::new()),
                origin: value.origin.clone(),
            });
            let name_key = named_by.iter().find(|(table, _)| table == step);
            if let (Some((_, key)), Node::Leaf(_), [_, ..]) = (name_key, &next.node, rest) {
                let name = next.clone();
                next.node = Node::Table(BTreeMap::from([((*key).to_owned(), name)]));
            }
            put_below(next, rest, path, value, named_by)
        }
        Node::List(list) => match step.parse::<usize>() {
            Ok(index) => {
                let len = list.len();
                let Some(entry) = list.get_mut(index) else {
                    return Err(beyond(len));
                };
                put_below(entry, rest, path, value, named_by)
            }
            Err(_) => list
                .iter_mut()
                .try_for_each(|entry| put_below(entry, steps, path, value, named_by)),
        },
        Node::Leaf(_) => {
            let problem = format!("`{step}` cannot stand below {}", tree.node.describe());
            Err(SettingsError::new(value.origin.clone(), path, problem))
        }
    }
}

/// Whether a line is a key as key files have it, 32 octets in base64: no part of such a text may be repeated.
fn holds_key(text: &str) -> bool {
    let is_base64 = |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'+' | b'/');
    let is_key = |line: &str| {
        let (key, end) = line
            .trim()
            .as_bytes()
            .split_at_checked(43)
            .unwrap_or_default();
        end == b"=" && key.iter().all(is_base64)
    };
    text.lines().any(is_key)
}

/// The key or the table's name on the line of `at`, if one stands there: the field that a syntax
/// error names.
fn key_near(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or(text);
    let line = text[before.rfind('\n').map_or(0, |end| end + 1)..]
        .lines()
        .next();
    let key = line.unwrap_or_default().trim().trim_start_matches('[');
    let is_of_key = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ',' | ' ' | '"');
    let end = key.find(|c| !is_of_key(c)).unwrap_or(key.len());
    let key = key[..end].trim().trim_matches('"');
    // A line in the midst of a list has no key.
    let begins = |c: char| c.is_alphabetic() || c == '_';
    if key.starts_with(begins) && key.len() <= KEY_SHOWN_MAX {
        key
    } else {
        ""
    }
}

/// A length beyond that of any key that is known.
const KEY_SHOWN_MAX: usize = 100;

fn flatten(path: &str, tree: &Tree, into: &mut BTreeMap<String, String>) {
    match &tree.node {
        Node::Leaf(text) => {
            into.insert(path.to_owned(), text.clone());
        }
        Node::List(list) if list.iter().all(|t| matches!(t.node, Node::Leaf(_))) => {
            let items: Vec<&str> = list
                .iter()
                .filter_map(|item| match &item.node {
                    Node::Leaf(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            into.insert(path.to_owned(), format!("[{}]", items.join(", ")));
        }
        Node::List(list) => {
            for (index, entry) in list.iter().enumerate() {
                flatten(&format!("{path}.{index}"), entry, into);
            }
        }
        Node::Table(table) => {
            for (key, entry) in table {
                flatten(&format!("{path}.{key}"), entry, into);
            }
        }
    }
}

/// Turns positions in a text into line numbers.
struct Lines<'a> {
    name: &'a str,
    /// The position of every line feed, so that a large file is not read again for every value.
    ends: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(name: &'a str, text: &str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at).collect();
        Self { name, ends }
    }

    fn origin(&self, at: usize) -> Origin {
        Origin::File {
            name: self.name.to_owned(),
            line: 1 + self.ends.partition_point(|&end| end < at),
        }
    }

    fn table(&self, table: &DeTable<'_>) -> BTreeMap<String, Tree> {
        table
            .iter()
            .map(|(key, value)| {
                let mut tree = self.tree(value);
                if matches!(tree.node, Node::Leaf(_)) {
                    tree.origin = self.origin(key.span().start);
                }
                (key.get_ref().to_string(), tree)
            })
            .collect()
    }

    fn tree(&self, value: &Spanned<DeValue<'_>>) -> Tree {
        let node = match value.get_ref() {
            DeValue::String(text) => Node::Leaf(text.to_string()),
            DeValue::Integer(number) => Node::Leaf(number.as_str().to_owned()),
            DeValue::Float(number) => Node::Leaf(number.as_str().to_owned()),
            DeValue::Boolean(truth) => Node::Leaf(truth.to_string()),
            DeValue::Datetime(time) => Node::Leaf(time.to_string()),
            DeValue::Array(list) => Node::List(list.iter().map(|v| self.tree(v)).collect()),
            DeValue::Table(table) => Node::Table(self.table(table)),
        };
        Tree {
            node,
            origin: self.origin(value.span().start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "[run]\nseed = 1\n[[hop]]\nrate = \"5mbit\"\nber = 1e-5\n[[hop]]\nrate = 3\n";

    #[test]
    fn values_remember_their_line_and_spelling() {
        let document = Document::parse("a.toml", TEXT).unwrap();
        assert_eq!(document.parameters()["hop.0.ber"], "1e-5");
        let Node::List(hops) = &document.root["hop"].node else {
            panic!("a list")
        };
        let Node::Table(second) = &hops[1].node else {
            panic!("a table")
        };
        assert_eq!(second["rate"].origin.to_string(), "a.toml:7");
    }

    #[test]
    fn the_file_of_a_key_is_refused_and_nothing_of_the_key_is_repeated() {
        for key in [
            "WeUWVY07mb0pwmAt2fuvlh9gB339aYpI0UUgGdyjRvs=",
            "qGtsb/epSSkslwTYsTFO8JXGERGLPxFD9FRSvJIIYGA=",
        ] {
            let text = format!("# Fulmar secret key\n{key}\n");
            let said = Document::parse("a.key", &text).unwrap_err().to_string();
            assert!(
                said.starts_with("a.key:2: this is the file of a key"),
                "{said}"
            );
            assert!(!said.contains(&key[..5]), "{said}");
        }
    }

    #[test]
    fn a_value_that_is_quoted_in_an_error_does_not_steer_the_terminal() {
        let error = SettingsError::new(Origin::Default, "a\u{1b}[2J", "is `x\ny`");
        assert_eq!(error.to_string(), "default: `a\\u{1b}[2J`: is `x\\ny`");
    }

    #[test]
    fn a_path_without_a_number_reaches_every_entry_of_a_list() {
        let mut document = Document::parse("a.toml", TEXT).unwrap();
        document.set("hop.ber=1e-4").unwrap();
        document.set("hop.1.forward.loss=2%").unwrap();
        let parameters = document.parameters();
        assert_eq!(parameters["hop.0.ber"], "1e-4");
        assert_eq!(parameters["hop.1.ber"], "1e-4");
        assert_eq!(parameters["hop.1.forward.loss"], "2%");
        for (path, is_there) in [
            ("hop.rate", true),
            ("hop.0.ber", true),
            ("hop.forward.loss", true),
            ("hop.0.forward.loss", false),
            ("hop.2.ber", false),
            ("hop.rate.deeper", false),
            ("run.0.seed", true),
            ("run.1.seed", false),
            ("nothing", false),
        ] {
            assert_eq!(document.has(path), is_there, "{path}");
        }
    }

    #[test]
    fn a_path_below_a_name_makes_a_table_of_it_where_that_is_meant() {
        let text = "[hop]\nlink = \"slacp\"\nrate = \"1mbit\"\n";
        let mut document = Document::parse("a.toml", text).unwrap();
        document.named_by = &[("link", "layer")];
        document.set("hop.link.persistence=2").unwrap();
        let parameters = document.parameters();
        assert_eq!(parameters["hop.link.layer"], "slacp");
        assert_eq!(parameters["hop.link.persistence"], "2");
        assert!(document.set("hop.rate.deeper=2").is_err());
    }

    #[test]
    fn half_a_list_is_no_value() {
        let mut document = Document::parse("a.toml", TEXT).unwrap();
        for half in ["[1%", "1%]"] {
            let error = document.set(&format!("sweep.hop.loss={half}")).unwrap_err();
            assert!(error.to_string().contains("half a list"), "{error}");
        }
    }

    #[test]
    fn impossible_paths_name_the_set_to_blame() {
        let mut document = Document::parse("a.toml", TEXT).unwrap();
        let beyond = document.set("hop.2.ber=1").unwrap_err().to_string();
        assert!(beyond.starts_with("--set hop.2.ber=1: "), "{beyond}");
        assert!(document.set("run.seed.deeper=1").is_err());
        assert!(document.set("run").is_err());
    }

    #[test]
    fn broken_toml_names_the_line() {
        let told = |text| Document::parse("a.toml", text).unwrap_err().to_string();
        let error = told("[run]\nseed = = 1\n");
        assert!(error.starts_with("a.toml:2: `seed`: "), "{error}");
        let error = told("[hop]\n[hop]\n");
        assert!(
            error.starts_with("a.toml:2: `hop`: duplicate key; write it once"),
            "{error}"
        );
        let error = told("a = [\n1,\n= 2]\n");
        assert!(error.starts_with("a.toml:3: "), "{error}");
        assert!(
            !error.contains('`') || error.contains("expected"),
            "{error}"
        );
    }
}
