//! The ports that connections are opened from: each connection that is opened with a peer has a name of its own.

use super::super::key::Key;
use super::AerotpEndpoint;
use crate::machine::PathId;
use crate::wire::Port;
use crate::wire::aerotp::short::Name;

/// Ports that `connect` chooses from (RFC 6335: dynamic ports).
const DYNAMIC_PORTS: core::ops::RangeInclusive<u16> = 49_152..=65_535;

impl AerotpEndpoint {
    /// A port from which to open a connection: the one under which it has a name that no other with the peer has or has had lately
    /// (`docs/protocol/aerotp.md`, section 11.2). `None` if there is none left.
    pub(super) fn free_port(&mut self, path: PathId, destination: Port) -> Option<u16> {
        let count = u64::from(DYNAMIC_PORTS.end() - DYNAMIC_PORTS.start()) + 1;
        let start = self.rng.below(count);
        (0..count)
            .filter_map(|i| u16::try_from((start + i) % count).ok())
            .map(|offset| DYNAMIC_PORTS.start() + offset)
            .find(|local| self.is_name_free(path, *local, destination))
    }

    fn is_name_free(&self, path: PathId, local: u16, destination: Port) -> bool {
        let name_to = |remote| Name::of(Port(local), remote);
        let is_taken_by = |key: &Key| name_to(Port(key.remote)) == name_to(destination);
        let open = self.keys.range(Key::all_of_port(path, local));
        !open.map(|(key, _)| key).any(is_taken_by)
            && !self.tombstones.of_port(path, local).any(is_taken_by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::rng::Rng;
    use crate::transport::aerotp::tombstones::{Past, Tombstone};
    use crate::transport::aerotp::{ConnectionConfig, EndpointConfig};
    use crate::units::{Duration, Instant};
    use crate::wire::Mode;

    const PATH: PathId = PathId(3);
    const LEFT: u16 = 50_081;

    /// An endpoint that has had a connection to port 4 from every dynamic port but one.
    fn almost_used_up() -> AerotpEndpoint {
        let mut endpoint = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(5));
        for local in DYNAMIC_PORTS.filter(|local| *local != LEFT) {
            let key = Key {
                path: PATH,
                local,
                remote: 4,
            };
            let tombstone = Tombstone {
                past: Past::Silent,
                initiator: true,
                mode: Mode::Reliable,
            };
            endpoint.tombstones.bury(Instant::START, key, tombstone);
        }
        endpoint
    }

    #[test]
    fn the_last_name_is_found_and_then_there_is_none() {
        let mut endpoint = almost_used_up();
        let now = Instant::START;
        let config = ConnectionConfig::default();
        assert_eq!(endpoint.free_port(PATH, Port(4)), Some(LEFT));
        assert_eq!(endpoint.free_port(PATH, Port(8)), Some(LEFT));
        let opened = endpoint.connect(now, PATH, Port(8), config);
        assert!(opened.is_ok());
        // It goes by the same name as one to port 4 would.
        assert_eq!(endpoint.free_port(PATH, Port(4)), None);
        assert_eq!(endpoint.free_port(PATH, Port(8)), None);
        assert!(endpoint.free_port(PATH, Port(5)).is_some());
        assert!(endpoint.free_port(PathId(4), Port(4)).is_some());
    }

    #[test]
    fn a_name_is_free_again_after_time_wait() {
        let mut endpoint = almost_used_up();
        let now = Instant::START;
        let config = ConnectionConfig::default();
        let id = endpoint
            .connect(now, PATH, Port(8), config)
            .expect("one is left");
        endpoint.abort(now, id);
        while endpoint.poll_transmit(now, &mut Vec::new()).is_some() {}
        assert!(endpoint.connections.is_empty());
        assert_eq!(endpoint.free_port(PATH, Port(4)), None, "TIME-WAIT");
        endpoint.handle_deadline(now + Duration::from_secs(121));
        assert!(endpoint.free_port(PATH, Port(4)).is_some());
    }
}
