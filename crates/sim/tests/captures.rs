//! A capture shows every packet and its fate, and capturing changes nothing.
//!
//! Method: run a scenario with loss, damage, duplicates and full queues under observation, read the
//! capture back with another reader than ours, and compare with what the run counted.

use crate::fixture::experiment;
use crate::reader::{Contents, read};
use fulmar_proto::wire::network::NetworkHeader;
use fulmar_sim::experiment::{ExperimentProgress, PointResult};
use fulmar_sim::measure::wire::WireLoss;
use fulmar_sim::scenario::PointPlan;
use fulmar_sim::world::{World, WorldOptions};
use fulmar_sim::{Observed, Observers, Output};
use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

const HOSTILE: &str = r#"
[run]
duration = "20s"
[lan]
rate = "1gbit"
[[hop]]
rate = "5mbit"
delay = "5ms"
loss = "5%"
ber = "2e-5"
queue = "8 packets"
outages = "300ms+200ms"
duplicate = "2%"
[[hop]]
rate = "4mbit"
delay = "5ms"
ber = "1e-5"
frame_check = true
queue = "8 packets"
[[flow]]
transport = "aerotp"
mode = "near-reliable"
fec_words = 4
bytes = "300kB"
[[flow]]
transport = "udp"
traffic = "constant-rate"
bytes = "600kB"
write = "1000B"
rate = "5mbit"
direction = "reverse"
"#;

const LAYERED: &str = r#"
[run]
duration = "20s"
[[hop]]
rate = "5mbit"
delay = "5ms"
ber = "1e-5"
queue = "6 packets"
[hop.link]
layer = "selective-repeat"
[[flow]]
transport = "tcp"
bytes = "300kB"
"#;

/// The written octets, for the test to look at.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("one thread").write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn output(&self) -> Output {
        Box::new(self.clone())
    }

    fn take(&self) -> Vec<u8> {
        core::mem::take(&mut self.0.lock().expect("one thread"))
    }
}

struct Seen {
    result: PointResult,
    capture: Vec<u8>,
    events: String,
    observed: Observed,
}

fn observe(text: &str) -> Seen {
    let experiment = experiment(text, &["run.runs=1"]);
    let (capture, events) = (Kept::default(), Kept::default());
    let observers = Observers::new(Some(capture.output()), Some(events.output()));
    let (result, observed) = experiment.run_observed(observers, &ExperimentProgress::default());
    Seen {
        result: result.expect("nobody cancels"),
        capture: capture.take(),
        events: String::from_utf8(events.take()).expect("JSON"),
        observed: observed.expect("memory takes everything"),
    }
}

/// Runs `text` under observation, and hands out the world for its counters.
fn world(text: &str) -> (World, Contents) {
    let experiment = experiment(text, &["run.runs=1"]);
    let plan: &PointPlan = &experiment.points[0].plan;
    let capture = Kept::default();
    let observers = Observers::new(Some(capture.output()), None);
    let mut world = World::observed_by(plan, 1, &WorldOptions::default(), observers)
        .expect("reading a plan checks it");
    let end = world.run(&AtomicBool::new(false));
    world.finish_observers(end).expect("memory");
    let octets = capture.take();
    (world, read(&octets))
}

