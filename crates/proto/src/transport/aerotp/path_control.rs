//! The rate of a path: told by the layer below and followed down to the link's, or found.

mod found;
mod heard;

use super::connection::RateSign;
use super::event::{PathRate, RateReason};
use super::rate_source::RateSource;
use crate::rate::RateConfig;
use crate::transport::parts::{LinkFollower, LinkReport, RateControl};
use crate::units::{Bitrate, ByteCount, Duration, Instant};
pub(super) use found::FoundPath;
pub(super) use heard::{Counts, Heard};

/// The owner of a path's rate.
#[derive(Debug)]
pub(super) enum PathControl {
    Told(Box<ToldPath>),
    Found(Box<FoundPath>),
}

impl PathControl {
    pub(super) fn new(source: RateSource, packet: ByteCount) -> Self {
        match source {
            RateSource::Told(rate) => Self::Told(Box::new(ToldPath::new(rate))),
            RateSource::Found {
                bound,
                first,
                sharing,
            } => Self::Found(Box::new(FoundPath::new(RateConfig {
                bound,
                packet,
                sharing,
                first,
            }))),
        }
    }

    pub(super) const fn is_found(&self) -> bool {
        matches!(self, Self::Found(_))
    }

    /// Whether the rate is found by what the peer tells of numbered datagrams.
    pub(super) const fn is_numbered(&self) -> bool {
        match self {
            Self::Told(_) => false,
            Self::Found(found) => found.is_numbered(),
        }
    }

    /// The rate at which datagrams may leave.
    pub(super) fn pace(&mut self, now: Instant) -> Bitrate {
        match self {
            Self::Told(told) => told.pace(now),
            Self::Found(found) => found.pace(now),
        }
    }

    /// Takes the signs of an answer. Returns whether the told rate turned out to be wrong just now.
    pub(super) fn on_sign(&mut self, now: Instant, sign: RateSign, rtt: Option<Duration>) -> bool {
        match self {
            Self::Told(told) => told.on_sign(now, sign, rtt),
            Self::Found(found) => {
                if let Some(report) = &sign.report {
                    found.on_report(now, report);
                }
                false
            }
        }
    }

    /// Takes the report of the layer below.
    pub(super) fn on_link_report(
        &mut self,
        now: Instant,
        report: LinkReport,
        rtt: Option<Duration>,
    ) {
        match self {
            Self::Told(told) => told.on_link_report(now, report, rtt),
            Self::Found(found) => {
                if report.available.is_some() {
                    found.set_bound(report.available);
                }
            }
        }
    }

    /// The parts of the rate.
    pub(super) fn path_rate(&self, now: Instant) -> PathRate {
        match self {
            Self::Told(told) => told.path_rate(now),
            Self::Found(found) => found.path_rate(now),
        }
    }
}

/// A rate that the layer below tells. Marks lower it, and so does a link that carries less; loss never does.
#[derive(Debug)]
pub(super) struct ToldPath {
    rate: RateControl,
    pub(super) link: LinkFollower,
    /// Whether it is counted already that the declared rate is wrong.
    declared_wrong: bool,
}

impl ToldPath {
    fn new(rate: Bitrate) -> Self {
        Self {
            rate: RateControl::new(rate),
            link: LinkFollower::default(),
            declared_wrong: false,
        }
    }

    /// The rate that the layer below, marks and the link's own behaviour allow.
    pub(super) fn pace(&self, now: Instant) -> Bitrate {
        self.link.rate(now, self.rate.rate())
    }

    fn on_sign(&mut self, now: Instant, sign: RateSign, rtt: Option<Duration>) -> bool {
        match sign.marked {
            None => {}
            Some(true) => self.rate.on_mark(now, rtt),
            Some(false) => self.rate.on_clear(now, rtt),
        }
        if let Some(report) = sign.report {
            let (bound, allowed) = (self.rate.bound(), self.rate.rate());
            let rtt = rtt.unwrap_or_default();
            self.link.on_report(now, &report, bound, allowed, rtt);
        }
        let wrong = self.link.is_declared_wrong(now);
        core::mem::replace(&mut self.declared_wrong, wrong) != wrong && wrong
    }

    pub(super) fn on_link_report(
        &mut self,
        now: Instant,
        report: LinkReport,
        rtt: Option<Duration>,
    ) {
        if report
            .available
            .is_some_and(|rate| rate != self.rate.bound())
        {
            self.link.restart();
        }
        self.rate.on_link_report(now, report, rtt);
    }

    fn path_rate(&self, now: Instant) -> PathRate {
        let (declared, marked) = (self.rate.bound(), self.rate.rate());
        let current = self.link.rate(now, marked);
        let reason = if self.link.is_draining() && current < marked {
            RateReason::Draining
        } else if current < marked {
            RateReason::Link
        } else if marked < declared {
            RateReason::Marks
        } else {
            RateReason::Declared
        };
        PathRate {
            declared,
            marked,
            link: self.link.cap(),
            delivered: self.link.delivered(),
            current,
            reason,
            queues_tried: self.link.trials(),
            declared_wrong: self.link.is_declared_wrong(now),
            belief: None,
        }
    }
}
