//! The flags that secure a transfer or a test, as gateways are secured.

use super::overwrite;
use crate::exit::{Exit, Failure, OrExit};
use anyhow::anyhow;
use fulmar_net::secured::{Credentials, SecurityNote};
use fulmar_net::session::{
    HandshakeRefusal, Hint, KeyFileError, Mismatch, PresetKey, PublicKey, SecretKey, SecurityKinds,
    read_preset_key, read_secret_key,
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
    /// UDP with its checksum (udp), or also without it (auto), where the link damages packets and delivers them all the same:
    /// what is damaged is mended then. Needs keys, and over IPv6 at both ends.
    #[arg(long, value_name = "CARRIER", default_value = "udp", value_parser = ["auto", "udp"])]
    carrier: String,
}

/// The choice of a carrier that leaves it open.
const AUTO: &str = "auto";

impl SecurityArgs {
    /// Whether there are keys.
    pub(crate) const fn is_given(&self) -> bool {
        self.key.is_some() || self.preset.is_some()
    }

    /// Whether data may leave without checksum, and may come without.
    pub(crate) fn chooses_checksum(&self) -> bool {
        self.carrier == AUTO
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

    /// Reads the preset key, which must be given.
    ///
    /// # Errors
    /// There is none, or it cannot be used.
    pub(crate) fn preset(&self) -> Result<PresetKey, Failure> {
        let Some(preset) = &self.preset else {
            let problem = "--return none needs --preset: a key that all ends have, made with `fulmar keygen --preset link.preset`";
            return Err(anyhow!(problem)).or_exit(Exit::Usage);
        };
        read_preset_key(preset).map_err(failure)
    }

    /// Reads the keys. An end that `calls` another has one peer.
    ///
    /// # Errors
    /// A file cannot be used, or there are too many peers.
    pub(crate) fn read(&self, calls: bool) -> Result<Option<Credentials>, Failure> {
        let preset = self.preset.as_deref().map(read_preset_key).transpose();
        let preset: Option<PresetKey> = preset.map_err(failure)?;
        if self.chooses_checksum() && !self.is_given() {
            let problem = "--carrier auto: only a session with keys mends what is damaged; make one key for both ends with \
                           `fulmar keygen --preset link.preset` and give them --preset link.preset, or --key and --peer";
            return Err(anyhow!(problem)).or_exit(Exit::Usage);
        }
        let Some(key) = &self.key else {
            return Ok(preset.map(Credentials::Preset));
        };
        if calls && self.peers.len() > 1 {
            let problem = "--peer: one key, of the end that is called";
            return Err(anyhow!(problem)).or_exit(Exit::Usage);
        }
        let own: SecretKey = read_secret_key(key).map_err(failure)?;
        self.check_peers(own.public(), key)?;
        let peers = self.peers.clone();
        Ok(Some(Credentials::Keys { own, peers, preset }))
    }
}

impl SecurityArgs {
    /// Refuses our own key as a peer's, and one key for two peers.
    fn check_peers(&self, own: PublicKey, file: &Path) -> Result<(), Failure> {
        let mut seen = Vec::new();
        for peer in &self.peers {
            let problem = if *peer == own {
                let file = file.display();
                format!(
                    "--peer {peer}: this is our own public key, of --key {file}; give the one that `fulmar \
                     keygen --public FILE` prints at the other end"
                )
            } else if seen.contains(peer) {
                format!("--peer {peer}: given twice; each peer has a key of its own")
            } else {
                seen.push(*peer);
                continue;
            };
            return Err(anyhow!(problem)).or_exit(Exit::Usage);
        }
        Ok(())
    }
}

/// The options of an end with security of these kinds, as an end without any calls them.
fn options(kinds: SecurityKinds) -> &'static str {
    match (
        kinds.contains(SecurityKinds::NOISE),
        kinds.contains(SecurityKinds::PRESET),
    ) {
        (true, false) => "--key and --peer",
        (false, true) => "--preset alone",
        (true, true) => "--key and --peer, or --preset alone",
        (false, false) => "no keys",
    }
}

/// A note in the words of the options that would mend it: the session speaks of a gateway's file.
pub(crate) fn in_options(note: &SecurityNote) -> String {
    match note {
        SecurityNote::CallsWithKeys(from, kind) => format!(
            "{from} calls with {}, and this end has no keys, so it gets no answer: give both ends keys, or neither",
            options(*kind)
        ),
        SecurityNote::CallsWithoutKeys(from) => format!(
            "{from} calls without keys, and this end has some, so it gets no answer: give both ends --key and \
             --peer, or --preset, or neither"
        ),
        SecurityNote::Refused(reason) => format!("a handshake was refused: {}", refusal(reason)),
        SecurityNote::TurnedAway(hint) => {
            format!("the other end says, without proof: {}", turned_away(hint))
        }
        SecurityNote::Mismatch { what, ours, theirs } => {
            format!("the ends differ in {what}: {ours} here, {theirs} there")
        }
        SecurityNote::TooNarrow(why) => why.clone(),
        SecurityNote::CarrierChosen { is_unchecked, why } => {
            let form = if *is_unchecked { "without" } else { "with" };
            format!("data leaves by UDP {form} checksum: {why}")
        }
    }
}

