//! A view as lines of text, of any width: all of it for a pipe or a single look, parts of it for the screen.
//!
//! # Promises
//! - Nothing that a gateway or a peer says reaches the terminal as a control sequence.
//! - No line is longer than wished.

use super::super::lines::{GAP, Line, Paint, Style, after, wrapped};
use super::super::verdicts::{ShownVerdict, alarm, graded};
use super::model::{Decision, Figure, Group, Peer, View};

/// The number of the latest decisions that are shown; the page has all.
const DECISIONS_SHOWN: usize = 8;
const FLOWS_SHOWN: usize = 20;
/// The least width of a column of figures.
const COLUMN: usize = 38;

/// A label at the left and a value at the right of `width` columns.
fn figure(line: Line, begin: usize, width: usize, figure: &Figure) -> Line {
    let value = figure.text.chars().count();
    let room = width.saturating_sub(value + 1);
    let label: String = if figure.label.chars().count() > room {
        let cut: String = figure.label.chars().take(room.saturating_sub(1)).collect();
        cut + "…"
    } else {
        figure.label.clone()
    };
    let line = line.to(begin).add(Style::Quiet, &label);
    line.to(begin + width.saturating_sub(value))
        .add(Style::Usual, &figure.text)
}

/// Groups side by side as far as there is room.
fn groups(groups: &[Group], width: usize, paint: Paint, lines: &mut Vec<String>) {
    let across = ((width + GAP) / (COLUMN + GAP)).clamp(1, groups.len().max(1));
    let each = (width + GAP) / across - GAP;
    for row in groups.chunks(across) {
        let mut title = Line::new(width, paint);
        for (n, group) in row.iter().enumerate() {
            title = title.to(n * (each + GAP)).add(Style::Strong, &group.title);
        }
        lines.push(title.done());
        let most = row.iter().map(|group| group.figures.len()).max();
        for n in 0..most.unwrap_or(0) {
            let mut line = Line::new(width, paint);
            for (column, group) in row.iter().enumerate() {
                if let Some(one) = group.figures.get(n) {
                    line = figure(line, column * (each + GAP), each, one);
                }
            }
            lines.push(line.done());
        }
    }
}

pub(super) fn link_style(link: &str) -> Style {
    match link {
        "up" => Style::Good,
        "down" => Style::Bad,
        _ => Style::Doubtful,
    }
}

