//! `fulmar recv DIR --return none`: files from senders that are never answered.

use super::{RecvArgs, make_directory};
use crate::commands::address::{resolve, resolve_remote};
use crate::commands::connection::cure_of_bind;
use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use crate::signals::Signals;
use anyhow::{Context, anyhow};
use fulmar_net::clock::Clock;
use fulmar_net::one_way::{
    CounterFile, OneWayNews, OneWayReceivePlan, OneWayReceiver, OneWayReceiving, OneWayRefusal,
    OneWayReport, OneWayReturn, OneWaySeal, OneWayVerdict, StreamId, ThinReturnPlan,
    counters_directory,
};
use fulmar_net::session::{Entropy, PresetKey};
use fulmar_net::udp::{PathTableConfig, PortConfig, UdpDriver, UdpPort};
use fulmar_net::wait::waker;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::Instant;
use serde::Serialize;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

const SCHEMA: &str = "fulmar.recv-one-way/1";

/// Options for links without a way back.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Without a way back (--return none)")]
pub(super) struct OneWayRecvArgs {
    /// The way back of the link: none (a diode, a broadcast, radio silence), and nothing is ever sent from here; or thin, which all
    /// receivers share, and few of them ask for what is missing. Senders run with the same --return, and have the same --preset.
    #[arg(long = "return", value_name = "WAY", value_parser = ["none", "thin"], requires = "preset")]
    #[arg(conflicts_with_all = ["mack", "mtu", "trace", "key", "peers", "carrier"])]
    way_back: Option<String>,
    /// Listen to a group as well. The kernel tells the network's routers so (IGMP, MLD).
    #[arg(long, value_name = "ADDRESS", requires = "way_back")]
    group: Option<IpAddr>,
    /// Receive by this network device alone.
    #[arg(long, value_name = "DEVICE", requires = "way_back")]
    device: Option<String>,
    /// Over a thin way back: where requests go, so that other receivers hear them and need not ask: a broadcast address or a group
    /// [default: the sender alone].
    #[arg(long, value_name = "HOST:PORT", requires = "way_back")]
    ask: Option<String>,
    /// The directory in which the numbers of requests are kept [default: in the user's place for state]. Never copy it.
    #[arg(long = "state", value_name = "DIR", requires = "way_back")]
    state: Option<PathBuf>,
}

impl OneWayRecvArgs {
    /// Whether the link has no way back, or a thin one.
    pub(super) const fn is_given(&self) -> bool {
        self.way_back.is_some()
    }

    /// Whether something may be asked for.
    fn is_thin(&self) -> bool {
        self.way_back.as_deref() == Some("thin")
    }
}

#[derive(Serialize)]
struct FileRecord<'a> {
    schema: &'static str,
    kind: &'static str,
    verdict: &'static str,
    path: Option<String>,
    report_path: Option<String>,
    report: &'a OneWayReport,
}

const fn verdict_name(verdict: OneWayVerdict) -> &'static str {
    match verdict {
        OneWayVerdict::Whole => "whole",
        OneWayVerdict::Present => "present",
        OneWayVerdict::Missing => "missing",
        OneWayVerdict::Silent => "silent",
        OneWayVerdict::Stopped => "stopped",
        OneWayVerdict::Refused => "refused",
        OneWayVerdict::Corrupt => "corrupt",
    }
}

/// A loss in words, beside the promise.
fn losses(report: &OneWayReport) -> String {
    let promised = if report.promised_residual > 0.0 {
        format!(", promised up to {:.3} %", report.promised_loss * 100.0)
    } else {
        String::new()
    };
    format!(
        "{:.3} % of {} datagrams lost{promised}",
        report.loss * 100.0,
        report.datagrams + report.datagrams_lost
    )
}

