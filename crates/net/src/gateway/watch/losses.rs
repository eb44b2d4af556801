//! Losses on the way to a peer by cause, as `/status` and the page tell them.

use crate::session::DamageCounts;
use fulmar_proto::damage::{LossByCause, LossCause};
use fulmar_proto::splice::{ToldLosses, ToldShare};
use serde::Serialize;
use std::collections::BTreeMap;

/// The share from which on the page names a cause.
const LEAST_SHARE: f64 = 0.01;
/// The losses from which on causes are named in words: fewer leave hardly anything out.
const LEAST_LOST: u64 = 30;
/// The width of the intervals of wrong bits and of loss at random from which on they are named together.
const UNCLEAR: f64 = 0.5;

/// The word for wrong bits and loss at random together.
const EITHER: &str = "either";

/// The losses on the way to a peer by cause, as this end sees them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LossFigures {
    /// Packets whose fate is known.
    pub sent_packets: u64,
    /// Those that were lost or damaged beyond repair.
    pub lost_packets: u64,
    /// Damaged ones that parity put right, which count as no loss.
    pub mended_packets: u64,
    /// The share of each cause among those lost.
    pub causes: BTreeMap<&'static str, CauseFigures>,
}

/// The share of a cause among all losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CauseFigures {
    /// The likeliest share.
    pub ratio: f64,
    /// The lower end of an interval that should have the true share in nine cases of ten.
    pub low_ratio: f64,
    /// Its upper end.
    pub high_ratio: f64,
}

impl LossFigures {
    /// The word for datagrams that arrived damaged beyond repair, beside those of [`LossCause`].
    const BEYOND_REPAIR: &'static str = "beyond-repair";

    /// The losses that were told apart, the armoured datagrams of which the peer told, and so many that wrong bits in front of
    /// them should have cost besides: those look like losses at random, since packets of every length have as many such bits.
    pub(super) fn of(
        losses: Option<LossByCause>,
        told: Option<DamageCounts>,
        hit_in_front: f64,
    ) -> Option<Self> {
        let beyond = told.map_or(0, |told| told.beyond_repair);
        let lost = losses.map_or(0.0, |losses| losses.lost);
        let all = lost + beyond as f64;
        if all <= 0.0 {
            return None;
        }
        let part = lost / all;
        let random = losses.map_or(0.0, |losses| {
            losses.shares[LossCause::Random as usize].share
        });
        let moved = (hit_in_front / lost.max(1.0)).min(random);
        let of_causes = losses.iter().flat_map(|losses| losses.shares).map(|share| {
            let moved = match share.cause {
                LossCause::BitErrors => moved,
                LossCause::Random => -moved,
                LossCause::Burst | LossCause::Queue | LossCause::Outage => 0.0,
            };
            let [ratio, low_ratio, high_ratio] = [share.share, share.low, share.high]
                .map(|share| (share + moved).clamp(0.0, 1.0) * part);
            let figures = CauseFigures {
                ratio,
                low_ratio,
                high_ratio,
            };
            (share.cause.name(), figures)
        });
        let mut causes: BTreeMap<&'static str, CauseFigures> = of_causes.collect();
        if told.is_some() {
            let ratio = beyond as f64 / all;
            let counted = CauseFigures {
                ratio,
                low_ratio: ratio,
                high_ratio: ratio,
            };
            causes.insert(Self::BEYOND_REPAIR, counted);
        }
        Some(Self {
            sent_packets: losses.map_or(0, |losses| losses.sent_packets()),
            lost_packets: losses.map_or(0, |losses| losses.lost_packets()) + beyond,
            mended_packets: told.map_or(0, |told| told.mended),
            causes,
        })
    }

