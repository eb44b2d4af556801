//! A UDP socket with batches both ways, ECN, large buffers, and errors that do not end anything.
//!
//! # Promises
//! - An ICMP error, a full queue or a missing route is counted and remembered, never returned: the
//!   protocol above expects losses and recovers by itself.
//! - The queue is bounded: nothing is added while the kernel refuses ([`UdpPort::can_send`]).

use super::batch::Batch;
use super::carrier::{Carrier, PortProtocol, cover_header_alone, send_checksums, take_unchecked};
use super::outbox::{Envelope, Outbox};
use super::paths::Path;
use super::receiving::{Extras, ask_for_times, receive};
use crate::clock::unix_time;
use fulmar_proto::machine::Ecn;
use fulmar_proto::units::{Bitrate, ByteCount, Duration};
use quinn_udp::{EcnCodepoint, UdpSocketState};
use serde::Serialize;
use socket2::{Domain, SockRef, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// The waiting octets at which whole bursts are handed to the kernel before the drain's end.
const FLUSH_AT: usize = 65_536;

/// The fewest datagrams allowed in one call, at any rate.
const BURST_MIN: usize = 16;
/// The most datagrams in one call: 43 of 1500 octets fill what the kernel takes.
const BURST_MAX: usize = 64;
/// The span by which the pacer of an endpoint on a [`UdpPort`] may run ahead. Fast links wake once for many datagrams,
/// and no queue on the way has to hold more than this. System calls carry as much, which changes nothing on the wire.
pub const BURST_TIME: Duration = Duration::from_micros(500);
const BURST_PACKET: ByteCount = ByteCount(1500);

/// The settings of a [`UdpPort`].
#[derive(Clone, Copy, Debug)]
pub struct PortConfig {
    /// The octets to ask of the kernel for each of the two socket buffers. 4 MiB hold 30 ms at 1 gbit/s.
    pub buffer: ByteCount,
    /// The most datagrams that leave back to back in one system call; 1 turns GSO off.
    pub burst: usize,
    /// The protocol of its datagrams.
    pub protocol: PortProtocol,
    /// Whether IPv6 datagrams without checksum are taken (RFC 6936, section 5: only where they are expected).
    pub takes_unchecked: bool,
}

impl Default for PortConfig {
    fn default() -> Self {
        Self {
            buffer: ByteCount(4 * 1024 * 1024),
            burst: BURST_MIN,
            protocol: PortProtocol::Udp,
            takes_unchecked: false,
        }
    }
}

impl PortConfig {
    /// Settings for a sender at `bound` at most, or at any rate.
    pub fn for_bound(bound: Option<Bitrate>) -> Self {
        bound.map_or(
            Self {
                burst: BURST_MAX,
                ..Self::default()
            },
            Self::for_rate,
        )
    }

    /// Settings for a sender at `rate`: bursts grow with it, as far as a pacer sends at once ([`BURST_TIME`]).
    pub fn for_rate(rate: Bitrate) -> Self {
        let packets = rate.bytes_in(BURST_TIME).0 / BURST_PACKET.0;
        let packets = usize::try_from(packets).unwrap_or(BURST_MAX);
        Self {
            burst: packets.clamp(BURST_MIN, BURST_MAX),
            ..Self::default()
        }
    }
}

/// The buffers that the kernel granted. Its limits (`net.core.rmem_max`, `wmem_max`) may have cut them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketBuffers {
    /// The octets that were asked for each.
    pub asked: ByteCount,
    /// The octets for arriving datagrams.
    pub receive: ByteCount,
    /// The octets for leaving datagrams.
    pub send: ByteCount,
}

impl SocketBuffers {
    /// Whether the kernel granted less than asked.
    pub fn is_limited(&self) -> bool {
        self.receive < self.asked || self.send < self.asked
    }
}

/// The datagrams that the kernel takes or hands over in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offloads {
    /// Generic segmentation offload.
    pub send_segments: usize,
    /// Generic receive offload.
    pub receive_segments: usize,
}

/// The counters of a port, in datagrams unless named otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PortCounters {
    /// Datagrams handed to the kernel.
    pub sent: u64,
    /// Octets of these datagrams.
    pub sent_bytes: u64,
    /// Datagrams that arrived.
    pub received: u64,
    /// Octets of these datagrams.
    pub received_bytes: u64,
    /// System calls that sent more than one datagram.
    pub bursts: u64,
    /// Times the kernel's send queue was full.
    pub blocked: u64,
    /// ICMP errors of connected sockets ("port unreachable" and its kin).
    pub refused: u64,
    /// Datagrams larger than the path takes.
    pub too_big: u64,
    /// Datagrams not sent for any other reason: no route, no permission, no memory, no way to leave the checksum out.
    pub send_failed: u64,
}

