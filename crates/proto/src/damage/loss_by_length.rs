//! Loss by the length of packets: how much of it hits packets, and how much hits bits.
//!
//! A packet of L octets arrives with the probability
//!
//! ```text
//! exp(-(a + c L)),      a = -ln(1 - loss per packet),      c = -8 ln(1 - bit error rate)
//! ```
//!
//! where what is damaged is dropped. Packets are counted in classes of about the same length, the past less and less;
//! `a` and `c` are the likeliest ones, both at least 0, found by scoring (the likelihood is concave in them). The
//! standard error of `c` is that of the information about both together, so that packets of one length say nothing of it. Losses that
//! follow each other make it larger, as a share r of further losses that a loss brings makes the variance of a mean
//! (1 + r) / (1 - r) times as large.

use crate::units::{BitErrorRate, PacketErrorRate};

/// Classes of lengths: four an octave, from 64 octets to 64 KiB.
const CLASSES: usize = 44;
/// The binary logarithm of the lower end of the first class.
const FIRST: u32 = 6;
/// Rounds of scoring: the last ones move nothing.
const ROUNDS: usize = 12;
/// The least -ln of the probability to arrive that a class is weighed with: its weight is finite.
const LEAST: f64 = 1e-5;
/// The largest share of further losses that a loss brings.
const FOLLOWING_MAX: f64 = 0.98;

/// The packets of about one length.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    sent: f64,
    lost: f64,
    octets: f64,
}

impl Class {
    fn mean(&self) -> f64 {
        self.octets / self.sent
    }
}

/// Counts of packets by length.
#[derive(Clone, Debug)]
pub struct LossByLength {
    classes: [Class; CLASSES],
    was_lost: bool,
    /// Packets behind lost ones, and those of them that were lost.
    behind: f64,
    lost_behind: f64,
}

/// The likeliest loss.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LengthLoss {
    /// -ln of the share of packets that arrive whatever their length.
    pub packet: f64,
    /// -ln of the share that arrives of each octet.
    pub octet: f64,
    /// The standard error of `octet`; infinite where all packets had one length.
    pub octet_error: f64,
    /// -ln of the share of all packets that arrived, by octet of their mean length: `octet` if no packet were lost but by its
    /// bits.
    pub octet_most: f64,
}

/// The losses that wrong bits explain among those counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OctetLosses {
    /// Packets.
    pub lost: f64,
    /// The standard error of that; all lost ones where packets had one length.
    pub error: f64,
}

impl LengthLoss {
    /// The bit error rate that follows.
    pub fn bits(&self) -> BitErrorRate {
        BitErrorRate::new(-libm::expm1(-self.octet / 8.0)).unwrap_or(BitErrorRate::ZERO)
    }

    /// The share of packets that are lost whatever their length.
    pub fn packets(&self) -> PacketErrorRate {
        PacketErrorRate::new(-libm::expm1(-self.packet)).unwrap_or(PacketErrorRate::ZERO)
    }
}

impl Default for LossByLength {
    fn default() -> Self {
        Self {
            classes: [Class::default(); CLASSES],
            was_lost: false,
            behind: 0.0,
            lost_behind: 0.0,
        }
    }
}

/// The class of a length, from 0 on.
pub(super) fn class_of(octets: usize) -> usize {
    let octets = octets.clamp(1 << FIRST, (1 << 17) - 1);
    let octave = octets.ilog2();
    let quarter = (octets >> (octave - 2)) & 0b11;
    let class = (octave - FIRST) as usize * 4 + quarter;
    class.min(CLASSES - 1)
}

impl LossByLength {
    /// Counts a packet, in the order of sending.
    pub fn note(&mut self, octets: usize, is_lost: bool) {
        let lost = f64::from(u8::from(is_lost));
        let class = &mut self.classes[class_of(octets)];
        class.sent += 1.0;
        class.lost += lost;
        class.octets += octets as f64;
        if self.was_lost {
            self.behind += 1.0;
            self.lost_behind += lost;
        }
        self.was_lost = is_lost;
    }

