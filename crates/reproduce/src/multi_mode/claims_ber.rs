//! What the paper says of the modes against the bit error rate (sections IV.B and IV.D, Figures 21-24).

use super::tables::{BER, QUASI, RELIABLE, TCP, UDP};
use crate::claims::{Claim, Finding, Verdict};
use crate::data::Data;

/// The highest rate, and those that are not 0.
const WORST: &str = "1e-4";
const LOSSY: [&str; 8] = [
    "1e-6", "5e-6", "1e-5", "2.5e-5", "3.5e-5", "5e-5", "7.5e-5", "1e-4",
];
/// Below the rate that the paper names.
const LOW: [&str; 5] = ["0", "1e-6", "5e-6", "1e-5", "2.5e-5"];

const GOODPUT: &str = "goodput_bps";
const DELAY: &str = "delay_mean_s";
const DELIVERED: &str = "delivered_bytes";
const OFFERED: &str = "offered_bytes";
const OVERHEAD: &str = "overhead_bytes";

const GOODPUT_PLACE: &str = "section IV.D, Figure 21";
const DELAY_PLACE: &str = "section IV.D, Figure 22";
const DELIVERED_PLACE: &str = "section IV.D, Figure 23";
const OVERHEAD_PLACE: &str = "section IV.D, Figure 24";

