//! Timestamps, timeouts, congestion control, SNACK and packets sent twice, one packet length each.

use super::families::{
    AEROTP, AEROTP_SETS, ATENAA_SETS, FASOLT_SETS, KIODO_SETS, SETTING_SETS, TESTBED_SETS, mtu,
    table,
};
use crate::family::{Family, FamilyLine};

pub(super) const PLAIN: &str = "conservative";
pub(super) const STAMPED: &str = "conservative, timestamps";
pub(super) const HASTY: &str = "aggressive";
pub(super) const HASTY_STAMPED: &str = "aggressive, timestamps";
pub(super) const NEWRENO: &str = "NewReno with SACK";
pub(super) const SNACK: &str = "AeroTP, SNACK";
pub(super) const SNACK_TWICE: &str = "AeroTP, SNACK, twice";
pub(super) const NARROW: &str = "AeroTP, SNACK, 64 TPDUs";
pub(super) const ONCE: &str = "UDP, once";
pub(super) const TWICE: &str = "UDP, twice";
/// The packet length of these families.
pub(super) const ONE: &str = "1040";

macro_rules! udp {
    ($copies:literal) => {
        &[
            "flow.transport=udp",
            "flow.traffic=constant-rate",
            "flow.rate=250mbit",
            "flow.write=1000B",
            $copies,
        ]
    };
}

pub(super) const FEATURE_LINES: &[FamilyLine] = &[
    FamilyLine::of(PLAIN, &[]),
    FamilyLine::of(STAMPED, &["tcp.timestamps=true"]),
    FamilyLine::of(HASTY, &["tcp.rto_rule=aggressive"]),
    FamilyLine::of(
        HASTY_STAMPED,
        &["tcp.rto_rule=aggressive", "tcp.timestamps=true"],
    ),
    FamilyLine::of(
        NEWRENO,
        &["tcp.preset=enhanced", "tcp.receive_buffer=5200kB"],
    ),
    FamilyLine::of(
        SNACK,
        &[
            "flow.transport=aerotp",
            "flow.mode=near-reliable",
            "flow.window=16384",
            "flow.send_buffer=32MB",
            "flow.rto_margin=1ms",
            "flow.rto_max=5ms",
        ],
    ),
    FamilyLine::of(
        SNACK_TWICE,
        &[
            "flow.transport=aerotp",
            "flow.mode=near-reliable",
            "flow.window=16384",
            "flow.send_buffer=32MB",
            "flow.rto_margin=1ms",
            "flow.rto_max=5ms",
            "flow.copies=2",
        ],
    ),
    FamilyLine::of(
        NARROW,
        &[
            "flow.transport=aerotp",
            "flow.mode=near-reliable",
            "flow.window=64",
            "flow.rto_margin=1ms",
            "flow.rto_max=5ms",
        ],
    ),
    FamilyLine::of(ONCE, udp!("flow.copies=1")),
    FamilyLine::of(TWICE, udp!("flow.copies=2")),
];

pub(super) const fn features(id: &'static str, sets: &'static [&'static str]) -> Family {
    Family {
        x: mtu(&[ONE]),
        ..table(id, sets, FEATURE_LINES)
    }
}

pub(super) const TESTBED_FEATURES: Family = features("features-testbed", TESTBED_SETS);
pub(super) const ATENAA_FEATURES: Family = features("features-atenaa", ATENAA_SETS);
pub(super) const FASOLT_FEATURES: Family = features("features-fasolt", FASOLT_SETS);
pub(super) const KIODO_FEATURES: Family = features("features-kiodo", KIODO_SETS);
pub(super) const SETTING_FEATURES: Family = features("features-setting", SETTING_SETS);

/// A family over as many courses of a channel as are needed to see a difference of one in a hundred.
macro_rules! stamps {
    ($id:literal, $($set:literal),*) => {
        Family {
            x: mtu(&[ONE]),
            conditions: "Go-back-N with two rules for the timeout, each without timestamps and with them; run i of every line meets the same course.",
            ..table($id, &["run.runs=8", "hop.ber=0", $($set),*], STAMP_LINES)
        }
    };
}

const STAMP_LINES: &[FamilyLine] = FEATURE_LINES.split_at(4).0;

pub(super) const TESTBED_STAMPS: Family =
    stamps!("stamps-testbed", "hop.fading=testbed seed run over 2s");
/// ATENAA's family: at 20 km/h the distance changes by 2 us of light's time in the paper's 100 s.
pub(super) const ATENAA_STAMPS: Family = stamps!(
    "stamps-atenaa",
    "hop.fading=atenaa seed run over 2s",
    "hop.delay=5003ns",
    "hop.jitter=2us",
    "tcp.receive_buffer=6kB"
);
pub(super) const FASOLT_STAMPS: Family = stamps!(
    "stamps-fasolt",
    "hop.fading=fasolt seed run over 2s",
    "hop.delay=203472ns",
    "tcp.receive_buffer=36kB"
);
pub(super) const KIODO_STAMPS: Family = stamps!(
    "stamps-kiodo",
    "hop.fading=kiodo seed run over 2s",
    "hop.delay=0s",
    "tcp.receive_buffer=1302kB",
    "tcp.rto_initial=40ms",
    "tcp.rto_max=40ms"
);
pub(super) const SETTING_STAMPS: Family = stamps!(
    "stamps-setting",
    "hop.fading=kiodo pass 610km from 2000km setting seed run over 2s",
    "hop.delay=0s",
    "tcp.receive_buffer=1302kB",
    "tcp.rto_initial=40ms",
    "tcp.rto_max=40ms"
);

/// KIODO's distance without bit errors: each timeout there comes too early.
pub(super) const CLEAN_FEATURES: Family = features(
    "features-clean",
    &[
        "hop.ber=0",
        "hop.fading=kiodo pass 610km from 2000km setting ber 1e-15 seed run over 2s",
        "hop.delay=0s",
        "tcp.receive_buffer=1302kB",
        "tcp.rto_initial=40ms",
        "tcp.rto_max=40ms",
    ],
);

pub(super) const NEWRENO_EVEN: &str = "NewReno with SACK, log-normal 0.003";
pub(super) const NEWRENO_AWGN: &str = "NewReno with SACK, log-normal 0.0001";

/// The cost of congestion control over FASOLT's distance, by the law of fading.
pub(super) const CONTROL: Family = Family {
    x: mtu(&[ONE]),
    ..table(
        "control",
        FASOLT_SETS,
        &[
            FamilyLine::of(
                NEWRENO_EVEN,
                &[
                    "hop.fading=log-normal 0.003 time 50ms seed run over 2s",
                    "tcp.preset=enhanced",
                    "tcp.receive_buffer=5200kB",
                ],
            ),
            FamilyLine::of(
                NEWRENO_AWGN,
                &[
                    "hop.fading=log-normal 0.0001 time 50ms seed run over 2s",
                    "tcp.preset=enhanced",
                    "tcp.receive_buffer=5200kB",
                ],
            ),
            FamilyLine::of(AEROTP, AEROTP_SETS),
        ],
    )
};
