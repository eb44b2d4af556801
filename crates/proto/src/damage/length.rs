//! The length of packets where what is damaged is dropped: the one with the most goodput, from loss by length.
//!
//! A packet of L octets, `headers` of which are no data, brings as data the share
//!
//! ```text
//! (L - headers) / L exp(-c L)
//! ```
//!
//! of the link; what hits packets whatever their length ([`LossByLength`]) changes nothing about the best L,
//! which is `headers / 2 + sqrt(headers^2 / 4 + headers / c)`.
//!
//! Lengths vary only while it could pay to know: where another length would carry at least
//! [`WORTH_KNOWING`] more at an end of the interval of `c`. Then one new packet in [`SOMETIMES`] or [`OFTEN`] is clearly shorter.
//! They vary, too, while somebody [asks](LengthFollower::ask) for the causes of loss.
//! A rate of wrong bits that the link tells is a [guess](LengthFollower::guess): lengths follow it until losses say otherwise.
//! Without loss none is, and once the cause is known, none is either, until memory of it fades.

use super::loss_by_length::{LengthLoss, LossByLength};
use crate::units::BitErrorRate;
use core::cmp::Ordering;

/// Packets between two looks.
const BLOCK: u32 = 64;
/// Packets remembered, and those that show that something changed.
const LASTING: f64 = 8_192.0;
const RECENT: f64 = 512.0;
/// The standard errors by which recent loss differs from what it should be once something changed.
const CHANGED: f64 = 4.0;
/// The standard errors by which bit errors must be above none before packets are cut shorter for them, and below which they
/// are not believed any more.
const BELIEVED: f64 = 4.0;
const DOUBTED: f64 = 1.5;
/// The gain for which packets get another length.
const WORTH_CHANGING: f64 = 1.01;
/// The gain for which it is worth knowing which length is best, and that for which it is urgent.
const WORTH_KNOWING: f64 = 1.02;
const WORTH_MUCH: f64 = 1.10;
/// New packets of which one is shorter, on average.
const SOMETIMES: u32 = 8;
const OFTEN: u32 = 4;
/// The shortest packets, as a multiple of the headers.
const HEADERS_MIN: usize = 3;

/// The sizes of packets, in octets on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketShape {
    /// The longest packet that the path carries.
    pub full: usize,
    /// Octets of each packet that are no data.
    pub headers: usize,
}

impl PacketShape {
    /// The share of the link that is data which arrives.
    fn goodput(self, octets: usize, octet_loss: f64) -> f64 {
        let data = octets.saturating_sub(self.headers) as f64;
        data / octets.max(1) as f64 * (-octet_loss * octets as f64).exp()
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float to integer casts saturate; bounds follow"
    )]
    fn best(self, octet_loss: f64) -> usize {
        let half = self.headers as f64 / 2.0;
        let best = half + (half * half + self.headers as f64 / octet_loss).sqrt();
        (best as usize).clamp(self.least(), self.full)
    }

    fn least(self) -> usize {
        (self.headers * HEADERS_MIN).min(self.full)
    }

    /// The factor by which the best length carries more than `octets`.
    fn gain(self, octets: usize, octet_loss: f64) -> f64 {
        self.goodput(self.best(octet_loss), octet_loss) / self.goodput(octets, octet_loss)
    }
}

/// Loss by length, for long and of late.
#[derive(Clone, Debug, Default)]
struct Memory {
    lasting: LossByLength,
    recent: LossByLength,
}

/// The belief about a path, and the length that follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LengthBelief {
    /// The octets of packets; `None` for as many as the path carries.
    pub octets: Option<usize>,
    /// The loss that was found.
    pub loss: LengthLoss,
}

/// The length of packets on one path.
#[derive(Clone, Debug)]
pub struct LengthFollower {
    shape: Option<PacketShape>,
    /// Nothing before the first loss.
    // Boxed, because most paths lose nothing for long.
    memory: Option<Box<Memory>>,
    since_look: u32,
    loss: LengthLoss,
    octets: Option<usize>,
    /// -ln of the share of octets that arrive whole, as the link tells, until losses refute it.
    guessed: Option<f64>,
    /// One new packet in so many is shorter.
    varies: Option<u32>,
    is_asked: bool,
    until_shorter: u32,
    draws: u32,
}

impl Default for LengthFollower {
    fn default() -> Self {
        Self {
            shape: None,
            memory: None,
            since_look: 0,
            loss: LengthLoss::default(),
            octets: None,
            guessed: None,
            varies: None,
            is_asked: false,
            until_shorter: 0,
            draws: 1,
        }
    }
}

impl LengthFollower {
    /// The belief, once there was loss.
    pub fn belief(&self) -> Option<LengthBelief> {
        self.memory.as_ref()?;
        Some(LengthBelief {
            octets: self.octets,
            loss: self.loss,
        })
    }

    /// Takes the rate of wrong bits that the link tells, or that it tells none any more: the length follows it until losses
    /// say otherwise.
    pub fn guess(&mut self, bits: Option<BitErrorRate>) {
        let octet = bits.map(|bits| -8.0 * libm::log1p(-bits.value().min(0.5)));
        let before = core::mem::replace(&mut self.guessed, octet);
        if before != octet {
            self.follow_guess();
        }
    }

    /// Takes the sizes of the packet that leaves next, so that a guess counts before the first of them was heard of.
    pub fn expect(&mut self, shape: PacketShape) {
        if self.guessed.is_some() && self.shape != Some(shape) {
            self.shape = Some(shape);
            self.follow_guess();
        }
    }

