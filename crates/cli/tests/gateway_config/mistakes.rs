//! Every mistake in a file is one line that names the line, the field and the remedy.

use super::{BASE, check};
use std::fs;

/// The text to replace, its replacement, and what the error must say: the line, the field, a part of the
/// remedy.
const MUTATIONS: [(&str, &str, usize, &str, &str); 52] = [
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
        "rate = \"10bit\"",
        11,
        "peer.0.rate",
        "or leave it out: it is found",
    ),
    (
        "rate = \"10mbit\"",
        "share = \"fairly\"",
        11,
        "peer.0.share",
        "did you mean `fair`",
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
        22,
        "class.video.fec_block",
        "quasi-reliable does",
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
        "flows = 100",
        "flows_per_client = 0",
        42,
        "limits.flows_per_client",
        "from 1 to 60000",
    ),
    (
        "udp_idle = \"1min\"",
        "tcp_silent = \"0s\"",
        43,
        "limits.tcp_silent",
        "write 1s to",
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
    (
        "[class.bulk]",
        "[[peer]]\nname = \"far\"\nvia = \"ther\"\n[class.bulk]",
        16,
        "peer.1.via",
        "did you mean `there`",
    ),
    (
        "[class.bulk]",
        "[[peer]]\nname = \"a\"\nvia = \"b\"\n[[peer]]\nname = \"b\"\nvia = \"a\"\n[class.bulk]",
        16,
        "peer.1.via",
        "leads in a circle",
    ),
    (
        "[class.bulk]",
        "[[peer]]\nname = \"far\"\nvia = \"there\"\nrate = \"1mbit\"\n[class.bulk]",
        17,
        "peer.1.rate",
        "not used beside via",
    ),
    (
        "[class.bulk]",
        "[[peer]]\nname = \"there\"\nvia = \"there\"\n[class.bulk]",
        15,
        "peer.1.name",
        "give each its own",
    ),
    (
        "[class.bulk]",
        "[[peer]]\nname = \"a b\"\nvia = \"there\"\n[class.bulk]",
        15,
        "peer.1.name",
        "in letters, digits",
    ),
    (
        "connect_timeout = \"5s\"",
        "relay = [\"far\"]",
        39,
        "egress.relay",
        "no [[peer]] here",
    ),
    (
        "[[socks]]\nlisten = \"127.0.0.1:0\"",
        "[[peer]]\nname = \"far\"\nvia = \"there\"\n[[tunnel]]\npeer = \"far\"\naddress = \"10.9.0.1/24\"\n\
         [[socks]]\nlisten = \"127.0.0.1:0\"\npeer = \"there\"",
        36,
        "tunnel.0.peer",
        "a tunnel ends at the next",
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