fn refusal(reason: &HandshakeRefusal) -> String {
    match reason {
        HandshakeRefusal::WrongPublicKey(own) => {
            format!("it calls another public key than ours; give it --peer {own}, which is ours")
        }
        HandshakeRefusal::UnknownPeer(key) => format!(
            "its public key {key} is none that was given here: if it is to come in, add --peer {key}"
        ),
        HandshakeRefusal::OldEpoch => "it is older than the last one under its key: another process started \
             later with a copy of that key (give each its own by `fulmar keygen`), or its clock was \
             set back, or somebody replays"
            .to_owned(),
        HandshakeRefusal::Mismatch(mismatch) => differ(*mismatch),
        other => other.to_string(),
    }
}

fn turned_away(hint: &Hint) -> String {
    match hint {
        Hint::WrongPublicKey(key) => format!(
            "its public key is not {key}; give --peer what `fulmar keygen --public FILE` prints there"
        ),
        Hint::UnknownCaller(own) => {
            format!("it was not given our public key; there, add --peer {own}")
        }
        Hint::Superseded => {
            "another process that started later uses our key (give each its own by \
             `fulmar keygen`), or our clock was set back"
                .to_owned()
        }
        Hint::Mismatch(mismatch) => differ(*mismatch),
    }
}

fn differ(mismatch: Mismatch) -> String {
    match mismatch {
        Mismatch::PresetKey => {
            "its --preset is another than ours: copy one file to both ends".to_owned()
        }
        Mismatch::Label => {
            "it is a gateway with security = \"none\": call a `fulmar recv` or `fulmar perf -s`"
                .to_owned()
        }
        Mismatch::Security { ours, theirs } => format!(
            "it has {}, and we have {}: give both ends the same",
            options(theirs),
            options(ours)
        ),
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

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_net::session::Entropy;

    /// Every note, of every reason that names a setting.
    fn notes() -> Vec<SecurityNote> {
        let key = SecretKey::generate(&mut Entropy::from_seed([1; 32])).public();
        let from = ([192, 0, 2, 1], 9).into();
        let kinds = [
            SecurityKinds::NOISE,
            SecurityKinds::PRESET,
            SecurityKinds::NONE,
            SecurityKinds::NOISE.and(SecurityKinds::PRESET),
        ];
        let pairs = kinds.iter().flat_map(|ours| {
            let theirs = kinds.iter();
            theirs.map(|theirs| Mismatch::Security {
                ours: *ours,
                theirs: *theirs,
            })
        });
        let mismatches = pairs.chain([Mismatch::PresetKey, Mismatch::Label]);
        let both = mismatches.flat_map(|mismatch| {
            [
                SecurityNote::Refused(HandshakeRefusal::Mismatch(mismatch)),
                SecurityNote::TurnedAway(Hint::Mismatch(mismatch)),
            ]
        });
        let refusals = [
            HandshakeRefusal::WrongPublicKey(key),
            HandshakeRefusal::UnknownPeer(key),
            HandshakeRefusal::OldEpoch,
            HandshakeRefusal::Reflected,
            HandshakeRefusal::ResponseForged(SecurityKinds::NOISE),
            HandshakeRefusal::Unconfirmed(SecurityKinds::PRESET),
            HandshakeRefusal::Version { ours: 1, theirs: 2 },
        ];
        let hints = [
            Hint::WrongPublicKey(key),
            Hint::UnknownCaller(key),
            Hint::Superseded,
        ];
        let calls = kinds.map(|kind| SecurityNote::CallsWithKeys(from, kind));
        both.chain(refusals.map(SecurityNote::Refused))
            .chain(hints.map(SecurityNote::TurnedAway))
            .chain(calls)
            .chain([SecurityNote::CallsWithoutKeys(from)])
            .collect()
    }

    #[test]
    fn notes_speak_of_options_and_not_of_a_gateways_file() {
        for note in notes() {
            let text = in_options(&note);
            for of_gateways in ["[[", "public_key", "state_dir", "security kind", "`noise`"] {
                assert!(!text.contains(of_gateways), "{note:?}: {text}");
            }
        }
    }

    #[test]
    fn who_is_turned_away_reads_which_option_would_let_it_in() {
        let key = SecretKey::generate(&mut Entropy::from_seed([1; 32])).public();
        for (note, said) in [
            (
                SecurityNote::Refused(HandshakeRefusal::UnknownPeer(key)),
                format!("add --peer {key}"),
            ),
            (
                SecurityNote::TurnedAway(Hint::WrongPublicKey(key)),
                "give --peer what".to_owned(),
            ),
            (
                SecurityNote::TurnedAway(Hint::Mismatch(Mismatch::PresetKey)),
                "--preset is another".to_owned(),
            ),
            (
                SecurityNote::Refused(HandshakeRefusal::Mismatch(Mismatch::Security {
                    ours: SecurityKinds::NOISE,
                    theirs: SecurityKinds::PRESET,
                })),
                "it has --preset alone, and we have --key and --peer".to_owned(),
            ),
        ] {
            let text = in_options(&note);
            assert!(text.contains(&said), "{text}");
        }
    }
}
