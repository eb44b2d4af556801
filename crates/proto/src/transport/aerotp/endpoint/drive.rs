//! The endpoint as a machine: the calls with which a driver feeds and drains it.

use super::super::event::{ConnectionId, Event};
use super::AerotpEndpoint;
use crate::machine::{Datagram, Deadline, Machine, Transmit};
use crate::units::Instant;

impl Machine for AerotpEndpoint {
    type Event = Event;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let source = datagram.path.0.to_be_bytes();
        self.handle_datagram_from(now, datagram, &source);
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.now = now;
        self.tombstones.expire(now);
        // Each connection has one turn, so that a connection whose deadline stays in the past
        // neither spins here nor keeps the others waiting.
        let mut due = core::mem::take(&mut self.due);
        let last = (now, ConnectionId(u64::MAX));
        due.extend(self.deadlines.range(..=last).copied());
        for (at, id) in due.drain(..) {
            match self.connections.get_mut(&id) {
                Some(entry) if entry.deadline.is_some_and(|deadline| deadline.at == at) => {
                    entry.connection.handle_deadline(now);
                    self.settle(now, id);
                }
                _ => {
                    self.deadlines.remove(&(at, id));
                }
            }
        }
        self.due = due;
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.now = now;
        self.last_tpdu = None;
        self.last_may_change_path = false;
        self.poll_orphan(now, out)
            .or_else(|| self.poll_control(now, out))
            .or_else(|| self.poll_data(now, out))
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let timers = self.deadlines.first().and_then(|(at, id)| {
            let why = self.connections.get(id)?.deadline?.why;
            Some(Deadline { at: *at, why })
        });
        let pacing = self.sending_paths.iter().filter_map(|path| {
            let schedule = self.paths.get(path).filter(|one| !one.is_empty())?;
            if self.is_bonded(*path) {
                return self.bonded_next_at(*path);
            }
            Some(schedule.next_at())
        });
        let pacing = pacing.min_by_key(|deadline| deadline.at);
        let control = self.control_paths.iter().filter_map(|path| {
            self.paths.get(path).filter(|one| !one.control.is_empty())?;
            Some(self.paths.get(&self.control_path(*path))?.control_at())
        });
        let control = control.min().map(|at| Deadline {
            at,
            why: "pacing of control",
        });
        let pacing = Deadline::earlier(pacing, control);
        let Deadline { at, why } = Deadline::earlier(timers, pacing)?;
        Some(Deadline {
            at: at.max(self.now),
            why,
        })
    }
}
