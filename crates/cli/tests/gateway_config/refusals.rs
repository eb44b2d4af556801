//! A valid file that this machine or user does not allow: one line, and its exit code.

use super::{BASE, check};
use crate::processes::{fulmar, run, said};
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Runs a gateway that must not start, and returns its code and its line.
fn refused(file: &Path) -> (Option<i32>, String) {
    refused_without(&[], file)
}

/// Runs such a gateway without some of root's capabilities, as for every other user.
fn refused_without(capabilities: &[&str], file: &Path) -> (Option<i32>, String) {
    let mut command = fulmar(&format!("gateway --log-format text -c {}", file.display()));
    if !capabilities.is_empty() && rustix::process::geteuid().is_root() {
        let without: Vec<String> = capabilities.iter().map(|name| format!("-{name}")).collect();
        let mut outer = std::process::Command::new("setpriv");
        outer.arg(format!("--bounding-set={}", without.join(",")));
        outer
            .arg("--")
            .arg(command.get_program())
            .args(command.get_args());
        command = outer;
    }
    let output = command.output().expect("the binary starts");
    let said = said(&output);
    let told: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("fulmar: "))
        .collect();
    assert_eq!(told.len(), 1, "one line: {said}");
    (output.status.code(), told[0].to_owned())
}

#[test]
fn our_own_public_key_as_a_peers_is_told_with_line_field_and_our_key_file() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("gateway.toml");
    let public = |name: &str| {
        let path = place.path().join(name);
        let output = run(&format!("keygen {}", path.display()));
        assert!(output.status.success(), "{}", said(&output));
        let public = String::from_utf8(output.stdout).expect("base64");
        (path.display().to_string(), public.trim().to_owned())
    };
    let ((ours, own), (former, old), (_, theirs)) = (public("a"), public("b"), public("c"));
    let keys = format!(
        "kind = \"noise\"\nprivate_key_file = \"{ours}\"\nformer_private_key_file = \"{former}\""
    );
    for (listed, file_told) in [
        (format!("\"{own}\""), &ours),
        (format!("[\"{theirs}\", \"{own}\"]"), &ours),
        (format!("\"{old}\""), &former),
    ] {
        let peer = format!("name = \"there\"\npublic_key = {listed}");
        let text = BASE.replacen("kind = \"none\"", &keys, 1);
        fs::write(&file, text.replacen("name = \"there\"", &peer, 1)).unwrap();
        let (code, _, said) = check(&file);
        assert_eq!(code, Some(2), "{said}");
        let place = format!("{}:12: `peer.0.public_key`", file.display());
        assert!(
            said.contains(&place) && said.contains(file_told.as_str()),
            "{said}"
        );
    }
}

#[test]
fn a_taken_port_is_told_with_its_address_and_code_5() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("gateway.toml");
    let carrier = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    let taken = carrier.local_addr().unwrap().to_string();
    fs::write(&file, BASE.replacen("127.0.0.1:0", &taken, 1)).unwrap();
    let (code, said) = refused(&file);
    assert_eq!(code, Some(5), "{said}");
    assert!(
        said.contains(&taken) && said.contains("the port is taken"),
        "{said}"
    );

    let entry = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let taken = entry.local_addr().unwrap().to_string();
    let text = BASE.replacen(
        "listen = \"127.0.0.1:0\"\nto",
        &format!("listen = \"{taken}\"\nto"),
        1,
    );
    fs::write(&file, text).unwrap();
    let (code, said) = refused(&file);
    assert_eq!(code, Some(5), "{said}");
    assert!(
        said.contains(&taken) && said.contains("the port is taken"),
        "{said}"
    );
}

#[test]
fn a_peer_of_another_address_family_is_told_with_code_2() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("gateway.toml");
    let text = BASE.replacen("\"127.0.0.1:4914\"", "\"[2001:db8::1]:4914\"", 1);
    fs::write(&file, text).unwrap();
    let (code, said) = refused(&file);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("[2001:db8::1]:4914"), "{said}");
}

#[test]
fn a_taken_port_of_every_kind_is_told_with_its_address_and_code_5() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("gateway.toml");
    let tcp = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let udp = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    let (tcp, udp) = (&tcp.local_addr().unwrap(), &udp.local_addr().unwrap());
    let gateway = "name = \"here\"\nlisten = ";
    let forward = "protocol = \"tcp\"\nlisten = ";
    let free = "\"127.0.0.1:0\"";
    for (what, before, after, taken) in [
        ("carrier", gateway, gateway, udp),
        ("forward, TCP", forward, forward, tcp),
        (
            "forward, UDP",
            "protocol = \"tcp\"\nlisten = \"127.0.0.1:0\"\nto = \"10.0.0.2:80\"\npeer = \"there\"\nclass = \"bulk\"",
            "protocol = \"udp\"\nto = \"10.0.0.2:80\"\nlisten = ",
            udp,
        ),
        ("socks", "[[socks]]\nlisten = ", "[[socks]]\nlisten = ", tcp),
        ("http", "[metrics]\nlisten = ", "[metrics]\nlisten = ", tcp),
    ] {
        let original = if before.ends_with("= ") {
            format!("{before}{free}")
        } else {
            before.to_owned()
        };
        assert!(BASE.contains(&original), "{what}: {original}");
        fs::write(
            &file,
            BASE.replacen(&original, &format!("{after}\"{taken}\""), 1),
        )
        .unwrap();
        let (code, said) = refused(&file);
        assert_eq!(code, Some(5), "{what}: {said}");
        assert!(
            said.contains(&taken.to_string()) && said.contains("the port is taken"),
            "{what}: {said}"
        );
    }
}

