//! `fulmar man`: the manual pages, made from the arguments themselves and from the reference of a gateway's keys.

mod configuration;

use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use anyhow::{Context, anyhow};
use clap_mangen::Man;
use std::fs;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  fulmar man | man -l -
      shows the page of the whole command
  fulmar man fulmar.toml | man -l -
      shows the page of a gateway's file; fulmar-gateway is that of a subcommand
  fulmar man --out /usr/local/share/man
      writes every page, man1/fulmar.1 and man5/fulmar.toml.5 among them
";

/// The arguments of `fulmar man`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// The page to print: fulmar, fulmar-gateway and so on, or fulmar.toml.
    #[arg(default_value = "fulmar", conflicts_with = "out")]
    page: String,
    /// Write every page below DIR, each in the folder of its section, instead of one to stdout.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// A page of the manual.
struct ManualPage {
    name: String,
    section: u8,
    text: String,
}

/// Prints or writes the pages of `command`.
///
/// # Errors
/// A page cannot be written, or there is no such page.
pub(crate) fn run(args: &ManArgs, command: clap::Command) -> Result<Exit, Failure> {
    let pages = pages(command)?;
    let Some(directory) = &args.out else {
        let Some(page) = pages.iter().find(|page| page.name == args.page) else {
            let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
            let problem = anyhow!(
                "there is no page {}; there are {}",
                args.page,
                names.join(", ")
            );
            return Err(problem).or_exit(Exit::Usage);
        };
        output::line(page.text.trim_end())?;
        return Ok(Exit::Done);
    };
    for page in pages {
        let section = directory.join(format!("man{}", page.section));
        fs::create_dir_all(&section)
            .with_context(|| format!("making {}", section.display()))
            .or_exit(Exit::Device)?;
        let file = section.join(format!("{}.{}", page.name, page.section));
        fs::write(&file, page.text)
            .with_context(|| format!("writing {}", file.display()))
            .or_exit(Exit::Device)?;
    }
    Ok(Exit::Done)
}

fn pages(mut command: clap::Command) -> Result<Vec<ManualPage>, Failure> {
    command.build();
    let subcommands = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let mut pages = Vec::new();
    for one in std::iter::once(&command).chain(subcommands) {
        // Clap's own `help` says nothing that `--help` does not.
        if one.get_name() == "help" {
            continue;
        }
        let mut text = Vec::new();
        Man::new(one.clone())
            .manual("Fulmar")
            .render(&mut text)
            .context("writing a manual page")?;
        let name = one.get_display_name().unwrap_or_else(|| one.get_name());
        pages.push(ManualPage {
            name: name.to_owned(),
            section: 1,
            text: String::from_utf8_lossy(&text).into_owned(),
        });
    }
    pages.push(ManualPage {
        name: configuration::NAME.to_owned(),
        section: 5,
        text: configuration::page(command.get_version().unwrap_or_default()),
    });
    Ok(pages)
}
