//! `fulmar emulate`: a lossy link between UDP sockets, or between TUN or TAP devices.

mod tun;

use super::address::{resolve, resolve_remote};
use super::connection::{cure_of_bind, span, wait_precisely};
use super::link::{LinkArgs, describe};
use super::overwrite;
use crate::exit::{Exit, Failure, OrExit};
use crate::output::{self, StdoutReader};
use crate::signals::Signals;
use anyhow::{Context, anyhow};
use clap::ValueEnum;
use fulmar_net::clock::Clock;
use fulmar_net::emulator::{
    DamagePolicy, Emulator, EmulatorConfig, EmulatorError, EmulatorTap, LargestPacket, Watch,
};
use fulmar_net::recording::{EndOfRecording, RecordingConfig, RecordingCounters};
use fulmar_net::tun::{DeviceLayer, TunError};
use fulmar_net::wait::waker;
use fulmar_proto::units::{ByteCount, Duration, Instant, parse_duration};
use serde::Serialize;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  fulmar emulate --listen 127.0.0.1:9000 --to 127.0.0.1:9001 --preset airborne --ber 1e-5
      5 Mbit/s, 10 us, and one bit in 100,000 inverted, both ways
  fulmar emulate --listen :9000 --to 10.0.0.2:9001 --rate 5mbit --delay 10ms --queue 100 \\
      --up-loss '20% burst 4' --down-loss 1% --stats 1s
      another loss for each direction, counters every second
  fulmar emulate --listen :9000 --to 127.0.0.1:9001 --ber 1e-4 --damage drop
      damaged datagrams vanish, as behind a UDP checksum
  fulmar emulate --listen :9000 --to 127.0.0.1:9001 --loss 5% --capture link.pcapng
      every datagram for Wireshark, with what became of it; docs/guide/captures.md
  sudo fulmar emulate --tun --rate 10mbit --delay 5ms --loss 20%
      any program's IP traffic: namespaces fulmar-a (10.77.0.1, fd77::1) and fulmar-b (10.77.0.2,
      fd77::2), made and removed; try 'ip netns exec fulmar-a ping 10.77.0.2'
  sudo fulmar emulate --tun a=ground:10.77.0.1/24,fd77::1/64 b=air:10.77.0.2/24,fd77::2/64 \\
      --ber 1e-6
      the same between namespaces and addresses of your choice; the kernel's checksums see the bits
  sudo fulmar emulate --tap a=ground/radio b=air/radio --ber 1e-4
      Ethernet frames of any type, some of them damaged: for gateways whose carrier is ethernet:radio

Stdout carries one JSON record a line: `start` with the address in use, `stats` at each interval,
`end` with the final counters. Ctrl-C or SIGTERM ends the run, and so does a closed stdout when
there are `stats` to print.
";

/// The fate of a packet with inverted bits.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Damage {
    /// It arrives damaged, as over UDP-Lite or without a UDP checksum.
    #[default]
    Deliver,
    /// It arrives, but headers below (with --tun: of IP, with --tap: of Ethernet) stay whole, as on a
    /// link that protects them.
    DeliverBehindHeaders,
    /// It is dropped, as behind a UDP checksum or a link's frame check.
    Drop,
}

impl From<Damage> for DamagePolicy {
    fn from(damage: Damage) -> Self {
        match damage {
            Damage::Deliver => Self::Deliver,
            Damage::DeliverBehindHeaders => Self::DeliverBehindHeaders,
            Damage::Drop => Self::Drop,
        }
    }
}

