//! The slides' claims about the link layers.

use super::families::{ARQ, ARQ_WIDE, HARQ, LT_HARQ, PERCENT, TCP_ARQ, TCP_HARQ, WIDE};
use super::published::{
    PUBLISHED_ARQ, PUBLISHED_HARQ, PUBLISHED_LATENCY, PUBLISHED_LINK_GOODPUT, PUBLISHED_RESIDUAL,
};
use super::view::{LOSSY, at, list, megabits, millis, order, over, published};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;
use crate::overlay::Overlay;
use core::fmt::Write as _;

/// The rate of the slides' hops. They do not print it; it follows from their latencies.
const RATE_BPS: f64 = 10e6;

const LATENCY: &str = "link.latency_mean_s";

const HARQ_FITTED: &str = "LL-HARQ's blocks, and how many of them are left to a second round, were chosen by the published latencies.";
/// The note for findings about goodput with fitted settings; docs/models/lt-tcp.md has the steps of the
/// fitting.
pub(super) const GOODPUT_FITTED: &str = "LL-HARQ's blocks, how many of them may fail, and RED's thresholds were chosen with Table I at 10 to 30 % in view (docs/models/lt-tcp.md).";
/// The note for findings about LL-ARQ beside LL-HARQ.
pub(super) const WINDOW_FITTED: &str = "LL-ARQ's window of 32 frames and its timer were fitted to the published latencies and to this very order.";

pub(super) const CLAIMS: [PaperClaim; 9] = [
    PaperClaim {
        id: "arq-latency",
        place: "slide \"Link level goodput\", table",
        says: "LL-ARQ's mean latency of a hop is 10.83, 32.18, 45.63, 59.64, 80.19 and 98.80 ms at 0 to 50 %.",
        criterion: "Reproduced within 5 % at every error rate, partly within 20 %.",
        see: &["saturated-latency", "saturated-latency-100"],
        check: |data| {
            let found = latency(data, ARQ, &PUBLISHED_ARQ, 0.05, 0.20, f64::INFINITY)?;
            Some(found.given(
                "LL-ARQ's rate, delay, tries, window and timer were fitted to these latencies.",
            ))
        },
    },
    PaperClaim {
        id: "harq-latency",
        place: "slide \"Link level goodput\", table",
        says: "LL-HARQ's mean latency of a hop is 10.83, 14.21, 15.15, 17.04, 18.47 and 19.01 ms at 0 to 50 %.",
        criterion: "Reproduced within 20 % at every error rate and below 25 ms throughout, partly below 25 ms.",
        see: &["saturated-latency", "saturated-latency-100"],
        check: |data| {
            let found = latency(data, HARQ, &PUBLISHED_HARQ, 0.20, f64::INFINITY, 0.025)?;
            Some(found.given(HARQ_FITTED))
        },
    },
    PaperClaim {
        id: "latency-order",
        place: "slide \"Link level goodput\"",
        says: "The latency of a hop is much better with LL-HARQ than with LL-ARQ.",
        criterion: "Reproduced if LL-HARQ's is less than half of LL-ARQ's at every error rate above 0, partly if less.",
        see: &["saturated-latency", "chain-latency"],
        check: |data| {
            let arq = over(data, "chain", TCP_ARQ, LOSSY, LATENCY)?;
            let harq = over(data, "chain", TCP_HARQ, LOSSY, LATENCY)?;
            let shares: Vec<f64> = harq
                .iter()
                .zip(&arq)
                .map(|(harq, arq)| harq / arq)
                .collect();
            let found = ClaimFinding::new(
                ClaimVerdict::of(
                    shares.iter().all(|share| *share < 0.5),
                    shares.iter().all(|share| *share < 1.0),
                ),
                format!("{} % of LL-ARQ's", list(&shares, 0.01, 0)),
                "Of TCP-SACK over four hops.".to_owned(),
            );
            Some(found.given(
                "both were fitted to the published latencies, of which one is below the other.",
            ))
        },
    },
    PaperClaim {
        id: "latency-bounded",
        place: "slides \"Features\" and \"Summary\"",
        says: "One ARQ attempt at most keeps the latency of the link under tight control.",
        criterion: "Reproduced if 99 % of the packets take less than 45 ms, two round trips of a hop and 5 ms, at every error rate.",
        see: &["saturated-latency"],
        check: |data| {
            let worst = over(data, "saturated", HARQ, &PERCENT, "link.latency_p99_s")?;
            let other = over(data, "saturated", ARQ, &PERCENT, "link.latency_p99_s")?;
            Some(ClaimFinding::new(
                ClaimVerdict::of(worst.iter().all(|p99| *p99 < 0.045), false),
                millis(&worst),
                format!(
                    "The 99th percentiles; LL-ARQ's are {}. What is lost at a block's beginning and needs the second round waits for the block's end, \
                     27 ms, and a round trip.",
                    millis(&other)
                ),
            ))
        },
    },
    PaperClaim {
        id: "no-parity-on-a-clean-link",
        place: "slide \"Summary\"",
        says: "No FEC is provisioned if there is no loss.",
        criterion: "Reproduced if at 0 % neither LL-HARQ nor LT-TCP above it sends parity; partly if one of both sends none.",
        see: &["chain-goodput"],
        check: |data| {
            let of = |name| at(data, "chain", LT_HARQ, 0, name);
            let (link, transport) = (of("link.frames_parity")?, of("wire_bytes.repair")?);
            Some(ClaimFinding::bare(
                ClaimVerdict::of(link + transport <= 0.0, link.min(transport) <= 0.0),
                format!("LL-HARQ {link:.0} units, LT-TCP {transport:.0} B of parity a run at 0 %"),
            ))
        },
    },
    PaperClaim {
        id: "link-goodput-order",
        place: "slide \"Link level goodput\"",
        says: "With TCP-SACK over one hop, LL-HARQ's link goodput is significantly above LL-ARQ's.",
        criterion: "Reproduced if it is higher at every error rate above 0, by more than both intervals together, partly at most.",
        see: &["hop-link-goodput", "saturated-goodput"],
        check: link_goodput_order,
    },
    PaperClaim {
        id: "table-link-goodput",
        place: "Table I",
        says: "LT-TCP over LL-HARQ, four hops: link goodput of 9.93, 7.81, 6.35, 5.02, 3.77 and 2.41 Mbit/s.",
        criterion: "Reproduced within 10 % at every error rate, above or below, partly within 30 %.",
        see: &["chain-link-goodput", "light-goodput"],
        check: |data| {
            let ours = over(data, "chain", LT_HARQ, &PERCENT, "link.goodput_bps")?;
            let table = published(&PUBLISHED_LINK_GOODPUT, &PERCENT)?;
            let off = farthest(&ours, &table);
            let found = ClaimFinding::new(
                ClaimVerdict::of(off <= 0.1, off <= 0.3),
                megabits(&ours),
                format!(
                    "At most {:.0} % off. At 10 % the slides' {:.2} of 10 Mbit/s leave {:.2} units for each of the packets', all headers and the second round included; ours takes {:.2}. The \
                     units' headers take 2 % here; parity is sized so that 15 % of the blocks need a second round.",
                    100.0 * off,
                    table.get(1)? / 1e6,
                    RATE_BPS / table.get(1)?,
                    RATE_BPS / ours.get(1)?
                ),
            );
            Some(found.given(GOODPUT_FITTED))
        },
    },
    PaperClaim {
        id: "table-residual",
        place: "Table I",
        says: "The link's residual loss is 0.00, 0.00, 0.01, 0.08, 0.61 and 3.99 %: small, and not zero.",
        criterion: "Reproduced if ours is at most the printed one and 0.02 % at every error rate and above 0 at 50 %, partly if at most 4 % throughout.",
        see: &["chain-residual", "saturated-residual"],
        check: |data| {
            let ours = over(data, "chain", LT_HARQ, &PERCENT, "link.residual_loss")?;
            let table = published(&PUBLISHED_RESIDUAL, &PERCENT)?;
            let mut pairs = ours.iter().zip(&table);
            let low = pairs.all(|(ours, table)| *ours <= table + 2e-4);
            let some = ours.last().is_some_and(|worst| *worst > 0.0);
            Some(ClaimFinding::bare(
                ClaimVerdict::of(low && some, ours.iter().all(|share| *share <= 0.04)),
                format!("{} %", list(&ours, 0.01, 2)),
            ))
        },
    },
    PaperClaim {
        id: "table-latency",
        place: "Table I",
        says: "LT-TCP over LL-HARQ, four hops: mean latency of a hop of 11.08, 14.69, 15.65, 17.73, 19.36 and 20.08 ms.",
        criterion: "Reproduced within 20 % at every error rate, partly below 25 ms.",
        see: &["chain-latency"],
        check: |data| {
            let ours = over(data, "chain", LT_HARQ, &PERCENT, LATENCY)?;
            let off = farthest(&ours, &published(&PUBLISHED_LATENCY, &PERCENT)?);
            let found = ClaimFinding::new(
                ClaimVerdict::of(off <= 0.20, ours.iter().all(|mean| *mean < 0.025)),
                millis(&ours),
                format!("At most {:.0} % off.", 100.0 * off),
            );
            Some(found.given(HARQ_FITTED))
        },
    },
];

