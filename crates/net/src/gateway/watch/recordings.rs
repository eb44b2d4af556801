//! The capture and the event trace of a running gateway.

use super::found_losses::FoundLosses;
use super::trace::GatewayTrace;
use crate::capture::Capture;
use crate::clock::Clock;
use crate::event_trace::{EventTrace, NOTES_MAX};
use crate::gateway::Link;
use crate::gateway::config::GatewayConfig;
use crate::gateway::flows::News;
use crate::gateway::tunnels::TunnelChange;
use crate::recording::{EndOfRecording, RecordingCounters, RecordingError};
use crate::session::{PeerIndex, SessionEvent, SessionTap};
use fulmar_capture::{EventPlace, GatewayEvent};
use fulmar_proto::units::Instant;
use std::error::Error as _;
use std::net::SocketAddr;

/// Ignores a recording that cannot begin, unless it is required: traffic is carried without it.
fn unless_required<T>(
    is_required: bool,
    event: &'static str,
    started: Result<T, RecordingError>,
) -> Result<Option<T>, RecordingError> {
    match started {
        Ok(started) => Ok(Some(started)),
        Err(error) if is_required => Err(error),
        Err(error) => {
            let cause = error.source().map(ToString::to_string);
            let reason = format!("{error}: {}", cause.unwrap_or_default());
            tracing::warn!(event, reason, "there is traffic without it");
            Ok(None)
        }
    }
}

/// Begins a capture, if one is wanted.
fn capture(
    clock: Clock,
    config: &GatewayConfig,
    carrier: SocketAddr,
) -> Result<Option<(Capture, SessionTap)>, RecordingError> {
    let Some(wanted) = config.capture.clone() else {
        return Ok(None);
    };
    let about = format!("gateway {}", config.name);
    let file = wanted.file.display().to_string();
    let tell = |ended: EndOfRecording| {
        tracing::warn!(event = "capture_ended", reason = %ended);
    };
    let is_required = wanted.is_required;
    let started = Capture::start(clock, wanted, &about, SessionTap::INTERFACES, tell);
    let Some((capture, interfaces)) = unless_required(is_required, "capture_ended", started)?
    else {
        return Ok(None);
    };
    tracing::warn!(
        event = "capturing",
        file,
        "the capture has user data in clear"
    );
    let peers = config.peers.iter().map(|peer| peer.name.as_str());
    let tap = SessionTap::new(capture.recorder().clone(), interfaces, carrier, peers);
    Ok(Some((capture, tap)))
}

/// Begins an event trace, if one is wanted.
fn trace(clock: Clock, config: &GatewayConfig) -> Result<Option<GatewayTrace>, RecordingError> {
    let Some(wanted) = config.trace.clone() else {
        return Ok(None);
    };
    let file = wanted.file.display().to_string();
    let tell = |ended: EndOfRecording| {
        tracing::warn!(event = "trace_ended", reason = %ended);
    };
    let is_required = wanted.is_required;
    let started = EventTrace::start(clock, wanted, "gateway", &config.name, tell);
    let started = unless_required(is_required, "trace_ended", started)?;
    if started.is_some() {
        tracing::info!(event = "tracing", file);
    }
    Ok(started.map(GatewayTrace::new))
}

/// The recordings of a gateway while it runs; by default none.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Watch {
    /// A capture, and the tap of what the carrier sends.
    capture: Option<(Capture, SessionTap)>,
    trace: Option<GatewayTrace>,
    losses: FoundLosses,
}

impl Watch {
    /// Begins the capture and the trace. A start that fails must not come here: each recording keeps only the one
    /// before it, so two failed starts would leave nothing of the recording of a crash.
    pub(in crate::gateway) fn begin(
        clock: Clock,
        config: &GatewayConfig,
        link: &mut Link,
        carrier: SocketAddr,
    ) -> Result<Self, RecordingError> {
        let capture = capture(clock, config, carrier)?;
        if let Some((_, tap)) = &capture {
            link.set_tap(tap.clone());
        }
        let trace = trace(clock, config)?;
        if trace.is_some() {
            link.inner_mut().endpoint_mut().keep_notes(NOTES_MAX);
        }
        Ok(Self {
            capture,
            trace,
            losses: FoundLosses::default(),
        })
    }

