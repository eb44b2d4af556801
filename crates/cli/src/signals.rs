//! SIGINT and SIGTERM end a command cleanly; a second one ends it at once, unless it has something to
//! put back.

use crate::exit::{Exit, Failure};
use anyhow::Context;
use fulmar_net::transfer::Stop;
use fulmar_net::wait::Waker;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Process;
use signal_hook::{flag, low_level};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The signals that have come.
#[derive(Clone, Debug)]
pub(crate) struct Signals {
    interrupted: Arc<AtomicBool>,
    terminated: Arc<AtomicBool>,
    stop: Stop,
}

/// A request to read the configuration again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReloadRequest {
    /// The process that sent the signal, if the kernel says so.
    pub(crate) sender: Option<Process>,
}

/// Requests to read the configuration again.
#[derive(Debug)]
pub(crate) struct Reloads(SignalsInfo<WithOrigin>);

impl Reloads {
    /// The latest request since the last call.
    pub(crate) fn take(&mut self) -> Option<ReloadRequest> {
        let last = self.0.pending().last()?;
        Some(ReloadRequest {
            sender: last.process,
        })
    }
}

impl Signals {
    /// Catches both signals from here on; each also calls `wakers`.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub(crate) fn catch(wakers: &[&Waker]) -> Result<Self, Failure> {
        Self::catch_with(wakers, true)
    }

    /// Catches both signals for a command that never blocks and has something to put back: further signals
    /// do not end it before that is done.
    ///
    /// # Errors
    /// As [`Self::catch`].
    pub(crate) fn catch_all(wakers: &[&Waker]) -> Result<Self, Failure> {
        Self::catch_with(wakers, false)
    }

    fn catch_with(wakers: &[&Waker], second_ends: bool) -> Result<Self, Failure> {
        let signals = Self {
            interrupted: Arc::new(AtomicBool::new(false)),
            terminated: Arc::new(AtomicBool::new(false)),
            stop: Stop::default(),
        };
        for (signal, exit, seen) in [
            (SIGINT, Exit::Interrupted, &signals.interrupted),
            (SIGTERM, Exit::Terminated, &signals.terminated),
        ] {
            if second_ends {
                // Before the next: the first signal only sets the flag that arms the shutdown.
                flag::register_conditional_shutdown(signal, exit.code().into(), Arc::clone(seen))
                    .context("catching signals")?;
            }
            flag::register(signal, Arc::clone(seen))
                .and_then(|_| flag::register(signal, signals.stop.flag()))
                .context("catching signals")?;
            for waker in wakers {
                waker
                    .try_clone()
                    .and_then(|waker| low_level::pipe::register(signal, waker))
                    .context("catching signals")?;
            }
        }
        Ok(signals)
    }

    /// Catches SIGHUP too, which calls `waker`.
    ///
    /// # Errors
    /// The system refuses a handler.
    #[expect(clippy::unused_self, reason = "it goes with the others")]
    pub(crate) fn catch_reload(&self, waker: &Waker) -> Result<Reloads, Failure> {
        let waker = waker.try_clone().context("catching SIGHUP")?;
        // Before the waker, so that a woken thread finds the signal.
        let reloads = SignalsInfo::<WithOrigin>::new([SIGHUP]).context("catching SIGHUP")?;
        low_level::pipe::register(SIGHUP, waker).context("catching SIGHUP")?;
        Ok(Reloads(reloads))
    }

    /// The request to stop that either signal makes.
    pub(crate) fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// The exit of the command, if a signal asks for one.
    pub(crate) fn exit(&self) -> Option<Exit> {
        if self.interrupted.load(Ordering::SeqCst) {
            Some(Exit::Interrupted)
        } else if self.terminated.load(Ordering::SeqCst) {
            Some(Exit::Terminated)
        } else {
            None
        }
    }
}
