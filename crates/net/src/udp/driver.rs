//! The loop: socket, machine, application, clock.
//!
//! ```text
//!           ┌── deadline due ──▶ handle_deadline ─┐
//!  ppoll ───┼── datagrams ─────▶ handle_datagram ─┼─▶ drain ─▶ Application::work ─▶ flush ─▶ ppoll
//!           └── waker, app's source ──────────────┘     ▲            │ touched the machine
//!                                                       └────────────┘
//! ```
//!
//! # Promises
//! - The machine is drained after every input, by [`fulmar_proto::machine::drain`] and nothing else.
//! - The application never waits: it does what can be done at once and names a deadline.
//! - ICMP errors do not end the loop; the application hears of them and decides.

use super::batch::Batch;
use super::paths::{Path, PathTable, PathTableConfig};
use super::port::{BURST_TIME, UdpPort};
use super::receiving::Arrivals;
use crate::clock::Clock;
use crate::wait::{Interest, Ready, WakeUp, wait};
use fulmar_proto::machine::{
    Datagram, Deadline, Machine, MachineDriver, PathId, Transmit, drain, drain_between_inputs,
};
use fulmar_proto::units::{Duration, Instant};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// The batches read before deadlines get their turn again.
const BATCHES_PER_TURN: usize = 4;

/// The shortest wait for a full send queue to take something again.
const BLOCKED_WAIT_MIN: Duration = Duration::from_millis(1);

/// The wish of an application after [`Application::work`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing to do before the next event, datagram, deadline or wake-up.
    Wait,
    /// The application called the machine, which must be drained again.
    Again,
    /// The application is done: leave the loop once the queued datagrams have been handed to the kernel.
    Stop,
}

/// The circumstances in which a datagram came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The address that it came from.
    pub from: SocketAddr,
    /// The time at which the system took it in: before now, if the loop slept or was busy.
    pub at: Instant,
}

/// The program on top of a machine: files, pipes, a user.
pub trait Application<M: Machine> {
    /// Takes an event. May call the machine.
    fn deliver(&mut self, now: Instant, machine: &mut M, event: M::Event);

    /// Moves octets between the machine and the outside, as far as that is possible without waiting.
    fn work(&mut self, now: Instant, machine: &mut M) -> Step;

    /// Takes the network's word that nobody listens at `path`. It may be true for a moment only.
    fn unreachable(&mut self, now: Instant, machine: &mut M, path: PathId);

    /// Hands a datagram to the machine, with its origin as far as the machine can use that.
    fn arrived(&mut self, now: Instant, machine: &mut M, datagram: Datagram<'_>, origin: Origin) {
        let _ = origin;
        machine.handle_datagram(now, datagram);
    }

    /// Sees a datagram that is handed to the socket, for the address `to`.
    fn departing(&mut self, now: Instant, to: SocketAddr, octets: &[u8]) {
        let _ = (now, to, octets);
    }

    /// Takes the system's refusal to send a datagram to `path`: it is larger than the interface or the path takes.
    fn too_large(&mut self, now: Instant, machine: &mut M, path: PathId) {
        let _ = (now, machine, path);
    }

    /// The paths that must keep their addresses when new ones come and the table is full. `None` stands for all
    /// paths with traffic both ways, for as long as the table's settings say.
    fn paths_in_use(&self, now: Instant, machine: &M) -> Option<Vec<PathId>> {
        let _ = (now, machine);
        None
    }

    /// Takes a session's word that the peer at `path` has restarted and has forgotten its connections. After this call
    /// the session ends them as if we had aborted them; an application that wants to go on lets go of them here.
    fn peer_restarted(&mut self, now: Instant, machine: &mut M, path: PathId) {
        let _ = (now, machine, path);
    }

    /// An address to which a path is wanted, for as long as the application lists it as in use
    /// ([`Application::paths_in_use`]).
    fn wants_path(&self, now: Instant) -> Option<SocketAddr> {
        let _ = now;
        None
    }

