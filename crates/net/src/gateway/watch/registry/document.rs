//! The registry as a page of the guide.

use super::GROUPS;
use std::fmt::Write as _;

const HEAD: &str = "\
# What a gateway counts

<!-- Made from the registry in crates/net/src/gateway/watch/registry by
     UPDATE_DOCS=1 cargo test -p fulmar-net --lib the_page_of_the_guide; do not edit. -->

`/metrics` (OpenMetrics) and the object `metrics` of `/status` (JSON) have these names; the live page and `fulmar top` call them by the words in
the second column. Counters begin at 0 with the gateway. Each direction is counted by both ends: what the receiver notices is at one
gateway, what the sender repairs at the other.

A figure for which nothing was counted yet is absent; no value is ever `NaN`. Computed figures are of a *window*, the last ten seconds. Several answers about
one instant: take `sequence` from `/status`, and ask for `/metrics?sequence=N`, `/view?sequence=N` or `/?sequence=N`; the last 32 are kept.
";

/// The text of `docs/guide/metrics.md`.
pub fn document() -> String {
    let mut page = HEAD.to_owned();
    for (title, entries) in &GROUPS {
        page.push_str("\n## ");
        page.push_str(title);
        page.push_str("\n\n| name | shown as | unit | labels | counted by | meaning |\n");
        page.push_str("|---|---|---|---|---|---|\n");
        for entry in *entries {
            let labels: Vec<String> = entry.labels.iter().map(|l| format!("`{l}`")).collect();
            let formula = if entry.formula.is_empty() {
                String::new()
            } else {
                format!(": `{}`", entry.formula)
            };
            // Writing to a String does not fail.
            let _ = writeln!(
                page,
                "| `{}` | {} | {} | {} | {} | {}{formula} |",
                entry.full_name(),
                entry.label,
                entry.unit.name(),
                labels.join(", "),
                entry.point.name(),
                entry.help,
            );
        }
    }
    page.push_str(VALUES);
    page
}

const VALUES: &str = "
## Values of labels

| label | values |
|---|---|
| `kind` | `source` (sent for the first time), `repair` (parity), `retransmission`, `control` |
| `by` | `fec_words` (parity inside the TPDU), `fec_block` (parity across TPDUs), `arq_1`, `arq_2`, `arq_3_or_more` (how often it was sent again; counted by the sender) |
| `cause` | of `residual_lost_packets`: `lost`, `damaged`; of `held_lost_packets`: `overtaken` (later ones were confirmed), `asked_for`, `timeout`, `damaged` (the session says that its datagram arrived beyond repair); of `loss_cause_ratio`: `bit-errors` (dropped), `beyond-repair` (damaged, and claimed), `random`, `burst` (in a row), `queue` (near the longest delay), `outage` |
| `length` | `1`, `2`, `3-4`, `5-8`, `9-16`, `17-32`, `33-64`, `65_or_more` TPDUs |
| `quantile` | `0.5`, `0.9`, `0.99` |
| `operation` | `key_operation` (Curve25519), `hash`, `opening` (a tag verified), `decode` (parity), `answer` (to whom nobody vouches for) |
| `peer`, `class` | names in the configuration |
| `gateway` | the gateway at the end of a flow's way: the peer, or one behind it |
";

#[cfg(test)]
mod tests {
    use super::super::{Entry, MetricKind, entries};
    use super::*;
    use std::collections::BTreeSet;
    use std::{env, fs};

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/metrics.md");

    #[test]
    fn the_page_of_the_guide_is_what_the_registry_says() {
        let made = document();
        if env::var_os("UPDATE_DOCS").is_some() {
            fs::write(PAGE, &made).unwrap();
        }
        let kept = fs::read_to_string(PAGE).unwrap_or_default();
        assert!(
            kept == made,
            "{PAGE} is old: UPDATE_DOCS=1 cargo test -p fulmar-net --lib the_page_of_the_guide"
        );
    }

    #[test]
    fn names_are_said_once_and_end_in_their_units() {
        let names: Vec<String> = entries().map(Entry::full_name).collect();
        let each: BTreeSet<&String> = names.iter().collect();
        assert_eq!(each.len(), names.len());
        for entry in entries() {
            let suffix = match entry.unit.name() {
                "octets" => "_bytes",
                "s" => "_seconds",
                "bit/s" => "_bits_per_second",
                "1" => "_ratio",
                _ => "",
            };
            assert!(entry.name.ends_with(suffix), "{entry:?}");
            assert!(
                entry
                    .name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'_'),
                "{entry:?}"
            );
            assert!(!entry.help.ends_with('.') && !entry.help.is_empty());
            assert!(!entry.label.is_empty());
            assert!(
                entry.kind == MetricKind::Gauge || !entry.name.ends_with("_total"),
                "{entry:?}"
            );
        }
    }

    #[test]
    fn dashboard_and_alerts_ask_for_figures_that_there_are() {
        let names: BTreeSet<String> = entries().map(Entry::full_name).collect();
        for file in [
            "grafana/fulmar-gateways.json",
            "prometheus/fulmar.rules.yml",
        ] {
            let path = format!("{}/../../packaging/{file}", env!("CARGO_MANIFEST_DIR"));
            let text = fs::read_to_string(&path).unwrap();
            let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            let words = text.split(|c: char| !is_name(c));
            let asked: BTreeSet<&str> = words.filter(|word| word.starts_with("fulmar_")).collect();
            assert!(asked.len() > 8, "{file} asks for {asked:?}");
            for name in asked {
                assert!(names.contains(name), "{file} asks for {name}");
            }
        }
    }
}
