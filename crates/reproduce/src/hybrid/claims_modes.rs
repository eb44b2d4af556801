//! The paper's claims about its modes' goodput and delay beside TCP and UDP (section IV.F, Figures 8 and
//! 9).

use super::experiments::QUASI_NO_WAIT;
use super::reading::{
    ALL, BACKS_OFF, HIGH, LOSSY, MODES, View, WORST, backs_off, count, falls, in_each, kilobytes,
    percent, rate, seconds, under,
};
use super::tables::{BOTH, NACK, QUASI, RELIABLE, TCP, UDP};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;

const GOODPUT: &str = "section IV.F, Figure 8";
const DELAY: &str = "section IV.F, Figure 9";

pub(super) const CLAIMS: [PaperClaim; 12] = [
    PaperClaim {
        id: "goodput-quasi",
        place: GOODPUT,
        says: "The quasi-reliable mode has a better goodput than the reliable mode.",
        criterion: "Reproduced if it is higher at every rate from 1e-5 on and nowhere 1 % lower; partly if it is at most rates from 1e-5 on.",
        see: &["modes-goodput", "strength-goodput"],
        check: under!(MODES, |view| better(view, QUASI)),
    },
    PaperClaim {
        id: "goodput-reliable-drops",
        place: GOODPUT,
        says: "The reliable mode's goodput drops significantly as the error rate grows.",
        criterion: "Reproduced if it falls to less than half at 1e-4, partly if to less than 90 %.",
        see: &["modes-goodput"],
        check: under!(MODES, |view| drops(view, RELIABLE)),
    },
    PaperClaim {
        id: "goodput-nack",
        place: GOODPUT,
        says: "The hybrid mode with NACKs alone performs better than the reliable mode.",
        criterion: "Reproduced if its goodput is higher at every rate from 1e-5 on and nowhere 1 % lower; partly if it is at most rates from 1e-5 on.",
        see: &["modes-goodput", "strength-goodput"],
        check: under!(MODES, |view| better(view, NACK)),
    },
    PaperClaim {
        id: "goodput-nack-mack",
        place: GOODPUT,
        says: "The hybrid mode with NACKs and MACKs performs better than the reliable mode.",
        criterion: "Reproduced if its goodput is higher at every rate from 1e-5 on and nowhere 1 % lower; partly if it is at most rates from 1e-5 on.",
        see: &["modes-goodput", "strength-goodput"],
        check: under!(MODES, |view| better(view, BOTH)),
    },
    PaperClaim {
        id: "goodput-tcp",
        place: GOODPUT,
        says: "TCP backs off significantly as the error rate grows.",
        criterion: BACKS_OFF,
        see: &["modes-goodput"],
        check: under!(MODES, |view| backs_off(view, TCP)),
    },
    PaperClaim {
        id: "goodput-udp-above",
        place: GOODPUT,
        says: "UDP has a better goodput than the reliable and the hybrid modes.",
        criterion: "Reproduced if UDP's is higher than that of all three at every rate above 0; partly if higher than the reliable mode's at most of them.",
        see: &["modes-goodput", "strength-goodput", "mack-goodput"],
        check: under!(MODES, udp_above),
    },
    PaperClaim {
        id: "goodput-udp-drops",
        place: GOODPUT,
        says: "UDP's goodput drops as the error rate grows, for data are damaged.",
        criterion: "Reproduced if it is lower at each rate than at the one before, partly if lower at 1e-4 than at 0.",
        see: &["modes-goodput"],
        check: under!(MODES, |view| {
            let all: Option<Vec<f64>> = ALL.iter().map(|x| view.goodput(UDP, x)).collect();
            let all = all?;
            let (first, last) = (*all.first()?, *all.last()?);
            Some(ClaimFinding::bare(
                ClaimVerdict::of(falls(&all), last < first),
                format!("{} at 1e-4", rate(last)),
            ))
        }),
    },
    PaperClaim {
        id: "delay-reliable",
        place: DELAY,
        says: "At 1e-4 the reliable mode's delay is significantly higher than the hybrids'.",
        criterion: "Reproduced if it is at least twice that of both, partly if above both.",
        see: &["modes-delay", "strength-delay", "waits-delay"],
        check: |data| {
            let waiting = |wait| data.mean("waits", super::experiments::NEAR, wait, "delay_mean_s");
            let (short, long) = (waiting("50")?, waiting("2000")?);
            in_each(data, MODES, &|view| {
                let delay = |line| view.delay(line, WORST);
                let (reliable, nack, both) = (delay(RELIABLE)?, delay(NACK)?, delay(BOTH)?);
                let worse = nack.max(both);
                Some(ClaimFinding::new(
                    ClaimVerdict::of(reliable >= 2.0 * worse, reliable > worse),
                    format!(
                        "{}; NACK {}, NACK+MACK {}",
                        seconds(reliable),
                        seconds(nack),
                        seconds(both)
                    ),
                    if view.is_printed() {
                        format!(
                            "NACK's delay is that of waiting for answers: what it asked for it waits for, for up to 2 s, and in vain if the request or its answer is \
                             lost. Where it waits for 50 ms its delay is {}, with 2 s {}.",
                            seconds(short),
                            seconds(long)
                        )
                    } else {
                        String::new()
                    },
                ))
            })
        },
    },
    PaperClaim {
        id: "delay-fewer-repeats",
        place: DELAY,
        says: "That is because the parity spares retransmissions.",
        criterion: "Reproduced if, at 1e-4, both hybrids send at most half of the reliable mode's octets again; partly if fewer.",
        see: &["modes-overhead", "strength-delay", "strength-overhead"],
        check: under!(MODES, fewer_repeats),
    },
    PaperClaim {
        id: "delay-quasi-flat",
        place: DELAY,
        says: "The quasi-reliable mode has no extra delay, for it repeats nothing.",
        criterion: "Reproduced if its delay at 1e-4 is within 10 % of that at 0, partly if less than twice that. How it compares with the reliable mode's decides nothing.",
        see: &["modes-delay", "strength-delay"],
        check: under!(MODES, |view| flat(view, QUASI)),
    },
    PaperClaim {
        id: "delay-udp-flat",
        place: DELAY,
        says: "UDP has no extra delay, for it repeats nothing.",
        criterion: "Reproduced if its delay at 1e-4 is within 10 % of that at 0, partly if less than twice that. How it compares with the reliable mode's decides nothing.",
        see: &["modes-delay"],
        check: under!(MODES, |view| flat(view, UDP)),
    },
    PaperClaim {
        id: "delay-tcp",
        place: DELAY,
        says: "At 1e-4 TCP's delay is nearly double that of the reliable mode, for it sends more again.",
        criterion: "Reproduced if the ratio is 1.5 to 2.5 and TCP sends more octets again, partly if the ratio is 1 to 4.",
        see: &["modes-delay", "stop-delay"],
        check: tcp_delay,
    },
];

