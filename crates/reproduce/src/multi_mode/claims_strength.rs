//! The paper's claims about FEC strengths against the error rate (section IV.C, Figures 13-16).

use super::causes::{HOLES, HOLES_PLAIN};
use super::design::{FULL, PACKED, WRITES};
use super::readings::{BY_STRENGTH, View, WORST, growth_of, percent};
use super::strength::STRENGTHS;
use super::tables::QUASI;
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;
use crate::reading::falls;
use crate::reading::under;

const GOODPUT: &str = "goodput_bps";
const DELAY: &str = "delay_mean_s";
const DELIVERED: &str = "delivered_bytes";
const OFFERED: &str = "offered_bytes";
const OVERHEAD: &str = "overhead_bytes";
/// The length of the network's header.
pub(super) const HEADER_LEN: u8 = 20;
/// The length of the source's writes, each of which is at least a packet.
const WRITE_LEN: f64 = 1472.0;
/// The number of standard deviations of its mean by which a share of hit headers may be above the expected
/// one. Chance alone exceeds three in 0.13 % of cases, so that of the 27 that a claim compares at most
/// (three strengths at nine rates) one does in 4 %.
const DEVIATIONS: f64 = 3.0;

const FIGURE_13: &str = "section IV.C, Figure 13";
const FIGURE_14: &str = "section IV.C, Figure 14";
const FIGURE_15: &str = "section IV.C, Figure 15";
const FIGURE_16: &str = "section IV.C, Figure 16";

pub(super) const CLAIMS: [PaperClaim; 13] = [
    PaperClaim {
        id: "fec-trade",
        place: "section IV.C",
        says: "The quasi-reliable mode trades overhead on each packet for reliability.",
        criterion: "Reproduced if every strength above 0 delivers more than none at 1e-4, and costs more without \
            errors, the more the stronger; partly if one of both holds.",
        see: &["strength-delivered", "strength-overhead"],
        check: under!(BY_STRENGTH, trade),
    },
    PaperClaim {
        id: "fec-no-retransmission",
        place: "sections II and IV.C",
        says: "FEC corrects errors at the receiver without a retransmission; so the delay is low.",
        criterion: "Reproduced if, with 32 words at 1e-4, packets are corrected, nothing is sent again, and the mean \
            delay stays below 10 ms; partly if nothing is sent again.",
        see: &["strength-delay"],
        check: under!(BY_STRENGTH, no_retransmission),
    },
    PaperClaim {
        id: "fec-more-packets",
        place: "section IV.C",
        says: "Packets keep 1500 octets: the more parity, the less data in each, and the more packets.",
        criterion: "Reproduced if each strength takes more packets for the same data than the one before, when all are \
            full; partly if 256 words take more than none.",
        see: &["packed-overhead"],
        check: more_packets,
    },
    PaperClaim {
        id: "fec13-decreases",
        place: FIGURE_13,
        says: "Throughput falls with the error rate, because of packets that cannot be corrected.",
        criterion: "Reproduced if the goodput without parity falls at each step and by half at least, partly if it is \
            lower at 1e-4 than at 0.",
        see: &["strength-goodput"],
        check: under!(BY_STRENGTH, decreases),
    },
    PaperClaim {
        id: "fec13-mitigated",
        place: FIGURE_13,
        says: "Greater strength mitigates it.",
        criterion: "Reproduced if up to 1e-4 each strength loses a smaller share of its goodput than the one before, as far \
            as 8 words, and from there on at most a tenth of what none loses; partly if every strength loses less than none.",
        see: &["strength-goodput"],
        check: under!(BY_STRENGTH, mitigated),
    },
    PaperClaim {
        id: "fec13-strong-flat",
        place: FIGURE_13,
        says: "With 128 and 256 words the throughput hardly falls over all error rates.",
        criterion: "Reproduced if it falls by at most 1 %, partly if by 5 %.",
        see: &["strength-goodput", "header-delivered"],
        check: under!(BY_STRENGTH, strong_flat),
    },
    PaperClaim {
        id: "fec13-strong-costs",
        place: FIGURE_13,
        says: "At low error rates 128 and 256 words perform worse, for their overhead.",
        criterion: "Reproduced if without errors both have at most 90 % of the goodput without parity, partly if one.",
        see: &["strength-goodput"],
        check: under!(BY_STRENGTH, strong_costs),
    },
    PaperClaim {
        id: "fec14-flat",
        place: FIGURE_14,
        says: "Packet errors do not affect the delay, as nothing is sent again.",
        criterion: "Reproduced if at each strength the delay at 1e-4 is within 5 % of that at 0, partly if at half of \
            the strengths.",
        see: &["strength-delay", "hole-delay"],
        check: under!(BY_STRENGTH, delay_flat),
    },
    PaperClaim {
        id: "fec14-queue",
        place: FIGURE_14,
        says: "Very much parity saturates the link, and the queue adds delay.",
        criterion: "Reproduced if the delays of 128 and 256 words without errors are ten times that without parity, \
            partly if twice.",
        see: &["strength-delay"],
        check: under!(BY_STRENGTH, queue),
    },
    PaperClaim {
        id: "fec15-decreases",
        place: FIGURE_15,
        says: "By strength, less is delivered the higher the error rate.",
        criterion: "Reproduced if every strength below 128 loses more at 1e-4 than hit network headers account for, which are \
            no error that its parity could correct, and delivers ever less; partly if none does.",
        see: &["strength-delivered", "header-delivered"],
        check: under!(BY_STRENGTH, delivers_less),
    },
    PaperClaim {
        id: "fec15-all",
        place: FIGURE_15,
        says: "128 and 256 words correct all errors at the tested rates.",
        criterion: CORRECTED,
        see: &[
            "strength-delivered",
            "header-delivered",
            "ber-delivered-octet",
        ],
        check: under!(BY_STRENGTH, |view| corrected(view, &STRENGTHS[8..])),
    },
    PaperClaim {
        id: "fec16-significant",
        place: FIGURE_16,
        says: "The overhead of FEC on the network is significant; its axis is logarithmic.",
        criterion: "Reproduced if without errors the strengths' overheads span a decade, partly if a factor of two.",
        see: &["strength-overhead"],
        check: under!(BY_STRENGTH, significant),
    },
    PaperClaim {
        id: "fec16-flat",
        place: FIGURE_16,
        says: "The overhead does not depend on the error rate.",
        criterion: "Reproduced if at each strength the overhead at 1e-4, which is what is put on the link less what is delivered, is within 5 % of that at 0, partly at most \
            strengths. Given if it is not, but what is put on the link is within 1 %.",
        see: &["strength-overhead"],
        check: under!(BY_STRENGTH, overhead_flat),
    },
];

