//! Files over real sockets and a real lossy link arrive whole, whatever the link loses and whichever end is
//! killed.
//!
//! Method: sender, emulator and receiver as processes on the loopback. The octets that arrive are
//! compared with those sent, beside the digest that the ends compare themselves. Kills are `SIGKILL`
//! after the receiver's first checkpoint, so that there is something to continue.

use crate::processes;
use crate::processes::{Place, Running, free_port, fulmar, is_open, receiver, run, said, until};
use rustix::process::Signal;
use std::io::Write;
use std::process::Stdio;

/// A link to `target`, and its address.
fn link(target: &str, flags: &str) -> (Running, String) {
    let arguments = format!("emulate --listen 127.0.0.1:0 --to {target} {flags}");
    let mut link = Running::start(fulmar(&arguments));
    let address = link.address();
    (link, address)
}

pub(crate) const FAST_LINK: &str = "--rate 20mbit --delay 5ms --queue 200";

fn arrives_at(loss: &str, mode: &str) {
    let place = Place::with(300_000);
    let mut receiver = receiver(&place, "--once");
    let flags = format!("{FAST_LINK} --loss {loss}");
    let (_link, to) = link(&receiver.address(), &flags);
    let output = run(&format!(
        "send {} {to} --rate 20mbit --mode {mode}",
        place.file()
    ));
    assert_eq!(
        output.status.code(),
        Some(0),
        "{loss}, {mode}: {}",
        said(&output)
    );
    let record = receiver.record();
    assert_eq!(record["verified"], true, "{record}");
    assert_eq!(receiver.code(), Some(0));
    assert!(
        place.arrived() == place.octets,
        "{loss}, {mode}: other octets"
    );
}

#[test]
fn reliable_arrives_whole_at_every_loss() {
    for loss in ["0%", "5%", "20%", "40%"] {
        arrives_at(loss, "reliable");
    }
}

#[test]
fn a_link_of_unknown_rate_carries_a_file_at_its_own() {
    let place = Place::with(6_000_000);
    for (security, share) in [(false, "fair"), (true, "background")] {
        let keys = place.path("link.preset").display().to_string();
        if security {
            let made = run(&format!("keygen --preset {keys}"));
            assert_eq!(made.status.code(), Some(0), "{}", said(&made));
        }
        let preset = if security {
            format!("--preset {keys}")
        } else {
            String::new()
        };
        let mut receiver = receiver(&place, &format!("--once --force {preset}"));
        let (_link, to) = link(&receiver.address(), "--rate 20mbit --delay 5ms --loss 10%");
        let file = place.file();
        let output = run(&format!("send {file} {to} --share {share} --json {preset}"));
        assert_eq!(output.status.code(), Some(0), "{share}: {}", said(&output));
        let record: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let found = record["link_bps"].as_f64().expect("it was found") / 1e6;
        // The machine may be busy, so that less was sent than the link takes.
        assert!((8.0..30.0).contains(&found), "{record}");
        assert_eq!(receiver.record()["verified"], true);
        assert_eq!(receiver.code(), Some(0));
        assert!(place.arrived() == place.octets, "{share}: other octets");
    }
}

#[test]
fn nack_mack_arrives_whole_at_every_loss() {
    for loss in ["0%", "5%", "20%", "40%"] {
        arrives_at(loss, "nack-mack");
    }
}

#[test]
fn near_reliable_arrives_whole() {
    arrives_at("20%", "near-reliable");
}

#[test]
fn bit_errors_are_corrected_or_repaired() {
    let place = Place::with(300_000);
    let mut receiver = receiver(&place, "--once");
    let flags = format!("{FAST_LINK} --ber 1e-4 --damage deliver");
    let (_link, to) = link(&receiver.address(), &flags);
    let arguments = format!(
        "send {} {to} --rate 20mbit --mode nack-mack --fec-words 24",
        place.file()
    );
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let record = receiver.record();
    let corrected = record["wire"]["recovered_fec_words_tpdus"]
        .as_u64()
        .unwrap();
    // 1.2 wrong bits in each of 220 TPDUs: fewer than 100 hit has probability below 1e-9.
    assert!(corrected > 100, "{record}");
    assert!(place.arrived() == place.octets);
}

