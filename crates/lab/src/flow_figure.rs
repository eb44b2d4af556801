//! The packets of a flow as a figure: time goes down, the sender stands left, the receiver right, and each packet is an arrow.
//!
//! Packets that crowd are drawn apart, and silence is cut short, so heights are not to scale; each packet has its time beside it.
//! The picture follows the reader's light or dark ground.

use crate::drawing::escaped;
use core::fmt::Write as _;
use fulmar_proto::units::{Duration, Instant};
use fulmar_sim::experiment::Experiment;
use fulmar_sim::flow_packets::{FlowPacket, FlowPackets, PacketFate, PacketPurpose};
use fulmar_sim::measure::wire::WireLoss;
use fulmar_sim::scenario::{AppDirection, HopStep};
use fulmar_sim::{FlowWindow, PointPlan};

/// Packets of a figure, at most: a browser still draws them, and nobody reads more.
pub const ARROWS_MAX: usize = 2_000;

/// The room for the texts beside the ends, and the distance of two nodes.
const SIDE: f64 = 230.0;
const COLUMN: f64 = 300.0;
/// The room above the first packet.
const HEAD: f64 = 96.0;
/// The heights of a packet with a text, of one without, and of an arrival, at least.
const TEXT_STEP: f64 = 14.0;
const STEP: f64 = 3.0;
/// The mean height of a packet with a text.
const PACKET_MEAN: f64 = 24.0;
/// The longest silence that is drawn in full; a longer one is cut.
const SILENCE: f64 = 60.0;
/// The height through which a lost packet is drawn.
const LOST_FALL: f64 = 18.0;

