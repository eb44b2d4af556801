//! The rate towards a peer, told or found.

use fulmar_proto::rate::RateCause;
use fulmar_proto::transport::aerotp::{PathRate, RateReason, RateSource};
use fulmar_proto::units::Bitrate;
use serde::Serialize;

/// The multiple of the configured rate that a link must show to carry before that is said.
const MUCH_MORE: f64 = 1.25;

/// The rate that is kept towards one peer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateReport {
    /// The rate in use.
    pub current_bits_per_second: u64,
    /// The reason for it: `declared`, `marks`, `link`, `draining`; where it is found `searching`, `queue`, `cut`, `free`,
    /// `bound`, `shared`.
    pub reason: &'static str,
    /// That in words.
    pub why: &'static str,
    /// Whose the link is: `own`, `fair`, `background`.
    pub share: &'static str,
    /// The rate that the link was found to carry, where that is less than configured, or where it is found.
    pub link_bits_per_second: Option<u64>,
    /// The rate that arrived lately, as the peer reports.
    pub delivered_bits_per_second: Option<u64>,
    /// Whether the link has carried less than 0.8 of what is configured for seconds.
    pub declared_wrong: bool,
    /// The rate that the link seems to carry, where the configured one limits and is much less.
    pub declared_low_beside: Option<u64>,
    /// Whether the rate found is a small part of what the link showed, and neither a queue nor a loss says that it is full.
    pub doubted: bool,
    /// Where the rate is found: the link's rate by the spacing in which the first packets arrived.
    pub seen_bits_per_second: Option<u64>,
    /// Where the rate is found: `own` or `shared`, as the bottleneck is believed to be.
    pub bottleneck: Option<&'static str>,
    /// Where the rate is found: the delay in queues.
    pub queue_seconds: Option<f64>,
    /// Where the rate is found: the share that is lost whatever the rate.
    pub random_loss_ratio: Option<f64>,
}

/// The word for a bottleneck with others in its queue.
const SHARED: &str = "shared";

/// The name of a reason in reports, and the reason in words.
const fn named(reason: RateReason) -> (&'static str, &'static str) {
    match reason {
        RateReason::Declared => ("declared", "nothing speaks against the configured rate"),
        RateReason::Marks => ("marks", "congestion marks came back"),
        RateReason::Link => ("link", "the link was found to carry less than configured"),
        RateReason::Draining => ("draining", "a standing queue on the way is being emptied"),
        RateReason::Found(cause) => (cause.name(), why(cause)),
    }
}

/// The reason why a found rate is not more.
const fn why(cause: RateCause) -> &'static str {
    match cause {
        RateCause::Searching => "the link's rate is being searched for",
        RateCause::Queue => "more than the link carries makes a queue grow",
        RateCause::Cut => {
            "more is lost, and no queue shows: a policer, or a queue of a few packets"
        }
        RateCause::Free => "more arrives, or there was no more to send",
        RateCause::Bound => "the configured rate allows no more",
        RateCause::Shared => "others keep the queue full, and this is our share",
    }
}

impl RateReport {
    /// The report on `rate`, which is known by `source`.
    pub(in crate::gateway) fn of(rate: PathRate, source: RateSource) -> Self {
        let (reason, why) = named(rate.reason);
        let belief = rate.belief;
        let is_bound = |cause| cause == RateCause::Bound;
        let shown = belief.filter(|belief| is_bound(belief.cause));
        let shown = shown.and_then(|belief| belief.link);
        let is_more = |link: &Bitrate| *link > rate.declared.scaled(MUCH_MORE);
        Self {
            current_bits_per_second: rate.current.as_bits_per_second(),
            reason,
            why,
            share: source.sharing_name(),
            link_bits_per_second: rate.link.map(Bitrate::as_bits_per_second),
            delivered_bits_per_second: rate.delivered.map(Bitrate::as_bits_per_second),
            declared_wrong: rate.declared_wrong,
            declared_low_beside: shown.filter(is_more).map(Bitrate::as_bits_per_second),
            doubted: belief.is_some_and(|belief| belief.doubted),
            seen_bits_per_second: belief
                .and_then(|belief| belief.link)
                .map(Bitrate::as_bits_per_second),
            bottleneck: belief.map(|belief| if belief.beside_others { SHARED } else { "own" }),
            queue_seconds: belief.map(|belief| belief.queueing.as_secs_f64()),
            random_loss_ratio: belief
                // Before anything was told of, nothing is known to be lost, and nothing not to be.
                .filter(|belief| belief.cause != RateCause::Searching || belief.lost > 0.0)
                .map(|belief| belief.lost.clamp(0.0, 1.0)),
        }
    }

