//! The figures of a snapshot that people are shown, their order and their words. The page and
//! `fulmar top` draw it as it is, so that both say the same.

mod sentences;
mod ways;

use super::history::point;
use super::registry::{self, Entry, Sample, Value};
use super::snapshots::Snapshot;
use super::status::{Alarm, FlowStatus, LinkGrade, LinkVerdict, TunnelReport};
use crate::gateway::peers::Decision;
use sentences::says;
use serde::Serialize;
use std::collections::BTreeMap;
use ways::{PathView, Way};

/// The name of the record at `/view`.
pub(in crate::gateway) const SCHEMA: &str = "fulmar.gateway.view.v1";

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub(in crate::gateway) struct Figure {
    /// The registry's name for it, with the labels that were chosen; summed over all others.
    pub(in crate::gateway) series: String,
    label: String,
    /// `null` if nothing was counted for it.
    pub(in crate::gateway) value: Option<Value>,
    text: String,
}

/// Figures under one heading.
#[derive(Clone, Debug, Serialize)]
pub(in crate::gateway) struct Group {
    title: String,
    pub(in crate::gateway) figures: Vec<Figure>,
}

/// One peer.
#[derive(Clone, Debug, Serialize)]
struct PeerView {
    name: String,
    /// The link in one sentence, with its grade.
    verdict: LinkVerdict,
    link: String,
    secure: bool,
    /// Further sentences on its state.
    says: String,
    /// The fate of the datagrams from here, and of those from the peer; none before the first window.
    ways: Vec<Way>,
    /// The point of the drawing that is of the same instant and span as the other figures; none before the first window.
    point: Option<Vec<Option<f64>>>,
    /// The paths to it, if there are several.
    paths: Vec<PathView>,
    groups: Vec<Group>,
}

/// One class.
#[derive(Clone, Debug, Serialize)]
struct ClassView {
    name: String,
    figures: Vec<Figure>,
}

/// One flow.
#[derive(Clone, Debug, Serialize)]
struct FlowView {
    #[serde(flatten)]
    flow: FlowStatus,
    sent_text: String,
    received_text: String,
    age_text: String,
}

/// The whole picture.
#[derive(Clone, Debug, Serialize)]
pub(in crate::gateway) struct View {
    schema: &'static str,
    name: String,
    version: &'static str,
    sequence: u64,
    uptime_seconds: f64,
    /// The span that rates and shares are of; none before the first window.
    window_seconds: Option<f64>,
    /// The worst grade of links and alarms, that of missing keys apart.
    grade: LinkGrade,
    /// Whether there are no keys.
    unprotected: bool,
    /// The alarms, the worst first.
    alarms: Vec<Alarm>,
    groups: Vec<Group>,
    peers: Vec<PeerView>,
    classes: Vec<ClassView>,
    flows: Vec<FlowView>,
    /// Flows that are not listed.
    flows_left_out: u64,
    /// The decisions, the latest first.
    decisions: Vec<Decision>,
}

/// A figure to be shown: its name, a label and value to choose, and another name than the registry's, if it needs one.
struct Shown(
    &'static str,
    Option<(&'static str, &'static str)>,
    &'static str,
);

const fn plain(name: &'static str) -> Shown {
    Shown(name, None, "")
}

type Heading = (&'static str, &'static [Shown]);

const GATEWAY: &[Heading] = &[
    (
        "Now",
        &[
            plain("goodput_delivered_bits_per_second"),
            plain("goodput_received_bits_per_second"),
            plain("flows"),
            plain("custody_bytes"),
            plain("uptime_seconds"),
        ],
    ),
    (
        "Carrier",
        &[
            plain("datagrams_sent"),
            plain("datagrams_received"),
            plain("datagrams_dropped"),
            plain("handshakes"),
            plain("moves"),
        ],
    ),
];

