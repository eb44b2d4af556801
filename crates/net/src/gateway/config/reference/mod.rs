//! The keys of a gateway's file, for readers: the table of `docs/guide/gateway.md` and the manual page `fulmar.toml(5)` are
//! made from [`KEY_TABLES`], which has each key that the file may have and no other.

mod rows;

use std::fmt::Write as _;

pub use rows::KEY_TABLES;

/// A table of the file, and what may stand in it.
#[derive(Clone, Copy, Debug)]
pub struct KeyTable {
    /// Its heading in the file, or several that share these keys.
    pub name: &'static str,
    /// Its keys.
    pub rows: &'static [KeyRow],
}

/// A key, or several that belong together. The texts are Markdown, with links as the guide has them.
#[derive(Clone, Copy, Debug)]
pub struct KeyRow {
    /// The keys.
    pub keys: &'static [&'static str],
    /// The meaning, in a sentence or several without a full stop at the end.
    pub meaning: &'static str,
    /// The value that holds where the key is not written; empty where there is nothing usual.
    pub default: &'static str,
}

/// The table of the guide, in Markdown.
pub fn guide_table() -> String {
    let mut page = String::from("| table | key | meaning | default |\n|---|---|---|---|\n");
    for table in KEY_TABLES {
        let mut name = quoted(table.name.split(", "));
        for row in table.rows {
            let keys = quoted(row.keys.iter().copied());
            let default = match row.default {
                "" => "-",
                default => default,
            };
            // Writing to a String does not fail.
            let _ = writeln!(page, "| {name} | {keys} | {} | {default} |", row.meaning);
            name.clear();
        }
    }
    page.replace("|  |", "| |")
}

fn quoted<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::{class, link, path, read, read_entries};
    use super::*;
    use fulmar_settings::Keys;
    use std::collections::BTreeSet;
    use std::{env, fs};

    const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/gateway.md");
    const BEGIN: &str =
        "<!-- made by UPDATE_DOCS=1 cargo test -p fulmar-net --lib the_table_of_the_guide -->\n";
    const END: &str = "<!-- end of the keys -->\n";
    const SHARED: &str = "[[forward]], [[socks]], [[transparent]]";
    /// Each table of the file: the key that opens it, its heading here, and the keys that the reader knows.
    const READ: [(&str, &str, Keys); 15] = [
        ("gateway", "[gateway]", read::GATEWAY),
        ("security", "[security]", read::SECURITY),
        ("peer", "[[peer]]", read::PEER),
        ("link", "[[link]]", link::KEYS),
        ("class", "[class.NAME]", &[class::KEYS]),
        ("forward", "[[forward]]", read_entries::FORWARD),
        ("socks", "[[socks]]", read_entries::SOCKS),
        ("transparent", "[[transparent]]", read_entries::TRANSPARENT),
        ("tunnel", "[[tunnel]]", read_entries::TUNNEL),
        ("egress", "[egress]", read::EGRESS),
        ("custody", "[custody]", read::CUSTODY),
        ("limits", "[limits]", read::LIMITS),
        ("metrics", "[metrics]", read::METRICS),
        ("capture", "[capture]", read::RECORDING),
        ("trace", "[trace]", read::RECORDING),
    ];

    fn flat(keys: Keys) -> BTreeSet<&'static str> {
        keys.iter().copied().flatten().copied().collect()
    }

    /// The keys that the reference has for the table `heading`, shared ones among them.
    fn told(heading: &str) -> BTreeSet<&'static str> {
        let mut found = BTreeSet::new();
        for table in KEY_TABLES {
            let is_shared = table.name == SHARED && table.name.split(", ").any(|n| n == heading);
            if table.name == heading || is_shared {
                for key in table.rows.iter().flat_map(|row| row.keys) {
                    assert!(found.insert(*key), "{heading} {key} is there twice");
                }
            }
        }
        found
    }

    #[test]
    fn the_reference_has_each_key_that_is_read_and_no_other() {
        let tables: BTreeSet<&str> = READ.iter().map(|(key, _, _)| *key).collect();
        assert_eq!(tables, flat(read::ROOT));
        for (_, heading, keys) in READ {
            let mut known = flat(keys);
            if heading == "[[peer]]" {
                // A table of its own.
                known.remove("path");
            }
            assert_eq!(told(heading), known, "{heading}");
        }
        assert_eq!(told("[[peer.path]]"), flat(path::KEYS));
        let headings: Vec<&str> = KEY_TABLES.iter().map(|table| table.name).collect();
        assert_eq!(headings.len(), READ.len() + 2, "{headings:?}");
    }

    #[test]
    fn every_key_has_a_meaning() {
        for row in KEY_TABLES.iter().flat_map(|table| table.rows) {
            assert!(
                !row.meaning.is_empty() && !row.meaning.ends_with('.'),
                "{row:?}"
            );
            assert!(!row.meaning.contains('|') && !row.default.contains('|'));
        }
    }

    #[test]
    fn the_table_of_the_guide_is_what_the_reference_says() {
        let kept = fs::read_to_string(GUIDE).unwrap();
        let (before, rest) = kept.split_once(BEGIN).expect("the mark before the table");
        let (_, after) = rest.split_once(END).expect("the mark behind the table");
        let made = format!("{before}{BEGIN}\n{}\n{END}{after}", guide_table());
        if env::var_os("UPDATE_DOCS").is_some() {
            fs::write(GUIDE, &made).unwrap();
        }
        assert!(
            kept == made || env::var_os("UPDATE_DOCS").is_some(),
            "{GUIDE} is old: UPDATE_DOCS=1 cargo test -p fulmar-net --lib the_table_of_the_guide"
        );
    }
}
