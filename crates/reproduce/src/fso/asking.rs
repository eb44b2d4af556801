//! Repetition that the receiver asks for, and repetition that has a limit: link layers over FASOLT's distance.

use super::families::table;
use super::view::{list, most};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;
use crate::family::{Family, FamilyLine};
use crate::parameter::{Axis, AxisUnit, SweptParameter};

const TIMER: &str = "sender's timer";
const SHORT_TIMER: &str = "sender's timer, too short";
const ASKED: &str = "requests alone";
const SHORT_ASKED: &str = "requests alone, timer too short";

/// The bit error rates both ways: of packets of 1039 octets .08 to 8 % are lost.
const RATES: [&str; 3] = ["1e-7", "1e-6", "1e-5"];

/// A round trip with a frame and an acknowledgement takes 421 us.
macro_rules! layers {
    ($($label:expr, $layer:literal, $timer:literal;)+) => {
        &[$(FamilyLine::of($label, &[$layer, $timer])),+]
    };
}

/// The layers with a timer that lets an answer come, and with one that does not.
pub(super) const ASKING: Family = Family {
    x: SweptParameter::numbers(
        "hop.ber",
        &RATES,
        "{}",
        Axis::logarithmic("bit error rate", AxisUnit::NONE),
    ),
    conditions: "A link layer offered more than it takes, 2 s over 61 km at 622 Mbit/s, packets of 1000 octets of user data; errors both ways.",
    ..table(
        "asking",
        &[
            "run.runs=2",
            "run.duration=2s",
            "hop.delay=203472ns",
            "hop.queue=100 packets",
            "hop.link.window=1024",
            "hop.link.retries=100",
            "hop.link.in_order=false",
            "flow.transport=udp",
            "flow.traffic=constant-rate",
            "flow.rate=622mbit",
            "flow.write=1000B",
            "flow.mtu=2000B",
        ],
        layers! {
            TIMER, "hop.link.layer=selective-repeat", "hop.link.retransmit_after=470us";
            SHORT_TIMER, "hop.link.layer=selective-repeat", "hop.link.retransmit_after=400us";
            ASKED, "hop.link.layer=nak-only", "hop.link.retransmit_after=470us";
            SHORT_ASKED, "hop.link.layer=nak-only", "hop.link.retransmit_after=400us";
        },
    )
};

/// The limits to retransmissions.
const LIMITS: [&str; 5] = ["0", "1", "2", "3", "7"];

/// Messages at a rate that leaves room, by the limit.
pub(super) const LIMITED: Family = Family {
    x: SweptParameter::numbers(
        "hop.link.retries",
        &LIMITS,
        "{}",
        Axis::linear("retransmissions, at most", AxisUnit::NONE),
    ),
    conditions: "Messages of 1000 octets, 100 Mbit/s for 2 s over 61 km at 622 Mbit/s, bit errors of 5e-5 both ways.",
    ..table(
        "limited",
        &[
            "run.runs=4",
            "run.duration=10s",
            "hop.delay=203472ns",
            "hop.ber=5e-5",
            "hop.queue=100 packets",
            "hop.link.window=1024",
            "hop.link.retransmit_after=470us",
            "flow.transport=udp",
            "flow.traffic=constant-rate",
            "flow.rate=100mbit",
            "flow.write=1000B",
            "flow.mtu=2000B",
            "flow.bytes=25MB",
        ],
        &[
            FamilyLine::of(
                TIMER,
                &["hop.link.layer=selective-repeat", "hop.link.in_order=true"],
            ),
            FamilyLine::of(ASKED, &["hop.link.layer=nak-only"]),
        ],
    )
};

pub(super) const CLAIMS: [PaperClaim; 2] = [
    PaperClaim {
        id: "naks-repeat-less",
        place: "Section 3.2",
        says: "Without a retransmission timer at the sender, relying on negative acknowledgements, fewer packets are repeated in vain: none because a timer was set wrong or an acknowledgement was lost.",
        criterion: "Reproduced if at each bit error rate the layer that is asked repeats less in vain than the one with a timer, by more than 1 frame in 10,000 where the timer is too short and by no more \
            than that where it is right; partly if so for the timer that is too short at most rates.",
        see: &[],
        check: naks_repeat_less,
    },
    PaperClaim {
        id: "limited-retransmissions",
        place: "Section 3.3.4",
        says: "Where delay matters more than delivery, the number of retransmissions can be limited: something above must then put up with what is missing.",
        criterion: "Reproduced if with both layers the 99th percentile of the delay with one retransmission is less than two thirds of that with seven, and with a limit of n, 0 to 3, the share that is \
            lost is within a tenth of the loss of a frame to the power n + 1; partly if the delay falls.",
        see: &[],
        check: limited,
    },
];

