//! Runs that are not in the paper and show why a claim comes out as it does.

use super::tables::{BOTH, HUNDRED, NACK, ONE, QUASI, RELIABLE, TCP, TEN};
use crate::airborne::{
    BIT_ERROR_RATE, DELAY, DELIVERED, GOODPUT, LAST, OVERHEAD, SCENARIO, four_figures,
};
use crate::family::{Family, FamilyLine};
use crate::figure::{Figure, FigureSection};
use crate::multi_mode::causes::TCP_GOODPUT;
use crate::multi_mode::design::{OUTAGE_AGAIN, OUTAGE_DELIVERED, OUTAGE_LAST, RAMP_GOODPUT};
use crate::parameter::{Axis, AxisUnit, SweptParameter};

/// The place of experiments that are none of the paper's.
const OURS: &str = "Experiment";

pub(super) const WHY_STRENGTH: FigureSection = FigureSection {
    title: "Why: the strength of the code",
    intro: "At 1e-4, where most packets are hit: what each mode does with more and fewer words than the 4 of Figures 8 to 11.",
    figures: &four_figures!(
        STRENGTH,
        [OURS; 4],
        "strength",
        "",
        " by parity words, 1e-4"
    ),
};

pub(super) const WHY_WAITS: FigureSection = FigureSection {
    title: "Why: how long NACKs alone wait for an answer",
    intro: "Delivery is in order: while the receiver waits for a packet it has asked for, all that came later waits too. Without acknowledgements \
        nobody learns that the request or its answer was lost.",
    figures: &[
        Figure::of(
            "waits-goodput",
            OURS,
            "Goodput by the wait, NACK at 1e-4",
            &WAITS,
            GOODPUT,
        ),
        Figure::of(
            "waits-delay",
            OURS,
            "Delay by the wait, NACK at 1e-4",
            &WAITS,
            DELAY,
        ),
        Figure::of(
            "waits-delivered",
            OURS,
            "Delivered data by the wait, NACK at 1e-4",
            &WAITS,
            DELIVERED,
        ),
    ],
};

pub(super) const WHY_MACK: FigureSection = FigureSection {
    title: "Why: when a MACK is sent, and what it says",
    intro: "At 1e-4: the paper's MACK as in Figures 4 to 7; the same when no acknowledgement is ever lost; when it waits for 20 ms at \
            most; and ours, which says \"all before this one\". Below, a narrow way back without errors.",
    figures: &[
        Figure::of(
            "style-goodput",
            OURS,
            "Goodput by acknowledgements to a MACK, 1e-4",
            &STYLE,
            GOODPUT,
        ),
        Figure::of(
            "style-delay",
            OURS,
            "Delay by acknowledgements to a MACK, 1e-4",
            &STYLE,
            DELAY,
        ),
        Figure::of(
            "style-overhead",
            OURS,
            "Overhead by acknowledgements to a MACK, 1e-4",
            &STYLE,
            OVERHEAD,
        )
        .logarithmic(),
        Figure::of(
            "tail-last",
            OURS,
            "Last delivery by the amount of data, 365 acknowledgements to a MACK, 1e-4",
            &TAIL,
            LAST,
        ),
        Figure::of(
            "narrow-goodput",
            OURS,
            "Goodput by the rate of the way back, no errors",
            &NARROW,
            GOODPUT,
        ),
        Figure::of(
            "narrow-overhead",
            OURS,
            "Overhead by the rate of the way back, no errors",
            &NARROW,
            OVERHEAD,
        )
        .logarithmic(),
    ],
};

pub(super) const WHY_TCP: FigureSection = FigureSection {
    title: "Why: TCP's timers, and when the simulation stops",
    intro: "TCP's mean delay is that of the writes that arrive before the end. Its overhead depends on the least timeout and on giving up.",
    figures: &[
        Figure::of(
            "stop-delay",
            OURS,
            "Delay by the length of the simulation, 1e-4",
            &STOP,
            DELAY,
        ),
        Figure::of(
            "tcps-overhead",
            OURS,
            "Overhead of TCP by its timers",
            &TCPS,
            OVERHEAD,
        )
        .logarithmic(),
        Figure::of(
            "tcps-delivered",
            OURS,
            "Delivered data of TCP by its timers",
            &TCPS,
            DELIVERED,
        ),
    ],
};

/// Lines, each with the settings that it changes.
macro_rules! lines {
    ($($label:expr => [$($set:literal),*]),* $(,)?) => {
        &[$(FamilyLine::of($label, &[$($set),*])),*]
    };
}