pub(super) const CORRECTED: &str = "Reproduced if everything is delivered at each rate; partly if no more is missing than \
    hit network headers account for (and three standard deviations of that share over all runs).";

/// A measure of a strength at every rate.
fn over_rates(view: &View<'_>, line: &str, name: &str) -> Option<Vec<f64>> {
    let rates = view.rates()?.into_iter();
    rates.map(|x| view.at(line, x, name)).collect()
}

/// A measure of every strength at a rate.
pub(super) fn over_strengths(view: &View<'_>, x: &str, name: &str) -> Option<Vec<f64>> {
    let lines = STRENGTHS.iter();
    lines.map(|(line, _)| view.at(line, x, name)).collect()
}

/// Whether no more is missing than the packets whose network header was hit.
pub(super) fn by_headers(view: &View<'_>, line: &str, x: &str) -> Option<bool> {
    let lost = 1.0 - view.share(line, x)?;
    let hit = view.hit(HEADER_LEN, x)?;
    let packets = view.runs(line, x)? * view.at(line, x, OFFERED)? / WRITE_LEN;
    let deviation = (hit * (1.0 - hit) / packets).sqrt();
    Some(lost <= hit + DEVIATIONS * deviation)
}

fn decreases(view: &View<'_>) -> Option<ClaimFinding> {
    let curve = over_rates(view, "0 words", GOODPUT)?;
    let (first, last) = (*curve.first()?, *curve.last()?);
    Some(ClaimFinding::bare(
        ClaimVerdict::of(falls(&curve) && last <= first / 2.0, last < first),
        format!(
            "{:.2} Mbit/s of {:.2} without parity at 1e-4",
            last / 1e6,
            first / 1e6
        ),
    ))
}

fn strong_costs(view: &View<'_>) -> Option<ClaimFinding> {
    let goodput = |line| view.goodput(line, "0");
    let none = goodput("0 words")?;
    let (some, most) = (goodput("128 words")? / none, goodput("256 words")? / none);
    Some(ClaimFinding::bare(
        ClaimVerdict::of(some <= 0.9 && most <= 0.9, some.min(most) <= 0.9),
        format!("{:.0} % and {:.0} % of it", 100.0 * some, 100.0 * most),
    ))
}

fn queue(view: &View<'_>) -> Option<ClaimFinding> {
    let delay = |line| view.delay(line, "0");
    let none = delay("0 words")?;
    let (some, most) = (delay("128 words")?, delay("256 words")?);
    let times = some.min(most) / none;
    Some(ClaimFinding::bare(
        ClaimVerdict::of(times >= 10.0, times >= 2.0),
        format!(
            "{:.0} and {:.0} ms, without parity {:.1} ms",
            some * 1e3,
            most * 1e3,
            none * 1e3
        ),
    ))
}

