//! The finds of a store at its start: flows that go on, and flows that cannot.
//!
//! A flow's segments are taken up in order for as long as each begins where the one before ended. Segments that
//! come after damage or a gap are set aside. Octets before it are good, and the flow goes on to their end, which is
//! then no clean one.

use super::disk::{self, DiskFile};
use super::error::StoreError;
use super::extent::Segment;
use super::flow::{Files, FlowStore, Shared};
use super::segment::{
    self, FORMAT, FoundHeader, HEADER_BYTES, Header, Layout, NoHeader, NoRecord, PAYLOAD_BYTES_MAX,
};
use core::fmt;
use fulmar_proto::splice::FlowId;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// The content of a store when it was opened.
#[derive(Debug, Default)]
pub struct Recovery {
    /// Flows that go on, in the order of their names.
    pub flows: Vec<Recovered>,
    /// Flows of which nothing is left. Their files are set aside.
    pub damaged: Vec<Damaged>,
}

/// A flow that goes on.
#[derive(Debug)]
pub struct Recovered {
    /// Its octets, record and end.
    pub store: FlowStore,
    /// Octets of its file after the last whole record, of an append that did not return or that a power cut
    /// cut short. They were cut off.
    pub torn_bytes: u64,
    /// The damage at which it ends, without a clean end. The damaged files are set aside, at once or when the
    /// octets before them are no longer needed.
    pub damage: Option<Damaged>,
}

/// A flow that was damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// Its name.
    pub flow: FlowId,
    /// The driver's record of it, if that can be read.
    pub record: Option<Vec<u8>>,
    /// The file, and the fault in it.
    pub why: String,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "custody of flow {} is damaged and ends: {}",
            self.flow, self.why
        )
    }
}

/// A file of a flow, read.
struct Found {
    name: String,
    file: Arc<dyn DiskFile>,
    header: Header,
    slot: u64,
    segment: Segment,
    /// Octets after the last record that were never a whole one.
    torn_bytes: u64,
    /// The damage that follows the last record, if the octets there are no torn record.
    damage: Option<String>,
    /// Whether the header is that of the file before.
    is_stale: bool,
}

impl Found {
    /// Whether it was made and not written to since: its header is that of the file before, or an older one if
    /// making it had failed and it could not be removed.
    fn is_unused(&self) -> bool {
        let Segment {
            start, end, named, ..
        } = self.segment;
        self.header.generation == 0 && start == end && start == named && self.damage.is_none()
    }
}

enum Scan {
    Found(Box<Found>),
    /// The file was made by a process that died before the file was of use, or it is gone.
    Unborn,
    /// The file is useless, for this reason.
    Bad(String),
}

/// Takes up all flows in the directory.
pub(super) fn recover(shared: &Arc<Shared>) -> Result<Recovery, StoreError> {
    let mut recovery = Recovery::default();
    let files = files(shared)?;
    // This comes before anything is moved: the flows may be whole, and a volume or a umask may have widened the
    // modes of all files.
    for name in files.values().flatten() {
        let path = || shared.directory.join(name);
        match shared.disk.distrust(name) {
            Ok(None) => {}
            Ok(Some(problem)) => {
                let path = path();
                return Err(StoreError::Untrusted { path, problem });
            }
            // The error is met again when the file is read.
            Err(error) if disk::is_of_the_file(&error) || error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io("look at", path())(error)),
        }
    }
    for (flow, names) in files {
        take_up(shared, flow, names, &mut recovery)?;
    }
    Ok(recovery)
}

/// The segments' files, by flow.
fn files(shared: &Shared) -> Result<BTreeMap<FlowId, Vec<String>>, StoreError> {
    let mut flows: BTreeMap<FlowId, Vec<String>> = BTreeMap::new();
    let names = shared.disk.list();
    for name in names.map_err(StoreError::io("list", &shared.directory))? {
        if let Some(flow) = segment::flow_of(&name) {
            flows.entry(flow).or_default().push(name);
        }
    }
    Ok(flows)
}