pub(super) const QUASI_NO_WAIT: &str = "quasi-reliable, no wait";

pub(super) const STRENGTH: Family = Family {
    id: "strength",
    scenario: SCENARIO,
    sets: &[
        "flow.transport=aerotp",
        "flow.first=after-interval",
        "hop.frame_check=false",
        "hop.ber=1e-4",
    ],
    x: SweptParameter::numbers(
        "flow.fec_words",
        &[
            "0", "2", "3", "4", "6", "8", "12", "16", "24", "32", "48", "64",
        ],
        "{}",
        Axis::linear("parity words in each TPDU", AxisUnit::NONE),
    ),
    lines: lines!(
        QUASI => ["flow.mode=quasi-reliable"],
        NACK => ["flow.mode=nack"],
        BOTH => ["flow.mode=nack-mack"],
        "AeroTP reliable, same words" => ["flow.mode=reliable"],
        QUASI_NO_WAIT => ["flow.mode=quasi-reliable", "flow.wait_lost=0s"],
    ),
    conditions: "As Figures 8 to 11, at a bit error rate of 1e-4. Without a wait, data behind a hole are delivered at once.",
};

pub(super) const NEAR: &str = "10 us";

pub(super) const WAITS: Family = Family {
    id: "waits",
    scenario: SCENARIO,
    sets: &[
        "flow.transport=aerotp",
        "flow.first=after-interval",
        "hop.frame_check=false",
        "hop.ber=1e-4",
        "flow.mode=nack",
        "flow.fec_words=4",
    ],
    x: SweptParameter::numbers(
        "flow.wait_requested",
        &["10", "20", "50", "100", "200", "500", "1000", "2000"],
        "{}ms",
        Axis::logarithmic("longest wait for what was asked for", AxisUnit::MS),
    ),
    lines: lines!(
        NEAR => [],
        "10 ms" => ["hop.delay=10ms"],
    ),
    conditions: "The mode with NACKs alone of Figures 8 to 11, at a bit error rate of 1e-4.",
};

pub(super) const LISTED: &str = "list, waits 1 s";
pub(super) const LISTED_CLEAN: &str = "list, waits 1 s, none lost";
pub(super) const LISTED_SHORT: &str = "list, waits 20 ms";
pub(super) const CUMULATIVE: &str = "ours, waits 5 ms";

pub(super) const STYLE: Family = Family {
    id: "style",
    scenario: SCENARIO,
    sets: &[
        "flow.transport=aerotp",
        "flow.first=after-interval",
        "hop.frame_check=false",
        "flow.mode=reliable",
        "hop.ber=1e-4",
    ],
    x: SweptParameter::numbers(
        "flow.mack",
        &["1", "10", "50", "100", "200", "300", "365"],
        "{}",
        Axis::linear("acknowledgements to a MACK", AxisUnit::NONE),
    ),
    lines: lines!(
        LISTED => ["flow.mack_style=listed", "flow.mack_repeats=1", "flow.mack_flush=1s"],
        LISTED_CLEAN => ["flow.mack_style=listed", "flow.mack_repeats=1", "flow.mack_flush=1s", "hop.reverse.ber=0"],
        LISTED_SHORT => ["flow.mack_style=listed", "flow.mack_repeats=1", "flow.mack_flush=20ms"],
        CUMULATIVE => [],
    ),
    conditions: "As Figures 4 to 7, at a bit error rate of 1e-4.",
};

pub(super) const TAIL_SHORT: &str = "waits 20 ms";
pub(super) const TAIL_LONG: &str = "waits 1 s";

pub(super) const TAIL: Family = Family {
    id: "tail",
    scenario: SCENARIO,
    sets: &[
        "flow.transport=aerotp",
        "flow.first=after-interval",
        "hop.frame_check=false",
        "flow.mode=reliable",
        "flow.mack_style=listed",
        "flow.mack_repeats=1",
        "flow.mack=365",
        "hop.ber=1e-4",
    ],
    x: SweptParameter::numbers(
        "flow.bytes",
        &["1", "2", "4"],
        "{}MB",
        Axis::linear("data to send", AxisUnit::MB),
    ),
    lines: lines!(
        TAIL_SHORT => ["flow.mack_flush=20ms"],
        "waits 250 ms" => ["flow.mack_flush=250ms"],
        TAIL_LONG => ["flow.mack_flush=1s"],
    ),
    conditions: "As Figures 4 to 7, at a bit error rate of 1e-4, with 365 acknowledgements to a MACK: what a transfer takes for \
        each MB, and what besides, by how long a MACK waits.",
};

