//! Payload length and parity of the next TPDU, by the bit error rate that it will probably meet.
//!
//! # Choice
//! The choice is the one among the [`TpduShape::choices`] whose expected use of the link over the
//! [outlook](crate::damage::Outlook) is greatest.
//!
//! Before the peer's first estimate TPDUs have the settings' parity, but are short enough to have room for more:
//! data that a channel with many errors loses in the first round trip could not be protected later.
//!
//! Data that was cut longer keeps its length when it is retransmitted. Where it can hardly arrive
//! ([`Adaptation::defers`]), new data goes first. That decision goes by one rate, whose logarithm returns from
//! the recent to the lasting rate as the outlook says.

use super::tpdu_shape::{LENGTHS, TpduShape};
use crate::damage::{Outlook, RateClass, Uses, between};
use crate::units::{BitErrorRate, Duration, FecStrength, Instant};
use crate::wire::aerotp::{ChannelWord, payload_max};

/// The sender's side of adapting to the bit error rate.
#[derive(Clone, Debug)]
pub(super) struct Adaptation {
    coherence: Duration,
    tpdu_bytes_max: usize,
    /// The present choice; until the peer's first estimate, the settings' shape.
    shape: TpduShape,
    shapes: Vec<TpduShape>,
    /// Each shape's use of the link.
    uses: Uses,
    outlook: Outlook,
    /// The peer's last estimate, and its time.
    heard: Option<(Instant, ChannelWord)>,
    rate: Option<BitErrorRate>,
}

/// The longest time that an estimate counts for, in coherence times: silence says nothing of the rate.
const HOLDS_MAX: f64 = 1.0;
/// Octets in each codeword that the parity corrects for which room is left at first. This is best
/// at 1e-4 for TPDUs of 1520 octets, of which it takes 3 %.
const ROOM_CORRECTS: usize = 4;
/// The share of a new TPDU's chance of arrival, below which a TPDU is sent after new ones.
const DEFERRED: f64 = 0.25;

impl Adaptation {
    /// An adaptation for TPDUs of at most so many octets; `first` holds until the peer's first
    /// estimate.
    pub(super) fn new(coherence: Duration, tpdu_bytes_max: usize, first: TpduShape) -> Self {
        let shapes = TpduShape::choices(tpdu_bytes_max);
        Self {
            coherence,
            tpdu_bytes_max,
            shape: first,
            uses: Uses::default(),
            outlook: Outlook::new(shapes.len()),
            shapes,
            heard: None,
            rate: None,
        }
    }

    /// Sets another bound on TPDUs; `first` holds until the peer's next estimate.
    pub(super) fn set_tpdu_bytes_max(&mut self, octets: usize, first: TpduShape) {
        *self = Self::new(self.coherence, octets, first);
    }

    /// The longest payload that leaves room for parity which corrects [`ROOM_CORRECTS`] octets in each codeword.
    pub(super) fn payload_before_news(&self) -> usize {
        let room = TpduShape::correcting(self.tpdu_bytes_max, ROOM_CORRECTS);
        room.map_or(self.shape.payload, |room| {
            room.payload.min(self.shape.payload)
        })
    }

