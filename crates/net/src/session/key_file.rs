//! Keys in files: one key in base64, comments behind `#`, readable by nobody else.

use super::keys::{KeyError, PresetKey, SecretKey};
use crate::ownership::{self, SECRET_FORBIDDEN};
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use zeroize::Zeroizing;

/// Only the owner may read or write.
const SECRET_MODE: u32 = 0o600;
/// A key with some comments has a few hundred octets.
const FILE_BYTES_MAX: u64 = 4_096;

/// The reason why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It is not there.
    #[error("there is no key file {}{}", .path.display(), cure_of_missing(.path, .elsewhere.as_deref(), .flag))]
    Missing {
        /// The file, from the root on.
        path: PathBuf,
        /// The file of that name in the working directory, from the root on, if there is one.
        elsewhere: Option<PathBuf>,
        /// The option of `fulmar keygen` for this kind of key.
        flag: &'static str,
    },
    /// A key stands in place of the file's name. It is not repeated: it may be a secret one.
    #[error(
        "a key stands where the name of its file belongs; write the key into a file of its own (mode 600), and name that"
    )]
    NoName,
    /// It cannot be opened or read.
    #[error("reading the key file {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Others may read or change it.
    #[error("the key file {path} is open to others (mode {mode:03o}); run: chmod 600 {path}", path = .path.display())]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A line of it is no key.
    #[error("the key file {}, line {line}", .path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The line's fault.
        source: KeyError,
    },
    /// It holds no key, or more than one.
    #[error("the key file {} holds {found} keys; it must hold one", .path.display())]
    Count {
        /// The file.
        path: PathBuf,
        /// The number of keys found.
        found: usize,
    },
    /// A file of that name is there already.
    #[error("{} exists and is left as it is; choose another name, or move it away first", .path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be written.
    #[error("writing the key file {}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// Reads a secret key.
///
/// # Errors
/// [`KeyFileError`]: the file cannot be read, is open to others, or holds no key.
pub fn read_secret_key(path: &Path) -> Result<SecretKey, KeyFileError> {
    read_key(path, "")
}

/// Reads a preset key.
///
/// # Errors
/// [`KeyFileError`]: the file cannot be read, is open to others, or holds no key.
pub fn read_preset_key(path: &Path) -> Result<PresetKey, KeyFileError> {
    read_key(path, "--preset ")
}

/// The cure for a key file that is not there: another key would be another identity, which the other end does not know.
fn cure_of_missing(path: &Path, elsewhere: Option<&Path>, flag: &str) -> String {
    match elsewhere {
        Some(elsewhere) => format!(
            ", but there is {} in the working directory; move it, or write its whole path",
            elsewhere.display()
        ),
        None => format!(
            "; name the file of the key that there is, or make one with: fulmar keygen {flag}{}",
            path.display()
        ),
    }
}

/// The path from the root on.
fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The path, and what stands behind each of its slashes: one of them is what was written into a configuration, whose
/// folder stands before it.
fn endings(path: &Path) -> impl Iterator<Item = &str> {
    let text = path.to_str().unwrap_or_default();
    let behind = text.match_indices('/').map(|(at, slash)| at + slash.len());
    core::iter::once(0).chain(behind).map(|at| &text[at..])
}

/// The file in the working directory that is called as that one is, if there is one.
fn in_working_directory(path: &Path) -> Option<PathBuf> {
    let mut relative = endings(path).map(Path::new).filter(|it| it.is_relative());
    relative.find(|it| it.is_file()).map(whole)
}

fn read_key<K: FromStr<Err = KeyError>>(
    path: &Path,
    flag: &'static str,
) -> Result<K, KeyFileError> {
    let failed = |source| KeyFileError::Read {
        path: path.to_owned(),
        source,
    };
    let is_key = || endings(path).any(|ending| ending.parse::<K>().is_ok());
    let file = ownership::open_secret(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound if is_key() => KeyFileError::NoName,
        io::ErrorKind::NotFound => KeyFileError::Missing {
            path: whole(path),
            elsewhere: in_working_directory(path),
            flag,
        },
        _ => failed(source),
    })?;
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
    if mode & SECRET_FORBIDDEN != 0 {
        return Err(KeyFileError::Mode {
            path: path.to_owned(),
            mode,
        });
    }
    let mut text = Zeroizing::new(String::new());
    file.take(FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(failed)?;
    let mut lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let (Some((line, key)), None) = (lines.next(), lines.next()) else {
        let found = text
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
            .count();
        return Err(KeyFileError::Count {
            path: path.to_owned(),
            found,
        });
    };
    key.parse().map_err(|source| KeyFileError::Key {
        path: path.to_owned(),
        line,
        source,
    })
}

/// Writes a new secret key file.
///
/// # Errors
/// [`KeyFileError`]: a file is there already, or it cannot be written.
pub fn write_secret_key(path: &Path, key: &SecretKey) -> Result<(), KeyFileError> {
    let text = Zeroizing::new(format!(
        "# Fulmar secret key: keep it here and nowhere else. Its public key, for the other end:\n\
         # {}\n{}\n",
        key.public(),
        *Zeroizing::new(key.to_text())
    ));
    write_new(path, &text)
}

