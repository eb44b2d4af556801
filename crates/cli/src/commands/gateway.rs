//! `fulmar gateway`.

use super::{overwrite, service};
use crate::exit::{Exit, Failure, OrExit};
use crate::line_limit::LineLimit;
use crate::output;
use crate::signals::{Reloads, Signals};
use anyhow::Context;
use clap::ValueEnum;
use fulmar_net::clock::Clock;
use fulmar_net::gateway::config::{
    GatewayConfig, LogLevel, RECORDING_MAX, SecurityKind, explain, rules,
};
use fulmar_net::gateway::{
    Asker, Control, Gateway, GatewayError, Reload, check, give_up_privileges,
};
use fulmar_net::recording::{RecordingConfig, former};
use fulmar_net::wait::{Interest, WakeUp, precise_timers, wait, waker};
use serde::Serialize;
use signal_hook::low_level::siginfo::Process;
use std::fs;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
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
      runs until Ctrl-C (`fulmar gateway ground.toml` is the same); SIGHUP reads the file again without dropping flows
  fulmar gateway -c ground.toml --capture ground.pcapng
      every datagram for Wireshark, sealed and opened; docs/guide/captures.md
  fulmar gateway -c ground.toml --trace ground.jsonl
      what its connections and itself do, as JSON lines; docs/guide/captures.md
  fulmar gateway --print-rules -c ground.toml | sudo sh
      diverts forwarded traffic to the transparent entries of the file

docs/guide/gateway.md documents every key; examples/gateway/ has files to begin with.
";

/// The format of log lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    Auto,
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The file of a gateway.
#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
pub(super) struct GatewayFileArgs {
    /// The configuration of a gateway, a TOML file.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The same.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl GatewayFileArgs {
    pub(super) fn path(&self) -> &Path {
        // The group requires one of them.
        let given = self.config.as_deref().or(self.file.as_deref());
        given.unwrap_or_else(|| Path::new(""))
    }
}

/// The arguments with which a gateway runs, under whichever command.
#[derive(clap::Args, Debug)]
pub(super) struct GatewayRunArgs {
    #[command(flatten)]
    pub(super) file: GatewayFileArgs,
    /// Only say what the configuration means, and whether its keys can be read.
    #[arg(long, conflicts_with = "json")]
    check: bool,
    /// Format of the log lines on stderr.
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    log_format: LogFormat,
    /// Print one JSON record on stdout when the ports are open, with their addresses.
    #[arg(long)]
    json: bool,
    /// Capture datagrams, and what is in them, to a pcapng file for Wireshark: user data in clear. In place
    /// of `[capture]` of the configuration, with its largest size or 1GB.
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Trace events to a file, one JSON object a line. In place of `[trace]` of the configuration, with its
    /// largest size or 1GB.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

impl GatewayRunArgs {
    fn recordings(&self) -> Recordings {
        Recordings {
            capture: self.capture.clone(),
            trace: self.trace.clone(),
        }
    }
}

/// The arguments of `fulmar gateway`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct GatewayArgs {
    #[command(flatten)]
    run: GatewayRunArgs,
    /// Only print the kernel's rules for transparent entries, as a shell script.
    #[arg(long, conflicts_with_all = ["check", "json"])]
    print_rules: bool,
}

/// The recordings that the command line asks for, and their files.
#[derive(Clone, Debug)]
struct Recordings {
    capture: Option<PathBuf>,
    trace: Option<PathBuf>,
}

impl Recordings {
    /// Puts them in place of those of the configuration.
    fn replace(&self, config: &mut GatewayConfig) {
        let files = [
            (&self.capture, &mut config.capture),
            (&self.trace, &mut config.trace),
        ];
        for (file, configured) in files {
            let Some(file) = file else { continue };
            let max_size = configured.as_ref().map(|configured| configured.max_size);
            *configured = Some(RecordingConfig {
                file: file.clone(),
                max_size: max_size.unwrap_or(RECORDING_MAX),
                is_required: true,
            });
        }
    }
}

#[derive(Serialize)]
struct Start<'a> {
    schema: &'static str,
    kind: &'static str,
    listening: SocketAddr,
    entries: &'a [SocketAddr],
    metrics: Option<SocketAddr>,
}

