//! Parts that transports are put together from. Each owns its state, its timers and its tests.

mod delivery;
mod follower;
mod loss_share;
mod mean_time;
mod pacer;
mod rate_control;
mod rtt;
mod scoreboard;
mod spread;

pub use delivery::{DelaySample, DeliveryMeter, DeliveryReport, DeliveryWindow};
pub use follower::LinkFollower;
pub use loss_share::LossShare;
pub use pacer::Pacer;
pub use rate_control::{LinkReport, RateControl};
pub use rtt::{RtoLimits, RttEstimator};
pub use scoreboard::{
    AttemptFate, AttemptOutcome, FirstFate, LateRepetition, Outstanding, Scoreboard, Settled,
};
pub use spread::{BurstLengths, DelaySpread};
