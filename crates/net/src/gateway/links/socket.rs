//! A Unix socket to which whoever speaks for a link writes lines.

use super::heard::{Heard, LinkWord};
use super::line::{LINE_BYTES_MAX, LineError, Message};
use crate::gateway::sockets::{Poller, Token};
use fulmar_proto::units::Instant;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Writers at once; further ones are turned away.
const WRITERS_MAX: usize = 4;
/// Octets that are read of a writer in one turn; more of them ring again.
const OCTETS_PER_TURN: usize = 16_384;
/// Users of this gateway's group may write.
const MODE: u32 = 0o660;

fn take(heard: &mut Heard, read: Result<Message, LineError>) {
    match read {
        Ok(message) => {
            heard.messages += 1;
            heard.word = Some(LinkWord::News(message.news, message.valid_for));
        }
        Err(error) => {
            heard.wrong += 1;
            heard.fault.get_or_insert_with(|| error.to_string());
        }
    }
}

/// The octets of a line that has not ended.
#[derive(Debug, Default)]
pub(super) struct Lines {
    begun: Vec<u8>,
    /// Whether the line is too long, and passed over up to its end.
    is_long: bool,
}

impl Lines {
    /// Takes octets, and what they end.
    pub(super) fn take(&mut self, now: Instant, octets: &[u8], heard: &mut Heard) {
        for piece in octets.split_inclusive(|octet| *octet == b'\n') {
            let (line, ends) = piece
                .strip_suffix(b"\n")
                .map_or((piece, false), |line| (line, true));
            if !self.is_long {
                let room = (LINE_BYTES_MAX + 1).saturating_sub(self.begun.len());
                self.begun.extend(line.iter().take(room));
                self.is_long = self.begun.len() > LINE_BYTES_MAX;
            }
            if !ends {
                continue;
            }
            let is_empty = self.begun.iter().all(u8::is_ascii_whitespace);
            if self.is_long || !is_empty {
                take(heard, Message::read(now, &self.begun));
            }
            self.begun.clear();
            self.is_long = false;
        }
    }
}

#[derive(Debug)]
struct Writer {
    stream: UnixStream,
    lines: Lines,
}

/// The socket of one link, and who writes to it.
#[derive(Debug)]
pub(super) struct LinkSocket {
    listener: UnixListener,
    path: PathBuf,
    writers: Vec<Writer>,
    /// A descriptor that is given up for the moment in which there is no other.
    spare: Option<OwnedFd>,
}

/// Takes away a socket that a dead process left. Whatever else is there stays.
fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    let is_dead = || {
        let refused = UnixStream::connect(path).err().map(|error| error.kind());
        refused == Some(io::ErrorKind::ConnectionRefused)
    };
    if is_socket && is_dead() {
        fs::remove_file(path)?;
    }
    Ok(())
}

impl LinkSocket {
    /// Listens at `path`.
    ///
    /// # Errors
    /// The directory is missing or not ours, or somebody else listens there.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        remove_stale(path)?;
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(MODE))?;
        listener.set_nonblocking(true)?;
        let spare = Some(listener.as_fd().try_clone_to_owned()?);
        Ok(Self {
            spare,
            listener,
            path: path.to_owned(),
            writers: Vec::new(),
        })
    }

    /// Takes who came, and reads what was written.
    pub(super) fn read(&mut self, now: Instant, poller: &Poller, token: Token) -> Heard {
        self.accept(poller, token);
        let mut heard = Heard::default();
        let mut octets = [0_u8; OCTETS_PER_TURN];
        self.writers
            .retain_mut(|writer| match writer.stream.read(&mut octets) {
                Ok(0) => false,
                Ok(count) => {
                    let octets = octets.get(..count).unwrap_or_default();
                    writer.lines.take(now, octets, &mut heard);
                    true
                }
                Err(error) => matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ),
            });
        heard
    }

    fn accept(&mut self, poller: &Poller, token: Token) {
        // As many as may come at once; what is left rings again.
        for _ in 0..WRITERS_MAX {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.turn_away(),
            };
            let has_room = self.writers.len() < WRITERS_MAX;
            let is_watched = has_room
                && stream.set_nonblocking(true).is_ok()
                && poller.watch_level(&stream, token).is_ok();
            // One that is dropped sees the end of it.
            if is_watched {
                self.writers.push(Writer {
                    stream,
                    lines: Lines::default(),
                });
            }
        }
    }

    /// Ends the connection of whoever waits while descriptors are short: left alone it would ring without end.
    fn turn_away(&mut self) {
        self.spare = None;
        drop(self.listener.accept());
        self.spare = self.listener.as_fd().try_clone_to_owned().ok();
    }

    /// Whether somebody is there who may write.
    pub(super) const fn has_writer(&self) -> bool {
        !self.writers.is_empty()
    }
}

