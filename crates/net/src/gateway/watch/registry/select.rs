//! The sources of entries' values: one value, or one for each class, peer or window.

use super::super::snapshots::Snapshot;
use super::super::status::{
    ClassReport, DamagedDirection, DirectionStatus, PathFigures, PeerReport, ToldLinkReport,
    TransportReport, TunnelReport,
};
use super::super::tally::{Loss, PeerWindow, Window};
use super::entry::{Sample, Value};
use fulmar_proto::transport::parts::DelaySpread;
use std::collections::BTreeMap;

/// Counts by their kind.
type Counts = BTreeMap<&'static str, u64>;

fn sample<const N: usize>(labels: [&str; N], value: Value) -> Sample {
    Sample {
        labels: labels.map(str::to_owned).to_vec(),
        value,
    }
}

pub(super) fn count(value: u64) -> Vec<Sample> {
    vec![sample([], Value::Count(value))]
}

pub(super) fn number(value: f64) -> Vec<Sample> {
    let value = Value::number(value);
    value.map(|value| sample([], value)).into_iter().collect()
}

pub(super) fn of_window(snapshot: &Snapshot, value: impl Fn(&Window) -> f64) -> Vec<Sample> {
    let window = snapshot.window.as_ref();
    window.map_or_else(Vec::new, |window| number(value(window)))
}

pub(super) fn by(counts: &Counts) -> Vec<Sample> {
    let counts = counts.iter();
    counts
        .map(|(what, count)| sample([what], Value::Count(*count)))
        .collect()
}

pub(super) fn of_classes(snapshot: &Snapshot, value: impl Fn(&ClassReport) -> u64) -> Vec<Sample> {
    let classes = snapshot.status.classes.iter();
    classes
        .map(|class| sample([&class.name], Value::Count(value(class))))
        .collect()
}

pub(super) fn of_classes_by(
    snapshot: &Snapshot,
    counts: impl Fn(&ClassReport) -> &Counts,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    for class in &snapshot.status.classes {
        for (what, count) in counts(class) {
            samples.push(sample([&class.name, what], Value::Count(*count)));
        }
    }
    samples
}

pub(super) fn of_tunnels(snapshot: &Snapshot, value: impl Fn(&TunnelReport) -> u64) -> Vec<Sample> {
    let tunnels = snapshot.status.tunnels.iter();
    tunnels
        .map(|tunnel| sample([&tunnel.device], Value::Count(value(tunnel))))
        .collect()
}

pub(super) fn of_tunnels_by(
    snapshot: &Snapshot,
    counts: impl Fn(&TunnelReport) -> &Counts,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    for tunnel in &snapshot.status.tunnels {
        for (what, count) in counts(tunnel) {
            samples.push(sample([&tunnel.device, what], Value::Count(*count)));
        }
    }
    samples
}

pub(super) fn of_peers(
    snapshot: &Snapshot,
    value: impl Fn(&PeerReport) -> Option<Value>,
) -> Vec<Sample> {
    let peers = snapshot.status.peers.iter();
    peers
        .filter_map(|peer| Some(sample([&peer.name], value(peer)?)))
        .collect()
}

/// Octets in custody for each peer, by the gateway at the end of their way.
pub(super) fn of_custody(snapshot: &Snapshot) -> Vec<Sample> {
    let mut samples = Vec::new();
    for peer in &snapshot.status.peers {
        for kept in &peer.custody {
            let value = Value::Count(kept.kept_bytes);
            samples.push(sample([&peer.name, &kept.gateway], value));
        }
    }
    samples
}

/// 1 for each rule that holds, with the peer that it is about.
pub(super) fn of_alarms(snapshot: &Snapshot) -> Vec<Sample> {
    let alarms = snapshot.status.alarms.iter();
    alarms
        .map(|alarm| {
            let peer = alarm.peer.as_deref().unwrap_or_default();
            sample([peer, alarm.rule], Value::Count(1))
        })
        .collect()
}

/// A value of each path to each peer that has several.
pub(super) fn of_paths(
    snapshot: &Snapshot,
    value: impl Fn(&PathFigures) -> Option<Value>,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    for peer in &snapshot.status.peers {
        for path in &peer.paths {
            let number = path.path.to_string();
            samples.extend(value(path).map(|value| sample([&peer.name, &number], value)));
        }
    }
    samples
}

/// A value of each link that tells of itself.
pub(super) fn of_links(
    snapshot: &Snapshot,
    value: impl Fn(&ToldLinkReport) -> Option<Value>,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    for peer in &snapshot.status.peers {
        for link in &peer.links {
            samples.extend(value(link).map(|value| sample([&peer.name, &link.name], value)));
        }
    }
    samples
}

/// The share of each cause among the losses of streams on each of several paths.
pub(super) fn of_path_causes(snapshot: &Snapshot) -> Vec<Sample> {
    let mut samples = Vec::new();
    for peer in &snapshot.status.peers {
        for path in &peer.paths {
            let number = path.path.to_string();
            for (cause, figures) in path.losses.iter().flat_map(|losses| &losses.causes) {
                let ratio = Value::number(figures.ratio);
                samples.extend(ratio.map(|ratio| sample([&peer.name, &number, cause], ratio)));
            }
        }
    }
    samples
}