fn described(
    verdict: OneWayVerdict,
    report: &OneWayReport,
    (path, report_path): (Option<&Path>, Option<&Path>),
) -> String {
    let name = &report.name;
    let missing = report.missing_symbols;
    let carry = report_path.map(|path| {
        format!(
            "; carry {} to the sender (--report), which sends what is missing",
            path.display()
        )
    });
    let carry = carry.unwrap_or_default();
    match verdict {
        OneWayVerdict::Whole => format!(
            "{name}: {} bytes, BLAKE3 verified, as {}; {}",
            report.size_bytes,
            path.unwrap_or(Path::new("")).display(),
            losses(report)
        ),
        OneWayVerdict::Present => format!(
            "{name}: all {} bytes were here already, BLAKE3 verified",
            report.size_bytes
        ),
        OneWayVerdict::Missing => format!(
            "{name}: the sender is done, and {missing} symbols are missing; {}{carry}",
            losses(report)
        ),
        OneWayVerdict::Silent => format!(
            "{name}: nothing was heard for long, and {missing} symbols are missing; {}{carry}",
            losses(report)
        ),
        OneWayVerdict::Stopped => format!(
            "{name}: stopped, and {missing} symbols are missing; {}{carry}",
            losses(report)
        ),
        OneWayVerdict::Refused => format!(
            "{name}: another file of that name is here, or the name cannot be used; it was not taken (--force replaces)"
        ),
        OneWayVerdict::Corrupt => format!(
            "{name}: the symbols gave another BLAKE3 digest than the sender's; they are collected again"
        ),
    }
}

fn tell(news: OneWayNews, json: bool) {
    let told = match (news, json) {
        (
            OneWayNews::File {
                verdict,
                report,
                path,
                report_path,
            },
            true,
        ) => output::record(&FileRecord {
            schema: SCHEMA,
            kind: "file",
            verdict: verdict_name(verdict),
            path: path.map(|path| path.display().to_string()),
            report_path: report_path.map(|path| path.display().to_string()),
            report: &report,
        }),
        (OneWayNews::Announced(announcement), true) => output::record(&serde_json::json!({
            "schema": SCHEMA, "kind": "announced", "name": announcement.name, "size_bytes": announcement.size,
        })),
        (OneWayNews::Resumed(announcement, missing), true) => output::record(&serde_json::json!({
            "schema": SCHEMA, "kind": "resumed", "name": announcement.name, "size_bytes": announcement.size, "missing_symbols": missing,
        })),
        (OneWayNews::Storage(path, error), true) => output::record(&serde_json::json!({
            "schema": SCHEMA, "kind": "storage", "path": path, "error": error.to_string(),
        })),
        (OneWayNews::NoReport(path, error), true) => output::record(&serde_json::json!({
            "schema": SCHEMA, "kind": "no_report", "path": path, "error": error.to_string(),
        })),
        (OneWayNews::Damaged(announcement, missing), true) => output::record(&serde_json::json!({
            "schema": SCHEMA, "kind": "damaged", "name": announcement.name, "missing_symbols": missing,
        })),
        (OneWayNews::SetAside(announcement), true) => output::record(&serde_json::json!({
            "schema": SCHEMA, "kind": "set_aside", "name": announcement.name,
        })),
        (OneWayNews::OtherKey(datagrams), true) => output::record(&serde_json::json!({
            "schema": SCHEMA, "kind": "other_key", "datagrams": datagrams,
        })),
        (OneWayNews::NoRequests(error), true) => output::record(&serde_json::json!({
            "schema": SCHEMA, "kind": "no_requests", "error": error.to_string(),
        })),
        (OneWayNews::WentBack, true) => output::record(&serde_json::json!({
            "schema": SCHEMA, "kind": "went_back",
        })),
        (news, false) => {
            eprintln!("fulmar: {}", line(news));
            Ok(())
        }
    };
    // Who closed stdout reads no more records; the files matter more.
    drop(told);
}

