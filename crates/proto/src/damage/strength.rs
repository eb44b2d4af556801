//! Words of parity behind a session's datagrams, by the bit error rate that their receiver tells.
//!
//! # Choice
//! The choices are parities that correct none, one, two and more octets in each codeword of a full datagram. The best
//! has the greatest expected use of the link over an [`Outlook`]. An outlook needs the channel's coherence time, which
//! nobody tells here. So there is one for each of [`SPANS`], and the choices of that one are taken whose choices, as old as
//! a round trip makes them, would have used the link best over the last seconds.
//!
//! Where the receiver keeps what is beyond repair, and parity sent later mends it, a choice costs the octets of that parity
//! and not those of the whole datagram, so that weaker ones are best. A receiver keeps so many datagrams and no more: where
//! the way is long and fast, they are a small share of all, and what is beyond repair beside them costs a whole datagram.
//!
//! # Shorter datagrams
//! The datagrams that are shorter than a full one have as many words as make them arrive more surely than a full one at the
//! rate for which the choice is just strong enough: they are answers and thin writes, for which others wait.
//!
//! # Promises
//! - Before the first word of the receiver there is parity for [`FIRST_CORRECTS`] octets in each codeword.
//! - Nothing is stronger than [`WORDS_MAX`] words, whatever the receiver says.

use super::arrival::{arrives, codewords, intact};
use super::later::octets_until_mended;
use super::outlook::{BETTER, Outlook, RateClass, Uses};
use crate::units::{BitErrorRate, Duration, FecStrength, Instant};
use crate::wire::aerotp::ChannelWord;
use std::collections::VecDeque;

/// The layout of a full datagram, as far as the choice of its parity goes by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtectedLayout {
    /// Octets of the whole packet.
    pub packet: usize,
    /// Octets in front of what the parity covers.
    pub before: usize,
    /// Octets of them that are lost with the first wrong bit.
    pub bare: usize,
    /// Octets that the parity covers and that are no payload.
    pub inside: usize,
}

impl ProtectedLayout {
    /// Octets that the parity covers, and its own.
    const fn region(self) -> usize {
        self.packet.saturating_sub(self.before)
    }

    /// The share of the link that is payload which arrives, where such datagrams fill it.
    fn use_of_link(self, words: FecStrength, rate: BitErrorRate) -> f64 {
        let payload = (self.region()).saturating_sub(self.inside + words.parity_bytes());
        let share = payload as f64 / self.packet.max(1) as f64;
        share * intact(rate, self.bare) * arrives(rate, self.region(), words)
    }

    /// The same of each of the first so many strengths, where parity that is sent later mends what is beyond repair.
    fn uses_if_mended_later(
        self,
        strengths: &[FecStrength],
        rate: BitErrorRate,
        kept_share: f64,
    ) -> Vec<f64> {
        let most = strengths.len().saturating_sub(1);
        let octets = octets_until_mended(rate, self.region(), most, kept_share);
        let uses = strengths.iter().zip(octets).map(|(words, octets)| {
            let payload = self
                .region()
                .saturating_sub(self.inside + words.parity_bytes());
            payload as f64 / self.packet.max(1) as f64 * intact(rate, self.bare) / octets
        });
        uses.collect()
    }

    /// The parities that may be chosen, the weakest first.
    fn strengths(self) -> Vec<FecStrength> {
        let least = self.inside;
        let of = |corrected: usize| {
            let words = (codewords(self.region()) * 2 * corrected).div_ceil(4);
            let words = u16::try_from(words)
                .ok()
                .filter(|words| *words <= WORDS_MAX)?;
            let words = FecStrength::from_words(words)?;
            (words.parity_bytes() + least < self.region()).then_some(words)
        };
        (0..=CORRECTED_MAX).map_while(of).collect()
    }
}

