//! The rate of a path: told by the layer below and followed down to the link's, or found.

mod found;
mod heard;
mod told;

use super::connection::RateSign;
use super::event::PathRate;
use super::rate_source::RateSource;
use crate::rate::RateConfig;
use crate::told::ToldFacts;
use crate::transport::parts::LinkReport;
use crate::units::{Bitrate, ByteCount, Duration, Instant};
pub(super) use found::FoundPath;
pub(super) use heard::{Counts, Heard};
pub(super) use told::ToldPath;

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

    /// Whether marks on what leaves here are heard of.
    pub(super) const fn hears_marks(&self) -> bool {
        match self {
            // Acknowledgements echo them.
            Self::Told(_) => true,
            // Path acks count them; the reports in acknowledgements do not.
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

    /// Takes the rates that the link tells, and the time that a datagram would wait in its queue.
    pub(super) fn take_told(&mut self, now: Instant, facts: &ToldFacts, rtt: Option<Duration>) {
        match self {
            Self::Told(told) => {
                let most = [facts.rate, facts.ceiling].into_iter().flatten().min();
                told.take_told(now, most, rtt);
                let report = LinkReport {
                    queue: facts.queue,
                    ..LinkReport::default()
                };
                told.on_link_report(now, report, rtt);
            }
            // It sees queues itself.
            Self::Found(found) => found.take_told(now, facts.rate, facts.ceiling),
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
