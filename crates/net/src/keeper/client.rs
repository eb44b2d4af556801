//! The gateway's end: finds a keeper or starts one, and hands sockets over.

use super::message::{KeeperMessage, NoMessage, VERSION};
use super::process::KeeperConfig;
use super::record::{NOTE_BYTES_MAX, SocketRecord};
use super::seqpacket;
use crate::clock::Clock;
use crate::wait::{Interest, wait};
use core::time::Duration;
use fulmar_proto::splice::FlowId;
use fulmar_proto::units::Instant;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Why there is no keeper.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// Another gateway is connected to it.
    #[error("the keeper at {0} serves another gateway; give each gateway a state_dir of its own")]
    Busy(PathBuf),
    /// It was started by another version of this program.
    #[error(
        "the keeper at {path} is of version {found}, this is {VERSION}: it ends by itself a minute after its gateway; start again then"
    )]
    Version {
        /// Its socket.
        path: PathBuf,
        /// Its version.
        found: u8,
    },
    /// The system refuses.
    #[error("keeper: cannot {what} {path}: {source}")]
    Io {
        /// The attempt.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// A socket that the gateway before had.
#[derive(Debug)]
pub struct TakenSocket {
    /// Its flow.
    pub flow: FlowId,
    /// The record about it.
    pub record: SocketRecord,
    /// The connection, which the keeper still has too.
    pub socket: TcpStream,
}

/// The line to the keeper. To the keeper, dropping it looks like the gateway's death: it waits for another gateway.
///
/// A connection ends when both have closed it. So before a socket is closed, say
/// [`Keeper::forget`]; `shutdown` and lingering act on the connection and need nothing.
#[derive(Debug)]
pub struct Keeper {
    connection: OwnedFd,
    /// Messages that did not fit into the line.
    pending: VecDeque<(Vec<u8>, Option<OwnedFd>)>,
    /// The keeper's process, if we started it.
    child: Option<Child>,
    /// The number of [`KeeperMessage::All`] still to come: answers to the first message of a keeper that we started.
    alls: u32,
    /// Whether it accepts clients, as far as is known: a keeper of an older program does not.
    accepts: bool,
}

/// A client that a keeper accepted.
#[derive(Debug)]
pub struct AcceptedClient {
    /// The keeper's name for it, for [`Keeper::claim`] or [`Keeper::forget`].
    pub client: FlowId,
    /// The connection, which the keeper has too.
    pub socket: TcpStream,
}

/// The time that a killed gateway takes at most to leave the line to its keeper: until then another one seems to have it.
const LAST_BREATH: Duration = Duration::from_millis(500);
/// The time that a keeper has to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time that a keeper has to answer while the gateway's traffic waits.
const ACCEPT_PATIENCE: Duration = Duration::from_secs(1);

/// The time that a keeper has to answer a gateway that starts. A silent keeper is still there, and its sockets are lost
/// when another takes its place. Its clients wait that long in any case.
fn patience(config: KeeperConfig) -> Duration {
    PATIENCE.max(config.keep_for)
}

impl Keeper {
    /// Finds the keeper that listens at `path` and takes its sockets, or starts one by `command`,
    /// which gets the listening socket as its standard input and calls [`run`](super::run) on it.
    ///
    /// # Errors
    /// [`KeeperError`]: another gateway has it, it is of another version, or the system refuses.
    pub fn start(
        path: &Path,
        config: KeeperConfig,
        command: Command,
    ) -> Result<(Self, Vec<TakenSocket>), KeeperError> {
        let patience = patience(config);
        let clock = Clock::start();
        loop {
            match Self::found(patience, path, config)? {
                Found::Nobody => return Ok((Self::spawned(path, config, command)?, Vec::new())),
                Found::Ours(keeper, taken) => return Ok((keeper, taken)),
                Found::Busy if clock.now() >= Instant::START + LAST_BREATH => {
                    return Err(KeeperError::Busy(path.to_owned()));
                }
                // Nothing tells us when the other gateway leaves.
                Found::Busy => drop(wait(&[], Some(LAST_BREATH / 20), &mut Vec::new())),
            }
        }
    }

    /// The same in the place of one that died or does not answer, while the gateway's traffic waits: one that listens
    /// there has a second to answer, and has nothing that its gateway does not have.
    ///
    /// # Errors
    /// As [`Keeper::start`].
    pub fn replace(
        path: &Path,
        config: KeeperConfig,
        command: Command,
    ) -> Result<Self, KeeperError> {
        match Self::found(ACCEPT_PATIENCE, path, config)? {
            Found::Nobody => Self::spawned(path, config, command),
            Found::Ours(keeper, _) => Ok(keeper),
            Found::Busy => Err(KeeperError::Busy(path.to_owned())),
        }
    }

    fn found(patience: Duration, path: &Path, config: KeeperConfig) -> Result<Found, KeeperError> {
        let Ok(connection) = seqpacket::connect(path) else {
            return Ok(Found::Nobody);
        };
        match take_all(&connection, config, patience) {
            Answer::All(taken) => Ok(Found::Ours(Self::on(connection, None), taken)),
            Answer::Busy => Ok(Found::Busy),
            Answer::Version(found) => Err(KeeperError::Version {
                path: path.to_owned(),
                found,
            }),
            // It was about to end.
            Answer::Gone => Ok(Found::Nobody),
        }
    }

    fn spawned(path: &Path, config: KeeperConfig, command: Command) -> Result<Self, KeeperError> {
        let spawned = Self::spawn(path, config, command);
        let (connection, child) = spawned.map_err(|(what, source)| KeeperError::Io {
            what,
            path: path.to_owned(),
            source,
        })?;
        Ok(Self::on(connection, Some(child)))
    }

    fn spawn(
        path: &Path,
        config: KeeperConfig,
        mut command: Command,
    ) -> Result<(OwnedFd, Child), (&'static str, io::Error)> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(("remove the old socket", error));
            }
            _ => {}
        }
        let listener = seqpacket::listen(path).map_err(|error| ("listen at", error))?;
        // We connect before it runs, so there is nothing to wait for and nobody else is first.
        let connection = seqpacket::connect(path).map_err(|error| ("connect to", error))?;
        let hello = KeeperMessage::Take {
            keep_for: config.keep_for,
        };
        let sent = seqpacket::send(&connection, &hello.encode(), None);
        sent.map_err(|error| ("write to", error))?;
        let child = command
            .stdin(Stdio::from(listener))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            .spawn()
            .map_err(|error| ("start a keeper for", error))?;
        Ok((connection, child))
    }

    fn on(connection: OwnedFd, child: Option<Child>) -> Self {
        Self {
            connection,
            pending: VecDeque::new(),
            alls: u32::from(child.is_some()),
            child,
            accepts: true,
        }
    }

    /// Gives the keeper a duplicate of the flow's socket. The keeper has it even if we die right after,
    /// unless the line is full; [`Keeper::flush`] then goes on.
    ///
    /// # Errors
    /// The keeper is gone, or no descriptor is left.
    pub fn keep(
        &mut self,
        flow: FlowId,
        socket: impl AsFd,
        record: &SocketRecord,
    ) -> io::Result<()> {
        let record = cut_note(record);
        let message = KeeperMessage::Socket { flow, record };
        self.send(&message, Some(socket.as_fd()))
    }

    /// Lets the keeper accept the next client at a port that it was given under the name `port`. The keeper has the
    /// connection before we do, so that no kill of ours resets it. Waits for the answer, as no other call does.
    /// `None` if the keeper cannot: it is of an older program, has no such port, or is short of descriptors.
    ///
    /// # Errors
    /// `accept`'s error, with [`ErrorKind::WouldBlock`] where nobody waits there; [`ErrorKind::BrokenPipe`]
    /// if the keeper is gone or does not answer.
    pub fn accept(
        &mut self,
        port: FlowId,
        record: &SocketRecord,
    ) -> io::Result<Option<AcceptedClient>> {
        if !self.accepts {
            return Ok(None);
        }
        let gone = |_| io::Error::from(ErrorKind::BrokenPipe);
        let record = cut_note(record);
        let asked = self.send(&KeeperMessage::Accept { port, record }, None);
        asked.map_err(gone)?;
        let clock = Clock::start();
        let mut ready = Vec::new();
        loop {
            let still_waits = self.flush().map_err(gone)?;
            match seqpacket::receive(&self.connection) {
                Ok(Some((octets, socket))) => match (KeeperMessage::decode(&octets), socket) {
                    (Ok(KeeperMessage::Socket { flow: client, .. }), Some(socket)) => {
                        let socket = TcpStream::from(socket);
                        return Ok(Some(AcceptedClient { client, socket }));
                    }
                    (Ok(KeeperMessage::NoClient { error }), _) => {
                        let error = io::Error::from_raw_os_error(error);
                        let is_of_the_client = matches!(
                            error.kind(),
                            ErrorKind::WouldBlock
                                | ErrorKind::ConnectionAborted
                                | ErrorKind::Interrupted
                        );
                        // A keeper that is short of something keeps nobody out: the gateway may be better off.
                        return if is_of_the_client {
                            Err(error)
                        } else {
                            Ok(None)
                        };
                    }
                    (Ok(KeeperMessage::All), _) if self.alls == 0 => {
                        self.accepts = false;
                        return Ok(None);
                    }
                    (Ok(KeeperMessage::All), _) => self.alls -= 1,
                    // A socket for which we have no descriptor left: the keeper has it, and resets it at our word.
                    (Ok(KeeperMessage::Socket { flow: client, .. }), None) => {
                        self.forget(client).map_err(gone)?;
                        return Err(rustix::io::Errno::MFILE.into());
                    }
                    _ => {}
                },
                Err(error) if is_full(&error) => {
                    let left = (Instant::START + ACCEPT_PATIENCE).saturating_since(clock.now());
                    let interest = if still_waits {
                        Interest::ReadableOrWritable
                    } else {
                        Interest::Readable
                    };
                    let source = (self.connection.as_fd(), interest);
                    if left.is_zero() {
                        return Err(ErrorKind::BrokenPipe.into());
                    }
                    wait(&[source], Some(left), &mut ready).map_err(gone)?;
                }
                Ok(None) | Err(_) => return Err(ErrorKind::BrokenPipe.into()),
            }
        }
    }

    /// Gives a client that was accepted to a flow. At every moment it has one name or the other.
    ///
    /// # Errors
    /// The keeper is gone.
    pub fn claim(&mut self, client: FlowId, flow: FlowId, record: &SocketRecord) -> io::Result<()> {
        let record = cut_note(record);
        let message = KeeperMessage::Claim {
            client,
            flow,
            record,
        };
        self.send(&message, None)
    }

    /// Replaces the record of a flow's socket.
    ///
    /// # Errors
    /// The keeper is gone.
    pub fn note(&mut self, flow: FlowId, record: &SocketRecord) -> io::Result<()> {
        let record = cut_note(record);
        self.send(&KeeperMessage::Record { flow, record }, None)
    }

    /// Makes the keeper close its duplicate.
    ///
    /// # Errors
    /// The keeper is gone, and its duplicate with it.
    pub fn forget(&mut self, flow: FlowId) -> io::Result<()> {
        self.send(&KeeperMessage::Forget { flow }, None)
    }

    /// Sends the waiting messages, and returns whether some still wait. Never waits itself.
    ///
    /// # Errors
    /// The keeper is gone.
    pub fn flush(&mut self) -> io::Result<bool> {
        while let Some((message, socket)) = self.pending.front() {
            let socket = socket.as_ref().map(AsFd::as_fd);
            match seqpacket::send(&self.connection, message, socket) {
                Ok(()) => drop(self.pending.pop_front()),
                Err(error) if is_full(&error) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Whether a message waits that did not fit into the line: the keeper does not have it if we die.
    pub fn is_behind(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether the keeper has ended, which a gateway should repair by starting one and handing it
    /// all sockets. Reads what it said.
    pub fn is_gone(&mut self) -> bool {
        loop {
            match seqpacket::receive(&self.connection) {
                // This is the answer to the first message of a keeper that we started: every other answer was waited
                // for.
                Ok(Some(_)) => self.alls = 0,
                Err(error) if is_full(&error) => return false,
                Ok(None) | Err(_) => break,
            }
        }
        // It closed its line by ending, so this does not wait for long.
        if let Some(mut child) = self.child.take() {
            drop(child.wait());
        }
        true
    }

    /// Ends the keeper, which resets unfinished connections. Waits for it if it is our child.
    pub fn stop(mut self) {
        let clock = Clock::start();
        let mut ready = Vec::new();
        let leave = self.send(&KeeperMessage::Leave, None);
        while leave.is_ok() && matches!(self.flush(), Ok(true)) {
            let left = (Instant::START + PATIENCE).saturating_since(clock.now());
            let source = (self.connection.as_fd(), Interest::ReadableOrWritable);
            if left.is_zero() || wait(&[source], Some(left), &mut ready).is_err() {
                break;
            }
        }
        // It may still be writing; the end of the line tells it the rest.
        let Self {
            connection, child, ..
        } = self;
        drop(connection);
        if let Some(mut child) = child
            && leave.is_ok()
        {
            // A child that is gone already needs no waiting for.
            drop(child.wait());
        }
    }

    fn send(&mut self, message: &KeeperMessage, socket: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let octets = message.encode();
        if !self.flush()? {
            match seqpacket::send(&self.connection, &octets, socket) {
                Err(error) if is_full(&error) => {}
                sent => return sent,
            }
        }
        let socket = socket
            .map(|socket| socket.try_clone_to_owned())
            .transpose()?;
        self.pending.push_back((octets, socket));
        Ok(())
    }
}

/// The line: readable when the keeper has said something, or has ended.
impl AsFd for Keeper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}

/// Whether the line, or the kernel's count of descriptors on their way, is full.
fn is_full(error: &io::Error) -> bool {
    let too_many = rustix::io::Errno::TOOMANYREFS.raw_os_error();
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
        || error.raw_os_error() == Some(too_many)
}

fn cut_note(record: &SocketRecord) -> SocketRecord {
    debug_assert!(record.note.len() <= NOTE_BYTES_MAX, "a note is too long");
    let mut record = record.clone();
    record.note.truncate(NOTE_BYTES_MAX);
    record
}

/// A keeper at a path.
enum Found {
    Nobody,
    Ours(Keeper, Vec<TakenSocket>),
    /// Another gateway has it.
    Busy,
}

enum Answer {
    All(Vec<TakenSocket>),
    Busy,
    Version(u8),
    Gone,
}

fn take_all(connection: &OwnedFd, config: KeeperConfig, patience: Duration) -> Answer {
    let hello = KeeperMessage::Take {
        keep_for: config.keep_for,
    };
    // A keeper that has a gateway may have said so and closed before this leaves: what it said is
    // read all the same, and a keeper that is gone has said nothing.
    drop(seqpacket::send(connection, &hello.encode(), None));
    let clock = Clock::start();
    let mut ready = Vec::new();
    let mut taken = Vec::new();
    loop {
        let (octets, socket) = match seqpacket::receive(connection) {
            Ok(Some(received)) => received,
            Err(error) if is_full(&error) => {
                let left = (Instant::START + patience).saturating_since(clock.now());
                let source = (connection.as_fd(), Interest::Readable);
                if left.is_zero() || wait(&[source], Some(left), &mut ready).is_err() {
                    return Answer::Gone;
                }
                continue;
            }
            Ok(None) | Err(_) => return Answer::Gone,
        };
        match (KeeperMessage::decode(&octets), socket) {
            (Ok(KeeperMessage::Socket { flow, record }), Some(socket)) => taken.push(TakenSocket {
                flow,
                record,
                socket: TcpStream::from(socket),
            }),
            (Ok(KeeperMessage::All), _) => return Answer::All(taken),
            (Ok(KeeperMessage::Busy), _) => return Answer::Busy,
            (Err(NoMessage::Version(found)), _) => return Answer::Version(found),
            (Ok(_) | Err(NoMessage::Malformed), _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_keeper_is_not_given_up_before_it_would_let_its_connections_go() {
        for seconds in [0, 5, 60, 600] {
            let keep_for = Duration::from_secs(seconds);
            let patience = patience(KeeperConfig { keep_for });
            assert!(patience >= keep_for, "{seconds}");
            assert!(patience >= PATIENCE, "{seconds}");
        }
    }
}
