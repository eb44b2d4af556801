//! A genuine caller among forged sources, at a port that anyone can reach and far away.
//!
//! Method: the server's table of addresses and its endpoint, joined as its driver joins them, in virtual time,
//! 300 ms from a caller. Beside the caller, datagrams arrive from addresses that never came before.

use fulmar_net::session::source_octets;
use fulmar_net::udp::{Path, PathTable, PathTableConfig};
use fulmar_proto::machine::{Datagram, Ecn, Machine, PathId};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AddressKey, AerotpEndpoint, ConnectionConfig, ConnectionId, EndpointConfig, Event,
};
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::Port;
use std::collections::VecDeque;
use std::net::SocketAddr;

const PORT: Port = Port(7);
const ONE_WAY: Duration = Duration::from_millis(300);
const STEP: Duration = Duration::from_micros(500);
const STEPS_PER_SECOND: u32 = 2_000;
/// A time far beyond what anything takes; it turns a hang into a failure.
const GIVE_UP: Duration = Duration::from_secs(60);
const CLIENT_PATH: PathId = PathId(0);

fn client_address() -> SocketAddr {
    ([192, 0, 2, 1], 40_000).into()
}

/// The `n`-th address that nobody is at.
fn forged(n: u32) -> SocketAddr {
    let [_, a, b, c] = n.to_be_bytes();
    ([10, a, b, c], 50_000).into()
}

/// The server's table and endpoint, joined as `UdpDriver` does it for an application like `recv`.
struct PerfServer {
    paths: PathTable,
    endpoint: AerotpEndpoint,
    read: usize,
    lane: Option<ConnectionId>,
}

impl PerfServer {
    fn new() -> Self {
        let config = EndpointConfig {
            address_key: Some(AddressKey::new([7; 32])),
            ..EndpointConfig::default()
        };
        let mut endpoint = AerotpEndpoint::new(config, Rng::from_seed(1));
        let listened = endpoint.listen(PORT, ConnectionConfig::default());
        listened.expect("the defaults work");
        Self {
            paths: PathTable::new(PathTableConfig::default()),
            endpoint,
            read: 0,
            lane: None,
        }
    }

    fn arrived(&mut self, now: Instant, from: SocketAddr, octets: &[u8]) {
        let Self {
            paths, endpoint, ..
        } = self;
        let path = Path::udp(from, None);
        let in_use = || endpoint.paths_in_use(now);
        let Some(path) = paths.heard(now, path, in_use) else {
            return;
        };
        assert!(paths.len() <= PathTableConfig::default().paths_max);
        let ecn = Ecn::NotCapable;
        let datagram = Datagram { path, octets, ecn };
        endpoint.handle_datagram_from(now, datagram, &source_octets(from));
    }

    /// The datagrams that it sends to the client; those to others come nowhere.
    fn sent(&mut self, now: Instant) -> Vec<Vec<u8>> {
        while let Some(event) = self.endpoint.poll_event() {
            if let Event::Incoming { id, .. } = event {
                assert_eq!(self.lane.replace(id), None, "once");
            }
        }
        while let Some(chunk) = self.lane.and_then(|lane| self.endpoint.read(now, lane)) {
            self.read += chunk.octets.len();
        }
        let mut all = Vec::new();
        let mut out = Vec::new();
        while let Some(transmit) = self.endpoint.poll_transmit(now, &mut out) {
            let octets = std::mem::take(&mut out);
            let path = self.paths.answer(transmit.path);
            if path.is_some_and(|path| path.remote == client_address()) {
                all.push(octets);
            }
        }
        all
    }
}

/// A TPDU that opens a connection and carries `body` octets.
fn opening(body: usize) -> Vec<u8> {
    let mut caller = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(3));
    let id = caller.connect(Instant::START, PathId(0), PORT, ConnectionConfig::default());
    let id = id.expect("there is room");
    let written = caller.write(Instant::START, id, &vec![1; body]);
    assert_eq!(written, Ok(body));
    let mut out = Vec::new();
    caller.poll_transmit(Instant::START, &mut out);
    out
}