/// The arguments of `fulmar emulate`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct EmulateArgs {
    /// Address where clients send to: HOST:PORT, or :PORT for every address; port 0 takes a free one.
    #[arg(long, value_name = "ADDR", required_unless_present_any = ["tun", "tap"])]
    listen: Option<String>,
    /// Address where their datagrams go: HOST:PORT.
    #[arg(long, value_name = "ADDR", required_unless_present_any = ["tun", "tap"])]
    to: Option<String>,
    /// Instead of a relay, two TUN devices for any IP traffic (root), each as
    /// a=NAMESPACE/DEVICE:ADDRESS/PREFIX,... or b=..., each part optional; an empty NAMESPACE is the
    /// one you are in.
    #[arg(long, value_name = "END", num_args = 0..=2, conflicts_with_all = ["listen", "to", "flows"])]
    tun: Option<Vec<tun::EndArg>>,
    /// Instead of a relay, two TAP devices for Ethernet frames of any type (root); ends as with --tun,
    /// without addresses unless some are given.
    #[arg(long, value_name = "END", num_args = 0..=2)]
    #[arg(conflicts_with_all = ["listen", "to", "flows", "tun"])]
    tap: Option<Vec<tun::EndArg>>,
    /// With --tun and --tap: the longest IP packet on the devices (what an Ethernet header is in front
    /// of), 1500 octets if none is given.
    #[arg(long, value_name = "OCTETS", conflicts_with_all = ["listen", "to"])]
    #[arg(value_parser = clap::value_parser!(u16).range(68..))]
    mtu: Option<u16>,
    /// Longer packets, lower headers included, vanish without a word to the sender: a black hole.
    #[arg(long, value_name = "BYTES", value_parser = super::connection::mtu)]
    drop_above: Option<ByteCount>,
    /// With --drop-above: only from this long after the start on, as a path that shrinks.
    #[arg(long, value_name = "TIME", requires = "drop_above", value_parser = parse_duration)]
    drop_above_after: Option<Duration>,
    /// The seed of every random decision.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Fate of a datagram (with --tun a packet, with --tap a frame) with inverted bits in it.
    #[arg(long, value_enum, default_value_t)]
    damage: Damage,
    /// Lower headers of each datagram on the link, in time and in bit errors: 28B for IPv4 and UDP if
    /// none is given; none with --tun, which sees whole IP packets, and --tap, which sees frames
    /// without their check.
    #[arg(long, value_name = "BYTES")]
    overhead: Option<ByteCount>,
    /// Clients at once.
    #[arg(long, value_name = "COUNT", default_value_t = 256)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    flows: u32,
    /// Print counters at this interval, 1s if none is given.
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "1s")]
    #[arg(value_parser = span)]
    stats: Option<Duration>,
    /// No talk on stderr; stdout is JSON in any case.
    #[arg(long)]
    json: bool,
    /// Write every packet that enters and leaves the link to a pcapng file for Wireshark, with what
    /// the link did to it as a comment. An existing file is overwritten.
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    #[command(flatten)]
    link: LinkArgs,
}

#[derive(Serialize)]
struct Start {
    schema: &'static str,
    kind: &'static str,
    listening: SocketAddr,
    to: SocketAddr,
    seed: u64,
    up: String,
    down: String,
}

#[derive(Serialize)]
struct Counted<R> {
    kind: &'static str,
    #[serde(flatten)]
    report: R,
}

impl EmulateArgs {
    fn largest(&self) -> Option<LargestPacket> {
        Some(LargestPacket {
            octets: self.drop_above?,
            after: self.drop_above_after.unwrap_or_default(),
        })
    }
}

/// Runs the link until a signal comes.
///
/// # Errors
/// An argument is wrong, or a socket or device cannot be had.
pub(crate) fn run(args: &EmulateArgs) -> Result<Exit, Failure> {
    match (
        &args.tun,
        &args.tap,
        args.listen.as_ref().zip(args.to.as_ref()),
    ) {
        (Some(ends), ..) => tun::run(args, DeviceLayer::Ip, ends),
        (_, Some(ends), _) => tun::run(args, DeviceLayer::Ethernet, ends),
        (None, None, Some((listen, to))) => relay(args, listen, to),
        _ => unreachable!("clap requires --listen and --to unless there is --tun or --tap"),
    }
}

fn relay(args: &EmulateArgs, listen: &str, to: &str) -> Result<Exit, Failure> {
    let link = args.link.link()?;
    let listen = resolve("--listen", listen)?;
    let to = resolve_remote("--to", to)?;
    let mut config = EmulatorConfig::perfect(listen, to);
    config.up = link.up;
    config.down = link.down;
    config.changes = link.changes;
    config.seed = args.seed;
    config.overhead = args.overhead.unwrap_or(config.overhead);
    config.flows_max = usize::try_from(args.flows).unwrap_or(usize::MAX);
    config.damage = args.damage.into();
    config.largest = args.largest();
    let (up, down) = (describe(&config.up), describe(&config.down));
    let clock = Clock::start();
    let (waker, wake_up) = waker().context("making a waker").or_exit(Exit::Device)?;
    let signals = Signals::catch(&[&waker])?;
    let mut emulator = Emulator::bind(clock, config).map_err(failure)?;
    if let Some(tap) = begin_capture(
        args,
        clock,
        &format!("{listen} to {to}: up {up}; down {down}"),
        &link.traces,
    )? {
        emulator.set_tap(tap);
    }
    wait_precisely();
    let listening = emulator.local().context("--listen").or_exit(Exit::Device)?;
    if leads_to(to, listening) {
        let problem =
            format!("--to {to} is the address that --listen takes: the link would feed itself");
        return Err(anyhow!(problem)).or_exit(Exit::Usage);
    }
    if !args.json {
        eprintln!(
            "fulmar: {listening} -> {to}: up {up}; down {down}; seed {}",
            args.seed
        );
    }
    let schema = emulator.report().schema;
    output::record(&Start {
        schema,
        kind: "start",
        listening,
        to,
        seed: args.seed,
        up,
        down,
    })?;
    let mut broken = None;
    let mut watch = ticks(args.stats, &clock, &signals, &mut broken);
    let outcome = emulator.run(&wake_up, &mut watch);
    drop(watch);
    broken.map_or(Ok(()), Err)?;
    end(args, &signals, outcome, emulator.report(), emulator.tap())
}

