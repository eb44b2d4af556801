//! The session's events about peers: what they decide is remembered, and each is a line of the log.

use super::decisions;
use super::index::index_of;
use super::known::Peers;
use super::rate::RateReport;
use super::reach::way_of;
use crate::gateway::Link;
use crate::gateway::config::GatewayConfig;
use crate::session::{PathChange, PeerIndex, SessionEvent};
use fulmar_proto::machine::PathId;
use fulmar_proto::splice::FlowEvent;
use fulmar_proto::units::Instant;
use std::net::SocketAddr;

fn name_of(config: &GatewayConfig, peer: PeerIndex) -> &str {
    config.peer_name(usize::try_from(peer.0).unwrap_or(usize::MAX))
}

/// The event, with the peer that is expected where a refused caller called from, if its key tells none.
pub(in crate::gateway) fn of_peer_there(
    link: &Link,
    event: SessionEvent<FlowEvent>,
) -> SessionEvent<FlowEvent> {
    match event {
        SessionEvent::Refused {
            path,
            peer: None,
            reason,
        } => SessionEvent::Refused {
            path,
            peer: link.peer_on(path),
            reason,
        },
        event => event,
    }
}

impl Peers {
    /// The address of the datagram that an event is about.
    fn address_of(&self, path: PathId) -> Option<String> {
        // The link is drained after every datagram, so it is the last one.
        let (_, from) = self.heard.filter(|(of, _)| *of == path)?;
        // IPv4 hosts by their own addresses, though the socket is for both families.
        Some(SocketAddr::new(from.ip().to_canonical(), from.port()).to_string())
    }

    /// Remembers what an event of the session decides. Returns the peer of a decision and the reason for it.
    pub(in crate::gateway) fn note(
        &mut self,
        now: Instant,
        config: &GatewayConfig,
        event: &SessionEvent<FlowEvent>,
    ) -> Option<(Option<PeerIndex>, String)> {
        self.outages.on_event(now, event);
        let (peer, what, why) = decisions::of_event(config, event)?;
        let why = match event {
            // Nothing but its address says who it is.
            SessionEvent::Refused {
                path, peer: None, ..
            } => match self.address_of(*path) {
                Some(from) => format!("called from {from}: {why}"),
                None => why,
            },
            _ => why,
        };
        let why = decisions::cut(why);
        let index = peer.and_then(|peer| usize::try_from(peer.0).ok());
        let name = index.map(|index| config.peer_name(index));
        self.decisions.note(now, name, what, &why);
        Some((peer, why))
    }

    /// Tells the peer the fate of its datagrams.
    pub(in crate::gateway) fn report_to(
        &mut self,
        now: Instant,
        config: &GatewayConfig,
        link: &mut Link,
        peer: PeerIndex,
    ) {
        let room = link.report_room(peer);
        let octets = link.inner_mut().report(peer.inner_path(), room);
        // Without keys or while the link is down another report is due later.
        link.report(now, peer, &octets);
        // While datagrams move this comes once a second, whether somebody asks for the status or not.
        self.note_rates(now, config, link);
        self.note_repairs(now, config, link);
        self.keep_rate(now, config, link, peer);
    }

    /// Keeps the rate that was found towards `peer`, if it was.
    fn keep_rate(&mut self, now: Instant, config: &GatewayConfig, link: &Link, peer: PeerIndex) {
        let index = usize::try_from(peer.0).unwrap_or(usize::MAX);
        let rate = link.inner().endpoint().path_rate(peer.inner_path());
        let (Some(settings), Some(rate)) = (config.peers.get(index), rate) else {
            return;
        };
        let rate = RateReport::of(rate, settings.rate);
        if let Some(found) = rate.kept_rate() {
            self.rates.note(now, &settings.name, found);
        }
    }

    /// Notes changes of the repair of flows, which cause no event.
    fn note_repairs(&mut self, now: Instant, config: &GatewayConfig, link: &mut Link) {
        let endpoint = link.inner_mut().endpoint_mut();
        while let Some(change) = endpoint.take_repair_change() {
            let of_path = |index: &usize| index_of(*index).inner_path() == change.path;
            if let Some(peer) = (0..config.peers.len()).find(of_path) {
                self.repairs.note(peer, change);
            }
        }
        let class_name = |class: u8| config.class_name(class).into_owned();
        let peer_name = |index: usize| config.peer_name(index);
        for (index, why) in self.repairs.due(now, peer_name, class_name) {
            let peer = config.peer_name(index);
            self.decisions.note(now, Some(peer), "repair", &why);
            tracing::info!(event = "repair", peer, %why);
        }
    }

    /// Notes changes of the rates in use, which cause no event. They are looked at with every report, and when somebody
    /// asks for the status.
    pub(in crate::gateway) fn note_rates(
        &mut self,
        now: Instant,
        config: &GatewayConfig,
        link: &Link,
    ) {
        let endpoint = link.inner().endpoint();
        for (index, peer) in config.peers.iter().enumerate() {
            let Some(rate) = endpoint.path_rate(index_of(index).inner_path()) else {
                continue;
            };
            let rate = RateReport::of(rate, peer.rate);
            for (what, why) in self.decisions.note_rate(now, &peer.name, &rate) {
                let peer = peer.name.as_str();
                if what == decisions::DECLARED_WRONG || what == decisions::DECLARED_LOW {
                    tracing::warn!(event = what, peer, %why);
                } else {
                    tracing::info!(event = what, peer, %why);
                }
            }
        }
    }

