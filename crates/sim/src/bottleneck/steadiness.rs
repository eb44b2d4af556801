//! The steadiness of a sender that has a link for itself: whether it sends more than the link carries for long, and
//! whether its rate swings.

use super::{BottleneckPlan, DATAGRAM};
use fulmar_proto::units::{Duration, Instant};
use std::ops::Range;

/// The length of a slot of what was sent, in seconds, and the slots in a second.
const SLOT: f64 = 0.1;
const SLOTS: f64 = 10.0;
/// The multiple of the link's rate that is too much.
pub const TOO_MUCH: f64 = 1.25;
/// The time for which it may be sent: so many round trips, and seconds.
const ALLOWED_ROUNDS: f64 = 4.0;
const ALLOWED_MIN: f64 = 0.3;
/// The datagrams that the link carries in a span in which one of them more is little.
const TELLING_DATAGRAMS: f64 = 16.0;
/// The least span of a steady rate: seconds, and datagrams at the link's rate.
const SPAN_MIN: f64 = 1.0;
const SPAN_DATAGRAMS: f64 = 24.0;
/// The datagrams of the first train, which leave at once.
const TRAIN: f64 = 10.0;

/// The steadiness of one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Steadiness {
    /// The longest time for which more than [`TOO_MUCH`] was sent, as a multiple of the time allowed: four round trips or
    /// 300 ms, whichever is longer. Rates are means over a round trip, at least a tenth of a second, and one datagram
    /// more than such a mean is nothing: an even sender has it as well. Where a round trip is few datagrams, means over
    /// spans of twice, four times, eight times the length are taken too, up to `TELLING_DATAGRAMS`, less what they are
    /// longer: they see what one datagram hides in a short one.
    pub above: f64,
    /// The time at which that ended.
    pub above_until: Duration,
    /// The most that was sent in the allowed time, as a multiple of what the link carries in it. The first ten datagrams,
    /// which leave before anything is known, do not count.
    pub most: f64,
    /// The time at which the span of the most began.
    pub most_at: Duration,
    /// The most over the least rate in the later halves of the times before and after a change. Rates are means over four
    /// round trips, at least a second and 24 datagrams at the link's rate.
    pub swing: f64,
    /// The times of the least and of the most rate of the swing.
    pub swing_at: (Duration, Duration),
}

/// The time of a slot.
fn time_of(slot: usize) -> Duration {
    Duration::from_millis(100) * u32::try_from(slot).unwrap_or(u32::MAX)
}

/// The slots that are at least so many seconds long.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a run has few slots"
)]
fn slots(seconds: f64) -> usize {
    ((seconds / SLOT - 1e-9).ceil() as usize).max(1)
}

/// A link, as what was sent over it is judged.
struct Judged {
    /// The octets that it carries in each slot.
    carried: Vec<f64>,
    /// The times between changes, in slots.
    phases: Vec<Range<usize>>,
    /// The round trip of a datagram alone, at the least rate.
    round_trip: f64,
}

impl Judged {
    fn new(plan: &BottleneckPlan, lasts: Duration) -> Self {
        let end = slots(lasts.as_secs_f64());
        let slot_of = |at: Instant| usize::try_from(at.as_nanos() / 100_000_000).unwrap_or(end);
        let mut carried = vec![0.0_f64; end];
        let mut phases = Vec::new();
        let mut round_trip = 0.0_f64;
        for (index, (from, config)) in plan.out.iter().enumerate() {
            let rate = config.rate.unwrap_or_default().as_bits_per_second() as f64 / 8.0;
            // The slot of a change is of both, with the greater rate.
            let next = plan.out.get(index + 1);
            let until = next.map_or(end, |(next, _)| slot_of(*next) + 1);
            let phase = slot_of(*from).min(end)..until.min(end);
            for slot in &mut carried[phase.clone()] {
                *slot = slot.max(rate * SLOT);
            }
            phases.push(phase);
            let delays = config.delay + plan.back.delay;
            round_trip = round_trip.max(delays.as_secs_f64() + DATAGRAM.0 as f64 / rate);
        }
        Self {
            carried,
            phases,
            round_trip,
        }
    }

