//! `fulmar send FILE HOST[:PORT]`.

mod one_way;
mod outcome;

use super::address::{resolve_remote, with_port};
use super::connection::{self, CarrierPlan, EndpointCarrier, RateArgs};
use super::overwrite;
use super::progress::TransferBar;
use super::secure::SecurityArgs;
use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use crate::signals::Signals;
use anyhow::Context;
use fulmar_net::entropy;
use fulmar_net::transfer::{
    SendError, SendPlan, SendReport, Sender, SentSoFar, Source, TransferRefusal, check_name,
};
use fulmar_net::udp::PortConfig;
use fulmar_net::wait::{Interest, WakeUp, Waker, wait, waker};
use fulmar_proto::fec::block::BlockPlan;
use fulmar_proto::transport::aerotp::{ConnectionConfig, ModeRules};
use fulmar_proto::units::{ByteCount, Duration, format_duration};
use fulmar_proto::wire::Mode;
use fulmar_proto::wire::aerotp::FecStrength;
use outcome::{NotSent, conclude};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  fulmar send big.iso 10.0.0.2:4914
      every octet, verified by BLAKE3; run it again to continue where it was cut off
  fulmar send big.iso 10.0.0.2:4914 --share background
      only what others on the way leave
  fulmar send big.iso 10.0.0.2:4914 --rate 20mbit
      over a link of 20 Mbit/s that nobody else uses
  tar c dir | fulmar send - 10.0.0.2:4914 --name dir.tar
      from a pipe
  fulmar send video.ts 10.0.0.2:4914 --mode quasi-reliable --block 32,4
      no acknowledgements; four repair symbols for every 32 TPDUs
  fulmar send big.iso 10.0.0.2:4914 --key here.key --peer IUs...=
      encrypted, and only to who has the secret half of that key
  fulmar send big.iso 10.0.0.2:4914 --preset link.preset --carrier auto
      the same with one key of both ends (fulmar keygen --preset), over a link that damages packets and delivers them
  fulmar send big.iso ground.example:4914 --wait
      at every boot, say: however long the name, the network or the receiver is not there yet
  fulmar send big.iso 10.0.0.255 --return none --preset link.preset --rate 5mbit
      to all hosts of a network, none of which answers: whole at each one that loses up to 20 %

Without --rate the link's rate is found and shared fairly with others. With it at most that is sent, whatever
others need: for a link of your own. Mode datagram without keys, whose receiver tells nothing, sends 5 Mbit/s.
";

/// The port at which `fulmar recv` listens unless it is told another.
const USUAL_PORT: u16 = 4914;

/// The arguments of `fulmar send`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct SendArgs {
    /// The file to send; - is stdin.
    file: PathBuf,
    /// Address where a `fulmar recv` listens; without a port, its usual one, 4914.
    #[arg(value_name = "HOST[:PORT]")]
    to: String,
    /// reliable, nack-mack, near-reliable (everything arrives); nack, quasi-reliable, unreliable, datagram
    /// (some may be missing, and the receiver knows which).
    #[arg(long, default_value_t = Mode::Reliable, value_parser = connection::mode())]
    mode: Mode,
    #[command(flatten)]
    rate: RateArgs,
    /// Parity in each TPDU against bit errors, in words of 32 bits.
    #[arg(long, value_name = "WORDS", default_value = "0", value_parser = connection::fec_words)]
    fec_words: FecStrength,
    /// Parity across TPDUs, in mode quasi-reliable: K sources and R repairs to a block.
    #[arg(long, value_name = "K,R", value_parser = connection::block)]
    block: Option<BlockPlan>,
    /// TPDUs for each acknowledgement of the receiver's reports. For the file itself, give it to `fulmar
    /// recv`.
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=365))]
    mack: u16,
    /// The largest datagram, IP header included.
    #[arg(long, value_name = "BYTES", default_value = "1500", value_parser = connection::mtu)]
    mtu: ByteCount,
    /// The name at the receiver, if not the file's own.
    #[arg(long)]
    name: Option<String>,
    /// Give up after hearing nothing from the receiver for this long.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = connection::give_up)]
    give_up: Duration,
    /// Give up if nobody has answered at all for this long.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = connection::span)]
    connect_timeout: Duration,
    /// Try for ever, until the file has arrived: while the name has no address, nobody answers, or the link is
    /// lost. Each try is a line.
    #[arg(long)]
    wait: bool,
    /// Datagrams that may leave in one system call [default: what the rate lets go in 500 us, 16 to 64].
    #[arg(long, value_name = "COUNT")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    burst: Option<u16>,
    /// Trace the connection's events to a file, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The result as JSON on stdout, errors included, and no talk on stderr.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    security: SecurityArgs,
    #[command(flatten)]
    one_way: one_way::OneWaySendArgs,
}

