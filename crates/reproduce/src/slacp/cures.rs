//! The slides' two cures of the slow-start overshoot: a threshold learned by an earlier connection
//! (CBI), and delayed acknowledgements in slow start, too (no DAASS).

use super::tables::{CONDITIONS, ERROR_MODEL, elapsed};
use crate::family::{Family, FamilyLine};
use crate::figure::{Figure, FigureSection};

pub(super) const PLAIN: &str = "enhanced";
pub(super) const NO_DAASS: &str = "no DAASS";
pub(super) const CBI: &str = "CBI";
pub(super) const BOTH: &str = "CBI, no DAASS";

const SCENARIO: (&str, &str) = (
    "scenarios/return-link-second.toml",
    include_str!("../../../../scenarios/return-link-second.toml"),
);

const LINES: &[FamilyLine] = &[
    FamilyLine::of(PLAIN, &["tcp.share_ssthresh=false"]),
    FamilyLine::of(
        NO_DAASS,
        &["tcp.share_ssthresh=false", "tcp.ack_after_slow_start=false"],
    ),
    FamilyLine::of(CBI, &[]),
    FamilyLine::of(BOTH, &["tcp.ack_after_slow_start=false"]),
];

const fn second(id: &'static str, sets: &'static [&'static str]) -> Family {
    Family {
        id,
        scenario: SCENARIO,
        sets,
        x: ERROR_MODEL,
        lines: LINES,
        conditions: CONDITIONS,
    }
}

/// The settings of a terminal with SLACP, or of one without, and the number of flows.
macro_rules! sets {
    ($dama:literal, slacp $(, $set:literal)*) => {
        &[
            concat!("hop.forward.dama=", $dama),
            "hop.link.layer=slacp",
            "hop.ip_queue=14.4kB",
            "hop.forward.queue=14.4kB",
            $($set),*
        ]
    };
    ($dama:literal, bare $(, $set:literal)*) => {
        &[concat!("hop.forward.dama=", $dama), $($set),*]
    };
}

pub(super) const CRA: Family = second("cures-cra", sets!("cra", slacp));
pub(super) const RBDC: Family = second("cures-rbdc", sets!("rbdc", slacp));
pub(super) const VBDC: Family = second("cures-vbdc", sets!("vbdc", slacp));
pub(super) const CRA_BARE: Family = second("cures-cra-bare", sets!("cra", bare));
pub(super) const RBDC_BARE: Family = second("cures-rbdc-bare", sets!("rbdc", bare));
pub(super) const VBDC_BARE: Family = second("cures-vbdc-bare", sets!("vbdc", bare));

macro_rules! four {
    ($dama:literal, $terminal:tt) => {
        sets!($dama, $terminal, "flow.bytes=250kB", "flow.count=4")
    };
}

pub(super) const CRA_4: Family = second("cures-cra-4", four!("cra", slacp));
pub(super) const RBDC_4: Family = second("cures-rbdc-4", four!("rbdc", slacp));
pub(super) const VBDC_4: Family = second("cures-vbdc-4", four!("vbdc", slacp));
pub(super) const CRA_BARE_4: Family = second("cures-cra-bare-4", four!("cra", bare));
pub(super) const RBDC_BARE_4: Family = second("cures-rbdc-bare-4", four!("rbdc", bare));
pub(super) const VBDC_BARE_4: Family = second("cures-vbdc-bare-4", four!("vbdc", bare));

const PLACE: &str = "Slide \"Attacking Slow-Start overshoot\"";

const fn figure(id: &'static str, title: &'static str, family: &Family) -> Figure {
    elapsed(id, PLACE, title, family)
}

pub(super) const WITH_SLACP: FigureSection = FigureSection {
    title: "Cures of the slow-start overshoot, with SLACP",
    intro: "The slide \"Elapsed time vs error model, SLACP, VBDC, 1 MB\", and the same for the other assignments and for four flows. \
        The enhanced TCP of every line transfers the same once before; with CBI it starts from the threshold it had then.",
    figures: &[
        figure("cures-vbdc-elapsed", "1 MB over VBDC with SLACP", &VBDC),
        figure("cures-rbdc-elapsed", "1 MB over RBDC with SLACP", &RBDC),
        figure("cures-cra-elapsed", "1 MB over CRA with SLACP", &CRA),
        figure(
            "cures-vbdc-4-elapsed",
            "4 x 250 kB over VBDC with SLACP",
            &VBDC_4,
        ),
        figure(
            "cures-rbdc-4-elapsed",
            "4 x 250 kB over RBDC with SLACP",
            &RBDC_4,
        ),
        figure(
            "cures-cra-4-elapsed",
            "4 x 250 kB over CRA with SLACP",
            &CRA_4,
        ),
    ],
};

pub(super) const WITHOUT: FigureSection = FigureSection {
    title: "Cures of the slow-start overshoot, without SLACP",
    intro: "",
    figures: &[
        figure("cures-vbdc-bare-elapsed", "1 MB over VBDC", &VBDC_BARE).logarithmic(),
        figure("cures-rbdc-bare-elapsed", "1 MB over RBDC", &RBDC_BARE).logarithmic(),
        figure("cures-cra-bare-elapsed", "1 MB over CRA", &CRA_BARE).logarithmic(),
        figure(
            "cures-vbdc-bare-4-elapsed",
            "4 x 250 kB over VBDC",
            &VBDC_BARE_4,
        )
        .logarithmic(),
        figure(
            "cures-rbdc-bare-4-elapsed",
            "4 x 250 kB over RBDC",
            &RBDC_BARE_4,
        )
        .logarithmic(),
        figure(
            "cures-cra-bare-4-elapsed",
            "4 x 250 kB over CRA",
            &CRA_BARE_4,
        )
        .logarithmic(),
    ],
};
