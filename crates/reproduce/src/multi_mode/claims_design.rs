//! Results that the abstract, Table I and sections I to III state without a figure.

use super::causes::{AS_NS3, SPLIT, TCPS};
use super::claims_strength::{HEADER_LEN, by_headers};
use super::design::{
    FEEDBACK, FEEDBACK_PARITY, RAMP, RAMP_10, RAMP_AEROTP, RAMP_PLAIN, REPORTS, REPORTS_ONE,
    REPORTS_TWO,
};
use super::readings::{ALL, LOSSY, MODES, View, WORST, as_printed, percent};
use super::strength::{BY_AMOUNT, BY_RATE, STRENGTHS};
use super::tables::{
    BER, DATAGRAM, NACK_MACK, NEAR, PARITY, QUASI, RELIABLE, SETUP, SETUP_AEROTP, SETUP_TCP, TCP,
    UDP, UNRELIABLE,
};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;
use crate::reading::under;

const GOODPUT: &str = "goodput_bps";
const CONTROL: &str = "wire_bytes.control";
const SENT_AGAIN: &str = "wire_bytes.retransmission";

/// The round trip in the set-up's scenario.
const SETUP_ROUND_TRIP_S: f64 = 0.01;
/// The rate of the lossy link.
const LINK_BPS: f64 = 5e6;

