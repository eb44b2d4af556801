//! A gateway's configuration: the examples are right, and every mistake is one line that names the
//! file, the line, the field and the remedy.

mod file_names;
mod mistakes;
mod refusals;

use crate::processes;
use crate::processes::{Running, fulmar, run, said};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const BASE: &str = r#"[gateway]
name = "here"
listen = "127.0.0.1:0"

[security]
kind = "none"

[[peer]]
name = "there"
address = "127.0.0.1:4914"
rate = "10mbit"
mtu = "1500B"

[class.bulk]
mode = "near-reliable"
priority = 3
window = "1MiB"
custody = "memory"

[class.video]
mode = "quasi-reliable"
fec_block = "20+4"
deadline = "200ms"

[[forward]]
protocol = "tcp"
listen = "127.0.0.1:0"
to = "10.0.0.2:80"
peer = "there"
class = "bulk"

[[socks]]
listen = "127.0.0.1:0"
class_by_port = { 22 = "bulk" }
udp_class = "video"

[egress]
allow = ["10.0.0.0/8:1-65535"]
connect_timeout = "5s"

[limits]
flows = 100
udp_idle = "1min"

[metrics]
listen = "127.0.0.1:0"
"#;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway")
}

fn check(file: &Path) -> (Option<i32>, String, String) {
    let output = run(&format!("gateway --check -c {}", file.display()));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), text, said(&output))
}

#[test]
fn each_example_is_right_and_explained() {
    let place = tempfile::tempdir().unwrap();
    for key in ["ground", "aircraft"] {
        let path = place.path().join(format!("{key}.key"));
        assert!(run(&format!("keygen {}", path.display())).status.success());
    }
    let mut seen = 0;
    for entry in fs::read_dir(examples()).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        // Keys are the installation's; everything else is the example's.
        let here = text.replace("/etc/fulmar/", &format!("{}/", place.path().display()));
        let file = place.path().join(path.file_name().unwrap());
        fs::write(&file, here).unwrap();
        let (code, words, said) = check(&file);
        assert_eq!(code, Some(0), "{}: {said}", path.display());
        assert!(words.contains("peer `"), "{words}");
        seen += 1;
    }
    assert_eq!(seen, 12);
}

#[test]
fn a_gateway_behind_others_is_explained_with_the_way_to_it() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("gateway.toml");
    let far = "[[peer]]\nname = \"far\"\nvia = \"middle\"\n[[peer]]\nname = \"middle\"\nvia = \"there\"\n[class.bulk]";
    let text = BASE.replacen("[class.bulk]", far, 1);
    let text = text.replacen("peer = \"there\"", "peer = \"far\"", 1);
    let text = text.replacen(
        "listen = \"127.0.0.1:0\"\nclass_by",
        "listen = \"127.0.0.1:0\"\npeer = \"there\"\nclass_by",
        1,
    );
    let text = text.replacen(
        "connect_timeout",
        "relay = [\"far\", \"there\"]\nconnect_timeout",
        1,
    );
    fs::write(&file, text).unwrap();
    let (code, words, said) = check(&file);
    assert_eq!(code, Some(0), "{said}");
    for told in [
        "peer `far` is reached through `there` and `middle`, which carry on what is for it",
        "go on from `far` to 10.0.0.2:80",
        "flows of one peer are carried on to `far`, `there`",
    ] {
        assert!(words.contains(told), "{told} in {words}");
    }
}

#[test]
fn a_link_s_schedule_is_said_with_what_it_has() {
    let place = tempfile::tempdir().unwrap();
    let (file, plan) = (
        place.path().join("gateway.toml"),
        place.path().join("passes.csv"),
    );
    fs::write(&plan, "from,until,rate\n5s,15s,2mbit\n20s,30s,4mbit\n").unwrap();
    let link = format!(
        "[[link]]\nname = \"pass\"\nschedule = \"{}\"\n",
        plan.display()
    );
    fs::write(&file, format!("{BASE}{link}")).unwrap();
    let (code, words, said) = check(&file);
    assert_eq!(code, Some(0), "{said}");
    let plan = "link `pass` is, by its schedule, up in 2 spans, 20 s in all; the first begins 5 s after the gateway's start";
    assert!(words.contains(plan), "{words}");
    assert!(!words.contains("a message holds for"), "{words}");
}

#[test]
fn a_socks_port_without_a_login_is_warned_of_unless_it_is_on_the_loopback() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("gateway.toml");
    let original = "[[socks]]\nlisten = \"127.0.0.1:0\"";
    let login = format!(
        "{original}\nuser = \"a\"\npassword_file = \"{}/p\"",
        place.path().display()
    );
    fs::write(place.path().join("p"), "secret\n").unwrap();
    fs::set_permissions(place.path().join("p"), PermissionsExt::from_mode(0o600)).unwrap();
    let open = original.replace("127.0.0.1", "");
    for (entry, warned) in [
        (original, false),
        (&open, true),
        (&login.replace("127.0.0.1", ""), false),
    ] {
        fs::write(&file, BASE.replacen(original, entry, 1)).unwrap();
        let arguments = format!("gateway --json --log-format text -c {}", file.display());
        let mut gateway = Running::start(fulmar(&arguments));
        gateway.record();
        gateway.signal(Signal::TERM);
        let (_, said) = gateway.end();
        let warning = said.lines().find(|line| line.contains("open_proxy"));
        assert_eq!(warning.is_some(), warned, "{entry}: {said}");
        assert!(warning.is_none_or(|line| line.contains("WARN") && line.contains("password_file")));
    }
}

#[test]
fn the_log_level_changes_when_the_file_is_read_again() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("gateway.toml");
    let with = |level: &str| {
        let gateway = format!("name = \"here\"\nlog = \"{level}\"");
        let text = BASE.replacen("name = \"here\"", &gateway, 1);
        fs::write(&file, text).unwrap();
    };
    with("error");
    let arguments = format!("gateway --json --log-format text -c {}", file.display());
    let mut gateway = Running::start(fulmar(&arguments));
    gateway.record();
    with("info");
    gateway.signal(Signal::HUP);
    // The lines cannot be read before the end; the file is read within this.
    for _ in 0..50 {
        processes::moment();
    }
    gateway.signal(Signal::TERM);
    let (_, said) = gateway.end();
    assert!(
        !said.contains("event=\"started\""),
        "an info line of before: {said}"
    );
    assert!(said.contains("event=\"reloaded\""), "{said}");
    assert!(said.contains("event=\"stopped\""), "{said}");
    assert!(!said.contains("needs_restart"), "{said}");
}

#[test]
fn the_kernels_rules_divert_what_the_file_names() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("gateway.toml");
    let entry = "[[transparent]]\nprotocol = \"udp\"\nlisten = \":4915\"\nonly_dscp = [\"ef\"]\n";
    fs::write(&file, format!("{BASE}\n{entry}")).unwrap();
    let output = run(&format!("gateway --print-rules -c {}", file.display()));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let script = String::from_utf8(output.stdout).unwrap();
    assert!(script.contains("ip dscp { 46 }"), "{script}");
    assert!(script.contains("tproxy ip6 to :4915"), "{script}");
    assert!(
        script.contains("127.0.0.1 udp dport 4914 return"),
        "the carrier is left alone"
    );
    fs::write(&file, BASE).unwrap();
    let output = run(&format!("gateway --print-rules -c {}", file.display()));
    assert_eq!(output.status.code(), Some(2));
}
