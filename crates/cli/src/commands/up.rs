//! `fulmar up`.

use super::gateway::{self, GatewayArgs};
use crate::exit::{Exit, Failure};
use crate::output;
use fulmar_net::gateway::config::commands;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  fulmar up ground.toml
      brings the file's tunnels up, and takes them down again at Ctrl-C
  fulmar up --print ground.toml
      the commands of ip that would do the same, and nothing more

docs/guide/tunnel.md begins with two files.
";

/// The arguments of `fulmar up`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct UpArgs {
    /// The configuration of a gateway with a `[[tunnel]]`, a TOML file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only print what makes the devices, their addresses and routes, as a shell script.
    #[arg(long)]
    print: bool,
}

/// Runs a gateway with tunnels, or prints what makes their devices.
///
/// # Errors
/// As for `fulmar gateway`, or there is no tunnel.
pub(crate) fn run(args: &UpArgs, verbose: u8) -> Result<Exit, Failure> {
    let config = gateway::read(&args.file)?;
    let Some(script) = commands::script(&config) else {
        return Err(Failure {
            exit: Exit::Usage,
            cause: anyhow::anyhow!(
                "{}: there is no [[tunnel]]; write one with address = \"10.90.0.1/24\" (docs/guide/tunnel.md), or run \
                 `fulmar gateway -c {}`",
                args.file.display(),
                args.file.display()
            ),
        });
    };
    if args.print {
        output::line(script.trim_end())?;
        return Ok(Exit::Done);
    }
    gateway::run(&GatewayArgs::of_file(args.file.clone()), verbose)
}
