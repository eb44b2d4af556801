//! The losses of a flow's first transmissions: how many, and whether they come together.

use super::Odds;
use crate::transport::parts::LossShare;
use crate::wire::TpduSeq;

/// The neighbours of losses that must have been seen before bursts are believed in.
const BEHIND_MIN: u32 = 8;
/// Standard errors by which losses behind a loss must be more frequent than losses, to count as bursts.
const SURE: u64 = 2;
/// The fates that are remembered.
const REMEMBERED: u32 = 64;
/// The newest fates that are compared with the mean, to see whether the link has changed.
const NEWEST: u32 = 32;
/// The square of the standard errors by which there must be fewer losses, for a link to be better than it was.
const BETTER: u64 = 6;
/// The same, and the losses beyond them, for a link to be worse.
const WORSE: u64 = 9;
const WORSE_LOSSES: u64 = 1;
/// The transmissions below which an estimate is young.
const YOUNG: u32 = 128;
/// All of a share.
const ONE: u64 = 1 << 16;

/// The distances behind a loss at which losses are counted, in messages.
const DISTANCES: usize = 16;
/// The standard errors by which a distance must differ from all transmissions: the best of several is wanted, and the luckiest
/// is not the best.
const SURE_AT_DISTANCE: u64 = 4;
/// The transmissions that a tally remembers, at most; half of them at least once it was full.
const TALLY_MAX: u32 = 1_024;

/// A long count of losses. What is to be seen at a distance is small, and stays as it is while the loss changes.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    lost: u32,
    seen: u32,
}

impl Tally {
    const fn note(&mut self, lost: bool) {
        if self.seen >= TALLY_MAX {
            self.lost /= 2;
            self.seen /= 2;
        }
        self.seen += 1;
        self.lost += lost as u32;
    }

    fn share(self) -> Odds {
        Odds::of(self.lost.into(), self.seen.into())
    }
}

/// An estimate of loss and of its bursts. Fates become known out of order.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossPattern {
    loss: LossShare,
    /// Losses among transmissions whose predecessor was lost.
    behind: LossShare,
    /// All transmissions, and those so many messages behind a loss, from 1 on.
    all: Tally,
    at_distance: [Tally; DISTANCES],
    /// The newest number whose fate is known.
    newest: Option<TpduSeq>,
    /// The known fates, and the losses, of the newest and those before it, the newest in the lowest bit.
    known: u64,
    lost: u64,
    /// The fates in the order in which they became known, the newest in the lowest bit, and how many there are.
    news: u32,
    news_count: u32,
}

fn note(share: &mut LossShare, lost: bool) {
    if lost {
        share.lost();
    } else {
        share.arrived();
    }
}

fn odds(share: LossShare) -> Odds {
    Odds::of(u64::from(share.of_65536()), 1 << 16)
}

impl LossPattern {
    /// Notes the fate of the first transmission of `seq`.
    pub fn note(&mut self, seq: TpduSeq, lost: bool) {
        note(&mut self.loss, lost);
        self.all.note(lost);
        self.news = self.news << 1 | u32::from(lost);
        self.news_count = (self.news_count + 1).min(NEWEST);
        self.notice_a_change();
        let newest = *self.newest.get_or_insert(seq);
        let ahead = seq.distance_from(newest);
        let place = if let Ok(ahead) = u32::try_from(ahead) {
            self.known = self.known.checked_shl(ahead).unwrap_or_default();
            self.lost = self.lost.checked_shl(ahead).unwrap_or_default();
            self.newest = Some(seq);
            0
        } else {
            ahead.unsigned_abs()
        };
        if place >= REMEMBERED {
            return;
        }
        self.known |= 1 << place;
        self.lost |= u64::from(lost) << place;
        let is = |bits: u64, place: u32| place < REMEMBERED && bits >> place & 1 == 1;
        if is(self.lost, place + 1) {
            self.note_behind(lost);
        }
        if lost && place > 0 && is(self.known, place - 1) {
            self.note_behind(is(self.lost, place - 1));
        }
        for (distance, share) in (1..).zip(&mut self.at_distance) {
            if is(self.lost, place + distance) {
                share.note(lost);
            }
            let later = place.checked_sub(distance).filter(|_| lost);
            if let Some(later) = later.filter(|later| is(self.known, *later)) {
                share.note(is(self.lost, later));
            }
        }
    }

