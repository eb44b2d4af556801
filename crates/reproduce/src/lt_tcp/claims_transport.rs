//! The slides' claims about transports over the link layers.

use super::claims_link::{GOODPUT_FITTED, WINDOW_FITTED, farthest};
use super::families::{
    BOTH_WAYS_HARQ, BOTH_WAYS_LT, BOTH_WAYS_TCP, LIGHT, LT_ARQ, LT_HARQ, PERCENT, SINGLE, SMALL,
    TCP_ARQ, TCP_HARQ, WIDE,
};
use super::published::{PUBLISHED_GOODPUT, PUBLISHED_RESIDUAL};
use super::view::{
    LOSSY, WORST, at, half, list, megabits, millis, order, over, percents, published,
};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;
use core::fmt::Write as _;

const GOODPUT: &str = "goodput_bps";
const ROUND_TRIP: &str = "link.round_trip_s";

pub(super) const CLAIMS: [PaperClaim; 8] = [
    PaperClaim {
        id: "table-goodput",
        place: "Table I",
        says: "LT-TCP over LL-HARQ, ten flows, four hops: receiver goodput of 7.58, 6.16, 4.81, 3.38 and 1.68 Mbit/s at 10 to 50 %.",
        criterion: "Reproduced within 10 % at each of them, above or below; partly at most of them.",
        see: &["chain-goodput", "light-goodput", "light-latency"],
        check: table_goodput,
    },
    PaperClaim {
        id: "goodput-interval",
        place: "Table I",
        says: "The intervals of the goodput are narrow: at most 0.06 Mbit/s to either side.",
        criterion: "Reproduced if ours are within 0.1 Mbit/s at every error rate, partly within 0.3 Mbit/s.",
        see: &["chain-goodput"],
        check: |data| {
            let halves = PERCENT.iter();
            let halves: Option<Vec<f64>> = halves
                .map(|&percent| half(data, "chain", LT_HARQ, percent, GOODPUT))
                .collect();
            let halves = halves?;
            let widest = halves.iter().copied().fold(0.0, f64::max);
            let found = ClaimFinding::new(
ClaimVerdict::of(widest <= 0.1e6, widest <= 0.3e6),
format!("± {}", megabits(&halves)),
"Runs of 100 s from empty queues; the slides do not say how many runs of what length theirs are.".to_owned(),
);
            Some(found.given("an interval's width follows from the number and length of the runs, which are ours."))
        },
    },
    PaperClaim {
        id: "round-trip",
        place: "slide \"End-end delay\"",
        says: "With LL-ARQ the end-to-end delay over multiple hops is unacceptably high.",
        criterion: "Reproduced if TCP-SACK's round trip over LL-ARQ is more than twice that over LL-HARQ at 30, 40 and 50 %, partly if it is longer.",
        see: &["chain-round-trip", "hop-round-trip"],
        check: |data| {
            let arq = over(data, "chain", TCP_ARQ, &[30, 40, WORST], ROUND_TRIP)?;
            let harq = over(data, "chain", TCP_HARQ, &[30, 40, WORST], ROUND_TRIP)?;
            let pairs = || arq.iter().zip(&harq);
            let found = ClaimFinding::new(
ClaimVerdict::of(
                    pairs().all(|(arq, harq)| arq > &(2.0 * harq)),
                    pairs().all(|(arq, harq)| arq > harq),
                ),
format!("{}, LL-HARQ {}", millis(&arq), millis(&harq)),
"At 30, 40 and 50 %, waiting in the queues above the links included; errors on the way there alone.".to_owned(),
);
            Some(found.given(
                "it follows from the latencies of a hop, to which both link layers were fitted.",
            ))
        },
    },
    PaperClaim {
        id: "sack-order",
        place: "slide \"End-end delay\"; slide \"PER v/s TCP goodput\"",
        says: "LL-ARQ's high service time translates to low transport goodput: TCP-SACK does better over LL-HARQ, four hops.",
        criterion: "Reproduced if TCP-SACK's goodput is higher over LL-HARQ at every error rate above 0, by more than both intervals together, partly at most.",
        see: &["chain-goodput", "chain-round-trip", "both-ways-goodput"],
        check: sack_order,
    },
    PaperClaim {
        id: "best-together",
        place: "slide \"Summary\"",
        says: "LT-TCP with LL-HARQ does better than TCP-SACK with LL-ARQ.",
        criterion: "Reproduced if its goodput over four hops is higher at every error rate above 0, by more than both intervals together, partly at most; with an LL-ARQ whose \
            window was not fitted to the slides (512 frames).",
        see: &["chain-goodput", "both-ways-goodput"],
        check: best_together,
    },
    PaperClaim {
        id: "one-hop-sack",
        place: "slide \"Achieving balance\"",
        says: "Over a single hop LL-HARQ's residual loss is low enough for TCP-SACK.",
        criterion: "Reproduced if TCP-SACK gets 0.9 of the link goodput over LL-HARQ and one hop at every error rate, partly 0.8.",
        see: &["hop-goodput", "hop-link-goodput"],
        check: |data| share_of_link(data, "hop", TCP_HARQ),
    },
    PaperClaim {
        id: "four-hops-sack",
        place: "slide \"Achieving balance\"",
        says: "Over multiple hops the residual loss is too large for TCP-SACK; LT-TCP handles it.",
        criterion: "Reproduced if over four hops and LL-HARQ LT-TCP has more than 1.2 times TCP-SACK's goodput at 40 and at 50 %, partly if more at 50 %.",
        see: &["chain-goodput", "chain-residual"],
        check: |data| {
            let rates = &[40, WORST];
            let lt = over(data, "chain", LT_HARQ, rates, GOODPUT)?;
            let tcp = over(data, "chain", TCP_HARQ, rates, GOODPUT)?;
            let ratios: Vec<f64> = lt.iter().zip(&tcp).map(|(lt, tcp)| lt / tcp).collect();
            Some(ClaimFinding::new(
                ClaimVerdict::of(
                    ratios.iter().all(|ratio| *ratio > 1.2),
                    ratios.last().is_some_and(|ratio| *ratio > 1.0),
                ),
                format!("{} times at 40 and 50 %", list(&ratios, 1.0, 2)),
                {
                    let ours = over(data, "chain", TCP_HARQ, rates, "link.residual_loss")?;
                    let table = published(&PUBLISHED_RESIDUAL, rates)?;
                    let less = ours.iter().zip(&table).all(|(ours, table)| ours < table);
                    format!(
                        "Our LL-HARQ leaves {} there, the slides' {}: that is {} on TCP-SACK.",
                        percents(&ours),
                        percents(&table),
                        if less { "easier" } else { "no easier" }
                    )
                },
            ))
        },
    },
    PaperClaim {
        id: "overcomes-residual",
        place: "Table I, caption",
        says: "LT-TCP overcomes the link's residual loss: its goodput is 0.97, 0.97, 0.97, 0.96, 0.90 and 0.70 of the link's.",
        criterion: "Reproduced if ours is at least 0.9 at 0 to 40 % and 0.65 at 50 %, where at least half of the slides' residual loss has to be overcome; partly if 0.6 throughout.",
        see: &["chain-goodput", "chain-link-goodput"],
        check: |data| {
            let goodput = over(data, "chain", LT_HARQ, &PERCENT, GOODPUT)?;
            let link = over(data, "chain", LT_HARQ, &PERCENT, "link.goodput_bps")?;
            let shares: Vec<f64> = goodput.iter().zip(&link).map(|(a, b)| a / b).collect();
            let residual = over(data, "chain", LT_HARQ, &[WORST], "link.residual_loss")?;
            let theirs = published(&PUBLISHED_RESIDUAL, &[WORST])?;
            let as_much = *residual.first()? >= 0.5 * theirs.first()?;
            let (worst, others) = shares.split_last()?;
            let others = others.iter().copied().fold(f64::INFINITY, f64::min);
            Some(ClaimFinding::new(
                ClaimVerdict::of(
                    others >= 0.9 && *worst >= 0.65 && as_much,
                    others.min(*worst) >= 0.6,
                ),
                list(&shares, 1.0, 2),
                format!(
                    "At 50 % our LL-HARQ leaves {} a hop, the slides' {}: {}.",
                    percents(&residual),
                    percents(&theirs),
                    if as_much {
                        "no less to overcome than half of theirs"
                    } else {
                        "LT-TCP had less to overcome here than there"
                    }
                ),
            ))
        },
    },
];