    fn allowed(&self) -> f64 {
        (ALLOWED_ROUNDS * self.round_trip).max(ALLOWED_MIN)
    }

    /// The slots in a row in which too much was sent, and the slot in which they ended.
    fn slots_above(&self, sent: &[f64]) -> (usize, usize) {
        let round = slots(self.round_trip);
        let least = self.carried.iter().copied().fold(f64::MAX, f64::min);
        let telling = slots(TELLING_DATAGRAMS * DATAGRAM.0 as f64 / least.max(1.0) * SLOT);
        let mut longest = (0, 0);
        let mut span = round;
        loop {
            let mut run = 0;
            for (slot, ratio) in (0..).zip(self.ratios(sent, span, DATAGRAM.0 as f64)) {
                run = if ratio > TOO_MUCH { run + 1 } else { 0 };
                // A moment of much is in every span that has it.
                longest = longest.max(((run + round).saturating_sub(span), slot + span));
            }
            if span >= telling {
                return longest;
            }
            span *= 2;
        }
    }

    /// For each span of so many slots, what was sent besides so many octets, of what was carried.
    fn ratios(&self, sent: &[f64], span: usize, besides: f64) -> Vec<f64> {
        let sums = |values: &[f64]| -> Vec<f64> {
            let mut sum = 0.0;
            let mut sums = vec![0.0];
            sums.extend(values.iter().map(|value| {
                sum += value;
                sum
            }));
            sums
        };
        let (sent, carried) = (sums(sent), sums(&self.carried));
        (0..(sent.len()).saturating_sub(span))
            .map(|from| {
                let sent = sent[from + span] - sent[from] - besides;
                sent / (carried[from + span] - carried[from])
            })
            .collect()
    }
}

/// The steadiness of a sender that was alone on a link, by the octets that it sent in each tenth of a second.
pub fn steadiness(plan: &BottleneckPlan, lasts: Duration, sent_tenths: &[u64]) -> Steadiness {
    let judged = Judged::new(plan, lasts);
    let mut sent: Vec<f64> = sent_tenths.iter().map(|octets| *octets as f64).collect();
    sent.resize(judged.carried.len(), 0.0);
    let mut steadiness = Steadiness::default();
    let allowed = judged.allowed();
    let (above, until) = judged.slots_above(&sent);
    steadiness.above = above as f64 / SLOTS / allowed;
    steadiness.above_until = time_of(until);
    let swing = swing(&judged, &sent);
    (steadiness.swing, steadiness.swing_at) = swing;
    if let Some(first) = sent.iter_mut().find(|octets| **octets > 0.0) {
        *first = (*first - TRAIN * DATAGRAM.0 as f64).max(0.0);
    }
    // Longer than what is allowed.
    for (slot, ratio) in (0..).zip(judged.ratios(&sent, slots(allowed + 1e-6), 0.0)) {
        if ratio > steadiness.most {
            (steadiness.most, steadiness.most_at) = (ratio, time_of(slot));
        }
    }
    steadiness
}

