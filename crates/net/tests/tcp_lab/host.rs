//! Our end: the machine, the clock, the link's two directions.

use super::seen::Seen;
use super::{MTU, ip, kernel};
use fulmar_baseline::StreamEndpoint;
use fulmar_baseline::tcp::{
    TcpCloseReason, TcpConfig, TcpConnectionId, TcpCounters, TcpEndpoint, TcpEndpointConfig,
    TcpEvent, TcpStatus,
};
use fulmar_baseline::wire::tcp::{AddressPair, TcpHeader};
use fulmar_channel::{Channel, ChannelConfig, ChannelCounters, ChannelVerdict, apply_flips};
use fulmar_net::clock::Clock;
use fulmar_net::tun::TunPort;
use fulmar_net::wait::{Interest, wait};
use fulmar_proto::machine::{
    Datagram, Deadline, Machine, MachineDriver, PathId, Strict, Transmit, drain,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration, Instant};
use fulmar_proto::wire::Port;
use fulmar_proto::wire::network::NodeAddress;
use std::collections::BTreeMap;
use std::os::fd::AsFd;

type Tcp = Strict<TcpEndpoint>;

/// The path to the kernel, which the machine only compares.
const PATH: PathId = PathId(7);
/// The port from which our side connects, and at which it listens.
pub(crate) const OUR_PORT: Port = Port(4000);
/// The longest sleep: how soon a condition outside of the link is noticed.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The application on our side of one connection.
#[expect(
    clippy::struct_excessive_bools,
    reason = "two orders and two facts, each of its own"
)]
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// The octets that it sends; `written` counts those that TCP has taken.
    pub(crate) octets: Vec<u8>,
    pub(crate) written: usize,
    /// Closes once everything is written.
    pub(crate) closes: bool,
    /// Reads nothing for now.
    pub(crate) pauses: bool,
    pub(crate) received: Vec<u8>,
    pub(crate) id: Option<TcpConnectionId>,
    pub(crate) established: bool,
    pub(crate) peer_finished: bool,
    pub(crate) closed: Option<TcpCloseReason>,
}

impl Flow {
    /// Sends `octets` and closes.
    pub(crate) fn sending(octets: &[u8]) -> Self {
        Self {
            octets: octets.to_vec(),
            closes: true,
            ..Self::default()
        }
    }

    /// Writes and reads as far as possible.
    fn work(&mut self, tcp: &mut Tcp) {
        let Some(id) = self.id.filter(|_| self.closed.is_none()) else {
            return;
        };
        let rest = &self.octets[self.written..];
        if !rest.is_empty() {
            self.written += tcp.app().write(id, rest).unwrap_or(0);
        }
        if self.closes && self.written == self.octets.len() {
            self.closes = false;
            tcp.app().close(id);
        }
        while !self.pauses
            && let Some(octets) = tcp.app().read(id)
        {
            self.received.extend_from_slice(&octets);
            tcp.app().recycle(id, octets);
        }
    }

    fn hear(&mut self, event: &TcpEvent) {
        match *event {
            TcpEvent::Incoming { id, .. } => {
                self.id = Some(id);
                self.established = true;
            }
            TcpEvent::Connected(_) => self.established = true,
            TcpEvent::PeerFinished(_) => self.peer_finished = true,
            TcpEvent::Closed { why, .. } => self.closed = Some(why),
            TcpEvent::Readable(_) | TcpEvent::Writable(_) => {}
        }
    }
}

/// One direction of the link.
#[derive(Debug)]
struct Way {
    channel: Channel,
    flying: BTreeMap<(Instant, u64), Vec<u8>>,
    seen: Seen,
}

impl Way {
    fn new(link: &ChannelConfig, rng: &Rng) -> Self {
        Self {
            channel: Channel::new(link.clone(), rng).expect("sound"),
            flying: BTreeMap::new(),
            seen: Seen::default(),
        }
    }

    fn carry(&mut self, now: Instant, mut packet: Vec<u8>) {
        let len = ByteCount(packet.len() as u64);
        if let ChannelVerdict::Deliver(delivery) = self.channel.admit(now, len) {
            let _harm = apply_flips(&mut packet, &delivery.flips, ByteCount(0));
            let number = self.channel.counters().offered_packets;
            self.flying.insert((delivery.at, number), packet);
        }
    }

