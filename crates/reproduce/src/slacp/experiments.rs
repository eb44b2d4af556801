//! Runs that are not on the slides: the loss of the error models, causes of claims' outcomes, and the
//! effect of conditions that the slides leave unsaid.

use super::tables::{CONDITIONS, ENHANCED, ENHANCED_SLACP, MODELS as NAMES};
use super::tables::{SCENARIO, elapsed, with_slacp};
use crate::family::{Family, Line};
use crate::figure::{Figure, Section};
use crate::measure::{Measure, Statistic};
use crate::overlay::Overlay;

/// The place of experiments that are none of the slides'.
const OURS: &str = "Experiment";

/// The packets that a model loses of 2000, in per cent.
const LOST: Measure = Measure {
    name: "wire_loss.loss",
    unit: PACKETS / 100.0,
    unit_name: "%",
    label: "packets lost",
    statistic: Statistic::Mean,
};

/// The number of packets in the runs of [`MODELS`].
pub(super) const PACKETS: f64 = 2_000.0;

const DROPPED: Measure = Measure {
    name: "wire_loss.queue",
    unit: 1.0,
    unit_name: "packets",
    label: "dropped at full queues",
    statistic: Statistic::Mean,
};

/// The packets that SLACP does not bring to the far end.
const RESIDUAL: Measure = Measure {
    name: "link.residual_loss",
    unit: 0.01,
    unit_name: "%",
    label: "residual loss",
    statistic: Statistic::Mean,
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

pub(super) const ERROR_MODELS: Section = Section {
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
    x_path: "hop.forward.loss",
    x_values: NAMES,
    x_label: "error model; huge as printed (literal) and as it must be (calibrated)",
    x_logarithmic: false,
    lines: &[
        Line {
            label: AT_128,
            sets: &[],
        },
        Line {
            label: AT_64,
            sets: &["hop.forward.rate=64kbit"],
        },
    ],
    conditions: "2000 packets of 1450 octets, one after another, with capacity assigned for good (CRA).",
};

pub(super) const HIGH_SLACP: &str = "SLACP, high";
pub(super) const CLEAN_SLACP: &str = "SLACP, no errors";
pub(super) const HIGH_BARE: &str = "without, high";
pub(super) const CLEAN_BARE: &str = "without, no errors";

const ANSWER_LINES: &[Line] = &[
    Line {
        label: HIGH_SLACP,
        sets: with_slacp!("hop.forward.loss=slacp high"),
    },
    Line {
        label: CLEAN_SLACP,
        sets: with_slacp!(),
    },
    Line {
        label: HIGH_BARE,
        sets: &["hop.forward.loss=slacp high"],
    },
    Line {
        label: CLEAN_BARE,
        sets: &[],
    },
];

const fn experiment(
    id: &'static str,
    sets: &'static [&'static str],
    x_path: &'static str,
    x_values: &'static [&'static str],
    x_label: &'static str,
    lines: &'static [Line],
) -> Family {
    Family {
        id,
        scenario: SCENARIO,
        sets,
        x_path,
        x_values,
        x_label,
        x_logarithmic: true,
        lines,
        conditions: CONDITIONS,
    }
}

/// The answer times: whole super-frames, since answers come into force with them. The default is the third.
pub(super) const RBDC_ANSWERS: [&str; 4] = [
    "rbdc response 265ms",
    "rbdc response 530ms",
    "rbdc response 795ms",
    "rbdc response 1060ms",
];
pub(super) const VBDC_ANSWERS: [&str; 4] = [
    "vbdc response 265ms",
    "vbdc response 530ms",
    "vbdc response 795ms",
    "vbdc response 1060ms",
];

pub(super) const ANSWER_RBDC: Family = experiment(
    "answer-rbdc",
    &[],
    "hop.forward.dama",
    &RBDC_ANSWERS,
    "from a request to its answer / ms",
    ANSWER_LINES,
);
pub(super) const ANSWER_VBDC: Family = experiment(
    "answer-vbdc",
    &[],
    "hop.forward.dama",
    &VBDC_ANSWERS,
    "from a request to its answer / ms",
    ANSWER_LINES,
);

pub(super) const TIMEOUTS: [&str; 5] = [
    "rbdc timeout 1",
    "rbdc timeout 2",
    "rbdc timeout 4",
    "rbdc timeout 8",
    "rbdc timeout 15",
];
pub(super) const TIMEOUT: Family = experiment(
    "timeout",
    &["hop.forward.loss=slacp huge-calibrated"],
    "hop.forward.dama",
    &TIMEOUTS,
    "how long an assigned rate is kept / super-frames",
    &[
        Line {
            label: ENHANCED,
            sets: &[],
        },
        Line {
            label: ENHANCED_SLACP,
            sets: with_slacp!(),
        },
    ],
);

