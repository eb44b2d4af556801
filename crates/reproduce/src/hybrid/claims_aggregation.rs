//! The paper's claims about acknowledgements sent together (section I, section IV.E, Figures 4 to 7).

use super::experiments::{CUMULATIVE, LISTED, LISTED_CLEAN, LISTED_SHORT, TAIL_LONG, TAIL_SHORT};
use super::reading::{
    ALL, HIGH, MACKS, View, WORST, falls, in_each, kilobytes, percent, rate, seconds, under,
};
use super::tables::{AGGREGATED, HUNDRED, ONE, TEN};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;

const STYLE: &str = "style";
/// The values that the paper means by "above 200".
const ABOVE: [&str; 2] = ["MACK of 300", "MACK of 365"];
/// The values up to 200, between which the paper sees no difference.
const UP_TO: [&str; 4] = [TEN, "MACK of 50", HUNDRED, "MACK of 200"];

pub(super) const CLAIMS: [PaperClaim; 10] = [
    PaperClaim {
        id: "mack-reverse",
        place: "section I",
        says: "On a channel with hardly any errors, aggregating acknowledgements saves much of the overhead on the way back.",
        criterion: "Reproduced if, at 0 and 1e-6, MACKs of ten take at most half of the octets of single ones; partly if at most nine tenths.",
        see: &["mack-overhead"],
        check: under!(MACKS, |view| {
            let control = |line, x| view.at(line, x, "wire_bytes.control");
            let share = |x| Some(control(TEN, x)? / control(ONE, x)?);
            let worse = share("0")?.max(share("1e-6")?);
            Some(ClaimFinding::bare(
                ClaimVerdict::of(worse <= 0.5, worse <= 0.9),
                format!(
                    "{} with ten, {} with one",
                    kilobytes(control(TEN, "0")?),
                    kilobytes(control(ONE, "0")?)
                ),
            ))
        }),
    },
    PaperClaim {
        id: "mack-goodput-clean",
        place: "section I",
        says: "There it improves goodput as well.",
        criterion: "Reproduced if, at 0 and 1e-6, some aggregation has 1 % more goodput than single acknowledgements; partly if the interval of the difference \
            is above 0.",
        see: &["mack-goodput", "narrow-goodput"],
        check: under!(MACKS, goodput_clean),
    },
    PaperClaim {
        id: "mack-asymmetric",
        place: "section I",
        says: "That is particularly beneficial on asymmetric links.",
        criterion: "Reproduced if, on a way back of 50 kbit/s without errors, MACKs of ten have at most half of the overhead of single acknowledgements or 10 % more \
            goodput; partly if at most nine tenths of it, or 2 % more goodput.",
        see: &["narrow-goodput", "narrow-overhead"],
        check: |data| {
            let at = |line, name| data.mean("narrow", line, "50", name);
            let overhead = at(TEN, "overhead_bytes")? / at(ONE, "overhead_bytes")?;
            let goodput = at(TEN, "goodput_bps")? / at(ONE, "goodput_bps")?;
            Some(ClaimFinding::bare(
                ClaimVerdict::of(
                    overhead <= 0.5 || goodput >= 1.1,
                    overhead <= 0.9 || goodput >= 1.02,
                ),
                format!(
                    "{} of the overhead, {goodput:.2} times the goodput",
                    percent(overhead)
                ),
            ))
        },
    },
    PaperClaim {
        id: "mack-advantage",
        place: "section I",
        says: "Its advantage is greater at higher error rates, where packets are repeated for the loss of single acknowledgements.",
        criterion: "Reproduced if MACKs of ten save more overhead at 1e-4 than at 0, and what is sent again for lost acknowledgements is less with them (the control loses none); \
            partly if the former.",
        see: &["mack-overhead", "style-overhead"],
        check: advantage,
    },
    PaperClaim {
        id: "mack-goodput-falls",
        place: "section IV.E, Figure 4",
        says: "In the reliable mode, goodput falls as the error rate grows.",
        criterion: "Reproduced if, for every aggregation, it falls from 0 over 1e-5 to 1e-4; partly if it is lower at 1e-4 than at 0.",
        see: &["mack-goodput"],
        check: under!(MACKS, |view| trend(view, "goodput_bps", true)),
    },
    PaperClaim {
        id: "mack-delay-grows",
        place: "section IV.E, Figure 5",
        says: "Delay grows with the error rate, because of retransmissions.",
        criterion: "Reproduced if, for every aggregation, it grows from 0 over 1e-5 to 1e-4; partly if it is higher at 1e-4 than at 0.",
        see: &["mack-delay"],
        check: under!(MACKS, |view| trend(view, "delay_mean_s", false)),
    },
    PaperClaim {
        id: "mack-indifferent",
        place: "section IV.E, Figures 4 and 5",
        says: "Goodput and delay hardly differ between the numbers of acknowledgements to a MACK.",
        criterion: "Reproduced if goodput differs by less than 10 % and delay by less than a factor of 1.5 at every rate; partly if so up to 1e-6.",
        see: &["mack-goodput", "mack-delay", "style-goodput", "style-delay"],
        check: under!(MACKS, indifferent),
    },
    PaperClaim {
        id: "mack-too-little-data",
        place: "section IV.E",
        says: "That is because 1 MB is too little data to show a difference.",
        criterion: "Reproduced if goodput at 1e-4 differs by less than 10 % with 1 MB and by more with 20 MB; partly if more with 20 MB than with 1 MB.",
        see: &["mack-goodput", "mack-20mb-goodput", "tail-last"],
        check: |data| {
            let spread = |family: &str| {
                let goodput = |line| data.mean(family, line, WORST, "goodput_bps");
                let all: Option<Vec<f64>> = AGGREGATED.iter().map(|line| goodput(line)).collect();
                ratio(&all?)
            };
            let (short, long) = (spread("mack")?, spread("mack-20mb")?);
            let most = |family| data.mean(family, "MACK of 365", WORST, "goodput_bps");
            let (little, much) = (most("mack")?, most("mack-20mb")?);
            // Two lengths give a transfer's time for each octet, and its time besides.
            let besides = |line| {
                let of = |x, name| data.mean("tail", line, x, name);
                let last = |x| of(x, "last_delivery_s");
                let sent = |x| of(x, "delivered_bytes");
                let each = (last("4")? - last("1")?) / (sent("4")? - sent("1")?);
                Some(last("1")? - each * sent("1")?)
            };
            Some(ClaimFinding::new(
                ClaimVerdict::of(short < 1.1 && long >= 1.1, long > short),
                format!("factor {short:.2} with 1 MB, {long:.2} with 20 MB"),
                format!(
                    "Of the highest to the lowest goodput at 1e-4. MACKs of 365 have {} with 1 MB and {} with 20 MB: more data makes the end of a \
                     transfer, which waits for MACKs that do not fill, a smaller part of it. Beside what each octet takes, a transfer takes {:.1} s where \
                     they wait for 1 s, and {:.1} s where they wait for 20 ms.",
                    rate(little),
                    rate(much),
                    besides(TAIL_LONG)?,
                    // Not "-0.0".
                    (10.0 * besides(TAIL_SHORT)?).round() / 10.0 + 0.0
                ),
            ))
        },
    },
    PaperClaim {
        id: "mack-complete",
        place: "section IV.E, Figure 6",
        says: "All data is delivered whatever the aggregation and the error rate.",
        criterion: "Reproduced if every run is complete, partly if 95 % are.",
        see: &["mack-delivered"],
        check: under!(MACKS, |view| {
            let all = ALL.iter().map(|x| view.by_aggregation(x, "completed"));
            let all: Option<Vec<_>> = all.collect();
            let done = all?.into_iter().flatten().map(|(_, done)| done);
            let least = done.reduce(f64::min)?;
            Some(ClaimFinding::bare(
                ClaimVerdict::of(least >= 1.0, least >= 0.95),
                format!("{} of the runs at least", percent(least)),
            ))
        }),
    },
    PaperClaim {
        id: "mack-overhead-above",
        place: "section IV.E, Figure 7",
        says: "Above 200 acknowledgements to a MACK, overhead is higher, because every lost MACK has more packets sent again.",
        criterion: "Reproduced if there is a threshold at 200: at every rate from 1e-5 on, overhead with 300 and with 365 is above that of every number from 10 to 200 by more than \
            the intervals, and by more than twice as much as those differ among each other. Partly if, at most of these rates, it is above that of 100 by more than the intervals, without such a threshold.",
        see: &["mack-overhead", "style-overhead"],
        check: under!(MACKS, above),
    },
];

