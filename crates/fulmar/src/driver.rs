//! One turn at a time, for whoever has a loop.

use crate::board::{LineFailure, Shared};
use crate::config::{Config, Identity};
use crate::peers::{Peers, by_key, settings};
use crate::relay::{LOWER_OVERHEAD, Link, Relay, open_ports};
use fulmar_net::clock::Clock;
use fulmar_net::secured::{boot_epoch, choose_checksums};
use fulmar_net::session::{
    Capability, EarlyData, Entropy, PeerConfig, PeerIndex, PublicKey, Security, Session,
    SessionConfig, arrival_maps, damaged, fast_cipher, parity_follows, path_acks, reports,
    unchecked, window_repair, wire_2,
};
use fulmar_net::udp::{DriverError, PathTableConfig, PortConfig, Step, UdpDriver, UdpPort};
use fulmar_net::wait::waker;
use fulmar_proto::machine::Deadline;
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{AerotpEndpoint as Machine, EndpointConfig, RateSource};
use fulmar_proto::units::{ByteCount, Duration, Instant};
use rustix::event::epoll;
use std::collections::BTreeMap;
use std::io::{self, Error, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Connections of one endpoint, and their memory, at most.
const CONNECTIONS_MAX: usize = 1_024;
const MEMORY_MAX: ByteCount = ByteCount(256 << 20);
/// The time by which the pacer may run ahead of the rate.
const BURST: Duration = Duration::from_micros(500);

/// The part of an endpoint [without a thread](crate::Endpoint::without_thread) that does the work.
///
/// The program calls [`Driver::step`] when the [descriptor](AsFd) is readable, when [`Driver::next_deadline`] has
/// come, and after it has written or read; the descriptor also tells of calls from other threads.
pub struct Driver {
    udp: UdpDriver,
    link: Link,
    relay: Relay,
    shared: Arc<Shared>,
    /// Readable when the socket or the wake-up pipe is.
    ready: OwnedFd,
    deadline: Option<Deadline>,
    is_over: bool,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = f.debug_struct("Driver");
        text.field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

/// The session's peers, and their keys.
fn peers_of(config: &Config) -> (Vec<PeerConfig>, BTreeMap<PeerIndex, Option<PublicKey>>) {
    let rate = config.rate;
    if let Some(security) = config.identity.only_peer() {
        let keys = BTreeMap::from([(PeerIndex(0), None)]);
        return (vec![settings("the other end", security, rate)], keys);
    }
    let peers = config.peers.iter();
    let mut peers: Vec<_> = peers
        .map(|key| settings(&key.to_string(), by_key(*key), rate))
        .collect();
    let keys = (0..)
        .map(PeerIndex)
        .zip(config.peers.iter().copied().map(Some));
    let keys = keys.collect();
    if peers.is_empty() {
        // A session has a peer, be it nobody; those whom the program calls come after it.
        peers.push(settings("nobody", Security::Nobody, rate));
    }
    (peers, keys)
}

/// The capabilities of an end of the library.
fn capabilities() -> Vec<Capability> {
    let always = [
        wire_2(),
        path_acks(),
        window_repair(),
        unchecked(),
        damaged(),
        parity_follows(),
        reports(),
        arrival_maps(),
    ];
    fast_cipher().into_iter().chain(always).collect()
}

pub(crate) fn new_driver(local: SocketAddr, config: Config) -> io::Result<(Arc<Shared>, Driver)> {
    config.check()?;
    let invalid = |text: String| Error::new(ErrorKind::InvalidInput, text);
    let rate = config.rate;
    let clock = Clock::start();
    let (waker, wake_up) = waker()?;
    let port = PortConfig {
        takes_unchecked: config.chooses_checksum,
        ..PortConfig::for_bound(rate)
    };
    let port = UdpPort::bind(local, port)?;
    let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (n, source) in [(0, port.as_fd()), (1, wake_up.as_fd())] {
        epoll::add(
            &ready,
            source,
            epoll::EventData::new_u64(n),
            epoll::EventFlags::IN,
        )?;
    }
    let (peers, keys) = peers_of(&config);
    let machine = EndpointConfig {
        rate: RateSource::of(rate, config.sharing),
        burst: BURST,
        lower_overhead: LOWER_OVERHEAD,
        connections_max: CONNECTIONS_MAX,
        memory_max: MEMORY_MAX,
        follows_length: true,
        ..EndpointConfig::default()
    };
    let mut machine = Machine::new(machine, Rng::from_seed(fulmar_net::entropy::seed()?));
    open_ports(&mut machine, &config).map_err(|error| invalid(error.to_string()))?;
    if config.early_data != EarlyData::Send {
        // Nothing is made for a peer before it is there.
        for peer in keys.keys() {
            machine.hold(Instant::START, peer.inner_path(), true);
        }
    }
    let identity = match &config.identity {
        Identity::Own(key) => Some(key.clone()),
        Identity::Shared(_) | Identity::Nothing => None,
    };
    let boot = boot_epoch();
    let session = SessionConfig {
        capabilities: capabilities(),
        early_data: config.early_data,
        early_floor: config.epoch_seen.unwrap_or(boot),
        ..SessionConfig::new(identity, peers, boot)
    };
    let link = Session::new(session, machine, Entropy::from_system()?);
    let mut link = link.map_err(|error| invalid(error.to_string()))?;
    let chooses_checksum = config.chooses_checksum;
    if chooses_checksum {
        choose_checksums(&mut link);
    }
    let shared = Arc::new(Shared::new(waker, clock));
    let sends_early = config.early_data == EarlyData::Send;
    let relay = Relay::new(
        Arc::clone(&shared),
        config,
        Peers::new(keys, rate, sends_early, chooses_checksum),
    );
    let driver = Driver {
        udp: UdpDriver::new(clock, port, wake_up, PathTableConfig::default()),
        link,
        relay,
        shared: Arc::clone(&shared),
        ready,
        deadline: None,
        is_over: false,
    };
    Ok((shared, driver))
}

impl Driver {
    /// Does what there is to do: waits until a datagram, a call or a deadline comes, for `timeout` at most (`None`:
    /// as long as it takes; zero: not at all), takes it, and sends what follows.
    ///
    /// # Errors
    /// The system no longer lets us receive or wait. Every stream has failed then.
    pub fn step(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if self.is_over {
            return Ok(());
        }
        match self.udp.turn(&mut self.link, &mut self.relay, timeout) {
            Ok((step, deadline)) => {
                self.deadline = deadline;
                self.is_over = step == Step::Stop;
                Ok(())
            }
            Err(error) => Err(self.fail(&error)),
        }
    }

    /// When the next step is due if nothing comes before; `None` if nothing is.
    pub fn next_deadline(&self) -> Option<std::time::Instant> {
        let deadline = self.deadline?;
        Some(self.shared.clock.system_time(deadline.at))
    }

    /// Whether the endpoint was dropped and its last word has left: further steps do nothing.
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Steps until the endpoint was dropped and its last word has left.
    pub(crate) fn run(mut self) {
        if let Err(error) = self.udp.run(&mut self.link, &mut self.relay) {
            self.fail(&error);
        }
    }

    fn fail(&mut self, error: &DriverError) -> Error {
        self.is_over = true;
        let source =
            std::error::Error::source(error).map_or_else(String::new, |why| format!(": {why}"));
        let failure = LineFailure::new(
            ErrorKind::Other,
            format!("the socket failed: {error}{source}"),
        );
        self.shared.lock().end(&failure);
        failure.error()
    }

    pub(crate) fn local(&self) -> io::Result<SocketAddr> {
        self.udp.port().local()
    }
}

impl AsFd for Driver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let text = "the driver was dropped";
        self.shared
            .lock()
            .end(&LineFailure::new(ErrorKind::NotConnected, text));
    }
}