pub(super) fn of_peer_windows(
    snapshot: &Snapshot,
    value: impl Fn(&PeerWindow) -> Option<f64>,
) -> Vec<Sample> {
    let windows = snapshot.window.iter().flat_map(|window| &window.peers);
    let peers = snapshot.status.peers.iter().zip(windows);
    peers
        .filter_map(|(peer, window)| {
            let value = Value::number(value(window)?)?;
            Some(sample([&peer.name], value))
        })
        .collect()
}

/// The share of each cause among the losses of streams to each peer.
pub(super) fn of_loss_causes(snapshot: &Snapshot) -> Vec<Sample> {
    let mut samples = Vec::new();
    for peer in &snapshot.status.peers {
        for (cause, figures) in peer.losses.iter().flat_map(|losses| &losses.causes) {
            if let Some(ratio) = Value::number(figures.ratio) {
                samples.push(sample([&peer.name, cause], ratio));
            }
        }
    }
    samples
}

/// For each peer, the datagrams that left here (`out`) and those that came (`in`).
pub(super) fn of_directions(
    snapshot: &Snapshot,
    value: impl Fn(&DirectionStatus) -> u64,
) -> Vec<Sample> {
    let directions = |peer: &PeerReport| {
        [("out", &peer.outward), ("in", &peer.inward)]
            .map(|(name, of)| sample([&peer.name, name], Value::Count(value(of))))
    };
    let peers = snapshot.status.peers.iter();
    peers.flat_map(directions).collect()
}

/// For each peer with armoured datagrams, those that left here (`out`) and those that came (`in`).
pub(super) fn of_damaged(
    snapshot: &Snapshot,
    value: impl Fn(&DamagedDirection) -> Option<Value>,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    for peer in &snapshot.status.peers {
        let Some(damage) = &peer.damage else { continue };
        for (name, of) in [("out", &damage.outward), ("in", &damage.inward)] {
            samples.extend(value(of).map(|value| sample([&peer.name, name], value)));
        }
    }
    samples
}

/// For each peer, the losses in the window, outward (`out`) and inward (`in`).
pub(super) fn of_losses(snapshot: &Snapshot, value: impl Fn(&Loss) -> Option<f64>) -> Vec<Sample> {
    let windows = snapshot.window.iter().flat_map(|window| &window.peers);
    let peers = snapshot.status.peers.iter().zip(windows);
    let mut samples = Vec::new();
    for (peer, window) in peers {
        for (name, of) in [("out", &window.outward), ("in", &window.inward)] {
            let value = value(of).and_then(Value::number);
            samples.extend(value.map(|value| sample([&peer.name, name], value)));
        }
    }
    samples
}

/// A peer's quantiles, each under its own name.
pub(super) fn of_quantiles(peer: &PeerReport) -> Vec<Sample> {
    let of = peer.rtt_quantiles_seconds;
    let all = of.map(|of| [("0.5", of.p50), ("0.9", of.p90), ("0.99", of.p99)]);
    let all = all.into_iter().flatten();
    all.filter_map(|(quantile, seconds)| {
        Some(sample([&peer.name, quantile], Value::number(seconds)?))
    })
    .collect()
}

/// Quantiles of the delays that a spread counted within the window, for each peer.
pub(super) fn of_peer_delays(
    snapshot: &Snapshot,
    spread: impl Fn(&PeerWindow) -> &DelaySpread,
) -> Vec<Sample> {
    let windows = snapshot.window.iter().flat_map(|window| &window.peers);
    let peers = snapshot.status.peers.iter().zip(windows);
    let mut samples = Vec::new();
    for (peer, window) in peers {
        for (name, share) in [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99)] {
            let delay = spread(window).quantile(share);
            let value = delay.and_then(|delay| Value::number(delay.as_secs_f64()));
            samples.extend(value.map(|value| sample([&peer.name, name], value)));
        }
    }
    samples
}

fn transports(snapshot: &Snapshot) -> impl Iterator<Item = (&str, &str, &TransportReport)> {
    snapshot.status.peers.iter().flat_map(|peer| {
        let classes = peer.classes.iter();
        classes.map(|(class, report)| (peer.name.as_str(), class.as_str(), report))
    })
}

pub(super) fn of_transports(
    snapshot: &Snapshot,
    value: impl Fn(&TransportReport) -> u64,
) -> Vec<Sample> {
    transports(snapshot)
        .map(|(peer, class, report)| sample([peer, class], Value::Count(value(report))))
        .collect()
}

pub(super) fn of_transports_by(
    snapshot: &Snapshot,
    counts: impl Fn(&TransportReport) -> &Counts,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (peer, class, report) in transports(snapshot) {
        for (what, count) in counts(report) {
            samples.push(sample([peer, class, what], Value::Count(*count)));
        }
    }
    samples
}