const PEER: &[Heading] = &[
    (
        "From here to the peer",
        &[
            Shown("link_loss_ratio", Some(("direction", "out")), ""),
            Shown(
                "link_sent_packets",
                Some(("direction", "out")),
                "sent, by the last report",
            ),
            Shown(
                "link_arrived_packets",
                Some(("direction", "out")),
                "of them arrived",
            ),
            plain("wire_sent_bits_per_second"),
            plain("payload_confirmed_bits_per_second"),
            plain("capacity_ratio"),
            Shown("bit_error_ratio", Some(("direction", "out")), ""),
            plain("parity_bytes"),
            plain("rate_used_bits_per_second"),
            plain("rate_found_bits_per_second"),
            plain("rate_queue_seconds"),
            plain("rate_random_loss_ratio"),
            plain("rate_bound_bits_per_second"),
        ],
    ),
    (
        "From the peer to here",
        &[
            Shown("link_loss_ratio", Some(("direction", "in")), ""),
            Shown(
                "link_sent_packets",
                Some(("direction", "in")),
                "sent, by the last report",
            ),
            Shown(
                "link_arrived_packets",
                Some(("direction", "in")),
                "of them arrived",
            ),
            plain("payload_received_bits_per_second"),
            Shown("bit_error_ratio", Some(("direction", "in")), ""),
            Shown("wire_lost_packets", None, "holes in TPDU numbers"),
            plain("wire_damaged_packets"),
        ],
    ),
    (
        "Repair from here to the peer",
        &[
            plain("repair_ratio"),
            Shown(
                "link_mended_packets",
                Some(("direction", "out")),
                "arrived damaged, mended",
            ),
            Shown(
                "link_beyond_repair_packets",
                Some(("direction", "out")),
                "damaged beyond repair",
            ),
            plain("far_recovered_packets"),
            Shown(
                "recovered_packets",
                Some(("by", "arq_1")),
                "at the 1st repetition",
            ),
            Shown(
                "recovered_packets",
                Some(("by", "arq_2")),
                "at the 2nd repetition",
            ),
            Shown(
                "recovered_packets",
                Some(("by", "arq_3_or_more")),
                "at the 3rd or later",
            ),
            plain("confirmed_packets"),
            plain("far_residual_lost_packets"),
            plain("stalls"),
        ],
    ),
    (
        "Repair from the peer to here",
        &[
            Shown(
                "link_mended_packets",
                Some(("direction", "in")),
                "arrived damaged, mended",
            ),
            Shown(
                "link_beyond_repair_packets",
                Some(("direction", "in")),
                "damaged beyond repair",
            ),
            Shown(
                "recovered_packets",
                Some(("by", "fec_words")),
                "by parity in the packet",
            ),
            Shown(
                "recovered_packets",
                Some(("by", "fec_block")),
                "by parity across packets",
            ),
            plain("accepted_packets"),
            plain("residual_lost_packets"),
        ],
    ),
    (
        "Losses in a row from the peer to here",
        &[
            Shown("loss_bursts", Some(("length", "1")), "one alone"),
            Shown("loss_bursts", Some(("length", "2")), "two"),
            Shown("loss_bursts", Some(("length", "3-4")), "3 to 4"),
            Shown("loss_bursts", Some(("length", "5-8")), "5 to 8"),
            Shown("loss_bursts", Some(("length", "9-16")), "9 to 16"),
            Shown("loss_bursts", Some(("length", "17-32")), "17 to 32"),
            Shown("loss_bursts", Some(("length", "33-64")), "33 to 64"),
            Shown("loss_bursts", Some(("length", "65_or_more")), "65 or more"),
        ],
    ),
    (
        "Delay and outages",
        &[
            Shown("rtt_seconds", None, "round trip, smoothed"),
            Shown(
                "rtt_quantile_seconds",
                Some(("quantile", "0.5")),
                "round trip, median",
            ),
            Shown(
                "rtt_quantile_seconds",
                Some(("quantile", "0.99")),
                "round trip, 99 %",
            ),
            Shown(
                "confirmed_after_quantile_seconds",
                Some(("quantile", "0.5")),
                "confirmed after, median",
            ),
            Shown(
                "confirmed_after_quantile_seconds",
                Some(("quantile", "0.99")),
                "confirmed after, 99 %",
            ),
            plain("custody_held_bytes"),
            plain("link_outages"),
            plain("link_outage_longest_seconds"),
            plain("link_outage_seconds"),
            plain("path_mtu_bytes"),
        ],
    ),
];

const CLASS: &[Shown] = &[
    plain("flows_opened"),
    plain("flows_finished"),
    plain("flows_refused"),
    plain("flows_reset"),
    plain("accepted_bytes"),
    plain("delivered_bytes"),
    plain("received_bytes"),
    plain("messages_lost"),
    plain("messages_undelivered"),
];

const TUNNEL: &[Shown] = &[
    plain("tunnel_sent_packets"),
    plain("tunnel_received_packets"),
    plain("tunnel_dropped_packets"),
];

/// The text in place of a missing value, and in place of a share of what passed lately where nothing did.
const NOTHING: &str = "–";
const NOTHING_LATELY: &str = "no data lately";
/// Shares of what passed in the window.
const OF_WHAT_PASSED: [&str; 4] = [
    "link_loss_ratio",
    "repair_ratio",
    "wire_loss_ratio",
    "residual_loss_ratio",
];

