//! Tables of facts: features of protocols, in words.

use core::fmt::Write as _;
use maud::{Markup, html};

/// Features by protocol.
#[derive(Debug)]
pub(crate) struct FactTable {
    /// The protocols.
    pub(crate) columns: &'static [&'static str],
    pub(crate) rows: &'static [FactRow],
}

/// A feature, and each protocol's word on it.
#[derive(Debug)]
pub(crate) struct FactRow {
    pub(crate) feature: &'static str,
    pub(crate) values: &'static [&'static str],
}

impl FactTable {
    pub(crate) fn markup(&self) -> Markup {
        html! {
            table {
                thead { tr {
                    th { "feature" }
                    @for column in self.columns { th { (column) } }
                } }
                tbody {
                    @for row in self.rows {
                        tr {
                            td data-label="feature" { (row.feature) }
                            @for (column, value) in self.columns.iter().zip(row.values) {
                                td data-label=(column) { (value) }
                            }
                        }
                    }
                }
            }
        }
    }

    /// A line for each feature of each protocol.
    pub(crate) fn csv(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let mut text = "feature,protocol,value\r\n".to_owned();
        for row in self.rows {
            for (column, value) in self.columns.iter().zip(row.values) {
                // Writing to a String cannot fail.
                let _ = write!(
                    text,
                    "{},{},{}\r\n",
                    quoted(row.feature),
                    quoted(column),
                    quoted(value)
                );
            }
        }
        text
    }
}
