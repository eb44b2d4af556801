//! Another configuration for a running gateway, and who asked for it. Its files are read where the loop does not wait for it.

use super::config::{GatewayConfig, Keys, read_keys};
use super::entries::entry;
use super::error::GatewayError;
use super::link::{known_address, session_settings};
use core::fmt;

/// The one who asked for a reload, as far as the kernel tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asker {
    /// The user of the process that sent the signal.
    pub uid: Option<u32>,
    /// That process.
    pub pid: Option<u32>,
    /// The user who logged in, whoever he became since (proc(5): `loginuid`).
    pub login_uid: Option<u32>,
    /// The owner of the configuration file.
    pub file_uid: Option<u32>,
}

impl fmt::Display for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = [
            ("uid", self.uid),
            ("pid", self.pid),
            ("login uid", self.login_uid),
            ("file of uid", self.file_uid),
        ];
        let known = known
            .into_iter()
            .filter_map(|(name, number)| Some(format!("{name} {}", number?)));
        let known: Vec<String> = known.collect();
        if known.is_empty() {
            return f.write_str("unknown");
        }
        f.write_str(&known.join(", "))
    }
}

/// A configuration that a running gateway can take up, with the contents of its files.
#[derive(Debug)]
pub struct Reload {
    pub(super) config: GatewayConfig,
    pub(super) keys: Keys,
    pub(super) by: Asker,
}

impl Reload {
    /// Reads the files of `config`, and tries whether its settings fit each other.
    ///
    /// # Errors
    /// [`GatewayError`]: a key or password cannot be read, or two peers could not be told apart.
    pub fn prepare(config: GatewayConfig, by: Asker) -> Result<Self, GatewayError> {
        let keys = read_keys(&config)?;
        entry::rules(&config)?;
        session_settings(&config, &keys, Vec::new(), 0).check()?;
        for index in 0..config.peers.len() {
            known_address(&config, index)?;
        }
        Ok(Self { config, keys, by })
    }
}
