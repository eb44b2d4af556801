//! AeroTP with fixed lengths and strengths, and with those that follow the channel.

use super::families::{MTUS, mtu, table};
use crate::family::{Family, FamilyLine};

pub(super) const WORDS_0: &str = "no parity";
pub(super) const WORDS_6: &str = "6 words";
pub(super) const WORDS_12: &str = "12 words";
pub(super) const WORDS_24: &str = "24 words";
pub(super) const ADAPTIVE: &str = "adaptive";
pub(super) const BY_POWER: &str = "adaptive by power";
/// The fixed strengths.
pub(super) const STRENGTHS: [&str; 4] = [WORDS_0, WORDS_6, WORDS_12, WORDS_24];

/// AeroTP with other settings beside it.
macro_rules! aerotp {
    ($label:expr, $($more:literal),+) => {
        FamilyLine::of($label, &[
                "flow.transport=aerotp",
                "flow.mode=nack-mack",
                "flow.window=16384",
                "flow.send_buffer=32MB",
                "flow.rto_margin=1ms",
                "flow.rto_max=5ms",
                $($more,)+
            ])
    };
}

pub(super) const CODED_LINES: &[FamilyLine] = &[
    aerotp!(WORDS_0, "flow.fec_words=0"),
    aerotp!(WORDS_6, "flow.fec_words=6"),
    aerotp!(WORDS_12, "flow.fec_words=12"),
    aerotp!(WORDS_24, "flow.fec_words=24"),
    aerotp!(ADAPTIVE, "flow.adapt=2ms"),
    aerotp!(BY_POWER, "flow.adapt=2ms", "flow.adapt_power=true"),
];

/// A channel's settings with another description of the fading.
macro_rules! coded {
    ($id:literal, $fading:literal, $delay:literal, $mtus:expr) => {
        Family {
            x: mtu($mtus),
            conditions: "One transfer by AeroTP without end, 2 s, 622 Mbit/s; the longest packet is swept.",
            ..table(
                $id,
                &[
                    "run.duration=2s",
                    "run.runs=2",
                    "hop.ber=0",
                    $fading,
                    $delay,
                ],
                CODED_LINES,
            )
        }
    };
}

pub(super) const TESTBED_CODED: Family = coded!(
    "coded-testbed",
    "hop.fading=testbed seed run over 2s",
    "hop.delay=1334ns",
    MTUS
);
pub(super) const ATENAA_CODED: Family = coded!(
    "coded-atenaa",
    "hop.fading=atenaa seed run over 2s",
    "hop.delay=5003ns",
    MTUS
);
pub(super) const FASOLT_CODED: Family = coded!(
    "coded-fasolt",
    "hop.fading=fasolt seed run over 2s",
    "hop.delay=203472ns",
    MTUS
);
pub(super) const KIODO_CODED: Family = coded!(
    "coded-kiodo",
    "hop.fading=kiodo seed run over 2s",
    "hop.delay=0s",
    MTUS
);

/// The longest packet of the experiment at a hundred times the bit error rate.
pub(super) const LONGEST: &str = "1540";

pub(super) const TESTBED_ROUGH: Family = coded!(
    "rough-testbed",
    "hop.fading=testbed ber 1e-4 seed run over 2s",
    "hop.delay=1334ns",
    &[LONGEST]
);
pub(super) const ATENAA_ROUGH: Family = coded!(
    "rough-atenaa",
    "hop.fading=atenaa ber 1e-4 seed run over 2s",
    "hop.delay=5003ns",
    &[LONGEST]
);
pub(super) const FASOLT_ROUGH: Family = coded!(
    "rough-fasolt",
    "hop.fading=fasolt ber 1e-4 seed run over 2s",
    "hop.delay=203472ns",
    &[LONGEST]
);
pub(super) const KIODO_ROUGH: Family = coded!(
    "rough-kiodo",
    "hop.fading=kiodo ber 1e-4 seed run over 2s",
    "hop.delay=0s",
    &[LONGEST]
);
