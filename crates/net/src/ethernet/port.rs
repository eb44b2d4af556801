//! A packet socket for frames of our type on one device.

use super::neighbour::{HARDWARE_BYTES, Neighbour};
use crate::udp::{Batch, PortCounters, Received};
use fulmar_proto::machine::Ecn;
use fulmar_proto::units::ByteCount;
use rustix::io::Errno;
use socket2::{Domain, SockRef, Socket, Type};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use uapi::c::{AF_PACKET, MSG_DONTWAIT, sockaddr_ll};

/// The type of frames, which IEEE 802 leaves to local experiments (RFC 9542, appendix B.1).
const FRAME_TYPE: u16 = 0x88B5;
/// The fewest octets of payload in a frame (IEEE 802.3).
const PAYLOAD_MIN: usize = 46;
/// The octet in front of a datagram.
const COUNT_BYTES: usize = 1;
/// Frames that wait for the kernel. The machine is asked for no more meanwhile.
const WAITING_MAX: usize = 1_024;
/// Frames that are read at a time, with those for others.
const TRIES_MAX: usize = 32;
/// `PACKET_HOST`, `PACKET_BROADCAST` and `PACKET_MULTICAST` (`linux/if_packet.h`): frames for others are further up.
const FOR_US_MAX: u8 = 2;

/// A non-blocking packet socket.
#[derive(Debug)]
pub struct EthernetPort {
    socket: Socket,
    device: u32,
    waiting: VecDeque<(SocketAddr, Vec<u8>)>,
    blocked: bool,
    too_large: Option<SocketAddr>,
    counters: PortCounters,
}

fn error_of(error: uapi::Errno) -> io::Error {
    io::Error::from_raw_os_error(error.0)
}

fn address(device: u32, hardware: [u8; HARDWARE_BYTES]) -> io::Result<sockaddr_ll> {
    let wide = |_| io::Error::from(ErrorKind::InvalidInput);
    let mut octets = [0; 8];
    octets[..HARDWARE_BYTES].copy_from_slice(&hardware);
    Ok(sockaddr_ll {
        sll_family: u16::try_from(AF_PACKET).map_err(wide)?,
        sll_protocol: FRAME_TYPE.to_be(),
        sll_ifindex: i32::try_from(device).map_err(wide)?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: u8::try_from(HARDWARE_BYTES).map_err(wide)?,
        sll_addr: octets,
    })
}

/// A frame's payload around a datagram.
fn payload(datagram: &[u8]) -> Vec<u8> {
    let padding = PAYLOAD_MIN.saturating_sub(COUNT_BYTES + datagram.len());
    let mut payload = Vec::with_capacity(COUNT_BYTES + datagram.len() + padding);
    // At most 45.
    payload.push(u8::try_from(padding).unwrap_or_default());
    payload.extend_from_slice(datagram);
    payload.resize(payload.len() + padding, 0);
    payload
}

/// The place of the datagram in a frame's payload. A long frame has no padding, whatever its damaged count says.
fn datagram_in(payload: &[u8]) -> Option<core::ops::Range<usize>> {
    let (&count, rest) = payload.split_first()?;
    let padding = if payload.len() > PAYLOAD_MIN {
        0
    } else {
        usize::from(count)
    };
    let len = rest.len().checked_sub(padding)?;
    Some(COUNT_BYTES..COUNT_BYTES + len)
}

/// The index of the device of this name.
///
/// # Errors
/// There is no such device.
pub fn device_index(name: &str) -> io::Result<u32> {
    Ok(nix::net::if_::if_nametoindex(name)?)
}

impl EthernetPort {
    /// Opens a socket for our frames on the device of this name, with buffers of so many octets.
    ///
    /// # Errors
    /// There is no such device, or the process lacks the capability for packet sockets (`CAP_NET_RAW`).
    pub fn open(device: &str, buffer: ByteCount) -> io::Result<Self> {
        let device = device_index(device)?;
        // Without a protocol it hears nothing until it is bound.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, None)?;
        socket.set_nonblocking(true)?;
        let own = SockRef::from(&socket);
        own.set_recv_buffer_size(buffer.as_usize())?;
        own.set_send_buffer_size(buffer.as_usize())?;
        let local = address(device, [0; HARDWARE_BYTES])?;
        uapi::bind(socket.as_raw_fd(), &local).map_err(error_of)?;
        Ok(Self {
            socket,
            device,
            waiting: VecDeque::new(),
            blocked: false,
            too_large: None,
            counters: PortCounters::default(),
        })
    }

    /// The index of its device.
    pub const fn device(&self) -> u32 {
        self.device
    }