fn line(news: OneWayNews) -> String {
    match news {
        OneWayNews::Announced(announcement) => format!(
            "{}: {} bytes are announced",
            announcement.name, announcement.size
        ),
        OneWayNews::Resumed(announcement, missing) => {
            format!(
                "{}: continuing; {missing} symbols are missing",
                announcement.name
            )
        }
        OneWayNews::File {
            verdict,
            report,
            path,
            report_path,
        } => described(verdict, &report, (path.as_deref(), report_path.as_deref())),
        OneWayNews::Storage(path, error) => format!(
            "writing {}: {error}; what comes meanwhile is lost here",
            path.display()
        ),
        OneWayNews::NoReport(path, error) => format!(
            "cannot write the report {}: {error}; make room or give the right to write there, and start again for another",
            path.display()
        ),
        OneWayNews::Damaged(announcement, missing) => format!(
            "{}: some of its symbols can no longer be read from the disk; {missing} are missing",
            announcement.name
        ),
        OneWayNews::SetAside(announcement) => format!(
            "{}: it makes room for another file; its symbols stay until it is announced again",
            announcement.name
        ),
        OneWayNews::OtherKey(datagrams) => {
            format!("{datagrams} datagrams of another key, or damaged; compare --preset at both ends")
        }
        OneWayNews::NoRequests(error) => {
            format!("nothing can be asked for until there is room: {error}")
        }
        OneWayNews::WentBack => "a sender's numbers were heard before: a recording, or a sender whose file of numbers was copied or \
            put back; such a sender must remove it (send --state)"
            .to_owned(),
    }
}

fn port(args: &RecvArgs) -> Result<UdpPort, Failure> {
    let listen = resolve("--listen", &args.listen)?;
    let port = UdpPort::bind(listen, PortConfig::default());
    let port = port.map_err(|error| {
        let cure = cure_of_bind(&error);
        Failure {
            exit: Exit::Device,
            cause: anyhow::Error::new(error).context(format!("listening at {listen}{cure}")),
        }
    })?;
    let options = &args.one_way;
    if let Some(device) = &options.device {
        port.bind_device(device)
            .with_context(|| format!("--device {device}"))
            .or_exit(Exit::Device)?;
    }
    if let Some(group) = options.group {
        port.join(group, options.device.as_deref())
            .with_context(|| format!("--group {group}"))
            .or_exit(Exit::Usage)?;
    }
    Ok(port)
}

/// The thin way back, over which this end asks under numbers of its own.
fn returns(
    args: &RecvArgs,
    preset: &PresetKey,
    driver: &mut UdpDriver,
) -> Result<ThinReturnPlan, Failure> {
    let options = &args.one_way;
    let directory = options.state.clone().or_else(counters_directory);
    let directory = directory
        .context("no place for state is known; name one with --state")
        .or_exit(Exit::Usage)?;
    let mut entropy = Entropy::from_system()
        .context("asking for entropy")
        .or_exit(Exit::Device)?;
    let counters = CounterFile::open(&directory, preset, &mut entropy)
        .context("the numbers of requests")
        .or_exit(Exit::Device)?;
    let path = match &options.ask {
        None => None,
        Some(text) => {
            let ask = resolve_remote("--ask", text)?;
            (driver.port().permit_many(ask, 1))
                .with_context(|| format!("--ask {ask}"))
                .or_exit(Exit::Device)?;
            let path = driver.path_to(ask).context("the path table is full");
            Some(path.or_exit(Exit::Failed)?)
        }
    };
    let stream = StreamId {
        sender: counters.sender(),
        start: u32::from_be_bytes(entropy.array()),
    };
    let seal = OneWaySeal::new(preset, stream)
        .context("the key")
        .or_exit(Exit::Failed)?;
    let rng = Rng::from_seed(u64::from_be_bytes(entropy.array()));
    Ok(ThinReturnPlan {
        way: OneWayReturn { seal, path, rng },
        counters,
    })
}

/// Receives files until a signal comes, or one file with `--once`.
///
/// # Errors
/// An argument is wrong, the port is in use, or the directory cannot be used.
pub(super) fn run(args: &RecvArgs) -> Result<Exit, Failure> {
    let outcome = receive(args);
    match outcome {
        Err(failure) if args.json => {
            output::record(&serde_json::json!({
                "schema": SCHEMA, "kind": "end", "error": format!("{:#}", failure.cause), "exit_code": failure.exit.code(),
            }))?;
            Ok(failure.exit)
        }
        outcome => outcome,
    }
}

