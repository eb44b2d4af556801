//! What the paper says of its modes beside TCP and UDP (section IV.F, Figures 8 to 11).

use super::experiments::{QUASI_NO_WAIT, TCP_QUICK, TCP_STUBBORN};
use super::reading::{
    ALL, HIGH, LOSSY, MODES, View, WORST, count, falls, in_each, kilobytes, percent, rate, seconds,
};
use super::tables::{BOTH, NACK, QUASI, RELIABLE, TCP, UDP};
use crate::claims::{Claim, Finding, Verdict};
use crate::data::Data;

const GOODPUT: &str = "section IV.F, Figure 8";
const DELAY: &str = "section IV.F, Figure 9";
const DELIVERED: &str = "section IV.F, Figure 10";
const OVERHEAD: &str = "section IV.F, Figure 11";

pub(super) const CLAIMS: [Claim; 20] = [
    Claim {
        id: "goodput-quasi",
        place: GOODPUT,
        says: "The quasi-reliable mode has a better goodput than the reliable mode.",
        criterion: "Reproduced if it is higher at every rate from 1e-5 on and nowhere 1 % lower; partly if it is at most rates from 1e-5 on.",
        see: &["modes-goodput", "strength-goodput"],
        check: |data| in_each(data, MODES, |view| better(view, QUASI)),
    },
    Claim {
        id: "goodput-reliable-drops",
        place: GOODPUT,
        says: "The reliable mode's goodput drops significantly as the error rate grows.",
        criterion: "Reproduced if it falls to less than half at 1e-4, partly if to less than 90 %.",
        see: &["modes-goodput"],
        check: |data| in_each(data, MODES, |view| drops(view, RELIABLE)),
    },
    Claim {
        id: "goodput-nack",
        place: GOODPUT,
        says: "The hybrid mode with NACKs alone performs better than the reliable mode.",
        criterion: "Reproduced if its goodput is higher at every rate from 1e-5 on and nowhere 1 % lower; partly if it is at most rates from 1e-5 on.",
        see: &["modes-goodput", "strength-goodput"],
        check: |data| in_each(data, MODES, |view| better(view, NACK)),
    },
    Claim {
        id: "goodput-nack-mack",
        place: GOODPUT,
        says: "The hybrid mode with NACKs and MACKs performs better than the reliable mode.",
        criterion: "Reproduced if its goodput is higher at every rate from 1e-5 on and nowhere 1 % lower; partly if it is at most rates from 1e-5 on.",
        see: &["modes-goodput", "strength-goodput"],
        check: |data| in_each(data, MODES, |view| better(view, BOTH)),
    },
    Claim {
        id: "goodput-tcp",
        place: GOODPUT,
        says: "TCP backs off significantly as the error rate grows.",
        criterion: "Reproduced if, at the highest rate at which it delivers half of the data, its goodput is less than a tenth of that at 0; partly if less than half.",
        see: &["modes-goodput"],
        check: |data| in_each(data, MODES, tcp_backs_off),
    },
    Claim {
        id: "goodput-udp-above",
        place: GOODPUT,
        says: "UDP has a better goodput than the reliable and the hybrid modes.",
        criterion: "Reproduced if UDP's is higher than that of all three at every rate above 0; partly if higher than the reliable mode's at most of them.",
        see: &["modes-goodput", "strength-goodput", "mack-goodput"],
        check: |data| in_each(data, MODES, udp_above),
    },
    Claim {
        id: "goodput-udp-drops",
        place: GOODPUT,
        says: "UDP's goodput drops as the error rate grows, for data are damaged.",
        criterion: "Reproduced if it is lower at each rate than at the one before, partly if lower at 1e-4 than at 0.",
        see: &["modes-goodput"],
        check: |data| {
            in_each(data, MODES, |view| {
                let all: Option<Vec<f64>> = ALL.iter().map(|x| view.goodput(UDP, x)).collect();
                let all = all?;
                let (first, last) = (*all.first()?, *all.last()?);
                Some(Finding {
                    verdict: Verdict::of(falls(&all), last < first),
                    figure: format!("{} at 1e-4", rate(last)),
                    comment: String::new(),
                })
            })
        },
    },
    Claim {
        id: "delay-reliable",
        place: DELAY,
        says: "At 1e-4 the reliable mode's delay is significantly higher than the hybrids'.",
        criterion: "Reproduced if it is at least twice that of both, partly if above both.",
        see: &["modes-delay", "strength-delay", "waits-delay"],
        check: |data| {
            let waiting = |wait| data.mean("waits", super::experiments::NEAR, wait, "delay_mean_s");
            let (short, long) = (waiting("50ms")?, waiting("2000ms")?);
            in_each(data, MODES, |view| {
                let delay = |line| view.delay(line, WORST);
                let (reliable, nack, both) = (delay(RELIABLE)?, delay(NACK)?, delay(BOTH)?);
                let worse = nack.max(both);
                Some(Finding {
                    verdict: Verdict::of(reliable >= 2.0 * worse, reliable > worse),
                    figure: format!(
                        "{}; NACK {}, NACK+MACK {}",
                        seconds(reliable),
                        seconds(nack),
                        seconds(both)
                    ),
                    comment: if view.is_printed() {
                        format!(
                            "NACK's delay is that of waiting for answers: what it asked for it waits for, for up to 2 s, and in vain if the request or its answer is \
                             lost. Where it waits for 50 ms its delay is {}, with 2 s {}.",
                            seconds(short),
                            seconds(long)
                        )
                    } else {
                        String::new()
                    },
                })
            })
        },
    },
    Claim {
        id: "delay-fewer-repeats",
        place: DELAY,
        says: "That is because the parity spares retransmissions.",
        criterion: "Reproduced if, at 1e-4, both hybrids send at most half of the reliable mode's octets again; partly if fewer.",
        see: &["modes-overhead", "strength-delay", "strength-overhead"],
        check: |data| in_each(data, MODES, fewer_repeats),
    },
    Claim {
        id: "delay-quasi-flat",
        place: DELAY,
        says: "The quasi-reliable mode has no extra delay, for it repeats nothing.",
        criterion: "Reproduced if its delay at 1e-4 is within 10 % of that at 0, partly if less than a tenth of the reliable mode's.",
        see: &["modes-delay", "strength-delay"],
        check: |data| in_each(data, MODES, |view| flat(view, QUASI)),
    },
    Claim {
        id: "delay-udp-flat",
        place: DELAY,
        says: "UDP has no extra delay, for it repeats nothing.",
        criterion: "Reproduced if its delay at 1e-4 is within 10 % of that at 0, partly if less than a tenth of the reliable mode's.",
        see: &["modes-delay"],
        check: |data| in_each(data, MODES, |view| flat(view, UDP)),
    },
    Claim {
        id: "delay-tcp",
        place: DELAY,
        says: "At 1e-4 TCP's delay is nearly double that of the reliable mode.",
        criterion: "Reproduced if the ratio is 1.5 to 2.5, partly if above.",
        see: &["modes-delay", "stop-delay"],
        check: tcp_delay,
    },
    Claim {
        id: "delivered-complete",
        place: DELIVERED,
        says: "The reliable mode and the hybrid with NACKs and MACKs deliver all data at every rate.",
        criterion: "Reproduced if every run of both is complete at every rate, partly if both deliver 99 %.",
        see: &["modes-delivered"],
        check: |data| in_each(data, MODES, complete),
    },
    Claim {
        id: "delivered-nack",
        place: DELIVERED,
        says: "The hybrid with NACKs alone starts losing data above 2.5e-5.",
        criterion: "Reproduced if it delivers 99.5 % up to 2.5e-5 and ever less above, less than 99.5 % at 1e-4; partly if it delivers less at 1e-4 than at 0.",
        see: &["modes-delivered", "strength-delivered"],
        check: |data| in_each(data, MODES, nack_loses),
    },
    Claim {
        id: "delivered-quasi",
        place: DELIVERED,
        says: "The quasi-reliable mode loses more than the hybrid with NACKs alone, and the more so the higher the rate.",
        criterion: "Reproduced if it loses more at each rate from 1e-5 on, and at 1e-4 more than at 1e-5; partly if more at 1e-4.",
        see: &["modes-delivered", "strength-delivered"],
        check: |data| {
            in_each(data, MODES, |view| {
                let lost = |line, x: &str| Some(1.0 - view.share(line, x)?);
                let pairs = view.pairs(HIGH, |_, x| Some((lost(QUASI, x)?, lost(NACK, x)?)))?;
                let (first, last) = (pairs.first()?, pairs.last()?);
                let all = count(&pairs, |quasi, nack| quasi > nack) == pairs.len();
                Some(Finding {
                    verdict: Verdict::of(all && last.1 > first.1, last.1 > last.2),
                    figure: format!("{} lost at 1e-4, NACK {}", percent(last.1), percent(last.2)),
                    comment: String::new(),
                })
            })
        },
    },
    Claim {
        id: "delivered-udp",
        place: DELIVERED,
        says: "UDP loses a share of the data at higher rates.",
        criterion: "Reproduced if it delivers less at each rate than at the one before, partly if less at 1e-4 than at 0.",
        see: &["modes-delivered"],
        check: |data| {
            in_each(data, MODES, |view| {
                let all: Option<Vec<f64>> = ALL.iter().map(|x| view.share(UDP, x)).collect();
                let all = all?;
                let last = *all.last()?;
                Some(Finding {
                    verdict: Verdict::of(falls(&all), last < *all.first()?),
                    figure: format!("{} lost at 1e-4", percent(1.0 - last)),
                    comment: String::new(),
                })
            })
        },
    },
    Claim {
        id: "delivered-tcp",
        place: DELIVERED,
        says: "TCP cannot deliver all data, for its connection times out in the end.",
        criterion: "Reproduced if it delivers less than 99 % at 1e-4 and a run in two at least gives up there; partly if it delivers less.",
        see: &["modes-delivered", "tcps-delivered"],
        check: |data| {
            in_each(data, MODES, |view| {
                let share = view.share(TCP, WORST)?;
                let gave_up = view.at(TCP, WORST, "gave_up")?;
                Some(Finding {
                    verdict: Verdict::of(share < 0.99 && gave_up >= 0.5, share < 0.99),
                    figure: format!("{} at 1e-4, {} gave up", percent(share), percent(gave_up)),
                    comment: String::new(),
                })
            })
        },
    },
    Claim {
        id: "overhead-hybrids",
        place: OVERHEAD,
        says: "Both hybrids have more overhead than the quasi-reliable and the reliable mode: parity and retransmissions.",
        criterion: "Reproduced if both have more than either at every rate; partly if one of them has at some rate.",
        see: &["modes-overhead", "strength-overhead"],
        check: |data| in_each(data, MODES, hybrids_cost),
    },
    Claim {
        id: "overhead-tcp",
        place: OVERHEAD,
        says: "All AeroTP modes have much less overhead than TCP NewReno.",
        criterion: "Reproduced if all have at most three quarters of TCP's at every rate at which TCP delivers 90 %, partly if all have less at some of them.",
        see: &["modes-overhead", "tcps-overhead"],
        check: tcp_overhead,
    },
    Claim {
        id: "hybrid-improves",
        place: "abstract, section V",
        says: "The hybrid modes improve throughput and delay in lossy conditions.",
        criterion: "Reproduced if the hybrid with NACKs and MACKs has a higher goodput and a lower delay than the reliable mode at every rate from 1e-5 on; partly \
            if at most.",
        see: &["modes-goodput", "modes-delay"],
        check: |data| {
            in_each(data, MODES, |view| {
                let goodput = |x: &str| view.ratio(BOTH, x, "goodput_bps");
                let delay = |x: &str| view.ratio(BOTH, x, "delay_mean_s");
                let pairs = view.pairs(HIGH, |_, x| Some((goodput(x)?, delay(x)?)))?;
                let better = count(&pairs, |goodput, delay| goodput > 1.0 && delay < 1.0);
                let (_, goodput, delay) = pairs.last()?;
                Some(Finding {
                    verdict: Verdict::of(better == pairs.len(), 2 * better > pairs.len()),
                    figure: format!(
                        "{goodput:.2} times the goodput, {delay:.3} of the delay at 1e-4"
                    ),
                    comment: String::new(),
                })
            })
        },
    },
];

