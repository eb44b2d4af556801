//! Peers that have restarted: which of their flows can continue.
//!
//! Two kinds of news tell of a restart: the session below, and the first opening of a later start. An
//! opening that comes as early data arrives before the session has told of its start; any other opening
//! arrives after that. So each piece of news is matched with the other: flows that were opened in
//! between belong to the new start.

use super::super::any_flow::AnyFlow;
use super::super::restored::Role;
use super::Splicer;
use crate::machine::PathId;
use crate::transport::aerotp::ConnectionId;
use crate::units::Instant;
use core::cmp::Ordering;

/// The starts of a peer, as far as they were seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incarnation {
    /// The latest start that an opening came from.
    latest: u32,
    news: News,
}

/// The kind of news that is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// Neither kind.
    Settled,
    /// The session told of a start that has opened nothing yet.
    OpeningDue,
    /// An opening told of a start that the session has not told of.
    SessionDue,
}

const fn start_of(attempt: u64) -> u64 {
    attempt >> 32
}

impl Splicer {
    /// Handles a restart of `peer`, which no longer knows any flow: flows that cannot continue are
    /// reset, the others connect again.
    pub fn peer_restarted(&mut self, now: Instant, peer: PathId) {
        self.now = now;
        let counters = self.shared.endpoint.path_counters(peer);
        self.shared.reports.begin_again(peer, &counters);
        let mut later_than_all = None;
        if let Some(known) = self.incarnations.get_mut(&peer) {
            if known.news == News::SessionDue {
                known.news = News::Settled;
                later_than_all = Some(known.latest);
            } else {
                known.news = News::OpeningDue;
            }
        }
        self.lose_flows(now, |flow| {
            flow.peer() == peer && (flow.role() == Role::Opener || is_older(flow, later_than_all))
        });
        // Connections of ended flows go too. Under the same ports the peer would take their
        // retransmissions for a new connection, and the two ends would never agree on it. If
        // something was opened since, connections with an owner, or with none yet, belong to the
        // new start.
        let (owned, orphans) = (&self.by_connection, &self.orphans);
        let is_stale = |id: ConnectionId| {
            later_than_all.is_none() || !(owned.contains_key(&id) || orphans.contains_key(&id))
        };
        self.shared.endpoint.forget_peer(now, peer, is_stale);
        self.pump(now);
        self.on_link_up(now, peer);
    }

    /// Notes the start that an opening came from. A peer that has restarted knows nothing of its
    /// earlier requests; it asks again for flows that may resume.
    pub(super) fn note_incarnation(&mut self, now: Instant, peer: PathId, attempt: u64) {
        let latest = u32::try_from(start_of(attempt)).unwrap_or(u32::MAX);
        let known = self.incarnations.entry(peer).or_insert(Incarnation {
            latest,
            news: News::Settled,
        });
        match known.latest.cmp(&latest) {
            Ordering::Less => {
                known.latest = latest;
                known.news = if known.news == News::OpeningDue {
                    News::Settled
                } else {
                    News::SessionDue
                };
            }
            Ordering::Equal | Ordering::Greater => return,
        }
        self.lose_flows(now, |flow| {
            flow.peer() == peer && flow.role() == Role::Acceptor && is_older(flow, Some(latest))
        });
    }

    fn lose_flows(&mut self, now: Instant, is_lost: impl Fn(&AnyFlow) -> bool) {
        let slots = self.flows.iter().filter(|(_, slot)| is_lost(&slot.flow));
        let lost: Vec<_> = slots.map(|(id, _)| *id).collect();
        for id in lost {
            self.with(now, id, AnyFlow::on_peer_restarted);
        }
    }
}

/// Whether a flow was opened before the start `latest`; without `latest`, all flows were.
fn is_older(flow: &AnyFlow, latest: Option<u32>) -> bool {
    latest.is_none_or(|latest| start_of(flow.attempt()) < u64::from(latest))
}
