//! `fulmar status`.

use super::inquiry::{ask, shown};
use super::lines::{Line, Paint, Style, after, wrapped};
use super::verdicts::{Grade, ShownAlarm, ShownVerdict, alarm, graded, overall};
use crate::exit::{Exit, Failure};
use crate::output;
use console::Term;
use fulmar_net::inquiry::InquiryServer;
use serde::Deserialize;

const EXAMPLES: &str = "\
Examples:
  fulmar status
      the gateway whose [metrics] listen is 127.0.0.1:9490, each link in a sentence
  fulmar status http://192.0.2.7:9490
      another one; ends with 1 unless all is good and protected
  fulmar status --json
      one JSON record: everything that /status says

docs/guide/verdicts.md has the rules, each with its cause and cure. `fulmar top` goes on looking.
";

/// The arguments of `fulmar status`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    /// The gateway's HTTP server: the `listen` of its `[metrics]`, as `HOST:PORT` or HOST.
    #[arg(value_name = "URL", default_value = "http://127.0.0.1:9490")]
    url: InquiryServer,
    /// Print the record of `/status`.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Deserialize)]
struct ShownFigure {
    label: String,
    text: String,
}

#[derive(Debug, Deserialize)]
struct ShownGroup {
    figures: Vec<ShownFigure>,
}

#[derive(Debug, Deserialize)]
struct ShownPeer {
    name: String,
    #[serde(default)]
    verdict: ShownVerdict,
}

/// The part of `/view` that is shown.
#[derive(Debug, Deserialize)]
struct StatusView {
    name: String,
    version: String,
    uptime_seconds: f64,
    grade: Grade,
    /// Whether there are no keys.
    #[serde(default)]
    unprotected: bool,
    alarms: Vec<ShownAlarm>,
    groups: Vec<ShownGroup>,
    peers: Vec<ShownPeer>,
}

/// The part of `/status` that decides on the exit code.
#[derive(Debug, Deserialize)]
struct StatusJudged {
    grade: Grade,
    #[serde(default)]
    unprotected: bool,
}

/// The screen where the terminal's size is not known.
const COLUMNS: usize = 80;
const ROWS: usize = 24;

/// Tells how a gateway is.
///
/// # Errors
/// Nothing answers, or the answer is not a gateway's.
pub(crate) fn run(args: &StatusArgs) -> Result<Exit, Failure> {
    let judged = if args.json {
        let record = ask(&args.url, "/status")?;
        output::record(&record)?;
        shown(record, &args.url)?
    } else {
        let view: StatusView = shown(ask(&args.url, "/view")?, &args.url)?;
        let size = Term::stdout().size_checked();
        let (rows, columns) = size.map_or((ROWS, COLUMNS), |(rows, columns)| {
            (usize::from(rows), usize::from(columns))
        });
        // The shell's next line takes one.
        let rows = rows.saturating_sub(1).max(4);
        let lines = screen(&view, (columns.max(20), rows), Paint::of_stdout());
        output::line(&lines.join("\n"))?;
        StatusJudged {
            grade: view.grade,
            unprotected: view.unprotected,
        }
    };
    Ok(if judged.grade == Grade::Good && !judged.unprotected {
        Exit::Done
    } else {
        Exit::Failed
    })
}

/// So many of the parts, each of some lines, as fit; the last line counts the others.
fn fitting(parts: Vec<Vec<String>>, rows: usize, others: impl Fn(usize) -> String) -> Vec<String> {
    let all: usize = parts.iter().map(Vec::len).sum();
    if all <= rows {
        return parts.concat();
    }
    let count = parts.len();
    let mut lines = Vec::new();
    let mut told = 0;
    for part in parts {
        if lines.len() + part.len() + 1 > rows {
            break;
        }
        lines.extend(part);
        told += 1;
    }
    lines.push(others(count - told));
    lines
}

