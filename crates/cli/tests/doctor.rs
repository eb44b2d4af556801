//! `fulmar doctor` says what is wrong and what to do, tells good from bad by its exit code, and leaves no
//! trace; completions and manual pages name every command.

use crate::processes::{Running, fulmar, run, said};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A configuration with that `security`, and a peer with the further lines `peer`.
fn configuration(place: &Path, name: &str, security: &str, peer: &str) -> PathBuf {
    let file = place.join(format!("{name}.toml"));
    let text = format!(
        "[gateway]\nname = \"{name}\"\nlisten = \"127.0.0.1:0\"\nstate_dir = \"{0}/{name}\"\n\
         [security]\n{security}\n[[peer]]\nname = \"other\"\nrate = \"10Mbit/s\"\n{peer}\n\
         [egress]\nallow = [\"127.0.0.0/8:1-65535\"]\n",
        place.display()
    );
    fs::write(&file, text).expect("room");
    file
}

/// A configuration without security.
fn bare(place: &Path, name: &str, peer: &str) -> PathBuf {
    configuration(place, name, "kind = \"none\"", peer)
}

/// A configuration with the key in the file `name.key`, and the other's public one.
fn keyed(place: &Path, name: &str, other: &str, peer: &str) -> PathBuf {
    let key = place.join(format!("{name}.key"));
    let security = format!("kind = \"noise\"\nprivate_key_file = \"{}\"", key.display());
    let peer = format!("public_key = \"{other}\"\n{peer}");
    configuration(place, name, &security, &peer)
}

/// A gateway, and the address at which others reach it.
fn gateway(file: &Path) -> (Running, String) {
    let arguments = format!("gateway --json --log-format json -c {}", file.display());
    let mut gateway = Running::start(fulmar(&arguments));
    let address = format!("address = \"{}\"", gateway.address());
    (gateway, address)
}

/// A gateway's log, after it was told to end.
fn log_of(mut gateway: Running) -> String {
    gateway.signal(Signal::TERM);
    gateway.end().1
}

fn findings(file: &Path) -> (Option<i32>, Vec<Value>) {
    let output = run(&format!("doctor --json -c {}", file.display()));
    let text = String::from_utf8(output.stdout).expect("text");
    let records = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    (output.status.code(), records.collect())
}

/// Asks about the peer of `file`, and asserts that the finding has `verdict` and `says` in its words, and
/// that the exit code follows.
#[track_caller]
fn finds(file: &Path, verdict: &str, says: &str) {
    let (code, found) = findings(file);
    let peer = found.iter().find(|one| one["check"] == "peer other");
    let peer = peer.unwrap_or_else(|| panic!("nothing about the peer: {found:?}"));
    assert_eq!(peer["verdict"], verdict, "{peer}");
    let words = format!("{} {}", peer["found"], peer["remedy"]);
    assert!(words.contains(says), "{says}: {peer}");
    // A machine may be poor in something; nothing here is impossible on it.
    assert_eq!(code, Some(i32::from(verdict != "good")), "{found:?}");
}

#[test]
fn a_peer_that_answers_is_good_and_hears_of_no_caller_and_one_that_has_gone_is_bad() {
    let place = tempfile::tempdir().expect("room");
    let place = place.path();
    let (ground, address) = gateway(&bare(place, "ground", ""));
    let air = bare(place, "air", &address);
    finds(&air, "good", "answers after");
    assert!(!place.join("air").exists(), "it made the state directory");
    let log = log_of(ground);
    assert!(
        !log.contains("handshake_refused") && !log.contains("WARN\",\"event\":\"peer"),
        "{log}"
    );
    finds(&air, "bad", "start the gateway");
}

