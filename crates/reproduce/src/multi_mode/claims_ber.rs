//! The paper's claims about the modes against the bit error rate (sections IV.B and IV.D, Figures 21-24).

use super::causes::{
    CUT, HOLES, HOLES_PARITY, PATIENT, QUEUES, QUICK, SLOW, SLOW_PARITY, SLOWER, TCPS,
};
use super::overlays;
use super::readings::{ALL, LOSSY, MODES, View, WORST, growth_of, percent};
use super::tables::{PARITY, QUASI, RELIABLE, TCP, UDP};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::overlay::Overlay;
use crate::reading::under;
use crate::reading::{BACKS_OFF, FULL, backs_off, falls};

/// The rates below the one that the paper names.
const LOW: [&str; 5] = ["0", "1e-6", "5e-6", "1e-5", "2.5e-5"];

const GOODPUT: &str = "goodput_bps";
const DELAY: &str = "delay_mean_s";
const OVERHEAD: &str = "overhead_bytes";

const GOODPUT_PLACE: &str = "section IV.D, Figure 21";
const DELAY_PLACE: &str = "section IV.D, Figure 22";
const DELIVERED_PLACE: &str = "section IV.D, Figure 23";
const OVERHEAD_PLACE: &str = "section IV.D, Figure 24";

pub(super) const CLAIMS: [PaperClaim; 16] = [
    PaperClaim {
        id: "arq-complete",
        place: "sections II and IV.B",
        says: "Given time, the reliable mode brings every lost packet through.",
        criterion: "Reproduced if every run at every rate completed, partly if 95 % did.",
        see: &["ber-delivered"],
        check: under!(MODES, arq_complete),
    },
    PaperClaim {
        id: "goodput-reliable",
        place: GOODPUT_PLACE,
        says: "AeroTP's reliable mode performs much better than TCP.",
        criterion: "Reproduced if its goodput is at least twice TCP's at every rate from 1e-5 on and nowhere \
            1 % lower; partly if it is higher at most of the rates above 0.",
        see: &["ber-goodput"],
        check: under!(MODES, goodput_reliable),
    },
    PaperClaim {
        id: "goodput-tcp-backs-off",
        place: GOODPUT_PLACE,
        says: "TCP backs off substantially as the bit error rate grows.",
        criterion: BACKS_OFF,
        see: &["ber-goodput", "tcp-goodput"],
        check: under!(MODES, |view| backs_off(view, TCP)),
    },
    PaperClaim {
        id: "goodput-tcp-unpredictable",
        place: GOODPUT_PLACE,
        says: "TCP's goodput becomes highly unpredictable, as its error bars show.",
        criterion: "Reproduced if, at some rate where TCP delivers at least half, single runs spread by more than a \
            quarter of their mean (standard deviation, which unlike an interval does not shrink with the number of runs), \
            and, relative to the mean, five times as far as the reliable mode's; partly if twice as far.",
        see: &["ber-goodput"],
        check: under!(MODES, tcp_unpredictable),
    },
    PaperClaim {
        id: "delay-tcp",
        place: DELAY_PLACE,
        says: "TCP's delay grows by three orders of magnitude up to 1e-4.",
        criterion: "Reproduced if the growth from 0 to 1e-4 is 2.5 to 3.5 orders, partly if 2 to 4.",
        see: &["ber-delay", "tcp-delay", "ber-delay-octet-10s"],
        check: under!(MODES, delay_tcp),
    },
    PaperClaim {
        id: "delay-reliable",
        place: DELAY_PLACE,
        says: "The reliable mode's delay grows by less than one order of magnitude.",
        criterion: "Reproduced below one order, partly below one and a half.",
        see: &["ber-delay", "queue-delay", "ber-delay-octet-10s-10ms"],
        check: under!(MODES, delay_reliable),
    },
    PaperClaim {
        id: "delivered-low-rates",
        place: DELIVERED_PLACE,
        says: "Below 3.5e-5, TCP and AeroTP both deliver the full 1 MB.",
        criterion: "Reproduced if both deliver 99.9 % at each rate below, partly if 90 %.",
        see: &["ber-delivered", "tcp-delivered"],
        check: under!(MODES, delivered_low_rates),
    },
    PaperClaim {
        id: "delivered-tcp-drops",
        place: DELIVERED_PLACE,
        says: "Above 3.5e-5, what TCP delivers falls rapidly.",
        criterion: "Reproduced if TCP delivers less than half from 5e-5 on, and ever less; partly if less \
            than half at 1e-4.",
        see: &["ber-delivered"],
        check: under!(MODES, delivered_tcp_drops),
    },
    PaperClaim {
        id: "delivered-reliable",
        place: DELIVERED_PLACE,
        says: "At the highest rates, AeroTP's reliable mode still delivers nearly all.",
        criterion: "Reproduced if it delivers 99 % at each rate from 5e-5 on, partly if 90 %.",
        see: &["ber-delivered"],
        check: under!(MODES, |view| {
            let share = view.least_share(RELIABLE, &["5e-5", "7.5e-5", WORST])?;
            Some(ClaimFinding::bare(
                ClaimVerdict::of(share >= 0.99, share >= 0.9),
                format!("{} at least", percent(share)),
            ))
        }),
    },
    PaperClaim {
        id: "delivered-udp",
        place: DELIVERED_PLACE,
        says: "UDP loses a share that grows with the bit error rate.",
        criterion: "Reproduced if UDP delivers less at each rate than at the one before, partly if less at \
            1e-4 than at 0.",
        see: &["ber-delivered"],
        check: under!(MODES, delivered_udp),
    },
    PaperClaim {
        id: "delivered-quasi",
        place: DELIVERED_PLACE,
        says: "The quasi-reliable mode loses a much smaller share than UDP.",
        criterion: "Reproduced if it loses at most a quarter of what UDP loses at each rate above 0, partly \
            if less than UDP.",
        see: &["ber-delivered", "header-delivered"],
        check: under!(MODES, delivered_quasi),
    },
    PaperClaim {
        id: "overhead-reliable",
        place: OVERHEAD_PLACE,
        says: "The reliable mode's advantage comes with much lower overhead than TCP's.",
        criterion: "Reproduced if its overhead is at most three quarters of TCP's at every rate at which TCP \
            delivers 90 %, partly if it is lower at every one.",
        see: &["ber-overhead", "tcp-overhead"],
        check: under!(MODES, overhead_reliable),
    },
    PaperClaim {
        id: "overhead-quasi",
        place: OVERHEAD_PLACE,
        says: "The quasi-reliable mode costs significant overhead.",
        criterion: "Reproduced if, without bit errors, it costs at least one and a half times the reliable \
            mode's overhead, partly if more than it.",
        see: &["ber-overhead"],
        check: under!(MODES, overhead_quasi),
    },
    PaperClaim {
        id: "delay-quasi",
        place: OVERHEAD_PLACE,
        says: "The quasi-reliable mode's delay does not grow with the bit error rate.",
        criterion: "Reproduced if the delay at 1e-4 is within 5 % of that at 0, partly if within 50 %.",
        see: &["ber-delay", "hole-delay"],
        check: under!(MODES, delay_quasi),
    },
    PaperClaim {
        id: "advantage",
        place: "abstract, section V",
        says: "On a lossy link AeroTP performs better than TCP and UDP.",
        criterion: "Reproduced if the reliable mode delivers at least what TCP and UDP do at each rate above 0 \
            with a higher goodput than TCP from 5e-6 on; partly if it delivers at least as much.",
        see: &["ber-goodput", "ber-delivered"],
        check: under!(MODES, advantage),
    },
    PaperClaim {
        id: "modes-trade",
        place: "abstract, sections I, IV.D and V",
        says: "The modes trade against each other: the reliable one delivers all at the price of delay, the \
            quasi-reliable one keeps the delay low at the price of overhead and of some of the data.",
        criterion: "Reproduced if at 1e-4 the reliable mode delivers more and the quasi-reliable one is ten times as \
            fast, and without errors the latter costs more; partly if two of the three hold.",
        see: &["ber-delay", "ber-delivered", "ber-overhead"],
        check: under!(MODES, modes_trade),
    },
];

