//! `fulmar gateway`.

use super::service;
use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use crate::signals::Signals;
use anyhow::Context;
use clap::ValueEnum;
use fulmar_net::capture::CaptureConfig;
use fulmar_net::clock::Clock;
use fulmar_net::gateway::config::{
    CAPTURE_MAX, GatewayConfig, LogLevel, SecurityKind, explain, rules,
};
use fulmar_net::gateway::{Control, Gateway, GatewayError, check};
use fulmar_net::wait::{Interest, WakeUp, precise_timers, wait, waker};
use serde::Serialize;
use std::fs;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt, reload};

const EXAMPLES: &str = "\
Examples:
  fulmar gateway --check -c ground.toml
      says in words what the file means, or what is wrong with it
  fulmar gateway -c ground.toml
      runs until Ctrl-C; SIGHUP reads the file again without dropping flows
  fulmar gateway -c ground.toml --capture ground.pcapng
      every datagram for Wireshark, sealed and opened; docs/guide/captures.md
  fulmar gateway --print-rules -c ground.toml | sudo sh
      diverts forwarded traffic to the transparent entries of the file

docs/guide/gateway.md documents every key; examples/gateway/ has files to begin with.
";

/// How log lines look.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    Auto,
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The arguments of `fulmar gateway`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct GatewayArgs {
    /// The configuration, a TOML file.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Only say what the configuration means, and whether its keys can be read.
    #[arg(long, conflicts_with_all = ["print_rules", "json"])]
    check: bool,
    /// Only print the kernel's rules for transparent entries, as a shell script.
    #[arg(long, conflicts_with = "json")]
    print_rules: bool,
    /// How log lines on stderr look.
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    log_format: LogFormat,
    /// Print one JSON record on stdout when the ports are open, with their addresses.
    #[arg(long)]
    json: bool,
    /// Capture datagrams, and what is in them, to a pcapng file for Wireshark: user data in clear. In place
    /// of `[capture]` of the configuration, with its largest size or 1GB.
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
}

#[derive(Serialize)]
struct Start<'a> {
    schema: &'static str,
    kind: &'static str,
    listening: SocketAddr,
    entries: &'a [SocketAddr],
    metrics: Option<SocketAddr>,
}

/// A configuration from its file, with the capture of the command line if there is one.
fn configuration(path: &Path, capture: Option<&Path>) -> Result<GatewayConfig, Failure> {
    let mut config = read(path)?;
    if let Some(file) = capture {
        let max_size = config.capture.as_ref().map(|capture| capture.max_size);
        config.capture = Some(CaptureConfig {
            file: file.to_owned(),
            max_size: max_size.unwrap_or(CAPTURE_MAX),
            is_required: true,
        });
    }
    Ok(config)
}

/// A configuration from its file.
///
/// # Errors
/// It cannot be read, or says something wrong.
pub(super) fn read(path: &Path) -> Result<GatewayConfig, Failure> {
    let text = fs::read_to_string(path).map_err(|error| {
        let (exit, remedy) = match error.kind() {
            io::ErrorKind::NotFound => (
                Exit::Usage,
                "; name another with -c, or begin with one of examples/gateway",
            ),
            io::ErrorKind::PermissionDenied => (Exit::Device, "; let this user read it"),
            io::ErrorKind::IsADirectory | io::ErrorKind::InvalidData => (Exit::Usage, ""),
            _ => (Exit::Device, ""),
        };
        let path = path.display();
        let cause = anyhow::anyhow!("reading the configuration {path}: {error}{remedy}");
        Failure { exit, cause }
    })?;
    GatewayConfig::read(&path.display().to_string(), &text).or_exit(Exit::Usage)
}

fn failure(error: GatewayError) -> Failure {
    let exit = if error.is_configuration() {
        Exit::Usage
    } else {
        Exit::Device
    };
    Failure {
        exit,
        cause: error.into(),
    }
}

/// Sets how much is logged.
type SetLevel = Box<dyn Fn(LogLevel) + Send>;

fn level_filter(level: LogLevel, verbose: u8) -> LevelFilter {
    if verbose > 0 {
        return LevelFilter::DEBUG;
    }
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    }
}