#[test]
fn with_carrier_auto_a_file_leaves_without_checksum_once_damage_arrives_and_one_line_says_so() {
    let place = Place::with(8_000_000);
    let key = place.path("key").display().to_string();
    assert!(run(&format!("keygen --preset {key}")).status.success());
    let flags = format!("--preset {key} --carrier auto");
    let mut receiver = receiver(&place, &format!("--once {flags}"));
    let damage = format!("{FAST_LINK} --ber 5e-5 --damage deliver-behind-headers");
    let (_link, to) = link(&receiver.address(), &damage);
    let output = run(&format!("send {} {to} --rate 20mbit {flags}", place.file()));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(place.arrived() == place.octets, "other octets");
    let said = said(&output);
    let chosen = said
        .lines()
        .filter(|line| line.contains("data leaves by UDP without"));
    assert_eq!(chosen.count(), 1, "{said}");
    assert!(said.contains("were damaged"), "{said}");
}

#[test]
fn carrier_auto_without_keys_is_refused_with_the_cure() {
    let output = run("send Cargo.toml 127.0.0.1:9 --carrier auto");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("--preset"), "{}", said(&output));
}

#[test]
fn modes_that_may_lose_say_what_is_missing_and_the_rest_is_right() {
    for mode in ["datagram", "unreliable", "quasi-reliable", "nack"] {
        let place = Place::with(300_000);
        let mut receiver = receiver(&place, "--once");
        let (_link, to) = link(&receiver.address(), &format!("{FAST_LINK} --up-loss 10%"));
        let output = run(&format!(
            "send {} {to} --rate 15mbit --mode {mode} --json",
            place.file()
        ));
        assert_eq!(output.status.code(), Some(1), "{mode}: {}", said(&output));
        let sent: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let got = receiver.record();
        assert_eq!(got["verdict"], "incomplete", "{got}");
        assert_eq!(receiver.code(), Some(1));
        assert_eq!(
            sent["missing_bytes"], got["missing_bytes"],
            "both ends agree"
        );

        let kept = processes::read(&place.path("in/file.incomplete"));
        assert_eq!(kept.len(), place.octets.len());
        let mut missing = vec![false; kept.len()];
        for range in got["missing_ranges"].as_array().unwrap() {
            let end = |i: usize| usize::try_from(range[i].as_u64().unwrap()).unwrap();
            missing[end(0)..end(1)].fill(true);
        }
        let count = missing.iter().filter(|&&is_missing| is_missing).count() as u64;
        assert_eq!(got["missing_bytes"].as_u64(), Some(count));
        let all = kept.iter().zip(&place.octets).zip(missing);
        for (place_of, ((kept, sent), missing)) in all.enumerate() {
            assert!(missing || kept == sent, "{mode}: octet {place_of}");
        }
    }
}

#[test]
fn a_block_code_fills_what_the_link_loses() {
    let place = Place::with(300_000);
    let mut receiver = receiver(&place, "--once");
    let (_link, to) = link(&receiver.address(), &format!("{FAST_LINK} --up-loss 2%"));
    let arguments = format!(
        "send {} {to} --rate 15mbit --mode quasi-reliable --block 16,12",
        place.file()
    );
    // 13 of 28 lost at 2 %: below 1e-15 a block.
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(receiver.code(), Some(0));
    assert!(place.arrived() == place.octets);
}

/// Slow enough that a kill finds the transfer in its middle, and that little goes out before an offer arrives on a
/// machine that is busy.
const SLOW: &str = "--rate 3mbit";