    /// Forgets the mean if the newest fates are none that it would bring. Where losses come in bursts any run of fates would do.
    fn notice_a_change(&mut self) {
        if self.news_count < NEWEST || self.behind_a_loss() > self.loss() {
            return;
        }
        let share = u64::from(self.loss.of_65536());
        let lost = self.news.count_ones();
        let (seen, expected) = (u64::from(lost) * ONE, u64::from(NEWEST) * share);
        let (beyond, sure) = if seen < expected {
            (expected - seen, BETTER)
        } else {
            let more = seen - expected;
            (more.saturating_sub(WORSE_LOSSES * ONE), WORSE)
        };
        let variance = expected * (ONE - share);
        if beyond * beyond > sure * variance {
            self.loss.begin_again(lost, NEWEST);
            self.news_count = 0;
        }
    }

    fn note_behind(&mut self, lost: bool) {
        note(&mut self.behind, lost);
    }

    /// The share that is lost, as it was counted.
    pub const fn share(&self) -> LossShare {
        self.loss
    }

    /// The share that is lost.
    pub fn loss(&self) -> Odds {
        odds(self.loss)
    }

    /// The standard error of [`LossPattern::loss`].
    pub fn error(&self) -> Odds {
        self.loss().error_over(self.loss.weight())
    }

    /// The error of [`LossPattern::loss`] as it is to be feared: as if one transmission more had been lost and one had arrived, so
    /// that a few alike do not make sure.
    pub fn doubt(&self) -> Odds {
        let counted = self.loss.weight();
        let lost = self.loss().by(counted.into()).plus(Odds::ALWAYS);
        let feared = lost.part(u64::from(counted) + 2);
        feared.error_over(counted)
    }

    /// Whether so little was seen since the beginning, or since the link changed, that each transmission tells much.
    pub const fn is_young(&self) -> bool {
        self.loss.weight() < YOUNG
    }

    /// The share that is lost of what follows a loss: more than [`LossPattern::loss`] only if that is sure.
    pub fn behind_a_loss(&self) -> Odds {
        let (counted, loss) = (self.behind.weight(), self.loss());
        if counted < BEHIND_MIN {
            return loss;
        }
        let behind = odds(self.behind);
        let surely = behind.less(behind.error_over(counted).by(SURE));
        surely.max(loss)
    }

    /// The share that is lost of what leaves so many messages after a loss: as it was counted where that is surely another
    /// share than bursts with random lengths would have. Bursts may come by the clock.
    pub fn after_a_loss(&self, messages: u32) -> Odds {
        let expected = self.after_a_random_burst(messages);
        let place = usize::try_from(messages.saturating_sub(1)).unwrap_or(DISTANCES);
        let Some(share) = self.at_distance.get(place) else {
            return expected;
        };
        let (seen, all) = (share.share(), self.all.share());
        let (more, less) = (seen.less(all), all.less(seen));
        if more.max(less) <= all.error_over(share.seen).by(SURE_AT_DISTANCE) {
            return expected;
        }
        self.loss().plus(more).less(less).min(Odds::ALWAYS)
    }

