//! `fulmar send FILE HOST[:PORT] --return none`: a file over a link without a way back.

mod args;

use super::{SendArgs, USUAL_PORT, name, refuse_directory};
use crate::commands::address::{resolve, resolve_remote, with_port};
use crate::commands::connection;
use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use crate::signals::Signals;
use anyhow::{Context, anyhow};
use fulmar_net::clock::Clock;
use fulmar_net::one_way::{
    Announcement, BlockSends, CounterFile, FileLayout, FileSymbols, OneWayOpener, OneWayPlan,
    OneWayPromise, OneWayReport, OneWaySeal, OneWaySendError, OneWaySender, OneWaySending,
    OneWaySent, StreamId, ThinReturn, check_one_way_name, counters_directory, file_digest,
    sends_for_overhead, sends_for_promise, sends_for_reports, symbol_bytes_in, units_to_send,
};
use fulmar_net::session::{Entropy, PresetKey};
use fulmar_net::udp::{PathTableConfig, PortConfig, UdpDriver, UdpPort};
use fulmar_net::wait::waker;
use fulmar_proto::machine::PathId;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Probability};
use serde::Serialize;
use std::fs::File;
use std::io::{Read, Seek};
use std::net::SocketAddr;
use std::path::PathBuf;

pub(super) use args::OneWaySendArgs;

const SCHEMA: &str = "fulmar.send-one-way/1";
/// Announcements at the start of a round and at the end, where no loss is told.
const ANNOUNCEMENTS: u32 = 16;
const ANNOUNCEMENTS_MAX: u32 = 1_000;
/// The time that a request may take, beyond the spread: two ways of a geostationary link.
const REQUEST_PATIENCE: Duration = Duration::from_millis(600);
/// The time over which receivers spread their requests, if nobody says another.
const SPREAD: Duration = Duration::from_millis(500);
/// Invitations that nobody answers before all receivers are held to have the file.
const INVITATIONS_MAX: u32 = 9;
/// The longest report: a few hundred octets, and a line for each block.
const REPORT_BYTES_MAX: u64 = 16 << 20;

#[derive(Serialize)]
struct SentOneWay<'a> {
    schema: &'static str,
    name: &'a str,
    size_bytes: u64,
    symbol_bytes: u16,
    symbols: u64,
    round_symbols: u64,
    rounds: u32,
    sent_datagrams: u64,
    sent_bytes: u64,
    sent_source_datagrams: u64,
    sent_repair_datagrams: u64,
    sent_announcements: u64,
    requests: u64,
    sent_per_byte: f64,
    elapsed_s: f64,
    error: Option<String>,
    exit_code: u8,
}

/// A file, its division, and what is sent of it.
struct Work {
    announcement: Announcement,
    layout: FileLayout,
    sends: Vec<BlockSends>,
    reports: usize,
    announcements: u32,
}

/// Sends the file.
///
/// # Errors
/// An option is wrong, the file or a report cannot be read, or the socket cannot be used.
pub(super) fn run(args: &SendArgs) -> Result<Exit, Failure> {
    let outcome = send(args);
    match outcome {
        Err(failure) if args.json => {
            output::record(&serde_json::json!({
                "schema": SCHEMA, "error": format!("{:#}", failure.cause), "exit_code": failure.exit.code(),
            }))?;
            Ok(failure.exit)
        }
        outcome => outcome,
    }
}

/// The share of receivers that the first round leaves short, over a thin way back: requests mend that.
fn half() -> Probability {
    Probability::new(0.5).unwrap_or(Probability::ZERO)
}

fn usage<T>(problem: String) -> Result<T, Failure> {
    Err(anyhow!(problem)).or_exit(Exit::Usage)
}

