//! The application around a receiver: symbols on the disk, files out of them, reports, and what is remembered between starts.

use super::announced_file::AnnouncedFile;
use super::assembly::{Assembled, assemble, is_there};
use super::counters::CounterFile;
use super::disk_worker::DiskWorker;
use super::file_work::{
    EarlySymbols, FileWork, FileWorkResult, LogFound, LogReading, ReadingNumber,
};
use super::news::{OneWayNews, OneWayReceivePlan, OneWayVerdict, ThinReturnPlan};
use super::receiver::{OneWayEvent, OneWayReceiver};
use super::remembered::{self, Remembered};
use super::report::{OneWayReport, REPORT_SUFFIX, check_one_way_name};
use super::seal::OneWayRefusal;
use super::symbol_log::SymbolLog;
use super::wire::{Announcement, FileTag};
use crate::session::{StateDirectory, StateFileError};
use crate::transfer::Stop;
use crate::udp::{Application, Step};
use crate::wait::Waker;
use fulmar_proto::machine::{Deadline, PathId};
use fulmar_proto::units::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The directory for symbols and what is remembered, within that of the files.
const WORK_DIRECTORY: &str = ".fulmar-one-way";
const LOG_SUFFIX: &str = "symbols";
/// The pause before a file is put together again whose disk was full.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// The most octets of symbols that wait for the logs of their files, which are read meanwhile. What is above it may come again.
const EARLY_BYTES_MAX: usize = 16 << 20;

/// Datagrams that no key of ours opens before that is said.
const OTHER_KEY_FROM: u64 = 10;
/// Datagrams of unknown starts with old numbers before that is said. Late ones of a start that was forgotten are fewer.
const WENT_BACK_FROM: u64 = 10;

/// Numbers of requests.
#[derive(Debug)]
struct RequestNumbers {
    file: CounterFile,
    /// Whether it was said that none can be had.
    is_lack_told: bool,
}

/// The application that receives files into a directory.
pub struct OneWayReceiving {
    plan: OneWayReceivePlan,
    state: Arc<StateDirectory>,
    remembered: Remembered,
    is_remembering: bool,
    work: BTreeMap<FileTag, FileWork>,
    tell: Box<dyn FnMut(OneWayNews)>,
    stop: Stop,
    /// Reads logs, compares files and puts them together, one at a time, since each may take some 100 MB of memory.
    assembler: DiskWorker<FileWorkResult>,
    /// Syncs. The socket's buffer holds less than a busy disk's pause.
    syncer: DiskWorker<FileWorkResult>,
    done: (Sender<FileWorkResult>, Receiver<FileWorkResult>),
    next_reading: ReadingNumber,
    /// Whether it was said that a sender has another key, or that one's numbers went back.
    is_other_key_told: bool,
    is_going_back_told: bool,
    checkpoint_at: Option<Instant>,
    /// The time at which some sender's silence will have been long.
    silence_at: Option<Instant>,
    last: Option<OneWayVerdict>,
    /// Numbers of requests, over a thin way back.
    numbers: Option<RequestNumbers>,
}

impl core::fmt::Debug for OneWayReceiving {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "OneWayReceiving({})", self.plan.directory.display())
    }
}

impl OneWayReceiving {
    /// A receiver and its application, with what earlier starts left in the directory. One process at a time has a directory.
    ///
    /// # Errors
    /// The directory cannot be used, or another process has it.
    pub fn open(
        now: Instant,
        mut plan: OneWayReceivePlan,
        (stop, waker): (Stop, Waker),
        tell: Box<dyn FnMut(OneWayNews)>,
    ) -> Result<(OneWayReceiver, Self), StateFileError> {
        let state = StateDirectory::open(&plan.directory.join(WORK_DIRECTORY))?;
        let remembered = Remembered::read(&state)?;
        let key = plan.preset.clone();
        let (mut receiver, numbers) = match plan.returns.take() {
            Some(ThinReturnPlan { way, counters }) => {
                let numbers = RequestNumbers {
                    file: counters,
                    is_lack_told: false,
                };
                (OneWayReceiver::with_return(key, way), Some(numbers))
            }
            None => (OneWayReceiver::new(key), None),
        };
        remembered.restore(&mut receiver);
        let done = channel();
        let worker = || DiskWorker::start(done.0.clone(), &waker);
        let (assembler, syncer) = (worker(), worker());
        let mut receiving = Self {
            state: Arc::new(state),
            remembered,
            is_remembering: false,
            work: BTreeMap::new(),
            tell,
            stop,
            assembler,
            syncer,
            done,
            next_reading: ReadingNumber::default(),
            is_other_key_told: false,
            is_going_back_told: false,
            checkpoint_at: None,
            silence_at: None,
            last: None,
            numbers,
            plan,
        };
        receiving.resume(now, &mut receiver);
        Ok((receiver, receiving))
    }

