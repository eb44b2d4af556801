//! Screens and keys of `fulmar top`.

use super::*;
use crate::commands::lines::visible_text;
use serde_json::json;

fn view(peers: usize, flows: usize) -> View {
    let figure =
        |series: &str, text: &str| json!({"series": series, "label": series, "text": text});
    let peer = |n: usize| {
        let name = format!("ground{n}");
        json!({"name": name, "link": "up", "says": "Datagrams pass.",
               "verdict": {"grade": if n == 1 { "bad" } else { "good" }, "state": "good", "text": format!("Sentence {n}. Fine.")},
               "ways": [{"title": format!("From here to {name}"), "says": "7 datagrams a second are sent, none is lost."}],
               "groups": [{"title": "Rate", "figures": [
                   figure("fulmar_link_loss_ratio{peer=\"x\",direction=\"out\"}", "20.10 %"),
                   figure("fulmar_rtt_seconds{peer=\"x\"}", "41.0 ms")]}]})
    };
    let flow = |n: usize| {
        json!({
            "id": format!("{n:04}"), "protocol": "tcp", "direction": "in", "destination": format!("server{n}.example:443"),
            "class": "bulk", "peer": "ground0", "sent_bytes": 1_000 * n, "received_bytes": 0, "seconds": 10.0 + n as f64,
            "sent_text": format!("{n} kB"), "received_text": "0 B", "age_text": format!("{n} s")
        })
    };
    let value = json!({
        "name": "air", "version": "0.1.0", "sequence": 17, "uptime_seconds": 3_725.4, "grade": "bad",
        "alarms": [{"rule": "security_off", "grade": "bad", "peer": "ground1", "text": "not protected",
                    "cause": "it says so", "cure": "give both ends keys"}],
        "groups": [{"title": "Now", "figures": [figure("fulmar_flows", "3")]}],
        "peers": (0..peers).map(peer).collect::<Vec<_>>(), "classes": [],
        "flows": (0..flows).map(flow).collect::<Vec<_>>(), "flows_left_out": 0,
        "decisions": [{"uptime_seconds": 1.0, "peer": "ground0", "what": "link_down", "why": "why"}],
        "a later version's": {}
    });
    serde_json::from_value(value).unwrap()
}

const USUAL: Size = Size {
    columns: 80,
    rows: 24,
};

fn text(console: &mut Console, view: &View) -> String {
    console.screen(view, None, USUAL, Paint::Plain).join("\n")
}

