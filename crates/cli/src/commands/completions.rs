//! `fulmar completions`: what a shell completes, made from the arguments themselves.

use crate::exit::{Exit, Failure};
use crate::output;
use clap_complete::{Shell, generate};

const EXAMPLES: &str = "\
Examples:
  fulmar completions bash > /etc/bash_completion.d/fulmar
  fulmar completions zsh > ~/.zfunc/_fulmar
  fulmar completions fish > ~/.config/fish/completions/fulmar.fish
";

/// The arguments of `fulmar completions`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Prints the completions of `command`.
///
/// # Errors
/// Stdout cannot be written.
pub(crate) fn run(args: &CompletionsArgs, mut command: clap::Command) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    generate(args.shell, &mut command, "fulmar", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end())?;
    Ok(Exit::Done)
}
