//! The receiving end: an application on an AeroTP endpoint, with any number of transfers at once.
//!
//! # Promises
//! - Nothing is created outside the directory, and no existing file is replaced unless asked for.
//! - Memory is bounded: transfers at once, and what each holds. No host keeps the others out ([`crate::places`]).
//! - A sender that starts anew takes over what an earlier one left, even while that one lingers; as
//!   long as the earlier one answers, it is refused.
//! - A file that is here is read once for all senders that offer it ([`super::verified`]).
//! - When it is asked to stop, it tells every sender.
//! - A connection that does not introduce a file is reset: it belonged to a receiver before us, and
//!   the reset makes its sender start anew.

mod claims;
mod newcomers;

use super::incoming::{Progress, Transfer};
use super::record::{Item, Record, decode_message, message_id};
use super::report::{ReceiveError, ReceiveReport, TransferVerdict};
use super::verified::Verified;
use super::{FILE_PORT, Stop};
use crate::places::{Guest, Latest};
use crate::session::source_octets;
use crate::udp::{Application, DatagramOrigin, Step};
use crate::wait::Waker;
use fulmar_proto::machine::{Datagram, Deadline, PathId};
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, CloseReason, ConfigError, ConnectionConfig, ConnectionId, Event, ModeRules,
};
use fulmar_proto::units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::path::PathBuf;

/// Payloads read from one connection before others get their turn.
const CHUNKS_PER_TURN: usize = 256;

/// The time within which delayed acknowledgements of a sender's end go out.
const LAST_ACKNOWLEDGEMENTS: Duration = Duration::from_millis(100);

/// The place where files go.
#[derive(Debug)]
pub enum FileDestination {
    /// Into a directory.
    Directory {
        /// The directory, which must exist.
        path: PathBuf,
        /// Whether existing files are replaced.
        replace: bool,
    },
    /// To stdout: one file, as it comes.
    Stdout(Waker),
}

/// The plan of a receiver.
#[derive(Debug)]
pub struct ReceivePlan {
    /// The place where files go.
    pub destination: FileDestination,
    /// Settings for arriving connections; the mode is theirs.
    pub connection: ConnectionConfig,
    /// Whether to stop after the first file, whatever became of it.
    pub once: bool,
    /// The time between two moments at which what arrived is made durable.
    pub checkpoint_every: Duration,
}

/// Someone who watches a receiver.
pub trait ReceiveObserver {
    /// A file was introduced; so many octets are here already.
    fn started(&mut self, _name: &str, _size: Option<u64>, _resumed_at: u64) {}
    /// These octets arrived for the first time.
    fn delivered(&mut self, _now: Instant, _range: Range<u64>) {}
    /// A file is finished, with this report.
    fn finished(&mut self, _report: &ReceiveReport) {}
}

impl ReceiveObserver for () {}

/// Receives files until it is stopped.
#[derive(Debug)]
pub struct Receiver<O> {
    plan: ReceivePlan,
    stop: Stop,
    /// The one who watches.
    pub observer: O,
    transfers: BTreeMap<ConnectionId, Transfer>,
    /// The path and the guest of each connection.
    origins: BTreeMap<ConnectionId, (PathId, Guest)>,
    latest: Latest,
    verified: Verified,
    /// Connections in modes that may lose data.
    lanes: BTreeMap<ConnectionId, Option<ConnectionId>>,
    reports: VecDeque<ReceiveReport>,
    /// The time to leave the loop: after the last acknowledgements have gone out.
    stop_at: Option<Instant>,
    stopping: bool,
}

impl<O: ReceiveObserver> Receiver<O> {
    /// Listens on `machine`.
    ///
    /// # Errors
    /// The connection settings cannot work.
    pub fn new(
        plan: ReceivePlan,
        machine: &mut AerotpEndpoint,
        stop: Stop,
        observer: O,
    ) -> Result<Self, ConfigError> {
        machine.listen(FILE_PORT, plan.connection)?;
        Ok(Self {
            plan,
            stop,
            observer,
            transfers: BTreeMap::new(),
            origins: BTreeMap::new(),
            latest: Latest::default(),
            verified: Verified::default(),
            lanes: BTreeMap::new(),
            reports: VecDeque::new(),
            stop_at: None,
            stopping: false,
        })
    }

    /// The octets of files here that were read, to tell senders how much of theirs is here.
    pub fn verified_bytes(&self) -> u64 {
        self.verified.read_bytes()
    }

    /// Takes the oldest report.
    pub fn take_report(&mut self) -> Option<ReceiveReport> {
        self.reports.pop_front()
    }