#[test]
fn keys_that_do_not_fit_are_bad_and_say_which_and_keys_that_fit_leave_no_line_there() {
    let place = tempfile::tempdir().expect("room");
    let place = place.path();
    let [ours, theirs, other] = ["air", "ground", "stranger"].map(|name| {
        let made = run(&format!(
            "keygen {}",
            place.join(format!("{name}.key")).display()
        ));
        assert!(made.status.success(), "{}", said(&made));
        let public = String::from_utf8(made.stdout).expect("text");
        public.trim().to_owned()
    });
    let (ground, address) = gateway(&keyed(place, "ground", &ours, ""));
    finds(
        &keyed(place, "air", &theirs, &address),
        "good",
        "and has our keys",
    );
    // Another gateway's key in place of its own.
    finds(
        &keyed(place, "air", &other, &address),
        "bad",
        "the public key of `other` is not",
    );
    // A private key that it does not know.
    finds(&keyed(place, "stranger", &theirs, &address), "bad", &other);
    finds(&bare(place, "bare", &address), "bad", "security kind");
    let log = log_of(ground);
    assert!(
        !log.contains("peer_up") && !log.contains("older than its last"),
        "{log}"
    );
}

#[test]
fn a_configuration_that_is_wrong_is_told_before_anything_is_tried() {
    let place = tempfile::tempdir().expect("room");
    let file = place.path().join("wrong.toml");
    fs::write(&file, "[gatewai]\n").expect("room");
    let output = run(&format!("doctor -c {}", file.display()));
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(said(&output).contains("wrong.toml:1"), "{}", said(&output));
}

/// The verbs that `--help` lists.
fn verbs() -> Vec<String> {
    let help = String::from_utf8(run("--help").stdout).expect("text");
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = listed
        .take_while(|line| !line.is_empty())
        // The further lines of a description are indented more.
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .filter(|verb| verb != "help");
    let verbs: Vec<_> = verbs.collect();
    assert!(verbs.iter().any(|verb| verb == "gateway"), "{help}");
    verbs
}

#[test]
fn each_command_has_a_manual_page_with_its_flags_and_exit_codes() {
    let place = tempfile::tempdir().expect("room");
    let output = run(&format!("man --out {}", place.path().display()));
    assert!(output.status.success(), "{}", said(&output));
    for verb in verbs() {
        let page = place.path().join(format!("man1/fulmar-{verb}.1"));
        let page = fs::read_to_string(page).unwrap_or_else(|error| panic!("{verb}: {error}"));
        assert!(page.contains("Exit codes"), "{verb}");
        assert!(page.contains(".SH OPTIONS"), "{verb}");
    }
    let read = |file: &str| fs::read_to_string(place.path().join(file)).expect(file);
    let whole = read("man1/fulmar.1");
    assert_eq!(
        String::from_utf8(run("man").stdout)
            .expect("text")
            .trim_end(),
        whole.trim_end()
    );
    assert!(
        !place.path().join("man1/fulmar-gateway-keeper.1").exists(),
        "it is started by gateways only"
    );
    let configuration = read("man5/fulmar.toml.5");
    assert!(configuration.contains(".SH [egress]"), "{configuration}");
    let printed = String::from_utf8(run("man fulmar.toml").stdout).expect("text");
    assert_eq!(printed.trim_end(), configuration.trim_end());
    let unknown = run("man fulmar.tom");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(said(&unknown).contains("fulmar.toml"), "{}", said(&unknown));
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&format!("completions {shell}"));
        let script = String::from_utf8(output.stdout).expect("text");
        for verb in verbs() {
            assert!(script.contains(&verb), "{shell}: {verb}");
        }
    }
}

#[test]
fn completions_offer_what_fits_and_nothing_internal() {
    let output = run("completions bash");
    let script = String::from_utf8(output.stdout).expect("text");
    assert!(!script.contains("gateway-keeper"), "it is not for people");
    let of = |flag: &str| {
        let case = format!("                {flag})\n");
        let (_, after) = script.split_once(&case).expect("the flag has a case");
        after.lines().next().unwrap_or_default().to_owned()
    };
    assert!(of("--mode").contains("quasi-reliable"), "{}", of("--mode"));
    assert!(!of("--rate").contains("compgen"), "{}", of("--rate"));
    assert!(of("--trace").contains("compgen -f"), "{}", of("--trace"));
}
