//! The application around a receiver: symbols on the disk, files out of them, reports, and what is remembered between starts.

use super::announced_file::AnnouncedFile;
use super::assembly::{Assembled, assemble, is_there};
use super::news::{OneWayNews, OneWayReceivePlan, OneWayVerdict};
use super::receiver::{OneWayEvent, OneWayReceiver};
use super::remembered::Remembered;
use super::report::{OneWayReport, REPORT_SUFFIX};
use super::symbol_log::SymbolLog;
use super::wire::{Announcement, FileTag};
use crate::session::{StateDirectory, StateFileError};
use crate::transfer::{Stop, check_name};
use crate::udp::{Application, Step};
use crate::wait::Waker;
use fulmar_proto::machine::{Deadline, PathId};
use fulmar_proto::units::{Duration, Instant};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

/// The directory for symbols and what is remembered, within that of the files.
const WORK_DIRECTORY: &str = ".fulmar-one-way";
const LOG_SUFFIX: &str = "symbols";
/// The pause before a file is put together again whose disk was full.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// The result of a thread's work on a file.
enum Done {
    Compared(FileTag, Option<bool>),
    Assembled(FileTag, Assembled),
}

#[derive(Debug, Default)]
struct FileWork {
    log: Option<SymbolLog>,
    /// A thread puts it together, or will at this time.
    is_assembling: bool,
    again_at: Option<Instant>,
    /// It was said that its sender is silent, or done.
    is_told: bool,
    /// It was said that symbols cannot be kept.
    is_full: bool,
}

