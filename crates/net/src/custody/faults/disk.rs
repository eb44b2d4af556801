//! A disk in memory on which any call fails, dies or is cut short, and that forgets what was not synced.
//!
//! - *Kill*: the call that is running when the process dies is done in part; what was written stays.
//! - *Power cut*: names go back to some moment since they were synced, since file systems keep the order of
//!   names. Of a file's unsynced writes any of their sectors may be on the disk, of its cuts any. A sector
//!   is written whole: the part of one that a kill left is brought to the disk by a sync alone.

use crate::custody::disk::{Disk, DiskFile};
use crate::custody::segment;
use fulmar_proto::rng::Rng;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard};

const SECTOR_BYTES: usize = 512;

/// A fault injected into one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The call fails, and did nothing.
    Fails(Errno),
    /// The call fails, and has done its work.
    FailsLate(Errno),
    /// A read or write does a part of its work, and the next call fails.
    Short(Errno),
    /// The process dies in the call.
    Dies,
}

/// Octets that were taken away: what a file held before, and holds after.
#[derive(Debug)]
pub(super) struct Destroyed {
    pub(super) name: String,
    pub(super) before: Vec<u8>,
    pub(super) after: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Change {
    Write(usize, Vec<u8>),
    Len(usize),
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write(place, octets) => {
                let end = place + octets.len();
                content.resize(content.len().max(end), 0);
                content[*place..end].copy_from_slice(octets);
            }
            Self::Len(len) => content.resize(*len, 0),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Inode {
    name: String,
    content: Vec<u8>,
    synced: Vec<u8>,
    changes: Vec<Change>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Names {
    files: BTreeMap<String, usize>,
    aside: BTreeMap<String, usize>,
}

#[derive(Debug)]
struct State {
    rng: Rng,
    inodes: Vec<Inode>,
    names: Names,
    /// The names at the last sync, and those after each change since.
    moments: Vec<Names>,
    calls: u64,
    plan: Option<(u64, Fault)>,
    fired: Option<u64>,
    fired_among_deletions: bool,
    fired_at_reading: bool,
    is_dead: bool,
    capacity: usize,
    destroyed: Vec<Destroyed>,
}

/// The disk; clones are the same one.
#[derive(Clone, Debug)]
pub(super) struct SimulatedDisk(Arc<Mutex<State>>);

#[derive(Debug)]
struct File {
    disk: SimulatedDisk,
    inode: usize,
}

/// The part of its work that a call does, and its end.
enum Todo {
    All,
    /// All of it, and then fail.
    AllAndFail(Errno),
    Part,
    PartAndDie,
}

impl SimulatedDisk {
    pub(super) fn new(rng: Rng) -> Self {
        Self(Arc::new(Mutex::new(State {
            rng,
            inodes: Vec::new(),
            names: Names::default(),
            moments: vec![Names::default()],
            calls: 0,
            plan: None,
            fired: None,
            fired_among_deletions: false,
            fired_at_reading: false,
            is_dead: false,
            capacity: usize::MAX,
            destroyed: Vec::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// A new process: from now on, call `after` meets `fault`.
    pub(super) fn revive(&self, plan: Option<(u64, Fault)>) {
        let mut state = self.state();
        state.is_dead = false;
        state.calls = 0;
        state.fired = None;
        state.fired_among_deletions = false;
        state.fired_at_reading = false;
        state.plan = plan;
    }

    pub(super) fn is_dead(&self) -> bool {
        self.state().is_dead
    }

    /// Whether the fault has come, in this life.
    pub(super) fn has_fired(&self) -> bool {
        self.state().fired.is_some()
    }

    /// Whether it came at the deletion of a file when another of the same flow was deleted just before.
    pub(super) fn has_fired_among_deletions(&self) -> bool {
        self.state().fired_among_deletions
    }

    /// Whether it came at a call that reads: names, lengths or octets. A store that cannot read takes files for damaged.
    pub(super) fn has_fired_at_reading(&self) -> bool {
        self.state().fired_at_reading
    }

    pub(super) fn set_capacity(&self, octets: usize) {
        self.state().capacity = octets;
    }

    pub(super) fn take_destroyed(&self) -> Vec<Destroyed> {
        core::mem::take(&mut self.state().destroyed)
    }

    /// Cuts the power, and brings it back.
    pub(super) fn power_cut(&self) {
        let mut state = self.state();
        let State {
            rng,
            inodes,
            names,
            moments,
            ..
        } = &mut *state;
        let moment = usize::try_from(rng.below(moments.len() as u64)).unwrap();
        *names = moments.swap_remove(moment);
        *moments = vec![names.clone()];
        for inode in inodes {
            let mut content = core::mem::take(&mut inode.synced);
            let share = [0.0, 0.3, 0.8, 1.0][usize::try_from(rng.below(4)).unwrap()];
            for change in inode.changes.drain(..) {
                match &change {
                    Change::Len(_) if rng.chance(share) => change.apply(&mut content),
                    Change::Len(_) => {}
                    Change::Write(place, octets) => {
                        for (at, piece) in sectors(*place, octets) {
                            if rng.chance(share) {
                                Change::Write(at, piece.to_vec()).apply(&mut content);
                            }
                        }
                    }
                }
            }
            inode.content.clone_from(&content);
            inode.synced = content;
        }
    }

    /// Flips a bit of some file, on the disk as well, and names the file.
    pub(super) fn flip(&self) -> Option<String> {
        let mut state = self.state();
        let State {
            rng, inodes, names, ..
        } = &mut *state;
        let nth = usize::try_from(rng.below((names.files.len() as u64).max(1))).unwrap();
        let (name, inode) = names.files.iter().nth(nth)?;
        let inode = &mut inodes[*inode];
        let bits = inode.content.len() as u64 * 8;
        let bit = usize::try_from(rng.below(bits.max(1))).unwrap();
        let (octet, bit) = (bit / 8, 1 << (bit % 8));
        *inode.content.get_mut(octet)? ^= bit;
        if let Some(synced) = inode.synced.get_mut(octet) {
            *synced ^= bit;
        }
        Some(name.clone())
    }

    fn call<T>(&self, work: impl FnOnce(&mut State, &Todo) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.state();
        if state.is_dead {
            return Err(io::Error::other("the process is dead"));
        }
        state.calls += 1;
        let calls = state.calls;
        let fault = state.plan.take_if(|(at, _)| *at <= calls);
        if fault.is_some() {
            state.fired = Some(calls);
        }
        let todo = match fault {
            None => Todo::All,
            Some((_, Fault::Fails(errno))) => return Err(errno.into()),
            Some((_, Fault::FailsLate(errno))) => Todo::AllAndFail(errno),
            Some((_, Fault::Short(errno))) => {
                state.plan = Some((calls + 1, Fault::Fails(errno)));
                Todo::Part
            }
            Some((_, Fault::Dies)) => Todo::PartAndDie,
        };
        let done = work(&mut state, &todo);
        match todo {
            Todo::AllAndFail(errno) => Err(errno.into()),
            Todo::PartAndDie => {
                state.is_dead = true;
                Err(io::Error::other("the process is killed"))
            }
            Todo::All | Todo::Part => done,
        }
    }

    /// Makes a call that reads.
    fn reading<T>(&self, call: impl FnOnce(&Self) -> io::Result<T>) -> io::Result<T> {
        let fired = self.state().fired;
        let done = call(self);
        let mut state = self.state();
        state.fired_at_reading |= state.fired != fired;
        done
    }

    /// Makes a call that is done as a whole or not at all.
    fn whole<T>(&self, work: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        self.call(|state, todo| {
            if matches!(todo, Todo::PartAndDie) && state.rng.chance(0.5) {
                return Err(io::Error::other("not done"));
            }
            work(state)
        })
    }
}

fn sectors(place: usize, octets: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    core::iter::from_fn(move || {
        let rest = octets.get(at..).filter(|rest| !rest.is_empty())?;
        let here = place + at;
        let len = rest.len().min(SECTOR_BYTES - here % SECTOR_BYTES);
        at += len;
        Some((here, &rest[..len]))
    })
}

impl State {
    fn find(&self, name: &str) -> io::Result<usize> {
        let found = self.names.files.get(name).copied();
        found.ok_or_else(|| Errno::NOENT.into())
    }

    fn moved(&mut self) {
        self.moments.push(self.names.clone());
    }

    fn room(&self) -> usize {
        let held = self.names.files.values().chain(self.names.aside.values());
        let used: usize = held.map(|inode| self.inodes[*inode].content.len()).sum();
        self.capacity.saturating_sub(used)
    }

    fn destroy(&mut self, inode: usize, after: &[u8]) {
        let inode = &self.inodes[inode];
        self.destroyed.push(Destroyed {
            name: inode.name.clone(),
            before: inode.content.clone(),
            after: after.to_vec(),
        });
    }

    /// Whether a file of the flow that `name` belongs to was deleted since the history looked last.
    fn has_deleted_of_flow(&self, name: &str) -> bool {
        let flow = segment::flow_of(name);
        let mut deleted = self.destroyed.iter().filter(|gone| gone.after.is_empty());
        deleted.any(|gone| segment::flow_of(&gone.name) == flow)
    }

    fn change(&mut self, inode: usize, change: Change) {
        let inode = &mut self.inodes[inode];
        change.apply(&mut inode.content);
        inode.changes.push(change);
    }
}

impl Disk for SimulatedDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        self.reading(|disk| disk.whole(|state| Ok(state.names.files.keys().cloned().collect())))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let inode = self.whole(|state| {
            if state.find(name).is_ok() {
                return Err(Errno::EXIST.into());
            }
            let inode = state.inodes.len();
            state.inodes.push(Inode {
                name: name.to_owned(),
                ..Inode::default()
            });
            state.names.files.insert(name.to_owned(), inode);
            state.moved();
            Ok(inode)
        })?;
        let disk = self.clone();
        Ok(Arc::new(File { disk, inode }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let inode = self.reading(|disk| disk.whole(|state| state.find(name)))?;
        let disk = self.clone();
        Ok(Arc::new(File { disk, inode }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let had_fired = self.has_fired();
        let is_among = self.state().has_deleted_of_flow(name);
        let removed = self.whole(|state| {
            let inode = state.find(name)?;
            state.destroy(inode, &[]);
            state.names.files.remove(name);
            state.moved();
            Ok(())
        });
        let fired = !had_fired && self.has_fired();
        self.state().fired_among_deletions |= fired && is_among;
        removed
    }

    fn sync_names(&self) -> io::Result<()> {
        self.whole(|state| {
            state.moments = vec![state.names.clone()];
            Ok(())
        })
    }

    fn set_aside(&self, name: &str, aside: &str) -> io::Result<u64> {
        self.whole(|state| {
            let inode = state.find(name)?;
            if state.names.aside.contains_key(aside) {
                return Err(Errno::EXIST.into());
            }
            state.names.files.remove(name);
            state.names.aside.insert(aside.to_owned(), inode);
            state.moved();
            Ok(state.inodes[inode].content.len() as u64)
        })
    }

    fn list_aside(&self) -> io::Result<Vec<(String, u64)>> {
        self.whole(|state| {
            let files = state.names.aside.iter();
            let len = |inode: &usize| state.inodes[*inode].content.len() as u64;
            Ok(files
                .map(|(name, inode)| (name.clone(), len(inode)))
                .collect())
        })
    }

    fn remove_aside(&self, aside: &str) -> io::Result<()> {
        panic!("{aside} is removed below the bound")
    }
}

impl DiskFile for File {
    fn write_at(&self, pieces: &[IoSlice<'_>], place: u64) -> io::Result<usize> {
        self.disk.call(|state, todo| {
            let mut octets = Vec::new();
            for piece in pieces {
                octets.extend_from_slice(piece);
            }
            let place = usize::try_from(place).unwrap();
            let offered = octets.len();
            if matches!(todo, Todo::Part | Todo::PartAndDie) {
                octets.truncate(usize::try_from(state.rng.below(offered as u64)).unwrap());
            }
            let grows = (place + octets.len())
                .saturating_sub(state.inodes[self.inode].content.len().max(place));
            let missing = grows.saturating_sub(state.room());
            octets.truncate(octets.len() - missing);
            if octets.is_empty() && offered > 0 && missing > 0 {
                return Err(Errno::NOSPC.into());
            }
            // A write of nothing would mean a full device; a part has an octet at least.
            if octets.is_empty() && matches!(todo, Todo::Part) {
                return Err(Errno::INTR.into());
            }
            let written = octets.len();
            let is_torn = written < offered && place % SECTOR_BYTES + offered <= SECTOR_BYTES;
            state.change(self.inode, Change::Write(place, octets));
            if is_torn {
                state.inodes[self.inode].changes.pop();
            }
            Ok(written)
        })
    }

    fn read_at(&self, into: &mut [u8], place: u64) -> io::Result<usize> {
        let read = |state: &mut State, todo: &Todo| {
            let content = &state.inodes[self.inode].content;
            let place = usize::try_from(place).unwrap();
            let rest = content.get(place..).unwrap_or(&[]);
            let mut len = rest.len().min(into.len());
            if matches!(todo, Todo::Part) {
                len = len.div_ceil(2);
            }
            into[..len].copy_from_slice(&rest[..len]);
            Ok(len)
        };
        self.disk.reading(|disk| disk.call(read))
    }

    fn len(&self) -> io::Result<u64> {
        let len = |state: &mut State| Ok(state.inodes[self.inode].content.len() as u64);
        self.disk.reading(|disk| disk.whole(len))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.whole(|state| {
            let len = usize::try_from(len).unwrap();
            let content = &state.inodes[self.inode].content;
            if len < content.len() {
                let after = content[..len].to_vec();
                state.destroy(self.inode, &after);
            }
            state.change(self.inode, Change::Len(len));
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.whole(|state| {
            let inode = &mut state.inodes[self.inode];
            inode.changes.clear();
            inode.synced.clone_from(&inode.content);
            Ok(())
        })
    }
}
