//! A path whose rate is told.

use super::super::connection::RateSign;
use super::super::event::{PathRate, RateReason};
use crate::machine::PathAck;
use crate::transport::parts::{DeliveryReport, LinkFollower, LinkReport, RateControl};
use crate::units::{Bitrate, ByteCount, Duration, Instant};
use std::collections::VecDeque;

/// The most datagrams whose times are kept: what is told of is among the latest, or says nothing of now.
const LEFT_MAX: usize = 4_096;

/// A numbered datagram that left.
#[derive(Clone, Copy, Debug)]
struct Left {
    number: u64,
    at: Instant,
}

/// A rate that the layer below tells. Marks lower it, and so does a link that carries less; loss never does.
#[derive(Debug)]
pub(in super::super) struct ToldPath {
    /// The rate of the settings, and the one that the link tells.
    set: Bitrate,
    told: Option<Bitrate>,
    rate: RateControl,
    link: LinkFollower,
    /// Whether a session numbers the datagrams, and the peer tells of them: it may have been asked to while the rate was
    /// found.
    is_numbered: bool,
    /// The datagrams that left and were not told of yet.
    left: VecDeque<Left>,
    /// Whether it is counted already that the declared rate is wrong.
    declared_wrong: bool,
}

impl ToldPath {
    pub(super) fn new(rate: Bitrate) -> Self {
        Self {
            set: rate,
            told: None,
            rate: RateControl::new(rate),
            link: LinkFollower::default(),
            is_numbered: false,
            left: VecDeque::new(),
            declared_wrong: false,
        }
    }

    /// Sets whether the peer tells of numbered datagrams. What it counts then is not what it counted before.
    pub(in super::super) fn set_numbered(&mut self, is_numbered: bool) {
        if self.is_numbered != is_numbered {
            self.is_numbered = is_numbered;
            self.left.clear();
            self.link.forget_window();
        }
    }

    /// Counts a datagram that left, headers of the layers below included, where nobody numbers it.
    pub(in super::super) fn on_sent(&mut self, now: Instant, octets: ByteCount) {
        if !self.is_numbered {
            self.link.on_sent(now, octets);
        }
    }

    /// Counts a datagram that leaves on a numbered path.
    pub(in super::super) fn on_sealed(&mut self, now: Instant, number: u64, octets: ByteCount) {
        if self.is_numbered {
            if self.left.len() == LEFT_MAX {
                self.left.pop_front();
            }
            self.left.push_back(Left { number, at: now });
            self.link.on_sent(now, octets);
        }
    }

    /// The rate that the layer below, marks and the link's own behaviour allow.
    pub(super) fn pace(&self, now: Instant) -> Bitrate {
        self.link.rate(now, self.rate.rate())
    }

    pub(super) fn on_sign(&mut self, now: Instant, sign: RateSign, rtt: Option<Duration>) -> bool {
        match sign.marked {
            None => {}
            Some(true) => self.rate.on_mark(now, rtt),
            Some(false) => self.rate.on_clear(now, rtt),
        }
        let report = sign.report.filter(|_| !self.is_numbered);
        self.take(now, report, rtt)
    }

    /// Takes what the peer tells of a numbered path. Returns whether the told rate turned out to be wrong just now.
    pub(in super::super) fn on_path_ack(
        &mut self,
        now: Instant,
        ack: &PathAck,
        rtt: Option<Duration>,
    ) -> bool {
        while self
            .left
            .front()
            .is_some_and(|left| left.number < ack.newest)
        {
            self.left.pop_front();
        }
        let named = self.left.front();
        let named = named.filter(|left| self.is_numbered && left.number == ack.newest);
        let report = named.map(|left| DeliveryReport {
            echo: left.at.as_wrapping_micros(),
            hold: ack.hold,
            arrived: ack.octets,
            clock: ack.clock,
        });
        self.take(now, report, rtt)
    }

    fn take(
        &mut self,
        now: Instant,
        report: Option<DeliveryReport>,
        rtt: Option<Duration>,
    ) -> bool {
        if let Some(report) = report {
            let (bound, allowed) = (self.rate.bound(), self.rate.rate());
            let rtt = rtt.unwrap_or_default();
            self.link.on_report(now, &report, bound, allowed, rtt);
        }
        let wrong = self.link.is_declared_wrong(now);
        core::mem::replace(&mut self.declared_wrong, wrong) != wrong && wrong
    }

    /// Takes the rate that the link tells: no more is sent from now on. `None`: it tells none any more.
    pub(in super::super) fn take_told(
        &mut self,
        now: Instant,
        told: Option<Bitrate>,
        rtt: Option<Duration>,
    ) {
        if told != self.told {
            self.told = told;
            let report = LinkReport {
                available: Some(self.set),
                ..LinkReport::default()
            };
            self.on_link_report(now, report, rtt);
        }
    }

    pub(in super::super) fn on_link_report(
        &mut self,
        now: Instant,
        mut report: LinkReport,
        rtt: Option<Duration>,
    ) {
        if let Some(available) = &mut report.available {
            self.set = *available;
            *available = self.told.map_or(self.set, |told| told.min(self.set));
        }
        let before = self.rate.bound();
        if let Some(declared) = report.available.filter(|rate| *rate != before) {
            self.link.on_declared(before, declared);
        }
        self.rate.on_link_report(now, report, rtt);
    }

    pub(super) fn path_rate(&self, now: Instant) -> PathRate {
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
