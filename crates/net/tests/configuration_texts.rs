//! Any text of a configuration file gives a configuration that explains itself, or an error of one line that names the
//! file. The same check as the fuzz target `configuration`, over its corpus and over mutations of it.

use fulmar_net::gateway::config::GatewayConfig;
use fulmar_net::gateway::config::explain::explain;
use proptest::prelude::*;
use std::fs;
use std::path::PathBuf;

const FILE: &str = "file.toml";

fn corpus() -> Vec<String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/configuration");
    let entries = fs::read_dir(folder).expect("the corpus is committed");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("it can be listed").path())
        .collect();
    paths.sort();
    let texts = paths
        .iter()
        .map(|path| fs::read_to_string(path).expect("texts"));
    texts.collect()
}

/// Whether `text` was taken.
fn read(text: &str) -> bool {
    match GatewayConfig::read(FILE, text) {
        Ok(config) => {
            assert!(explain(&config).ends_with('\n'));
            true
        }
        Err(error) => {
            let error = error.to_string();
            assert!(error.starts_with(FILE), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
            assert!(!error.contains(char::is_control), "{error:?}");
            false
        }
    }
}

#[test]
fn each_text_of_the_corpus_is_a_configuration_or_one_line() {
    let texts = corpus();
    let taken = texts.iter().filter(|text| read(text)).count();
    assert!(taken > 0 && taken < texts.len(), "{taken}");
}

#[test]
fn control_characters_in_a_value_are_written_out() {
    let class = "class = \"telemetry\"";
    let texts = corpus();
    let text = texts.iter().find(|text| text.contains(class));
    let text = text.expect("a configuration with a class");
    assert!(!read(&text.replacen(class, "class = \"t\\u001bmetry\"", 1)));
}

proptest! {
    #[test]
    fn a_changed_configuration_is_a_configuration_or_one_line(
        seed in prop::sample::select(corpus()),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..20_usize, "\\PC{0,3}|[\\[\\]=\"'#\\n0-9]{0,3}"), 1..5),
    ) {
        let mut text: Vec<char> = seed.chars().collect();
        for (place, cut, put) in edits {
            let from = place.index(text.len() + 1);
            let until = (from + cut).min(text.len());
            text.splice(from..until, put.chars());
        }
        read(&String::from_iter(text));
    }
}