fn delivers_less(view: &View<'_>) -> Option<ClaimFinding> {
    let weak = &STRENGTHS[..8];
    let mut beyond = Vec::new();
    let mut ever_less = true;
    for (line, _) in weak {
        if !by_headers(view, line, WORST)? {
            beyond.push(*line);
        }
        ever_less &= falls(&over_rates(view, line, DELIVERED)?);
    }
    let none = beyond.first() == Some(&weak[0].0);
    Some(ClaimFinding::new(
        ClaimVerdict::of(beyond.len() == weak.len() && ever_less, none),
        format!(
            "{} lost without parity, {} with 4 words; beyond headers at {} of {} strengths",
            percent(1.0 - view.share("0 words", WORST)?),
            percent(1.0 - view.share("4 words", WORST)?),
            beyond.len(),
            weak.len()
        ),
        format!(
            "Those are {}. Our code corrects more with a word than the paper's, which is not named, and from the next strength on all there is to \
             correct. The paper has it both ways: of Figure 15 it says that 128 and 256 words correct all errors and the others do not, of Figure 19 that 96 do.",
            beyond.join(", ")
        ),
    ))
}

fn significant(view: &View<'_>) -> Option<ClaimFinding> {
    let overhead = |line| view.overhead(line, "0");
    let (none, most) = (overhead("0 words")?, overhead("256 words")?);
    Some(ClaimFinding::bare(
        ClaimVerdict::of(most >= 10.0 * none, most >= 2.0 * none),
        format!("{:.0} kB to {:.0} kB", none / 1e3, most / 1e3),
    ))
}

pub(super) fn grows(values: &[f64]) -> bool {
    values.windows(2).all(|pair| pair[0] < pair[1])
}

fn trade(view: &View<'_>) -> Option<ClaimFinding> {
    let delivered = over_strengths(view, WORST, DELIVERED)?;
    let none = *delivered.first()?;
    let more = delivered.iter().skip(1).all(|with| *with > none);
    let overhead = over_strengths(view, "0", OVERHEAD)?;
    let dearer = grows(&overhead);
    Some(ClaimFinding::bare(
        ClaimVerdict::of(more && dearer, more || dearer),
        format!(
            "32 words deliver {} at 1e-4 instead of {}, for {:.0} kB instead of {:.0}",
            percent(view.share("32 words", WORST)?),
            percent(view.share("0 words", WORST)?),
            overhead.get(5)? / 1e3,
            overhead.first()? / 1e3
        ),
    ))
}

fn no_retransmission(view: &View<'_>) -> Option<ClaimFinding> {
    let of = |name| view.at("32 words", WORST, name);
    let (again, corrected) = (of("wire_bytes.retransmission")?, of("recovered.fec_words")?);
    let delay = of(DELAY)?;
    let never = again <= 0.0 && corrected > 0.0;
    Some(ClaimFinding::new(
        ClaimVerdict::of(never && delay < 0.01, never),
        format!(
            "{corrected:.0} packets corrected, {again:.0} B sent again, {:.1} ms",
            delay * 1e3
        ),
        "With 32 words at 1e-4.".to_owned(),
    ))
}

fn more_packets(data: &Data) -> Option<ClaimFinding> {
    let of = |line| {
        let packets = STRENGTHS
            .iter()
            .filter(|(_, words)| !["2", "4"].contains(words));
        let packets = packets.map(|(_, words)| data.mean(PACKED, line, words, "wire_packets"));
        packets.collect::<Option<Vec<f64>>>()
    };
    let packets = of(FULL)?;
    let (none, most) = (*packets.first()?, *packets.last()?);
    let writes = of(WRITES)?;
    Some(ClaimFinding::new(
        ClaimVerdict::of(grows(&packets), most > none),
        format!("{none:.0} packets without parity, {most:.0} with 256 words"),
        format!(
            "Those of set-up and close included. The source's writes of 1472 octets do not fit into a packet, and leave a \
             small one behind each while the link is not full: {:.0} packets without parity.",
            writes.first()?
        ),
    ))
}

fn mitigated(view: &View<'_>) -> Option<ClaimFinding> {
    let lost = |(line, _): &(&str, &str)| {
        let goodput = |x| view.goodput(line, x);
        Some(1.0 - goodput(WORST)? / goodput("0")?)
    };
    let lost: Vec<f64> = STRENGTHS.iter().map(lost).collect::<Option<_>>()?;
    let none = *lost.first()?;
    let falls = lost.get(..4)?.windows(2).all(|pair| pair[1] < pair[0]);
    let most = lost.get(3..)?.iter().copied().fold(0.0, f64::max);
    Some(ClaimFinding::bare(
        ClaimVerdict::of(
            falls && most <= none / 10.0,
            lost.iter().skip(1).all(|with| *with < none),
        ),
        format!(
            "{} lost without parity, {} with 4 words, {} at most from 8 on",
            percent(none),
            percent(*lost.get(2)?),
            percent(most)
        ),
    ))
}

