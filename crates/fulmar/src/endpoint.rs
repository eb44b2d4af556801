//! A socket, its thread or none, and whom it talks to.

use crate::board::{BACKLOG_MAX, Board, Group, Line, LineFailure, LineId, Order, Patience, Shared};
use crate::config::Config;
use crate::driver::{Driver, new_driver};
use crate::gateway_stream::GatewayStream;
use crate::messages::{Messages, open_line};
use crate::signal::Signal;
use crate::stream::Stream;
use fulmar_net::session::{Entropy, PublicKey, SecretKey};
use std::fmt;
use std::io::{self, Error, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Orders that wait for the driver, at most.
const ORDERS_MAX: usize = 1_024;
/// The priority of a [`Messages`]' first line.
const FIRST_PRIORITY: u8 = 0;

/// Makes a key of one's own. Its text form is [`SecretKey::to_text`]; keep it secret, and give others
/// [`SecretKey::public`].
///
/// # Errors
/// The system has no random numbers.
pub fn new_secret_key() -> io::Result<SecretKey> {
    Ok(SecretKey::generate(&mut Entropy::from_system()?))
}

/// One UDP port, and all streams and messages through it.
///
/// A thread in the background moves the datagrams, unless the endpoint was made [without](Endpoint::without_thread).
/// Dropping the endpoint waits for three seconds at most until what was written is confirmed, tells the peers, and
/// ends the streams that are left; [`Stream::finish`] before that is how to be sure.
pub struct Endpoint {
    shared: Arc<Shared>,
    local: SocketAddr,
    by_key: bool,
    nonblocking: bool,
    entropy: Mutex<Entropy>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Endpoint");
        text.field("local", &self.local).finish_non_exhaustive()
    }
}

fn one_address(address: impl ToSocketAddrs) -> io::Result<SocketAddr> {
    let first = address.to_socket_addrs()?.next();
    first.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "the name has no address"))
}

impl Endpoint {
    /// Binds a UDP port at `address`, port 0 for any, and starts the thread that drives it.
    ///
    /// # Errors
    /// `InvalidInput` if the settings contradict each other or the name has no address; otherwise the system's, as
    /// `AddrInUse` or `PermissionDenied`.
    pub fn bind(address: impl ToSocketAddrs, config: Config) -> io::Result<Self> {
        let (mut endpoint, driver) = Self::without_thread(address, config)?;
        let thread = std::thread::Builder::new().name("fulmar".to_owned());
        endpoint.thread = Some(thread.spawn(move || driver.run())?);
        endpoint.nonblocking = false;
        Ok(endpoint)
    }