/// The highest over the lowest.
fn ratio(values: &[f64]) -> Option<f64> {
    let most = values.iter().copied().reduce(f64::max)?;
    let least = values.iter().copied().reduce(f64::min)?;
    Some(most / least)
}

fn goodput_clean(view: &View<'_>) -> Option<ClaimFinding> {
    let at = |x: &str| {
        let single = view.goodput(ONE, x)?;
        let best = view.by_aggregation(x, "goodput_bps")?;
        let best = best.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let halves = view.half(ONE, x, "goodput_bps")? + view.half(best.0, x, "goodput_bps")?;
        let most = (best.1 + halves) / single;
        Some((best.1 / single, best.1 - single > halves, most))
    };
    let ((clean, clear, high), (lossy, clearly, highest)) = (at("0")?, at("1e-6")?);
    let most = high.min(highest);
    let least = clean.min(lossy);
    let found = ClaimFinding::new(
        ClaimVerdict::of(least >= 1.01, least > 1.0 && clear && clearly),
        format!(
            "{:+.2} % at 0, {:+.2} % at 1e-6",
            100.0 * (clean - 1.0),
            100.0 * (lossy - 1.0)
        ),
        if view.is_printed() {
            let narrow = |line| view.data.mean("narrow", line, "50", "goodput_bps");
            format!(
                "The link carries each direction by itself and the source sends less than it could: acknowledgements take nothing from the data. \
                 Goodput can only gain where the way back is too narrow for them; at 50 kbit/s it is {} with one and {} with ten.",
                rate(narrow(ONE)?),
                rate(narrow(TEN)?)
            )
        } else {
            String::new()
        },
    );
    // Refuted if even the interval's upper end is below the 1 % that the claim needs.
    let open = most >= 1.01;
    Some(found.open_if(open, "the intervals reach the 1 % that is asked for."))
}

