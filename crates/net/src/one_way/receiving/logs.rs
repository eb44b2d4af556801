//! The logs of files: those of earlier starts, and how a thread reads them again.

use super::super::announced_file::AnnouncedFile;
use super::super::file_work::{
    EarlySymbols, FileWork, FileWorkResult, LogFound, LogReading, ReadingNumber,
};
use super::super::news::OneWayNews;
use super::super::receiver::OneWayReceiver;
use super::super::report::check_one_way_name;
use super::super::symbol_log::SymbolLog;
use super::super::wire::FileTag;
use super::{LOG_SUFFIX, OneWayReceiving, RETRY_AFTER, WORK_DIRECTORY};
use fulmar_proto::units::Instant;
use std::cmp::Reverse;
use std::fs;
use std::path::PathBuf;

impl OneWayReceiving {
    /// Takes up the logs of earlier starts, the latest ones. What cannot be read is left alone, as are more of them than can be received
    /// at once: those are taken up when their files are announced again.
    pub(super) fn resume(&mut self, now: Instant, receiver: &mut OneWayReceiver) {
        let directory = self.plan.directory.join(WORK_DIRECTORY);
        let Ok(entries) = fs::read_dir(&directory) else {
            return;
        };
        let logs = entries.filter_map(|entry| {
            let path = entry.ok()?.path();
            path.extension().filter(|&end| end == LOG_SUFFIX)?;
            let written = fs::symlink_metadata(&path).ok()?.modified().ok()?;
            Some((Reverse(written), path))
        });
        let mut logs: Vec<_> = logs.collect();
        logs.sort();
        for (_, path) in logs {
            let Ok(Some((log, content))) = SymbolLog::reopen(&path) else {
                continue;
            };
            let announcement = content.announcement.clone();
            let tag = announcement.tag();
            if self.log_path(tag) != path || check_one_way_name(&announcement.name).is_err() {
                continue;
            }
            let units = content.places();
            if !receiver.restore_file(now, announcement.clone(), units) {
                return;
            }
            let missing = receiver.file(tag).map_or(0, AnnouncedFile::missing);
            let work = FileWork {
                log: Some(log),
                ..FileWork::default()
            };
            self.work.insert(tag, work);
            (self.tell)(OneWayNews::Resumed(announcement, missing));
        }
    }

    pub(super) fn log_path(&self, tag: FileTag) -> PathBuf {
        self.state.path_of(&format!("{tag}.{LOG_SUFFIX}"))
    }

    /// Goes on with the log of a file that had made room for another one, once a thread has read it.
    pub(super) fn take_up(&mut self, tag: FileTag) {
        if self.log_path(tag).exists() {
            self.read_log(tag, false);
        }
    }

    /// Has the log of a file read. Reading takes minutes for a file of many gigabytes; until then symbols wait in memory.
    fn read_log(&mut self, tag: FileTag, is_damaged: bool) {
        let path = self.log_path(tag);
        let number = self.next_reading.take();
        let work = self.work.entry(tag).or_default();
        work.log = None;
        work.reading = Some(LogReading {
            number,
            is_damaged,
            has_ended: false,
            early: EarlySymbols::default(),
        });
        self.assembler.run(move || {
            let found = SymbolLog::read(&path).map(|found| found.map(Box::new));
            FileWorkResult::Read(tag, number, found)
        });
    }

    /// Takes a log that was read, and the symbols that came meanwhile. Returns whether the receiver was told of units.
    pub(super) fn log_read(
        &mut self,
        now: Instant,
        receiver: &mut OneWayReceiver,
        (tag, number): (FileTag, ReadingNumber),
        found: LogFound,
    ) -> bool {
        let Some(work) = self.work.get_mut(&tag) else {
            return false;
        };
        // A file that made room meanwhile has a reading of its own, or none.
        let reading = (work.reading).take_if(|reading| reading.number == number);
        let Some((reading, file)) = reading.zip(receiver.file(tag)) else {
            return false;
        };
        let announcement = file.announcement().clone();
        let usable = found.and_then(|found| match found.map(|both| *both) {
            Some((log, content)) if content.announcement.is_of_same_file(&announcement) => {
                log.cut()?;
                Ok(Some((log, content)))
            }
            _ => Ok(None),
        });
        match usable {
            Ok(Some((log, content))) => {
                work.log = Some(log);
                receiver.hold(tag, content.places());
            }
            Ok(None) => {}
            Err(error) => self.storage_failed(tag, error),
        }
        for (block, unit, octets) in reading.early.into_symbols() {
            self.keep(receiver, (tag, block, unit), &octets);
        }
        let missing = receiver.file(tag).map_or(0, AnnouncedFile::missing);
        if reading.is_damaged {
            (self.tell)(OneWayNews::Damaged(announcement, missing));
        }
        match (missing, reading.is_damaged) {
            (0, true) => self.work.entry(tag).or_default().again_at = Some(now + RETRY_AFTER),
            (0, false) => self.whole(now, receiver, tag),
            _ if reading.has_ended => self.tell_missing(receiver, tag),
            _ => {}
        }
        true
    }

    /// Goes on with what a log still has, once a thread has read it.
    pub(super) fn log_is_short(&mut self, receiver: &mut OneWayReceiver, tag: FileTag) {
        self.work.entry(tag).or_default().is_told = false;
        receiver.forget_units(tag);
        self.read_log(tag, true);
    }
}
