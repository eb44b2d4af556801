use super::*;

fn recovered(directory: &Path) -> Part {
    let mut part = Part::open(directory, "file", &Verified::default()).unwrap();
    while part.is_recovering() {
        part.recover().unwrap();
    }
    part
}

#[test]
fn only_what_was_checkpointed_is_taken_up_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut part = recovered(directory.path());
    part.append(b"durable").unwrap();
    part.checkpoint().unwrap();
    part.append(&vec![b'x'; WRITE_BUFFER + 1]).unwrap();
    drop(part);
    let mut part = recovered(directory.path());
    assert_eq!(part.written(), 7);
    part.append(b" and more").unwrap();
    let target = part.finish(false).unwrap();
    assert_eq!(fs::read(target).unwrap(), b"durable and more");
    assert_eq!(
        fs::read_dir(directory.path()).unwrap().count(),
        1,
        "nothing is left behind"
    );
}

#[test]
fn a_part_that_was_changed_is_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let mut part = recovered(directory.path());
    part.append(b"durable").unwrap();
    part.checkpoint().unwrap();
    drop(part);
    fs::write(directory.path().join("file.fulmar-part"), b"durablE").unwrap();
    assert_eq!(recovered(directory.path()).written(), 0);
}

#[test]
fn a_part_shorter_than_its_state_is_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let mut part = recovered(directory.path());
    part.append(b"durable").unwrap();
    part.checkpoint().unwrap();
    drop(part);
    fs::write(directory.path().join("file.fulmar-part"), b"dur").unwrap();
    assert_eq!(recovered(directory.path()).written(), 0);
}

#[test]
fn an_existing_file_is_replaced_only_on_request() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), b"precious").unwrap();
    let mut part = recovered(directory.path());
    part.append(b"new").unwrap();
    assert_eq!(
        part.finish(false).unwrap_err().source.kind(),
        ErrorKind::AlreadyExists
    );
    assert_eq!(
        fs::read(directory.path().join("file")).unwrap(),
        b"precious"
    );
    let mut part = recovered(directory.path());
    part.restart().unwrap();
    part.append(b"new").unwrap();
    part.finish(true).unwrap();
    assert_eq!(fs::read(directory.path().join("file")).unwrap(), b"new");
}

#[test]
fn the_name_is_given_in_one_step_to_the_file_that_has_all_octets() {
    let directory = tempfile::tempdir().unwrap();
    let mut part = recovered(directory.path());
    part.append(b"everything").unwrap();
    let inode = part.file.metadata().unwrap().ino();
    let target = part.finish(false).unwrap();
    assert_eq!(fs::metadata(target).unwrap().ino(), inode);
}

#[test]
fn of_two_that_publish_at_once_one_gets_the_name_and_the_other_keeps_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("file");
    for _ in 0..200 {
        let start = std::sync::Barrier::new(2);
        let race = |name: &str| {
            let part = directory.path().join(name);
            fs::write(&part, name).unwrap();
            start.wait();
            (publish(&part, &target).is_ok(), part)
        };
        let (first, second) = std::thread::scope(|scope| {
            let first = scope.spawn(|| race("first"));
            (race("second"), first.join().unwrap())
        });
        assert!(first.0 != second.0, "exactly one");
        let (winner, loser) = if first.0 {
            (first.1, second.1)
        } else {
            (second.1, first.1)
        };
        let name = winner.file_name().unwrap().to_str().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), name);
        assert!(loser.exists() && !winner.exists());
        fs::remove_file(&target).unwrap();
    }
}

#[test]
fn a_part_that_lost_its_name_before_it_was_locked_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("part");
    let mut opened = 0;
    let take_away = || {
        let mut opened = 0;
        for _ in 0..3_000 {
            // Refused while the other has it.
            let Ok(file) = open_locked(&path) else {
                continue;
            };
            opened += 1;
            assert!(is_named(&file, &path).unwrap());
            // Only who holds the lock does this, as at the end of every transfer.
            fs::remove_file(&path).unwrap();
        }
        opened
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(take_away);
        opened += take_away();
        opened += other.join().unwrap();
    });
    assert!(opened > 0);
}

#[test]
fn an_incomplete_file_replaces_no_earlier_one() {
    let directory = tempfile::tempdir().unwrap();
    let names = ["file.incomplete", "file.incomplete-2", "file.incomplete-3"];
    for (octets, name) in [b"one", b"two", b"six"].into_iter().zip(names) {
        let mut part = recovered(directory.path());
        part.place(1, octets).unwrap();
        assert_eq!(
            part.keep_incomplete(5).unwrap(),
            directory.path().join(name)
        );
    }
    let read = |name| fs::read(directory.path().join(name)).unwrap();
    assert_eq!(names.map(read), [*b"\0one\0", *b"\0two\0", *b"\0six\0"]);
}

