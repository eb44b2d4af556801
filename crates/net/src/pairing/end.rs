//! The shape of both machines, for whoever runs them.

use fulmar_proto::units::Instant;
use std::net::SocketAddr;

/// A machine of pairing. Whoever runs it feeds it one thing, then takes all datagrams, then waits for its deadline.
pub trait PairingEnd {
    /// Takes a datagram.
    fn handle(&mut self, source: SocketAddr, octets: &[u8], now: Instant);
    /// Does what is due.
    fn handle_deadline(&mut self, now: Instant);
    /// The time at which something is due.
    fn deadline(&self) -> Option<Instant>;
    /// The next datagram to send, and where to.
    fn poll_transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)>;
}
