//! The packets of a flow are noted with purpose, numbers and fate, and noting them changes nothing.
//!
//! Method: hops that lose and damage, flows of several transports beside each other, and the run's own counters beside the notes.

use crate::fixture::experiment;
use fulmar_sim::experiment::ExperimentProgress;
use fulmar_sim::flow_packets::{FlowPacket, PacketFate, PacketPurpose};
use fulmar_sim::measure::wire::WireLoss;
use fulmar_sim::{FlowPackets, FlowWindow, Observers};
use std::collections::BTreeMap;
use std::time::Duration;

const TWO_HOPS: &str = r#"
[run]
duration = "60s"
[lan]
rate = "1gbit"
[[hop]]
rate = "5mbit"
delay = "5ms"
loss = "5%"
ber = "2e-5"
queue = "8 packets"
[[hop]]
rate = "4mbit"
delay = "5ms"
ber = "1e-5"
frame_check = true
[[flow]]
transport = "aerotp"
mode = "nack-mack"
traffic = "bulk"
bytes = "60kB"
[[flow]]
transport = "udp"
traffic = "constant-rate"
bytes = "30kB"
write = "1000B"
rate = "1mbit"
direction = "reverse"
[[flow]]
transport = "tcp"
traffic = "bulk"
bytes = "30kB"
"#;

const ALL: FlowWindow = FlowWindow {
    flow: 0,
    start: Duration::ZERO,
    span: None,
    packets_max: usize::MAX,
};

fn noted(text: &str, sets: &[&str], window: FlowWindow) -> FlowPackets {
    let experiment = experiment(text, &[&["run.runs=1"], sets].concat());
    let observers = Observers::default().with_flow(Some(window));
    let (_, observed) = experiment.run_observed(observers, &ExperimentProgress::default());
    observed.expect("no file").flow.expect("it was asked for")
}

fn fates(packets: &[FlowPacket]) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for packet in packets {
        let name = match packet.fate {
            PacketFate::Arrives {
                inverted_bits: 0, ..
            } => "whole",
            PacketFate::Arrives { .. } => "damaged",
            PacketFate::Lost(cause) => cause.name(),
        };
        *counts.entry(name).or_default() += 1;
    }
    counts
}

#[test]
fn each_packet_on_a_hop_belongs_to_one_flow_with_the_fate_that_the_run_counted() {
    let mut packets = Vec::new();
    for flow in 0..3 {
        packets.extend(noted(TWO_HOPS, &[], FlowWindow { flow, ..ALL }).packets);
    }
    let experiment = experiment(TWO_HOPS, &["run.runs=1"]);
    let (run, recording) = experiment
        .run_recorded(&ExperimentProgress::default())
        .expect("nobody cancels");
    assert_eq!(packets.len(), recording.packets.len());
    let fates = fates(&packets);
    let lost = run.metrics.wire_loss;
    for (cause, count) in [
        (WireLoss::Loss, lost.loss),
        (WireLoss::Queue, lost.queue),
        (WireLoss::FrameCheck, lost.frame_check),
    ] {
        assert_eq!(
            fates.get(cause.name()).copied().unwrap_or_default(),
            count,
            "{cause:?}"
        );
    }
    assert!(fates["damaged"] > 5, "{fates:?}");
}

#[test]
fn a_run_is_the_same_whether_its_packets_are_noted_or_not() {
    let experiment = experiment(TWO_HOPS, &["run.runs=1"]);
    let progress = ExperimentProgress::default();
    let (seen, _) = experiment.run_observed(Observers::default().with_flow(Some(ALL)), &progress);
    let (unseen, _) = experiment.run_observed(Observers::default(), &progress);
    let runs = [seen, unseen].map(|result| format!("{:?}", result.expect("it ran").runs));
    assert_eq!(runs[0], runs[1]);
}

