//! The paper's claims about ARQ, FEC and both in general, and about its two hybrids (sections II and III).

use super::experiments::{BACK_AEROTP, BACK_AEROTP_LOSSY, BACK_TCP, BACK_TCP_LOSSY};
use super::reading::{
    ALL, HIGH, MODES, Reading, View, WORST, count, kilobytes, percent, rate, seconds, under,
};
use super::tables::{BOTH, NACK, QUASI, RELIABLE, TCP, UDP};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;

const SCHEMES: &str = "section II.B";
const HYBRIDS: &str = "section III";

/// The readings in which a round trip is long enough to be told from the rest.
const LATENT: &[Reading] = &[MODES[1], MODES[3]];

pub(super) const CLAIMS: [PaperClaim; 15] = [
    PaperClaim {
        id: "tcp-handshake",
        place: "section II.A",
        says: "TCP's handshake takes a round trip more before data flow.",
        criterion: "Reproduced if, with 10 ms one way, TCP's first data comes a round trip (20 ms) later than UDP's, within 10 %; partly if later.",
        see: &["modes-10ms-delay"],
        check: under!(LATENT, |view| {
            let first = |line| view.at(line, "0", "first_arrival_s");
            let (tcp, udp, ours) = (first(TCP)?, first(UDP)?, first(RELIABLE)?);
            let more = tcp - udp;
            Some(ClaimFinding::new(
                ClaimVerdict::of((more / 20e-3 - 1.0).abs() <= 0.1, more > 0.0),
                format!("{} later", seconds(more)),
                format!(
                    "First data after {}; UDP's after {}, AeroTP's after {}.",
                    seconds(tcp),
                    seconds(udp),
                    seconds(ours)
                ),
            ))
        }),
    },
    PaperClaim {
        id: "tcp-ack-stream",
        place: "section II.A",
        says: "TCP is inefficient on asymmetric links, for it needs a highly reliable stream of acknowledgements.",
        criterion: "Reproduced if, against an even link, TCP has at most half of the goodput on a way back of 20 kbit/s, and on one that loses every second packet, where \
            AeroTP has 90 %; partly if so on one of both.",
        see: &["back-goodput"],
        check: ack_stream,
    },
    PaperClaim {
        id: "hybrid-moderate",
        place: SCHEMES,
        says: "Hybrid error control combines both and performs better in moderate error conditions.",
        criterion: "Reproduced if, from 1e-5 to 5e-5, NACK+MACK has at least 99 % of the goodput of the reliable and of the quasi-reliable mode, less delay than the \
            former, and delivers more than the latter; partly if at most of these rates.",
        see: &["modes-goodput", "modes-delay", "modes-delivered"],
        check: under!(MODES, moderate),
    },
    PaperClaim {
        id: "arq-trade",
        place: "section IV.E",
        says: "ARQ pays for reliability with the delay of what is lost and with overhead on the way back.",
        criterion: "Reproduced if, at 1e-5, every run of the reliable mode completes, with a delay that is longer than without errors by more than both intervals, and \
            with acknowledgements of at least 0.5 % of the data's octets; partly if it completes at one of both prices.",
        see: &["modes-delay", "modes-delivered"],
        check: under!(MODES, trade),
    },
    PaperClaim {
        id: "arq-throughput",
        place: SCHEMES,
        says: "ARQ is reliable, but of low throughput at high error rates.",
        criterion: "Reproduced if the reliable mode is complete at 1e-4 with less than half of the goodput at 0; partly if with less than 90 %.",
        see: &["modes-goodput", "modes-delivered"],
        check: under!(MODES, |view| {
            let share = view.goodput(RELIABLE, WORST)? / view.goodput(RELIABLE, "0")?;
            let done = view.at(RELIABLE, WORST, "completed")? >= 1.0;
            Some(ClaimFinding::bare(
                ClaimVerdict::of(done && share < 0.5, share < 0.9),
                format!("{} of the goodput at 1e-4", percent(share)),
            ))
        }),
    },
    PaperClaim {
        id: "arq-delay",
        place: SCHEMES,
        says: "Error control by ARQ alone has a higher delay at high error rates.",
        criterion: "Reproduced if the reliable mode's delay at 1e-4 is at least twice that at 0, partly if higher.",
        see: &["modes-delay"],
        check: under!(MODES, |view| {
            let (clean, worst) = (view.delay(RELIABLE, "0")?, view.delay(RELIABLE, WORST)?);
            Some(ClaimFinding::bare(
                ClaimVerdict::of(worst >= 2.0 * clean, worst > clean),
                format!("{} at 0, {} at 1e-4", seconds(clean), seconds(worst)),
            ))
        }),
    },
    PaperClaim {
        id: "fec-delay",
        place: SCHEMES,
        says: "FEC keeps a fairly high throughput at high error rates without much more delay than ARQ's.",
        criterion: "Reproduced if, at 1e-4, the quasi-reliable mode has more goodput than the reliable mode and at most a tenth of its delay; partly if it has one of \
            both.",
        see: &["modes-goodput", "modes-delay"],
        check: under!(MODES, |view| {
            let goodput = view.ratio(QUASI, WORST, "goodput_bps")?;
            let delay = view.ratio(QUASI, WORST, "delay_mean_s")?;
            let (more, less) = (goodput > 1.0, delay <= 0.1);
            Some(ClaimFinding::bare(
                ClaimVerdict::of(more && less, more || less),
                format!("{goodput:.2} times the goodput, {delay:.3} of the delay at 1e-4"),
            ))
        }),
    },
    PaperClaim {
        id: "fec-overhead",
        place: SCHEMES,
        says: "FEC adds to the overhead of every packet.",
        criterion: "Reproduced if, without errors, the quasi-reliable mode puts more octets of first transmissions on the link than the reliable mode, \
            partly if not less.",
        see: &["modes-overhead", "strength-overhead"],
        check: under!(MODES, |view| {
            let source = |line| view.at(line, "0", "wire_bytes.source");
            let (quasi, reliable) = (source(QUASI)?, source(RELIABLE)?);
            Some(ClaimFinding::bare(
                ClaimVerdict::of(quasi > reliable, quasi >= reliable),
                format!("{:+.1} %", 100.0 * (quasi / reliable - 1.0)),
            ))
        }),
    },
    PaperClaim {
        id: "fec-statistical",
        place: SCHEMES,
        says: "FEC alone gives statistical reliability: it repairs nothing beyond its strength, and no losses.",
        criterion: "Reproduced if the quasi-reliable mode delivers all at 0 and less at 1e-4, with damaged and with lost pieces; partly if less at 1e-4.",
        see: &["modes-delivered", "strength-delivered"],
        check: under!(MODES, |view| {
            let (clean, worst) = (view.share(QUASI, "0")?, view.share(QUASI, WORST)?);
            let left = |cause| view.at(QUASI, WORST, cause);
            let (damaged, lost) = (left("residual_loss.damaged")?, left("residual_loss.lost")?);
            Some(ClaimFinding::new(
                ClaimVerdict::of(
                    clean >= 1.0 && worst < 1.0 && damaged > 0.0 && lost > 0.0,
                    worst < clean,
                ),
                format!("{} delivered at 1e-4", percent(worst)),
                format!(
                    "A run lost {damaged:.1} pieces to damage and {lost:.1} of which nothing came."
                ),
            ))
        }),
    },
    PaperClaim {
        id: "type-one-low",
        place: SCHEMES,
        says: "A type-I hybrid costs more at low error rates: the parity is sent for nothing.",
        criterion: "Reproduced if, without errors, NACK+MACK has more overhead than the reliable mode; partly if not less.",
        see: &["modes-overhead"],
        check: under!(MODES, |view| {
            let (both, reliable) = (view.overhead(BOTH, "0")?, view.overhead(RELIABLE, "0")?);
            Some(ClaimFinding::bare(
                ClaimVerdict::of(both > reliable, both >= reliable),
                format!("{}, reliable {} at 0", kilobytes(both), kilobytes(reliable)),
            ))
        }),
    },
    PaperClaim {
        id: "type-one-high",
        place: SCHEMES,
        says: "At high error rates its code may not suffice; retransmissions grow and throughput falls.",
        criterion: "Reproduced if, from 1e-5 to 1e-4, NACK+MACK's retransmissions grow at least twofold and its goodput falls by 1 %; partly if the former.",
        see: &["modes-goodput", "strength-goodput", "strength-overhead"],
        check: under!(MODES, |view| {
            let (few, many) = (view.repeated(BOTH, "1e-5")?, view.repeated(BOTH, WORST)?);
            let (fast, slow) = (view.goodput(BOTH, "1e-5")?, view.goodput(BOTH, WORST)?);
            let grow = many >= 2.0 * few;
            let comment = if view.is_printed() {
                let twelve = view.data.mean("strength", BOTH, "12", "goodput_bps")?;
                let suffices = if twelve >= 0.99 * view.goodput(BOTH, "0")? {
                    "suffices"
                } else {
                    "does not suffice either"
                };
                format!(
                    "With 12 words the code {suffices}: {} at 1e-4.",
                    rate(twelve)
                )
            } else {
                String::new()
            };
            Some(ClaimFinding::new(
                ClaimVerdict::of(grow && slow < 0.99 * fast, grow),
                format!(
                    "{} to {} repeated, {} to {}",
                    kilobytes(few),
                    kilobytes(many),
                    rate(fast),
                    rate(slow)
                ),
                comment,
            ))
        }),
    },
    PaperClaim {
        id: "nack-reliability",
        place: HYBRIDS,
        says: "NACKs alone are more reliable than the quasi-reliable mode, but not fully: lost TPDUs stay lost.",
        criterion: "Reproduced if NACK delivers more than the quasi-reliable mode from 1e-5 on, and not all at 1e-4, where pieces are missing of which nothing came; partly \
            if more at 1e-4.",
        see: &["modes-delivered", "strength-delivered"],
        check: under!(MODES, |view| {
            let pairs = view.pairs(HIGH, |view, x| {
                Some((view.share(NACK, x)?, view.share(QUASI, x)?))
            })?;
            let more = count(&pairs, |nack, quasi| nack > quasi) == pairs.len();
            let (_, nack, quasi) = *pairs.last()?;
            let lost = view.at(NACK, WORST, "residual_loss.lost")?;
            Some(ClaimFinding::new(
                ClaimVerdict::of(more && nack < 1.0 && lost > 0.0, nack > quasi),
                format!(
                    "{}, quasi-reliable {} at 1e-4",
                    percent(nack),
                    percent(quasi)
                ),
                format!("Of {lost:.1} pieces a run, nothing came."),
            ))
        }),
    },
    PaperClaim {
        id: "nack-mack-reliability",
        place: HYBRIDS,
        says: "NACKs and MACKs together are as reliable as the reliable mode.",
        criterion: "Reproduced if NACK+MACK is complete in as many runs as the reliable mode at every rate, partly if it delivers 99 %.",
        see: &["modes-delivered"],
        check: under!(MODES, |view| {
            let pairs = view.pairs(ALL, |view, x| {
                let done = |line| view.at(line, x, "completed");
                Some((done(BOTH)?, done(RELIABLE)?))
            })?;
            let shares: Option<Vec<f64>> = ALL.iter().map(|x| view.share(BOTH, x)).collect();
            let least = shares?.into_iter().reduce(f64::min)?;
            let as_many = count(&pairs, |both, reliable| both >= reliable) == pairs.len();
            Some(ClaimFinding::bare(
                ClaimVerdict::of(as_many, least >= 0.99),
                format!("{} delivered at least", percent(least)),
            ))
        }),
    },
    PaperClaim {
        id: "nack-mack-overhead",
        place: HYBRIDS,
        says: "Acknowledging as well costs overhead while errors are few, and pays in lossy conditions.",
        criterion: "Reproduced if, without errors, NACK+MACK has more overhead than NACK, and at 1e-4 delivers more with more goodput; partly if the former.",
        see: &["modes-overhead", "modes-goodput", "modes-delivered"],
        check: under!(MODES, |view| {
            let (both, nack) = (view.overhead(BOTH, "0")?, view.overhead(NACK, "0")?);
            let (all, some) = (view.share(BOTH, WORST)?, view.share(NACK, WORST)?);
            let (fast, slow) = (view.goodput(BOTH, WORST)?, view.goodput(NACK, WORST)?);
            Some(ClaimFinding::bare(
                ClaimVerdict::of(both > nack && all > some && fast > slow, both > nack),
                format!(
                    "{}, NACK {} at 0; {}, NACK {} at 1e-4",
                    kilobytes(both),
                    kilobytes(nack),
                    rate(fast),
                    rate(slow)
                ),
            ))
        }),
    },
    PaperClaim {
        id: "nack-mack-delay",
        place: HYBRIDS,
        says: "Fewer retransmissions, asked for only where the code fails, improve the delay.",
        criterion: "Reproduced if NACK+MACK's delay is lower than the reliable mode's and its retransmissions at most half, at each rate from 1e-5 on; partly if \
            so at most of them.",
        see: &["modes-delay", "modes-overhead"],
        check: under!(MODES, |view| {
            let pairs = view.pairs(HIGH, |view, x| {
                Some((
                    view.ratio(BOTH, x, "delay_mean_s")?,
                    view.ratio(BOTH, x, "wire_bytes.retransmission")?,
                ))
            })?;
            let held = count(&pairs, |delay, repeated| delay < 1.0 && repeated <= 0.5);
            let (_, delay, repeated) = *pairs.last()?;
            Some(ClaimFinding::bare(
                ClaimVerdict::of(held == pairs.len(), 2 * held > pairs.len()),
                format!(
                    "{delay:.3} of the delay, {} of the retransmissions at 1e-4",
                    percent(repeated)
                ),
            ))
        }),
    },
];

