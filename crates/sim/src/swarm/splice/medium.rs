//! The links of a session: each direction with faults of its own.

use fulmar_channel::{
    BitErrors, Channel, ChannelConfig, GilbertElliott, Jitter, LossModel, OnOff, Outage,
    OutagePlan, PacketOrder, QueueLimit, Reorder, Sojourn,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{BitErrorRate, Bitrate, Duration, Instant, PacketErrorRate, Probability};

/// A random medium.
#[derive(Debug)]
pub(super) struct Draw<'a> {
    pub(super) rng: &'a mut Rng,
}

fn loss_rate(value: f64) -> PacketErrorRate {
    PacketErrorRate::new(value).expect("drawn below 1")
}

fn probability(value: f64) -> Probability {
    Probability::new(value).expect("drawn below 1")
}

impl Draw<'_> {
    /// Uniform in `low..=high`.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.rng.below(high - low + 1)
    }

    pub(super) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        let index = self.rng.below(choices.len() as u64);
        choices[usize::try_from(index).expect("below a slice's length")]
    }

    /// Uniform over the orders of magnitude between `low` and `high`.
    fn scale(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.rng.unit_f64())
    }

    /// Both directions of a link that carries `rate`.
    pub(super) fn link(&mut self, rate: Bitrate, rng: &Rng) -> [Channel; 2] {
        let delay = Duration::from_micros(self.between(100, 150_000));
        let outages = self.outages();
        ["there", "back"].map(|way| {
            let mut config = self.way(rate, delay);
            // An outage takes both directions, or one.
            if self.rng.chance(0.7) {
                config.outages = outages.clone();
            }
            Channel::new(config, &rng.child(way)).expect("drawn within every bound")
        })
    }

    fn way(&mut self, rate: Bitrate, delay: Duration) -> ChannelConfig {
        let mut config = ChannelConfig {
            rate: Some(rate),
            delay,
            loss: self.loss(),
            ..ChannelConfig::default()
        };
        if self.rng.chance(0.5) {
            let rate = BitErrorRate::new(self.scale(1e-8, 3e-5)).expect("below 1");
            config.bits = BitErrors::Independent(rate);
        }
        if self.rng.chance(0.3) {
            let packets = self.between(20, 400);
            config.queue = QueueLimit::packets(u32::try_from(packets).expect("small"));
        }
        if self.rng.chance(0.3) {
            config.duplicate = probability(self.rng.unit_f64() * 0.2);
        }
        if self.rng.chance(0.3) {
            let extra = Duration::from_micros(self.between(1, 200_000));
            let probability = probability(self.rng.unit_f64() * 0.2);
            config.reorder = Some(Reorder { probability, extra });
        }
        if self.rng.chance(0.2) {
            let spread = Duration::from_nanos(self.rng.below(100_000));
            let order = PacketOrder::Free;
            config.jitter = Some(Jitter { spread, order });
        }
        config
    }

    fn loss(&mut self) -> LossModel {
        match self.rng.below(4) {
            0 => LossModel::None,
            1 => LossModel::Bernoulli(loss_rate(self.rng.unit_f64() * 0.3)),
            2 => LossModel::GilbertElliott(GilbertElliott {
                mean_loss: loss_rate(self.scale(0.001, 0.2)),
                mean_burst: self.between(2, 20) as f64,
            }),
            _ => LossModel::OnOff(OnOff {
                mean_loss: loss_rate(self.rng.unit_f64() * 0.3),
                period: Duration::from_millis(self.between(10, 500)),
                sojourn: Sojourn::Exponential,
            }),
        }
    }

    fn outages(&mut self) -> OutagePlan {
        let count = self.rng.below(3);
        let outage = |_| Outage {
            start: Instant::START + Duration::from_millis(self.rng.below(60_000)),
            length: Duration::from_millis(self.between(1, 30_000)),
        };
        OutagePlan {
            single: (0..count).map(outage).collect(),
            cycles: Vec::new(),
        }
    }
}