fn strong_flat(view: &View<'_>) -> Option<ClaimFinding> {
    let lost = |line: &str| {
        let curve = over_rates(view, line, GOODPUT)?;
        let least = curve.iter().copied().reduce(f64::min)?;
        Some(1.0 - least / curve.first()?)
    };
    let lost = lost("128 words")?.max(lost("256 words")?);
    Some(ClaimFinding::new(
        ClaimVerdict::of(lost <= 0.01, lost <= 0.05),
        format!("falls by {}", percent(lost)),
        header_cause(view.data)?,
    ))
}

/// The reason why no strength delivers everything.
fn header_cause(data: &Data) -> Option<String> {
    let octet = |name| data.mean("ber-octet", QUASI, "1e-4", name);
    Some(format!(
        "What is missing are packets whose 20 octets of network header were hit: {} at 1e-4, by 160 bits of which none may \
         be wrong. No parity of the transport can cover them, since a node cannot forward what it cannot read. With the rate \
         per octet {} are missing. Whether errors fall on headers in the paper's model it does not say.",
        percent(1.0 - (1.0 - 1e-4_f64).powi(160)),
        percent(1.0 - octet(DELIVERED)? / octet(OFFERED)?)
    ))
}

fn delay_flat(view: &View<'_>) -> Option<ClaimFinding> {
    let grown = |(line, _): &(&str, &str)| {
        let delay = |x| view.delay(line, x);
        Some(delay(WORST)? / delay("0")? - 1.0)
    };
    let grown: Vec<f64> = STRENGTHS.iter().map(grown).collect::<Option<_>>()?;
    let flat = grown.iter().filter(|grown| grown.abs() <= 0.05).count();
    Some(ClaimFinding::new(
        ClaimVerdict::of(flat == grown.len(), 2 * flat >= grown.len()),
        format!(
            "within 5 % at {flat} of {} strengths; without parity {:+.0} %",
            grown.len(),
            100.0 * grown.first()?
        ),
        format!(
            "Our data come in order: what follows a hole waits 20 ms until the hole is given up, in case packets overtook \
             each other. With that wait off (`wait_lost`), the delay without parity changes by {:+.1} %.",
            100.0 * (10_f64.powf(growth_of(view.data, HOLES, HOLES_PLAIN)?) - 1.0)
        ),
    ))
}

pub(super) fn corrected(view: &View<'_>, strengths: &[(&str, &str)]) -> Option<ClaimFinding> {
    let mut least = 1.0_f64;
    let mut explained = true;
    for (line, _) in strengths {
        for x in view.rates()? {
            least = least.min(view.share(line, x)?);
            explained &= by_headers(view, line, x)?;
        }
    }
    Some(ClaimFinding::new(
        ClaimVerdict::of(least >= 1.0, explained),
        format!("{} delivered at least", percent(least)),
        header_cause(view.data)?,
    ))
}

fn overhead_flat(view: &View<'_>) -> Option<ClaimFinding> {
    let change = |of: &dyn Fn(&str) -> Option<f64>| Some((of(WORST)? / of("0")? - 1.0).abs());
    let mut overhead = 0.0_f64;
    let mut flat = 0;
    let mut wire = 0.0_f64;
    let mut intended = 0.0_f64;
    for (line, _) in STRENGTHS {
        let mean = |x: &str, name| view.at(line, x, name);
        let grown = change(&|x| mean(x, OVERHEAD))?;
        flat += usize::from(grown <= 0.05);
        overhead = overhead.max(grown);
        let sent = |x: &str| Some(mean(x, OVERHEAD)? + mean(x, DELIVERED)?);
        wire = wire.max(change(&sent)?);
        intended = intended.max(change(&|x| Some(sent(x)? - mean(x, OFFERED)?))?);
    }
    let all = STRENGTHS.len();
    let most = 2 * flat > all;
    let found = ClaimFinding::new(
        ClaimVerdict::of(flat == all, most || wire <= 0.01),
        format!(
            "overhead within 5 % at {flat} of {all} strengths; what is on the link within {}",
            percent(wire)
        ),
        format!(
            "Our overhead is what is put on the link less what is delivered, so that lost data count: it grows by up to \
             {:.0} % (without parity). Counted as parity, headers and control alone, that is what is put on the link less \
             what was offered, it changes by {} at most.",
            100.0 * overhead,
            percent(intended)
        ),
    );
    Some(if most {
        found
    } else {
        found.given("a mode that sends nothing again cannot put more on the link, whatever is lost; by our measure it does not hold.")
    })
}