fn send(args: &SendArgs) -> Result<Exit, Failure> {
    refuse_directory(args)?;
    let asked = &args.one_way;
    if !asked.is_thin() && (asked.requests.is_some() || asked.spread.is_some()) {
        return usage("with --return none nobody asks: leave --requests and --spread out, or write --return thin".to_owned());
    }
    if asked.is_thin() && asked.carousel {
        return usage("a carousel never ends, so nobody would be asked: write --rounds COUNT in place of --carousel, or --return none".to_owned());
    }
    if args.file.as_os_str() == "-" {
        return usage("a pipe cannot be sent without a way back: its size and digest are told ahead; write it to a file first".to_owned());
    }
    let name = name(args)?;
    check_one_way_name(&name)
        .with_context(|| {
            format!("the name {name:?} cannot be used without a way back; give another with --name")
        })
        .or_exit(Exit::Usage)?;
    let preset = args.security.preset()?;
    let peer = resolve_remote("HOST:PORT", &with_port(&args.to, USUAL_PORT))?;
    let lower_overhead = connection::lower_overhead(peer, false);
    let reports = read_reports(&args.one_way.reports, &preset)?;
    let file = File::open(&args.file)
        .with_context(|| format!("reading {}", args.file.display()))
        .or_exit(Exit::Usage)?;
    let work = work(args, &name, &file, lower_overhead, &reports)?;
    let symbols: u64 = work.sends.iter().map(|sends| u64::from(sends.units)).sum();
    if work.reports > 0 && symbols == 0 {
        if !args.json {
            eprintln!("fulmar: {name}: the receivers miss nothing; nothing was sent");
        }
        if args.json {
            let nothing = (OneWaySent::default(), Duration::ZERO);
            return conclude(args, &work, nothing, None, false);
        }
        return Ok(Exit::Done);
    }
    if !args.json {
        eprintln!("fulmar: {}", beginning(args, &work, symbols));
    }
    let (sent, elapsed, stopped) = transmit(args, &work, &file, (peer, lower_overhead), &preset)?;
    let changed = has_changed(&file, &work.announcement);
    conclude(args, &work, (sent, elapsed), stopped, changed)
}

fn read_reports(paths: &[PathBuf], preset: &PresetKey) -> Result<Vec<OneWayReport>, Failure> {
    let read = |path: &PathBuf| {
        let mut octets = Vec::new();
        let file =
            File::open(path).and_then(|file| file.take(REPORT_BYTES_MAX).read_to_end(&mut octets));
        file.with_context(|| format!("--report {}", path.display()))?;
        OneWayReport::from_text(&String::from_utf8_lossy(&octets), preset)
            .with_context(|| format!("--report {}", path.display()))
    };
    let reports: anyhow::Result<Vec<OneWayReport>> = paths.iter().map(read).collect();
    reports.or_exit(Exit::Usage)
}

/// Whether the file that was sent has other octets by now, by its digest. One that took its name meanwhile is none of our business.
fn has_changed(mut file: &File, announcement: &Announcement) -> bool {
    let digest = file.rewind().and_then(|()| file_digest(file));
    !digest.is_ok_and(|(size, digest)| size == announcement.size && digest == announcement.digest)
}

fn work(
    args: &SendArgs,
    name: &str,
    file: &File,
    lower_overhead: ByteCount,
    reports: &[OneWayReport],
) -> Result<Work, Failure> {
    let options = &args.one_way;
    let (size, digest) = file_digest(file)
        .with_context(|| format!("reading {}", args.file.display()))
        .or_exit(Exit::Usage)?;
    let room = symbol_bytes_in(args.mtu.saturating_sub(lower_overhead).as_usize());
    let layout = match reports.first() {
        Some(report) if report.symbol_bytes > room => {
            return usage(format!(
                "--report: its symbols of {} bytes do not fit into --mtu {}",
                report.symbol_bytes, args.mtu
            ));
        }
        Some(report) => FileLayout::new(size, report.symbol_bytes),
        None => FileLayout::within(size, room),
    };
    let layout = layout.context("--mtu").or_exit(Exit::Usage)?;
    let is_promised = options.overhead.is_none();
    let promised = |share: Probability| {
        if is_promised {
            share
        } else {
            Probability::ZERO
        }
    };
    let mut announcement = Announcement {
        name: name.to_owned(),
        size,
        digest,
        symbol_bytes: layout.symbol_bytes(),
        promise: OneWayPromise {
            loss: promised(options.loss),
            residual: promised(options.residual),
            units: 0,
        },
        is_last: false,
        asks: None,
    };
    let sends = if reports.is_empty() {
        let sends = match options.overhead {
            Some(overhead) => sends_for_overhead(&layout, overhead),
            // Whoever lacks something asks.
            None if options.is_thin() => sends_for_promise(&layout, options.loss, half()),
            None => sends_for_promise(&layout, options.loss, options.residual),
        };
        let option = if is_promised {
            "--loss and --residual"
        } else {
            "--overhead"
        };
        sends.with_context(|| format!("{option}: more repair than the blocks of this file have; send several --rounds of less"))
    } else {
        let goal = (options.loss, options.residual);
        sends_for_reports(&announcement, &layout, reports, goal).context("--report")
    };
    let sends = sends.or_exit(Exit::Usage)?;
    announcement.promise.units = sends.iter().map(|sends| u64::from(sends.units)).sum();
    let announcements =
        is_promised.then(|| units_to_send(1, options.loss, options.residual, ANNOUNCEMENTS_MAX));
    Ok(Work {
        announcement,
        layout,
        sends,
        reports: reports.len(),
        announcements: announcements.flatten().unwrap_or(ANNOUNCEMENTS),
    })
}

