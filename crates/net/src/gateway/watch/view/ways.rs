//! A link as a picture: what became of the datagrams of each direction, and the paths.

use super::super::losses::LossFigures;
use super::super::registry::Unit;
use super::super::status::{PathFigures, PeerReport};
use super::super::tally::PeerWindow;
use serde::Serialize;

/// One direction of a link in the last seconds: datagrams sent, those lost by cause, what repaired them, and the payload
/// that came out.
#[derive(Clone, Debug, Default, Serialize)]
pub(in crate::gateway) struct Way {
    /// The direction, in words.
    title: String,
    /// Whether payload passes of whose datagrams the end that counts them has not told yet.
    is_untold: bool,
    /// Datagrams a second.
    sent: f64,
    /// Datagrams a second that were lost, by cause where it is known.
    lost: Vec<WayPart>,
    /// TPDUs a second that were put right, by what.
    repaired: Vec<WayPart>,
    /// The rest of the lost datagrams a second: not repaired yet, or not worth it, such as acknowledgements.
    needed_no_repair: f64,
    /// TPDUs a second that are lost for good.
    lost_for_good: f64,
    /// Payload delivered.
    delivered_text: String,
    /// All that in a sentence.
    says: String,
}

/// A part of the lost or the repaired.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct WayPart {
    label: &'static str,
    per_second: f64,
}

/// Fewer a second are not worth a word.
const LEAST_TOLD: f64 = 0.05;

fn per_second(count: f64) -> String {
    if count >= 9.95 {
        format!("{count:.0}")
    } else {
        format!("{count:.1}")
    }
}

