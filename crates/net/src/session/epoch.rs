//! The boot epoch: a number that rises with every start, though clocks may not.
//!
//! An end answers no initiation whose epoch is not above the last one's, so that recorded ones are
//! worth nothing. Machines without a battery-backed clock start in 1970; the file makes up for that.

use super::state_file::{StateDirectory, StateFileError};
use crate::clock::unix_time;
use std::path::PathBuf;

/// Room for the handshakes of one start: at one a second, half a year.
const STEP_BITS: u32 = 24;

/// Why no epoch can be had.
#[derive(Debug, thiserror::Error)]
pub enum EpochError {
    /// The file cannot be read, written or trusted.
    #[error(transparent)]
    File(#[from] StateFileError),
    /// The file holds no number.
    #[error(
        "the epoch file {} holds no number; if this machine's clock is right, delete the file",
        .path.display()
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
    },
}

/// The epoch after `stored`, at a clock that shows `unix_seconds`.
fn after(stored: Option<u64>, unix_seconds: u64) -> u64 {
    let by_clock = unix_seconds.checked_shl(STEP_BITS).unwrap_or(u64::MAX);
    let by_file = stored.map_or(0, |stored| stored.saturating_add(1 << STEP_BITS));
    by_clock.max(by_file)
}

/// The epoch of a start: above that of every earlier start with the file of this name, which is made or
/// replaced. It is on the disk when this returns.
///
/// # Errors
/// [`EpochError`]: the file cannot be read or written, is not ours, or holds something else.
pub fn next_boot_epoch(directory: &StateDirectory, name: &str) -> Result<u64, EpochError> {
    let stored = directory.read(name)?;
    let stored = stored.map(|text| text.trim().parse());
    let stored = stored.transpose().map_err(|_| EpochError::Damaged {
        path: directory.path_of(name),
    })?;
    let epoch = after(stored, unix_time().as_secs());
    directory.replace(name, &format!("{epoch}\n"))?;
    Ok(epoch)
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
        let directory = StateDirectory::open(place.path()).unwrap();
        let first = next_boot_epoch(&directory, "epoch").unwrap();
        let second = next_boot_epoch(&directory, "epoch").unwrap();
        assert!(second >= first + (1 << STEP_BITS), "{first} {second}");
        directory.replace("epoch", "soon").unwrap();
        let refused = next_boot_epoch(&directory, "epoch").unwrap_err();
        assert!(matches!(refused, EpochError::Damaged { .. }), "{refused}");
    }
}
