//! `fulmar doctor` says what is wrong and what to do, tells good from bad by its exit code, and leaves
//! no trace; completions and manual pages tell of every command.

use crate::processes::{Running, fulmar, run, said};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn configuration(place: &Path, name: &str, peer: &str) -> PathBuf {
    let file = place.join(format!("{name}.toml"));
    let text = format!(
        "[gateway]\nname = \"{name}\"\nlisten = \"127.0.0.1:0\"\nstate_dir = \"{0}/{name}\"\n\
         [security]\nkind = \"none\"\n[[peer]]\nname = \"other\"\nrate = \"10mbit\"\n{peer}\n\
         [egress]\nallow = [\"127.0.0.0/8:1-65535\"]\n",
        place.display()
    );
    fs::write(&file, text).expect("room");
    file
}

fn findings(file: &Path) -> (Option<i32>, Vec<Value>) {
    let output = run(&format!("doctor --json -c {}", file.display()));
    let text = String::from_utf8(output.stdout).expect("text");
    let records = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    (output.status.code(), records.collect())
}

fn about<'a>(findings: &'a [Value], check: &str) -> &'a Value {
    let found = findings.iter().find(|finding| finding["check"] == check);
    found.unwrap_or_else(|| panic!("nothing about {check}: {findings:?}"))
}

#[test]
fn a_peer_that_answers_is_good_and_hears_of_no_caller_and_one_that_has_gone_is_bad() {
    let place = tempfile::tempdir().expect("room");
    let ground = configuration(place.path(), "ground", "");
    let arguments = format!("gateway --json --log-format json -c {}", ground.display());
    let mut ground = Running::start(fulmar(&arguments));
    let address = ground.address();

    let air = configuration(place.path(), "air", &format!("address = \"{address}\""));
    let (code, found) = findings(&air);
    let peer = about(&found, "peer other");
    assert_eq!(peer["verdict"], "good", "{peer}");
    assert!(
        peer["found"]
            .as_str()
            .expect("text")
            .contains("answers after")
    );
    // A machine may be poor in something; nothing here is impossible on it.
    assert_eq!(code, Some(0), "{found:?}");
    assert!(
        !place.path().join("air").exists(),
        "it made the state directory"
    );

    ground.signal(Signal::TERM);
    let (_, log) = ground.end();
    assert!(
        !log.contains("handshake_refused") && !log.contains("WARN\",\"event\":\"peer"),
        "{log}"
    );

    let (code, found) = findings(&air);
    let peer = about(&found, "peer other");
    assert_eq!(peer["verdict"], "bad", "{peer}");
    assert!(
        peer["remedy"]
            .as_str()
            .expect("text")
            .contains("start the gateway")
    );
    assert_eq!(code, Some(1));
}

/// Two configurations with static keys, whose files are in `place`; each knows the other by `known`.
fn keyed(place: &Path, name: &str, known: &str, peer: &str) -> PathBuf {
    let file = place.join(format!("{name}-keyed.toml"));
    let text = format!(
        "[gateway]\nname = \"{name}\"\nlisten = \"127.0.0.1:0\"\nstate_dir = \"{0}/{name}\"\n\
         [security]\nkind = \"noise\"\nprivate_key_file = \"{0}/{name}.key\"\n\
         [[peer]]\nname = \"other\"\nrate = \"10Mbit/s\"\npublic_key = \"{known}\"\n{peer}\n\
         [egress]\nallow = [\"127.0.0.0/8:1-65535\"]\n",
        place.display()
    );
    fs::write(&file, text).expect("room");
    file
}

#[test]
fn keys_that_do_not_fit_are_bad_and_say_which_and_keys_that_fit_leave_no_line_there() {
    let place = tempfile::tempdir().expect("room");
    let public = |name: &str| {
        let file = place.path().join(format!("{name}.key"));
        let made = run(&format!("keygen {}", file.display()));
        assert!(made.status.success(), "{}", said(&made));
        let read = run(&format!("keygen --public {}", file.display()));
        let text = String::from_utf8(read.stdout).expect("text");
        text.trim().to_owned()
    };
    let [ours, theirs, other] = ["air", "ground", "stranger"].map(public);
    let ground = keyed(place.path(), "ground", &ours, "");
    let arguments = format!("gateway --json --log-format json -c {}", ground.display());
    let mut ground = Running::start(fulmar(&arguments));
    let address = format!("address = \"{}\"", ground.address());
    let ask = |file: PathBuf| {
        let (code, found) = findings(&file);
        (code, about(&found, "peer other").clone())
    };

    let (code, peer) = ask(keyed(place.path(), "air", &theirs, &address));
    assert_eq!(
        (code, &peer["verdict"]),
        (Some(0), &Value::from("good")),
        "{peer}"
    );
    assert!(
        peer["found"]
            .as_str()
            .expect("text")
            .ends_with("and has our keys"),
        "{peer}"
    );

    // The key of another gateway for its own.
    let (code, peer) = ask(keyed(place.path(), "air", &other, &address));
    assert_eq!(
        (code, &peer["verdict"]),
        (Some(1), &Value::from("bad")),
        "{peer}"
    );
    assert!(
        peer["found"]
            .as_str()
            .expect("text")
            .contains("its public key is not"),
        "{peer}"
    );

    // A private key that it does not know.
    let (code, peer) = ask(keyed(place.path(), "stranger", &theirs, &address));
    assert_eq!(
        (code, &peer["verdict"]),
        (Some(1), &Value::from("bad")),
        "{peer}"
    );
    assert!(
        peer["found"].as_str().expect("text").contains(&other),
        "{peer}"
    );

    // Another kind of security.
    let (code, peer) = ask(configuration(place.path(), "bare", &address));
    assert_eq!(
        (code, &peer["verdict"]),
        (Some(1), &Value::from("bad")),
        "{peer}"
    );
    assert!(
        peer["found"]
            .as_str()
            .expect("text")
            .contains("security kind"),
        "{peer}"
    );

    ground.signal(Signal::TERM);
    let (_, log) = ground.end();
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
        // A description that goes on stands further in.
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
        let page = place.path().join(format!("fulmar-{verb}.1"));
        let page = fs::read_to_string(page).unwrap_or_else(|error| panic!("{verb}: {error}"));
        assert!(page.contains("Exit codes"), "{verb}");
        assert!(page.contains(".SH OPTIONS"), "{verb}");
    }
    let whole = fs::read_to_string(place.path().join("fulmar.1")).expect("the whole command's");
    assert_eq!(
        String::from_utf8(run("man").stdout)
            .expect("text")
            .trim_end(),
        whole.trim_end()
    );
    assert!(
        !place.path().join("fulmar-gateway-keeper.1").exists(),
        "it is started by gateways only"
    );
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
