//! The command `fulmar`: arguments, progress, tables. Glue only; the work is in the libraries.
//!
//! Data goes to stdout, talk to stderr, `-` is stdin or stdout, quantities carry their units
//! (`5mbit`, `10ms`, `2%`), and every command ends with a code from [`exit::EXIT_CODES`].

mod commands;
mod demo;
mod exit;
mod output;
mod signals;

use clap::{ArgAction, Parser, Subcommand};
use std::process::ExitCode;

/// Reliable data over lossy links: file transfer, a link emulator and a simulator.
#[derive(Debug, Parser)]
#[command(name = "fulmar", version, about, max_term_width = 100, after_help = exit::EXIT_CODES)]
#[command(
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Cli {
    /// Say more on stderr; twice for details of each connection.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Send a real file over a bad link in every mode, and compare.
    Demo(commands::demo::DemoArgs),
    /// Relay UDP datagrams over an emulated lossy link (real time, no root).
    Emulate(Box<commands::emulate::EmulateArgs>),
    /// Receive files over AeroTP.
    Recv(commands::recv::RecvArgs),
    /// Send a file over AeroTP, verified, and resumed if it was cut off.
    Send(commands::send::SendArgs),
    /// Run a scenario in the simulator (virtual time).
    Sim(commands::sim::SimArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Demo(args) => commands::demo::run(&args),
        Command::Emulate(args) => commands::emulate::run(&args),
        Command::Recv(args) => commands::recv::run(&args, cli.verbose),
        Command::Send(args) => commands::send::run(&args, cli.verbose),
        Command::Sim(args) => commands::sim::run(&args),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("fulmar: {:#}", failure.cause);
            failure.exit.into()
        }
    }
}