fn table_goodput(data: &Data) -> Option<ClaimFinding> {
    let ours = over(data, "chain", LT_HARQ, LOSSY, GOODPUT)?;
    let table = published(&PUBLISHED_GOODPUT, LOSSY)?;
    let near = ours
        .iter()
        .zip(&table)
        .filter(|(ours, table)| (*ours / *table - 1.0).abs() <= 0.1);
    let near = near.count();
    let light = |line, name| over(data, "chain-light", line, LOSSY, name);
    let found = ClaimFinding::new(
        ClaimVerdict::of(near == table.len(), 2 * near > table.len()),
        megabits(&ours),
        format!(
            "Within 10 % at {near} of {} error rates, at most {:.0} % off. With each packet a block of its own, {} at {} a hop: the fewer units stand together, the \
             more parity a failure rate takes. If 30 % of the blocks may fail, {} at {}. Over LL-ARQ, LT-TCP has {}.",
            table.len(),
            100.0 * farthest(&ours, &table),
            megabits(&light(SINGLE, GOODPUT)?),
            millis(&light(SINGLE, "link.latency_mean_s")?),
            megabits(&light(LIGHT, GOODPUT)?),
            millis(&light(LIGHT, "link.latency_mean_s")?),
            megabits(&over(data, "chain", LT_ARQ, LOSSY, GOODPUT)?)
        ),
    );
    Some(found.given(GOODPUT_FITTED))
}