    /// Takes the length that follows from the guess, unless losses have told one.
    fn follow_guess(&mut self) {
        let is_found = self.loss.octet > BELIEVED * self.loss.octet_error;
        let Some(shape) = self.shape.filter(|_| !is_found) else {
            return;
        };
        let best = self
            .guessed
            .map(|octet| shape.best(octet.max(f64::MIN_POSITIVE)));
        self.octets = best.filter(|best| *best < shape.full);
    }

    /// Whether the losses seen leave room for the guess.
    fn allows_guess(&self) -> bool {
        let LengthLoss {
            octet,
            octet_error,
            octet_most,
            ..
        } = self.loss;
        let most = (octet + 2.0 * octet_error).min(2.0 * octet_most);
        self.guessed.is_some_and(|guessed| guessed <= most)
    }

    /// Counts a packet of so many octets that arrived or was lost, in the order of sending. Returns whether the length changed.
    pub fn note(&mut self, shape: PacketShape, octets: usize, is_lost: bool) -> bool {
        let is_other = self.shape.replace(shape) != Some(shape);
        if is_other && self.guessed.is_some() {
            self.follow_guess();
        }
        if self.memory.is_none() && !is_lost {
            return false;
        }
        let memory = self.memory.get_or_insert_default();
        memory.lasting.note(octets, is_lost);
        memory.recent.note(octets, is_lost);
        self.since_look += 1;
        if self.since_look < BLOCK {
            return false;
        }
        self.since_look = 0;
        let before = self.octets;
        self.look();
        self.octets != before
    }

    /// Counts a packet that was counted as lost for one that arrived.
    pub fn take_back(&mut self, octets: usize) {
        if let Some(memory) = &mut self.memory {
            memory.lasting.take_back(octets);
            memory.recent.take_back(octets);
        }
    }

    fn look(&mut self) {
        let (Some(memory), Some(shape)) = (&mut self.memory, self.shape) else {
            return;
        };
        let expected = memory.recent.expected(&self.loss);
        let deviation = (memory.recent.lost() - expected.0).abs();
        if deviation > CHANGED * (expected.1 + 1.0).sqrt() {
            memory.lasting = memory.recent.clone();
        }
        self.loss = memory.lasting.fit().unwrap_or_default();
        memory.lasting.fade((-f64::from(BLOCK) / LASTING).exp());
        memory.recent.fade((-f64::from(BLOCK) / RECENT).exp());
        let now = self.octets.unwrap_or(shape.full).min(shape.full);
        let LengthLoss {
            octet,
            octet_error,
            octet_most,
            ..
        } = self.loss;
        let enough = if self.octets.is_none() {
            BELIEVED
        } else {
            DOUBTED
        };
        if octet > enough * octet_error {
            let best = shape.best(octet);
            if shape.gain(now, octet) > WORTH_CHANGING {
                self.octets = (best < shape.full).then_some(best);
            }
        } else if self.guessed.is_some() {
            if !self.allows_guess() {
                (self.octets, self.guessed) = (None, None);
            }
        } else if octet_error.is_finite() || octet_most <= 0.0 {
            self.octets = None;
        }
        let now = self.octets.unwrap_or(shape.full);
        let highest = (octet + 2.0 * octet_error).min(octet_most).max(octet);
        let lowest = (octet - 2.0 * octet_error).max(0.0);
        let gain = shape.gain(now, highest).max(shape.gain(now, lowest));
        self.varies = match gain.partial_cmp(&WORTH_MUCH) {
            Some(Ordering::Greater) => Some(OFTEN),
            _ if gain > WORTH_KNOWING => Some(SOMETIMES),
            _ => None,
        };
    }

    /// Lets lengths vary for as long as others want to know how loss depends on them.
    pub const fn ask(&mut self, is_asked: bool) {
        self.is_asked = is_asked;
    }

    fn one_in(&self) -> Option<u32> {
        self.varies.or(self.is_asked.then_some(SOMETIMES))
    }

    /// The octets of the next new packet, at most; `None` for as many as the path carries.
    pub fn next(&self) -> Option<usize> {
        let is_due = self.until_shorter == 0 && self.one_in().is_some();
        let shape = self.shape.filter(|_| is_due);
        let Some(shape) = shape else {
            return self.octets;
        };
        let now = self.octets.unwrap_or(shape.full);
        // A half and a quarter in turn, as far as there is room; packets that are short already are longer now and then.
        // Those say most, at a smaller share of the link than half ones so often.
        let wants_quarter = self.varies.is_none() || self.draws & 0x100 != 0;
        let quarter = wants_quarter && now / 4 >= shape.least();
        let other = if quarter {
            now / 4
        } else if now / 2 >= shape.least() {
            now / 2
        } else if self.varies.is_some() {
            now * 2
        } else {
            // Near the best length half as much again costs hardly anything, and it is asked for long.
            now + now / 2
        };
        Some(other.min(shape.full))
    }

    /// Notes that a new packet left that was as long as [`LengthFollower::next`] allowed.
    pub fn on_left(&mut self) {
        let Some(one_in) = self.one_in() else {
            return;
        };
        if self.until_shorter > 0 {
            self.until_shorter -= 1;
            return;
        }
        // At irregular distances, so that nothing that comes again and again hits them alone.
        self.draws = self
            .draws
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        let least = one_in / 2;
        self.until_shorter = least + (self.draws >> 16) % one_in;
    }
}

#[cfg(test)]
mod tests;