fn listed(parts: &[WayPart]) -> String {
    let each = parts.iter();
    let each: Vec<String> = each
        .map(|part| format!("{} {}", per_second(part.per_second), part.label))
        .collect();
    each.join(", ")
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

impl Way {
    fn of(
        title: String,
        (sent, lost): (f64, f64),
        causes: Option<&LossFigures>,
        (repaired, lost_for_good): (Vec<(&'static str, f64)>, f64),
        delivered: f64,
    ) -> Self {
        let is_mended = repaired.iter().any(|(_, rate)| *rate > 0.0);
        if sent <= 0.0 && (delivered > 0.0 || is_mended) {
            return Self::untold(title, delivered);
        }
        let shares = causes.map(LossFigures::shares).unwrap_or_default();
        let known: f64 = shares.iter().map(|(_, share)| share).sum();
        let mut by_cause: Vec<WayPart> = shares
            .into_iter()
            .map(|(label, share)| WayPart {
                label,
                per_second: rounded(lost * share / known.max(1e-9)),
            })
            .collect();
        if by_cause.is_empty() && lost > 0.0 {
            by_cause.push(WayPart {
                label: "of unknown cause",
                per_second: rounded(lost),
            });
        }
        by_cause.retain(|part| part.per_second > 0.0);
        let put_right: f64 = repaired.iter().map(|(_, rate)| rate).sum();
        let rest = (lost - put_right - lost_for_good).max(0.0);
        let mut repaired: Vec<WayPart> = repaired
            .into_iter()
            .map(|(label, rate)| WayPart {
                label,
                per_second: rounded(rate),
            })
            .collect();
        repaired.retain(|part| part.per_second > 0.0);
        let delivered_text = Unit::BitsPerSecond.text(delivered);
        let fate = if by_cause.is_empty() {
            "none is lost".to_owned()
        } else {
            format!("{} are lost ({})", per_second(lost), listed(&by_cause))
        };
        let sent_text = per_second(sent);
        let mut clauses = vec![format!("{sent_text} datagrams a second are sent, {fate}")];
        if !repaired.is_empty() {
            clauses.push(format!("repaired are {}", listed(&repaired)));
        }
        if rest >= LEAST_TOLD {
            clauses.push(format!(
                "{} are not repaired yet, or need not be",
                per_second(rest)
            ));
        }
        if lost_for_good > 0.0 {
            clauses.push(format!("{} are lost for good", per_second(lost_for_good)));
        }
        clauses.push(format!("{delivered_text} of payload is delivered."));
        let says = clauses.join("; ");
        Self {
            title,
            is_untold: false,
            sent: rounded(sent),
            lost: by_cause,
            repaired,
            needed_no_repair: rounded(rest),
            lost_for_good: rounded(lost_for_good),
            delivered_text,
            says,
        }
    }

    /// A direction before the first report: repairs beside nothing sent would be of other seconds.
    fn untold(title: String, delivered: f64) -> Self {
        let delivered_text = Unit::BitsPerSecond.text(delivered);
        Self {
            title,
            is_untold: true,
            says: format!(
                "the other end has not told yet how many datagrams passed; {delivered_text} of payload is delivered."
            ),
            delivered_text,
            ..Self::default()
        }
    }
}

/// Both directions of the link to a peer in a window of so many seconds.
pub(super) fn of(peer: &PeerReport, window: Option<(&PeerWindow, f64)>) -> Vec<Way> {
    let Some((window, seconds)) = window else {
        return Vec::new();
    };
    let sent = |count: u64| count as f64 / seconds;
    let [first, second, later] = window.arq_rates;
    let outward = vec![
        ("by parity", window.far_fec_rate),
        ("by the 1st repetition", first),
        ("by the 2nd repetition", second),
        ("by a later repetition", later),
    ];
    // The peer alone knows which of its repetitions mended something: they have the rest of what was missing here.
    let missed = (window.lost_rate - window.fec_rate - window.residual_rate).max(0.0);
    let inward = vec![("by parity", window.fec_rate), ("by repetition", missed)];
    vec![
        Way::of(
            format!("From here to {}", peer.name),
            (sent(window.outward.sent), window.outward.rate),
            peer.losses.as_ref(),
            (outward, window.far_residual_rate),
            window.confirmed_rate,
        ),
        Way::of(
            format!("From {} to here", peer.name),
            (sent(window.inward.sent), window.inward.rate),
            peer.told_losses.as_ref(),
            (inward, window.residual_rate),
            window.payload_rate,
        ),
    ]
}

/// One of several paths, in words.
#[derive(Clone, Debug, Serialize)]
pub(in crate::gateway) struct PathView {
    path: u8,
    cost: u8,
    state: &'static str,
    rate_text: String,
    rtt_text: String,
    lost_text: String,
    outages_text: String,
}

impl PathView {
    pub(super) fn of(path: &PathFigures) -> Self {
        const UNKNOWN: &str = "–";
        let text = |value: Option<String>| value.unwrap_or_else(|| UNKNOWN.to_owned());
        let rate = path.rate.map(|rate| rate.current_bits_per_second as f64);
        let lost = path.rate.and_then(|rate| rate.random_loss_ratio);
        let share = lost.map(|lost| Unit::Ratio.text(lost));
        let cause = path.losses.as_ref().and_then(LossFigures::main_cause);
        let lost = match (share, cause) {
            (Some(share), Some(cause)) => Some(format!("{share}, mostly {cause}")),
            (share, cause) => share.or(cause.map(|cause| format!("mostly {cause}"))),
        };
        Self {
            path: path.path,
            cost: path.cost,
            state: path.state,
            rate_text: text(rate.map(|rate| Unit::BitsPerSecond.text(rate))),
            rtt_text: text(path.rtt_seconds.map(|rtt| Unit::Seconds.text(rtt))),
            lost_text: text(lost),
            outages_text: match path.outages {
                0 => "none".to_owned(),
                count => format!(
                    "{count}, {} in all",
                    Unit::Seconds.text(path.outage_seconds)
                ),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::watch::status::CauseFigures;
    use crate::gateway::watch::tally::Loss;

    fn peer() -> PeerReport {
        let of = |ratio| CauseFigures {
            ratio,
            low_ratio: ratio,
            high_ratio: ratio,
        };
        PeerReport {
            name: "ground".to_owned(),
            losses: Some(LossFigures {
                sent_packets: 5_000,
                lost_packets: 1_000,
                mended_packets: 0,
                causes: [("random", of(0.75)), ("burst", of(0.25))].into(),
            }),
            ..PeerReport::default()
        }
    }

    #[test]
    fn what_is_lost_is_repaired_lost_for_good_or_needed_no_repair() {
        let window = PeerWindow {
            outward: Loss {
                share: Some(0.2),
                rate: 160.0,
                sent: 8_000,
            },
            inward: Loss {
                share: Some(0.0),
                rate: 0.0,
                sent: 2_000,
            },
            far_fec_rate: 20.0,
            arq_rates: [100.0, 20.0, 5.0],
            far_residual_rate: 3.0,
            confirmed_rate: 7.55e6,
            ..PeerWindow::default()
        };
        let ways = of(&peer(), Some((&window, 10.0)));
        let [there, back] = &ways[..] else {
            panic!("two directions")
        };
        assert_eq!(
            there.says,
            "800 datagrams a second are sent, 160 are lost (120 one by one, 40 in bursts); repaired are 20 by parity, 100 by the 1st \
             repetition, 20 by the 2nd repetition, 5.0 by a later repetition; 12 are not repaired yet, or need not be; 3.0 are lost for good; 7.55 Mbit/s \
             of payload is delivered."
        );
        let repaired: f64 = there.repaired.iter().map(|part| part.per_second).sum();
        let all = repaired + there.needed_no_repair + there.lost_for_good;
        assert!((all - 160.0).abs() < 1e-9, "{all}");
        assert_eq!(
            back.says,
            "200 datagrams a second are sent, none is lost; 0 bit/s of payload is delivered."
        );
        assert!(back.lost.is_empty() && back.repaired.is_empty());
    }

    #[test]
    fn before_the_first_report_nothing_is_drawn_beside_the_payload() {
        let window = PeerWindow {
            confirmed_rate: 105e3,
            arq_rates: [2.5, 0.0, 0.0],
            ..PeerWindow::default()
        };
        let ways = of(&peer(), Some((&window, 10.0)));
        let [there, back] = &ways[..] else {
            panic!("two directions")
        };
        assert!(there.is_untold && there.repaired.is_empty(), "{there:?}");
        let words =
            "has not told yet how many datagrams passed; 105 kbit/s of payload is delivered.";
        assert!(there.says.contains(words), "{}", there.says);
        assert!(!back.is_untold, "{back:?}");
        assert!(back.says.starts_with("0.0 datagrams a second are sent"));
    }

    #[test]
    fn losses_too_few_for_a_cause_are_of_an_unknown_one() {
        let mut peer = peer();
        peer.losses = None;
        let window = PeerWindow {
            outward: Loss {
                share: Some(0.1),
                rate: 2.0,
                sent: 200,
            },
            ..PeerWindow::default()
        };
        let there = &of(&peer, Some((&window, 10.0)))[0];
        assert_eq!(
            there.lost,
            [WayPart {
                label: "of unknown cause",
                per_second: 2.0
            }]
        );
        assert!(of(&peer, None).is_empty());
    }
}