/// A non-blocking UDP socket.
#[derive(Debug)]
pub struct UdpPort {
    socket: UdpSocket,
    state: UdpSocketState,
    outbox: Outbox,
    burst_max: usize,
    protocol: PortProtocol,
    /// Whether the socket leaves checksums out now.
    unchecked: bool,
    blocked: bool,
    unreachable: Option<SocketAddr>,
    too_large: Option<SocketAddr>,
    peer: Option<SocketAddr>,
    counters: PortCounters,
    buffers: SocketBuffers,
    extras: Extras,
}

impl UdpPort {
    /// Binds `local`. A wildcard IPv6 address takes IPv4 too.
    ///
    /// # Errors
    /// The address is in use, not local, or not permitted; or the kernel lacks the protocol, or an option of it.
    pub fn bind(local: SocketAddr, config: PortConfig) -> io::Result<Self> {
        let protocol = config.protocol.of_socket();
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(protocol))?;
        if local.is_ipv6() && local.ip().is_unspecified() {
            socket.set_only_v6(false)?;
        }
        socket.bind(&local.into())?;
        let buffers = enlarge(&SockRef::from(&socket), config.buffer)?;
        let socket = UdpSocket::from(socket);
        let state = UdpSocketState::new((&socket).into())?;
        match config.protocol {
            PortProtocol::UdpLite => cover_header_alone(&socket)?,
            PortProtocol::Udp if config.takes_unchecked => take_unchecked(&socket)?,
            PortProtocol::Udp => {}
        }
        ask_for_times(&socket);
        Ok(Self {
            socket,
            state,
            outbox: Outbox::default(),
            burst_max: config.burst.max(1),
            protocol: config.protocol,
            unchecked: false,
            blocked: false,
            unreachable: None,
            too_large: None,
            peer: None,
            counters: PortCounters::default(),
            buffers,
            extras: Extras::default(),
        })
    }

    /// Binds any free port and talks to `peer` alone. Only such a port hears ICMP errors.
    ///
    /// # Errors
    /// There is no route to `peer`, or no free port.
    pub fn connect(peer: SocketAddr, config: PortConfig) -> io::Result<Self> {
        let any: SocketAddr = match peer {
            SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
            SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
        };
        let mut port = Self::bind(any, config)?;
        port.socket.connect(peer)?;
        port.peer = Some(peer);
        Ok(port)
    }

    /// Sends and receives by this device alone, whatever the routes say.
    ///
    /// # Errors
    /// There is no such device, or the kernel does not permit it.
    pub fn bind_device(&self, device: &str) -> io::Result<()> {
        SockRef::from(&self.socket).bind_device(Some(device.as_bytes()))
    }

    /// The address it is bound to.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The only peer of a connected port.
    pub const fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// The counters so far.
    pub const fn counters(&self) -> PortCounters {
        self.counters
    }

    /// The buffers that the kernel granted.
    pub const fn buffers(&self) -> SocketBuffers {
        self.buffers
    }

    /// The number of datagrams of one size that the kernel takes in one piece (GSO), and the number of one flow
    /// that it hands over in one (GRO); 1 without the offload.
    pub fn offloads(&self) -> Offloads {
        Offloads {
            send_segments: self.state.max_gso_segments(),
            receive_segments: self.state.gro_segments(),
        }
    }

    /// Whether another datagram may be queued. After `false`, wait until the socket is writable and
    /// call [`UdpPort::flush`].
    pub const fn can_send(&self) -> bool {
        !self.blocked
    }

    /// The address that could not be reached since the last call, if any.
    pub fn take_unreachable(&mut self) -> Option<SocketAddr> {
        self.unreachable.take()
    }

    /// The address to which a datagram was too large since the last call, if any.
    pub fn take_too_large(&mut self) -> Option<SocketAddr> {
        self.too_large.take()
    }

    /// The buffer to which the next datagram's octets are appended.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        self.outbox.buffer()
    }

    /// Queues the `len` octets that were appended last to [`UdpPort::buffer`].
    pub fn send(&mut self, path: &Path, len: usize, ecn: Ecn) {
        let unchecked = path.carrier == Carrier::UdpNoChecksum;
        let envelope = Envelope {
            to: path.remote,
            from: path.local,
            ecn: codepoint(ecn),
            unchecked,
        };
        // Linux refuses GSO to a socket without checksums, and to UDP-Lite.
        let is_single = unchecked || self.protocol == PortProtocol::UdpLite;
        let count_max = if is_single {
            1
        } else {
            self.burst_max.min(self.state.max_gso_segments())
        };
        self.outbox.push(envelope, len, count_max);
        if self.outbox.waiting() >= FLUSH_AT {
            self.hand_over(false);
        }
    }

    /// Forgets the `len` octets that were appended last: there is nowhere to send them.
    pub fn withdraw(&mut self, len: usize) {
        self.outbox.withdraw(len);
        self.counters.send_failed += 1;
    }

    /// Forgets the `len` octets that were appended last: they leave by another port.
    pub(super) fn take_back(&mut self, len: usize) {
        self.outbox.withdraw(len);
    }

    /// Hands everything queued to the kernel, as far as it takes it.
    pub fn flush(&mut self) {
        self.hand_over(true);
    }

    /// Hands bursts to the kernel. Without `all`, a burst that may still grow stays.
    fn hand_over(&mut self, all: bool) {
        self.blocked = false;
        let mut retried = false;
        while (all || self.outbox.has_whole_burst())
            && let Some((burst, contents)) = self.outbox.front()
        {
            let unchecked = burst.envelope.unchecked;
            if unchecked != self.unchecked {
                if send_checksums(&self.socket, !unchecked).is_err() {
                    self.counters.send_failed += burst.count as u64;
                    self.outbox.pop();
                    continue;
                }
                self.unchecked = unchecked;
            }
            let transmit = quinn_udp::Transmit {
                destination: burst.envelope.to,
                ecn: burst.envelope.ecn,
                contents,
                segment_size: (burst.count > 1).then_some(burst.datagram_len),
                src_ip: burst.envelope.from,
            };
            match self.state.try_send((&self.socket).into(), &transmit) {
                Ok(()) => {
                    self.counters.sent += burst.count as u64;
                    self.counters.sent_bytes += burst.len as u64;
                    self.counters.bursts += u64::from(burst.count > 1);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.blocked = true;
                    self.counters.blocked += 1;
                    return;
                }
                // A connected socket reports an earlier datagram's error here; this datagram was not sent.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused && !retried => {
                    self.counters.refused += 1;
                    self.unreachable = Some(burst.envelope.to);
                    retried = true;
                    continue;
                }
                // Only some datagrams of a burst may be too large: the padded probe, and not those that joined it.
                Err(error) if is_too_big(&error) && burst.count > 1 => {
                    self.outbox.split_front();
                    continue;
                }
                Err(error) if is_too_big(&error) => {
                    self.counters.too_big += 1;
                    self.too_large = Some(burst.envelope.to);
                }
                Err(_) if burst.count > 1 => {
                    self.outbox.split_front();
                    continue;
                }
                Err(error) => {
                    self.counters.send_failed += 1;
                    if is_unreachable(&error) {
                        self.unreachable = Some(burst.envelope.to);
                    }
                }
            }
            retried = false;
            self.outbox.pop();
        }
    }

    /// Receives one batch; `false` when nothing more is there.
    ///
    /// # Errors
    /// The socket is broken. ICMP errors are counted instead.
    pub fn receive(&mut self, batch: &mut Batch) -> io::Result<bool> {
        batch.clear();
        let mut came = false;
        while let Some(room) = batch.room() {
            match receive(&self.socket, room, &mut self.extras) {
                Ok(received) => batch.push(received),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    batch.end();
                    break;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_unreachable(&error) => {
                    self.counters.refused += 1;
                    self.unreachable = self.peer;
                    came = true;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if batch.is_empty() {
            return Ok(came);
        }
        batch.read_at(unix_time());
        for train in batch.trains() {
            let (datagrams, octets) = train.counts();
            self.counters.received += datagrams;
            self.counters.received_bytes += octets;
        }
        Ok(true)
    }
}

impl AsFd for UdpPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn is_too_big(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error())
}

fn is_unreachable(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
    )
}

fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotCapable => None,
        Ecn::Capable => Some(EcnCodepoint::Ect0),
        Ecn::Congested => Some(EcnCodepoint::Ce),
    }
}

/// Linux books twice the octets asked for, for its own headers, and reports the double (socket(7)).
const BOOKED_TO_USABLE: usize = if cfg!(target_os = "linux") { 2 } else { 1 };

fn enlarge(socket: &SockRef<'_>, asked: ByteCount) -> io::Result<SocketBuffers> {
    socket.set_recv_buffer_size(asked.as_usize())?;
    socket.set_send_buffer_size(asked.as_usize())?;
    Ok(SocketBuffers {
        asked,
        receive: ByteCount::from_usize(socket.recv_buffer_size()? / BOOKED_TO_USABLE),
        send: ByteCount::from_usize(socket.send_buffer_size()? / BOOKED_TO_USABLE),
    })
}

#[cfg(test)]
mod tests;