    fn arrived(&mut self, now: Instant) -> Option<Vec<u8>> {
        let first = self.flying.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    fn next(&self) -> Option<Instant> {
        self.flying.first_key_value().map(|((at, _), _)| *at)
    }
}

/// The places for what the drain hands over.
#[derive(Debug)]
struct Ends {
    buffer: Vec<u8>,
    addresses: AddressPair,
    to_kernel: Way,
    flow: Flow,
}

impl MachineDriver<Tcp> for Ends {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        &mut self.buffer
    }

    fn send(&mut self, now: Instant, transmit: Transmit) {
        self.to_kernel
            .seen
            .note(&self.addresses, &self.buffer, false);
        let packet = ip::packet(&self.addresses, transmit.ecn, &self.buffer);
        self.to_kernel.carry(now, packet);
    }

    fn deliver(&mut self, _now: Instant, tcp: &mut Tcp, event: TcpEvent) {
        self.flow.hear(&event);
        self.flow.work(tcp);
    }
}

/// Our end of the link and the link itself.
pub(crate) struct Host {
    clock: Clock,
    port: TunPort,
    tcp: Tcp,
    ends: Ends,
    from_kernel: Way,
    deadline: Option<Deadline>,
    /// The kernel has acknowledged our FIN, and our acknowledgement of its own has reached it.
    kernel_is_over: bool,
}

impl Host {
    pub(super) fn new(
        port: TunPort,
        addresses: AddressPair,
        link: &ChannelConfig,
        rng: &Rng,
    ) -> Self {
        // The path's addresses are set below, so that this node's own is not used.
        let config = TcpEndpointConfig {
            local: NodeAddress(0),
            connections_max: 4,
        };
        let mut tcp = TcpEndpoint::new(config, rng.child("tcp"));
        tcp.set_addresses(PATH, addresses);
        Self {
            clock: Clock::start(),
            port,
            tcp: Strict::new(tcp),
            ends: Ends {
                buffer: Vec::new(),
                addresses,
                to_kernel: Way::new(link, &rng.child("to kernel")),
                flow: Flow::default(),
            },
            from_kernel: Way::new(link, &rng.child("from kernel")),
            deadline: None,
            kernel_is_over: false,
        }
    }

    /// `config` with the longest segments that the link carries.
    fn fitted(&self, config: TcpConfig) -> TcpConfig {
        let headers = match self.ends.addresses {
            AddressPair::V4 { .. } => 40,
            AddressPair::V6 { .. } => 60,
        };
        TcpConfig {
            mss: MTU - headers,
            ..config
        }
    }

    /// Opens a connection to the kernel's `port` for `flow`.
    pub(crate) fn connect(&mut self, port: u16, config: TcpConfig, flow: Flow) {
        let now = self.wake();
        self.kernel_is_over = false;
        let config = self.fitted(config);
        let id = self.tcp.app().connect(PATH, OUR_PORT, Port(port), config);
        self.ends.flow = Flow {
            id: Some(id.expect("a free port")),
            ..flow
        };
        self.drain(now);
    }

    /// Listens at [`OUR_PORT`]; the next connection is `flow`'s.
    pub(crate) fn listen(&mut self, config: TcpConfig, flow: Flow) {
        let now = self.wake();
        self.kernel_is_over = false;
        let config = self.fitted(config);
        self.tcp.app().listen(OUR_PORT, config).expect("sound");
        self.ends.flow = flow;
        self.drain(now);
    }

    pub(crate) fn abort(&mut self) {
        let now = self.wake();
        let id = self.ends.flow.id.expect("a connection");
        self.tcp.app().abort(now, id);
        self.drain(now);
    }

    pub(crate) fn flow(&self) -> &Flow {
        &self.ends.flow
    }

    /// The application, which acts on what was changed.
    pub(crate) fn change_flow(&mut self, change: impl FnOnce(&mut Flow)) {
        let now = self.wake();
        change(&mut self.ends.flow);
        self.ends.flow.work(&mut self.tcp);
        self.drain(now);
    }

