//! The claims of both papers' section II.A about TCP over lossy links and outages.

use super::causes::{SACK, TCPS, UNCONTROLLED};
use super::design::{
    MOMENTS, OUTAGE, OUTAGE_AEROTP, OUTAGE_TCP, OUTAGE_UNCONTROLLED, RAMP, RAMP_1, RAMP_10,
    RAMP_AEROTP, STARTS,
};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;

const GOODPUT: &str = "goodput_bps";
/// The round trip in the scenario of short transfers.
const RAMP_ROUND_TRIP_S: f64 = 0.1;

pub(crate) const CLAIMS: [PaperClaim; 4] = [
    PaperClaim {
        id: "tcp-mistakes-loss",
        place: "section II.A",
        says: "TCP takes every loss for congestion and shrinks its window, which wastes bandwidth.",
        criterion: "Reproduced if at 1e-5, where no queue overflows, TCP with SACK has at least twice the goodput once \
            its congestion control is off; partly if more.",
        see: &["tcp-goodput"],
        check: mistakes_loss,
    },
    PaperClaim {
        id: "slow-start",
        place: "section II.A",
        says: "With slow start TCP takes many round trips until it uses the bandwidth; AeroTP sends at the link's \
            rate at once.",
        criterion: "Reproduced if for 500 kB TCP takes at least three round trips longer than AeroTP beyond the one of its handshake, with an initial \
            window of 10 and of 1; partly with one of them.",
        see: &["ramp-goodput"],
        check: slow_start,
    },
    PaperClaim {
        id: "outage-short",
        place: "section II.A",
        says: "In short outages TCP's congestion control adds retransmissions.",
        criterion: "Reproduced if over an outage of 1 s, on average over ten moments of its start, TCP sends twice as much again as \
            the same TCP without congestion control; partly if a tenth more. What AeroTP sends again is beside it and decides nothing: another \
            protocol shows no cause.",
        see: &["outage-again", "outage-last"],
        check: outage_short,
    },
    PaperClaim {
        id: "outage-long",
        place: "section II.A",
        says: "In longer outages TCP's connection is terminated.",
        criterion: "Reproduced if TCP gives up in an outage of 200 s or less, and AeroTP, told to be patient, \
            completes; partly if TCP gives up.",
        see: &["outage-delivered", "outage-last"],
        check: outage_long,
    },
];

fn mistakes_loss(data: &Data) -> Option<ClaimFinding> {
    let goodput = |line| data.mean(TCPS, line, "1e-5", GOODPUT);
    let (with, without) = (goodput(SACK)?, goodput(UNCONTROLLED)?);
    let dropped = data.mean(TCPS, SACK, "1e-5", "wire_loss.queue")?;
    let times = without / with;
    Some(ClaimFinding::bare(
        ClaimVerdict::of(times >= 2.0 && dropped <= 0.0, times > 1.0),
        format!("{:.2} Mbit/s instead of {:.2}", without / 1e6, with / 1e6),
    ))
}

fn slow_start(data: &Data) -> Option<ClaimFinding> {
    let last = |line| data.mean(RAMP, line, "500", "last_delivery_s");
    let aerotp = last(RAMP_AEROTP)?;
    let trips = |line| Some((last(line)? - aerotp) / RAMP_ROUND_TRIP_S - 1.0);
    let (ten, one) = (trips(RAMP_10)?, trips(RAMP_1)?);
    Some(ClaimFinding::new(
        ClaimVerdict::of(ten.min(one) >= 3.0, ten.max(one) >= 3.0),
        format!("{ten:.1} and {one:.1} round trips longer, the handshake aside"),
        "Of 100 ms, with 10 and with 1.".to_owned(),
    ))
}

fn outage_short(data: &Data) -> Option<ClaimFinding> {
    let of = |line, name| {
        let values = STARTS.iter().map(|x| data.mean(MOMENTS, line, x, name));
        let values: Vec<f64> = values.collect::<Option<_>>()?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    };
    let again = |line| of(line, "wire_bytes.retransmission");
    let last = |line| of(line, "last_delivery_s");
    let (tcp, plain) = (again(OUTAGE_TCP)?, again(OUTAGE_UNCONTROLLED)?);
    let aerotp = again(OUTAGE_AEROTP)?;
    Some(ClaimFinding::new(
        ClaimVerdict::of(tcp >= 2.0 * plain, tcp >= 1.1 * plain),
        format!(
            "{:.0} kB sent again, without congestion control {:.0} kB, AeroTP {:.0} kB",
            tcp / 1e3,
            plain / 1e3,
            aerotp / 1e3
        ),
        format!(
            "The control is the same TCP with its congestion control off: {}. Done after {:.1} s, {:.1} s and {:.1} s.",
            if tcp > plain {
                "it sends less again"
            } else {
                "it sends no less again, so that congestion control is not what adds them"
            },
            last(OUTAGE_TCP)?,
            last(OUTAGE_UNCONTROLLED)?,
            last(OUTAGE_AEROTP)?
        ),
    ))
}

fn outage_long(data: &Data) -> Option<ClaimFinding> {
    let gave_up = |x: &&str| data.mean(OUTAGE, OUTAGE_TCP, x, "gave_up");
    let lengths = ["10", "30", "100", "200"];
    let ends: Vec<f64> = lengths.iter().map(gave_up).collect::<Option<_>>()?;
    let first = lengths.iter().zip(&ends).find(|(_, share)| **share >= 1.0);
    let patient = data.mean(OUTAGE, OUTAGE_AEROTP, "200", "completed")?;
    let figure = first.map_or_else(
        || "TCP never gives up in 200 s".to_owned(),
        |(length, _)| format!("TCP gives up in an outage of {length} s"),
    );
    Some(ClaimFinding::new(
        ClaimVerdict::of(first.is_some() && patient >= 1.0, first.is_some()),
        figure,
        "After 6 repeats, as in ns-3. AeroTP's own patience is 120 s by default.".to_owned(),
    ))
}
