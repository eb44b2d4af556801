//! The application around a receiver: symbols on the disk, files out of them, reports, and what is remembered between starts.

use super::announced_file::AnnouncedFile;
use super::assembly::{Assembled, assemble, is_there};
use super::news::{OneWayNews, OneWayReceivePlan, OneWayVerdict};
use super::receiver::{OneWayEvent, OneWayReceiver};
use super::remembered::Remembered;
use super::report::{OneWayReport, REPORT_SUFFIX};
use super::seal::OneWayRefusal;
use super::symbol_log::SymbolLog;
use super::wire::{Announcement, FileTag};
use crate::session::{StateDirectory, StateFileError};
use crate::transfer::{Stop, check_name};
use crate::udp::{Application, Step};
use crate::wait::Waker;
use fulmar_proto::machine::{Deadline, PathId};
use fulmar_proto::units::{Duration, Instant};
use std::cmp::Reverse;
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

/// Datagrams that no key of ours opens before that is said.
const OTHER_KEY_FROM: u64 = 10;
/// Datagrams of unknown starts with old numbers before that is said. Late ones of a start that was forgotten are fewer.
const WENT_BACK_FROM: u64 = 10;

/// The result of a thread's work on a file.
enum FileWorkResult {
    Compared(FileTag, Option<bool>),
    Assembled(FileTag, Assembled),
}

#[derive(Debug, Default)]
struct FileWork {
    log: Option<SymbolLog>,
    /// Whether a thread puts it together.
    is_assembling: bool,
    /// The time at which another try is made.
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
    done: (Sender<FileWorkResult>, Receiver<FileWorkResult>),
    /// Whether it was said that a sender has another key, or that one's numbers went back.
    is_other_key_told: bool,
    is_going_back_told: bool,
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
            is_other_key_told: false,
            is_going_back_told: false,
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
            if self.log_path(tag) != path || check_name(&announcement.name).is_err() {
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
            check_name(&announcement.name).is_ok() && !announcement.name.contains(REPORT_SUFFIX);
        if !is_safe {
            self.tell_file(receiver, tag, OneWayVerdict::Refused, None);
            return self.settle(receiver, tag);
        }
        (self.tell)(OneWayNews::Announced(announcement.clone()));
        self.take_up(receiver, &announcement);
        let path = self.target(&announcement);
        if fs::symlink_metadata(&path).is_ok() {
            self.in_thread(move || FileWorkResult::Compared(tag, is_there(&path, &announcement)));
        }
    }

    /// Goes on with the log of a file that had made room for another one.
    fn take_up(&mut self, receiver: &mut OneWayReceiver, announcement: &Announcement) {
        let tag = announcement.tag();
        let path = self.log_path(tag);
        if !path.exists() {
            return;
        }
        let Ok(Some((log, content))) = SymbolLog::reopen(&path) else {
            return;
        };
        if content.announcement.is_of_same_file(announcement) {
            receiver.hold(tag, content.places());
            self.work.entry(tag).or_default().log = Some(log);
        }
    }

    /// Ends the work on a file that made room for another one. Its log stays.
    fn set_aside(&mut self, receiver: &mut OneWayReceiver, announcement: Announcement) {
        let tag = announcement.tag();
        // Whatever cannot be written comes again, or does not.
        self.sync(receiver, tag);
        self.work.remove(&tag);
        (self.tell)(OneWayNews::SetAside(announcement));
    }

