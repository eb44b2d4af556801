//! Ports beside the one for UDP, for carriers that need a socket of their own.

use super::batch::Batch;
use super::carrier::Carrier;
use super::paths::Path;
use super::port::UdpPort;
use crate::ethernet::{EthernetPort, Neighbour};
use fulmar_proto::machine::Ecn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// A port beside the one for UDP.
#[derive(Debug)]
pub enum PortBeside {
    /// UDP-Lite.
    UdpLite(UdpPort),
    /// Frames on a device.
    Ethernet(EthernetPort),
}

impl PortBeside {
    /// The carrier of what arrives.
    pub(super) const fn carrier(&self) -> Carrier {
        match self {
            Self::UdpLite(_) => Carrier::UdpLite,
            Self::Ethernet(_) => Carrier::Ethernet,
        }
    }

    /// Whether what goes to `path` leaves here.
    pub(super) fn serves(&self, path: &Path) -> bool {
        match self {
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
            Self::UdpLite(port) => {
                port.buffer().extend_from_slice(octets);
                port.send(path, octets.len(), ecn);
            }
            Self::Ethernet(port) => port.send(path.remote, octets),
        }
    }

    pub(super) fn flush(&mut self) {
        match self {
            Self::UdpLite(port) => port.flush(),
            Self::Ethernet(port) => port.flush(),
        }
    }

    pub(super) const fn can_send(&self) -> bool {
        match self {
            Self::UdpLite(port) => port.can_send(),
            Self::Ethernet(port) => port.can_send(),
        }
    }

    pub(super) fn receive(&mut self, batch: &mut Batch) -> io::Result<bool> {
        match self {
            Self::UdpLite(port) => port.receive(batch),
            Self::Ethernet(port) => port.receive(batch),
        }
    }

    pub(super) fn take_unreachable(&mut self) -> Option<SocketAddr> {
        match self {
            Self::UdpLite(port) => port.take_unreachable(),
            Self::Ethernet(_) => None,
        }
    }

    pub(super) fn take_too_large(&mut self) -> Option<SocketAddr> {
        match self {
            Self::UdpLite(port) => port.take_too_large(),
            Self::Ethernet(port) => port.take_too_large(),
        }
    }
}

impl AsFd for PortBeside {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::UdpLite(port) => port.as_fd(),
            Self::Ethernet(port) => port.as_fd(),
        }
    }
}
