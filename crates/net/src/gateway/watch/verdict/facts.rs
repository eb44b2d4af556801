//! The figures that verdicts are made from.

use super::super::status::{PathFigures, PeerReport, REMOVED, RateReport, Status};
use super::super::tally::{Loss, PeerWindow, Window};
use crate::gateway::peers::Decision;
use crate::session::COMPLAINT_PAUSE;

/// The datagrams of a window from which on a share of losses is told: fewer say little.
const LEAST_DATAGRAMS: u64 = 20;
/// The part of the rate in use that is sent on the wire by a link that has as much to send as it may.
const BUSY: f64 = 0.85;
/// The part of what is confirmed up to which what is not confirmed does not matter.
const LITTLE: f64 = 0.05;
/// Octets of the headers of IPv4 and UDP, which nobody can save.
const HEADERS_BYTES: f64 = 28.0;
/// The largest packet, where it is not known.
const USUAL_PACKET_BYTES: f64 = 1_500.0;
/// The rate below which a link is idle: connections that are open say a word now and then.
pub(super) const IDLE_BITS_PER_SECOND: f64 = 2_000.0;
/// The time for which a refused handshake is news: until it is told again, if the caller goes on, which calls once a second.
const REFUSED_LATELY_SECONDS: f64 = COMPLAINT_PAUSE.as_secs_f64() + 5.0;
/// The decision on a handshake that was refused here.
const REFUSED_HERE: &str = "handshake_refused";
/// The decision on a handshake of ours that the peer refused.
const REFUSED_THERE: &str = "refused_by_peer";
/// The decision on a handshake of ends whose settings do not go together.
const DISAGREED: &str = "peer_mismatch";

/// The figures of one link.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkFacts<'a> {
    pub(super) peer: &'a PeerReport,
    /// The last seconds.
    pub(super) window: Option<&'a PeerWindow>,
    /// The reason for which a handshake with the peer was refused lately, at either end.
    pub(super) refusal: Option<&'a str>,
    /// Whether a caller was refused lately of whom neither key nor address tells which peer it is, if any.
    pub(super) stranger_called: bool,
}

/// The figures of the whole gateway.
#[derive(Clone, Copy, Debug)]
pub(super) struct GatewayFacts<'a> {
    pub(super) status: &'a Status,
    /// The last seconds.
    pub(super) window: Option<&'a Window>,
    /// The reason for which a caller was refused lately of whom neither key nor address tells which peer it is, if any.
    pub(super) stranger: Option<&'a str>,
}

/// The reason for the last handshake with a peer, or with nobody that is known, that was refused lately.
pub(super) fn refusal<'a>(status: &'a Status, peer: Option<&str>) -> Option<&'a str> {
    let since = status.uptime_seconds - REFUSED_LATELY_SECONDS;
    let refused = |decision: &&Decision| {
        [REFUSED_HERE, REFUSED_THERE, DISAGREED].contains(&decision.what)
            && decision.uptime_seconds >= since
    };
    let mut lately = status.decisions.iter().rev().filter(refused);
    let found = lately.find(|decision| decision.peer.as_deref() == peer);
    found.map(|decision| decision.why.as_str())
}

fn known(loss: Loss) -> Option<f64> {
    loss.share.filter(|_| loss.sent >= LEAST_DATAGRAMS)
}