/// A number of things in words.
fn counted<N: Copy + core::fmt::Display + PartialEq + From<u8>>(number: N, thing: &str) -> String {
    if number == N::from(1) {
        format!("one {thing}")
    } else {
        format!("{number} {thing}s")
    }
}

/// The first line: what is sent, and what it promises.
fn beginning(args: &SendArgs, work: &Work, symbols: u64) -> String {
    let Announcement {
        name,
        size,
        symbol_bytes,
        ..
    } = &work.announcement;
    let options = &args.one_way;
    let all = size.div_ceil((*symbol_bytes).into());
    let goal = match options.overhead {
        Some(_) => String::new(),
        None if options.is_thin() => format!(
            ": at {} % loss half of the receivers need no more, and the others ask",
            options.loss.value() * 100.0
        ),
        None => format!(
            ": at {} % loss a receiver misses it with probability {:e}",
            options.loss.value() * 100.0,
            options.residual.value()
        ),
    };
    let sent = if work.reports > 0 {
        format!(
            "{symbols} more are sent for {}",
            counted(work.reports, "report")
        )
    } else if options.carousel {
        format!("each round sends {symbols}, until Ctrl-C")
    } else {
        format!("{symbols} are sent in {}", counted(options.rounds, "round"))
    };
    format!("{name}: {size} bytes are {all} symbols of {symbol_bytes} bytes, and {sent}{goal}")
}

type Transmitted = (OneWaySent, Duration, Option<Exit>);

/// Sends what the work says, to its end or to a signal.
fn transmit(
    args: &SendArgs,
    work: &Work,
    file: &File,
    (peer, lower_overhead): (SocketAddr, ByteCount),
    preset: &PresetKey,
) -> Result<Transmitted, Failure> {
    let options = &args.one_way;
    let rate = args
        .rate
        .rate
        .context("--return none needs --rate")
        .or_exit(Exit::Usage)?;
    let (waker, wake_up) = waker().context("making a waker").or_exit(Exit::Device)?;
    let signals = Signals::catch(&[&waker])?;
    if !args.json {
        connection::wait_precisely();
    }
    let mut driver = UdpDriver::new(
        Clock::start(),
        port(args, peer, rate)?,
        wake_up,
        PathTableConfig::default(),
    );
    let path = driver
        .path_to(peer)
        .context("the path table is full")
        .or_exit(Exit::Failed)?;
    let mut sending = OneWaySending::new(counters(args, preset)?, signals.stop());
    let mut sender = sender(
        work,
        file,
        (path, rate, lower_overhead),
        (&sending, preset),
        options,
    )?;
    let clock = driver.clock();
    let start = clock.now();
    driver
        .run(&mut sender, &mut sending)
        .context("the socket")
        .or_exit(Exit::Device)?;
    let elapsed = clock.now().saturating_since(start);
    if let Some(error) = sending.take_failure() {
        let exit = match error {
            OneWaySendError::Counters(_) => Exit::Device,
            _ => Exit::Failed,
        };
        return Err(anyhow::Error::new(error)).or_exit(exit);
    }
    Ok((sender.sent(), elapsed, signals.exit()))
}

