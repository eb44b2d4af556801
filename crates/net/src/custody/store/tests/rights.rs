//! Owners and modes of the directory and its files.

use super::damage::aside;
use super::*;

#[test]
fn a_directory_that_others_may_write_into_is_refused_with_the_remedy() {
    use std::os::unix::fs::PermissionsExt;
    let directory = two_flows();
    for (mode, is_good) in [
        (0o1777, false),
        (0o702, false),
        (0o750, true),
        (0o700, true),
    ] {
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
        let opened = Store::open(config(directory.path()), None);
        assert_eq!(opened.is_ok(), is_good, "{mode:o}");
        if let Err(refused) = opened {
            assert!(matches!(refused, StoreError::Untrusted { .. }), "{refused}");
            assert!(refused.to_string().contains("chmod 700"), "{refused}");
        }
    }
}

#[test]
fn pipes_links_and_others_files_of_a_segments_name_hold_nobody_up_and_are_not_taken() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    let whole = fs::read(only_file(&two_flows(), A)).unwrap();
    let plant = |what: &str, path: &Path| match what {
        "a pipe" => mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap(),
        "a directory" => fs::create_dir(path).unwrap(),
        "a link" => {
            let elsewhere = path.with_extension("elsewhere");
            fs::write(&elsewhere, &whole).unwrap();
            symlink(elsewhere, path).unwrap();
        }
        _ => {
            fs::write(path, &whole).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
            chown(path, Some(12_345), None).unwrap();
        }
    };
    // Only root can give files away.
    let is_root = rustix::process::geteuid().is_root();
    let others = is_root.then_some("another's");
    for what in ["a pipe", "a directory", "a link"]
        .into_iter()
        .chain(others)
    {
        let directory = two_flows();
        let path = only_file(&directory, A);
        fs::remove_file(&path).unwrap();
        plant(what, &path);
        let (store, mut found) = open(&directory);
        assert_right_is_whole(&mut found.flows);
        assert_eq!((found.flows.len(), found.damaged.len()), (1, 1), "{what}");
        assert!(
            found.damaged[0].why.contains("cannot be used"),
            "{}",
            found.damaged[0]
        );
        assert!(fs::symlink_metadata(&path).is_err(), "{what} is set aside");
        drop((store, found));
        assert_eq!(open(&directory).1.damaged, [], "{what}");
        // The file that carries the lock is like any other, and without it there is no store.
        let lock = directory.path().join("store");
        fs::remove_file(&lock).unwrap();
        plant(what, &lock);
        let refused = Store::open(config(directory.path()), None).unwrap_err();
        assert!(
            matches!(refused, StoreError::Untrusted { .. }),
            "{what}: {refused}"
        );
    }
}

#[test]
fn files_of_ours_that_others_may_write_keep_the_store_closed_and_where_they_are() {
    use std::os::unix::fs::PermissionsExt;
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for mode in [0o620, 0o660, 0o664, 0o602, 0o666] {
        let directory = two_flows();
        // Damage beside it, which would be set aside.
        let damaged = only_file(&directory, A);
        let mut octets = fs::read(&damaged).unwrap();
        octets[20] ^= 1;
        fs::write(&damaged, octets).unwrap();
        let path = only_file(&directory, B);
        set(&path, mode);
        let refused = Store::open(config(directory.path()), None).unwrap_err();
        assert!(matches!(refused, StoreError::Untrusted { .. }), "{refused}");
        let text = refused.to_string();
        for said in [&*path.to_string_lossy(), &format!("{mode:o}"), "chmod 600"] {
            assert!(text.contains(said), "{text}");
        }
        assert!(path.exists() && damaged.exists() && aside(&directory).is_empty());
        set(&path, 0o600);
        let (_store, mut found) = open(&directory);
        assert_right_is_whole(&mut found.flows);
    }
}
