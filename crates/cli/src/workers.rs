//! The number of threads that share the work: `--jobs`.

use clap::builder::RangedU64ValueParser;

/// The most threads: more than any machine has cores only take memory.
const JOBS_MAX: u64 = 1024;

#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Workers {
    /// Worker threads; 0 takes every core. Results do not depend on it.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        value_parser = RangedU64ValueParser::<usize>::new().range(0..=JOBS_MAX)
    )]
    pub(crate) jobs: usize,
}
