//! Receiving system calls for many datagrams, with what the kernel tells of a datagram, and the times that it tells.

use super::batch::{Batch, Received, TRAINS_MAX};
use fulmar_proto::machine::Ecn;
use fulmar_proto::units::{Duration, Instant};
use nix::libc::in6_pktinfo;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrStorage, recvmmsg, setsockopt,
};
use nix::sys::time::TimeSpec;
use std::array;
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;

/// The ECN field within an octet of the traffic class (RFC 3168, section 5).
const ECN_BITS: i32 = 3;

/// Asks for the time at which datagrams come. A system that does not know it goes without.
pub(super) fn ask_for_times(socket: &UdpSocket) {
    setsockopt(socket, ReceiveTimestampns, &true).ok();
}

/// The fewest trains that a call has room for.
const ASKED_MIN: usize = 4;

/// The receiving calls of one socket, which `quinn_udp::UdpSocketState` has prepared it for. Its own call has no room
/// for the time of a datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receiver {
    /// The number of trains that the next call has room for. Making room costs time, and most calls bring little.
    asked: usize,
}

impl Default for Receiver {
    fn default() -> Self {
        Self { asked: ASKED_MIN }
    }
}

impl Receiver {
    /// Fills the batch's room by one system call, as far as something is there. Notes its end if it was not enough to
    /// fill what was asked for.
    pub(super) fn receive(&mut self, socket: &UdpSocket, batch: &mut Batch) -> io::Result<()> {
        let (asked, came) = self.receive_into(socket, batch.vacancy())?;
        if came < asked {
            batch.end();
        }
        self.asked = (2 * came).clamp(ASKED_MIN, TRAINS_MAX);
        Ok(())
    }

    /// Says how many trains there was room for, and how many came.
    fn receive_into<'room>(
        self,
        socket: &UdpSocket,
        (mut rooms, trains): (
            impl ExactSizeIterator<Item = &'room mut [u8]>,
            &mut Vec<Received>,
        ),
    ) -> io::Result<(usize, usize)> {
        let asked = self.asked.min(rooms.len());
        let mut pieces: [_; TRAINS_MAX] =
            array::from_fn(|_| [IoSliceMut::new(rooms.next().unwrap_or_default())]);
        // A time, the size of each, the address here, and the traffic class of either family: a socket for both has two.
        let extras = nix::cmsg_space!(TimeSpec, i32, in6_pktinfo, i32, i32);
        // The kernel writes down in the headers how much of each room for extras it took: they serve once.
        let mut headers = MultiHeaders::preallocate(asked, Some(extras));
        let messages = recvmmsg(
            socket.as_raw_fd(),
            &mut headers,
            pieces.iter_mut().take(asked),
            MsgFlags::MSG_DONTWAIT,
            None,
        )?;
        let before = trains.len();
        for message in messages {
            trains.push(read(&message)?);
        }
        Ok((asked, trains.len() - before))
    }
}

/// What the kernel said of one datagram, or of several that it joined.
fn read(message: &RecvMsg<'_, '_, SockaddrStorage>) -> io::Result<Received> {
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
