//! A snapshot as `OpenMetrics` text: base units, `_total` on counters, labels of few values only.

use super::registry::{self, Entry, MetricKind, Sample, Value};
use super::snapshots::Snapshot;
use core::sync::atomic::AtomicU64;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry};
use std::collections::BTreeMap;

type Labels = Vec<(&'static str, String)>;
type Whole = Counter<u64, AtomicU64>;
type Seconds = Counter<f64, AtomicU64>;
type Float = Gauge<f64, AtomicU64>;

/// The page at `/metrics`.
pub(in crate::gateway) fn text(snapshot: &Snapshot) -> String {
    let mut registry = Registry::with_prefix(registry::PREFIX);
    for entry in registry::entries() {
        let samples = entry.samples(snapshot);
        let is_whole = samples
            .iter()
            .all(|sample| matches!(sample.value, Value::Count(_)));
        match entry.kind {
            MetricKind::Counter if is_whole => {
                register::<Whole>(&mut registry, entry, &samples, |metric, value| {
                    if let Value::Count(count) = value {
                        metric.inc_by(count);
                    }
                });
            }
            MetricKind::Counter => {
                register::<Seconds>(&mut registry, entry, &samples, |metric, value| {
                    metric.inc_by(value.as_f64());
                });
            }
            MetricKind::Gauge => {
                register::<Float>(&mut registry, entry, &samples, |metric, value| {
                    metric.set(value.as_f64());
                });
            }
        }
    }
    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = encode(&mut out, &registry);
    out
}

fn register<M>(registry: &mut Registry, entry: &Entry, samples: &[Sample], set: fn(&M, Value))
where
    M: Metric + Default + Clone,
    Family<Labels, M>: Metric,
{
    if entry.labels.is_empty() {
        // A figure that nothing was counted for is left out.
        if let Some(sample) = samples.first() {
            let one = M::default();
            set(&one, sample.value);
            registry.register(entry.name, entry.help, one);
        }
        return;
    }
    let family = Family::<Labels, M>::default();
    for sample in samples {
        let names = entry.labels.iter().copied();
        let labels: Labels = names.zip(sample.labels.iter().cloned()).collect();
        set(&family.get_or_create(&labels), sample.value);
    }
    registry.register(entry.name, entry.help, family);
}

/// The same values by their names with labels, as `/status` has them.
pub(super) fn object(snapshot: &Snapshot) -> BTreeMap<String, Value> {
    let mut object = BTreeMap::new();
    for entry in registry::entries() {
        for sample in entry.samples(snapshot) {
            object.insert(entry.series(&sample), sample.value);
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::watch::losses::{CauseFigures, LossFigures};
    use crate::gateway::watch::status::{
        ClassReport, DamageFigures, DamagedDirection, LengthFigures, OutageReport, PathFigures,
        PeerReport, Quantiles, Status, TransportReport,
    };
    use crate::gateway::watch::tally::{Tally, Window, tests::status};
    use crate::gateway::watch::verdict::judge;

    fn snapshot(peer: &str) -> Snapshot {
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
            name: peer.to_owned(),
            link: "up".to_owned(),
            rtt_quantiles_seconds: Some(Quantiles {
                samples: 4,
                p50: 0.25,
                p90: 0.5,
                p99: 0.75,
            }),
            outages: OutageReport {
                count: 1,
                seconds: 1.5,
                longest_seconds: 1.5,
            },
            classes: BTreeMap::from([("bulk".to_owned(), lost)]),
            ..PeerReport::default()
        };
        Snapshot {
            sequence: 7,
            status: Status {
                name: "a".to_owned(),
                uptime_seconds: 1.0,
                flows: 2,
                peers: vec![peer],
                classes: vec![class],
                ..Status::default()
            },
            window: None,
        }
    }

    /// The values of a page by their names with labels.
    fn values(page: &str) -> BTreeMap<String, f64> {
        page.lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| {
                let (name, value) = line.rsplit_once(' ').expect("a value");
                (name.to_owned(), value.parse().expect("a number"))
            })
            .collect()
    }

    #[test]
    fn the_page_has_units_totals_and_few_labels() {
        let page = text(&snapshot("b"));
        for line in [
            "fulmar_flows 2.0",
            "fulmar_snapshot_sequence 7.0",
            "fulmar_flows_opened_total{class=\"bulk\"} 3",
            "fulmar_flows_refused_total{class=\"bulk\",reason=\"refused\"} 2",
            "fulmar_wire_lost_packets_total{peer=\"b\",class=\"bulk\"} 5",
            "fulmar_recovered_packets_total{peer=\"b\",class=\"bulk\",by=\"arq_1\"} 4",
            "fulmar_rtt_quantile_seconds{peer=\"b\",quantile=\"0.9\"} 0.5",
            "fulmar_link_outage_seconds_total{peer=\"b\"} 1.5",
            "# EOF",
        ] {
            assert!(page.lines().any(|l| l == line), "{line} in {page}");
        }
    }

    #[test]
    fn text_and_object_say_the_same_whatever_names_are_like() {
        for name in ["b", "a \"quoted\" \\ name", "två", "line\nbreak"] {
            let snapshot = snapshot(name);
            let object = object(&snapshot);
            let of_object: BTreeMap<String, f64> = object
                .iter()
                .map(|(name, value)| (name.clone(), value.as_f64()))
                .collect();
            assert!(of_object.len() > 30);
            assert_eq!(values(&text(&snapshot)), of_object, "{name}");
        }
    }

    /// A link that tells of itself.
    fn told_link() -> crate::gateway::watch::status::ToldLinkReport {
        crate::gateway::watch::status::ToldLinkReport {
            name: "satellite".to_owned(),
            up: Some(true),
            rate_out_bits_per_second: Some(1),
            age_seconds: Some(1.0),
            ..Default::default()
        }
    }

    fn tunnel() -> crate::gateway::tunnels::TunnelReport {
        crate::gateway::tunnels::TunnelReport {
            name: "field".to_owned(),
            peer: "ground".to_owned(),
            device: "tunnel0".to_owned(),
            far_end: "agrees",
            accelerate: "no",
            lost: String::new(),
            sent_packets: 1,
            received_packets: 1,
            dropped_packets: BTreeMap::from([("source", 1)]),
        }
    }

    #[test]
    fn every_entry_has_a_value_once_something_was_counted() {
        let (first, mut last) = (status(1.0, 10), status(11.0, 20));
        last.classes = snapshot("b").status.classes;
        let peers = snapshot("ground").status.peers;
        let counted = last.peers[0].transport.clone();
        let (outward, inward) = (last.peers[0].outward, last.peers[0].inward);
        last.peers = peers;
        last.peers[0].outward = outward;
        last.peers[0].inward = inward;
        last.peers[0].rtt_seconds = Some(0.25);
        let damaged = DamagedDirection {
            bit_error_ratio: Some(1e-5),
            ..DamagedDirection::default()
        };
        last.peers[0].damage = Some(DamageFigures {
            words: 6,
            outward: damaged,
            inward: damaged,
        });
        last.peers[0].losses = Some(LossFigures {
            causes: BTreeMap::from([("burst", CauseFigures::default())]),
            ..LossFigures::default()
        });
        last.peers[0].length = Some(LengthFigures {
            packet_bytes: Some(300),
            ..LengthFigures::default()
        });
        last.peers[0].rate = Some(crate::gateway::watch::status::RateReport {
            current_bits_per_second: 1,
            reason: "queue",
            why: "of the test",
            share: "fair",
            link_bits_per_second: Some(1),
            delivered_bits_per_second: Some(1),
            declared_wrong: false,
            declared_low_beside: None,
            doubted: false,
            seen_bits_per_second: None,
            bottleneck: Some("own"),
            queue_seconds: Some(0.001),
            random_loss_ratio: Some(0.1),
        });
        last.peers[0].paths = vec![PathFigures {
            rtt_seconds: Some(0.25),
            rate: last.peers[0].rate,
            losses: last.peers[0].losses.clone(),
            ..PathFigures::default()
        }];
        last.peers[0].links = vec![told_link()];
        last.peers[0].custody = vec![crate::gateway::watch::status::CustodyFor::default()];
        last.peers[0].transport = counted.clone();
        last.peers[0].rate_bits_per_second = Some(1_000);
        last.carrier.dropped = BTreeMap::from([("forged", 1)]);
        last.carrier.operations = BTreeMap::from([("hash", 1)]);
        last.classes[0].flows_reset = BTreeMap::from([("idle", 1)]);
        last.classes[0].messages_lost = BTreeMap::from([("full", 1)]);
        last.tunnels = vec![tunnel()];
        let mut of_class = counted;
        of_class.held_lost_tpdus = BTreeMap::from([("timeout", 1)]);
        last.peers[0].classes = BTreeMap::from([("bulk".to_owned(), of_class)]);
        let window = Window::between(&Tally::of(&first), &Tally::of(&last));
        // Its link is up without protection.
        judge(&mut last, window.as_ref());
        let snapshot = Snapshot {
            sequence: 1,
            status: last,
            window,
        };
        for entry in registry::entries() {
            let samples = entry.samples(&snapshot);
            assert!(!samples.is_empty(), "{entry:?}");
            for sample in samples {
                assert_eq!(sample.labels.len(), entry.labels.len(), "{entry:?}");
            }
        }
    }
}
