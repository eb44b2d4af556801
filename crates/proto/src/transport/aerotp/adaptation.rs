//! Payload length and parity of the next TPDU, by the bit error rate that it will probably meet.
//!
//! # Prediction
//! What the peer says is old by a round trip h when what is sent now arrives. A fade's correlation falls by e in
//! the `coherence`, so the order of magnitude of the rate is taken to return to that of the lasting rate:
//!
//! ```text
//! ln b = r ln recent + (1 - r) ln lasting,   r = exp(-h / coherence)
//! ```
//!
//! # Choice
//! Of a grid of lengths L (eighths of the longest TPDU) and strengths w (what corrects one more octet in each
//! codeword) the one whose expected use of the link is greatest, with l the payload:
//!
//! ```text
//! l / (L + 20) (1 - b)^160 S,      S = (1 - b)^(8 L) without parity,
//!                                  S = P(X <= t)^n with it, X ~ Binomial(L / n, 1 - (1 - b)^8),
//!                                  n = ceil(L / 255) codewords, each correcting t = floor(floor(4 w / n) / 2) octets
//! ```
//!
//! which is the normalised goodput of selective repeat (Epple, equation 8) with a code in the packet. 20 octets of
//! network header are not protected. Rates are taken in quarters of an octave, and each quarter's choice is
//! computed once.
//!
//! What was cut longer and has to go again keeps its length. Where it can hardly arrive ([`Adaptation::defers`]),
//! new data goes first.

use super::ber_estimate::between;
use crate::units::{BitErrorRate, Duration, FecStrength};
use crate::wire::aerotp::{ChannelWord, payload_max};
use crate::wire::network::NETWORK_HEADER_BYTES;

/// What one TPDU is made like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TpduShape {
    /// Payload octets, at most.
    pub payload: usize,
    /// Parity words.
    pub fec_words: FecStrength,
}

/// The sender's side of following the bit error rate.
#[derive(Clone, Debug)]
pub(super) struct Adaptation {
    coherence: Duration,
    tpdu_bytes_max: usize,
    /// Before the peer has said anything.
    first: TpduShape,
    heard: Option<ChannelWord>,
    rate: Option<BitErrorRate>,
    /// By quarter octaves of the rate.
    choices: Vec<Option<TpduShape>>,
}

/// Quarter octaves of the bit error rate.
const QUARTERS: f64 = 4.0;
/// 2^-40, a bit in 30 minutes at 622 Mbit/s: rates below choose alike.
const CLASSES: usize = 160;
const LENGTHS: usize = 8;
/// Shorter TPDUs are hardly more than headers.
const TPDU_BYTES_MIN: usize = 128;
/// Octets of a codeword that parity may correct, at most, of those that are tried.
const CORRECTED_MAX: usize = 32;
/// A TPDU that has less than this share of the chance of a new one is sent after it.
const DEFERRED: f64 = 0.25;
const CODEWORD: usize = 255;

impl Adaptation {
    /// Of TPDUs of at most so many octets; `first` until the peer says something.
    pub(super) fn new(coherence: Duration, tpdu_bytes_max: usize, first: TpduShape) -> Self {
        Self {
            coherence,
            tpdu_bytes_max,
            first,
            heard: None,
            rate: None,
            choices: vec![None; CLASSES],
        }
    }

    /// The path's TPDUs have another bound from now on.
    pub(super) fn set_tpdu_bytes_max(&mut self, octets: usize, first: TpduShape) {
        self.tpdu_bytes_max = octets;
        self.first = first;
        self.choices.fill(None);
    }

    /// The peer's estimate came. Returns the choice, if it differs from the one before.
    pub(super) fn on_word(&mut self, word: ChannelWord, rtt: Duration) -> Option<TpduShape> {
        let before = self.shape();
        self.heard = Some(word);
        self.rate = Some(self.predicted(word, rtt));
        let now = self.shape();
        (now != before).then_some(now)
    }

    fn predicted(&self, word: ChannelWord, horizon: Duration) -> BitErrorRate {
        let age = horizon.as_secs_f64() / self.coherence.as_secs_f64().max(1e-9);
        let (recent, lasting) = (word.recent.rate(), word.lasting.rate());
        let least = f64::MIN_POSITIVE;
        let value = between(
            lasting.value().max(least),
            recent.value().max(least),
            (-age).exp(),
        );
        BitErrorRate::new(value).unwrap_or_default()
    }

