//! An emulated link before an address, and ends with keys.

use fulmar::{Config, Endpoint, SecretKey};
use fulmar_channel::{ChannelConfig, LossModel};
use fulmar_net::clock::Clock;
use fulmar_net::emulator::{DamagePolicy, Emulator, EmulatorConfig, EmulatorReport, Watch};
use fulmar_net::wait::{Waker, waker};
use fulmar_proto::units::{Bitrate, Duration, Instant, PacketErrorRate};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

pub(crate) const ANY: &str = "127.0.0.1:0";
/// Longer than anything here takes: it turns a hang into a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const RATE: Bitrate = Bitrate::from_bits_per_second(50_000_000);

/// A link between whoever sends to its address and the address `to`.
pub(crate) struct Link {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<EmulatorReport>>,
}

pub(crate) fn lossy(loss: f64, delay: Duration) -> ChannelConfig {
    ChannelConfig {
        loss: LossModel::Bernoulli(PacketErrorRate::new(loss).expect("a share")),
        delay,
        ..ChannelConfig::default()
    }
}

impl Link {
    pub(crate) fn to(to: SocketAddr, up: ChannelConfig, down: ChannelConfig) -> Self {
        let config = EmulatorConfig::perfect(([127, 0, 0, 1], 0).into(), to);
        Self::of(EmulatorConfig { up, down, ..config })
    }

    /// A link whose wrong bits arrive, but for those of lower headers, which are never hit.
    pub(crate) fn that_delivers_damage(
        to: SocketAddr,
        up: ChannelConfig,
        down: ChannelConfig,
    ) -> Self {
        let config = EmulatorConfig::perfect(([127, 0, 0, 1], 0).into(), to);
        Self::of(EmulatorConfig {
            up,
            down,
            damage: DamagePolicy::DeliverBehindHeaders,
            ..config
        })
    }

    fn of(config: EmulatorConfig) -> Self {
        let (waker, wake_up) = waker().expect("descriptors are left");
        let mut emulator = Emulator::bind(Clock::start(), config).expect("a free port");
        let address = emulator.local().expect("it is bound");
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut watch = |_: Instant, _: EmulatorReport| {
                if stopping.load(Ordering::SeqCst) {
                    Watch::Stop
                } else {
                    Watch::WhenWoken
                }
            };
            emulator
                .run(&wake_up, &mut watch)
                .expect("the sockets hold");
            emulator.report()
        });
        Self {
            address,
            stop,
            waker,
            thread: Some(thread),
        }
    }

    /// Cuts the link for good, and says what it carried.
    pub(crate) fn cut(&mut self) -> Option<EmulatorReport> {
        self.stop.store(true, Ordering::SeqCst);
        let thread = self.thread.take()?;
        self.waker.wake().expect("a pipe");
        Some(thread.join().expect("the emulator did not panic"))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.cut();
    }
}

pub(crate) fn keys() -> [SecretKey; 2] {
    [(), ()].map(|()| fulmar::new_secret_key().expect("random numbers"))
}

/// A link that loses this share of packets both ways, the called end, the calling end, and the called one's key.
///
/// In this order, the ends are dropped while the link still carries their last word.
pub(crate) fn pair(loss: f64) -> (Link, Endpoint, Endpoint, SecretKey) {
    let [called, calling] = keys();
    let config = Config::new(called.clone())
        .peer(calling.public())
        .rate(RATE);
    let server = Endpoint::bind(ANY, config).expect("a free port");
    let client = Endpoint::bind(ANY, Config::new(calling).rate(RATE)).expect("a free port");
    let way = || lossy(loss, Duration::from_millis(5));
    let link = Link::to(server.local_addr(), way(), way());
    (link, server, client, called)
}

/// Octets that do not repeat soon.
pub(crate) fn octets(len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    fulmar_proto::rng::Rng::from_seed(1).fill(&mut octets);
    octets
}
