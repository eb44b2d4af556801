//! The files of `loss = "trace FILE"` and `fading = "trace FILE"`: each is read once, however many
//! points name it.

use core::cell::RefCell;
use fulmar_channel::fading::{Fading, PowerTrace, Recorded};
use fulmar_channel::{ChannelConfig, LossModel, LossTrace};
use fulmar_sim::OwnParts;
use fulmar_sim::scenario::Recordings;
use fulmar_trace::{PowerOptions, SequenceOptions, is_capture, read_power, read_table};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Traces by the names that scenarios and flags give them.
#[derive(Debug)]
pub struct Traces {
    directory: PathBuf,
    losses: Known<LossTrace>,
    powers: Known<PowerTrace>,
    files: RefCell<Vec<PathBuf>>,
    own: OwnParts,
}

/// Traces by name and by the way they were read, each with a digest of the octets that were read.
type Known<T> = RefCell<BTreeMap<String, (Arc<T>, blake3::Hash)>>;

impl Traces {
    /// Traces whose names are relative to `directory`.
    pub fn below(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            losses: RefCell::default(),
            powers: RefCell::default(),
            files: RefCell::default(),
            own: OwnParts::default(),
        }
    }

    /// The same, with these parts of one's own.
    #[must_use]
    pub fn with_own(self, own: OwnParts) -> Self {
        Self { own, ..self }
    }

    /// The files that were read.
    pub fn into_files(self) -> Vec<PathBuf> {
        self.files.into_inner()
    }

    /// Puts the traces that `config` names, if it names some, into it.
    ///
    /// # Errors
    /// A trace cannot be read; the message names the key and the file.
    pub fn put_into(&self, config: &mut ChannelConfig) -> Result<(), String> {
        if let LossModel::Replay(replay) = &mut config.loss
            && replay.trace.is_none()
        {
            let trace = self.loss(&replay.name);
            replay.trace = Some(trace.map_err(|error| format!("loss: {error}"))?);
        }
        if let Some(missing) = config.fading.as_ref().and_then(Fading::missing_trace) {
            let failed = |error: &dyn core::fmt::Display| format!("fading: {error}");
            let trace = self.power(missing).map_err(|error| failed(&error))?;
            let whole = config.fading.take().map(|fading| fading.with_trace(trace));
            config.fading = whole.transpose().map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// Adds names and contents of all that were read to a digest.
    pub fn digest(&self, into: &mut blake3::Hasher) {
        let mut known = |name: &str, digest: &blake3::Hash| {
            into.update(format!("{name:?}").as_bytes());
            into.update(digest.as_bytes());
        };
        for (name, (_, digest)) in self.losses.borrow().iter() {
            known(name, digest);
        }
        for (name, (_, digest)) in self.powers.borrow().iter() {
            known(name, digest);
        }
    }

    fn known<T>(
        &self,
        known: &Known<T>,
        key: String,
        name: &str,
        read: impl FnOnce(&str, &mut Hashed<BufReader<File>>) -> Result<T, String>,
    ) -> Result<Arc<T>, String> {
        if let Some((trace, _)) = known.borrow().get(&key) {
            return Ok(Arc::clone(trace));
        }
        let path = self.directory.join(name);
        let shown = path.display().to_string();
        let unreadable = |error: io::Error| {
            format!(
                "cannot read the trace {shown}: {error}; write `trace FILE`, with a FILE of this directory"
            )
        };
        let mut reader = BufReader::new(File::open(&path).map_err(unreadable)?);
        if is_capture(reader.fill_buf().map_err(unreadable)?) {
            return Err(format!(
                "{shown} is a capture; make a table of it: fulmar fit {shown} --port PORT --trace losses.csv"
            ));
        }
        let mut reader = Hashed {
            reader,
            hasher: blake3::Hasher::new(),
        };
        let trace = Arc::new(read(&shown, &mut reader)?);
        let entry = (Arc::clone(&trace), reader.hasher.finalize());
        known.borrow_mut().insert(key, entry);
        self.files.borrow_mut().push(path);
        Ok(trace)
    }
}

impl Recordings for Traces {
    fn loss(&self, name: &str) -> Result<Arc<LossTrace>, String> {
        self.known(&self.losses, name.to_owned(), name, |shown, reader| {
            let recording = read_table(shown, reader, SequenceOptions::default());
            Ok(recording.map_err(|error| error.to_string())?.into_trace())
        })
    }

    fn power(&self, recorded: &Recorded) -> Result<Arc<PowerTrace>, String> {
        let options = PowerOptions::from(recorded);
        let key = format!("{} {options:?}", recorded.name);
        self.known(&self.powers, key, &recorded.name, |shown, reader| {
            let power = read_power(shown, BufReader::new(reader), options);
            power.map_err(|error| error.to_string())
        })
    }

    fn own(&self) -> &OwnParts {
        &self.own
    }
}

/// A reader that hashes the octets that pass through it.
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