    /// Takes the peer's estimate. Returns the choice, if it is the first or differs from the one
    /// before.
    pub(super) fn on_word(
        &mut self,
        now: Instant,
        word: ChannelWord,
        rtt: Duration,
    ) -> Option<TpduShape> {
        let first = self.heard.is_none();
        if let Some((since, before)) = self.heard {
            let held = self.in_coherence(now.saturating_since(since));
            let class = RateClass::of(before.recent.rate());
            self.compute(class);
            let uses = self.uses.of(class);
            self.outlook.remember(uses, held.min(HOLDS_MAX));
        }
        self.heard = Some((now, word));
        let known = (-self.in_coherence(rtt)).exp();
        let (recent, lasting) = (word.recent.rate(), word.lasting.rate());
        self.rate = Some(expected(recent, lasting, known));
        let [recent, lasting] = [recent, lasting].map(RateClass::of);
        self.compute(recent);
        self.compute(lasting);
        let present = self.shapes.iter().position(|shape| *shape == self.shape);
        let (recent, lasting) = (self.uses.of(recent), self.uses.of(lasting));
        let best = self.outlook.best(recent, known, lasting, present);
        let best = best.and_then(|best| self.shapes.get(best).copied());
        let best = best.unwrap_or(self.shape);
        let before = core::mem::replace(&mut self.shape, best);
        (first || best != before).then_some(best)
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "seven digits of a share are more than is known of it"
    )]
    fn compute(&mut self, class: RateClass) {
        let shapes = self.shapes.iter();
        self.uses.compute(class, |rate| {
            let uses = shapes.map(|shape| shape.use_of_link(rate) as f32);
            uses.collect()
        });
    }

    fn in_coherence(&self, span: Duration) -> f64 {
        span.as_secs_f64() / self.coherence.as_secs_f64().max(1e-9)
    }

    /// The rate that the next TPDU is expected to meet, in quarter octaves below 1; `None` until the peer's
    /// first estimate.
    pub(super) fn rate_quarter_octaves(&self) -> Option<u8> {
        u8::try_from(RateClass::of(self.rate?).quarter_octaves()).ok()
    }

    /// The longest payload, of eighths of `longest`, that need not wait for new data; `None` if no
    /// payload has to wait.
    pub(super) fn longest_hopeful(&self, longest: usize) -> Option<usize> {
        if !self.defers(longest) {
            return None;
        }
        let eighths = (1..LENGTHS).rev().map(|eighth| longest * eighth / LENGTHS);
        let shape = self.shape.payload;
        let mut longer = eighths.take_while(|payload| *payload > shape);
        Some(
            longer
                .find(|payload| !self.defers(*payload))
                .unwrap_or(shape),
        )
    }

    /// The shape of the next TPDU.
    #[cfg(test)]
    const fn shape(&self) -> TpduShape {
        self.shape
    }

    /// The strongest parity up to the chosen one that a payload of this length leaves room for.
    pub(super) fn strength_for(&self, payload: usize) -> FecStrength {
        let wanted = self.shape.fec_words;
        let weakest = FecStrength::from_words(1).unwrap_or_default();
        let room = payload_max(self.tpdu_bytes_max, weakest, true, false) + weakest.parity_bytes();
        let words = room.saturating_sub(payload) / 4;
        let words = words.min(usize::from(wanted.words()));
        let fitting = u16::try_from(words).ok().and_then(FecStrength::from_words);
        fitting.unwrap_or_default()
    }

    /// Whether a payload of this length has so small a chance that new data should go first.
    pub(super) fn defers(&self, payload: usize) -> bool {
        let Some(rate) = self.rate else {
            return false;
        };
        let again = TpduShape {
            payload,
            fec_words: self.strength_for(payload),
        };
        again.arrives(rate) < DEFERRED * self.shape.arrives(rate)
    }
}