fn take_up(
    shared: &Arc<Shared>,
    flow: FlowId,
    mut names: Vec<String>,
    recovery: &mut Recovery,
) -> Result<(), StoreError> {
    names.sort_unstable();
    let mut found = Vec::new();
    let mut why = None;
    let mut aside = Vec::new();
    for name in names {
        match scan(shared, flow, &name)? {
            Scan::Found(file) => found.push(*file),
            // One that cannot be removed is found again at the next start.
            Scan::Unborn => drop(shared.disk.remove(&name)),
            Scan::Bad(what) => {
                why = Some(format!("{name} {what}"));
                aside.push(name);
            }
        }
    }
    found.sort_by_key(|file| (file.header.start, file.segment.end));
    let unused = correct_unused(&mut found);
    if found.last().is_some_and(|last| last.header.ended) {
        // The one that says so goes last, and not before the others.
        let names = found.iter().map(|file| &file.name);
        let mut names = aside.iter().chain(&unused).chain(names);
        names.all(|name| is_removed(shared, name));
        return Ok(());
    }
    // A file that was emptied and used again begins at a later offset than its name says. That happens only when
    // everything before was released. A power cut brings deleted names back.
    let is_reused = |file: &Found| file.header.start > file.segment.named;
    let mut undeleted = VecDeque::new();
    if let Some(first) = found.iter().rposition(is_reused) {
        let is_left = |file: &Found| !is_removed(shared, &file.name);
        let left = found.drain(..first).filter(is_left);
        undeleted.extend(left.map(|file| file.segment));
    }
    let record = found.last().map(|last| last.header.record.clone());
    let Contiguous {
        kept,
        rest,
        unused,
        broken,
    } = contiguous(found);
    let total = kept.last().and_then(|last| last.header.finished);
    let end = kept.last().map_or(0, |last| last.segment.end);
    why = why.or(broken);
    if rest.is_empty() && why.is_none() && total.is_some_and(|total| total > end) {
        let total = total.unwrap_or(end);
        why = Some(format!("its end is missing: {end} octets of {total}"));
    }
    aside.extend(rest.into_iter().map(|file| file.name));
    let is_left = |file: &Found| !shared.set_aside(&file.name);
    undeleted.extend(unused.into_iter().filter(is_left).map(|file| file.segment));
    let is_empty = kept.first().is_none_or(|first| first.header.start == end);
    let damage = why.map(|why| Damaged {
        flow,
        record: record.clone(),
        why: format!("{}: {why}", shared.directory.display()),
    });
    if is_empty && damage.is_some() {
        aside.extend(kept.into_iter().map(|file| file.name));
        recovery.damaged.extend(damage);
    } else {
        let is_finished = damage.is_none() && total == Some(end);
        let taken = go_on(
            shared,
            kept,
            record.filter(|_| damage.is_some()),
            is_finished,
        );
        recovery.flows.extend(taken.map(|(mut store, torn_bytes)| {
            store.delete_first(undeleted);
            Recovered {
                store,
                torn_bytes,
                damage,
            }
        }));
    }
    for name in aside {
        shared.set_aside(&name);
    }
    Ok(())
}

fn is_removed(shared: &Shared, name: &str) -> bool {
    let removed = shared.disk.remove(name);
    removed.map_or_else(|error| error.kind() == ErrorKind::NotFound, |()| true)
}

/// Gives the last of these sorted files, if it is unused, the header of the file before, and returns its name. Notes
/// after a failed making of the last file are in that header.
fn correct_unused(found: &mut [Found]) -> Option<String> {
    let [.., before, last] = found else {
        return None;
    };
    let start = last.header.start;
    if !last.is_unused() || before.segment.end != start {
        return None;
    }
    last.header = Header {
        start,
        generation: 0,
        ..before.header.clone()
    };
    last.is_stale = true;
    Some(last.name.clone())
}

/// A flow's files, parted.
struct Contiguous {
    /// Those that are the flow from its first octet on.
    kept: Vec<Found>,
    /// Those behind a fault.
    rest: Vec<Found>,
    /// Those that were made in vain.
    unused: Vec<Found>,
    /// The fault, if there is damage.
    broken: Option<String>,
}

