//! The machine of AeroTP: connections by their ports, a budget for each path, and the way to both.

mod arrivals;
mod below;
mod bonds;
mod departures;
mod drive;
mod figures;
mod frames;
mod holding;
mod left_log;
mod lengths;
mod names;
mod notes;
mod numbered;
mod repairs;
mod sharing;
mod sizes;
mod validation;

pub use figures::EndpointCounters;
pub use left_log::SettledCounts;
pub use notes::Note;
pub use repairs::RepairChange;
pub use validation::AddressKey;

use super::config::{ConnectionConfig, EndpointConfig, Treatment};
use super::config_error::ConfigError;
use super::connection::Connection;
use super::counters::Counters;
use super::event::{ConnectError, ConnectionId, Event, WriteError};
use super::intake::Intake;
use super::key::Key;
use super::modes::ModeRules;
use super::path_control::PathControl;
use super::rate_source::RateSource;
use super::schedule::PathSchedule;
use super::sender::PathTaken;
use super::thin_repair::ThinRepair;
use super::tombstones::Tombstones;
use crate::bytes::Chunk;
use crate::machine::{AckedWays, Deadline, PathId, PathSizes};
use crate::repair::RepairView;
use crate::rng::Rng;
use crate::shares::Shares;
use crate::told::ToldFacts;
use crate::trace::Trace;
use crate::transport::parts::Pacer;
use crate::units::{ByteCount, Duration, Instant};
use crate::wire::Port;
use crate::wire::TpduSeq;
use crate::wire::aerotp::Header;
use crate::wire::aerotp::short::Named;
use bonds::Bond;
use frames::LastNamed;
use left_log::LeftLog;
use lengths::note_outcomes_in;
use notes::Notes;
use repairs::RepairChanges;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use validation::Validation;

/// Answers that wait to be sent without a connection, at most; further strangers go unanswered.
const ORPHANS_MAX: usize = 64;
/// Forgotten connections whose counters can still be asked for.
const PAST_MAX: usize = 64;
/// Paths and classes whose forgotten connections are summed up, at most; those of further ones are
/// not.
const SUMS_MAX: usize = 1_024;

/// The octets of a full datagram on a path whose sizes nobody told.
const PACKET: ByteCount = ByteCount(1500);

/// The octets of a full datagram, headers of the layers below included.
fn packet_of(sizes: Option<&PathSizes>) -> ByteCount {
    sizes.map_or(PACKET, |sizes| {
        ByteCount::from_usize(sizes.tpdu_bytes_max) + sizes.lower_overhead
    })
}

#[derive(Debug)]
struct Entry {
    connection: Connection,
    queued_data: bool,
    queued_spare: bool,
    queued_control: bool,
    memory_bytes: usize,
    unsent_bytes: u64,
    deadline: Option<Deadline>,
    label: Option<u64>,
}

impl Entry {
    /// Tells the connection's path of octets that were written, or sent for the first time.
    fn note_unsent(&mut self, paths: &mut BTreeMap<PathId, PathSchedule>) {
        let after = self.connection.unsent_bytes();
        let before = core::mem::replace(&mut self.unsent_bytes, after);
        if after != before
            && let Some(schedule) = paths.get_mut(&self.connection.key().path)
        {
            schedule.note_unsent(before, after);
        }
    }
}

/// A connection whose turn it is, and the path on which it sends.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    id: ConnectionId,
    is_spare: bool,
    path: PathId,
    taken: PathTaken,
}

/// An answer that belongs to no connection.
#[derive(Clone, Copy, Debug)]
enum Orphan {
    /// A reset: nobody listens.
    Reset(Header),
    /// A header without a body or a check of its own: a challenge, or its answer.
    Bare(Header),
    /// The connection is over, and everything before `end` was received.
    Ended {
        /// The TPDU that asks.
        asks: Header,
        end: TpduSeq,
        /// The connection's name in frames of this end.
        named: Option<Named>,
    },
    /// There is no connection of this name, which is as the peer said it.
    UnknownName(Named),
}

