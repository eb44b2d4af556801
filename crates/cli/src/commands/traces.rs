//! The files of `loss = "trace FILE"`: each is read once, however many points name it.

use core::cell::RefCell;
use fulmar_channel::{Config, LossModel, Trace};
use fulmar_trace::{SequenceOptions, is_capture, read_table};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Traces by the names that scenarios and flags give them.
#[derive(Debug)]
pub(crate) struct Traces {
    directory: PathBuf,
    known: RefCell<BTreeMap<String, Known>>,
}

#[derive(Debug)]
struct Known {
    trace: Arc<Trace>,
    digest: blake3::Hash,
}

impl Traces {
    /// Traces whose names are relative to `directory`.
    pub(crate) fn below(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            known: RefCell::default(),
        }
    }

    /// The trace of this name, or what is wrong with it, in one line.
    pub(crate) fn get(&self, name: &str) -> Result<Arc<Trace>, String> {
        if let Some(known) = self.known.borrow().get(name) {
            return Ok(Arc::clone(&known.trace));
        }
        let (trace, digest) = read(&self.directory.join(name))?;
        let trace = Arc::new(trace);
        let known = Known {
            trace: Arc::clone(&trace),
            digest,
        };
        self.known.borrow_mut().insert(name.to_owned(), known);
        Ok(trace)
    }

    /// Puts the trace that `config` names, if it names one, into it.
    pub(crate) fn put_into(&self, config: &mut Config) -> Result<(), String> {
        if let LossModel::Replay(replay) = &mut config.loss
            && replay.trace.is_none()
        {
            replay.trace = Some(self.get(&replay.name)?);
        }
        Ok(())
    }

    /// Names and contents of all that were read.
    pub(crate) fn digest(&self, into: &mut blake3::Hasher) {
        for (name, known) in self.known.borrow().iter() {
            into.update(format!("{name:?}").as_bytes());
            into.update(known.digest.as_bytes());
        }
    }
}

/// Hashes what is read through it.
struct Hashed<R> {
    reader: R,
    hasher: blake3::Hasher,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = self.reader.read(into)?;
        self.hasher.update(into.get(..len).unwrap_or_default());
        Ok(len)
    }
}

fn read(path: &Path) -> Result<(Trace, blake3::Hash), String> {
    let shown = path.display().to_string();
    let unreadable = |error: io::Error| {
        format!(
            "cannot read the trace {shown}: {error}; write `trace FILE`, with a FILE of this directory"
        )
    };
    let mut reader = BufReader::new(File::open(path).map_err(unreadable)?);
    if is_capture(reader.fill_buf().map_err(unreadable)?) {
        return Err(format!(
            "{shown} is a capture; make a table of it: fulmar fit {shown} --port PORT --trace losses.csv"
        ));
    }
    let mut reader = Hashed {
        reader,
        hasher: blake3::Hasher::new(),
    };
    let recording = read_table(&shown, &mut reader, SequenceOptions::default());
    let recording = recording.map_err(|error| error.to_string())?;
    Ok((recording.into_trace(), reader.hasher.finalize()))
}
