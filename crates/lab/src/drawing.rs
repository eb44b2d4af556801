//! A scenario as a picture: its nodes, its hops, and what goes between them, as SVG.
//!
//! Nodes stand in columns by the number of hops from the first flow's sender, and hops between the same two nodes beside each
//! other. The picture follows the reader's light or dark ground.

use core::fmt::Write as _;
use fulmar_channel::ChannelConfig;
use fulmar_sim::PointPlan;
use fulmar_sim::scenario::{FlowPlan, HopStep, TransportPlan};
use std::collections::VecDeque;

/// The distances of columns and rows, and the room around.
const COLUMN: f64 = 260.0;
const ROW: f64 = 120.0;
const ROOM: f64 = 90.0;
/// The distance of two hops between the same nodes.
const BESIDE: f64 = 64.0;
/// The height of a line of the list of flows.
const LINE: f64 = 18.0;
/// The flows that are listed, at most.
const FLOWS_MAX: usize = 12;

const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#1d1f23;text-anchor:middle}\
    .small{font-size:11px;fill:#565b64}.flow{text-anchor:start}\
    path{fill:none;stroke:#1f5fbf;stroke-width:2}rect{fill:#fff;stroke:#1d1f23}\
    @media(prefers-color-scheme:dark){text{fill:#e8e9ec}.small{fill:#a3a9b4}path{stroke:#78aaf5}\
    rect{fill:#16181c;stroke:#e8e9ec}}";

/// The picture of a plan.
pub fn draw(plan: &PointPlan) -> String {
    let places = places(plan);
    let width = places.iter().map(|(x, _)| *x).fold(0.0, f64::max) + ROOM;
    let listed = plan.flows.len().min(FLOWS_MAX + 1) as f64;
    let flows_at = places.iter().map(|(_, y)| *y).fold(0.0, f64::max) + ROOM;
    let height = flows_at + (listed + 1.0) * LINE;
    let mut svg = String::new();
    // Writing to a String cannot fail.
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\"><style>{STYLE}</style>"
    );
    for hop in 0..plan.hops.len() {
        draw_hop(&mut svg, plan, hop, &places);
    }
    for (name, (x, y)) in plan.topology.nodes().iter().zip(&places) {
        let half = 6.0 + 4.2 * name.chars().count() as f64;
        let _ = write!(
            svg,
            "<rect x=\"{:.0}\" y=\"{:.0}\" width=\"{:.0}\" height=\"30\" rx=\"6\"/><text x=\"{x:.0}\" y=\"{:.0}\">{}</text>",
            x - half,
            y - 15.0,
            2.0 * half,
            y + 5.0,
            escaped(name)
        );
    }
    for (line, text) in flow_lines(plan).into_iter().enumerate() {
        let y = flows_at + LINE * line as f64;
        let _ = write!(
            svg,
            "<text class=\"flow\" x=\"20\" y=\"{y:.0}\">{}</text>",
            escaped(&text)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// The middle of each node.
fn places(plan: &PointPlan) -> Vec<(f64, f64)> {
    let count = plan.topology.nodes().len();
    let first = plan.flows.first().map_or(0, |flow| flow.ends.nodes[0]);
    let mut column: Vec<Option<usize>> = vec![None; count];
    let begins = [first].into_iter().chain(0..count);
    for begin in begins {
        if column[begin].is_some() {
            continue;
        }
        column[begin] = Some(0);
        let mut open = VecDeque::from([begin]);
        while let Some(node) = open.pop_front() {
            let next = column[node].map(|column| column + 1);
            for hop in 0..plan.hops.len() {
                let ends = plan.topology.ends_of(hop);
                for (end, other) in [(ends[0], ends[1]), (ends[1], ends[0])] {
                    if end == node && column[other].is_none() {
                        column[other] = next;
                        open.push_back(other);
                    }
                }
            }
        }
    }
    let columns: Vec<usize> = column.into_iter().map(Option::unwrap_or_default).collect();
    let members = |of: usize| columns.iter().filter(move |column| **column == of).count();
    let tallest = columns.iter().map(|column| members(*column)).max();
    let tallest = tallest.unwrap_or_default();
    let mut row = vec![0; count];
    for (node, column) in columns.iter().enumerate() {
        row[node] = columns[..node].iter().filter(|one| *one == column).count();
    }
    let place = |(column, row): (&usize, usize)| {
        let above = (tallest - members(*column)) as f64 / 2.0;
        (
            ROOM + COLUMN * *column as f64,
            ROOM + ROW * (above + row as f64),
        )
    };
    columns.iter().zip(row).map(place).collect()
}

fn draw_hop(svg: &mut String, plan: &PointPlan, hop: usize, places: &[(f64, f64)]) {
    let pair = |hop: usize| {
        let mut ends = plan.topology.ends_of(hop);
        ends.sort_unstable();
        ends
    };
    let beside: Vec<usize> = (0..plan.hops.len())
        .filter(|other| pair(*other) == pair(hop))
        .collect();
    let own = beside
        .iter()
        .position(|other| *other == hop)
        .unwrap_or_default();
    let bend = BESIDE * (own as f64 - (beside.len() - 1) as f64 / 2.0);
    let [from, to] = pair(hop).map(|node| places[node]);
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1.0);
    let middle = (
        f64::midpoint(from.0, to.0) - dy / length * bend,
        f64::midpoint(from.1, to.1) + dx / length * bend,
    );
    // The curve passes the middle, its control point lies twice as far.
    let control = (
        2.0 * middle.0 - f64::midpoint(from.0, to.0),
        2.0 * middle.1 - f64::midpoint(from.1, to.1),
    );
    let _ = write!(
        svg,
        "<path d=\"M{:.0} {:.0}Q{:.0} {:.0} {:.0} {:.0}\"/>",
        from.0, from.1, control.0, control.1, to.0, to.1
    );
    let planned = &plan.hops[hop];
    let forward = channel_text(&planned.forward);
    let reverse = channel_text(&planned.reverse);
    let mut lines = vec![
        (plan.topology.hop_name(hop).to_owned(), ""),
        (forward, "small"),
    ];
    if lines[1].0 != reverse {
        lines.push((format!("back {reverse}"), "small"));
    }
    // The last line stands above the curve.
    let above = 16.0 * (lines.len() - 1) as f64 + 8.0;
    for (line, (text, class)) in lines.into_iter().enumerate() {
        let _ = write!(
            svg,
            "<text class=\"{class}\" x=\"{:.0}\" y=\"{:.0}\">{}</text>",
            middle.0,
            middle.1 - above + 16.0 * line as f64,
            escaped(&text)
        );
    }
}

/// A channel in a few words.
fn channel_text(config: &ChannelConfig) -> String {
    let mut text = config
        .rate
        .map_or_else(|| "any rate".to_owned(), |rate| rate.to_string());
    let _ = write!(text, " {:?}", config.delay);
    let loss = 100.0 * config.loss.mean_loss().value();
    if loss > 0.0 {
        let _ = write!(text, " {}%", (1_000.0 * loss).round() / 1_000.0);
    }
    text
}

fn flow_lines(plan: &PointPlan) -> Vec<String> {
    let flows = plan.flows.iter().enumerate().take(FLOWS_MAX);
    let mut lines: Vec<String> = flows
        .map(|(index, flow)| flow_line(plan, index, flow))
        .collect();
    let more = plan.flows.len().saturating_sub(FLOWS_MAX);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

fn flow_line(plan: &PointPlan, index: usize, flow: &FlowPlan) -> String {
    let transport = match &flow.transport {
        TransportPlan::Datagram(_) => "udp",
        TransportPlan::Aerotp(_) => "aerotp",
        TransportPlan::Gateway(_) => "gateway",
        TransportPlan::Tcp(_) => "tcp",
        TransportPlan::LtTcp(_) => "lt-tcp",
        TransportPlan::Own(own) => own.name(),
    };
    let [from, to] = flow.ends.nodes.map(|node| &plan.topology.nodes()[node]);
    let path = |steps: &[HopStep]| {
        let hops = steps.iter().map(|step| plan.topology.hop_name(step.hop));
        hops.collect::<Vec<_>>().join(", ")
    };
    let paths = flow.ends.paths.iter().map(|one| path(&one.steps));
    let paths: Vec<String> = paths.collect();
    format!(
        "flow {index}: {from} \u{2192} {to}, {transport}, by {}",
        paths.join(" and ")
    )
}

/// A text that is safe in SVG.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
