//! The event trace: the notes of the connections, and the events of the gateway.
//!
//! Notes are taken before events are written, so that the lines are in the order of their times.

use super::losses::LossFigures;
use crate::event_trace::EventTrace;
use crate::gateway::Link;
use crate::gateway::config::GatewayConfig;
use crate::gateway::flows::{Happened, News};
use crate::gateway::peers::{
    DECLARED_LOW, DECLARED_WRONG, RateReport, RatesSeen, carrier_name, index_of,
};
use crate::gateway::tunnels::TunnelChange;
use crate::session::{PathChange, PeerIndex, SessionEvent};
use fulmar_capture::{EventPlace, GatewayEvent, TracedCause};
use fulmar_proto::units::{Duration, Instant};
use std::collections::BTreeMap;

/// The time between two looks at the rates, which change without an event.
const RATES_EVERY: Duration = Duration::from_millis(100);

/// The time between two looks at losses by cause.
const LOSSES_EVERY: Duration = Duration::from_secs(10);

/// A trace under way.
#[derive(Debug)]
pub(super) struct GatewayTrace {
    events: EventTrace,
    /// The time of the next look at the rates.
    rates_at: Instant,
    /// The rates seen here, apart from those of the decisions, which must be the same without a trace.
    rates: RatesSeen,
    /// The time of the next look at losses by cause, and those of each peer and path that were written last.
    losses_at: Instant,
    losses: BTreeMap<(usize, Option<u8>), LossFigures>,
}

impl GatewayTrace {
    pub(super) fn new(events: EventTrace) -> Self {
        Self {
            events,
            rates_at: Instant::START,
            rates: RatesSeen::detailed(),
            losses_at: Instant::START + LOSSES_EVERY,
            losses: BTreeMap::new(),
        }
    }

    pub(super) const fn events(&self) -> &EventTrace {
        &self.events
    }
}

/// The event of a changed decision on a rate.
fn rate_event<'a>(
    what: &str,
    why: &'a str,
    (rate, path): (&RateReport, Option<u8>),
) -> GatewayEvent<'a> {
    match what {
        DECLARED_WRONG => GatewayEvent::RateDeclaredWrong { why },
        DECLARED_LOW => GatewayEvent::RateDeclaredLow { why },
        _ => GatewayEvent::Rate {
            path,
            bits_per_second: rate.current_bits_per_second,
            reason: rate.reason,
            why,
            bottleneck: rate.bottleneck,
            queue_seconds: rate.queue_seconds,
            random_loss_ratio: rate.random_loss_ratio,
        },
    }
}

