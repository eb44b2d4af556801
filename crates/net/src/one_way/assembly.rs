//! The file out of its symbols: rebuilt block by block, verified, synced, and given its name in one step.

use super::digest::file_digest;
use super::symbol_log::{LoggedSymbol, read_log};
use super::wire::Announcement;
use fulmar_proto::fec::long_block::LongBlockDecoder;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The end of the name of a file that is being put together.
const WHOLE_SUFFIX: &str = "whole";

/// The outcome for a file that had all its symbols.
#[derive(Debug)]
pub(super) enum Assembled {
    /// It is there, verified, under this name.
    Done(PathBuf),
    /// Another file of its name is there, and stays.
    OtherThere,
    /// The log lacks symbols that were kept: they cannot be read any more.
    Short,
    /// Its octets have another digest than the sender said.
    Corrupt,
    /// The disk is full, or failed; the symbols stay.
    Failed(io::Error),
}

/// The file at `path` compared with the announced one; `None`: there is none.
pub(super) fn is_there(path: &Path, announcement: &Announcement) -> Option<bool> {
    let metadata = fs::symlink_metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() != announcement.size {
        return Some(false);
    }
    let found = File::open(path).and_then(|file| file_digest(&file));
    Some(found.is_ok_and(|(_, digest)| digest == announcement.digest))
}

/// Puts the file at `target` together from the log at `log`.
pub(super) fn assemble(log: &Path, target: &Path, replace: bool) -> Assembled {
    let beside = log.with_extension(WHOLE_SUFFIX);
    let outcome = put_together(log, &beside, target, replace);
    if !matches!(outcome, Ok(Assembled::Done(_))) {
        drop(fs::remove_file(&beside));
    }
    outcome.unwrap_or_else(Assembled::Failed)
}

fn put_together(log: &Path, beside: &Path, target: &Path, replace: bool) -> io::Result<Assembled> {
    let log = File::open(log)?;
    let Some(content) = read_log(&log)? else {
        return Ok(Assembled::Short);
    };
    match fs::remove_file(beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut out = File::create_new(beside)?;
    let announcement = content.announcement;
    let Some(layout) = announcement.layout() else {
        return Ok(Assembled::Short);
    };
    let mut symbols = content.symbols;
    // Stable, so that within a block symbols are read in the order in which they stand.
    symbols.sort_by_key(|symbol| symbol.block);
    let mut hasher = blake3::Hasher::new();
    for number in layout.numbers() {
        let from = symbols.partition_point(|symbol| symbol.block < number);
        let to = symbols.partition_point(|symbol| symbol.block <= number);
        let Some(octets) = rebuild(&log, &layout, number, &symbols[from..to])? else {
            return Ok(Assembled::Short);
        };
        let place = layout.octets(number);
        let len = usize::try_from(place.end - place.start).unwrap_or(usize::MAX);
        let octets = octets.get(..len).unwrap_or(&octets);
        hasher.update(octets);
        out.write_all(octets)?;
    }
    if *hasher.finalize().as_bytes() != announcement.digest {
        return Ok(Assembled::Corrupt);
    }
    out.sync_all()?;
    if replace {
        fs::rename(beside, target)?;
    } else {
        match fs::hard_link(beside, target) {
            Ok(()) => fs::remove_file(beside)?,
            // Without hard links a file system gives another error.
            Err(error) if error.kind() == ErrorKind::AlreadyExists || fs::exists(target)? => {
                // A start that was killed after this step has put it there.
                if is_there(target, &announcement) != Some(true) {
                    return Ok(Assembled::OtherThere);
                }
                fs::remove_file(beside)?;
            }
            Err(_) => fs::rename(beside, target)?,
        }
    }
    if let Some(directory) = target.parent() {
        File::open(directory).and_then(|directory| directory.sync_all())?;
    }
    Ok(Assembled::Done(target.to_owned()))
}

/// The sources of one block; `None`: the log lacks some.
fn rebuild(
    log: &File,
    layout: &super::FileLayout,
    number: u16,
    symbols: &[LoggedSymbol],
) -> io::Result<Option<Vec<u8>>> {
    let Some(block) = layout.block(number) else {
        return Ok(None);
    };
    let mut decoder = LongBlockDecoder::new(block);
    let mut octets = vec![0; block.symbol_bytes().into()];
    for symbol in symbols {
        log.read_exact_at(&mut octets, symbol.offset)?;
        // What is here twice, or one too many, is not needed.
        let _ = decoder.add(symbol.unit.into(), &octets);
    }
    Ok(decoder.rebuild())
}

#[cfg(test)]
mod tests {
    use super::super::symbol_log::SymbolLog;
    use super::super::test_file::{OCTETS, announcement};
    use super::*;
    use std::io::Seek;

    /// A log of all sources.
    fn log(path: &Path, announcement: &Announcement) {
        let mut log = SymbolLog::create(path, announcement).expect("it is made");
        for (unit, octets) in (0..).zip(OCTETS.chunks(2)) {
            log.append(0, unit, octets).expect("there is room");
        }
        log.checkpoint().expect("there is room");
    }

    #[test]
    fn a_file_that_has_its_name_already_is_done() {
        let place = tempfile::tempdir().expect("a directory");
        let (path, target) = (place.path().join("1.symbols"), place.path().join("file"));
        log(&path, &announcement());
        // As after a kill between the name and the removal of the log.
        fs::write(&target, OCTETS).expect("it is ours");
        assert!(matches!(
            assemble(&path, &target, false),
            Assembled::Done(_)
        ));
        assert!(!path.with_extension(WHOLE_SUFFIX).exists());
        fs::write(&target, "012345678_").expect("it is ours");
        assert!(matches!(
            assemble(&path, &target, false),
            Assembled::OtherThere
        ));
        assert_eq!(fs::read(&target).expect("it is there"), b"012345678_");
        assert!(matches!(assemble(&path, &target, true), Assembled::Done(_)));
        assert_eq!(fs::read(&target).expect("it is there"), OCTETS);
    }

    #[test]
    fn a_log_that_lacks_symbols_is_told_from_one_whose_digest_is_wrong() {
        let place = tempfile::tempdir().expect("a directory");
        let (path, target) = (place.path().join("1.symbols"), place.path().join("file"));
        log(&path, &announcement());
        let mut file = fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .expect("it is ours");
        // A bad sector in the last record.
        file.seek(io::SeekFrom::End(-1)).expect("it is a file");
        file.write_all(b"x").expect("there is room");
        assert!(matches!(assemble(&path, &target, false), Assembled::Short));
        let other = Announcement {
            digest: [7; 32],
            ..announcement()
        };
        log(&path, &other);
        assert!(matches!(
            assemble(&path, &target, false),
            Assembled::Corrupt
        ));
        assert!(!target.exists());
    }
}
