//! Whether files can be made in a directory, found out before anything else is begun.

use anyhow::Context;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

/// Makes an empty file in `directory` and removes it again. Permissions alone do not tell: a file system may take no
/// files, and root may do what they forbid.
///
/// # Errors
/// It cannot be made or removed; the error names the directory and `contents`, which could not be kept there.
pub(super) fn writable(directory: &Path, contents: &str) -> anyhow::Result<()> {
    let probe = directory.join(format!(".fulmar-probe-{}", std::process::id()));
    let made = File::create_new(&probe).map(drop);
    // One of a process of this number that was killed here is as good a sign.
    let made = match made {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    };
    made.and_then(|()| fs::remove_file(&probe)).with_context(|| {
        format!(
            "the directory {} does not take {contents}; give another, or the right to write there",
            directory.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_takes_files_is_left_as_it_was() {
        let directory = tempfile::tempdir().expect("a directory");
        writable(directory.path(), "files").expect("it is ours");
        assert_eq!(fs::read_dir(directory.path()).expect("it").count(), 0);
        let problem = writable(Path::new("/proc"), "files").expect_err("it takes none");
        assert!(problem.to_string().contains("/proc"), "{problem}");
    }
}