fn ack_stream(data: &Data) -> Option<ClaimFinding> {
    let goodput = |line, x| data.mean("way-back", line, x, "goodput_bps");
    let share = |narrow, line, x| Some(goodput(narrow, x)? / goodput(line, "5000")?);
    let (tcp, ours) = (
        share(BACK_TCP, BACK_TCP, "20")?,
        share(BACK_AEROTP, BACK_AEROTP, "20")?,
    );
    let lossy = share(BACK_TCP_LOSSY, BACK_TCP, "5000")?;
    let ours_lossy = share(BACK_AEROTP_LOSSY, BACK_AEROTP, "5000")?;
    let (narrow, lost) = (tcp <= 0.5 && ours >= 0.9, lossy <= 0.5 && ours_lossy >= 0.9);
    Some(ClaimFinding::new(
ClaimVerdict::of(narrow && lost, narrow || lost),
format!(
            "{} of the goodput at 20 kbit/s, AeroTP {}; {} with half lost, AeroTP {}",
            percent(tcp),
            percent(ours),
            percent(lossy),
            percent(ours_lossy)
        ),
"TCP's acknowledgements are cumulative: one says what those lost before it said. What it cannot do is send fewer.".to_owned(),
))
}

fn moderate(view: &View<'_>) -> Option<ClaimFinding> {
    let rates = ["1e-5", "2.5e-5", "3.5e-5", "5e-5"];
    let mut held = 0;
    for x in rates {
        let goodput = view.goodput(BOTH, x)?;
        let best = view.goodput(RELIABLE, x)?.max(view.goodput(QUASI, x)?);
        let sooner = view.delay(BOTH, x)? < view.delay(RELIABLE, x)?;
        let more = view.share(BOTH, x)? > view.share(QUASI, x)?;
        held += usize::from(goodput >= 0.99 * best && sooner && more);
    }
    Some(ClaimFinding::bare(
        ClaimVerdict::of(held == rates.len(), 2 * held > rates.len()),
        format!(
            "at 2.5e-5 {}, {} and {}; reliable {}, {}; quasi-reliable {}, {}",
            rate(view.goodput(BOTH, "2.5e-5")?),
            seconds(view.delay(BOTH, "2.5e-5")?),
            percent(view.share(BOTH, "2.5e-5")?),
            rate(view.goodput(RELIABLE, "2.5e-5")?),
            seconds(view.delay(RELIABLE, "2.5e-5")?),
            rate(view.goodput(QUASI, "2.5e-5")?),
            percent(view.share(QUASI, "2.5e-5")?)
        ),
    ))
}