    /// Counts a packet that was counted as lost for one that arrived.
    pub fn take_back(&mut self, octets: usize) {
        let class = &mut self.classes[class_of(octets)];
        let taken = class.lost.min(1.0);
        class.lost -= taken;
        // Nobody knows any more whether it was behind another one.
        let left = self.lost();
        let kept = left / (left + taken).max(1e-9);
        self.behind *= kept;
        self.lost_behind *= kept;
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Self) {
        for (ours, theirs) in self.classes.iter_mut().zip(&other.classes) {
            ours.sent += theirs.sent;
            ours.lost += theirs.lost;
            ours.octets += theirs.octets;
        }
        self.behind += other.behind;
        self.lost_behind += other.lost_behind;
    }

    /// The losses expected of octets alone, in packets that are not lost whatever their length.
    fn lost_to_octets(&self, packet: f64, octet: f64) -> f64 {
        let of_class = |class: &Class| {
            let hit = -libm::expm1(-octet * class.mean());
            class.sent * libm::exp(-packet) * hit
        };
        self.seen().map(of_class).sum()
    }

    /// The losses that wrong bits explain. In contrast to [`LossByLength::fit`], nothing holds the number above 0 or below all: so
    /// the numbers of many such counts can be added, and chance in them evens out.
    pub fn octet_losses(&self) -> OctetLosses {
        let Some((likeliest, free)) = self.scored() else {
            return OctetLosses::default();
        };
        let error = likeliest.octet_error.min(likeliest.octet_most);
        // A few packets of nearly the same length have a line of any slope, and its exponential knows no bound.
        let all = self.lost();
        let hit = free.map_or(0.0, |(packet, octet)| self.lost_to_octets(packet, octet));
        let is_known = likeliest.octet_error < likeliest.octet_most && hit.is_finite();
        OctetLosses {
            lost: if is_known {
                hit.clamp(-all, 2.0 * all)
            } else {
                0.0
            },
            error: if is_known {
                self.lost_to_octets(likeliest.packet, error)
            } else {
                all
            },
        }
    }

    /// Lets all that was counted count for `kept` of it.
    pub fn fade(&mut self, kept: f64) {
        for class in &mut self.classes {
            class.sent *= kept;
            class.lost *= kept;
            class.octets *= kept;
        }
        self.behind *= kept;
        self.lost_behind *= kept;
    }

    fn seen(&self) -> impl Iterator<Item = &Class> {
        self.classes.iter().filter(|class| class.sent > 1e-3)
    }

    /// Packets counted, the past less.
    pub fn sent(&self) -> f64 {
        self.seen().map(|class| class.sent).sum()
    }

    /// Those of them that were lost.
    pub fn lost(&self) -> f64 {
        self.seen().map(|class| class.lost).sum()
    }

    /// The factor by which losses that follow each other widen a variance.
    fn clumping(&self) -> f64 {
        let share = self.lost() / self.sent().max(1.0);
        // One packet behind a loss that was not lost is taken for seen: a few say nothing.
        let behind = self.lost_behind / (self.behind + 1.0);
        let following = ((behind - share) / (1.0 - share).max(1e-6)).clamp(0.0, FOLLOWING_MAX);
        (1.0 + following) / (1.0 - following)
    }

    /// The losses expected of as many packets of the same lengths, and the variance of their number, if they are lost as `loss`
    /// says, and follow each other as here.
    pub fn expected(&self, loss: &LengthLoss) -> (f64, f64) {
        let of_class = |class: &Class| {
            let arrives = libm::exp(-(loss.packet + loss.octet * class.mean()));
            let mean = class.sent * (1.0 - arrives);
            (mean, mean * arrives)
        };
        let sums = self.seen().map(of_class);
        let (mean, variance) = sums.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (mean, variance * self.clumping())
    }

    /// The likeliest loss; `None` before anything was counted.
    pub fn fit(&self) -> Option<LengthLoss> {
        self.scored().map(|(likeliest, _)| likeliest)
    }