/// The one rate that stands for the outlook.
fn expected(recent: BitErrorRate, lasting: BitErrorRate, known: f64) -> BitErrorRate {
    let least = f64::MIN_POSITIVE;
    let value = between(lasting.value().max(least), recent.value().max(least), known);
    BitErrorRate::new(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::wire::aerotp::RateCode;

    const MAX: usize = 1520;
    const COHERENCE: Duration = Duration::from_millis(4);
    const STEP: Duration = Duration::from_micros(200);

    fn adaptation() -> Adaptation {
        let first = TpduShape {
            payload: payload_max(MAX, FecStrength::NONE, true, false),
            fec_words: FecStrength::NONE,
        };
        Adaptation::new(COHERENCE, MAX, first)
    }

    fn word(recent: f64, lasting: f64) -> ChannelWord {
        let code = |value| RateCode::of(BitErrorRate::new(value).expect("a share"));
        ChannelWord {
            recent: code(recent),
            lasting: code(lasting),
        }
    }

    fn at(rate: f64) -> TpduShape {
        let mut adaptation = adaptation();
        adaptation.on_word(Instant::START, word(rate, rate), Duration::ZERO);
        adaptation.shape()
    }

    #[test]
    fn a_clean_channel_gets_the_longest_payload_without_parity_and_a_worse_one_more_parity() {
        let clean = at(1e-9);
        assert_eq!(clean, adaptation().shape());
        let strengths: Vec<u16> = [1e-9, 1e-5, 1e-4, 1e-3, 5e-3]
            .map(|rate| at(rate).fec_words.words())
            .to_vec();
        assert!(strengths.is_sorted() && strengths[1] > 0, "{strengths:?}");
    }

    #[test]
    fn what_is_said_fresh_gets_within_a_thousandth_of_its_best_choice() {
        for rate in [1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 4e-3] {
            let rate_there = BitErrorRate::new(rate).expect("a share");
            let shapes = TpduShape::choices(MAX).into_iter();
            let most = shapes.map(|shape| shape.use_of_link(rate_there));
            let most = most.fold(0.0, f64::max);
            let ours = at(rate).use_of_link(rate_there);
            // A class is a quarter octave wide; the middle of it stands for it.
            assert!(ours > 0.995 * most, "{rate}: {ours} of {most}");
        }
    }

    #[test]
    fn what_is_known_of_a_fade_is_worth_less_the_longer_it_takes_to_hear_of_it() {
        let heard = |horizon: Duration| {
            let mut adaptation = adaptation();
            adaptation.on_word(Instant::START, word(1e-3, 1e-6), horizon);
            let quarters = adaptation.rate_quarter_octaves().expect("it heard");
            // The middle of a class, which is a quarter octave wide.
            ((f64::from(quarters) + 0.5) / -4.0).exp2().log10()
        };
        // Classes are a quarter octave wide.
        assert!((heard(Duration::ZERO) + 3.0).abs() < 0.04);
        // Three decades, of which 1/e is left.
        let middle = heard(COHERENCE);
        assert!(
            (middle + 6.0 - 3.0 / 1.0_f64.exp()).abs() < 0.04,
            "{middle}"
        );
        assert!((heard(COHERENCE * 50) + 6.0).abs() < 0.04);
    }

    /// Fades of 1e-3 for a tenth of the time, far shorter than a round trip. The best single choice protects against
    /// them; the choice for the mean of 1e-4, or for the mean logarithm, does not.
    #[test]
    fn where_news_is_older_than_fades_the_choice_is_the_best_for_all_that_was_said() {
        let mut adaptation = adaptation();
        let mut rng = Rng::from_seed(4);
        let mut now = Instant::START;
        for _ in 0..20_000 {
            let recent = if rng.chance(0.1) { 1e-3 } else { 1e-7 };
            adaptation.on_word(now, word(recent, 1e-4), COHERENCE * 10);
            now += STEP;
        }
        let mean = |shape: TpduShape| {
            let at = |rate| shape.use_of_link(BitErrorRate::new(rate).expect("a share"));
            0.1 * at(1e-3) + 0.9 * at(1e-7)
        };
        let most = TpduShape::choices(MAX).into_iter().map(mean);
        let most = most.fold(0.0, f64::max);
        let (ours, by_mean) = (mean(adaptation.shape()), mean(at(1e-4)));
        println!("{ours:.4} of {most:.4}; by the mean rate {by_mean:.4}");
        assert!(ours > 0.99 * most, "{ours} of {most}");
        assert!(ours > 1.02 * by_mean, "{ours}, {by_mean}");
    }

    #[test]
    fn a_long_tpdu_of_before_a_fade_waits_for_its_end() {
        let mut adaptation = adaptation();
        let long = adaptation.shape().payload;
        let at = |step: u32| Instant::START + STEP * step;
        adaptation.on_word(at(0), word(1e-7, 1e-7), Duration::ZERO);
        assert!(!adaptation.defers(long));
        adaptation.on_word(at(1), word(1e-3, 1e-7), Duration::ZERO);
        assert!(adaptation.defers(long));
        assert_eq!(adaptation.strength_for(long), FecStrength::NONE);
        let short = adaptation.shape().payload;
        assert!(!adaptation.defers(short));
    }
}
