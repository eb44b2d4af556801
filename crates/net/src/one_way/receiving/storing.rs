//! Symbols on their way to the disk: kept, written, synced, and given up where the disk fails.

use super::super::file_work::{FileWork, FileWorkResult};
use super::super::news::OneWayNews;
use super::super::receiver::OneWayReceiver;
use super::super::remembered::{self, Remembered};
use super::super::symbol_log::SymbolLog;
use super::super::wire::FileTag;
use super::OneWayReceiving;
use fulmar_proto::units::Instant;
use std::io;
use std::sync::Arc;

/// The most octets of symbols that wait for the logs of their files, which are read meanwhile. What is above it may come again.
pub(super) const EARLY_BYTES_MAX: usize = 16 << 20;

impl OneWayReceiving {
    pub(super) fn keep(
        &mut self,
        receiver: &mut OneWayReceiver,
        (tag, block, unit): (FileTag, u16, u16),
        octets: &[u8],
    ) {
        let path = self.log_path(tag);
        let early: usize = self.work.values().map(FileWork::early_octets).sum();
        let work = self.work.entry(tag).or_default();
        if let Some(reading) = &mut work.reading {
            if early < EARLY_BYTES_MAX {
                reading.early.push((block, unit), octets);
            } else {
                receiver.forget_unit(tag, block, unit);
            }
            return;
        }
        if work.log.is_none()
            && let Some(file) = receiver.file(tag)
        {
            match SymbolLog::create(&path, file.announcement()) {
                Ok(log) => work.log = Some(log),
                Err(error) => {
                    receiver.forget_unit(tag, block, unit);
                    self.storage_failed(tag, error);
                    return;
                }
            }
        }
        let Some(log) = &mut work.log else {
            return;
        };
        if let Err(error) = log.append(block, unit, octets) {
            self.not_kept(receiver, tag, error);
        } else if self.checkpoint_at.is_none() {
            self.checkpoint_at = Some(Instant::START);
        }
    }

    pub(super) fn storage_failed(&mut self, tag: FileTag, error: io::Error) {
        let path = self.log_path(tag);
        let work = self.work.entry(tag).or_default();
        if !work.is_full {
            work.is_full = true;
            (self.tell)(OneWayNews::Storage(path, error));
        }
    }

    /// Forgets what a log could not write: it may come again.
    fn not_kept(&mut self, receiver: &mut OneWayReceiver, tag: FileTag, error: io::Error) {
        if let Some(log) = self.work.get_mut(&tag).and_then(|work| work.log.as_mut()) {
            for (block, unit) in log.take_unwritten() {
                receiver.forget_unit(tag, block, unit);
            }
        }
        self.storage_failed(tag, error);
    }

    /// Writes the symbols of a file. `false`: some could not be kept.
    pub(super) fn write(&mut self, receiver: &mut OneWayReceiver, tag: FileTag) -> bool {
        let log = self.work.get_mut(&tag).and_then(|work| work.log.as_mut());
        match log.map_or(Ok(()), SymbolLog::write) {
            Ok(()) => true,
            Err(error) => {
                self.not_kept(receiver, tag, error);
                false
            }
        }
    }

    /// Has the symbols of a file synced that were written.
    fn sync(&mut self, tag: FileTag) {
        let Some(work) = self.work.get_mut(&tag).filter(|work| !work.is_syncing) else {
            return;
        };
        match work.log.as_mut().and_then(SymbolLog::take_unsynced) {
            Some(Ok(file)) => {
                work.is_syncing = true;
                self.syncer
                    .run(move || FileWorkResult::Synced(tag, file.sync_data()));
            }
            Some(Err(error)) => self.storage_failed(tag, error),
            None => {}
        }
    }

    pub(super) fn synced(&mut self, tag: FileTag, outcome: io::Result<()>) {
        if let Some(work) = self.work.get_mut(&tag) {
            work.is_syncing = false;
            match outcome {
                Ok(()) => work.is_full = false,
                Err(error) => {
                    if let Some(log) = &mut work.log {
                        log.note_unsynced();
                    }
                    self.storage_failed(tag, error);
                }
            }
        }
    }

    pub(super) fn checkpoint(&mut self, receiver: &mut OneWayReceiver) {
        let tags: Vec<FileTag> = self.work.keys().copied().collect();
        for tag in tags {
            self.write(receiver, tag);
            self.sync(tag);
        }
        if !self.is_remembering
            && let Some(text) = self.remembered.update(receiver)
        {
            self.is_remembering = true;
            let state = Arc::clone(&self.state);
            self.syncer.run(move || {
                FileWorkResult::Remembered(state.replace(remembered::STATE, &text).is_ok())
            });
        }
    }

    /// Makes everything survive, before the end.
    pub(super) fn save(&mut self, now: Instant, receiver: &mut OneWayReceiver) {
        // What came while a log is read has no place on the disk yet, and a report would lack what the log has.
        if self.work.values().any(|work| work.reading.is_some()) {
            self.assembler.finish();
            self.take_done(now, receiver);
        }
        self.checkpoint(receiver);
        self.syncer.finish();
        let tags: Vec<FileTag> = self.work.keys().copied().collect();
        for tag in tags {
            let log = self.work.get_mut(&tag).and_then(|work| work.log.as_mut());
            if let Err(error) = log.map_or(Ok(()), SymbolLog::checkpoint) {
                self.not_kept(receiver, tag, error);
            }
        }
        // Once more for what came while the last text was written.
        self.remembered = Remembered::default();
        if let Some(text) = self.remembered.update(receiver)
            && let Err(error) = self.state.replace(remembered::STATE, &text)
        {
            let path = self.state.path_of(remembered::STATE);
            (self.tell)(OneWayNews::Storage(path, io::Error::other(error)));
        }
    }
}
