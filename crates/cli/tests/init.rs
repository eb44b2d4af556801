//! `fulmar init` writes two files that gateways take as they are, and writes over nothing.

use crate::processes::{run, said};
use fulmar_net::GatewayConfig;
use fulmar_net::session::read_secret_key;
use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;

fn config(file: &Path) -> GatewayConfig {
    let text = fs::read_to_string(file).expect("written");
    assert!(text.lines().count() <= 6, "{text}");
    GatewayConfig::read("fulmar.toml", &text).expect("a gateway's file")
}

#[test]
fn both_ends_know_each_other_and_the_first_is_called() {
    let place = tempfile::tempdir().expect("a place");
    let dir = place.path();
    let asked = "--called 203.0.113.10 --behind-called 10.20.0.0/16 --names base,kite";
    let output = run(&format!("init {} {asked}", dir.display()));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let (base, kite) = (
        config(&dir.join("base/fulmar.toml")),
        config(&dir.join("kite/fulmar.toml")),
    );
    for (own, other, name) in [(&base, &kite, "base"), (&kite, &base, "kite")] {
        let key = read_secret_key(&dir.join(name).join(format!("{name}.key"))).expect("a key");
        assert_eq!(other.peers[0].name, name);
        assert!(format!("{:?}", other.peers[0]).contains(&key.public().to_string()));
        assert_eq!(own.tunnels.len(), 1);
    }
    let text =
        |name: &str| fs::read_to_string(dir.join(name).join("fulmar.toml")).expect("written");
    assert!(
        text("kite").contains("address = \"203.0.113.10:4914\"")
            && text("kite").contains("routes = [\"10.20.0.0/16\"]")
    );
    assert!(!text("base").contains("203.0.113.10"));

    let again = run(&format!("init {} {asked}", dir.display()));
    assert_eq!(again.status.code(), Some(2));
    assert!(said(&again).contains("exists already"), "{}", said(&again));
}

#[test]
fn what_no_gateway_would_take_is_refused_before_anything_is_written() {
    let place = tempfile::tempdir().expect("a place");
    for (asked, word) in [
        ("", "--called is missing"),
        ("--called a --names x,x", "both ends are called x"),
        ("--called a --names ..,x", "letters"),
        ("--called a --network 10.0.0.1/32", "no room for two ends"),
        ("--called a --proxy --allow nonsense", "allow"),
        ("--called not_a/host", "--called: "),
        (
            "--called a --network 10.0.0.0/24 --proxy",
            "cannot be used with",
        ),
    ] {
        let output = run(&format!("init {} {asked}", place.path().display()));
        assert_eq!(output.status.code(), Some(2), "{asked}: {}", said(&output));
        assert!(said(&output).contains(word), "{asked}: {}", said(&output));
    }
    assert_eq!(fs::read_dir(place.path()).expect("there").count(), 0);
}

#[test]
fn what_it_tells_root_to_run_takes_the_files_of_the_user_who_made_them() {
    // Only root can give files away, and is asked for.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = tempfile::tempdir().expect("a place");
    let output = run(&format!(
        "init {} --called 203.0.113.10",
        place.path().display()
    ));
    assert!(
        said(&output).contains(" && sudo \"$(command -v fulmar)\" up fulmar.toml"),
        "sudo does not find what is built here: {}",
        said(&output)
    );
    for end in ["ground", "air"] {
        let folder = place.path().join(end);
        for file in [
            folder.join("fulmar.toml"),
            folder.join(format!("{end}.key")),
            folder.clone(),
        ] {
            chown(file, Some(12_345), Some(12_345)).expect("root");
        }
        let checked = Command::new(assert_cmd::cargo::cargo_bin!("fulmar"))
            .args(["up", "--check", "fulmar.toml"])
            .current_dir(&folder)
            .output()
            .expect("the binary starts");
        assert_eq!(checked.status.code(), Some(0), "{}", said(&checked));
    }
}

#[test]
fn networks_behind_an_end_come_with_what_lets_its_kernel_forward_and_the_way_back() {
    let place = tempfile::tempdir().expect("a place");
    let advice = |name: &str, asked: &str| {
        let folder = place.path().join(name);
        said(&run(&format!(
            "init {} --called a {asked}",
            folder.display()
        )))
    };
    let both =
        "--behind-called 10.20.0.0/16 --behind-caller 10.30.0.0/16 --behind-caller fd30::/64";
    let told = advice("both", both);
    for line in [
        "at ground: sudo sysctl -w net.ipv4.ip_forward=1; and the hosts behind it need a way back: a route to 10.90.0.0/24 by ground",
        "at air: sudo sysctl -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1; and the hosts",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert!(!advice("neither", "").contains("sysctl"));
    let proxy = advice("proxy", "--proxy");
    assert!(
        proxy.contains("all but ground itself") && !proxy.contains("sysctl"),
        "{proxy}"
    );
}