/// Parts these sorted files.
fn contiguous(found: Vec<Found>) -> Contiguous {
    let mut kept: Vec<Found> = Vec::new();
    let mut broken = None;
    let mut found = found.into_iter().peekable();
    let mut unused = Vec::new();
    while let Some(mut file) = found.next() {
        // The next file was made for octets that then went into this file after all.
        let held = file.header.start..file.segment.end;
        while let Some(next) =
            found.next_if(|next| next.is_unused() && held.contains(&next.header.start))
        {
            unused.push(next);
        }
        if let Some(next) = found.peek()
            && held.contains(&next.header.start)
        {
            // An append that was taken back, and that a power cut brought back: the next file has its octets.
            file.segment.end = next.header.start;
            file.damage = None;
        }
        let next = found.peek();
        let end = file.segment.end;
        if next.is_some_and(|next| next.header.start == end) {
            // The octets after the records are left over from an append that failed: nothing is missing.
            file.damage = None;
            kept.push(file);
            continue;
        }
        if let Some(next) = next {
            let start = next.header.start;
            let name = &file.name;
            broken = Some(format!(
                "{name} ends at offset {end}, the next begins at {start}"
            ));
        }
        file.segment.is_damaged = file.damage.is_some();
        broken = file.damage.take().or(broken);
        kept.push(file);
        break;
    }
    let mut rest: Vec<Found> = found.collect();
    // Without records the file has nothing but the damage, and it has the name that the next segment needs.
    let is_void =
        |last: &mut Found| last.segment.is_damaged && last.segment.end == last.segment.start;
    if kept.len() > 1 {
        rest.extend(kept.pop_if(is_void));
    }
    Contiguous {
        kept,
        rest,
        unused,
        broken,
    }
}

fn scan(shared: &Shared, flow: FlowId, name: &str) -> Result<Scan, StoreError> {
    let Read {
        file,
        octets,
        on_disk,
        broken,
    } = match read(shared, name) {
        Ok(read) if read.on_disk > file_bytes_max(shared) => {
            return Ok(Scan::Bad("is larger than any segment".to_owned()));
        }
        Ok(read) => read,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Scan::Unborn),
        Err(error) if disk::is_of_the_file(&error) => {
            return Ok(Scan::Bad(format!("cannot be used: {error}")));
        }
        Err(error) => return Err(StoreError::io("read", shared.directory.join(name))(error)),
    };
    let FoundHeader {
        header,
        layout,
        slot,
    } = match Header::find(&octets) {
        Ok(found) if found.header.flow == flow => found,
        Ok(_) => return Ok(Scan::Bad("is of another flow".to_owned())),
        Err(NoHeader::Unwritten) => {
            return Ok(match broken {
                Some(error) => Scan::Bad(format!("cannot be read: {error}")),
                None => Scan::Unborn,
            });
        }
        Err(NoHeader::Format(found)) => {
            return Err(StoreError::Version {
                path: shared.directory.join(name),
                found: found.to_string(),
                supported: FORMAT,
            });
        }
        Err(NoHeader::Damaged) => return Ok(Scan::Bad("has a damaged header".to_owned())),
    };
    let mut segment = Segment {
        named: named(name).unwrap_or(header.start),
        ..Segment::empty(header.start, layout)
    };
    let damage = records(layout, &octets, &mut segment, header.start);
    let damage = match (broken, damage) {
        (Some(error), _) => Some(format!(
            "{name} cannot be read after offset {}: {error}",
            segment.end
        )),
        (None, Some(())) => Some(format!("{name} is damaged after offset {}", segment.end)),
        (None, None) => None,
    };
    Ok(Scan::Found(Box::new(Found {
        name: name.to_owned(),
        file,
        header,
        slot,
        torn_bytes: on_disk.saturating_sub(segment.file_bytes),
        segment,
        damage,
        is_stale: false,
    })))
}