    /// Binds a UDP port for a program that has an event loop of its own: nothing moves but in [`Driver::step`].
    /// Streams and messages are non-blocking from the beginning.
    ///
    /// ```
    /// use fulmar::{Config, Endpoint, PublicKey};
    /// use std::io::{ErrorKind, Result, Write};
    /// fn greet(config: Config, to: &str, key: &PublicKey) -> Result<()> {
    ///     let (endpoint, mut driver) = Endpoint::without_thread("0.0.0.0:0", config)?;
    ///     let mut stream = endpoint.connect(to, key)?;
    ///     let (mut left, mut done): (&[u8], _) = (b"hello", false);
    ///     while !done {
    ///         // Or `poll`, with its descriptor and its next deadline among others, and then `step` with a zero.
    ///         driver.step(None)?;
    ///         done = left.is_empty();
    ///         match if done { stream.finish().map(|()| 0) } else { stream.write(left) } {
    ///             Err(error) if error.kind() == ErrorKind::WouldBlock => done = false,
    ///             written => left = &left[written?..],
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Endpoint::bind`].
    pub fn without_thread(
        address: impl ToSocketAddrs,
        config: Config,
    ) -> io::Result<(Self, Driver)> {
        let by_key = config.identity.only_peer().is_none();
        let (shared, driver) = new_driver(one_address(address)?, config)?;
        let endpoint = Self {
            local: driver.local()?,
            shared,
            by_key,
            nonblocking: true,
            entropy: Mutex::new(Entropy::from_system()?),
            thread: None,
        };
        Ok((endpoint, driver))
    }

    /// The address that the port is bound to.
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Opens a stream to the end at `address` that has `key`. Where both ends have one key, or none, `key` is `None`.
    ///
    /// The call does not wait. Octets that are written at once travel as early as the session allows; whether the
    /// peer is there, and is the right one, the first read or [`Stream::finish`] says.
    ///
    /// # Errors
    /// `InvalidInput` if the name has no address of the endpoint's family, or `key` is missing or one too many;
    /// `QuotaExceeded` if 1024 calls wait for the driver; the resolver's; the driver's, if it is over.
    pub fn connect<'k>(
        &self,
        address: impl ToSocketAddrs,
        key: impl Into<Option<&'k PublicKey>>,
    ) -> io::Result<Stream> {
        self.open_stream(self.callee(address, key.into())?, false)
    }

    /// Opens a TCP connection from the gateway at `address` that has `key` to the server at `to`: `host:port`, whose name
    /// the gateway resolves. The gateway's file has this end as a `[[peer]]`, and its `allow` permits the server.
    ///
    /// The call does not wait. The first octets travel with the opening; whether the server is there, the first read or
    /// [`GatewayStream::finish`] says. It waits in its calls also where the endpoint has no thread, so it needs one.
    ///
    /// # Errors
    /// As [`Endpoint::connect`]; `InvalidInput` if `to` is no destination, `Unsupported` where the endpoint has no thread.
    pub fn connect_through<'k>(
        &self,
        address: impl ToSocketAddrs,
        key: impl Into<Option<&'k PublicKey>>,
        to: &str,
    ) -> io::Result<GatewayStream> {
        if self.nonblocking {
            let text = "a flow through a gateway waits, and this endpoint has no thread; use Endpoint::bind";
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        let to = GatewayStream::destination(to)?;
        let stream = self.open_stream(self.callee(address, key.into())?, true)?;
        let mut entropy = self.entropy.lock().unwrap_or_else(PoisonError::into_inner);
        GatewayStream::open(stream, to, &mut entropy)
    }

    fn open_stream(
        &self,
        (remote, peer): (SocketAddr, Option<PublicKey>),
        to_gateway: bool,
    ) -> io::Result<Stream> {
        let mut board = self.shared.lock();
        Self::check_room(&board)?;
        let line = board.add_line(Line {
            to_gateway,
            ..Line::new(peer, None)
        });
        let priority = FIRST_PRIORITY;
        board.orders.push_back(Order {
            line,
            peer,
            remote,
            priority,
        });
        self.shared.call(&mut board);
        let shared = Arc::clone(&self.shared);
        Ok(Stream::new(shared, &board, line, self.nonblocking))
    }

    /// Opens a way for messages to the end at `address`, as [`Endpoint::connect`] does for a stream.
    ///
    /// # Errors
    /// As [`Endpoint::connect`].
    pub fn messages<'k>(
        &self,
        address: impl ToSocketAddrs,
        key: impl Into<Option<&'k PublicKey>>,
    ) -> io::Result<Messages> {
        let (remote, peer) = self.callee(address, key.into())?;
        let mut entropy = self.entropy.lock().unwrap_or_else(PoisonError::into_inner);
        let id = u64::from_be_bytes(entropy.array());
        drop(entropy);
        let mut board = self.shared.lock();
        Self::check_room(&board)?;
        let group = board.add_group(Group {
            peer,
            remote: Some(remote),
            id,
            ..Group::default()
        });
        open_line(&self.shared, &mut board, group, FIRST_PRIORITY);
        let shared = Arc::clone(&self.shared);
        Ok(Messages::new(shared, &board, group, self.nonblocking))
    }

    /// Takes the streams and messages that peers open from now on. Without a listener they are turned away.
    ///
    /// # Errors
    /// `AddrInUse` if there is a listener already.
    pub fn listen(&self) -> io::Result<Listener> {
        let mut board = self.shared.lock();
        if board.listening {
            return Err(Error::new(
                ErrorKind::AddrInUse,
                "the endpoint has a listener",
            ));
        }
        board.listening = true;
        Ok(Listener {
            signal: board.accepting.clone(),
            shared: Arc::clone(&self.shared),
            nonblocking: self.nonblocking,
        })
    }

    /// The latest epoch that a peer with early data began: for [`Config::epoch_seen`] after a restart. It grows with
    /// each start of a peer, and has grown before the octets of that start can be read: look after reading, and write
    /// it down before acting on what was read.
    pub fn epoch_seen(&self) -> u64 {
        self.shared.lock().epoch_seen
    }

    fn callee(
        &self,
        address: impl ToSocketAddrs,
        key: Option<&PublicKey>,
    ) -> io::Result<(SocketAddr, Option<PublicKey>)> {
        if key.is_some() != self.by_key {
            let text = if self.by_key {
                "name the peer's public key: this end knows others by theirs"
            } else {
                "give None instead of a public key: the ends have no keys of their own"
            };
            return Err(Error::new(ErrorKind::InvalidInput, text));
        }
        // A socket at `[::]` takes both families.
        let both = self.local.is_ipv6() && self.local.ip().is_unspecified();
        let fits = |remote: &SocketAddr| both || remote.is_ipv4() == self.local.is_ipv4();
        let remote = address.to_socket_addrs()?.find(fits);
        let no_address = || {
            Error::new(
                ErrorKind::InvalidInput,
                "no address of the endpoint's family",
            )
        };
        Ok((remote.ok_or_else(no_address)?, key.copied()))
    }

    fn check_room(board: &Board) -> io::Result<()> {
        if let Some(over) = &board.over {
            return Err(over.error());
        }
        if board.orders.len() >= ORDERS_MAX {
            let text = "1024 calls wait for the driver: is it stepped?";
            return Err(Error::new(ErrorKind::QuotaExceeded, text));
        }
        Ok(())
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        {
            let mut board = self.shared.lock();
            board.leaving = true;
            self.shared.call(&mut board);
        }
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, its streams say that they are over.
            let ended = thread.join();
            if ended.is_err() {
                let text = "the driver's thread is gone";
                self.shared
                    .lock()
                    .end(&LineFailure::new(ErrorKind::Other, text));
            }
        }
    }
}

/// The streams and messages that peers open.
#[derive(Debug)]
pub struct Listener {
    pub(crate) shared: Arc<Shared>,
    pub(crate) signal: Signal,
    nonblocking: bool,
}

impl Listener {
    /// Waits for the next stream; [`Stream::peer`] says whose it is. 128 wait to be accepted at most, others are turned
    /// away.
    ///
    /// # Errors
    /// `TimedOut` after `timeout`; without a thread `WouldBlock` at once, whatever `timeout` is; `NotConnected` once the endpoint was dropped.
    pub fn accept(&self, timeout: Option<Duration>) -> io::Result<Stream> {
        self.next(timeout, |board| self.next_stream(board))
    }

    pub(crate) fn next_stream(&self, board: &mut Board) -> Option<Stream> {
        let line = board.streams_to_accept.pop_front()?;
        let shared = Arc::clone(&self.shared);
        Some(Stream::new(shared, board, line, self.nonblocking))
    }

    /// Waits for the next [`Messages`] of a peer. They stay whole when the listener is dropped.
    ///
    /// # Errors
    /// As [`Listener::accept`].
    pub fn accept_messages(&self, timeout: Option<Duration>) -> io::Result<Messages> {
        self.next(timeout, |board| self.next_messages(board))
    }

    pub(crate) fn next_messages(&self, board: &mut Board) -> Option<Messages> {
        let group = board.groups_to_accept.pop_front()?;
        let shared = Arc::clone(&self.shared);
        Some(Messages::new(shared, board, group, self.nonblocking))
    }

    fn next<T>(
        &self,
        timeout: Option<Duration>,
        mut take: impl FnMut(&mut Board) -> Option<T>,
    ) -> io::Result<T> {
        let patience = match (self.nonblocking, timeout) {
            (true, _) => Patience::None,
            (false, Some(span)) => Patience::For(span),
            (false, None) => Patience::Endless,
        };
        let next = |board: &mut Board| or_over(take(board), board);
        self.shared.wait(&self.signal, patience, next)
    }
}

/// The result that is there, or the reason why none will come any more.
pub(crate) fn or_over<T>(next: Option<T>, board: &Board) -> Option<io::Result<T>> {
    let over = || Some(Err(board.over.as_ref()?.error()));
    next.map(Ok).or_else(over)
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut board = self.shared.lock();
        board.listening = false;
        debug_assert!(board.streams_to_accept.len() <= BACKLOG_MAX);
        // What nobody accepted ends with an error at the peer.
        let groups = core::mem::take(&mut board.groups_to_accept);
        let groups = groups.into_iter().filter_map(|id| board.dismiss(id));
        let mut lines: Vec<LineId> = groups.flat_map(|group| group.lines.into_values()).collect();
        lines.extend(core::mem::take(&mut board.streams_to_accept));
        for id in lines {
            if let Ok(line) = board.line(id) {
                line.refuse();
            }
            self.shared.touch(&mut board, id);
        }
    }
}
