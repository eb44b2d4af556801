//! A gateway's configuration: the examples are right, and every mistake is one line that names the
//! file, the line, the field and the remedy.

use crate::processes;
use crate::processes::{Running, fulmar, run, said};
use rustix::process::Signal;
use std::fs;
use std::net::{TcpListener, UdpSocket};
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
    assert_eq!(seen, 4);
}

/// What to replace, by what, and what the error must say: the line, the field, a part of the remedy.
const MUTATIONS: [(&str, &str, usize, &str, &str); 42] = [
    ("[gateway]", "[gateway", 1, "", "expected `]`"),
    ("name = \"here\"", "name = \"here", 2, "", "basic string"),
    (
        "name = \"here\"",
        "nmae = \"here\"",
        2,
        "gateway.nmae",
        "did you mean `name`",
    ),
    (
        "[gateway]",
        "[gatway]",
        1,
        "gatway",
        "did you mean `gateway`",
    ),
    (
        "listen = \"127.0.0.1:0\"",
        "listen = \"4914\"",
        3,
        "gateway.listen",
        "write 127.0.0.1:8080",
    ),
    (
        "kind = \"none\"",
        "kind = \"nose\"",
        6,
        "security.kind",
        "did you mean `noise`",
    ),
    (
        "kind = \"none\"",
        "kind = \"noise\"",
        5,
        "security.private_key_file",
        "private_key_file = ",
    ),
    (
        "kind = \"none\"",
        "kind = \"preset\"",
        5,
        "security.preset_key_file",
        "preset_key_file = ",
    ),
    (
        "kind = \"none\"",
        "",
        5,
        "security.kind",
        "write kind = \"noise\"",
    ),
    (
        "kind = \"none\"",
        "kind = \"none\"\nprivate_key_file = \"x\"",
        7,
        "security.private_key_file",
        "remove it",
    ),
    (
        "name = \"there\"",
        "",
        8,
        "peer.0.name",
        "write name = \"aircraft\"",
    ),
    (
        "address = \"127.0.0.1:4914\"",
        "address = \"127.0.0.1\"",
        10,
        "peer.0.address",
        "write 10.0.0.2:80",
    ),
    (
        "rate = \"10mbit\"",
        "rate = \"10\"",
        11,
        "peer.0.rate",
        "has no unit",
    ),
    (
        "rate = \"10mbit\"",
        "rate = \"10Mbps\"",
        11,
        "peer.0.rate",
        "bytes per second to tc",
    ),
    (
        "rate = \"10mbit\"",
        "",
        8,
        "peer.0.rate",
        "write rate = \"10mbit\"",
    ),
    (
        "mtu = \"1500B\"",
        "mtu = \"100B\"",
        12,
        "peer.0.mtu",
        "write 1280B to",
    ),
    (
        "mtu = \"1500B\"",
        "public_key = \"abc\"",
        12,
        "peer.0.public_key",
        "fulmar keygen",
    ),
    (
        "mode = \"near-reliable\"",
        "mode = \"near-relyable\"",
        15,
        "class.bulk.mode",
        "did you mean `near-reliable`",
    ),
    (
        "mode = \"near-reliable\"",
        "mode = \"reliable\"",
        18,
        "class.bulk.custody",
        "write custody = \"none\"",
    ),
    (
        "priority = 3",
        "priority = 99",
        16,
        "class.bulk.priority",
        "from 0 to 63",
    ),
    (
        "window = \"1MiB\"",
        "window = \"1M\"",
        17,
        "class.bulk.window",
        "not a unit here",
    ),
    (
        "window = \"1MiB\"",
        "keep = \"1B\"",
        17,
        "class.bulk.keep",
        "write 4KiB to 1GiB",
    ),
    (
        "custody = \"memory\"",
        "custody = \"disk\"",
        18,
        "class.bulk.custody",
        "write custody = \"memory\"",
    ),
    (
        "fec_block = \"20+4\"",
        "fec_block = \"20/4\"",
        22,
        "class.video.fec_block",
        "such as 20+4",
    ),
    (
        "deadline = \"200ms\"",
        "deadline = \"200\"",
        23,
        "class.video.deadline",
        "has no unit",
    ),
    (
        "mode = \"quasi-reliable\"",
        "mode = \"nack-mack\"",
        23,
        "class.video.deadline",
        "write mode = \"quasi-reliable\"",
    ),
    (
        "protocol = \"tcp\"",
        "protocol = \"tpc\"",
        26,
        "forward.0.protocol",
        "did you mean `tcp`",
    ),
    (
        "to = \"10.0.0.2:80\"",
        "to = \"10.0.0.2\"",
        28,
        "forward.0.to",
        "write 10.0.0.2:80",
    ),
    (
        "peer = \"there\"",
        "peer = \"ther\"",
        29,
        "forward.0.peer",
        "did you mean `there`",
    ),
    (
        "class = \"bulk\"",
        "class = \"blk\"",
        30,
        "forward.0.class",
        "did you mean `bulk`",
    ),
    (
        "class = \"bulk\"",
        "class = \"video\"",
        30,
        "forward.0.class",
        "use a class with mode reliable",
    ),
    (
        "{ 22 = \"bulk\" }",
        "{ ssh = \"bulk\" }",
        34,
        "socks.0.class_by_port.ssh",
        "write 443 or 5000-5999",
    ),
    (
        "[\"10.0.0.0/8:1-65535\"]",
        "[\"10.0.0.0/8\"]",
        38,
        "egress.allow",
        "write 10.0.0.0/8:1-65535",
    ),
    (
        "connect_timeout = \"5s\"",
        "connect_timeout = \"5h\"",
        39,
        "egress.connect_timeout",
        "write 100ms to 120s",
    ),
    (
        "flows = 100",
        "flows = 0",
        42,
        "limits.flows",
        "from 1 to 60000",
    ),
    (
        "udp_idle = \"1min\"",
        "idle = \"1min\"",
        43,
        "limits.idle",
        "did you mean",
    ),
    (
        "[gateway]",
        "capture = { max_size = \"2MB\" }\n[gateway]",
        1,
        "capture.file",
        "write file = ",
    ),
    (
        "[gateway]",
        "capture = { file = \"a.pcapng\", max_size = \"2kB\" }\n[gateway]",
        1,
        "capture.max_size",
        "write at least 1MB",
    ),
    (
        "[gateway]",
        "trace = { max_size = \"2MB\" }\n[gateway]",
        1,
        "trace.file",
        "write file = ",
    ),
    (
        "[gateway]",
        "trace = { file = \"a.jsonl\", max_size = \"2kB\" }\n[gateway]",
        1,
        "trace.max_size",
        "write at least 1MB",
    ),
    (
        "[gateway]",
        "trace = { files = \"a.jsonl\" }\n[gateway]",
        1,
        "trace.files",
        "did you mean",
    ),
    (
        "[gateway]",
        "capture = { file = \"a\" }\ntrace = { file = \"a\" }\n[gateway]",
        2,
        "trace.file",
        "name another",
    ),
];