/// Datagrams, each with its time of arrival.
type UnderWay = VecDeque<(Instant, Vec<u8>)>;

fn due(under_way: &mut UnderWay, now: Instant) -> Option<Vec<u8>> {
    under_way.front().filter(|(at, _)| *at <= now)?;
    under_way.pop_front().map(|(_, octets)| octets)
}

/// Datagrams from addresses that nobody is at.
#[derive(Clone, Copy, Debug)]
struct Flood {
    per_second: u32,
    /// The number of datagrams from each address.
    times: u32,
    /// Octets of data; `None` for a datagram that is no TPDU.
    body: Option<usize>,
}

/// The time until `octets` of a caller had all been read beside a flood that filled the table before.
fn until_read(octets: usize, flood: Flood) -> Duration {
    let mut server = PerfServer::new();
    let mut client = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(2));
    let forgery = flood.body.map_or_else(|| vec![0x5A; 60], opening);
    let mut now = Instant::START;
    let mut count = 0;
    let mut id = None;
    let mut written = 0;
    let mut to_server = UnderWay::new();
    let mut to_client = UnderWay::new();
    let begin = Instant::START + Duration::from_secs(2);
    while server.read < octets {
        now += STEP;
        let is_late = now >= begin + GIVE_UP;
        assert!(!is_late, "{} of {octets} octets, {flood:?}", server.read);
        for _ in 0..flood.per_second / STEPS_PER_SECOND {
            server.arrived(now, forged(count / flood.times), &forgery);
            count += 1;
            let sent = server.sent(now).into_iter();
            to_client.extend(sent.map(|octets| (now + ONE_WAY, octets)));
        }
        while let Some(octets) = due(&mut to_server, now) {
            server.arrived(now, client_address(), &octets);
        }
        server.endpoint.handle_deadline(now);
        let sent = server.sent(now).into_iter();
        to_client.extend(sent.map(|octets| (now + ONE_WAY, octets)));
        while let Some(octets) = due(&mut to_client, now) {
            let (path, ecn) = (CLIENT_PATH, Ecn::NotCapable);
            let octets = &octets;
            client.handle_datagram(now, Datagram { path, octets, ecn });
        }
        if now < begin {
            continue;
        }
        let id = *id.get_or_insert_with(|| {
            let id = client.connect(now, CLIENT_PATH, PORT, ConnectionConfig::default());
            id.expect("there is room")
        });
        let rest = vec![5; octets - written];
        written += client.write(now, id, &rest).expect("it is open");
        client.handle_deadline(now);
        while client.poll_event().is_some() {}
        let mut out = Vec::new();
        while client.poll_transmit(now, &mut out).is_some() {
            to_server.push_back((now + ONE_WAY, std::mem::take(&mut out)));
        }
    }
    now.saturating_since(begin)
}

const QUIET: Flood = Flood {
    per_second: 0,
    times: 1,
    body: None,
};

#[test]
fn a_caller_far_away_is_as_soon_served_beside_forged_sources_as_without() {
    // More of them come in a round trip than there are places in the table.
    for octets in [5, 1_000_000] {
        let quiet = until_read(octets, QUIET);
        for times in [1, 2] {
            for body in [None, Some(15), Some(1_300)] {
                let flood = Flood {
                    per_second: 2_000 * times,
                    times,
                    body,
                };
                assert_eq!(until_read(octets, flood), quiet, "{octets} of {flood:?}");
            }
        }
    }
}

#[test]
fn a_flood_that_drives_out_what_waited_costs_a_retransmission() {
    for octets in [5, 1_000_000] {
        let quiet = until_read(octets, QUIET);
        for body in [15, 1_300] {
            let flood = Flood {
                per_second: 20_000,
                times: 1,
                body: Some(body),
            };
            let took = until_read(octets, flood);
            let delay = took.saturating_sub(quiet);
            assert!(delay <= Duration::from_secs(1), "{delay:?} of {flood:?}");
        }
    }
}