/// The share of the data's octets from which on acknowledgements are a price.
const PRICE: f64 = 0.005;

fn trade(view: &View<'_>) -> Option<ClaimFinding> {
    let delay = |x| {
        Some((
            view.delay(RELIABLE, x)?,
            view.half(RELIABLE, x, "delay_mean_s"),
        ))
    };
    let ((clean, clean_half), (lossy, lossy_half)) = (delay("0")?, delay("1e-5")?);
    // A single run has no interval, and decides nothing.
    let half = clean_half.unwrap_or(f64::INFINITY) + lossy_half.unwrap_or(f64::INFINITY);
    let at = |name| view.at(RELIABLE, "1e-5", name);
    let (control, delivered) = (at("wire_bytes.control")?, at("delivered_bytes")?);
    let done = at("completed")? >= 1.0;
    let prices = [lossy - clean > half, control >= PRICE * delivered];
    let paid = prices.iter().filter(|price| **price).count();
    let found = ClaimFinding::bare(
        ClaimVerdict::of(done && paid == 2, done && paid == 1),
        format!(
            "{} instead of {}, {} of acknowledgements",
            seconds(lossy),
            seconds(clean),
            kilobytes(control)
        ),
    );
    let open = done && clean - lossy < half;
    Some(found.open_if(
        open,
        "the intervals of the two delays leave it open whether it grows.",
    ))
}
