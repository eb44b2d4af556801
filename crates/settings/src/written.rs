//! Documents as TOML again.

use super::document::{Document, Node, Tree};
use std::collections::BTreeMap;
use toml::{Table, Value};

impl Document {
    /// The document as TOML, tables and keys in alphabetical order. Read again it means the same: every value is a text
    /// there, as it was typed, and has lost its place.
    ///
    /// ```
    /// # use fulmar_settings::Document;
    /// let mut document = Document::parse("a.toml", "[hop]  # the first\nloss = 5e-2\n").unwrap();
    /// document.set("hop.rate=5mbit").unwrap();
    /// assert_eq!(document.to_toml(), "[hop]\nloss = \"5e-2\"\nrate = \"5mbit\"\n");
    /// ```
    pub fn to_toml(&self) -> String {
        written(&self.root).to_string()
    }
}

fn written(table: &BTreeMap<String, Tree>) -> Table {
    let entries = table.iter();
    entries
        .map(|(key, tree)| (key.clone(), value(tree)))
        .collect()
}

fn value(tree: &Tree) -> Value {
    match &tree.node {
        Node::Leaf(text) => Value::String(text.clone()),
        Node::List(list) => Value::Array(list.iter().map(value).collect()),
        Node::Table(table) => Value::Table(written(table)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_that_is_written_and_read_again_has_the_same_values() {
        let text = "title = \"a \\\"quoted\\\" one\\nin two lines\"\n\
                    [[hop]]\nrate = 3\nlink = { layer = \"plain\" }\n[[hop]]\nrate = \"5mbit\"\nber = 1e-5\n\
                    [sweep]\n\"hop.ber\" = [0, 1e-5]\n\"flow.mode, flow.fec_words\" = [[\"reliable\", 0], [\"nack-mack\", 24]]\n[flow]\n";
        let document = Document::parse("a.toml", text).unwrap();
        let again = Document::parse("b.toml", &document.to_toml()).unwrap();
        assert_eq!(again.parameters(), document.parameters());
        let sweeps = [&document, &again].map(|one| one.root["sweep"].node.to_string());
        assert_eq!(sweeps[0], sweeps[1]);
        assert_eq!(again.to_toml(), document.to_toml());
    }
}