/// The most words: an octet of a header says how many there are.
const WORDS_MAX: u16 = 255;
/// The most octets of a codeword that a choice corrects. More wrong ones are a rate above 1e-2, at which a third of all
/// headers are beyond repair.
const CORRECTED_MAX: usize = 32;
/// The octets of each codeword that are corrected at first: up to 1e-4 nearly all arrive, and above one in a few does.
const FIRST_CORRECTS: usize = 2;
/// The coherence times that the channel may have.
const SPANS: [Duration; 4] = [
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(10),
];
/// The place of the span that decides at first.
const FIRST_SPAN: usize = 1;
/// The longest time that a word counts for: silence says nothing of the rate.
const HELD_MAX: Duration = Duration::from_secs(1);
/// The time in which the memory of what choices were worth falls by e.
const JUDGED_OVER: f64 = 10.0;
/// The factor by which the rate has changed, and is not one that fluctuates.
const CHANGED: f64 = 4.0;
/// Choices of which it is remembered when they were made.
const MADE_MAX: usize = 64;
/// The loss of full datagrams at the rate for which a parity is just strong enough, by decoding alone.
const FULL_LOSS: f64 = 1e-2;
/// The loss of shorter ones at the same rate.
const SHORT_LOSS: f64 = 1e-3;
/// The loss at that rate above which a datagram with less parity than chosen is better cut to pieces.
const LONG_LOSS: f64 = 0.1;
/// The factor by which the share that is kept has changed, and everything is computed anew.
const KEPT_CHANGED: f64 = 1.25;
/// Lengths for which the words of shorter datagrams are computed.
const LENGTHS: usize = 64;

/// The choices of one coherence time.
#[derive(Clone, Debug)]
struct Candidate {
    span: Duration,
    /// The mean of the rates that were told, over the span.
    rate: f64,
    outlook: Outlook,
    choice: Option<usize>,
    /// The use of the link that its choices would have made lately.
    worth: f64,
}

impl Candidate {
    fn new(span: Duration, choices: usize) -> Self {
        Self {
            span,
            rate: 0.0,
            outlook: Outlook::new(choices),
            choice: None,
            worth: 0.0,
        }
    }

    fn in_spans(&self, time: Duration) -> f64 {
        time.as_secs_f64() / self.span.as_secs_f64()
    }

    /// Takes the rate that was told, so long after the last.
    fn take(&mut self, told: f64, held: Option<Duration>) {
        let (low, high) = (told.min(self.rate), told.max(self.rate));
        let fresh = match held {
            // What is told is a mean over the first span itself.
            Some(held) if high <= CHANGED * low && self.span > SPANS[0] => {
                1.0 - (-self.in_spans(held)).exp()
            }
            _ => 1.0,
        };
        self.rate += (told - self.rate) * fresh;
    }

    fn class(&self) -> RateClass {
        RateClass::of(BitErrorRate::new(self.rate).unwrap_or_default())
    }
}

/// The words of datagrams that are not full, for one choice.
#[derive(Clone, Debug)]
struct Shorter {
    /// By length, in parts of a full datagram.
    words: [u8; LENGTHS],
    /// The fewest words with which a datagram that was cut for less parity is not cut to pieces.
    least: FecStrength,
}

/// The sender's side of parity that follows.
#[derive(Clone, Debug)]
pub struct StrengthFollower {
    layout: ProtectedLayout,
    /// Whether parity sent later mends what is beyond repair.
    mends_later: bool,
    /// The greatest share of datagrams that is kept for it.
    kept_share: f64,
    strengths: Vec<FecStrength>,
    uses: Uses,
    candidates: [Candidate; SPANS.len()],
    /// The place of the candidate that decides.
    decides: usize,
    /// The last word, and its time.
    heard: Option<(Instant, ChannelWord)>,
    /// The candidates' choices, and when they were made.
    made: VecDeque<(Instant, [Option<usize>; SPANS.len()])>,
    choice: usize,
    shorter: Vec<Option<Box<Shorter>>>,
}

impl StrengthFollower {
    /// A follower for datagrams of this layout.
    pub fn new(layout: ProtectedLayout) -> Self {
        Self::with(layout, false)
    }

    fn with(layout: ProtectedLayout, mends_later: bool) -> Self {
        let strengths = layout.strengths();
        let choices = strengths.len();
        let mut follower = Self {
            layout,
            mends_later,
            kept_share: 1.0,
            uses: Uses::default(),
            candidates: SPANS.map(|span| Candidate::new(span, choices)),
            decides: FIRST_SPAN,
            heard: None,
            made: VecDeque::new(),
            choice: FIRST_CORRECTS.min(choices.saturating_sub(1)),
            shorter: vec![None; choices],
            strengths,
        };
        follower.compute_shorter();
        follower
    }