/// A configuration from its file, with the recordings that the command line asks for.
fn configuration(path: &Path, recordings: &Recordings) -> Result<GatewayConfig, Failure> {
    let mut config = read(path)?;
    recordings.replace(&mut config);
    for (flag, recording) in [("--capture", &config.capture), ("--trace", &config.trace)] {
        let Some(recording) = recording else { continue };
        for input in inputs(path, &config) {
            overwrite::refuse_recording(flag, &recording.file, input)?;
        }
    }
    if let (Some(capture), Some(trace)) = (&config.capture, &config.trace) {
        let (capture, trace) = (&capture.file, &trace.file);
        let shown = trace.display();
        let problem = if capture == trace {
            format!("--trace: {shown} is the file of the capture; name another")
        } else if former(capture) == *trace || former(trace) == *capture {
            let capture = capture.display();
            format!(
                "--trace: {shown} and the capture {capture} differ by .1, which a former file gets; name another"
            )
        } else {
            return Ok(config);
        };
        return Err(anyhow::anyhow!(problem)).or_exit(Exit::Usage);
    }
    Ok(config)
}

/// The files that a gateway reads: its configuration, keys and passwords.
fn inputs<'a>(path: &'a Path, config: &'a GatewayConfig) -> impl Iterator<Item = &'a Path> {
    let keys = match &config.security {
        SecurityKind::Noise {
            private_key_file,
            former_private_key_file,
            preset_key_file,
        } => [
            Some(private_key_file),
            former_private_key_file.as_ref(),
            preset_key_file.as_ref(),
        ],
        SecurityKind::Preset { preset_key_file } => [Some(preset_key_file), None, None],
        SecurityKind::None => [None, None, None],
    };
    let logins = config.socks.iter().filter_map(|socks| socks.login.as_ref());
    let passwords = logins.map(|login| &login.password_file);
    let files = keys.into_iter().flatten().chain(passwords);
    core::iter::once(path).chain(files.map(PathBuf::as_path))
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
                "; name another with -c, let `fulmar init` write one, or begin with one of examples/gateway, which are in the sources, in the archive, and below /usr/share/doc/fulmar",
            ),
            io::ErrorKind::PermissionDenied => (Exit::Device, "; let this user read it"),
            io::ErrorKind::IsADirectory | io::ErrorKind::InvalidData => (Exit::Usage, ""),
            _ => (Exit::Device, ""),
        };
        let path = path.display();
        let cause = anyhow::anyhow!("reading the configuration {path}: {error}{remedy}");
        Failure { exit, cause }
    })?;
    let mut config =
        GatewayConfig::read(&path.display().to_string(), &text).or_exit(Exit::Usage)?;
    config.place_files(&folder_of(path).or_exit(Exit::Device)?);
    Ok(config)
}

/// The folder from which names in a configuration count: its own, or where this was started if it comes out of a pipe or
/// is this program's own descriptor, whose name says nothing of a folder.
fn folder_of(configuration: &Path) -> Result<PathBuf, anyhow::Error> {
    let is_file = fs::metadata(configuration).is_ok_and(|found| found.is_file());
    let is_descriptor = ["/dev", "/proc"]
        .iter()
        .any(|of_kernel| configuration.starts_with(of_kernel));
    let parent = configuration.parent().filter(|_| is_file && !is_descriptor);
    // A name alone has an empty parent, and the working directory is the folder.
    let parent = parent.unwrap_or(Path::new("")).join(".");
    std::path::absolute(&parent)
        .with_context(|| format!("the folder of {}", configuration.display()))
}

/// Refuses to read again a file that can be read only once: opening a pipe without a writer would wait, and
/// no signal would be obeyed meanwhile.
///
/// # Errors
/// The configuration is no file.
fn refuse_pipe(path: &Path) -> Result<(), Failure> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            let path = path.display();
            let problem = format!(
                "the configuration {path} is no file, and cannot be read again; restart the gateway with a file"
            );
            Err(anyhow::anyhow!(problem)).or_exit(Exit::Usage)
        }
        // The reader reports what is wrong with it.
        _ => Ok(()),
    }
}

/// The failure of a gateway whose configuration is that file.
fn failure(file: &Path, error: GatewayError) -> Failure {
    let exit = if error.is_configuration() {
        Exit::Usage
    } else {
        Exit::Device
    };
    // The configuration names the key file; other errors name the line, or have none.
    let is_of_key_file = matches!(error, GatewayError::KeyFile(_));
    let failure = Failure {
        exit,
        cause: error.into(),
    };
    if is_of_key_file {
        failure.context(file.display().to_string())
    } else {
        failure
    }
}

/// Sets the log level.
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

