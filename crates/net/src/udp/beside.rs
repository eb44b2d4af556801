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
    /// the carrier tells which it is. `None`: there are more than can be told apart.
    pub(super) fn socket(&self, index: usize) -> Option<u16> {
        match self {
            Self::Udp(_) | Self::Absent => u16::try_from(index.checked_add(1)?).ok(),
            Self::UdpLite(_) | Self::Ethernet(_) => Some(0),
        }
    }

    /// Whether what goes to `path` leaves here; it has the place `index` among the ports beside the first.
    pub(super) fn serves(&self, path: &Path, index: usize) -> bool {
        match self {
            Self::Udp(_) | Self::Absent => Some(path.socket) == self.socket(index),
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
    Exchange(u16, Box<PortBeside>),
    /// This machine has lost an address: what left from there leaves from where the routes say.
    AddressGone(IpAddr),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_socket_has_a_number_of_its_own_and_one_too_many_has_none() {
        let most = usize::from(u16::MAX);
        let numbers = [0, 253, 254, 255, most - 1, most, usize::MAX];
        let numbers = numbers.map(|index| PortBeside::Absent.socket(index));
        let last = [Some(u16::MAX), None, None];
        let first = [1, 254, 255, 256].map(Some);
        assert_eq!(numbers[..4], first);
        assert_eq!(numbers[4..], last);
    }

    #[test]
    fn what_goes_to_a_path_leaves_by_its_socket_alone() {
        let path = Path {
            socket: 256,
            ..Path::udp(([127, 0, 0, 1], 4914).into(), None)
        };
        let serving = (0..1_000).filter(|index| PortBeside::Absent.serves(&path, *index));
        assert_eq!(serving.collect::<Vec<_>>(), [255]);
    }
}
