//! The line to the keeper: what waits for it, whether it is full, and whether the keeper is still there.

use super::{FIRST_GIVEN_AGAIN, Keeping, KeptClient};
use crate::gateway::flows::{Body, Floor, Traffic};
use crate::gateway::sockets::Target;
use crate::keeper::Keeper;
use fulmar_proto::splice::FlowId;
use fulmar_proto::units::{Duration, Instant};
use std::net::TcpStream;

/// The pause before a full line is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(10);

impl Keeping {
    /// Whether the keeper was not told everything yet.
    pub(in crate::gateway) fn is_behind(&self) -> bool {
        self.keeper.as_ref().is_some_and(Keeper::is_behind)
    }

    /// Sends `reply` to a proxy's client when the keeper knows of it.
    pub(in crate::gateway) fn reply_later(&mut self, id: FlowId, reply: Vec<u8>) {
        self.unsaid.push((id, reply));
    }

    /// Looks at the keeper at once: it has sent something, or has ended.
    pub(in crate::gateway) const fn look_now(&mut self, now: Instant) {
        self.next_look = now;
    }

    /// The time at which it wants a turn if nothing happens before.
    pub(in crate::gateway) fn next_deadline(&self) -> Option<Instant> {
        self.again_at.into_iter().chain(self.room_look).min()
    }
}

impl Traffic {
    /// Looks after what outlives the gateway; `waiting` are the clients that have not said yet what they want.
    pub(in crate::gateway) fn keeping_turn<'a>(
        &mut self,
        floor: &mut Floor<'_>,
        waiting: impl Iterator<Item = Option<(&'a mut KeptClient, &'a TcpStream)>>,
    ) {
        self.keeping.turn(floor.now);
        if self.keeping.replace_keeper() {
            self.tell_another_keeper(waiting);
        }
        self.watch_keeper(floor);
        if !self.keeping.is_behind() {
            for (id, reply) in core::mem::take(&mut self.keeping.unsaid) {
                self.begin_held(floor.config, id, reply);
            }
        }
        let waits = self.keeping.is_behind() || !self.keeping.unsaid.is_empty();
        self.keeping.again_at = waits.then(|| floor.now + TRY_AGAIN);
    }

    /// Watches the keeper, so that its end is noticed at once, and not only when there is something to be kept.
    fn watch_keeper(&mut self, floor: &mut Floor<'_>) {
        if self.keeping.watched || !self.keeping.has_keeper() {
            return;
        }
        // A keeper that cannot be watched is looked at every second.
        self.keeping.watched = true;
        let token = floor.sockets.token(Target::Keeper);
        if let Some(keeper) = &self.keeping.keeper
            && let Err(error) = floor.sockets.poller.watch_level(keeper, token)
        {
            floor.sockets.forget(token);
            tracing::warn!(event = "keeper_not_watched", %error);
        }
    }

    fn tell_another_keeper<'a>(
        &mut self,
        waiting: impl Iterator<Item = Option<(&'a mut KeptClient, &'a TcpStream)>>,
    ) {
        for (id, listener, record) in self.keeping.ports.all() {
            self.keeping
                .say(|keeper| keeper.keep(id, listener, &record));
        }
        let with_names = (FIRST_GIVEN_AGAIN..).zip(waiting);
        for (number, client) in with_names {
            // The new keeper may give the old name to another client.
            if let Some((client, socket)) = client {
                client.name = FlowId(u128::from(number).to_be_bytes());
                self.keeping
                    .say(|keeper| keeper.keep(client.name, socket, &client.record));
            }
        }
        let kept = core::mem::take(&mut self.keeping.kept);
        tracing::warn!(event = "keeper_replaced", connections = kept.len());
        for (id, record) in kept {
            if let Some(flow) = self.flows.get(id)
                && let Body::Stream(stream) = &flow.body
                && let Some(socket) = stream.socket()
            {
                self.keeping.keep(id, socket, record);
            }
        }
    }
}