    /// The likeliest loss, and the line that would be likelier if it might fall below 0: one round of scoring without that limit.
    fn scored(&self) -> Option<(LengthLoss, Option<(f64, f64)>)> {
        let (sent, lost) = (self.sent(), self.lost());
        if sent < 1.0 {
            return None;
        }
        let mean = self.seen().map(|class| class.octets).sum::<f64>() / sent;
        // All lost is what no share explains: half a packet is taken to have arrived.
        let all = -libm::log((1.0 - lost / sent).max(0.5 / sent));
        let octet_most = all / mean;
        let (mut packet, mut octet) = (all / 2.0, octet_most / 2.0);
        let mut octet_error = f64::INFINITY;
        let mut free = None;
        for _ in 0..ROUNDS {
            let mut sums = Sums::default();
            for class in self.seen() {
                let length = class.mean();
                let at = (packet + octet * length).max(LEAST);
                // With x = a + c L, the score of a class is lost / (e^x - 1) - arrived, its information sent / (e^x - 1).
                let odds = 1.0 / libm::expm1(at);
                let weight = class.sent * odds;
                let step = (class.lost * odds - (class.sent - class.lost)) / weight;
                sums.add(weight, length, at + step);
            }
            octet_error = sums.slope_error();
            free = sums.free_line();
            (packet, octet) = sums.line();
        }
        let octet_error = octet_error * self.clumping().sqrt();
        let likeliest = LengthLoss {
            packet,
            octet,
            octet_error,
            octet_most,
        };
        Some((likeliest, free))
    }
}

/// The sums of a weighted line through points.
#[derive(Default)]
struct Sums {
    weight: f64,
    length: f64,
    square: f64,
    value: f64,
    product: f64,
}

impl Sums {
    fn add(&mut self, weight: f64, length: f64, value: f64) {
        self.weight += weight;
        self.length += weight * length;
        self.square += weight * length * length;
        self.value += weight * value;
        self.product += weight * length * value;
    }

    /// Whether the points have one length, up to rounding.
    fn determinant(&self) -> Option<f64> {
        let determinant = self.weight * self.square - self.length * self.length;
        (determinant > 1e-9 * self.weight * self.square).then_some(determinant)
    }

    fn slope_error(&self) -> f64 {
        let error = |determinant: f64| (self.weight / determinant).sqrt();
        self.determinant().map_or(f64::INFINITY, error)
    }

    /// The line with the least squares: its value at 0, and its slope.
    fn free_line(&self) -> Option<(f64, f64)> {
        let determinant = self.determinant()?;
        let slope = (self.weight * self.product - self.length * self.value) / determinant;
        Some(((self.value - slope * self.length) / self.weight, slope))
    }