#[test]
fn no_screen_is_larger_than_the_terminal_and_no_line_wider() {
    let view = view(5, 40);
    for columns in [1, 2, 10, 37, 40, 80, 200] {
        for rows in [1, 2, 5, 24, 100] {
            for tab in Tab::ALL {
                for problem in [None, Some("nothing answers")] {
                    let mut console = Console {
                        tab,
                        is_helping: rows == 24,
                        ..Console::default()
                    };
                    let size = Size { columns, rows };
                    let lines = console.screen(&view, problem, size, Paint::Colours);
                    assert!(lines.len() <= rows);
                    for line in lines {
                        assert!(visible_text(&line).chars().count() <= columns, "{line:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn figures_beside_the_name_go_on_in_the_next_line_where_the_terminal_ends() {
    let mut view = view(1, 0);
    view.groups[0].figures[0].text = "46.6 kbit/s, goodput received 223 bit/s, 3 now".to_owned();
    let lines = Console::default().screen(&view, None, USUAL, Paint::Plain);
    let heading = [lines[0].as_str(), lines[1].trim_start()].join(" ");
    assert!(
        heading.contains("3 now, Fulmar 0.1.0,") && heading.ends_with("snapshot 17"),
        "{heading}"
    );
    assert!(!heading.contains('…'), "{heading}");
}

#[test]
fn the_first_screen_has_the_verdicts_the_links_and_what_to_do_within_80_columns_and_24_lines() {
    let text = text(&mut Console::default(), &view(3, 2));
    let place = |words: &str| {
        text.find(words)
            .unwrap_or_else(|| panic!("{words:?} in\n{text}"))
    };
    assert!(place("air is BAD") < place("BAD   ground1  Sentence 1. Fine."));
    assert!(place("BAD   ground1  Sentence 1. Fine.") < place("good  ground0  Sentence 0. Fine."));
    assert!(place("LOST THERE") < place("> ground1"));
    assert!(place("20.10 %") < place("41.0 ms"));
    assert!(
        place("security off  not protected. Cause: it says so. Cure: give both ends keys.")
            < place("From here to ground1")
    );
    place("? help, q quit");
}

#[test]
fn keys_lead_to_each_table_and_back_and_help_goes_with_the_next_key() {
    let (mut console, view) = (Console::default(), view(2, 2));
    for (tab, words) in [
        (2, "server0.example:443"),
        (3, "fulmar_rtt_seconds"),
        (4, "0:00:01 ground0 link down why"),
    ] {
        console.press(Pressed::Tab(Tab::ALL[tab - 1]));
        let text = text(&mut console, &view);
        assert!(text.contains(words), "{tab}: {text}");
    }
    console.press(Pressed::NextTab(Direction::On));
    assert_eq!(console.tab, Tab::Links);
    console.press(Pressed::NextTab(Direction::Back));
    assert_eq!(console.tab, Tab::Decisions);
    console.press(Pressed::Help);
    assert!(text(&mut console, &view).contains("sort by the next column"));
    console.press(Pressed::Tab(Tab::Links));
    assert!(!text(&mut console, &view).contains("sort by the next column"));
    assert_eq!(console.tab, Tab::Decisions, "it only closed the help");
}

#[test]
fn flows_are_sorted_by_rate_then_by_the_next_column_and_the_other_way_round() {
    let mut console = Console {
        tab: Tab::Flows,
        ..Console::default()
    };
    let mut first = view(1, 3);
    console.look(&first);
    // In ten seconds the second flow moves most.
    first.uptime_seconds += 10.0;
    first.flows[1].sent_bytes += 1_250_000;
    console.look(&first);
    let top = |console: &mut Console| {
        let text = text(console, &first);
        let line = text.lines().find(|line| line.starts_with("> "));
        line.expect("one is chosen").to_owned()
    };
    let line = top(&mut console);
    assert!(
        line.starts_with("> server1.example") && line.contains("1.00 Mbit/s"),
        "{line}"
    );
    console.press(Pressed::Sort);
    assert!(top(&mut console).starts_with("> server1"), "by octets sent");
    console.press(Pressed::Reverse);
    assert!(
        top(&mut console).starts_with("> server0"),
        "the fewest first"
    );
}

#[test]
fn a_long_table_shows_the_chosen_line_and_stops_at_the_ends() {
    let mut console = Console {
        tab: Tab::Flows,
        order: FlowColumn::Sent,
        ..Console::default()
    };
    let view = view(1, 50);
    let chosen = |console: &mut Console| {
        let text = text(console, &view);
        let line = text.lines().find(|line| line.starts_with("> "));
        line.unwrap_or_default()
            .split_whitespace()
            .nth(1)
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(chosen(&mut console), "server49.example:443");
    for (pressed, server) in [
        (Pressed::Line(Direction::Back), 49),
        (Pressed::Line(Direction::On), 48),
        (Pressed::End(Direction::On), 0),
        (Pressed::Page(Direction::On), 0),
        (Pressed::End(Direction::Back), 49),
    ] {
        console.press(pressed);
        assert_eq!(
            chosen(&mut console),
            format!("server{server}.example:443"),
            "{pressed:?}"
        );
    }
}

#[test]
fn names_cannot_steer_the_terminal() {
    let mut view = view(1, 1);
    let hostile = "a\x1b[2J\x07\u{9b}b";
    view.name = hostile.to_owned();
    view.peers[0].name = hostile.to_owned();
    view.flows[0].destination = hostile.to_owned();
    for tab in Tab::ALL {
        let mut console = Console {
            tab,
            ..Console::default()
        };
        for line in console.screen(&view, Some(hostile), USUAL, Paint::Colours) {
            visible_text(&line);
        }
    }
}