fn receive(args: &RecvArgs) -> Result<Exit, Failure> {
    if args.dir.as_os_str() == "-" {
        let problem = "without a way back files go to a directory: their symbols are collected there in any order";
        return Err(anyhow!(problem)).or_exit(Exit::Usage);
    }
    if !args.one_way.is_thin() && args.one_way.ask.is_some() {
        let problem =
            "with --return none nothing is asked for: leave --ask out, or write --return thin";
        return Err(anyhow!(problem)).or_exit(Exit::Usage);
    }
    let preset = args.security.preset()?;
    let (waker, wake_up) = waker().context("making a waker").or_exit(Exit::Device)?;
    let signals = Signals::catch(&[&waker])?;
    let port = port(args)?;
    let listening = port.local().context("the socket").or_exit(Exit::Device)?;
    let buffers = port.buffers();
    let mut driver = UdpDriver::new(Clock::start(), port, wake_up, PathTableConfig::default());
    let directory: PathBuf = make_directory(args)?;
    let is_thin = args.one_way.is_thin();
    let returns = if is_thin {
        Some(returns(args, &preset, &mut driver)?)
    } else {
        None
    };
    let plan = OneWayReceivePlan {
        directory,
        preset,
        replace: args.force,
        once: args.once,
        checkpoint_every: args.checkpoint,
        give_up: args.give_up,
        returns,
    };
    let json = args.json;
    if json {
        output::record(
            &serde_json::json!({ "schema": SCHEMA, "kind": "listening", "listening": listening }),
        )?;
    } else {
        let sends = if is_thin {
            "what is missing is asked for"
        } else {
            "nothing is ever sent from here"
        };
        eprintln!("fulmar: listening on {listening}; {sends}");
        if buffers.is_limited() {
            eprintln!(
                "fulmar: the kernel granted a receive buffer of {} instead of {}: a pause of the disk may lose datagrams; raise \
                 net.core.rmem_max",
                buffers.receive, buffers.asked
            );
        }
    }
    let told = Box::new(move |news| tell(news, json));
    let opened = OneWayReceiving::open(Instant::START, plan, (signals.stop(), waker), told);
    let (mut receiver, mut receiving) = opened.context("the directory").or_exit(Exit::Device)?;
    driver
        .run(&mut receiver, &mut receiving)
        .context("the socket")
        .or_exit(Exit::Device)?;
    ended(
        args,
        &receiver,
        receiving.last(),
        driver.port().counters().sent,
        &signals,
    )
}

fn ended(
    args: &RecvArgs,
    receiver: &OneWayReceiver,
    last: Option<OneWayVerdict>,
    sent: u64,
    signals: &Signals,
) -> Result<Exit, Failure> {
    let of_file = match last {
        None | Some(OneWayVerdict::Whole | OneWayVerdict::Present) => Exit::Done,
        Some(OneWayVerdict::Silent) => Exit::LinkLost,
        Some(
            OneWayVerdict::Missing
            | OneWayVerdict::Stopped
            | OneWayVerdict::Refused
            | OneWayVerdict::Corrupt,
        ) => Exit::Failed,
    };
    let exit = signals
        .exit()
        .unwrap_or(if args.once { of_file } else { Exit::Done });
    let refused = |why| receiver.refused(why);
    if args.json {
        output::record(&serde_json::json!({
            "schema": SCHEMA, "kind": "end", "datagrams": receiver.came(), "datagrams_sent": sent, "requests": receiver.requests(),
            "refused_form": refused(OneWayRefusal::Form), "refused_seal": refused(OneWayRefusal::Seal),
            "refused_repeated": refused(OneWayRefusal::Repeated), "refused_content": refused(OneWayRefusal::Content),
            "refused_full": refused(OneWayRefusal::Full), "exit_code": exit.code(),
        }))?;
    }
    let unopened = refused(OneWayRefusal::Seal);
    if !args.json && unopened > 0 {
        eprintln!("fulmar: {unopened} datagrams of another key, or damaged");
    }
    Ok(exit)
}