/// Writes a new preset key file.
///
/// # Errors
/// [`KeyFileError`]: a file is there already, or it cannot be written.
pub fn write_preset_key(path: &Path, key: &PresetKey) -> Result<(), KeyFileError> {
    let text = Zeroizing::new(format!(
        "# Fulmar preset key: copy it to the other end, over a safe way, and nowhere else.\n{}\n",
        *Zeroizing::new(key.to_text())
    ));
    write_new(path, &text)
}

fn write_new(path: &Path, text: &str) -> Result<(), KeyFileError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => KeyFileError::Exists {
            path: path.to_owned(),
        },
        _ => KeyFileError::Write {
            path: path.to_owned(),
            source,
        },
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(SECRET_MODE)
        .open(path)
        .map_err(failed)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    written.map_err(|error| {
        // Half a key is worse than none. If it cannot be removed, nothing is to be done.
        let _ = fs::remove_file(path);
        failed(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::entropy::Entropy;

    fn keys() -> (SecretKey, PresetKey) {
        let mut entropy = Entropy::from_seed([5; 32]);
        (
            SecretKey::generate(&mut entropy),
            PresetKey::generate(&mut entropy),
        )
    }

    #[test]
    fn keys_survive_their_files_which_only_the_owner_may_read() {
        let place = tempfile::tempdir().unwrap();
        let (secret, preset) = keys();
        let (a, b) = (place.path().join("a.key"), place.path().join("b.preset"));
        write_secret_key(&a, &secret).unwrap();
        write_preset_key(&b, &preset).unwrap();
        assert_eq!(read_secret_key(&a).unwrap(), secret);
        assert_eq!(read_preset_key(&b).unwrap(), preset);
        for file in [&a, &b] {
            let mode = fs::metadata(file).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600);
        }
        let text = fs::read_to_string(&a).unwrap();
        assert!(text.contains(&secret.public().to_string()));
    }

    #[test]
    fn nothing_is_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.key");
        let (secret, preset) = keys();
        write_secret_key(&path, &secret).unwrap();
        let refused = write_preset_key(&path, &preset).unwrap_err();
        assert!(matches!(refused, KeyFileError::Exists { .. }), "{refused}");
        assert_eq!(read_secret_key(&path).unwrap(), secret);
    }

    #[test]
    fn a_file_that_is_not_there_is_named_with_its_directory_and_a_key_in_its_place_is_not_repeated()
    {
        let (secret, preset) = keys();
        let missing = read_secret_key(Path::new("none.key")).unwrap_err();
        let here = std::env::current_dir().unwrap().join("none.key");
        let said = missing.to_string();
        assert!(said.contains(&here.display().to_string()), "{said}");
        let texts = [secret.to_text(), preset.to_text()];
        // As it stands in a configuration, and behind the folder of that.
        let folders = ["", "/etc/fulmar"].map(Path::new);
        let refused = folders.into_iter().flat_map(|folder| {
            [
                read_secret_key(&folder.join(&*texts[0])).unwrap_err(),
                read_preset_key(&folder.join(&*texts[1])).unwrap_err(),
            ]
        });
        for (refused, key) in refused.zip(texts.iter().cycle()) {
            let said = refused.to_string();
            assert!(
                said.contains("the name of its file") && !said.contains(&key[..4]),
                "{said}"
            );
        }
    }

    #[test]
    fn a_file_that_others_may_read_or_change_is_refused_with_the_remedy() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.key");
        write_secret_key(&path, &keys().0).unwrap();
        for (mode, good) in [
            (0o644, false),
            (0o620, false),
            (0o601, false),
            (0o640, true),
            (0o400, true),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let read = read_secret_key(&path);
            assert_eq!(read.is_ok(), good, "{mode:o}");
            if let Err(error) = read {
                let said = error.to_string();
                assert!(
                    said.contains("chmod 600") && said.contains("a.key"),
                    "{said}"
                );
            }
        }
    }

    #[test]
    fn a_file_without_exactly_one_key_is_refused_with_its_place() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.key");
        let write = |text: &str| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            read_secret_key(&path).unwrap_err()
        };
        assert!(matches!(
            write("# nothing\n"),
            KeyFileError::Count { found: 0, .. }
        ));
        let two = format!("{0}\n{0}\n", "A".repeat(44));
        assert!(matches!(write(&two), KeyFileError::Count { found: 2, .. }));
        assert!(matches!(
            write("# x\n\nhunter2\n"),
            KeyFileError::Key { line: 3, .. }
        ));
        assert!(matches!(
            read_secret_key(Path::new("/")).unwrap_err(),
            KeyFileError::Mode { .. } | KeyFileError::Read { .. }
        ));
        let missing = read_preset_key(Path::new("/nowhere/at/all")).unwrap_err();
        let said = missing.to_string();
        assert!(
            said.ends_with("fulmar keygen --preset /nowhere/at/all"),
            "{said}"
        );
    }
}
