//! The log of each file that the application around a receiver keeps, and the work of threads on it.

use super::assembly::Assembled;
use super::symbol_log::{LogContent, SymbolLog};
use super::wire::FileTag;
use fulmar_proto::units::Instant;
use std::io;

/// The number of a reading of a log, so that the result of one that was given up is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReadingNumber(u64);

impl ReadingNumber {
    /// This number; the next one takes its place.
    pub(super) const fn take(&mut self) -> Self {
        let number = *self;
        self.0 += 1;
        number
    }
}

/// A log, and its content, if there is one that is of a file.
pub(super) type LogFound = io::Result<Option<Box<(SymbolLog, LogContent)>>>;

/// The result of a thread's work on a file.
#[derive(Debug)]
pub(super) enum FileWorkResult {
    Compared(FileTag, Option<bool>),
    Assembled(FileTag, Assembled),
    Synced(FileTag, io::Result<()>),
    Read(FileTag, ReadingNumber, LogFound),
    /// Whether the facts that outlive a start could be written.
    Remembered(bool),
}

/// Symbols that came while the log of their file is read.
#[derive(Debug, Default)]
pub(super) struct EarlySymbols {
    symbols: Vec<(u16, u16, Vec<u8>)>,
    octets: usize,
}

impl EarlySymbols {
    pub(super) fn push(&mut self, (block, unit): (u16, u16), octets: &[u8]) {
        self.octets += octets.len();
        self.symbols.push((block, unit, octets.to_vec()));
    }

    pub(super) const fn octets(&self) -> usize {
        self.octets
    }

    /// Block, unit and octets of each, in the order in which they came.
    pub(super) fn into_symbols(self) -> impl Iterator<Item = (u16, u16, Vec<u8>)> {
        self.symbols.into_iter()
    }
}

/// A log that a thread reads.
#[derive(Debug)]
pub(super) struct LogReading {
    pub(super) number: ReadingNumber,
    /// The log lacked symbols that were kept.
    pub(super) is_damaged: bool,
    /// A sender was done meanwhile.
    pub(super) has_ended: bool,
    pub(super) early: EarlySymbols,
}

#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says a thing of its own"
)]
pub(super) struct FileWork {
    pub(super) log: Option<SymbolLog>,
    /// A thread reads its log, which is not to be written to until then.
    pub(super) reading: Option<LogReading>,
    /// Whether a thread syncs its log.
    pub(super) is_syncing: bool,
    /// Whether a thread puts it together.
    pub(super) is_assembling: bool,
    /// The time at which another try is made.
    pub(super) again_at: Option<Instant>,
    /// It was said that its sender is silent, or done.
    pub(super) is_told: bool,
    /// It was said that symbols cannot be kept.
    pub(super) is_full: bool,
}

impl FileWork {
    /// Octets of symbols that wait for its log.
    pub(super) fn early_octets(&self) -> usize {
        let reading = self.reading.as_ref();
        reading.map_or(0, |reading| reading.early.octets())
    }
}