    /// The same for the peer: damage beyond repair is of wrong bits, and its own counts tell it apart.
    pub(super) fn to_tell(&self) -> ToldLosses {
        let of = |cause: &str| {
            let of = self.causes.get(cause).copied().unwrap_or_default();
            [of.ratio, of.low_ratio, of.high_ratio]
        };
        let beyond = of(Self::BEYOND_REPAIR);
        let shares = LossCause::ALL.map(|cause| {
            let mut ratios = of(cause.name());
            if cause == LossCause::BitErrors {
                let parts = ratios.iter_mut().zip(beyond);
                parts.for_each(|(ratio, more)| *ratio += more);
            }
            ToldShare::of(ratios)
        });
        let packets = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        ToldLosses {
            sent: packets(self.sent_packets),
            lost: packets(self.lost_packets),
            shares,
        }
    }

    /// The losses on the way from the peer, as it told.
    pub(super) fn of_told(told: ToldLosses) -> Self {
        let causes = LossCause::ALL.into_iter().zip(told.shares);
        let causes = causes.map(|(cause, share)| {
            let [ratio, low_ratio, high_ratio] = share.ratios();
            let figures = CauseFigures {
                ratio,
                low_ratio,
                high_ratio,
            };
            (cause.name(), figures)
        });
        Self {
            sent_packets: told.sent.into(),
            lost_packets: told.lost.into(),
            mended_packets: 0,
            causes: causes.collect(),
        }
    }

    /// The causes, wrong bits and loss at random as one while nobody can tell them apart.
    fn named(&self) -> Vec<(&'static str, CauseFigures)> {
        let of = |cause: LossCause| self.causes.get(cause.name()).copied().unwrap_or_default();
        let apart = [LossCause::BitErrors, LossCause::Random];
        let [bits, random] = apart.map(of);
        let width = |figures: CauseFigures| figures.high_ratio - figures.low_ratio;
        let mut named: Vec<_> = self
            .causes
            .iter()
            .map(|(cause, of)| (*cause, *of))
            .collect();
        if width(bits) >= UNCLEAR && width(random) >= UNCLEAR {
            named.retain(|(cause, _)| apart.iter().all(|one| one.name() != *cause));
            let ratio = bits.ratio + random.ratio;
            let either = CauseFigures {
                ratio,
                low_ratio: bits.low_ratio + random.low_ratio,
                high_ratio: bits.high_ratio.max(random.high_ratio).max(ratio),
            };
            named.push((EITHER, either));
        }
        named
    }

    /// The causes that are worth a word, the largest first.
    fn by_share(&self) -> Vec<(&'static str, CauseFigures)> {
        let mut causes = self.named();
        causes.retain(|(_, figures)| figures.ratio >= LEAST_SHARE);
        causes.sort_by(|(_, one), (_, other)| other.ratio.total_cmp(&one.ratio));
        causes
    }

    /// The largest cause in a few words, once enough was lost to tell.
    pub(super) fn largest_in_words(&self) -> Option<String> {
        let (cause, figures) = self.by_share().into_iter().next()?;
        let (share, lost) = (100.0 * figures.ratio, self.lost_packets);
        let words = in_a_word(cause).trim_end_matches(',');
        (lost >= LEAST_LOST).then(|| format!("lost {lost} packets ({words} {share:.0} %)"))
    }