/// Everything that fits the terminal: the gateway, each link, the alarms beyond those that a link's sentence has.
fn screen(view: &StatusView, (width, rows): (usize, usize), paint: Paint) -> Vec<String> {
    let look = (width, paint);
    let about = format!(
        "  Fulmar {}, up {}",
        view.version,
        after(view.uptime_seconds)
    );
    let title = Line::new(width, paint).add(Style::Strong, &view.name);
    let title = overall(title, view.grade, view.unprotected);
    let mut lines = vec![title.add(Style::Quiet, &about).done()];
    if let Some(now) = view.groups.first() {
        let figures = now
            .figures
            .iter()
            .map(|one| format!("{} {}", one.label, one.text));
        let figures: Vec<String> = figures.collect();
        let (first, further) = wrapped(&figures.join(", "), width, width);
        let line = |text: &str| Line::new(width, paint).add(Style::Quiet, text).done();
        lines.push(line(&first));
        lines.extend(further.iter().map(|text| line(&format!("  {text}"))));
    }
    let mut peers: Vec<&ShownPeer> = view.peers.iter().collect();
    peers.sort_by_key(|peer| core::cmp::Reverse(peer.verdict.grade));
    let of_peer = |peer: &&ShownPeer| {
        let mut lines = Vec::new();
        graded(
            peer.verdict.grade,
            &peer.name,
            &peer.verdict.text,
            look,
            &mut lines,
        );
        lines
    };
    let links: Vec<_> = peers.iter().map(of_peer).collect();
    let of_alarm = |one: &ShownAlarm| {
        let mut lines = Vec::new();
        alarm(one, look, &mut lines);
        lines
    };
    let alarms: Vec<_> = view.alarms.iter().map(of_alarm).collect();
    let quiet = |text: String| Line::new(width, paint).add(Style::Quiet, &text).done();
    let left = rows.saturating_sub(lines.len() + 1);
    // Half of the screen at most is for alarms, if the links need the rest.
    let of_links: usize = links.iter().map(Vec::len).sum();
    let of_alarms: usize = alarms.iter().map(Vec::len).sum();
    let for_alarms = if alarms.is_empty() {
        0
    } else {
        (1 + of_alarms).min((left / 2).max(left.saturating_sub(of_links)))
    };
    lines.push(String::new());
    lines.extend(fitting(links, left - for_alarms, |count| {
        quiet(format!("and {count} more links, none of them worse"))
    }));
    if for_alarms > 1 {
        lines.push(String::new());
        lines.extend(fitting(alarms, for_alarms - 1, |count| {
            quiet(format!("and {count} more alarms: --json has all"))
        }));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn view(grades: &[&str]) -> StatusView {
        let text = "Loses 20.1 % there, 19.8 % here, mostly one by one; delivers 7.55 of the 7.84 Mbit/s that such a link \
                    allows (96 %). Fine.";
        let peers: Vec<_> = (grades.iter().enumerate())
            .map(|(n, grade)| json!({"name": format!("ground{n}"), "verdict": {"grade": grade, "state": "x", "text": text}}))
            .collect();
        let alarms: Vec<_> = (grades.iter().enumerate())
            .filter(|(_, grade)| **grade != "good")
            .map(|(n, grade)| {
                json!({"rule": "outage", "grade": grade, "peer": format!("ground{n}"), "text": "nothing comes back",
                       "cause": "the link is gone", "cure": "wait for it"})
            })
            .collect();
        let grade = grades
            .iter()
            .max_by_key(|grade| ["good", "poor", "bad"].iter().position(|one| one == *grade));
        let value = json!({
            "name": "air", "version": "0.1.0", "uptime_seconds": 3_725.4, "grade": grade, "alarms": alarms,
            "groups": [{"title": "Now", "figures": [{"label": "goodput sent", "text": "7.55 Mbit/s"}]}],
            "peers": peers, "a later version's": {}
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_gateway_fits_one_screen_however_many_peers_it_has() {
        for peers in [0, 1, 2, 5, 20, 250] {
            for worst in ["good", "poor", "bad"] {
                let mut grades = vec!["good"; peers];
                grades.extend([worst; 3]);
                for (columns, rows) in [(80, 23), (40, 12), (200, 50), (20, 4)] {
                    let lines = screen(&view(&grades), (columns, rows), Paint::Plain);
                    assert!(
                        lines.len() <= rows.max(5),
                        "{peers} {columns} {rows}: {}",
                        lines.join("\n")
                    );
                    assert!(lines.iter().all(|line| line.chars().count() <= columns));
                }
            }
        }
    }

    #[test]
    fn the_worst_come_first_with_their_alarms_and_who_is_left_out_is_counted() {
        let mut grades = vec!["good"; 20];
        grades.extend(["bad", "poor"]);
        let text = screen(&view(&grades), (80, 23), Paint::Plain).join("\n");
        let place = |words: &str| {
            text.find(words)
                .unwrap_or_else(|| panic!("{words}: {text}"))
        };
        assert!(place("air is BAD") < place("BAD   ground20"));
        assert!(place("BAD   ground20") < place("poor  ground21"));
        assert!(place("poor  ground21") < place("more links, none of them worse"));
        assert!(place("outage  nothing comes back.") > place("more links"));
    }

    #[test]
    fn figures_that_are_wider_than_the_terminal_go_on_in_the_next_line() {
        let figures = [
            ("goodput sent", "46.6 kbit/s"),
            ("goodput received", "223 bit/s"),
            ("flows now", "1"),
            ("kept in custody", "1.25 MB"),
        ];
        let figures = figures.map(|(label, text)| ShownFigure {
            label: label.to_owned(),
            text: text.to_owned(),
        });
        let mut view = view(&["good"]);
        view.groups[0].figures = figures.into();
        let lines = screen(&view, (80, 23), Paint::Plain);
        assert_eq!(
            lines[1..3],
            [
                "goodput sent 46.6 kbit/s, goodput received 223 bit/s, flows now 1, kept in",
                "  custody 1.25 MB",
            ]
        );
    }

    #[test]
    fn a_gateway_without_keys_is_not_protected_whatever_its_grade() {
        let mut view = view(&["good"]);
        view.unprotected = true;
        let lines = screen(&view, (80, 23), Paint::Plain);
        assert!(lines[0].starts_with("air is good, NOT PROTECTED  Fulmar"));
    }

    #[test]
    fn a_good_gateway_is_a_few_lines() {
        let lines = screen(&view(&["good"]), (80, 23), Paint::Plain);
        assert_eq!(
            lines,
            [
                "air is good  Fulmar 0.1.0, up 1:02:05",
                "goodput sent 7.55 Mbit/s",
                "",
                "good  ground0  Loses 20.1 % there, 19.8 % here, mostly one by one; delivers 7.55",
                "      of the 7.84 Mbit/s that such a link allows (96 %). Fine.",
            ]
        );
    }
}