pub(super) const NARROW: Family = Family {
    id: "narrow",
    scenario: SCENARIO,
    sets: &[
        "flow.transport=aerotp",
        "flow.first=after-interval",
        "hop.frame_check=false",
        "flow.mode=reliable",
        "flow.mack_style=listed",
        "flow.mack_repeats=1",
        "flow.mack_flush=1s",
    ],
    x: SweptParameter::numbers(
        "hop.reverse.rate",
        &["10", "20", "50", "100", "200", "500", "5000"],
        "{}kbit",
        Axis::logarithmic("rate of the way back", AxisUnit::KBIT_PER_S),
    ),
    lines: lines!(
        ONE => ["flow.mack=1"],
        TEN => ["flow.mack=10"],
        HUNDRED => ["flow.mack=100"],
    ),
    conditions: "As Figures 4 to 7 without bit errors; the way back is slower than the way there.",
};

pub(super) const BACK_TCP: &str = "TCP NewReno";
pub(super) const BACK_TCP_LOSSY: &str = "TCP, half lost on the way back";
pub(super) const BACK_AEROTP: &str = "AeroTP reliable";
pub(super) const BACK_AEROTP_LOSSY: &str = "AeroTP, half lost on the way back";

/// The transports' use of the way back.
pub(super) const BACK: Family = Family {
    id: "way-back",
    lines: lines!(
        BACK_TCP => [],
        BACK_TCP_LOSSY => ["hop.reverse.loss=50%"],
        BACK_AEROTP => [
            "flow.transport=aerotp",
            "flow.first=after-interval",
            "hop.frame_check=false",
            "flow.mode=reliable"
        ],
        BACK_AEROTP_LOSSY => [
            "flow.transport=aerotp",
            "flow.first=after-interval",
            "hop.frame_check=false",
            "flow.mode=reliable",
            "hop.reverse.loss=50%"
        ],
    ),
    sets: &["hop.jitter=10us"],
    conditions: "1 MB as in Figures 8 to 11, with no errors on the way there; the way back is slower, or loses every second packet. AeroTP with our \
        MACK, which waits 5 ms at most.",
    ..NARROW
};

pub(super) const WHY_BACK: FigureSection = FigureSection {
    title: "What section II says of TCP",
    intro: "Loss without congestion, slow start over a round trip of 100 ms, outages, and a way back that is narrow or lossy.",
    figures: &[
        TCP_GOODPUT,
        RAMP_GOODPUT,
        OUTAGE_DELIVERED,
        OUTAGE_LAST,
        OUTAGE_AGAIN,
        Figure::of(
            "back-goodput",
            OURS,
            "Goodput by the rate of the way back",
            &BACK,
            GOODPUT,
        ),
    ],
};

pub(super) const STOP: Family = Family {
    id: "stop",
    scenario: SCENARIO,
    sets: &["hop.ber=1e-4"],
    x: SweptParameter::numbers(
        "run.duration",
        &["3", "5", "10", "20", "50", "100", "300"],
        "{}s",
        Axis::logarithmic("length of the simulation", AxisUnit::S),
    ),
    lines: lines!(
        TCP => [],
        RELIABLE => [
            "flow.transport=aerotp",
            "flow.first=after-interval",
            "hop.frame_check=false",
            "flow.mode=reliable"
        ],
    ),
    conditions: "As Figure 9, at a bit error rate of 1e-4.",
};

pub(super) const TCP_QUICK: &str = "timeout 0.2 s at least";
pub(super) const TCP_FREE: &str = "no congestion control";
pub(super) const TCP_STUBBORN: &str = "0.2 s, never gives up";

pub(super) const TCPS: Family = Family {
    id: "tcps",
    scenario: SCENARIO,
    sets: &[],
    x: BIT_ERROR_RATE,
    lines: lines!(
        TCP => [],
        TCP_QUICK => ["tcp.rto_min=200ms"],
        TCP_FREE => ["tcp.congestion=none", "tcp.sack=true"],
        TCP_STUBBORN => ["tcp.rto_min=200ms", "tcp.data_retries=255"],
        RELIABLE => [
            "flow.transport=aerotp",
            "flow.first=after-interval",
            "hop.frame_check=false",
            "flow.mode=reliable"
        ],
    ),
    conditions: "As Figures 8 to 11.",
};