pub(super) const CLAIMS: [Claim; 15] = [
    Claim {
        id: "arq-complete",
        place: "section IV.B",
        says: "Given time, the reliable mode brings every lost packet through.",
        criterion: "Reproduced if every run at every rate completed, partly if 95 % did.",
        see: &[],
        check: arq_complete,
    },
    Claim {
        id: "goodput-reliable",
        place: GOODPUT_PLACE,
        says: "AeroTP's reliable mode performs much better than TCP.",
        criterion: "Reproduced if its goodput is at least twice TCP's at every rate from 1e-5 on and nowhere \
            1 % lower; partly if it is higher at most of the rates above 0.",
        see: &[],
        check: goodput_reliable,
    },
    Claim {
        id: "goodput-tcp-backs-off",
        place: GOODPUT_PLACE,
        says: "TCP backs off substantially as the bit error rate grows.",
        criterion: "Reproduced if TCP's goodput at 2.5e-5, where it still delivers nearly all, is at most a \
            tenth of that at 0; partly if half.",
        see: &[],
        check: tcp_backs_off,
    },
    Claim {
        id: "goodput-tcp-unpredictable",
        place: GOODPUT_PLACE,
        says: "TCP's goodput becomes highly unpredictable, as its error bars show.",
        criterion: "Reproduced if, at some rate where TCP delivers at least half, TCP's interval is wider than 10 % of its mean and five times as \
            wide, relative to the mean, as the reliable mode's; partly if twice as wide.",
        see: &[],
        check: tcp_unpredictable,
    },
    Claim {
        id: "delay-tcp",
        place: DELAY_PLACE,
        says: "TCP's delay grows by three orders of magnitude up to 1e-4.",
        criterion: "Reproduced if the growth from 0 to 1e-4 is 2.5 to 3.5 orders, partly if more.",
        see: &[],
        check: |data| {
            let orders = growth(data, TCP)?;
            Some(Finding {
                verdict: Verdict::of((2.5..=3.5).contains(&orders), orders > 3.5),
                figure: format!("{orders:.1} orders"),
                comment: "The printed sentence is garbled: it also has the word \"doubles\"."
                    .to_owned(),
            })
        },
    },
    Claim {
        id: "delay-reliable",
        place: DELAY_PLACE,
        says: "The reliable mode's delay grows by less than one order of magnitude.",
        criterion: "Reproduced below one order, partly below one and a half.",
        see: &[],
        check: delay_reliable,
    },
    Claim {
        id: "delivered-low-rates",
        place: DELIVERED_PLACE,
        says: "Below 3.5e-5, TCP and AeroTP both deliver the full 1 MB.",
        criterion: "Reproduced if both deliver 99.9 % at each rate below, partly if 90 %.",
        see: &[],
        check: |data| {
            let least = |line| least_share(data, line, &LOW);
            let (tcp, aerotp) = (least(TCP)?, least(RELIABLE)?);
            let both = tcp.min(aerotp);
            Some(Finding {
                verdict: Verdict::of(both >= 0.999, both >= 0.9),
                figure: format!("TCP {}, AeroTP {} at least", percent(tcp), percent(aerotp)),
                comment: "TCP falls short where it gives up, or is cut off at 300 s.".to_owned(),
            })
        },
    },
    Claim {
        id: "delivered-tcp-drops",
        place: DELIVERED_PLACE,
        says: "Above 3.5e-5, what TCP delivers falls rapidly.",
        criterion: "Reproduced if TCP delivers less than half from 5e-5 on, and ever less; partly if less \
            than half at 1e-4.",
        see: &[],
        check: |data| {
            let share = |x| least_share(data, TCP, &[x]);
            let (first, second, last) = (share("5e-5")?, share("7.5e-5")?, share(WORST)?);
            let rapid = first < 0.5 && second < first && last < second;
            Some(Finding {
                verdict: Verdict::of(rapid, last < 0.5),
                figure: format!("{} at 5e-5, {} at 1e-4", percent(first), percent(last)),
                comment: String::new(),
            })
        },
    },
    Claim {
        id: "delivered-reliable",
        place: DELIVERED_PLACE,
        says: "At the highest rates, AeroTP's reliable mode still delivers nearly all.",
        criterion: "Reproduced if it delivers 99 % at each rate from 5e-5 on, partly if 90 %.",
        see: &[],
        check: |data| {
            let share = least_share(data, RELIABLE, &["5e-5", "7.5e-5", WORST])?;
            Some(Finding {
                verdict: Verdict::of(share >= 0.99, share >= 0.9),
                figure: format!("{} at least", percent(share)),
                comment: String::new(),
            })
        },
    },
    Claim {
        id: "delivered-udp",
        place: DELIVERED_PLACE,
        says: "UDP loses a share that grows with the bit error rate.",
        criterion: "Reproduced if UDP delivers less at each rate than at the one before, partly if less at \
            1e-4 than at 0.",
        see: &[],
        check: |data| {
            let shares = shares(data, UDP)?;
            let falls = shares.windows(2).all(|pair| pair[1] < pair[0]);
            let (first, last) = (*shares.first()?, *shares.last()?);
            Some(Finding {
                verdict: Verdict::of(falls, last < first),
                figure: format!("{} lost at 1e-4", percent(1.0 - last)),
                comment: String::new(),
            })
        },
    },
    Claim {
        id: "delivered-quasi",
        place: DELIVERED_PLACE,
        says: "The quasi-reliable mode loses a much smaller share than UDP.",
        criterion: "Reproduced if it loses at most a quarter of what UDP loses at each rate above 0, partly \
            if less than UDP.",
        see: &[],
        check: |data| {
            let (udp, quasi) = (shares(data, UDP)?, shares(data, QUASI)?);
            let pairs = || {
                udp.iter()
                    .zip(&quasi)
                    .skip(1)
                    .map(|(u, q)| (1.0 - u, 1.0 - q))
            };
            let worst = 1.0 - *quasi.last()?;
            let headers = data.mean(BER, QUASI, WORST, "wire_loss.network_header")?;
            Some(Finding {
                verdict: Verdict::of(
                    pairs().all(|(u, q)| q <= u / 4.0),
                    pairs().all(|(u, q)| q < u),
                ),
                figure: format!("{} lost at 1e-4", percent(worst)),
                comment: format!(
                    "With 32 words. At 1e-4, {headers:.0} packets a run fell to damaged headers of the network \
                     layer, which the transport's parity does not cover."
                ),
            })
        },
    },
    Claim {
        id: "overhead-reliable",
        place: OVERHEAD_PLACE,
        says: "The reliable mode's advantage comes with much lower overhead than TCP's.",
        criterion: "Reproduced if its overhead is at most three quarters of TCP's at every rate at which TCP \
            delivers 90 %, partly if it is lower at every one.",
        see: &[],
        check: overhead_reliable,
    },
    Claim {
        id: "overhead-quasi",
        place: OVERHEAD_PLACE,
        says: "The quasi-reliable mode costs significant overhead.",
        criterion: "Reproduced if, without bit errors, it costs at least one and a half times the reliable \
            mode's overhead, partly if more than it.",
        see: &[],
        check: |data| {
            let overhead = |line| data.mean(BER, line, "0", OVERHEAD);
            let (quasi, reliable) = (overhead(QUASI)?, overhead(RELIABLE)?);
            Some(Finding {
                verdict: Verdict::of(quasi >= 1.5 * reliable, quasi > reliable),
                figure: format!("{:.0} kB, reliable {:.0} kB", quasi / 1e3, reliable / 1e3),
                comment: "With 32 words; the overhead follows from their number.".to_owned(),
            })
        },
    },
    Claim {
        id: "delay-quasi",
        place: OVERHEAD_PLACE,
        says: "The quasi-reliable mode's delay does not grow with the bit error rate.",
        criterion: "Reproduced if the delay at 1e-4 is within 5 % of that at 0, partly if within 50 %.",
        see: &[],
        check: |data| {
            let delay = |x| data.mean(BER, QUASI, x, DELAY);
            let (clean, worst) = (delay("0")?, delay(WORST)?);
            let grown = worst / clean - 1.0;
            Some(Finding {
                verdict: Verdict::of(grown <= 0.05, grown <= 0.5),
                figure: format!("{:+.1} %, from {:.2} ms", 100.0 * grown, clean * 1e3),
                comment: "Data behind a hole wait until it is given up, before they are delivered in order."
                    .to_owned(),
            })
        },
    },
    Claim {
        id: "advantage",
        place: "abstract, section V",
        says: "On a lossy link AeroTP performs better than TCP and UDP.",
        criterion: "Reproduced if the reliable mode delivers at least what TCP and UDP do at each rate above 0 \
            with a higher goodput than TCP from 5e-6 on; partly if it delivers at least as much.",
        see: &[],
        check: |data| {
            let (tcp, udp) = (shares(data, TCP)?, shares(data, UDP)?);
            let reliable = shares(data, RELIABLE)?;
            let others = tcp.iter().zip(&udp).map(|(tcp, udp)| tcp.max(*udp));
            let more = reliable
                .iter()
                .zip(others)
                .all(|(ours, other)| *ours >= other);
            let ratios = ratios(data, &LOSSY[1..])?;
            let faster = ratios.iter().all(|(_, ratio)| *ratio > 1.0);
            Some(Finding {
                verdict: Verdict::of(more && faster, more),
                figure: format!(
                    "{} at 1e-4; TCP {}, UDP {}",
                    percent(*reliable.last()?),
                    percent(*tcp.last()?),
                    percent(*udp.last()?)
                ),
                comment: String::new(),
            })
        },
    },
];

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// The share of the data that a line delivers on average, at 0 and every rate above.
fn shares(data: &Data, line: &str) -> Option<Vec<f64>> {
    let all = core::iter::once("0").chain(LOSSY);
    all.map(|x| least_share(data, line, &[x])).collect()
}