fn advantage(data: &Data) -> Option<ClaimFinding> {
    let again = |line, size| data.mean(STYLE, line, size, "wire_bytes.retransmission");
    let (lossy, whole) = (again(LISTED, "1")?, again(LISTED_CLEAN, "1")?);
    let (ten, ten_whole) = (again(LISTED, "10")?, again(LISTED_CLEAN, "10")?);
    let spares = ten - ten_whole < lossy - whole;
    in_each(data, MACKS, &|view| {
        let saved = |x| Some(view.overhead(ONE, x)? - view.overhead(TEN, x)?);
        let (clean, worst) = (saved("0")?, saved(WORST)?);
        let more = worst > clean && worst > 0.0;
        let comment = if view.is_printed() {
            format!(
                "A TPDU is held lost when one sent later is acknowledged, so a lost acknowledgement has its packet sent again; but it is short, \
                 and lost in 3 of 100 cases at 1e-4, where packets of data are in 70. With single acknowledgements, {} are sent again there, and {} if none is lost; \
                 with MACKs of ten, {} and {}: what is lost of these costs {}.",
                kilobytes(lossy),
                kilobytes(whole),
                kilobytes(ten),
                kilobytes(ten_whole),
                if spares { "less" } else { "no less" }
            )
        } else {
            String::new()
        };
        Some(ClaimFinding::new(
            ClaimVerdict::of(more && spares, more),
            format!(
                "{} saved at 0, {} at 1e-4",
                kilobytes(clean),
                kilobytes(worst)
            ),
            comment,
        ))
    })
}

/// Whether a measure falls, or grows, with the error rate.
fn trend(view: &View<'_>, name: &str, down: bool) -> Option<ClaimFinding> {
    let three = |line: &'static str| {
        let at = |x| view.at(line, x, name);
        let mut values = [at("0")?, at("1e-5")?, at(WORST)?];
        if !down {
            values.reverse();
        }
        Some(values)
    };
    let all: Option<Vec<[f64; 3]>> = AGGREGATED.iter().map(|line| three(line)).collect();
    let all = all?;
    let ends = all.iter().all(|values| values[2] < values[0]);
    let one = three(ONE)?;
    let tell = |value| if down { rate(value) } else { seconds(value) };
    let (first, last) = if down {
        (one[0], one[2])
    } else {
        (one[2], one[0])
    };
    Some(ClaimFinding::bare(
        ClaimVerdict::of(all.iter().all(|values| falls(values)), ends),
        format!(
            "{} at 0, {} at 1e-4 with single ones",
            tell(first),
            tell(last)
        ),
    ))
}

