//! The two files of a gateway: its configuration and its key.

use super::terms::{End, Terms};
use super::{FILE, PAGE, wrong};
use crate::commands::secure::failure;
use crate::exit::{Exit, Failure, OrExit};
use anyhow::{Context, anyhow};
use fulmar_net::session::{SecretKey, write_secret_key};
use fulmar_net::{GatewayConfig, PublicKey};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The facts of a gateway's file.
pub(super) struct GatewayFile<'a> {
    pub(super) terms: &'a Terms,
    pub(super) end: End,
    /// What the proxy may reach from the called end.
    pub(super) allow: &'a [String],
    /// Where the gateway listens, if not at the usual port of all addresses.
    pub(super) listen: Option<&'a str>,
    /// Where its peer is reached; the end that is called needs none.
    pub(super) peer_address: Option<&'a str>,
}

impl GatewayFile<'_> {
    /// The folder of the gateway below `place`.
    pub(super) fn folder(&self, place: &Path) -> PathBuf {
        place.join(self.terms.name(self.end))
    }

    fn paths(&self, place: &Path) -> [PathBuf; 2] {
        let folder = self.folder(place);
        let key = format!("{}.key", self.terms.name(self.end));
        [folder.join(FILE), folder.join(key)]
    }

    /// What the gateway is called, its key, its peer, and what it carries.
    pub(super) fn text(&self, peer_key: PublicKey) -> String {
        let name = self.terms.name(self.end);
        let further = |key: &str, value: Option<&str>| {
            value.map_or_else(String::new, |value| format!(", {key} = {value:?}"))
        };
        format!(
            "gateway = {{ name = \"{name}\"{} }}\n\
             security = {{ kind = \"noise\", private_key_file = \"{name}.key\" }}\n\
             peer = [{{ name = \"{}\"{}, public_key = \"{peer_key}\" }}]\n\
             {}\n\
             metrics = {{ listen = \"{PAGE}\" }}\n",
            further("listen", self.listen),
            self.terms.name(self.end.other()),
            further("address", self.peer_address),
            self.terms.line(self.end, self.allow)
        )
    }

    /// Refuses what a gateway would refuse, and to write over what a gateway of this name has: its peer knows that key.
    ///
    /// # Errors
    /// The file cannot be, or there is one.
    pub(super) fn check(&self, place: &Path, peer_key: PublicKey) -> Result<(), Failure> {
        for file in self.paths(place) {
            if file.symlink_metadata().is_ok() {
                return Err(wrong(anyhow!(
                    "{}: exists already; name another DIR, or remove it",
                    file.display()
                )));
            }
        }
        GatewayConfig::read("fulmar init", &self.text(peer_key))
            .map_err(|error| wrong(error.into()))?;
        Ok(())
    }

    /// Writes both files. They go again when the result is dropped and was not kept.
    ///
    /// # Errors
    /// One of them is there already, or cannot be written; what was written goes again.
    pub(super) fn write(
        &self,
        place: &Path,
        key: &SecretKey,
        peer_key: PublicKey,
    ) -> Result<WrittenFiles, Failure> {
        let attempt = |path: &Path| format!("writing {}", path.display());
        let mut written = WrittenFiles::default();
        let folder = self.folder(place);
        let missing = folder.ancestors().take_while(|folder| !folder.exists());
        written.folders = missing.map(Path::to_owned).collect();
        fs::create_dir_all(&folder)
            .with_context(|| attempt(&folder))
            .or_exit(Exit::Device)?;
        let [file, key_file] = self.paths(place);
        write_secret_key(&key_file, key).map_err(failure)?;
        written.files.insert(0, key_file);
        let mut open = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&file)
            .with_context(|| attempt(&file))
            .or_exit(Exit::Device)?;
        written.files.insert(0, file);
        open.write_all(self.text(peer_key).as_bytes())
            .and_then(|()| open.sync_all())
            .with_context(|| format!("writing {}", folder.join(FILE).display()))
            .or_exit(Exit::Device)?;
        Ok(written)
    }
}

/// Files just written, the configuration first, and the folders that were made for them.
#[derive(Debug, Default)]
pub(super) struct WrittenFiles {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

impl WrittenFiles {
    /// Keeps the files, and names them.
    pub(super) fn keep(mut self) -> Vec<PathBuf> {
        self.folders.clear();
        std::mem::take(&mut self.files)
    }
}

impl Drop for WrittenFiles {
    fn drop(&mut self) {
        // What cannot be removed stays; a folder in which there is something else stays as well.
        for file in &self.files {
            let _removed = fs::remove_file(file);
        }
        for folder in &self.folders {
            let _removed = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::terms::Carried;
    use super::*;
    use fulmar_net::session::Entropy;

    #[test]
    fn files_that_are_not_kept_go_with_the_folders_that_were_made_for_them() {
        let place = tempfile::tempdir().expect("a place");
        let terms = Terms {
            called: "a".to_owned(),
            caller: "b".to_owned(),
            carried: Carried::Proxy {},
        };
        let file = GatewayFile {
            terms: &terms,
            end: End::Called,
            allow: &[],
            listen: None,
            peer_address: None,
        };
        let key = SecretKey::generate(&mut Entropy::from_seed([1; 32]));
        let there = place.path().join("there");
        fs::create_dir(&there).expect("room");
        let below = there.join("new/newer");
        let written = file.write(&below, &key, key.public()).expect("room");
        assert_eq!(fs::read_dir(below.join("a")).expect("made").count(), 2);
        drop(written);
        assert_eq!(fs::read_dir(&there).expect("it was there").count(), 0);

        let kept = file.write(&below, &key, key.public()).expect("room").keep();
        assert!(kept.iter().all(|file| file.exists()) && kept.len() == 2);
        fs::remove_file(&kept[1]).expect("it is there");
        let failed = file
            .write(&below, &key, key.public())
            .expect_err("a file is there");
        assert!(failed.line().contains("fulmar.toml"), "{}", failed.line());
        assert!(kept[0].exists() && !kept[1].exists(), "as it was");
    }
}
