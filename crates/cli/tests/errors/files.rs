//! Files, directories and disks that refuse.

use super::fails;
use crate::processes;
use crate::processes::{Place, Running, free_port, fulmar, is_open, receiver, run, said, until};
use rustix::process::Signal;
use std::process::{Command, Stdio};

#[test]
fn a_missing_directory_is_made_once_there_is_a_port_and_that_is_said() {
    let place = Place::with(10);
    let inbox = place.path("new");
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let arguments = format!("recv {} --listen {address}", inbox.display());
    fails(&arguments, 5, &["in use"]);
    assert!(!inbox.exists());
    drop(taken);
    let mut receiver = Running::start(fulmar(&arguments));
    until("the directory", || inbox.is_dir());
    receiver.signal(Signal::INT);
    let (_, said) = receiver.end();
    assert!(said.contains("created the directory"), "{said}");
}

#[test]
fn a_key_file_that_is_missing_is_told_with_the_file_that_names_it() {
    let place = Place::with(10);
    let file = place.path("gateway.toml");
    let key = place.path("none.key");
    let text = format!(
        "[gateway]\nname = \"a\"\nlisten = \"127.0.0.1:0\"\n[security]\nkind = \"noise\"\nprivate_key_file = \"{}\"\n[[peer]]\nname = \"b\"\npublic_key = \"hJDLNIf1DI7b3zo89c2YhOPgJz8OuRSmtM88Xaxy3nk=\"\n[egress]\nallow = [\"127.0.0.1:1\"]\n",
        key.display()
    );
    std::fs::write(&file, text).unwrap();
    let words = [
        file.display().to_string(),
        format!("there is no key file {}", key.display()),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    fails(&format!("gateway --check -c {}", file.display()), 5, &words);
}

#[test]
fn what_cannot_be_sent_is_said_before_what_may_be_wished_otherwise() {
    let place = Place::with(10);
    let missing = place.path("none");
    for (arguments, code) in [
        (format!("send {} 127.0.0.1:9", missing.display()), 2),
        (format!("send {} nowhere.invalid:9", place.file()), 3),
    ] {
        let output = run(&arguments);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments}: {said}");
        assert_eq!(said.lines().count(), 1, "{arguments}: {said}");
    }
}

#[test]
fn a_file_that_is_written_to_while_it_is_sent_fails_both_ends() {
    let change: [fn(&std::path::Path); 2] = [
        |path| {
            let mut file = std::fs::File::options().append(true).open(path).unwrap();
            std::io::Write::write_all(&mut file, b"more").unwrap();
        },
        |path| {
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_len(2_900_000).unwrap();
        },
    ];
    for change in change {
        // More than the send buffer of four seconds: the rest is still to be read.
        let place = Place::with(3_000_000);
        let mut receiver = receiver(&place, "--once --checkpoint 100ms");
        let to = receiver.address();
        let arguments = format!("send {} {to} --rate 4mbit", place.file());
        let mut sender = Running::start(fulmar(&arguments));
        until("the transfer to begin", || {
            place.path("in/file.fulmar-state").exists()
        });
        change(&place.path("file"));
        let (status, said) = sender.end();
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(said.contains("was changed while it was sent"), "{said}");
        assert_eq!(receiver.record()["verdict"], "abandoned");
        assert_eq!(receiver.code(), Some(1));
        assert!(!place.path("in/file").exists());
    }
}

#[test]
fn a_symbolic_link_in_a_working_files_place_is_refused_and_not_followed() {
    let place = Place::with(1_000);
    std::fs::write(place.path("victim"), "precious").unwrap();
    std::os::unix::fs::symlink(place.path("victim"), place.path("in/file.fulmar-part")).unwrap();
    let mut receiver = receiver(&place, "--once");
    let arguments = format!("send {} {}", place.file(), receiver.address());
    fails(&arguments, 1, &["the receiver refuses", "symbolic link"]);
    let told = receiver.record();
    assert!(
        told["error"].as_str().unwrap().contains("file.fulmar-part"),
        "{told}"
    );
    assert_eq!(receiver.code(), Some(5));
    assert_eq!(processes::read(&place.path("victim")), b"precious");
}

