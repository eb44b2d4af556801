//! Stdin and stdout beside a loop that must not wait: a thread for each, and a bounded queue.

use crate::wait::Waker;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Octets in one piece.
const PIECE: usize = 1 << 16;
/// Pieces in the queue: with [`PIECE`], a megabyte.
const PIECES: usize = 16;

/// The next octets of a pipe, if there are any.
#[derive(Debug)]
pub(super) enum Pulled {
    /// The next octets, never none.
    Octets(Vec<u8>),
    /// Nothing yet; the waker is called when there is.
    Later,
    /// Its end.
    End,
}

/// The reading side of a pipe.
#[derive(Debug)]
pub(super) struct PipeSource {
    pieces: Receiver<io::Result<Vec<u8>>>,
}

impl PipeSource {
    /// Reads `pipe` in a thread that ends with it, and calls `waker` for every piece.
    pub(super) fn new(mut pipe: impl Read + Send + 'static, waker: Waker) -> Self {
        let (sender, pieces) = sync_channel(PIECES);
        std::thread::spawn(move || {
            loop {
                let mut piece = vec![0; PIECE];
                let read = match pipe.read(&mut piece) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    read => read,
                };
                let is_last = !matches!(read, Ok(1..));
                let read = read.map(|len| {
                    piece.truncate(len);
                    piece
                });
                // Either error means that nobody is interested any more.
                if sender.send(read).is_err() || waker.wake().is_err() || is_last {
                    return;
                }
            }
        });
        Self { pieces }
    }

    /// Takes the next piece.
    pub(super) fn pull(&mut self) -> io::Result<Pulled> {
        match self.pieces.try_recv() {
            Ok(Ok(piece)) if piece.is_empty() => Ok(Pulled::End),
            Ok(Ok(piece)) => Ok(Pulled::Octets(piece)),
            Ok(Err(error)) => Err(error),
            Err(TryRecvError::Empty) => Ok(Pulled::Later),
            Err(TryRecvError::Disconnected) => Ok(Pulled::End),
        }
    }
}

/// The writing side of a pipe.
#[derive(Debug)]
pub(super) struct PipeSink {
    pieces: Option<SyncSender<Vec<u8>>>,
    held: Vec<u8>,
    outcome: Outcome,
}

/// The outcome of the writing, once it is over.
type Outcome = Arc<Mutex<Option<io::Result<()>>>>;

impl PipeSink {
    /// Writes to `pipe` in a thread, and calls `waker` whenever there is room again.
    pub(super) fn new(mut pipe: impl Write + Send + 'static, waker: Waker) -> Self {
        let (sender, pieces) = sync_channel::<Vec<u8>>(PIECES);
        let outcome = Outcome::default();
        let told = Arc::clone(&outcome);
        std::thread::spawn(move || {
            let mut write = || -> io::Result<()> {
                for piece in &pieces {
                    pipe.write_all(&piece)?;
                    waker.wake()?;
                }
                pipe.flush()
            };
            let outcome = write();
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
            // If the loop is gone, nobody is left to be woken.
            drop(waker.wake());
        });
        Self {
            pieces: Some(sender),
            held: Vec::new(),
            outcome,
        }
    }

    /// Takes all of `octets`; ask [`PipeSink::has_room`] first.
    pub(super) fn push(&mut self, octets: &[u8]) {
        self.held.extend_from_slice(octets);
    }

    /// Whether more may be pushed: what is held is less than a piece, or the thread took it.
    pub(super) fn has_room(&mut self) -> bool {
        if self.held.len() >= PIECE {
            self.hand_over();
        }
        self.held.len() < PIECE
    }

    fn hand_over(&mut self) {
        let Some(sender) = &self.pieces else { return };
        match sender.try_send(std::mem::take(&mut self.held)) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(back)) => self.held = back,
        }
    }

    /// The error after which nothing more can be written; returned once.
    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*outcome, Some(Err(_))) {
            outcome.take()?.err()
        } else {
            None
        }
    }

    /// Hands over the rest. `None` until everything has been written.
    pub(super) fn finish(&mut self) -> Option<io::Result<()>> {
        if !self.held.is_empty() {
            self.hand_over();
        }
        if self.held.is_empty() {
            self.pieces = None;
        }
        self.outcome
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::{Interest, wait, waker};
    use std::os::fd::AsFd;

    #[test]
    fn a_pipe_gives_all_its_octets_and_then_its_end() {
        let octets: Vec<u8> = (0..=250_u8).cycle().take(3 * PIECE + 5).collect();
        let (waker, wake_up) = waker().unwrap();
        let mut source = PipeSource::new(io::Cursor::new(octets.clone()), waker);
        let mut got = Vec::new();
        loop {
            match source.pull().unwrap() {
                Pulled::Octets(piece) => got.extend(piece),
                Pulled::End => break,
                Pulled::Later => {
                    wait(
                        &[(wake_up.as_fd(), Interest::Readable)],
                        None,
                        &mut Vec::new(),
                    )
                    .unwrap();
                    wake_up.clear();
                }
            }
        }
        assert!(got == octets);
    }

    #[test]
    fn a_sink_writes_everything_and_says_when_the_reader_is_gone() {
        let (mut read_end, write_end) = io::pipe().unwrap();
        let (waker, _wake_up) = waker().unwrap();
        let mut sink = PipeSink::new(write_end, waker.try_clone().unwrap());
        sink.push(b"all of it");
        while sink.finish().is_none() {
            std::thread::yield_now();
        }
        let mut got = String::new();
        read_end.read_to_string(&mut got).unwrap();
        assert_eq!(got, "all of it");

        let (read_end, write_end) = io::pipe().unwrap();
        drop(read_end);
        let mut sink = PipeSink::new(write_end, waker);
        sink.push(&vec![0; PIECE]);
        assert!(sink.has_room(), "the queue takes it");
        let error = loop {
            if let Some(error) = sink.take_error() {
                break error;
            }
            std::thread::yield_now();
        };
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    }
}