/// The least of those at some rates.
fn least_share(data: &Data, line: &str, rates: &[&str]) -> Option<f64> {
    let shares = rates.iter().map(|x| {
        let offered = data.mean(BER, line, x, OFFERED)?;
        Some(data.mean(BER, line, x, DELIVERED)? / offered)
    });
    let shares: Vec<f64> = shares.collect::<Option<_>>()?;
    shares.into_iter().reduce(f64::min)
}

/// The reliable mode's goodput over TCP's, by rate.
fn ratios<'a>(data: &Data, rates: &[&'a str]) -> Option<Vec<(&'a str, f64)>> {
    let ratio = |x| {
        let tcp = data.mean(BER, TCP, x, GOODPUT)?;
        Some(data.mean(BER, RELIABLE, x, GOODPUT)? / tcp)
    };
    rates.iter().map(|&x| Some((x, ratio(x)?))).collect()
}

/// Orders of magnitude from the delay at 0 to that at the highest rate.
fn growth(data: &Data, line: &str) -> Option<f64> {
    let delay = |x| data.mean(BER, line, x, DELAY);
    Some((delay(WORST)? / delay("0")?).log10())
}

fn arq_complete(data: &Data) -> Option<Finding> {
    let done = core::iter::once("0")
        .chain(LOSSY)
        .map(|x| data.mean(BER, RELIABLE, x, "completed"));
    let done: Vec<f64> = done.collect::<Option<_>>()?;
    let least = done.into_iter().reduce(f64::min)?;
    Some(Finding {
        verdict: Verdict::of(least >= 1.0, least >= 0.95),
        figure: format!("{} of the runs at least", percent(least)),
        comment: String::new(),
    })
}

