//! The rates that were found towards peers, kept for the next start, which tries them first.
//!
//! The file is a hint: where it cannot be read or written, the search begins with nothing.

use crate::clock::unix_time;
use crate::gateway::config::GatewayConfig;
use crate::session::StateDirectory;
use fulmar_proto::units::{Bitrate, Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The age from which a rate says nothing any more.
const OLD: Duration = Duration::from_secs(24 * 3_600);
/// The time between two writes while rates are found.
const WRITTEN_APART: Duration = Duration::from_secs(300);

/// A rate that was found, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KeptRate {
    bits_per_second: u64,
    /// Seconds since 1970.
    found_at: u64,
}

/// The file's content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Contents {
    /// By the names of the peers.
    peers: BTreeMap<String, KeptRate>,
}

/// The rates of all peers.
#[derive(Debug, Default)]
pub(in crate::gateway) struct KeptRates {
    /// The directory and the file in it; `None` where nothing is kept.
    place: Option<(PathBuf, String)>,
    contents: Contents,
    changed: bool,
    written_at: Instant,
}

impl KeptRates {
    /// Reads the rates that the gateway of this configuration kept in `directory`.
    pub(in crate::gateway) fn read(directory: PathBuf, config: &GatewayConfig) -> Self {
        let file = format!("fulmar-{}.rates", config.name);
        let text = StateDirectory::open(&directory).and_then(|opened| opened.read(&file));
        let contents = match text {
            Ok(text) => {
                let read = text.map(|text| serde_json::from_str(&text));
                read.and_then(Result::ok).unwrap_or_default()
            }
            Err(error) => {
                tracing::warn!(event = "rates_not_read", %error);
                Contents::default()
            }
        };
        Self {
            place: Some((directory, file)),
            contents,
            ..Self::default()
        }
    }

    /// The rate that was found towards `peer` within the last day, and how long ago.
    pub(in crate::gateway) fn of(&self, peer: &str) -> Option<(Bitrate, Duration)> {
        let kept = self.contents.peers.get(peer)?;
        // A clock that was set back makes it new, which costs no more than a wrong guess.
        let age = unix_time().saturating_sub(Duration::from_secs(kept.found_at));
        (age < OLD).then_some((Bitrate::from_bits_per_second(kept.bits_per_second), age))
    }

    /// Keeps the rate found towards `peer`.
    pub(in crate::gateway) fn note(&mut self, now: Instant, peer: &str, bits_per_second: u64) {
        let found_at = unix_time().as_secs();
        let kept = KeptRate {
            bits_per_second,
            found_at,
        };
        self.contents.peers.insert(peer.to_owned(), kept);
        self.changed = true;
        if now.saturating_since(self.written_at) >= WRITTEN_APART {
            self.written_at = now;
            if let Some(write) = self.take_write() {
                // The disk may be slow, and datagrams do not wait for it.
                drop(std::thread::Builder::new().spawn(write));
            }
        }
    }

    /// Writes what has changed.
    pub(in crate::gateway) fn write(&mut self) {
        if let Some(write) = self.take_write() {
            write();
        }
    }

    fn take_write(&mut self) -> Option<impl FnOnce() + Send + use<>> {
        let (directory, file) = self.place.clone()?;
        if !core::mem::take(&mut self.changed) {
            return None;
        }
        let text = serde_json::to_string(&self.contents).ok()?;
        Some(move || {
            let written =
                StateDirectory::open(&directory).and_then(|opened| opened.replace(&file, &text));
            if let Err(error) = written {
                tracing::warn!(event = "rates_not_kept", %error);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> GatewayConfig {
        let text = "[gateway]\nname = \"a\"\n[security]\nkind = \"none\"\n[[peer]]\nname = \"b\"\n\
                    [egress]\nallow = [\"10.0.0.1:80\"]\n";
        GatewayConfig::read("a.toml", text).unwrap()
    }

    #[test]
    fn what_was_found_is_known_to_the_next_start_unless_it_is_a_day_old() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("state");
        let mut rates = KeptRates::read(directory.clone(), &config());
        assert_eq!(rates.of("b"), None);
        rates.note(Instant::START, "b", 7_000_000);
        rates.write();
        let mut next = KeptRates::read(directory.clone(), &config());
        let (rate, age) = next.of("b").expect("it was kept");
        assert_eq!(rate, Bitrate::from_bits_per_second(7_000_000));
        assert!(age < Duration::from_secs(3_600));
        assert_eq!(next.of("c"), None);
        let kept = next.contents.peers.get_mut("b").expect("it is there");
        kept.found_at -= OLD.as_secs();
        assert_eq!(next.of("b"), None);
    }

    #[test]
    fn a_file_that_makes_no_sense_is_as_none() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("state");
        let opened = StateDirectory::open(&directory).unwrap();
        opened.replace("fulmar-a.rates", "{\"peers\": 7").unwrap();
        drop(opened);
        assert_eq!(KeptRates::read(directory, &config()).of("b"), None);
    }
}
