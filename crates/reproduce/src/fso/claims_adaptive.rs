//! The paper's wish: lengths, and here parity too, that follow the short-term bit error rate.

use super::coded::{ADAPTIVE, BY_POWER, LONGEST, STRENGTHS};
use super::knowledge::{AGES_MS, Worth, worth};
use super::view::{FADING, LENGTHS, by_channel, half, share};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use crate::data::Data;

pub(super) const CLAIMS: [PaperClaim; 3] = [
    PaperClaim {
        id: "adaptive-length",
        place: "Section 3.3.3, equation 11; conclusion",
        says: "Packet lengths that follow the short-term BER while it changes would increase the goodput.",
        criterion: "Reproduced if on each of the four channels AeroTP whose length and parity follow its estimate has more goodput, in the mean of the same courses, than the best of all fixed lengths \
            (540, 1040, 1540 octets) and strengths (0, 6, 12, 24 words) chosen in hindsight; partly if on two.",
        see: &[
            "coded-testbed",
            "coded-atenaa",
            "coded-fasolt",
            "coded-kiodo",
        ],
        check: |data| {
            let all = LENGTHS.map(|(_, x)| x);
            let found = each(data, "coded", &all, ADAPTIVE)?;
            let ahead = ahead(&found);
            Some(ClaimFinding::new(
ClaimVerdict::of(ahead == 4, ahead >= 2),
told(&found),
"Adaptive, best fixed. At 1e-6 nearly all of the time is free of errors, so there is little to win.".to_owned(),
))
        },
    },
    PaperClaim {
        id: "adaptive-rough",
        place: "Section 3.3.3, equation 11; conclusion (ours: at a long-term rate of 1e-4)",
        says: "The same where fades take a good part of the goodput.",
        criterion: "Reproduced if at a long-term rate of 1e-4, with packets of at most 1540 octets, the adaptive one has more goodput on each channel than the best of the fixed strengths in hindsight; \
            partly if on two, and nowhere less than 0.99 of it.",
        see: &["rough", "knowledge-kiodo"],
        check: rough,
    },
    PaperClaim {
        id: "adaptive-power",
        place: "Section 3.3.3; conclusion",
        says: "To calculate the short-term BER from received power while running would be desirable for choosing the length.",
        criterion: "Reproduced if at 1e-4 the receiver's power as another source of the estimate raises the goodput on some channel by more than both intervals, and lowers it on none by more than 0.002 of the \
            link; partly if it raises it on some by more than 0.002 in the mean and lowers it on none.",
        see: &["rough", "knowledge-kiodo"],
        check: |data| {
            let mut gains = Vec::new();
            let mut clear = 0;
            for channel in FADING {
                let family = format!("rough-{channel}");
                let at = |line| {
                    Some((
                        share(data, &family, line, LONGEST)?,
                        half(data, &family, line, LONGEST),
                    ))
                };
                let ((with, wide), (without, narrow)) = (at(BY_POWER)?, at(ADAPTIVE)?);
                clear += usize::from(with - without > wide + narrow);
                gains.push((channel, with, without));
            }
            let loses = gains
                .iter()
                .any(|(_, with, without)| with - without < -0.002);
            let wins = gains
                .iter()
                .any(|(_, with, without)| with - without > 0.002);
            let parts = gains.iter().map(|(channel, with, without)| {
                format!("{channel} {with:.4} with, {without:.4} without")
            });
            Some(ClaimFinding::new(
ClaimVerdict::of(clear > 0 && !loses, wins && !loses),
parts.collect::<Vec<_>>().join("; "),
"adapt_power: with each packet that arrives the receiver learns the short-term rate that its power means. Errors alone tell a fade within three packets, its beginning \
                    by the loss of one and low rates not at all; over KIODO both come too late.".to_owned(),
))
        },
    },
];

/// The goodput of a channel's best fixed setting in hindsight, its name, and the adaptive setting's
/// goodput.
#[derive(Clone, Debug)]
struct Found {
    channel: &'static str,
    fixed: f64,
    name: String,
    ours: f64,
}

fn each(data: &Data, prefix: &str, mtus: &[&str], line: &str) -> Option<Vec<Found>> {
    let of = |channel: &&'static str| {
        let family = format!("{prefix}-{channel}");
        let mut found = Found {
            channel,
            fixed: f64::NEG_INFINITY,
            name: String::new(),
            ours: share(data, &family, line, LONGEST)?,
        };
        for x in mtus {
            for strength in STRENGTHS {
                let fixed = share(data, &family, strength, x)?;
                if fixed > found.fixed {
                    found.fixed = fixed;
                    found.name = format!("{strength} in {x}B");
                }
            }
        }
        Some(found)
    };
    FADING.iter().map(of).collect()
}

fn ahead(found: &[Found]) -> usize {
    found.iter().filter(|of| of.ours > of.fixed).count()
}

fn told(found: &[Found]) -> String {
    let texts = found.iter().map(|of| {
        let Found {
            channel,
            fixed,
            name,
            ours,
        } = of;
        format!("{channel} {ours:.4}, {fixed:.4} ({name})")
    });
    texts.collect::<Vec<_>>().join("; ")
}

/// The goodput that choices by the rate of a round trip ago can have.
fn at_round_trip(channel: &str, worth: &Worth) -> f64 {
    let round_trip_ms = match channel {
        "fasolt" => 0.5,
        "kiodo" => 16.7,
        _ => 0.0,
    };
    let ages = AGES_MS.iter().zip(&worth.by_age);
    let mut ages = ages.rev();
    let known = ages.find(|(age, _)| **age <= round_trip_ms);
    known.map_or(worth.now, |(_, share)| *share)
}

fn rough(data: &Data) -> Option<ClaimFinding> {
    let found = each(data, "rough", &[LONGEST], ADAPTIVE)?;
    let near = found.iter().all(|of| of.ours >= 0.99 * of.fixed);
    let ahead = ahead(&found);
    let allowed = by_channel(&FADING, |channel| {
        let worth = worth(channel)?;
        let (words, payload) = worth.shape;
        Some(format!(
            "{:.4} fixed ({words} words, {payload} octets), {:.4} by the rate of a round trip ago, {:.4} by the rate at once",
            worth.fixed,
            at_round_trip(channel, worth),
            worth.now
        ))
    })?;
    Some(ClaimFinding::new(
        ClaimVerdict::of(ahead == 4, ahead >= 2 && near),
        told(&found),
        format!(
            "Adaptive, best fixed. What knowledge allows over these courses, by arithmetic (no set-up, no acknowledgements, no estimate to make): {allowed}. Over KIODO fades are over before the sender hears of them, so that \
             knowing the rate of a round trip ago exactly is worth next to nothing above the best fixed choice; what is left there is to find that choice while running.",
        ),
    ))
}