fn sack_order(data: &Data) -> Option<ClaimFinding> {
    let order = order(data, "chain", [TCP_HARQ, TCP_ARQ], GOODPUT)?;
    let (harq, arq) = (megabits(&order.first), megabits(&order.second));
    let mut found = order.finding(format!("{harq}, LL-ARQ {arq}"));
    let goodput = |line| over(data, "chain", line, LOSSY, GOODPUT);
    let both = |line| over(data, "chain-both-ways", line, LOSSY, GOODPUT);
    let _ = write!(
        found.comment,
        " What makes the service time cost goodput is that LL-ARQ's window is bounded: with 512 frames outstanding, a window that never stands still, ten flows fill the path \
         however long its round trip, and have {}. With ns-2's default window of 20 packets TCP-SACK over LL-ARQ has {}. With errors on the way back too: {}, LL-ARQ {}.",
        megabits(&goodput(WIDE)?),
        megabits(&goodput(SMALL)?),
        megabits(&both(BOTH_WAYS_HARQ)?),
        megabits(&both(BOTH_WAYS_TCP)?)
    );
    Some(found.given(WINDOW_FITTED))
}

fn best_together(data: &Data) -> Option<ClaimFinding> {
    let fitted = order(data, "chain", [LT_HARQ, TCP_ARQ], GOODPUT)?;
    let wide = order(data, "chain", [LT_HARQ, WIDE], GOODPUT)?;
    let lt = megabits(&wide.first);
    let figure = format!(
        "{lt}, TCP-SACK over LL-ARQ with 512 frames {}",
        megabits(&wide.second)
    );
    let mut found = wide.finding(figure);
    let _ = write!(
        found.comment,
        " With a window of 32 frames, which was fitted to what the slides say of LL-ARQ, TCP-SACK over it has {}: less at {} of {}.",
        megabits(&fitted.second),
        fitted.higher,
        fitted.second.len()
    );
    let both = |line| over(data, "chain-both-ways", line, LOSSY, GOODPUT);
    let _ = write!(
        found.comment,
        " With errors on the way back too: {}, TCP-SACK over LL-ARQ {}.",
        megabits(&both(BOTH_WAYS_LT)?),
        megabits(&both(BOTH_WAYS_TCP)?)
    );
    Some(found)
}

fn share_of_link(data: &Data, family: &str, line: &str) -> Option<ClaimFinding> {
    let shares = PERCENT.iter().map(|&percent| {
        let goodput = at(data, family, line, percent, GOODPUT)?;
        Some(goodput / at(data, family, line, percent, "link.goodput_bps")?)
    });
    let shares: Vec<f64> = shares.collect::<Option<_>>()?;
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    Some(ClaimFinding::new(
        ClaimVerdict::of(least >= 0.9, least >= 0.8),
        format!("{} of the link's", list(&shares, 1.0, 2)),
        "Headers alone leave 0.96.".to_owned(),
    ))
}
