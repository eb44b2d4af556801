//! The reports of a running gateway on itself.

use super::found_losses::FoundLosses;
use super::losses::LossFigures;
use super::status::{
    self, CarrierReport, CustodyFor, FLOWS_LISTED_MAX, FlowStatus, LinkGrade, LinkVerdict,
    PathFigures, PeerReport, Quantiles, REMOVED, Status,
};
use crate::gateway::Link;
use crate::gateway::config::{GatewayConfig, SecurityKind};
use crate::gateway::flows::{Flow, Traffic};
use crate::gateway::links::Links;
use crate::gateway::peers::{Peers, RateReport, carrier_in_use, index_of, way_of};
use crate::gateway::tunnels::Tunnels;
use crate::recording::RecordingCounters;
use crate::session::{DropReason, LinkState, Reach, RoundTripQuantiles, Wire};
use fulmar_proto::machine::PathId;
use fulmar_proto::splice::FlowId;
use fulmar_proto::units::{Bitrate, Instant};
use std::collections::BTreeMap;

fn quantiles(of: RoundTripQuantiles) -> Quantiles {
    Quantiles {
        samples: of.samples as u64,
        p50: of.p50.as_secs_f64(),
        p90: of.p90.as_secs_f64(),
        p99: of.p99.as_secs_f64(),
    }
}

const fn link_name(state: LinkState) -> &'static str {
    match state {
        LinkState::Up => "up",
        LinkState::Down => "down",
        LinkState::Connecting => "connecting",
    }
}

/// The rooms of a gateway that the status is read from.
pub(in crate::gateway) struct Seen<'a> {
    pub(in crate::gateway) config: &'a GatewayConfig,
    pub(in crate::gateway) link: &'a Link,
    pub(in crate::gateway) traffic: &'a Traffic,
    pub(in crate::gateway) tunnels: &'a Tunnels,
    pub(in crate::gateway) peers: &'a Peers,
    pub(in crate::gateway) links: &'a Links,
    pub(in crate::gateway) captured: RecordingCounters,
    pub(in crate::gateway) traced: RecordingCounters,
    pub(in crate::gateway) losses: &'a FoundLosses,
}

