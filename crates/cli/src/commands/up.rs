//! `fulmar up`.

use super::gateway::{self, GatewayRunArgs};
use crate::exit::{Exit, Failure};
use crate::output;
use fulmar_net::gateway::config::commands;

const EXAMPLES: &str = "\
Examples:
  fulmar up ground.toml
      brings the file's tunnels up, and takes them down again at Ctrl-C
  fulmar up --print ground.toml
      the commands of ip that would do the same, and nothing more
  fulmar up --check ground.toml
      says in words what the file means, or what is wrong with it

docs/guide/tunnel.md begins with two files.
";

/// The arguments of `fulmar up`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    run: GatewayRunArgs,
    /// Only print what makes the devices, their addresses and routes, as a shell script.
    #[arg(long, conflicts_with_all = ["check", "json"])]
    print: bool,
}

/// Runs a gateway with tunnels, or prints what makes their devices.
///
/// # Errors
/// As for `fulmar gateway`, or there is no tunnel.
pub(crate) fn run(args: &UpArgs, verbose: u8) -> Result<Exit, Failure> {
    let file = args.run.file.path();
    let config = gateway::read(file)?;
    let Some(script) = commands::script(&config) else {
        return Err(Failure {
            exit: Exit::Usage,
            cause: anyhow::anyhow!(
                "{}: there is no [[tunnel]]; write one with address = \"10.90.0.1/24\" (docs/guide/tunnel.md), or run \
                 `fulmar gateway -c {}`",
                file.display(),
                file.display()
            ),
        });
    };
    if args.print {
        output::line(script.trim_end())?;
        return Ok(Exit::Done);
    }
    gateway::run_as(&args.run, verbose)
}