    /// Takes the path to an address that was wanted; `None` if all paths are in use. The application is asked for
    /// the next wanted address at once.
    fn path_made(
        &mut self,
        now: Instant,
        machine: &mut M,
        remote: SocketAddr,
        path: Option<PathId>,
    ) {
        let _ = (now, machine, remote, path);
    }

    /// The time at which [`Application::work`] wants to be called if nothing else happens.
    fn next_deadline(&self) -> Option<Deadline>;

    /// A descriptor of its own whose readability ends the sleep, such as an `epoll` instance.
    fn source(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// [`Application::source`] is readable; [`Application::work`] follows.
    fn source_ready(&mut self) {}
}

/// Why a loop could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// The socket is broken.
    #[error("receiving from the socket")]
    Receive(#[source] io::Error),
    /// The kernel refuses to wait.
    #[error("waiting for the socket")]
    Wait(#[source] io::Error),
}

/// A UDP socket with its paths, ready to run a machine.
#[derive(Debug)]
pub struct UdpDriver {
    clock: Clock,
    port: UdpPort,
    paths: PathTable,
    wake_up: WakeUp,
    batch: Batch,
    arrivals: Arrivals,
    /// The drain after which everything was handed to the kernel before the application worked.
    flushed: Instant,
    /// For the next sleep; the vector is kept for its memory.
    ready: Vec<Ready>,
}

/// The driver's side of one drain.
struct Turn<'a, A: ?Sized> {
    port: &'a mut UdpPort,
    paths: &'a mut PathTable,
    app: &'a mut A,
    /// Whether the application was told something.
    events: bool,
}

impl<M: Machine, A: Application<M> + ?Sized> MachineDriver<M> for Turn<'_, A> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.port.buffer()
    }

    fn send(&mut self, now: Instant, transmit: Transmit) {
        match self.paths.answer(transmit.path) {
            Some(path) => {
                let written = self.port.buffer();
                let octets = written.len().checked_sub(transmit.len);
                let octets = octets.and_then(|start| written.get(start..));
                let octets = octets.unwrap_or_default();
                self.app.departing(now, path.remote, octets);
                self.port.send(&path, transmit.len, transmit.ecn);
            }
            // The path was given to another address: its peer has been silent for minutes.
            None => self.port.withdraw(transmit.len),
        }
    }

    fn deliver(&mut self, now: Instant, machine: &mut M, event: M::Event) {
        self.events = true;
        self.app.deliver(now, machine, event);
    }

    fn can_send(&self) -> bool {
        self.port.can_send()
    }
}

impl UdpDriver {
    /// A loop around `port` on `clock`, which `wake_up` can interrupt.
    pub fn new(clock: Clock, port: UdpPort, wake_up: WakeUp, paths: PathTableConfig) -> Self {
        Self {
            clock,
            port,
            paths: PathTable::new(paths),
            wake_up,
            batch: Batch::default(),
            arrivals: Arrivals::default(),
            flushed: Instant::START,
            ready: Vec::new(),
        }
    }

    /// The path to `remote`, which is made if need be and kept for ever; `None` when the table is full.
    pub fn path_to(&mut self, remote: SocketAddr) -> Option<PathId> {
        let id = self.path_while_used(remote)?;
        self.paths.pin(id);
        Some(id)
    }

    /// The path to `remote`, for an application that lists it among those in use
    /// ([`Application::paths_in_use`]) for as long as it is to be kept.
    pub fn path_while_used(&mut self, remote: SocketAddr) -> Option<PathId> {
        self.paths.path_to(self.clock.now(), remote, || None)
    }

    /// The address that `path` leads to.
    pub fn remote(&mut self, path: PathId) -> Option<SocketAddr> {
        self.paths.answer(path).map(|path| path.remote)
    }

    /// The socket, for its addresses and counters.
    pub const fn port(&self) -> &UdpPort {
        &self.port
    }

