//! `/status` says the version of the data with a peer: 2 between two gateways of this release, 1 with an end of the one before.
//!
//! Method: two gateways; then one of them goes, and a session that does not state `wire-2` calls with its key, as if an older program had been
//! started in its place.

use crate::gateways::{Pair, client, echo, exchange, server, status_at};
use crate::processes::until;
use fulmar_net::clock::Clock;
use fulmar_net::secured::boot_epoch;
use fulmar_net::session::{
    Entropy, MtuConfig, PeerConfig, SecretKey, Security, Session, SessionConfig, source_octets,
};
use fulmar_proto::machine::{Datagram, Ecn, Machine, PathId};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{AerotpEndpoint, EndpointConfig};
use fulmar_proto::units::Duration;
use rustix::process::Signal;
use std::net::{SocketAddr, UdpSocket};

/// The version of the data that the gateway at `server` says of its peer.
fn wire(server: SocketAddr) -> Option<u64> {
    status_at(server)["peers"][0]["wire"].as_u64()
}

/// A session as the release before had it, which calls `to` over a socket of its own.
struct Older {
    socket: UdpSocket,
    to: SocketAddr,
    session: Session<AerotpEndpoint>,
    clock: Clock,
}

impl Older {
    fn new(own: SecretKey, peer: &str, to: SocketAddr) -> Self {
        let peer = PeerConfig {
            name: "ground".to_owned(),
            security: Security::Noise {
                peer: peer.parse().expect("a key"),
                preset: None,
            },
            endpoints: vec![PathId(1)],
            mtu: MtuConfig::default(),
        };
        // Above every epoch of the gateway that had the key before.
        let config = SessionConfig::new(Some(own), vec![peer], boot_epoch() + (1 << 40));
        let inner = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(0));
        let entropy = Entropy::from_system().expect("entropy");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let patience = Duration::from_millis(20);
        socket.set_read_timeout(Some(patience)).expect("a socket");
        Self {
            socket,
            to,
            session: Session::new(config, inner, entropy).expect("sound"),
            clock: Clock::start(),
        }
    }

    /// Does what is due, and takes at most one datagram.
    fn turn(&mut self) {
        let now = self.clock.now();
        if self
            .session
            .next_deadline()
            .is_some_and(|due| due.at <= now)
        {
            self.session.handle_deadline(now);
        }
        let mut buffer = Vec::new();
        while self.session.poll_event().is_some() {}
        while self.session.poll_transmit(now, &mut buffer).is_some() {
            self.socket.send_to(&buffer, self.to).expect("it is taken");
            buffer.clear();
        }
        let mut buffer = [0; 2_048];
        if let Ok((len, from)) = self.socket.recv_from(&mut buffer) {
            let datagram = Datagram {
                path: PathId(1),
                octets: &buffer[..len],
                ecn: Ecn::NotCapable,
            };
            let source = source_octets(from);
            self.session.handle_datagram_from(now, datagram, &source);
        }
    }
}

#[test]
fn status_says_wire_2_between_two_of_this_release_and_1_beside_an_older_end() {
    let entry = format!(
        "[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{}\"\n",
        server(echo)
    );
    let mut ground = None;
    let over = |at| (*ground.insert(at), None);
    let mut pair = Pair::start_over(over, &entry);
    let ground = ground.expect("it was asked for");
    let sent = vec![7; 10_000];
    assert!(exchange(client(pair.entries[0]), sent.clone()) == sent);
    assert_eq!(
        [wire(pair.metrics), wire(pair.ground_metrics)],
        [Some(2); 2]
    );

    let own = pair.air_secret();
    pair.air.signal(Signal::KILL);
    drop(pair.air.end());
    let mut older = Older::new(own, &pair.ground_key, ground);
    until("wire 1 with the older end", || {
        older.turn();
        wire(pair.ground_metrics) == Some(1)
    });
}
