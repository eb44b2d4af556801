//! The file over TCP: the laboratory's machine with Linux's rules, in segments that travel as UDP datagrams.
//!
//! The kernel's own TCP would need a TUN device, and so root. A lossy link may hold TCP up for minutes, so that a
//! transfer is cut off after [`time_allowed`]; what had come by then counts.

use super::link::{DemoLink, LOOPBACK};
use super::plan::{Condition, MTU, OVERHEAD, SEND_BUFFER};
use super::row::Moved;
use super::timeline::Timeline;
use anyhow::{Context, Result, anyhow};
use fulmar_baseline::tcp::{TcpCloseReason, TcpConnectionId};
use fulmar_baseline::wire::tcp::AddressPair;
use fulmar_baseline::{
    StreamEndpoint, TcpConfig, TcpEndpoint, TcpEndpointConfig, TcpEvent, TcpPreset,
};
use fulmar_net::clock::Clock;
use fulmar_net::emulator::DamagePolicy;
use fulmar_net::entropy;
use fulmar_net::transfer::Stop;
use fulmar_net::udp::{
    Application, DatagramOrigin, PathTableConfig, PortConfig, Step, UdpDriver, UdpPort,
};
use fulmar_net::wait::{Waker, precise_timers, waker};
use fulmar_proto::machine::{Datagram, Deadline, Machine, PathId};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration, Instant};
use fulmar_proto::wire::Port;
use fulmar_proto::wire::network::NodeAddress;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

/// The two ends' addresses, which the checksum covers.
const SENDER: NodeAddress = NodeAddress(1);
const RECEIVER: NodeAddress = NodeAddress(2);
const PORT: Port = Port(4_000);
/// The interval at which the sender looks for the request to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// TCP's header with timestamps, which are options and part of the segment size.
const TCP_HEADER_BYTES: u16 = 20;
/// The most octets that are read from the file at once.
const CHUNK_BYTES: u64 = 16 * 1024;
/// The time that the set-up may take besides that of the data.
const SET_UP: Duration = Duration::from_secs(2);

/// Twice the time that the file takes at the link's rate, and two seconds.
fn time_allowed(condition: Condition, size: u64) -> Duration {
    let ideal = condition
        .config()
        .rate
        .map_or(Duration::ZERO, |rate| rate.time_to_send(ByteCount(size)));
    ideal + ideal + SET_UP
}

fn config() -> TcpConfig {
    let lower = u16::try_from(OVERHEAD.0).unwrap_or_default();
    let mtu = u16::try_from(MTU.0).unwrap_or(u16::MAX);
    TcpConfig {
        mss: mtu - lower - TCP_HEADER_BYTES,
        send_buffer: ByteCount(SEND_BUFFER as u64),
        ..TcpPreset::LinuxLike.config()
    }
}

fn endpoint(local: NodeAddress) -> Result<TcpEndpoint> {
    let config = TcpEndpointConfig {
        local,
        connections_max: 1,
    };
    Ok(TcpEndpoint::new(config, Rng::from_seed(entropy::seed()?)))
}

/// The end with the file.
struct TcpSender<'a> {
    file: BufReader<File>,
    id: TcpConnectionId,
    /// Octets of the file that TCP has not taken yet.
    waiting: Vec<u8>,
    taken: u64,
    is_read: bool,
    timeline: &'a Timeline,
    stop: &'a Stop,
    /// The time at which the transfer is cut off.
    until: Instant,
    look_at: Instant,
    ended: Option<Ended>,
}

/// The end of a transfer.
#[derive(Debug)]
enum Ended {
    Confirmed,
    CutOff,
    Failed(anyhow::Error),
}