    /// The cause of more than half of the losses, once enough was lost to tell.
    pub(super) fn main_cause(&self) -> Option<&'static str> {
        let (cause, figures) = self.by_share().into_iter().next()?;
        let is_told = self.lost_packets >= LEAST_LOST && figures.ratio > 0.5;
        is_told.then(|| way_of_loss(cause))
    }

    /// The share of each cause that is worth a word, the largest first, as a link picture names it.
    pub(super) fn shares(&self) -> Vec<(&'static str, f64)> {
        if self.lost_packets < LEAST_LOST {
            return Vec::new();
        }
        let causes = self.by_share().into_iter();
        causes
            .map(|(cause, figures)| (way_of_loss(cause), figures.ratio))
            .collect()
    }

    /// One sentence on the causes of loss on the way to a peer, the largest first.
    pub(super) fn in_words(losses: Option<&Self>) -> String {
        Self::sentence(losses, "to it")
    }

    /// The same of the way from a peer, as it told.
    pub(super) fn told_in_words(told: Option<&Self>) -> String {
        Self::sentence(told, "from it, as it tells,")
    }

    fn sentence(losses: Option<&Self>, way: &str) -> String {
        let Some(losses) = losses else {
            return String::new();
        };
        if losses.lost_packets < LEAST_LOST {
            return format!(
                " {} packets {way} were lost, too few to tell why.",
                losses.lost_packets
            );
        }
        let percent = |ratio: f64| format!("{:.0}", 100.0 * ratio);
        let parts = losses.by_share().into_iter().map(|(cause, figures)| {
            let [share, low, high] =
                [figures.ratio, figures.low_ratio, figures.high_ratio].map(percent);
            format!("{} {share} % ({low} to {high})", in_a_word(cause))
        });
        let parts: Vec<String> = parts.collect();
        format!(
            " Of {} packets {way} that were lost: {}.",
            losses.lost_packets,
            parts.join(", ")
        )
    }
}

/// A cause as it follows "lost".
fn way_of_loss(cause: &str) -> &'static str {
    match cause {
        EITHER => "one by one or to wrong bits",
        "bit-errors" => "to wrong bits",
        "beyond-repair" => "to damage beyond repair",
        "random" => "one by one",
        "burst" => "in bursts",
        "queue" => "to full queues",
        _ => "to outages",
    }
}

