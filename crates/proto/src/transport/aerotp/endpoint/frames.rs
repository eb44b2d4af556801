//! The short form: the paths that speak it, arriving frames, and the connections that these name.

use super::super::connection::Connection;
use super::super::key::Key;
use super::super::tombstones::{Past, Tombstone};
use super::arrivals::Arriving;
use super::{AerotpEndpoint, Orphan};
use crate::machine::{Datagram, PathId, TpduForm};
use crate::transport::aerotp::ConnectionId;
use crate::units::Instant;
use crate::wire::aerotp::Reject;
use crate::wire::aerotp::short::{self, Content, Ends, Frame, FrameKind, Known, Named};
use crate::wire::{Port, TpduSeq};
use core::cell::Cell;

/// The connections with the peer at a path, those that are over included.
struct Peer<'a> {
    endpoint: &'a AerotpEndpoint,
    path: PathId,
    /// The connection that the frame turned out to belong to, so that it need not be looked for again.
    found: Cell<Option<ConnectionId>>,
    /// The same, if it was its name that said so.
    found_by_name: Cell<Option<LastNamed>>,
}

/// A name that was looked up, and what it stood for.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastNamed {
    path: PathId,
    named: Named,
    connection: ConnectionId,
}

impl Peer<'_> {
    /// The pairs of ports that the peer's name can stand for: those of a port of ours from which we opened, or of the ports at which
    /// the peer may have found us.
    fn keys_of(&self, named: Named) -> impl Iterator<Item = Key> {
        let (path, opener) = (self.path, named.name.opener());
        let is_listener = move |port: u16| port & 0b11 == named.name.listener_low();
        let listeners = self.endpoint.listeners.keys().copied();
        let accepted = named.sender_opened.then(|| {
            listeners
                .filter(move |port| is_listener(*port))
                .map(move |local| Key {
                    path,
                    local,
                    remote: opener.0,
                })
        });
        let opened = (!named.sender_opened).then(|| {
            let ours = Key::all_of_port(path, opener.0);
            let live = self.endpoint.keys.range(ours).map(|(key, _)| *key);
            let buried = self.endpoint.tombstones.of_port(path, opener.0).copied();
            live.chain(buried)
                .filter(move |key| is_listener(key.remote))
        });
        accepted
            .into_iter()
            .flatten()
            .chain(opened.into_iter().flatten())
    }

    fn connection(&self, key: Key) -> Option<(ConnectionId, &Connection)> {
        let id = *self.endpoint.keys.get(&key)?;
        Some((id, self.endpoint.connection(id)?))
    }

    fn ends_of(&self, id: ConnectionId, connection: &Connection) -> Ends {
        self.found.set(Some(id));
        connection.ends()
    }
}

/// The things that frames of a connection that is over leave out. Only those about its end are answered.
const fn ends_of_past(key: Key, tombstone: Tombstone) -> Ends {
    let next_expected = match tombstone.past {
        Past::Finished(end) => end,
        Past::Forgotten | Past::Silent => TpduSeq(0),
    };
    Ends {
        local: Port(key.local),
        remote: Port(key.remote),
        mode: tombstone.mode,
        next_expected,
        first_unsettled: TpduSeq(0),
    }
}

impl Known for Peer<'_> {
    fn ends(&self, named: Named) -> Option<Ends> {
        let last = self.endpoint.last_named;
        let last = last.filter(|last| last.path == self.path && last.named == named);
        if let Some(last) = last
            && let Some(connection) = self.endpoint.connection(last.connection)
        {
            return Some(self.ends_of(last.connection, connection));
        }
        // Whoever sent the frame under this name opened the connection, or we did.
        let initiator = !named.sender_opened;
        let live = |key| {
            let (id, connection) = self.connection(key)?;
            (connection.is_initiator() == initiator).then(|| self.ends_of(id, connection))
        };
        let over = |key| {
            let tombstone = self.endpoint.tombstones.get(key)?;
            (tombstone.initiator == initiator).then(|| ends_of_past(key, tombstone))
        };
        let found = self.keys_of(named).find_map(live);
        self.found_by_name
            .set(self.found.get().map(|connection| LastNamed {
                path: self.path,
                named,
                connection,
            }));
        found.or_else(|| self.keys_of(named).find_map(over))
    }

    fn next_expected(&self, source: Port, destination: Port) -> TpduSeq {
        let key = Key {
            path: self.path,
            local: destination.0,
            remote: source.0,
        };
        if let Some((id, connection)) = self.connection(key) {
            return self.ends_of(id, connection).next_expected;
        }
        if let Some(tombstone) = self.endpoint.tombstones.get(key) {
            return ends_of_past(key, tombstone).next_expected;
        }
        let listener = self.endpoint.listeners.get(&key.local);
        listener.map_or(TpduSeq(0), |config| config.first_seq)
    }
}

impl AerotpEndpoint {
    /// Sends to `path` in this form from now on. The state is kept for every path that speaks the short form.
    pub fn speak(&mut self, now: Instant, path: PathId, form: TpduForm) {
        self.now = now;
        match form {
            TpduForm::Short => self.short_paths.insert(path),
            TpduForm::Long => self.short_paths.remove(&path),
        };
        let ids: Vec<ConnectionId> = self.connections_on(path).collect();
        for id in ids {
            self.with(now, id, |c| c.speak(form));
        }
    }

    /// Sends repair symbols over windows to `path` from now on, if the peer takes them. The word is kept for every path
    /// whose peer does.
    pub fn use_windows(&mut self, now: Instant, path: PathId, are_taken: bool) {
        self.now = now;
        if are_taken {
            self.window_paths.insert(path);
        } else {
            self.window_paths.remove(&path);
        }
        let ids: Vec<ConnectionId> = self.connections_on(path).collect();
        for id in ids {
            self.with(now, id, |c| c.use_windows(are_taken));
        }
    }

    /// The form of what is sent to `path`.
    pub(super) fn form_of(&self, path: PathId) -> TpduForm {
        if self.short_paths.contains(&path) {
            TpduForm::Short
        } else {
            TpduForm::Long
        }
    }

    /// Takes content in the short form, which came under a seal: it shows its sender, so no address has to be shown.
    pub fn handle_frames(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.now = now;
        self.count_arrival(now, &datagram);
        let arriving = Arriving::of(&datagram, self.home_of(datagram.path), true);
        for frame in Content::of(datagram.octets) {
            match frame {
                Ok(frame) => self.receive_frame(now, &frame, arriving),
                Err(_) => self.counters.rejected += 1,
            }
        }
    }

    fn receive_frame(&mut self, now: Instant, frame: &Frame<'_>, arriving: Arriving) {
        let path = arriving.path;
        match frame.kind() {
            Some(FrameKind::Session | FrameKind::Padding) => return,
            Some(FrameKind::Long) => return self.receive_long(now, frame.fields(), arriving),
            _ => {}
        }
        let peer = Peer {
            endpoint: self,
            path,
            found: Cell::new(None),
            found_by_name: Cell::new(None),
        };
        match short::read(frame, &peer) {
            Ok(tpdu) => {
                let connection = peer.found.get();
                self.last_named = peer.found_by_name.get().or(self.last_named);
                let arriving = Arriving {
                    connection,
                    ..arriving
                };
                self.route(now, &tpdu, arriving);
            }
            Err(Reject::UnknownName(_)) => {
                self.counters.strangers += 1;
                if let Some(named) = frame.named()
                    && frame.kind() != Some(FrameKind::UnknownName)
                {
                    self.push_orphan(path, Orphan::UnknownName(named));
                }
            }
            Err(_) => self.counters.rejected += 1,
        }
    }
}
