//! The boot epoch: a number that rises with every start, though clocks may not.
//!
//! An end answers only initiations whose epoch is above the last one's, so that recorded initiations are
//! worth nothing. Machines without a battery-backed clock start in 1970; the file makes up for that.

use super::state_file::{StateDirectory, StateFileError};
use crate::clock::unix_time;
use std::io::ErrorKind;

/// Room for the handshakes of one start: at one a second, half a year.
const STEP_BITS: u32 = 24;

/// The reason why no epoch can be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EpochError {
    /// The file cannot be read, written or trusted.
    #[error(transparent)]
    File(#[from] StateFileError),
}

/// The epoch after `stored`, at a clock that shows `unix_seconds`.
fn after(stored: Option<u64>, unix_seconds: u64) -> u64 {
    let by_clock = unix_seconds.checked_shl(STEP_BITS).unwrap_or(u64::MAX);
    let by_file = stored.map_or(0, |stored| stored.saturating_add(1 << STEP_BITS));
    by_clock.max(by_file)
}

/// A file's line. Its check tells a number from a damaged one, which would move us years ahead.
fn line(epoch: u64) -> String {
    let number = epoch.to_string();
    let crc = crc32fast::hash(number.as_bytes());
    format!("{number} {crc:08x}\n")
}

/// The number in a line; earlier versions wrote it without a check.
fn number(text: &str) -> Option<u64> {
    let (number, is_checked) = match text.trim_end().split_once(' ') {
        Some((number, _)) => (number, true),
        None => (text.trim_end(), false),
    };
    let epoch = number.parse().ok()?;
    (!is_checked || line(epoch) == text).then_some(epoch)
}

/// The epoch of a start: above that of every earlier start with the file of this name, which is made or
/// replaced. It is on the disk when this returns. A damaged file counts as a lost one: the clock stands in,
/// and a line says so.
///
/// # Errors
/// [`EpochError`]: the file cannot be read or written, or is not ours.
pub fn next_boot_epoch(directory: &StateDirectory, name: &str) -> Result<u64, EpochError> {
    let stored = match directory.read(name) {
        Ok(None) => None,
        Ok(Some(text)) => Some(number(&text)),
        // No text.
        Err(StateFileError::Read { source, .. }) if source.kind() == ErrorKind::InvalidData => {
            Some(None)
        }
        Err(error) => return Err(error.into()),
    };
    if stored == Some(None) {
        let file = directory.path_of(name);
        tracing::error!(
            event = "epoch_damaged",
            file = %file.display(),
            "the number of the last start cannot be read; this machine's clock stands in for it"
        );
    }
    let epoch = after(stored.flatten(), unix_time().as_secs());
    directory.replace(name, &line(epoch))?;
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
        directory.replace("epoch", "7\n").unwrap();
        let third = next_boot_epoch(&directory, "epoch").unwrap();
        assert_eq!(number("7\n"), Some(7), "of an earlier version");
        assert!(third >= first, "the clock is ahead of that");
    }

    #[test]
    fn a_damaged_file_keeps_no_gateway_from_starting_and_says_no_number() {
        let place = tempfile::tempdir().unwrap();
        let directory = StateDirectory::open(place.path()).unwrap();
        let whole = line(1 << 55);
        assert_eq!(number(&whole), Some(1 << 55));
        for bit in 0..whole.len() * 8 {
            let mut octets = whole.clone().into_bytes();
            octets[bit / 8] ^= 1 << (bit % 8);
            if let Ok(text) = core::str::from_utf8(&octets) {
                assert_eq!(number(text), None, "bit {bit}");
            }
            std::fs::write(directory.path_of("epoch"), &octets).unwrap();
            let epoch = next_boot_epoch(&directory, "epoch").unwrap();
            assert!(epoch < 1 << 55, "bit {bit}: the clock's, not the file's");
        }
    }
}