fn arq_complete(view: &View<'_>) -> Option<ClaimFinding> {
    let done = ALL
        .iter()
        .copied()
        .map(|x| view.at(RELIABLE, x, "completed"));
    let done: Vec<f64> = done.collect::<Option<_>>()?;
    let least = done.into_iter().reduce(f64::min)?;
    Some(ClaimFinding::bare(
        ClaimVerdict::of(least >= 1.0, least >= 0.95),
        format!("{} of the runs at least", percent(least)),
    ))
}

/// The reliable mode's goodput over TCP's, by rate.
fn ratios<'a>(view: &View<'_>, rates: &[&'a str]) -> Option<Vec<(&'a str, f64)>> {
    let ratio = |x| {
        let tcp = view.at(TCP, x, GOODPUT)?;
        Some(view.at(RELIABLE, x, GOODPUT)? / tcp)
    };
    rates.iter().map(|&x| Some((x, ratio(x)?))).collect()
}

/// The rates above 0 at which TCP delivers at least half. The goodput of a run that delivers one
/// block of writes says nothing.
fn sound(view: &View<'_>) -> Vec<&'static str> {
    let mut rates = LOSSY.to_vec();
    rates.retain(|x| view.delivers(TCP, x, 0.5));
    rates
}

fn goodput_reliable(view: &View<'_>) -> Option<ClaimFinding> {
    let sound = ratios(view, &sound(view))?;
    let mut high = sound
        .iter()
        .skip_while(|(known, _)| *known != "1e-5")
        .peekable();
    let twice = high.peek().is_some() && high.all(|(_, ratio)| *ratio >= 2.0);
    let nowhere = sound.iter().all(|(_, ratio)| *ratio >= 0.99);
    let better = sound.iter().filter(|(_, ratio)| *ratio > 1.0).count();
    let (x, ratio) = *sound.last()?;
    Some(ClaimFinding::new(
ClaimVerdict::of(twice && nowhere, 2 * better > sound.len()),
format!("{ratio:.0} times TCP's at {x}"),
"Judged at the rates where TCP delivers at least half: the goodput of a run that delivers a \
            block or two has no meaning."
            .to_owned(),
))
}

fn tcp_unpredictable(view: &View<'_>) -> Option<ClaimFinding> {
    let spread = |line, x| view.spread(line, x, GOODPUT);
    let spreads = sound(view).into_iter();
    let spreads = spreads.map(|x| Some((x, spread(TCP, x)?, spread(RELIABLE, x)?)));
    let spreads: Vec<(&str, f64, f64)> = spreads.collect::<Option<_>>()?;
    let wide = |times: f64| {
        let mut spreads = spreads.iter();
        spreads.any(|(_, tcp, reliable)| *tcp > 0.25 && *tcp >= times * reliable)
    };
    let most = spreads.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(ClaimFinding::new(
        ClaimVerdict::of(wide(5.0), wide(2.0)),
        format!(
            "single runs spread by {} of their mean at {}",
            percent(most.1),
            most.0
        ),
        format!(
            "The reliable mode's by {}. 20 MB average over more losses in each run.",
            percent(most.2)
        ),
    ))
}

fn delay_tcp(view: &View<'_>) -> Option<ClaimFinding> {
    let orders = view.growth(TCP)?;
    Some(ClaimFinding::new(
        ClaimVerdict::of((2.5..=3.5).contains(&orders), (2.0..=4.0).contains(&orders)),
        format!("{orders:.1} orders"),
        format!(
            "The printed sentence is garbled: it also has the word \"doubles\". TCP's delay is set by how long a run may \
             last, which the paper does not say: of the same runs cut off at 10 s it grows by {:.1} orders, and by {:.1} if \
             TCP never gives up and has 1000 s.",
            growth_of(view.data, TCPS, CUT)?,
            growth_of(view.data, TCPS, PATIENT)?
        ),
    ))
}

fn delay_reliable(view: &View<'_>) -> Option<ClaimFinding> {
    let (ours, tcp) = (view.growth(RELIABLE)?, view.growth(TCP)?);
    let parity = view.growth(PARITY)?;
    let bound = view.at(RELIABLE, WORST, "arq_bound_bps")?;
    let sent = |name| view.data.mean(QUEUES, SLOWER, WORST, name);
    let ideal = |overlays: &[Overlay]| {
        let ideal = overlays.first()?;
        Some((ideal.at(1e-4)? / ideal.at(0.0)?).log10())
    };
    Some(ClaimFinding::new(
        ClaimVerdict::of(ours < 1.0, ours < 1.5),
        format!("{ours:.1} orders, TCP {tcp:.1}"),
        format!(
            "At 1e-4 the link carries {:.2} Mbit/s at most if damaged packets are dropped, and the source sends \
             4.416: the queue grows, whatever the acknowledgements. The ideal ARQ's, which knows every loss at once, \
             grows by {:.1} orders per bit, and by {:.1} per octet. With a source of 1.2 Mbit/s, slower than that bound, ours \
             grows by {:.1} orders, and by {:.1} with one of 0.4 Mbit/s, which leaves no queue: the rest are rounds of repair. A packet goes over the link {:.1} \
             times, each time after an acknowledgement of a later one, and what follows waits to be delivered in order. Parity spares the \
             rounds: with 32 words the delay grows by {:.1} orders at 0.4 Mbit/s, and by {parity:.1} at 4.416.",
            bound / 1e6,
            ideal(overlays::IDEAL_DELAY)?,
            ideal(overlays::IDEAL_DELAY_OCTET)?,
            growth_of(view.data, QUEUES, SLOW)?,
            growth_of(view.data, QUEUES, SLOWER)?,
            1.0 + sent("wire_bytes.retransmission")? / sent("wire_bytes.source")?,
            growth_of(view.data, QUEUES, SLOW_PARITY)?
        ),
    ))
}

fn delivered_low_rates(view: &View<'_>) -> Option<ClaimFinding> {
    let least = |line| view.least_share(line, &LOW);
    let (tcp, aerotp) = (least(TCP)?, least(RELIABLE)?);
    let both = tcp.min(aerotp);
    let patient = |x: &&str| {
        let of = |name| view.data.mean(TCPS, PATIENT, x, name);
        Some(of("delivered_bytes")? / of("offered_bytes")?)
    };
    let patient: Vec<f64> = LOW.iter().map(patient).collect::<Option<_>>()?;
    let patient = patient.into_iter().reduce(f64::min)?;
    let theirs = overlays::DELIVERED.first()?.at(2.5e-5)?;
    Some(ClaimFinding::new(
        ClaimVerdict::of(both >= FULL, both >= 0.9),
        format!("TCP {}, AeroTP {} at least", percent(tcp), percent(aerotp)),
        format!(
            "TCP falls short where it gives up, or is cut off at 300 s: one that never gives up and has 1000 s delivers {} at \
             least. ns-3's own TCP has {} at 2.5e-5.",
            percent(patient),
            percent(theirs / view.at(TCP, "2.5e-5", "offered_bytes")?)
        ),
    ))
}

fn delivered_tcp_drops(view: &View<'_>) -> Option<ClaimFinding> {
    let share = |x| view.share(TCP, x);
    let (first, second, last) = (share("5e-5")?, share("7.5e-5")?, share(WORST)?);
    let rapid = first < 0.5 && second < first && last < second;
    Some(ClaimFinding::bare(
        ClaimVerdict::of(rapid, last < 0.5),
        format!("{} at 5e-5, {} at 1e-4", percent(first), percent(last)),
    ))
}

fn delivered_udp(view: &View<'_>) -> Option<ClaimFinding> {
    let shares = view.shares(UDP)?;
    let (first, last) = (*shares.first()?, *shares.last()?);
    Some(ClaimFinding::bare(
        ClaimVerdict::of(falls(&shares), last < first),
        format!("{} lost at 1e-4", percent(1.0 - last)),
    ))
}

fn delivered_quasi(view: &View<'_>) -> Option<ClaimFinding> {
    let (udp, quasi) = (view.shares(UDP)?, view.shares(QUASI)?);
    let pairs = || {
        let pairs = udp.iter().zip(&quasi).skip(1);
        pairs.map(|(u, q)| (1.0 - u, 1.0 - q))
    };
    let worst = 1.0 - *quasi.last()?;
    let headers = view.at(QUASI, WORST, "wire_loss.network_header")?;
    Some(ClaimFinding::new(
        ClaimVerdict::of(
            pairs().all(|(u, q)| q <= u / 4.0),
            pairs().all(|(u, q)| q < u),
        ),
        format!("{} lost at 1e-4", percent(worst)),
        format!(
            "With 32 words. At 1e-4, {headers:.0} packets a run fell to damaged headers of the network \
             layer, which the transport's parity does not cover."
        ),
    ))
}

fn overhead_reliable(view: &View<'_>) -> Option<ClaimFinding> {
    let overhead = |line, x| view.at(line, x, OVERHEAD);
    let rates = ALL.iter().copied();
    let pairs = rates
        .filter(|x| view.delivers(TCP, x, 0.9))
        .map(|x| Some((x, overhead(RELIABLE, x)?, overhead(TCP, x)?)));
    let pairs: Vec<(&str, f64, f64)> = pairs.collect::<Option<_>>()?;
    let lower = |share: f64| {
        let mut lower = pairs.clone();
        lower.retain(|(_, ours, tcp)| *ours < share * tcp);
        lower.len()
    };
    let (x, ours, tcp) = *pairs.last()?;
    let parity = overhead(PARITY, "2.5e-5")?;
    let other = |line| view.data.mean(TCPS, line, "2.5e-5", OVERHEAD);
    let ideal = overlays::IDEAL_OVERHEAD.first()?.at(2.5e-5)?;
    Some(ClaimFinding::new(
        ClaimVerdict::of(lower(0.75) == pairs.len(), lower(1.0) == pairs.len()),
        format!("{:.0} kB, TCP {:.0} kB at {x}", ours / 1e3, tcp / 1e3),
        format!(
            "Lower at {} of {} rates, by a quarter or more at {}. At higher rates nearly all overhead is lost packets \
             sent again, which both must: at 2.5e-5 the ideal ARQ has {:.0} kB. There the mode has {:.0} kB with 32 words of \
             parity; a TCP whose timer is as short as the wait of delayed acknowledgements, 0.2 s, {:.0} kB, for ns-3's \
             window stays at one segment while the one before is repaired in vain; and one that \
             never gives up, which else saves what it does not send, {:.0} kB.",
            lower(1.0),
            pairs.len(),
            lower(0.75),
            ideal / 1e3,
            parity / 1e3,
            other(QUICK)? / 1e3,
            other(PATIENT)? / 1e3
        ),
    ))
}

fn overhead_quasi(view: &View<'_>) -> Option<ClaimFinding> {
    let overhead = |line| view.at(line, "0", OVERHEAD);
    let (quasi, reliable) = (overhead(QUASI)?, overhead(RELIABLE)?);
    let found = ClaimFinding::new(
        ClaimVerdict::of(quasi >= 1.5 * reliable, quasi > reliable),
        format!("{:.0} kB, reliable {:.0} kB", quasi / 1e3, reliable / 1e3),
        "With 32 words.".to_owned(),
    );
    Some(found.given("the number of words is our choice, the paper does not say its own; Figures 13 to 20 have others."))
}

fn delay_quasi(view: &View<'_>) -> Option<ClaimFinding> {
    let delay = |x| view.at(QUASI, x, DELAY);
    let (clean, worst) = (delay("0")?, delay(WORST)?);
    let grown = worst / clean - 1.0;
    Some(ClaimFinding::new(
        ClaimVerdict::of(grown <= 0.05, grown <= 0.5),
        format!("{:+.1} %, from {:.2} ms", 100.0 * grown, clean * 1e3),
        format!(
            "Data behind a hole wait up to 20 ms until it is given up, before they are delivered in order; without that wait \
             the delay changes by {:+.1} %.",
            100.0 * (10_f64.powf(growth_of(view.data, HOLES, HOLES_PARITY)?) - 1.0)
        ),
    ))
}

fn advantage(view: &View<'_>) -> Option<ClaimFinding> {
    let (tcp, udp) = (view.shares(TCP)?, view.shares(UDP)?);
    let reliable = view.shares(RELIABLE)?;
    let others = tcp.iter().zip(&udp).map(|(tcp, udp)| tcp.max(*udp));
    let more = reliable
        .iter()
        .zip(others)
        .all(|(ours, other)| *ours >= other);
    let ratios = ratios(view, &LOSSY[1..])?;
    let faster = ratios.iter().all(|(_, ratio)| *ratio > 1.0);
    Some(ClaimFinding::bare(
        ClaimVerdict::of(more && faster, more),
        format!(
            "{} at 1e-4; TCP {}, UDP {}",
            percent(*reliable.last()?),
            percent(*tcp.last()?),
            percent(*udp.last()?)
        ),
    ))
}

fn modes_trade(view: &View<'_>) -> Option<ClaimFinding> {
    let delay = |line| view.at(line, WORST, DELAY);
    let overhead = |line| view.at(line, "0", OVERHEAD);
    let (slow, fast) = (delay(RELIABLE)?, delay(QUASI)?);
    let (all, some) = (view.share(RELIABLE, WORST)?, view.share(QUASI, WORST)?);
    let signs = [
        all > some,
        slow >= 10.0 * fast,
        overhead(QUASI)? > overhead(RELIABLE)?,
    ];
    let held = signs.iter().filter(|sign| **sign).count();
    Some(ClaimFinding::bare(
        ClaimVerdict::of(held == 3, held == 2),
        format!(
            "{} in {:.0} ms against {} in {:.0} ms at 1e-4",
            percent(all),
            slow * 1e3,
            percent(some),
            fast * 1e3
        ),
    ))
}
