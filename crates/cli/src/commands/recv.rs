//! `fulmar recv DIR`.

use super::address::resolve;
use super::connection::{self, CarrierPlan, EndpointCarrier, WireReport};
use super::progress::TransferBar;
use super::secure::SecurityArgs;
use super::writable::writable;
use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use crate::signals::Signals;
use anyhow::Context;
use fulmar_net::transfer::{
    FileDestination, ReceiveError, ReceiveObserver, ReceivePlan, ReceiveReport, Receiver,
    TransferVerdict,
};
use fulmar_net::udp::PortConfig;
use fulmar_net::wait::{Waker, waker};
use fulmar_proto::transport::aerotp::{ConnectionConfig, ModeRules, RateSource};
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use serde::Serialize;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};

mod one_way;

const EXAMPLES: &str = "\
Examples:
  fulmar recv incoming/
      every file that anyone sends to port 4914, until Ctrl-C
  fulmar recv incoming/ --once --listen 127.0.0.1:9000
      one file, then end with its exit code
  fulmar recv - --once | tar x
      into a pipe
  fulmar recv incoming/ --key here.key --peer IUs...=
      only from who has the secret half of that key, encrypted; `fulmar keygen here.key` makes ours
  fulmar recv incoming/ --return none --preset link.preset
      over a link without a way back: nothing is ever sent from here

An unfinished file is NAME.fulmar-part; a sender that starts again continues it. A file with missing
octets, in modes that permit them, is kept as NAME.incomplete, with zeros in the holes.
Without --key and --peer, or --preset, anyone who reaches the port may send.
";

const SCHEMA: &str = "fulmar.recv/1";

/// The rate of answers, which are few.
const RATE: Bitrate = Bitrate::from_bits_per_second(1_000_000_000);

/// The arguments of `fulmar recv`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct RecvArgs {
    /// The directory for the files, made if its parent exists; - is stdout, for one file.
    dir: PathBuf,
    /// Address to listen at: HOST:PORT, or :PORT for every address; port 0 takes a free one.
    #[arg(long, value_name = "ADDR", default_value = ":4914")]
    listen: String,
    /// End after the first file.
    #[arg(long)]
    once: bool,
    /// Replace existing files.
    #[arg(long)]
    force: bool,
    /// TPDUs for each acknowledgement, in modes that acknowledge.
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=365))]
    mack: u16,
    /// The largest datagram, IP header included.
    #[arg(long, value_name = "BYTES", default_value = "1500", value_parser = connection::mtu)]
    mtu: ByteCount,
    /// Give a sender up after hearing nothing from it for this long.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = connection::give_up)]
    give_up: Duration,
    /// Interval at which arrived octets are synced to the disk, so that a crash costs no more than that.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = connection::span)]
    checkpoint: Duration,
    /// Trace the connection's events to a file, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// One JSON record a line on stdout, errors included, and no talk on stderr.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    security: SecurityArgs,
    #[command(flatten)]
    one_way: one_way::OneWayRecvArgs,
}

#[derive(Serialize)]
struct Start {
    schema: &'static str,
    kind: &'static str,
    listening: SocketAddr,
}

#[derive(Serialize)]
struct Received<'a> {
    schema: &'static str,
    kind: &'static str,
    name: &'a str,
    path: Option<String>,
    mode: &'static str,
    verdict: &'static str,
    size_bytes: Option<u64>,
    resumed_at_bytes: u64,
    delivered_bytes: u64,
    missing_bytes: Option<u64>,
    missing_range_count: Option<u64>,
    missing_ranges: Option<Vec<[u64; 2]>>,
    residual_loss: Option<f64>,
    verified: bool,
    elapsed_s: f64,
    error: Option<String>,
    wire: WireReport,
}

/// The last record: how the command ended.
#[derive(Serialize)]
struct End {
    schema: &'static str,
    kind: &'static str,
    error: Option<String>,
    exit_code: u8,
}

