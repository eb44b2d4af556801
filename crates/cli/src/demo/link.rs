//! The emulator in a thread of its own.

use super::plan::{Condition, OVERHEAD, SEED};
use anyhow::{Context, Result, anyhow};
use fulmar_net::clock::Clock;
use fulmar_net::emulator::{DamagePolicy, Emulator, EmulatorConfig, EmulatorReport, Watch};
use fulmar_net::transfer::Stop;
use fulmar_net::wait::{Waker, precise_timers, waker};
use fulmar_proto::units::{Duration, Instant};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;

/// The interval at which the link checks for the request to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Any free port of the loopback.
pub(crate) const LOOPBACK: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A running link.
#[derive(Debug)]
pub(crate) struct DemoLink {
    address: SocketAddr,
    stop: Stop,
    waker: Waker,
    thread: JoinHandle<Result<EmulatorReport>>,
}

impl DemoLink {
    /// Starts a link to `target`.
    pub(crate) fn start(
        clock: Clock,
        condition: Condition,
        damage: DamagePolicy,
        target: SocketAddr,
    ) -> Result<Self> {
        let mut config = EmulatorConfig::perfect(LOOPBACK, target);
        config.up = condition.config();
        config.down = condition.config();
        config.seed = SEED;
        config.damage = damage;
        config.overhead = OVERHEAD;
        let mut emulator = Emulator::bind(clock, config).context("starting the emulator")?;
        let address = emulator.local().context("the emulator's address")?;
        let (waker, wake_up) = waker().context("making a waker")?;
        let stop = Stop::default();
        let stopping = stop.clone();
        let thread = std::thread::spawn(move || {
            // Without it, packets are late by up to 50 us, which the report shows.
            drop(precise_timers());
            let mut watch = |now: Instant, _report: EmulatorReport| {
                if stopping.is_requested() {
                    Watch::Stop
                } else {
                    Watch::At(now + LOOK_EVERY)
                }
            };
            emulator.run(&wake_up, &mut watch).context("the emulator")?;
            Ok(emulator.report())
        });
        Ok(Self {
            address,
            stop,
            waker,
            thread,
        })
    }

    /// The address to send to.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the link and returns its counters.
    pub(crate) fn end(self) -> Result<EmulatorReport> {
        self.stop.request();
        self.waker.wake().context("stopping the emulator")?;
        self.thread
            .join()
            .map_err(|_| anyhow!("the emulator panicked"))?
    }
}