    /// The rate that the next TPDU is expected to meet, as halvings of 1.
    pub(super) fn rate_octaves(&self) -> u8 {
        let class = self.rate.map_or(CLASSES, class);
        u8::try_from(class / 4).unwrap_or(u8::MAX)
    }

    /// The longest payload, of eighths of `longest`, that need not wait for new data; `None` if none
    /// has to.
    pub(super) fn longest_hopeful(&mut self, longest: usize) -> Option<usize> {
        if !self.defers(longest) {
            return None;
        }
        let eighths = (1..LENGTHS).rev().map(|eighth| longest * eighth / LENGTHS);
        let shape = self.shape().payload;
        let mut longer = eighths.take_while(|payload| *payload > shape);
        Some(
            longer
                .find(|payload| !self.defers(*payload))
                .unwrap_or(shape),
        )
    }

    /// What the next TPDU is made like.
    pub(super) fn shape(&mut self) -> TpduShape {
        let Some(rate) = self.rate else {
            return self.first;
        };
        let class = class(rate);
        let max = self.tpdu_bytes_max;
        let Some(choice) = self.choices.get_mut(class) else {
            return self.first;
        };
        *choice.get_or_insert_with(|| best(class_rate(class), max).unwrap_or(self.first))
    }

    /// The strongest parity up to the chosen one that a payload of this length leaves room for.
    pub(super) fn strength_for(&mut self, payload: usize) -> FecStrength {
        let wanted = self.shape().fec_words;
        let weakest = FecStrength::from_words(1).unwrap_or_default();
        let room = payload_max(self.tpdu_bytes_max, weakest, true, false) + weakest.parity_bytes();
        let words = room.saturating_sub(payload) / 4;
        let words = words.min(usize::from(wanted.words()));
        let fitting = u16::try_from(words).ok().and_then(FecStrength::from_words);
        fitting.unwrap_or_default()
    }

    /// Whether a payload of this length has so small a chance that new data should go first.
    pub(super) fn defers(&mut self, payload: usize) -> bool {
        let Some(rate) = self.rate else {
            return false;
        };
        let (shape, strength) = (self.shape(), self.strength_for(payload));
        let chance = |payload, words| arrives(rate.value(), tpdu_bytes(payload, words), words);
        chance(payload, strength) < DEFERRED * chance(shape.payload, shape.fec_words)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate"
)]
fn class(rate: BitErrorRate) -> usize {
    ((-QUARTERS * rate.value().log2()) as usize).min(CLASSES - 1)
}

/// The middle of a class.
fn class_rate(class: usize) -> f64 {
    (-(class as f64 + 0.5) / QUARTERS).exp2()
}

/// Octets of a TPDU without repair or block.
fn tpdu_bytes(payload: usize, words: FecStrength) -> usize {
    let room = usize::from(u16::MAX);
    payload + (room - payload_max(room, words, true, false))
}

/// The greatest use of the link at a rate; `None` if no payload fits.
fn best(rate: f64, tpdu_bytes_max: usize) -> Option<TpduShape> {
    let mut best: Option<(f64, TpduShape)> = None;
    for eighth in (1..=LENGTHS).rev() {
        let octets = tpdu_bytes_max * eighth / LENGTHS;
        if octets < TPDU_BYTES_MIN.min(tpdu_bytes_max) {
            break;
        }
        let codewords = octets.div_ceil(CODEWORD);
        for corrected in 0..=CORRECTED_MAX {
            let words = (codewords * 2 * corrected).div_ceil(4);
            let strength = u16::try_from(words).ok().and_then(FecStrength::from_words);
            let Some(fec_words) = strength else {
                break;
            };
            let payload = payload_max(octets, fec_words, true, false);
            if payload == 0 {
                break;
            }
            let share = payload as f64 / (octets + NETWORK_HEADER_BYTES) as f64;
            let use_of_link = share * arrives(rate, octets, fec_words);
            if best.is_none_or(|(most, _)| use_of_link > most) {
                best = Some((use_of_link, TpduShape { payload, fec_words }));
            }
        }
    }
    best.map(|(_, shape)| shape)
}

/// How many wrong octets parity corrects wherever they are: those of one codeword.
pub(super) fn corrected_for_certain(octets: usize, words: FecStrength) -> usize {
    words.parity_bytes() / octets.div_ceil(CODEWORD).max(1) / 2
}