/// Whether a mode's goodput is above the reliable mode's.
fn better(view: &View<'_>, line: &str) -> Option<Finding> {
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
    Some(Finding {
        verdict: Verdict::of(higher == high.len() && nowhere, 2 * higher > high.len()),
        figure: format!("{}, reliable {} at 1e-4", rate(*ours), rate(*reliable)),
        comment: if lower.is_empty() {
            String::new()
        } else {
            format!("Lower at {}.", lower.join(", "))
        },
    })
}

fn drops(view: &View<'_>, line: &str) -> Option<Finding> {
    let share = view.goodput(line, WORST)? / view.goodput(line, "0")?;
    Some(Finding {
        verdict: Verdict::of(share < 0.5, share < 0.9),
        figure: format!("to {} at 1e-4", percent(share)),
        comment: String::new(),
    })
}

fn tcp_backs_off(view: &View<'_>) -> Option<Finding> {
    let sound = |x: &&&str| view.share(TCP, x).is_some_and(|share| share >= 0.5);
    let highest = LOSSY.iter().rfind(sound)?;
    let share = view.goodput(TCP, highest)? / view.goodput(TCP, "0")?;
    Some(Finding {
        verdict: Verdict::of(share < 0.1, share < 0.5),
        figure: format!("to {} at {highest}", percent(share)),
        comment: String::new(),
    })
}

