//! The rules as a page of the guide and as alert rules for Prometheus.

use super::VerdictRule;
use super::rules::{AlertRule, CALM_STATES, GATEWAY_RULES, LINK_RULES};
use std::fmt::Write as _;

const HEAD: &str = "\
# Verdicts and alarms

<!-- Made from the rules in crates/net/src/gateway/watch/verdict/rules.rs by
     UPDATE_DOCS=1 cargo test -p fulmar-net --lib the_page_of_verdicts; do not edit. -->

A gateway says of each link in one sentence whether it is fine, and if not, what to do. The live page, `fulmar top`, `fulmar status` and `/status`
(`verdict` of each peer) have the same sentence:

- *Loses 20.1 % there, 19.8 % here, mostly one by one; delivers 7.55 of the 7.84 Mbit/s that such a link allows (96 %). Fine.*
- *Loses nothing; delivers 4.79 of the 7.85 Mbit/s that such a link allows (61 %): the queue ahead is shared with others; set share = \"background\" if it
  comes first, or share = \"own\" if the link is yours.*
- *Loses 20.1 % there, 19.8 % here, mostly one by one; receives 3.40 Mbit/s; delivers 39.0 kbit/s, and could deliver 7.84 Mbit/s. Fine.*

*There* is the way from here to the peer, *here* the way from the peer to here. A direction's losses are told once 20 datagrams or more were sent in the last ten
seconds. *One by one*, *in bursts*, *to wrong bits*, *to full queues* and *to outages* are causes; one is named if it has more than half of the losses since the start.

*Such a link allows* the part of its rate that arrives, behind headers of IP and UDP: (1 - losses) x rate x (packet - 28) / packet. The rate is the configured one, unless the
link has carried less for seconds; where it is found, what was found; where others share the queue, or what was found is doubted, what the link showed with its first packets if that is more. Of several paths
it is the sum of those that carry data. The percentage stands only where as much is sent as the rate allows (85 % of it or more).
Where more than a twentieth is sent by classes that nobody confirms, there is no percentage either, and a link that carries mostly such says what it sends.
What is received is told where it is more than what is delivered.

A link is *good*, *poor* (it works, but less well than it could) or *bad* (it does not do what it is for). The first rule below that holds is the link's state and ends the
sentence; all that hold are alarms. A gateway without keys may be good, and is not protected: that alarm stands beside the grades, and `fulmar status` then says NOT PROTECTED and ends with 1.
`fulmar status` prints the alarms, `/status` has them in `alarms`, `/metrics` as `fulmar_alarm` with the rule's name.
Rates and shares are of the last ten seconds, so an alarm comes and goes within seconds. The alerts for Prometheus
(`packaging/prometheus/fulmar.rules.yml`) wait longer: their times stand in the last column.

## Links
";

const GATEWAY: &str = "
## The gateway
";

const CALM: &str = "
## Links without an alarm

| state | when |
|---|---|
";

fn table(page: &mut String, rules: &[VerdictRule]) {
    page.push_str(
        "\n| rule | grade | when | cause | cure | alert, after |\n|---|---|---|---|---|---|\n",
    );
    for rule in rules {
        let lasts = if rule.alert.lasts.is_empty() {
            "at once"
        } else {
            rule.alert.lasts
        };
        // Writing to a String does not fail.
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} | `{}`, {lasts} |",
            rule.name,
            rule.grade.name(),
            rule.when,
            rule.cause,
            rule.cure,
            rule.alert.name,
        );
    }
}

/// The text of `docs/guide/verdicts.md`.
pub fn document() -> String {
    let mut page = HEAD.to_owned();
    table(&mut page, LINK_RULES);
    page.push_str(GATEWAY);
    table(&mut page, GATEWAY_RULES);
    page.push_str(CALM);
    for (state, when) in CALM_STATES {
        let _ = writeln!(page, "| `{state}` | {when} |");
    }
    page
}

const ALERTS_HEAD: &str = "\
# Alert rules for gateways, for Prometheus: name this file under rule_files. docs/guide/verdicts.md has the same rules with their conditions.
# Made from crates/net/src/gateway/watch/verdict/rules.rs by UPDATE_DOCS=1 cargo test -p fulmar-net --lib the_alert_rules; do not edit.
# A scrape job for them:
#   - job_name: fulmar
#     static_configs: [{targets: [\"192.0.2.7:9490\"]}]
groups:
  - name: fulmar
    rules:
";

fn expression(rule: &VerdictRule) -> String {
    let AlertRule { expr, .. } = rule.alert;
    if expr.is_empty() {
        format!("fulmar_alarm{{rule=\"{}\"}} == 1", rule.name)
    } else {
        expr.to_owned()
    }
}

/// A text in quotes, as YAML reads it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The text of `packaging/prometheus/fulmar.rules.yml`.
pub fn alert_rules() -> String {
    let mut file = ALERTS_HEAD.to_owned();
    let of_links = LINK_RULES
        .iter()
        .map(|rule| (rule, " to {{ $labels.peer }}"));
    let of_gateway = GATEWAY_RULES.iter().map(|rule| (rule, ""));
    for (rule, peer) in of_links.chain(of_gateway) {
        let AlertRule {
            name,
            lasts,
            severity,
            ..
        } = rule.alert;
        let summary = format!("{{{{ $labels.instance }}}}{peer}: {}", rule.when);
        let description = format!("{}. Cure: {}.", rule.cause, rule.cure);
        let _ = writeln!(
            file,
            "      - alert: {name}\n        expr: {}",
            quoted(&expression(rule))
        );
        if !lasts.is_empty() {
            let _ = writeln!(file, "        for: {lasts}");
        }
        let _ = writeln!(
            file,
            "        labels: {{severity: {severity}, rule: {}}}\n        annotations:\n          summary: {}\n          description: {}",
            rule.name,
            quoted(&summary),
            quoted(&description),
        );
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::{env, fs};

    const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");

    fn check(file: &str, made: &str) {
        let path = format!("{ROOT}{file}");
        if env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, made).expect("the tree can be written");
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == made,
            "{file} is old: UPDATE_DOCS=1 cargo test -p fulmar-net --lib verdict"
        );
    }

    #[test]
    fn the_page_of_verdicts_is_what_the_rules_say() {
        check("docs/guide/verdicts.md", &document());
    }

    #[test]
    fn the_alert_rules_are_the_rules() {
        check("packaging/prometheus/fulmar.rules.yml", &alert_rules());
    }

    #[test]
    fn names_are_said_once_and_sentences_end_where_they_are_put_together() {
        let rules = || LINK_RULES.iter().chain(GATEWAY_RULES);
        let names: BTreeSet<&str> = rules().map(|rule| rule.name).collect();
        let alerts: BTreeSet<&str> = rules().map(|rule| rule.alert.name).collect();
        assert_eq!(
            (names.len(), alerts.len()),
            (rules().count(), rules().count())
        );
        for rule in rules() {
            for text in [rule.when, rule.cause, rule.cure] {
                assert!(
                    !text.is_empty() && !text.ends_with('.') && !text.contains('|'),
                    "{text}"
                );
            }
        }
    }
}