/// A cause as the page names it.
fn in_a_word(cause: &str) -> &'static str {
    match cause {
        EITHER => "wrong bits or at random, not told apart yet,",
        "bit-errors" => "wrong bits, dropped",
        "beyond-repair" => "damaged beyond repair",
        "random" => "at random",
        "burst" => "bursts",
        "queue" => "full queues",
        _ => "outages",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::damage::{CAUSES, CauseShare};

    fn told(beyond_repair: u64) -> DamageCounts {
        DamageCounts {
            whole: 900,
            mended: 70,
            beyond_repair,
            corrected_symbols: 0,
        }
    }

    #[test]
    fn damage_beyond_repair_is_a_cause_beside_the_others() {
        let share = |cause| CauseShare {
            cause,
            share: if cause == LossCause::Burst { 1.0 } else { 0.0 },
            low: 0.0,
            high: 1.0,
        };
        let losses = LossByCause {
            sent: 1_000.0,
            lost: 30.0,
            shares: LossCause::ALL.map(share),
        };
        let figures =
            LossFigures::of(Some(losses), Some(told(10)), 5.0).expect("there were losses");
        assert_eq!((figures.sent_packets, figures.lost_packets), (1_000, 40));
        assert_eq!(figures.mended_packets, 70);
        let ratio = |cause: &str| figures.causes[cause].ratio;
        assert!((ratio("burst") - 0.75).abs() < 1e-9);
        assert!((ratio("beyond-repair") - 0.25).abs() < 1e-9);
        assert_eq!(
            LossFigures::in_words(Some(&figures)),
            " Of 40 packets to it that were lost: bursts 75 % (0 to 75), damaged beyond repair 25 % (25 to 25)."
        );
    }

    #[test]
    fn what_was_hit_in_front_of_its_parity_is_no_loss_at_random() {
        let share = |cause| CauseShare {
            cause,
            share: if cause == LossCause::Random { 1.0 } else { 0.0 },
            low: 0.0,
            high: 1.0,
        };
        let losses = LossByCause {
            sent: 1_000.0,
            lost: 30.0,
            shares: LossCause::ALL.map(share),
        };
        let of = |hit: f64| {
            let figures =
                LossFigures::of(Some(losses), Some(told(10)), hit).expect("some were lost");
            ["bit-errors", "random", "beyond-repair"].map(|cause| figures.causes[cause].ratio)
        };
        let near = |one: [f64; 3], other: [f64; 3]| {
            let mut pairs = one.into_iter().zip(other);
            pairs.all(|(one, other)| (one - other).abs() < 1e-9)
        };
        assert!(near(of(12.0), [0.3, 0.45, 0.25]), "{:?}", of(12.0));
        assert!(near(of(99.0), [0.75, 0.0, 0.25]), "there are no more");
    }

    /// Losses with these shares (likeliest, lowest, highest), in the order of [`LossCause::ALL`].
    fn of_shares(lost: f64, shares: [(f64, f64, f64); CAUSES]) -> LossFigures {
        let shares = LossCause::ALL.map(|cause| {
            let (share, low, high) = shares[cause as usize];
            CauseShare {
                cause,
                share,
                low,
                high,
            }
        });
        let losses = LossByCause {
            sent: 1_000.0,
            lost,
            shares,
        };
        LossFigures::of(Some(losses), None, 0.0).expect("there were losses")
    }

    #[test]
    fn a_few_losses_have_no_cause_in_words() {
        let none = (0.0, 0.0, 0.1);
        let shares = [(0.0, 0.0, 1.0), (1.0, 0.0, 1.0), none, none, none];
        let few = of_shares(8.0, shares);
        let told = " 8 packets to it were lost, too few to tell why.";
        assert_eq!(LossFigures::in_words(Some(&few)), told);
    }

    #[test]
    fn wrong_bits_and_loss_at_random_are_one_cause_while_nobody_can_tell_them_apart() {
        let none = (0.0, 0.0, 0.0);
        let shares = [
            (0.0, 0.0, 0.8),
            (0.8, 0.0, 0.8),
            (0.2, 0.1, 0.3),
            none,
            none,
        ];
        assert_eq!(
            LossFigures::in_words(Some(&of_shares(100.0, shares))),
            " Of 100 packets to it that were lost: wrong bits or at random, not told apart yet, 80 % (0 to 80), \
             bursts 20 % (10 to 30)."
        );
        let shares = [
            (0.3, 0.2, 0.4),
            (0.5, 0.4, 0.6),
            (0.2, 0.1, 0.3),
            none,
            none,
        ];
        let words = LossFigures::in_words(Some(&of_shares(100.0, shares)));
        assert!(words.contains("at random 50 % (40 to 60)"), "{words}");
        assert!(
            words.contains("wrong bits, dropped 30 % (20 to 40)"),
            "{words}"
        );
    }

    #[test]
    fn the_peer_is_told_the_shares_with_what_was_beyond_repair_among_wrong_bits() {
        let none = (0.0, 0.0, 0.0);
        let shares = [
            (0.5, 0.4, 0.6),
            (0.3, 0.2, 0.4),
            (0.2, 0.1, 0.3),
            none,
            none,
        ];
        let mut ours = of_shares(100.0, shares);
        let beyond = CauseFigures {
            ratio: 0.1,
            low_ratio: 0.1,
            high_ratio: 0.1,
        };
        ours.causes.insert(LossFigures::BEYOND_REPAIR, beyond);
        let told = LossFigures::of_told(ours.to_tell());
        assert_eq!((told.sent_packets, told.lost_packets), (1_000, 100));
        let of = |cause: &str| told.causes[cause];
        let near = |one: f64, other: f64| (one - other).abs() < 0.002;
        let bits = of("bit-errors");
        assert!(near(bits.ratio, 0.6) && near(bits.low_ratio, 0.5) && near(bits.high_ratio, 0.7));
        assert!(near(of("random").ratio, 0.3) && near(of("burst").high_ratio, 0.3));
        assert!(!told.causes.contains_key(LossFigures::BEYOND_REPAIR));
    }

    #[test]
    fn nothing_lost_is_nothing_to_say() {
        assert_eq!(LossFigures::of(None, Some(told(0)), 1.0), None);
        assert_eq!(LossFigures::of(None, None, 0.0), None);
        assert_eq!(LossFigures::in_words(None), "");
    }
}
