//! The file over AeroTP: a receiver, the link and a sender, each in a thread.

use super::link::{DemoLink, LOOPBACK};
use super::plan::{Condition, DemoCarrier, MTU, OVERHEAD, SEND_BUFFER};
use super::row::Moved;
use super::timeline::{Deliveries, Submissions, Timeline};
use anyhow::{Context, Result, anyhow};
use fulmar_net::clock::Clock;
use fulmar_net::emulator::DamagePolicy;
use fulmar_net::entropy;
use fulmar_net::transfer::{
    FileDestination, ReceivePlan, ReceiveReport, Receiver, SendError, SendPlan, Sender, Source,
    Stop,
};
use fulmar_net::udp::{Application, PathTableConfig, PortConfig, UdpDriver, UdpPort};
use fulmar_net::wait::{Waker, precise_timers, waker};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, ConnectionConfig, EndpointConfig, HoleWaits, RateSource,
};
use fulmar_proto::units::Duration;
use fulmar_proto::wire::Mode;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

const GIVE_UP: Duration = Duration::from_secs(20);
const CHECKPOINT: Duration = Duration::from_secs(1);

/// The wait for a damaged TPDU that was asked for again: several tries at it.
const REQUESTED_WAIT: Duration = Duration::from_millis(250);

fn connection(carrier: DemoCarrier, mode: Mode, condition: Condition) -> ConnectionConfig {
    let defaults = ConnectionConfig::default();
    let hole_waits = HoleWaits {
        requested: REQUESTED_WAIT,
        parity: carrier
            .block()
            .map_or(Duration::ZERO, |_| defaults.hole_waits.parity),
        ..defaults.hole_waits
    };
    // Without acknowledgements, a TPDU is kept for as long as it may be asked for.
    let kept = match mode {
        Mode::HybridNack => {
            let told = carrier.told(condition);
            told.map_or(0, |rate| rate.bytes_in(REQUESTED_WAIT).as_usize())
        }
        _ => 0,
    };
    ConnectionConfig {
        mode,
        tpdu_bytes_max: MTU.saturating_sub(OVERHEAD).as_usize(),
        fec_words: carrier.fec_words(),
        block: carrier.block(),
        send_buffer_bytes: SEND_BUFFER + kept,
        hole_waits,
        give_up_after: GIVE_UP,
        ..defaults
    }
}

fn endpoint(carrier: DemoCarrier, condition: Condition) -> Result<AerotpEndpoint> {
    let rate = carrier.told(condition);
    let config = EndpointConfig {
        rate: RateSource::of(rate, None),
        reports_often: rate.is_none(),
        lower_overhead: OVERHEAD,
        ..EndpointConfig::default()
    };
    Ok(AerotpEndpoint::new(
        config,
        Rng::from_seed(entropy::seed()?),
    ))
}

struct Receiving {
    address: std::net::SocketAddr,
    stop: Stop,
    waker: Waker,
    thread: JoinHandle<Result<Option<ReceiveReport>>>,
}

fn receive(
    clock: Clock,
    config: ConnectionConfig,
    mut machine: AerotpEndpoint,
    directory: &Path,
    timeline: Arc<Timeline>,
) -> Result<Receiving> {
    let port = UdpPort::bind(LOOPBACK, PortConfig::default()).context("a port")?;
    let address = port.local().context("the receiver's address")?;
    let plan = ReceivePlan {
        destination: FileDestination::Directory {
            path: directory.to_owned(),
            replace: true,
        },
        connection: config,
        once: true,
        checkpoint_every: CHECKPOINT,
    };
    let (waker, wake_up) = waker().context("making a waker")?;
    let stop = Stop::default();
    let mut receiver = Receiver::new(plan, &mut machine, stop.clone(), Deliveries(timeline))?;
    let thread = std::thread::spawn(move || {
        drop(precise_timers());
        let mut driver = UdpDriver::new(clock, port, wake_up, PathTableConfig::default());
        let application: &mut dyn Application<_> = &mut receiver;
        driver
            .run(&mut machine, application)
            .context("the receiver")?;
        Ok(receiver.take_report())
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
    (carrier, mode): (DemoCarrier, Mode),
    condition: Condition,
    file: &Path,
    directory: &Path,
    timeline: &Arc<Timeline>,
    stop: &Stop,
) -> Result<Moved> {
    let clock = Clock::start();
    let config = connection(carrier, mode, condition);
    let machine = endpoint(carrier, condition)?;
    let receiving = receive(clock, config, machine, directory, Arc::clone(timeline))?;
    let link = DemoLink::start(clock, condition, DamagePolicy::Deliver, receiving.address)?;

    let source = Source::open(file).with_context(|| format!("reading {}", file.display()))?;
    let port = UdpPort::connect(link.address(), PortConfig::default()).context("a port")?;
    let (_waker, wake_up) = waker().context("making a waker")?;
    let mut driver = UdpDriver::new(clock, port, wake_up, PathTableConfig::default());
    let path = driver.path_to(link.address()).context("a path")?;
    let plan = SendPlan {
        name: "copy".to_owned(),
        connection: config,
        connect_timeout: GIVE_UP,
        id: entropy::seed()?,
    };
    let observer = Submissions(Arc::clone(timeline));
    let mut sender = Sender::new(plan, path, source, stop.clone(), observer);
    drop(precise_timers());
    let application: &mut dyn Application<_> = &mut sender;
    driver
        .run(&mut endpoint(carrier, condition)?, application)
        .context("the sender")?;
    let sent = sender.take_outcome().unwrap_or(Err(SendError::Stopped));

    if sent.is_err() {
        receiving.stop.request();
        receiving.waker.wake().context("stopping the receiver")?;
    }
    let report = receiving
        .thread
        .join()
        .map_err(|_| anyhow!("the receiver panicked"))??;
    let link = link.end()?;
    Ok(Moved {
        link,
        copy: report.and_then(|report| report.path),
        is_cut_off: false,
        error: sent.err().map(|error| error.to_string()),
    })
}
