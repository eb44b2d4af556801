//! The reports of a running gateway on itself.

use super::status::{
    self, CarrierReport, FLOWS_LISTED_MAX, FlowReport, PeerReport, Quantiles, Status,
};
use crate::gateway::flows::{Body, Flow};
use crate::gateway::peers::decisions;
use crate::gateway::running::{Link, Running, link_name};
use crate::recording::RecordingCounters;
use crate::session::{DropReason, PeerIndex, RoundTripQuantiles, SessionEvent};
use fulmar_proto::splice::{FlowEvent, FlowId};
use fulmar_proto::units::Instant;
use std::collections::BTreeMap;

/// The link of a peer that a reload removed. The peer stays in the list until a restart, since the history refers to
/// places in it.
pub(in crate::gateway) const REMOVED: &str = "removed";

pub(in crate::gateway) fn index_of(peer: usize) -> PeerIndex {
    PeerIndex(u32::try_from(peer).unwrap_or(u32::MAX))
}

fn quantiles(of: RoundTripQuantiles) -> Quantiles {
    Quantiles {
        samples: of.samples as u64,
        p50: of.p50.as_secs_f64(),
        p90: of.p90.as_secs_f64(),
        p99: of.p99.as_secs_f64(),
    }
}

impl Running {
    /// Remembers what an event of the session decides.
    pub(in crate::gateway) fn note_event(&mut self, now: Instant, event: &SessionEvent<FlowEvent>) {
        self.outages.on_event(now, event);
        if let SessionEvent::Rekeyed(peer) = event {
            self.trace_session(now, Some(*peer), event, "");
        }
        let Some((peer, what, why)) = decisions::of_event(event) else {
            return;
        };
        let why = decisions::cut(why);
        self.trace_session(now, peer, event, &why);
        let index = peer.and_then(|peer| usize::try_from(peer.0).ok());
        let name = index.map(|index| self.peer_name(index).to_owned());
        self.decisions.note(now, name.as_deref(), what, &why);
    }

    /// Tells the peer the fate of its datagrams.
    pub(in crate::gateway) fn report_to(&mut self, now: Instant, link: &mut Link, peer: PeerIndex) {
        let room = link.report_room(peer);
        let octets = link.inner_mut().report(peer.inner_path(), room);
        // Without keys or while the link is down another report is due later.
        link.report(now, peer, &octets);
        // While datagrams move this comes once a second, whether somebody asks for the status or not.
        self.note_rates(now, link);
    }

    /// Notes changes of the rates in use, which cause no event. They are looked at with every report, and when somebody
    /// asks for the status.
    fn note_rates(&mut self, now: Instant, link: &Link) {
        let endpoint = link.inner().endpoint();
        for (index, peer) in self.config.peers.iter().enumerate() {
            let Some(rate) = endpoint.path_rate(index_of(index).inner_path()) else {
                continue;
            };
            for (what, why) in self.decisions.note_rate(now, &peer.name, &rate.into()) {
                let peer = peer.name.as_str();
                if what == decisions::DECLARED_WRONG {
                    tracing::warn!(event = what, peer, %why);
                } else {
                    tracing::info!(event = what, peer, %why);
                }
            }
        }
    }

    /// The status of the gateway now.
    pub(in crate::gateway) fn status(&mut self, now: Instant, link: &Link) -> Status {
        self.note_rates(now, link);
        let counters = link.inner().counters();
        let mut flows_of = BTreeMap::<usize, u64>::new();
        let mut custody_bytes = 0;
        for (_, flow) in self.flows.iter() {
            *flows_of.entry(flow.peer).or_default() += 1;
            if let Body::Stream(stream) = &flow.body {
                custody_bytes += stream.kept();
            }
        }
        let peers = (0..self.config.peers.len()).map(|index| {
            let flows = flows_of.get(&index).copied().unwrap_or(0);
            self.peer(now, link, index, flows)
        });
        Status {
            schema: status::SCHEMA,
            name: self.config.name.clone(),
            uptime_seconds: now.as_secs_f64(),
            flows: self.flows.len() as u64,
            custody_bytes,
            custody_damaged_bytes: self.keeping.damaged_bytes(),
            peers: peers.collect(),
            classes: status::classes(counters, |id| self.class_name(id)),
            carrier: carrier(link, self.captured(), self.traced()),
            malformed_records: counters.malformed,
            flow_list: self.flow_list(now),
            decisions: self.decisions.list(),
        }
    }

    fn captured(&self) -> RecordingCounters {
        let capture = self.capture.as_ref();
        capture.map_or_else(RecordingCounters::default, |(capture, _)| {
            capture.recorder().counters()
        })
    }

    fn traced(&self) -> RecordingCounters {
        let trace = self.trace.as_ref();
        trace.map_or_else(RecordingCounters::default, |trace| {
            trace.events().counters()
        })
    }

    fn peer(&self, now: Instant, link: &Link, index: usize, flows: u64) -> PeerReport {
        let known = index_of(index);
        let path = known.inner_path();
        let endpoint = link.inner().endpoint();
        let state = link.status(known);
        let state = state.as_ref();
        let settings = self.config.peers.get(index);
        let lasts = self.outages.lasts(now, known);
        let link_word = match (settings, state) {
            (Some(settings), _) if settings.is_removed => REMOVED,
            (_, Some(state)) => link_name(state.link),
            (_, None) => "unknown",
        };
        PeerReport {
            name: self.peer_name(index).to_owned(),
            link: link_word.to_owned(),
            down_seconds: lasts.map(|span| span.as_secs_f64()),
            rtt_seconds: state.and_then(|s| s.rtt).map(|rtt| rtt.as_secs_f64()),
            rtt_quantiles_seconds: state.and_then(|s| s.round_trips).map(quantiles),
            path_mtu_bytes: state.map_or(0, |s| s.sizes.packet.0),
            packet_overhead_bytes: state.map_or(0, |s| s.sizes.overhead().0),
            secure: state.is_some_and(|s| s.secure),
            rate_bits_per_second: settings.map_or(0, |peer| peer.rate.as_bits_per_second()),
            rate: endpoint.path_rate(path).map(Into::into),
            outward: state.map_or_else(Default::default, |s| s.outward.into()),
            inward: state.map_or_else(Default::default, |s| s.inward.into()),
            told: link.inner().told(path).into(),
            outages: self.outages.report(known),
            flows,
            transport: endpoint.path_counters(path).into(),
            classes: endpoint
                .class_counters(path)
                .into_iter()
                .map(|(class, counters)| (self.class_name(class), counters.into()))
                .collect(),
        }
    }

    fn flow_list(&self, now: Instant) -> Vec<FlowReport> {
        let mut flows: Vec<(FlowId, &Flow)> = self.flows.iter().collect();
        flows.sort_by_key(|(id, flow)| (flow.began, *id));
        flows.truncate(FLOWS_LISTED_MAX);
        let report = |(id, flow): (FlowId, &Flow)| {
            let (sent_bytes, received_bytes) = flow.moved_bytes();
            FlowReport {
                id: id.to_string(),
                peer: self.peer_name(flow.peer).to_owned(),
                class: self.class_name(flow.class_id().0),
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
        captured_packets: captured.written,
        capture_missed_packets: captured.missed,
        traced_events: traced.written,
        trace_missed_events: traced.missed,
        dropped: dropped.into_iter().collect(),
        uncorrected_datagrams: session.uncorrected,
        operations: link.work().named().into_iter().collect(),
    }
}