fn begin_logs(format: LogFormat, level: LogLevel, verbose: u8, limit: LineLimit) -> SetLevel {
    let (filter, handle) = reload::Layer::new(level_filter(level, verbose));
    let registry = tracing_subscriber::registry().with(filter).with(limit);
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

/// The process that asks for a reload of `file` by a signal.
fn asker(sender: Option<Process>, file: &Path) -> Asker {
    let pid = sender.and_then(|process| u32::try_from(process.pid).ok());
    // It may be gone, or not ours to see.
    let login = pid.and_then(|pid| fs::read_to_string(format!("/proc/{pid}/loginuid")).ok());
    let login = login.and_then(|text| text.trim().parse().ok());
    let file = fs::metadata(file).ok();
    Asker {
        uid: sender.map(|process| process.uid),
        pid,
        // The largest number stands for nobody.
        login_uid: login.filter(|uid| *uid != u32::MAX),
        file_uid: file.map(|file| file.uid()),
    }
}

/// Turns signals into requests, on a thread of its own: reading the file again must not delay the gateway.
fn obey_signals(
    wake_up: WakeUp,
    signals: Signals,
    mut reloads: Reloads,
    control: Control,
    (path, recordings): (PathBuf, Recordings),
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
            if let Some(request) = reloads.take() {
                service::reloading();
                let by = asker(request.sender, &path);
                let said_by = by.to_string();
                let config = refuse_pipe(&path).and_then(|()| configuration(&path, &recordings));
                let prepared = config.and_then(|config| {
                    let level = config.log;
                    let prepared =
                        Reload::prepare(config, by).map_err(|error| failure(&path, error))?;
                    Ok((level, prepared))
                });
                match prepared {
                    Ok((level, prepared)) => {
                        set_level(level);
                        control.reload(prepared);
                    }
                    Err(failure) => {
                        let problem = failure.line();
                        tracing::error!(event = "reload_refused", problem, by = said_by);
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
    if !args.print_rules {
        return run_as(&args.run, verbose);
    }
    let file = args.run.file.path();
    let config = configuration(file, &args.run.recordings())?;
    let Some(script) = rules::script(&config) else {
        return Err(Failure {
            exit: Exit::Usage,
            cause: anyhow::anyhow!(
                "{}: there is no [[transparent]] entry, so the kernel needs no rules",
                file.display()
            ),
        });
    };
    output::line(script.trim_end())?;
    Ok(Exit::Done)
}

/// Checks or runs a gateway, under whichever command.
///
/// # Errors
/// As [`run`].
pub(super) fn run_as(args: &GatewayRunArgs, verbose: u8) -> Result<Exit, Failure> {
    let file = args.file.path();
    let recordings = args.recordings();
    let config = configuration(file, &recordings)?;
    if args.check {
        let said = check(&config).map_err(|error| failure(file, error))?;
        output::line(explain::explain(&config).trim_end())?;
        said.iter().try_for_each(|said| output::line(said))?;
        let file = file.display();
        eprintln!("fulmar: {file} can be used; whether its ports are free was not tried");
        return Ok(Exit::Done);
    }
    let clock = Clock::start();
    let limit = LineLimit::new(clock);
    let set_level = begin_logs(args.log_format, config.log, verbose, limit.clone());
    let outcome = serve(args, clock, (config, recordings), &limit, set_level);
    // However it ended: the lines that were left out may say why.
    limit.end();
    let (cut, exit) = outcome?;
    tracing::info!(event = "stopped", flows_cut = cut);
    Ok(exit)
}

/// Runs a gateway to its end. Returns the flows that were cut, and the exit.
fn serve(
    args: &GatewayRunArgs,
    clock: Clock,
    (config, recordings): (GatewayConfig, Recordings),
    limit: &LineLimit,
    set_level: SetLevel,
) -> Result<(usize, Exit), Failure> {
    if config.security == SecurityKind::None {
        tracing::warn!(
            event = "unprotected",
            "security is \"none\": whoever reaches the port can read, change and inject traffic"
        );
    }
    let (waker, wake_up) = waker().context("making a waker").or_exit(Exit::Device)?;
    let signals = Signals::catch(&[&waker])?;
    let reloads = signals.catch_reload(&waker)?;
    if let Err(error) = precise_timers() {
        tracing::warn!(event = "coarse_timers", %error);
    }
    let gateway = Gateway::start_with(clock, config, give_up_privileges)
        .map_err(|error| failure(args.file.path(), error))?;
    let control = gateway
        .control()
        .context("copying the waker")
        .or_exit(Exit::Device)?;
    obey_signals(
        wake_up,
        signals.clone(),
        reloads,
        control,
        (args.file.path().to_owned(), recordings),
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
    limit
        .sum_up()
        .context("starting the log's thread")
        .or_exit(Exit::Device)?;
    service::ready();
    let end = gateway
        .run()
        .map_err(|error| failure(args.file.path(), error))?;
    Ok((end.cut, signals.exit().unwrap_or(Exit::Done)))
}
