//! The application around a receiver: symbols on the disk, files out of them, reports, and what is remembered between starts.

mod completion;
mod logs;
mod storing;
mod telling;

use super::counters::CounterFile;
use super::disk_worker::DiskWorker;
use super::file_work::{FileWork, FileWorkResult, ReadingNumber};
use super::news::{OneWayNews, OneWayReceivePlan, OneWayVerdict, ThinReturnPlan};
use super::receiver::{OneWayEvent, OneWayReceiver};
use super::remembered::Remembered;
use super::wire::{Announcement, FileTag};
use crate::session::{StateDirectory, StateFileError};
use crate::transfer::Stop;
use crate::udp::{Application, Step};
use crate::wait::Waker;
use fulmar_proto::machine::{Deadline, PathId};
use fulmar_proto::units::{Duration, Instant};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The directory for symbols and what is remembered, within that of the files.
const WORK_DIRECTORY: &str = ".fulmar-one-way";
const LOG_SUFFIX: &str = "symbols";
/// The pause before a file is put together again whose disk was full.
const RETRY_AFTER: Duration = Duration::from_secs(10);

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

    /// Ends the work on a file that made room for another one. Its log stays.
    fn set_aside(&mut self, receiver: &mut OneWayReceiver, announcement: Announcement) {
        let tag = announcement.tag();
        // Whatever cannot be written comes again, or does not.
        self.write(receiver, tag);
        self.work.remove(&tag);
        (self.tell)(OneWayNews::SetAside(announcement));
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

    fn leave(&mut self, now: Instant, receiver: &mut OneWayReceiver) {
        self.save(now, receiver);
        let tags: Vec<FileTag> = receiver.files().map(|(tag, _)| tag).collect();
        for tag in tags {
            self.tell_file(receiver, tag, OneWayVerdict::Stopped, None);
        }
    }
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
