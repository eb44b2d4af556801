//! The keeper itself: a loop that holds sockets until a gateway takes them, or until no gateway has come in time.

use super::message::KeeperMessage;
use super::record::SocketRecord;
use super::seqpacket;
use super::tcp_info::{State, TcpInfo};
use crate::clock::Clock;
use crate::descriptors;
use crate::wait::{Interest, Ready, wait};
use core::time::Duration;
use fulmar_proto::splice::FlowId;
use fulmar_proto::units::Instant;
use rustix::io::Errno;
use rustix::net::SocketFlags;
use socket2::SockRef;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};

/// A keeper's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeeperConfig {
    /// The time for which it stays without a gateway, until a gateway tells another one.
    pub keep_for: Duration,
}

impl Default for KeeperConfig {
    fn default() -> Self {
        Self {
            keep_for: Duration::from_secs(60),
        }
    }
}

/// The longest pause in reading of a gateway that takes the keeper's sockets.
const PATIENCE: Duration = Duration::from_secs(10);
/// Messages in one turn: more than the line holds, so that a dead gateway's are all heard.
const MESSAGES_PER_TURN: usize = 65_536;

/// Names of accepted clients are numbers from here on: ports have small ones, and no flow's name begins with eight
/// zeros.
const FIRST_CLIENT: u64 = 1 << 63;

struct Held {
    socket: OwnedFd,
    record: SocketRecord,
}

/// The outcome of a look at the connection with the gateway.
#[derive(PartialEq, Eq)]
enum Heard {
    /// It is there.
    Here,
    /// It died.
    Gone,
    /// It ended, and said so.
    Left,
}

struct Keeper {
    held: BTreeMap<FlowId, Held>,
    /// Clients accepted so far.
    accepted: u64,
    keep_for: Duration,
}

/// Runs a keeper on the listening socket that [`super::Keeper::start`] made, until there was no
/// gateway for `keep_for` or one said that all is over. Then connections that are not finished
/// are reset.
///
/// # Errors
/// The listening socket is none.
pub fn run(listener: &OwnedFd, config: KeeperConfig) -> io::Result<()> {
    // Of a session of its own, so that a terminal's interrupt and hang-up are the gateway's only.
    // One that is started as a session's leader has that already.
    let _ = rustix::process::setsid();
    // For `ps`; the file that was executed has no name of its own.
    let _ = rustix::thread::set_name(c"fulmar-keeper");
    descriptors::raise_limit();
    let clock = Clock::start();
    let mut keeper = Keeper {
        held: BTreeMap::new(),
        accepted: 0,
        keep_for: config.keep_for,
    };
    let mut gateway: Option<OwnedFd> = None;
    // A gateway of another version takes nothing, and is started again and again while our ports are in its way.
    let mut was_understood = false;
    let mut alone_since = clock.now();
    let mut ready: Vec<Ready> = Vec::new();
    loop {
        let mut sources = vec![(listener.as_fd(), Interest::Readable)];
        let mut limit = None;
        if let Some(gateway) = &gateway {
            sources.push((gateway.as_fd(), Interest::Readable));
        } else {
            let left = (alone_since + keeper.keep_for).saturating_since(clock.now());
            if left.is_zero() {
                break;
            }
            limit = Some(left);
        }
        wait(&sources, limit, &mut ready)?;
        // In this order, since a caller while the old gateway was alive is a second gateway, not the next.
        let mut caller = match seqpacket::accept(listener) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            accepted => accepted?,
        };
        if let Some(connection) = gateway.take() {
            match keeper.hear(&connection, &mut was_understood) {
                Heard::Here => gateway = Some(connection),
                Heard::Gone if was_understood => alone_since = clock.now(),
                Heard::Gone => {}
                Heard::Left => break,
            }
        }
        if gateway.is_none()
            && let Some(next) = caller.take()
        {
            gateway = Some(next);
            was_understood = false;
        }
        if let Some(second) = caller {
            // A gateway that does not get the message sees the end of the line.
            drop(seqpacket::send(
                &second,
                &KeeperMessage::Busy.encode(),
                None,
            ));
        }
    }
    for held in keeper.held.into_values() {
        end(held.socket);
    }
    Ok(())
}

