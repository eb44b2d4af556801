//! The messages of a running test at one end, whichever way they go.

use super::incoming::Incoming;
use super::outgoing::Outgoing;
use fulmar_proto::machine::Deadline;
use fulmar_proto::transport::aerotp::{AerotpEndpoint, Event};
use fulmar_proto::units::Instant;

/// The messages that go out and those that come in, while they do.
#[derive(Debug, Default)]
pub(super) struct Flows {
    pub(super) outgoing: Option<Outgoing>,
    pub(super) incoming: Option<Incoming>,
}

impl Flows {
    /// Whether nothing goes either way.
    pub(super) const fn is_empty(&self) -> bool {
        self.outgoing.is_none() && self.incoming.is_none()
    }

    /// Takes what happened to a connection, if it is one of theirs.
    pub(super) fn deliver(&mut self, now: Instant, machine: &mut AerotpEndpoint, event: &Event) {
        if let Some(outgoing) = &mut self.outgoing {
            match *event {
                Event::AllSent(id) => outgoing.on_all_sent(id),
                Event::Closed { id, .. } => outgoing.on_closed(machine, id),
                _ => {}
            }
        }
        if let Some(incoming) = &mut self.incoming {
            match *event {
                Event::Readable(id) => incoming.on_readable(id),
                Event::PeerFinished(id) | Event::Closed { id, .. } => {
                    incoming.on_over(now, machine, id);
                }
                _ => {}
            }
        }
    }

    /// Drops the connections, with all that waits on them.
    pub(super) fn abort(&self, now: Instant, machine: &mut AerotpEndpoint) {
        if let Some(outgoing) = &self.outgoing {
            outgoing.abort(now, machine);
        }
        if let Some(incoming) = &self.incoming {
            incoming.abort(now, machine);
        }
    }

    /// The time of the next thing to do if nothing happens before. An interval's end counts while `can_tell` is set.
    pub(super) fn next_deadline(&self, can_tell: bool) -> Option<Deadline> {
        let incoming = self.incoming.as_ref();
        Deadline::earlier(
            self.outgoing.as_ref().and_then(Outgoing::next_deadline),
            incoming.and_then(|incoming| incoming.next_deadline(can_tell)),
        )
    }
}
