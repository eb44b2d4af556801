//! Two gateways that cannot agree each write one line that says why and what to do, and nothing else.
//!
//! Method: both as processes on the loopback, their logs as JSON in files. They are given longer than
//! any of the lines takes, so that a second one would be seen.

use crate::processes::{free_port, fulmar, run, said, until};
use fulmar_net::wait::wait;
use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

/// "No answer" comes after 5 s; the slowest other line, after 10 s of unfinished handshakes.
const LONG_ENOUGH: Duration = Duration::from_secs(12);

fn pause(span: Duration) {
    wait(&[], Some(span), &mut Vec::new()).expect("poll works");
}

/// The events that may be logged about a peer that is not reached.
const ABOUT_PEERS: [&str; 4] = [
    "handshake_refused",
    "refused_by_peer",
    "no_answer",
    "peer_mismatch",
];

/// A gateway with its log. It is killed when the test ends, however it ends.
struct Gateway {
    child: Child,
    log: PathBuf,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Gateway {
    /// Starts `name` with this security, and one peer.
    fn start(place: &Path, name: &str, listen: u16, security: &str, peer: &str) -> Self {
        let file = place.join(format!("{name}.toml"));
        let text = format!(
            "[gateway]\nname = \"{name}\"\nlisten = \"127.0.0.1:{listen}\"\nstate_dir = \"{0}\"\n\
             [security]\n{security}\n[[peer]]\nname = \"other\"\nrate = \"10mbit\"\n{peer}\n\
             [egress]\nallow = [\"127.0.0.0/8:1-65535\"]\n",
            place.display()
        );
        fs::write(&file, text).expect("room");
        let log = place.join(format!("{name}.log"));
        let arguments = format!("gateway --log-format json -c {}", file.display());
        let child = fulmar(&arguments)
            .stdout(Stdio::null())
            .stderr(File::create(&log).expect("room"))
            .spawn()
            .expect("the binary starts");
        Self { child, log }
    }

    /// The log lines about its peer.
    fn said(&self) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(&self.log).expect("a log");
        // The last line of a gateway that did not start is no JSON.
        let parse = |line: &str| -> serde_json::Value {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"))
        };
        let about = |line: &serde_json::Value| {
            let event = line["event"].as_str();
            event.is_some_and(|event| ABOUT_PEERS.contains(&event))
        };
        text.lines().map(parse).filter(about).collect()
    }

    /// Asserts that it logged one line about its peer, of this event and with these words.
    fn said_once(&self, event: &str, words: &[&str]) {
        let said = self.said();
        let [line] = &said[..] else {
            panic!("not one line: {said:?}");
        };
        assert_eq!(line["event"], event, "{line}");
        let reason = line["reason"].as_str().or_else(|| line["hint"].as_str());
        let reason = reason.unwrap_or_else(|| panic!("no reason: {line}"));
        for word in words {
            assert!(reason.contains(word), "no `{word}`: {line}");
        }
        assert!(
            line["from"]
                .as_str()
                .is_some_and(|from| from.contains("127.0.0.1:")),
            "{line}"
        );
    }
}

fn key(place: &Path, name: &str) -> String {
    let output = run(&format!("keygen {}", place.join(name).display()));
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout)
        .expect("text")
        .trim()
        .to_owned()
}

fn preset(place: &Path, name: &str) {
    let output = run(&format!("keygen --preset {}", place.join(name).display()));
    assert!(output.status.success(), "{}", said(&output));
}