impl AsFd for LinkSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for LinkSocket {
    fn drop(&mut self) {
        // Left behind, the next start takes it away.
        drop(fs::remove_file(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const GOOD: &[u8] = b"{\"v\":1,\"up\":true}\n";

    #[test]
    fn lines_are_whole_however_they_come_in_pieces() {
        let mut lines = Lines::default();
        let mut heard = Heard::default();
        for octet in GOOD.iter().chain(GOOD) {
            lines.take(Instant::START, core::slice::from_ref(octet), &mut heard);
        }
        assert_eq!((heard.messages, heard.wrong), (2, 0));
        lines.take(Instant::START, b"\n \r\n{\"v\":1}\r\nno\n", &mut heard);
        assert_eq!(
            (heard.messages, heard.wrong),
            (3, 1),
            "empty lines are none"
        );
    }

    #[test]
    fn a_line_too_long_counts_once_and_holds_no_more_than_its_bound() {
        let mut lines = Lines::default();
        let mut heard = Heard::default();
        for _ in 0..1_000 {
            lines.take(Instant::START, &[b'x'; 1_000], &mut heard);
            assert!(lines.begun.len() <= LINE_BYTES_MAX + 1);
        }
        assert_eq!((heard.messages, heard.wrong), (0, 0), "it has not ended");
        lines.take(Instant::START, b"\n", &mut heard);
        lines.take(Instant::START, GOOD, &mut heard);
        assert_eq!((heard.messages, heard.wrong), (1, 1));
        assert!(heard.fault.expect("a word").contains("longer than"));
    }

    #[test]
    fn a_socket_that_a_dead_gateway_left_is_taken_and_one_in_use_is_not() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("link.sock");
        // Dropped without its file being removed.
        drop(UnixListener::bind(&path).expect("free"));
        let first = LinkSocket::open(&path).expect("nobody listens");
        let taken = LinkSocket::open(&path).expect_err("somebody does");
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop(first);
        fs::write(&path, b"a file").expect("written");
        LinkSocket::open(&path).expect_err("it is no socket");
        assert_eq!(fs::read(&path).expect("still there"), b"a file");
    }

    #[test]
    fn a_fifth_writer_is_turned_away_and_one_that_leaves_makes_room() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("link.sock");
        let poller = Poller::new().expect("a poller");
        let mut socket = LinkSocket::open(&path).expect("free");
        let token = Token(1);
        let mut writers: Vec<UnixStream> = (0..5)
            .map(|_| UnixStream::connect(&path).expect("it listens"))
            .collect();
        for _ in 0..2 {
            socket.read(Instant::START, &poller, token);
        }
        assert_eq!(socket.writers.len(), WRITERS_MAX);
        let mut last = writers.pop().expect("five");
        assert_eq!(last.read(&mut [0; 1]).expect("an end"), 0);
        for writer in &mut writers {
            writer.write_all(GOOD).expect("it is read");
        }
        assert_eq!(socket.read(Instant::START, &poller, token).messages, 4);
        drop(writers);
        socket.read(Instant::START, &poller, token);
        assert!(!socket.has_writer());
    }
}
