//! Peers come and go and keys are changed by SIGHUP, under a connection that goes on; each change is a
//! line that says who asked for it, and a file that is wrong changes nothing.
//!
//! Method: two gateways as processes on the loopback, their logs as JSON in files.

use crate::gateways::{client, echo, server};
use crate::processes::{fulmar, run, said, until};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// A gateway with its file and its log. It is killed when the test ends, however it ends.
struct Gateway {
    child: Child,
    file: PathBuf,
    log: PathBuf,
    listening: SocketAddr,
    entries: Vec<SocketAddr>,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn address(value: &Value) -> SocketAddr {
    let text = value.as_str().expect("an address");
    text.parse().expect("an address")
}

impl Gateway {
    fn start(place: &Path, name: &str, text: &str) -> Self {
        let file = place.join(format!("{name}.toml"));
        fs::write(&file, text).expect("room");
        let log = place.join(format!("{name}.log"));
        let arguments = format!("gateway --json --log-format json -c {}", file.display());
        let mut child = fulmar(&arguments)
            .stdout(Stdio::piped())
            .stderr(File::create(&log).expect("room"))
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("text");
        let record: Value = serde_json::from_str(&line).unwrap_or_else(|error| {
            panic!("{error} in {line:?}: {:?}", fs::read_to_string(&log));
        });
        let entries = record["entries"].as_array().expect("a list");
        Self {
            listening: address(&record["listening"]),
            entries: entries.iter().map(address).collect(),
            child,
            file,
            log,
        }
    }

    fn lines(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.log).expect("a log");
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let parse = |line| serde_json::from_str(line).expect("JSON");
        whole.lines().map(parse).collect()
    }

    /// Writes another configuration, and waits until the gateway has adopted or refused it; returns its log
    /// lines.
    fn reload(&self, text: &str) -> Vec<Value> {
        fs::write(&self.file, text).expect("room");
        self.read_again()
    }

    /// Asks the gateway to read its configuration, and waits in the same way.
    fn read_again(&self) -> Vec<Value> {
        let before = self.lines().len();
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a pid"), Signal::HUP).expect("it runs");
        let mut new = Vec::new();
        until("the gateway to say what became of a reload", || {
            new = self.lines().split_off(before);
            let is_end = |line: &Value| {
                let event = line["event"].as_str();
                matches!(event, Some("reloaded" | "reload_refused"))
            };
            new.iter().any(is_end)
        });
        new
    }
}

/// The line of this event, of which there must be one.
fn one<'a>(lines: &'a [Value], event: &str) -> &'a Value {
    let of_event = lines.iter().filter(|line| line["event"] == event);
    let of_event: Vec<&Value> = of_event.collect();
    assert_eq!(of_event.len(), 1, "{event} in {lines:?}");
    of_event[0]
}

fn key(place: &Path, name: &str) -> String {
    let output = run(&format!("keygen {}", place.join(name).display()));
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    text.trim().to_owned()
}

/// The number of handshakes that replaced keys: each is a line of the level `debug`.
fn rekeys(gateway: &Gateway) -> usize {
    let lines = gateway.lines();
    let rekeyed = lines.iter().filter(|line| line["event"] == "peer_rekeyed");
    rekeyed.count()
}

fn exchange(stream: &mut TcpStream) {
    stream.write_all(b"are you there").expect("it is open");
    let mut back = [0; 13];
    stream.read_exact(&mut back).expect("the echo");
    assert_eq!(&back, b"are you there");
}

const EGRESS: &str = "[egress]\nallow = [\"127.0.0.0/8:1-65535\"]\n";

/// A gateway's tables about itself.
fn own(place: &Path, name: &str, key: &str) -> String {
    let place = place.display();
    format!(
        "[gateway]\nname = \"{name}\"\nlog = \"debug\"\nlisten = \"127.0.0.1:0\"\nstate_dir = \"{place}\"\n\
         [security]\nkind = \"noise\"\nprivate_key_file = \"{place}/{key}\"\n"
    )
}

fn peer(name: &str, keys: &str) -> String {
    format!("[[peer]]\nname = \"{name}\"\nrate = \"50mbit\"\npublic_key = {keys}\n")
}