/// The probability that a TPDU of so many octets comes through, or is put right.
fn arrives(rate: f64, octets: usize, words: FecStrength) -> f64 {
    let intact = |octets: usize| (8.0 * octets as f64 * (-rate).ln_1p()).exp();
    let header = intact(NETWORK_HEADER_BYTES);
    if words.is_none() {
        return header * intact(octets);
    }
    let codewords = octets.div_ceil(CODEWORD).max(1);
    let corrected = corrected_for_certain(octets, words);
    let len = octets as f64 / codewords as f64;
    let wrong = 1.0 - intact(1);
    let mut term = intact(1).powf(len);
    let mut sum = term;
    for count in 1..=corrected {
        let count = count as f64;
        term *= (len - count + 1.0) / count * wrong / (1.0 - wrong);
        sum += term.max(0.0);
    }
    header * sum.min(1.0).powf(codewords as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::aerotp::RateCode;

    const MAX: usize = 1520;
    const COHERENCE: Duration = Duration::from_millis(4);

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
        adaptation.on_word(word(rate, rate), Duration::ZERO);
        adaptation.shape()
    }

    #[test]
    fn a_clean_channel_gets_the_longest_payload_without_parity_and_a_worse_one_more_parity() {
        let clean = at(1e-9);
        assert_eq!(clean, adaptation().first);
        let strengths: Vec<u16> = [1e-9, 1e-5, 1e-4, 1e-3, 5e-3]
            .map(|rate| at(rate).fec_words.words())
            .to_vec();
        assert!(strengths.is_sorted() && strengths[1] > 0, "{strengths:?}");
    }

    /// Against trying every length and every strength at a few rates: the grid loses little.
    #[test]
    fn the_grid_is_within_two_per_cent_of_every_length_and_strength() {
        for rate in [1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 4e-3] {
            let use_of_link = |shape: TpduShape| {
                let octets = tpdu_bytes(shape.payload, shape.fec_words);
                let share = shape.payload as f64 / (octets + NETWORK_HEADER_BYTES) as f64;
                share * arrives(rate, octets, shape.fec_words)
            };
            let mut every = 0.0_f64;
            for words in 0..=256 {
                let fec_words = FecStrength::from_words(words).expect("in range");
                for octets in (TPDU_BYTES_MIN..=MAX).step_by(8) {
                    let payload = payload_max(octets, fec_words, true, false);
                    every = every.max(use_of_link(TpduShape { payload, fec_words }));
                }
            }
            let ours = use_of_link(at(rate));
            println!("{rate}: {:?} {ours:.4} of {every:.4}", at(rate));
            assert!(ours > 0.98 * every, "{rate}: {ours} of {every}");
        }
    }

    #[test]
    fn the_chance_of_arriving_is_that_of_independent_bits() {
        // Without parity, by hand: (1 - 1e-4)^(8 * 1020).
        let found = arrives(1e-4, 1000, FecStrength::NONE);
        assert!((found - 0.9999_f64.powi(8160)).abs() < 1e-9, "{found}");
        // reference/rs_residual.csv: 1500 octets and 24 words at 1e-3.
        let words = FecStrength::from_words(24).expect("in range");
        let residual = 1.0 - arrives(1e-3, 1500, words) / 0.999_f64.powi(160);
        assert!((1e-4..1e-1).contains(&residual), "{residual}");
    }

    #[test]
    fn what_is_known_of_a_fade_is_worth_less_the_longer_it_takes_to_hear_of_it() {
        let adaptation = adaptation();
        let said = word(1e-3, 1e-6);
        let after = |horizon| adaptation.predicted(said, horizon).value();
        assert!((after(Duration::ZERO) / 1e-3 - 1.0).abs() < 0.01);
        let middle = after(COHERENCE);
        // Three decades, of which e^-1 is left.
        assert!(
            (middle.log10() + 6.0 - 3.0 / 1.0_f64.exp()).abs() < 0.01,
            "{middle}"
        );
        assert!((after(COHERENCE * 50) / 1e-6 - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_long_tpdu_of_before_a_fade_waits_for_its_end() {
        let mut adaptation = adaptation();
        let long = adaptation.first.payload;
        adaptation.on_word(word(1e-7, 1e-7), Duration::ZERO);
        assert!(!adaptation.defers(long));
        adaptation.on_word(word(1e-3, 1e-7), Duration::ZERO);
        assert!(adaptation.defers(long));
        assert_eq!(adaptation.strength_for(long), FecStrength::NONE);
        let short = adaptation.shape().payload;
        assert!(!adaptation.defers(short));
    }
}
