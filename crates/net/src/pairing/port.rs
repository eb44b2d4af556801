//! A machine of pairing over a UDP socket.

use super::end::PairingEnd;
use crate::clock::Clock;
use crate::wait::{Interest, WakeUp, wait};
use fulmar_proto::units::Instant;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

/// Longer than any datagram of pairing.
const BUFFER_BYTES: usize = 2_048;
/// Datagrams read before the machine's deadline is looked at again.
const READ_MAX: usize = 64;

/// A socket that carries the datagrams of one machine.
#[derive(Debug)]
pub struct PairingPort {
    socket: UdpSocket,
    clock: Clock,
}

impl PairingPort {
    /// A port at `local`; the unspecified address of IPv6 is every address of both families.
    ///
    /// # Errors
    /// The port is in use, or the system refuses.
    pub fn bind(local: SocketAddr, clock: Clock) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
        if local.is_ipv6() {
            socket.set_only_v6(!local.ip().is_unspecified())?;
        }
        socket.set_nonblocking(true)?;
        socket.bind(&local.into())?;
        let socket = socket.into();
        Ok(Self { socket, clock })
    }

    /// The port's address.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Sends what `end` has to send, waits for a datagram, its deadline or a wake-up, and feeds it.
    ///
    /// # Errors
    /// The system cannot wait or receive. A datagram that cannot be sent is one that was lost.
    pub fn step(&self, end: &mut impl PairingEnd, wake_up: &WakeUp) -> io::Result<()> {
        self.send(end);
        let left = |at: Instant| at.saturating_since(self.now());
        let sources = [
            (self.socket.as_fd(), Interest::Readable),
            (wake_up.as_fd(), Interest::Readable),
        ];
        wait(&sources, end.deadline().map(left), &mut Vec::new())?;
        wake_up.clear();
        let mut buffer = [0; BUFFER_BYTES];
        for _ in 0..READ_MAX {
            match self.socket.recv_from(&mut buffer) {
                Ok((len, source)) => {
                    end.handle(source, buffer.get(..len).unwrap_or_default(), self.now());
                    self.send(end);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        end.handle_deadline(self.now());
        self.send(end);
        Ok(())
    }

    fn send(&self, end: &mut impl PairingEnd) {
        while let Some((remote, datagram)) = end.poll_transmit() {
            // A refusal of the system is a loss: the question comes again.
            let _sent = self.socket.send_to(&datagram, remote);
        }
    }
}