#[test]
fn a_transparent_entry_without_the_capability_is_told_with_code_5() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("gateway.toml");
    for protocol in ["tcp", "udp"] {
        let entry =
            format!("[[transparent]]\nprotocol = \"{protocol}\"\nlisten = \"127.0.0.1:0\"\n");
        fs::write(&file, format!("{BASE}\n{entry}")).unwrap();
        let (code, said) = refused_without(&["net_admin", "net_raw"], &file);
        assert_eq!(code, Some(5), "{protocol}: {said}");
        assert!(
            said.contains("CAP_NET_ADMIN") && said.contains("setcap"),
            "{protocol}: {said}"
        );
    }
}

#[test]
fn a_port_below_1024_without_the_capability_is_told_with_code_5() {
    let floor = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    if floor.is_ok_and(|floor| floor.trim() != "1024") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("gateway.toml");
    let original = "[[socks]]\nlisten = \"127.0.0.1:0\"";
    fs::write(
        &file,
        BASE.replacen(original, &original.replace(":0", ":81"), 1),
    )
    .unwrap();
    let (code, said) = refused_without(&["net_bind_service"], &file);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("CAP_NET_BIND_SERVICE"), "{said}");
}

#[test]
fn an_unreadable_key_is_told_with_its_file_and_code_5() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("gateway.toml");
    let key = place.path().join("own.key");
    let peer = place.path().join("peer.key");
    let printed = run(&format!("keygen {}", peer.display())).stdout;
    let public = String::from_utf8(printed).unwrap();
    let noise = format!("kind = \"noise\"\nprivate_key_file = \"{}\"", key.display());
    let text = BASE.replacen("kind = \"none\"", &noise, 1).replacen(
        "mtu = \"1500B\"",
        &format!("public_key = \"{}\"", public.trim()),
        1,
    );
    fs::write(&file, &text).unwrap();
    let (code, said) = refused(&file);
    assert_eq!(code, Some(5), "{said}");
    let remedy = format!("fulmar keygen {}", key.display());
    assert!(said.trim_end().ends_with(&remedy), "{said}");

    // A file that others can read is as bad, and the error says what to do.
    assert!(run(&format!("keygen {}", key.display())).status.success());
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let (code, said) = refused(&file);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("chmod 600"), "{said}");
    assert_eq!(check(&file).0, Some(5), "--check tells it too");

    fs::set_permissions(&key, fs::Permissions::from_mode(0o000)).unwrap();
    let (code, said) = refused_without(&["dac_override", "dac_read_search"], &file);
    assert_eq!(code, Some(5), "{said}");
    assert!(
        said.contains(&key.display().to_string()) && said.contains("denied"),
        "{said}"
    );
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();

    fs::write(&key, "not a key\n").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let (code, said) = refused(&file);
    assert_eq!(code, Some(2), "{said}");
}

#[test]
fn a_state_directory_that_cannot_be_made_is_told_with_code_5() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("gateway.toml");
    let state = format!("name = \"here\"\nstate_dir = \"{}/below\"", file.display());
    fs::write(&file, BASE.replacen("name = \"here\"", &state, 1)).unwrap();
    let (code, said) = refused(&file);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("cannot keep state: writing "), "{said}");
    assert_eq!(said.matches("Not a directory").count(), 1, "{said}");
    assert_eq!(said.matches("os error").count(), 1, "{said}");
}

#[test]
fn a_state_file_that_somebody_else_prepared_is_refused_with_code_5() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("gateway.toml");
    let state = place.path().join("state");
    fs::create_dir(&state).unwrap();
    let victim = place.path().join("victim");
    fs::write(&victim, "18446744073709551615").unwrap();
    std::os::unix::fs::symlink(&victim, state.join("fulmar-here.epoch")).unwrap();
    let with = format!("name = \"here\"\nstate_dir = \"{}\"", state.display());
    fs::write(&file, BASE.replacen("name = \"here\"", &with, 1)).unwrap();
    let (code, said) = refused(&file);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("symbolic link"), "{said}");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    let (code, said) = refused(&file);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("chmod 700"), "{said}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "18446744073709551615");
}

#[test]
fn a_file_that_is_not_there_is_told_with_its_name_and_code_2() {
    let output = run("gateway --check -c /nowhere/gateway.toml");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("/nowhere/gateway.toml") && said(&output).contains("-c"),
        "{}",
        said(&output)
    );
}