/// The trace's event for an event of the session, with the reason `why`.
fn session_event<'a, E>(event: &SessionEvent<E>, why: &'a str) -> Option<GatewayEvent<'a>> {
    Some(match event {
        SessionEvent::Up { resumed, wire, .. } => GatewayEvent::PeerUp {
            resumed: *resumed,
            wire: wire.version(),
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
        SessionEvent::Path { place, change, .. } => match change {
            PathChange::Down(silent) => GatewayEvent::PathDown {
                path: *place,
                silent_seconds: silent.as_secs_f64(),
                why,
            },
            // The peer is heard there.
            PathChange::Unproved(_) => GatewayEvent::PathDown {
                path: *place,
                silent_seconds: 0.0,
                why,
            },
            PathChange::Found => GatewayEvent::PathUp {
                path: *place,
                outage_seconds: 0.0,
                why,
            },
            PathChange::Up(outage) => GatewayEvent::PathUp {
                path: *place,
                outage_seconds: outage.as_secs_f64(),
                why,
            },
        },
        SessionEvent::Moved { .. } => GatewayEvent::PeerMoved { why },
        SessionEvent::MtuChanged { sizes, .. } => GatewayEvent::PathMtu {
            packet_bytes: sizes.packet.0,
            why,
        },
        SessionEvent::CarrierChosen { is_unchecked, .. } => GatewayEvent::Carrier {
            carrier: carrier_name(*is_unchecked),
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
        | SessionEvent::Introduced { .. }
        | SessionEvent::NotIntroduced { .. }
        | SessionEvent::Reached { .. }
        | SessionEvent::ParityChanged { .. }
        | SessionEvent::TooNarrow { .. }
        | SessionEvent::ReportDue(_)
        | SessionEvent::Reported { .. }
        | SessionEvent::Inner(_) => return None,
    })
}

impl GatewayTrace {
    /// Takes the notes of the connections.
    pub(super) fn take_notes(&mut self, now: Instant, config: &GatewayConfig, link: &mut Link) {
        self.take_waiting(config, link);
        // Notes that waited are from earlier.
        self.take_rates(now, config, link);
    }

    fn take_waiting(&self, config: &GatewayConfig, link: &mut Link) {
        let endpoint = link.inner_mut().endpoint_mut();
        while let Some(note) = endpoint.take_note() {
            let class = config.class_name(note.class);
            let peer = usize::try_from(note.path.0).unwrap_or(usize::MAX);
            let place = EventPlace {
                peer: Some(config.peer_name(peer)),
                class: Some(&class),
                flow: note.label,
                connection: Some(note.connection.0),
                ..EventPlace::default()
            };
            self.events.record(note.at, place, note.record);
        }
        let missed = endpoint.take_missed_notes();
        if missed > 0 {
            self.events.note_missed(missed);
        }
    }

    fn take_rates(&mut self, now: Instant, config: &GatewayConfig, link: &Link) {
        if now < self.rates_at {
            return;
        }
        self.rates_at = now + RATES_EVERY;
        let endpoint = link.inner().endpoint();
        for (index, peer) in config.peers.iter().enumerate() {
            let known = index_of(index);
            let further = link.path_statuses(known).into_iter().skip(1);
            let further = further.map(|path| (Some(path.place), path.inner));
            let place = EventPlace {
                peer: Some(&peer.name),
                ..EventPlace::default()
            };
            for (path, inside) in core::iter::once((None, known.inner_path())).chain(further) {
                let Some(rate) = endpoint.path_rate(inside) else {
                    continue;
                };
                let rate = RateReport::of(rate, peer.rate);
                let key =
                    path.map_or_else(|| peer.name.clone(), |path| format!("{} {path}", peer.name));
                for (what, why) in self.rates.changes(now, &key, &rate) {
                    self.events
                        .gateway(now, place, &rate_event(what, &why, (&rate, path)));
                }
            }
        }
    }

    /// Whether it is time to write the losses by cause.
    pub(super) fn wants_losses(&self, now: Instant) -> bool {
        now >= self.losses_at
    }

    /// Writes the losses by cause for which they have changed: those of each peer, and of each path where there are several.
    pub(super) fn losses(
        &mut self,
        now: Instant,
        config: &GatewayConfig,
        of: impl Fn(usize) -> Vec<(Option<u8>, LossFigures)>,
    ) {
        self.losses_at = now + LOSSES_EVERY;
        let all = (0..config.peers.len()).flat_map(|index| {
            let of = of(index).into_iter();
            of.map(move |(path, figures)| (index, path, figures))
        });
        for (index, path, figures) in all {
            if self.losses.get(&(index, path)) == Some(&figures) {
                continue;
            }
            let causes = figures.causes.iter().map(|(cause, figures)| TracedCause {
                cause,
                ratio: figures.ratio,
                low_ratio: figures.low_ratio,
                high_ratio: figures.high_ratio,
            });
            let event = GatewayEvent::LossCauses {
                path,
                sent_packets: figures.sent_packets,
                lost_packets: figures.lost_packets,
                mended_packets: figures.mended_packets,
                causes: &causes.collect::<Vec<_>>(),
            };
            let place = EventPlace {
                peer: Some(config.peer_name(index)),
                ..EventPlace::default()
            };
            self.events.gateway(now, place, &event);
            self.losses.insert((index, path), figures);
        }
    }

    /// Writes an event of the session, with the reason `why`.
    pub(super) fn session<E>(
        &self,
        now: Instant,
        config: &GatewayConfig,
        peer: Option<PeerIndex>,
        (event, why): (&SessionEvent<E>, &str),
    ) {
        if let Some(event) = session_event(event, why) {
            let peer = peer.map(|peer| usize::try_from(peer.0).unwrap_or(usize::MAX));
            let place = EventPlace {
                peer: peer.map(|peer| config.peer_name(peer)),
                ..EventPlace::default()
            };
            self.events.gateway(now, place, &event);
        }
    }

    /// Writes a change of the tunnel in a place.
    pub(super) fn tunnel(
        &self,
        now: Instant,
        config: &GatewayConfig,
        (place, change): (usize, &TunnelChange),
    ) {
        let Some(settings) = config.tunnels.get(place) else {
            return;
        };
        let name = settings.name.to_string();
        let (tunnel, device) = (name.as_str(), settings.device.as_str());
        let why = change.why();
        let why = why.as_str();
        let event = match change {
            TunnelChange::Up { .. } => GatewayEvent::TunnelUp {
                tunnel,
                device,
                why,
            },
            TunnelChange::NetworksDiffer { .. } => GatewayEvent::TunnelNetworksDiffer {
                tunnel,
                device,
                why,
            },
            TunnelChange::MissingThere => GatewayEvent::TunnelMissingThere { tunnel, device },
            TunnelChange::DeviceLost(_) => GatewayEvent::TunnelDeviceLost {
                tunnel,
                device,
                why,
            },
        };
        let place = EventPlace {
            peer: Some(config.peer_name(settings.peer)),
            ..EventPlace::default()
        };
        self.events.gateway(now, place, &event);
    }

    /// Writes news of a flow.
    pub(super) fn news(&self, config: &GatewayConfig, news: &News) {
        let class = news.about.map(|about| config.class_name(about.class.0));
        let place = EventPlace {
            peer: news.peer.map(|peer| config.peer_name(peer)),
            class: class.as_deref(),
            flow: news.about.and_then(|about| about.number),
            ..EventPlace::default()
        };
        let write = |event: &GatewayEvent<'_>| self.events.gateway(news.at, place, event);
        match &news.what {
            Happened::Opened {
                id,
                protocol,
                direction,
                destination,
            } => write(&GatewayEvent::FlowOpened {
                id: &id.to_string(),
                protocol,
                direction,
                destination: &destination.to_string(),
            }),
            Happened::NotOpened {
                destination,
                reason,
            } => write(&GatewayEvent::FlowNotOpened {
                destination: &destination.to_string(),
                reason,
            }),
            Happened::Refused {
                destination,
                reason,
            } => write(&GatewayEvent::ExitRefused {
                destination: &destination.to_string(),
                reason,
            }),
            Happened::Resumed { position_bytes } => write(&GatewayEvent::FlowResumed {
                position_bytes: *position_bytes,
            }),
            Happened::Ended {
                reason,
                moved: (from_client_bytes, to_client_bytes),
                lasted,
            } => write(&GatewayEvent::FlowEnded {
                reason,
                from_client_bytes: *from_client_bytes,
                to_client_bytes: *to_client_bytes,
                seconds: lasted.as_secs_f64(),
            }),
        }
    }
}