pub(super) const CLAIMS: [PaperClaim; 14] = [
    PaperClaim {
        id: "traditional-fail",
        place: "abstract, section II.A",
        says: "TCP and UDP do not perform efficiently over a lossy wireless link.",
        criterion: "Reproduced if both deliver less than half at 1e-4, partly if one.",
        see: &["ber-goodput", "ber-delivered"],
        check: under!(MODES, |view| {
            let (tcp, udp) = (view.share(TCP, WORST)?, view.share(UDP, WORST)?);
            Some(ClaimFinding::bare(
                ClaimVerdict::of(tcp.max(udp) < 0.5, tcp.min(udp) < 0.5),
                format!("TCP delivers {}, UDP {}", percent(tcp), percent(udp)),
            ))
        }),
    },
    PaperClaim {
        id: "split-helps",
        place: "section II.A",
        says: "Split connections get round it.",
        criterion: "Reproduced if at 1e-5 TCP through two gateways has at least twice the goodput of TCP from end to end, \
            partly if more.",
        see: &["tcp-goodput"],
        check: split_helps,
    },
    PaperClaim {
        id: "handshake",
        place: "Table I, sections II.A and III.C",
        says: "TCP's handshake costs a round trip before the first data; AeroTP's data ride on its first packet.",
        criterion: "Reproduced if without loss TCP's first data come one round trip later, within 10 %; partly if later.",
        see: &["setup-delay"],
        check: |data| {
            let first = |line| data.mean(SETUP, line, "0", "first_arrival_s");
            let later = first(SETUP_TCP)? - first(SETUP_AEROTP)?;
            let trips = later / SETUP_ROUND_TRIP_S;
            Some(ClaimFinding::bare(
                ClaimVerdict::of((trips - 1.0).abs() <= 0.1, later > 0.0),
                format!("{:.2} ms later, the round trip is 10", later * 1e3),
            ))
        },
    },
    PaperClaim {
        id: "short-contact",
        place: "section IV.A",
        says: "AeroTP can use paths that exist for a few seconds, while TCP is still connecting.",
        criterion: "Reproduced if at 20 % loss AeroTP has data at the sink within 3 s in every run, and TCP not in a \
            quarter of them; partly if not in some.",
        see: &["setup-delay"],
        check: short_contact,
    },
    PaperClaim {
        id: "second-packet",
        place: "section IV.A",
        says: "If AeroTP's first packet is lost, the second or a later one makes the connection.",
        criterion: "Reproduced if at 20 % loss the first arrival in every run is a whole number of the source's \
            intervals later than without loss, and no timer more; partly if in 95 % of them.",
        see: &["setup-delay"],
        check: second_packet,
    },
    PaperClaim {
        id: "selective-repeat",
        place: "Table I, sections III.C and IV",
        says: "AeroTP's ARQ is a selective repeat: only what is lost is sent again, and all data get through with high \
            probability.",
        criterion: "Reproduced if from 5e-5 on every run completes with at least 95 % of the goodput that an ARQ can \
            have at most, partly with 80 %.",
        see: &["ber-goodput"],
        check: selective_repeat,
    },
    PaperClaim {
        id: "integrity",
        place: "Table I, section III.B",
        says: "The checks of header (CRC-16) and payload (CRC-32) notice what bit errors damage.",
        criterion: "Reproduced if in none of AeroTP's runs of Figures 13-24 a wrong octet was delivered, partly if one in \
            a million.",
        see: &["ber-delivered", "strength-delivered"],
        check: integrity,
    },
    PaperClaim {
        id: "negative-acks",
        place: "Table I",
        says: "Negative acknowledgements are optional.",
        criterion: "Reproduced if the reliable mode without them and the NACK+MACK mode with them both complete every \
            run, partly if one does.",
        see: &["ber-delivered"],
        check: |data| {
            let least = |line| {
                let done = LOSSY.iter().map(|x| data.mean(BER, line, x, "completed"));
                let done: Vec<f64> = done.collect::<Option<_>>()?;
                done.into_iter().reduce(f64::min)
            };
            let (without, with) = (least(RELIABLE)?, least(NACK_MACK)?);
            let found = ClaimFinding::new(
                ClaimVerdict::of(without.min(with) >= 1.0, without.max(with) >= 1.0),
                format!("{} without, {} with", percent(without), percent(with)),
                "Shares of the runs that complete.".to_owned(),
            );
            Some(found.given("it is a property of the protocol, which was built so: one mode has them, the other has not."))
        },
    },
    PaperClaim {
        id: "decoupled",
        place: "Table I, section III.A",
        says: "Error control is decoupled from rate control: loss does not slow the sender down.",
        criterion: "Reproduced if at 1e-4 the reliable mode keeps the link 95 % busy until its last delivery, partly 80 %.",
        see: &["ber-goodput"],
        check: decoupled,
    },
    PaperClaim {
        id: "lean-segment",
        place: "section III.B",
        says: "For a link of little bandwidth, AeroTP's segment carries less than the headers of TCP and IP.",
        criterion: "Reproduced if for 500 kB in full packets AeroTP's packets take at least a tenth fewer octets beyond \
            the data than those of a TCP without options, partly if fewer.",
        see: &["ramp-goodput"],
        check: lean_segment,
    },
    PaperClaim {
        id: "near-reliable-lean",
        place: "section III.D",
        says: "The near-reliable mode takes only a limited number of acknowledgements, and less bandwidth than the \
            reliable mode.",
        criterion: "Reproduced if its control packets take fewer octets than the reliable mode's at each rate, partly if \
            at half of them.",
        see: &["feedback-control"],
        check: near_reliable,
    },
    PaperClaim {
        id: "quasi-no-acks",
        place: "section III.D",
        says: "The quasi-reliable mode has neither acknowledgements nor retransmissions.",
        criterion: "Reproduced if nothing is sent again and 20 MB take no more control octets than 1 MB, partly if nothing \
            is sent again.",
        see: &["reports-control"],
        check: quasi_no_acks,
    },
    PaperClaim {
        id: "quasi-arbitrary",
        place: "section III.D",
        says: "By its strength, the quasi-reliable mode gives any statistical reliability, but no guarantee.",
        criterion: "Reproduced if at 1e-4 strengths up to 8 words lose ever less, stronger ones no more than hit network \
            headers account for (and three standard deviations of that share over all runs), and none delivers all; partly \
            if 8 words lose less than none.",
        see: &["strength-delivered", "header-delivered"],
        check: |data| quasi_arbitrary(&as_printed(data)),
    },
    PaperClaim {
        id: "unreliable-plain",
        place: "section III.D",
        says: "The unreliable modes correct nothing themselves: they deliver what the link does, as UDP.",
        criterion: "Reproduced if both deliver what UDP delivers at each rate, within 2 % of the data; partly within 5 %.",
        see: &["ber-delivered"],
        check: unreliable_plain,
    },
];

fn split_helps(data: &Data) -> Option<ClaimFinding> {
    let goodput = |line| data.mean(TCPS, line, "1e-5", GOODPUT);
    let (split, whole) = (goodput(SPLIT)?, goodput(AS_NS3)?);
    Some(ClaimFinding::new(
        ClaimVerdict::of(split >= 2.0 * whole, split > whole),
        format!("{:.2} Mbit/s instead of {:.2}", split / 1e6, whole / 1e6),
        "Between our gateways runs AeroTP's near-reliable mode.".to_owned(),
    ))
}

fn short_contact(data: &Data) -> Option<ClaimFinding> {
    let runs = data.at(SETUP, SETUP_TCP, "20", "completed")?.n;
    let late = |line| {
        let times = data.each(SETUP, line, "20", "first_arrival_s")?;
        let here = times.iter().filter(|time| **time <= 3.0).count();
        Some(1.0 - here as f64 / runs as f64)
    };
    let (tcp, aerotp) = (late(SETUP_TCP)?, late(SETUP_AEROTP)?);
    Some(ClaimFinding::bare(
        ClaimVerdict::of(tcp >= 0.25 && aerotp <= 0.0, tcp > aerotp),
        format!(
            "TCP not in {} of the runs, AeroTP in {}",
            percent(tcp),
            percent(aerotp)
        ),
    ))
}