const fn verdict_name(verdict: TransferVerdict) -> &'static str {
    match verdict {
        TransferVerdict::Complete => "complete",
        TransferVerdict::Incomplete => "incomplete",
        TransferVerdict::Corrupt => "corrupt",
        TransferVerdict::Abandoned => "abandoned",
        TransferVerdict::Vanished => "vanished",
        TransferVerdict::Stopped => "stopped",
        TransferVerdict::Failed => "failed",
    }
}

/// Progress, and a line for each file.
#[derive(Debug)]
struct Watcher {
    progress: TransferBar,
    json: bool,
    once: bool,
    /// Whether files go to a directory.
    is_kept: bool,
    last: Option<(Exit, Option<String>)>,
    broken: Option<Failure>,
}

impl ReceiveObserver for Watcher {
    fn started(&mut self, name: &str, size: Option<u64>, resumed_at: u64) {
        ReceiveObserver::started(&mut self.progress, name, size, resumed_at);
    }

    fn delivered(&mut self, now: Instant, range: Range<u64>) {
        self.progress.delivered(now, range);
    }

    fn finished(&mut self, report: &ReceiveReport) {
        self.progress.finished(report);
        let exit = match report.verdict {
            TransferVerdict::Complete => Exit::Done,
            TransferVerdict::Incomplete
            | TransferVerdict::Corrupt
            | TransferVerdict::Abandoned
            | TransferVerdict::Stopped => Exit::Failed,
            TransferVerdict::Vanished => Exit::LinkLost,
            TransferVerdict::Failed => Exit::Device,
        };
        let line = describe(report, self.is_kept);
        if self.json {
            self.broken = output::record(&record(report, self.is_kept)).err();
        } else if report.verdict == TransferVerdict::Complete {
            self.progress.say(&line);
        }
        let complaint = (report.verdict != TransferVerdict::Complete).then_some(line);
        if let Some((_, Some(earlier))) = self.last.replace((exit, complaint))
            && !self.json
        {
            eprintln!("fulmar: {earlier}");
        }
        if !self.once {
            self.complain();
        }
    }
}

impl Watcher {
    /// Reports what is wrong with the last file, if that was not reported yet.
    fn complain(&mut self) {
        // A record has reported it already.
        if self.json {
            return;
        }
        if let Some(complaint) = self.last.as_mut().and_then(|(_, text)| text.take()) {
            eprintln!("fulmar: {complaint}");
        }
    }
}

/// A file's end in words; `is_kept` is set where octets go to a directory, where a later sender finds them.
fn describe(report: &ReceiveReport, is_kept: bool) -> String {
    let continues = is_kept && ModeRules::of(report.mode).complete && report.size.is_some();
    let go_on = if continues {
        "one that starts again continues there"
    } else {
        "one that starts again begins anew"
    };
    let name = if report.name.is_empty() {
        "a sender"
    } else {
        &report.name
    };
    match report.verdict {
        TransferVerdict::Complete
            if report.delivered > 0 && report.resumed_at == report.delivered =>
        {
            format!(
                "{name}: all {} bytes were here already, BLAKE3 verified",
                report.delivered
            )
        }
        TransferVerdict::Complete => {
            let moved = ByteCount(report.delivered.saturating_sub(report.resumed_at));
            let goodput = Bitrate::of(moved, report.elapsed).as_bits_per_second() as f64 / 1e6;
            format!(
                "{name}: {} in {:.2} s, {goodput:.3} Mbit/s, BLAKE3 verified",
                output::moved(report.delivered, report.resumed_at),
                report.elapsed.as_secs_f64()
            )
        }
        TransferVerdict::Incomplete => format!(
            "{name}: {} bytes in {} ranges are missing ({:.3} %); kept as {}",
            report.missing.unwrap_or_default(),
            report.missing_range_count.unwrap_or_default(),
            residual_loss(report).unwrap_or_default() * 100.0,
            report.path.as_deref().unwrap_or(Path::new("")).display()
        ),
        TransferVerdict::Corrupt => {
            format!("{name}: the octets have another BLAKE3 digest than the sender's")
        }
        TransferVerdict::Abandoned => {
            format!(
                "{name}: the sender ended the transfer after {} bytes; {go_on}",
                report.delivered
            )
        }
        TransferVerdict::Vanished => {
            format!(
                "{name}: the sender was not heard any more after {} bytes; {go_on}",
                report.delivered
            )
        }
        TransferVerdict::Stopped => {
            let go_on = if continues {
                "continues there"
            } else {
                "begins anew"
            };
            format!(
                "{name}: stopped after {} bytes; a sender that starts again {go_on}",
                report.delivered
            )
        }
        TransferVerdict::Failed => match &report.error {
            Some(error @ ReceiveError::Storage(_)) => {
                let go_on = if continues {
                    "continues with what was synced"
                } else {
                    "begins anew"
                };
                format!(
                    "{name}: {}; once that is mended, a sender that starts again {go_on}",
                    chain(error)
                )
            }
            Some(error) => format!("{name}: {}", chain(error)),
            None => format!("{name}: failed"),
        },
    }
}

