//! `fulmar keygen`: keys for gateways, transfers and tests.

use super::secure::failure;
use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use anyhow::Context;
use fulmar_net::session::{
    Entropy, PresetKey, SecretKey, read_secret_key, write_preset_key, write_secret_key,
};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  fulmar keygen ground.key
      writes a secret key (mode 600) and prints the public key to give to the other end
  fulmar keygen --public ground.key
      prints the public key of a secret key file again
  fulmar keygen --preset link.preset
      writes a key that both ends must have
  fulmar keygen -
      prints a secret key; nothing is written
";

/// The arguments of `fulmar keygen`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct KeygenArgs {
    /// The file to write, or `-` for stdout; an existing file is never overwritten.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Make a preset key, which both ends share, instead of a secret key.
    #[arg(long, conflicts_with = "public")]
    preset: bool,
    /// Read FILE and print its public key.
    #[arg(long)]
    public: bool,
}

/// Makes a key, or prints the public half of one.
///
/// # Errors
/// A file exists already, cannot be read or written, or holds no key.
pub(crate) fn run(args: &KeygenArgs) -> Result<Exit, Failure> {
    if args.public {
        let key = read_secret_key(&args.file).map_err(failure)?;
        output::line(&key.public().to_string())?;
        return Ok(Exit::Done);
    }
    let mut entropy = Entropy::from_system()
        .context("asking the kernel for random numbers")
        .or_exit(Exit::Device)?;
    let to_stdout = args.file == Path::new("-");
    if args.preset {
        let key = PresetKey::generate(&mut entropy);
        if to_stdout {
            output::line(&key.to_text())?;
        } else {
            write_preset_key(&args.file, &key).map_err(failure)?;
            eprintln!(
                "fulmar: wrote the preset key {}; copy it to the other end over a safe way",
                args.file.display()
            );
        }
    } else {
        let key = SecretKey::generate(&mut entropy);
        if to_stdout {
            output::line(&key.to_text())?;
        } else {
            write_secret_key(&args.file, &key).map_err(failure)?;
            eprintln!(
                "fulmar: wrote the secret key {}; its public key, for the other end:",
                args.file.display()
            );
            output::line(&key.public().to_string())?;
        }
    }
    Ok(Exit::Done)
}