/// Waits until enough of the file is durable that sending it again would show.
fn until_half_is_durable(place: &Place) {
    until("a checkpoint of half the file", || {
        let state = std::fs::read_to_string(place.path("in/file.fulmar-state"));
        let durable = state
            .ok()
            .and_then(|line| line.split(' ').nth(2)?.parse().ok());
        durable.is_some_and(|durable: usize| durable > place.octets.len() / 2)
    });
}

/// Asserts that the sender continued, and sent little of what the receiver had: only what went out before
/// the offer.
fn assert_continued(place: &Place, sent: &serde_json::Value) {
    let resumed_at = sent["resumed_at_bytes"].as_u64().expect("a count");
    let source = sent["wire"]["sent_source_bytes"].as_u64().expect("a count");
    assert!(resumed_at > place.octets.len() as u64 / 2, "{sent}");
    // Headers are 2 %; on the loopback the offer takes much less than the time of half a prefix.
    let needed = place.octets.len() as u64 - resumed_at;
    assert!(source < needed + resumed_at / 2, "{sent}");
}

#[test]
fn a_killed_sender_continues_where_it_was_cut_off() {
    let place = Place::with(1_500_000);
    let mut receiver = receiver(&place, "--once --checkpoint 100ms");
    let to = receiver.address();
    let first = Running::start(fulmar(&format!("send {} {to} {SLOW}", place.file())));
    until_half_is_durable(&place);
    first.signal(Signal::KILL);
    drop(first);
    let output = run(&format!("send {} {to} {SLOW} --json", place.file()));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let sent: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_continued(&place, &sent);
    assert_eq!(receiver.code(), Some(0));
    assert!(place.arrived() == place.octets);
    let left: Vec<_> = std::fs::read_dir(place.path("in")).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing but the file is left: {left:?}");
}

/// Kills a receiver with the flags `receives` and starts it again under a sender with the flags `sends`.
/// Behind a link, the sender is not told that nobody listens meanwhile.
pub(crate) fn a_killed_receiver_is_continued(
    place: &Place,
    (sends, receives): (&str, &str),
    link_flags: Option<&str>,
) {
    let mut first = receiver(place, &format!("--checkpoint 100ms {receives}"));
    let listens = first.address();
    let link = link_flags.map(|flags| link(&listens, flags));
    let to = link.as_ref().map_or(&listens, |(_, to)| to);
    let arguments = format!("send {} {to} {SLOW} --json {sends}", place.file());
    let mut sender = Running::start(fulmar(&arguments));
    until_half_is_durable(place);
    first.signal(Signal::KILL);
    drop(first);
    let inbox = place.inbox();
    let again = format!("recv {inbox} --listen {listens} --json --once {receives}");
    let mut second = Running::start(fulmar(&again));
    second.address();
    let sent = sender.record();
    assert_eq!(sender.code(), Some(0), "{sent}");
    assert!(sent["reconnections"].as_u64() > Some(0), "{sent}");
    assert_continued(place, &sent);
    assert_eq!(second.code(), Some(0));
    assert!(place.arrived() == place.octets);
}

#[test]
fn a_killed_receiver_is_continued_by_its_successor_and_the_running_sender() {
    a_killed_receiver_is_continued(&Place::with(1_500_000), ("", ""), None);
}

#[test]
fn both_killed_and_another_file_of_that_name_starts_anew() {
    let place = Place::with(1_500_000);
    let mut first = receiver(&place, "--checkpoint 100ms");
    let to = first.address();
    let sender = Running::start(fulmar(&format!("send {} {to} {SLOW}", place.file())));
    until("a checkpoint", || {
        place.path("in/file.fulmar-state").exists()
    });
    sender.signal(Signal::KILL);
    first.signal(Signal::KILL);
    drop((sender, first));
    let changed: Vec<u8> = place.octets.iter().map(|octet| !octet).collect();
    std::fs::write(place.path("file"), &changed).unwrap();
    let mut second = receiver(&place, "--once");
    let output = run(&format!(
        "send {} {} --rate 50mbit",
        place.file(),
        second.address()
    ));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(second.code(), Some(0));
    assert!(place.arrived() == changed);
}

