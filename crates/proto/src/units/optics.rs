//! Optical power and distance.

use core::time::Duration;

/// An optical power at a detector, in watts; finite and not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct OpticalPower(f64);

impl OpticalPower {
    /// Darkness.
    pub const ZERO: Self = Self(0.0);

    /// A power in watts; `None` if it is negative or not finite.
    pub fn from_watts(watts: f64) -> Option<Self> {
        (watts.is_finite() && watts >= 0.0).then_some(Self(watts))
    }

    /// A power in decibels above one milliwatt; `None` if that is not a number, or gives no finite
    /// power.
    pub fn from_dbm(dbm: f64) -> Option<Self> {
        Self::from_watts(1e-3 * 10_f64.powf(dbm / 10.0))
    }

    /// The power in watts.
    pub const fn watts(self) -> f64 {
        self.0
    }

    /// The power in decibels above one milliwatt; minus infinity for darkness.
    pub fn dbm(self) -> f64 {
        10.0 * (self.0 / 1e-3).log10()
    }
}

/// A distance in metres; finite and not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Distance(f64);

impl Distance {
    /// The speed of light in metres a second, exact by the definition of the metre.
    const LIGHT_IN_VACUUM: f64 = 299_792_458.0;

    /// A distance in metres; `None` if it is negative or not finite.
    pub fn from_metres(metres: f64) -> Option<Self> {
        (metres.is_finite() && metres >= 0.0).then_some(Self(metres))
    }

    /// The distance in metres.
    pub const fn metres(self) -> f64 {
        self.0
    }

    /// The time that light takes for the distance in vacuum, to the nearest nanosecond; at most
    /// [`Duration::MAX`].
    pub fn light_time(self) -> Duration {
        Duration::try_from_secs_f64(self.0 / Self::LIGHT_IN_VACUUM).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decibels_and_watts_agree() {
        let power = OpticalPower::from_dbm(-44.3).unwrap();
        // 10^-7.43 W, computed with bc.
        assert!((power.watts() - 37.153_522_9e-9).abs() < 1e-16);
        assert!((power.dbm() + 44.3).abs() < 1e-9);
        assert_eq!(OpticalPower::from_watts(-1e-9), None);
        assert_eq!(OpticalPower::from_watts(f64::NAN), None);
        assert_eq!(OpticalPower::from_dbm(1e9), None);
    }

    #[test]
    fn light_takes_a_second_for_its_distance() {
        let second = Distance::from_metres(299_792_458.0).unwrap();
        assert_eq!(second.light_time(), Duration::from_secs(1));
        assert_eq!(Distance::default().light_time(), Duration::ZERO);
        assert_eq!(Distance::from_metres(f64::INFINITY), None);
    }
}
