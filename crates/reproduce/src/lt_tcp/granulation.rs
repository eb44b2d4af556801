//! Granulation at the link: the number of parts of a packet, set and adaptive. The slides ask what it helps.

use super::families::{HARQ, HOP_FILE, LOSSY_PERCENT, SATURATION, error_rate};
use super::view::{LOSSY, list, megabits, over};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;
use crate::family::{Family, FamilyLine};
use crate::parameter::{Axis, AxisUnit, SweptParameter};

pub(super) const ADAPTIVE: &str = "LL-HARQ, adaptive";
/// The numbers of parts that are set.
const FIXED: [&str; 5] = [
    "LL-HARQ, whole packets",
    "LL-HARQ, 2 parts",
    "LL-HARQ, 4 parts",
    "LL-HARQ, 8 parts",
    "LL-HARQ, 16 parts",
];
/// The bit error rates: at the highest 92 % of whole packets are damaged.
const RATES: [&str; 6] = ["0", "1e-6", "1e-5", "5e-5", "1e-4", "3e-4"];

const LINES: &[FamilyLine] = &[
    FamilyLine::of(
        FIXED[0],
        &["hop.link.layer=ll-harq", "hop.link.fragments=1"],
    ),
    FamilyLine::of(
        FIXED[1],
        &["hop.link.layer=ll-harq", "hop.link.fragments=2"],
    ),
    FamilyLine::of(
        FIXED[2],
        &["hop.link.layer=ll-harq", "hop.link.fragments=4"],
    ),
    FamilyLine::of(
        FIXED[3],
        &["hop.link.layer=ll-harq", "hop.link.fragments=8"],
    ),
    FamilyLine::of(
        FIXED[4],
        &["hop.link.layer=ll-harq", "hop.link.fragments=16"],
    ),
    FamilyLine::of(
        ADAPTIVE,
        &["hop.link.layer=ll-harq", "hop.link.adaptive=true"],
    ),
];

pub(super) const GRANULATION: Family = Family {
    id: "granulation",
    scenario: HOP_FILE,
    sets: SATURATION,
    x: SweptParameter::numbers(
        "hop.forward.ber",
        &RATES,
        "{}",
        Axis::linear("bit error rate", AxisUnit::NONE),
    ),
    lines: LINES,
    conditions: "Packets of 1040 octets at 9.9 Mbit/s over one hop of 10 Mbit/s and 10 ms for 40 s; each bit of the way there inverted by itself.",
};

pub(super) const GRANULATION_LOST: Family = Family {
    id: "granulation-lost",
    scenario: HOP_FILE,
    sets: SATURATION,
    x: error_rate("hop.forward.loss", LOSSY_PERCENT, "on-off {}% period 20ms"),
    lines: &[
        FamilyLine::of(HARQ, &["hop.link.layer=ll-harq"]),
        FamilyLine::of(
            ADAPTIVE,
            &["hop.link.layer=ll-harq", "hop.link.adaptive=true"],
        ),
    ],
    conditions: "The same with whole units lost, ON and OFF 20 ms each.",
};

pub(super) const CLAIMS: [PaperClaim; 1] = [PaperClaim {
    id: "granulation-at-the-link",
    place: "slide \"Building blocks\"",
    says: "Adaptive granulation helps at the link layer, too: the size of fragments should vary with the channel.",
    criterion: "Reproduced if at each bit error rate the adaptive layer delivers at least .97 of what the best set number of parts delivers there, no set number has .97 of the best at all of them, and \
        where whole units are lost the adaptive one has at least .97 of the set one; partly if no set number has .97 of the best at all of them.",
    see: &["granulation-goodput"],
    check: at_the_link,
}];

fn at_the_link(data: &Data) -> Option<ClaimFinding> {
    const NAME: &str = "link.goodput_bps";
    let each = |line| {
        let each = RATES
            .iter()
            .map(|rate| data.mean("granulation", line, rate, NAME));
        each.collect::<Option<Vec<f64>>>()
    };
    let fixed = FIXED.map(each);
    let fixed: Vec<Vec<f64>> = fixed.into_iter().collect::<Option<_>>()?;
    let best = |place: usize| fixed.iter().map(|line| line[place]).fold(0.0, f64::max);
    let of_best = |line: &[f64]| {
        let shares = line.iter().enumerate();
        shares
            .map(|(place, bps)| bps / best(place))
            .collect::<Vec<f64>>()
    };
    let least = |shares: &[f64]| shares.iter().copied().fold(f64::INFINITY, f64::min);
    let adaptive = each(ADAPTIVE)?;
    let shares = of_best(&adaptive);
    let leasts: Vec<f64> = fixed.iter().map(|line| least(&of_best(line))).collect();
    let none_fits = leasts.iter().all(|least| *least < 0.97);
    let lost = |line| over(data, "granulation-lost", line, LOSSY, NAME);
    let lost: Vec<f64> = (lost(ADAPTIVE)?.iter().zip(&lost(HARQ)?))
        .map(|(adaptive, set)| adaptive / set)
        .collect();
    Some(ClaimFinding::new(
        ClaimVerdict::of(
            least(&shares) >= 0.97 && none_fits && least(&lost) >= 0.97,
            none_fits,
        ),
        format!("{} of the best", list(&shares, 1.0, 3)),
        format!(
            "At 0, 1e-6, 1e-5, 5e-5, 1e-4 and 3e-4: {}. Set to 1, 2, 4, 8 and 16 parts, the least share of the best is {}. Where whole units are lost it has {} of the set one at 10 to 50 %. The \
             receiver tells which part of the loss arrived damaged, and the sender cuts packets for that part alone (docs/models/link.md).",
            megabits(&adaptive),
            list(&leasts, 1.0, 2),
            list(&lost, 1.0, 3)
        ),
    ))
}