    /// Reads the peers' octets; returns whether anything was read.
    fn listen(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> bool {
        let mut busy = false;
        let controls: Vec<ConnectionId> = self.transfers.keys().copied().collect();
        for control in controls {
            for _ in 0..CHUNKS_PER_TURN {
                let Some(transfer) = self.transfers.get_mut(&control) else {
                    break;
                };
                if !transfer.has_room() {
                    break;
                }
                if let Some(held) = transfer.take_held() {
                    busy = true;
                    if let Err(error) = self.take_octets(now, machine, control, &held) {
                        self.refuse(now, machine, control, error);
                    }
                    continue;
                }
                let Some(chunk) = machine.read(now, control) else {
                    break;
                };
                busy = true;
                let outcome = self.take_octets(now, machine, control, &chunk.octets);
                machine.recycle(control, chunk.octets);
                if let Err(error) = outcome {
                    self.refuse(now, machine, control, error);
                    break;
                }
            }
        }
        let lanes: Vec<ConnectionId> = self.lanes.keys().copied().collect();
        for lane in lanes {
            for _ in 0..CHUNKS_PER_TURN {
                let Some(chunk) = machine.read(now, lane) else {
                    break;
                };
                busy = true;
                self.take_message(now, machine, &chunk.octets, Some(lane));
                machine.recycle(lane, chunk.octets);
            }
        }
        busy
    }

    fn take_octets(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        control: ConnectionId,
        mut octets: &[u8],
    ) -> Result<(), ReceiveError> {
        loop {
            let Some(transfer) = self.transfers.get_mut(&control) else {
                return Ok(());
            };
            if transfer.must_wait() {
                transfer.hold(octets);
                return Ok(());
            }
            let Some(item) = transfer.records.next(&mut octets)? else {
                return Ok(());
            };
            match item {
                Item::Data { offset, octets } => {
                    if let Some(range) = transfer.on_data(now, offset, octets)? {
                        self.observer.delivered(now, range);
                    }
                }
                Item::Record(Record::Hello {
                    mode,
                    id,
                    size,
                    seekable,
                    name,
                }) => {
                    transfer.on_hello(mode, id, (size, seekable), name)?;
                    self.claim(now, machine, control)?;
                }
                Item::Record(Record::Start { offset }) => transfer.on_start(offset)?,
                Item::Record(Record::End { size, digest }) => transfer.on_end(now, size, digest)?,
                Item::Record(Record::Refuse { .. }) => transfer.abandon(TransferVerdict::Abandoned),
                Item::Record(Record::Leave { id }) => {
                    transfer.only_leaves()?;
                    self.on_leave(now, machine, control, id);
                    return Ok(());
                }
                Item::Record(Record::Offer { .. } | Record::Done { .. } | Record::Ping) => {
                    return Err(ReceiveError::Sequence("answers instead of sending"));
                }
            }
        }
    }

    fn take_message(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        message: &[u8],
        lane: Option<ConnectionId>,
    ) {
        let Some((id, offset, octets)) = decode_message(message) else {
            return;
        };
        let wanted = |transfer: &&mut Transfer| transfer.id().map(message_id) == Some(id);
        let Some(transfer) = self.transfers.values_mut().find(wanted) else {
            return;
        };
        let control = transfer.control();
        if let Some(lane) = lane {
            self.lanes.insert(lane, Some(control));
            transfer.set_lane(lane);
        }
        match transfer.on_message(now, offset, octets) {
            Ok(Some(range)) => self.observer.delivered(now, range),
            Ok(None) => {}
            Err(error) => self.refuse(now, machine, control, error),
        }
    }

    fn refuse(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        control: ConnectionId,
        error: ReceiveError,
    ) {
        if let Some(transfer) = self.transfers.get_mut(&control) {
            transfer.refuse(now, machine, error);
        }
    }

    /// Lets every transfer do what is due; returns whether the machine was touched.
    fn advance(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> bool {
        let mut busy = false;
        let controls: Vec<ConnectionId> = self.transfers.keys().copied().collect();
        for control in controls {
            match self.decide(now, machine, control) {
                Ok(decided) => busy |= decided,
                Err(error) => self.refuse(now, machine, control, error),
            }
            let Some(transfer) = self.transfers.get_mut(&control) else {
                continue;
            };
            let progress = match transfer.advance(now, machine, self.plan.checkpoint_every) {
                Ok(progress) => progress,
                Err(error) => {
                    transfer.refuse(now, machine, error);
                    Progress::Touched
                }
            };
            if let Some((name, size, resumed_at)) = transfer.take_introduction() {
                self.observer.started(&name, size, resumed_at);
            }
            match progress {
                Progress::Idle => {}
                Progress::Touched => busy = true,
                Progress::Over => {
                    busy = true;
                    self.conclude(now, machine, control);
                }
            }
        }
        busy
    }

    fn conclude(&mut self, now: Instant, machine: &mut AerotpEndpoint, control: ConnectionId) {
        let Some(transfer) = self.transfers.remove(&control) else {
            return;
        };
        self.drop_lanes(now, machine, control);
        if let Some(report) = transfer.conclude(now, machine) {
            // A sender that was turned away does not count as the one file to wait for.
            let is_busy = matches!(report.error, Some(ReceiveError::Busy(_)));
            self.observer.finished(&report);
            self.reports.push_back(report);
            if self.plan.once && !is_busy {
                self.stop_at.get_or_insert(now + LAST_ACKNOWLEDGEMENTS);
            }
        }
    }

    fn on_closed(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        id: ConnectionId,
        why: CloseReason,
    ) {
        if let Some(owner) = self.lanes.remove(&id) {
            if let Some(transfer) = owner.and_then(|owner| self.transfers.get_mut(&owner)) {
                transfer.on_lane_ended(now);
            }
            return;
        }
        if let Some(transfer) = self.transfers.get_mut(&id) {
            transfer.abandon(match why {
                CloseReason::PeerVanished => TransferVerdict::Vanished,
                CloseReason::Finished
                | CloseReason::Aborted
                | CloseReason::Disagreed
                | CloseReason::Reset => TransferVerdict::Abandoned,
            });
            self.conclude(now, machine, id);
        }
    }
}

impl<O: ReceiveObserver> Application<AerotpEndpoint> for Receiver<O> {
    fn deliver(&mut self, now: Instant, machine: &mut AerotpEndpoint, event: Event) {
        match event {
            Event::Incoming { id, mode, path, .. } => {
                let lossy = !ModeRules::of(mode).complete;
                self.on_incoming(now, machine, (id, path), lossy);
            }
            Event::Datagram { octets, .. } => self.take_message(now, machine, &octets, None),
            Event::PeerFinished(id) => {
                // The payload that was read last is still to be taken.
                self.listen(now, machine);
                if let Some(Some(owner)) = self.lanes.get(&id)
                    && let Some(transfer) = self.transfers.get_mut(owner)
                {
                    transfer.on_lane_ended(now);
                    machine.close(now, id);
                }
            }
            Event::AllSent(id) => {
                if let Some(transfer) = self.transfers.get_mut(&id) {
                    transfer.on_all_sent(now);
                }
            }
            Event::Closed { id, why } => {
                self.origins.remove(&id);
                self.listen(now, machine);
                self.on_closed(now, machine, id, why);
            }
            Event::Connected(_) | Event::Readable(_) | Event::Writable(_) => {}
        }
    }

    fn work(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> Step {
        if self.stop.is_requested() && !self.stopping {
            self.stopping = true;
            let patience = self.begin_stop(now, machine);
            self.stop_at = Some(now + patience);
        }
        if self.stopping && self.transfers.values().all(Transfer::is_confirmed) {
            self.stop_at = Some(now);
        }
        if self.stop_at.is_some_and(|at| at <= now) {
            self.conclude_all(now, machine);
            return Step::Stop;
        }
        let heard = self.listen(now, machine);
        if self.advance(now, machine) || heard {
            Step::Again
        } else {
            Step::Wait
        }
    }

    fn unreachable(&mut self, _now: Instant, _machine: &mut AerotpEndpoint, _path: PathId) {}

    fn arrived(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        datagram: Datagram<'_>,
        DatagramOrigin { from, .. }: DatagramOrigin,
    ) {
        self.latest.note(datagram.path, from);
        machine.handle_datagram_from(now, datagram, &source_octets(from));
    }

    fn paths_in_use(&self, now: Instant, machine: &AerotpEndpoint) -> Option<Vec<PathId>> {
        machine.paths_in_use(now)
    }

    fn peer_restarted(&mut self, now: Instant, machine: &mut AerotpEndpoint, path: PathId) {
        self.forget_peer(now, machine, path);
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let stop = self.stop_at.map(|at| Deadline {
            at,
            why: "end after the last file",
        });
        let all = self.transfers.values();
        all.map(|transfer| transfer.next_deadline(self.plan.checkpoint_every))
            .fold(stop, Deadline::earlier)
    }
}

#[cfg(test)]
mod tests;