/// Counts the records; `Some` if something follows that is neither a record nor the file's end.
fn records(layout: Layout, octets: &[u8], segment: &mut Segment, start: u64) -> Option<()> {
    let mut rest = octets.get(layout.header_bytes()..).unwrap_or(&[]);
    loop {
        match segment::first_record(layout, rest) {
            Ok(record) if record.offset == segment.end => {
                segment.grow(record.octets.len());
                rest = &rest[record.file_bytes..];
            }
            // This record is left over from before the file was emptied. More follow if emptying was given up half-way.
            Ok(record) if record.end() <= start && segment.end == start => {
                segment.file_bytes += record.file_bytes as u64;
                rest = &rest[record.file_bytes..];
            }
            end => {
                if segment.end == start {
                    segment.file_bytes = layout.header_bytes() as u64;
                }
                return (end != Err(NoRecord::Torn)).then_some(());
            }
        }
    }
}

struct Read {
    file: Arc<dyn DiskFile>,
    octets: Vec<u8>,
    on_disk: u64,
    /// The reason why the rest of it cannot be read: damage like any other.
    broken: Option<io::Error>,
}

/// A store with a larger segment size may have written a file; no segment is larger than that by more
/// than a record.
fn file_bytes_max(shared: &Shared) -> u64 {
    let spare = (PAYLOAD_BYTES_MAX + HEADER_BYTES) as u64 * 2;
    shared.segment_bytes.max(SEGMENT_BYTES_MAX) + spare
}

fn read(shared: &Shared, name: &str) -> io::Result<Read> {
    let file = shared.disk.open(name)?;
    let on_disk = file.len()?;
    let len = usize::try_from(on_disk.min(file_bytes_max(shared))).unwrap_or(0);
    let mut octets = vec![0; len];
    let mut place = 0;
    let mut broken = None;
    while place < len {
        let end = len.min(place + READ_STEP_BYTES);
        match disk::read_full(&*file, &mut octets[place..end], place as u64) {
            // The file is shorter than it was a moment ago.
            Ok(0) => break,
            Ok(read) => place += read,
            Err(error) if disk::is_of_the_file(&error) => {
                broken = Some(error);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    octets.truncate(place);
    Ok(Read {
        file,
        octets,
        on_disk,
        broken,
    })
}

/// The largest segment size that a store chooses, whatever its limit.
pub(super) const SEGMENT_BYTES_MAX: u64 = 4 << 20;
const READ_STEP_BYTES: usize = 64 << 10;

fn named(name: &str) -> Option<u64> {
    let (_, start) = name.strip_suffix(".segment")?.split_once('-')?;
    u64::from_str_radix(start, 16).ok()
}

/// Takes up a flow's files, and returns how many octets were torn from the last. `record` is newer than the one
/// in them.
fn go_on(
    shared: &Arc<Shared>,
    kept: Vec<Found>,
    record: Option<Vec<u8>>,
    is_finished: bool,
) -> Option<(FlowStore, u64)> {
    let last = kept.last()?;
    let mut header = last.header.clone();
    header.finished = header.finished.filter(|_| is_finished);
    if let Some(record) = record {
        header.record = record;
    }
    let header_is_stale = last.is_stale || header != last.header;
    let is_torn = last.torn_bytes > 0 && !last.segment.is_damaged;
    let is_cut = is_torn && last.file.set_len(last.segment.file_bytes).is_ok();
    if last.is_stale {
        // For a file that was cut short while it was made: its second slot must need no space.
        drop(last.file.set_len(last.segment.file_bytes));
    }
    let torn_bytes = if is_torn { last.torn_bytes } else { 0 };
    let (slot, active) = (last.slot, Arc::clone(&last.file));
    let open = kept.iter().map(|file| Arc::clone(&file.file)).collect();
    let segments: VecDeque<Segment> = kept.into_iter().map(|file| file.segment).collect();
    let file_bytes = segments.iter().map(|s| s.file_bytes).sum();
    shared.space.add(file_bytes);
    let files = Files {
        header,
        slot,
        segments,
        open,
        active,
        is_uncut: is_torn && !is_cut,
        is_stale: header_is_stale,
    };
    Some((FlowStore::found(Arc::clone(shared), files), torn_bytes))
}
