//! A channel, a source of traffic, a controller of repair and a transport that Fulmar's simulator runs as it runs its own.
//!
//! Each implements a trait of `fulmar_sim::own` and is handed over by name; a scenario says the name. Time is an argument
//! and chance comes from the generator of the run, so one seed gives one result.

mod transport;

use core::time::Duration;
use fulmar_sim::OwnParts;
use fulmar_sim::own::{
    Bitrate, ByteCount, ChannelLaw, ControllerView, FlightFate, Instant, OwnChannel, OwnRepair,
    OwnTraffic, PacketFlight, PlannedWrite, RepairController, RepairPlan, Rng, SourceView,
    TrafficSource,
};
pub use transport::{WindowedEnd, windowed};

/// Rain that comes and goes every ten seconds: while it falls, the modem has a third of its rate, and loses more.
#[derive(Debug)]
pub struct Rain {
    dry: Bitrate,
    rng: Rng,
}

impl Rain {
    /// Rain over a link of this rate.
    pub fn new(dry: Bitrate, rng: &Rng) -> Self {
        let rng = rng.clone();
        Self { dry, rng }
    }

    fn falls(at: Instant) -> bool {
        at.saturating_since(Instant::START).as_secs() % 20 >= 10
    }
}

impl ChannelLaw for Rain {
    fn rate(&mut self, now: Instant) -> Option<Bitrate> {
        let dry = self.dry.as_bits_per_second();
        let rate = if Self::falls(now) { dry / 3 } else { dry };
        Some(Bitrate::from_bits_per_second(rate))
    }

    fn fly(&mut self, flight: PacketFlight) -> FlightFate {
        let loss = if Self::falls(flight.end) { 0.1 } else { 0.01 };
        FlightFate {
            lost: self.rng.chance(loss),
            ..FlightFate::ARRIVES
        }
    }
}

/// A camera: a picture every 40 ms, a large one each second. It leaves pictures out while the last one still waits.
#[derive(Debug, Default)]
pub struct Camera {
    pictures: u32,
}

impl TrafficSource for Camera {
    fn next_write(&mut self, view: SourceView) -> Option<PlannedWrite> {
        self.pictures += 1;
        let len = match (view.waiting > ByteCount::ZERO, self.pictures % 25) {
            (true, _) => 0,
            (false, 1) => 30_000,
            (false, _) => 3_000,
        };
        Some(PlannedWrite {
            after: Duration::from_millis(40),
            len: ByteCount(len),
        })
    }
}

/// Repair by one rule: a symbol ahead of every second message while more than one in twenty is lost, and two copies of each
/// repetition.
#[derive(Debug, Default)]
pub struct OneRule;

impl RepairController for OneRule {
    fn choose(&mut self, view: &ControllerView) -> Option<RepairPlan> {
        let ahead_eighths = if view.seen.loss.millionths() > 50_000 {
            4
        } else {
            0
        };
        Some(RepairPlan {
            ahead_eighths,
            times: [2, 2, 2],
            put_off: 0,
        })
    }
}

/// The parts by the names `rain`, `camera`, `one-rule` and `windowed`, the rain over a link of 6 Mbit/s.
pub fn parts() -> OwnParts {
    let dry = Bitrate::from_bits_per_second(6_000_000);
    OwnParts {
        channels: vec![OwnChannel::new("rain", move |rng| Rain::new(dry, rng))],
        sources: vec![OwnTraffic::new("camera", |_| Camera::default())],
        controllers: vec![OwnRepair::new("one-rule", |_| OneRule)],
        transports: vec![windowed()],
    }
}