/// One end of many AeroTP connections over any number of paths.
#[derive(Debug)]
pub struct AerotpEndpoint {
    config: EndpointConfig,
    rng: Rng,
    connections: BTreeMap<ConnectionId, Entry>,
    /// The places for connections, by path.
    places: Shares<PathId>,
    /// The paths among which places and memory are shared.
    sharing: BTreeSet<PathId>,
    keys: BTreeMap<Key, ConnectionId>,
    /// The connection that the last frame's name stood for, while no key and no listener comes or goes: frames come in rows.
    last_named: Option<LastNamed>,
    listeners: BTreeMap<u16, ConnectionConfig>,
    paths: BTreeMap<PathId, PathSchedule>,
    /// Peers with several paths, by the path on which their connections live; and that of each further path.
    bonds: BTreeMap<PathId, Bond>,
    homes: BTreeMap<PathId, PathId>,
    sending_paths: BTreeSet<PathId>,
    control_paths: BTreeSet<PathId>,
    /// The round-trip time of each path, as known before a connection's own samples or without
    /// them.
    round_trips: BTreeMap<PathId, Duration>,
    /// Packet sizes of paths, from the layers below.
    path_sizes: BTreeMap<PathId, PathSizes>,
    /// Paths that speak the short form.
    short_paths: BTreeSet<PathId>,
    /// Paths whose peer takes repair symbols over windows.
    window_paths: BTreeSet<PathId>,
    /// Paths on which datagrams are numbered, and who tells what arrives of them.
    acked_ways: BTreeMap<PathId, AckedWays>,
    /// The datagrams that left on paths whose remote names the damaged ones.
    left_logs: BTreeMap<PathId, LeftLog>,
    /// The TPDU of the datagram that was appended last, if it has one with data.
    last_tpdu: Option<(ConnectionId, TpduSeq)>,
    /// Whether a thin flow over several paths sent it, so that what waits behind it may leave on another one.
    last_may_change_path: bool,
    /// Paths whose rate is known in another way than the settings say.
    rate_sources: BTreeMap<PathId, RateSource>,
    /// The words of links about themselves, by the path that each serves.
    told: BTreeMap<PathId, ToldFacts>,
    /// Paths that are down, each with the time since when.
    held: BTreeMap<PathId, Instant>,
    /// Paths among several that may be down.
    doubted: BTreeSet<PathId>,
    /// The connections that end with their peer's restart, if not all do.
    stale: BTreeMap<PathId, BTreeSet<ConnectionId>>,
    orphans: VecDeque<(PathId, Orphan)>,
    deadlines: BTreeSet<(Instant, ConnectionId)>,
    /// Deadlines being served; the vector is kept for its memory.
    due: Vec<(Instant, ConnectionId)>,
    tombstones: Tombstones,
    /// The validated addresses, if addresses have to be validated.
    validation: Option<Validation>,
    events: VecDeque<Event>,
    notes: Notes,
    repairs: RepairChanges,
    intake: Intake,
    scratch: Vec<u8>,
    counters: EndpointCounters,
    past: VecDeque<(ConnectionId, Counters)>,
    sums: BTreeMap<(PathId, u8), Counters>,
    /// Memory of the connections' data, as counted when each was last settled.
    memory_bytes: usize,
    next_id: u64,
    now: Instant,
}