#[test]
fn each_mistake_is_one_line_with_file_line_field_and_remedy() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("gateway.toml");
    fs::write(&file, BASE).unwrap();
    assert_eq!(check(&file).0, Some(0), "{}", check(&file).2);
    let mut wrong = Vec::new();
    for (original, mistake, line, field, remedy) in MUTATIONS {
        assert!(BASE.contains(original), "{original} is in the base");
        fs::write(&file, BASE.replacen(original, mistake, 1)).unwrap();
        let (code, words, said) = check(&file);
        let place = format!("{}:{line}: ", file.display());
        let right = code == Some(2)
            && words.is_empty()
            && said.lines().count() == 1
            && said.contains(&place)
            && (field.is_empty() || said.contains(&format!("`{field}`")))
            && said.contains(remedy);
        if !right {
            wrong.push(format!(
                "{original} -> {mistake}: wanted line {line}, field {field}, remedy {remedy}, \
                 code 2; got {code:?} {said}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs a gateway that must not start, and returns its code and its line.
fn refused(file: &Path) -> (Option<i32>, String) {
    refused_without(&[], file)
}

/// The same without some of root's capabilities, as it is for everybody else.
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
fn a_socks_port_without_a_login_is_warned_of_unless_it_is_on_the_loopback() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("gateway.toml");
    let original = "[[socks]]\nlisten = \"127.0.0.1:0\"";
    let login = format!(
        "{original}\nuser = \"a\"\npassword_file = \"{}/p\"",
        place.path().display()
    );
    fs::write(place.path().join("p"), "secret\n").unwrap();
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

    // Readable by others is as bad, and says what to do.
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