    /// The clock of the driver's times.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Runs `machine` under `app` until the application stops.
    ///
    /// # Errors
    /// [`DriverError`]: the operating system no longer lets us receive or wait.
    pub fn run<M: Machine, A: Application<M> + ?Sized>(
        &mut self,
        machine: &mut M,
        app: &mut A,
    ) -> Result<(), DriverError> {
        loop {
            let (deadline, step) = self.settle(machine, app);
            if step == Step::Stop {
                self.port.flush();
                return Ok(());
            }
            if self.make_paths(machine, app) {
                continue;
            }
            self.take_input(machine, app, deadline)?;
        }
    }

    /// One turn of [`UdpDriver::run`], for a loop that is somebody else's: takes what came, after waiting for it for
    /// `patience` at most (`None`: as long as there is nothing to do), and does what follows from it. Says what the
    /// application wants, and until when the next turn can wait.
    ///
    /// # Errors
    /// [`DriverError`]: the operating system no longer lets us receive or wait.
    pub fn turn<M: Machine, A: Application<M> + ?Sized>(
        &mut self,
        machine: &mut M,
        app: &mut A,
        patience: Option<Duration>,
    ) -> Result<(Step, Option<Deadline>), DriverError> {
        let (mut deadline, mut step) = self.settle_with_paths(machine, app);
        if step != Step::Stop {
            let why = "the caller's patience";
            let at = patience.map(|patience| self.clock.now() + patience);
            let until = Deadline::earlier(deadline, at.map(|at| Deadline { at, why }));
            self.take_input(machine, app, until)?;
            (deadline, step) = self.settle_with_paths(machine, app);
        }
        Ok((step, deadline))
    }

    fn settle_with_paths<M: Machine, A: Application<M> + ?Sized>(
        &mut self,
        machine: &mut M,
        app: &mut A,
    ) -> (Option<Deadline>, Step) {
        loop {
            let (deadline, step) = self.settle(machine, app);
            if step == Step::Stop || !self.make_paths(machine, app) {
                return (deadline, step);
            }
        }
    }

    /// Makes the paths that the application wants. `false`: it wants none.
    fn make_paths<M: Machine, A: Application<M> + ?Sized>(
        &mut self,
        machine: &mut M,
        app: &mut A,
    ) -> bool {
        let mut made = false;
        while let now = self.clock.now()
            && let Some(remote) = app.wants_path(now)
        {
            made = true;
            let in_use = || app.paths_in_use(now, machine);
            let path = self.paths.path_to(now, remote, in_use);
            app.path_made(now, machine, remote, path);
        }
        made
    }

    /// Sleeps until something comes or `deadline`, and takes what came.
    fn take_input<M: Machine, A: Application<M> + ?Sized>(
        &mut self,
        machine: &mut M,
        app: &mut A,
        deadline: Option<Deadline>,
    ) -> Result<(), DriverError> {
        let mut ready = core::mem::take(&mut self.ready);
        let slept = self.sleep(deadline, app, &mut ready);
        let came = |index: usize| ready.get(index).copied().unwrap_or_default();
        let (socket, woken, source) = (came(0), came(1).readable, came(2).readable);
        self.ready = ready;
        slept?;
        if woken {
            self.wake_up.clear();
        }
        if source {
            app.source_ready();
        }
        if socket.writable {
            self.port.flush();
        }
        if socket.readable {
            self.receive(machine, app)?;
        }
        if let Some(remote) = self.port.take_unreachable()
            && let Some(path) = self.paths.id_of(remote)
        {
            app.unreachable(self.clock.now(), machine, path);
        }
        if let Some(remote) = self.port.take_too_large()
            && let Some(path) = self.paths.id_of(remote)
        {
            app.too_large(self.clock.now(), machine, path);
        }
        Ok(())
    }