#[test]
fn pipes_go_in_and_come_out() {
    let place = Place::with(400_000);
    let port = free_port();
    let mut receiving = fulmar(&format!("recv - --listen 127.0.0.1:{port}"));
    let receiving = receiving
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Nobody would read it while the sender waits for the receiver's report.
    let receiving = std::thread::spawn(move || receiving.wait_with_output().unwrap());
    until("the receiver", || is_open(port));
    let mut sending = fulmar(&format!("send - 127.0.0.1:{port} --rate 50mbit"));
    let mut sending = sending
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    sending
        .stdin
        .take()
        .unwrap()
        .write_all(&place.octets)
        .unwrap();
    let sent = sending.wait_with_output().unwrap();
    assert_eq!(sent.status.code(), Some(0), "{}", said(&sent));
    let received = receiving.join().unwrap();
    assert_eq!(received.status.code(), Some(0), "{}", said(&received));
    assert!(received.stdout == place.octets);
}

#[test]
fn several_senders_at_once_are_kept_apart() {
    let places = [
        Place::with(200_000),
        Place::with(200_001),
        Place::with(200_002),
    ];
    let mut receiver = receiver(&places[0], "");
    let to = receiver.address();
    let mut senders: Vec<Running> = places
        .iter()
        .enumerate()
        .map(|(index, place)| {
            let file = place.file();
            Running::start(fulmar(&format!(
                "send {file} {to} --rate 20mbit --name copy-{index}"
            )))
        })
        .collect();
    for sender in &mut senders {
        assert_eq!(sender.code(), Some(0));
    }
    for (index, place) in places.iter().enumerate() {
        let copy = processes::read(&places[0].path(&format!("in/copy-{index}")));
        assert!(copy == place.octets, "copy-{index}");
    }
}

#[test]
fn the_traces_of_both_ends_tell_what_was_sent_again_and_what_arrived() {
    let place = Place::with(300_000);
    let [sent, received] = ["send", "recv"].map(|end| place.path(&format!("{end}.jsonl")));
    let flags = format!("--once --trace {}", received.display());
    let mut receiver = receiver(&place, &flags);
    let (_link, to) = link(&receiver.address(), &format!("{FAST_LINK} --loss 5%"));
    let (file, to_trace) = (place.file(), sent.display());
    let output = run(&format!(
        "send {file} {to} --rate 20mbit --json --trace {to_trace}"
    ));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(receiver.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let read = |path: &std::path::Path| -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let count = |lines: &[serde_json::Value], event: &str, again: Option<bool>| {
        let is_it = |line: &&serde_json::Value| {
            line["event"] == event && again.is_none_or(|again| line["again"] == again)
        };
        lines.iter().filter(is_it).count() as u64
    };
    let (sent, received) = (read(&sent), read(&received));
    assert_eq!(
        (&sent[0]["role"], &received[0]["role"]),
        (&"send".into(), &"recv".into())
    );
    for lines in [&sent, &received] {
        assert_eq!(lines.last().unwrap()["how"], "stopped");
    }
    assert!(count(&sent, "sent", Some(true)) > 0, "{report}");
    // Every TPDU of the sender is accepted once.
    assert_eq!(
        count(&sent, "sent", Some(false)),
        count(&received, "accepted", None) + count(&received, "rebuilt", None),
        "{report}"
    );

    let output = run(&format!("send {file} {to} --trace {file}"));
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("name another file"),
        "{}",
        said(&output)
    );
}