impl TcpSender<'_> {
    /// Writes as much as TCP takes; whether that was anything.
    fn write(&mut self, now: Instant, machine: &mut TcpEndpoint) -> Result<bool> {
        let mut wrote = false;
        loop {
            if self.waiting.is_empty() && !self.is_read {
                (&mut self.file)
                    .take(CHUNK_BYTES)
                    .read_to_end(&mut self.waiting)
                    .context("reading the file")?;
                self.is_read = self.waiting.is_empty();
                if self.is_read {
                    machine.close(self.id);
                    wrote = true;
                }
            }
            let count = if self.waiting.is_empty() {
                0
            } else {
                machine
                    .write(self.id, &self.waiting)
                    .map_err(|error| anyhow!("TCP takes nothing more: {error:?}"))?
            };
            if count == 0 {
                return Ok(wrote);
            }
            let range = self.taken..self.taken + count as u64;
            self.timeline.submitted(now, &range);
            self.taken = range.end;
            self.waiting.drain(..count);
            wrote = true;
        }
    }

    fn progress(&mut self, now: Instant, machine: &mut TcpEndpoint) -> Result<Option<Step>> {
        if self.stop.is_requested() {
            return Err(anyhow!("stopped"));
        }
        if now >= self.until {
            self.ended = Some(Ended::CutOff);
            return Ok(Some(Step::Stop));
        }
        if self.write(now, machine)? {
            return Ok(Some(Step::Again));
        }
        let status = machine.status(self.id);
        if self.is_read && status.is_some_and(|status| status.all_acked) {
            self.ended = Some(Ended::Confirmed);
            return Ok(Some(Step::Stop));
        }
        Ok(None)
    }
}

impl Application<TcpEndpoint> for TcpSender<'_> {
    fn deliver(&mut self, _now: Instant, _machine: &mut TcpEndpoint, event: TcpEvent) {
        if let TcpEvent::Closed { why, .. } = event {
            self.ended = Some(match why {
                TcpCloseReason::Finished => Ended::Confirmed,
                _ => Ended::Failed(anyhow!("the connection ended: {why:?}")),
            });
        }
    }

    fn work(&mut self, now: Instant, machine: &mut TcpEndpoint) -> Step {
        if self.ended.is_some() {
            return Step::Stop;
        }
        self.look_at = now + LOOK_EVERY;
        match self.progress(now, machine) {
            Ok(step) => step.unwrap_or(Step::Wait),
            Err(cause) => {
                self.ended = Some(Ended::Failed(cause));
                Step::Stop
            }
        }
    }

    fn unreachable(&mut self, _now: Instant, _machine: &mut TcpEndpoint, _path: PathId) {}

    fn next_deadline(&self) -> Option<Deadline> {
        Some(Deadline {
            at: self.look_at.min(self.until),
            why: "look for a request to stop",
        })
    }
}

/// The end that writes the copy.
struct TcpReceiver {
    copy: File,
    id: Option<TcpConnectionId>,
    written: u64,
    timeline: Arc<Timeline>,
    stop: Stop,
    failed: Option<anyhow::Error>,
}

impl TcpReceiver {
    fn read(&mut self, now: Instant, machine: &mut TcpEndpoint) -> Result<()> {
        let Some(id) = self.id else { return Ok(()) };
        while let Some(octets) = machine.read(id) {
            self.copy.write_all(&octets).context("writing the copy")?;
            let range = self.written..self.written + octets.len() as u64;
            self.written = range.end;
            self.timeline.delivered(now, range);
            machine.recycle(id, octets);
        }
        Ok(())
    }
}

impl Application<TcpEndpoint> for TcpReceiver {
    fn deliver(&mut self, _now: Instant, _machine: &mut TcpEndpoint, event: TcpEvent) {
        if let TcpEvent::Incoming { id, .. } = event {
            self.id = Some(id);
        }
    }

    fn work(&mut self, now: Instant, machine: &mut TcpEndpoint) -> Step {
        match self.read(now, machine) {
            Err(cause) => {
                self.failed = Some(cause);
                Step::Stop
            }
            Ok(()) if self.stop.is_requested() => Step::Stop,
            Ok(()) => Step::Wait,
        }
    }

    fn unreachable(&mut self, _now: Instant, _machine: &mut TcpEndpoint, _path: PathId) {}

    fn arrived(
        &mut self,
        now: Instant,
        machine: &mut TcpEndpoint,
        datagram: Datagram<'_>,
        _origin: DatagramOrigin,
    ) {
        machine.set_addresses(datagram.path, AddressPair::nodes(RECEIVER, SENDER));
        machine.handle_datagram(now, datagram);
    }

