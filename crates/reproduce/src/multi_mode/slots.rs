//! A radio that shares its frequency by time: packets that fill a slot, and slots that stay filled.

use crate::airborne::GOODPUT;
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;
use crate::family::{Family, FamilyLine};
use crate::figure::Figure;
use crate::parameter::{Axis, AxisUnit, SweptParameter, ValueName};

const NEAR: &str = "AeroTP near-reliable";
const RELIABLE: &str = "AeroTP reliable";
const TCP: &str = "TCP NewReno";

const SCENARIO: (&str, &str) = (
    "scenarios/tdma.toml",
    include_str!("../../../../scenarios/tdma.toml"),
);

const fn length(id: &'static str, written: &'static str) -> ValueName {
    ValueName {
        id,
        written,
        label: id,
    }
}

/// Lengths of packets. Only 609 and `slot` fill a slot of 1218 octets.
const LENGTHS: &[ValueName] = &[
    length("300", "300B"),
    length("400", "400B"),
    length("500", "500B"),
    length("609", "609B"),
    length("700", "700B"),
    length("900", "900B"),
    length("1100", "1100B"),
    length("slot", "slot"),
];

const NEAR_LINE: FamilyLine = FamilyLine::of(NEAR, &[]);
const RELIABLE_LINE: FamilyLine = FamilyLine::of(RELIABLE, &["flow.mode=reliable"]);
const TCP_LINE: FamilyLine = FamilyLine::of(
    TCP,
    &[
        "flow.transport=tcp",
        "tcp.preset=enhanced",
        "tcp.receive_buffer=200kB",
    ],
);

const CONDITIONS: &str = "2 ms of every 8 ms of 5 Mbit/s each way, guards of 50 us, 0.5 ms of propagation; a transfer without end, 20 s.";

pub(super) const LENGTH_FAMILY: Family = Family {
    id: "slot-lengths",
    scenario: SCENARIO,
    sets: &["hop.forward.loss=5%"],
    x: SweptParameter::names("flow.mtu", LENGTHS, "longest packet in octets"),
    lines: &[NEAR_LINE, RELIABLE_LINE],
    conditions: CONDITIONS,
};

/// Losses of whole packets on the way there, in per cent.
const LOSSES: &[&str] = &["0", "1", "5", "10", "20"];

pub(super) const LOSS_FAMILY: Family = Family {
    id: "slot-losses",
    scenario: SCENARIO,
    sets: &[],
    x: SweptParameter::numbers(
        "hop.forward.loss",
        LOSSES,
        "{}%",
        Axis::linear("packets lost", AxisUnit::PERCENT),
    ),
    lines: &[NEAR_LINE, RELIABLE_LINE, TCP_LINE],
    conditions: CONDITIONS,
};

pub(super) const FIGURES: [Figure; 2] = [
    Figure::of(
        "slot-lengths-goodput",
        "Section III.A",
        "Goodput by the length of packets",
        &LENGTH_FAMILY,
        GOODPUT,
    ),
    Figure::of(
        "slot-losses-goodput",
        "Section III.D",
        "Goodput over lossy slots",
        &LOSS_FAMILY,
        GOODPUT,
    ),
];

pub(super) const CLAIMS: [PaperClaim; 2] = [
    PaperClaim {
        id: "mtu-of-the-slot",
        place: "section III.A",
        says: "The best performance is expected of an MTU that is determined by the slot size of the underlying TDMA MAC.",
        criterion: "Reproduced if in both modes packets that fill a slot have the most goodput of all lengths, by more than both intervals; partly if no other length has more by more than both.",
        see: &["slot-lengths-goodput"],
        check: mtu_of_the_slot,
    },
    PaperClaim {
        id: "slots-stay-filled",
        place: "section III.D",
        says: "Where TCP's acknowledgement clock runs over the well connected links alone, AeroTP can keep the assigned TDMA slots filled.",
        criterion: "Reproduced if with 0 to 20 % of the packets lost near-reliable mode puts at least 95 % of what its slots hold on the link, and from 5 % on TCP over the same slots less than half; partly if the \
            first holds.",
        see: &["slot-losses-goodput"],
        check: slots_stay_filled,
    },
];

fn mtu_of_the_slot(data: &Data) -> Option<ClaimFinding> {
    let (mut most, mut not_less) = (true, true);
    let mut figures = Vec::new();
    for line in [NEAR, RELIABLE] {
        let at = |x: &str| {
            let summary = data.at("slot-lengths", line, x, "goodput_bps")?;
            Some((summary.mean?, summary.ci95.unwrap_or_default()))
        };
        let (filled, half) = at("slot")?;
        let mut best: (f64, &str) = (0.0, "");
        for length in LENGTHS.iter().filter(|length| length.id != "slot") {
            let (mean, own) = at(length.id)?;
            let joint = half.hypot(own);
            most &= filled - mean > joint;
            not_less &= mean - filled <= joint;
            if mean > best.0 {
                best = (mean, length.id);
            }
        }
        figures.push(format!(
            "{line} {:.3} Mbit/s, next best {:.3} with {} octets",
            filled / 1e6,
            best.0 / 1e6,
            best.1
        ));
    }
    Some(ClaimFinding::new(
        ClaimVerdict::of(most, not_less),
        figures.join("; "),
        "A slot holds 1218 octets. What does not fit into the rest of a slot waits for the next one.".to_owned(),
    ))
}

/// Octets that the slots of one direction hold over the run.
const SLOT_OCTETS: f64 = 1_218.0 * 20.0 / 0.008;

fn slots_stay_filled(data: &Data) -> Option<ClaimFinding> {
    let shares = |line| {
        let each = LOSSES.iter().map(|loss| {
            let of =
                |name: &str| data.mean("slot-losses", line, loss, &format!("wire_bytes.{name}"));
            let sent = of("source")? + of("repair")? + of("retransmission")?;
            Some(sent / SLOT_OCTETS)
        });
        each.collect::<Option<Vec<f64>>>()
    };
    let (near, tcp) = (shares(NEAR)?, shares(TCP)?);
    let text = |shares: &[f64]| {
        let texts = shares.iter().map(|share| format!("{share:.2}"));
        texts.collect::<Vec<_>>().join(", ")
    };
    let filled = near.iter().all(|share| *share >= 0.95);
    let starved = tcp.iter().skip(2).all(|share| *share < 0.5);
    Some(ClaimFinding::new(
        ClaimVerdict::of(filled && starved, filled),
        format!("{}; TCP {}", text(&near), text(&tcp)),
        "Shares of what the slots hold, with 0, 1, 5, 10 and 20 % lost.".to_owned(),
    ))
}