fn indifferent(view: &View<'_>) -> Option<ClaimFinding> {
    let spread = |x: &str, name: &str| {
        let all = view.by_aggregation(x, name)?;
        ratio(&all.into_iter().map(|(_, value)| value).collect::<Vec<_>>())
    };
    let spreads = view.pairs(ALL, |_, x| {
        Some((spread(x, "goodput_bps")?, spread(x, "delay_mean_s")?))
    })?;
    let alike = |pair: &&(&str, f64, f64)| pair.1 < 1.1 && pair.2 < 1.5;
    let calm = spreads.iter().take_while(alike).count();
    let (_, goodput, delay) = *spreads.last()?;
    let comment = if view.is_printed() {
        let worst = |line, name| view.data.mean(STYLE, line, "365", name);
        let short = |name: &str| {
            let sizes = ["1", "10", "50", "100", "200", "300", "365"];
            let all = sizes.map(|size| view.data.mean(STYLE, LISTED_SHORT, size, name));
            ratio(&all.into_iter().collect::<Option<Vec<f64>>>()?)
        };
        let (goodput, delay) = (short("goodput_bps")?, short("delay_mean_s")?);
        format!(
            "A lost packet is known as lost when a later one is acknowledged: a MACK that waits for company has the repair wait, and every \
             repair of a repair. At 1e-4 with 365 the mean delay is {}; {} if no MACK is lost, {} if a MACK waits for 20 ms at most, and {} with ours, which \
             waits 5 ms. Among MACKs of 1 to 365 that wait for 20 ms at most, goodput differs by a factor of {goodput:.2} and delay by {delay:.2}: \
             the paper's claim {} for MACKs that do not wait.",
            seconds(worst(LISTED, "delay_mean_s")?),
            seconds(worst(LISTED_CLEAN, "delay_mean_s")?),
            seconds(worst(LISTED_SHORT, "delay_mean_s")?),
            seconds(worst(CUMULATIVE, "delay_mean_s")?),
            if goodput < 1.1 && delay < 1.5 {
                "holds"
            } else {
                "does not hold even"
            }
        )
    } else {
        String::new()
    };
    Some(ClaimFinding::new(
        ClaimVerdict::of(calm == spreads.len(), calm >= 2),
        format!("at 1e-4 a factor of {goodput:.2} in goodput, {delay:.1} in delay"),
        comment,
    ))
}

/// Overhead of MACKs of more than 200 and of MACKs up to 200, at a rate.
struct Step {
    /// The least overhead above 200, and half of its interval.
    above: (f64, f64),
    /// The greatest overhead up to 200, and half of its interval.
    below: (f64, f64),
    /// The overhead of MACKs of 100.
    hundred: (f64, f64),
    /// The least overhead up to 200.
    least: f64,
}

impl Step {
    fn at(view: &View<'_>, rate: &str) -> Option<Self> {
        let of = |lines: &[&'static str]| {
            let each = lines.iter().map(|line| {
                let half = view.half(line, rate, "overhead_bytes")?;
                Some((view.overhead(line, rate)?, half))
            });
            let mut each: Vec<(f64, f64)> = each.collect::<Option<_>>()?;
            each.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            Some(each)
        };
        let (above, below) = (of(&ABOVE)?, of(&UP_TO)?);
        Some(Self {
            above: *above.first()?,
            below: *below.last()?,
            hundred: *of(&[HUNDRED])?.first()?,
            least: below.first()?.0,
        })
    }

    fn is_higher(&self) -> bool {
        self.above.0 - self.hundred.0 > self.above.1 + self.hundred.1
    }

    fn is_threshold(&self) -> bool {
        self.above.0 - self.below.0 > self.above.1 + self.below.1
            && self.above.0 - self.below.0 > 2.0 * (self.below.0 - self.least)
    }
}

fn above(view: &View<'_>) -> Option<ClaimFinding> {
    let steps = HIGH.iter().map(|rate| Step::at(view, rate));
    let steps: Vec<Step> = steps.collect::<Option<_>>()?;
    let of = |holds: fn(&Step) -> bool| steps.iter().filter(|step| holds(step)).count();
    let (higher, threshold) = (of(Step::is_higher), of(Step::is_threshold));
    let last = steps.last()?;
    let comment = if view.is_printed() {
        let again = |line| {
            view.data
                .mean(STYLE, line, "365", "wire_bytes.retransmission")
        };
        let each = AGGREGATED.iter().map(|line| view.overhead(line, WORST));
        let each: Vec<String> = (each.collect::<Option<Vec<f64>>>()?.into_iter())
            .map(|octets| format!("{:.0}", octets / 1e3))
            .collect();
        format!(
            "Above that of 100 at {higher} of {} rates, with a threshold at {threshold}. At 1e-4 overhead is {} kB with 1, 10, 50, 100, 200, 300 and 365. With 365, {} are \
             sent again there, and {} if no MACK is lost.",
            steps.len(),
            each.join(", "),
            kilobytes(again(LISTED)?),
            kilobytes(again(LISTED_CLEAN)?)
        )
    } else {
        String::new()
    };
    Some(ClaimFinding::new(
        ClaimVerdict::of(threshold == steps.len(), 2 * higher > steps.len()),
        format!(
            "{} above 200, {} to {} with 10 to 200 at 1e-4",
            kilobytes(last.above.0),
            kilobytes(last.least),
            kilobytes(last.below.0)
        ),
        comment,
    ))
}