#[test]
fn what_is_asked_for_goes_again_under_its_number() {
    let first_hop = |packet: &&FlowPacket| packet.step.hop == 0;
    let packets = noted(TWO_HOPS, &[], ALL).packets;
    let texts = |purpose: PacketPurpose| {
        let of = packets.iter().filter(first_hop);
        let of = of.filter(move |packet| packet.purpose == purpose);
        of.map(|packet| packet.text.clone())
            .collect::<Vec<String>>()
    };
    let data = texts(PacketPurpose::Data);
    let expected = (1..=data.len()).map(|number| format!("data {number}"));
    let numbers: Vec<String> = data
        .iter()
        .map(|text| text.replace("ASYN + ", ""))
        .collect();
    assert_eq!(numbers, expected.collect::<Vec<_>>());
    let asked = texts(PacketPurpose::Request);
    let wanted: Vec<&str> = asked
        .iter()
        .flat_map(|text| text.split(' ').skip(1))
        .filter(|word| word.parse::<u32>().is_ok())
        .collect();
    assert!(!wanted.is_empty(), "{asked:?}");
    let again = texts(PacketPurpose::Repetition);
    for number in wanted {
        assert!(
            again.contains(&format!("again {number}")),
            "{number} {again:?}"
        );
    }
    let answers = texts(PacketPurpose::Acknowledgement);
    assert!(answers.contains(&"ASYNACK".to_owned()), "{answers:?}");
}

#[test]
fn tcp_has_its_octets_and_what_cannot_be_read_its_purpose() {
    let packets = noted(TWO_HOPS, &[], FlowWindow { flow: 2, ..ALL }).packets;
    assert_eq!(packets[0].text, "SYN");
    let mut data = packets.iter();
    let data = data.find(|packet| packet.purpose == PacketPurpose::Data);
    let last = data.and_then(|packet| packet.number).expect("data came");
    let has = |wanted: &str| packets.iter().any(|packet| packet.text == wanted);
    assert!(has(&format!("data 1 to {last}")), "{last}");
    let heard = packets.iter().filter(|packet| {
        packet.purpose == PacketPurpose::Acknowledgement && packet.number >= Some(last)
    });
    let heard: Vec<&FlowPacket> = heard.collect();
    assert!(heard.len() > 5, "{heard:?}");
    for answer in heard {
        let number = answer.number.expect("at least the last");
        assert_eq!(answer.text, format!("ACK to {number}"));
    }
    let sealed = noted(TWO_HOPS, &["flow.0.sealed=true"], ALL).packets;
    let purposes = sealed.iter().map(|packet| packet.purpose);
    let purposes: std::collections::BTreeSet<PacketPurpose> = purposes.collect();
    for purpose in [PacketPurpose::Data, PacketPurpose::Acknowledgement] {
        assert!(purposes.contains(&purpose), "{purposes:?}");
    }
    let framed = ["hop.0.link=selective-repeat", "hop.0.loss=10%"];
    let framed = noted(TWO_HOPS, &framed, ALL).packets;
    assert!(framed.iter().any(|packet| packet.step.hop == 0
        && packet.purpose == PacketPurpose::Repetition
        && packet.text == "again"));
}

#[test]
fn a_window_keeps_its_packets_and_counts_what_has_no_room() {
    let all = noted(TWO_HOPS, &[], ALL).packets;
    let window = FlowWindow {
        start: Duration::from_millis(20),
        span: Some(Duration::from_millis(40)),
        packets_max: 5,
        ..ALL
    };
    let part = noted(TWO_HOPS, &[], window);
    let in_window = all.iter().filter(|packet| {
        let at = Duration::from_nanos(packet.sent_at.as_nanos());
        (window.start..window.start + Duration::from_millis(40)).contains(&at)
    });
    let in_window: Vec<FlowPacket> = in_window.cloned().collect();
    assert!(in_window.len() > 5);
    assert_eq!(part.packets, in_window[..5]);
    assert_eq!(part.left_out, in_window.len() as u64 - 5);
}
