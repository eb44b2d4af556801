//! The receiver's machine: proves datagrams, says which symbols are new and needed, and never transmits without a thin way back.

use super::announced_file::AnnouncedFile;
use super::heard::{HeardSenders, STREAMS_MAX};
use super::held::{HeldOutcome, HeldUnits};
use super::report::{BlockReport, OneWayReport};
use super::request::{Asking, Needs, Request, covers, join};
use super::seal::{OneWayCounters, OneWayOpener, OneWayRefusal, OneWaySeal, StreamId};
use super::wire::{Announcement, FileTag, Form, Invitation, Symbol};
use crate::session::PresetKey;
use fulmar_proto::machine::{
    Datagram, Deadline, Ecn, Machine, PathId, Priority, Transmit, TransmitKind,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Files that are being received at once.
const FILES_MAX: usize = 64;
/// Files that were whole, or were refused, and are not looked at again in the same start of their sender.
const SETTLED_MAX: usize = 1_024;
/// Octets of symbols that wait for the first announcement of their file.
const WAITING_BYTES_MAX: usize = 4 << 20;

/// An event for the receiver's application.
#[derive(Clone, Debug, PartialEq)]
pub enum OneWayEvent {
    /// A file was announced for the first time.
    Announced(FileTag),
    /// A symbol came that is needed: its block, unit and octets.
    Symbol(FileTag, u16, u16, Vec<u8>),
    /// All units that a file needs are here.
    Whole(FileTag),
    /// The sender of a file says that it is done. It comes once for each start of a sender.
    Ended(FileTag),
    /// A file made room for another one. What was kept of it is taken up with [`OneWayReceiver::hold`] when it is announced again.
    SetAside(Box<Announcement>),
    /// Counters for requests are used up: [`OneWayReceiver::grant`] is due.
    NeedsCounters,
}

/// A receiver's thin way back.
#[derive(Debug)]
pub struct OneWayReturn {
    /// Seals requests.
    pub seal: OneWaySeal,
    /// The path to the sender and to the other receivers; `None`: the path on which the invitation came.
    pub path: Option<PathId>,
    /// Draws the times of requests.
    pub rng: Rng,
}

/// A symbol whose file was not announced yet.
#[derive(Debug)]
struct WaitingSymbol {
    stream: StreamId,
    content: Vec<u8>,
}

/// The machine that receives files of all who have the key.
pub struct OneWayReceiver {
    opener: OneWayOpener,
    heard: HeardSenders,
    files: BTreeMap<FileTag, AnnouncedFile>,
    settled: VecDeque<(FileTag, StreamId)>,
    waiting: VecDeque<WaitingSymbol>,
    waiting_bytes: usize,
    events: VecDeque<OneWayEvent>,
    refused: BTreeMap<OneWayRefusal, u64>,
    came: u64,
    content: Vec<u8>,
    returns: Option<OneWayReturn>,
    requests: u64,
}

impl core::fmt::Debug for OneWayReceiver {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "OneWayReceiver({} files)", self.files.len())
    }
}

impl OneWayReceiver {
    /// A receiver under `preset`.
    pub const fn new(preset: PresetKey) -> Self {
        Self {
            opener: OneWayOpener::new(preset),
            heard: HeardSenders::new(),
            files: BTreeMap::new(),
            settled: VecDeque::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            events: VecDeque::new(),
            refused: BTreeMap::new(),
            came: 0,
            content: Vec::new(),
            returns: None,
            requests: 0,
        }
    }

    /// A receiver that asks for what it misses, over a thin way back that all receivers share.
    pub fn with_return(preset: PresetKey, returns: OneWayReturn) -> Self {
        let mut receiver = Self::new(preset);
        receiver.returns = Some(returns);
        receiver.events.push_back(OneWayEvent::NeedsCounters);
        receiver
    }

    /// Takes counters, after [`OneWayEvent::NeedsCounters`].
    pub fn grant(&mut self, counters: OneWayCounters) {
        if let Some(returns) = &mut self.returns {
            returns.seal.grant(counters);
        }
    }

    /// Requests that were sent.
    pub const fn requests(&self) -> u64 {
        self.requests
    }

    /// Remembers that counters of a sender below `floor` were heard before.
    pub fn restore_sender(&mut self, sender: u32, floor: u64) {
        self.heard.restore(sender, floor);
    }

    /// For each sender, the counter below which nothing is taken after a restart.
    pub fn floors(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.heard.floors()
    }

