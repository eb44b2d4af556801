//! The boot epoch: a number that rises with every start, though clocks may not.
//!
//! An end answers no initiation whose epoch is not above the last one's, so that recorded ones are
//! worth nothing. Machines without a battery-backed clock start in 1970; the file makes up for that.

use crate::clock::unix_time;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Room for the handshakes of one start: at one a second, half a year.
const STEP_BITS: u32 = 24;

/// Why no epoch can be had.
#[derive(Debug, thiserror::Error)]
pub enum EpochError {
    /// The file cannot be read.
    #[error("reading the epoch file {}", .path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file holds no number.
    #[error(
        "the epoch file {} holds no number; if this machine's clock is right, delete the file",
        .path.display()
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error("writing the epoch file {}", .path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The epoch after `stored`, at a clock that shows `unix_seconds`.
fn after(stored: Option<u64>, unix_seconds: u64) -> u64 {
    let by_clock = unix_seconds.checked_shl(STEP_BITS).unwrap_or(u64::MAX);
    let by_file = stored.map_or(0, |stored| stored.saturating_add(1 << STEP_BITS));
    by_clock.max(by_file)
}

/// The epoch of a start: above that of every earlier start with the file at `path`, which is made or
/// replaced. It is on the disk when this returns.
///
/// # Errors
/// [`EpochError`]: the file cannot be read or written, or holds something else.
pub fn next_boot_epoch(path: &Path) -> Result<u64, EpochError> {
    let stored = match fs::read_to_string(path) {
        Ok(text) => Some(text.trim().parse().map_err(|_| EpochError::Damaged {
            path: path.to_owned(),
        })?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => {
            return Err(EpochError::Read {
                path: path.to_owned(),
                source,
            });
        }
    };
    let epoch = after(stored, unix_time().as_secs());
    replace(path, epoch).map_err(|source| EpochError::Write {
        path: path.to_owned(),
        source,
    })?;
    Ok(epoch)
}

/// Writes beside the file and renames, so that a crash leaves one of both.
fn replace(path: &Path, epoch: u64) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let mut file = File::create(&beside)?;
    writeln!(file, "{epoch}")?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_rises_with_every_start_whatever_the_clock_says() {
        let today = 1_763_700_000;
        let first = after(None, today);
        assert!(
            after(Some(first), today) > first,
            "a clock that stands still"
        );
        assert!(after(Some(first), 0) > first, "a clock back in 1970");
        assert_eq!(after(Some(5), today), first, "a clock that was set right");
    }

    #[test]
    fn epochs_are_kept_in_the_file() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("epoch");
        let first = next_boot_epoch(&path).unwrap();
        let second = next_boot_epoch(&path).unwrap();
        assert!(second >= first + (1 << STEP_BITS), "{first} {second}");
        fs::write(&path, "soon").unwrap();
        let refused = next_boot_epoch(&path).unwrap_err();
        assert!(matches!(refused, EpochError::Damaged { .. }), "{refused}");
        let nowhere = next_boot_epoch(&place.path().join("no/such")).unwrap_err();
        assert!(matches!(nowhere, EpochError::Write { .. }), "{nowhere}");
    }
}
