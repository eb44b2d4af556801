//! Reads typed values out of a written table whose keys are known beforehand.
//!
//! An unknown key is refused before anything is read: a misspelt `rate` is reported as an unknown
//! key, and not as a missing `rate`.

use super::document::{Node, Tree};
use super::error::{Origin, SettingsError, suggestion};
use core::fmt::Display;
use core::str::FromStr;
use core::time::Duration;
use fulmar_proto::units::parse_duration;
use std::collections::BTreeMap;

/// One table being read, all of whose keys are among `known`.
#[derive(Debug)]
pub struct TableReader<'a> {
    path: String,
    origin: Origin,
    table: &'a BTreeMap<String, Tree>,
    known: Keys,
}

type Read<T> = Result<T, SettingsError>;

/// The keys a table may have, in groups that belong together.
pub type Keys = &'static [&'static [&'static str]];

impl<'a> TableReader<'a> {
    /// Reads the root, which may have the keys `known`.
    ///
    /// # Errors
    /// [`SettingsError`]: a key that is not among `known`.
    pub fn root(name: &str, table: &'a BTreeMap<String, Tree>, known: Keys) -> Read<Self> {
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
            return Err(SettingsError::new(
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
        Err(SettingsError::new(origin, self.field(key), problem))
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

    /// The place where the table stands.
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Whether `key` was written.
    pub fn has(&self, key: &'static str) -> bool {
        self.get(key).is_some()
    }

    /// Whether `key` was written as a table, where it may also be a single value.
    pub fn is_table(&self, key: &'static str) -> bool {
        self.get(key)
            .is_some_and(|tree| matches!(tree.node, Node::Table(_)))
    }

    /// The text of `key`.
    ///
    /// # Errors
    /// [`SettingsError`]: it is a list or a table.
    pub fn text(&self, key: &'static str) -> Read<Option<&'a str>> {
        let Some(tree) = self.get(key) else {
            return Ok(None);
        };
        match &tree.node {
            Node::Leaf(text) => Ok(Some(text)),
            _ => Err(self.wrong(key, "must be a single value")),
        }
    }

    /// An error about `key`, at its place.
    pub fn wrong(&self, key: &'static str, problem: impl Display) -> SettingsError {
        let origin = self.get(key).map_or(&self.origin, |tree| &tree.origin);
        SettingsError::new(origin.clone(), self.field(key), problem)
    }

    /// The value of `key`, in its own notation.
    ///
    /// # Errors
    /// [`SettingsError`]: it does not read as such a value.
    pub fn value<T: FromStr<Err: Display>>(&self, key: &'static str) -> Read<Option<T>> {
        self.text(key)?
            .map(|text| text.parse().map_err(|error| self.wrong(key, error)))
            .transpose()
    }

    /// The value of `key` as by [`TableReader::value`], or a default.
    ///
    /// # Errors
    /// [`SettingsError`]: as [`TableReader::value`].
    pub fn value_or<T: FromStr<Err: Display>>(&self, key: &'static str, default: T) -> Read<T> {
        Ok(self.value(key)?.unwrap_or(default))
    }

    /// The value of `key` as by [`TableReader::value`]; it must be there. `example` shows what to
    /// write.
    ///
    /// # Errors
    /// [`SettingsError`]: it is missing, or does not read as such a value.
    pub fn required<T: FromStr<Err: Display>>(&self, key: &'static str, example: &str) -> Read<T> {
        self.value(key)?
            .ok_or_else(|| self.wrong(key, format!("is missing; write {key} = {example}")))
    }

    /// A whole number without a unit, within bounds.
    ///
    /// # Errors
    /// [`SettingsError`]: it is no whole number, or outside `bounds`.
    pub fn whole(
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
    ///
    /// # Errors
    /// [`SettingsError`]: it is no time with a unit.
    pub fn duration(&self, key: &'static str) -> Read<Option<Duration>> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        if let Some(positive) = text.trim().strip_prefix('-')
            && parse_duration(positive).is_ok()
        {
            let problem =
                format!("`{text}` is negative; a time is 0s or longer, such as {positive}");
            return Err(self.wrong(key, problem));
        }
        let span = parse_duration(text).map_err(|error| self.wrong(key, error))?;
        Ok(Some(span))
    }

    /// One of `choices`, by name.
    ///
    /// # Errors
    /// [`SettingsError`]: it is none of them; the error suggests one.
    pub fn choice<T: Copy>(
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
    ///
    /// # Errors
    /// [`SettingsError`]: it is no table, or has other keys.
    pub fn table(&self, key: &'static str, known: Keys) -> Read<Option<Self>> {
        self.get(key)
            .map(|tree| Self::over(self.field(key), tree, known))
            .transpose()
    }

    /// The tables of `[[key]]`, or the one of `[key]`, each of which may have the keys `known`.
    ///
    /// # Errors
    /// [`SettingsError`]: one is no table, or has other keys.
    pub fn tables(&self, key: &'static str, known: Keys) -> Read<Vec<Self>> {
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

    /// The tables of `[key.NAME]` with their names, in alphabetical order, each of which may have
    /// the keys `known`.
    ///
    /// # Errors
    /// [`SettingsError`]: one is no table, or has other keys.
    pub fn named_tables(&self, key: &'static str, known: Keys) -> Read<Vec<(&'a str, Self)>> {
        let Some(tree) = self.get(key) else {
            return Ok(Vec::new());
        };
        let Node::Table(table) = &tree.node else {
            return Err(self.wrong(key, format!("must be tables, each [{key}.NAME]")));
        };
        table
            .iter()
            .map(|(name, entry)| {
                let path = format!("{}.{name}", self.field(key));
                Ok((name.as_str(), Self::over(path, entry, known)?))
            })
            .collect()
    }

    /// The values of the list `key`, each read by `read`; of a single value, that one.
    ///
    /// # Errors
    /// [`SettingsError`]: an entry is no single value, or `read` refuses it.
    pub fn list<T, E: Display>(
        &self,
        key: &'static str,
        read: impl Fn(&'a str) -> Result<T, E>,
    ) -> Read<Option<Vec<T>>> {
        let Some(tree) = self.get(key) else {
            return Ok(None);
        };
        let entries = match &tree.node {
            Node::List(entries) => entries.as_slice(),
            _ => core::slice::from_ref(tree),
        };
        let one = |entry: &'a Tree| {
            let wrong = |problem: &dyn Display| {
                SettingsError::new(entry.origin.clone(), self.field(key), problem)
            };
            match &entry.node {
                Node::Leaf(text) => read(text).map_err(|error| wrong(&error)),
                _ => Err(wrong(&"must be single values")),
            }
        };
        entries.iter().map(one).collect::<Read<_>>().map(Some)
    }

    /// The table `key` of freely named values, each key and value read by `read`, in the order of
    /// the keys. An absent table has none.
    ///
    /// # Errors
    /// [`SettingsError`]: it is no table, an entry is no single value, or `read` refuses it.
    pub fn pairs<T, E: Display>(
        &self,
        key: &'static str,
        read: impl Fn(&'a str, &'a str) -> Result<T, E>,
    ) -> Read<Vec<T>> {
        let Some(tree) = self.get(key) else {
            return Ok(Vec::new());
        };
        let Node::Table(table) = &tree.node else {
            return Err(self.wrong(key, format!("must be a table, such as {key} = {{ ... }}")));
        };
        let one = |(name, entry): (&'a String, &'a Tree)| {
            let wrong = |problem: &dyn Display| {
                let field = format!("{}.{name}", self.field(key));
                SettingsError::new(entry.origin.clone(), field, problem)
            };
            match &entry.node {
                Node::Leaf(text) => read(name, text).map_err(|error| wrong(&error)),
                _ => Err(wrong(&"must be a single value")),
            }
        };
        table.iter().map(one).collect()
    }
}