/// Begins a capture, if one is asked for.
fn begin_capture(
    args: &EmulateArgs,
    clock: Clock,
    link: &str,
    inputs: &[PathBuf],
) -> Result<Option<EmulatorTap>, Failure> {
    let Some(file) = args.capture.clone() else {
        return Ok(None);
    };
    for input in inputs {
        overwrite::refuse_recording("--capture", &file, input)?;
    }
    let config = RecordingConfig {
        file,
        max_size: ByteCount(u64::MAX),
        is_required: true,
    };
    let about = format!("{link}; seed {}", args.seed);
    let tell = |ended: EndOfRecording| eprintln!("fulmar: {ended}; the link goes on");
    let tap = EmulatorTap::start(clock, config, &about, tell).or_exit(Exit::Device)?;
    Ok(Some(tap))
}

/// Prints the last record: the counters until then are worth knowing, however it ended.
fn end<R: Serialize>(
    args: &EmulateArgs,
    signals: &Signals,
    outcome: Result<(), EmulatorError>,
    report: R,
    tap: Option<&EmulatorTap>,
) -> Result<Exit, Failure> {
    let kind = "end";
    output::record(&Counted { kind, report })?;
    tell_of_capture(args, tap);
    outcome.map_err(failure)?;
    Ok(signals.exit().unwrap_or(Exit::Done))
}

fn tell_of_capture(args: &EmulateArgs, tap: Option<&EmulatorTap>) {
    if let (Some(file), Some(tap)) = (&args.capture, tap) {
        let RecordingCounters { written, missed } = tap.counters();
        let missed = match missed {
            0 => String::new(),
            missed => format!(", and {missed} were left out"),
        };
        eprintln!(
            "fulmar: {written} packets are in {}{missed}",
            file.display()
        );
    }
}

/// Prints a `stats` record at every interval until a signal comes or nobody reads them; a record that cannot be printed
/// ends the run and is left in `broken`.
fn ticks<R: Serialize>(
    every: Option<Duration>,
    clock: &Clock,
    signals: &Signals,
    broken: &mut Option<Failure>,
) -> impl FnMut(Instant, R) -> Watch {
    let mut next = every.map(|every| clock.now() + every);
    move |now, report| {
        if signals.exit().is_some() || broken.is_some() {
            return Watch::Stop;
        }
        let (Some(at), Some(every)) = (next, every) else {
            return Watch::WhenWoken;
        };
        if now < at {
            return Watch::At(at);
        }
        let kind = "stats";
        match output::watched_record(&Counted { kind, report }) {
            Ok(StdoutReader::Present) => {}
            // `| head` has seen enough: a link that went on would not be noticed.
            Ok(StdoutReader::Gone) => return Watch::Stop,
            Err(failure) => *broken = Some(failure),
        }
        // The grid stays fixed; intervals that were missed are not made up for.
        let mut later = at + every;
        if later <= now {
            later = now + every;
        }
        next = Some(later);
        Watch::At(later)
    }
}

/// Whether datagrams to `to` arrive at the socket that listens at `listening`.
fn leads_to(to: SocketAddr, listening: SocketAddr) -> bool {
    // Only an address of this machine can be bound to.
    let is_ours = || UdpSocket::bind((to.ip(), 0)).is_ok();
    to.port() == listening.port()
        && (to.ip() == listening.ip() || listening.ip().is_unspecified() && is_ours())
}

fn failure(error: EmulatorError) -> Failure {
    let exit = match error {
        EmulatorError::Link { .. } | EmulatorError::Tun(TunError::Name { .. }) => Exit::Usage,
        EmulatorError::Trace { .. } => Exit::Failed,
        EmulatorError::Listen { .. } | EmulatorError::Relay(_) | EmulatorError::Tun(_) => {
            Exit::Device
        }
    };
    let cause = match error {
        EmulatorError::Listen { address, source } => {
            let cure = cure_of_bind(&source);
            anyhow::Error::new(source).context(format!("--listen: {address}{cure}"))
        }
        error => error.into(),
    };
    Failure { exit, cause }
}