    /// The same if bursts end at random.
    fn after_a_random_burst(&self, messages: u32) -> Odds {
        let (loss, behind) = (self.loss(), self.behind_a_loss());
        let mut more = behind.less(loss);
        if more == Odds::NEVER {
            return loss;
        }
        // The excess falls by the same factor from message to message.
        let kept = Odds::ratio(more, loss.not());
        for _ in 1..messages.min(REMEMBERED) {
            more = more.and(kept);
        }
        loss.plus(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn independent_losses_are_no_bursts_and_bursts_are_seen_whatever_the_order_of_the_news() {
        let mut rng = Rng::from_seed(1);
        let mut even = LossPattern::default();
        (0..2_000).for_each(|n| even.note(TpduSeq(n), rng.chance(0.2)));
        assert!((120_000..280_000).contains(&even.loss().millionths()));
        assert_eq!(even.behind_a_loss(), even.loss());
        // Eight of ten follow the one before.
        let mut bursts = LossPattern::default();
        let mut lost = false;
        let mut news = Vec::new();
        for n in 0..4_000 {
            if rng.chance(0.2) {
                lost = rng.chance(0.3);
            }
            // What is lost is known later.
            news.push((n + if lost { 5 } else { 0 }, n, lost));
        }
        news.sort_unstable();
        for (_, n, lost) in news {
            bursts.note(TpduSeq(n), lost);
        }
        let [at_once, next, later] = [1, 2, 40].map(|n| bursts.after_a_loss(n).millionths());
        assert!(at_once > 550_000, "{at_once}");
        let behind = bursts.behind_a_loss().millionths();
        assert!(behind > 550_000, "{behind}");
        assert!(at_once > next && next > later, "{at_once} {next} {later}");
        assert!(later < bursts.loss().millionths() + 20_000);
    }

    #[test]
    fn bursts_by_the_clock_are_seen_at_the_distances_of_good_times_and_of_bad_ones() {
        let mut rng = Rng::from_seed(9);
        let (mut clocked, mut even) = (LossPattern::default(), LossPattern::default());
        for n in 0..6_000 {
            let loss = if n / 5 % 2 == 0 { 0.25 } else { 0.75 };
            clocked.note(TpduSeq(n), rng.chance(loss));
            even.note(TpduSeq(n), rng.chance(0.5));
        }
        // Five messages on, the other state; ten on, the same.
        let [other, same] = [5, 10].map(|on| clocked.after_a_loss(on).millionths());
        assert!((300_000..450_000).contains(&other), "{other}");
        assert!((550_000..700_000).contains(&same), "{same}");
        for on in 1..20 {
            assert_eq!(even.after_a_loss(on), even.loss(), "{on}");
        }
    }

    #[test]
    fn a_link_that_changes_is_believed_after_few_messages_and_one_that_does_not_keeps_its_mean() {
        let mut rng = Rng::from_seed(2);
        let mut pattern = LossPattern::default();
        let mut next = 0;
        let mut see = |pattern: &mut LossPattern, count: u32, loss: f64| {
            for _ in 0..count {
                pattern.note(TpduSeq(next), rng.chance(loss));
                next += 1;
            }
            pattern.loss().millionths()
        };
        assert_eq!(see(&mut pattern, 400, 0.0), 0);
        let worse = see(&mut pattern, 40, 0.3);
        assert!((180_000..420_000).contains(&worse), "{worse}");
        see(&mut pattern, 400, 0.3);
        let better = see(&mut pattern, 48, 0.01);
        assert!(better < 60_000, "{better}");
        // The memory is long while nothing changes.
        let mut short = 0;
        for _ in 0..40 {
            see(&mut pattern, 100, 0.1);
            short += u32::from(pattern.share().weight() < 100);
        }
        assert!(short <= 8, "{short}");
    }

    #[test]
    fn numbers_far_apart_are_no_neighbours() {
        let mut pattern = LossPattern::default();
        for n in 0..100_u32 {
            pattern.note(TpduSeq(n.wrapping_mul(1_000)), true);
        }
        assert_eq!(pattern.behind.weight(), 0);
        pattern.note(TpduSeq(1), true);
        assert_eq!(pattern.behind.weight(), 0, "too long ago");
    }
}
