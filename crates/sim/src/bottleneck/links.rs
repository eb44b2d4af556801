//! Links drawn at random, the same for the same seed.

use super::{BottleneckPlan, DATAGRAM};
use fulmar_channel::{ChannelConfig, LossModel, QueueLimit};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, Duration, Instant};

/// The most by which a receiver's clock runs faster or slower than the sender's: two clocks of quartz.
const CLOCK_GAIN_MAX: f64 = 1e-4;

/// The ranges from which links are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkRange {
    /// The highest rate; the lowest is 100 kbit.
    pub rate_max: Bitrate,
}

/// A link, and the length of a run that shows it: a minute, and a hundred round trips.
pub fn random_link(range: LinkRange, rng: &Rng) -> (BottleneckPlan, Duration) {
    let mut rng = rng.child("link");
    let mut between = |low: f64, high: f64| (low.ln() + (high / low).ln() * rng.unit_f64()).exp();
    let rate_max = range.rate_max.as_bits_per_second() as f64;
    let rate = between(100_000.0, rate_max);
    let delay = Duration::from_secs_f64(between(0.001, 0.6));
    let packets = rate * 2.0 * delay.as_secs_f64() / DATAGRAM.bits() as f64;
    let queue = between(3.0, (8.0 * packets).max(4.0));
    let lossy = between(1.0, 2.0) < 2.0_f64.powf(2.0 / 3.0);
    let loss = if lossy {
        0.5 * between(1.0, 2.0).log2()
    } else {
        0.0
    };
    let bursts = between(1.0, 2.0) < 2.0_f64.sqrt();
    let burst = between(2.0, 20.0);
    let changes = between(1.0, 2.0) < 2.0_f64.powf(1.0 / 3.0);
    let change = between(1.0 / 6.0, 6.0);
    let text = if !lossy || loss < 0.001 {
        "0%".to_owned()
    } else if bursts {
        format!("{:.2}% burst {burst:.1}", loss * 100.0)
    } else {
        format!("{:.2}%", loss * 100.0)
    };
    let loss: LossModel = text.parse().unwrap_or_default();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "within the ranges above"
    )]
    let of = |rate: f64| ChannelConfig {
        rate: Some(Bitrate::from_bits_per_second(rate as u64)),
        delay,
        queue: QueueLimit::packets(queue as u32),
        loss: loss.clone(),
        ..ChannelConfig::default()
    };
    let lasts = Duration::from_secs(60).max(delay * 200);
    let mut out = vec![(Instant::START, of(rate))];
    if changes {
        let changed = (rate * change).clamp(100_000.0, rate_max);
        out.push((Instant::START + lasts / 2, of(changed)));
    }
    let back = ChannelConfig {
        delay,
        loss,
        ..ChannelConfig::default()
    };
    let gain = 2.0 * between(1.0, 2.0).log2() - 1.0;
    let plan = BottleneckPlan {
        out,
        back,
        policer: None,
        marks: false,
        clock_gain: gain * CLOCK_GAIN_MAX,
    };
    (plan, lasts)
}