/// The largest deviation from the published values, as a share.
pub(super) fn farthest(ours: &[f64], published: &[f64]) -> f64 {
    let pairs = ours.iter().zip(published);
    let off = pairs.map(|(ours, published)| (ours / published - 1.0).abs());
    off.fold(0.0, f64::max)
}

fn latency(
    data: &Data,
    line: &str,
    table: &Overlay,
    near: f64,
    far: f64,
    most: f64,
) -> Option<ClaimFinding> {
    let ours = over(data, "saturated", line, &PERCENT, LATENCY)?;
    let published = published(table, &PERCENT)?;
    let off = farthest(&ours, &published);
    let bounded = ours.iter().all(|mean| *mean < most);
    let slow = over(data, "saturated-100", line, &PERCENT, LATENCY)?;
    Some(ClaimFinding::new(
        ClaimVerdict::of(off <= near && bounded, off <= far && bounded),
        millis(&ours),
        format!(
            "At most {:.1} % off. With ON and OFF of 100 ms: {}, at most {:.1} % off.",
            100.0 * off,
            millis(&slow),
            100.0 * farthest(&slow, &published)
        ),
    ))
}

fn link_goodput_order(data: &Data) -> Option<ClaimFinding> {
    let order = order(data, "hop", [TCP_HARQ, TCP_ARQ], "link.goodput_bps")?;
    let (harq, arq) = (megabits(&order.first), megabits(&order.second));
    let mut found = order.finding(format!("{harq}, LL-ARQ {arq}"));
    let wide = over(data, "hop", WIDE, LOSSY, "link.goodput_bps")?;
    let saturated = |line| over(data, "saturated", line, LOSSY, "link.goodput_bps");
    let _ = write!(
        found.comment,
        " Saturated, without any transport: LL-HARQ {}, LL-ARQ {}, and with 512 frames outstanding {}. That one has TCP-SACK's {}: it never stands still and repeats exactly \
         what was lost, so that no parity can be above it.",
        megabits(&saturated(HARQ)?),
        megabits(&saturated(ARQ)?),
        megabits(&saturated(ARQ_WIDE)?),
        megabits(&wide)
    );
    Some(found.given(WINDOW_FITTED))
}
