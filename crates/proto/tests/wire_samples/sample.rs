//! Samples as lines of JSON, one file for each format.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fmt::Write as _;
use std::{env, fs};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/tests/wire");

/// One packet and the values that its codec read in it.
pub(crate) struct Sample {
    name: String,
    octets: Vec<u8>,
    fields: Vec<(String, String)>,
}

impl Sample {
    pub(crate) fn new(name: &str, octets: &[u8]) -> Self {
        Self {
            name: name.to_owned(),
            octets: octets.to_vec(),
            fields: Vec::new(),
        }
    }

    /// A value that was read; several of one name are in the order of the packet.
    pub(crate) fn field(&mut self, name: &str, value: impl Display) {
        self.fields.push((name.to_owned(), value.to_string()));
    }

    pub(crate) fn flag(&mut self, name: &str, is_set: bool) {
        self.field(name, u8::from(is_set));
    }

    /// Octets that were read, if any.
    pub(crate) fn octets(&mut self, name: &str, octets: &[u8]) {
        if !octets.is_empty() {
            let text: Vec<String> = octets.iter().map(|octet| format!("{octet:02x}")).collect();
            self.field(name, text.join(":"));
        }
    }

    fn line(&self) -> String {
        let mut line = format!("{{\"name\": {:?}, \"octets\": \"", self.name);
        for octet in &self.octets {
            write!(line, "{octet:02x}").expect("a string takes all");
        }
        line.push_str("\", \"fields\": [");
        for (at, (name, value)) in self.fields.iter().enumerate() {
            // JSON would escape these.
            assert!(!value.contains(char::is_control), "{name}: {value}");
            let comma = if at == 0 { "" } else { ", " };
            write!(line, "{comma}[{name:?}, {value:?}]").expect("a string takes all");
        }
        line + "]}\n"
    }
}

/// Compares `samples` with the file of `format`, or writes it if `UPDATE_SAMPLES` is set.
pub(crate) fn hold(format: &str, samples: &[Sample]) {
    let names: BTreeSet<&str> = samples.iter().map(|sample| sample.name.as_str()).collect();
    assert_eq!(names.len(), samples.len(), "each name once");
    let file = format!("{FOLDER}/{format}.jsonl");
    let now: String = samples.iter().map(Sample::line).collect();
    if env::var_os("UPDATE_SAMPLES").is_some() {
        fs::write(&file, &now).expect("the samples can be written");
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == now,
        "{file} is old: UPDATE_SAMPLES=1 cargo test samples"
    );
}
