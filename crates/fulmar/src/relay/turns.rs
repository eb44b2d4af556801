//! The relay's part in each turn of the driver: events, orders, new paths, deadlines.

use super::{GATEWAY, Link, MESSAGES, Relay, STREAMS, connection};
use crate::board::LineFailure;
use crate::sorting;
use fulmar_net::session::{DatagramArrival, SessionEvent, source_octets};
use fulmar_net::udp::{Application, DatagramOrigin, Step};
use fulmar_proto::machine::{Datagram, Deadline, PathId, Priority};
use fulmar_proto::transport::aerotp::{ConnectionConfig, Event};
use fulmar_proto::units::Instant;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

impl Application<Link> for Relay {
    fn deliver(&mut self, now: Instant, link: &mut Link, event: SessionEvent<Event>) {
        let shared = Arc::clone(&self.shared);
        let mut board = shared.lock();
        match event {
            SessionEvent::Inner(event) => self.on_event(now, link, &mut board, &event),
            SessionEvent::EpochSeen { peer, epoch } => {
                board.epoch_seen = board.epoch_seen.max(epoch);
                let key = self.peers.key_of(peer);
                let theirs = board.lines.values().filter(|line| line.peer == key);
                let theirs = theirs.filter_map(|line| line.connection).collect();
                self.epochs.note(peer.inner_path(), theirs);
            }
            SessionEvent::PeerRestarted(peer) => {
                let text = "the peer has restarted";
                let failure = LineFailure::new(ErrorKind::ConnectionReset, text);
                let stale = self.epochs.take(peer.inner_path());
                let is_stale = |id| stale.as_ref().is_none_or(|stale| stale.contains(&id));
                self.fail_peer(now, link, &mut board, (peer, &failure), is_stale);
                if let Some(stale) = stale {
                    link.inner_mut().end_with_restart(peer.inner_path(), stale);
                }
            }
            SessionEvent::Closed(peer) => {
                let text = "the peer's endpoint was closed";
                let failure = LineFailure::new(ErrorKind::ConnectionReset, text);
                self.fail_peer(now, link, &mut board, (peer, &failure), |_| true);
                self.epochs.take(peer.inner_path());
            }
            SessionEvent::ReportDue(peer) => {
                // The session's own counts are all that there is to tell.
                link.report(now, peer, &[]);
            }
            other => {
                if let SessionEvent::Up { peer, .. } | SessionEvent::Rekeyed(peer) = &other {
                    self.epochs.take(peer.inner_path());
                }
                self.peers.follow(now, &other);
            }
        }
    }

    fn work(&mut self, now: Instant, link: &mut Link) -> Step {
        if self.has_left {
            return Step::Stop;
        }
        let shared = Arc::clone(&self.shared);
        let mut board = shared.lock();
        board.called = false;
        while let Some(order) = board.orders.pop_front() {
            self.carry_out(now, link, &mut board, &order);
        }
        for id in core::mem::take(&mut board.touched) {
            self.pump(now, link, &mut board, id);
        }
        self.take_whole(now, link, &mut board);
        let unmeasured = board
            .groups
            .values_mut()
            .filter(|group| group.one_way.is_none());
        for group in unmeasured {
            sorting::measure(&self.peers, link, group);
        }
        self.expire(now, link, &mut board);
        if board.leaving && self.may_leave(now, &board) {
            self.has_left = true;
            let text = "the endpoint was dropped";
            board.end(&LineFailure::new(ErrorKind::NotConnected, text));
            link.close(now);
            return Step::Again;
        }
        Step::Wait
    }

    fn unreachable(&mut self, _now: Instant, link: &mut Link, path: PathId) {
        self.peers.on_unreachable(link, path);
    }

    fn arrived(
        &mut self,
        now: Instant,
        link: &mut Link,
        datagram: Datagram<'_>,
        origin: DatagramOrigin,
    ) {
        let source = &source_octets(origin.from);
        let at = origin.at;
        link.handle_arrival(
            now,
            DatagramArrival {
                datagram,
                source,
                at,
            },
        );
    }

    fn too_large(&mut self, now: Instant, link: &mut Link, path: PathId) {
        link.on_too_large(now, path);
    }

    fn paths_in_use(&self, _now: Instant, link: &Link) -> Option<Vec<PathId>> {
        Some(link.paths_in_use().collect())
    }

    fn wants_path(&self, _now: Instant) -> Option<SocketAddr> {
        self.wanted.front().map(|(remote, ..)| *remote)
    }

    fn path_made(
        &mut self,
        now: Instant,
        link: &mut Link,
        _remote: SocketAddr,
        path: Option<PathId>,
    ) {
        let Some((_, line, peer, priority)) = self.wanted.pop_front() else {
            return;
        };
        let shared = Arc::clone(&self.shared);
        let mut board = shared.lock();
        let Some(path) = path else {
            let text = "every place for an address is in use";
            let failure = LineFailure::new(ErrorKind::QuotaExceeded, text);
            self.give_up(now, link, &mut board, line, &failure);
            return;
        };
        link.set_endpoints(peer, vec![path]);
        let opened = board.lines.get(&line);
        let messages = opened.is_some_and(|line| line.post.is_some());
        let to_gateway = opened.is_some_and(|line| line.to_gateway);
        let config = ConnectionConfig {
            priority: Priority(priority),
            ..connection(&self.config, messages)
        };
        let port = match (to_gateway, messages) {
            (true, _) => GATEWAY,
            (false, true) => MESSAGES,
            (false, false) => STREAMS,
        };
        match link
            .inner_mut()
            .connect(now, peer.inner_path(), port, config)
        {
            Ok(connection) => {
                if let Ok(line) = board.line(line) {
                    line.connection = Some(connection);
                }
                self.lines.insert(connection, line);
                self.pump(now, link, &mut board, line);
            }
            Err(error) => {
                let failure = LineFailure::new(ErrorKind::QuotaExceeded, error.to_string());
                self.give_up(now, link, &mut board, line, &failure);
            }
        }
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let limits = self.limits.next();
        let down = self.peers.next_end(self.config.give_up_after);
        let times = [
            (limits, "a peer's answer"),
            (down, "an outage's end"),
            (self.room.next(), "a message's deadline"),
            (self.leave_by, "the last word leaves"),
        ];
        times.into_iter().fold(None, |first, (at, why)| {
            Deadline::earlier(first, at.map(|at| Deadline { at, why }))
        })
    }
}
