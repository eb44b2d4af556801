//! A status as `OpenMetrics` text: base units, `_total` on counters, labels of few values only.

use super::status::{ClassReport, PeerReport, Status, TransportReport};
use core::sync::atomic::AtomicU64;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;

type Labels = Vec<(&'static str, String)>;

type Float = Gauge<f64, AtomicU64>;
type Seconds = Counter<f64, AtomicU64>;

/// One metric with its values.
struct Page {
    registry: Registry,
}

fn of_class(class: &ClassReport) -> Labels {
    vec![("class", class.name.clone())]
}

fn of_peer(peer: &PeerReport) -> Labels {
    vec![("peer", peer.name.clone())]
}

impl Page {
    fn counters(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels, u64)>,
    ) {
        let family = Family::<Labels, Counter>::default();
        for (labels, value) in values {
            if labels.is_empty() {
                let one: Counter = Counter::default();
                one.inc_by(value);
                return self.registry.register(name, help, one);
            }
            family.get_or_create(&labels).inc_by(value);
        }
        self.registry.register(name, help, family);
    }

    fn gauges(&mut self, name: &str, help: &str, values: impl IntoIterator<Item = (Labels, f64)>) {
        let family = Family::<Labels, Float>::default();
        for (labels, value) in values {
            if labels.is_empty() {
                let one = Float::default();
                one.set(value);
                return self.registry.register(name, help, one);
            }
            family.get_or_create(&labels).set(value);
        }
        self.registry.register(name, help, family);
    }

    /// A counter for each class.
    fn of_classes(
        &mut self,
        status: &Status,
        name: &str,
        help: &str,
        value: impl Fn(&ClassReport) -> u64,
    ) {
        let values = status
            .classes
            .iter()
            .map(|class| (of_class(class), value(class)));
        self.counters(name, help, values);
    }
}

fn labelled<'a>(
    name: &'static str,
    labels: &Labels,
    counts: impl IntoIterator<Item = (&'a &'static str, &'a u64)>,
) -> Vec<(Labels, u64)> {
    let one = |(value, count): (&&'static str, &u64)| {
        let mut labels = labels.clone();
        labels.push((name, (*value).to_owned()));
        (labels, *count)
    };
    counts.into_iter().map(one).collect()
}

/// The page at `/metrics`.
pub(super) fn text(status: &Status) -> String {
    let mut page = Page {
        registry: Registry::with_prefix("fulmar"),
    };
    flows(&mut page, status);
    peers(&mut page, status);
    transport(&mut page, status);
    carrier(&mut page, status);
    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = encode(&mut out, &page.registry);
    out
}

fn flows(page: &mut Page, status: &Status) {
    page.gauges("flows", "Flows now", [(Vec::new(), status.flows as f64)]);
    page.gauges(
        "custody_bytes",
        "Octets kept for destinations now",
        [(Vec::new(), status.custody_bytes as f64)],
    );
    page.of_classes(status, "flows_opened", "Flows opened or accepted", |c| {
        c.flows_opened
    });
    page.of_classes(status, "flows_finished", "Flows that ended complete", |c| {
        c.flows_finished
    });
    page.of_classes(
        status,
        "accepted_bytes",
        "Octets taken from local sockets",
        |c| c.accepted_bytes,
    );
    page.of_classes(
        status,
        "delivered_bytes",
        "Octets that the far host acknowledged",
        |c| c.delivered_bytes,
    );
    page.of_classes(
        status,
        "received_bytes",
        "Octets given to local sockets",
        |c| c.received_bytes,
    );
    page.of_classes(
        status,
        "messages_accepted",
        "Messages taken from local sockets",
        |c| c.messages_accepted,
    );
    page.of_classes(
        status,
        "messages_received",
        "Messages given to local sockets",
        |c| c.messages_received,
    );
    let classes = || status.classes.iter();
    page.counters(
        "flows_refused",
        "Flows not opened, by reason",
        classes().flat_map(|c| labelled("reason", &of_class(c), &c.flows_refused)),
    );
    page.counters(
        "flows_reset",
        "Flows cut off, by reason",
        classes().flat_map(|c| labelled("reason", &of_class(c), &c.flows_reset)),
    );
    page.counters(
        "messages_lost",
        "Messages lost for good, by cause",
        classes().flat_map(|c| labelled("reason", &of_class(c), &c.messages_lost)),
    );
}

fn peers(page: &mut Page, status: &Status) {
    let peers = || status.peers.iter();
    let up = |peer: &PeerReport| f64::from(u8::from(peer.link == "up"));
    page.gauges(
        "link_up",
        "Whether datagrams pass",
        peers().map(|peer| (of_peer(peer), up(peer))),
    );
    let rtts = peers().filter_map(|peer| Some((of_peer(peer), peer.rtt_seconds?)));
    page.gauges("rtt_seconds", "Smoothed round trip", rtts);
    page.gauges(
        "path_mtu_bytes",
        "The largest IP packet that is known to arrive",
        peers().map(|peer| (of_peer(peer), peer.path_mtu_bytes as f64)),
    );
}