#[test]
fn a_second_receiver_of_the_same_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let _first = recovered(directory.path());
    let refused = Part::open(directory.path(), "file", &Verified::default()).unwrap_err();
    assert_eq!(refused.source.kind(), ErrorKind::ResourceBusy);
}

#[test]
fn states_that_make_no_sense_vouch_for_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let digest = blake3::hash(b"").to_hex();
    for text in [
        String::new(),
        format!("fulmar-state 2 0 {digest}\n"),
        format!("fulmar-state 1 -1 {digest}\n"),
        format!("fulmar-state 1 0 {digest}"),
        format!("fulmar-state 1 0 {digest} more\n"),
        "fulmar-state 1 0 beef\n".to_owned(),
    ] {
        fs::write(&path, &text).unwrap();
        assert_eq!(read_state(&path), None, "{text:?}");
    }
    fs::write(&path, format!("fulmar-state 1 0 {digest}\n")).unwrap();
    assert_eq!(read_state(&path), Some((0, *blake3::hash(b"").as_bytes())));
}

#[test]
fn a_link_or_a_pipe_in_a_working_files_place_is_never_followed_or_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let victim = directory.path().join("victim");
    fs::write(&victim, b"precious").unwrap();
    let part = directory.path().join("file.fulmar-part");
    std::os::unix::fs::symlink(&victim, &part).unwrap();
    let error = Part::open(directory.path(), "file", &Verified::default()).unwrap_err();
    assert!(
        error.source.to_string().contains("symbolic link"),
        "{error:?}"
    );
    fs::remove_file(&part).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &part, fifo, 0o600.into(), 0).unwrap();
    let error = Part::open(directory.path(), "file", &Verified::default()).unwrap_err();
    assert!(error.source.to_string().contains("no file"), "{error:?}");
    fs::remove_file(&part).unwrap();

    for suffix in [".fulmar-state", ".fulmar-state-new"] {
        let link = directory.path().join(format!("file{suffix}"));
        std::os::unix::fs::symlink(&victim, &link).unwrap();
    }
    let mut part = recovered(directory.path());
    part.append(b"durable").unwrap();
    part.checkpoint().unwrap();
    drop(part);
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(
        recovered(directory.path()).written(),
        7,
        "the state is a file now"
    );
}

#[test]
fn what_no_state_vouches_for_is_given_back_after_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file.fulmar-part");
    let mut part = recovered(directory.path());
    part.append(&vec![b'x'; WRITE_BUFFER]).unwrap();
    assert!(fs::metadata(&path).unwrap().len() > 0);
    part.keep_durable();
    assert!(!path.exists());

    let mut part = recovered(directory.path());
    part.append(b"durable").unwrap();
    part.checkpoint().unwrap();
    part.append(&vec![b'x'; WRITE_BUFFER]).unwrap();
    part.keep_durable();
    assert_eq!(fs::metadata(&path).unwrap().len(), 7);
    Part::open(directory.path(), "file", &Verified::default())
        .unwrap()
        .keep_durable();
    assert_eq!(
        recovered(directory.path()).written(),
        7,
        "not verified is not lost"
    );
}

#[test]
fn who_leaves_while_a_part_is_verified_takes_nothing_of_it_away() {
    const OCTETS: usize = 3 * RECOVER_STEP;
    let directory = tempfile::tempdir().unwrap();
    let mut part = recovered(directory.path());
    part.append(&vec![7; OCTETS]).unwrap();
    part.checkpoint().unwrap();
    drop(part);
    let verified = Verified::default();
    for _ in 0..10 {
        let mut part = Part::open(directory.path(), "file", &verified).unwrap();
        // Either way to leave it.
        if part.is_recovering() {
            part.recover().unwrap();
        }
        part.leave().unwrap();
        drop(part);
        let mut part = Part::open(directory.path(), "file", &verified).unwrap();
        if part.is_recovering() {
            part.recover().unwrap();
        }
        part.keep_durable();
    }
    assert_eq!(
        verified.read_bytes(),
        OCTETS as u64,
        "each octet is read once"
    );
    assert_eq!(recovered(directory.path()).written(), OCTETS as u64);
}

#[test]
fn a_part_that_was_known_and_changed_is_read_again_and_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let verified = Verified::default();
    let mut part = Part::open(directory.path(), "file", &verified).unwrap();
    part.append(b"durable").unwrap();
    part.leave().unwrap();
    drop(part);
    let known = Part::open(directory.path(), "file", &verified).unwrap();
    assert_eq!(known.written(), 7, "known without being read");
    drop(known);
    fs::write(directory.path().join("file.fulmar-part"), b"another").unwrap();
    // A clock tick that both writings share would hide the change from the times.
    let earlier = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let changed = File::options()
        .write(true)
        .open(directory.path().join("file.fulmar-part"));
    changed.unwrap().set_modified(earlier).unwrap();
    let mut part = Part::open(directory.path(), "file", &verified).unwrap();
    while part.is_recovering() {
        part.recover().unwrap();
    }
    assert_eq!(part.written(), 0);
}
