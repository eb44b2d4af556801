//! Packets of tunnels.

use super::entry::{Entry, MetricKind, Point, Unit};
use super::select::{of_classes, of_tunnels, of_tunnels_by};

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "tunnel_sent_packets",
        kind: MetricKind::Counter,
        unit: Unit::Messages,
        labels: &["device"],
        point: Point::Local,
        label: "packets taken",
        help: "Packets of this host that the device took for the peer",
        formula: "",
        read: |s| of_tunnels(s, |t| t.sent_packets),
    },
    Entry {
        name: "tunnel_received_packets",
        kind: MetricKind::Counter,
        unit: Unit::Messages,
        labels: &["device"],
        point: Point::Local,
        label: "packets given",
        help: "Packets of the peer that the device gave to this host",
        formula: "",
        read: |s| of_tunnels(s, |t| t.received_packets),
    },
    Entry {
        name: "tunnel_dropped_packets",
        kind: MetricKind::Counter,
        unit: Unit::Messages,
        labels: &["device", "reason"],
        point: Point::Local,
        label: "dropped at the device",
        help: "Packets that did not cross the device: no_ip (no whole IP packet), no_flow (no place for a flow, or the peer has no such tunnel), source (the peer may not speak for it), kernel (not taken here)",
        formula: "",
        read: |s| of_tunnels_by(s, |t| &t.dropped_packets),
    },
    Entry {
        name: "tunnel_marked_packets",
        kind: MetricKind::Counter,
        unit: Unit::Messages,
        labels: &["class"],
        point: Point::Splice,
        label: "marked",
        help: "Packets of tunnels that were marked because their queue did not drain (ECN); those dropped instead are messages_lost, reason queue",
        formula: "",
        read: |s| of_classes(s, |c| c.messages_marked),
    },
];