/// What AeroTP did for each class with each peer.
fn transport(page: &mut Page, status: &Status) {
    let mut of: Vec<(Labels, &TransportReport)> = Vec::new();
    for peer in &status.peers {
        for (class, report) in &peer.classes {
            let mut labels = of_peer(peer);
            labels.push(("class", class.clone()));
            of.push((labels, report));
        }
    }
    let by = |name, pick: fn(&TransportReport) -> &BTreeMap<&'static str, u64>| {
        let all = of.iter();
        all.flat_map(move |(labels, report)| labelled(name, labels, pick(report)))
    };
    let one = |pick: fn(&TransportReport) -> u64| {
        let all = of.iter();
        all.map(move |(labels, report)| (labels.clone(), pick(report)))
    };
    page.counters(
        "packets_sent",
        "TPDUs sent, by kind",
        by("kind", |t| &t.sent_tpdus),
    );
    page.counters(
        "wire_bytes",
        "Octets of TPDUs sent, by kind",
        by("kind", |t| &t.sent_bytes),
    );
    page.counters(
        "wire_lost_packets",
        "Holes that the receiver noticed",
        one(|t| t.wire_lost_tpdus),
    );
    page.counters(
        "wire_damaged_packets",
        "TPDUs that arrived damaged beyond their parity",
        one(|t| t.wire_damaged_tpdus),
    );
    page.counters(
        "recovered_packets",
        "TPDUs put right: by parity at the receiver, by retransmission at the sender",
        by("by", |t| &t.recovered_tpdus),
    );
    page.counters(
        "residual_lost_packets",
        "TPDUs given up by the receiver, by cause",
        by("cause", |t| &t.residual_lost_tpdus),
    );
    page.counters(
        "stalls",
        "Times that a whole timeout passed in silence",
        one(|t| t.stalls),
    );
}

fn carrier(page: &mut Page, status: &Status) {
    let carrier = &status.carrier;
    let sent = [(Vec::new(), carrier.sent_datagrams)];
    page.counters("datagrams_sent", "Sealed datagrams sent", sent);
    let received = [(Vec::new(), carrier.received_datagrams)];
    page.counters("datagrams_received", "Genuine datagrams received", received);
    page.counters(
        "datagrams_dropped",
        "Datagrams dropped before a flow saw them, by reason",
        labelled("reason", &Vec::new(), &carrier.dropped),
    );
    page.counters(
        "outages",
        "Times a link was held for down",
        [(Vec::new(), carrier.outages)],
    );
    page.counters(
        "moves",
        "Times a peer was followed to another address",
        [(Vec::new(), carrier.moves)],
    );
    page.counters(
        "handshakes",
        "Handshakes completed",
        [(Vec::new(), carrier.handshakes)],
    );
    let outage = Seconds::default();
    outage.inc_by(carrier.outage_seconds);
    page.registry.register(
        "outage_seconds",
        "How long outages that are over lasted",
        outage,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::status::{CarrierReport, SCHEMA};

    #[test]
    fn the_page_has_units_totals_and_few_labels() {
        let class = ClassReport {
            name: "bulk".to_owned(),
            flows_opened: 3,
            flows_refused: BTreeMap::from([("refused", 2)]),
            ..ClassReport::default()
        };
        let lost = TransportReport {
            wire_lost_tpdus: 5,
            recovered_tpdus: BTreeMap::from([("arq_1", 4)]),
            ..TransportReport::default()
        };
        let peer = PeerReport {
            name: "b".to_owned(),
            classes: BTreeMap::from([("bulk".to_owned(), lost)]),
            ..PeerReport::default()
        };
        let status = Status {
            schema: SCHEMA,
            name: "a".to_owned(),
            uptime_seconds: 1.0,
            flows: 2,
            custody_bytes: 0,
            peers: vec![peer],
            classes: vec![class],
            carrier: CarrierReport::default(),
            malformed_records: 0,
        };
        let page = text(&status);
        for line in [
            "fulmar_flows 2.0",
            "fulmar_flows_opened_total{class=\"bulk\"} 3",
            "fulmar_flows_refused_total{class=\"bulk\",reason=\"refused\"} 2",
            "fulmar_wire_lost_packets_total{peer=\"b\",class=\"bulk\"} 5",
            "fulmar_recovered_packets_total{peer=\"b\",class=\"bulk\",by=\"arq_1\"} 4",
            "# EOF",
        ] {
            assert!(page.lines().any(|l| l == line), "{line} in {page}");
        }
    }
}
