//! Runs that are not on the slides: the loss of the error models, causes of claims' outcomes, and the
//! effect of conditions that the slides leave unsaid.

use super::tables::{
    CONDITIONS, ENHANCED, ENHANCED_SLACP, ERROR_MODEL, SCENARIO, elapsed, with_slacp,
};
use crate::family::{Family, FamilyLine};
use crate::figure::{Figure, FigureSection};
use crate::measure::{Measure, Quantity, Statistic};
use crate::overlay::Overlay;
use crate::parameter::{Axis, AxisUnit, SweptParameter};

/// The place of experiments that are none of the slides'.
const OURS: &str = "Experiment";

/// The packets that a model loses of 2000, in per cent.
const LOST: Measure = Measure {
    name: "wire_loss.loss",
    unit: PACKETS / 100.0,
    unit_name: AxisUnit::PERCENT,
    label: "packets lost",
    statistic: Statistic::Mean,
    quantity: Quantity::Other,
};

/// The number of packets in the runs of [`MODELS`].
pub(super) const PACKETS: f64 = 2_000.0;

const DROPPED: Measure = Measure {
    name: "wire_loss.queue",
    unit: 1.0,
    unit_name: AxisUnit::PACKETS,
    label: "dropped at full queues",
    statistic: Statistic::Mean,
    quantity: Quantity::Other,
};

/// The packets that SLACP does not bring to the far end.
const RESIDUAL: Measure = Measure {
    name: "link.residual_loss",
    unit: 0.01,
    unit_name: AxisUnit::PERCENT,
    label: "residual loss",
    statistic: Statistic::Mean,
    quantity: Quantity::Other,
};

pub(super) const AT_128: &str = "90.6 ms a packet";
pub(super) const AT_64: &str = "181 ms a packet";

/// One end of the slides' range "Avg PER".
const fn printed(label: &'static str, column: &'static str) -> Overlay {
    Overlay {
        label,
        like: None,
        table: (
            "slacp_error_models.csv",
            include_str!("../../../../reference/slacp_error_models.csv"),
        ),
        rows: &[],
        x: ("place", 1.0),
        y: column,
        half: None,
        n: None,
        statistic: Statistic::Mean,
        joined: true,
    }
}

pub(super) const ERROR_MODELS: FigureSection = FigureSection {
    title: "Error models",
    intro: "What a saturated link loses of 2000 packets of 1450 octets: every packet that touches a bad interval. Its length in \
        time decides, so a link of half the rate loses more of the same series.",
    figures: &[Figure {
        overlays: &[
            printed("slides, from", "lost_low"),
            printed("slides, to", "lost_high"),
        ],
        ..Figure::of(
            "models-lost",
            "Slide 13, error models",
            "Packets lost by error model",
            &MODELS,
            LOST,
        )
    }],
};

pub(super) const MODELS: Family = Family {
    id: "models",
    scenario: SCENARIO,
    sets: &["flow.transport=udp", "flow.bytes=2844kB"],
    x: ERROR_MODEL,
    lines: &[
        FamilyLine::of(AT_128, &[]),
        FamilyLine::of(AT_64, &["hop.forward.rate=64kbit"]),
    ],
    conditions: "2000 packets of 1450 octets, one after another, with capacity assigned for good (CRA).",
};

pub(super) const HIGH_SLACP: &str = "SLACP, high";
pub(super) const CLEAN_SLACP: &str = "SLACP, no errors";
pub(super) const HIGH_BARE: &str = "without, high";
pub(super) const CLEAN_BARE: &str = "without, no errors";

const ANSWER_LINES: &[FamilyLine] = &[
    FamilyLine::of(HIGH_SLACP, with_slacp!("hop.forward.loss=slacp high")),
    FamilyLine::of(CLEAN_SLACP, with_slacp!()),
    FamilyLine::of(HIGH_BARE, &["hop.forward.loss=slacp high"]),
    FamilyLine::of(CLEAN_BARE, &[]),
];

const fn experiment(
    id: &'static str,
    sets: &'static [&'static str],
    x: SweptParameter,
    lines: &'static [FamilyLine],
) -> Family {
    Family {
        id,
        scenario: SCENARIO,
        sets,
        x,
        lines,
        conditions: CONDITIONS,
    }
}

/// The answer times: whole super-frames, since answers come into force with them. The default is the third.
pub(super) const ANSWERS: [&str; 4] = ["265", "530", "795", "1060"];
const ANSWER_AXIS: Axis = Axis::logarithmic("from a request to its answer", AxisUnit::MS);

