//! A file from its announcement until it is put together, or is not wanted.

use super::super::assembly::{Assembled, assemble, is_there};
use super::super::file_work::FileWorkResult;
use super::super::news::{OneWayNews, OneWayVerdict};
use super::super::receiver::OneWayReceiver;
use super::super::report::check_one_way_name;
use super::super::symbol_log::SymbolLog;
use super::super::wire::{Announcement, FileTag};
use super::{OneWayReceiving, RETRY_AFTER};
use fulmar_proto::units::Instant;
use std::fs;
use std::path::PathBuf;

impl OneWayReceiving {
    pub(super) fn target(&self, announcement: &Announcement) -> PathBuf {
        self.plan.directory.join(&announcement.name)
    }

    pub(super) fn announced(&mut self, receiver: &mut OneWayReceiver, tag: FileTag) {
        let Some(file) = receiver.file(tag) else {
            return;
        };
        let announcement = file.announcement().clone();
        if check_one_way_name(&announcement.name).is_err() {
            self.tell_file(receiver, tag, OneWayVerdict::Refused, None);
            return self.settle(receiver, tag);
        }
        (self.tell)(OneWayNews::Announced(announcement.clone()));
        self.take_up(tag);
        let path = self.target(&announcement);
        if fs::symlink_metadata(&path).is_ok() {
            self.assembler
                .run(move || FileWorkResult::Compared(tag, is_there(&path, &announcement)));
        }
    }

    /// Has a file put together that has all its symbols.
    pub(super) fn whole(&mut self, now: Instant, receiver: &mut OneWayReceiver, tag: FileTag) {
        let path = self.log_path(tag);
        let Some(file) = receiver.file(tag) else {
            return;
        };
        let (announcement, missing) = (file.announcement().clone(), file.missing());
        let work = self.work.entry(tag).or_default();
        work.again_at = None;
        // The last symbols may not have been kept: the file is whole once they came again.
        if missing > 0 || work.reading.is_some() {
            return;
        }
        // An empty file has no symbols.
        if work.log.is_none() {
            match SymbolLog::create(&path, &announcement) {
                Ok(log) => work.log = Some(log),
                Err(error) => {
                    work.again_at = Some(now + RETRY_AFTER);
                    return self.storage_failed(tag, error);
                }
            }
        }
        let is_written = self.write(receiver, tag);
        let Some(work) = self.work.get_mut(&tag) else {
            return;
        };
        if !is_written {
            work.again_at = Some(now + RETRY_AFTER);
            return;
        }
        if core::mem::replace(&mut work.is_assembling, true) {
            return;
        }
        let (target, replace) = (self.target(&announcement), self.plan.replace);
        self.assembler
            .run(move || FileWorkResult::Assembled(tag, assemble(&path, &target, replace)));
    }

    pub(super) fn assembled(
        &mut self,
        now: Instant,
        receiver: &mut OneWayReceiver,
        tag: FileTag,
        outcome: Assembled,
    ) {
        if let Some(work) = self.work.get_mut(&tag) {
            work.is_assembling = false;
        }
        match outcome {
            Assembled::Done(path) => {
                self.tell_file(receiver, tag, OneWayVerdict::Whole, Some(path));
                self.settle(receiver, tag);
            }
            Assembled::OtherThere => {
                self.tell_file(receiver, tag, OneWayVerdict::Refused, None);
                self.settle(receiver, tag);
            }
            Assembled::Short => self.log_is_short(receiver, tag),
            Assembled::Corrupt => {
                self.tell_file(receiver, tag, OneWayVerdict::Corrupt, None);
                receiver.forget_units(tag);
                if let Some(log) = self.work.get_mut(&tag).and_then(|work| work.log.take()) {
                    drop(fs::remove_file(log.path()));
                }
            }
            Assembled::Failed(error) => {
                self.storage_failed(tag, error);
                if let Some(work) = self.work.get_mut(&tag) {
                    work.again_at = Some(now + RETRY_AFTER);
                }
            }
        }
    }

    pub(super) fn put_together_again(&mut self, now: Instant, receiver: &mut OneWayReceiver) {
        let due = self
            .work
            .iter()
            .filter(|(_, work)| work.again_at.is_some_and(|at| at <= now));
        let due: Vec<FileTag> = due.map(|(&tag, _)| tag).collect();
        for tag in due {
            self.whole(now, receiver, tag);
        }
    }

    /// Ends the work on a file.
    pub(super) fn settle(&mut self, receiver: &mut OneWayReceiver, tag: FileTag) {
        receiver.settle(tag);
        if let Some(work) = self.work.remove(&tag)
            && (work.log.is_some() || work.reading.is_some())
        {
            drop(fs::remove_file(self.log_path(tag)));
        }
        self.checkpoint_at.get_or_insert(Instant::START);
    }
}
