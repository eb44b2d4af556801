//! The last message of a link, its age, and the trust in it.

use super::facts::ToldFacts;
use super::news::{LinkNews, PlannedOutage};
use super::trust::{LinkEvidence, LinkTrust, Stated, ToldFault};
use crate::units::{Duration, Instant};

/// The time for which news holds where nobody says how long.
pub const VALID_FOR: Duration = Duration::from_secs(30);
/// The time between two looks at what a session sees, while something is told.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
struct Kept {
    news: LinkNews,
    at: Instant,
    /// The time from which on it is too old.
    until: Instant,
    /// The time since when `is_up` has been what it is.
    since: Instant,
}

/// A link that tells of itself.
///
/// ```
/// use fulmar_proto::told::{LinkNews, ToldLink, VALID_FOR};
/// use fulmar_proto::{Bitrate, Instant};
/// let mut link = ToldLink::default();
/// let rate_out = Some(Bitrate::from_bits_per_second(2_000_000));
/// link.take(Instant::START, LinkNews { rate_out, ..LinkNews::default() }, VALID_FOR);
/// assert_eq!(link.facts(Instant::START).rate, rate_out);
/// assert_eq!(link.facts(Instant::START + VALID_FOR).rate, None, "news ages");
/// ```
#[derive(Clone, Debug, Default)]
pub struct ToldLink {
    kept: Option<Kept>,
    trust: LinkTrust,
    looked_at: Option<Instant>,
}

impl ToldLink {
    /// Takes a message, which holds for so long; a planned outage in it holds until it is over.
    pub fn take(&mut self, now: Instant, news: LinkNews, valid_for: Duration) {
        let before = self.kept.filter(|kept| now < kept.until);
        let same = before.filter(|kept| kept.news.is_up == news.is_up);
        self.kept = Some(Kept {
            news,
            at: now,
            until: now + valid_for,
            since: same.map_or(now, |kept| kept.since),
        });
    }

    /// Forgets everything that was told: the source is gone. A fault stays.
    pub const fn forget(&mut self) {
        self.kept = None;
    }

    fn outage(&self) -> Option<PlannedOutage> {
        self.kept?.news.outage
    }

    fn stated(&self, now: Instant) -> Option<Stated> {
        let kept = self.kept?;
        if let Some(outage) = kept.news.outage.filter(|outage| outage.covers(now)) {
            let facts = ToldFacts {
                is_up: Some(false),
                ..if now < kept.until {
                    kept.news.facts()
                } else {
                    ToldFacts::default()
                }
            };
            let since = if kept.news.is_up == Some(false) {
                kept.since.min(outage.begins)
            } else {
                outage.begins
            };
            return Some(Stated { facts, since });
        }
        if now >= kept.until {
            return None;
        }
        let mut facts = kept.news.facts();
        let mut since = kept.since;
        // A link that was told to come back is back.
        let ends = kept.news.outage.map(PlannedOutage::ends);
        if let Some(ends) = ends.filter(|ends| kept.at < *ends && *ends <= now) {
            facts.is_up = Some(true);
            since = ends;
        }
        Some(Stated { facts, since })
    }

    /// The facts that hold at `now`: nothing of a link that is not believed.
    pub fn facts(&self, now: Instant) -> ToldFacts {
        if self.fault(now).is_some() {
            return ToldFacts::default();
        }
        self.stated(now)
            .map_or_else(ToldFacts::default, |stated| stated.facts)
    }

    /// The message that holds at `now`, believed or not, and its age.
    pub fn news(&self, now: Instant) -> Option<(LinkNews, Duration)> {
        let kept = self.kept.filter(|_| self.stated(now).is_some())?;
        Some((kept.news, now.saturating_since(kept.at)))
    }

    /// The fault for which the link is not believed at `now`.
    pub fn fault(&self, now: Instant) -> Option<ToldFault> {
        self.trust.fault(now)
    }

    /// The times that it was found wrong.
    pub const fn faults(&self) -> u64 {
        self.trust.count()
    }

    /// Compares what is told with what a session sees. Returns the fault if it has just been found.
    pub fn look(&mut self, now: Instant, seen: &LinkEvidence) -> Option<ToldFault> {
        self.looked_at = Some(now);
        if self.fault(now).is_some() {
            return None;
        }
        let fault = self.stated(now)?.fault(now, self.trust.since(), seen)?;
        self.trust.doubt(now, fault);
        Some(fault)
    }

    /// The next time at which facts change by themselves, or at which to [look](ToldLink::look) again. `None` while nothing is
    /// told.
    pub fn next_at(&self, now: Instant) -> Option<Instant> {
        let kept = self.kept?;
        let outage = self.outage();
        let look = self
            .stated(now)
            .filter(|_| self.fault(now).is_none())
            .map(|_| self.looked_at.map_or(now, |at| at + LOOK_EVERY));
        let changes = [
            Some(kept.until),
            outage.map(|outage| outage.begins),
            outage.map(PlannedOutage::ends),
            self.trust.until(now),
        ];
        let changes = changes.into_iter().flatten().filter(|at| *at > now);
        changes.chain(look).min()
    }
}

#[cfg(test)]
mod tests;