    /// Writes an event about a peer into the log.
    pub(in crate::gateway) fn say(&self, config: &GatewayConfig, event: SessionEvent<FlowEvent>) {
        match event {
            SessionEvent::Up { peer, resumed, .. } => {
                tracing::info!(event = "peer_up", peer = name_of(config, peer), resumed);
            }
            SessionEvent::PeerRestarted(peer) => {
                tracing::warn!(event = "peer_restarted", peer = name_of(config, peer));
            }
            // Only early data needs the epoch on the disk, and none is sent or taken. The others are the loop's, and those
            // of carriers have their own lines.
            SessionEvent::EpochSeen { .. }
            | SessionEvent::CarrierChosen { .. }
            | SessionEvent::Inner(_)
            | SessionEvent::ParityChanged { .. }
            | SessionEvent::ReportDue(_)
            | SessionEvent::Reported { .. } => {}
            SessionEvent::Rekeyed(peer) => {
                tracing::debug!(event = "peer_rekeyed", peer = name_of(config, peer));
            }
            SessionEvent::Closed(peer) => {
                tracing::info!(event = "peer_closed", peer = name_of(config, peer));
            }
            SessionEvent::LinkDown { peer, silent_for } => tracing::warn!(
                event = "link_down",
                peer = name_of(config, peer),
                silent_seconds = silent_for.as_secs_f64()
            ),
            SessionEvent::LinkUp { peer, outage } => tracing::info!(
                event = "link_up",
                peer = name_of(config, peer),
                outage_seconds = outage.as_secs_f64()
            ),
            SessionEvent::Path {
                peer,
                place,
                change,
            } => say_path(name_of(config, peer), place, change),
            SessionEvent::Moved { peer, .. } => {
                tracing::info!(event = "peer_moved", peer = name_of(config, peer));
            }
            SessionEvent::MtuChanged { peer, sizes } => tracing::info!(
                event = "path_mtu",
                peer = name_of(config, peer),
                packet_bytes = sizes.packet.0
            ),
            SessionEvent::TooNarrow { peer, why } => tracing::warn!(
                event = "path_mtu_too_small",
                peer = name_of(config, peer),
                error = why
            ),
            SessionEvent::Mismatch {
                peer,
                what,
                ours,
                theirs,
            } => {
                let peer = name_of(config, peer);
                tracing::error!(event = "peer_mismatch", peer, what, ours, theirs);
            }
            SessionEvent::Refused { path, peer, reason } => {
                let peer = peer.map(|peer| name_of(config, peer).to_owned());
                let from = self.address_of(path);
                tracing::warn!(event = "handshake_refused", peer, from, %reason);
            }
            SessionEvent::TurnedAway { peer, path, hint } => {
                let from = self.address_of(path);
                let hint = decisions::by_names(config, peer, &hint);
                let (peer, proven) = (name_of(config, peer), false);
                tracing::warn!(event = "refused_by_peer", peer, from, proven, hint);
            }
            event @ (SessionEvent::Introduced { .. }
            | SessionEvent::NotIntroduced { .. }
            | SessionEvent::Reached { .. }) => say_meeting(config, &event),
            SessionEvent::NoAnswer { peer, waited } => tracing::warn!(
                event = "no_answer",
                peer = name_of(config, peer),
                waited_seconds = waited.as_secs_f64()
            ),
        }
    }
}

/// Writes an event about a peer that is met through a hub into the log.
fn say_meeting(config: &GatewayConfig, event: &SessionEvent<FlowEvent>) {
    match event {
        SessionEvent::Introduced {
            peer,
            address,
            is_news: true,
        } => tracing::info!(
            event = "peer_introduced",
            peer = name_of(config, *peer),
            %address
        ),
        SessionEvent::NotIntroduced { peer, hub, why } => tracing::warn!(
            event = "peer_not_introduced",
            peer = name_of(config, *peer),
            hub = name_of(config, *hub),
            %why
        ),
        SessionEvent::Reached { peer, reach } => tracing::info!(
            event = "peer_reached",
            peer = name_of(config, *peer),
            way = way_of(config, *reach)
        ),
        _ => {}
    }
}

fn say_path(peer: &str, path: u8, change: PathChange) {
    match change {
        PathChange::Down(silent) => {
            let silent_seconds = silent.as_secs_f64();
            tracing::warn!(event = "path_down", peer, path, silent_seconds);
        }
        PathChange::Unproved(span) => {
            let (unanswered_seconds, why) = (span.as_secs_f64(), "the peer hears nothing there");
            tracing::warn!(event = "path_down", peer, path, unanswered_seconds, why);
        }
        PathChange::Found => tracing::info!(event = "path_up", peer, path),
        PathChange::Up(outage) => {
            let outage_seconds = outage.as_secs_f64();
            tracing::info!(event = "path_up", peer, path, outage_seconds);
        }
    }
}
