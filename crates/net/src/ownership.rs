//! The ownership of files, by which files of state, custody and secrets are believed.
//!
//! Whoever can put a file where we look for ours, or write into it, controls what we do. So a file is taken
//! for ours only after it was opened, by the properties of the open descriptor: a regular file, of our user,
//! that nobody else may write. Opening never waits: another user's pipe would hold us up for ever.
//!
//! # Does not
//! - Check the directories above. Where others may rename them, nothing below is ours.

use rustix::fs::{FileType, OFlags};
use rustix::process::geteuid;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Group and others may not write a file ...
pub(crate) const FILE_FORBIDDEN: u32 = 0o022;
/// ... and others may not write into a directory. A file that members of a group put there is not ours, and is refused.
pub(crate) const DIRECTORY_FORBIDDEN: u32 = 0o002;
/// Only the owner may write a secret. Its group may read it (service managers hand secrets out so), and nobody else.
pub(crate) const SECRET_FORBIDDEN: u32 = 0o027;

/// All that anybody but the owner may do.
const BUT_OWNER: u32 = 0o077;

/// The reason why a file or directory is not ours, with the remedy; `elsewhere` is what to write into
/// the configuration instead. A directory may be root's.
pub(crate) fn problem(metadata: &Metadata, forbidden: u32, elsewhere: &str) -> Option<String> {
    let (owner, us) = (metadata.uid(), geteuid().as_raw());
    if owner != us && !(metadata.is_dir() && owner == 0) {
        return Some(format!(
            "belongs to user {owner}, and this is user {us}: give it to this user (chown), or {elsewhere}"
        ));
    }
    writable(metadata.mode(), forbidden, elsewhere)
}

/// The reason why a file or directory of our user is not ours alone, by its type and mode.
pub(crate) fn writable(mode: u32, forbidden: u32, elsewhere: &str) -> Option<String> {
    let is_directory = FileType::from_raw_mode(mode) == FileType::Directory;
    let mode = mode & 0o7777;
    (mode & forbidden != 0).then(|| {
        format!(
            "may be written by others (mode {mode:03o}): chmod {}, or {elsewhere}",
            if is_directory { "700" } else { "600" }
        )
    })
}

/// Opens a file with a secret for reading. Links are followed, since service managers hand secrets out
/// as such, but only those of our user or root, like the file itself. Its mode is the caller's to check.
///
/// Root also reads the secret of another user who alone may read it, in a directory that is theirs and that nobody else
/// may write: whoever makes a key and then runs `sudo fulmar` means their own.
///
/// # Errors
/// It cannot be opened, is no file, or belongs to another user.
pub(crate) fn open_secret(path: &Path) -> io::Result<File> {
    let refused = |why: String| io::Error::new(ErrorKind::PermissionDenied, why);
    let us = geteuid().as_raw();
    let is_ours = |metadata: &Metadata| [us, 0].contains(&metadata.uid());
    let named = fs::symlink_metadata(path)?;
    if named.is_symlink() && !is_ours(&named) {
        let whose = named.uid();
        return Err(refused(format!(
            "it is a symbolic link of user {whose}, and this is user {us}: remove it, or give it to this user"
        )));
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(refused("it is no regular file: remove it".to_owned()));
    }
    let is_theirs_alone = || us == 0 && is_alone_in_own_directory(path, &metadata);
    if !is_ours(&metadata) && !is_theirs_alone() {
        let whose = metadata.uid();
        return Err(refused(format!(
            "it belongs to user {whose}, and this is user {us}: give it to this user (chown)"
        )));
    }
    Ok(file)
}

/// Whether only its owner may read or write a file, and its owner alone decides what stands in the directory.
fn is_alone_in_own_directory(path: &Path, file: &Metadata) -> bool {
    // A name without a directory stands in the current one.
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    file.mode() & BUT_OWNER == 0
        && fs::metadata(directory).is_ok_and(|directory| {
            directory.uid() == file.uid() && directory.mode() & FILE_FORBIDDEN == 0
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    #[test]
    fn a_secret_is_read_through_links_of_ours_and_never_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let secret = place.path().join("secret");
        fs::write(&secret, "hunter2").unwrap();
        let link = place.path().join("link");
        symlink(&secret, &link).unwrap();
        open_secret(&secret).unwrap();
        open_secret(&link).unwrap();
        let pipe = place.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        for (other, said) in [
            (pipe.as_path(), "no regular file"),
            (place.path(), "no regular file"),
        ] {
            let refused = open_secret(other).unwrap_err().to_string();
            assert!(refused.contains(said), "{refused}");
        }
        let missing = open_secret(&place.path().join("none")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_secret_of_another_user_or_behind_their_link_is_refused() {
        // Only root can give files away.
        if !geteuid().is_root() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let secret = place.path().join("secret");
        fs::write(&secret, "hunter2").unwrap();
        let link = place.path().join("link");
        symlink(&secret, &link).unwrap();
        lchown(&link, Some(12_345), None).unwrap();
        let refused = open_secret(&link).unwrap_err().to_string();
        assert!(refused.contains("link of user 12345"), "{refused}");
        chown(&secret, Some(12_345), None).unwrap();
        let refused = open_secret(&secret).unwrap_err().to_string();
        assert!(refused.contains("belongs to user 12345"), "{refused}");
    }

    #[test]
    fn root_reads_the_secret_of_a_user_who_alone_may_read_it_and_write_its_directory() {
        // Only root can give files away.
        if !geteuid().is_root() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("ground");
        fs::create_dir(&folder).unwrap();
        let secret = folder.join("ground.key");
        fs::write(&secret, "hunter2").unwrap();
        let read = |of_folder: (u32, u32), mode: u32| {
            let (user, folder_mode) = of_folder;
            chown(&folder, Some(user), None).unwrap();
            fs::set_permissions(&folder, Permissions::from_mode(folder_mode)).unwrap();
            chown(&secret, Some(12_345), None).unwrap();
            fs::set_permissions(&secret, Permissions::from_mode(mode)).unwrap();
            open_secret(&secret).is_ok()
        };
        assert!(read((12_345, 0o755), 0o600));
        // The folder is another's, or others may write there; the secret's group may read it.
        for (of_folder, mode) in [
            ((0, 0o755), 0o600),
            ((54_321, 0o755), 0o600),
            ((12_345, 0o775), 0o600),
            ((12_345, 0o757), 0o600),
            ((12_345, 0o755), 0o640),
        ] {
            assert!(!read(of_folder, mode), "{of_folder:?} {mode:o}");
        }
        // The user's link to a secret of root would have root read what the user may not.
        let link = folder.join("link");
        symlink("/etc/shadow", &link).unwrap();
        lchown(&link, Some(12_345), None).unwrap();
        open_secret(&link).unwrap_err();
    }
}