pub(super) const WHY_RECOVERY: Section = Section {
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
            Line { label: "CRA", sets: with_slacp!("hop.forward.dama=cra" $(, $set)*) },
            Line { label: "RBDC", sets: with_slacp!("hop.forward.dama=rbdc" $(, $set)*) },
            Line { label: "VBDC", sets: with_slacp!("hop.forward.dama=vbdc" $(, $set)*) },
        ]
    };
}

pub(super) const BUFFERS: [&str; 6] = ["7.2kB", "10.8kB", "14.4kB", "21.6kB", "28.8kB", "57.6kB"];
pub(super) const BUFFER: Family = experiment(
    "buffer",
    &[],
    "hop.forward.queue",
    &BUFFERS,
    "buffer that requests are made for / kB",
    by_dama!(),
);

pub(super) const BUFFER_4: Family = experiment(
    "buffer-4",
    &[
        "flow.bytes=250kB",
        "flow.count=4",
        "hop.forward.loss=slacp high",
    ],
    "hop.forward.queue",
    &BUFFERS,
    "buffer that requests are made for / kB",
    by_dama!(),
);

pub(super) const QUEUES: [&str; 6] = ["7.2kB", "14.4kB", "28.8kB", "57.6kB", "115.2kB", "230.4kB"];

/// The name of a line: the TCP and the assignment.
macro_rules! queue_line {
    ($label:expr, $dama:literal, $preset:literal) => {
        Line {
            label: $label,
            sets: with_slacp!(
                concat!("hop.forward.dama=", $dama),
                concat!("tcp.preset=", $preset)
            ),
        }
    };
}

pub(super) const QUEUE_LINES: [[&str; 2]; 3] = [
    ["CRA, reference", "CRA, enhanced"],
    ["RBDC, reference", "RBDC, enhanced"],
    ["VBDC, reference", "VBDC, enhanced"],
];
pub(super) const QUEUE: Family = experiment(
    "queue",
    &[],
    "hop.ip_queue",
    &QUEUES,
    "router's queue above SLACP / kB",
    &[
        queue_line!(QUEUE_LINES[0][0], "cra", "reference"),
        queue_line!(QUEUE_LINES[0][1], "cra", "enhanced"),
        queue_line!(QUEUE_LINES[1][0], "rbdc", "reference"),
        queue_line!(QUEUE_LINES[1][1], "rbdc", "enhanced"),
        queue_line!(QUEUE_LINES[2][0], "vbdc", "reference"),
        queue_line!(QUEUE_LINES[2][1], "vbdc", "enhanced"),
    ],
);

pub(super) const WHY_BUFFERS: Section = Section {
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
pub(super) const PERSISTENCE: Family = Family {
    x_logarithmic: false,
    ..experiment(
        "persistence",
        &["hop.forward.loss=slacp huge-calibrated"],
        "hop.link.persistence",
        &PERSISTENCES,
        "retransmissions of a frame at most",
        by_dama!(),
    )
};

const REDUNDANCY_VALUES: [&str; 5] = ["0%", "25%", "50%", "75%", "100%"];
pub(super) const REDUNDANCY: Family = Family {
    x_logarithmic: false,
    ..experiment(
        "redundancy",
        &["hop.forward.loss=slacp huge-calibrated"],
        "hop.link.redundancy",
        &REDUNDANCY_VALUES,
        "parity of the first round / % of its packets, at least one frame",
        by_dama!(),
    )
};

const ACK_DELAYS: [&str; 5] = ["50ms", "100ms", "190ms", "400ms", "800ms"];
pub(super) const ACK_DELAY: Family = experiment(
    "ack-delay",
    &["hop.forward.loss=slacp huge-calibrated"],
    "hop.link.ack_delay",
    &ACK_DELAYS,
    "receiver's acknowledgement timer / ms",
    by_dama!(),
);

const RTOS: [&str; 5] = ["200ms", "500ms", "1000ms", "2000ms", "3000ms"];
pub(super) const RTO_MIN: Family = experiment(
    "rto-min",
    &["hop.forward.loss=slacp huge-calibrated"],
    "tcp.rto_min",
    &RTOS,
    "TCP's shortest timeout / ms",
    &[
        Line {
            label: "CRA",
            sets: &[],
        },
        Line {
            label: "RBDC",
            sets: &["hop.forward.dama=rbdc"],
        },
        Line {
            label: "VBDC",
            sets: &["hop.forward.dama=vbdc"],
        },
        Line {
            label: "CRA, SLACP",
            sets: with_slacp!(),
        },
        Line {
            label: "RBDC, SLACP",
            sets: with_slacp!("hop.forward.dama=rbdc"),
        },
        Line {
            label: "VBDC, SLACP",
            sets: with_slacp!("hop.forward.dama=vbdc"),
        },
    ],
);

pub(super) const SENSITIVITY: Section = Section {
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