    /// The rate that is kept: the one found, if it may be tried first by the next start: that of a search which goes on or is doubted may not.
    pub(in crate::gateway) fn kept_rate(&self) -> Option<u64> {
        let is_known = self.is_found() && self.reason != "searching" && !self.doubted;
        self.link_bits_per_second.filter(|_| is_known)
    }

    /// Whether others are believed to be in the queue ahead.
    pub(in crate::gateway) fn is_shared(&self) -> bool {
        self.bottleneck == Some(SHARED)
    }

    /// Whether the rate is found.
    pub(in crate::gateway) const fn is_found(&self) -> bool {
        self.bottleneck.is_some()
    }
}

#[cfg(test)]
pub(in crate::gateway) mod tests {
    use super::*;
    use fulmar_proto::rate::{RateBelief, RateSharing};
    use fulmar_proto::units::Duration;

    const MBIT: u64 = 1_000_000;

    /// A report on a rate that was told.
    pub(in crate::gateway) fn told(reason: &'static str, declared_wrong: bool) -> RateReport {
        RateReport {
            current_bits_per_second: 4 * MBIT,
            reason,
            why: "of the test",
            share: "own",
            link_bits_per_second: None,
            delivered_bits_per_second: None,
            declared_wrong,
            declared_low_beside: None,
            doubted: false,
            seen_bits_per_second: None,
            bottleneck: None,
            queue_seconds: None,
            random_loss_ratio: None,
        }
    }

    /// A report on a rate that was found below a bound of 10 Mbit/s.
    pub(in crate::gateway) fn found(cause: RateCause, mbit: u64, link: u64) -> RateReport {
        let rate = Bitrate::from_bits_per_second(mbit * MBIT);
        let belief = RateBelief {
            rate,
            cause,
            queueing: Duration::from_millis(2),
            lost: 0.25,
            link: Some(Bitrate::from_bits_per_second(link * MBIT)),
            beside_others: cause == RateCause::Shared,
            doubted: false,
        };
        let declared = Bitrate::from_bits_per_second(10 * MBIT);
        let rate = PathRate {
            declared,
            marked: declared,
            link: Some(rate),
            delivered: None,
            current: rate,
            reason: RateReason::Found(cause),
            queues_tried: 0,
            declared_wrong: false,
            belief: Some(belief),
        };
        RateReport::of(
            rate,
            RateSource::of(Some(declared), Some(RateSharing::Fair)),
        )
    }

    #[test]
    fn a_rate_that_is_doubted_or_searched_for_is_not_kept() {
        let rate = found(RateCause::Free, 1, 10);
        assert_eq!(rate.kept_rate(), Some(MBIT));
        let doubted = RateReport {
            doubted: true,
            ..rate
        };
        assert_eq!(doubted.kept_rate(), None);
        assert_eq!(found(RateCause::Searching, 1, 10).kept_rate(), None);
        assert_eq!(told("link", false).kept_rate(), None);
    }

    #[test]
    fn what_is_believed_of_a_path_is_reported_with_its_reason() {
        let report = found(RateCause::Shared, 4, 20);
        assert_eq!((report.reason, report.share), ("shared", "fair"));
        assert_eq!(report.bottleneck, Some("shared"));
        assert_eq!(report.random_loss_ratio, Some(0.25));
        assert_eq!(report.queue_seconds, Some(0.002));
        assert_eq!(report.declared_low_beside, None, "the bound does not limit");
        let bound = found(RateCause::Bound, 10, 20);
        assert_eq!(bound.declared_low_beside, Some(20 * MBIT));
        assert_eq!(found(RateCause::Bound, 10, 12).declared_low_beside, None);
    }
}