pub(super) const ANSWER_RBDC: Family = experiment(
    "answer-rbdc",
    &[],
    SweptParameter::numbers(
        "hop.forward.dama",
        &ANSWERS,
        "rbdc response {}ms",
        ANSWER_AXIS,
    ),
    ANSWER_LINES,
);
pub(super) const ANSWER_VBDC: Family = experiment(
    "answer-vbdc",
    &[],
    SweptParameter::numbers(
        "hop.forward.dama",
        &ANSWERS,
        "vbdc response {}ms",
        ANSWER_AXIS,
    ),
    ANSWER_LINES,
);

pub(super) const TIMEOUTS: [&str; 5] = ["1", "2", "4", "8", "15"];
pub(super) const TIMEOUT: Family = experiment(
    "timeout",
    &["hop.forward.loss=slacp huge-calibrated"],
    SweptParameter::numbers(
        "hop.forward.dama",
        &TIMEOUTS,
        "rbdc timeout {}",
        Axis::logarithmic(
            "how long an assigned rate is kept",
            AxisUnit::of("super-frames", "super-frames"),
        ),
    ),
    &[
        FamilyLine::of(ENHANCED, &[]),
        FamilyLine::of(ENHANCED_SLACP, with_slacp!()),
    ],
);

pub(super) const WHY_RECOVERY: FigureSection = FigureSection {
    title: "Why: what waiting for capacity costs",
    intro: "How long the control centre takes to answer, and how long it keeps an assigned rate when no request renews it.",
    figures: &[
        elapsed(
            "answer-rbdc-elapsed",
            OURS,
            "Enhanced TCP over RBDC, by the answer's delay",
            &ANSWER_RBDC,
        ),
        elapsed(
            "answer-vbdc-elapsed",
            OURS,
            "Enhanced TCP over VBDC, by the answer's delay",
            &ANSWER_VBDC,
        ),
        elapsed(
            "timeout-elapsed",
            OURS,
            "RBDC at huge (calibrated), by the time a rate is kept",
            &TIMEOUT,
        ),
    ],
};

/// One line for each assignment of capacity.
macro_rules! by_dama {
    ($($set:expr),*) => {
        &[
            FamilyLine::of("CRA", with_slacp!("hop.forward.dama=cra" $(, $set)*)),
            FamilyLine::of("RBDC", with_slacp!("hop.forward.dama=rbdc" $(, $set)*)),
            FamilyLine::of("VBDC", with_slacp!("hop.forward.dama=vbdc" $(, $set)*)),
        ]
    };
}

pub(super) const BUFFERS: [&str; 6] = ["7.2", "10.8", "14.4", "21.6", "28.8", "57.6"];
const TERMINAL_BUFFER: SweptParameter = SweptParameter::numbers(
    "hop.forward.queue",
    &BUFFERS,
    "{}kB",
    Axis::logarithmic("buffer that requests are made for", AxisUnit::KB),
);
pub(super) const BUFFER: Family = experiment("buffer", &[], TERMINAL_BUFFER, by_dama!());

pub(super) const BUFFER_4: Family = experiment(
    "buffer-4",
    &[
        "flow.bytes=250kB",
        "flow.count=4",
        "hop.forward.loss=slacp high",
    ],
    TERMINAL_BUFFER,
    by_dama!(),
);

pub(super) const QUEUES: [&str; 6] = ["7.2", "14.4", "28.8", "57.6", "115.2", "230.4"];

macro_rules! queue_line {
    ($label:expr, $dama:literal, $preset:literal) => {
        FamilyLine::of(
            $label,
            with_slacp!(
                concat!("hop.forward.dama=", $dama),
                concat!("tcp.preset=", $preset)
            ),
        )
    };
}

/// The assignments, each with the lines of both TCPs over it.
pub(super) const QUEUE_LINES: [(&str, [&str; 2]); 3] = [
    ("CRA", ["CRA, reference", "CRA, enhanced"]),
    ("RBDC", ["RBDC, reference", "RBDC, enhanced"]),
    ("VBDC", ["VBDC, reference", "VBDC, enhanced"]),
];
pub(super) const QUEUE: Family = experiment(
    "queue",
    &[],
    SweptParameter::numbers(
        "hop.ip_queue",
        &QUEUES,
        "{}kB",
        Axis::logarithmic("router's queue above SLACP", AxisUnit::KB),
    ),
    &[
        queue_line!(QUEUE_LINES[0].1[0], "cra", "reference"),
        queue_line!(QUEUE_LINES[0].1[1], "cra", "enhanced"),
        queue_line!(QUEUE_LINES[1].1[0], "rbdc", "reference"),
        queue_line!(QUEUE_LINES[1].1[1], "rbdc", "enhanced"),
        queue_line!(QUEUE_LINES[2].1[0], "vbdc", "reference"),
        queue_line!(QUEUE_LINES[2].1[1], "vbdc", "enhanced"),
    ],
);