fn udp_above(view: &View<'_>) -> Option<Finding> {
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
    Some(Finding {
        verdict: Verdict::of(
            reliable == all && nack == all && both == all,
            2 * reliable > all,
        ),
        figure: format!("{} at 1e-4, NACK+MACK {}", rate(udp), rate(ours)),
        comment: if view.is_printed() {
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
    })
}

fn fewer_repeats(view: &View<'_>) -> Option<Finding> {
    let repeated = |line| view.repeated(line, WORST);
    let (reliable, nack, both) = (repeated(RELIABLE)?, repeated(NACK)?, repeated(BOTH)?);
    let more = nack.max(both);
    Some(Finding {
        verdict: Verdict::of(2.0 * more <= reliable, more < reliable),
        figure: format!(
            "{}; NACK {}, NACK+MACK {}",
            kilobytes(reliable),
            kilobytes(nack),
            kilobytes(both)
        ),
        comment: String::new(),
    })
}

fn flat(view: &View<'_>, line: &str) -> Option<Finding> {
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
    Some(Finding {
        verdict: Verdict::of((worst / clean - 1.0).abs() <= 0.1, worst < 0.1 * reliable),
        figure: format!("{} at 0, {} at 1e-4", seconds(clean), seconds(worst)),
        comment,
    })
}

fn tcp_delay(data: &Data) -> Option<Finding> {
    let stopped = |stop: &str| {
        let delay = |line| data.mean("stop", line, stop, "delay_mean_s");
        Some(delay(TCP)? / delay(RELIABLE)?)
    };
    let (early, late) = (stopped("5s")?, stopped("300s")?);
    in_each(data, MODES, |view| {
        let (tcp, reliable) = (view.delay(TCP, WORST)?, view.delay(RELIABLE, WORST)?);
        let ratio = tcp / reliable;
        Some(Finding {
            verdict: Verdict::of((1.5..=2.5).contains(&ratio), ratio > 2.5),
            figure: format!(
                "{ratio:.1} times ({}, reliable {})",
                seconds(tcp),
                seconds(reliable)
            ),
            comment: if view.is_printed() {
                format!(
                    "TCP's mean delay is that of the writes that arrive before the simulation stops, and the paper does not say when it \
                     did: stopped after 5 s the ratio is {early:.1}, after 300 s {late:.1}."
                )
            } else {
                String::new()
            },
        })
    })
}

fn complete(view: &View<'_>) -> Option<Finding> {
    let least = |name: &str| {
        let lines = [RELIABLE, BOTH].into_iter();
        let all = lines.flat_map(|line| ALL.iter().map(move |x| (line, x)));
        let all = all.map(|(line, x)| match name {
            "share" => view.share(line, x),
            _ => view.at(line, x, name),
        });
        let all: Option<Vec<f64>> = all.collect();
        all?.into_iter().reduce(f64::min)
    };
    let (done, share) = (least("completed")?, least("share")?);
    Some(Finding {
        verdict: Verdict::of(done >= 1.0, share >= 0.99),
        figure: format!(
            "{} of the runs, {} of the data at least",
            percent(done),
            percent(share)
        ),
        comment: String::new(),
    })
}

fn nack_loses(view: &View<'_>) -> Option<Finding> {
    let share = |x: &str| view.share(NACK, x);
    let (low, edge, worst) = (share("1e-5")?, share("2.5e-5")?, share(WORST)?);
    let above: Option<Vec<f64>> = ALL.iter().skip(4).map(|x| share(x)).collect();
    let clean = share("0")?;
    let comment = if view.is_printed() {
        let headers = view.at(NACK, WORST, "wire_loss.network_header")?;
        let lost = view.at(NACK, WORST, "residual_loss.lost")?;
        format!(
            "There is no edge in ours: whatever arrives without a header that can be read is lost to a mode that only asks for what it \
             has seen, at any rate ({} lost at 1e-5). At 1e-4, {headers:.1} packets a run had a damaged network header, and {lost:.1} \
             writes were lost with them.",
            percent(1.0 - low)
        )
    } else {
        String::new()
    };
    Some(Finding {
        verdict: Verdict::of(
            edge >= 0.995 && falls(&above?) && worst < 0.995,
            worst < clean,
        ),
        figure: format!(
            "{} lost at 2.5e-5, {} at 1e-4",
            percent(1.0 - edge),
            percent(1.0 - worst)
        ),
        comment,
    })
}

fn hybrids_cost(view: &View<'_>) -> Option<Finding> {
    let more = |line| {
        let pairs = view.pairs(ALL, |view, x| {
            let pure = view.overhead(QUASI, x)?.max(view.overhead(RELIABLE, x)?);
            Some((view.overhead(line, x)?, pure))
        });
        let rates: Vec<&str> = pairs?
            .into_iter()
            .filter(|(_, hybrid, pure)| hybrid > pure)
            .map(|(x, ..)| x)
            .collect();
        Some(rates)
    };
    let (nack, both) = (more(NACK)?, more(BOTH)?);
    let over_quasi = view.overhead(BOTH, WORST)? / view.overhead(QUASI, WORST)?;
    let over_reliable = view.overhead(BOTH, WORST)? / view.overhead(RELIABLE, WORST)?;
    let comment = if view.is_printed() {
        let weak = |line| view.data.mean("strength", line, "2", "overhead_bytes");
        format!(
            "Parity costs more than it saves only while few packets are damaged; then it spares the reliable mode's retransmissions. And what is not \
             delivered counts as overhead, of which the quasi-reliable mode has more. A code that corrects little is nearer to the paper's order: with 2 \
             words NACK+MACK has {} at 1e-4, the quasi-reliable mode {}, and the reliable mode without parity {}. Which experiment would bring the hybrids \
             above the reliable mode at high rates as well is not shown.",
            kilobytes(weak(BOTH)?),
            kilobytes(weak(QUASI)?),
            kilobytes(view.overhead(RELIABLE, WORST)?)
        )
    } else {
        String::new()
    };
    let all = ALL.len();
    Some(Finding {
        verdict: Verdict::of(
            nack.len() == all && both.len() == all,
            !(nack.is_empty() && both.is_empty()),
        ),
        figure: format!(
            "NACK more at {} of {all} rates, NACK+MACK at {}; NACK+MACK {over_quasi:.2} of quasi-reliable's, {over_reliable:.2} of reliable's at 1e-4",
            nack.len(),
            both.len()
        ),
        comment,
    })
}

fn tcp_overhead(data: &Data) -> Option<Finding> {
    in_each(data, MODES, |view| {
        let sound = |x: &&str| view.share(TCP, x).is_some_and(|share| share >= 0.9);
        let rates: Vec<&str> = ALL.iter().copied().filter(sound).collect();
        let most = |x: &str| {
            let modes = [RELIABLE, QUASI, NACK, BOTH].map(|line| view.overhead(line, x));
            modes
                .into_iter()
                .try_fold(0.0_f64, |most, mode| Some(most.max(mode?)))
        };
        let pairs = view.pairs(&rates, |view, x| Some((most(x)?, view.overhead(TCP, x)?)))?;
        let much = count(&pairs, |ours, tcp| ours <= 0.75 * tcp);
        let less = count(&pairs, |ours, tcp| ours < tcp);
        let (x, ours, tcp) = *pairs.last()?;
        let comment = if view.is_printed() {
            let at = |line, x| data.mean("tcps", line, x, "overhead_bytes");
            format!(
                "Less at {less} of {} rates, by a quarter or more at {much}. ns-3's TCP waits at least a second before it repeats. With a least timeout of 0.2 s, \
                 as long as the receiver may hold its acknowledgement, TCP's overhead at {x} is {}, and {} if it never gives up. Which timers the paper's TCP \
                 had it does not say.",
                pairs.len(),
                kilobytes(at(TCP_QUICK, x)?),
                kilobytes(at(TCP_STUBBORN, x)?)
            )
        } else {
            String::new()
        };
        Some(Finding {
            verdict: Verdict::of(much == pairs.len(), less > 0),
            figure: format!("{} at most, TCP {} at {x}", kilobytes(ours), kilobytes(tcp)),
            comment,
        })
    })
}
