//! A scenario that cannot be used: every mistake is one line that names the file, the line, the field
//! and the remedy, and the exit code is 2.

use crate::processes::{Place, run, said};
use std::fs;

const BASE: &str = r#"title = "a base"
[run]
seed = 1
runs = 2
duration = "30s"
lateness = "1ms"
[lan]
rate = "1gbit"
[[hop]]
rate = "5mbit"
delay = "10ms"
queue = "100 packets"
loss = "2% burst 4"
ber = "1e-5"
outages = "1s+1s"
jitter = "2ms"
reorder = "1% by 5ms"
duplicate = "1%"
[hop.forward]
loss = "1%"
[[flow]]
transport = "aerotp"
mode = "nack-mack"
fec_words = 9
bytes = "20kB"
mtu = "1500B"
[[flow]]
transport = "udp"
traffic = "constant-rate"
rate = "1mbit"
write = "1000B"
bytes = "10kB"
[sweep]
"hop.ber" = [0, "1e-5"]
"flow.0.mode, flow.0.fec_words" = [["reliable", 0], ["nack-mack", 24]]
"#;

/// What to replace, by what, and what the error must say: the line, the field, a part of the remedy.
const MUTATIONS: [(&str, &str, usize, &str, &str); 77] = [
    (
        r#"title = "a base""#,
        r#"titel = "a base""#,
        1,
        "titel",
        "did you mean `title`",
    ),
    (
        r#"title = "a base""#,
        r#"title = "a base"#,
        1,
        "title",
        r#"expected `"`"#,
    ),
    ("[run]", "[runn]", 2, "runn", "did you mean `run`"),
    ("[run]", "[run", 2, "run", "expected `]`"),
    ("[run]", "[run]\n[run]", 3, "run", "write it once"),
    (
        "seed = 1",
        "seed = 1.5",
        3,
        "run.seed",
        "must be a whole number from 0",
    ),
    (
        "runs = 2",
        "runs = 0",
        4,
        "run.runs",
        "must be a whole number from 1",
    ),
    ("runs = 2", "runs = 1000000000", 4, "run.runs", "to 1000000"),
    (
        r#"duration = "30s""#,
        r#"duration = "30""#,
        5,
        "run.duration",
        "has no unit: write a time such as",
    ),
    (
        r#"duration = "30s""#,
        r#"duration = "-30s""#,
        5,
        "run.duration",
        "`-30s` is negative; a time is 0s or longer, such as 30s",
    ),
    (
        r#"duration = "30s""#,
        r#"duration = "0s""#,
        5,
        "run.duration",
        "must be longer than 0",
    ),
    (
        r#"lateness = "1ms""#,
        r#"latness = "1ms""#,
        6,
        "run.latness",
        "did you mean `lateness`",
    ),
    (
        r#"rate = "1gbit""#,
        r#"rate = "0bit""#,
        8,
        "lan.rate",
        "at least 1bit",
    ),
    (
        "[lan]",
        "[lan]\nloss = \"1%\"",
        8,
        "lan.loss",
        "known are rate, delay, queue",
    ),
    (
        r#"rate = "5mbit""#,
        r#"rate = "5mbps""#,
        10,
        "hop.0.rate",
        "write 400kbit, 5mbit or 1gbit",
    ),
    (
        r#"rate = "5mbit""#,
        r#"rate = "-5mbit""#,
        10,
        "hop.0.rate",
        "is out of range: write a rate",
    ),
    (
        r#"rate = "5mbit""#,
        "rate = 5",
        10,
        "hop.0.rate",
        "has no unit: write a rate",
    ),
    (
        r#"rate = "5mbit""#,
        r#"rate = "0mbit""#,
        10,
        "hop.0.rate",
        "at least 1bit",
    ),
    (
        r#"rate = "5mbit""#,
        r#"rate = ["5mbit"]"#,
        10,
        "hop.0.rate",
        "must be a single value",
    ),
    (
        "[[hop]]\nrate = \"5mbit\"",
        "[[hop]]",
        9,
        "hop.0.rate",
        r#"is missing; write rate = "5mbit""#,
    ),
    (
        r#"delay = "10ms""#,
        r#"delay = "10 parsec""#,
        11,
        "hop.0.delay",
        "is not a unit here: write a time",
    ),
    (
        r#"delay = "10ms""#,
        r#"delay = "100000h""#,
        11,
        "hop.0.delay",
        "0s to 8760h",
    ),
    (
        r#"queue = "100 packets""#,
        "queue = 100",
        12,
        "hop.0.queue",
        "write `100 packets`",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "102%""#,
        13,
        "hop.0.loss",
        "between 0 and 1",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "-2%""#,
        13,
        "hop.0.loss",
        "between 0 and 1",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "2% burst 0.5""#,
        13,
        "hop.0.loss",
        "at least 1 packets",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "on-off 80% period 50ms""#,
        13,
        "hop.0.loss",
        "0 to 2/3",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "sometimes""#,
        13,
        "hop.0.loss",
        "write `none`, `2%`",
    ),
    (
        r#"outages = "1s+1s""#,
        r#"outages = "every 1s for 2s""#,
        15,
        "hop.0.outages",
        "below the cycle of 1s",
    ),
    (
        r#"jitter = "2ms""#,
        r#"jitter = "20ms""#,
        16,
        "hop.0.jitter",
        "at most the delay, 10ms",
    ),
    (
        r#"reorder = "1% by 5ms""#,
        r#"reorder = "1%""#,
        17,
        "hop.0.reorder",
        "write `1% by 5ms`",
    ),
    (
        r#"duplicate = "1%""#,
        r#"duplicate = "7""#,
        18,
        "hop.0.duplicate",
        "between 0 and 1",
    ),
    (
        "[hop.forward]",
        "[hop.foward]",
        19,
        "hop.0.foward",
        "did you mean `forward`",
    ),
    (
        "[hop.forward]",
        "[hop.forward.forward]",
        19,
        "hop.0.forward.forward",
        "known are rate",
    ),
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
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""hop.ber" = []"#,
        34,
        "sweep.hop.ber",
        "must have at least one value",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""hop.ber" = 0"#,
        34,
        "sweep.hop.ber",
        "must be a list of the values",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""hop.bre" = [0]"#,
        34,
        "hop.0.bre",
        "did you mean `ber`",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""hpo.ber" = [0]"#,
        34,
        "hpo",
        "did you mean `hop`",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""hop.3.ber" = [0]"#,
        34,
        "hop.3.ber",
        "there is only 0",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""hop..ber" = [0]"#,
        34,
        "sweep.hop..ber",
        "is not a path; write it as in",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""hop.ber" = [0, "many"]"#,
        34,
        "hop.0.ber",
        "write `none`, `1e-5`",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""sweep.hop.ber" = [0, 1]"#,
        34,
        "sweep.sweep.hop.ber",
        "cannot vary the sweep itself",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        "\"hop.ber\" = [0]\n\"hop.0.ber\" = [0]",
        34,
        "sweep.hop.ber",
        "what `hop.0.ber` varies already",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        "\"hop.ber\" = [0]\n\"hop.ber\" = [0]",
        35,
        "hop.ber",
        "write it once",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        "@HUGE@",
        33,
        "sweep",
        "take fewer values",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        "@RUNS@",
        4,
        "run.runs",
        "take fewer runs or split the sweep",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""run" = [1, 2]"#,
        34,
        "run",
        "must be a table",
    ),
    (
        r#"["nack-mack", 24]]"#,
        r#"["nack-mack"]]"#,
        35,
        "sweep.flow.0.mode, flow.0.fec_words",
        "one entry for each path",
    ),
    (
        r#"["nack-mack", 24]]"#,
        r#"["nack-mck", 24]]"#,
        35,
        "flow.0.mode",
        "did you mean `nack-mack`",
    ),
    (
        r#"["nack-mack", 24]]"#,
        r#"["nack-mack", 300]]"#,
        35,
        "flow.0.fec_words",
        "must be a whole number from 0 to 256",
    ),
    (
        "[sweep]",
        "[[sweep]]",
        33,
        "sweep",
        "must be one table, [sweep]",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "good 10s..5s bad 1s""#,
        13,
        "hop.0.loss",
        "the shorter length first",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "slacp mild""#,
        13,
        "hop.0.loss",
        "write low, medium, high",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "gilbert-elliott 1% 0 50% 3""#,
        13,
        "hop.0.loss",
        "at least 1 packet",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "trace nowhere.csv""#,
        13,
        "hop.0.loss",
        "nowhere.csv: No such file or directory (os error 2); write `trace FILE`",
    ),
    (
        r#"loss = "2% burst 4""#,
        r#"loss = "trace scenario.toml loop""#,
        13,
        "hop.0.loss",
        "scenario.toml:1: `columns`: ",
    ),
    (
        r#"ber = "1e-5""#,
        r#"fading = "faslt""#,
        14,
        "hop.0.fading",
        "`faslt` does not describe fading: write `fasolt`, `kiodo`",
    ),
    (
        r#"ber = "1e-5""#,
        r#"fading = "log-normal 0.1 time 2""#,
        14,
        "hop.0.fading",
        "no unit",
    ),
    (
        r#"ber = "1e-5""#,
        r#"fading = "trace scenario.toml""#,
        14,
        "hop.0.fading",
        "scenario.toml:1: `columns`: ",
    ),
    (
        r#"ber = "1e-5""#,
        r#"ber = "-1e-5""#,
        14,
        "hop.0.ber",
        "between 0 and 1",
    ),
    (
        r#"mode = "nack-mack""#,
        r#"mode = "fast""#,
        23,
        "flow.0.mode",
        "known are datagram",
    ),
    (
        "fec_words = 9",
        "fec_words = 300",
        24,
        "flow.0.fec_words",
        "from 0 to 256",
    ),
    (
        r#"title = "a base""#,
        "title = []",
        1,
        "title",
        "must be a single value",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""hop.ber" = [0, "1e-5", 0]"#,
        34,
        "sweep.hop.ber",
        "takes `0` twice; write each value once",
    ),
    (
        r#"["nack-mack", 24]]"#,
        r#"["reliable", 0]]"#,
        35,
        "sweep.flow.0.mode, flow.0.fec_words",
        "takes `reliable, 0` twice",
    ),
    (
        r#"queue = "100 packets""#,
        "queue = \"0 packets\"\nlink = \"ll-arq\"",
        12,
        "hop.0.queue",
        "lets no packet through to the link layer; write \"1 packets\" or more",
    ),
    (
        r#"queue = "100 packets""#,
        "ip_queue = \"1400B\"\nlink = \"ll-arq\"",
        12,
        "hop.0.ip_queue",
        "`1400B` lets no packet of 1500B, the flows' mtu",
    ),
    (
        r#"delay = "10ms""#,
        r#"delay = "-10ms""#,
        11,
        "hop.0.delay",
        "`-10ms` is negative; a time is 0s or longer, such as 10ms",
    ),
    (
        r#""hop.ber" = [0, "1e-5"]"#,
        r#""hop.ber" = {}"#,
        34,
        "sweep.hop.ber",
        "must be a list of the values",
    ),
];

