//! `fulmar sim SCENARIO`: a scenario in virtual time.

use crate::exit::{Exit, Failure};
use std::path::PathBuf;

/// The arguments of `fulmar sim`.
#[derive(clap::Args, Debug)]
pub(crate) struct SimArgs {
    /// The scenario, a TOML file.
    scenario: PathBuf,
}

/// Runs the scenario and prints its results.
///
/// # Errors
/// The scenario cannot be read or run.
pub(crate) fn run(args: &SimArgs) -> Result<Exit, Failure> {
    Err(Failure {
        exit: Exit::Failed,
        cause: anyhow::anyhow!(
            "{}: the simulator is not built yet",
            args.scenario.display()
        ),
    })
}