    /// The counters so far.
    pub const fn counters(&self) -> PortCounters {
        self.counters
    }

    /// Whether another datagram may be queued.
    pub const fn can_send(&self) -> bool {
        !self.blocked
    }

    /// The address to which a datagram was too large since the last call, if any.
    pub fn take_too_large(&mut self) -> Option<SocketAddr> {
        self.too_large.take()
    }

    /// Sends a datagram to the neighbour for which `to` stands, now or when the kernel takes it.
    pub fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back((to, payload(datagram)));
        } else {
            self.counters.send_failed += 1;
        }
        self.flush();
    }

    /// Hands what waits to the kernel, as far as it takes it.
    pub fn flush(&mut self) {
        self.blocked = false;
        while let Some((to, octets)) = self.waiting.front() {
            match self.hand_over(*to, octets) {
                Ok(()) => {
                    self.counters.sent += 1;
                    self.counters.sent_bytes += (octets.len() - COUNT_BYTES) as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.blocked = true;
                    self.counters.blocked += 1;
                    return;
                }
                Err(error) if error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error()) => {
                    self.counters.too_big += 1;
                    self.too_large = Some(*to);
                }
                Err(_) => self.counters.send_failed += 1,
            }
            self.waiting.pop_front();
        }
    }

    fn hand_over(&self, to: SocketAddr, octets: &[u8]) -> io::Result<()> {
        let neighbour = Neighbour::of(to).filter(|to| to.device == self.device);
        let neighbour = neighbour.ok_or(ErrorKind::AddrNotAvailable)?;
        let to = address(self.device, neighbour.hardware)?;
        uapi::sendto(self.socket.as_raw_fd(), octets, MSG_DONTWAIT, &to).map_err(error_of)?;
        Ok(())
    }

    /// Receives one batch; `false` when nothing more is there.
    ///
    /// # Errors
    /// The socket is broken. A device that is down is not.
    pub fn receive(&mut self, batch: &mut Batch) -> io::Result<bool> {
        receive_some(&self.socket, self.device, batch)?;
        for train in batch.trains() {
            let (datagrams, octets) = train.counts();
            self.counters.received += datagrams;
            self.counters.received_bytes += octets;
        }
        Ok(!batch.is_empty())
    }
}

/// Reads frames until none is there or the batch is full.
fn receive_some(socket: &Socket, device: u32, batch: &mut Batch) -> io::Result<()> {
    batch.clear();
    // Frames for others take a try, so that no flood of them keeps us here.
    for _ in 0..TRIES_MAX {
        let Some(room) = batch.room() else {
            break;
        };
        let mut from = address(device, [0; HARDWARE_BYTES])?;
        let received = uapi::recvfrom(socket.as_raw_fd(), room, MSG_DONTWAIT, &mut from);
        let (octets, _) = match received.map_err(error_of) {
            Ok(received) => received,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                batch.end();
                break;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // It comes back when the device is up again.
            Err(error) if error.kind() == ErrorKind::NetworkDown => break,
            Err(error) => return Err(error),
        };
        let place = datagram_in(octets).filter(|_| from.sll_pkttype <= FOR_US_MAX);
        let (Some(place), Some(hardware)) = (place, from.sll_addr.first_chunk()) else {
            continue;
        };
        let len = place.len();
        octets.copy_within(place, 0);
        let neighbour = Neighbour {
            device,
            hardware: *hardware,
        };
        batch.push(Received {
            from: neighbour.address(),
            to: None,
            ecn: Ecn::NotCapable,
            len,
            stride: len,
            stamp: None,
        });
    }
    Ok(())
}

impl AsFd for EthernetPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_datagrams_are_padded_and_come_back_as_they_were() {
        for len in 0..=100 {
            let datagram: Vec<u8> = (1..=len).collect();
            let payload = payload(&datagram);
            assert_eq!(payload.len(), PAYLOAD_MIN.max(1 + datagram.len()));
            let place = datagram_in(&payload).unwrap();
            assert_eq!(payload[place], datagram[..], "{len}");
        }
    }

    #[test]
    fn a_damaged_count_costs_short_frames_alone_and_never_more_than_there_is() {
        for count in 0..=u8::MAX {
            let mut long = payload(&[7; 46]);
            long[0] = count;
            assert_eq!(datagram_in(&long), Some(1..47));
            let mut short = payload(&[7; 10]);
            short[0] = count;
            let place = datagram_in(&short);
            assert_eq!(place.is_some(), count <= 45, "{count}");
            assert!(place.is_none_or(|place| place.end <= short.len()));
        }
        assert_eq!(datagram_in(&[]), None);
    }
}