fn name(args: &SendArgs) -> Result<String, Failure> {
    let own = || {
        args.file
            .file_name()
            .and_then(|name| name.to_str())
            .map(str::to_owned)
    };
    let name = match &args.name {
        Some(name) => name.clone(),
        None if is_pipe(&args.file) => "stdin".to_owned(),
        None => own()
            .context("the file has no printable name; give --name")
            .or_exit(Exit::Usage)?,
    };
    check_name(&name)
        .with_context(|| format!("the name {name:?} cannot be used; give another with --name"))
        .or_exit(Exit::Usage)?;
    Ok(name)
}

fn is_pipe(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Refuses a directory, which is no file, though piping it through `tar` makes one.
fn refuse_directory(args: &SendArgs) -> Result<(), Failure> {
    if !args.file.is_dir() {
        return Ok(());
    }
    let named = args.file.canonicalize().ok();
    let named = named.as_deref().and_then(Path::file_name);
    let (directory, to) = (args.file.display(), &args.to);
    let name = named.map_or_else(|| "dir".into(), |name| name.to_string_lossy());
    let cause = anyhow::anyhow!(
        "{directory} is a directory; send it through a pipe: \
         tar c {directory} | fulmar send - {to} --name {name}.tar"
    );
    Err(Failure {
        exit: Exit::Usage,
        cause,
    })
}

fn source(args: &SendArgs, waker: Waker) -> Result<Source, Failure> {
    if is_pipe(&args.file) {
        return Ok(Source::pipe(std::io::stdin(), waker));
    }
    open(args)
}

fn open(args: &SendArgs) -> Result<Source, Failure> {
    Source::open(&args.file)
        .with_context(|| format!("reading {}", args.file.display()))
        .or_exit(Exit::Usage)
}

fn settings(args: &SendArgs, overhead: ByteCount) -> Result<ConnectionConfig, Failure> {
    if args.block.is_some() && !ModeRules::of(args.mode).blocks {
        let with: Vec<&str> = Mode::ALL
            .into_iter()
            .filter(|&mode| ModeRules::of(mode).blocks)
            .map(Mode::name)
            .collect();
        let cause = anyhow::anyhow!(
            "--block goes with --mode {} only; mode {} has no parity across TPDUs",
            with.join(" or "),
            args.mode
        );
        return Err(Failure {
            exit: Exit::Usage,
            cause,
        });
    }
    let config = ConnectionConfig {
        mode: args.mode,
        fec_words: args.fec_words,
        block: args
            .block
            .map(|plan| plan.at_rate(args.rate.supposed(), args.mtu)),
        ack: connection::acknowledge_every(args.mack),
        send_buffer_bytes: connection::send_buffer_bytes(args.rate.rate),
        ..connection::settings((args.mtu, args.rate.supposed()), overhead, args.give_up)
    };
    config
        .payload_bytes()
        .map_err(|error| connection::wrong_options(&error))?;
    Ok(config)
}

/// Sends the file.
///
/// # Errors
/// An argument is wrong, the file cannot be read, or the receiver cannot be reached or refuses.
pub(crate) fn run(args: &SendArgs, verbose: u8) -> Result<Exit, Failure> {
    if args.one_way.is_given() {
        return one_way::run(args);
    }
    let mut so_far = None;
    let outcome = refuse_directory(args)
        .and_then(|()| name(args))
        .and_then(|name| Ok((transfer(args, &name, verbose, &mut so_far)?, name)));
    match outcome {
        Ok((report, name)) => conclude(args, &name, &report),
        Err(failure) if args.json => {
            output::record(&NotSent::new(args, &failure, so_far.as_ref()))?;
            Ok(failure.exit)
        }
        Err(failure) => Err(failure),
    }
}

/// The pause between two tries: the first, and the longest.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// Sends the file, as often as needed with `--wait`. `so_far` is the progress of a transfer that was begun
/// and failed.
fn transfer(
    args: &SendArgs,
    name: &str,
    verbose: u8,
    so_far: &mut Option<SentSoFar>,
) -> Result<SendReport, Failure> {
    let (waker, wake_up) = waker().context("making a waker").or_exit(Exit::Device)?;
    if let Some(trace) = &args.trace {
        overwrite::refuse_recording("--trace", trace, &args.file)?;
        args.security.spare("--trace", trace)?;
    }
    if args.wait && is_pipe(&args.file) {
        let problem = "--wait goes with a file: a pipe cannot be read again for a second try";
        return Err(anyhow::anyhow!(problem)).or_exit(Exit::Usage);
    }
    // What cannot be is said before what may be wished otherwise.
    args.rate.source(args.mode, args.security.is_given())?;
    if !is_pipe(&args.file) {
        open(args)?;
    }
    let to = || resolve_remote("HOST:PORT", &with_port(&args.to, USUAL_PORT));
    // With --wait the name may have no address yet.
    if !args.wait {
        to()?;
    }
    args.security.warn(args.json);
    let signals = Signals::catch(&[&waker])?;
    let mut pause = PAUSE_FIRST;
    loop {
        let wakers = (&waker, &wake_up);
        let failure = match attempt(args, name, verbose, (wakers, &signals), so_far) {
            Err(failure) if args.wait && signals.exit().is_none() => failure,
            outcome => return outcome,
        };
        if !matches!(failure.exit, Exit::Unreachable | Exit::LinkLost) {
            return Err(failure);
        }
        if !args.json {
            let (line, again) = (failure.line(), format_duration(pause));
            eprintln!("fulmar: {line}; trying again in {again} (--wait)");
        }
        let woken = [(wake_up.as_fd(), Interest::Readable)];
        wait(&woken, Some(pause), &mut Vec::new())
            .context("waiting")
            .or_exit(Exit::Device)?;
        if let Some(exit) = signals.exit() {
            let cause = failure.cause;
            return Err(Failure { exit, cause });
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Sends the file once.
fn attempt(
    args: &SendArgs,
    name: &str,
    verbose: u8,
    ((waker, wake_up), signals): ((&Waker, &WakeUp), &Signals),
    so_far: &mut Option<SentSoFar>,
) -> Result<SendReport, Failure> {
    let own_waker = waker
        .try_clone()
        .context("making a waker")
        .or_exit(Exit::Device)?;
    let wake_up = wake_up
        .try_clone()
        .context("making a waker")
        .or_exit(Exit::Device)?;
    let source = source(args, own_waker)?;
    let peer = resolve_remote("HOST:PORT", &with_port(&args.to, USUAL_PORT))?;
    let credentials = args.security.read(true)?;
    let overhead = connection::lower_overhead(peer, credentials.is_some());
    let plan = SendPlan {
        name: name.to_owned(),
        connection: settings(args, overhead)?,
        connect_timeout: args.connect_timeout,
        id: entropy::seed()
            .context("asking for entropy")
            .or_exit(Exit::Device)?,
    };
    let mut port_config = PortConfig {
        takes_unchecked: args.security.chooses_checksum(),
        ..PortConfig::for_bound(args.rate.rate)
    };
    if let Some(burst) = args.burst {
        port_config.burst = burst.into();
    }
    let talk = (verbose, args.json);
    let (mut driver, path) = connection::driver_to(peer, port_config, wake_up, talk)?;
    let mut carrier = EndpointCarrier::new(CarrierPlan {
        rate: args.rate.source(args.mode, credentials.is_some())?,
        reports_often: false,
        overhead,
        mtu: args.mtu,
        credentials,
        chooses_checksum: args.security.chooses_checksum(),
        calls: Some(path),
    })?;
    let path = carrier.inner_path(path);
    let progress = TransferBar::new(name, source.size(), args.json);
    let mut sender = Sender::new(plan, path, source, signals.stop(), progress);
    let trace = connection::TraceTo {
        file: args.trace.as_deref(),
        role: "send",
        name,
    };
    let ran = connection::run(&mut driver, &mut carrier, &mut sender, (trace, args.json));
    sender.observer.clear();
    *so_far = Some(sender.so_far());
    let refused = ran?;
    let outcome = sender.take_outcome().unwrap_or(Err(SendError::Stopped));
    outcome.map_err(|error| {
        let exit = match error {
            SendError::Unreachable(_) | SendError::PortClosed => Exit::Unreachable,
            SendError::Vanished(_) | SendError::Unsteady(_) => Exit::LinkLost,
            // A sender that waits for ever waits for the next receiver, too.
            SendError::ReceiverStopped if args.wait => Exit::LinkLost,
            SendError::Connect(_) => Exit::Usage,
            SendError::Stopped => signals.exit().unwrap_or(Exit::Failed),
            _ => Exit::Failed,
        };
        let cure = cure(args, &error);
        let heard = refused.filter(|_| matches!(error, SendError::Unreachable(_)));
        // Where a reason was heard, guesses at others would hide it.
        let error = heard.map_or_else(|| anyhow::Error::new(error), anyhow::Error::msg);
        let mut cause = error.context(format!("{name} to {peer}"));
        if let Some(cure) = cure {
            cause = anyhow::anyhow!("{cause:#}; {cure}");
        }
        Failure { exit, cause }
    })
}

/// The way to go on after a transfer that was cut off; `None` where that was not begun, or its error says it.
fn cure(args: &SendArgs, error: &SendError) -> Option<String> {
    let again = if is_pipe(&args.file) {
        "a pipe cannot be continued: send it again from its start"
    } else if ModeRules::of(args.mode).complete {
        "send it again to continue where it was cut off"
    } else {
        "send it again: in this mode it begins anew; --mode reliable continues"
    };
    let continues = !is_pipe(&args.file) && ModeRules::of(args.mode).complete;
    Some(match error {
        SendError::Vanished(_) | SendError::Unsteady(_) if continues => {
            format!("{again}, or with --wait to try for ever")
        }
        SendError::Vanished(_) | SendError::Unsteady(_) | SendError::Stopped => again.to_owned(),
        SendError::ReceiverStopped => format!("once it runs again, {again}"),
        SendError::Refused {
            reason: TransferRefusal::Storage,
            ..
        } => format!("once that is mended there, {again}"),
        _ => return None,
    })
}