fn begin_logs(format: LogFormat, level: LogLevel, verbose: u8) -> SetLevel {
    let (filter, handle) = reload::Layer::new(level_filter(level, verbose));
    let registry = tracing_subscriber::registry().with(filter);
    let on_terminal = io::stderr().is_terminal();
    let lines = fmt::layer().with_writer(io::stderr).with_target(false);
    let text = match format {
        LogFormat::Auto => on_terminal,
        LogFormat::Text => true,
        LogFormat::Json => false,
    };
    if text {
        registry.with(lines.with_ansi(on_terminal)).init();
    } else {
        registry.with(lines.json().flatten_event(true)).init();
    }
    Box::new(move |level| {
        // It fails only when nothing is logged any more.
        drop(handle.modify(|filter| *filter = level_filter(level, verbose)));
    })
}

/// Turns signals into requests, on a thread of its own: reading the file again must not hold the
/// gateway up.
fn obey_signals(
    wake_up: WakeUp,
    signals: Signals,
    reload: Arc<AtomicBool>,
    control: Control,
    (path, capture): (PathBuf, Option<PathBuf>),
    set_level: SetLevel,
) -> io::Result<()> {
    let serve = move || {
        let mut ready = Vec::new();
        while wait(&[(wake_up.as_fd(), Interest::Readable)], None, &mut ready).is_ok() {
            wake_up.clear();
            if signals.exit().is_some() {
                service::stopping();
                return control.stop();
            }
            if reload.swap(false, Ordering::SeqCst) {
                service::reloading();
                match configuration(&path, capture.as_deref()) {
                    Ok(config) => {
                        set_level(config.log);
                        control.reload(config);
                    }
                    Err(failure) => {
                        let problem = failure.line();
                        tracing::error!(event = "reload_refused", problem);
                    }
                }
                service::ready();
            }
        }
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(serve)
        .map(drop)
}

/// Checks, prints or runs a gateway.
///
/// # Errors
/// The configuration is wrong, or a port, file or capability cannot be had.
pub(crate) fn run(args: &GatewayArgs, verbose: u8) -> Result<Exit, Failure> {
    let config = configuration(&args.config, args.capture.as_deref())?;
    if args.print_rules {
        let Some(script) = rules::script(&config) else {
            return Err(Failure {
                exit: Exit::Usage,
                cause: anyhow::anyhow!(
                    "{}: there is no [[transparent]] entry, so the kernel needs no rules",
                    args.config.display()
                ),
            });
        };
        output::line(script.trim_end())?;
        return Ok(Exit::Done);
    }
    if args.check {
        check(&config).map_err(failure)?;
        output::line(explain::explain(&config).trim_end())?;
        return Ok(Exit::Done);
    }
    let set_level = begin_logs(args.log_format, config.log, verbose);
    if config.security == SecurityKind::None {
        tracing::warn!(
            event = "unprotected",
            "security is \"none\": whoever reaches the port can read, change and inject traffic"
        );
    }
    let (waker, wake_up) = waker().context("making a waker").or_exit(Exit::Device)?;
    let signals = Signals::catch(&[&waker])?;
    let reload = signals.catch_reload(&waker)?;
    if let Err(error) = precise_timers() {
        tracing::warn!(event = "coarse_timers", %error);
    }
    let gateway = Gateway::start(Clock::start(), config).map_err(failure)?;
    let control = gateway
        .control()
        .context("copying the waker")
        .or_exit(Exit::Device)?;
    obey_signals(
        wake_up,
        signals.clone(),
        reload,
        control,
        (args.config.clone(), args.capture.clone()),
        set_level,
    )
    .context("starting the signal thread")
    .or_exit(Exit::Device)?;
    tracing::info!(event = "started", carrier = %gateway.carrier());
    if args.json {
        output::record(&Start {
            schema: "fulmar.gateway.v1",
            kind: "start",
            listening: gateway.carrier(),
            entries: gateway.entries(),
            metrics: gateway.metrics(),
        })?;
    }
    let watched = gateway
        .control()
        .context("copying the waker")
        .or_exit(Exit::Device)?;
    service::watch(watched)
        .context("starting the watchdog's thread")
        .or_exit(Exit::Device)?;
    service::ready();
    let end = gateway.run().map_err(failure)?;
    tracing::info!(event = "stopped", flows_cut = end.cut);
    Ok(signals.exit().unwrap_or(Exit::Done))
}