#[test]
fn peers_and_keys_change_under_a_connection_that_goes_on() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    let (old, new) = (key(place, "old.key"), key(place, "new.key"));
    let (ground_key, other) = (key(place, "ground.key"), key(place, "other.key"));
    let own = |name: &str, file: &str| own(place, name, file);
    let on_ground = |peers: &str| own("ground", "ground.key") + peers + EGRESS;
    let ground = Gateway::start(
        place,
        "ground",
        &on_ground(&peer("air", &format!("\"{old}\""))),
    );
    let forward = format!(
        "[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{}\"\n",
        server(echo)
    );
    let in_air = |file: &str| {
        let at = format!("address = \"{}\"\n", ground.listening);
        own("air", file) + &peer("ground", &format!("\"{ground_key}\"")) + &at + &forward
    };
    let air = Gateway::start(place, "air", &in_air("old.key"));
    let mut stream = client(air.entries[0]);
    exchange(&mut stream);

    // A configuration that cannot be adopted changes nothing.
    let wrong = on_ground(&peer("other", &format!("\"{other}\""))).replace("ground.key", "no.key");
    let said = ground.reload(&wrong);
    let line = one(&said, "reload_refused");
    assert!(
        line["problem"].as_str().expect("words").contains("no.key"),
        "{line}"
    );
    exchange(&mut stream);

    // The air gateway gets another key, in three steps.
    let both = format!("[\"{old}\", \"{new}\"]");
    let said = ground.reload(&on_ground(&peer("air", &both)));
    let line = one(&said, "peer_changed");
    assert_eq!(line["other_public_key"], new, "{line}");
    assert_eq!(line["session_ended"], false, "{line}");
    let by = line["by"].as_str().expect("words");
    let (uid, pid) = (rustix::process::geteuid().as_raw(), std::process::id());
    assert!(by.starts_with(&format!("uid {uid}, pid {pid}")), "{by}");
    assert!(by.contains(&format!("file of uid {uid}")), "{by}");
    let said = air.reload(&in_air("new.key"));
    assert_eq!(one(&said, "own_key_changed")["public_key"], new);
    exchange(&mut stream);
    until("keys agreed on under the new key", || {
        exchange(&mut stream);
        rekeys(&ground) > 0
    });
    let said = ground.reload(&on_ground(&peer("air", &format!("\"{new}\""))));
    assert_eq!(one(&said, "peer_changed")["session_ended"], false);
    exchange(&mut stream);

    // The peer is taken out, and another comes.
    let said = ground.reload(&on_ground(&peer("other", &format!("\"{other}\""))));
    let line = one(&said, "peer_removed");
    assert_eq!(
        (&line["peer"], &line["flows"]),
        (&"air".into(), &1.into()),
        "{line}"
    );
    assert_eq!(one(&said, "peer_added")["peer"], "other");
    until("the air gateway to hear that", || {
        air.lines()
            .iter()
            .any(|line| line["event"] == "peer_closed")
    });
    until("its calls to be refused", || {
        let lines = ground.lines();
        let mut lines = lines.iter();
        lines.any(|line| line["event"] == "handshake_refused" && line.to_string().contains(&new))
    });

    // The peer comes back, and has its place again.
    let all = peer("other", &format!("\"{other}\"")) + &peer("air", &format!("\"{new}\""));
    let said = ground.reload(&on_ground(&all));
    assert_eq!(one(&said, "peer_added")["peer"], "air");
    exchange(&mut client(air.entries[0]));

    // A change that needs a restart is named, and the rest is adopted.
    let said = ground.reload(&on_ground(&all).replace("name = \"ground\"", "name = \"earth\""));
    assert_eq!(
        one(&said, "reload_partial")["needs_restart"],
        "gateway.name"
    );
    exchange(&mut client(air.entries[0]));
}

#[test]
fn a_configuration_that_became_a_pipe_is_refused_and_not_waited_for() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    let air = key(place, "air.key");
    key(place, "ground.key");
    let text = own(place, "ground", "ground.key") + &peer("air", &format!("\"{air}\"")) + EGRESS;
    let mut ground = Gateway::start(place, "ground", &text);
    fs::remove_file(&ground.file).expect("it is there");
    mknodat(CWD, &ground.file, FileType::Fifo, Mode::RUSR, 0).expect("a pipe");
    let said = ground.read_again();
    let line = one(&said, "reload_refused").to_string();
    assert!(line.contains("is no file"), "{line}");
    let pid = i32::try_from(ground.child.id())
        .ok()
        .and_then(Pid::from_raw);
    kill_process(pid.expect("a pid"), Signal::TERM).expect("it runs");
    let status = ground.child.wait().expect("it ends");
    assert_eq!(status.code(), Some(143));
}

#[test]
fn a_proxys_clients_go_with_the_peer_that_they_were_to_reach() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    let (b, c) = (key(place, "b.key"), key(place, "c.key"));
    key(place, "air.key");
    let own = own(place, "air", "air.key");
    let c = peer("c", &format!("\"{c}\""));
    let socks = "[[socks]]\nlisten = \"127.0.0.1:0\"\npeer = \"b\"\n";
    let text = own.clone() + &peer("b", &format!("\"{b}\"")) + &c + socks + EGRESS;
    let air = Gateway::start(place, "air", &text);
    // One client has asked for nothing yet, the other has its association and has sent nothing.
    let mut silent = client(air.entries[0]);
    let mut associated = client(air.entries[0]);
    let mut answer = [0; 2];
    for stream in [&mut silent, &mut associated] {
        stream.write_all(&[5, 1, 0]).expect("it is open");
        stream.read_exact(&mut answer).expect("a method");
    }
    associated
        .write_all(&[5, 3, 0, 1, 0, 0, 0, 0, 0, 0])
        .expect("it is open");
    let mut bound = [0; 10];
    associated.read_exact(&mut bound).expect("a relay");
    assert_eq!(bound[1], 0, "{bound:?}");
    let said = air.reload(&(own + &c + EGRESS));
    assert_eq!(one(&said, "peer_removed")["peer"], "b");
    for mut stream in [silent, associated] {
        let left = stream.read(&mut answer);
        assert!(!matches!(left, Ok(1..)), "{left:?}");
        let waited_in_vain =
            |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        assert!(!left.as_ref().is_err_and(waited_in_vain), "{left:?}");
    }
}
