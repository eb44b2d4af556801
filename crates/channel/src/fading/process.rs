//! The effect of fades on a packet: whether there is light for all of it, and which bits are
//! inverted.
//!
//! The bit error rate belongs to a sample, not to a packet: each bit has the rate of the sample
//! during which it is on the link. The loss of a packet therefore follows from the integral over
//! its transmission, whether samples are shorter or longer than that.
//!
//! Errors are independent given the rate b. With hazard h = -ln(1 - b) for each bit, the number of
//! intact bits before the next hit is the first at which the sum of hazards exceeds an exponential
//! variable of mean one: one draw for each hit, exact for rates that change, and no work for intact
//! bits. Without light the receiver has no clock, so that the packet is lost whole.

use super::prepared::bit_error_rate;
use super::ready::Fading;
use super::walk::Walk;
use crate::config_error::ChannelConfigError;
use crate::flips::Flips;
use crate::geometric::{exponential, saturating_whole};
use crate::outage::OutageClock;
use crate::replay::UsedUp;
use crate::series::SeriesProcess;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{BitErrorRate, ByteCount, Duration, Instant};

/// The state of a fading process.
#[derive(Clone, Debug)]
pub(crate) struct FadingProcess {
    walk: Walk,
    obstruction: Option<SeriesProcess>,
    tracking: OutageClock,
    hits: Hits,
    hits_of_copies: Hits,
    /// The last packet's exposure: the hazard of a bit, up to which bit.
    exposure: Vec<(u64, f64)>,
    /// The sample that was looked at last, and its hazard.
    known: (u64, f64),
    is_dark: bool,
}

/// Hits along bits of varying hazard.
#[derive(Clone, Debug)]
struct Hits {
    /// The hazard that remains until the next hit.
    remaining: f64,
    rng: Rng,
}

impl Hits {
    fn new(mut rng: Rng) -> Self {
        let remaining = exponential(&mut rng);
        Self { remaining, rng }
    }

    fn along(&mut self, exposure: &[(u64, f64)]) -> Flips {
        let mut flips = Flips::NONE;
        let mut next = 0_u64;
        for &(end, hazard) in exposure {
            while next < end {
                let bits = (end - next) as f64;
                if self.remaining >= bits * hazard {
                    self.remaining -= bits * hazard;
                    next = end;
                    continue;
                }
                // Rounding may reach the end of the sample; the hit is then its last bit.
                let intact = saturating_whole(self.remaining / hazard).min(end - next - 1);
                if let Ok(position) = u32::try_from(next + intact) {
                    flips.push(position);
                }
                next += intact + 1;
                self.remaining = exponential(&mut self.rng);
            }
        }
        flips
    }
}

impl FadingProcess {
    /// Draws from streams below `rng`: `fading/turbulence`, `shift`, `obstruction`, `bits` and
    /// `copies`.
    pub(crate) fn new(fading: &Fading, rng: &Rng) -> Result<Self, ChannelConfigError> {
        let rng = rng.child("fading");
        let medium = fading.medium(&rng);
        let model = fading.model();
        let series = model.obstruction;
        Ok(Self {
            walk: Walk::new(fading, &medium)?,
            obstruction: series.map(|s| SeriesProcess::new(s, medium.child("obstruction"))),
            tracking: OutageClock::new(&model.tracking)?,
            hits: Hits::new(rng.child("bits")),
            hits_of_copies: Hits::new(rng.child("copies")),
            exposure: Vec::new(),
            known: (u64::MAX, 0.0),
            is_dark: false,
        })
    }

    /// Puts the next packet on the link, from `start` to `end`; neither ever decreases. Returns
    /// whether the packet is lost for lack of light.
    pub(crate) fn takes(&mut self, start: Instant, end: Instant, len: ByteCount) -> bool {
        let (first, last) = (start.as_nanos(), end.as_nanos());
        let spacing = self.walk.spacing();
        let bits = len.bits();
        self.exposure.clear();
        self.is_dark = self.tracking.takes(start, end);
        self.is_dark |= self
            .obstruction
            .as_mut()
            .is_some_and(|series| series.takes(start, end));
        let airtime = u128::from(last.saturating_sub(first));
        let final_sample = last.saturating_sub(1).max(first) / spacing;
        for sample in first / spacing..=final_sample {
            let hazard = self.hazard_of(sample);
            let over = (sample + 1).saturating_mul(spacing);
            let sent = if sample == final_sample {
                bits
            } else {
                // Bits that begin within this sample or an earlier one.
                let since = u128::from(over.saturating_sub(first));
                let share = (u128::from(bits) * since).div_ceil(airtime.max(1));
                u64::try_from(share).unwrap_or(u64::MAX).min(bits)
            };
            match self.exposure.last_mut() {
                Some(&mut (before, _)) if sent <= before => {}
                _ if sent == 0 => {}
                _ => self.exposure.push((sent, hazard)),
            }
        }
        self.is_dark
    }

    fn hazard_of(&mut self, sample: u64) -> f64 {
        if self.known.0 != sample {
            let watts = self.walk.watts_at(sample);
            let rate = bit_error_rate(self.walk.prepared().receiver, watts);
            self.known = (sample, -(-rate).ln_1p());
            self.is_dark |= watts <= 0.0;
        } else if self.walk.watts_at(sample) <= 0.0 {
            self.is_dark = true;
        }
        self.known.1
    }

    /// The bit error rate of the last sample during which a packet was on the link.
    pub(crate) fn short_term_rate(&self) -> BitErrorRate {
        let (_, hazard) = self.known;
        BitErrorRate::new(-(-hazard).exp_m1()).unwrap_or_default()
    }

    /// The inverted bits of the packet that was put on the link last.
    pub(crate) fn flips(&mut self) -> Flips {
        if self.is_dark {
            return Flips::NONE;
        }
        self.hits.along(&self.exposure)
    }

    /// The inverted bits of a copy of that packet, which meets the same fades but errors of its
    /// own.
    pub(crate) fn flips_of_copy(&mut self) -> Flips {
        self.hits_of_copies.along(&self.exposure)
    }

    /// The delay that a pass adds to a packet that leaves at `at`.
    pub(crate) fn delay(&self, at: Instant) -> Duration {
        let pass = self.walk.prepared().pass;
        pass.map_or(Duration::ZERO, |pass| pass.delay(at))
    }

    pub(crate) fn used_up(&self) -> Option<UsedUp> {
        self.walk.used_up()
    }
}