/// The width of each column of a table.
fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |n| {
        let cells = rows.iter().filter_map(|row| row.get(n));
        cells
            .map(|cell: &String| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    (0..count).map(width).collect()
}

/// The width that a table takes if nothing of it is cut off.
fn natural_width(rows: &[Vec<String>]) -> usize {
    let widths = widths(rows);
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Rows whose cells begin in the same columns; the last may be of any length.
fn table(rows: &[Vec<String>], width: usize, paint: Paint, lines: &mut Vec<String>) {
    let widths = widths(rows);
    for (n, row) in rows.iter().enumerate() {
        let style = if n == 0 { Style::Quiet } else { Style::Usual };
        let mut line = Line::new(width, paint);
        let mut begin = 0;
        for (cell, wide) in row.iter().zip(&widths) {
            line = line.to(begin).add(style, cell);
            begin += wide + GAP;
        }
        lines.push(line.done());
    }
}

fn flows(view: &View, width: usize, paint: Paint, lines: &mut Vec<String>) {
    if view.flows.is_empty() {
        lines.push(
            Line::new(width, paint)
                .add(Style::Quiet, "No flows now.")
                .done(),
        );
        return;
    }
    let head = [
        "FROM",
        "",
        "AGE",
        "SENT",
        "RECEIVED",
        "CLASS",
        "PEER",
        "DESTINATION",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(view.flows.iter().take(FLOWS_SHOWN).map(|flow| {
        let from = if flow.direction == "in" {
            "here"
        } else {
            "there"
        };
        vec![
            from.to_owned(),
            flow.protocol.clone(),
            flow.age_text.clone(),
            flow.sent_text.clone(),
            flow.received_text.clone(),
            flow.class.clone(),
            flow.peer.clone(),
            flow.destination.clone(),
        ]
    }));
    table(&rows, width, paint, lines);
    let listed = view.flows.len().min(FLOWS_SHOWN);
    let more = view.flows_left_out + (view.flows.len() - listed) as u64;
    if more > 0 {
        let text = format!("and {more} younger ones");
        lines.push(Line::new(width, paint).add(Style::Quiet, &text).done());
    }
}

fn peer_figures(peer: &Peer, width: usize, paint: Paint, lines: &mut Vec<String>) {
    let title = Line::new(width, paint).add(Style::Strong, &peer.name);
    let title = title.add(Style::Usual, " ");
    let title = title.add(link_style(&peer.link), &peer.link);
    let title = title.add(Style::Usual, "  ");
    let (first, further) = wrapped(&peer.says, width.saturating_sub(title.columns), width);
    lines.push(title.add(Style::Quiet, &first).done());
    for text in further {
        let line = Line::new(width, paint).to(GAP);
        lines.push(line.add(Style::Quiet, &text).done());
    }
    groups(&peer.groups, width, paint, lines);
}

fn classes(view: &View, width: usize, paint: Paint, lines: &mut Vec<String>) {
    let Some(first) = view.classes.first() else {
        return;
    };
    lines.push(String::new());
    let labels = first.figures.iter().map(|one| one.label.to_uppercase());
    let head = core::iter::once("CLASS".to_owned()).chain(labels);
    let mut rows = vec![head.collect::<Vec<_>>()];
    rows.extend(view.classes.iter().map(|class| {
        let values = class.figures.iter().map(|one| one.text.clone());
        core::iter::once(class.name.clone()).chain(values).collect()
    }));
    if natural_width(&rows) <= width {
        table(&rows, width, paint, lines);
    } else {
        // No figure is cut off: where a row has no room, each class is a group.
        let each: Vec<Group> = view.classes.iter().map(Group::of_class).collect();
        groups(&each, width, paint, lines);
    }
}

fn decision(one: &Decision, width: usize, paint: Paint, lines: &mut Vec<String>) {
    let line = || Line::new(width, paint);
    let peer = one.peer.as_deref().unwrap_or_default();
    let what = format!(" {peer} {} ", one.what.replace('_', " "));
    let told = line().add(Style::Quiet, &after(one.uptime_seconds));
    let told = told.add(Style::Strong, &what);
    let (first, further) = wrapped(&one.why, width.saturating_sub(told.columns), width);
    lines.push(told.add(Style::Usual, &first).done());
    for text in further {
        lines.push(line().to(GAP).add(Style::Usual, &text).done());
    }
}

/// All figures.
pub(super) fn figures(view: &View, (width, paint): (usize, Paint)) -> Vec<String> {
    let mut lines = Vec::new();
    groups(&view.groups, width, paint, &mut lines);
    for peer in &view.peers {
        lines.push(String::new());
        peer_figures(peer, width, paint, &mut lines);
    }
    classes(view, width, paint, &mut lines);
    lines
}

/// All decisions.
pub(super) fn decisions(view: &View, (width, paint): (usize, Paint)) -> Vec<String> {
    let mut lines = Vec::new();
    for one in &view.decisions {
        decision(one, width, paint, &mut lines);
    }
    if lines.is_empty() {
        lines.push("No decisions yet.".to_owned());
    }
    lines
}

/// The whole picture.
pub(super) fn lines(view: &View, width: usize, paint: Paint) -> Vec<String> {
    let line = || Line::new(width, paint);
    let mut lines = Vec::new();
    let about = format!(
        "  Fulmar {}, up {}, snapshot {}",
        view.version,
        after(view.uptime_seconds),
        view.sequence
    );
    let title = line().add(Style::Strong, &view.name);
    lines.push(title.add(Style::Quiet, &about).done());
    for peer in &view.peers {
        let ShownVerdict { grade, text } = &peer.verdict;
        graded(*grade, &peer.name, text, (width, paint), &mut lines);
    }
    for one in &view.alarms {
        alarm(one, (width, paint), &mut lines);
    }
    lines.push(String::new());
    groups(&view.groups, width, paint, &mut lines);
    for peer in &view.peers {
        lines.push(String::new());
        peer_figures(peer, width, paint, &mut lines);
    }
    lines.push(String::new());
    flows(view, width, paint, &mut lines);
    classes(view, width, paint, &mut lines);
    if !view.decisions.is_empty() {
        lines.push(String::new());
        lines.push(line().add(Style::Strong, "Decisions").done());
    }
    for one in view.decisions.iter().take(DECISIONS_SHOWN) {
        decision(one, width, paint, &mut lines);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::lines::visible_text;
    use serde_json::json;

    fn view(name: &str, link: &str) -> View {
        let figures = |count: usize| {
            let one = |n| json!({"label": format!("figure {n}"), "text": format!("{n} kbit/s")});
            (0..count).map(one).collect::<Vec<_>>()
        };
        let group = |title: &str| json!({"title": title, "figures": figures(5)});
        let flow = json!({
            "protocol": "tcp", "direction": "in", "destination": "server.example:443",
            "class": "bulk", "peer": name, "sent_text": "1.00 MB", "received_text": "2.00 MB",
            "age_text": "3.00 s"
        });
        let value = json!({
            "name": "air", "version": "0.1.0", "sequence": 17, "uptime_seconds": 3_725.4,
            "groups": [group("Now")],
            "peers": [{"name": name, "link": link, "says": "It is so.",
                       "groups": [group("Rate"), group("Loss"), group("Delay")]}],
            "classes": [{"name": "bulk", "figures": figures(3)}],
            "flows": vec![flow; 30], "flows_left_out": 3,
            "decisions": [{"uptime_seconds": 1.0, "peer": name, "what": "link_down", "why": "why"}],
            "a later version's": {}
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn everything_is_said_where_there_is_room() {
        let text = lines(&view("ground", "down"), 120, Paint::Plain).join("\n");
        for said in [
            "air  Fulmar 0.1.0, up 1:02:05, snapshot 17",
            "ground down  It is so.",
            "figure 4",
            "and 13 younger ones",
            "server.example:443",
            "0:00:01 ground link down why",
        ] {
            assert!(text.contains(said), "{said:?} in\n{text}");
        }
        assert!(!text.contains('\x1b'), "plain");
    }

    #[test]
    fn no_word_of_a_sentence_is_cut_off() {
        let mut view = view("ground", "up");
        let sentence = "Of 916 packets to it that were lost: damaged beyond repair 51 % (51 to 51), wrong bits, \
                        dropped 36 % (36 to 49), at random 7 % (0 to 13), outages 5 % (0 to 16).";
        view.peers[0].says = sentence.to_owned();
        view.decisions[0].why = sentence.to_owned();
        for width in [30, 40, 80, 100, 500] {
            let lines = lines(&view, width, Paint::Plain);
            let words: Vec<&str> = lines
                .iter()
                .flat_map(|line| line.split_whitespace())
                .collect();
            let whole: Vec<&str> = sentence.split_whitespace().collect();
            let found = words.windows(whole.len()).filter(|some| *some == whole);
            assert_eq!(found.count(), 2, "at {width}:\n{}", lines.join("\n"));
        }
    }

    #[test]
    fn a_narrow_terminal_has_every_figure_of_a_class() {
        let mut view = view("ground", "up");
        let one = |n| json!({"label": format!("figure {n}"), "text": format!("{n}.25 Mbit/s")});
        let figures = (0..10).map(one).collect::<Vec<_>>();
        view.classes =
            vec![serde_json::from_value(json!({"name": "bulk", "figures": figures})).unwrap()];
        for width in [40, 80, 100, 200] {
            let text = lines(&view, width, Paint::Plain).join("\n");
            for n in 0..10 {
                assert!(
                    text.contains(&format!("{n}.25 Mbit/s")),
                    "{n} at {width}:\n{text}"
                );
            }
        }
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        let view = view("a\x1b[2J\x07\u{9b}b", "up");
        for line in lines(&view, 120, Paint::Colours) {
            visible_text(&line);
        }
    }

    #[test]
    fn a_view_without_peers_flows_and_decisions_is_one_too() {
        let value = json!({
            "name": "air", "version": "0", "sequence": 0, "uptime_seconds": 0.0, "groups": [],
            "peers": [], "classes": [], "flows": [], "flows_left_out": 0, "decisions": []
        });
        let view = serde_json::from_value(value).unwrap();
        let text = lines(&view, 80, Paint::Plain).join("\n");
        assert!(text.ends_with("No flows now."), "{text}");
    }
}
