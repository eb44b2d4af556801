//! The outages of each peer's link: their number, their lengths, and the beginning of the present one.

use crate::session::{PeerIndex, SessionEvent};
use fulmar_proto::units::{Duration, Instant};
use serde::Serialize;
use std::collections::BTreeMap;

/// The outages of one peer's link that are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct OutageReport {
    /// Their number, the present one included.
    pub count: u64,
    /// The seconds that those that are over lasted.
    pub seconds: f64,
    /// The longest of them.
    pub longest_seconds: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct OfPeer {
    count: u64,
    total: Duration,
    longest: Duration,
    present: Option<Present>,
}

#[derive(Clone, Copy, Debug)]
struct Present {
    /// The time at which sending was held.
    since: Instant,
    /// The time since anything had come back, by then.
    silent_for: Duration,
}

/// Counts of each peer that ever had one: bounded by the number of peers.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Outages(BTreeMap<PeerIndex, OfPeer>);

impl Outages {
    pub(super) fn on_event<E>(&mut self, now: Instant, event: &SessionEvent<E>) {
        match event {
            SessionEvent::LinkDown { peer, silent_for } => {
                let of = self.0.entry(*peer).or_default();
                if of.present.is_none() {
                    of.present = Some(Present {
                        since: now,
                        silent_for: *silent_for,
                    });
                    of.count += 1;
                }
            }
            SessionEvent::LinkUp { peer, outage } => self.over(*peer, |_| *outage),
            // New keys end an outage too.
            SessionEvent::Up { peer, .. } => self.over(*peer, |since| now.saturating_since(since)),
            _ => {}
        }
    }

    fn over(&mut self, peer: PeerIndex, length: impl FnOnce(Instant) -> Duration) {
        if let Some(of) = self.0.get_mut(&peer)
            && let Some(present) = of.present.take()
        {
            let length = length(present.since);
            of.total += length;
            of.longest = of.longest.max(length);
        }
    }

    pub(in crate::gateway) fn report(&self, peer: PeerIndex) -> OutageReport {
        let of = self.0.get(&peer).copied().unwrap_or_default();
        OutageReport {
            count: of.count,
            seconds: of.total.as_secs_f64(),
            longest_seconds: of.longest.as_secs_f64(),
        }
    }

    /// The length of the present outage: the time since anything came back; `None` without one.
    pub(in crate::gateway) fn lasts(&self, now: Instant, peer: PeerIndex) -> Option<Duration> {
        let present = self.0.get(&peer)?.present?;
        Some(now.saturating_since(present.since) + present.silent_for)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Wire;

    const PEER: PeerIndex = PeerIndex(0);

    fn at(seconds: u64) -> Instant {
        Instant::START + Duration::from_secs(seconds)
    }

    fn down() -> SessionEvent<()> {
        SessionEvent::LinkDown {
            peer: PEER,
            silent_for: Duration::from_secs(1),
        }
    }

    fn up(outage: u64) -> SessionEvent<()> {
        SessionEvent::LinkUp {
            peer: PEER,
            outage: Duration::from_secs(outage),
        }
    }

    fn keys() -> SessionEvent<()> {
        SessionEvent::Up {
            peer: PEER,
            capabilities: Vec::new(),
            resumed: true,
            wire: Wire::One,
        }
    }

    #[test]
    fn each_outage_counts_once_with_its_length_however_it_ends() {
        let mut outages = Outages::default();
        outages.on_event(at(10), &down());
        assert_eq!(outages.lasts(at(12), PEER), Some(Duration::from_secs(3)));
        outages.on_event(at(13), &up(3));
        outages.on_event(at(20), &down());
        // By a handshake, after which the session tells of the end as well.
        outages.on_event(at(25), &keys());
        outages.on_event(at(25), &up(5));
        outages.on_event(at(26), &keys());
        let report = outages.report(PEER);
        assert_eq!(report.count, 2);
        assert!((report.seconds - 8.0).abs() < 1e-9, "{report:?}");
        assert!((report.longest_seconds - 5.0).abs() < 1e-9, "{report:?}");
        assert_eq!(outages.lasts(at(30), PEER), None);
        assert_eq!(outages.report(PeerIndex(1)), OutageReport::default());
    }
}