/// All values, read once.
struct Values(BTreeMap<&'static str, (&'static Entry, Vec<Sample>)>);

impl Values {
    fn of(snapshot: &Snapshot) -> Self {
        let all = registry::entries().map(|entry| (entry.name, (entry, entry.samples(snapshot))));
        Self(all.collect())
    }
}

fn figure(values: &Values, shown: &Shown, of: Option<(&str, &str)>) -> Option<Figure> {
    let Shown(name, choice, label) = *shown;
    let (entry, samples) = values.0.get(name)?;
    let labels: Vec<(&str, &str)> = of.into_iter().chain(choice).collect();
    let value = entry.sum(samples, &labels);
    let nothing = if OF_WHAT_PASSED.contains(&name) {
        NOTHING_LATELY
    } else {
        NOTHING
    };
    let label = if label.is_empty() { entry.label } else { label };
    Some(Figure {
        series: series(entry, &labels),
        label: label.to_owned(),
        value,
        text: value.map_or_else(
            || nothing.to_owned(),
            |value| entry.unit.text(value.as_f64()),
        ),
    })
}

fn series(entry: &Entry, labels: &[(&str, &str)]) -> String {
    let labels: Vec<String> = labels
        .iter()
        .map(|(name, value)| format!("{name}=\"{}\"", registry::escaped(value)))
        .collect();
    if labels.is_empty() {
        entry.full_name()
    } else {
        format!("{}{{{}}}", entry.full_name(), labels.join(","))
    }
}

fn groups(values: &Values, headings: &[Heading], of: Option<(&str, &str)>) -> Vec<Group> {
    let group = |heading: &Heading| Group {
        title: heading.0.to_owned(),
        figures: heading
            .1
            .iter()
            .filter_map(|shown| figure(values, shown, of))
            .collect(),
    };
    headings.iter().map(group).collect()
}

/// The figures of a tunnel, under the peer to whom it leads.
fn tunnel(values: &Values, tunnel: &TunnelReport) -> Group {
    let of = Some(("device", tunnel.device.as_str()));
    Group {
        title: format!("Tunnel {}", tunnel.device),
        figures: TUNNEL
            .iter()
            .filter_map(|shown| figure(values, shown, of))
            .collect(),
    }
}

impl View {
    pub(in crate::gateway) fn of(snapshot: &Snapshot) -> Self {
        let status = &snapshot.status;
        let values = Values::of(snapshot);
        let bytes = |count: u64| registry::Unit::Bytes.text(count as f64);
        let flows = status.flow_list.iter().map(|flow| FlowView {
            sent_text: bytes(flow.sent_bytes),
            received_text: bytes(flow.received_bytes),
            age_text: registry::Unit::Seconds.text(flow.seconds),
            flow: flow.clone(),
        });
        let window = snapshot.window.as_ref();
        let peers = status.peers.iter().enumerate().map(|(n, peer)| PeerView {
            name: peer.name.clone(),
            verdict: peer.verdict.clone(),
            link: peer.link.clone(),
            secure: peer.secure,
            says: says(peer),
            ways: ways::of(
                peer,
                window.and_then(|all| Some((all.peers.get(n)?, all.seconds))),
            ),
            point: window
                .and_then(|all| Some(point(status.uptime_seconds, all, all.peers.get(n)?))),
            paths: peer.paths.iter().map(PathView::of).collect(),
            groups: {
                let mut groups = groups(&values, PEER, Some(("peer", &peer.name)));
                let of_peer = status.tunnels.iter().filter(|it| it.peer == peer.name);
                groups.extend(of_peer.map(|it| tunnel(&values, it)));
                groups
            },
        });
        let classes = status.classes.iter().map(|class| ClassView {
            name: class.name.clone(),
            figures: CLASS
                .iter()
                .filter_map(|shown| figure(&values, shown, Some(("class", &class.name))))
                .collect(),
        });
        Self {
            schema: SCHEMA,
            name: status.name.clone(),
            version: env!("CARGO_PKG_VERSION"),
            sequence: snapshot.sequence,
            uptime_seconds: status.uptime_seconds,
            window_seconds: window.map(|window| window.seconds),
            grade: status.grade,
            unprotected: status.is_unprotected,
            alarms: status.alarms.clone(),
            groups: groups(&values, GATEWAY, None),
            peers: peers.collect(),
            classes: classes.collect(),
            flows: flows.collect(),
            flows_left_out: status.flows.saturating_sub(status.flow_list.len() as u64),
            decisions: status.decisions.iter().rev().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests;
