//! The paper's claims about what its modes deliver and cost beside TCP and UDP (section IV.F, Figures 10
//! and 11).

use super::experiments::{TCP_FREE, TCP_QUICK, TCP_STUBBORN};
use super::reading::{ALL, HIGH, MODES, View, WORST, count, falls, kilobytes, percent, under};
use super::tables::{BOTH, NACK, QUASI, RELIABLE, TCP, UDP};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::reading::FULL;

const DELIVERED: &str = "section IV.F, Figure 10";
const OVERHEAD: &str = "section IV.F, Figure 11";

pub(super) const CLAIMS: [PaperClaim; 8] = [
    PaperClaim {
        id: "delivered-complete",
        place: DELIVERED,
        says: "The reliable mode and the hybrid with NACKs and MACKs deliver all data at every rate.",
        criterion: "Reproduced if every run of both is complete at every rate, partly if both deliver 99 %.",
        see: &["modes-delivered"],
        check: under!(MODES, complete),
    },
    PaperClaim {
        id: "delivered-nack",
        place: DELIVERED,
        says: "The hybrid with NACKs alone starts losing data above 2.5e-5.",
        criterion: "Reproduced if it delivers 99.9 % at each rate up to 2.5e-5 and ever less above, less than 99.9 % at 1e-4; partly if it delivers less at 1e-4 than at 0.",
        see: &["modes-delivered", "strength-delivered"],
        check: under!(MODES, nack_loses),
    },
    PaperClaim {
        id: "delivered-quasi",
        place: DELIVERED,
        says: "The quasi-reliable mode loses more than the hybrid with NACKs alone, and the more so the higher the rate.",
        criterion: "Reproduced if it loses more at each rate from 1e-5 on, and at 1e-4 more than at 1e-5; partly if more at 1e-4.",
        see: &["modes-delivered", "strength-delivered"],
        check: under!(MODES, |view| {
            let lost = |line, x: &str| Some(1.0 - view.share(line, x)?);
            let pairs = view.pairs(HIGH, |_, x| Some((lost(QUASI, x)?, lost(NACK, x)?)))?;
            let (first, last) = (pairs.first()?, pairs.last()?);
            let all = count(&pairs, |quasi, nack| quasi > nack) == pairs.len();
            Some(ClaimFinding::bare(
                ClaimVerdict::of(all && last.1 > first.1, last.1 > last.2),
                format!("{} lost at 1e-4, NACK {}", percent(last.1), percent(last.2)),
            ))
        }),
    },
    PaperClaim {
        id: "delivered-udp",
        place: DELIVERED,
        says: "UDP loses a share of the data at higher rates.",
        criterion: "Reproduced if it delivers less at each rate than at the one before, partly if less at 1e-4 than at 0.",
        see: &["modes-delivered"],
        check: under!(MODES, |view| {
            let all: Option<Vec<f64>> = ALL.iter().map(|x| view.share(UDP, x)).collect();
            let all = all?;
            let last = *all.last()?;
            Some(ClaimFinding::bare(
                ClaimVerdict::of(falls(&all), last < *all.first()?),
                format!("{} lost at 1e-4", percent(1.0 - last)),
            ))
        }),
    },
    PaperClaim {
        id: "delivered-tcp",
        place: DELIVERED,
        says: "TCP cannot deliver all data, for each loss shrinks its window, and its connection times out in the end.",
        criterion: "Reproduced if at 1e-4 it delivers less than 99 %, a run in two at least gives up, and one without congestion control \
            delivers 99 %; partly if it delivers less than 99 %.",
        see: &["modes-delivered", "tcps-delivered"],
        check: under!(MODES, |view| {
            let share = view.share(TCP, WORST)?;
            let gave_up = view.at(TCP, WORST, "gave_up")?;
            let of = |name| view.data.mean("tcps", TCP_FREE, WORST, name);
            let free = of("delivered_bytes")? / of("offered_bytes")?;
            Some(ClaimFinding::new(
                ClaimVerdict::of(share < 0.99 && gave_up >= 0.5 && free >= 0.99, share < 0.99),
                format!("{} at 1e-4, {} gave up", percent(share), percent(gave_up)),
                if view.is_printed() {
                    format!(
                        "Without congestion control, and with SACK, it delivers {} at 1e-4: the window is a part of the cause. The other is \
                         the timer, which doubles whenever a repeat is lost, as 70 % are there, and ends the connection after six.",
                        percent(free)
                    )
                } else {
                    String::new()
                },
            ))
        }),
    },
    PaperClaim {
        id: "overhead-hybrids",
        place: OVERHEAD,
        says: "Both hybrids have more overhead than the quasi-reliable and the reliable mode: parity and retransmissions.",
        criterion: "Reproduced if both have more than either at every rate; partly if NACK+MACK has at half of the rates.",
        see: &["modes-overhead", "strength-overhead"],
        check: under!(MODES, hybrids_cost),
    },
    PaperClaim {
        id: "overhead-tcp",
        place: OVERHEAD,
        says: "All AeroTP modes have much less overhead than TCP NewReno.",
        criterion: "Reproduced if all have at most three quarters of TCP's at every rate at which TCP delivers 90 %, partly if all have less at some of them.",
        see: &["modes-overhead", "tcps-overhead"],
        check: under!(MODES, tcp_overhead),
    },
    PaperClaim {
        id: "hybrid-improves",
        place: "abstract, section V",
        says: "The hybrid modes improve throughput and delay in lossy conditions.",
        criterion: "Reproduced if the hybrid with NACKs and MACKs has a higher goodput and a lower delay than the reliable mode at every rate from 1e-5 on; partly \
            if at most.",
        see: &["modes-goodput", "modes-delay"],
        check: under!(MODES, |view| {
            let goodput = |x: &str| view.ratio(BOTH, x, "goodput_bps");
            let delay = |x: &str| view.ratio(BOTH, x, "delay_mean_s");
            let pairs = view.pairs(HIGH, |_, x| Some((goodput(x)?, delay(x)?)))?;
            let better = count(&pairs, |goodput, delay| goodput > 1.0 && delay < 1.0);
            let (_, goodput, delay) = pairs.last()?;
            Some(ClaimFinding::bare(
                ClaimVerdict::of(better == pairs.len(), 2 * better > pairs.len()),
                format!("{goodput:.2} times the goodput, {delay:.3} of the delay at 1e-4"),
            ))
        }),
    },
];

