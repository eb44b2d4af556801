//! One receiving system call, with what the kernel tells of a datagram, and the times that it tells.

use fulmar_proto::machine::Ecn;
use fulmar_proto::units::{Duration, Instant};
use nix::libc::in6_pktinfo;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;

/// The ECN field within an octet of the traffic class (RFC 3168, section 5).
const ECN_BITS: i32 = 3;

/// One call's datagrams: one, or several of one size that the kernel joined (GRO).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) from: SocketAddr,
    pub(crate) to: Option<IpAddr>,
    pub(crate) ecn: Ecn,
    /// Octets of all, and of each but the last.
    pub(crate) len: usize,
    pub(crate) stride: usize,
    /// The time of day at which the first came.
    pub(crate) stamp: Option<Duration>,
}

/// Room for what the kernel tells beside the octets.
#[derive(Debug)]
pub(super) struct Extras(Vec<u8>);

impl Default for Extras {
    fn default() -> Self {
        // A time, the size of each, the address here, and the traffic class of either family: a socket for both has two.
        let space = nix::cmsg_space!(TimeSpec, i32, in6_pktinfo, i32, i32);
        Self(vec![0; space.capacity()])
    }
}

/// Asks for the time at which datagrams come. A system that does not know it goes without.
pub(super) fn ask_for_times(socket: &UdpSocket) {
    setsockopt(socket, ReceiveTimestampns, &true).ok();
}

/// The next datagrams, which `quinn_udp::UdpSocketState` has prepared the socket for. Its own call has no room for
/// their time.
pub(super) fn receive(
    socket: &UdpSocket,
    room: &mut [u8],
    extras: &mut Extras,
) -> io::Result<Received> {
    let mut pieces = [IoSliceMut::new(room)];
    let message = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut pieces,
        Some(&mut extras.0),
        MsgFlags::MSG_DONTWAIT,
    )?;
    let from = message.address.as_ref().and_then(plain);
    let mut received = Received {
        from: from.ok_or_else(|| io::Error::other("a datagram without a source"))?,
        to: None,
        ecn: Ecn::NotCapable,
        len: message.bytes,
        stride: message.bytes,
        stamp: None,
    };
    // One that does not fit costs what it would have said, and not the datagram.
    for extra in message.cmsgs().into_iter().flatten() {
        match extra {
            ControlMessageOwned::ScmTimestampns(time) => {
                received.stamp = Some(time.into());
            }
            ControlMessageOwned::UdpGroSegments(octets) => {
                received.stride = usize::try_from(octets).unwrap_or(received.len);
            }
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                received.to = Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into());
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                received.to = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
            }
            ControlMessageOwned::Ipv4Tos(tos) => received.ecn = ecn_of(tos.into()),
            ControlMessageOwned::Ipv6TClass(class) => received.ecn = ecn_of(class),
            _ => {}
        }
    }
    Ok(received)
}

fn plain(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in();
    let v4 = v4.map(|v4| SocketAddrV4::from(*v4).into());
    let v6 = || address.as_sockaddr_in6();
    v4.or_else(|| v6().map(|v6| SocketAddrV6::from(*v6).into()))
}

const fn ecn_of(class: i32) -> Ecn {
    match class & ECN_BITS {
        0 => Ecn::NotCapable,
        ECN_BITS => Ecn::Congested,
        _ => Ecn::Capable,
    }
}

/// Times of arrival by the driver's clock, out of how long datagrams waited by the time of day.
///
/// The time of day may jump. No arrival is earlier than one before it, nor than when nothing was there, nor later than
/// now: a jump costs the exact time of the datagrams that wait just then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrivals {
    not_before: Instant,
}

impl Arrivals {
    /// Notes that nothing waited at `at`.
    pub(super) fn on_empty(&mut self, at: Instant) {
        self.not_before = self.not_before.max(at);
    }

    /// The time of arrival of what was read at `read` and had waited for so long.
    pub(super) fn take(&mut self, read: Instant, waited: Duration) -> Instant {
        self.not_before = (read - waited).max(self.not_before).min(read);
        self.not_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::START + millis_of(millis)
    }

    fn millis_of(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn datagrams_arrived_when_the_kernel_took_them_in() {
        let mut arrivals = Arrivals::default();
        arrivals.on_empty(at(100));
        assert_eq!(arrivals.take(at(130), millis_of(20)), at(110));
        assert_eq!(arrivals.take(at(130), millis_of(5)), at(125));
        assert_eq!(arrivals.take(at(130), Duration::ZERO), at(130));
    }

    #[test]
    fn a_time_of_day_that_jumps_moves_no_arrival_before_one_that_was_or_before_nothing_was_there() {
        let mut arrivals = Arrivals::default();
        arrivals.on_empty(at(100));
        // Forward by an hour while it waited.
        assert_eq!(arrivals.take(at(130), millis_of(3_600_000)), at(100));
        assert_eq!(arrivals.take(at(140), millis_of(10)), at(130));
        assert_eq!(arrivals.take(at(140), millis_of(3_600_000)), at(130));
        // Backward: it seems not to have waited.
        assert_eq!(arrivals.take(at(150), Duration::ZERO), at(150));
        // Another thread's clock cannot be ahead of the read.
        assert_eq!(arrivals.take(at(140), Duration::ZERO), at(140));
    }
}