#[test]
fn of_each_reason_the_capture_has_as_many_packets_as_the_run_counted() {
    for (text, wanted) in [
        (
            HOSTILE,
            &[
                WireLoss::Loss,
                WireLoss::Outage,
                WireLoss::Queue,
                WireLoss::FrameCheck,
                WireLoss::NetworkHeader,
            ][..],
        ),
        (LAYERED, &[WireLoss::Queue][..]),
    ] {
        let (world, capture) = world(text);
        let wire = world.wire();
        for cause in WireLoss::ALL {
            let counted = wire.lost.of(cause);
            assert_eq!(
                capture.count(&format!("dropped: {}", cause.name())),
                counted,
                "{cause:?}"
            );
            assert!(counted > 0 || !wanted.contains(&cause), "{cause:?}");
        }
        assert_eq!(capture.count("duplicated"), wire.duplicated);
        // The count is noted where a packet is sent, for copies too, and where it arrives: the packets in
        // flight at the end are the difference.
        let outbound = capture.packets.iter().filter(|packet| packet.is_outbound);
        let damaged = outbound
            .flat_map(|packet| packet.comment.split("; "))
            .filter(|remark| remark.starts_with("damaged"));
        assert_eq!(damaged.count() as u64, wire.damaged);
        assert!(wire.damaged > 0);
        assert_eq!(world.packets_in_flight(), 0, "the run has ended by itself");
        let frames = |is_outbound: bool| {
            let packets = capture.packets.iter();
            let on_wire = packets.filter(|packet| {
                let name = &capture.interfaces[packet.interface];
                packet.is_outbound == is_outbound && !name.ends_with("/packets")
            });
            on_wire.count() as u64
        };
        assert_eq!(frames(true), wire.packet_hops);
        let wire_causes = [WireLoss::Loss, WireLoss::Outage, WireLoss::FrameCheck];
        let lost: u64 = wire_causes.map(|cause| wire.lost.of(cause)).iter().sum();
        let above = capture
            .interfaces
            .iter()
            .any(|name| name.ends_with("/packets"));
        let refused = if above { 0 } else { wire.lost.queue };
        assert_eq!(
            frames(false),
            wire.packet_hops + wire.duplicated - lost - refused
        );
    }
}

#[test]
fn damage_is_in_the_octets_of_the_end_where_it_arrives() {
    let (_, capture) = world(HOSTILE);
    let sent: Vec<_> = capture.of("hop-0/source-end", true).collect();
    let mut compared = 0;
    for arrived in capture.of("hop-0/sink-end", false) {
        let damaged = arrived.comment.split_once("damaged: ");
        let bits = damaged.and_then(|(_, rest)| rest.split(' ').next());
        let bits = bits.unwrap_or("0");
        let bits: u32 = bits.parse().expect("a number");
        // In order but for copies: the one that differs least is the same packet.
        let differing = sent
            .iter()
            .filter(|sent| {
                sent.nanos <= arrived.nanos && sent.octets().len() == arrived.octets().len()
            })
            .map(|sent| {
                let pairs = sent.octets().iter().zip(arrived.octets());
                pairs.map(|(a, b)| (a ^ b).count_ones()).sum::<u32>()
            })
            .min();
        assert_eq!(differing, Some(bits));
        compared += u32::from(bits > 0);
    }
    assert!(compared > 0);
}

#[test]
fn looking_changes_nothing_and_the_same_run_gives_the_same_octets() {
    for text in [HOSTILE, LAYERED] {
        let unobserved = crate::fixture::run(text, &["run.runs=1"]);
        let (first, second) = (observe(text), observe(text));
        let json = |result: &PointResult| serde_json::to_string(&result.runs).expect("plain");
        assert_eq!(json(&first.result), json(&unobserved[0]));
        assert!(first.capture == second.capture && first.events == second.events);
        assert_eq!(
            first.observed.packets,
            read(&first.capture).packets.len() as u64
        );
        assert_eq!(first.observed.lines, first.events.lines().count() as u64);
    }
}

#[test]
fn interfaces_are_the_ends_of_hops_and_times_never_go_back() {
    let capture = read(&observe(HOSTILE).capture);
    let ends = ["lan-source", "hop-0", "hop-1", "lan-sink"];
    let ends = ends
        .iter()
        .flat_map(|hop| [format!("{hop}/source-end"), format!("{hop}/sink-end")]);
    assert!(ends.eq(capture.interfaces.iter().cloned()));
    assert!(capture.packets.is_sorted_by_key(|packet| packet.nanos));
    let said = &capture.section[0].1;
    assert_eq!(said, "scenario test.toml, point 0, seed 1");
    for packet in &capture.packets {
        assert_eq!(packet.dissector(), "ip");
    }
    for packet in capture.of("lan-source/source-end", true) {
        let parsed = NetworkHeader::parse(packet.octets()).expect("nothing is damaged yet");
        assert_eq!(parsed.header.source.0, 0x0A00_0001);
    }
}

