//! The paper's claims about the FEC strength and the link that it fills (section IV.C, Figures 17-20).

use super::causes::{SLACK, SLACK_SLOW};
use super::claims_strength::{CORRECTED, corrected, grows, over_strengths};
use super::design::{FULL, PACKED};
use super::readings::{BY_STRENGTH, View, WORST};
use super::strength::{AMOUNTS, BY_AMOUNT, STRENGTHS};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;
use crate::reading::under;

const GOODPUT: &str = "goodput_bps";
const DELAY: &str = "delay_mean_s";
const OVERHEAD: &str = "overhead_bytes";

/// The length of the code's descriptor, in each packet with parity (docs/protocol/aerotp.md, section 3.1).
const DESCRIPTOR_LEN: f64 = 4.0;

const FIGURE_17: &str = "section IV.C, Figure 17";
const FIGURE_18: &str = "section IV.C, Figure 18";
const FIGURE_19: &str = "section IV.C, Figure 19";
const FIGURE_20: &str = "section IV.C, Figure 20";

pub(super) const CLAIMS: [PaperClaim; 6] = [
    PaperClaim {
        id: "fec17-up",
        place: FIGURE_17,
        says: "At error rates above 0, more strength gives more throughput, up to a point.",
        criterion: "Reproduced if at each rate above 0 the best of the strengths is neither none nor 256 words, partly \
            if so at 1e-4.",
        see: &["rate-goodput"],
        check: under!(BY_STRENGTH, best_strength),
    },
    PaperClaim {
        id: "fec17-down",
        place: FIGURE_17,
        says: "With 128 and 256 words the parity begins to saturate the link and throughput falls.",
        criterion: "Reproduced if at each rate both have at most 90 % of the best strength's goodput, partly if 256 \
            words have.",
        see: &["rate-goodput"],
        check: under!(BY_STRENGTH, saturated),
    },
    PaperClaim {
        id: "fec18-rises",
        place: FIGURE_18,
        says: "At every error rate, more strength adds slightly to the delay, as the link saturates.",
        criterion: "Reproduced if at each rate the delay grows with each strength, tenfold at most; partly if 256 words \
            have the longest at each rate.",
        see: &["rate-delay", "slack-delay"],
        check: under!(BY_STRENGTH, delay_rises),
    },
    PaperClaim {
        id: "fec19-96",
        place: FIGURE_19,
        says: "96 words a packet and more correct all errors at the tested rates.",
        criterion: CORRECTED,
        see: &["rate-delivered", "header-delivered"],
        check: under!(BY_STRENGTH, |view| corrected(view, &STRENGTHS[7..])),
    },
    PaperClaim {
        id: "fec20-exponential",
        place: FIGURE_20,
        says: "Against words a packet the overhead's growth looks exponential.",
        criterion: "Reproduced if with full packets each word costs more than one before, from strength to strength; partly \
            if the last cost more than the first.",
        see: &["packed-overhead", "rate-overhead"],
        check: exponential,
    },
    PaperClaim {
        id: "fec20-linear",
        place: FIGURE_20,
        says: "The overhead's growth is linear in the amount of data.",
        criterion: "Reproduced if with 0, 32 and 128 words the overhead of 2, 5 and 10 MB lies on the straight line from 1 to \
            20 MB as far as a figure shows it, within 1 % of its axis; partly within 5 %.",
        see: &["amount-overhead"],
        check: linear,
    },
];

/// The best strength's place in the list, at a rate, and the goodputs.
fn best(view: &View<'_>, x: &str) -> Option<(usize, Vec<f64>)> {
    let goodput = over_strengths(view, x, GOODPUT)?;
    let best = (0..goodput.len()).max_by(|a, b| goodput[*a].total_cmp(&goodput[*b]))?;
    Some((best, goodput))
}

fn best_strength(view: &View<'_>) -> Option<ClaimFinding> {
    let inside = |x: &&str| best(view, x).map(|(at, all)| at > 0 && at + 1 < all.len());
    let inside: Vec<bool> = view.rates()?[1..]
        .iter()
        .map(inside)
        .collect::<Option<_>>()?;
    let (at, goodput) = best(view, WORST)?;
    Some(ClaimFinding::bare(
        ClaimVerdict::of(inside.iter().all(|inside| *inside), *inside.last()?),
        format!(
            "{} at 1e-4: {:.2} Mbit/s",
            STRENGTHS.get(at)?.0,
            goodput.get(at)? / 1e6
        ),
    ))
}