    /// Makes datagrams of another layout from now on. The last word holds for them, too. Returns whether they have other
    /// parity.
    pub fn set_layout(&mut self, layout: ProtectedLayout) -> bool {
        layout != self.layout && self.begin_again(layout, self.mends_later)
    }

    /// Chooses for a receiver that keeps what is beyond repair until parity sent later mends it, or for another one. Returns
    /// whether datagrams have other parity.
    pub fn mend_later(&mut self, mends_later: bool) -> bool {
        mends_later != self.mends_later && self.begin_again(self.layout, mends_later)
    }

    /// Takes the greatest share of datagrams that both ends keep until parity sent later mends them. The next word's choice
    /// goes by it.
    pub fn set_kept_share(&mut self, share: f64) {
        let (low, high) = (share.min(self.kept_share), share.max(self.kept_share));
        if high > KEPT_CHANGED * low {
            self.kept_share = share;
            self.uses = Uses::default();
        }
    }

    fn begin_again(&mut self, layout: ProtectedLayout, mends_later: bool) -> bool {
        let before = self.strength();
        let (heard, kept_share) = (self.heard, self.kept_share);
        *self = Self::with(layout, mends_later);
        self.kept_share = kept_share;
        if let Some((at, word)) = heard {
            self.on_word(at, word, Duration::ZERO);
        }
        self.strength() != before
    }

    /// Words behind a full datagram.
    pub fn strength(&self) -> FecStrength {
        self.strengths.get(self.choice).copied().unwrap_or_default()
    }

    /// The rate that the receiver told last.
    pub fn rate(&self) -> Option<BitErrorRate> {
        self.heard.map(|(_, word)| word.recent.rate())
    }

    /// Words behind so many octets; those of a full datagram at most.
    pub fn strength_for(&self, octets: usize) -> FecStrength {
        let shorter = self.shorter.get(self.choice).and_then(Option::as_deref);
        let part = octets.div_ceil(self.part());
        let words = shorter.and_then(|shorter| shorter.words.get(part.saturating_sub(1)));
        let words = words.and_then(|words| FecStrength::from_words(u16::from(*words)));
        words.unwrap_or(self.strength())
    }

    /// The fewest words behind octets that were cut for less parity; with less room they are better cut to pieces.
    pub fn least_for_long(&self) -> FecStrength {
        let shorter = self.shorter.get(self.choice).and_then(Option::as_deref);
        shorter.map_or(self.strength(), |shorter| shorter.least)
    }

    /// The lengths that have words in common.
    fn part(&self) -> usize {
        self.layout.region().div_ceil(LENGTHS).max(1)
    }

