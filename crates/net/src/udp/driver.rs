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

use super::application::{Application, DatagramOrigin, Step};
use super::batch::Batch;
use super::beside::{PortBeside, PortChange};
use super::carrier::Carrier;
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
use std::os::fd::AsFd;

/// The batches read before deadlines get their turn again.
const BATCHES_PER_TURN: usize = 4;

/// The shortest wait for a full send queue to take something again.
const BLOCKED_WAIT_MIN: Duration = Duration::from_millis(1);

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
    beside: Vec<PortBeside>,
    /// The carrier of what goes back to an address from which the first datagram came by UDP.
    carrier_of_strangers: Carrier,
    paths: PathTable,
    wake_up: WakeUp,
    batch: Batch,
    /// The port for UDP has the first, each port beside it another.
    arrivals: Vec<Arrivals>,
    /// The drain after which everything was handed to the kernel before the application worked.
    flushed: Instant,
    /// For the next sleep; the vector is kept for its memory.
    ready: Vec<Ready>,
}

/// The driver's side of one drain.
struct Turn<'a, A: ?Sized> {
    port: &'a mut UdpPort,
    beside: &'a mut [PortBeside],
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
                let mut beside = self.beside.iter_mut().enumerate();
                match beside.find(|(index, port)| port.serves(&path, *index)) {
                    Some((_, beside)) => {
                        beside.send(&path, octets, transmit.ecn);
                        self.port.take_back(transmit.len);
                    }
                    None => self.port.send(&path, transmit.len, transmit.ecn),
                }
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
        self.port.can_send() && self.beside.iter().all(PortBeside::can_send)
    }
}

impl UdpDriver {
    /// A loop around `port` on `clock`, which `wake_up` can interrupt.
    pub fn new(clock: Clock, port: UdpPort, wake_up: WakeUp, paths: PathTableConfig) -> Self {
        Self {
            clock,
            port,
            beside: Vec::new(),
            carrier_of_strangers: Carrier::Udp,
            paths: PathTable::new(paths),
            wake_up,
            batch: Batch::default(),
            arrivals: vec![Arrivals::default()],
            flushed: Instant::START,
            ready: Vec::new(),
        }
    }

    /// Takes and sends datagrams by another port as well. Returns the number by which paths name it
    /// ([`UdpDriver::path_from`]); `None` if there are as many as can be numbered, and so not this one.
    pub fn add_port(&mut self, port: PortBeside) -> Option<u16> {
        let socket = port.socket(self.beside.len())?;
        self.beside.push(port);
        self.arrivals.push(Arrivals::default());
        Some(socket)
    }

    fn change_port(&mut self, change: PortChange) {
        match change {
            PortChange::Exchange(socket, port) => {
                let mut beside = self.beside.iter_mut().enumerate();
                let same = beside.find(|(index, port)| port.socket(*index) == Some(socket));
                if let Some((_, before)) = same {
                    *before = *port;
                }
                self.paths.forget_local(|path| path.socket == socket);
            }
            PortChange::AddressGone(address) => {
                (self.paths).forget_local(|path| path.local == Some(address));
            }
        }
    }

    /// The path from a socket of the driver's to `remote`, which is made if need be and kept for ever; `None` when the
    /// table is full.
    pub fn path_from(&mut self, socket: u16, remote: SocketAddr) -> Option<PathId> {
        let now = self.clock.now();
        let id = self.paths.path_to(now, (remote, socket), || None)?;
        self.paths.pin(id);
        Some(id)
    }

    /// Answers by `carrier` where the first datagram came by UDP, until the path is given another one.
    pub const fn set_carrier_of_strangers(&mut self, carrier: Carrier) {
        self.carrier_of_strangers = carrier;
    }