    pub(crate) fn status(&self) -> Option<TcpStatus> {
        self.ends.flow.id.and_then(|id| self.tcp.inner().status(id))
    }

    pub(crate) fn counters(&self) -> TcpCounters {
        self.tcp.inner().counters()
    }

    /// The segments that we sent, and what became of them.
    pub(crate) fn sent(&self) -> (Seen, ChannelCounters) {
        let way = &self.ends.to_kernel;
        (way.seen, *way.channel.counters())
    }

    /// The segments that the kernel sent, and what became of them.
    pub(crate) fn heard(&self) -> (Seen, ChannelCounters) {
        let way = &self.from_kernel;
        (way.seen, *way.channel.counters())
    }

    /// The time, once a deadline that has come is handled: only then may other input follow, for a
    /// machine names no deadline that is over.
    fn wake(&mut self) -> Instant {
        let now = self.clock.now();
        if self.deadline.is_some_and(|deadline| deadline.at <= now) {
            self.tcp.handle_deadline(now);
            self.drain(now);
        }
        now
    }

    fn drain(&mut self, now: Instant) {
        self.deadline = drain(&mut self.tcp, now, &mut self.ends);
    }

    /// Carries packets until `done`.
    #[track_caller]
    pub(crate) fn run_until(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let end = self.clock.now() + kernel::PATIENCE;
        while !done(self) {
            let now = self.clock.now();
            assert!(
                now < end,
                "no end: {what}; {:?}, {:?}, sent {:?}, heard {:?}, received {} octets",
                self.status(),
                self.counters(),
                self.sent(),
                self.heard(),
                self.flow().received.len()
            );
            self.turn();
            self.sleep();
        }
    }

    /// Does everything that is due.
    fn turn(&mut self) {
        let mut packet = [0; MTU as usize];
        while let Ok(Some(len)) = self.port.receive(&mut packet) {
            let packet = &packet[..len];
            let back = self.ends.addresses.reversed();
            let Some((_, segment)) = ip::segment(&back, packet) else {
                assert!(
                    ip::is_housekeeping(packet),
                    "neither a segment nor the device's own: {packet:02x?}"
                );
                continue;
            };
            self.from_kernel
                .seen
                .note(&back, segment, self.kernel_is_over);
            self.from_kernel.carry(self.clock.now(), packet.to_vec());
        }
        let now = self.wake();
        while let Some(packet) = self.from_kernel.arrived(now) {
            if let Some((ecn, octets)) = ip::segment(&self.ends.addresses.reversed(), &packet) {
                let path = PATH;
                let datagram = Datagram { path, octets, ecn };
                self.tcp.handle_datagram(now, datagram);
                self.drain(now);
            }
        }
        while let Some(packet) = self.ends.to_kernel.arrived(now) {
            self.kernel_is_over |= self.ends_the_kernels(&packet);
            // The damaged packet may be no IP packet any more.
            let _taken = self.port.send(&packet);
        }
    }

    /// Whether a packet that reaches the kernel is the last one it waits for. It answers later packets,
    /// such as acknowledgements of segments that it sent twice, with resets (RFC 9293,
    /// section 3.10.7.1).
    fn ends_the_kernels(&self, packet: &[u8]) -> bool {
        let (ours, kernels) = (&self.ends.to_kernel.seen, &self.from_kernel.seen);
        let header = ip::segment(&self.ends.addresses, packet)
            .and_then(|(_, octets)| TcpHeader::parse(&self.ends.addresses, octets).ok());
        let ack = header.map(|segment| segment.header.ack);
        ours.end.is_some() && kernels.ack == ours.end && kernels.end.is_some() && ack == kernels.end
    }

    fn sleep(&self) {
        let dues = [
            self.deadline.map(|deadline| deadline.at),
            self.ends.to_kernel.next(),
            self.from_kernel.next(),
        ];
        let now = self.clock.now();
        let until = dues
            .into_iter()
            .flatten()
            .map(|at| at.saturating_since(now));
        let span = until.fold(LOOK_AGAIN, Duration::min);
        let source = [(self.port.as_fd(), Interest::Readable)];
        wait(&source, Some(span), &mut Vec::new()).expect("the device is there");
    }
}
