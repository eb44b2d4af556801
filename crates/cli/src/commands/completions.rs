//! `fulmar completions`: completions for a shell, made from the arguments themselves.

use crate::exit::{Exit, Failure};
use crate::output;
use clap::{Arg, Command, ValueHint};
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
pub(crate) fn run(args: &CompletionsArgs, command: &Command) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    generate(args.shell, &mut completed(command), "fulmar", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end())?;
    Ok(Exit::Done)
}

/// The part of `command` that a person may type: without the subcommands that `fulmar` starts by itself, and with
/// files offered only for arguments that take a file.
fn completed(command: &Command) -> Command {
    let shown = command
        .get_subcommands()
        .filter(|subcommand| !subcommand.is_hide_set());
    let shown = shown.map(|subcommand| subcommand.clone().mut_args(without_files));
    Command::new("fulmar")
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .args(command.get_arguments().cloned())
        .subcommands(shown)
}

/// The argument without file completion, if its value is a rate, an address or a number: a shell would
/// offer files for every value that it does not know.
fn without_files(argument: Arg) -> Arg {
    let takes_a_value = argument.get_action().takes_values();
    if takes_a_value && argument.get_value_hint() == ValueHint::Unknown {
        argument.value_hint(ValueHint::Other)
    } else {
        argument
    }
}