    /// Remembers that a file is settled for one start of its sender.
    pub fn restore_settled(&mut self, tag: FileTag, stream: StreamId) {
        if self.settled.len() >= SETTLED_MAX {
            self.settled.pop_front();
        }
        self.settled.push_back((tag, stream));
    }

    /// The files that are settled, each with a start of its sender, the oldest first.
    pub fn settled(&self) -> impl Iterator<Item = (FileTag, StreamId)> + '_ {
        self.settled.iter().copied()
    }

    /// Takes up a file of which units are kept from an earlier start. No event comes of it, unless it is whole. `false`: as many files
    /// are there as can be received at once.
    pub fn restore_file(
        &mut self,
        now: Instant,
        announcement: Announcement,
        units: impl Iterator<Item = (u16, u16)>,
    ) -> bool {
        let Some(layout) = announcement.layout() else {
            return false;
        };
        if self.files.len() >= FILES_MAX {
            return false;
        }
        let (tag, symbol_bytes) = (announcement.tag(), usize::from(layout.symbol_bytes()));
        let mut held = HeldUnits::new(&layout);
        for (block, unit) in units {
            held.take(block, unit, symbol_bytes);
        }
        let is_whole = held.missing() == 0;
        if is_whole {
            self.events.push_back(OneWayEvent::Whole(tag));
        }
        self.files.insert(
            tag,
            AnnouncedFile {
                announcement,
                held,
                streams: BTreeSet::new(),
                ended: BTreeSet::new(),
                heard_at: now,
                is_whole,
                asking: None,
            },
        );
        true
    }

    /// Takes up units that are kept of a file that is being received.
    pub fn hold(&mut self, tag: FileTag, units: impl Iterator<Item = (u16, u16)>) {
        if let Some(file) = self.files.get_mut(&tag) {
            let symbol_bytes = usize::from(file.announcement.symbol_bytes);
            for (block, unit) in units {
                file.held.take(block, unit, symbol_bytes);
            }
            self.note_whole(tag);
        }
    }

    /// A file that is being received.
    pub fn file(&self, tag: FileTag) -> Option<&AnnouncedFile> {
        self.files.get(&tag)
    }

    /// The files that are being received.
    pub fn files(&self) -> impl Iterator<Item = (FileTag, &AnnouncedFile)> {
        self.files.iter().map(|(&tag, file)| (tag, file))
    }

    /// Forgets a unit that could not be kept.
    pub fn forget_unit(&mut self, tag: FileTag, block: u16, unit: u16) {
        if let Some(file) = self.files.get_mut(&tag) {
            file.held.forget(block, unit);
            file.is_whole = file.held.missing() == 0;
        }
    }

    /// Forgets all units of a file, which turned out wrong.
    pub fn forget_units(&mut self, tag: FileTag) {
        if let Some(file) = self.files.get_mut(&tag)
            && let Some(layout) = file.announcement.layout()
        {
            file.held = HeldUnits::new(&layout);
            file.is_whole = file.held.missing() == 0;
        }
    }

    /// Forgets a file. What its senders still send of it in this start is not looked at.
    pub fn settle(&mut self, tag: FileTag) {
        if let Some(file) = self.files.remove(&tag) {
            for stream in file.streams {
                self.restore_settled(tag, stream);
            }
        }
    }

    /// Datagrams that came and were not used, by reason.
    pub fn refused(&self, why: OneWayRefusal) -> u64 {
        self.refused.get(&why).copied().unwrap_or(0)
    }

    /// Datagrams of starts that are not known, with counters that were heard before: recordings, or a sender whose numbers went back.
    pub const fn went_back(&self) -> u64 {
        self.heard.went_back()
    }

    /// Datagrams that came, whatever they were.
    pub const fn came(&self) -> u64 {
        self.came
    }

    /// A report on a file that is being received. Its proof is added by [`OneWayReport::to_text`].
    pub fn report(&self, tag: FileTag) -> Option<OneWayReport> {
        let file = self.files.get(&tag)?;
        let counts = file.streams.iter().map(|&stream| self.heard.count(stream));
        let (came, lost) = counts.fold((0, 0), |(came, lost), count| {
            (came + count.0, lost + count.1)
        });
        let blocks = file
            .held
            .needs()
            .map(|(block, sources, missing, next)| BlockReport {
                block,
                sources,
                missing,
                next,
            });
        Some(OneWayReport::new(
            &file.announcement,
            (came, lost),
            blocks.collect(),
        ))
    }

    fn refuse(&mut self, why: OneWayRefusal) {
        *self.refused.entry(why).or_default() += 1;
    }

    fn is_settled(&self, tag: FileTag, stream: StreamId) -> bool {
        self.settled.contains(&(tag, stream))
    }

    /// Makes room for another file: the one that was heard longest ago goes. One that has all its symbols stays.
    fn make_room(&mut self) -> Result<(), OneWayRefusal> {
        if self.files.len() < FILES_MAX {
            return Ok(());
        }
        let short = self.files.iter().filter(|(_, file)| !file.is_whole);
        let oldest = short.min_by_key(|(_, file)| file.heard_at);
        let oldest = oldest.map(|(&tag, _)| tag).ok_or(OneWayRefusal::Full)?;
        if let Some(file) = self.files.remove(&oldest) {
            let event = OneWayEvent::SetAside(Box::new(file.announcement));
            self.events.push_back(event);
        }
        Ok(())
    }

    fn on_announcement(
        &mut self,
        now: Instant,
        (stream, path): (StreamId, PathId),
        announcement: Announcement,
    ) -> Result<(), OneWayRefusal> {
        let tag = announcement.tag();
        if self.is_settled(tag, stream) {
            return Ok(());
        }
        let is_last = announcement.is_last;
        let asks = announcement.asks;
        if let Some(file) = self.files.get_mut(&tag) {
            if !file.announcement.is_of_same_file(&announcement) {
                return Err(OneWayRefusal::Content);
            }
            // The promise of the latest round counts.
            file.announcement = announcement;
            file.note(now, stream);
        } else {
            let layout = announcement.layout().ok_or(OneWayRefusal::Content)?;
            self.make_room()?;
            let held = HeldUnits::new(&layout);
            let file = AnnouncedFile {
                is_whole: false,
                held,
                streams: BTreeSet::from([stream]),
                ended: BTreeSet::new(),
                heard_at: now,
                asking: None,
                announcement,
            };
            self.files.insert(tag, file);
            self.events.push_back(OneWayEvent::Announced(tag));
            self.take_waiting(now, tag);
            self.note_whole(tag);
        }
        if let Some(invitation) = asks {
            self.on_invitation(now, tag, (stream, path), invitation);
        }
        if is_last
            && let Some(file) = self.files.get_mut(&tag)
            && file.ended.len() < STREAMS_MAX
            && file.ended.insert(stream)
        {
            self.events.push_back(OneWayEvent::Ended(tag));
        }
        Ok(())
    }

    /// Draws the time at which to ask for what a file lacks.
    fn on_invitation(
        &mut self,
        now: Instant,
        tag: FileTag,
        (stream, path): (StreamId, PathId),
        invitation: Invitation,
    ) {
        let Some((returns, file)) = self.returns.as_mut().zip(self.files.get_mut(&tag)) else {
            return;
        };
        if file.held.missing() == 0 {
            return;
        }
        // The last try to have some may have failed, for want of room on the disk.
        if returns.seal.left() == 0 {
            self.events.push_back(OneWayEvent::NeedsCounters);
        }
        let spread = u64::try_from(invitation.spread().as_nanos()).unwrap_or(u64::MAX);
        let after = Duration::from_nanos(returns.rng.below(spread.max(1)));
        file.asking = Some(Asking {
            stream,
            path,
            number: invitation.number,
            at: Some(now + after),
            heard: Needs::new(),
        });
    }

    /// Another receiver's request: what it asks for comes here as well.
    fn on_request(&mut self, request: &Request) {
        let Some(file) = self.files.get_mut(&request.file) else {
            return;
        };
        let is_asking = file
            .asking
            .as_ref()
            .is_some_and(|asking| asking.at.is_some());
        if !is_asking {
            return;
        }
        let needs = file.needs();
        if let Some(asking) = &mut file.asking
            && (asking.stream, asking.number) == (request.stream, request.number)
        {
            join(&mut asking.heard, &request.needs);
            if covers(&asking.heard, &needs) {
                asking.at = None;
            }
        }
    }

    /// Writes a request that is due, if any, and says where it goes: along the path of the invitation, unless there is one for all.
    fn ask(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<(usize, PathId)> {
        let returns = self.returns.as_mut()?;
        for (&tag, file) in &mut self.files {
            let at = file.asking.as_ref().and_then(|asking| asking.at);
            if at.is_none_or(|at| at > now) {
                continue;
            }
            let needs = file.needs();
            let Some(asking) = &mut file.asking else {
                continue;
            };
            asking.at = None;
            let path = returns.path.unwrap_or(asking.path);
            if needs.is_empty() {
                continue;
            }
            let request = Request {
                file: tag,
                stream: asking.stream,
                number: asking.number,
                needs,
            };
            let written = returns.seal.seal(Form::Request, out, |out| {
                request.write(out);
                Ok::<(), core::convert::Infallible>(())
            });
            if let Ok(Some(len)) = written {
                self.requests += 1;
                if returns.seal.left() == 0 {
                    self.events.push_back(OneWayEvent::NeedsCounters);
                }
                return Some((len, path));
            }
        }
        None
    }

    /// Takes the symbols that waited for this file's announcement.
    fn take_waiting(&mut self, now: Instant, tag: FileTag) {
        let waiting = core::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        for WaitingSymbol { stream, content } in waiting {
            match Symbol::read(&content) {
                Some(symbol) if symbol.file == tag => {
                    if let Err(why) = self.on_symbol(now, stream, symbol) {
                        self.refuse(why);
                    }
                }
                _ => self.keep_waiting(stream, content),
            }
        }
    }

    /// Keeps a symbol until its file is announced; the oldest ones go where there is no room.
    fn keep_waiting(&mut self, stream: StreamId, content: Vec<u8>) {
        self.waiting_bytes += content.len();
        self.waiting.push_back(WaitingSymbol { stream, content });
        while self.waiting_bytes > WAITING_BYTES_MAX
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.waiting_bytes -= oldest.content.len();
        }
    }

    fn on_symbol(
        &mut self,
        now: Instant,
        stream: StreamId,
        symbol: Symbol<'_>,
    ) -> Result<(), OneWayRefusal> {
        let tag = symbol.file;
        let Some(file) = self.files.get_mut(&tag) else {
            return Ok(());
        };
        file.note(now, stream);
        match file
            .held
            .take(symbol.block, symbol.unit, symbol.octets.len())
        {
            HeldOutcome::Taken => {
                let octets = symbol.octets.to_vec();
                let event = OneWayEvent::Symbol(tag, symbol.block, symbol.unit, octets);
                self.events.push_back(event);
                self.note_whole(tag);
                Ok(())
            }
            HeldOutcome::Surplus => Ok(()),
            HeldOutcome::Outside => Err(OneWayRefusal::Content),
        }
    }

    fn note_whole(&mut self, tag: FileTag) {
        if let Some(file) = self.files.get_mut(&tag)
            && file.held.missing() == 0
            && !file.is_whole
        {
            file.is_whole = true;
            self.events.push_back(OneWayEvent::Whole(tag));
        }
    }

    fn take(
        &mut self,
        now: Instant,
        (path, datagram): (PathId, &[u8]),
        content: &mut Vec<u8>,
    ) -> Result<(), OneWayRefusal> {
        let opened = self.opener.open(datagram, content)?;
        self.heard.take(opened.stream, opened.counter)?;
        match opened.form {
            Form::Announcement => {
                let announcement = Announcement::read(content).ok_or(OneWayRefusal::Content)?;
                self.on_announcement(now, (opened.stream, path), announcement)
            }
            Form::Request => {
                let request = Request::read(content).ok_or(OneWayRefusal::Content)?;
                self.on_request(&request);
                Ok(())
            }
            Form::Symbol => {
                let symbol = Symbol::read(content).ok_or(OneWayRefusal::Content)?;
                if self.is_settled(symbol.file, opened.stream) {
                    return Ok(());
                }
                if self.files.contains_key(&symbol.file) {
                    self.on_symbol(now, opened.stream, symbol)
                } else {
                    self.keep_waiting(opened.stream, content.clone());
                    Ok(())
                }
            }
        }
    }
}

impl Machine for OneWayReceiver {
    type Event = OneWayEvent;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.came += 1;
        let mut content = core::mem::take(&mut self.content);
        if let Err(why) = self.take(now, (datagram.path, datagram.octets), &mut content) {
            self.refuse(why);
        }
        self.content = content;
    }

    fn handle_deadline(&mut self, _now: Instant) {}

    /// Without a way back nothing is ever sent.
    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let (len, path) = self.ask(now, out)?;
        Some(Transmit {
            path,
            len,
            kind: TransmitKind::Control,
            priority: Priority::default(),
            ecn: Ecn::NotCapable,
        })
    }

    fn poll_event(&mut self) -> Option<OneWayEvent> {
        self.events.pop_front()
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let asking = self
            .files
            .values()
            .filter_map(|file| file.asking.as_ref()?.at);
        asking.min().map(|at| Deadline {
            at,
            why: "a request of a receiver",
        })
    }
}

#[cfg(test)]
mod tests;
