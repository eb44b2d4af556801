//! Figures of our experiments on what the runs alone do not explain: four blocks by the timer, the worth of
//! knowledge of the rate by its age, and the unsteadiness of courses by the scintillation index.

use super::coded::{ADAPTIVE, BY_POWER, LONGEST};
use super::knowledge::{AGES_MS, worth};
use super::slots::{self, BLOCKS, TIMEOUTS};
use super::unsteady::{Law, Unsteadiness, by_index, kiodo};
use super::view::share;
use crate::data::Data;
use crate::exhibit::{Cells, Exhibit};
use crate::graph::{Graph, GraphCurve};
use crate::parameter::{Axis, AxisUnit};

pub(super) const BLOCK_TIMERS: Exhibit = Exhibit {
    id: "block-timers",
    title: "AWGN KIODO by blocks and timers",
    intro: "No machine of Fulmar's, but the paper's description in slots: a timer for every packet, a receiver that drops what would begin \
        one run too many, 1000 octets of user data, headers of 60 octets (20 without blocks), 1e-6. Rings: what the paper's own runs had.",
    cells: Cells::Curves(Graph {
        x: Axis::linear("timeout", AxisUnit::of("round trips", "round")),
        y: Axis::linear("goodput", AxisUnit::SHARE_OF_LINK),
        families: &[],
        traces: block_timers,
    }),
};

/// Names of the experiment's receivers, in its order.
const NAMES: [&str; BLOCKS.len()] = [
    "no block (go-back-N)",
    "4 blocks",
    "8 blocks",
    "16 blocks",
    "every block",
];
/// Table 1's values at 1000 octets, with four blocks and without.
const PUBLISHED: [(f64, &str, usize); 2] = [
    (0.2857, "four blocks, paper's runs", 1),
    (0.0200, "TCP, paper's runs", 0),
];

fn block_timers(_: &Data) -> Vec<GraphCurve> {
    let ours = BLOCKS.iter().zip(NAMES).enumerate();
    let ours = ours.map(|(colour, (blocks, label))| GraphCurve {
        label,
        colour: Some(colour),
        points: (TIMEOUTS.into_iter())
            .zip(slots::by_timeout(*blocks).iter().copied())
            .collect(),
        joined: true,
    });
    let published = PUBLISHED.map(|(share, label, colour)| GraphCurve {
        label,
        colour: Some(colour),
        points: TIMEOUTS.map(|timeout| (timeout, share)).to_vec(),
        joined: false,
    });
    ours.chain(published).collect()
}

pub(super) const KNOWLEDGE: Exhibit = Exhibit {
    id: "knowledge-kiodo",
    title: "What knowing KIODO's rate is worth by its age, at 1e-4",
    intro: "Packets of at most 1540 octets, long-term rate 1e-4, the courses of the runs. Line: the best choices of length and parity that \
        know the short-term rate of so long ago exactly, in hindsight, by arithmetic (TpduShape::use_of_link). Flat: the best fixed choice of all. Rings: \
        the runs, at the round trip that their knowledge is old.",
    cells: Cells::Curves(Graph {
        x: Axis::logarithmic("age of the knowledge", AxisUnit::MS),
        y: Axis::linear("goodput", AxisUnit::SHARE_OF_LINK),
        families: &["rough-kiodo"],
        traces: knowledge,
    }),
};

/// KIODO's round trip at the start of its pass, in milliseconds.
const ROUND_TRIP_MS: f64 = 16.7;

fn knowledge(data: &Data) -> Vec<GraphCurve> {
    let Some(worth) = worth("kiodo") else {
        return Vec::new();
    };
    let by_age = AGES_MS.into_iter().zip(worth.by_age.iter().copied());
    let run = |line| share(data, "rough-kiodo", line, LONGEST);
    let ring = |label, colour, line| GraphCurve {
        label,
        colour: Some(colour),
        points: run(line)
            .map(|share| (ROUND_TRIP_MS, share))
            .into_iter()
            .collect(),
        joined: false,
    };
    vec![
        GraphCurve {
            label: "the rate of then is known",
            colour: Some(0),
            points: by_age.collect(),
            joined: true,
        },
        GraphCurve {
            label: "best fixed choice",
            colour: Some(1),
            points: AGES_MS.map(|age| (age, worth.fixed)).to_vec(),
            joined: true,
        },
        ring("adaptive, simulated", 2, ADAPTIVE),
        ring("adaptive by power, simulated", 3, BY_POWER),
    ]
}

pub(super) const UNSTEADY: Exhibit = Exhibit {
    id: "unsteady",
    title: "Unsteadiness by the scintillation index, at 1e-6",
    intro: "Standard deviation of the short-term rate's order of magnitude over 25 s, correlation time 4 ms, each course scaled to 1e-6; rates below 1e-12 count as that. \
        The ring is KIODO's law without its pass (log-normal 0.05, 2 ms).",
    cells: Cells::Curves(Graph {
        x: Axis::logarithmic("scintillation index", AxisUnit::NONE),
        y: Axis::linear("standard deviation of log10", AxisUnit::NONE),
        families: &[],
        traces: unsteady,
    }),
};

fn unsteady(_: &Data) -> Vec<GraphCurve> {
    let deviation = |&(index, of): &(f64, Unsteadiness)| (index, of.deviation);
    let line = |label, law, colour| GraphCurve {
        label,
        colour: Some(colour),
        points: by_index(law).iter().map(deviation).collect(),
        joined: true,
    };
    vec![
        line("log-normal", Law::LogNormal, 0),
        line("gamma-gamma", Law::GammaGamma, 2),
        GraphCurve {
            label: "KIODO's law",
            colour: Some(3),
            points: kiodo().map(|of| (0.05, of.deviation)).into_iter().collect(),
            joined: false,
        },
    ]
}
