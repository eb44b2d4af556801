//! Table 1's runs, and those of the experiments that explain them.

use crate::family::{Family, FamilyLine};
use crate::parameter::{Axis, AxisUnit, SweptParameter};

pub(super) const GBN: &str = "TCP, go-back-N";
pub(super) const FOUR: &str = "TCP, four blocks";
pub(super) const ALL: &str = "TCP, every block";
pub(super) const AEROTP: &str = "AeroTP, every block";
pub(super) const BLOCKS: &str = "TCP, so many blocks";

pub(super) const CONDITIONS: &str = "One transfer without end, 2 s, 622 Mbit/s; distances of the paper's table (400 m, 1500 m, 61 km, 2500 km).";
pub(super) const SCENARIO: (&str, &str) = (
    "scenarios/fso-table.toml",
    include_str!("../../../../scenarios/fso-table.toml"),
);
pub(super) const MTUS: &[&str] = &["540", "1040", "1540"];

/// The longest packet, at some lengths in octets.
pub(super) const fn mtu(lengths: &'static [&'static str]) -> SweptParameter {
    SweptParameter::numbers(
        "flow.mtu",
        lengths,
        "{}B",
        Axis::linear("packet", AxisUnit::OCTETS),
    )
}

/// The lines of Table 1: go-back-N has the family's window, selective repeat the argument's.
macro_rules! lines {
    ($wide:literal) => {
        &[
            FamilyLine::of(GBN, &[]),
            FamilyLine::of(FOUR, &["tcp.preset=sack-no-cc", "tcp.runs_kept=4", $wide]),
            FamilyLine::of(ALL, &["tcp.preset=sack-no-cc", $wide]),
            FamilyLine::of(AEROTP, AEROTP_SETS),
        ]
    };
}

pub(super) const AEROTP_SETS: &[&str] = &[
    "flow.transport=aerotp",
    "flow.mode=nack-mack",
    "flow.window=16384",
    "flow.send_buffer=32MB",
    // An obstruction is over sooner than the default's half second between probes.
    "flow.rto_margin=1ms",
    "flow.rto_max=5ms",
];

pub(super) const fn table(
    id: &'static str,
    sets: &'static [&'static str],
    lines: &'static [FamilyLine],
) -> Family {
    Family {
        id,
        scenario: SCENARIO,
        sets,
        x: mtu(MTUS),
        lines,
        conditions: CONDITIONS,
    }
}

pub(super) const AWGN_TESTBED: Family =
    table("awgn-testbed", &[], lines!("tcp.receive_buffer=30kB"));
pub(super) const AWGN_KIODO: Family = table(
    "awgn-kiodo",
    AWGN_KIODO_SETS,
    lines!("tcp.receive_buffer=5200kB"),
);
pub(super) const AWGN_KIODO_SETS: &[&str] = &[
    "hop.delay=8339102ns",
    "tcp.receive_buffer=1302kB",
    "tcp.rto_initial=40ms",
    "tcp.rto_max=40ms",
];

pub(super) const TESTBED_SETS: &[&str] = &["hop.ber=0", "hop.fading=testbed seed run over 2s"];
pub(super) const ATENAA_SETS: &[&str] = &[
    "hop.ber=0",
    "hop.fading=atenaa seed run over 2s",
    "hop.delay=5003ns",
    "tcp.receive_buffer=6kB",
];
pub(super) const FASOLT_SETS: &[&str] = &[
    "hop.ber=0",
    "hop.fading=fasolt seed run over 2s",
    "hop.delay=203472ns",
    "tcp.receive_buffer=36kB",
];
pub(super) const KIODO_SETS: &[&str] = &[
    "hop.ber=0",
    "hop.fading=kiodo seed run over 2s",
    "hop.delay=0s",
    "tcp.receive_buffer=1302kB",
    "tcp.rto_initial=40ms",
    "tcp.rto_max=40ms",
];
pub(super) const SETTING_SETS: &[&str] = &[
    "hop.ber=0",
    "hop.fading=kiodo pass 610km from 2000km setting seed run over 2s",
    "hop.delay=0s",
    "tcp.receive_buffer=1302kB",
    "tcp.rto_initial=40ms",
    "tcp.rto_max=40ms",
];

pub(super) const TESTBED: Family =
    table("testbed", TESTBED_SETS, lines!("tcp.receive_buffer=30kB"));
pub(super) const ATENAA: Family = table("atenaa", ATENAA_SETS, lines!("tcp.receive_buffer=30kB"));
pub(super) const FASOLT: Family = table("fasolt", FASOLT_SETS, lines!("tcp.receive_buffer=150kB"));
pub(super) const KIODO: Family = table("kiodo", KIODO_SETS, lines!("tcp.receive_buffer=5200kB"));

pub(super) const AS_PRESET: &str = "gamma-gamma 1.0 (the preset)";
pub(super) const OLD_TIMERS: &str = "the preset, RFC 2988's timeouts";
pub(super) const SPREAD: &str = "log-normal 0.03";
pub(super) const EVEN: &str = "log-normal 0.003";
pub(super) const AWGN: &str = "log-normal 0.0001";

