//! A stream of octets, used as a `TcpStream` is.

use crate::board::{Board, LINE_BYTES_MAX, LineId, Patience, Shared};
use crate::signal::Signal;
#[cfg(feature = "tokio")]
use crate::signal::TaskSeat;
use fulmar_net::session::PublicKey;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

/// The program's waits.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    read: Option<Duration>,
    write: Option<Duration>,
    nonblocking: bool,
}

impl Waits {
    const fn patience(self, span: Option<Duration>) -> Patience {
        match (self.nonblocking, span) {
            (true, _) => Patience::None,
            (false, Some(span)) => Patience::For(span),
            (false, None) => Patience::Endless,
        }
    }
}

/// Octets in order, once, unaltered, both ways, to and from one peer.
///
/// Reading and writing work through `&Stream` too, so that one thread can do each. Both wait unless the stream is
/// [non-blocking](Stream::set_nonblocking). [`Stream::finish`] says whether everything has arrived; a stream that is
/// dropped without it is closed in the background, and nobody learns whether that succeeded. A peer that sends more
/// than was read of a dropped stream gets `ConnectionReset`.
///
/// # Errors
/// Reading and writing fail with `TimedOut` when the peer never answered, was silent for too long or a timeout
/// passed, with `ConnectionRefused` when it turned us away, with `ConnectionReset` when it broke off, does not listen
/// or has restarted, with `QuotaExceeded` when the endpoint knows or carries as many as it can, and with
/// `NotConnected` once the endpoint was dropped. Writing after [`Stream::finish`] fails with `BrokenPipe`.
#[derive(Debug)]
pub struct Stream {
    pub(crate) shared: Arc<Shared>,
    line: LineId,
    signal: Signal,
    #[cfg(feature = "tokio")]
    pub(crate) reading: TaskSeat,
    #[cfg(feature = "tokio")]
    pub(crate) writing: TaskSeat,
    peer: Option<PublicKey>,
    waits: Mutex<Waits>,
}

impl Stream {
    pub(crate) fn new(shared: Arc<Shared>, board: &Board, line: LineId, nonblocking: bool) -> Self {
        let state = board.lines.get(&line);
        let signal = state.map_or_else(Signal::default, |line| line.signal.clone());
        Self {
            #[cfg(feature = "tokio")]
            reading: signal.seat(),
            #[cfg(feature = "tokio")]
            writing: signal.seat(),
            signal,
            peer: state.and_then(|line| line.peer),
            shared,
            line,
            waits: Mutex::new(Waits {
                nonblocking,
                ..Waits::default()
            }),
        }
    }

    /// The peer's key; `None` where both ends have one key, or none.
    pub const fn peer(&self) -> Option<PublicKey> {
        self.peer
    }

    /// Ends the own direction and waits until the peer's end has received and confirmed everything that was written.
    /// Octets from the peer can still be read.
    ///
    /// # Errors
    /// Something written may not have arrived, for the reason that the error says. A non-blocking stream says
    /// `WouldBlock` until it is known: call again.
    pub fn finish(&self) -> io::Result<()> {
        self.shut(&mut self.shared.lock())?;
        let waits = self.waits();
        let patience = waits.patience(waits.write);
        let wanted = |board: &mut Board| self.try_finish(board);
        self.shared.wait(&self.signal, patience, wanted)
    }

    /// The time after which a read fails with `TimedOut`; `None`, as at first, for never.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) {
        self.change_waits(|waits| waits.read = timeout);
    }

    /// The time after which a write, or [`Stream::finish`], fails with `TimedOut`; `None`, as at first, for never.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) {
        self.change_waits(|waits| waits.write = timeout);
    }

    /// Whether calls that would have to wait fail with `WouldBlock` instead. They do from the beginning where the
    /// endpoint has [no thread](crate::Endpoint::without_thread).
    pub fn set_nonblocking(&self, nonblocking: bool) {
        self.change_waits(|waits| waits.nonblocking = nonblocking);
    }

    fn waits(&self) -> Waits {
        *self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change_waits(&self, change: impl FnOnce(&mut Waits)) {
        change(&mut self.waits.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Ends the own direction behind what was written.
    pub(crate) fn shut(&self, board: &mut Board) -> io::Result<()> {
        let line = board.line(self.line)?;
        if !line.finishing {
            line.finishing = true;
            self.shared.touch(board, self.line);
        }
        Ok(())
    }

    pub(crate) fn try_finish(&self, board: &mut Board) -> Option<io::Result<()>> {
        match board.line(self.line) {
            Ok(line) if line.all_sent => Some(Ok(())),
            Ok(line) => line.failure.as_ref().map(|failure| Err(failure.error())),
            Err(error) => Some(Err(error)),
        }
    }

    pub(crate) fn try_read(&self, board: &mut Board, out: &mut [u8]) -> Option<io::Result<usize>> {
        let line = match board.line(self.line) {
            Ok(line) => line,
            Err(error) => return Some(Err(error)),
        };
        if line.came.is_empty() {
            if line.peer_finished {
                return Some(Ok(0));
            }
            return line.failure.as_ref().map(|failure| Err(failure.error()));
        }
        let read = line.came.read(out);
        if line.more_to_read && line.came.len() <= LINE_BYTES_MAX / 2 {
            self.shared.touch(board, self.line);
        }
        Some(read)
    }

    pub(crate) fn try_write(&self, board: &mut Board, octets: &[u8]) -> Option<io::Result<usize>> {
        let line = match board.line(self.line) {
            Ok(line) => line,
            Err(error) => return Some(Err(error)),
        };
        if let Some(failure) = &line.failure {
            return Some(Err(failure.error()));
        }
        if line.finishing {
            let text = "the stream was finished";
            return Some(Err(io::Error::new(ErrorKind::BrokenPipe, text)));
        }
        let len = octets
            .len()
            .min(LINE_BYTES_MAX - line.out.len().min(LINE_BYTES_MAX));
        if len == 0 {
            return None;
        }
        line.out.extend(octets.get(..len)?);
        self.shared.touch(board, self.line);
        Some(Ok(len))
    }
}

impl Read for &Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        let waits = self.waits();
        let patience = waits.patience(waits.read);
        let wanted = |board: &mut Board| self.try_read(board, out);
        self.shared.wait(&self.signal, patience, wanted)
    }
}

impl Write for &Stream {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if octets.is_empty() {
            return Ok(0);
        }
        let waits = self.waits();
        let patience = waits.patience(waits.write);
        let wanted = |board: &mut Board| self.try_write(board, octets);
        self.shared.wait(&self.signal, patience, wanted)
    }

    /// Does nothing: octets leave by themselves. [`Stream::finish`] waits until they have arrived.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        (&*self).read(out)
    }
}

impl Write for Stream {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        (&*self).write(octets)
    }

    /// Does nothing: octets leave by themselves. [`Stream::finish`] waits until they have arrived.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut board = self.shared.lock();
        if let Ok(line) = board.line(self.line) {
            line.abandoned = true;
            line.finishing = true;
            line.unwanted = !line.came.is_empty() || line.more_to_read;
            line.came = std::collections::VecDeque::new();
        }
        board.forget_if_done(self.line);
        self.shared.touch(&mut board, self.line);
    }
}