fn saturated(view: &View<'_>) -> Option<ClaimFinding> {
    let shares = |x: &&str| {
        let (at, goodput) = best(view, x)?;
        let best = goodput.get(at)?;
        Some((goodput.get(8)? / best, goodput.get(9)? / best))
    };
    let shares: Vec<(f64, f64)> = view.rates()?.iter().map(shares).collect::<Option<_>>()?;
    let (some, most) = shares
        .into_iter()
        .reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)))?;
    Some(ClaimFinding::bare(
        ClaimVerdict::of(some.max(most) <= 0.9, most <= 0.9),
        format!(
            "{:.0} % and {:.0} % of the best at most",
            100.0 * some,
            100.0 * most
        ),
    ))
}

fn delay_rises(view: &View<'_>) -> Option<ClaimFinding> {
    let (mut rises, mut last, mut times) = (true, true, 0.0_f64);
    for x in view.rates()? {
        let delays = over_strengths(view, x, DELAY)?;
        rises &= grows(&delays);
        let most = *delays.last()?;
        last &= delays.iter().all(|delay| *delay <= most);
        times = times.max(most / delays.first()?);
    }
    let slack = STRENGTHS
        .iter()
        .map(|(_, words)| view.data.mean(SLACK, SLACK_SLOW, words, DELAY));
    let slack: Vec<f64> = slack.collect::<Option<_>>()?;
    Some(ClaimFinding::new(
        ClaimVerdict::of(rises && times <= 10.0, last),
        format!("256 words take up to {times:.0} times as long as none"),
        format!(
            "Not slightly: with 256 words the source's data ask for three times what the link carries, and the queue grows \
             until the source ends; AeroTP paces what it sends, and drops nothing of it. And at high rates and few words, \
             holes that are waited for make the delay longer. With a source of 1.2 Mbit/s, which leaves room for 256 words, \
             and without that wait, the delay at 1e-4 {}: from {:.1} ms with none to {:.1} ms.",
            if grows(&slack) {
                "grows with each strength"
            } else {
                "does not grow with each strength"
            },
            slack.first()? * 1e3,
            slack.last()? * 1e3
        ),
    ))
}

fn exponential(data: &Data) -> Option<ClaimFinding> {
    let strengths = STRENGTHS
        .iter()
        .filter(|(_, words)| !["2", "4"].contains(words));
    let points = strengths.map(|(_, words)| {
        let overhead = data.mean(PACKED, FULL, words, OVERHEAD)?;
        Some((words.parse::<f64>().ok()?, overhead))
    });
    let points: Vec<(f64, f64)> = points.collect::<Option<_>>()?;
    let each = |pair: &[(f64, f64)]| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0);
    let each: Vec<f64> = points.windows(2).map(each).collect();
    let (first, last) = (*each.first()?, *each.last()?);
    let descriptors = DESCRIPTOR_LEN * data.mean(PACKED, FULL, "8", "wire_packets")?;
    Some(ClaimFinding::new(
        ClaimVerdict::of(grows(&each), last > first),
        format!(
            "{:.1} kB a word at first, {:.1} kB at last",
            first / 1e3,
            last / 1e3
        ),
        format!(
            "It is hyperbolic: 4w octets of parity for 1460 - 4w of data. From 8 words on each costs {} than one before; those \
             up to 8 also bring the descriptor of the code, in each packet, and cost {:.1} kB a word, {:.1} kB less the \
             descriptor's 4 octets. The source's writes of 1472 octets hide the growth at weak strengths, as they leave a \
             small packet behind each.",
            if grows(each.get(1..)?) {
                "more"
            } else {
                "not always more"
            },
            first / 1e3,
            (first - descriptors / 8.0) / 1e3
        ),
    ))
}

fn linear(data: &Data) -> Option<ClaimFinding> {
    let off = |line: &str| {
        let points = AMOUNTS.iter().map(|amount| {
            let overhead = data.mean(BY_AMOUNT, line, amount, OVERHEAD)?;
            Some((amount.parse::<f64>().ok()?, overhead))
        });
        let points: Vec<(f64, f64)> = points.collect::<Option<_>>()?;
        let (first, last) = (*points.first()?, *points.last()?);
        let each = (last.1 - first.1) / (last.0 - first.0);
        let off = points.iter().map(|(amount, overhead)| {
            let straight = first.1 + each * (amount - first.0);
            (overhead - straight).abs() / last.1
        });
        Some((off.fold(0.0, f64::max), each))
    };
    let lines = ["0 words", "32 words", "128 words"].map(off);
    let lines: Vec<(f64, f64)> = lines.into_iter().collect::<Option<_>>()?;
    let most = lines.iter().map(|(off, _)| *off).fold(0.0, f64::max);
    Some(ClaimFinding::bare(
        ClaimVerdict::of(most <= 0.01, most <= 0.05),
        format!(
            "{:.1} kB a MB with 32 words, off the line by {:.2} % of the axis at most",
            lines.get(1)?.1 / 1e3,
            100.0 * most
        ),
    ))
}