impl AerotpEndpoint {
    /// An endpoint without connections. `rng` chooses local ports.
    pub fn new(config: EndpointConfig, rng: Rng) -> Self {
        Self {
            notes: Notes::bounded(config.trace_records),
            repairs: RepairChanges::default(),
            validation: config.address_key.map(Validation::new),
            places: Shares::new(config.connections_max),
            sharing: BTreeSet::new(),
            config,
            rng,
            connections: BTreeMap::new(),
            keys: BTreeMap::new(),
            last_named: None,
            listeners: BTreeMap::new(),
            paths: BTreeMap::new(),
            bonds: BTreeMap::new(),
            homes: BTreeMap::new(),
            sending_paths: BTreeSet::new(),
            control_paths: BTreeSet::new(),
            round_trips: BTreeMap::new(),
            path_sizes: BTreeMap::new(),
            short_paths: BTreeSet::new(),
            window_paths: BTreeSet::new(),
            acked_ways: BTreeMap::new(),
            left_logs: BTreeMap::new(),
            last_tpdu: None,
            last_may_change_path: false,
            rate_sources: BTreeMap::new(),
            told: BTreeMap::new(),
            held: BTreeMap::new(),
            doubted: BTreeSet::new(),
            stale: BTreeMap::new(),
            orphans: VecDeque::new(),
            deadlines: BTreeSet::new(),
            due: Vec::new(),
            tombstones: Tombstones::default(),
            events: VecDeque::new(),
            intake: Intake::default(),
            scratch: Vec::new(),
            counters: EndpointCounters::default(),
            past: VecDeque::new(),
            sums: BTreeMap::new(),
            memory_bytes: 0,
            next_id: 0,
            now: Instant::START,
        }
    }

    /// Accepts connections, and datagrams, at `port`. The mode is the arriving TPDU's.
    ///
    /// # Errors
    /// [`ConfigError`] if the settings cannot work.
    pub fn listen(&mut self, port: Port, config: ConnectionConfig) -> Result<(), ConfigError> {
        config.payload_bytes()?;
        self.listeners.insert(port.0, config);
        self.last_named = None;
        Ok(())
    }

    /// Opens a connection (or, in datagram mode, a place to send from) to `destination` on `path`.
    /// The call does not wait: the application may write at once, and the first octets ride on the
    /// ASYN.
    ///
    /// # Errors
    /// [`ConnectError`] if the settings cannot work or there are too many connections.
    pub fn connect(
        &mut self,
        now: Instant,
        path: PathId,
        destination: Port,
        config: ConnectionConfig,
    ) -> Result<ConnectionId, ConnectError> {
        self.now = now;
        let too_many = ConnectError::TooMany(self.config.connections_max);
        let local = self.free_port(path, destination).ok_or(too_many)?;
        let key = Key {
            path,
            local,
            remote: destination.0,
        };
        self.add(now, key, config, true)
    }

    fn add(
        &mut self,
        now: Instant,
        key: Key,
        config: ConnectionConfig,
        initiator: bool,
    ) -> Result<ConnectionId, ConnectError> {
        if self.places.room(key.path) == 0 {
            return Err(ConnectError::TooMany(self.config.connections_max));
        }
        if self.memory_room(key.path) == 0 {
            return Err(ConnectError::TooMuchHeld(self.config.memory_max));
        }
        let id = ConnectionId(self.next_id);
        let config = ConnectionConfig {
            rto: self.first_rto(key.path, config.rto),
            tpdu_bytes_max: self.tpdu_bytes_max(key.path, &config),
            ..config
        };
        let trace = Trace::bounded(self.config.trace_records);
        let mut connection = Connection::new(now, id, key, config, initiator, trace)?;
        connection.use_windows(self.window_paths.contains(&key.path));
        connection.speak(self.form_of(key.path));
        if self.config.follows_length {
            connection.keep_outcomes();
        }
        self.next_id += 1;
        self.keys.insert(key, id);
        self.last_named = None;
        self.places.take(key.path, 1);
        self.path(key.path).connections += 1;
        let entry = Entry {
            connection,
            queued_data: false,
            queued_spare: false,
            queued_control: false,
            memory_bytes: 0,
            unsent_bytes: 0,
            deadline: None,
            label: None,
        };
        self.connections.insert(id, entry);
        self.settle(now, id);
        Ok(id)
    }

