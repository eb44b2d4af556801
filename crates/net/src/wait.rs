//! The one place where a thread sleeps: until a socket is ready, another thread calls, or time is up.
//!
//! `ppoll` takes nanoseconds, so a pacer's deadline of 200 us is met, which `epoll_wait` with its
//! milliseconds cannot. Linux additionally delays wake-ups by the thread's timer slack (50 us by
//! default) to save power; [`precise_timers`] gives that up for this thread.

use core::num::NonZeroU64;
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// The events to wait for on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Something can be read.
    Readable,
    /// Something can be read, or written again.
    ReadableOrWritable,
}

/// The events that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// There is something to read, or an error to fetch.
    pub readable: bool,
    /// A write may succeed.
    pub writable: bool,
}

/// Wakes a loop that sleeps in [`wait`]; may be cloned and used from any thread.
#[derive(Debug)]
pub struct Waker(UnixStream);

impl Waker {
    /// Makes the other end readable. A full pipe is already a wake-up.
    ///
    /// # Errors
    /// The sleeping end is gone.
    pub fn wake(&self) -> io::Result<()> {
        match (&self.0).write(&[1]) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// Another handle to the same loop.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }
}

/// For a signal handler that writes to a descriptor.
impl From<Waker> for std::os::fd::OwnedFd {
    fn from(waker: Waker) -> Self {
        waker.0.into()
    }
}

/// The sleeping end of a [`Waker`].
#[derive(Debug)]
pub struct WakeUp(UnixStream);

impl WakeUp {
    /// Another handle to the same end, for the next of several loops that sleep one after the other.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Forgets the calls so far.
    pub fn clear(&self) {
        let mut sink = [0_u8; 64];
        while matches!((&self.0).read(&mut sink), Ok(read) if read > 0) {}
    }
}

impl AsFd for WakeUp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A connected pair.
///
/// # Errors
/// No descriptor is left.
pub fn waker() -> io::Result<(Waker, WakeUp)> {
    let (calling, sleeping) = UnixStream::pair()?;
    calling.set_nonblocking(true)?;
    sleeping.set_nonblocking(true)?;
    Ok((Waker(calling), WakeUp(sleeping)))
}

/// Asks the kernel not to round this thread's wake-ups.
///
/// # Errors
/// The kernel refuses; timing is then coarser by its default slack of 50 us.
pub fn precise_timers() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?)
}

/// Sleeps until one of `sources` is ready or `timeout` has passed (`None`: for ever), and says what
/// came for each, in order. A signal ends the sleep with nothing ready.
///
/// # Errors
/// The kernel refuses to poll, for instance for lack of memory.
pub fn wait(
    sources: &[(BorrowedFd<'_>, Interest)],
    timeout: Option<Duration>,
    ready: &mut Vec<Ready>,
) -> io::Result<()> {
    let mut polled: Vec<PollFd<'_>> = sources
        .iter()
        .map(|&(source, interest)| {
            let flags = match interest {
                Interest::Readable => PollFlags::IN,
                Interest::ReadableOrWritable => PollFlags::IN | PollFlags::OUT,
            };
            PollFd::from_borrowed_fd(source, flags)
        })
        .collect();
    let timeout = timeout.map(|span| Timespec {
        tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(span.subsec_nanos()),
    });
    ready.clear();
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => {
            ready.resize(sources.len(), Ready::default());
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    }
    ready.extend(polled.iter().map(|source| {
        let came = source.revents();
        Ready {
            readable: came.intersects(PollFlags::IN | PollFlags::ERR | PollFlags::HUP),
            writable: came.contains(PollFlags::OUT),
        }
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_from_another_thread_ends_the_sleep_and_is_forgotten_once_cleared() {
        let (waker, wake_up) = waker().unwrap();
        std::thread::spawn(move || waker.wake().unwrap());
        let mut ready = Vec::new();
        wait(&[(wake_up.as_fd(), Interest::Readable)], None, &mut ready).unwrap();
        assert!(ready[0].readable);
        wake_up.clear();
        // The caller is gone, which poll reports as readable too; a live one would be silent.
        let (alive, silent) = super::waker().unwrap();
        alive.wake().unwrap();
        silent.clear();
        wait(
            &[(silent.as_fd(), Interest::Readable)],
            Some(Duration::ZERO),
            &mut ready,
        )
        .unwrap();
        assert_eq!(ready, [Ready::default()]);
    }

    #[test]
    fn a_writable_source_is_told_from_a_readable_one() {
        let (waker, wake_up) = waker().unwrap();
        let mut ready = Vec::new();
        let both = Interest::ReadableOrWritable;
        wait(&[(wake_up.as_fd(), both)], Some(Duration::ZERO), &mut ready).unwrap();
        assert_eq!(
            ready,
            [Ready {
                readable: false,
                writable: true
            }]
        );
        waker.wake().unwrap();
        wait(&[(wake_up.as_fd(), both)], Some(Duration::ZERO), &mut ready).unwrap();
        assert_eq!(
            ready,
            [Ready {
                readable: true,
                writable: true
            }]
        );
    }
}
