//! Every line as it is written, and as the guide describes it.

use super::*;
use fulmar_proto::trace::RepairDecision;
use fulmar_proto::wire::TpduSeq;
use serde_json::Value;
use std::collections::BTreeSet;

const SEQ: TpduSeq = TpduSeq(7);
const PAGE: &str = include_str!("../../../../docs/guide/captures.md");

/// One record of each kind; a new variant of `TraceRecord` does not compile in `From` until it has a
/// name.
const RECORDS: [TraceRecord; 12] = [
    TraceRecord::Sent {
        seq: SEQ,
        position: 1_000,
        len: 500,
        again: true,
    },
    TraceRecord::RepairSent {
        first: SEQ,
        index: 2,
    },
    TraceRecord::HeldLost {
        seq: SEQ,
        sign: LossSign::Overtaken,
    },
    TraceRecord::Accepted {
        seq: SEQ,
        corrected_symbols: 3,
    },
    TraceRecord::Adapted {
        payload: 400,
        words: 5,
        rate_octaves: 13,
    },
    TraceRecord::RepairPlanned(RepairDecision {
        loss: 300_000,
        loss_error: 28_000,
        behind_a_loss: 310_000,
        may_miss: 10_000,
        deadline: Duration::from_millis(90),
        will_miss: 8_000,
        packets: 2_010_000,
        missed: 3,
        messages: 120,
        ahead_eighths: 6,
        times: [1, 2, 2],
        put_off: Duration::from_millis(40),
    }),
    TraceRecord::Rebuilt { seq: SEQ },
    TraceRecord::Damaged { seq: SEQ },
    TraceRecord::GivenUp { seq: SEQ },
    TraceRecord::Stalled,
    TraceRecord::Resumed,
    TraceRecord::State { to: "ESTABLISHED" },
];

fn text(octets: Vec<u8>) -> Vec<String> {
    let text = String::from_utf8(octets).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn at() -> Instant {
    Instant::START + Duration::from_millis(1_500)
}

fn lines() -> Vec<String> {
    let mut octets = Vec::new();
    let about = About {
        scenario: "my.toml",
        point: 0,
        seed: 3,
    };
    let mut lines = EventLines::new(&mut octets, &about).unwrap();
    let place = EventPlace {
        node: Some("10.0.0.1"),
        flow: Some(0),
        end: Some(FlowEnd::Sender),
        ..EventPlace::default()
    };
    for record in RECORDS {
        lines.record(at(), place, record).unwrap();
    }
    lines.missed(at(), place, 4).unwrap();
    lines.end(at(), "completed").unwrap();
    assert_eq!(lines.lines(), 15);
    assert_eq!(lines.octets(), octets.len() as u64);
    text(octets)
}

fn gateway_lines() -> Vec<String> {
    let mut octets = Vec::new();
    let started = Started {
        role: "gateway",
        name: "air",
        origin: Duration::from_millis(1_795_000_000_250),
    };
    let mut lines = EventLines::started(&mut octets, &started).unwrap();
    let place = EventPlace {
        peer: Some("ground"),
        class: Some("bulk"),
        flow: Some(2),
        connection: Some(5),
        ..EventPlace::default()
    };
    lines.record(at(), place, RECORDS[0]).unwrap();
    for event in crate::gateway_events::EACH {
        lines.gateway(at(), place, &event).unwrap();
    }
    text(octets)
}

#[test]
fn golden_lines() {
    let lines = lines();
    let version = env!("CARGO_PKG_VERSION");
    let run = format!(
        r#"{{"v":1,"event":"run","version":"{version}","scenario":"my.toml","point":0,"seed":3}}"#
    );
    assert_eq!(lines[0], run);
    assert_eq!(
        lines[1],
        r#"{"v":1,"time_s":1.5,"node":"10.0.0.1","flow":0,"end":"sender","event":"sent","seq":7,"position_bytes":1000,"payload_bytes":500,"again":true}"#
    );
    assert_eq!(
        lines[14],
        r#"{"v":1,"time_s":1.5,"event":"end","how":"completed"}"#
    );
    let lines = gateway_lines();
    let started = format!(
        r#"{{"v":1,"event":"started","version":"{version}","role":"gateway","name":"air","start_unix_s":1795000000.25,"time_base":"monotonic"}}"#
    );
    assert_eq!(lines[0], started);
    assert_eq!(
        lines[1],
        r#"{"v":1,"time_s":1.5,"peer":"ground","class":"bulk","flow":2,"connection":5,"event":"sent","seq":7,"position_bytes":1000,"payload_bytes":500,"again":true}"#
    );
}

#[test]
fn the_guide_lists_every_event_with_its_fields_and_no_other() {
    let table = PAGE.split("<!-- events -->").nth(1).expect("the table");
    let quoted = |cell: &str| -> Vec<String> {
        let names = cell.split('`').skip(1).step_by(2);
        names.map(str::to_owned).collect()
    };
    // A row may tell of several events with the same fields.
    let told: BTreeSet<(String, Vec<String>)> = table
        .lines()
        .filter(|row| row.starts_with("| `"))
        .flat_map(|row| {
            let mut cells = row.trim_start_matches('|').split('|');
            let events = quoted(cells.next().unwrap());
            let fields = quoted(cells.next().unwrap());
            events.into_iter().map(move |event| (event, fields.clone()))
        })
        .collect();
    let common = [
        "v",
        "time_s",
        "node",
        "peer",
        "class",
        "flow",
        "connection",
        "end",
        "event",
    ];
    let written = lines()
        .iter()
        .chain(&gateway_lines())
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            let fields = line.as_object().unwrap().keys();
            let own = fields.filter(|key| !common.contains(&key.as_str()));
            let mut own: Vec<String> = own.cloned().collect();
            own.sort();
            (line["event"].as_str().unwrap().to_owned(), own)
        })
        .collect();
    let told: BTreeSet<_> = told
        .into_iter()
        .map(|(event, mut fields)| {
            fields.sort();
            (event, fields)
        })
        .collect();
    assert_eq!(told, written);
}
