//! A full disk under custody: clients wait, nothing is lost, and it is over when there is room.
//!
//! Method: the client's gateway runs in a mount namespace of its own, its store on a `tmpfs` of
//! 3 MiB. Needs root; without it the test says that it was skipped.

use crate::gateways::{Pair, client, server};
use crate::processes::{moment, octets, until};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

const DISK: &str = "size=3m";
const OCTETS: usize = 24_000_000;

pub(crate) fn can_mount() -> bool {
    let works = std::process::Command::new("unshare")
        .args(["--mount", "true"])
        .status()
        .is_ok_and(|status| status.success());
    let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(
        works || !ci,
        "needs root and unshare, and CI=true forbids to skip"
    );
    if !works {
        // Not eprintln!, which the test harness keeps to itself.
        drop(writeln!(
            std::io::stderr(),
            "skipped: needs root and unshare"
        ));
    }
    works
}

#[test]
fn a_full_disk_makes_the_client_wait_and_loses_nothing() {
    if !can_mount() {
        return;
    }
    let (go, wait) = mpsc::channel::<()>();
    let (told, heard) = mpsc::channel();
    let wait = Arc::new(Mutex::new(wait));
    let to = server(move |mut stream| {
        // Small enough that the disk fills first.
        rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 65_536).unwrap();
        wait.lock().unwrap().recv().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        told.send(all).unwrap();
    });
    let place = tempfile::tempdir().unwrap();
    let at = place.path().display().to_string();
    let entries = format!(
        "[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\nclass = \"bulk\"\n\
         [class.bulk]\nmode = \"near-reliable\"\ncustody = \"disk\"\nwindow = \"64KiB\"\n\
         [custody]\ndirectory = \"{at}/custody\"\nkeep_connections = \"none\"\n"
    );
    let script = format!("mount -t tmpfs -o {DISK} tmpfs {at} && exec \"$0\" \"$@\"");
    let wrapper = ["unshare", "--mount", "sh", "-c", &script];
    let mut pair = Pair::start_wrapped("--rate 50mbit --delay 2ms --loss 5%", &entries, &wrapper);
    let sent = octets(3, OCTETS);
    let written = Arc::new(AtomicUsize::new(0));
    let writer = {
        let (sent, written, entry) = (sent.clone(), Arc::clone(&written), pair.entries[0]);
        thread::spawn(move || {
            let mut stream = client(entry);
            for piece in sent.chunks(16_384) {
                stream
                    .write_all(piece)
                    .expect("it waits, and is not cut off");
                written.fetch_add(piece.len(), Ordering::SeqCst);
            }
            stream.shutdown(Shutdown::Write).unwrap();
            assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0, "an end, no reset");
        })
    };
    let mut seen = usize::MAX;
    until("the client to wait", || {
        for _ in 0..20 {
            moment();
        }
        let now = written.load(Ordering::SeqCst);
        let stands = now == core::mem::replace(&mut seen, now);
        stands && now > 0
    });
    assert!(seen < OCTETS, "pushed back");
    let kept = pair.status()["custody_bytes"].as_u64().unwrap();
    assert!(
        kept > 1 << 20 && kept < 3 << 20,
        "{kept} on a disk of 3 MiB"
    );
    go.send(()).unwrap();
    assert!(heard.recv().unwrap() == sent, "altered or incomplete");
    writer.join().unwrap();
    pair.air.signal(Signal::TERM);
    let (status, said) = pair.air.end();
    assert_eq!(status.code(), Some(143), "{said}");
    let notices: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("custody_disk_full") || line.contains("custody_room_again"))
        .collect();
    assert!(notices.len() >= 2, "full, and room again: {said}");
    assert!(notices[0].contains("custody_disk_full"), "{said}");
}
