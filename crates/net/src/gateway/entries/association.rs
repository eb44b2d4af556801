//! SOCKS5 UDP associations (RFC 1928, section 7): one relay socket for a client, one flow for each
//! of its destinations.

use super::socks::codec;
use crate::gateway::flows::{Answers, Permit};
use crate::gateway::sockets::{kernel, packets};
use fulmar_proto::splice::{Destination, FlowClass, HostName};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::rc::{Rc, Weak};

/// Destinations of one association.
pub(in crate::gateway) const DESTINATIONS_MAX: usize = 256;

/// One client's relay.
#[derive(Debug)]
pub(in crate::gateway) struct Association {
    /// The client's control connection: the association lasts while it is open.
    control: TcpStream,
    relay: Rc<UdpSocket>,
    /// The client's address: its control connection's host, and the port of its first datagram.
    host: IpAddr,
    client: Option<SocketAddr>,
    pub(in crate::gateway) permit: Permit,
    pub(in crate::gateway) class: FlowClass,
    /// The gateways behind the peer.
    pub(super) beyond: Vec<HostName>,
}

impl Association {
    pub(in crate::gateway) fn new(
        control: TcpStream,
        permit: Permit,
        (class, beyond): (FlowClass, Vec<HostName>),
    ) -> io::Result<Self> {
        let here = control.local_addr()?.ip();
        let host = control.peer_addr()?.ip();
        let relay = UdpSocket::bind((here, 0))?;
        relay.set_nonblocking(true)?;
        Ok(Self {
            control,
            relay: Rc::new(relay),
            host,
            client: None,
            permit,
            class,
            beyond,
        })
    }

    pub(in crate::gateway) const fn control(&self) -> &TcpStream {
        &self.control
    }

    pub(in crate::gateway) fn relay(&self) -> &UdpSocket {
        &self.relay
    }

    /// Whether its client has sent a datagram.
    pub(in crate::gateway) const fn has_spoken(&self) -> bool {
        self.client.is_some()
    }

    /// Whether the client still holds its connection. Octets on it mean nothing, and must not hide its end.
    pub(in crate::gateway) fn is_open(&self) -> bool {
        !kernel::has_ended(&self.control)
    }

    /// The next datagram of the client: its destination and its payload. `Ok(None)` for a datagram that is not the
    /// client's, or not one of SOCKS.
    pub(in crate::gateway) fn receive<'a>(
        &mut self,
        buffer: &'a mut [u8],
    ) -> io::Result<Option<(Destination, &'a [u8])>> {
        let received = packets::receive(&self.relay, buffer)?;
        let is_client = match self.client {
            Some(client) => client == received.from,
            None => received.from.ip() == self.host,
        };
        if !is_client {
            return Ok(None);
        }
        self.client = Some(received.from);
        Ok(codec::datagram(&buffer[..received.len]))
    }

    /// The way back to its client; `None` before the client has sent anything.
    pub(super) fn way_back(&self) -> Option<WayBack> {
        Some(WayBack {
            relay: Rc::downgrade(&self.relay),
            client: self.client?,
        })
    }
}

/// The way back to an association's client, for as long as its relay is there.
#[derive(Debug)]
pub(in crate::gateway) struct WayBack {
    relay: Weak<UdpSocket>,
    client: SocketAddr,
}

impl Answers for WayBack {
    fn answer(&self, source: &Destination, message: &[u8]) {
        if let Some(relay) = self.relay.upgrade() {
            // A datagram that cannot be delivered is lost, as UDP's are.
            drop(relay.send_to(&codec::wrap(source, message), self.client));
        }
    }
}