#[test]
fn a_refusal_does_not_tell_the_sender_where_the_receiver_keeps_its_files() {
    let place = Place::with(1_000);
    std::fs::write(place.path("in/file"), "precious").unwrap();
    let mut receiver = receiver(&place, "");
    let output = run(&format!(
        "send {} {} --name file",
        place.file(),
        receiver.address()
    ));
    let said = said(&output);
    assert!(said.contains("file exists there"), "{said}");
    assert!(!said.contains(&place.inbox()), "{said}");
}

#[test]
fn a_file_that_cannot_be_read_is_a_usage_error_that_names_it() {
    fails(
        "send /no/such/file 127.0.0.1:9",
        2,
        &["/no/such/file", "No such file"],
    );
    fails(
        "send /tmp 127.0.0.1:9",
        2,
        &[
            "directory",
            "tar c /tmp | fulmar send - 127.0.0.1:9 --name tmp.tar",
        ],
    );
    fails(
        "send . 127.0.0.1:9",
        2,
        &["tar c . | fulmar send -", "--name cli.tar"],
    );
    fails("recv /no/such/dir", 2, &["/no/such/dir", "mkdir -p"]);
    fails(
        "demo --file /no/such/file --out /tmp/fulmar-test-none",
        2,
        &["/no/such/file"],
    );
}

#[test]
fn a_directory_that_takes_no_files_is_refused_before_anyone_sends() {
    fails(
        "recv /proc --listen 127.0.0.1:0",
        5,
        &["/proc", "does not take"],
    );
    fails("demo --out /proc/none", 5, &["/proc/none"]);
    fails("demo --out /proc", 5, &["/proc"]);
    fails(
        "reproduce aerotp-hybrid --out /proc",
        5,
        &["--out", "/proc"],
    );
}

#[test]
fn a_name_that_would_leave_the_directory_is_refused_before_anything_is_sent() {
    let place = Place::with(10);
    fails(
        &format!("send {} 127.0.0.1:9 --name ../evil", place.file()),
        2,
        &["../evil", "separator"],
    );
}

#[test]
fn a_full_disk_fails_both_ends_in_one_line() {
    let place = Place::with(500_000);
    // The limit on file sizes stands in for the disk: it needs no privilege.
    let shell = format!(
        "trap '' XFSZ; ulimit -f 200; exec {} recv {} --listen 127.0.0.1:0 --json --once",
        assert_cmd::cargo::cargo_bin!("fulmar").display(),
        place.inbox()
    );
    let mut command = Command::new("sh");
    command.args(["-c", &shell]).stdin(Stdio::null());
    let mut receiver = Running::start(command);
    let to = receiver.address();
    let arguments = format!("send {} {to} --rate 100mbit", place.file());
    fails(
        &arguments,
        1,
        &[
            "the receiver refuses",
            "writing",
            "File too large",
            "once that is mended there, send it again to continue",
        ],
    );
    let told = receiver.record();
    let error = told["error"].as_str().unwrap();
    assert!(
        error.contains("file.fulmar-part") && error.contains("too large"),
        "{told}"
    );
    assert!(
        error.contains("once that is mended, a sender that starts again"),
        "{told}"
    );
    assert_eq!(receiver.code(), Some(5));
    let left: Vec<_> = std::fs::read_dir(place.path("in")).unwrap().collect();
    assert!(
        left.is_empty(),
        "what no state vouches for fills the disk: {left:?}"
    );
}

#[test]
fn a_full_disk_behind_stdout_fails_both_ends() {
    let place = Place::with(500_000);
    let port = free_port();
    let mut command = fulmar(&format!("recv - --listen 127.0.0.1:{port}"));
    command
        .stdout(std::fs::File::create("/dev/full").unwrap())
        .stderr(Stdio::piped());
    let receiver = command.spawn().unwrap();
    until("the receiver", || is_open(port));
    let arguments = format!("send {} 127.0.0.1:{port} --rate 100mbit", place.file());
    fails(&arguments, 1, &["the receiver refuses", "No space left"]);
    let output = receiver.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
}

#[test]
fn an_existing_file_is_refused_unless_forced() {
    let place = Place::with(1_000);
    std::fs::write(place.path("in/file"), "precious").unwrap();
    let mut careful = receiver(&place, "");
    let arguments = format!("send {} {}", place.file(), careful.address());
    fails(&arguments, 1, &["the receiver refuses", "--force"]);
    assert_eq!(place.arrived(), b"precious");
    let mut forced = receiver(&place, "--once --force");
    let output = run(&format!("send {} {}", place.file(), forced.address()));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(forced.code(), Some(0));
    assert_eq!(place.arrived(), place.octets);
}
