//! The event trace: the notes of the connections, and the events of the gateway.
//!
//! Notes are taken before events are written, so that the lines are in the order of their times.

use super::reporting::index_of;
use super::status::RateReport;
use crate::event_trace::EventTrace;
use crate::gateway::flows::Flow;
use crate::gateway::peers::{DECLARED_WRONG, RatesSeen};
use crate::gateway::running::{Link, Running};
use crate::session::{PeerIndex, SessionEvent};
use fulmar_capture::{GatewayEvent, Place};
use fulmar_proto::splice::{Destination, FlowId};
use fulmar_proto::units::{Duration, Instant};
use std::borrow::Cow;

/// The time between two looks at the rates, which change without an event.
const RATES_EVERY: Duration = Duration::from_millis(100);

/// A trace under way.
#[derive(Debug)]
pub(in crate::gateway) struct GatewayTrace {
    events: EventTrace,
    /// The time of the next look at the rates.
    rates_at: Instant,
    /// The rates seen here, apart from those of the decisions, which must be the same without a trace.
    rates: RatesSeen,
}

impl GatewayTrace {
    pub(in crate::gateway) fn new(events: EventTrace) -> Self {
        Self {
            events,
            rates_at: Instant::START,
            rates: RatesSeen::default(),
        }
    }

    pub(in crate::gateway) const fn events(&self) -> &EventTrace {
        &self.events
    }
}

/// The event of a changed decision on a rate.
fn rate_event<'a>(what: &str, why: &'a str, rate: &RateReport) -> GatewayEvent<'a> {
    if what == DECLARED_WRONG {
        GatewayEvent::RateDeclaredWrong { why }
    } else {
        GatewayEvent::Rate {
            bits_per_second: rate.current_bits_per_second,
            reason: rate.reason,
            why,
        }
    }
}

/// The trace's event for an event of the session, with the reason `why`.
fn session_event<'a, E>(event: &SessionEvent<E>, why: &'a str) -> Option<GatewayEvent<'a>> {
    Some(match event {
        SessionEvent::Up { resumed, .. } => GatewayEvent::PeerUp {
            resumed: *resumed,
            why,
        },
        SessionEvent::Rekeyed(_) => GatewayEvent::PeerRekeyed,
        SessionEvent::PeerRestarted(_) => GatewayEvent::PeerRestarted { why },
        SessionEvent::Closed(_) => GatewayEvent::PeerClosed { why },
        SessionEvent::LinkDown { silent_for, .. } => GatewayEvent::LinkDown {
            silent_seconds: silent_for.as_secs_f64(),
            why,
        },
        SessionEvent::LinkUp { outage, .. } => GatewayEvent::LinkUp {
            outage_seconds: outage.as_secs_f64(),
            why,
        },
        SessionEvent::Moved { .. } => GatewayEvent::PeerMoved { why },
        SessionEvent::MtuChanged { sizes, .. } => GatewayEvent::PathMtu {
            packet_bytes: sizes.packet.0,
            why,
        },
        SessionEvent::Mismatch { .. } => GatewayEvent::PeerMismatch { why },
        SessionEvent::Refused { .. } => GatewayEvent::HandshakeRefused { why },
        SessionEvent::TurnedAway { .. } => GatewayEvent::RefusedByPeer { why },
        SessionEvent::NoAnswer { waited, .. } => GatewayEvent::NoAnswer {
            waited_seconds: waited.as_secs_f64(),
            why,
        },
        SessionEvent::EpochSeen { .. }
        | SessionEvent::TooNarrow { .. }
        | SessionEvent::ReportDue(_)
        | SessionEvent::Reported { .. }
        | SessionEvent::Inner(_) => return None,
    })
}

impl Running {
    /// Takes the notes of the connections.
    pub(in crate::gateway) fn trace_notes(&mut self, now: Instant, link: &mut Link) {
        if self.trace.is_none() {
            return;
        }
        self.trace_waiting(link);
        // Notes that waited are from earlier.
        self.trace_rates(now, link);
    }

    fn trace_waiting(&self, link: &mut Link) {
        let Some(trace) = &self.trace else { return };
        let endpoint = link.inner_mut().endpoint_mut();
        while let Some(note) = endpoint.take_note() {
            let class = self.class_called(note.class);
            let peer = usize::try_from(note.path.0).unwrap_or(usize::MAX);
            let place = Place {
                peer: Some(self.peer_name(peer)),
                class: Some(&class),
                flow: note.label,
                connection: Some(note.connection.0),
                ..Place::default()
            };
            trace.events.record(note.at, place, note.record);
        }
        let missed = endpoint.take_missed_notes();
        if missed > 0 {
            trace.events.note_missed(missed);
        }
    }