/// The application that receives files into a directory.
pub struct OneWayReceiving {
    plan: OneWayReceivePlan,
    state: StateDirectory,
    remembered: Remembered,
    work: BTreeMap<FileTag, FileWork>,
    tell: Box<dyn FnMut(OneWayNews)>,
    stop: Stop,
    waker: Waker,
    done: (Sender<Done>, Receiver<Done>),
    checkpoint_at: Option<Instant>,
    /// The time at which some sender's silence will have been long.
    silence_at: Option<Instant>,
    last: Option<OneWayVerdict>,
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
        plan: OneWayReceivePlan,
        (stop, waker): (Stop, Waker),
        tell: Box<dyn FnMut(OneWayNews)>,
    ) -> Result<(OneWayReceiver, Self), StateFileError> {
        let state = StateDirectory::open(&plan.directory.join(WORK_DIRECTORY))?;
        let remembered = Remembered::read(&state)?;
        let mut receiver = OneWayReceiver::new(plan.preset.clone());
        remembered.restore(&mut receiver);
        let mut receiving = Self {
            state,
            remembered,
            work: BTreeMap::new(),
            tell,
            stop,
            waker,
            done: channel(),
            checkpoint_at: None,
            silence_at: None,
            last: None,
            plan,
        };
        receiving.resume(now, &mut receiver);
        Ok((receiver, receiving))
    }

    /// The verdict on the last file.
    pub const fn last(&self) -> Option<OneWayVerdict> {
        self.last
    }

    /// Takes up the logs of earlier starts. What cannot be read is left alone.
    fn resume(&mut self, now: Instant, receiver: &mut OneWayReceiver) {
        let directory = self.plan.directory.join(WORK_DIRECTORY);
        let Ok(entries) = fs::read_dir(&directory) else {
            return;
        };
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        paths.sort();
        for path in paths {
            if path.extension().is_none_or(|end| end != LOG_SUFFIX) {
                continue;
            }
            let Ok(Some((log, content))) = SymbolLog::reopen(&path) else {
                continue;
            };
            let announcement = content.announcement;
            let tag = announcement.tag();
            if self.log_path(tag) != path || check_name(&announcement.name).is_err() {
                continue;
            }
            let units = content
                .symbols
                .iter()
                .map(|symbol| (symbol.block, symbol.unit));
            receiver.restore_file(now, announcement.clone(), units);
            let missing = receiver.file(tag).map_or(0, AnnouncedFile::missing);
            let work = FileWork {
                log: Some(log),
                ..FileWork::default()
            };
            self.work.insert(tag, work);
            (self.tell)(OneWayNews::Resumed(announcement, missing));
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
        let is_safe =
            check_name(&announcement.name).is_ok() && !announcement.name.ends_with(REPORT_SUFFIX);
        if !is_safe {
            self.tell_file(receiver, tag, OneWayVerdict::Refused, None);
            return self.settle(receiver, tag);
        }
        (self.tell)(OneWayNews::Announced(announcement.clone()));
        let path = self.target(&announcement);
        if fs::symlink_metadata(&path).is_ok() {
            self.in_thread(move || Done::Compared(tag, is_there(&path, &announcement)));
        }
    }

    /// Runs `work` in a thread, whose result wakes the loop.
    fn in_thread(&self, work: impl FnOnce() -> Done + Send + 'static) {
        let sender = self.done.0.clone();
        let waker = self.waker.try_clone();
        std::thread::spawn(move || {
            // Where nobody listens any more, the work was for nothing.
            drop(sender.send(work()));
            if let Ok(waker) = waker {
                drop(waker.wake());
            }
        });
    }

    fn keep(
        &mut self,
        receiver: &mut OneWayReceiver,
        (tag, block, unit): (FileTag, u16, u16),
        octets: &[u8],
    ) {
        let path = self.log_path(tag);
        let work = self.work.entry(tag).or_default();
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

    /// Syncs the symbols of a file. `false`: some could not be kept.
    fn sync(&mut self, receiver: &mut OneWayReceiver, tag: FileTag) -> bool {
        let Some(log) = self.work.get_mut(&tag).and_then(|work| work.log.as_mut()) else {
            return true;
        };
        match log.checkpoint() {
            Ok(()) => {
                if let Some(work) = self.work.get_mut(&tag) {
                    work.is_full = false;
                }
                true
            }
            Err(error) => {
                self.not_kept(receiver, tag, error);
                false
            }
        }
    }

    fn whole(&mut self, receiver: &mut OneWayReceiver, tag: FileTag) {
        let path = self.log_path(tag);
        let Some(file) = receiver.file(tag) else {
            return;
        };
        let announcement = file.announcement().clone();
        let work = self.work.entry(tag).or_default();
        // An empty file has no symbols.
        if work.log.is_none() {
            match SymbolLog::create(&path, &announcement) {
                Ok(log) => work.log = Some(log),
                Err(error) => return self.storage_failed(tag, error),
            }
        }
        if !self.sync(receiver, tag) {
            return;
        }
        let Some(work) = self.work.get_mut(&tag) else {
            return;
        };
        if core::mem::replace(&mut work.is_assembling, true) {
            return;
        }
        work.again_at = None;
        let (target, replace) = (self.target(&announcement), self.plan.replace);
        self.in_thread(move || Done::Assembled(tag, assemble(&path, &target, replace)));
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
        let report_path = has_report.then(|| self.write_report(&report)).flatten();
        (self.tell)(OneWayNews::File {
            verdict,
            report: Box::new(report),
            path,
            report_path,
        });
    }

    fn write_report(&self, report: &OneWayReport) -> Option<PathBuf> {
        let text = report.to_text(&self.plan.preset).ok()?;
        let name = format!("{}{REPORT_SUFFIX}", report.name);
        let path = self.plan.directory.join(name);
        replace(&path, &text).ok().map(|()| path)
    }

    /// Ends the work on a file.
    fn settle(&mut self, receiver: &mut OneWayReceiver, tag: FileTag) {
        receiver.settle(tag);
        if let Some(log) = self.work.remove(&tag).and_then(|work| work.log) {
            drop(fs::remove_file(log.path()));
        }
        self.checkpoint_at.get_or_insert(Instant::START);
    }

    fn take_done(&mut self, now: Instant, receiver: &mut OneWayReceiver) {
        while let Ok(done) = self.done.1.try_recv() {
            match done {
                Done::Compared(tag, Some(true)) => {
                    let path = receiver
                        .file(tag)
                        .map(|file| self.target(file.announcement()));
                    self.tell_file(receiver, tag, OneWayVerdict::Present, path);
                    self.settle(receiver, tag);
                }
                Done::Compared(tag, Some(false)) if !self.plan.replace => {
                    self.tell_file(receiver, tag, OneWayVerdict::Refused, None);
                    self.settle(receiver, tag);
                }
                Done::Compared(..) => {}
                Done::Assembled(tag, outcome) => self.assembled(now, receiver, tag, outcome),
            }
        }
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

    fn checkpoint(&mut self, receiver: &mut OneWayReceiver) {
        let tags: Vec<FileTag> = self.work.keys().copied().collect();
        for tag in tags {
            self.sync(receiver, tag);
        }
        self.remembered.update(receiver, &self.state);
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
            if work.is_told {
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
            self.whole(receiver, tag);
        }
    }

    fn leave(&mut self, receiver: &mut OneWayReceiver) {
        self.checkpoint(receiver);
        let tags: Vec<FileTag> = receiver.files().map(|(tag, _)| tag).collect();
        for tag in tags {
            self.tell_file(receiver, tag, OneWayVerdict::Stopped, None);
        }
    }
}

/// Replaces a small file in one step.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("fulmar-report-new");
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let write = || {
        let mut file = fs::File::create_new(&beside)?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    let written = write();
    if written.is_err() {
        drop(fs::remove_file(&beside));
    }
    written
}

impl Application<OneWayReceiver> for OneWayReceiving {
    fn deliver(&mut self, _now: Instant, machine: &mut OneWayReceiver, event: OneWayEvent) {
        match event {
            OneWayEvent::Announced(tag) => self.announced(machine, tag),
            OneWayEvent::Symbol(tag, block, unit, octets) => {
                if let Some(work) = self.work.get_mut(&tag) {
                    work.is_told = false;
                }
                self.keep(machine, (tag, block, unit), &octets);
            }
            OneWayEvent::Whole(tag) => self.whole(machine, tag),
            // Nothing is said without a way back.
            OneWayEvent::NeedsCounters => {}
            OneWayEvent::Ended(tag) => {
                let is_short = machine.file(tag).is_some_and(|file| file.missing() > 0);
                if is_short {
                    self.sync(machine, tag);
                    self.work.entry(tag).or_default().is_told = true;
                    self.tell_file(machine, tag, OneWayVerdict::Missing, None);
                }
            }
        }
    }

    fn work(&mut self, now: Instant, machine: &mut OneWayReceiver) -> Step {
        self.take_done(now, machine);
        self.put_together_again(now, machine);
        self.look_for_silence(now, machine);
        if self.checkpoint_at.is_some_and(|at| at <= now) {
            // The first of a while comes at once and sets the pace.
            self.checkpoint(machine);
            let is_busy = machine.files().next().is_some();
            self.checkpoint_at = is_busy.then(|| now + self.plan.checkpoint_every);
        }
        if self.stop.is_requested() {
            self.leave(machine);
            return Step::Stop;
        }
        let is_over = matches!(self.last, Some(verdict) if self.plan.once && verdict != OneWayVerdict::Corrupt);
        if is_over {
            self.checkpoint(machine);
            return Step::Stop;
        }
        Step::Wait
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
