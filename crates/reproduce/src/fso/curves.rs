//! Figures 1 to 4: courses of the presets, and the closed forms with runs beside them.

use super::courses::course;
use super::forms::{FASOLT, Form, LINK_HEADER, TESTBED};
use super::ideal::{IDEAL_RATES, IDEAL_USERS, ideal_share};
use crate::data::Data;
use crate::exhibit::{Cells, Exhibit};
use crate::graph::{Graph, GraphCurve};
use crate::parameter::{Axis, AxisUnit};
use fulmar_channel::fading::Demonstration;
use fulmar_proto::units::{BitErrorRate, ByteCount};
use fulmar_sim::theory::{ArqClass, BestLength, best_length};

const COURSE: &str = "Short-term bit error rate of the preset's course of seed 1, in half seconds: the mean and the highest sample. The \
    paper's recordings are not public; this is a synthetic process made from what is said of them (docs/models/fading.md).";
const FORMS: &str = "The paper's closed forms with a header of 20 octets, goodput as a share of the link of 622 Mbit/s.";

/// A rate over the time of a course.
const COURSE_AXES: Graph = Graph {
    x: Axis::linear("time", AxisUnit::S),
    y: Axis::logarithmic("short-term bit error rate", AxisUnit::NONE),
    families: &[],
    traces: |_| Vec::new(),
};
/// Goodput over the bit error rate.
const RATE_AXES: Graph = Graph {
    x: Axis::logarithmic("bit error rate", AxisUnit::NONE),
    y: Axis::linear("goodput", AxisUnit::SHARE_OF_LINK),
    families: &[],
    traces: |_| Vec::new(),
};

pub(super) const FIG_1_FASOLT: Exhibit = course_figure("fig-1-fasolt", "Figure 1: FASOLT", fasolt);
pub(super) const FIG_1_KIODO: Exhibit = course_figure("fig-1-kiodo", "Figure 1: KIODO", kiodo);
pub(super) const FIG_1_ATENAA: Exhibit = course_figure("fig-1-atenaa", "Figure 1: ATENAA", atenaa);
pub(super) const FIG_1_TESTBED: Exhibit =
    course_figure("fig-1-testbed", "Figure 1: testbed", testbed);
pub(super) const FIG_2_TESTBED: Exhibit =
    over_rate("fig-2-testbed", "Figure 2: stop-and-wait, testbed", |_| {
        over_rates(ArqClass::StopAndWait, TESTBED)
    });
pub(super) const FIG_2_FASOLT: Exhibit =
    over_rate("fig-2-fasolt", "Figure 2: stop-and-wait, FASOLT", |_| {
        over_rates(ArqClass::StopAndWait, FASOLT)
    });
pub(super) const FIG_3_TESTBED: Exhibit =
    over_rate("fig-3-testbed", "Figure 3: go-back-N, testbed", |_| {
        over_rates(ArqClass::GoBackN, TESTBED)
    });
pub(super) const FIG_3_FASOLT: Exhibit =
    over_rate("fig-3-fasolt", "Figure 3: go-back-N, FASOLT", |_| {
        over_rates(ArqClass::GoBackN, FASOLT)
    });
pub(super) const FIG_4_RATE: Exhibit = over_rate(
    "fig-4-rate",
    "Figure 4, left: selective repeat over the bit error rate",
    |_| over_rates(ArqClass::SelectiveRepeat, TESTBED),
);
pub(super) const FIG_4_LENGTH: Exhibit = Exhibit {
    id: "fig-4-length",
    title: "Figure 4, right: selective repeat over the packet length",
    intro: "The paper's closed form over the length of a packet with a header of 20 octets; rings are the best lengths of equation 11.",
    cells: Cells::Curves(Graph {
        x: Axis::linear("packet length", AxisUnit::OCTETS),
        traces: over_lengths,
        ..RATE_AXES
    }),
};
pub(super) const SIMULATED_TESTBED: Exhibit = simulated(
    "simulated-testbed",
    "Closed forms and ideal timers, testbed",
    &["ideal-saw-testbed", "ideal-gbn-testbed", "ideal-sr-testbed"],
    |data| beside_runs(data, "testbed", TESTBED),
);
pub(super) const SIMULATED_FASOLT: Exhibit = simulated(
    "simulated-fasolt",
    "Closed forms and ideal timers, FASOLT",
    &["ideal-saw-fasolt", "ideal-gbn-fasolt", "ideal-sr-fasolt"],
    |data| beside_runs(data, "fasolt", FASOLT),
);

type Traces = fn(&Data) -> Vec<GraphCurve>;

const fn course_figure(id: &'static str, title: &'static str, traces: Traces) -> Exhibit {
    Exhibit {
        id,
        title,
        intro: COURSE,
        cells: Cells::Curves(Graph {
            traces,
            ..COURSE_AXES
        }),
    }
}

const fn over_rate(id: &'static str, title: &'static str, traces: Traces) -> Exhibit {
    Exhibit {
        id,
        title,
        intro: FORMS,
        cells: Cells::Curves(Graph {
            traces,
            ..RATE_AXES
        }),
    }
}