#[test]
fn what_is_there_already_is_not_sent_again_and_what_differs_is_refused() {
    let place = Place::with(300_000);
    let mut files = receiver(&place, "");
    let to = files.address();
    let send = || run(&format!("send {} {to} --rate 20mbit", place.file()));
    assert_eq!(send().status.code(), Some(0));
    let again = send();
    assert_eq!(again.status.code(), Some(0), "{}", said(&again));
    let told = said(&again);
    assert!(
        told.contains("all 300000 bytes were there already"),
        "{told}"
    );
    assert_eq!(files.record()["resumed_at_bytes"], 0);
    let second = files.record();
    assert_eq!(second["verdict"], "complete", "{second}");
    assert_eq!(second["resumed_at_bytes"], 300_000, "{second}");
    // One octet of the same length of octets, and another length.
    let mut other = place.octets.clone();
    other[299_999] ^= 1;
    for other in [&other[..], &other[..299_998]] {
        std::fs::write(place.path("file"), other).unwrap();
        let refused = send();
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        assert!(
            said(&refused).contains("file exists there"),
            "{}",
            said(&refused)
        );
        assert!(place.arrived() == place.octets, "it is untouched");
    }
}

#[test]
fn a_sender_that_waits_finds_a_receiver_that_starts_later() {
    let place = Place::with(50_000);
    let to = format!("127.0.0.1:{}", free_port());
    let waits = format!("send {} {to} --rate 20mbit --wait", place.file());
    let mut command = fulmar(&waits);
    let said_to = place.path("said");
    command.stderr(std::fs::File::create(&said_to).unwrap());
    let mut sender = command.spawn().unwrap();
    until("a line of a try", || {
        let said = std::fs::read_to_string(&said_to).unwrap();
        said.contains("nobody answers") && said.contains("trying again in 1s (--wait)")
    });
    let inbox = place.inbox();
    let mut files = Running::start(fulmar(&format!("recv {inbox} --listen {to} --once --json")));
    assert!(sender.wait().unwrap().success());
    files.address();
    assert_eq!(files.record()["verified"], true);
    assert!(place.arrived() == place.octets);
    let pipe = run(&format!("send - {to} --wait"));
    assert_eq!(pipe.status.code(), Some(2), "{}", said(&pipe));
}

#[test]
fn a_sender_that_waits_goes_on_with_the_next_receiver_when_one_is_stopped() {
    let place = Place::with(3_000_000);
    let inbox = place.inbox();
    let mut first = receiver(&place, "");
    let to = first.address();
    let mut sender = fulmar(&format!("send {} {to} --rate 5mbit --wait", place.file()))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let is_under_way = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.metadata().is_ok_and(|found| found.len() > 0))
    };
    until("a part of the file", || {
        std::fs::read_dir(&inbox).is_ok_and(|mut all| all.any(is_under_way))
    });
    first.signal(Signal::TERM);
    first.end();
    let mut next = Running::start(fulmar(&format!("recv {inbox} --listen {to} --once --json")));
    assert!(sender.wait().unwrap().success());
    next.address();
    assert!(place.arrived() == place.octets);
}

#[test]
fn the_last_line_says_what_the_link_took_and_how_much_of_it_was_used() {
    let place = Place::with(3_000_000);
    let mut files = receiver(&place, "--once");
    // 1.6 s at 15 mbit: a shorter transfer is not compared with the link.
    let (_link, to) = link(&files.address(), &format!("{FAST_LINK} --up-loss 10%"));
    let output = run(&format!("send {} {to} --rate 15mbit", place.file()));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(files.code(), Some(0));
    let said = said(&output);
    let line = said.lines().last().unwrap_or_default();
    for part in [
        "Mbit/s that the link allows)",
        "BLAKE3 verified",
        "% held lost on the way",
        "repair took",
    ] {
        assert!(line.contains(part), "{part}: {said}");
    }
    let number = |before: &str, after: &str| -> f64 {
        let end = line.find(after).unwrap();
        let start = line[..end].rfind(before).unwrap() + before.len();
        line[start..end].trim().parse().unwrap()
    };
    let lost = number("; ", " % held lost");
    // Of 2,000 packets, each lost with 0.1: below 2 % or above 20 % with probability below 1e-7.
    assert!((2.0..20.0).contains(&lost), "{line}");
    assert!(number("took ", " % of what was sent") > 1.0, "{line}");
}
