//! `fulmar init --pair`: two machines become peers by a code that one person reads out and the other types.

use crate::processes::{Running, fulmar, run, said};
use crate::rig::{Namespace, Rig, ready};
use fulmar_net::GatewayConfig;
use fulmar_net::pairing::{PairingCode, fingerprint};
use fulmar_net::session::{PublicKey, read_secret_key};
use rustix::process::Signal;
use serde_json::Value;
use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Whatever the tests write below a place, but for the file of the typed code.
fn files(place: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(place).expect("there") {
        let entry = entry.expect("there");
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            found.extend(
                files(&entry.path())
                    .iter()
                    .map(|file| format!("{name}/{file}")),
            );
            // An empty folder counts.
            found.push(name);
        } else {
            found.push(name);
        }
    }
    found.sort();
    found
}

/// A command with this code typed.
fn typing(mut command: Command, code: &str) -> Command {
    let place = tempfile::tempdir().expect("a place");
    let file = place.path().join("code");
    fs::write(&file, format!("{code}\n")).expect("room");
    command.stdin(Stdio::from(File::open(&file).expect("written")));
    command
}

/// The end that is called, at a port of the loopback.
fn listener(place: &Path, further: &str) -> (Running, String, String) {
    let arguments = format!(
        "init {} --pair --listen 127.0.0.1:0 --json {further}",
        place.display()
    );
    let mut listener = Running::start(fulmar(&arguments));
    let record = listener.record();
    assert_eq!(record["kind"], "code", "{record}");
    let text = |key: &str| record[key].as_str().expect("a text").to_owned();
    (listener, text("listening"), text("code"))
}

fn call(place: &Path, address: &str, code: &str) -> Output {
    let arguments = format!("init {} --pair --called {address} --json", place.display());
    typing(fulmar(&arguments), code)
        .output()
        .expect("it starts")
}

/// A code that is well formed and is not `code`.
fn another(code: &str) -> String {
    let codes = [1, 2].map(|number| PairingCode::of_number(number).to_string());
    let other = codes.iter().find(|other| *other != code);
    other.expect("two codes differ").clone()
}

fn record(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(output)))
}

#[test]
fn two_machines_pair_and_their_tunnel_works_where_half_of_all_datagrams_are_lost() {
    if !ready(&["ping"]) {
        return;
    }
    let rig = Rig::start("--rate 10mbit --delay 5ms --loss 50% --seed 25");
    let place = tempfile::tempdir().expect("a place");
    let binary = assert_cmd::cargo::cargo_bin!("fulmar");
    let init = |namespace: &Namespace, machine: &str, arguments: &str| {
        let mut command = namespace.command(binary);
        let folder = place.path().join(machine);
        command.arg("init").arg(folder).args(["--pair", "--json"]);
        command.args(arguments.split_whitespace());
        command
    };
    let asked = "--names base,kite --behind-called 10.20.0.0/16";
    let mut called = Running::start(init(&rig.ground, "one", asked));
    let record = called.record();
    let code = record["code"].as_str().expect("a code");
    let caller = init(&rig.air, "two", "--called 10.77.0.1");
    let mut caller = Running::start(typing(caller, code));
    let paired = [called.record(), caller.record()];
    assert_eq!([called.code(), caller.code()], [Some(0), Some(0)]);

    let folders = [place.path().join("one/base"), place.path().join("two/kite")];
    let names = ["base", "kite"];
    let secrets = [0, 1].map(|n| {
        read_secret_key(&folders[n].join(format!("{}.key", names[n]))).expect("a key of its own")
    });
    let public: [PublicKey; 2] = [secrets[0].public(), secrets[1].public()];
    for (n, record) in paired.iter().enumerate() {
        assert_eq!(record["kind"], "paired", "{record}");
        assert_eq!(record["name"], names[n]);
        assert_eq!(record["peer_public_key"], public[1 - n].to_string());
        assert_eq!(record["fingerprint"], fingerprint(&public[0], &public[1]));
        let text = fs::read_to_string(folders[n].join("fulmar.toml")).expect("written");
        assert!(text.lines().count() <= 6, "{text}");
        let config = GatewayConfig::read("fulmar.toml", &text).expect("a gateway's file");
        assert_eq!(config.peers[0].name, names[1 - n]);
        assert!(text.contains(&public[1 - n].to_string()));
    }
    let text = fs::read_to_string(folders[1].join("fulmar.toml")).expect("written");
    assert!(text.contains("address = \"10.77.0.1:4914\""), "{text}");
    assert!(text.contains("routes = [\"10.20.0.0/16\"]"), "{text}");
    let all = files(place.path());
    assert_eq!(all.len(), 8, "two folders deep, two files each: {all:?}");

    let mut gateways = [(&rig.ground, 0), (&rig.air, 1)].map(|(namespace, n)| {
        let mut command = namespace.command(binary);
        command.args(["gateway", "--json", "-c", "fulmar.toml"]);
        command.current_dir(&folders[n]);
        command.env("XDG_STATE_HOME", place.path().join(names[n]));
        Running::start(command)
    });
    for gateway in &mut gateways {
        assert_eq!(gateway.record()["kind"], "start");
    }
    rig.air.answered_by([10, 90, 0, 1].into());
    let pinged = rig.air.must("ping -c 5 -W 20 -q 10.90.0.1");
    assert!(pinged.contains(" 0% packet loss"), "{pinged}");
}