fn goodput_reliable(data: &Data) -> Option<Finding> {
    let ratios = ratios(data, &LOSSY)?;
    // The goodput of a run that delivers one block of writes says nothing: those rates are left out.
    let sound = |x: &str| least_share(data, TCP, &[x]).is_some_and(|share| share >= 0.5);
    let sound: Vec<_> = ratios.iter().filter(|(x, _)| sound(x)).copied().collect();
    let from = |x: &str| {
        sound
            .iter()
            .skip_while(|(known, _)| *known != x)
            .copied()
            .collect()
    };
    let high: Vec<(&str, f64)> = from("1e-5");
    let twice = !high.is_empty() && high.iter().all(|(_, ratio)| *ratio >= 2.0);
    let nowhere = sound.iter().all(|(_, ratio)| *ratio >= 0.99);
    let better = sound.iter().filter(|(_, ratio)| *ratio > 1.0).count();
    let (x, ratio) = *sound.last()?;
    Some(Finding {
        verdict: Verdict::of(twice && nowhere, 2 * better > sound.len()),
        figure: format!("{ratio:.0} times TCP's at {x}"),
        comment: "Judged at the rates where TCP delivers at least half: the goodput of a run that delivers a \
            block or two has no meaning."
            .to_owned(),
    })
}

fn tcp_backs_off(data: &Data) -> Option<Finding> {
    let goodput = |x| data.mean(BER, TCP, x, GOODPUT);
    let (clean, lossy) = (goodput("0")?, goodput("2.5e-5")?);
    let share = lossy / clean;
    Some(Finding {
        verdict: Verdict::of(share <= 0.1, share <= 0.5),
        figure: format!("{:.3} Mbit/s of {:.3}", lossy / 1e6, clean / 1e6),
        comment: String::new(),
    })
}

fn tcp_unpredictable(data: &Data) -> Option<Finding> {
    let relative = |line, x| {
        let summary = data.at(BER, line, x, GOODPUT)?;
        Some(summary.ci95? / summary.mean?)
    };
    // Where most runs die early, the goodput of what is left has no meaning, and its interval neither.
    let sound = |x: &&str| least_share(data, TCP, &[*x]).is_some_and(|share| share >= 0.5);
    let rates = LOSSY.into_iter().filter(sound);
    let widths = rates.map(|x| Some((x, relative(TCP, x)?, relative(RELIABLE, x)?)));
    let widths: Vec<(&str, f64, f64)> = widths.collect::<Option<_>>()?;
    let wide = |times: f64| {
        let mut widths = widths.iter();
        widths.any(|(_, tcp, reliable)| *tcp > 0.1 && *tcp >= times * reliable)
    };
    let most = widths.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(Finding {
        verdict: Verdict::of(wide(5.0), wide(2.0)),
        figure: format!("± {} at {}", percent(most.1), most.0),
        comment: format!("The reliable mode's there: ± {}.", percent(most.2)),
    })
}

fn delay_reliable(data: &Data) -> Option<Finding> {
    let (ours, tcp) = (growth(data, RELIABLE)?, growth(data, TCP)?);
    let parity = growth(data, "AeroTP reliable 32 words")?;
    let bound = data.mean(BER, RELIABLE, WORST, "arq_bound_bps")?;
    Some(Finding {
        verdict: Verdict::of(ours < 1.0, ours < 1.5),
        figure: format!("{ours:.1} orders, TCP {tcp:.1}"),
        comment: format!(
            "At 1e-4 the link carries {:.2} Mbit/s at most if damaged packets are dropped, and the source sends \
             4.416: the queue grows, whatever the acknowledgements. With 32 words of parity the same mode grows \
             by {parity:.1} orders.",
            bound / 1e6
        ),
    })
}

fn overhead_reliable(data: &Data) -> Option<Finding> {
    let overhead = |line, x| data.mean(BER, line, x, OVERHEAD);
    let rates: Vec<&str> = core::iter::once("0")
        .chain(LOSSY)
        .filter(|x| least_share(data, TCP, &[x]).is_some_and(|share| share >= 0.9))
        .collect();
    let pairs = rates
        .iter()
        .map(|&x| Some((x, overhead(RELIABLE, x)?, overhead(TCP, x)?)));
    let pairs: Vec<(&str, f64, f64)> = pairs.collect::<Option<_>>()?;
    let lower = |share: f64| {
        pairs
            .iter()
            .filter(|(_, ours, tcp)| *ours < share * tcp)
            .count()
    };
    let (x, ours, tcp) = *pairs.last()?;
    Some(Finding {
        verdict: Verdict::of(lower(0.75) == pairs.len(), lower(1.0) == pairs.len()),
        figure: format!("{:.0} kB, TCP {:.0} kB at {x}", ours / 1e3, tcp / 1e3),
        comment: format!(
            "Lower at {} of {} rates, by a quarter or more at {}. Where TCP gives up, it also stops costing \
             anything.",
            lower(1.0),
            pairs.len(),
            lower(0.75)
        ),
    })
}