const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#1d1f23}.head{font-size:14px;text-anchor:middle}\
    .small{font-size:11px;fill:#565b64}.end{text-anchor:end}.middle{text-anchor:middle}\
    .node{stroke:#1d1f23;stroke-width:1.5}.silence{stroke:#8b9099;stroke-dasharray:2 4}\
    .packet{fill:none;stroke-width:1.6}.tip{stroke:none}\
    .data{stroke:#1f5fbf;fill:#1f5fbf}.again{stroke:#c2590a;fill:#c2590a;stroke-dasharray:9 3}\
    .parity{stroke:#2c7a3f;fill:#2c7a3f;stroke-dasharray:5 3}.ack{stroke:#6b4fa3;fill:#6b4fa3;stroke-dasharray:1.5 3}\
    .nack{stroke:#b3202c;fill:#b3202c;stroke-dasharray:7 2 1.5 2}.control{stroke:#565b64;fill:#565b64}\
    .lost{stroke:#b3202c;stroke-width:2.4}.damaged{fill:#e0a100;stroke:#1d1f23;stroke-width:.8}\
    @media(prefers-color-scheme:dark){text{fill:#e8e9ec}.small{fill:#a3a9b4}.node{stroke:#e8e9ec}\
    .data{stroke:#78aaf5;fill:#78aaf5}.again{stroke:#f0a05c;fill:#f0a05c}.parity{stroke:#72c487;fill:#72c487}\
    .ack{stroke:#b9a2ea;fill:#b9a2ea}.nack{stroke:#f08088;fill:#f08088}.control{stroke:#a3a9b4;fill:#a3a9b4}\
    .lost{stroke:#f08088}.damaged{stroke:#e8e9ec}}";

/// The class of a purpose in [`STYLE`].
const fn class(purpose: PacketPurpose) -> &'static str {
    match purpose {
        PacketPurpose::Data => "data",
        PacketPurpose::Repetition => "again",
        PacketPurpose::Parity => "parity",
        PacketPurpose::Acknowledgement => "ack",
        PacketPurpose::Request => "nack",
        PacketPurpose::Control => "control",
    }
}

/// The figure of the packets that were noted in the experiment's first run.
///
/// # Panics
/// The experiment has no point, or no such flow; then there was no run that noted anything.
pub fn draw(experiment: &Experiment, window: FlowWindow, noted: &FlowPackets) -> String {
    let plan = &experiment.points[0].plan;
    let title = format!(
        "{}, flow {}, seed {}",
        experiment.scenario, window.flow, plan.run.seed
    );
    let figure = Figure::new(plan, window.flow, noted);
    let (width, height) = (figure.width(), figure.heights.last + 40.0);
    let mut svg = String::new();
    // Writing to a String cannot fail.
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\"><style>{STYLE}</style><text x=\"20\" y=\"22\">{}</text>",
        escaped(&title)
    );
    legend(&mut svg, noted);
    figure.lifelines(&mut svg);
    for (packet, heights) in noted.packets.iter().zip(&figure.heights.ends) {
        figure.packet(&mut svg, packet, *heights);
    }
    if noted.left_out > 0 {
        let _ = write!(
            svg,
            "<text class=\"small\" x=\"20\" y=\"{:.0}\">and {} packets more</text>",
            height - 10.0,
            noted.left_out
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// The purposes and fates that occur, each with its mark.
fn legend(svg: &mut String, noted: &FlowPackets) {
    let has = |purpose| noted.packets.iter().any(|one| one.purpose == purpose);
    let mut x = 20.0;
    for purpose in PacketPurpose::ALL.into_iter().filter(|one| has(*one)) {
        let _ = write!(
            svg,
            "<path class=\"packet {}\" d=\"M{x:.0} 44h28\"/><text class=\"small\" x=\"{:.0}\" y=\"48\">{}</text>",
            class(purpose),
            x + 33.0,
            purpose.name()
        );
        x += 96.0;
    }
    let is_lost = |packet: &FlowPacket| matches!(packet.fate, PacketFate::Lost(_));
    if noted.packets.iter().any(is_lost) {
        cross(svg, (x + 8.0, 44.0));
        let _ = write!(
            svg,
            "<text class=\"small\" x=\"{:.0}\" y=\"48\">lost</text>",
            x + 22.0
        );
        x += 64.0;
    }
    if noted.packets.iter().any(|packet| damage(packet) > 0) {
        dot(svg, (x + 8.0, 44.0));
        let _ = write!(
            svg,
            "<text class=\"small\" x=\"{:.0}\" y=\"48\">damaged</text>",
            x + 20.0
        );
    }
}

/// Inverted bits of a packet that arrives.
const fn damage(packet: &FlowPacket) -> usize {
    match packet.fate {
        PacketFate::Arrives { inverted_bits, .. } => inverted_bits,
        PacketFate::Lost(_) => 0,
    }
}

fn cross(svg: &mut String, (x, y): (f64, f64)) {
    let _ = write!(
        svg,
        "<path class=\"lost\" d=\"M{:.1} {:.1}l9 9m0 -9l-9 9\"/>",
        x - 4.5,
        y - 4.5
    );
}

fn dot(svg: &mut String, (x, y): (f64, f64)) {
    let _ = write!(
        svg,
        "<circle class=\"damaged\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>"
    );
}

/// An event of a packet on a hop.
#[derive(Clone, Copy, Debug)]
struct FigureEvent {
    at: Instant,
    /// The packet, from 0.
    packet: usize,
    is_arrival: bool,
    /// The height that it needs, at least.
    needs: f64,
}

/// The heights of the packets' events.
#[derive(Debug, Default)]
struct Heights {
    /// The heights at which packets leave and, if they do, arrive.
    ends: Vec<[f64; 2]>,
    /// Silences that are cut: their heights, and their lengths.
    silences: Vec<([f64; 2], Duration)>,
    last: f64,
}

impl Heights {
    fn new(mut events: Vec<FigureEvent>, packets: usize) -> Self {
        events.sort_by_key(|event| event.at);
        let ends = events.first().zip(events.last());
        let span = ends.map_or(0.0, |(first, last)| {
            last.at.saturating_since(first.at).as_secs_f64()
        });
        let texts = events.iter().filter(|event| event.needs >= TEXT_STEP);
        let height = PACKET_MEAN * texts.count() as f64;
        let mut heights = Self {
            ends: vec![[0.0; 2]; packets],
            silences: Vec::new(),
            last: HEAD,
        };
        let mut before = events.first().map(|event| event.at).unwrap_or_default();
        for event in events {
            let passed = event.at.saturating_since(before);
            let natural = if span > 0.0 {
                height * passed.as_secs_f64() / span
            } else {
                0.0
            };
            let from = heights.last;
            heights.last += natural.min(SILENCE).max(event.needs);
            if natural > SILENCE {
                heights.silences.push(([from, heights.last], passed));
            }
            heights.ends[event.packet][usize::from(event.is_arrival)] = heights.last;
            before = event.at;
        }
        heights
    }
}

struct Figure<'a> {
    plan: &'a PointPlan,
    /// The nodes of the flow, from its sender to its receiver.
    nodes: Vec<usize>,
    /// The sender and the receiver.
    ends: [usize; 2],
    heights: Heights,
    /// Whether hops need names, because two join the same nodes.
    names_hops: bool,
}

impl<'a> Figure<'a> {
    fn new(plan: &'a PointPlan, flow: usize, noted: &FlowPackets) -> Self {
        let ends = &plan.flows[flow].ends;
        let mut nodes = vec![ends.nodes[0]];
        let mut joined = Vec::new();
        for step in ends.paths.iter().flat_map(|path| &path.steps) {
            let [from, to] = nodes_of(plan, *step);
            nodes.extend([from, to].into_iter().filter(|node| *node != ends.nodes[1]));
            joined.push([from.min(to), from.max(to), step.hop]);
        }
        nodes.push(ends.nodes[1]);
        let mut seen = Vec::new();
        nodes.retain(|node| {
            let is_new = !seen.contains(node);
            seen.push(*node);
            is_new
        });
        joined.sort_unstable();
        joined.dedup();
        let names_hops = joined.windows(2).any(|two| two[0][..2] == two[1][..2]);
        let mut figure = Self {
            plan,
            nodes,
            ends: ends.nodes,
            heights: Heights::default(),
            names_hops,
        };
        let mut events = Vec::new();
        for (index, packet) in noted.packets.iter().enumerate() {
            let event = |at, is_arrival, needs| FigureEvent {
                at,
                packet: index,
                is_arrival,
                needs,
            };
            let has_text = figure.leaves_an_end(packet);
            let needs = if has_text { TEXT_STEP } else { STEP };
            events.push(event(packet.sent_at, false, needs));
            if let PacketFate::Arrives { at, .. } = packet.fate {
                events.push(event(at, true, STEP));
            }
        }
        figure.heights = Heights::new(events, noted.packets.len());
        figure
    }

    fn width(&self) -> f64 {
        2.0 * SIDE + COLUMN * (self.nodes.len() - 1) as f64
    }

    fn x(&self, node: usize) -> f64 {
        let place = self.nodes.iter().position(|one| *one == node);
        SIDE + COLUMN * place.unwrap_or_default() as f64
    }

    /// Whether a packet begins its way here, at the flow's sender or receiver.
    fn leaves_an_end(&self, packet: &FlowPacket) -> bool {
        let [from, _] = nodes_of(self.plan, packet.step);
        from == self.ends[usize::from(!packet.onward)]
    }

    fn lifelines(&self, svg: &mut String) {
        let end = self.heights.last + 20.0;
        for node in &self.nodes {
            let x = self.x(*node);
            let name = escaped(&self.plan.topology.nodes()[*node]);
            let _ = write!(
                svg,
                "<text class=\"head\" x=\"{x:.0}\" y=\"{:.0}\">{name}</text><path class=\"node\" d=\"M{x:.0} {:.0}V{end:.0}\"/>",
                HEAD - 18.0,
                HEAD - 10.0,
            );
        }
        for ([from, to], length) in &self.heights.silences {
            let middle = f64::midpoint(*from, *to);
            let right = self.width() - SIDE;
            let _ = write!(
                svg,
                "<path class=\"silence\" d=\"M{SIDE:.0} {middle:.0}H{right:.0}\"/>\
                 <text class=\"small middle\" x=\"{:.0}\" y=\"{:.0}\">{} of silence, cut short</text>",
                self.width() / 2.0,
                middle - 4.0,
                seconds(*length)
            );
        }
    }

    fn packet(&self, svg: &mut String, packet: &FlowPacket, [y, arrival]: [f64; 2]) {
        let [from, to] = nodes_of(self.plan, packet.step);
        let (x, far) = (self.x(from), self.x(to));
        let class = class(packet.purpose);
        let hop = self.plan.topology.hop_name(packet.step.hop);
        let (share, end) = match packet.fate {
            PacketFate::Arrives { .. } => (1.0, arrival),
            // A queue refuses before the link, a frame check behind it.
            PacketFate::Lost(WireLoss::Queue) => (0.08, y + 2.0),
            PacketFate::Lost(WireLoss::FrameCheck) => (0.92, y + LOST_FALL),
            PacketFate::Lost(_) => (0.55, y + LOST_FALL),
        };
        let tip = (far - x).mul_add(share, x);
        let _ = write!(
            svg,
            "<g><title>{} on {}: {}</title><path class=\"packet {class}\" d=\"M{x:.1} {y:.1}L{tip:.1} {end:.1}\"/>",
            escaped(&packet.text),
            escaped(hop),
            fate(packet)
        );
        match packet.fate {
            PacketFate::Arrives { .. } => {
                let back = if far > x { -8.0 } else { 8.0 };
                let _ = write!(
                    svg,
                    "<path class=\"tip {class}\" d=\"M{tip:.1} {end:.1}l{back:.0} -5v8z\"/>"
                );
                if damage(packet) > 0 {
                    dot(svg, (tip + 2.2 * back, end - 1.0));
                }
            }
            PacketFate::Lost(_) => cross(svg, (tip, end)),
        }
        svg.push_str("</g>");
        if self.leaves_an_end(packet) {
            let (place, anchor) = if far > x {
                (x - 10.0, "end")
            } else {
                (x + 10.0, "")
            };
            let at = seconds(packet.sent_at.saturating_since(Instant::START));
            let text = escaped(&packet.text);
            let by = if self.names_hops {
                format!(" ({})", escaped(hop))
            } else {
                String::new()
            };
            let _ = write!(
                svg,
                "<text class=\"{anchor}\" x=\"{place:.0}\" y=\"{:.1}\">{text}{by} <tspan class=\"small\">{at}</tspan></text>",
                y + 4.0
            );
        }
    }
}

/// The nodes between which a packet goes.
fn nodes_of(plan: &PointPlan, step: HopStep) -> [usize; 2] {
    let [from, to] = plan.topology.ends_of(step.hop);
    match step.direction {
        AppDirection::Forward => [from, to],
        AppDirection::Reverse => [to, from],
    }
}

fn fate(packet: &FlowPacket) -> String {
    match packet.fate {
        PacketFate::Lost(cause) => format!("lost ({})", cause.name()),
        PacketFate::Arrives { at, inverted_bits } => {
            let took = seconds(at.saturating_since(packet.sent_at));
            match inverted_bits {
                0 => format!("took {took}"),
                bits => format!("took {took}, {bits} bits inverted"),
            }
        }
    }
}

fn seconds(span: Duration) -> String {
    format!("{:.4} s", span.as_secs_f64())
}
