//! One stream of mode reliable inside a Noise session, from memory to memory: the data plane alone.
//!
//! Fulmar's side of `scripts/speed`, beside a QUIC stream of the same shape: two processes, one
//! thread each, one UDP socket each; arriving octets are counted and dropped.
//!
//!     session_bulk sink ADDRESS
//!     session_bulk source ADDRESS OCTETS RATE
//!
//! The keys are made from numbers that everybody can read here: nothing but a measurement may use them.

use fulmar_net::clock::Clock;
use fulmar_net::session::{
    Entropy, MtuConfig, PeerConfig, PeerIndex, SESSION_OVERHEAD, SecretKey, Security, Session,
    SessionConfig, SessionEvent, fast_cipher, source_octets, wire_2,
};
use fulmar_net::udp::{
    Application, DatagramOrigin, PathTableConfig, PortConfig, Step, UdpDriver, UdpPort,
};
use fulmar_net::wait::{Waker, waker};
use fulmar_proto::machine::{Datagram, Deadline, PathId};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AckPolicy, AerotpEndpoint, ConnectionConfig, ConnectionId, EndpointConfig, Event, RateSource,
};
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use fulmar_proto::wire::Port;
use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;

const PORT: Port = Port(7);
const BLOCK_BYTES: usize = 1 << 16;
const UNSENT_BYTES: usize = 4 * BLOCK_BYTES;
/// The first packet size, as the gateway's: the smallest, until the session has found a larger one.
const FIRST_PACKET: ByteCount = ByteCount(1280);
/// IPv6 and UDP headers.
const IP_UDP_OVERHEAD: ByteCount = ByteCount(48);

const PEER: PeerIndex = PeerIndex(0);
/// The time that a sink waits after the end, so that the source hears of it.
const FAREWELL: Duration = Duration::from_millis(50);

type Link = Session<AerotpEndpoint>;
type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["sink", at] => sink(at.parse()?),
        ["source", to, octets, rate] => source(to.parse()?, octets.parse()?, rate.parse()?),
        _ => Err("usage: session_bulk sink ADDRESS | source ADDRESS OCTETS RATE".into()),
    }
}

fn connection() -> ConnectionConfig {
    ConnectionConfig {
        tpdu_bytes_max: FIRST_PACKET.saturating_sub(lower_overhead()).as_usize(),
        // The session's tag notices every damage.
        payload_crc: false,
        window_tpdus: 8_192,
        // As the gateway.
        ack: AckPolicy {
            every: 32,
            ..AckPolicy::default()
        },
        // Waiting octets stay in the processor's cache.
        unsent_bytes_max: UNSENT_BYTES,
        ..ConnectionConfig::default()
    }
}

fn lower_overhead() -> ByteCount {
    IP_UDP_OVERHEAD + SESSION_OVERHEAD
}

/// An end without connections; `keys` are the numbers that ours and the peer's are made from.
fn link(keys: [u8; 2], endpoints: Vec<PathId>, rate: Bitrate) -> Outcome<Link> {
    let [ours, theirs] = keys.map(|seed| SecretKey::generate(&mut Entropy::from_seed([seed; 32])));
    let peer = PeerConfig {
        name: "peer".to_owned(),
        security: Security::Noise {
            peer: theirs.public(),
            preset: None,
        },
        endpoints,
        mtu: MtuConfig::default(),
    };
    let endpoint = EndpointConfig {
        rate: RateSource::Told(rate),
        burst: Duration::from_micros(500),
        lower_overhead: lower_overhead(),
        ..EndpointConfig::default()
    };
    let mut inner = AerotpEndpoint::new(endpoint, Rng::from_seed(1));
    inner.listen(PORT, connection())?;
    inner.hold(Instant::START, PEER.inner_path(), true);
    let config = SessionConfig {
        capabilities: fast_cipher().into_iter().chain([wire_2()]).collect(),
        ..SessionConfig::new(Some(ours), vec![peer], 1)
    };
    Ok(Session::new(config, inner, Entropy::from_system()?)?)
}

/// A driver, and the waker that keeps its wake-up pipe open.
fn driver(clock: Clock, local: SocketAddr, config: PortConfig) -> Outcome<(UdpDriver, Waker)> {
    let (waker, wake_up) = waker()?;
    let port = UdpPort::bind(local, config)?;
    let driver = UdpDriver::new(clock, port, wake_up, PathTableConfig::default());
    Ok((driver, waker))
}

