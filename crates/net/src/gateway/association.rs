//! SOCKS5 UDP associations (RFC 1928, section 7): one relay socket for a client, one flow for each
//! of its destinations.

use super::admission::Permit;
use super::kernel;
use super::packets;
use super::socks::codec;
use fulmar_proto::splice::{Destination, FlowClass, FlowId};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};

/// Destinations of one association.
pub(super) const DESTINATIONS_MAX: usize = 256;

/// One client's relay.
#[derive(Debug)]
pub(super) struct Association {
    /// The client's control connection: the association lasts while it is open.
    control: TcpStream,
    relay: UdpSocket,
    /// The client's address: its control connection's host, and the port of its first datagram.
    host: IpAddr,
    client: Option<SocketAddr>,
    pub(super) flows: BTreeMap<Destination, FlowId>,
    pub(super) permit: Permit,
    pub(super) class: FlowClass,
}

impl Association {
    pub(super) fn new(control: TcpStream, permit: Permit, class: FlowClass) -> io::Result<Self> {
        let here = control.local_addr()?.ip();
        let host = control.peer_addr()?.ip();
        let relay = UdpSocket::bind((here, 0))?;
        relay.set_nonblocking(true)?;
        Ok(Self {
            control,
            relay,
            host,
            client: None,
            flows: BTreeMap::new(),
            permit,
            class,
        })
    }

    pub(super) const fn control(&self) -> &TcpStream {
        &self.control
    }

    pub(super) const fn relay(&self) -> &UdpSocket {
        &self.relay
    }

    /// Whether its client has sent a datagram.
    pub(super) const fn has_spoken(&self) -> bool {
        self.client.is_some()
    }

    /// Whether the client still holds its connection. Octets on it mean nothing, and must not hide its end.
    pub(super) fn is_open(&self) -> bool {
        !kernel::has_ended(&self.control)
    }

    /// The next datagram of the client: its destination and its payload. `Ok(None)` for a datagram that is not the
    /// client's, or not one of SOCKS.
    pub(super) fn receive<'a>(
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

    /// Gives the client a message of `source`.
    pub(super) fn send(&self, source: &Destination, message: &[u8]) {
        if let Some(client) = self.client {
            // A datagram that cannot be delivered is lost, as UDP's are.
            drop(self.relay.send_to(&codec::wrap(source, message), client));
        }
    }
}
