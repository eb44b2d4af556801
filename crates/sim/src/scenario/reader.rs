//! Reads typed values out of a written table whose keys are known beforehand.
//!
//! An unknown key is refused before anything is read: a slip in `rate` is told as that, and not as
//! a missing `rate`.

use super::document::{Node, Tree};
use super::error::{Origin, ScenarioError, suggestion};
use core::fmt::Display;
use core::str::FromStr;
use core::time::Duration;
use fulmar_proto::units::parse_duration;
use std::collections::BTreeMap;

/// One table being read, all of whose keys are among `known`.
#[derive(Debug)]
pub(crate) struct TableReader<'a> {
    path: String,
    origin: Origin,
    table: &'a BTreeMap<String, Tree>,
    known: Keys,
}

type Read<T> = Result<T, ScenarioError>;

/// The keys a table may have, in groups that belong together.
pub(crate) type Keys = &'static [&'static [&'static str]];

impl<'a> TableReader<'a> {
    /// Reads the root, which may have the keys `known`.
    pub(crate) fn root(name: &str, table: &'a BTreeMap<String, Tree>, known: Keys) -> Read<Self> {
        let origin = Origin::File {
            name: name.to_owned(),
            line: 1,
        };
        let root = Self {
            path: String::new(),
            origin,
            table,
            known,
        };
        root.refuse_unknown()
    }

    fn over(path: String, tree: &'a Tree, known: Keys) -> Read<Self> {
        let Node::Table(table) = &tree.node else {
            return Err(ScenarioError::new(
                tree.origin.clone(),
                path,
                "must be a table",
            ));
        };
        let reader = Self {
            path,
            origin: tree.origin.clone(),
            table,
            known,
        };
        reader.refuse_unknown()
    }

    fn knows(&self, key: &str) -> bool {
        self.known.iter().any(|group| group.contains(&key))
    }

    fn refuse_unknown(self) -> Read<Self> {
        let Some((key, tree)) = self.table.iter().find(|(key, _)| !self.knows(key)) else {
            return Ok(self);
        };
        let hint = suggestion(key, self.known.iter().copied().flatten().copied());
        let problem = format!("is not a key here; {hint}");
        let origin = tree.origin.clone();
        Err(ScenarioError::new(origin, self.field(key), problem))
    }

    fn field(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    fn get(&self, key: &'static str) -> Option<&'a Tree> {
        debug_assert!(
            self.knows(key),
            "`{key}` is refused when the table is opened"
        );
        self.table.get(key)
    }

    /// The text of `key`.
    pub(crate) fn text(&self, key: &'static str) -> Read<Option<&'a str>> {
        let Some(tree) = self.get(key) else {
            return Ok(None);
        };
        match &tree.node {
            Node::Leaf(text) => Ok(Some(text)),
            _ => Err(self.wrong(key, "must be a single value")),
        }
    }

    /// An error about `key`, at its place.
    pub(crate) fn wrong(&self, key: &'static str, problem: impl Display) -> ScenarioError {
        let origin = self.get(key).map_or(&self.origin, |tree| &tree.origin);
        ScenarioError::new(origin.clone(), self.field(key), problem)
    }

    /// The value of `key`, in its own notation.
    pub(crate) fn value<T: FromStr<Err: Display>>(&self, key: &'static str) -> Read<Option<T>> {
        self.text(key)?
            .map(|text| text.parse().map_err(|error| self.wrong(key, error)))
            .transpose()
    }

    /// As [`TableReader::value`], with a default.
    pub(crate) fn value_or<T: FromStr<Err: Display>>(
        &self,
        key: &'static str,
        default: T,
    ) -> Read<T> {
        Ok(self.value(key)?.unwrap_or(default))
    }

    /// As [`TableReader::value`], and it must be there. `example` shows what to write.
    pub(crate) fn required<T: FromStr<Err: Display>>(
        &self,
        key: &'static str,
        example: &str,
    ) -> Read<T> {
        self.value(key)?
            .ok_or_else(|| self.wrong(key, format!("is missing; write {key} = {example}")))
    }

    /// A whole number without a unit, within bounds.
    pub(crate) fn whole(
        &self,
        key: &'static str,
        bounds: core::ops::RangeInclusive<u64>,
    ) -> Read<Option<u64>> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        match text.replace('_', "").parse::<u64>() {
            Ok(number) if bounds.contains(&number) => Ok(Some(number)),
            _ => {
                let (low, high) = (bounds.start(), bounds.end());
                let problem = format!("`{text}` must be a whole number from {low} to {high}");
                Err(self.wrong(key, problem))
            }
        }
    }

    /// A span of time.
    pub(crate) fn duration(&self, key: &'static str) -> Read<Option<Duration>> {
        self.text(key)?
            .map(|text| parse_duration(text).map_err(|error| self.wrong(key, error)))
            .transpose()
    }

    /// One of `choices`, by name.
    pub(crate) fn choice<T: Copy>(
        &self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Read<Option<T>> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
            return Ok(Some(*choice));
        }
        let names = choices.iter().map(|(name, _)| *name);
        let problem = format!("`{text}` is not known; {}", suggestion(text, names));
        Err(self.wrong(key, problem))
    }

    /// The table `key`, which may have the keys `known`.
    pub(crate) fn table(&self, key: &'static str, known: Keys) -> Read<Option<Self>> {
        self.get(key)
            .map(|tree| Self::over(self.field(key), tree, known))
            .transpose()
    }

    /// The tables of `[[key]]`, or the one of `[key]`, each of which may have the keys `known`.
    pub(crate) fn tables(&self, key: &'static str, known: Keys) -> Read<Vec<Self>> {
        let Some(tree) = self.get(key) else {
            return Ok(Vec::new());
        };
        match &tree.node {
            Node::List(list) => list
                .iter()
                .enumerate()
                .map(|(index, entry)| {
                    Self::over(format!("{}.{index}", self.field(key)), entry, known)
                })
                .collect(),
            _ => Ok(vec![Self::over(self.field(key), tree, known)?]),
        }
    }
}
