//! The flags that secure a transfer or a test, as gateways are secured.

use super::overwrite;
use crate::exit::{Exit, Failure, OrExit};
use anyhow::anyhow;
use fulmar_net::secured::Credentials;
use fulmar_net::session::{
    KeyFileError, PresetKey, PublicKey, SecretKey, read_preset_key, read_secret_key,
};
use std::path::{Path, PathBuf};

/// The warning that every unsecured command prints once.
const UNSECURED: &str = "fulmar: not secured: whoever is on the way can read and change this, and the other \
end may be anyone; --key and --peer, or --preset, secure it";

/// The keys of one end.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Security")]
pub(crate) struct SecurityArgs {
    /// Our secret key, made with `fulmar keygen FILE`: everything is encrypted, and each end knows the other.
    #[arg(long, value_name = "FILE", requires = "peers")]
    key: Option<PathBuf>,
    /// The other end's public key; an end that waits may be given several. Each is of one sender at a time.
    #[arg(long = "peer", value_name = "KEY", requires = "key")]
    peers: Vec<PublicKey>,
    /// A key that both ends have, made with `fulmar keygen --preset FILE`: instead of --key and --peer, or
    /// on top of them.
    #[arg(long, value_name = "FILE")]
    preset: Option<PathBuf>,
}

impl SecurityArgs {
    /// Whether there are keys.
    pub(crate) const fn is_given(&self) -> bool {
        self.key.is_some() || self.preset.is_some()
    }

    /// Warns, unless `quiet`, that there are none.
    pub(crate) fn warn(&self, quiet: bool) {
        if !self.is_given() && !quiet {
            eprintln!("{UNSECURED}");
        }
    }

    /// The files that are read.
    fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.key, &self.preset]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
    }

    /// Refuses a recording, given by `flag`, that would overwrite a key file.
    ///
    /// # Errors
    /// It would.
    pub(crate) fn spare(&self, flag: &str, output: &Path) -> Result<(), Failure> {
        let mut files = self.files();
        files.try_for_each(|file| overwrite::refuse_recording(flag, output, file))
    }

    /// Reads the keys. An end that `calls` another has one peer.
    ///
    /// # Errors
    /// A file cannot be used, or there are too many peers.
    pub(crate) fn read(&self, calls: bool) -> Result<Option<Credentials>, Failure> {
        let preset = self.preset.as_deref().map(read_preset_key).transpose();
        let preset: Option<PresetKey> = preset.map_err(failure)?;
        let Some(key) = &self.key else {
            return Ok(preset.map(Credentials::Preset));
        };
        if calls && self.peers.len() > 1 {
            let problem = "--peer: one key, of the end that is called";
            return Err(anyhow!(problem)).or_exit(Exit::Usage);
        }
        let own: SecretKey = read_secret_key(key).map_err(failure)?;
        let peers = self.peers.clone();
        Ok(Some(Credentials::Keys { own, peers, preset }))
    }
}

/// A key file that cannot be used.
pub(crate) fn failure(error: KeyFileError) -> Failure {
    let exit = match error {
        KeyFileError::NoName
        | KeyFileError::Key { .. }
        | KeyFileError::Count { .. }
        | KeyFileError::Exists { .. } => Exit::Usage,
        KeyFileError::Missing { .. }
        | KeyFileError::Read { .. }
        | KeyFileError::Mode { .. }
        | KeyFileError::Write { .. } => Exit::Device,
    };
    Failure {
        exit,
        cause: error.into(),
    }
}
