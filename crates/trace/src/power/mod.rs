//! Recorded optical power, for `fading = "trace FILE"`.
//!
//! ```text
//! CSV -------------------- table --+
//! MATLAB .mat, level 5 --- matlab -+--> collect: checks, part, bound --> PowerTrace
//! ```
//!
//! Files are read as a stream: memory is taken for four octets for each sample that is used, at most
//! [`fulmar_channel::fading::PowerTrace::SAMPLES_MAX`] of them, however long the file is.

mod collect;
mod matlab;
mod table;

pub use collect::PowerOptions;

use crate::error::TraceError;
use collect::Collector;
use fulmar_channel::fading::PowerTrace;
use std::io::BufRead;

/// Reads a recording of power. The beginning of the file tells its kind. `name` is the file's name in
/// errors.
///
/// # Errors
/// The first line or sample that is wrong, or a fault of the file as a whole.
pub fn read_power(
    name: &str,
    mut reader: impl BufRead,
    options: PowerOptions,
) -> Result<PowerTrace, TraceError> {
    let head = reader.fill_buf().map_err(|source| TraceError::Io {
        name: name.to_owned(),
        source,
    })?;
    let collector = Collector::new(name, options);
    if matlab::is_matlab(head) {
        matlab::read(name, reader, collector)
    } else {
        table::read(name, reader, collector)
    }
}