impl Keeper {
    /// Handles the gateway's messages in order: those of a dead gateway are handled before its end.
    fn hear(&mut self, gateway: &OwnedFd, was_understood: &mut bool) -> Heard {
        for _ in 0..MESSAGES_PER_TURN {
            let (octets, socket) = match seqpacket::receive(gateway) {
                Ok(Some(received)) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Heard::Here,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Ok(None) | Err(_) => return Heard::Gone,
            };
            let message = KeeperMessage::decode(&octets);
            *was_understood |= message.is_ok();
            match (message, socket) {
                (Ok(KeeperMessage::Socket { flow, record }), Some(socket)) => {
                    self.held.insert(flow, Held { socket, record });
                }
                // A socket for which there was no descriptor left has a record all the same.
                (
                    Ok(
                        KeeperMessage::Record { flow, record }
                        | KeeperMessage::Socket { flow, record },
                    ),
                    _,
                ) => {
                    if let Some(held) = self.held.get_mut(&flow) {
                        held.record = record;
                    }
                }
                (Ok(KeeperMessage::Forget { flow }), _) => drop(self.held.remove(&flow)),
                (Ok(KeeperMessage::Take { keep_for }), _) => {
                    self.keep_for = keep_for;
                    // A gateway that died meanwhile has sent more before its end.
                    let _ = self.give_all(gateway);
                }
                (Ok(KeeperMessage::Accept { port, record }), _) => {
                    // A gateway that died meanwhile has sent more before its end.
                    let _ = self.accept(gateway, port, record);
                }
                (
                    Ok(KeeperMessage::Claim {
                        client,
                        flow,
                        record,
                    }),
                    _,
                ) => {
                    if let Some(Held { socket, .. }) = self.held.remove(&client) {
                        self.held.insert(flow, Held { socket, record });
                    }
                }
                (Ok(KeeperMessage::Leave), _) => return Heard::Left,
                // Another version: our answer tells it ours.
                (Err(_), _) => {
                    let _ = send(gateway, &KeeperMessage::All, None);
                }
                (
                    Ok(KeeperMessage::All | KeeperMessage::Busy | KeeperMessage::NoClient { .. }),
                    _,
                ) => {}
            }
        }
        Heard::Here
    }

    /// Accepts a client for the gateway, and has it from its first moment.
    fn accept(&mut self, gateway: &OwnedFd, port: FlowId, record: SocketRecord) -> io::Result<()> {
        let accepted = self.held.get(&port).map_or(Err(Errno::BADF), |port| {
            rustix::net::accept_with(&port.socket, SocketFlags::CLOEXEC)
        });
        let socket = match accepted {
            Ok(socket) => socket,
            Err(error) => {
                let error = error.raw_os_error();
                return send(gateway, &KeeperMessage::NoClient { error }, None);
            }
        };
        let client = FlowId(u128::from(FIRST_CLIENT + self.accepted).to_be_bytes());
        self.accepted += 1;
        let message = KeeperMessage::Socket {
            flow: client,
            record: record.clone(),
        };
        let sent = send(gateway, &message, Some(&socket));
        self.held.insert(client, Held { socket, record });
        sent
    }

    fn give_all(&self, gateway: &OwnedFd) -> io::Result<()> {
        for (flow, held) in &self.held {
            let message = KeeperMessage::Socket {
                flow: *flow,
                record: held.record.clone(),
            };
            send(gateway, &message, Some(&held.socket))?;
        }
        send(gateway, &KeeperMessage::All, None)
    }
}

/// Sends a message, and waits for room if there is none.
fn send(gateway: &OwnedFd, message: &KeeperMessage, socket: Option<&OwnedFd>) -> io::Result<()> {
    let octets = message.encode();
    let clock = Clock::start();
    let mut ready = Vec::new();
    loop {
        match seqpacket::send(gateway, &octets, socket.map(AsFd::as_fd)) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            sent => return sent,
        }
        let left = (Instant::START + PATIENCE).saturating_since(clock.now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        let source = (gateway.as_fd(), Interest::ReadableOrWritable);
        wait(&[source], Some(left), &mut ready)?;
    }
}

/// Closes a connection whose gateway did not come back: as it is if our end was sent, since the
/// kernel then delivers the rest; else with a reset, since an end would be a lie.
fn end(socket: OwnedFd) {
    let ended = TcpInfo::of(&socket)
        .is_ok_and(|info| !matches!(info.state, State::Open | State::EndReceived));
    // Without it the other host sees the wrong one, and nothing is left to do about it.
    drop(SockRef::from(&socket).set_linger((!ended).then_some(Duration::ZERO)));
    drop(socket);
}
