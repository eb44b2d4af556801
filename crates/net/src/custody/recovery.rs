//! What a store finds at its start: flows that go on, and flows that cannot.

use super::error::StoreError;
use super::extent::Segment;
use super::flow::{FlowStore, Shared};
use super::segment::{self, FORMAT, HEADER_BYTES, Header, NoHeader, NoRecord, PAYLOAD_BYTES_MAX};
use core::fmt;
use fulmar_proto::splice::FlowId;
use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a store held when it was opened.
#[derive(Debug, Default)]
pub struct Recovery {
    /// Flows that are whole, in the order of their names.
    pub flows: Vec<Recovered>,
    /// Flows that were damaged. Their files are gone.
    pub damaged: Vec<Damaged>,
}

/// A flow that is whole.
#[derive(Debug)]
pub struct Recovered {
    /// Its octets, record and end.
    pub store: FlowStore,
    /// Octets of its file after the last whole record: an append that did not return, or what a
    /// power cut took. They were cut off.
    pub torn_bytes: u64,
}

/// A flow that is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// Its name.
    pub flow: FlowId,
    /// What the driver noted about it, if that can be read.
    pub record: Option<Vec<u8>>,
    /// The file, and what is wrong with it.
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
    path: PathBuf,
    header: Header,
    segment: Segment,
    torn_bytes: u64,
}

/// A file that ends its flow.
struct Bad {
    record: Option<Vec<u8>>,
    why: String,
}

enum Scan {
    Found(Found),
    /// Made by a process that died before it was of use.
    Unborn,
    Bad(Bad),
}

/// Takes up all flows in the directory.
pub(super) fn recover(shared: &Arc<Shared>) -> Result<Recovery, StoreError> {
    let mut recovery = Recovery::default();
    for (flow, paths) in files(&shared.directory)? {
        let mut found = Vec::new();
        let mut unborn = Vec::new();
        let mut bad = None;
        for path in &paths {
            match scan(flow, path, shared.segment_bytes)? {
                Scan::Found(file) => found.push(file),
                Scan::Unborn => unborn.push(path),
                Scan::Bad(why) => bad = Some(why),
            }
        }
        found.sort_by_key(|file| (file.header.start, file.segment.end));
        let ended = found.last().is_some_and(|last| last.header.ended);
        if ended {
            paths.iter().try_for_each(|path| remove(path))?;
        } else if let Some(bad) = bad.or_else(|| gap(&found)) {
            let record = found.last().map(|last| last.header.record.clone());
            recovery.damaged.push(Damaged {
                flow,
                record: record.or(bad.record),
                why: bad.why,
            });
            paths.iter().try_for_each(|path| remove(path))?;
        } else {
            unborn.into_iter().try_for_each(|path| remove(path))?;
            recovery.flows.extend(take_up(shared, found)?);
        }
    }
    Ok(recovery)
}

/// The segments' files, by flow.
fn files(directory: &Path) -> Result<BTreeMap<FlowId, Vec<PathBuf>>, StoreError> {
    let mut flows: BTreeMap<FlowId, Vec<PathBuf>> = BTreeMap::new();
    let failed = |source| StoreError::io("list", directory)(source);
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(flow) = name.and_then(segment::flow_of) {
            flows.entry(flow).or_default().push(path);
        }
    }
    Ok(flows)
}