/// The share by which the frames that are accounted for may be more than those that were sent.
const ACCOUNTING_SLACK: f64 = 1e-3;

/// Frames repeated in vain, as a share of the frames with something new: what was sent, less what arrived damaged and what came out.
/// `None` if clearly more is accounted for than was sent, which is an error in the counts.
fn in_vain(data: &Data, line: &str, rate: &str) -> Option<f64> {
    let mean = |name: &str| data.mean("asking", line, rate, &format!("link.{name}"));
    let sent = mean("frames_data")? + mean("frames_again")?;
    let needed = mean("frames_rejected")? + mean("released_packets")?;
    // The last round trip's frames are under way when the run ends, and a few damaged frames were requests or answers.
    let share = (sent - needed) / mean("frames_data")?;
    (share >= -ACCOUNTING_SLACK).then_some(share.max(0.0))
}

fn naks_repeat_less(data: &Data) -> Option<ClaimFinding> {
    let shares = |line| {
        let shares = RATES.iter().map(|rate| in_vain(data, line, rate));
        shares.collect::<Option<Vec<f64>>>()
    };
    let (timer, asked) = (shares(TIMER)?, shares(ASKED)?);
    let (short, short_asked) = (shares(SHORT_TIMER)?, shares(SHORT_ASKED)?);
    let less = short.iter().zip(&short_asked);
    let less = less
        .filter(|(timer, asked)| **asked < **timer - 1e-4)
        .count();
    let pairs = timer.iter().zip(&asked);
    let no_more = pairs
        .filter(|(timer, asked)| **asked < **timer + 1e-4)
        .count();
    let percent = |shares: &[f64]| {
        list(
            &shares.iter().map(|share| share * 100.0).collect::<Vec<_>>(),
            2,
        )
    };
    let released = |line| {
        let each = RATES
            .iter()
            .map(|rate| data.mean("asking", line, rate, "link.goodput_bps"));
        let shares = each.map(|bps| Some(bps? / super::forms::RATE_BPS));
        shares.collect::<Option<Vec<f64>>>()
    };
    Some(ClaimFinding::new(
        ClaimVerdict::of(
            less == RATES.len() && no_more == RATES.len(),
            2 * less > RATES.len(),
        ),
        format!(
            "timer too short: {} %, asked {} %; right: {} %, asked {} %",
            percent(&short),
            percent(&short_asked),
            percent(&timer),
            percent(&asked)
        ),
        format!(
            "At 1e-7, 1e-6 and 1e-5. The share of the link that comes out is {} with the timer that is too short and {} with requests; with the right one {} and {}. Lost acknowledgements cost the timer \
             nothing here, because each acknowledges all that came.",
            list(&released(SHORT_TIMER)?, 3),
            list(&released(SHORT_ASKED)?, 3),
            list(&released(TIMER)?, 3),
            list(&released(ASKED)?, 3)
        ),
    ))
}

fn limited(data: &Data) -> Option<ClaimFinding> {
    let mut falls = Vec::new();
    let mut off = Vec::new();
    let mut figures = Vec::new();
    for line in [TIMER, ASKED] {
        let each = |name: &str| {
            let each = LIMITS
                .iter()
                .map(|limit| data.mean("limited", line, limit, name));
            each.collect::<Option<Vec<f64>>>()
        };
        let (delays, losses) = (each("delay_p99_s")?, each("link.residual_loss")?);
        let once = losses.first()?;
        falls.push(delays.get(1)? / delays.last()?);
        off.extend(
            (1..)
                .zip(&losses)
                .take(4)
                .map(|(power, loss)| (loss / once.powi(power) - 1.0).abs()),
        );
        let milliseconds: Vec<f64> = delays.iter().map(|delay| delay * 1e3).collect();
        let percent: Vec<f64> = losses.iter().map(|loss| loss * 100.0).collect();
        figures.push(format!(
            "{line} {} ms, {} % lost",
            list(&milliseconds, 2),
            list(&percent, 2)
        ));
    }
    let (delay, loss) = (most(&falls) < 2.0 / 3.0, most(&off) < 0.1);
    Some(ClaimFinding::new(
        ClaimVerdict::of(delay && loss, delay),
        figures.join("; "),
        format!(
            "With 0, 1, 2, 3 and 7 retransmissions at most, packets in order. Losses are off the power by {:.1} % at most.",
            most(&off) * 100.0
        ),
    ))
}