impl Seen<'_> {
    /// The status of the gateway now.
    pub(in crate::gateway) fn status(&self, now: Instant) -> Status {
        let link = self.link;
        let counters = link.inner().counters();
        let mut flows_of = BTreeMap::<usize, u64>::new();
        let mut custody_bytes = 0;
        let mut custody_of = BTreeMap::<usize, BTreeMap<&str, CustodyFor>>::new();
        for (_, flow) in self.traffic.flows.iter() {
            *flows_of.entry(flow.peer).or_default() += 1;
            let kept_bytes = flow.kept_bytes();
            custody_bytes += kept_bytes;
            if kept_bytes > 0 {
                let of_peer = custody_of.entry(flow.peer).or_default();
                let kept = of_peer.entry(self.gateway_of(flow)).or_default();
                kept.flows += 1;
                kept.kept_bytes += kept_bytes;
            }
        }
        let peers = (0..self.config.peers.len()).map(|index| {
            let flows = flows_of.get(&index).copied().unwrap_or(0);
            let kept = custody_of.remove(&index).unwrap_or_default().into_iter();
            let custody: Vec<CustodyFor> = kept
                .map(|(gateway, kept)| CustodyFor {
                    gateway: gateway.to_owned(),
                    ..kept
                })
                .collect();
            PeerReport {
                custody_bytes: custody.iter().map(|kept| kept.kept_bytes).sum(),
                custody,
                ..self.peer(now, index, flows)
            }
        });
        Status {
            schema: status::SCHEMA,
            name: self.config.name.clone(),
            uptime_seconds: now.as_secs_f64(),
            grade: LinkGrade::Good,
            is_unprotected: self.config.security == SecurityKind::None,
            alarms: Vec::new(),
            flows: self.traffic.flows.len() as u64,
            custody_bytes,
            custody_damaged_bytes: self.traffic.keeping.damaged_bytes(),
            custody_full: self.traffic.keeping.is_full(),
            peers: peers.collect(),
            tunnels: self.tunnels.reports(self.config).collect(),
            classes: status::classes(counters, |id| {
                let name = self.config.class_name(id).into_owned();
                (name, self.peers.repairs.of_class(id))
            }),
            carrier: carrier(link, self.captured, self.traced),
            malformed_records: counters.malformed,
            flow_list: self.flow_list(now),
            decisions: self.peers.decisions.list(),
        }
    }

    /// The gateway at the end of a flow's way: octets towards it are kept here.
    fn gateway_of<'a>(&'a self, flow: &'a Flow) -> &'a str {
        // A flow that was asked for here leads back to the peer, wherever it leads on to.
        let last = flow.destination.last_gateway().filter(|_| flow.entered);
        last.map_or_else(|| self.config.peer_name(flow.peer), |name| name.as_str())
    }

    fn peer(&self, now: Instant, index: usize, flows: u64) -> PeerReport {
        let link = self.link;
        let known = index_of(index);
        let path = known.inner_path();
        let endpoint = link.inner().endpoint();
        let state = link.status(known);
        let state = state.as_ref();
        let settings = self.config.peers.get(index);
        let lasts = self.peers.outages.lasts(now, known);
        let link_word = match (settings, state) {
            (Some(settings), _) if settings.is_removed => REMOVED,
            (_, Some(state)) => link_name(state.link),
            (_, None) => "unknown",
        };
        PeerReport {
            name: self.config.peer_name(index).to_owned(),
            verdict: LinkVerdict::default(),
            link: link_word.to_owned(),
            address: (settings.and_then(|peer| peer.address.as_ref())).map(ToString::to_string),
            calling_seconds: state
                .and_then(|s| s.calling_for)
                .map(|span| span.as_secs_f64()),
            down_seconds: lasts.map(|span| span.as_secs_f64()),
            rtt_seconds: state.and_then(|s| s.rtt).map(|rtt| rtt.as_secs_f64()),
            reached: link.reach(known).map(|reach| way_of(self.config, reach)),
            rtt_quantiles_seconds: state.and_then(|s| s.round_trips).map(quantiles),
            path_mtu_bytes: state.map_or(0, |s| s.sizes.packet.0),
            packet_overhead_bytes: state.map_or(0, |s| s.sizes.overhead().0),
            wire: state.and_then(|s| s.wire).map(Wire::version),
            carrier: settings.map_or_else(String::new, |peer| {
                carrier_in_use(&peer.carrier, link.armours(known))
            }),
            secure: state.is_some_and(|s| s.secure),
            rate_bits_per_second: (settings.and_then(|peer| peer.rate.bound()))
                .map(Bitrate::as_bits_per_second),
            rate: settings
                .and_then(|peer| Some(RateReport::of(endpoint.path_rate(path)?, peer.rate))),
            paths: self.paths(index),
            waiting_paths: self.peers.ports.waiting(index),
            links: self.links.of_peer(now, index),
            outward: state.map_or_else(Default::default, |s| s.outward.into()),
            inward: state.map_or_else(Default::default, |s| s.inward.into()),
            damage: state.and_then(|s| s.damage).map(Into::into),
            length: endpoint.path_length(path).map(Into::into),
            losses: self.losses.of(link, index),
            told_losses: link.inner().told_losses(path).map(LossFigures::of_told),
            told: link.inner().told(path).into(),
            outages: self.peers.outages.report(known),
            flows,
            custody_bytes: 0,
            custody: Vec::new(),
            transport: endpoint.path_counters(path).into(),
            classes: endpoint
                .class_counters(path)
                .into_iter()
                .map(|(class, counters)| {
                    (self.config.class_name(class).into_owned(), counters.into())
                })
                .collect(),
        }
    }

    /// The paths to a peer, if there are several. What the configuration tells of its rate is told of the first.
    fn paths(&self, index: usize) -> Vec<PathFigures> {
        let endpoint = self.link.inner().endpoint();
        let settings = self.config.peers.get(index);
        let paths = self.link.path_statuses(index_of(index)).into_iter();
        paths
            .map(|path| {
                let rate = endpoint.path_rate(path.inner).zip(settings);
                let rate = rate.map(|(rate, settings)| RateReport::of(rate, settings.rate));
                let losses = self.losses.of_path(self.link, index, path.inner);
                let of_peer = settings.and_then(|settings| settings.address.as_ref());
                let way = if path.place == 0 {
                    of_peer.map(|address| format!("to {address}"))
                } else {
                    path.outer.and_then(|outer| self.way(index, outer))
                };
                PathFigures::of(path, way, rate, losses)
            })
            .collect()
    }

    /// The words for a further path to a peer.
    fn way(&self, index: usize, outer: PathId) -> Option<String> {
        let hub = self.config.hub_of(index).filter(|_| outer.is_inside());
        let through = hub.map(|hub| way_of(self.config, Reach::Through(index_of(hub))));
        through.or_else(|| self.peers.ports.way(index, outer))
    }

    fn flow_list(&self, now: Instant) -> Vec<FlowStatus> {
        let mut flows: Vec<(FlowId, &Flow)> = self.traffic.flows.iter().collect();
        flows.sort_by_key(|(id, flow)| (flow.began, *id));
        flows.truncate(FLOWS_LISTED_MAX);
        let report = |(id, flow): (FlowId, &Flow)| {
            let (sent_bytes, received_bytes) = flow.moved_bytes();
            FlowStatus {
                id: id.to_string(),
                peer: self.config.peer_name(flow.peer).to_owned(),
                class: self.config.class_name(flow.class_id().0).into_owned(),
                protocol: flow.protocol(),
                direction: flow.direction(),
                destination: flow.destination.to_string(),
                sent_bytes,
                received_bytes,
                seconds: now.saturating_since(flow.began).as_secs_f64(),
            }
        };
        flows.into_iter().map(report).collect()
    }
}

fn carrier(link: &Link, captured: RecordingCounters, traced: RecordingCounters) -> CarrierReport {
    let session = link.counters();
    let dropped = DropReason::ALL.map(|reason| (reason.name(), session.dropped(reason)));
    CarrierReport {
        sent_datagrams: session.sent,
        received_datagrams: session.received,
        outages: session.outages,
        outage_seconds: session.outage_time.as_secs_f64(),
        moves: session.moves,
        handshakes: session.handshakes,
        rekeys: session.rekeys,
        fragmented_datagrams: session.fragmented,
        reassembled_datagrams: session.reassembled,
        queue_full_datagrams: session.queue_full,
        relayed_datagrams: session.relayed,
        unrelayed_datagrams: session.unrelayed,
        captured_packets: captured.written,
        capture_missed_packets: captured.missed,
        traced_events: traced.written,
        trace_missed_events: traced.missed,
        dropped: dropped.into_iter().collect(),
        uncorrected_datagrams: session.uncorrected,
        operations: link.work().named().into_iter().collect(),
    }
}