    fn path(&mut self, path: PathId) -> &mut PathSchedule {
        let (config, now) = (&self.config, self.now);
        let sizes = self.path_sizes.get(&path);
        let overhead = sizes.map_or(config.lower_overhead, |sizes| sizes.lower_overhead);
        self.paths.entry(path).or_insert_with(|| {
            let source = self.rate_sources.get(&path).unwrap_or(&config.rate);
            let mut control = PathControl::new(*source, packet_of(sizes));
            let pacer = Pacer::new(control.pace(now), config.burst, overhead);
            let mut schedule = PathSchedule::new(pacer, control, config.reports_often);
            if let Some(told) = self.told.get(&path) {
                schedule.take_told(now, told, None);
            }
            schedule.set_acked(self.acked_ways.get(&path).copied().unwrap_or_default());
            schedule
        })
    }

    fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.connections.get(&id).map(|entry| &entry.connection)
    }

    fn with<T>(
        &mut self,
        now: Instant,
        id: ConnectionId,
        call: impl FnOnce(&mut Connection) -> T,
    ) -> Option<T> {
        self.now = now;
        let result = call(&mut self.connections.get_mut(&id)?.connection);
        self.settle(now, id);
        Some(result)
    }

    /// Writes stream octets. Takes as many as fit; after taking less than offered, an
    /// [`Event::Writable`] tells when there is room.
    ///
    /// # Errors
    /// [`WriteError`] if the connection is over or closed for writing.
    pub fn write(
        &mut self,
        now: Instant,
        id: ConnectionId,
        octets: &[u8],
    ) -> Result<usize, WriteError> {
        self.with(now, id, |c| c.write(now, octets))
            .unwrap_or(Err(WriteError::Closed))
    }

    /// Writes one message, which will be one TPDU. Returns `false` if there is no room yet.
    ///
    /// # Errors
    /// [`WriteError`] if the connection is over, or the message does not fit a TPDU.
    pub fn write_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        octets: &[u8],
    ) -> Result<bool, WriteError> {
        self.write_message_since(now, id, octets, now)
    }

    /// Does the same with a message that has waited since then: its deadline counts from there.
    ///
    /// # Errors
    /// As [`AerotpEndpoint::write_message`].
    pub fn write_message_since(
        &mut self,
        now: Instant,
        id: ConnectionId,
        octets: &[u8],
        since: Instant,
    ) -> Result<bool, WriteError> {
        self.with(now, id, |c| c.write_message(now, octets, since))
            .unwrap_or(Err(WriteError::Closed))
    }

    /// Takes the next payload in order; `None` until the next [`Event::Readable`].
    pub fn read(&mut self, now: Instant, id: ConnectionId) -> Option<Chunk> {
        self.with(now, id, |c| c.read(now)).flatten()
    }

    /// Lets what the peer writes on a connection be read as it comes, from now on.
    pub fn read_in_any_order(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, Connection::read_in_any_order);
    }

    /// Lets the peer take back what it wrote on a connection, from now on, whatever the order of reading: what was taken
    /// back is passed over.
    pub fn do_without_withdrawn(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, Connection::do_without_withdrawn);
    }

    /// Repairs what this side writes on a connection as `allowed` says while nothing waits to be sent, from now on. With a
    /// goal in any order the peer has to read so, or to do without what was taken back.
    pub fn allow_thin(&mut self, now: Instant, id: ConnectionId, allowed: ThinRepair) {
        self.with(now, id, |connection| connection.allow_thin(allowed));
    }

    /// The view from which the repair of a connection's goal is chosen, once there is something to see: for a choice made
    /// elsewhere, which [`AerotpEndpoint::allow_thin`] brings in as a fixed plan.
    pub fn repair_view(&self, id: ConnectionId) -> Option<RepairView> {
        self.connections.get(&id)?.connection.repair_view()
    }

    /// Takes a payload's memory back for the next payload.
    pub fn recycle(&mut self, id: ConnectionId, octets: Vec<u8>) {
        if let Some(entry) = self.connections.get_mut(&id) {
            entry.connection.recycle(octets);
        }
    }

    /// Notes that nothing is expected to follow until more is written. Modes that retransmit then
    /// repeat the last TPDUs while the link would be idle, as after a close.
    pub fn pause(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, Connection::pause);
    }

    /// Notes that no more will be written. Data written before is still delivered as the mode
    /// promises.
    pub fn close(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, Connection::close);
    }

    /// Ends a connection at once and tells the peer.
    pub fn abort(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |c| c.abort(now));
    }

    /// Names the connections that end when the peer at `path` turns out to have restarted, next time: its new start has
    /// opened others already.
    pub fn end_with_restart(&mut self, path: PathId, stale: BTreeSet<ConnectionId>) {
        self.stale.insert(path, stale);
    }

    /// Forgets the past of the peer at `path`, which has restarted. The layer below lets nothing
    /// from before through. The connections with the peer that `is_stale` names end without a word.
    /// The peer may use every pair of ports again, since it no longer knows which were used.
    pub fn forget_peer(
        &mut self,
        now: Instant,
        path: PathId,
        is_stale: impl Fn(ConnectionId) -> bool,
    ) {
        let stale = self.connections_on(path).filter(|id| is_stale(*id));
        let stale: Vec<ConnectionId> = stale.collect();
        for id in stale {
            self.with(now, id, |c| c.vanish(now));
        }
        self.tombstones.forget_path(path);
        if let Some(schedule) = self.paths.get_mut(&path) {
            schedule.forget_peer();
        }
    }

    /// Treats data that this side will send on a connection as `treatment` says. Returns whether it
    /// does: it does not when the connection is over, or has been written to.
    ///
    /// # Errors
    /// [`ConfigError`] if parity leaves no room for data.
    pub fn treat(
        &mut self,
        now: Instant,
        id: ConnectionId,
        treatment: Treatment,
    ) -> Result<bool, ConfigError> {
        self.with(now, id, |c| c.reconfigure(treatment))
            .unwrap_or(Ok(false))
    }

    /// The connections with the peer at `path` that are not forgotten.
    fn connections_on(&self, path: PathId) -> impl Iterator<Item = ConnectionId> + '_ {
        let of = |port| Key {
            path,
            local: port,
            remote: port,
        };
        self.keys.range(of(0)..=of(u16::MAX)).map(|(_, id)| *id)
    }

    /// Takes the oldest note of the connections, including connections that are forgotten since.
    pub fn take_note(&mut self) -> Option<Note> {
        let mut note = self.notes.take()?;
        if note.label.is_none() {
            let entry = self.connections.get(&note.connection);
            note.label = entry.and_then(|entry| entry.label);
        }
        Some(note)
    }

    /// Keeps up to `records` notes from now on, of connections that begin from now on.
    pub fn keep_notes(&mut self, records: usize) {
        self.config.trace_records = records;
        self.notes = Notes::bounded(records);
    }

    /// Sets the label that notes of a connection have: its user's number for what it carries.
    pub fn label(&mut self, id: ConnectionId, label: u64) {
        if let Some(entry) = self.connections.get_mut(&id) {
            entry.label = Some(label);
        }
    }

    /// The number of notes that did not fit since the last call.
    pub const fn take_missed_notes(&mut self) -> u64 {
        self.notes.take_missed()
    }

    /// Brings the endpoint's indexes up to date with a connection that has changed.
    fn settle(&mut self, now: Instant, id: ConnectionId) {
        let is_held = !self.held.is_empty() && {
            let home = self.connection(id).map(|connection| connection.key().path);
            home.is_some_and(|home| self.is_held(home))
        };
        let Some(entry) = self.connections.get_mut(&id) else {
            return;
        };
        let connection = &mut entry.connection;
        connection.settle(now);
        let held = is_held;
        if held {
            connection.settle_held(now);
        }
        if let Some(decision) = connection.take_repair_change(now) {
            self.repairs.note(RepairChange {
                at: now,
                path: connection.key().path,
                class: connection.share().class,
                decision,
            });
        }
        self.notes.collect(connection, entry.label);
        if connection.has_outcomes() {
            let home = connection.key().path;
            match self.bonds.get(&home) {
                Some(bond) => note_outcomes_in(now, connection, (bond, &mut self.paths)),
                None => {
                    if let Some(schedule) = self.paths.get_mut(&home) {
                        schedule.note_outcomes(now, connection);
                    }
                }
            }
        }
        while let Some(event) = connection.next_event() {
            self.events.push_back(event);
        }
        let memory_bytes = connection.memory_bytes();
        self.memory_bytes = self.memory_bytes - entry.memory_bytes + memory_bytes;
        entry.memory_bytes = memory_bytes;
        entry.note_unsent(&mut self.paths);
        let connection = &mut entry.connection;
        let deadline = connection.next_deadline();
        if deadline != entry.deadline {
            if let Some(old) = entry.deadline {
                self.deadlines.remove(&(old.at, id));
            }
            if let Some(new) = deadline {
                self.deadlines.insert((new.at, id));
            }
            entry.deadline = deadline;
        }
        let connection = &entry.connection;
        let (path, priority, share) = (
            connection.key().path,
            connection.priority(),
            connection.share(),
        );
        let control = !held && !entry.queued_control && connection.wants_to_answer();
        let data = !held && !entry.queued_data && connection.wants_to_send();
        let spare = !held && !entry.queued_spare && connection.wants_spare();
        let gone = connection.is_gone();
        entry.queued_control |= control;
        entry.queued_data |= data;
        entry.queued_spare |= spare;
        if control {
            self.path(path).control.push_back(id);
            self.control_paths.insert(path);
        }
        if data {
            self.path(path).enqueue(priority, share, id);
            self.sending_paths.insert(path);
        }
        if spare {
            self.path(path).enqueue_spare(id);
            self.sending_paths.insert(path);
        }
        if gone && !data {
            self.forget(now, id);
        }
    }

    fn forget(&mut self, now: Instant, id: ConnectionId) {
        let Some(entry) = self.connections.remove(&id) else {
            return;
        };
        self.memory_bytes -= entry.memory_bytes;
        let key = entry.connection.key();
        if self.past.len() == PAST_MAX {
            self.past.pop_front();
        }
        self.past.push_back((id, *entry.connection.counters()));
        let summed = (key.path, entry.connection.share().class);
        if self.sums.len() < SUMS_MAX || self.sums.contains_key(&summed) {
            *self.sums.entry(summed).or_default() += *entry.connection.counters();
        }
        self.keys.remove(&key);
        self.last_named = None;
        self.places.give_back(key.path, 1);
        if let Some(deadline) = entry.deadline {
            self.deadlines.remove(&(deadline.at, id));
        }
        if ModeRules::of(entry.connection.mode()).connection {
            self.tombstones.bury(now, key, entry.connection.tombstone());
        }
        if let Some(path) = self.paths.get_mut(&key.path) {
            path.connections -= 1;
            path.note_unsent(entry.unsent_bytes, 0);
        }
        self.on_path_used(now, key.path);
        // A budget outlives its connections until it is even; paths that come and go leave nothing
        // behind. A found rate is worth keeping where the layers below know the peer, and so is a length.
        let (known, homes) = (&self.path_sizes, &self.homes);
        self.paths.retain(|id, path| {
            path.connections > 0
                || homes.contains_key(id)
                || path.pacer.next_at() > now
                || ((path.control_of_rate.is_found() || path.lengths.belief().is_some())
                    && known.contains_key(id))
        });
    }
}

#[cfg(test)]
mod tests;