    /// The line with the least squares of those that are nowhere below 0.
    fn line(&self) -> (f64, f64) {
        let level = (self.value / self.weight).max(0.0);
        let Some((start, slope)) = self.free_line() else {
            return (level, 0.0);
        };
        if slope <= 0.0 {
            (level, 0.0)
        } else if start <= 0.0 {
            (0.0, (self.product / self.square).max(0.0))
        } else {
            (start, slope)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Counts of packets, one in eight of which is short, on a link with these losses.
    fn counted(packets: usize, (per_packet, per_bit): (f64, f64), seed: u64) -> LossByLength {
        let mut rng = Rng::from_seed(seed);
        let mut counts = LossByLength::default();
        for place in 0..packets {
            let octets = if place % 8 == 3 { 560 } else { 1_500 };
            let arrives = (1.0 - per_packet) * (1.0 - per_bit).powi(8 * octets);
            counts.note(usize::try_from(octets).unwrap(), !rng.chance(arrives));
        }
        counts
    }

    #[test]
    fn lengths_that_are_nearly_the_same_blame_no_bits() {
        // Without a wrong bit. The few of another length say nothing, and the line through them has any slope.
        for (seed, other) in (0..8).flat_map(|seed| [(seed, 1_270), (seed, 1_276)]) {
            let mut rng = Rng::from_seed(seed);
            let mut counts = LossByLength::default();
            for place in 0..20_000 {
                let octets = if place % 500 == 3 { other } else { 1_285 };
                counts.note(octets, rng.chance(0.03));
            }
            let all = counts.lost();
            let OctetLosses { lost, error } = counts.octet_losses();
            assert!(lost.abs() <= 2.0 * all, "{lost} of {all}");
            assert!(lost.abs() < 1.65 * error, "{lost} of {all}, {error}");
        }
    }

    #[test]
    fn loss_of_bits_and_loss_of_packets_are_told_apart_within_their_error() {
        for (per_packet, per_bit) in [(0.0, 1e-4), (0.1, 2e-5), (0.3, 5e-5), (0.02, 1e-4)] {
            let mut outside = 0;
            for seed in 0..40 {
                let loss = counted(4_000, (per_packet, per_bit), seed).fit().unwrap();
                let octet = -8.0 * (-per_bit).ln_1p();
                outside += u32::from((loss.octet - octet).abs() > 2.0 * loss.octet_error);
                assert!(loss.octet_error < 0.5 * octet, "{loss:?}");
                let found = loss.packets().value();
                assert!((found - per_packet).abs() < 0.12, "{loss:?}");
            }
            // 5 % of 40 are 2.
            assert!(outside <= 6, "{outside} of 40 at {per_packet}, {per_bit}");
        }
    }

    #[test]
    fn losses_that_have_nothing_to_do_with_length_are_no_bit_errors() {
        let mut fooled = 0;
        for (seed, per_packet) in (0..60).zip([0.01, 0.2, 0.5].into_iter().cycle()) {
            let loss = counted(4_000, (per_packet, 0.0), seed).fit().unwrap();
            fooled += u32::from(loss.octet > 3.0 * loss.octet_error);
            assert!((loss.packets().value() - per_packet).abs() < 0.08);
        }
        assert!(fooled <= 1, "{fooled} of 60");
    }

    #[test]
    fn packets_of_one_length_say_nothing_of_bits() {
        let mut counts = LossByLength::default();
        (0..1_000).for_each(|n| counts.note(1_500, n % 5 == 0));
        let loss = counts.fit().unwrap();
        assert_eq!((loss.octet, loss.octet_error), (0.0, f64::INFINITY));
        assert!((loss.packets().value() - 0.2).abs() < 1e-6, "{loss:?}");
        assert!((loss.octet_most * 1_500.0 - 0.223).abs() < 1e-3, "{loss:?}");
        assert_eq!(LossByLength::default().fit(), None);
    }

    #[test]
    fn losses_in_runs_say_less_than_single_ones() {
        let error = |run: usize| {
            let mut counts = LossByLength::default();
            for place in 0..8_000 {
                let octets = if place % 7 == 3 { 560 } else { 1_500 };
                counts.note(octets, (place / run).is_multiple_of(5_usize));
            }
            counts.fit().unwrap().octet_error
        };
        let (single, runs) = (error(1), error(10));
        assert!(runs > 3.0 * single, "{single} and {runs}");
    }

    #[test]
    fn losses_that_are_taken_back_leave_what_would_be_there_without_them() {
        let mut rng = Rng::from_seed(7);
        let (mut counts, mut truth) = (LossByLength::default(), LossByLength::default());
        for place in 0..8_000 {
            let octets = if place % 8 == 3 { 560 } else { 1_500 };
            let (is_lost, is_misjudged) = (rng.chance(0.05), rng.chance(0.2));
            counts.note(octets, is_lost || is_misjudged);
            truth.note(octets, is_lost);
            if is_misjudged && !is_lost {
                counts.take_back(octets);
            }
        }
        let (counts, truth) = (counts.fit().unwrap(), truth.fit().unwrap());
        assert!((counts.packet - truth.packet).abs() < 1e-6, "{counts:?}");
        assert!((counts.octet - truth.octet).abs() < 1e-9, "{counts:?}");
        let wider = counts.octet_error / truth.octet_error;
        assert!((0.8..1.25).contains(&wider), "{counts:?} {truth:?}");
        let mut faded = LossByLength::default();
        faded.note(1_500, true);
        faded.fade(0.5);
        faded.take_back(1_500);
        assert!(faded.lost().abs() < 1e-12);
    }

    #[test]
    fn every_packet_lost_is_a_number() {
        let mut counts = LossByLength::default();
        (0..100).for_each(|n| counts.note(if n % 4 == 0 { 70_000 } else { 20 }, true));
        let loss = counts.fit().unwrap();
        assert!(
            loss.packet.is_finite() && loss.octet.is_finite(),
            "{loss:?}"
        );
        assert!(loss.octet_most > 0.0);
    }
}