    /// The verdict on the last file.
    pub const fn last(&self) -> Option<OneWayVerdict> {
        self.last
    }

    /// Takes up the logs of earlier starts, the latest ones. What cannot be read is left alone, as are more of them than can be received
    /// at once: those are taken up when their files are announced again.
    fn resume(&mut self, now: Instant, receiver: &mut OneWayReceiver) {
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

    /// Takes numbers for requests from the disk. Nothing is said without a way back; a failure is said once until it is over.
    fn grant(&mut self, receiver: &mut OneWayReceiver) {
        let Some(numbers) = &mut self.numbers else {
            return;
        };
        match numbers.file.reserve() {
            Ok(counters) => {
                numbers.is_lack_told = false;
                receiver.grant(counters);
            }
            Err(_) if numbers.is_lack_told => {}
            Err(error) => {
                numbers.is_lack_told = true;
                (self.tell)(OneWayNews::NoRequests(error));
            }
        }
    }

    fn log_path(&self, tag: FileTag) -> PathBuf {
        self.state.path_of(&format!("{tag}.{LOG_SUFFIX}"))
    }

    fn target(&self, announcement: &Announcement) -> PathBuf {
        self.plan.directory.join(&announcement.name)
    }

    fn announced(&mut self, receiver: &mut OneWayReceiver, tag: FileTag) {
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

    /// Goes on with the log of a file that had made room for another one, once a thread has read it.
    fn take_up(&mut self, tag: FileTag) {
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
    fn log_read(
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

    /// Ends the work on a file that made room for another one. Its log stays.
    fn set_aside(&mut self, receiver: &mut OneWayReceiver, announcement: Announcement) {
        let tag = announcement.tag();
        // Whatever cannot be written comes again, or does not.
        self.write(receiver, tag);
        self.work.remove(&tag);
        (self.tell)(OneWayNews::SetAside(announcement));
    }

    fn keep(
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

    fn storage_failed(&mut self, tag: FileTag, error: io::Error) {
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
    fn write(&mut self, receiver: &mut OneWayReceiver, tag: FileTag) -> bool {
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

    fn synced(&mut self, tag: FileTag, outcome: io::Result<()>) {
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

    /// Has a file put together that has all its symbols.
    fn whole(&mut self, now: Instant, receiver: &mut OneWayReceiver, tag: FileTag) {
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

    /// Writes the report beside the files, and says how the file stands.
    fn tell_file(
        &mut self,
        receiver: &OneWayReceiver,
        tag: FileTag,
        verdict: OneWayVerdict,
        path: Option<PathBuf>,
    ) {
        let Some(report) = receiver.report(tag) else {
            return;
        };
        self.last = Some(verdict);
        let has_report = verdict != OneWayVerdict::Refused;
        let report_path = if has_report {
            self.write_report(tag, &report)
        } else {
            None
        };
        (self.tell)(OneWayNews::File {
            verdict,
            report: Box::new(report),
            path,
            report_path,
        });
    }

    /// Writes a report, or says why it cannot be written: it is the only way back that there is.
    fn write_report(&mut self, tag: FileTag, report: &OneWayReport) -> Option<PathBuf> {
        let name = format!("{}{REPORT_SUFFIX}", report.name);
        let path = self.plan.directory.join(name);
        let beside = self.state.path_of(&format!("{tag}.report-new"));
        let text = report.to_text(&self.plan.preset).map_err(io::Error::other);
        match text.and_then(|text| replace((&path, &beside), &text)) {
            Ok(()) => Some(path),
            Err(error) => {
                (self.tell)(OneWayNews::NoReport(path, error));
                None
            }
        }
    }

    /// Ends the work on a file.
    fn settle(&mut self, receiver: &mut OneWayReceiver, tag: FileTag) {
        receiver.settle(tag);
        if let Some(work) = self.work.remove(&tag)
            && (work.log.is_some() || work.reading.is_some())
        {
            drop(fs::remove_file(self.log_path(tag)));
        }
        self.checkpoint_at.get_or_insert(Instant::START);
    }

    /// Takes what threads have done. Returns whether the receiver was told of units.
    fn take_done(&mut self, now: Instant, receiver: &mut OneWayReceiver) -> bool {
        let mut is_told = false;
        while let Ok(done) = self.done.1.try_recv() {
            match done {
                FileWorkResult::Compared(tag, Some(true)) => {
                    let path = receiver
                        .file(tag)
                        .map(|file| self.target(file.announcement()));
                    self.tell_file(receiver, tag, OneWayVerdict::Present, path);
                    self.settle(receiver, tag);
                }
                FileWorkResult::Compared(tag, Some(false)) if !self.plan.replace => {
                    self.tell_file(receiver, tag, OneWayVerdict::Refused, None);
                    self.settle(receiver, tag);
                }
                FileWorkResult::Compared(..) => {}
                FileWorkResult::Assembled(tag, outcome) => {
                    self.assembled(now, receiver, tag, outcome);
                }
                FileWorkResult::Synced(tag, outcome) => self.synced(tag, outcome),
                FileWorkResult::Read(tag, number, found) => {
                    is_told |= self.log_read(now, receiver, (tag, number), found);
                }
                FileWorkResult::Remembered(is_written) => {
                    self.is_remembering = false;
                    if !is_written {
                        self.remembered = Remembered::default();
                        let again = now + self.plan.checkpoint_every;
                        self.checkpoint_at.get_or_insert(again);
                    }
                }
            }
        }
        is_told
    }

    fn assembled(
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

    /// Goes on with what a log still has, once a thread has read it.
    fn log_is_short(&mut self, receiver: &mut OneWayReceiver, tag: FileTag) {
        self.work.entry(tag).or_default().is_told = false;
        receiver.forget_units(tag);
        self.read_log(tag, true);
    }

    /// Says once why datagrams are not taken that somebody meant for us.
    fn look_for_strangers(&mut self, receiver: &OneWayReceiver) {
        let unopened = receiver.refused(OneWayRefusal::Seal);
        if unopened >= OTHER_KEY_FROM && !core::mem::replace(&mut self.is_other_key_told, true) {
            (self.tell)(OneWayNews::OtherKey(unopened));
        }
        if receiver.went_back() >= WENT_BACK_FROM
            && !core::mem::replace(&mut self.is_going_back_told, true)
        {
            (self.tell)(OneWayNews::WentBack);
        }
    }

    fn checkpoint(&mut self, receiver: &mut OneWayReceiver) {
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
    fn save(&mut self, now: Instant, receiver: &mut OneWayReceiver) {
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

    /// Files whose senders were not heard for long.
    fn look_for_silence(&mut self, now: Instant, receiver: &OneWayReceiver) {
        let short = receiver.files().filter(|(_, file)| file.missing() > 0);
        let until: Vec<(FileTag, Instant)> = short
            .map(|(tag, file)| (tag, file.heard_at() + self.plan.give_up))
            .collect();
        self.silence_at = None;
        for (tag, at) in until {
            let work = self.work.entry(tag).or_default();
            if work.is_told || work.reading.is_some() {
                continue;
            }
            if at > now {
                self.silence_at = Some(self.silence_at.map_or(at, |soonest| soonest.min(at)));
            } else {
                work.is_told = true;
                self.tell_file(receiver, tag, OneWayVerdict::Silent, None);
            }
        }
    }

    fn put_together_again(&mut self, now: Instant, receiver: &mut OneWayReceiver) {
        let due = self
            .work
            .iter()
            .filter(|(_, work)| work.again_at.is_some_and(|at| at <= now));
        let due: Vec<FileTag> = due.map(|(&tag, _)| tag).collect();
        for tag in due {
            self.whole(now, receiver, tag);
        }
    }

    /// Says that a sender is done, and symbols are missing.
    fn tell_missing(&mut self, receiver: &mut OneWayReceiver, tag: FileTag) {
        self.write(receiver, tag);
        self.work.entry(tag).or_default().is_told = true;
        self.tell_file(receiver, tag, OneWayVerdict::Missing, None);
    }

    fn leave(&mut self, now: Instant, receiver: &mut OneWayReceiver) {
        self.save(now, receiver);
        let tags: Vec<FileTag> = receiver.files().map(|(tag, _)| tag).collect();
        for tag in tags {
            self.tell_file(receiver, tag, OneWayVerdict::Stopped, None);
        }
    }
}

/// Replaces a small file in one step, by one that is written `beside` it.
fn replace((path, beside): (&Path, &Path), text: &str) -> io::Result<()> {
    match fs::remove_file(beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let write = || {
        let mut file = fs::File::create_new(beside)?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        file.sync_all()?;
        fs::rename(beside, path)
    };
    let written = write();
    if written.is_err() {
        drop(fs::remove_file(beside));
    }
    written
}

impl Application<OneWayReceiver> for OneWayReceiving {
    fn deliver(&mut self, now: Instant, machine: &mut OneWayReceiver, event: OneWayEvent) {
        match event {
            OneWayEvent::Announced(tag) => self.announced(machine, tag),
            OneWayEvent::Symbol(tag, block, unit, octets) => {
                if let Some(work) = self.work.get_mut(&tag) {
                    work.is_told = false;
                }
                self.keep(machine, (tag, block, unit), &octets);
            }
            OneWayEvent::Whole(tag) => self.whole(now, machine, tag),
            OneWayEvent::SetAside(announcement) => self.set_aside(machine, *announcement),
            OneWayEvent::NeedsCounters => self.grant(machine),
            OneWayEvent::Ended(tag) => {
                let is_short = machine.file(tag).is_some_and(|file| file.missing() > 0);
                let work = self.work.get_mut(&tag);
                match work.and_then(|work| work.reading.as_mut()) {
                    Some(reading) => reading.has_ended = true,
                    None if is_short => self.tell_missing(machine, tag),
                    None => {}
                }
            }
        }
    }

    fn work(&mut self, now: Instant, machine: &mut OneWayReceiver) -> Step {
        let is_told = self.take_done(now, machine);
        self.put_together_again(now, machine);
        self.look_for_silence(now, machine);
        self.look_for_strangers(machine);
        if self.checkpoint_at.is_some_and(|at| at <= now) {
            // The first of a while comes at once and sets the pace.
            self.checkpoint(machine);
            let is_busy = self.is_remembering || machine.files().next().is_some();
            self.checkpoint_at = is_busy.then(|| now + self.plan.checkpoint_every);
        }
        if self.stop.is_requested() {
            self.leave(now, machine);
            return Step::Stop;
        }
        let is_over = matches!(self.last, Some(verdict) if self.plan.once && verdict != OneWayVerdict::Corrupt);
        if is_over {
            self.save(now, machine);
            return Step::Stop;
        }
        if is_told { Step::Again } else { Step::Wait }
    }

    fn unreachable(&mut self, _now: Instant, _machine: &mut OneWayReceiver, _path: PathId) {}

    fn next_deadline(&self) -> Option<Deadline> {
        let again = self.work.values().filter_map(|work| work.again_at);
        let times = again.chain(self.checkpoint_at).chain(self.silence_at);
        times.min().map(|at| Deadline {
            at,
            why: "the disk of a one-way receiver",
        })
    }
}

#[cfg(test)]
mod tests;