    /// Fires the machine's deadline if it is due, then drains and lets the application work until
    /// neither has more to do.
    fn settle<M: Machine, A: Application<M> + ?Sized>(
        &mut self,
        machine: &mut M,
        app: &mut A,
    ) -> (Option<Deadline>, Step) {
        let (mut deadline, _) = self.drain(machine, app);
        loop {
            let now = self.clock.now();
            if deadline.is_some_and(|deadline| deadline.at <= now) {
                machine.handle_deadline(now);
            }
            let step = app.work(self.clock.now(), machine);
            // The application may have written before it said that it will wait.
            let (after, events) = self.drain(machine, app);
            deadline = after;
            // An event may be what it waits for.
            if step == Step::Stop || (step == Step::Wait && !events) {
                self.port.flush();
                return (Deadline::earlier(deadline, app.next_deadline()), step);
            }
        }
    }

    /// Drains completely; also says whether the application was told something. What leaves is handed over to the kernel
    /// if nothing was for [`BURST_TIME`]: a machine takes the time of the drain for the time of sending, and the
    /// application's work may take long. At high rates it waits for more, which one call takes.
    fn drain<M: Machine, A: Application<M> + ?Sized>(
        &mut self,
        machine: &mut M,
        app: &mut A,
    ) -> (Option<Deadline>, bool) {
        let mut turn = Turn {
            port: &mut self.port,
            paths: &mut self.paths,
            app,
            events: false,
        };
        let now = self.clock.now();
        let deadline = drain(machine, now, &mut turn);
        let events = turn.events;
        if now.saturating_since(self.flushed) >= BURST_TIME {
            self.port.flush();
            self.flushed = now;
        }
        (deadline, events)
    }

    fn sleep<M: Machine, A: Application<M> + ?Sized>(
        &self,
        deadline: Option<Deadline>,
        app: &A,
        ready: &mut Vec<Ready>,
    ) -> Result<(), DriverError> {
        let mut timeout = deadline.map(|deadline| deadline.at.saturating_since(self.clock.now()));
        let interest = if self.port.can_send() {
            Interest::Readable
        } else {
            // The machine may be due to send all the time, which must not turn waiting into spinning.
            timeout = timeout.map(|span| span.max(BLOCKED_WAIT_MIN));
            Interest::ReadableOrWritable
        };
        let port = (self.port.as_fd(), interest);
        let wake_up = (self.wake_up.as_fd(), Interest::Readable);
        match app.source() {
            Some(source) => wait(
                &[port, wake_up, (source, Interest::Readable)],
                timeout,
                ready,
            ),
            None => wait(&[port, wake_up], timeout, ready),
        }
        .map_err(DriverError::Wait)
    }

    fn receive<M: Machine, A: Application<M> + ?Sized>(
        &mut self,
        machine: &mut M,
        app: &mut A,
    ) -> Result<(), DriverError> {
        let Self {
            clock,
            port,
            paths,
            batch,
            arrivals,
            ..
        } = self;
        for _ in 0..BATCHES_PER_TURN {
            let asked = clock.now();
            if !port.receive(batch).map_err(DriverError::Receive)? {
                arrivals.on_empty(asked);
                return Ok(());
            }
            let read = clock.now();
            for train in batch.trains() {
                let now = clock.now();
                let origin = Origin {
                    from: train.from,
                    at: arrivals.take(read, train.waited),
                };
                let path = Path {
                    remote: train.from,
                    local: train.to,
                };
                let in_use = || app.paths_in_use(now, machine);
                let Some(path) = paths.heard(now, path, in_use) else {
                    continue;
                };
                for octets in train.datagrams() {
                    let arrived = Datagram {
                        path,
                        octets,
                        ecn: train.ecn,
                    };
                    app.arrived(now, machine, arrived, origin);
                    let events = false;
                    let mut turn = Turn {
                        port,
                        paths,
                        app,
                        events,
                    };
                    drain_between_inputs(machine, now, &mut turn);
                }
            }
        }
        Ok(())
    }
}
