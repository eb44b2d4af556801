//! A satellite pass: distance and delay that change, and light that spreads with distance.
//!
//! The orbit is circular, goes through the station's zenith, and the Earth does not turn below it:
//! the shortest and fastest of passes. Below the horizon there is no light.

use core::f64::consts::FRAC_PI_2;
use fulmar_proto::units::{Distance, Duration, Instant};

/// The mean radius of the Earth, metres (IUGG).
const EARTH_RADIUS: f64 = 6_371_008.8;
/// The Earth's gravitational parameter, m^3/s^2 (WGS 84).
const GRAVITATION: f64 = 3.986_004_418e14;

/// The half of a pass in which a run begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leg {
    /// The satellite comes nearer.
    #[default]
    Rising,
    /// The satellite goes away.
    Setting,
}

/// The power that the satellite sends with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransmitPower {
    /// The same all the way, so that what is received rises and falls with the elevation.
    #[default]
    Constant,
    /// As much as the distance asks for, so that what is received stays the same (paper, Conclusion).
    Levelled,
}

/// A satellite pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pass {
    /// The altitude above the ground; 100 km to 100,000 km.
    pub altitude: Distance,
    /// The distance from the station at the start of the run: at least the altitude, and above the
    /// horizon.
    pub start: Distance,
    /// The half of the pass at the start of the run.
    pub leg: Leg,
    /// The power that is sent.
    pub transmit: TransmitPower,
}

impl Pass {
    fn orbit_radius(self) -> f64 {
        EARTH_RADIUS + self.altitude.metres()
    }

    /// The angle at the Earth's centre between station and satellite, at the start.
    fn start_angle(self) -> f64 {
        let (earth, orbit) = (EARTH_RADIUS, self.orbit_radius());
        let far = self.start.metres();
        let cosine = (earth * earth + orbit * orbit - far * far) / (2.0 * earth * orbit);
        cosine.clamp(-1.0, 1.0).acos()
    }

    /// The farthest distance above the horizon.
    pub(crate) fn horizon(self) -> Distance {
        let orbit = self.orbit_radius();
        let square = orbit * orbit - EARTH_RADIUS * EARTH_RADIUS;
        Distance::from_metres(square.max(0.0).sqrt()).unwrap_or_default()
    }

    /// The satellite's distance at `at`; `None` below the horizon.
    pub fn distance(self, at: Instant) -> Option<Distance> {
        let (earth, orbit) = (EARTH_RADIUS, self.orbit_radius());
        let turned = (GRAVITATION / orbit.powi(3)).sqrt() * at.as_secs_f64();
        let angle = match self.leg {
            Leg::Rising => self.start_angle() - turned,
            Leg::Setting => self.start_angle() + turned,
        };
        if angle.cos() <= earth / orbit || angle.abs() > FRAC_PI_2 {
            return None;
        }
        let square = earth * earth + orbit * orbit - 2.0 * earth * orbit * angle.cos();
        Distance::from_metres(square.max(0.0).sqrt())
    }

    /// The propagation delay at `at`; below the horizon the delay from the horizon.
    pub fn delay(self, at: Instant) -> Duration {
        self.distance(at)
            .unwrap_or_else(|| self.horizon())
            .light_time()
    }

    /// The distance at `at` divided by the distance at the start; `None` below the horizon.
    pub(crate) fn relative_distance(self, at: Instant) -> Option<f64> {
        Some(self.distance(at)?.metres() / self.start.metres())
    }

    /// The power received at `at` in a still medium, relative to the start; `None` below the horizon.
    pub fn relative_received(self, at: Instant) -> Option<f64> {
        let distance = self.relative_distance(at)?;
        Some(match self.transmit {
            TransmitPower::Constant => distance.powi(-2),
            TransmitPower::Levelled => 1.0,
        })
    }

    /// The power sent at `at`, relative to the start; `None` below the horizon.
    pub fn relative_sent(self, at: Instant) -> Option<f64> {
        let distance = self.relative_distance(at)?;
        Some(self.relative_received(at)? * distance.powi(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oicets(leg: Leg) -> Pass {
        Pass {
            altitude: Distance::from_metres(610e3).unwrap(),
            start: Distance::from_metres(2_500e3).unwrap(),
            leg,
            transmit: TransmitPower::Constant,
        }
    }

    fn at(seconds: u64) -> Instant {
        Instant::START + Duration::from_secs(seconds)
    }

    #[test]
    fn a_rising_satellite_comes_as_near_as_its_altitude_and_sets() {
        let pass = oicets(Leg::Rising);
        let start = pass.distance(at(0)).unwrap().metres();
        assert!((start - 2_500e3).abs() < 1.0, "{start}");
        let nearest = (0..700)
            .filter_map(|s| pass.distance(at(s)))
            .map(Distance::metres)
            .fold(f64::MAX, f64::min);
        // A second of flight at 7.5 km/s near the zenith adds at most 5 m to 610 km.
        assert!((610e3..610.1e3).contains(&nearest), "{nearest}");
        assert_eq!(pass.distance(at(1_000)), None);
        assert!(pass.delay(at(1_000)) > pass.delay(at(0)));
        assert!(pass.delay(at(100)) < pass.delay(at(0)));
    }

    #[test]
    fn a_setting_satellite_goes_away_and_vanishes_at_the_horizon() {
        let pass = oicets(Leg::Setting);
        assert!(pass.distance(at(20)) > pass.distance(at(0)));
        assert!((pass.horizon().metres() - 2_854e3).abs() < 1e3);
        assert_eq!(pass.distance(at(120)), None);
    }

    #[test]
    fn speeds_are_those_of_a_low_orbit() {
        let pass = oicets(Leg::Rising);
        let metres = |s: u64| pass.distance(at(s)).unwrap().metres();
        let speed = metres(0) - metres(1);
        // 7.556 km/s along the orbit; seen from 3.4 degrees of elevation nearly all towards us.
        assert!((6_500.0..7_556.0).contains(&speed), "{speed}");
    }

    #[test]
    fn levelled_power_is_sent_with_the_square_of_the_distance_and_received_evenly() {
        let constant = oicets(Leg::Rising);
        let levelled = Pass {
            transmit: TransmitPower::Levelled,
            ..constant
        };
        let close = |a: Option<f64>, b: f64| (a.unwrap() - b).abs() < 1e-12;
        for seconds in [0, 30, 100, 250] {
            let at = at(seconds);
            let nearer = constant.distance(at).unwrap().metres() / 2_500e3;
            assert!(close(constant.relative_sent(at), 1.0));
            assert!(close(levelled.relative_received(at), 1.0));
            assert!(close(levelled.relative_sent(at), nearer * nearer));
        }
        assert_eq!(levelled.relative_sent(at(1_000)), None);
    }
}