/// Whether a mode's goodput is above the reliable mode's.
fn better(view: &View<'_>, line: &str) -> Option<ClaimFinding> {
    let pairs = |rates| {
        view.pairs(rates, |view, x| {
            Some((view.goodput(line, x)?, view.goodput(RELIABLE, x)?))
        })
    };
    let (all, high) = (pairs(ALL)?, pairs(HIGH)?);
    let nowhere = count(&all, |ours, reliable| ours >= 0.99 * reliable) == all.len();
    let higher = count(&high, |ours, reliable| ours > reliable);
    let (_, ours, reliable) = high.last()?;
    let lower: Vec<&str> = all
        .iter()
        .filter(|(_, ours, reliable)| ours < reliable)
        .map(|(x, ..)| *x)
        .collect();
    Some(ClaimFinding::new(
        ClaimVerdict::of(higher == high.len() && nowhere, 2 * higher > high.len()),
        format!("{}, reliable {} at 1e-4", rate(*ours), rate(*reliable)),
        if lower.is_empty() {
            String::new()
        } else {
            format!("Lower at {}.", lower.join(", "))
        },
    ))
}

fn drops(view: &View<'_>, line: &str) -> Option<ClaimFinding> {
    let share = view.goodput(line, WORST)? / view.goodput(line, "0")?;
    Some(ClaimFinding::bare(
        ClaimVerdict::of(share < 0.5, share < 0.9),
        format!("to {} at 1e-4", percent(share)),
    ))
}

