//! The paper's claims about connection set-up (section IV.A, Figure 12).

use super::causes::{GAP_PAPER, GAPS, TIMERS, TIMERS_EVEN};
use super::tables::{LOSSES, SETUP, SETUP_AEROTP, SETUP_TCP};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;

const PLACE: &str = "section IV.A, Figure 12";
const MEASURE: &str = "first_arrival_s";
const LINEAR: &str = "Reproduced if the growth up to 10 % loss is 45 to 55 % of that up to 20 %, and its interval ends within \
    40 and 60 %; partly if the delay grows at every step.";

pub(super) const CLAIMS: [PaperClaim; 7] = [
    PaperClaim {
        id: "setup-tcp-clean",
        place: PLACE,
        says: "Without loss, TCP's set-up takes about 20 ms.",
        criterion: "Reproduced within 10 % of 20 ms, partly within 25 %.",
        see: &["setup-delay"],
        check: |data| near(data, SETUP_TCP, "0", 20e-3, 0.1, 0.25),
    },
    PaperClaim {
        id: "setup-tcp-lossy",
        place: PLACE,
        says: "At 20 % loss, TCP's set-up takes nearly 3 s.",
        criterion: "Reproduced within 10 % of 3 s, partly within 50 %.",
        see: &["setup-delay"],
        check: |data| near(data, SETUP_TCP, "20", 3.0, 0.1, 0.5),
    },
    PaperClaim {
        id: "setup-tcp-linear",
        place: PLACE,
        says: "TCP's set-up delay grows linearly with the loss.",
        criterion: LINEAR,
        see: &["setup-delay", "setup-timers"],
        check: |data| {
            let even = halfway(data, TIMERS, TIMERS_EVEN)?;
            let why = format!(
                "Timeouts double, and the curve bends upwards, ns-3's own (rings) as ours. With timers that stay at 3 s it is \
                 {:.0} ± {:.0} %.",
                100.0 * even.share,
                100.0 * even.half
            );
            linear(data, SETUP_TCP, &why)
        },
    },
    PaperClaim {
        id: "setup-aerotp-clean",
        place: PLACE,
        says: "Without loss, AeroTP's set-up takes 9.2 ms.",
        criterion: "Reproduced within 5 % of 9.2 ms, partly within 25 %.",
        see: &["setup-delay", "setup-interval"],
        check: |data| near(data, SETUP_AEROTP, "0", 9.2e-3, 0.05, 0.25),
    },
    PaperClaim {
        id: "setup-aerotp-lossy",
        place: PLACE,
        says: "At 20 % loss, AeroTP's set-up takes 10.1 ms.",
        criterion: "Reproduced within 5 % of 10.1 ms, partly within 25 %.",
        see: &["setup-delay", "setup-interval"],
        check: |data| near(data, SETUP_AEROTP, "20", 10.1e-3, 0.05, 0.25),
    },
    PaperClaim {
        id: "setup-aerotp-linear",
        place: PLACE,
        says: "AeroTP's set-up delay grows linearly with the loss.",
        criterion: LINEAR,
        see: &["setup-delay"],
        check: |data| {
            let lost = |loss: f64| loss / (1.0 - loss);
            let why = format!(
                "Each lost packet costs one interval of the source (the claim on the second packet). Their mean number before \
                 the first that arrives is p / (1 - p), of which {:.0} % is there at half the loss.",
                100.0 * lost(0.1) / lost(0.2)
            );
            linear(data, SETUP_AEROTP, &why)
        },
    },
    PaperClaim {
        id: "setup-orders",
        place: PLACE,
        says: "AeroTP's set-up is faster by two orders of magnitude.",
        criterion: "Reproduced from a hundredfold at 20 % loss on, partly from tenfold.",
        see: &["setup-delay"],
        check: orders,
    },
];

fn near(
    data: &Data,
    line: &str,
    x: &str,
    theirs: f64,
    full: f64,
    part: f64,
) -> Option<ClaimFinding> {
    let ours = data.at(SETUP, line, x, MEASURE)?;
    let mean = ours.mean?;
    let off = (mean / theirs - 1.0).abs();
    Some(ClaimFinding::new(
        ClaimVerdict::of(off <= full, off <= part),
        span(mean, ours.ci95),
        format!(
            "Off by {:+.1} %.{}",
            100.0 * (mean / theirs - 1.0),
            slower(data, line, x)
        ),
    ))
}

/// A sentence with AeroTP's figure for a source of 3 ms from packet to packet.
fn slower(data: &Data, line: &str, x: &str) -> String {
    let known = (line == SETUP_AEROTP).then(|| data.mean(GAPS, GAP_PAPER, x, MEASURE));
    let text = |mean| {
        format!(
            " It is that of the source's interval, which a lost packet costs: with 3 ms instead of 2.67 it is {:.2} ms.",
            mean * 1e3
        )
    };
    known.flatten().map_or_else(String::new, text)
}

/// Seconds or milliseconds, with the half width of the interval.
fn span(mean: f64, half: Option<f64>) -> String {
    let (unit, name) = if mean < 1.0 { (1e-3, "ms") } else { (1.0, "s") };
    let half = half.map_or_else(String::new, |half| format!(" ± {:.2}", half / unit));
    format!("{:.2}{half} {name}", mean / unit)
}

/// The share of a curve's growth that is reached at half the loss, and half of its interval.
struct Halfway {
    share: f64,
    half: f64,
}

/// Compares growth rather than delay: a constant does not make a curve straight.
fn halfway(data: &Data, family: &str, line: &str) -> Option<Halfway> {
    let at = |x: &str| data.at(family, line, x, MEASURE);
    let (start, end) = (at("0")?.mean?, at("20")?.mean?);
    let middle = at("10")?;
    (end > start).then_some(Halfway {
        share: (middle.mean? - start) / (end - start),
        half: middle.ci95? / (end - start),
    })
}

fn linear(data: &Data, line: &str, why: &str) -> Option<ClaimFinding> {
    let at = |x: &str| data.at(SETUP, line, x, MEASURE);
    let Halfway { share, half } = halfway(data, SETUP, line)?;
    let means = LOSSES.iter().map(|x| at(x)?.mean);
    let means: Vec<f64> = means.collect::<Option<_>>()?;
    let grows = means.windows(2).all(|pair| pair[0] < pair[1]);
    let off = (share - 0.5).abs();
    let straight = off <= 0.05 && off + half <= 0.1;
    Some(ClaimFinding::new(
        ClaimVerdict::of(straight, grows),
        format!("{:.0} % of the growth at half the loss", 100.0 * share),
        format!("The interval is ± {:.0} %. {why}", 100.0 * half),
    ))
}

fn orders(data: &Data) -> Option<ClaimFinding> {
    let ratio = |x: &str| {
        let tcp = data.mean(SETUP, SETUP_TCP, x, MEASURE)?;
        Some(tcp / data.mean(SETUP, SETUP_AEROTP, x, MEASURE)?)
    };
    let (clean, lossy) = (ratio("0")?, ratio("20")?);
    Some(ClaimFinding::new(
        ClaimVerdict::of(lossy >= 100.0, lossy >= 10.0),
        format!("{lossy:.0} times at 20 % loss"),
        format!("Without loss, {clean:.1} times."),
    ))
}