#[test]
fn a_wrong_code_is_refused_at_both_ends_and_the_next_one_pairs() {
    let place = tempfile::tempdir().expect("a place");
    let (mut called, address, code) = listener(place.path(), "--proxy");
    let wrong = call(place.path(), &address, &another(&code));
    assert_eq!(wrong.status.code(), Some(3), "{}", said(&wrong));
    assert!(
        said(&wrong).contains("the code is wrong"),
        "{}",
        said(&wrong)
    );
    let told = called.record();
    assert_eq!(told["kind"], "wrong_code");
    assert_ne!(told["code"], code);
    assert!(files(place.path()).is_empty(), "nothing is written");

    let spent = call(place.path(), &address, &code);
    assert_eq!(spent.status.code(), Some(3), "{}", said(&spent));
    assert!(files(place.path()).is_empty(), "nothing is written");
    let told = called.record();

    let right = call(
        place.path(),
        &address,
        told["code"].as_str().expect("a code"),
    );
    assert_eq!(right.status.code(), Some(0), "{}", said(&right));
    let paired = called.record();
    assert_eq!(paired["fingerprint"], record(&right)["fingerprint"]);
    assert_eq!(called.code(), Some(0));
    let listen = fs::read_to_string(place.path().join("ground/fulmar.toml")).expect("written");
    assert!(listen.contains("listen = \"127.0.0.1:0\""), "{listen}");
    assert!(listen.contains("egress"), "{listen}");
    let caller = fs::read_to_string(place.path().join("air/fulmar.toml")).expect("written");
    assert!(caller.contains("socks"), "{caller}");
}

#[test]
fn ten_wrong_codes_end_the_end_that_is_called() {
    let place = tempfile::tempdir().expect("a place");
    let (mut called, address, mut code) = listener(place.path(), "");
    for left in (0..10).rev() {
        let wrong = call(place.path(), &address, &another(&code));
        assert_eq!(wrong.status.code(), Some(3), "{}", said(&wrong));
        if left > 0 {
            let record = called.record();
            assert_eq!(record["left"], left, "{record}");
            record["code"]
                .as_str()
                .expect("a code")
                .clone_into(&mut code);
        }
    }
    let (status, told) = called.end();
    assert_eq!(status.code(), Some(1));
    assert!(told.contains("too many wrong codes"), "{told}");
    assert!(files(place.path()).is_empty(), "nothing is written");
}

#[test]
fn an_interrupted_end_leaves_nothing() {
    let place = tempfile::tempdir().expect("a place");
    let (mut called, ..) = listener(place.path(), "");
    called.signal(Signal::INT);
    assert_eq!(called.code(), Some(130));

    let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("its own");
    let arguments = format!("init {} --pair --called {address}", place.path().display());
    let mut caller = Running::start(typing(fulmar(&arguments), &another("")));
    // Its first question shows that it has read the code.
    silent.recv_from(&mut [0; 100]).expect("a question");
    caller.signal(Signal::INT);
    assert_eq!(caller.code(), Some(130));
    assert!(files(place.path()).is_empty());
}

#[test]
fn a_file_that_is_there_is_not_overwritten_and_the_other_end_gets_none() {
    let place = tempfile::tempdir().expect("a place");
    let [here, there] = ["here", "there"].map(|name| place.path().join(name));
    fs::create_dir_all(here.join("ground")).expect("room");
    fs::create_dir_all(there.join("air")).expect("room");
    fs::write(there.join("air/air.key"), "mine").expect("room");
    let (mut called, address, code) = listener(&here, "");
    let refused = call(&there, &address, &code);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(
        said(&refused).contains("exists already"),
        "{}",
        said(&refused)
    );
    assert_eq!(fs::read(there.join("air/air.key")).expect("kept"), b"mine");
    called.signal(Signal::INT);
    assert_eq!(called.code(), Some(130));
    assert_eq!(
        files(place.path()),
        [
            "here",
            "here/ground",
            "there",
            "there/air",
            "there/air/air.key"
        ]
    );

    fs::write(here.join("ground/fulmar.toml"), "mine").expect("room");
    let refused = run(&format!(
        "init {} --pair --listen 127.0.0.1:0",
        here.display()
    ));
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(
        said(&refused).contains("exists already"),
        "{}",
        said(&refused)
    );
}

#[test]
fn what_cannot_be_is_said_before_anybody_reads_out_a_code() {
    let place = tempfile::tempdir().expect("a place");
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its own");
    let many: Vec<String> = (0..100)
        .map(|n| format!(" --behind-called 10.{n}.0.0/16"))
        .collect();
    let many = many.concat();
    for (asked, typed, exit, word) in [
        (format!("--listen {port}"), "", 5, "is in use"),
        ("--names a,a".to_owned(), "", 2, "both ends are called a"),
        (many, "", 2, "too many networks"),
        (
            "--called 127.0.0.1 --names a,b".to_owned(),
            "",
            2,
            "the machine that is called says",
        ),
        (
            "--called 127.0.0.1 --proxy".to_owned(),
            "",
            2,
            "the machine that is called says",
        ),
        (
            "--called 127.0.0.1".to_owned(),
            "123 456 789",
            2,
            "the code is still good",
        ),
        ("--called 127.0.0.1".to_owned(), "", 2, "nine digits"),
        (
            "--called 127.0.0.1 --listen :1".to_owned(),
            "",
            2,
            "cannot be used with",
        ),
    ] {
        let command = fulmar(&format!("init {} --pair {asked}", place.path().display()));
        let output = typing(command, typed).output().expect("it starts");
        assert_eq!(
            output.status.code(),
            Some(exit),
            "{asked}: {}",
            said(&output)
        );
        assert!(said(&output).contains(word), "{asked}: {}", said(&output));
    }
    assert!(files(place.path()).is_empty());
}
