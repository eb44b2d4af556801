//! Ports beside the one for UDP, for carriers that need a socket of their own.

use super::batch::Batch;
use super::carrier::Carrier;
use super::paths::Path;
use super::port::UdpPort;
use crate::ethernet::{EthernetPort, Neighbour};
use fulmar_proto::machine::Ecn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// A port beside the one for UDP.
#[derive(Debug)]
pub enum PortBeside {
    /// UDP from another address, for a further path.
    Udp(UdpPort),
    /// The place of such a port while its device or address is missing: what leaves there is lost.
    Absent,
    /// UDP-Lite.
    UdpLite(UdpPort),
    /// Frames on a device.
    Ethernet(EthernetPort),
}

impl PortBeside {
    /// The carrier of what arrives.
    pub(super) const fn carrier(&self) -> Carrier {
        match self {
            Self::Udp(_) | Self::Absent => Carrier::Udp,
            Self::UdpLite(_) => Carrier::UdpLite,
            Self::Ethernet(_) => Carrier::Ethernet,
        }
    }

    /// The number of the socket by which paths name it, if it has the place `index` among those beside the first; 0 where
    /// the carrier tells which it is.
    pub(super) fn socket(&self, index: usize) -> u8 {
        let number = u8::try_from(index + 1).unwrap_or(u8::MAX);
        if matches!(self, Self::Udp(_) | Self::Absent) {
            number
        } else {
            0
        }
    }

    /// Whether what goes to `path` leaves here; it has the place `index` among the ports beside the first.
    pub(super) fn serves(&self, path: &Path, index: usize) -> bool {
        match self {
            Self::Udp(_) | Self::Absent => path.socket == self.socket(index),
            Self::UdpLite(_) => path.carrier == Carrier::UdpLite,
            Self::Ethernet(port) => {
                let neighbour = Neighbour::of(path.remote);
                path.carrier == Carrier::Ethernet
                    && neighbour.is_some_and(|neighbour| neighbour.device == port.device())
            }
        }
    }

    pub(super) fn send(&mut self, path: &Path, octets: &[u8], ecn: Ecn) {
        match self {
            Self::Udp(port) | Self::UdpLite(port) => {
                port.buffer().extend_from_slice(octets);
                port.send(path, octets.len(), ecn);
            }
            Self::Ethernet(port) => port.send(path.remote, octets),
            Self::Absent => {}
        }
    }

    pub(super) fn flush(&mut self) {
        match self {
            Self::Udp(port) | Self::UdpLite(port) => port.flush(),
            Self::Ethernet(port) => port.flush(),
            Self::Absent => {}
        }
    }

    pub(super) const fn can_send(&self) -> bool {
        match self {
            Self::Udp(port) | Self::UdpLite(port) => port.can_send(),
            Self::Ethernet(port) => port.can_send(),
            Self::Absent => true,
        }
    }

    pub(super) fn receive(&mut self, batch: &mut Batch) -> io::Result<bool> {
        match self {
            Self::Udp(port) | Self::UdpLite(port) => port.receive(batch),
            Self::Ethernet(port) => port.receive(batch),
            Self::Absent => Ok(false),
        }
    }

    pub(super) fn take_unreachable(&mut self) -> Option<SocketAddr> {
        match self {
            Self::Udp(port) | Self::UdpLite(port) => port.take_unreachable(),
            Self::Ethernet(_) | Self::Absent => None,
        }
    }

    pub(super) fn take_too_large(&mut self) -> Option<SocketAddr> {
        match self {
            Self::Udp(port) | Self::UdpLite(port) => port.take_too_large(),
            Self::Ethernet(port) => port.take_too_large(),
            Self::Absent => None,
        }
    }

    /// The descriptor to wait for, while there is one.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Udp(port) | Self::UdpLite(port) => Some(port.as_fd()),
            Self::Ethernet(port) => Some(port.as_fd()),
            Self::Absent => None,
        }
    }
}

/// A change of the ports by which further paths leave.
#[derive(Debug)]
pub enum PortChange {
    /// The socket of this number gives way to another one, or to none.
    Exchange(u8, Box<PortBeside>),
    /// This machine has lost an address: what left from there leaves from where the routes say.
    AddressGone(IpAddr),
}
