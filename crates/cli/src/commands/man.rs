//! `fulmar man`: the manual pages, made from the arguments themselves.

use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use anyhow::Context;
use clap_mangen::Man;
use std::fs;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  fulmar man | man -l -
      shows the page of the whole command
  fulmar man --out /usr/local/share/man/man1
      writes fulmar.1 and one page a subcommand (fulmar-sim.1, ...)
";

/// The arguments of `fulmar man`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// Write every page into DIR instead of the first to stdout.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints or writes the pages of `command`.
///
/// # Errors
/// A page cannot be written.
pub(crate) fn run(args: &ManArgs, mut command: clap::Command) -> Result<Exit, Failure> {
    command.build();
    let Some(directory) = &args.out else {
        output::line(page(&command)?.trim_end())?;
        return Ok(Exit::Done);
    };
    fs::create_dir_all(directory)
        .with_context(|| format!("making {}", directory.display()))
        .or_exit(Exit::Device)?;
    let subcommands = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    for one in std::iter::once(&command).chain(subcommands) {
        // Clap's own `help` says nothing that `--help` does not.
        if one.get_name() == "help" {
            continue;
        }
        let name = one.get_display_name().unwrap_or_else(|| one.get_name());
        let file = directory.join(format!("{name}.1"));
        fs::write(&file, page(one)?)
            .with_context(|| format!("writing {}", file.display()))
            .or_exit(Exit::Device)?;
    }
    Ok(Exit::Done)
}

fn page(command: &clap::Command) -> Result<String, Failure> {
    let mut page = Vec::new();
    Man::new(command.clone())
        .manual("Fulmar")
        .render(&mut page)
        .context("writing a manual page")?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
