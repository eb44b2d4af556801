//! `fulmar.toml(5)`: the file of a gateway, key by key.

use fulmar_net::gateway::config::reference::{KEY_TABLES, KeyRow};
use roff::{Inline, Roff, bold, roman};

/// The name of the page.
pub(super) const NAME: &str = "fulmar.toml";

const DESCRIPTION: [&str; 4] = [
    "A gateway reads one file in TOML, which `fulmar gateway -c FILE` or `fulmar up FILE` names; its name is yours to choose. \
     `fulmar init` writes the files of two gateways with their keys.",
    "Every quantity carries its unit: `10Mbit/s`, `5ms`, `64MiB`, `2%`. A key that is not known is refused with a suggestion. \
     `fulmar gateway --check -c FILE` says in words what the file means, or what is wrong with it. A gateway reads the file again at SIGHUP.",
    "A relative name of a file or directory counts from the folder of this file, wherever the gateway is started; what comes out of a pipe, or as `/dev/stdin`, has no folder, and names count from the working directory.",
    "Headings in double brackets may stand several times, one for each peer, path, entry or tunnel.",
];
const EXAMPLE: &str = "\
[gateway]
name = \"ground\"

[security]
kind = \"noise\"
private_key_file = \"/etc/fulmar/ground.key\"

[[peer]]
name = \"air\"
address = \"air.example:4914\"
public_key = \"KEY\"

[[socks]]
listen = \"127.0.0.1:1080\"";

/// The page, for `version` of the program.
pub(super) fn page(version: &str) -> String {
    let mut page = Roff::new();
    page.control(
        "TH",
        [NAME, "5", "", &format!("fulmar {version}"), "Fulmar"],
    );
    page.control("SH", ["NAME"]);
    page.text([roman("fulmar.toml - the file of a gateway")]);
    page.control("SH", ["DESCRIPTION"]);
    for paragraph in DESCRIPTION {
        page.text(inlines(paragraph));
        page.control("PP", []);
    }
    for table in KEY_TABLES {
        page.control("SH", [table.name]);
        for row in table.rows {
            describe(&mut page, row);
        }
    }
    page.control("SH", ["EXAMPLE"]);
    page.control("EX", []);
    for line in EXAMPLE.lines() {
        page.text([roman(line)]);
    }
    page.control("EE", []);
    page.control("SH", ["SEE ALSO"]);
    page.text(inlines(
        "`fulmar-gateway`(1), `fulmar-up`(1), `fulmar-init`(1), `fulmar-keygen`(1), `fulmar-doctor`(1). \
         The guide of gateways has the chapters that are named here.",
    ));
    page.render()
}

fn describe(page: &mut Roff, row: &KeyRow) {
    page.control("TP", []);
    let keys = row.keys.iter().enumerate();
    let keys = keys.flat_map(|(at, key)| {
        let comma = (at > 0).then(|| roman(", "));
        comma.into_iter().chain([bold(*key)])
    });
    page.text(keys.collect::<Vec<Inline>>());
    let mut words = inlines(row.meaning);
    words.push(roman("."));
    if !row.default.is_empty() {
        words.push(roman(" Default: "));
        words.extend(inlines(row.default));
        words.push(roman("."));
    }
    page.text(words);
}

/// The text of a row for a terminal: what is in backquotes or between pairs of asterisks is bold, of a link the words remain.
fn inlines(markdown: &str) -> Vec<Inline> {
    let text = without_targets(markdown).replace("**", "`");
    let parts = text.split('`').enumerate();
    let parts = parts.filter(|(_, part)| !part.is_empty());
    parts
        .map(|(at, part)| if at % 2 == 1 { bold(part) } else { roman(part) })
        .collect()
}

/// The text with `words` in place of each `[words](target)`.
fn without_targets(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, link)) = rest.split_once("](") {
        let Some((_, after)) = link.split_once(')') else {
            break;
        };
        match before.rsplit_once('[') {
            Some((head, words)) => text.extend([head, words]),
            None => text.push_str(before),
        }
        rest = after;
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_becomes_words_for_a_terminal() {
        assert_eq!(
            inlines("off ([captures](captures.md#a)); **in clear** by `--capture`"),
            [
                roman("off (captures); "),
                bold("in clear"),
                roman(" by "),
                bold("--capture")
            ]
        );
        let list = "`\"10.77.0.1/24\"`, `[fd00::/8]:443`";
        assert_eq!(without_targets(list), list);
    }

    #[test]
    fn the_page_names_every_key_and_no_markdown_stays() {
        let page = page("0.0.0");
        for key in KEY_TABLES
            .iter()
            .flat_map(|table| table.rows)
            .flat_map(|row| row.keys)
        {
            assert!(page.contains(&format!("\\fB{key}\\fR")), "{key}");
        }
        assert!(!page.contains('`') && !page.contains("**") && !page.contains(".md"));
    }

    #[test]
    fn the_example_is_a_configuration() {
        let text = EXAMPLE.replace("KEY", "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=");
        fulmar_net::gateway::config::GatewayConfig::read("example", &text).unwrap();
    }
}