fn source(to: SocketAddr, octets: u64, rate: Bitrate) -> Outcome<()> {
    let clock = Clock::start();
    let (mut driver, _waker) = driver(
        clock,
        ([127, 0, 0, 1], 0).into(),
        PortConfig::for_rate(rate),
    )?;
    let path = driver.path_to(to).ok_or("no room for the path")?;
    let mut link = link([1, 2], vec![path], rate)?;
    let lane = link
        .inner_mut()
        .connect(clock.now(), PEER.inner_path(), PORT, connection())?;
    let mut block = vec![0; BLOCK_BYTES];
    Rng::from_seed(1).fill(&mut block);
    let mut source = Source {
        left: octets,
        lane,
        block,
        is_ready: true,
        is_closed: false,
        is_over: false,
    };
    driver.run(&mut link, &mut source)?;
    Ok(())
}

fn sink(at: SocketAddr) -> Outcome<()> {
    let clock = Clock::start();
    let (mut driver, _waker) = driver(clock, at, PortConfig::default())?;
    let mut link = link(
        [2, 1],
        Vec::new(),
        Bitrate::from_bits_per_second(1_000_000_000),
    )?;
    println!("ready");
    std::io::stdout().flush()?;
    let mut sink = Sink {
        taken: 0,
        first: None,
        lane: None,
        leave_at: None,
    };
    driver.run(&mut link, &mut sink)?;
    Ok(())
}

struct Source {
    left: u64,
    lane: ConnectionId,
    block: Vec<u8>,
    is_ready: bool,
    is_closed: bool,
    is_over: bool,
}

impl Application<Link> for Source {
    fn deliver(&mut self, _now: Instant, _link: &mut Link, event: SessionEvent<Event>) {
        match event {
            SessionEvent::Inner(Event::Connected(_) | Event::Writable(_)) => self.is_ready = true,
            SessionEvent::Inner(Event::Closed { .. }) => self.is_over = true,
            _ => {}
        }
    }

    fn work(&mut self, now: Instant, link: &mut Link) -> Step {
        if self.is_over {
            return Step::Stop;
        }
        while self.is_ready && self.left > 0 {
            let len = usize::try_from(self.left).map_or(BLOCK_BYTES, |left| left.min(BLOCK_BYTES));
            let octets = self.block.get(..len).unwrap_or_default();
            let written = link.inner_mut().write(now, self.lane, octets).unwrap_or(0);
            self.left -= written as u64;
            self.is_ready = written == len;
        }
        if self.left == 0 && !self.is_closed {
            self.is_closed = true;
            link.inner_mut().close(now, self.lane);
        }
        Step::Wait
    }

    fn arrived(
        &mut self,
        now: Instant,
        link: &mut Link,
        datagram: Datagram<'_>,
        origin: DatagramOrigin,
    ) {
        link.handle_datagram_from(now, datagram, &source_octets(origin.from));
    }

    fn unreachable(&mut self, _now: Instant, _link: &mut Link, _path: PathId) {}

    fn next_deadline(&self) -> Option<Deadline> {
        None
    }
}

struct Sink {
    taken: u64,
    first: Option<Instant>,
    lane: Option<ConnectionId>,
    leave_at: Option<Instant>,
}

impl Application<Link> for Sink {
    fn deliver(&mut self, now: Instant, link: &mut Link, event: SessionEvent<Event>) {
        let SessionEvent::Inner(event) = event else {
            return;
        };
        match event {
            Event::Incoming { id, .. } => self.lane = Some(id),
            Event::Readable(id) => {
                self.first.get_or_insert(now);
                while let Some(chunk) = link.inner_mut().read(now, id) {
                    self.taken += chunk.octets.len() as u64;
                    link.inner_mut().recycle(id, chunk.octets);
                }
            }
            Event::PeerFinished(id) => {
                let span = self.first.map(|first| now.saturating_since(first));
                let seconds = span.unwrap_or_default().as_secs_f64();
                println!("{{\"bytes\": {}, \"seconds\": {seconds:.6}}}", self.taken);
                link.inner_mut().close(now, id);
                self.leave_at = Some(now + FAREWELL);
            }
            _ => {}
        }
    }

    fn work(&mut self, now: Instant, _link: &mut Link) -> Step {
        if self.leave_at.is_some_and(|at| at <= now) {
            return Step::Stop;
        }
        Step::Wait
    }

    fn arrived(
        &mut self,
        now: Instant,
        link: &mut Link,
        datagram: Datagram<'_>,
        origin: DatagramOrigin,
    ) {
        link.handle_datagram_from(now, datagram, &source_octets(origin.from));
    }

    fn unreachable(&mut self, _now: Instant, _link: &mut Link, _path: PathId) {}

    fn next_deadline(&self) -> Option<Deadline> {
        let why = "the last word leaves";
        self.leave_at.map(|at| Deadline { at, why })
    }
}