    /// Sends what goes to `path` by `carrier` from now on.
    pub fn set_carrier(&mut self, path: PathId, carrier: Carrier) {
        self.paths.set_carrier(path, carrier);
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
        self.paths.path_to(self.clock.now(), (remote, 0), || None)
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
                self.flush();
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
        while let Some((path, carrier)) = app.wants_carrier() {
            self.paths.set_carrier(path, carrier);
        }
        while let Some(change) = app.wants_port() {
            made = true;
            self.change_port(change);
        }
        while let now = self.clock.now()
            && let Some(remote) = app.wants_path(now)
        {
            made = true;
            let in_use = || app.paths_in_use(now, machine);
            let path = self.paths.path_to(now, (remote, 0), in_use);
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
        let (socket, woken) = (came(0), came(1).readable);
        let with_descriptors = self.beside.iter().filter_map(PortBeside::descriptor);
        let beside = 2..2 + with_descriptors.count();
        let source = came(beside.end).readable;
        let is_writable = socket.writable || beside.clone().any(|at| came(at).writable);
        let is_beside = beside.into_iter().any(|at| came(at).readable);
        self.ready = ready;
        slept?;
        if woken {
            self.wake_up.clear();
        }
        if source {
            app.source_ready();
        }
        if is_writable {
            self.flush();
        }
        if socket.readable {
            self.receive(machine, app, None)?;
        }
        if is_beside {
            for index in 0..self.beside.len() {
                self.receive(machine, app, Some(index))?;
            }
        }
        self.tell_refusals(machine, app);
        Ok(())
    }

    /// Tells the application of the addresses that could not be reached, or where a datagram was too large.
    fn tell_refusals<M: Machine, A: Application<M> + ?Sized>(
        &mut self,
        machine: &mut M,
        app: &mut A,
    ) {
        let beside = &mut self.beside;
        let mut of_beside = |take: fn(&mut PortBeside) -> Option<SocketAddr>| {
            let mut ports = beside.iter_mut().enumerate();
            ports.find_map(|(index, port)| Some((take(port)?, port.socket(index)?)))
        };
        let unreachable = (self.port.take_unreachable().map(|remote| (remote, 0)))
            .or_else(|| of_beside(PortBeside::take_unreachable))
            .and_then(|(remote, socket)| self.paths.id_of(remote, socket));
        if let Some(path) = unreachable {
            app.unreachable(self.clock.now(), machine, path);
        }
        let too_large = (self.port.take_too_large().map(|remote| (remote, 0)))
            .or_else(|| of_beside(PortBeside::take_too_large))
            .and_then(|(remote, socket)| self.paths.id_of(remote, socket));
        if let Some(path) = too_large {
            app.too_large(self.clock.now(), machine, path);
        }
    }

    /// Hands everything queued to the kernel.
    fn flush(&mut self) {
        self.port.flush();
        self.beside.iter_mut().for_each(PortBeside::flush);
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
                self.flush();
                return (Deadline::earlier(deadline, app.next_deadline()), step);
            }
        }
    }

    /// Drains completely; also says whether the application was told something. Where times of departure matter, what
    /// leaves is handed to the kernel if nothing was for [`BURST_TIME`]: a machine takes the time of the drain for the
    /// time of sending, and the application's work may take long. At high rates it waits for more, which one call takes.
    fn drain<M: Machine, A: Application<M> + ?Sized>(
        &mut self,
        machine: &mut M,
        app: &mut A,
    ) -> (Option<Deadline>, bool) {
        let mut turn = Turn {
            port: &mut self.port,
            beside: &mut self.beside,
            paths: &mut self.paths,
            app,
            events: false,
        };
        let now = self.clock.now();
        let deadline = drain(machine, now, &mut turn);
        let events = turn.events;
        if now.saturating_since(self.flushed) >= BURST_TIME && app.times_departures(machine) {
            self.flush();
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
        let mut interest = |can_send| {
            if can_send {
                return Interest::Readable;
            }
            // The machine may be due to send all the time, which must not turn waiting into spinning.
            timeout = timeout.map(|span| span.max(BLOCKED_WAIT_MIN));
            Interest::ReadableOrWritable
        };
        let port = (self.port.as_fd(), interest(self.port.can_send()));
        let beside: Vec<_> = (self.beside.iter())
            .filter_map(|port| Some((port.descriptor()?, interest(port.can_send()))))
            .collect();
        let wake_up = (self.wake_up.as_fd(), Interest::Readable);
        let source = app.source().map(|source| (source, Interest::Readable));
        let slept = match source {
            Some(source) if beside.is_empty() => wait(&[port, wake_up, source], timeout, ready),
            None if beside.is_empty() => wait(&[port, wake_up], timeout, ready),
            source => {
                let mut all = vec![port, wake_up];
                all.extend(beside);
                all.extend(source);
                wait(&all, timeout, ready)
            }
        };
        slept.map_err(DriverError::Wait)
    }

    /// Takes what came by the port for UDP, or by one beside it.
    fn receive<M: Machine, A: Application<M> + ?Sized>(
        &mut self,
        machine: &mut M,
        app: &mut A,
        place: Option<usize>,
    ) -> Result<(), DriverError> {
        let Self {
            clock,
            port,
            beside,
            carrier_of_strangers,
            paths,
            batch,
            arrivals,
            ..
        } = self;
        let Some(arrivals) = arrivals.get_mut(place.map_or(0, |place| place + 1)) else {
            return Ok(());
        };
        for _ in 0..BATCHES_PER_TURN {
            let asked = clock.now();
            let other = place.and_then(|place| Some((place, beside.get_mut(place)?)));
            let (received, carrier, socket) = match other {
                Some((place, beside)) => {
                    let socket = beside.socket(place).unwrap_or_default();
                    (beside.receive(batch), beside.carrier(), socket)
                }
                None => (port.receive(batch), *carrier_of_strangers, 0),
            };
            if !received.map_err(DriverError::Receive)? {
                arrivals.on_empty(asked);
                return Ok(());
            }
            let read = clock.now();
            for train in batch.trains() {
                let now = clock.now();
                let origin = DatagramOrigin {
                    from: train.from,
                    at: arrivals.take(read, train.waited),
                };
                let path = Path {
                    remote: train.from,
                    local: train.to,
                    carrier,
                    socket,
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
                        beside,
                        paths,
                        app,
                        events,
                    };
                    drain_between_inputs(machine, now, &mut turn);
                }
            }
            if batch.is_all() {
                arrivals.on_empty(asked);
            }
        }
        Ok(())
    }
}