    fn next_deadline(&self) -> Option<Deadline> {
        None
    }
}

struct Receiving {
    address: std::net::SocketAddr,
    stop: Stop,
    waker: Waker,
    thread: JoinHandle<Result<()>>,
}

fn receive(clock: Clock, copy: &PathBuf, timeline: Arc<Timeline>) -> Result<Receiving> {
    let port = UdpPort::bind(LOOPBACK, PortConfig::default()).context("a port")?;
    let address = port.local().context("the receiver's address")?;
    let (waker, wake_up) = waker().context("making a waker")?;
    let stop = Stop::default();
    let mut machine = endpoint(RECEIVER)?;
    machine
        .listen(PORT, config())
        .map_err(|error| anyhow!("listening: {error}"))?;
    let mut receiver = TcpReceiver {
        copy: File::create(copy).with_context(|| format!("creating {}", copy.display()))?,
        id: None,
        written: 0,
        timeline,
        stop: stop.clone(),
        failed: None,
    };
    let thread = std::thread::spawn(move || {
        drop(precise_timers());
        let mut driver = UdpDriver::new(clock, port, wake_up, PathTableConfig::default());
        driver
            .run(&mut machine, &mut receiver)
            .context("the receiver")?;
        receiver.failed.map_or(Ok(()), Err)
    });
    Ok(Receiving {
        address,
        stop,
        waker,
        thread,
    })
}

/// Sends `file` through the link; `timeline` measures.
///
/// # Errors
/// A socket or the disk fails. A failed transfer is a row with an error instead.
pub(crate) fn run(
    condition: Condition,
    file: &Path,
    directory: &Path,
    timeline: &Arc<Timeline>,
    stop: &Stop,
) -> Result<Moved> {
    let clock = Clock::start();
    let copy = directory.join("copy");
    let receiving = receive(clock, &copy, Arc::clone(timeline))?;
    let link = DemoLink::start(clock, condition, DamagePolicy::Drop, receiving.address)?;

    let attempt = || format!("reading {}", file.display());
    let source = File::open(file).with_context(attempt)?;
    let size = source.metadata().with_context(attempt)?.len();
    let port = UdpPort::connect(link.address(), PortConfig::default()).context("a port")?;
    let (_waker, wake_up) = waker().context("making a waker")?;
    let mut driver = UdpDriver::new(clock, port, wake_up, PathTableConfig::default());
    let path = driver.path_to(link.address()).context("a path")?;
    let mut machine = endpoint(SENDER)?;
    machine.set_addresses(path, AddressPair::nodes(SENDER, RECEIVER));
    let id = machine
        .connect(path, PORT, PORT, config())
        .map_err(|error| anyhow!("connecting: {error}"))?;
    let now = clock.now();
    let mut sender = TcpSender {
        file: BufReader::new(source),
        id,
        waiting: Vec::new(),
        taken: 0,
        is_read: false,
        timeline,
        stop,
        until: now + time_allowed(condition, size),
        look_at: now,
        ended: None,
    };
    drop(precise_timers());
    driver
        .run(&mut machine, &mut sender)
        .context("the sender")?;

    receiving.stop.request();
    receiving.waker.wake().context("stopping the receiver")?;
    receiving
        .thread
        .join()
        .map_err(|_| anyhow!("the receiver panicked"))??;
    let link = link.end()?;
    let (is_cut_off, error) = match sender.ended {
        Some(Ended::Confirmed) => (false, None),
        Some(Ended::CutOff) => (true, None),
        Some(Ended::Failed(cause)) => (false, Some(format!("{cause:#}"))),
        None => (false, Some("the loop ended".to_owned())),
    };
    Ok(Moved {
        link,
        copy: Some(copy),
        is_cut_off,
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lossy_link_gets_no_more_time_than_a_clean_one() {
        let size = 5_000_000;
        for condition in Condition::ALL {
            // Eight seconds at 5 Mbit/s.
            assert_eq!(time_allowed(condition, size), Duration::from_secs(18));
        }
    }

    #[test]
    fn the_settings_of_the_demonstrations_tcp_are_sound() {
        config().check().expect("sound");
    }
}