fn chain(error: &(impl std::error::Error + 'static)) -> String {
    let causes: Vec<String> = anyhow::Chain::new(error).map(ToString::to_string).collect();
    causes.join(": ")
}

/// The share that the link took for good; `None` for a transfer that was cut off.
fn residual_loss(report: &ReceiveReport) -> Option<f64> {
    let is_over = matches!(
        report.verdict,
        TransferVerdict::Complete | TransferVerdict::Incomplete
    );
    let missing = report.missing.filter(|_| is_over)?;
    Some(output::share(missing, missing + report.delivered))
}

fn record(report: &ReceiveReport, is_kept: bool) -> Received<'_> {
    Received {
        schema: SCHEMA,
        kind: "file",
        name: &report.name,
        path: report.path.as_ref().map(|path| path.display().to_string()),
        mode: report.mode.name(),
        verdict: verdict_name(report.verdict),
        size_bytes: report.size,
        resumed_at_bytes: report.resumed_at,
        delivered_bytes: report.delivered,
        missing_bytes: report.missing,
        missing_range_count: report.missing_range_count,
        missing_ranges: report
            .missing_ranges
            .as_ref()
            .map(|ranges| ranges.iter().map(|r| [r.start, r.end]).collect()),
        residual_loss: residual_loss(report),
        verified: report.verdict == TransferVerdict::Complete,
        elapsed_s: report.elapsed.as_secs_f64(),
        error: (report.verdict != TransferVerdict::Complete).then(|| describe(report, is_kept)),
        wire: WireReport::of_receiver(report.counters.as_ref()),
    }
}

fn destination(args: &RecvArgs, waker: Waker) -> Result<FileDestination, Failure> {
    if is_stdout(args) {
        return Ok(FileDestination::Stdout(waker));
    }
    Ok(FileDestination::Directory {
        path: make_directory(args)?,
        replace: args.force,
    })
}

/// The directory, made if its parent exists.
fn make_directory(args: &RecvArgs) -> Result<PathBuf, Failure> {
    let dir = args.dir.display();
    match std::fs::metadata(&args.dir) {
        Ok(metadata) if metadata.is_dir() => {
            writable(&args.dir, "the files that arrive").or_exit(Exit::Device)?;
        }
        Ok(_) => {
            let cause = anyhow::anyhow!("{dir} is not a directory");
            return Err(Failure {
                exit: Exit::Usage,
                cause,
            });
        }
        // Only the directory itself: a whole path that is missing is more likely a typing mistake.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            std::fs::create_dir(&args.dir)
                .with_context(|| format!("making the directory {dir} (mkdir -p makes its parents)"))
                .or_exit(Exit::Usage)?;
            if !args.json {
                eprintln!("fulmar: created the directory {dir}");
            }
        }
        Err(error) => {
            let cause = anyhow::Error::new(error).context(format!("the directory {dir}"));
            return Err(Failure {
                exit: Exit::Usage,
                cause,
            });
        }
    }
    Ok(args.dir.clone())
}

