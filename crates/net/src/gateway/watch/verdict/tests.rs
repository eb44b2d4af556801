//! Situations, each with the sentence that it must have.

mod gateway;
mod links;
mod rates;
mod repair;

use super::super::status::{
    CauseFigures, DamageFigures, DamagedDirection, LossFigures, PathFigures, PeerReport, REMOVED,
    RateReport, ToldLinkReport, WaitingPath,
};
use super::super::tally::{Loss, PeerWindow};
use super::*;
use crate::gateway::peers::Decision;
use crate::session::COMPLAINT_PAUSE;

const MBIT: f64 = 1e6;

/// A link of which one thing differs from a good one.
#[derive(Clone)]
struct Situation {
    peer: PeerReport,
    window: PeerWindow,
    status: Status,
}

/// A rate of 10 Mbit/s that was configured.
fn configured() -> RateReport {
    RateReport {
        current_bits_per_second: 10_000_000,
        reason: "declared",
        why: "of the test",
        share: "own",
        link_bits_per_second: None,
        delivered_bits_per_second: None,
        declared_wrong: false,
        declared_low_beside: None,
        doubted: false,
        seen_bits_per_second: None,
        bottleneck: None,
        queue_seconds: None,
        random_loss_ratio: None,
    }
}

/// A rate of 10 Mbit/s that was found.
fn found() -> RateReport {
    RateReport {
        reason: "queue",
        share: "fair",
        link_bits_per_second: Some(10_000_000),
        bottleneck: Some("own"),
        queue_seconds: Some(0.002),
        random_loss_ratio: Some(0.0),
        ..configured()
    }
}

const fn loss(share: f64) -> Loss {
    Loss {
        share: Some(share),
        rate: 100.0 * share,
        sent: 1_000,
    }
}

/// A busy link of 10 Mbit/s without losses that delivers 98 % of what it allows.
fn busy() -> Situation {
    Situation {
        peer: PeerReport {
            name: "ground".to_owned(),
            link: "up".to_owned(),
            secure: true,
            carrier: "udp".to_owned(),
            path_mtu_bytes: 1_500,
            rate_bits_per_second: Some(10_000_000),
            rate: Some(configured()),
            ..PeerReport::default()
        },
        window: PeerWindow {
            wire_rate: 9.9 * MBIT,
            confirmed_rate: 9.62 * MBIT,
            outward: loss(0.0),
            inward: loss(0.0),
            repair_share: Some(0.0),
            residual_share: Some(0.0),
            far_residual_share: Some(0.0),
            is_up: true,
            ..PeerWindow::default()
        },
        status: Status {
            uptime_seconds: 100.0,
            ..Status::default()
        },
    }
}

/// The same with a fifth lost in both directions.
fn lossy() -> Situation {
    let mut situation = busy();
    situation.window.outward = loss(0.201);
    situation.window.inward = loss(0.198);
    situation.window.confirmed_rate = 7.55 * MBIT;
    situation.window.repair_share = Some(0.2);
    situation.peer.losses = Some(causes(&[("random", 0.95), ("burst", 0.05)]));
    situation
}

fn causes(shares: &[(&'static str, f64)]) -> LossFigures {
    let causes = shares.iter().map(|&(cause, ratio)| {
        let figures = CauseFigures {
            ratio,
            low_ratio: ratio - 0.01,
            high_ratio: ratio + 0.01,
        };
        (cause, figures)
    });
    LossFigures {
        sent_packets: 5_000,
        lost_packets: 1_000,
        mended_packets: 0,
        causes: causes.collect(),
    }
}

fn path(path: u8, state: &'static str, mbit: u64) -> PathFigures {
    let rate = RateReport {
        current_bits_per_second: mbit * 1_000_000,
        ..configured()
    };
    PathFigures {
        path,
        state,
        rate: Some(rate),
        ..PathFigures::default()
    }
}

fn decided(what: &'static str, why: &str, at: f64) -> Decision {
    Decision {
        number: 0,
        uptime_seconds: at,
        peer: Some("ground".to_owned()),
        what,
        why: why.to_owned(),
    }
}

impl Situation {
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn judged(&self) -> Status {
        let mut status = self.status.clone();
        status.peers = vec![self.peer.clone()];
        let window = Window {
            seconds: 10.0,
            peers: vec![self.window.clone()],
            ..Window::default()
        };
        judge(&mut status, Some(&window));
        status
    }
}

/// The state, the grade and the sentence that a situation must have.
fn check(what: &str, situation: &Situation, (state, grade, text): (&str, LinkGrade, &str)) {
    let status = situation.judged();
    let verdict = &status.peers[0].verdict;
    assert_eq!(verdict.text, text, "{what}");
    assert_eq!((verdict.state, verdict.grade), (state, grade), "{what}");
    // Whoever is not good has an alarm that says why, and what to do.
    let has_alarm = status.alarms.iter().any(|alarm| alarm.rule == state);
    assert_eq!(
        has_alarm,
        grade > LinkGrade::Good,
        "{what}: {:?}",
        status.alarms
    );
}

const GOOD: LinkGrade = LinkGrade::Good;
const POOR: LinkGrade = LinkGrade::Poor;
const BAD: LinkGrade = LinkGrade::Bad;