    fn compute_shorter(&mut self) {
        let (words, part, region) = (self.strength(), self.part(), self.layout.region());
        let Some(place) = self.shorter.get_mut(self.choice) else {
            return;
        };
        place.get_or_insert_with(|| {
            let rate = just_strong_enough(words, region);
            let of = |loss: f64, octets: usize, with_parity: bool| {
                let weakest = (0..words.words()).filter_map(FecStrength::from_words);
                let mut weakest = weakest.filter(|words| {
                    let all = octets + if with_parity { 0 } else { words.parity_bytes() };
                    arrives(rate, all, *words) >= 1.0 - loss
                });
                weakest.next().unwrap_or(words)
            };
            let mut shorter = [0; LENGTHS];
            for (n, place) in (1..).zip(&mut shorter) {
                let words = of(SHORT_LOSS, n * part, false).words();
                *place = u8::try_from(words).unwrap_or(u8::MAX);
            }
            Box::new(Shorter {
                words: shorter,
                least: of(LONG_LOSS, region, true),
            })
        });
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "seven digits of a share are more than is known of it"
    )]
    fn compute(&mut self, class: RateClass) {
        let (layout, strengths) = (self.layout, self.strengths.as_slice());
        let (mends_later, kept_share) = (self.mends_later, self.kept_share);
        self.uses.compute(class, |rate| {
            if mends_later {
                let uses = layout.uses_if_mended_later(strengths, rate, kept_share);
                return uses.into_iter().map(|used| used as f32).collect();
            }
            let uses = strengths.iter();
            uses.map(|words| layout.use_of_link(*words, rate) as f32)
                .collect()
        });
    }

    /// Takes the receiver's word. Returns whether full datagrams have other parity from now on.
    pub fn on_word(&mut self, now: Instant, word: ChannelWord, round_trip: Duration) -> bool {
        let told = word.recent.rate();
        let lasting = RateClass::of(word.lasting.rate());
        self.compute(RateClass::of(told));
        self.compute(lasting);
        let held = self
            .heard
            .map(|(at, _)| now.saturating_since(at).min(HELD_MAX));
        if let Some(held) = held {
            self.judge(now, RateClass::of(told), held, round_trip);
        }
        self.heard = Some((now, word));
        for place in 0..self.candidates.len() {
            self.choose(place, (told, held), lasting, round_trip);
        }
        let choices = self.candidates.each_ref().map(|candidate| candidate.choice);
        if self.made.back().is_none_or(|(_, last)| *last != choices) {
            if self.made.len() == MADE_MAX {
                self.made.pop_front();
            }
            self.made.push_back((now, choices));
        }
        self.decide()
    }

    /// Adds to each candidate's worth the use that its choice for the datagrams of now, made a round trip ago, had.
    fn judge(&mut self, now: Instant, class: RateClass, held: Duration, round_trip: Duration) {
        let in_effect = |(at, _): &(Instant, _)| *at + round_trip <= now;
        while self.made.get(1).is_some_and(in_effect) {
            self.made.pop_front();
        }
        let Some((_, choices)) = self.made.front() else {
            return;
        };
        let kept = (-held.as_secs_f64() / JUDGED_OVER).exp();
        let uses = self.uses.of(class);
        for (candidate, choice) in self.candidates.iter_mut().zip(choices) {
            let used = choice.and_then(|choice| uses.get(choice).copied());
            let used = f64::from(used.unwrap_or_default());
            candidate.worth = candidate.worth * kept + used * (1.0 - kept);
        }
    }

    /// Makes the choice of the candidate in this place.
    fn choose(
        &mut self,
        place: usize,
        (told, held): (BitErrorRate, Option<Duration>),
        lasting: RateClass,
        round_trip: Duration,
    ) {
        let Some(candidate) = self.candidates.get_mut(place) else {
            return;
        };
        let before = candidate.class();
        candidate.take(told.value(), held);
        let class = candidate.class();
        self.compute(before);
        self.compute(class);
        let Some(candidate) = self.candidates.get_mut(place) else {
            return;
        };
        if let Some(held) = held {
            let spans = candidate.in_spans(held).min(1.0);
            candidate.outlook.remember(self.uses.of(before), spans);
        }
        let known = (-candidate.in_spans(round_trip)).exp();
        let (recent, lasting) = (self.uses.of(class), self.uses.of(lasting));
        let best = candidate
            .outlook
            .best(recent, known, lasting, candidate.choice);
        candidate.choice = best;
    }

    /// Takes the choice of the candidate that did best.
    fn decide(&mut self) -> bool {
        let worth = |place: usize| self.candidates.get(place).map_or(0.0, |one| one.worth);
        let present = worth(self.decides);
        for place in 0..self.candidates.len() {
            if worth(place) > BETTER * present && worth(place) > worth(self.decides) {
                self.decides = place;
            }
        }
        let chosen = self.candidates.get(self.decides).and_then(|one| one.choice);
        let before = self.choice;
        self.choice = chosen.unwrap_or(before);
        self.compute_shorter();
        before != self.choice
    }
}

/// The greatest rate at which full datagrams with so many words hardly need to be sent again.
fn just_strong_enough(words: FecStrength, region: usize) -> BitErrorRate {
    // In powers of two: 2^-40 is no rate at all, and above 2^-4 nothing arrives.
    let (mut low, mut high) = (-40.0_f64, -4.0_f64);
    let rate = |power: f64| BitErrorRate::new(power.exp2()).unwrap_or_default();
    for _ in 0..20 {
        let middle = f64::midpoint(low, high);
        if arrives(rate(middle), region, words) >= 1.0 - FULL_LOSS {
            low = middle;
        } else {
            high = middle;
        }
    }
    rate(low)
}

#[cfg(test)]
mod tests;
