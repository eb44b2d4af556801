//! The ways in which datagrams travel, and the kernel's switches for checksums.
//!
//! The kernel drops a datagram whose checksum is wrong, also where a session could mend it. Without a checksum
//! (RFC 768; RFC 6935 and 6936 for IPv6), or with one that covers the header alone (RFC 3828), it arrives.

use socket2::Protocol;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// A way in which datagrams travel to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Carrier {
    /// UDP with its checksum: damaged datagrams are dropped on the way.
    #[default]
    Udp,
    /// UDP without checksum, from the same port: damaged datagrams arrive, unless their destination, length or checksum
    /// is damaged.
    UdpNoChecksum,
    /// UDP-Lite whose checksum covers the header alone. Not every kernel has it.
    UdpLite,
    /// Ethernet frames of a type of our own.
    Ethernet,
}

impl Carrier {
    /// Whether damaged datagrams arrive.
    pub const fn lets_damage_in(self) -> bool {
        !matches!(self, Self::Udp)
    }
}

/// The protocol of a socket with ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortProtocol {
    /// UDP. What leaves has a checksum unless its path says [`Carrier::UdpNoChecksum`].
    #[default]
    Udp,
    /// UDP-Lite.
    UdpLite,
}

impl PortProtocol {
    pub(super) fn of_socket(self) -> Protocol {
        match self {
            Self::Udp => Protocol::UDP,
            // socket2 has no name for it on all systems.
            Self::UdpLite => Protocol::from(UDPLITE),
        }
    }
}

/// `IPPROTO_UDPLITE` (linux/in.h), also the level of its options.
const UDPLITE: i32 = 136;
/// `UDPLITE_SEND_CSCOV` and `UDPLITE_RECV_CSCOV` (linux/udp.h).
const SEND_COVERAGE: i32 = 10;
const RECEIVE_COVERAGE: i32 = 11;
/// The octets of its header, the least that can be covered (RFC 3828, section 3.1).
const COVERAGE: i32 = 8;

/// `SOL_SOCKET` and `SO_NO_CHECK` (asm-generic/socket.h), which IPv4 heeds.
const SOL_SOCKET: i32 = 1;
const SO_NO_CHECK: i32 = 11;
/// `UDP_NO_CHECK6_TX` and `UDP_NO_CHECK6_RX` (linux/udp.h).
const SOL_UDP: i32 = 17;
const NO_CHECK6_TX: i32 = 101;
const NO_CHECK6_RX: i32 = 102;

fn set(socket: &UdpSocket, level: i32, option: i32, value: i32) -> io::Result<()> {
    if !cfg!(target_os = "linux") {
        return Err(io::ErrorKind::Unsupported.into());
    }
    uapi::setsockopt(socket.as_raw_fd(), level, option, &value)
        .map_err(|error| io::Error::from_raw_os_error(error.0))
}

fn is_v6(socket: &UdpSocket) -> io::Result<bool> {
    Ok(socket.local_addr()?.is_ipv6())
}

/// Lets a UDP socket take IPv6 datagrams without checksum. IPv4 takes them anyway.
///
/// # Errors
/// The kernel has no such option.
pub(super) fn take_unchecked(socket: &UdpSocket) -> io::Result<()> {
    if is_v6(socket)? {
        set(socket, SOL_UDP, NO_CHECK6_RX, 1)?;
    }
    Ok(())
}

/// Switches the checksum of what a UDP socket sends.
///
/// # Errors
/// The kernel has no such option.
pub(super) fn send_checksums(socket: &UdpSocket, on: bool) -> io::Result<()> {
    let off = i32::from(!on);
    set(socket, SOL_SOCKET, SO_NO_CHECK, off)?;
    // A socket for both families heeds the other option where it sends IPv6.
    if is_v6(socket)? {
        set(socket, SOL_UDP, NO_CHECK6_TX, off)?;
    }
    Ok(())
}

/// Lets a UDP-Lite socket cover, and ask to be covered, its header alone.
///
/// # Errors
/// The kernel has no such option.
pub(super) fn cover_header_alone(socket: &UdpSocket) -> io::Result<()> {
    set(socket, UDPLITE, SEND_COVERAGE, COVERAGE)?;
    set(socket, UDPLITE, RECEIVE_COVERAGE, COVERAGE)
}