const fn simulated(
    id: &'static str,
    title: &'static str,
    families: &'static [&'static str],
    traces: Traces,
) -> Exhibit {
    Exhibit {
        id,
        title,
        intro: "Lines: the closed forms with the 39 octets of headers of Fulmar's link layers, 1000 octets of user data. Rings: the link layers \
            in the simulator, with timers that wait for the round trip and no longer.",
        cells: Cells::Curves(Graph {
            families,
            traces,
            ..RATE_AXES
        }),
    }
}

fn fasolt(_: &Data) -> Vec<GraphCurve> {
    course_of(Demonstration::Fasolt)
}

fn kiodo(_: &Data) -> Vec<GraphCurve> {
    course_of(Demonstration::Kiodo)
}

fn atenaa(_: &Data) -> Vec<GraphCurve> {
    course_of(Demonstration::Atenaa)
}

fn testbed(_: &Data) -> Vec<GraphCurve> {
    course_of(Demonstration::Testbed)
}

/// The least rate that is drawn; lower rates are drawn as this one, or the axis would show nothing else.
const DRAWN_MIN: f64 = 1e-12;

fn course_of(of: Demonstration) -> Vec<GraphCurve> {
    let course = course(of);
    let trace = |label, of: fn(&(f64, f64, f64)) -> f64| GraphCurve {
        label,
        colour: None,
        points: (course.bins.iter())
            .map(|bin| (bin.0, of(bin).max(DRAWN_MIN)))
            .collect(),
        joined: true,
    };
    vec![
        trace("highest of half a second", |bin| bin.2),
        trace("mean of half a second", |bin| bin.1),
    ]
}

/// The lengths of user data that are drawn over the bit error rate.
const USERS: [(u64, &str); 5] = [
    (100, "100 octets"),
    (500, "500 octets"),
    (1000, "1000 octets"),
    (1500, "1500 octets"),
    (5000, "5000 octets"),
];

/// The rates from 1e-9 to 1e-3, twenty points a decade.
fn rates() -> impl Iterator<Item = f64> {
    (0..=120).map(|step| 10_f64.powf(-9.0 + f64::from(step) / 20.0))
}

fn over_rates(arq: ArqClass, distance: f64) -> Vec<GraphCurve> {
    let line = |&(user, label)| GraphCurve {
        label,
        colour: None,
        points: rates()
            .map(|rate| (rate, Form::figure(arq, distance, user, rate).share()))
            .collect(),
        joined: true,
    };
    USERS.iter().map(line).collect()
}

const LENGTH_RATES: [(f64, &str, &str); 4] = [
    (1e-7, "1e-7", "best at 1e-7"),
    (1e-6, "1e-6", "best at 1e-6"),
    (1e-5, "1e-5", "best at 1e-5"),
    (1e-4, "1e-4", "best at 1e-4"),
];

/// The best length by equation 11, with the figures' header.
pub(super) fn best(rate: f64) -> Option<u64> {
    let rate = BitErrorRate::new(rate)?;
    match best_length(ByteCount(super::forms::HEADER), rate) {
        BestLength::Octets(octets) => Some(octets.0),
        BestLength::Unbounded => None,
    }
}

fn over_lengths(_: &Data) -> Vec<GraphCurve> {
    let share = |user, rate| Form::figure(ArqClass::SelectiveRepeat, TESTBED, user, rate).share();
    let header = super::forms::HEADER;
    let at = |user: u64, rate| ((user + header) as f64, share(user, rate));
    let lines = LENGTH_RATES
        .iter()
        .enumerate()
        .map(|(index, &(rate, label, _))| GraphCurve {
            label,
            colour: Some(index),
            points: (1..=120).map(|step| at(step * 50, rate)).collect(),
            joined: true,
        });
    let marks = LENGTH_RATES
        .iter()
        .enumerate()
        .map(|(index, &(rate, _, label))| GraphCurve {
            label,
            colour: Some(index),
            points: best(rate).map(|user| at(user, rate)).into_iter().collect(),
            joined: false,
        });
    lines.chain(marks).collect()
}

fn beside_runs(data: &Data, channel: &str, distance: f64) -> Vec<GraphCurve> {
    let (user, line) = IDEAL_USERS[1];
    let kinds = [
        (
            ArqClass::StopAndWait,
            "stop-and-wait",
            "stop-and-wait, simulated",
        ),
        (ArqClass::GoBackN, "go-back-N", "go-back-N, simulated"),
        (
            ArqClass::SelectiveRepeat,
            "selective repeat",
            "selective repeat, simulated",
        ),
    ];
    let mut traces = Vec::new();
    for (index, (arq, form, runs)) in kinds.into_iter().enumerate() {
        let share = |rate| {
            let form = Form::figure(arq, distance, user, rate);
            form.with_header(LINK_HEADER).share()
        };
        traces.push(GraphCurve {
            label: form,
            colour: Some(index),
            points: rates()
                .take(101)
                .skip(20)
                .map(|rate| (rate, share(rate)))
                .collect(),
            joined: true,
        });
        let points = IDEAL_RATES
            .iter()
            .filter_map(|(rate, text)| Some((*rate, ideal_share(data, arq, channel, line, text)?)));
        traces.push(GraphCurve {
            label: runs,
            colour: Some(index),
            points: points.collect(),
            joined: false,
        });
    }
    traces
}