fn second_packet(data: &Data) -> Option<ClaimFinding> {
    /// The source's interval: 1400 octets at 4.2 Mbit/s.
    const INTERVAL_S: f64 = 1400.0 * 8.0 / 4.2e6;
    let clean = data.mean(SETUP, SETUP_AEROTP, "0", "first_arrival_s")?;
    let times = data.each(SETUP, SETUP_AEROTP, "20", "first_arrival_s")?;
    let whole = |time: &&f64| {
        let intervals = (**time - clean) / INTERVAL_S;
        // A packet waits for the one before it on the link, half an interval at most.
        (intervals - intervals.round()).abs() < 0.01
    };
    let share = times.iter().filter(whole).count() as f64 / times.len() as f64;
    let latest = times.iter().copied().reduce(f64::max)?;
    Some(ClaimFinding::new(
        ClaimVerdict::of(share >= 1.0, share >= 0.95),
        format!(
            "{} of the runs, the latest after {:.1} ms",
            percent(share),
            latest * 1e3
        ),
        "Retransmissions may come in between, and are counted against it.".to_owned(),
    ))
}

fn selective_repeat(data: &Data) -> Option<ClaimFinding> {
    let mut least = 1.0_f64;
    let mut done = 1.0_f64;
    for x in ["5e-5", "7.5e-5", WORST] {
        let of = |name| data.mean(BER, RELIABLE, x, name);
        least = least.min(of("efficiency_arq")?);
        done = done.min(of("completed")?);
    }
    Some(ClaimFinding::new(
        ClaimVerdict::of(done >= 1.0 && least >= 0.95, done >= 1.0 && least >= 0.8),
        format!("{} of the bound at least", percent(least)),
        "The bound counts headers as payload, which are 2.7 %, and nothing for the last repair."
            .to_owned(),
    ))
}

fn integrity(data: &Data) -> Option<ClaimFinding> {
    let modes = [
        RELIABLE, PARITY, NEAR, NACK_MACK, QUASI, UNRELIABLE, DATAGRAM,
    ];
    let modes = modes.map(|line| (BER, line));
    let strengths = STRENGTHS.map(|(line, _)| (BY_RATE, line));
    let (mut wrong, mut damaged, mut delivered) = (0.0, 0.0, 0.0);
    for (family, line) in modes.into_iter().chain(strengths) {
        for x in LOSSY {
            let total = |name| {
                let summary = data.at(family, line, x, name)?;
                Some(summary.mean? * summary.n as f64)
            };
            wrong += total("corrupt_bytes")?;
            damaged += total("wire_damaged")?;
            delivered += total("delivered_bytes")?;
        }
    }
    Some(ClaimFinding::bare(
        ClaimVerdict::of(wrong <= 0.0, wrong <= delivered / 1e6),
        format!("{wrong:.0} wrong octets after {damaged:.0} damaged packets"),
    ))
}

fn decoupled(data: &Data) -> Option<ClaimFinding> {
    let of = |name| data.mean(BER, RELIABLE, WORST, name);
    let sent = of("wire_bytes.source")? + of(SENT_AGAIN)?;
    let busy = 8.0 * sent / of("last_delivery_s")? / LINK_BPS;
    Some(ClaimFinding::new(
        ClaimVerdict::of(busy >= 0.95, busy >= 0.8),
        format!("{} busy", percent(busy)),
        "With 70 % of the packets damaged.".to_owned(),
    ))
}

fn lean_segment(data: &Data) -> Option<ClaimFinding> {
    let beyond = |line| {
        let of = |name| data.mean(RAMP, line, "500", name);
        Some(of("wire_bytes.source")? - of("delivered_bytes")?)
    };
    let (aerotp, tcp) = (beyond(RAMP_AEROTP)?, beyond(RAMP_PLAIN)?);
    Some(ClaimFinding::new(
        ClaimVerdict::of(aerotp <= 0.9 * tcp, aerotp < tcp),
        format!("{:.1} kB, TCP {:.1} kB for 500 kB", aerotp / 1e3, tcp / 1e3),
        format!(
            "Our header and the payload's check take as many octets as TCP's header, 20. With timestamps, which ns-3's TCP of today carries (reference/README.md), TCP has {:.1} kB. \
             Ours runs over IP; over AeroNP, which the paper foresees, 20 octets of each packet would be others.",
            beyond(RAMP_10)? / 1e3
        ),
    ))
}

