//! News of flows, in the order in which they came, for whoever writes them down.

use super::flow::Flow;
use fulmar_proto::splice::{ClassId, Destination, FlowId};
use fulmar_proto::units::{Duration, Instant};

/// An incident of a flow, or of a wish for one.
#[derive(Debug)]
pub(in crate::gateway) struct News {
    pub(in crate::gateway) at: Instant,
    /// The peer's place in the configuration, if it matters.
    pub(in crate::gateway) peer: Option<usize>,
    /// The flow, if there is one.
    pub(in crate::gateway) about: Option<About>,
    pub(in crate::gateway) what: Happened,
}

/// The flow that news are about.
#[derive(Clone, Copy, Debug)]
pub(in crate::gateway) struct About {
    pub(in crate::gateway) class: ClassId,
    /// Its number in an event trace.
    pub(in crate::gateway) number: Option<u64>,
}

/// The event of a flow, or of a wish for one.
#[derive(Debug)]
pub(in crate::gateway) enum Happened {
    /// It has begun.
    Opened {
        id: FlowId,
        protocol: &'static str,
        direction: &'static str,
        destination: Destination,
    },
    /// A client's wish led to no flow.
    NotOpened {
        destination: Destination,
        reason: String,
    },
    /// A peer's wish was refused.
    Refused {
        destination: Destination,
        reason: &'static str,
    },
    /// It goes on from that position.
    Resumed { position_bytes: u64 },
    /// It has ended.
    Ended {
        reason: &'static str,
        /// Octets from and to the local side.
        moved: (u64, u64),
        lasted: Duration,
    },
}

/// The news that nobody has taken yet; none are collected unless somebody wants them.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Newsbox {
    is_wanted: bool,
    news: Vec<News>,
}

impl Newsbox {
    /// Collects news from now on.
    pub(in crate::gateway) const fn want(&mut self) {
        self.is_wanted = true;
    }

    pub(super) const fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    pub(in crate::gateway) fn take(&mut self) -> Vec<News> {
        core::mem::take(&mut self.news)
    }

    /// Adds news of `flow`.
    pub(super) fn of_flow(&mut self, now: Instant, flow: &Flow, what: Happened) {
        let about = About {
            class: flow.class_id(),
            number: flow.number,
        };
        self.add(now, Some(flow.peer), Some(about), what);
    }

    /// Adds that `flow` has begun.
    pub(in crate::gateway) fn opened(&mut self, now: Instant, id: FlowId, flow: &Flow) {
        let opened = Happened::Opened {
            id,
            protocol: flow.protocol(),
            direction: flow.direction(),
            destination: flow.destination.clone(),
        };
        self.of_flow(now, flow, opened);
    }

    /// Adds that `flow` has ended.
    pub(in crate::gateway) fn ended(&mut self, now: Instant, flow: &Flow, reason: &'static str) {
        let ended = Happened::Ended {
            reason,
            moved: flow.moved_bytes(),
            lasted: now.saturating_since(flow.began),
        };
        self.of_flow(now, flow, ended);
    }

    /// Adds that a peer's wish was refused.
    pub(in crate::gateway) fn refused(
        &mut self,
        now: Instant,
        to: &Destination,
        reason: &'static str,
    ) {
        let refused = Happened::Refused {
            destination: to.clone(),
            reason,
        };
        self.add(now, None, None, refused);
    }

    /// Adds that a client's wish led to no flow.
    pub(in crate::gateway) fn not_opened(
        &mut self,
        now: Instant,
        peer: usize,
        (to, reason): (&Destination, String),
    ) {
        let not_opened = Happened::NotOpened {
            destination: to.clone(),
            reason,
        };
        self.add(now, Some(peer), None, not_opened);
    }

    fn add(&mut self, at: Instant, peer: Option<usize>, about: Option<About>, what: Happened) {
        if self.is_wanted {
            self.news.push(News {
                at,
                peer,
                about,
                what,
            });
        }
    }
}