impl LinkFacts<'_> {
    pub(super) fn is_removed(&self) -> bool {
        self.peer.link == REMOVED
    }

    pub(super) fn is_up(&self) -> bool {
        self.peer.link == "up"
    }

    pub(super) fn is_down(&self) -> bool {
        self.peer.link == "down"
    }

    /// The share of datagrams from here that is lost, if enough were sent to tell.
    pub(super) fn lost_there(&self) -> Option<f64> {
        self.window.and_then(|window| known(window.outward))
    }

    /// The share of datagrams from the peer that is lost, if enough were sent to tell.
    pub(super) fn lost_here(&self) -> Option<f64> {
        self.window.and_then(|window| known(window.inward))
    }

    /// Payload to the peer that it confirmed, in bits a second.
    pub(super) fn delivered(&self) -> f64 {
        self.window.map_or(0.0, |window| window.confirmed_rate)
    }

    /// Payload from the peer, in bits a second.
    pub(super) fn received(&self) -> f64 {
        self.window.map_or(0.0, |window| window.payload_rate)
    }

    pub(super) fn is_idle(&self) -> bool {
        let wire = self.window.map_or(0.0, |window| window.wire_rate);
        wire.max(self.received()) < IDLE_BITS_PER_SECOND
    }

    /// The paths that carry data: of those that are up, the ones that cost least.
    fn carrying(&self) -> impl Iterator<Item = &PathFigures> {
        let up = self.peer.paths.iter().filter(|path| path.state == "up");
        let least = up.clone().map(|path| path.cost).min();
        up.filter(move |path| Some(path.cost) == least)
    }

    /// The rate that is sent on the wire while there is enough to send.
    fn rate_in_use(&self) -> Option<f64> {
        self.sum_over_paths(|rate| {
            let found = rate.link_bits_per_second.filter(|_| rate.is_found());
            found.unwrap_or(rate.current_bits_per_second)
        })
    }

    /// The rate that the link carries, before losses: as configured unless it has carried less for seconds; of a link that
    /// others share, and of one whose rate is doubted, as its packets showed it.
    fn link_rate(&self) -> Option<f64> {
        // Of several paths each has a rate of its own.
        let is_alone = self.peer.paths.is_empty();
        let configured = self.peer.rate_bits_per_second.filter(|_| is_alone);
        self.sum_over_paths(|rate| {
            let found = rate.link_bits_per_second;
            let carries = if rate.is_found() || rate.declared_wrong {
                found
            } else {
                configured
            };
            let carries = carries.unwrap_or(rate.current_bits_per_second);
            let seen = rate.seen_bits_per_second;
            let seen = seen.filter(|_| rate.is_shared() || rate.doubted);
            carries.max(seen.unwrap_or_default())
        })
    }

    fn sum_over_paths(&self, of: impl Fn(&RateReport) -> u64) -> Option<f64> {
        let of_paths: Vec<u64> = (self.carrying().filter_map(|path| path.rate.as_ref()))
            .map(&of)
            .collect();
        let sum = if of_paths.is_empty() {
            of(self.peer.rate.as_ref()?)
        } else {
            of_paths.iter().sum()
        };
        (sum > 0).then_some(sum as f64)
    }

    /// The payload that such a link allows, in bits a second: what is left of its rate after losses, behind headers of IP
    /// and UDP, if every loss is repaired by one packet.
    pub(super) fn allowed(&self) -> Option<f64> {
        let packet = match self.peer.path_mtu_bytes {
            0 => USUAL_PACKET_BYTES,
            octets => octets as f64,
        };
        let payload = (packet - HEADERS_BYTES).max(1.0) / packet;
        let arrives = 1.0 - self.lost_there().unwrap_or(0.0);
        Some(self.link_rate()? * arrives * payload).filter(|allowed| *allowed >= 1.0)
    }

    /// Whether as much is sent as the rate allows.
    pub(super) fn is_busy(&self) -> bool {
        let wire = self.window.map_or(0.0, |window| window.wire_rate);
        self.rate_in_use().is_some_and(|rate| wire >= BUSY * rate)
    }

    /// The report on a rate that is doubted, if as much is sent as it allows just now.
    pub(super) fn doubted_rate(&self) -> Option<&RateReport> {
        let of_paths = self.carrying().filter_map(|path| path.rate.as_ref());
        let doubted = of_paths.chain(self.rate()).find(|rate| rate.doubted)?;
        // A search that has just ended sends less than it found for a moment.
        let allowed = self.sum_over_paths(|rate| {
            let found = rate.link_bits_per_second.unwrap_or(u64::MAX);
            found.min(rate.current_bits_per_second)
        })?;
        let wire = self.window.map_or(0.0, |window| window.wire_rate);
        (wire >= BUSY * allowed).then_some(doubted)
    }

    /// Payload to the peer of which nobody knows whether it arrived, in bits a second.
    pub(super) fn unconfirmed(&self) -> f64 {
        self.window.map_or(0.0, |window| window.unconfirmed_rate)
    }

    /// Whether enough was sent in this direction to speak of shares.
    pub(super) const fn is_enough(loss: Loss) -> bool {
        loss.sent >= LEAST_DATAGRAMS
    }

    /// The share that is delivered of what the link allows, of a link with enough to send and with little that is not
    /// confirmed.
    pub(super) fn efficiency(&self) -> Option<f64> {
        let is_known = self.unconfirmed() <= LITTLE * self.delivered();
        let allowed = self.allowed().filter(|_| self.is_busy() && is_known)?;
        Some((self.delivered() / allowed).min(1.0))
    }

    pub(super) fn rate(&self) -> Option<&RateReport> {
        self.peer.rate.as_ref()
    }
}