fn near_reliable(data: &Data) -> Option<ClaimFinding> {
    let rates = ALL.iter().copied();
    let control = |line, x| data.mean(BER, line, x, CONTROL);
    let pairs = rates.map(|x| Some((control(NEAR, x)?, control(RELIABLE, x)?)));
    let pairs: Vec<(f64, f64)> = pairs.collect::<Option<_>>()?;
    let fewer = pairs.iter().filter(|(near, full)| near < full).count();
    let ((near, full), (near_worst, full_worst)) = (*pairs.first()?, *pairs.last()?);
    Some(ClaimFinding::new(
        ClaimVerdict::of(fewer == pairs.len(), 2 * fewer >= pairs.len()),
        format!(
            "{:.1} kB, reliable {:.1} kB without errors",
            near / 1e3,
            full / 1e3
        ),
        format!(
            "Fewer at {fewer} of {} rates. Its requests grow with the loss: at 1e-4 its control packets take {:.1} kB, the \
             reliable mode's {:.1} kB. With 32 words of parity, which leave it little to ask for, they take {:.1} kB.",
            pairs.len(),
            near_worst / 1e3,
            full_worst / 1e3,
            data.mean(FEEDBACK, FEEDBACK_PARITY, WORST, CONTROL)? / 1e3
        ),
    ))
}

fn quasi_no_acks(data: &Data) -> Option<ClaimFinding> {
    let of = |x, name| data.mean(BY_AMOUNT, "32 words", x, name);
    let again = data.mean(BY_RATE, "32 words", WORST, SENT_AGAIN)?;
    let (little, much) = (of("1", CONTROL)?, of("20", CONTROL)?);
    let share = much / of("20", "delivered_bytes")?;
    let sent = |line, x| data.mean(REPORTS, line, x, CONTROL);
    let found = ClaimFinding::new(
        ClaimVerdict::of(again <= 0.0 && much <= little, again <= 0.0),
        format!(
            "{again:.0} B sent again; {} of the data in control packets",
            percent(share)
        ),
        format!(
            "Ours tell the sender at which rate packets arrive, so that it can follow the link (ADR-0011). They confirm nothing \
             and ask for nothing, but go by time: 1 MB at half the source's rate takes {:.1} kB of them, as 2 MB at the whole \
             rate do ({:.1} kB).",
            sent(REPORTS_ONE, "2.208")? / 1e3,
            sent(REPORTS_TWO, "4.416")? / 1e3
        ),
    );
    Some(found.given("the mode was built without them; what goes back is our own addition."))
}

fn quasi_arbitrary(view: &View<'_>) -> Option<ClaimFinding> {
    let missing = |(line, _): &(&str, &str)| Some(1.0 - view.share(line, WORST)?);
    let lost: Vec<f64> = STRENGTHS.iter().map(missing).collect::<Option<_>>()?;
    let (weak, strong) = STRENGTHS.split_at(STRENGTHS.iter().position(|(_, n)| *n == "16")?);
    let falls = lost[..weak.len()].windows(2).all(|pair| pair[1] < pair[0]);
    let near = strong.iter().map(|(line, _)| by_headers(view, line, WORST));
    let near: Vec<bool> = near.collect::<Option<_>>()?;
    let some = lost.iter().all(|lost| *lost > 0.0);
    let all = falls && near.iter().all(|near| *near) && some;
    Some(ClaimFinding::new(
        ClaimVerdict::of(all, lost.get(3)? < lost.first()?),
        format!(
            "{} lost without parity, {} with 4 words, {} with 16",
            percent(*lost.first()?),
            percent(*lost.get(2)?),
            percent(*lost.get(4)?)
        ),
        format!(
            "Hit network headers alone are {}.",
            percent(view.hit(HEADER_LEN, WORST)?)
        ),
    ))
}

fn unreliable_plain(data: &Data) -> Option<ClaimFinding> {
    let share = |line, x| {
        let of = |name| data.mean(BER, line, x, name);
        Some(of("delivered_bytes")? / of("offered_bytes")?)
    };
    let mut most = 0.0_f64;
    for x in LOSSY {
        for line in [UNRELIABLE, DATAGRAM] {
            most = most.max((share(line, x)? - share(UDP, x)?).abs());
        }
    }
    Some(ClaimFinding::bare(
        ClaimVerdict::of(most <= 0.02, most <= 0.05),
        format!("within {} of the data", percent(most)),
    ))
}