/// Receives files until a signal comes, or one file with `--once` or into stdout.
///
/// # Errors
/// An argument is wrong, the port is in use, or the last file failed.
pub(crate) fn run(args: &RecvArgs, verbose: u8) -> Result<Exit, Failure> {
    if args.one_way.is_given() {
        return one_way::run(args);
    }
    let outcome = receive(args, verbose);
    if args.json && !is_stdout(args) {
        let (error, exit) = match &outcome {
            Ok(exit) => (None, *exit),
            Err(failure) => (Some(format!("{:#}", failure.cause)), failure.exit),
        };
        output::record(&End {
            schema: SCHEMA,
            kind: "end",
            error,
            exit_code: exit.code(),
        })?;
        // The record has reported what is wrong.
        return Ok(exit);
    }
    outcome
}

fn is_stdout(args: &RecvArgs) -> bool {
    args.dir.as_os_str() == "-"
}

fn receive(args: &RecvArgs, verbose: u8) -> Result<Exit, Failure> {
    let (waker, wake_up) = waker().context("making a waker").or_exit(Exit::Device)?;
    let own_waker = waker
        .try_clone()
        .context("making a waker")
        .or_exit(Exit::Device)?;
    let into_stdout = is_stdout(args);
    if into_stdout && args.json {
        let cause = anyhow::anyhow!("--json and the file cannot both go to stdout");
        return Err(Failure {
            exit: Exit::Usage,
            cause,
        });
    }
    if let Some(trace) = &args.trace {
        args.security.spare("--trace", trace)?;
    }
    let credentials = args.security.read(false)?;
    let listen = resolve("--listen", &args.listen)?;
    let signals = Signals::catch(&[&waker])?;
    let port = PortConfig {
        takes_unchecked: args.security.chooses_checksum(),
        ..PortConfig::default()
    };
    let talk = (verbose, args.json);
    let (mut driver, listening) = connection::driver_at(listen, port, wake_up, talk)?;
    // A directory is made only once there is a port to fill it from.
    let destination = destination(args, own_waker)?;
    let overhead = connection::lower_overhead(listening, credentials.is_some());
    let settings = ConnectionConfig {
        ack: connection::acknowledge_every(args.mack),
        ..connection::settings((args.mtu, RATE), overhead, args.give_up)
    };
    let plan = ReceivePlan {
        destination,
        connection: settings,
        once: args.once || into_stdout,
        checkpoint_every: args.checkpoint,
    };
    let mut carrier = EndpointCarrier::new(CarrierPlan {
        rate: RateSource::Told(RATE),
        reports_often: true,
        overhead,
        mtu: args.mtu,
        credentials,
        chooses_checksum: args.security.chooses_checksum(),
        calls: None,
    })?;
    let watcher = Watcher {
        progress: TransferBar::none(args.json),
        json: args.json,
        once: args.once || into_stdout,
        is_kept: !into_stdout,
        last: None,
        broken: None,
    };
    let mut receiver = Receiver::new(plan, carrier.endpoint_mut(), signals.stop(), watcher)
        .context("--mtu")
        .or_exit(Exit::Usage)?;
    if args.json {
        output::record(&Start {
            schema: SCHEMA,
            kind: "listening",
            listening,
        })?;
    } else {
        eprintln!("fulmar: listening on {listening}");
    }
    args.security.warn(args.json);
    let trace = connection::TraceTo {
        file: args.trace.as_deref(),
        role: "recv",
        name: &listening.to_string(),
    };
    let ran = connection::run(&mut driver, &mut carrier, &mut receiver, (trace, args.json));
    ended(ran.map(drop), receiver.observer, &signals)
}

/// The command's exit or failure after its last file.
fn ended(
    ran: Result<(), Failure>,
    mut watcher: Watcher,
    signals: &Signals,
) -> Result<Exit, Failure> {
    watcher.progress.clear();
    if ran.is_err() {
        // The exit tells of the socket, and not of the last file.
        watcher.complain();
    }
    ran?;
    if let Some(failure) = watcher.broken {
        return Err(failure);
    }
    if let Some(exit) = signals.exit() {
        watcher.complain();
        return Ok(exit);
    }
    match watcher.last {
        Some((exit, Some(complaint))) => Err(Failure {
            exit,
            cause: anyhow::anyhow!(complaint),
        }),
        Some((exit, None)) => Ok(exit),
        None => Ok(Exit::Done),
    }
}