fn udp_above(view: &View<'_>) -> Option<ClaimFinding> {
    let over = |line| {
        let pairs = view.pairs(LOSSY, |view, x| {
            Some((view.goodput(UDP, x)?, view.goodput(line, x)?))
        });
        Some(count(&pairs?, |udp, ours| udp > ours))
    };
    let (reliable, nack, both) = (over(RELIABLE)?, over(NACK)?, over(BOTH)?);
    let all = LOSSY.len();
    let udp = view.goodput(UDP, WORST)?;
    let ours = view.goodput(BOTH, WORST)?;
    let weak = view.data.mean("strength", NACK, "2", "goodput_bps")?;
    let waiting = view
        .data
        .mean("mack", "MACK of 200", WORST, "goodput_bps")?;
    Some(ClaimFinding::new(
        ClaimVerdict::of(
            reliable == all && nack == all && both == all,
            2 * reliable > all,
        ),
        format!("{} at 1e-4, NACK+MACK {}", rate(udp), rate(ours)),
        if view.is_printed() {
            format!(
                "Above the reliable mode's at {reliable} of {all} rates, NACK's at {nack}, NACK+MACK's at {both}. UDP delivers what arrives \
                 whole, and an acknowledgement scheme can do no better than that on a saturated link, but a code that corrects errors \
                 can. And the reliable mode sends lost packets again in the time that the source leaves. What brings ours down to UDP's {} is a code that corrects \
                 little (2 words: NACK has {}) or MACKs that wait (of 200: the reliable mode has {}).",
                rate(udp),
                rate(weak),
                rate(waiting)
            )
        } else {
            String::new()
        },
    ))
}

fn fewer_repeats(view: &View<'_>) -> Option<ClaimFinding> {
    let repeated = |line| view.repeated(line, WORST);
    let (reliable, nack, both) = (repeated(RELIABLE)?, repeated(NACK)?, repeated(BOTH)?);
    let more = nack.max(both);
    Some(ClaimFinding::bare(
        ClaimVerdict::of(2.0 * more <= reliable, more < reliable),
        format!(
            "{}; NACK {}, NACK+MACK {}",
            kilobytes(reliable),
            kilobytes(nack),
            kilobytes(both)
        ),
    ))
}

fn flat(view: &View<'_>, line: &str) -> Option<ClaimFinding> {
    let (clean, worst) = (view.delay(line, "0")?, view.delay(line, WORST)?);
    let reliable = view.delay(RELIABLE, WORST)?;
    let comment = if line == QUASI && view.is_printed() {
        let strong = |line, x| view.data.mean("strength", line, x, "delay_mean_s");
        format!(
            "The delay is that of ordered delivery: data behind a hole wait for up to 20 ms until it is given up. Without that wait the delay \
             at 1e-4 is {}; with 12 words, which leave fewer holes, {}.",
            seconds(strong(QUASI_NO_WAIT, "4")?),
            seconds(strong(QUASI, "12")?)
        )
    } else {
        String::new()
    };
    Some(ClaimFinding::new(
        ClaimVerdict::of((worst / clean - 1.0).abs() <= 0.1, worst < 2.0 * clean),
        format!(
            "{} at 0, {} at 1e-4; the reliable mode's {}",
            seconds(clean),
            seconds(worst),
            seconds(reliable)
        ),
        comment,
    ))
}

fn tcp_delay(data: &Data) -> Option<ClaimFinding> {
    let stopped = |stop: &str| {
        let delay = |line| data.mean("stop", line, stop, "delay_mean_s");
        Some(delay(TCP)? / delay(RELIABLE)?)
    };
    let (early, late) = (stopped("5")?, stopped("300")?);
    in_each(data, MODES, &|view| {
        let (tcp, reliable) = (view.delay(TCP, WORST)?, view.delay(RELIABLE, WORST)?);
        let ratio = tcp / reliable;
        let (again, ours) = (view.repeated(TCP, WORST)?, view.repeated(RELIABLE, WORST)?);
        Some(ClaimFinding::new(
            ClaimVerdict::of(
                (1.5..=2.5).contains(&ratio) && again > ours,
                (1.0..=4.0).contains(&ratio),
            ),
            format!(
                "{ratio:.1} times ({}, reliable {})",
                seconds(tcp),
                seconds(reliable)
            ),
            if view.is_printed() {
                format!(
                    "TCP's mean delay is that of the writes that arrive before the simulation stops, and the paper does not say when it \
                     did: stopped after 5 s the ratio is {early:.1}, after 300 s {late:.1}. TCP sends {} again, the reliable mode {}: the number of retransmissions {}. TCP waits for its timer.",
                    kilobytes(again),
                    kilobytes(ours),
                    if again > ours {
                        "may be a cause"
                    } else {
                        "is not the cause"
                    }
                )
            } else {
                String::new()
            },
        ))
    })
}