#[test]
fn frames_and_the_packets_in_them_have_interfaces_of_their_own() {
    let capture = read(&observe(LAYERED).capture);
    for end in ["source-end", "sink-end"] {
        for packet in capture.of(&format!("hop-0/{end}"), true) {
            assert_eq!(packet.dissector(), "fulmar.link");
        }
        for packet in capture.of(&format!("hop-0/{end}/packets"), false) {
            assert_eq!(packet.dissector(), "ip");
            NetworkHeader::parse(packet.octets()).expect("the layer hands up what is whole");
        }
    }
    let offered: Vec<_> = capture.of("hop-0/source-end/packets", true).collect();
    let refused = offered.iter().filter(|packet| !packet.comment.is_empty());
    let handed_up = capture.of("hop-0/sink-end/packets", false).count();
    assert_eq!(offered.len() - refused.count(), handed_up, "it repairs all");
}

#[test]
fn events_are_those_of_the_machines_and_each_kind_that_can_happen_does() {
    let lossy = observe(HOSTILE);
    let parity = observe(
        &HOSTILE
            .replace("near-reliable", "quasi-reliable")
            .replace("fec_words = 4", "fec_words = 4\nfec_block = \"10+2\""),
    );
    let adapting = observe(
        "[[hop]]\nrate = \"5mbit\"\ndelay = \"5ms\"\nber = \"1e-4\"\noutages = \"300ms+2s\"\n\
         [flow]\ntransport = \"aerotp\"\nmode = \"reliable\"\nadapt = \"10ms\"\nbytes = \"500kB\"\n",
    );
    let text = [lossy.events, parity.events, adapting.events].concat();
    let mut kinds = std::collections::BTreeSet::new();
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("an object");
        assert_eq!(line["v"], 1);
        kinds.insert(line["event"].as_str().expect("a name").to_owned());
    }
    // Not `missed`: it would take 65,536 events at one instant.
    let all = [
        "accepted",
        "adapted",
        "damaged",
        "end",
        "given_up",
        "held_lost",
        "rebuilt",
        "repair_sent",
        "resumed",
        "run",
        "sent",
        "stalled",
        "state",
    ];
    assert!(kinds.iter().map(String::as_str).eq(all), "{kinds:?}");
}

#[test]
fn flows_of_gateways_tell_whose_their_events_are() {
    let text = "[[hop]]\nrate = \"5mbit\"\ndelay = \"5ms\"\nloss = \"5%\"\n\
                [[flow]]\ntransport = \"gateway\"\nbytes = \"100kB\"\n\
                [[flow]]\ntransport = \"gateway\"\nbytes = \"50kB\"\n";
    let events = observe(text).events;
    let lines = events
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("an object"));
    let mut bytes = std::collections::BTreeMap::new();
    for line in lines.filter(|line| line["event"] == "sent" && line["again"] == false) {
        assert!(line["connection"].is_u64(), "{line}");
        let key = (
            line["flow"].as_u64(),
            line["end"].as_str().map(str::to_owned),
        );
        *bytes.entry(key).or_insert(0) += line["payload_bytes"].as_u64().expect("a number");
    }
    let by = |flow, end: &str| bytes[&(Some(flow), Some(end.to_owned()))];
    // Records of the splice beside the octets.
    assert!((100_000..105_000).contains(&by(0, "sender")), "{bytes:?}");
    assert!((50_000..53_000).contains(&by(1, "sender")), "{bytes:?}");
    assert!(by(0, "receiver") < 1_000, "{bytes:?}");
}

#[test]
fn an_output_that_takes_no_more_is_told_at_the_end_and_the_run_goes_on() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.0 = self
                .0
                .checked_sub(octets.len())
                .ok_or(io::ErrorKind::StorageFull)?;
            Ok(octets.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let experiment = experiment(HOSTILE, &["run.runs=1"]);
    for room in [0, 10_000] {
        let observers = Observers::new(Some(Box::new(Full(room))), None);
        let (result, observed) = experiment.run_observed(observers, &ExperimentProgress::default());
        assert!(result.is_some());
        assert_eq!(observed.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