/// Two gateways, the first of which calls the second, and the lines of both in the end.
struct Case {
    caller: (String, String),
    listener: (String, String),
    caller_says: (&'static str, Vec<String>),
    listener_says: (&'static str, Vec<String>),
}

fn disagree(place: &Path, case: &Case) {
    let at = free_port();
    let call = format!("address = \"127.0.0.1:{at}\"\n{}", case.caller.1);
    let listener = Gateway::start(place, "listener", at, &case.listener.0, &case.listener.1);
    let caller = Gateway::start(place, "caller", 0, &case.caller.0, &call);
    until("both ends to say something", || {
        !listener.said().is_empty() && !caller.said().is_empty()
    });
    // Any further line would be there by then.
    pause(LONG_ENOUGH);
    let words = |of: &(&str, Vec<String>)| of.1.clone();
    for (gateway, says) in [
        (&caller, &case.caller_says),
        (&listener, &case.listener_says),
    ] {
        let words = words(says);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        gateway.said_once(says.0, &words);
    }
}

fn texts<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

const CALLED: &str = "handshake_refused";
const CALLING: &str = "refused_by_peer";

#[test]
fn whatever_two_gateways_disagree_about_each_says_once_with_the_remedy() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    let (a, b, other) = (
        key(place, "a.key"),
        key(place, "b.key"),
        key(place, "c.key"),
    );
    preset(place, "one.preset");
    preset(place, "two.preset");
    let at = place.display();
    let noise = |file: &str| format!("kind = \"noise\"\nprivate_key_file = \"{at}/{file}\"");
    let noise_with =
        |file: &str, preset: &str| format!("{}\npreset_key_file = \"{at}/{preset}\"", noise(file));
    let preset = |file: &str| format!("kind = \"preset\"\npreset_key_file = \"{at}/{file}\"");
    let none = "kind = \"none\"".to_owned();
    let to = |key: &str| format!("public_key = \"{key}\"");
    let nobody = String::new();
    let cases = [
        // The caller has a wrong key for the listener.
        Case {
            caller: (noise("a.key"), to(&other)),
            listener: (noise("b.key"), to(&a)),
            caller_says: (CALLING, texts([&other, "keygen --public"])),
            listener_says: (CALLED, texts([&b, "public_key"])),
        },
        // The listener does not know the caller.
        Case {
            caller: (noise("a.key"), to(&b)),
            listener: (noise("b.key"), to(&other)),
            caller_says: (CALLING, texts([&a, "public_key"])),
            listener_says: (CALLED, texts([&a, "public_key"])),
        },
        Case {
            caller: (preset("one.preset"), nobody.clone()),
            listener: (preset("two.preset"), nobody.clone()),
            caller_says: (CALLING, texts(["preset key file"])),
            listener_says: (CALLED, texts(["preset key file"])),
        },
        // Right key pairs, different preset keys on top.
        Case {
            caller: (noise_with("a.key", "one.preset"), to(&b)),
            listener: (noise_with("b.key", "two.preset"), to(&a)),
            caller_says: (CALLED, texts(["preset keys differ"])),
            listener_says: (CALLED, texts(["preset keys differ"])),
        },
        Case {
            caller: (none.clone(), nobody.clone()),
            listener: (noise("b.key"), to(&a)),
            caller_says: (CALLING, texts(["`noise`", "`none`", "same kind"])),
            listener_says: (CALLED, texts(["`noise`", "`none`", "same kind"])),
        },
        Case {
            caller: (noise("a.key"), to(&b)),
            listener: (none, nobody),
            caller_says: (CALLING, texts(["`noise`", "`none`", "same kind"])),
            listener_says: (CALLED, texts(["`noise`", "`none`", "same kind"])),
        },
    ];
    thread::scope(|scope| {
        for (n, case) in cases.iter().enumerate() {
            let place = place.join(n.to_string());
            fs::create_dir(&place).expect("room");
            scope.spawn(move || disagree(&place, case));
        }
    });
}

/// The verdicts and alarms of a gateway: the state of each peer, and the peer of each alarm by its rule; nothing while it does not answer.
fn judged(metrics: u16) -> (Vec<String>, Vec<(String, Option<String>)>) {
    let output = run(&format!("status --json http://127.0.0.1:{metrics}"));
    let Ok(status) = serde_json::from_slice::<serde_json::Value>(&output.stdout) else {
        return (Vec::new(), Vec::new());
    };
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let peers = status["peers"].as_array().expect("peers").iter();
    let alarms = status["alarms"].as_array().expect("alarms").iter();
    (
        peers
            .filter_map(|peer| text(&peer["verdict"]["state"]))
            .collect(),
        alarms
            .filter_map(|alarm| Some((text(&alarm["rule"])?, text(&alarm["peer"]))))
            .collect(),
    )
}

#[test]
fn a_refused_caller_is_the_peer_that_is_looked_for_where_it_called_from_and_else_a_stranger() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    let keys =
        ["own", "of_air", "of_sea", "unknown"].map(|name| key(place, &format!("{name}.key")));
    let [own, of_air, of_sea, _] = &keys;
    let at = place.display();
    let security = |name: &str| format!("kind = \"noise\"\nprivate_key_file = \"{at}/{name}.key\"");
    for is_expected in [true, false] {
        let [ours, metrics, caller, elsewhere] = core::array::from_fn(|_| free_port());
        // Open, so that no gateway of another test is called there.
        let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let nobody = silent.local_addr().expect("it is bound").port();
        let place = place.join(if is_expected { "expected" } else { "stranger" });
        fs::create_dir(&place).expect("room");
        let peers = format!(
            "address = \"127.0.0.1:{caller}\"\npublic_key = \"{of_air}\"\n\
             [[peer]]\nname = \"sea\"\naddress = \"127.0.0.1:{nobody}\"\npublic_key = \"{of_sea}\"\n\
             [metrics]\nlisten = \"127.0.0.1:{metrics}\""
        );
        let called = Gateway::start(&place, "called", ours, &security("own"), &peers);
        let from = if is_expected { caller } else { elsewhere };
        let to = format!("address = \"127.0.0.1:{ours}\"\npublic_key = \"{own}\"");
        let _caller = Gateway::start(&place, "caller", from, &security("unknown"), &to);
        let mut line = serde_json::Value::Null;
        until("the refusal", || {
            let said = called.said();
            let refused = said.into_iter().find(|line| line["event"] == CALLED);
            refused.is_some_and(|refused| {
                line = refused;
                true
            })
        });
        let stranger = ("stranger_refused".to_owned(), None);
        let mut seen = (Vec::new(), Vec::new());
        until("a status with the refusal", || {
            seen = judged(metrics);
            seen.0.contains(&"refused".to_owned()) || seen.1.contains(&stranger)
        });
        let (states, alarms) = seen;
        if is_expected {
            assert_eq!(line["peer"], "other", "{line}");
            assert_eq!(states, ["refused", "unreachable"], "{alarms:?}");
            assert!(!alarms.contains(&stranger), "{alarms:?}");
        } else {
            assert_eq!(line["peer"], serde_json::Value::Null, "{line}");
            assert_eq!(states, ["unreachable", "unreachable"], "{alarms:?}");
            assert!(alarms.contains(&stranger), "{alarms:?}");
        }
    }
}

