//! `fulmar merge PART... --out FILE`: the shards of a sweep put together.

use super::overwrite;
use super::sim::parquet::{points_file, told};
use crate::exit::{Exit, Failure, OrExit};
use core::sync::atomic::AtomicBool;
use fulmar_lab::parts::{PartError, merge};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  fulmar sim scenarios/airborne.toml --runs 1000 --shard 1/2 --out part-1.parquet
  fulmar sim scenarios/airborne.toml --runs 1000 --shard 2/2 --out part-2.parquet
  fulmar merge part-1.parquet part-2.parquet --out all.parquet
      all.parquet has every run and all-points.parquet their means: the same octets as without shards
";

/// The arguments of `fulmar merge`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct MergeArgs {
    /// The shards that `fulmar sim --shard K/N` made, in any order.
    #[arg(required = true, value_name = "PART")]
    parts: Vec<PathBuf>,
    /// The Parquet file of all runs; that of the points lies beside it, as NAME-points.parquet.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Puts the parts together.
///
/// # Errors
/// A part is missing, doubled, of another sweep or build, or no table; or the files cannot be written.
pub(crate) fn run(args: &MergeArgs) -> Result<Exit, Failure> {
    let points = points_file(&args.out);
    for part in &args.parts {
        overwrite::refuse("--out", &args.out, part)?;
        overwrite::refuse("--out", &points, part)?;
    }
    let merged = merge(&args.parts, &args.out, &points, &AtomicBool::new(false));
    let exit = match &merged {
        Err(PartError::Write { .. }) => Exit::Device,
        _ => Exit::Usage,
    };
    let failed = merged.or_exit(exit)?;
    eprintln!(
        "fulmar: {} parts are in {}, their means in {}",
        args.parts.len(),
        args.out.display(),
        points.display()
    );
    Ok(told(&failed))
}