/// So many rates.
fn rates(count: u32) -> String {
    let rates: Vec<String> = (0..count).map(|n| format!("{n}e-9")).collect();
    rates.join(", ")
}

/// More points than anyone wants.
fn huge() -> String {
    let rates = rates(1000);
    format!("\"hop.ber\" = [{rates}]\n\"hop.duplicate\" = [{rates}]")
}

/// Few points with too many runs, as a file says it.
fn runs() -> String {
    let rates = rates(2000);
    format!("\"run.runs\" = [10000]\n\"hop.ber\" = [{rates}]")
}

#[test]
fn each_mistake_is_one_line_with_file_line_field_and_remedy() {
    let place = Place::with(1);
    let file = place.path("scenario.toml");
    let command = format!("sim {}", file.display());
    fs::write(&file, BASE).expect("room");
    let right = run(&command);
    assert!(right.status.success(), "{}", said(&right));
    let mut wrong = Vec::new();
    for (original, mistake, line, field, remedy) in MUTATIONS {
        assert!(BASE.contains(original), "{original} is in the base");
        let written = mistake
            .replace("@HUGE@", &huge())
            .replace("@RUNS@", &runs());
        fs::write(&file, BASE.replacen(original, &written, 1)).expect("room");
        let output = run(&command);
        let told = said(&output);
        let expected = format!("fulmar: {}:{line}: `{field}`: ", file.display());
        let right = output.status.code() == Some(2)
            && output.stdout.is_empty()
            && told.lines().count() == 1
            && told.starts_with(&expected)
            && told.contains(remedy);
        if !right {
            let code = output.status.code();
            wrong.push(format!(
                "{original} -> {mistake}: wanted code 2, {expected} and {remedy}; got {code:?} {told}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_value_of_the_command_line_that_the_sweep_replaces_is_refused_and_told_how_to_be_had() {
    let place = Place::with(1);
    let file = place.path("scenario.toml");
    fs::write(&file, BASE).expect("room");
    let shown = file.display();
    for (flags, field, remedy) in [
        (
            "--set hop.ber=1e-4",
            "hop.0.ber",
            "--set 'sweep.hop.ber=[...]'",
        ),
        (
            "--set hop.0.ber=1e-4",
            "hop.0.ber",
            "scenario.toml:34) gives `hop.ber` at every point",
        ),
        (
            "--set flow.0.fec_words=4",
            "flow.0.fec_words",
            "--set 'sweep.flow.0.mode, flow.0.fec_words=[...]'",
        ),
        (
            "--set sweep.run.seed=[1,2] --seed 7",
            "run.seed",
            "is never used",
        ),
    ] {
        let output = run(&format!("sim {shown} {flags}"));
        let told = said(&output);
        assert_eq!(output.status.code(), Some(2), "{flags}: {told}");
        let expected = format!(": `{field}`: is never used");
        assert!(told.contains(&expected) && told.contains(remedy), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
    // What it is told to write, and values beside the swept ones.
    for flags in [
        "--set sweep.hop.ber=[1e-4]",
        "--set hop.reverse.ber=1e-4",
        "--seed 7",
    ] {
        let output = run(&format!("sim {shown} {flags}"));
        assert!(output.status.success(), "{flags}: {}", said(&output));
    }
}

#[test]
fn a_queue_that_holds_a_packet_is_enough_below_a_link_layer_and_none_without_one() {
    let place = Place::with(1);
    let file = place.path("scenario.toml");
    let queue = r#"queue = "100 packets""#;
    for line in [
        "queue = \"1 packets\"\nlink = \"ll-arq\"",
        "queue = \"1500B\"\nlink = \"plain\"",
        "queue = \"0 packets\"\nip_queue = \"1 packets\"\nlink = \"plain\"",
        "queue = \"0 packets\"",
    ] {
        fs::write(&file, BASE.replacen(queue, line, 1)).expect("room");
        let output = run(&format!("sim {} --json", file.display()));
        assert!(output.status.success(), "{line}: {}", said(&output));
        let records = String::from_utf8(output.stdout).expect("text");
        let delivered = |record: &str| {
            let record: serde_json::Value = serde_json::from_str(record).expect("a record");
            record["delivered_bytes"]
                .as_u64()
                .is_none_or(|octets| octets > 0)
        };
        assert!(records.lines().all(delivered), "{line}");
    }
}

#[test]
fn a_table_has_the_swept_values_of_lists_of_tables() {
    let place = Place::with(1);
    let file = place.path("scenario.toml");
    fs::write(&file, BASE).expect("room");
    let output = run(&format!("sim {} --csv -", file.display()));
    let rows = String::from_utf8(output.stdout).expect("text");
    let mut rows = rows.lines();
    let header: Vec<&str> = rows.next().expect("a header").split(',').collect();
    let column = |name: &str| header.iter().position(|known| *known == name).expect("it");
    let (ber, mode) = (column("hop.ber"), column("flow.0.mode"));
    let mut found = Vec::new();
    for row in rows.filter(|row| row.starts_with("aggregate,")) {
        let cells: Vec<&str> = row.split(',').collect();
        found.push((cells[ber], cells[mode]));
    }
    let expected = [
        ("0", "reliable"),
        ("1e-5", "reliable"),
        ("0", "nack-mack"),
        ("1e-5", "nack-mack"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_sweep_of_nothing_is_refused() {
    let place = Place::with(1);
    let file = place.path("scenario.toml");
    let (before, _) = BASE.split_once("[sweep]").expect("it has one");
    fs::write(&file, format!("{before}[sweep]\n")).expect("room");
    let output = run(&format!("sim {}", file.display()));
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("scenario.toml:33: `sweep`: varies nothing; name"),
        "{}",
        said(&output)
    );
}

#[test]
fn files_that_are_no_scenarios_are_refused_in_one_line() {
    let place = Place::with(1);
    let file = place.path("scenario.toml");
    let nested = format!("a = {}", "[".repeat(100_000));
    let dotted = format!("[run]\nseed{} = 1", ".a".repeat(100_000));
    for (octets, expected) in [
        (&b""[..], "toml:1: `hop`: there must be 1 to"),
        (b"seed = 1\n\xff\n", "toml:2: is not UTF-8"),
        (nested.as_bytes(), "toml:1: `a`: "),
        (dotted.as_bytes(), "recursion limit"),
        (b"\0\0\0", "toml:1: "),
    ] {
        fs::write(&file, octets).expect("room");
        let output = run(&format!("sim {}", file.display()));
        let told = said(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(
            told.contains(expected) && told.lines().count() == 1,
            "{told}"
        );
    }
    for (path, expected) in [
        ("/dev/zero", "is longer than"),
        ("/", "cannot read the scenario /"),
        ("/no/such/file.toml", "No such file"),
    ] {
        let output = run(&format!("sim {path}"));
        let told = said(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(
            told.contains(expected) && told.lines().count() == 1,
            "{told}"
        );
    }
}
