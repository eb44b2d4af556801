//! `[[flow]]`.

use super::{Mistake, each_is_one_line_with_file_line_field_and_remedy};

const MISTAKES: &[Mistake<'_>] = &[
    (
        r#"transport = "aerotp""#,
        r#"transport = "aeortp""#,
        22,
        "flow.0.transport",
        "did you mean `aerotp`",
    ),
    (
        "[[flow]]\ntransport = \"aerotp\"",
        "[[flow]]",
        21,
        "flow.0.transport",
        "is missing; write transport =",
    ),
    (
        r#"bytes = "20kB""#,
        r#"bytes = "20""#,
        25,
        "flow.0.bytes",
        "has no unit: write an amount",
    ),
    (
        r#"bytes = "20kB""#,
        r#"bytes = "0B""#,
        25,
        "flow.0.bytes",
        "must be at least 1B",
    ),
    (
        r#"bytes = "20kB""#,
        r#"bytes = "99999999999GB""#,
        25,
        "flow.0.bytes",
        "is out of range: write an amount",
    ),
    (
        r#"mtu = "1500B""#,
        r#"mtu = "20B""#,
        26,
        "flow.0.mtu",
        "must be 68B to 65535B",
    ),
    (
        r#"traffic = "constant-rate""#,
        r#"traffic = "poisson""#,
        29,
        "flow.1.traffic",
        "known are bulk, constant-rate",
    ),
    (
        r#"transport = "udp""#,
        r#"transport = "gateway""#,
        21,
        "flow",
        r#"beside "gateway" in one scenario"#,
    ),
    (
        r#"mode = "nack-mack""#,
        r#"mode = "fast""#,
        23,
        "flow.0.mode",
        "known are auto, datagram",
    ),
    (
        "fec_words = 9",
        "fec_words = 300",
        24,
        "flow.0.fec_words",
        "from 0 to 256",
    ),
];

#[test]
fn mistakes_of_flows() {
    each_is_one_line_with_file_line_field_and_remedy(MISTAKES);
}