pub(super) const WHY_BUFFERS: FigureSection = FigureSection {
    title: "Why: buffers",
    intro: "Requests are made for what stands in the terminal's buffer. What it holds less than the link carries from a packet to \
        its slots (0.93 s on average, 14.9 kB at 128 kbit/s) leaves capacity unused, errors or not. The router's queue above is \
        what slow start overshoots.",
    figures: &[
        elapsed(
            "buffer-elapsed",
            OURS,
            "Enhanced TCP with SLACP, no errors, by the terminal's buffer",
            &BUFFER,
        ),
        elapsed(
            "buffer-4-elapsed",
            OURS,
            "Four flows with SLACP at high, by the terminal's buffer",
            &BUFFER_4,
        ),
        elapsed(
            "queue-elapsed",
            OURS,
            "With SLACP, no errors, by the router's queue",
            &QUEUE,
        ),
        Figure::of(
            "queue-dropped",
            OURS,
            "Segments lost at full queues, no errors",
            &QUEUE,
            DROPPED,
        ),
    ],
};

pub(super) const PERSISTENCES: [&str; 5] = ["0", "1", "2", "3", "4"];
pub(super) const PERSISTENCE: Family = experiment(
    "persistence",
    &["hop.forward.loss=slacp huge-calibrated"],
    SweptParameter::numbers(
        "hop.link.persistence",
        &PERSISTENCES,
        "{}",
        Axis::linear("retransmissions of a frame at most", AxisUnit::NONE),
    ),
    by_dama!(),
);

const REDUNDANCY_VALUES: [&str; 5] = ["0", "25", "50", "75", "100"];
pub(super) const REDUNDANCY: Family = experiment(
    "redundancy",
    &["hop.forward.loss=slacp huge-calibrated"],
    SweptParameter::numbers(
        "hop.link.redundancy",
        &REDUNDANCY_VALUES,
        "{}%",
        Axis::linear(
            "parity of the first round",
            AxisUnit::of("% of its packets, at least one frame", "percent"),
        ),
    ),
    by_dama!(),
);

const ACK_DELAYS: [&str; 5] = ["50", "100", "190", "400", "800"];
pub(super) const ACK_DELAY: Family = experiment(
    "ack-delay",
    &["hop.forward.loss=slacp huge-calibrated"],
    SweptParameter::numbers(
        "hop.link.ack_delay",
        &ACK_DELAYS,
        "{}ms",
        Axis::logarithmic("receiver's acknowledgement timer", AxisUnit::MS),
    ),
    by_dama!(),
);

const RTOS: [&str; 5] = ["200", "500", "1000", "2000", "3000"];
pub(super) const RTO_MIN: Family = experiment(
    "rto-min",
    &["hop.forward.loss=slacp huge-calibrated"],
    SweptParameter::numbers(
        "tcp.rto_min",
        &RTOS,
        "{}ms",
        Axis::logarithmic("TCP's shortest timeout", AxisUnit::MS),
    ),
    &[
        FamilyLine::of("CRA", &[]),
        FamilyLine::of("RBDC", &["hop.forward.dama=rbdc"]),
        FamilyLine::of("VBDC", &["hop.forward.dama=vbdc"]),
        FamilyLine::of("CRA, SLACP", with_slacp!()),
        FamilyLine::of("RBDC, SLACP", with_slacp!("hop.forward.dama=rbdc")),
        FamilyLine::of("VBDC, SLACP", with_slacp!("hop.forward.dama=vbdc")),
    ],
);

pub(super) const SENSITIVITY: FigureSection = FigureSection {
    title: "How much the unsaid matters",
    intro: "The slides give none of these; the enhanced TCP at huge (calibrated), where most is repaired.",
    figures: &[
        elapsed(
            "persistence-elapsed",
            OURS,
            "By SLACP's persistence",
            &PERSISTENCE,
        ),
        Figure::of(
            "persistence-residual",
            OURS,
            "Residual loss by SLACP's persistence",
            &PERSISTENCE,
            RESIDUAL,
        ),
        elapsed("redundancy-elapsed", OURS, "By SLACP's parity", &REDUNDANCY),
        elapsed(
            "ack-delay-elapsed",
            OURS,
            "By SLACP's acknowledgement timer",
            &ACK_DELAY,
        ),
        elapsed(
            "rto-min-elapsed",
            OURS,
            "By TCP's shortest timeout",
            &RTO_MIN,
        ),
    ],
};