fn complete(view: &View<'_>) -> Option<ClaimFinding> {
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
    Some(ClaimFinding::bare(
        ClaimVerdict::of(done >= 1.0, share >= 0.99),
        format!(
            "{} of the runs, {} of the data at least",
            percent(done),
            percent(share)
        ),
    ))
}

fn nack_loses(view: &View<'_>) -> Option<ClaimFinding> {
    let share = |x: &str| view.share(NACK, x);
    let (low, edge, worst) = (share("1e-5")?, share("2.5e-5")?, share(WORST)?);
    let below = view.least_share(NACK, &ALL[..5])?;
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
    Some(ClaimFinding::new(
        ClaimVerdict::of(
            below >= FULL && falls(&above?) && worst < FULL,
            worst < clean,
        ),
        format!(
            "{} lost at 2.5e-5, {} at 1e-4",
            percent(1.0 - edge),
            percent(1.0 - worst)
        ),
        comment,
    ))
}

fn hybrids_cost(view: &View<'_>) -> Option<ClaimFinding> {
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
        let words = |line, x| view.data.mean("strength", line, x, "overhead_bytes");
        let same = "AeroTP reliable, same words";
        let pure = words(same, "0")?.max(words(QUASI, "0")?);
        let order = if words(BOTH, "0")? > pure {
            "which is the paper's order"
        } else {
            "which is not the paper's order either"
        };
        let (nack_bare, reliable_bare) = (words(NACK, "0")?, words(same, "0")?);
        let side = if nack_bare < reliable_bare {
            "below"
        } else {
            "above"
        };
        format!(
            "Parity costs more than it saves only while few packets are damaged; then it spares the reliable mode's retransmissions. And what is not \
             delivered counts as overhead, of which the quasi-reliable mode has more. It is the code's strength: at 1e-4 without parity NACK+MACK \
             has {}, the reliable mode {} and the quasi-reliable mode {}, {order}; with 2 words {}, {} (the reliable mode with the same) and {}. NACK \
             alone stays {side} the reliable mode ({} without parity): it does not send again what it never saw.",
            kilobytes(words(BOTH, "0")?),
            kilobytes(words(same, "0")?),
            kilobytes(words(QUASI, "0")?),
            kilobytes(words(BOTH, "2")?),
            kilobytes(words(same, "2")?),
            kilobytes(words(QUASI, "2")?),
            kilobytes(nack_bare)
        )
    } else {
        String::new()
    };
    let all = ALL.len();
    Some(ClaimFinding::new(
        ClaimVerdict::of(
            nack.len() == all && both.len() == all,
            2 * both.len() >= all,
        ),
        format!(
            "NACK more at {} of {all} rates, NACK+MACK at {}; NACK+MACK {over_quasi:.2} of quasi-reliable's, {over_reliable:.2} of reliable's at 1e-4",
            nack.len(),
            both.len()
        ),
        comment,
    ))
}

fn tcp_overhead(view: &View<'_>) -> Option<ClaimFinding> {
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
        let at = |line, x| view.data.mean("tcps", line, x, "overhead_bytes");
        format!(
            "Less at {less} of {} rates, by a quarter or more at {much}. ns-3's TCP waits at least a second before it repeats. With a least timeout of 0.2 s, \
             as long as the receiver may hold its acknowledgement, TCP's overhead at {x} is {}, and {} if it never gives up: ns-3's window stays at one segment \
             while the one before is repaired by a timeout, in vain, and RFC 5681's does not. Which timers the paper's TCP had it does not say.",
            pairs.len(),
            kilobytes(at(TCP_QUICK, x)?),
            kilobytes(at(TCP_STUBBORN, x)?)
        )
    } else {
        String::new()
    };
    Some(ClaimFinding::new(
        ClaimVerdict::of(much == pairs.len(), less > 0),
        format!("{} at most, TCP {} at {x}", kilobytes(ours), kilobytes(tcp)),
        comment,
    ))
}