/// The header of a datagram of session version 2, with its check (CRC-16/M17).
fn of_version_2(kind: u8, receiver: [u8; 4], low: [u8; 4]) -> Vec<u8> {
    use fulmar_proto::wire::checksum::hec;
    let mut octets = vec![0x20 | kind, 0, 0, 0];
    octets.extend(receiver);
    octets.extend(low);
    let hec = hec(&octets[..2], &octets[4..12]);
    octets[2..4].copy_from_slice(&hec.to_be_bytes());
    octets
}

#[test]
fn another_version_is_said_once_by_whoever_calls_and_by_whoever_is_called() {
    let place = tempfile::tempdir().expect("a directory");
    let newer = UdpSocket::bind("127.0.0.1:0").expect("a port");
    newer
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a socket");
    let at = newer.local_addr().expect("it is bound");
    let call = format!("address = \"{at}\"");
    let gateway = Gateway::start(place.path(), "here", 0, "kind = \"none\"", &call);
    let mut initiation = [0; 2_000];
    let (_, from) = newer.recv_from(&mut initiation).expect("a call");
    let index: [u8; 4] = initiation[8..12].try_into().expect("4 octets");
    for _ in 0..5 {
        let answer = of_version_2(5, index, [0; 4]);
        newer.send_to(&answer, from).expect("it is open");
    }
    until("the caller's line", || !gateway.said().is_empty());
    gateway.said_once(CALLED, &["version 2", "we speak 1"]);
    drop(gateway);

    let port = free_port();
    let gateway = Gateway::start(place.path(), "there", port, "kind = \"none\"", "");
    let call = [of_version_2(1, [0; 4], [9; 4]), vec![0; 292]].concat();
    let mut answer = [0; 2_000];
    let mut answered = 0;
    newer
        .set_read_timeout(Some(Duration::from_millis(50)))
        .expect("a socket");
    until("an answer", || {
        // Nobody listens there at first.
        drop(newer.send_to(&call, ("127.0.0.1", port)));
        answered = newer.recv(&mut answer).unwrap_or(0);
        answered == 12 && answer[0] == 0x15
    });
    assert_eq!(answer[4..8], [9; 4]);
    until("the called one's line", || !gateway.said().is_empty());
    gateway.said_once(CALLED, &["version 2", "we speak 1"]);
}

#[test]
fn of_two_gateways_with_one_key_the_later_stays_and_both_ends_name_the_copy() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    let (a, b) = (key(place, "a.key"), key(place, "b.key"));
    let at = free_port();
    let noise = |file: &str| {
        format!(
            "kind = \"noise\"\nprivate_key_file = \"{}/{file}\"",
            place.display()
        )
    };
    let to_a = format!("public_key = \"{a}\"");
    let listener = Gateway::start(place, "listener", at, &noise("b.key"), &to_a);
    let to_b = format!("address = \"127.0.0.1:{at}\"\npublic_key = \"{b}\"");
    let is_up = |gateway: &Gateway, times: usize| {
        let text = fs::read_to_string(&gateway.log).expect("a log");
        text.matches("\"peer_up\"").count() >= times
    };
    // The same key file, each with an epoch file of its own: boxes with copied files.
    let first = Gateway::start(place, "first", 0, &noise("a.key"), &to_b);
    until("the first", || is_up(&first, 1));
    until("the first, seen from the other end", || is_up(&listener, 1));
    // Epochs are of whole seconds where their files are not shared.
    pause(Duration::from_millis(1_100));
    let second = Gateway::start(place, "second", 0, &noise("a.key"), &to_b);
    until("the second", || is_up(&second, 1));
    until("the first to be told", || !first.said().is_empty());
    until("the listener's line", || !listener.said().is_empty());
    first.said_once(CALLING, &["started later", "keygen"]);
    listener.said_once(CALLED, &["copy of its key", "keygen"]);
    assert_eq!(second.said(), [] as [serde_json::Value; 0]);
}