    /// Runs `work` in a thread, whose result wakes the loop.
    fn in_thread(&self, work: impl FnOnce() -> FileWorkResult + Send + 'static) {
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
        if missing > 0 {
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
        let is_synced = self.sync(receiver, tag);
        let Some(work) = self.work.get_mut(&tag) else {
            return;
        };
        if !is_synced {
            work.again_at = Some(now + RETRY_AFTER);
            return;
        }
        if core::mem::replace(&mut work.is_assembling, true) {
            return;
        }
        let (target, replace) = (self.target(&announcement), self.plan.replace);
        self.in_thread(move || FileWorkResult::Assembled(tag, assemble(&path, &target, replace)));
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
                    self.assembled(now, receiver, tag, outcome)
                }
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
            Assembled::Short => self.log_is_short(now, receiver, tag),
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

    /// Goes on with what a log still has.
    fn log_is_short(&mut self, now: Instant, receiver: &mut OneWayReceiver, tag: FileTag) {
        let found = SymbolLog::reopen(&self.log_path(tag)).ok().flatten();
        let work = self.work.entry(tag).or_default();
        work.log = None;
        work.is_told = false;
        receiver.forget_units(tag);
        if let Some((log, content)) = found {
            work.log = Some(log);
            receiver.hold(tag, content.places());
        }
        let Some(file) = receiver.file(tag) else {
            return;
        };
        let missing = file.missing();
        let news = OneWayNews::Damaged(file.announcement().clone(), missing);
        (self.tell)(news);
        if missing == 0 {
            work.again_at = Some(now + RETRY_AFTER);
        }
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
            self.whole(now, receiver, tag);
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
        self.look_for_strangers(machine);
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

#[cfg(test)]
mod tests {
    use super::super::wire::OneWayPromise;
    use super::*;
    use crate::session::{Entropy, PresetKey};
    use fulmar_proto::units::Probability;
    use std::cell::RefCell;
    use std::rc::Rc;

    const OCTETS: &[u8; 10] = b"0123456789";

    fn announcement() -> Announcement {
        Announcement {
            name: "file".to_owned(),
            size: OCTETS.len() as u64,
            digest: *blake3::hash(OCTETS).as_bytes(),
            symbol_bytes: 2,
            promise: OneWayPromise {
                loss: Probability::ZERO,
                residual: Probability::ZERO,
                units: 0,
            },
            is_last: false,
            asks: None,
        }
    }

    /// Makes a log of so many units in the directory of the files.
    fn log(directory: &Path, announcement: &Announcement, units: usize) -> PathBuf {
        let work = directory.join(WORK_DIRECTORY);
        if !work.exists() {
            drop(StateDirectory::open(&work).expect("it is made"));
        }
        let path = work.join(format!("{}.{LOG_SUFFIX}", announcement.tag()));
        let mut log = SymbolLog::create(&path, announcement).expect("it is made");
        for (unit, octets) in (0..).zip(OCTETS.chunks(2)).take(units) {
            log.append(0, unit, octets).expect("there is room");
        }
        log.checkpoint().expect("there is room");
        path
    }

    type Told = Rc<RefCell<Vec<String>>>;

    fn open(directory: &Path) -> (OneWayReceiver, OneWayReceiving, Told) {
        let told = Told::default();
        let heard = Rc::clone(&told);
        let plan = OneWayReceivePlan {
            directory: directory.to_owned(),
            preset: PresetKey::generate(&mut Entropy::from_seed([1; 32])),
            replace: false,
            once: true,
            checkpoint_every: Duration::from_secs(1),
            give_up: Duration::from_secs(30),
        };
        let (waker, _) = crate::wait::waker().expect("a waker");
        let tell = move |news| heard.borrow_mut().push(format!("{news:?}"));
        let opened = OneWayReceiving::open(
            Instant::START,
            plan,
            (Stop::default(), waker),
            Box::new(tell),
        );
        let (receiver, receiving) = opened.expect("it opens");
        (receiver, receiving, told)
    }

    #[test]
    fn a_file_whose_last_symbols_could_not_be_kept_is_not_put_together() {
        let place = tempfile::tempdir().expect("a directory");
        let path = log(place.path(), &announcement(), 5);
        let tag = announcement().tag();
        let (mut receiver, mut receiving, _) = open(place.path());
        receiver.forget_unit(tag, 0, 4);
        receiving.deliver(Instant::START, &mut receiver, OneWayEvent::Whole(tag));
        assert!(!receiving.work[&tag].is_assembling);
        assert!(path.exists());
        assert_eq!(receiver.file(tag).map(AnnouncedFile::missing), Some(1));
    }

    #[test]
    fn a_file_whose_log_cannot_be_made_is_tried_again() {
        let place = tempfile::tempdir().expect("a directory");
        let (mut receiver, mut receiving, told) = open(place.path());
        let empty = Announcement {
            size: 0,
            digest: *blake3::hash(b"").as_bytes(),
            ..announcement()
        };
        let tag = empty.tag();
        receiver.restore_file(Instant::START, empty, [].into_iter());
        let path = receiving.log_path(tag);
        fs::create_dir(&path).expect("it is ours");
        receiving.deliver(Instant::START, &mut receiver, OneWayEvent::Whole(tag));
        assert!(told.borrow()[0].contains("Storage"), "{told:?}");
        assert_eq!(
            receiving.work[&tag].again_at,
            Some(Instant::START + RETRY_AFTER)
        );
        fs::remove_dir(&path).expect("it is ours");
        receiving.put_together_again(Instant::START + RETRY_AFTER, &mut receiver);
        assert!(receiving.work[&tag].is_assembling);
    }

    #[test]
    fn a_log_that_became_shorter_keeps_what_it_has() {
        let place = tempfile::tempdir().expect("a directory");
        let path = log(place.path(), &announcement(), 5);
        let tag = announcement().tag();
        let (mut receiver, mut receiving, told) = open(place.path());
        let mut octets = fs::read(&path).expect("it is there");
        *octets.last_mut().expect("it has some") ^= 1;
        fs::write(&path, octets).expect("it is ours");
        receiving.assembled(Instant::START, &mut receiver, tag, Assembled::Short);
        assert_eq!(receiver.file(tag).map(AnnouncedFile::missing), Some(1));
        assert!(
            path.exists() && told.borrow()[1].contains("Damaged"),
            "{told:?}"
        );
        // The one that is missing makes it whole.
        receiver.hold(tag, [(0, 4)].into_iter());
        receiving.keep(&mut receiver, (tag, 0, 4), b"89");
        receiving.whole(Instant::START, &mut receiver, tag);
        let result = receiving.done.1.recv().expect("a thread works on it");
        assert!(matches!(
            result,
            FileWorkResult::Assembled(_, Assembled::Done(_))
        ));
    }

    #[test]
    fn a_file_that_made_room_goes_on_with_its_log_when_it_is_announced_again() {
        let place = tempfile::tempdir().expect("a directory");
        let (mut receiver, mut receiving, told) = open(place.path());
        let path = log(place.path(), &announcement(), 3);
        let tag = announcement().tag();
        receiver.restore_file(Instant::START, announcement(), [].into_iter());
        receiving.deliver(Instant::START, &mut receiver, OneWayEvent::Announced(tag));
        assert_eq!(receiver.file(tag).map(AnnouncedFile::missing), Some(2));
        let event = OneWayEvent::SetAside(Box::new(announcement()));
        receiving.deliver(Instant::START, &mut receiver, event);
        assert!(path.exists() && !receiving.work.contains_key(&tag));
        assert!(told.borrow()[1].contains("SetAside"), "{told:?}");
    }
}
