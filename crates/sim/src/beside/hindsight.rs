//! The score of one who switches between the fixed settings: how far `auto` could be ahead of them where a link changes.
//!
//! The parts of a run between two changes are taken from the runs of the settings, each from the one that is best there. One who *knows*
//! changes on time. One who *follows* begins with repetition alone, and uses after each change what was best before it until he
//! can know better: a round trip later, and [`LEARNED_FROM`] messages, since even with the loss of a link known to be one of two, no fewer tell
//! them apart. Both know in hindsight what is best in each part, so no one who has to learn it is sure to reach them. What one
//! part's setting leaves to the next part is not in it.

use super::score::{Achieved, ScoredGoal};

/// The messages after a change that tell what it was.
pub(super) const LEARNED_FROM: u64 = 16;
/// The worth of a missed message beside octets, in hundredths of its worth in the score: less where some may miss.
const MISS_WORTHS: [f64; 6] = [0.0, 10.0, 25.0, 50.0, 75.0, 100.0];
/// The worth of octets beside their worth in the score: more where an overhead bounds them.
const OCTET_WORTHS: [f64; 4] = [1.0, 3.0, 10.0, 30.0];

/// The cost of a piece of a run by the weights that are tried.
type Worth<'a> = dyn Fn(&Achieved) -> f64 + 'a;

/// The part between two changes: until the change can be known, and from then on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinkPart {
    pub(super) unknown: Achieved,
    pub(super) known: Achieved,
}

impl LinkPart {
    pub(super) fn all(&self) -> Achieved {
        let mut all = self.unknown;
        all += self.known;
        all
    }
}

/// The scores of those who switch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Switched {
    /// The score of one who knows of changes on time.
    pub(super) knowing: f64,
    /// The score of one who follows them.
    pub(super) following: f64,
}

/// The scores over the settings that fit the goal, each with its parts. `plain` is repetition alone, and `octets_max` bounds what is
/// sent for each octet of message.
pub(super) fn switched(
    goal: ScoredGoal,
    settings: &[&[LinkPart]],
    plain: &[LinkPart],
    octets_max: Option<f64>,
) -> Option<Switched> {
    let parts = settings.iter().map(|own| own.len()).min()?;
    let worth = |miss: f64, octets: f64| {
        move |one: &Achieved| {
            miss * one.fates.missed() as f64 * one.octets_each() + octets * one.sent as f64
        }
    };
    let best = |of: &dyn Fn(&Worth<'_>) -> Achieved| {
        let mut best: Option<f64> = None;
        for miss in MISS_WORTHS {
            for octets in OCTET_WORTHS {
                // A hundredth of messages that miss is worth half of what they all take.
                let all = of(&worth(miss / 100.0 * 50.0, octets));
                if octets_max.is_none_or(|most| all.octets() <= most) {
                    let score = all.score(goal);
                    best = Some(best.map_or(score, |best| best.max(score)));
                }
            }
        }
        best
    };
    let least = |of: &mut dyn Iterator<Item = Vec<Achieved>>, worth: &Worth<'_>| {
        let total = |one: &Vec<Achieved>| one.iter().map(worth).sum::<f64>();
        let mut all = Achieved::default();
        let chosen = of.min_by(|a, b| total(a).total_cmp(&total(b)));
        chosen.into_iter().flatten().for_each(|one| all += one);
        all
    };
    let knowing = best(&|worth| {
        let mut all = Achieved::default();
        for part in 0..parts {
            all += least(&mut settings.iter().map(|own| vec![own[part].all()]), worth);
        }
        all
    })?;
    let following = best(&|worth| {
        let mut all = plain.first().map(|part| part.unknown).unwrap_or_default();
        for part in 0..parts {
            let until_known = |own: &[LinkPart]| {
                let next = own.get(part + 1).map(|part| part.unknown);
                core::iter::once(own[part].known).chain(next).collect()
            };
            all += least(&mut settings.iter().map(|own| until_known(own)), worth);
        }
        all
    })?;
    Some(Switched { knowing, following })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::flow::FlowPunctuality;

    /// A hundred messages of ten octets.
    fn piece(missed: u64, sent: u64) -> Achieved {
        let fates = FlowPunctuality {
            in_time: 100 - missed,
            late: missed,
            lost: 0,
        };
        Achieved {
            fates,
            sent,
            written: 1_000,
            ..Achieved::default()
        }
    }

    fn part(unknown: (u64, u64), known: (u64, u64)) -> LinkPart {
        LinkPart {
            unknown: piece(unknown.0, unknown.1),
            known: piece(known.0, known.1),
        }
    }

    #[test]
    fn who_knows_has_the_best_of_each_part_and_who_follows_pays_for_what_he_learns_late() {
        // One misses nothing and sends twice, the other misses where the second part loses.
        let careful = [part((0, 2_000), (0, 2_000)), part((0, 2_000), (0, 2_000))];
        let plain = [part((0, 1_000), (0, 1_000)), part((20, 1_000), (20, 1_000))];
        let goal = ScoredGoal::Messages { may_miss: 0.0 };
        let both = switched(goal, &[&careful, &plain], &plain, None).expect("two settings");
        // Half of the run sends twice.
        assert!((both.knowing - 1.0 / 1.05).abs() < 1e-9, "{both:?}");
        // The first part's setting is in use until the second one's loss is known: sending twice all the time after the start is better
        // than a fifth of a quarter missed.
        assert!((both.following - 1.0 / 1.075).abs() < 1e-9, "{both:?}");
        let capped = switched(goal, &[&careful, &plain], &plain, Some(1.2)).expect("two settings");
        assert!(capped.knowing < both.knowing, "{capped:?}");
        assert_eq!(switched(goal, &[], &plain, None), None);
    }
}