    fn trace_rates(&mut self, now: Instant, link: &Link) {
        let Some(trace) = self.trace.as_mut().filter(|trace| now >= trace.rates_at) else {
            return;
        };
        trace.rates_at = now + RATES_EVERY;
        let endpoint = link.inner().endpoint();
        for (index, peer) in self.config.peers.iter().enumerate() {
            let Some(rate) = endpoint.path_rate(index_of(index).inner_path()) else {
                continue;
            };
            let rate = RateReport::from(rate);
            let place = Place {
                peer: Some(&peer.name),
                ..Place::default()
            };
            for (what, why) in trace.rates.changes(&peer.name, &rate) {
                trace
                    .events
                    .gateway(now, place, &rate_event(what, &why, &rate));
            }
        }
    }

    /// The configured name of a class, or one made from its number.
    fn class_called(&self, id: u8) -> Cow<'_, str> {
        let mut classes = self.config.classes.iter();
        let named = classes.find(|class| class.flow.id.0 == id);
        named.map_or_else(
            || Cow::Owned(self.class_name(id)),
            |class| Cow::Borrowed(class.name.as_str()),
        )
    }

    pub(in crate::gateway) fn trace_event(
        &self,
        now: Instant,
        place: Place<'_>,
        event: &GatewayEvent<'_>,
    ) {
        if let Some(trace) = &self.trace {
            trace.events.gateway(now, place, event);
        }
    }

    pub(in crate::gateway) fn trace_session<E>(
        &self,
        now: Instant,
        peer: Option<PeerIndex>,
        event: &SessionEvent<E>,
        why: &str,
    ) {
        if self.trace.is_some()
            && let Some(event) = session_event(event, why)
        {
            let peer = peer.map(|peer| usize::try_from(peer.0).unwrap_or(usize::MAX));
            let place = Place {
                peer: peer.map(|peer| self.peer_name(peer)),
                ..Place::default()
            };
            self.trace_event(now, place, &event);
        }
    }

    /// Writes an event of a flow.
    fn trace_flow(&self, now: Instant, flow: &Flow, number: Option<u64>, event: &GatewayEvent<'_>) {
        let class = self.class_called(flow.class_id().0);
        let place = Place {
            peer: Some(self.peer_name(flow.peer)),
            class: Some(&class),
            flow: number,
            ..Place::default()
        };
        self.trace_event(now, place, event);
    }

    /// Writes that a flow has begun.
    pub(in crate::gateway) fn trace_opened(&mut self, now: Instant, link: &Link, id: FlowId) {
        if self.trace.is_none() {
            return;
        }
        let number = link.inner().number_of(id);
        let Some(flow) = self.flows.get_mut(id) else {
            return;
        };
        flow.number = number;
        let opened = GatewayEvent::FlowOpened {
            id: &id.to_string(),
            protocol: flow.protocol(),
            direction: flow.direction(),
            destination: &flow.destination.to_string(),
        };
        if let Some(flow) = self.flows.get(id) {
            self.trace_flow(now, flow, number, &opened);
        }
    }

    /// Writes that a flow goes on from that position.
    pub(in crate::gateway) fn trace_resumed(&self, now: Instant, id: FlowId, position_bytes: u64) {
        if self.trace.is_some()
            && let Some(flow) = self.flows.get(id)
        {
            let resumed = GatewayEvent::FlowResumed { position_bytes };
            self.trace_flow(now, flow, flow.number, &resumed);
        }
    }

    /// Writes that a flow has ended.
    pub(in crate::gateway) fn trace_ended(&self, now: Instant, flow: &Flow, reason: &str) {
        if self.trace.is_none() {
            return;
        }
        let (from_client_bytes, to_client_bytes) = flow.moved_bytes();
        let ended = GatewayEvent::FlowEnded {
            reason,
            from_client_bytes,
            to_client_bytes,
            seconds: now.saturating_since(flow.began).as_secs_f64(),
        };
        self.trace_flow(now, flow, flow.number, &ended);
    }

    /// Writes that a peer's wish was refused.
    pub(in crate::gateway) fn trace_refused(
        &self,
        now: Instant,
        destination: &Destination,
        reason: &str,
    ) {
        if self.trace.is_some() {
            let refused = GatewayEvent::ExitRefused {
                destination: &destination.to_string(),
                reason,
            };
            self.trace_event(now, Place::default(), &refused);
        }
    }

    /// Writes that a client's wish led to no flow.
    pub(in crate::gateway) fn trace_not_opened(
        &self,
        now: Instant,
        peer: usize,
        destination: &Destination,
        reason: &str,
    ) {
        if self.trace.is_some() {
            let place = Place {
                peer: Some(self.peer_name(peer)),
                ..Place::default()
            };
            let not_opened = GatewayEvent::FlowNotOpened {
                destination: &destination.to_string(),
                reason,
            };
            self.trace_event(now, place, &not_opened);
        }
    }

    /// Ends the trace: nothing follows, although the last words have yet to leave.
    pub(in crate::gateway) fn end_trace(&mut self, now: Instant, link: &mut Link) {
        self.trace_notes(now, link);
        if let Some(trace) = &self.trace {
            trace.events.end(now, "stopped");
        }
    }
}