fn scan(flow: FlowId, path: &Path, segment_bytes: u64) -> Result<Scan, StoreError> {
    let bad = |record, what: &str| {
        let why = format!("{}: {what}", path.display());
        Ok(Scan::Bad(Bad { record, why }))
    };
    let mut octets = Vec::new();
    let file = File::open(path).map_err(StoreError::io("open", path))?;
    let on_disk = file
        .metadata()
        .map_err(StoreError::io("look at", path))?
        .len();
    // A store with a larger segment size may have written it; no segment is larger than that by
    // more than a record.
    let most = segment_bytes.max(SEGMENT_BYTES_MAX) + (PAYLOAD_BYTES_MAX + HEADER_BYTES) as u64 * 2;
    if on_disk > most {
        return bad(None, "is larger than any segment");
    }
    // A sector that cannot be read is damage like any other.
    if let Err(error) = file.take(most).read_to_end(&mut octets) {
        return bad(None, &format!("cannot be read: {error}"));
    }
    let header = match Header::decode(&octets) {
        Ok(header) if header.flow == flow => header,
        Ok(_) => return bad(None, "is of another flow"),
        Err(NoHeader::Unwritten) => return Ok(Scan::Unborn),
        Err(NoHeader::Format(found)) => {
            return Err(StoreError::Version {
                path: path.to_owned(),
                found: found.to_string(),
                supported: FORMAT,
            });
        }
        Err(NoHeader::Damaged) => return bad(None, "its header is damaged"),
    };
    let mut segment = Segment {
        named: named(path).unwrap_or(header.start),
        ..Segment::empty(header.start)
    };
    let mut rest = octets.get(HEADER_BYTES..).unwrap_or(&[]);
    loop {
        match segment::first_record(rest) {
            Ok(record) if record.offset == segment.end => {
                segment.grow(record.octets.len());
                rest = &rest[record.file_bytes()..];
            }
            // Left over from before the file was emptied and used again.
            Ok(record) if record.end() <= header.start => break,
            Err(NoRecord::Torn) => break,
            Ok(_) | Err(NoRecord::Damaged) => {
                let offset = segment.end;
                return bad(
                    Some(header.record),
                    &format!("damaged after offset {offset}"),
                );
            }
        }
    }
    let torn_bytes = on_disk.saturating_sub(segment.file_bytes);
    Ok(Scan::Found(Found {
        path: path.to_owned(),
        header,
        segment,
        torn_bytes,
    }))
}

/// The largest that a store chooses, whatever its limit.
pub(super) const SEGMENT_BYTES_MAX: u64 = 4 << 20;

fn named(path: &Path) -> Option<u64> {
    let (_, start) = path.file_stem()?.to_str()?.split_once('-')?;
    u64::from_str_radix(start, 16).ok()
}

/// What keeps these files, sorted, from being one flow.
fn gap(found: &[Found]) -> Option<Bad> {
    let wrong = |file: &Found, what: String| Bad {
        record: Some(file.header.record.clone()),
        why: format!("{}: {what}", file.path.display()),
    };
    for pair in found.windows(2) {
        let [before, after] = pair else { continue };
        if before.segment.end != after.header.start {
            let (end, start) = (before.segment.end, after.header.start);
            return Some(wrong(
                before,
                format!("ends at offset {end}, the next begins at {start}"),
            ));
        }
    }
    let last = found.last()?;
    let total = last
        .header
        .finished
        .filter(|total| *total != last.segment.end)?;
    let end = last.segment.end;
    Some(wrong(last, format!("ends at offset {end} of {total}")))
}

fn take_up(shared: &Arc<Shared>, found: Vec<Found>) -> Result<Option<Recovered>, StoreError> {
    let Some(last) = found.last() else {
        return Ok(None);
    };
    let (header, torn_bytes) = (last.header.clone(), last.torn_bytes);
    let mut options = OpenOptions::new();
    let active = options.read(true).write(true).open(&last.path);
    let active = active.map_err(StoreError::io("open", &last.path))?;
    if torn_bytes > 0 {
        let cut = active.set_len(last.segment.file_bytes);
        cut.map_err(StoreError::io("cut", &last.path))?;
    }
    let segments: VecDeque<Segment> = found.into_iter().map(|file| file.segment).collect();
    shared
        .space
        .add(segments.iter().map(|s| s.file_bytes).sum());
    Ok(Some(Recovered {
        store: FlowStore::with(Arc::clone(shared), header, segments, active, false),
        torn_bytes,
    }))
}

fn remove(path: &Path) -> Result<(), StoreError> {
    std::fs::remove_file(path).map_err(StoreError::io("delete", path))
}
