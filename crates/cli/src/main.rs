//! The command `fulmar`: arguments, progress, tables. Glue only; the work is in the libraries.
//!
//! Data goes to stdout, talk to stderr, `-` is stdin or stdout, quantities carry their units
//! (`5Mbit/s`, `10ms`, `2%`), and every command ends with a code from [`exit::EXIT_CODES`].

mod commands;
mod demo;
mod exit;
mod line_limit;
mod output;
mod signals;
mod table;
mod workers;

use clap::error::{ContextKind, ErrorKind};
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// Reliable data over lossy links: gateways, file transfer, a link emulator and a simulator.
#[derive(Debug, Parser)]
#[command(name = "fulmar", version, max_term_width = 100, after_help = exit::EXIT_CODES)]
#[command(
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Cli {
    /// Say more on stderr: `gateway` logs more, `send` and `recv` tell of small socket buffers.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print what a shell needs to complete the arguments of fulmar.
    Completions(commands::completions::CompletionsArgs),
    /// Send a real file over a bad link in every mode, and compare.
    Demo(commands::demo::DemoArgs),
    /// Find what this machine or a gateway's configuration lacks, each with the cure.
    Doctor(commands::doctor::DoctorArgs),
    /// Carry UDP datagrams (no root), all IP traffic (--tun) or Ethernet frames (--tap) over an emulated lossy link.
    Emulate(Box<commands::emulate::EmulateArgs>),
    /// Find the loss model behind a recorded loss: a table, or a capture of a numbered flow.
    Fit(commands::fit::FitArgs),
    /// Carry ordinary TCP and UDP traffic to another gateway over a lossy link.
    Gateway(commands::gateway::GatewayArgs),
    /// Hold a gateway's connections while it restarts; started by the gateway.
    #[command(hide = true)]
    GatewayKeeper(commands::gateway_keeper::GatewayKeeperArgs),
    /// Write the files of two gateways, with their keys: a tunnel between two machines, or a proxy.
    Init(commands::init::InitArgs),
    /// Make keys for gateways, or print the public half of one.
    Keygen(commands::keygen::KeygenArgs),
    /// Print or write the manual pages.
    Man(commands::man::ManArgs),
    /// Put the shards of a sweep together (`fulmar sim --shard`).
    Merge(commands::merge::MergeArgs),
    /// Measure the path between two hosts: goodput, loss before and after repair, one-way delay.
    Perf(Box<commands::perf::PerfArgs>),
    /// Say what theory expects of a link: goodput, best packet length, window, way back.
    Plan(commands::plan::PlanArgs),
    /// Receive files over AeroTP.
    Recv(commands::recv::RecvArgs),
    /// Run other modes over the link that a recording shows: what would have happened.
    Replay(commands::replay::ReplayArgs),
    /// Run the papers' figures again and check what they claim: pages, data, pictures.
    Reproduce(commands::reproduce::ReproduceArgs),
    /// Send a file over AeroTP, verified, and resumed if it was cut off.
    Send(commands::send::SendArgs),
    /// Run a scenario in the simulator (virtual time).
    Sim(commands::sim::SimArgs),
    /// Say whether a running gateway is fine: each link in one sentence, and the alarms.
    Status(commands::status::StatusArgs),
    /// Watch a running gateway: rates, loss and repair, delay, flows, decisions.
    Top(commands::top::TopArgs),
    /// Bring a tunnel for any IP packet up, until Ctrl-C: a gateway whose file has one.
    Up(commands::up::UpArgs),
}

/// The whole command, with the exit codes in the help of every subcommand.
fn command() -> clap::Command {
    Cli::command().mut_subcommands(|subcommand| {
        let about = subcommand.get_after_help().map(ToString::to_string);
        let text = format!("{}\n{}", about.unwrap_or_default(), exit::EXIT_CODES);
        subcommand.after_help(text.clone()).after_long_help(text)
    })
}

/// `--runs -5`: clap takes the value for a flag, and would advise to write `-- -5`.
fn negative_value(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let refused = error.get(ContextKind::InvalidArg)?.to_string();
    let is_number = refused
        .strip_prefix('-')?
        .starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if error.kind() != ErrorKind::UnknownArgument || !is_number {
        return None;
    }
    let (flag, value) = arguments
        .iter()
        .zip(arguments.iter().skip(1))
        .find_map(|pair| {
            let (flag, value) = (pair.0.to_str()?, pair.1.to_str()?);
            (flag.starts_with("--") && value.starts_with(&refused)).then_some((flag, value))
        })?;
    Some(format!("{flag} {value}: must not be negative"))
}

fn parse() -> Result<Cli, ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let parsed = command().try_get_matches_from(&arguments);
    parsed
        .and_then(|matches| Cli::from_arg_matches(&matches))
        .map_err(|error| {
            if let Some(problem) = negative_value(&error, &arguments) {
                eprintln!("fulmar: {problem}");
                return exit::Exit::Usage.into();
            }
            // Help asked for is data on stdout and no error; a closed stdout is none either.
            drop(error.print());
            if error.use_stderr() {
                exit::Exit::Usage.into()
            } else {
                exit::Exit::Done.into()
            }
        })
}

fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    let outcome = match cli.command {
        Command::Completions(args) => commands::completions::run(&args, &command()),
        Command::Demo(args) => commands::demo::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Emulate(args) => commands::emulate::run(&args),
        Command::Fit(args) => commands::fit::run(&args),
        Command::Gateway(args) => commands::gateway::run(&args, cli.verbose),
        Command::GatewayKeeper(args) => commands::gateway_keeper::run(&args),
        Command::Init(args) => commands::init::run(&args),
        Command::Keygen(args) => commands::keygen::run(&args),
        Command::Man(args) => commands::man::run(&args, command()),
        Command::Merge(args) => commands::merge::run(&args),
        Command::Perf(args) => commands::perf::run(&args, cli.verbose),
        Command::Plan(args) => commands::plan::run(&args),
        Command::Recv(args) => commands::recv::run(&args, cli.verbose),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Reproduce(args) => commands::reproduce::run(&args),
        Command::Send(args) => commands::send::run(&args, cli.verbose),
        Command::Sim(args) => commands::sim::run(&args),
        Command::Status(args) => commands::status::run(&args),
        Command::Top(args) => commands::top::run(&args),
        Command::Up(args) => commands::up::run(&args, cli.verbose),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("fulmar: {}", failure.line());
            failure.exit.into()
        }
    }
}
