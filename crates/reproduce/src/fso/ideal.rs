//! The link layers with ideal timers, beside the closed forms.

use super::families::table;
use crate::data::Data;
use crate::family::{Family, FamilyLine};
use crate::parameter::{Axis, AxisUnit, SweptParameter};
use fulmar_sim::theory::ArqClass;

/// User data of the link layers' packets, by the line's name.
pub(super) const IDEAL_USERS: [(u64, &str); 3] = [
    (500, "500 octets"),
    (1000, "1000 octets"),
    (1500, "1500 octets"),
];
/// The bit error rates of those runs, as numbers and as written.
pub(super) const IDEAL_RATES: [(f64, &str); 3] = [(1e-7, "1e-7"), (1e-6, "1e-6"), (1e-5, "1e-5")];

/// The bit error rate of the way there, at some of those.
const fn forward_rate(rates: &'static [&'static str]) -> SweptParameter {
    let axis = Axis::logarithmic("bit error rate", AxisUnit::NONE);
    SweptParameter::numbers("hop.forward.ber", rates, "{}", axis)
}

/// The length of the runs.
pub(super) const IDEAL_SECONDS: f64 = 2.0;

/// A link layer's share of the link in user data.
pub(super) fn ideal_share(
    data: &Data,
    arq: ArqClass,
    channel: &str,
    line: &str,
    rate: &str,
) -> Option<f64> {
    let kind = match arq {
        ArqClass::StopAndWait => "saw",
        ArqClass::GoBackN => "gbn",
        ArqClass::SelectiveRepeat => "sr",
    };
    let family = format!("ideal-{kind}-{channel}");
    let octets = data.mean(&family, line, rate, "delivered_bytes")?;
    Some(octets * 8.0 / (super::forms::RATE_BPS * IDEAL_SECONDS))
}

/// Lines whose timers are the round trip, the frame and two acknowledgements of 140 octets.
macro_rules! ideal_lines {
    ($short:literal, $middle:literal, $long:literal) => {
        &[
            FamilyLine::of(IDEAL_USERS[0].1, &["flow.write=500B", $short]),
            FamilyLine::of(IDEAL_USERS[1].1, &["flow.write=1000B", $middle]),
            FamilyLine::of(IDEAL_USERS[2].1, &["flow.write=1500B", $long]),
        ]
    };
}

pub(super) const IDEAL_TESTBED: &[FamilyLine] = ideal_lines!(
    "hop.link.retransmit_after=13201ns",
    "hop.link.retransmit_after=19632ns",
    "hop.link.retransmit_after=26063ns"
);
pub(super) const IDEAL_FASOLT: &[FamilyLine] = ideal_lines!(
    "hop.link.retransmit_after=417477ns",
    "hop.link.retransmit_after=423908ns",
    "hop.link.retransmit_after=430339ns"
);

macro_rules! ideal {
    ($id:literal, $layer:literal, $delay:literal, $lines:expr) => {
        Family {
            x: forward_rate(&[IDEAL_RATES[0].1, IDEAL_RATES[1].1, IDEAL_RATES[2].1]),
            conditions: "A link layer offered more than it takes, 2 s; errors on the way there.",
            ..table(
                $id,
                &[
                    "run.runs=1",
                    "run.duration=2s",
                    "hop.ber=0",
                    "hop.queue=100 packets",
                    "hop.link.retries=100",
                    "flow.transport=udp",
                    "flow.traffic=constant-rate",
                    "flow.rate=622mbit",
                    "flow.mtu=2000B",
                    $layer,
                    $delay,
                ],
                $lines,
            )
        }
    };
}

pub(super) const IDEAL_SAW_TESTBED: Family = ideal!(
    "ideal-saw-testbed",
    "hop.link.layer=stop-and-wait",
    "hop.delay=1334ns",
    IDEAL_TESTBED
);
pub(super) const IDEAL_GBN_TESTBED: Family = ideal!(
    "ideal-gbn-testbed",
    "hop.link.layer=go-back-n",
    "hop.delay=1334ns",
    IDEAL_TESTBED
);
pub(super) const IDEAL_SR_TESTBED: Family = ideal!(
    "ideal-sr-testbed",
    "hop.link.layer=selective-repeat",
    "hop.delay=1334ns",
    IDEAL_TESTBED
);
pub(super) const IDEAL_SAW_FASOLT: Family = ideal!(
    "ideal-saw-fasolt",
    "hop.link.layer=stop-and-wait",
    "hop.delay=203472ns",
    IDEAL_FASOLT
);
pub(super) const IDEAL_GBN_FASOLT: Family = ideal!(
    "ideal-gbn-fasolt",
    "hop.link.layer=go-back-n",
    "hop.delay=203472ns",
    IDEAL_FASOLT
);
pub(super) const IDEAL_SR_FASOLT: Family = ideal!(
    "ideal-sr-fasolt",
    "hop.link.layer=selective-repeat",
    "hop.delay=203472ns",
    IDEAL_FASOLT
);

/// The length of the go-back-N's runs over KIODO: a loss costs it 16.7 ms.
const KIODO_SECONDS: f64 = 20.0;

/// Go-back-N over KIODO with the longest packets: with shorter ones a round trip holds more than the link
/// layer's window of 1024 frames.
pub(super) const IDEAL_GBN_KIODO: Family = Family {
    x: forward_rate(&[IDEAL_RATES[1].1]),
    conditions: "A link layer offered more than it takes, 20 s; errors on the way there.",
    ..table(
        "ideal-gbn-kiodo",
        &[
            "run.runs=10",
            "run.duration=20s",
            "hop.ber=0",
            "hop.queue=100 packets",
            "hop.delay=8339102ns",
            "hop.link.layer=go-back-n",
            "hop.link.window=1024",
            "hop.link.retries=100",
            "flow.transport=udp",
            "flow.traffic=constant-rate",
            "flow.rate=622mbit",
            "flow.bytes=100GB",
            "flow.mtu=2000B",
        ],
        &[FamilyLine::of(
            IDEAL_USERS[2].1,
            &["flow.write=1500B", "hop.link.retransmit_after=16701599ns"],
        )],
    )
};

/// That go-back-N's share of the link in user data, and half of the interval.
pub(super) fn kiodo_share(data: &Data) -> Option<(f64, f64)> {
    let (line, rate) = (IDEAL_USERS[2].1, IDEAL_RATES[1].1);
    let octets = data.at("ideal-gbn-kiodo", line, rate, "delivered_bytes")?;
    let share = |octets: f64| octets * 8.0 / (super::forms::RATE_BPS * KIODO_SECONDS);
    Some((share(octets.mean?), octets.ci95.map_or(0.0, share)))
}