fn port(args: &SendArgs, peer: SocketAddr, rate: Bitrate) -> Result<UdpPort, Failure> {
    let any: SocketAddr = match peer {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    // The port is not connected: what the network says of the receiver is not heard.
    let any = match &args.one_way.requests {
        Some(text) => resolve("--requests", text)?,
        None => any,
    };
    let port = UdpPort::bind(any, PortConfig::for_rate(rate))
        .context("opening a socket")
        .or_exit(Exit::Device)?;
    port.permit_many(peer, args.one_way.hops)
        .with_context(|| format!("sending to {peer}"))
        .or_exit(Exit::Device)?;
    let device = args.one_way.device.as_deref();
    if let Some(device) = device {
        port.bind_device(device)
            .with_context(|| format!("--device {device}"))
            .or_exit(Exit::Device)?;
    }
    // Requests that go to the group are heard by its members.
    if args.one_way.requests.is_some() && peer.ip().is_multicast() {
        port.join(peer.ip(), device)
            .with_context(|| format!("hearing requests to {peer}"))
            .or_exit(Exit::Device)?;
    }
    Ok(port)
}

fn counters(args: &SendArgs, preset: &PresetKey) -> Result<CounterFile, Failure> {
    let directory = args.one_way.state.clone().or_else(counters_directory);
    let directory = directory
        .context("no place for state is known; name one with --state")
        .or_exit(Exit::Usage)?;
    let mut entropy = entropy()?;
    let counters = CounterFile::open(&directory, preset, &mut entropy)
        .context("the numbers of datagrams")
        .or_exit(Exit::Device)?;
    if counters.is_new() && !args.json {
        let path = counters.path();
        eprintln!(
            "fulmar: this sender's numbers are kept in {}; never copy that file",
            path.display()
        );
    }
    Ok(counters)
}

fn entropy() -> Result<Entropy, Failure> {
    Entropy::from_system()
        .context("asking for entropy")
        .or_exit(Exit::Device)
}

fn sender(
    work: &Work,
    file: &File,
    (path, rate, lower_overhead): (PathId, Bitrate, ByteCount),
    (sending, preset): (&OneWaySending, &PresetKey),
    options: &OneWaySendArgs,
) -> Result<OneWaySender, Failure> {
    let stream = StreamId {
        sender: sending.sender(),
        start: u32::from_be_bytes(entropy()?.array()),
    };
    let seal = OneWaySeal::new(preset, stream)
        .context("the key")
        .or_exit(Exit::Failed)?;
    let most = work
        .sends
        .iter()
        .map(|sends| sends.units)
        .max()
        .unwrap_or(0);
    let file = file
        .try_clone()
        .context("reading the file")
        .or_exit(Exit::Device)?;
    let plan = OneWayPlan {
        announcement: work.announcement.clone(),
        sends: work.sends.clone(),
        rounds: (!options.carousel).then_some(options.rounds),
        announcements: work.announcements,
        path,
        rate,
        lower_overhead,
        returns: options.is_thin().then(|| ThinReturn {
            opener: OneWayOpener::new(preset.clone()),
            stream,
            spread_ms: u16::try_from(options.spread.unwrap_or(SPREAD).as_millis())
                .unwrap_or(u16::MAX),
            patience: REQUEST_PATIENCE,
            loss: options.loss,
            silent_max: INVITATIONS_MAX,
        }),
    };
    let symbols = FileSymbols::new(file, work.layout, most);
    Ok(OneWaySender::new(
        plan,
        work.layout,
        seal,
        Box::new(symbols),
    ))
}

fn conclude(
    args: &SendArgs,
    work: &Work,
    (sent, elapsed): (OneWaySent, Duration),
    stopped: Option<Exit>,
    changed: bool,
) -> Result<Exit, Failure> {
    let Announcement {
        name,
        size,
        symbol_bytes,
        ..
    } = &work.announcement;
    let per_byte = output::share(sent.octets.0, *size);
    // A carousel ends by a signal.
    let was_stopped = stopped.is_some();
    let stopped = stopped.filter(|_| !args.one_way.carousel);
    let complaint = changed.then(|| format!("{name}: the file changed while it was sent; what receivers have is neither the old nor the new one"));
    let exit = stopped.unwrap_or(if changed { Exit::Failed } else { Exit::Done });
    if args.json {
        output::record(&SentOneWay {
            schema: SCHEMA,
            name,
            size_bytes: *size,
            symbol_bytes: *symbol_bytes,
            symbols: size.div_ceil((*symbol_bytes).into()),
            round_symbols: work.announcement.promise.units,
            rounds: sent.rounds,
            sent_datagrams: sent.datagrams,
            sent_bytes: sent.octets.0,
            sent_source_datagrams: sent.sources,
            sent_repair_datagrams: sent.repairs,
            sent_announcements: sent.announcements,
            requests: sent.requests,
            sent_per_byte: per_byte,
            elapsed_s: elapsed.as_secs_f64(),
            error: complaint,
            exit_code: exit.code(),
        })?;
        return Ok(exit);
    }
    eprintln!(
        "fulmar: {name}: {} datagrams with {} bytes in {:.2} s, {per_byte:.3} for each byte; {}",
        sent.datagrams,
        sent.octets.0,
        elapsed.as_secs_f64(),
        if args.one_way.is_thin() {
            let requests = counted(sent.requests, "request");
            let end = if was_stopped {
                "it was stopped"
            } else {
                "nobody asked"
            };
            format!("{requests} for more, and then {end}")
        } else {
            "nobody confirms it: receivers have reports".to_owned()
        }
    );
    match complaint {
        Some(complaint) => Err(anyhow!(complaint)).or_exit(exit),
        None => Ok(exit),
    }
}
