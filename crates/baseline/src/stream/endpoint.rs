//! An application's calls to an endpoint of octet streams.

use crate::tcp::{TcpConnectError, TcpConnectionId, TcpEndpointConfig, TcpEvent, TcpWriteError};
use fulmar_proto::machine::{Machine, PathId};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::Instant;
use fulmar_proto::wire::Port;

/// An endpoint whose connections carry octets in order, as TCP's do: TCP itself, and LT-TCP.
pub trait StreamEndpoint: Machine<Event = TcpEvent> + Sized {
    /// The settings of one connection.
    type Settings: Copy;

    /// An endpoint with nothing to do. Initial sequence numbers come from `rng`.
    fn new(config: TcpEndpointConfig, rng: Rng) -> Self;

    /// Accepts connections to `port`.
    ///
    /// # Errors
    /// A setting is out of range.
    fn listen(&mut self, port: Port, settings: Self::Settings) -> Result<(), TcpConnectError>;

    /// Opens a connection to `remote` at `path`.
    ///
    /// # Errors
    /// A setting is out of range, the ports are in use, or there are too many connections.
    fn connect(
        &mut self,
        path: PathId,
        local: Port,
        remote: Port,
        settings: Self::Settings,
    ) -> Result<TcpConnectionId, TcpConnectError>;

    /// Writes as much of `octets` as fits and returns that length; [`TcpEvent::Writable`] follows
    /// when it was less than all.
    ///
    /// # Errors
    /// The connection is over, or was closed for writing.
    fn write(&mut self, id: TcpConnectionId, octets: &[u8]) -> Result<usize, TcpWriteError>;

    /// The number of octets that [`StreamEndpoint::write`] would take; 0 for a connection that is
    /// over.
    fn room(&self, id: TcpConnectionId) -> usize;

    /// Takes the next octets in order. Give the vector back with [`StreamEndpoint::recycle`].
    fn read(&mut self, id: TcpConnectionId) -> Option<Vec<u8>>;

    /// Takes back a vector that was read.
    fn recycle(&mut self, id: TcpConnectionId, octets: Vec<u8>);

    /// Closes the connection for writing. Octets written before are still sent.
    fn close(&mut self, id: TcpConnectionId);

    /// Ends the connection at once, with a reset.
    fn abort(&mut self, now: Instant, id: TcpConnectionId);

    /// The number of connections that are not over.
    fn connections(&self) -> usize;
}

/// Implements [`StreamEndpoint`] for an endpoint that has a `table`, a method `add` for
/// connections, and a method `addresses_to` for a path's addresses.
macro_rules! stream_endpoint {
    ($endpoint:ty, $connection:ty, $settings:ty) => {
        impl $crate::stream::StreamEndpoint for $endpoint {
            type Settings = $settings;

            fn new(config: TcpEndpointConfig, rng: Rng) -> Self {
                Self::with(config, rng)
            }

            fn listen(&mut self, port: Port, settings: $settings) -> Result<(), TcpConnectError> {
                settings.check()?;
                self.table.listen(port, settings);
                Ok(())
            }

            fn connect(
                &mut self,
                path: PathId,
                local: Port,
                remote: Port,
                settings: $settings,
            ) -> Result<TcpConnectionId, TcpConnectError> {
                settings.check()?;
                let key = StreamKey {
                    path,
                    local,
                    remote,
                };
                self.table.check_vacant(key)?;
                Ok(self.add(key, &settings))
            }

            fn write(
                &mut self,
                id: TcpConnectionId,
                octets: &[u8],
            ) -> Result<usize, TcpWriteError> {
                self.table
                    .with(id, |connection| connection.write(octets))
                    .unwrap_or(Err(TcpWriteError::Closed))
            }

            fn room(&self, id: TcpConnectionId) -> usize {
                let connection = self.table.get(id);
                connection.map_or(0, |connection| connection.sender().room_to_write())
            }

            fn read(&mut self, id: TcpConnectionId) -> Option<Vec<u8>> {
                self.table.with(id, <$connection>::read).flatten()
            }

            fn recycle(&mut self, id: TcpConnectionId, octets: Vec<u8>) {
                if let Some(connection) = self.table.get_mut(id) {
                    connection.recycle(octets);
                }
            }

            fn close(&mut self, id: TcpConnectionId) {
                self.table.with(id, <$connection>::close);
            }

            fn abort(&mut self, now: Instant, id: TcpConnectionId) {
                let Some(path) = self.table.get(id).map(|c| c.states().key().path) else {
                    return;
                };
                let addresses = self.addresses_to(path);
                let abort = |connection: &mut $connection| {
                    let mut octets = Vec::new();
                    if connection.states_mut().abort() {
                        connection.write_reset(now, &addresses, &mut octets);
                    }
                    octets
                };
                let octets = self.table.get_mut(id).map_or_else(Vec::new, abort);
                if !octets.is_empty() {
                    self.table.queue_reset(path, octets);
                }
                self.table.settle(id);
            }

            fn connections(&self) -> usize {
                self.table.iter().len()
            }
        }
    };
}

pub(crate) use stream_endpoint;
