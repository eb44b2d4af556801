//! The slides' two traces: single transfers packet by packet, as time and sequence.

use super::tables::SCENARIO;
use crate::data::Data;
use crate::exhibit::{Cells, Exhibit};
use crate::graph::{Graph, GraphCurve};
use crate::parameter::{Axis, AxisUnit};
use fulmar_sim::experiment::{Experiment, ExperimentProgress};
use fulmar_sim::flow_packets::{FlowPacket, PacketFate, PacketPurpose};
use fulmar_sim::{Document, FlowWindow, Observers, WorldOptions, points};
use std::sync::OnceLock;
use std::time::Duration;

const TIME: Axis = Axis::linear("time", AxisUnit::S);
const OCTETS: Axis = Axis::linear("stream", AxisUnit::KB);

pub(super) const OVERSHOOT: Exhibit = Exhibit {
    id: "trace-overshoot",
    title: "Trace of the enhanced TCP: the overshoot of slow start",
    intro: "One transfer of 1 MB over VBDC without a link layer and without errors: octets of the stream as the terminal is handed them, the acknowledgements that the sender gets, and what a full buffer refuses. \
        The slide's own trace is lost.",
    cells: Cells::Curves(Graph {
        x: TIME,
        y: OCTETS,
        families: &[],
        traces: |_: &Data| {
            static DRAWN: OnceLock<Vec<GraphCurve>> = OnceLock::new();
            let sets = ["hop.forward.dama=vbdc"];
            DRAWN
                .get_or_init(|| trace(&sets, Duration::from_secs(30)))
                .clone()
        },
    }),
};

pub(super) const RECOVERY: Exhibit = Exhibit {
    id: "trace-rbdc",
    title: "RBDC's interaction with TCP's error recovery",
    intro: "One transfer of 1 MB by the enhanced TCP over RBDC without a link layer, at the error model high. While TCP waits for its timer the rate that was assigned expires, and recovery begins with asking for capacity again. \
        The slide's own trace is lost.",
    cells: Cells::Curves(Graph {
        x: TIME,
        y: OCTETS,
        families: &[],
        traces: |_: &Data| {
            static DRAWN: OnceLock<Vec<GraphCurve>> = OnceLock::new();
            let sets = ["hop.forward.dama=rbdc", "hop.forward.loss=slacp high"];
            DRAWN
                .get_or_init(|| trace(&sets, Duration::from_secs(60)))
                .clone()
        },
    }),
};

/// The packets of the first run, as curves.
fn trace(sets: &[&str], span: Duration) -> Vec<GraphCurve> {
    let (name, text) = SCENARIO;
    let mut document = Document::parse(name, text).expect("a scenario of ours");
    for set in sets.iter().chain(&["run.runs=1"]) {
        document.set(set).expect("a setting of ours");
    }
    let experiment = Experiment {
        scenario: name.to_owned(),
        points: points(&document).expect("a scenario of ours"),
        options: WorldOptions::default(),
    };
    let window = FlowWindow {
        flow: 0,
        start: Duration::ZERO,
        span: Some(span),
        packets_max: 100_000,
    };
    let observers = Observers::default().with_flow(Some(window));
    let (_, observed) = experiment.run_observed(observers, &ExperimentProgress::default());
    let noted = observed.ok().and_then(|observed| observed.flow);
    let packets = noted.unwrap_or_default().packets;
    let is_lost = |packet: &FlowPacket| matches!(packet.fate, PacketFate::Lost(_));
    let curve = |label, colour, joined, wanted: &dyn Fn(&FlowPacket) -> bool| {
        let wanted = packets.iter().filter(|packet| wanted(packet));
        let points = wanted.filter_map(|packet| {
            let at = match packet.fate {
                // An answer counts when its sender has it.
                PacketFate::Arrives { at, .. } if !packet.onward => at,
                _ => packet.sent_at,
            };
            Some((at.as_secs_f64(), packet.number? as f64 / 1e3))
        });
        GraphCurve {
            label,
            colour: Some(colour),
            points: points.collect(),
            joined,
        }
    };
    let is = |purpose: PacketPurpose| move |packet: &FlowPacket| packet.purpose == purpose;
    vec![
        curve("sent", 2, false, &is(PacketPurpose::Data)),
        curve("sent again", 6, false, &is(PacketPurpose::Repetition)),
        curve("lost", 0, false, &|packet: &FlowPacket| {
            packet.onward && is_lost(packet)
        }),
        curve("acknowledged", 3, true, &|packet: &FlowPacket| {
            packet.purpose == PacketPurpose::Acknowledgement && !is_lost(packet)
        }),
    ]
}