/// Go-back-N over FASOLT's distance: other laws of the same correlation time, and slower timers.
pub(super) const LAWS: Family = table(
    "laws",
    FASOLT_SETS,
    &[
        FamilyLine::of(AS_PRESET, &[]),
        FamilyLine::of(
            OLD_TIMERS,
            &[
                "tcp.rto_rule=rfc6298",
                "tcp.rto_initial=3s",
                "tcp.rto_min=1s",
                "tcp.rto_max=60s",
            ],
        ),
        FamilyLine::of(
            SPREAD,
            &["hop.fading=log-normal 0.03 time 50ms seed run over 2s"],
        ),
        FamilyLine::of(
            EVEN,
            &["hop.fading=log-normal 0.003 time 50ms seed run over 2s"],
        ),
        FamilyLine::of(
            AWGN,
            &["hop.fading=log-normal 0.0001 time 50ms seed run over 2s"],
        ),
    ],
);

/// The line [`OLD_TIMERS`] of [`LAWS`] over more courses, each by itself.
pub(super) const SINGLE: Family = table(
    "single",
    &[
        "run.runs=16",
        "hop.ber=0",
        "hop.fading=fasolt seed run over 2s",
        "hop.delay=203472ns",
        "tcp.receive_buffer=36kB",
        "tcp.rto_rule=rfc6298",
        "tcp.rto_initial=3s",
        "tcp.rto_min=1s",
        "tcp.rto_max=60s",
    ],
    &[FamilyLine::of(GBN, &[])],
);

pub(super) const EVERY_PACKET: &str = "a timer of 100 us";
pub(super) const BETWEEN: &str = "417 us";
pub(super) const LATE: &str = "470 us";

macro_rules! fixed_timer {
    ($label:expr, $initial:literal, $min:literal, $max:literal) => {
        FamilyLine::of($label, &[$initial, $min, $max])
    };
}

/// Go-back-N with a fixed timer, over FASOLT: the round trip is 414, 420 and 427 us for packets of 540,
/// 1040 and 1540 octets.
pub(super) const EARLY: Family = table(
    "early",
    FASOLT_SETS,
    &[
        fixed_timer!(
            EVERY_PACKET,
            "tcp.rto_initial=100us",
            "tcp.rto_min=100us",
            "tcp.rto_max=100us"
        ),
        fixed_timer!(
            BETWEEN,
            "tcp.rto_initial=417us",
            "tcp.rto_min=417us",
            "tcp.rto_max=417us"
        ),
        fixed_timer!(
            LATE,
            "tcp.rto_initial=470us",
            "tcp.rto_min=470us",
            "tcp.rto_max=470us"
        ),
    ],
);

/// The bit error rates of the experiment on noise.
pub(super) const NOISES: [&str; 4] = ["1e-8", "1e-7", "1e-6", "1e-5"];

pub(super) const NOISE: Family = Family {
    id: "noise",
    x: SweptParameter::numbers(
        "hop.ber",
        &NOISES,
        "{}",
        Axis::logarithmic("bit error rate", AxisUnit::NONE),
    ),
    ..table(
        "noise",
        AWGN_KIODO_SETS,
        lines!("tcp.receive_buffer=5200kB"),
    )
};

/// The numbers of blocks of the experiment.
pub(super) const KEPT: [&str; 7] = ["1", "2", "4", "8", "16", "32", "64"];

pub(super) const FEW: Family = Family {
    id: "few-blocks",
    x: SweptParameter::numbers(
        "tcp.runs_kept",
        &KEPT,
        "{}",
        Axis::logarithmic("blocks that the receiver keeps", AxisUnit::NONE),
    ),
    ..table(
        "few-blocks",
        &[
            "hop.delay=8339102ns",
            "tcp.preset=sack-no-cc",
            "tcp.receive_buffer=5200kB",
            "tcp.rto_initial=40ms",
            "tcp.rto_max=40ms",
        ],
        &[FamilyLine::of(BLOCKS, &[])],
    )
};

/// The timeouts of the experiment in milliseconds.
pub(super) const TIMERS: [&str; 4] = ["20", "40", "60", "80"];

pub(super) const TIMER: Family = Family {
    id: "timer",
    x: SweptParameter::numbers(
        "tcp.rto_min, tcp.rto_initial, tcp.rto_max",
        &TIMERS,
        "[{}ms,{}ms,{}ms]",
        Axis::linear("timeout", AxisUnit::MS),
    ),
    ..table(
        "timer",
        &[
            "hop.delay=8339102ns",
            "tcp.rto_rule=aggressive",
            "tcp.receive_buffer=1302kB",
        ],
        &[
            FamilyLine::of(GBN, &[]),
            FamilyLine::of(FOUR, &["tcp.preset=sack-no-cc", "tcp.runs_kept=4"]),
        ],
    )
};