    pub(in crate::gateway) const fn has_trace(&self) -> bool {
        self.trace.is_some()
    }

    /// A datagram leaves.
    pub(in crate::gateway) fn departing(&self, now: Instant, to: SocketAddr, octets: &[u8]) {
        if let Some((_, tap)) = &self.capture {
            tap.sent(now, to, octets);
        }
    }

    /// Takes the notes of the connections.
    pub(in crate::gateway) fn take_notes(
        &mut self,
        now: Instant,
        config: &GatewayConfig,
        link: &mut Link,
    ) {
        if let Some(trace) = &mut self.trace {
            trace.take_notes(now, config, link);
            if trace.wants_losses(now) {
                self.tell_losses(now, config, link);
            }
        }
    }

    /// Finds the losses by cause of all peers.
    pub(in crate::gateway) fn find_losses(&mut self, config: &GatewayConfig, link: &Link) {
        self.losses.find(link, config.peers.len());
    }

    /// Lets the next reports to a peer tell of the losses on the way to it.
    pub(in crate::gateway) fn tell_peer(&mut self, now: Instant, link: &mut Link, peer: PeerIndex) {
        if let Ok(index) = usize::try_from(peer.0) {
            self.losses.tell(now, link, index);
        }
    }

    /// The losses by cause as they were found last.
    pub(in crate::gateway) const fn losses(&self) -> &FoundLosses {
        &self.losses
    }

    fn tell_losses(&mut self, now: Instant, config: &GatewayConfig, link: &Link) {
        self.find_losses(config, link);
        if let Some(trace) = &mut self.trace {
            trace.losses(now, config, |index| self.losses.to_trace(link, index));
        }
    }

    /// Writes an event of the session, if it is new keys, or if there was a decision.
    pub(in crate::gateway) fn session_event<E>(
        &self,
        now: Instant,
        config: &GatewayConfig,
        event: &SessionEvent<E>,
        decided: Option<&(Option<PeerIndex>, String)>,
    ) {
        let Some(trace) = &self.trace else { return };
        if let SessionEvent::Rekeyed(peer) = event {
            trace.session(now, config, Some(*peer), (event, ""));
        }
        if let Some((peer, why)) = decided {
            trace.session(now, config, *peer, (event, why));
        }
    }

    /// Writes an event of the gateway itself.
    pub(in crate::gateway) fn event(&self, now: Instant, event: &GatewayEvent<'_>) {
        if let Some(trace) = &self.trace {
            trace.events().gateway(now, EventPlace::default(), event);
        }
    }

    /// Writes a change of the tunnel in a place.
    pub(in crate::gateway) fn tunnel(
        &self,
        now: Instant,
        config: &GatewayConfig,
        change: (usize, &TunnelChange),
    ) {
        if let Some(trace) = &self.trace {
            trace.tunnel(now, config, change);
        }
    }

    /// Writes news of flows.
    pub(in crate::gateway) fn news(&self, config: &GatewayConfig, news: &[News]) {
        if let Some(trace) = &self.trace {
            for one in news {
                trace.news(config, one);
            }
        }
    }

    /// Ends the trace: nothing follows, although the last words have yet to leave.
    pub(in crate::gateway) fn end(
        &mut self,
        now: Instant,
        config: &GatewayConfig,
        link: &mut Link,
    ) {
        self.take_notes(now, config, link);
        if self.has_trace() {
            self.tell_losses(now, config, link);
        }
        if let Some(trace) = &self.trace {
            trace.events().end(now, "stopped");
        }
    }

    pub(in crate::gateway) fn captured(&self) -> RecordingCounters {
        let capture = self.capture.as_ref();
        capture.map_or_else(RecordingCounters::default, |(capture, _)| {
            capture.recorder().counters()
        })
    }

    pub(in crate::gateway) fn traced(&self) -> RecordingCounters {
        let trace = self.trace.as_ref();
        trace.map_or_else(RecordingCounters::default, |trace| {
            trace.events().counters()
        })
    }
}