fn swing(judged: &Judged, sent: &[f64]) -> (f64, (Duration, Duration)) {
    let mut worst = (1.0, (Duration::ZERO, Duration::ZERO));
    for (index, phase) in judged.phases.iter().enumerate() {
        // The slot of a change is no longer steady.
        let changes = index + 1 < judged.phases.len();
        let end = phase.end - usize::from(changes);
        let steady = phase.start.midpoint(phase.end)..end;
        let Some(carried) = judged.carried.get(steady.end - 1) else {
            continue;
        };
        let datagrams = SPAN_DATAGRAMS * DATAGRAM.0 as f64 / carried * SLOT;
        let span = slots(
            (ALLOWED_ROUNDS * judged.round_trip)
                .max(SPAN_MIN)
                .max(datagrams),
        );
        let (mut least, mut most) = ((f64::MAX, 0), (0.0_f64, 0));
        for from in steady.start..(steady.end + 1).saturating_sub(span) {
            let rate: f64 = sent[from..from + span].iter().sum();
            if rate < least.0 {
                least = (rate, from);
            }
            if rate > most.0 {
                most = (rate, from);
            }
        }
        let ratio = most.0 / least.0.max(1.0);
        if ratio > worst.0 {
            worst = (ratio, (time_of(least.1), time_of(most.1)));
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_channel::ChannelConfig;
    use fulmar_proto::units::Bitrate;

    /// A link of 12 mbit and 20 ms, 6 mbit from 30 s on: 150 and 75 kB in a tenth.
    fn link() -> BottleneckPlan {
        let of = |rate| ChannelConfig {
            rate: Some(Bitrate::from_bits_per_second(rate)),
            delay: Duration::from_millis(20),
            ..ChannelConfig::default()
        };
        let changed = Instant::START + Duration::from_secs(30);
        BottleneckPlan {
            out: vec![(Instant::START, of(12_000_000)), (changed, of(6_000_000))],
            back: of(1_000_000_000),
            policer: None,
            marks: false,
            clock_gain: 0.0,
        }
    }

    fn judge(change: impl Fn(&mut [u64])) -> Steadiness {
        let mut sent = vec![150_000; 300];
        sent.resize(600, 75_000);
        change(&mut sent);
        steadiness(&link(), Duration::from_secs(60), &sent)
    }

    #[test]
    fn a_link_s_rate_followed_at_once_is_steady() {
        let steady = judge(|_| ());
        assert!(steady.above < 1e-9 && steady.most < 1.01, "{steady:?}");
        assert!(steady.swing < 1.01, "{steady:?}");
    }

    #[test]
    fn the_old_rate_for_longer_than_allowed_is_too_much_and_for_less_is_not() {
        let late = |tenths: usize| judge(move |sent| sent[300..300 + tenths].fill(150_000));
        // 300 ms are allowed, and the tenth of the change belongs to both.
        let (short, long) = (late(3), late(6));
        assert!(short.above <= 1.0 && short.most < 1.76, "{short:?}");
        assert!(long.above > 1.0 && long.most > 1.9, "{long:?}");
        assert_eq!(long.most_at.as_millis(), 30_100);
        assert!(long.swing < 1.01, "a change is not a swing: {long:?}");
    }

    #[test]
    fn a_swing_is_told_where_the_rate_should_be_steady() {
        let dip = judge(|sent| sent[500..520].fill(30_000));
        assert!((dip.swing - 2.5).abs() < 0.01, "{dip:?}");
        assert_eq!(dip.swing_at.0.as_secs(), 50);
    }

    /// The time above on 120 kbit, which carries a datagram in each tenth, if these leave in each tenth.
    fn above_slow(sent: impl Fn(usize) -> u64) -> f64 {
        let mut slow = link();
        slow.out.truncate(1);
        slow.out[0].1.rate = Some(Bitrate::from_bits_per_second(120_000));
        let sent: Vec<u64> = (0..600).map(|tenth| 1_500 * sent(tenth)).collect();
        steadiness(&slow, Duration::from_secs(60), &sent).above
    }

    #[test]
    fn one_datagram_more_is_nothing_and_what_it_hides_shows_in_longer_spans() {
        // 1.2 x the link's rate, now and then two in a tenth.
        assert!(above_slow(|tenth| 1 + u64::from(tenth % 5 == 0)) < 1e-9);
        // Two in each second tenth, which is half more all the time.
        let half_more = above_slow(|tenth| 1 + u64::from(tenth % 2 == 0));
        assert!(half_more > 10.0, "{half_more}");
        // Twice as much for the time allowed, which is four round trips of 140 ms.
        let moment = above_slow(|tenth| 1 + u64::from((300..305).contains(&tenth)));
        assert!(moment <= 1.0, "{moment}");
    }

    #[test]
    fn the_first_train_is_not_too_much() {
        let train = judge(|sent| sent[0] += 15_000);
        assert!(train.most < 1.01, "{train:?}");
    }
}
