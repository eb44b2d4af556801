//! The bottleneck: channels that follow each other in time, and a policer before them.

use fulmar_channel::{
    Channel, ChannelConfig, ChannelConfigError, ChannelDropReason, ChannelVerdict,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};

/// A token bucket that drops what it has no tokens for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policer {
    /// The rate of the tokens.
    pub rate: Bitrate,
    /// The most tokens.
    pub burst: ByteCount,
}

/// A link: what the way out is like from each instant on, and the way back.
#[derive(Clone, Debug, PartialEq)]
pub struct BottleneckPlan {
    /// The way out; the first begins at the start. A change takes effect at once for datagrams that
    /// are sent later, and begins with an empty queue.
    pub out: Vec<(Instant, ChannelConfig)>,
    /// The way back, for reports.
    pub back: ChannelConfig,
    /// A policer before the way out.
    pub policer: Option<Policer>,
}

/// The fate of a datagram.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    Arrives { at: Instant, waited: Duration },
    NoRoom,
    Lost,
}

#[derive(Debug)]
pub(super) struct Link {
    out: Vec<(Instant, Channel)>,
    current: usize,
    back: Channel,
    back_delay: Duration,
    policer: Option<(Policer, f64, Instant)>,
}

impl Link {
    pub(super) fn new(plan: &BottleneckPlan, rng: &Rng) -> Result<Self, ChannelConfigError> {
        let out = plan.out.iter().map(|(from, config)| {
            let channel = Channel::new(config.clone(), &rng.child("out"))?;
            Ok((*from, channel))
        });
        Ok(Self {
            out: out.collect::<Result<_, ChannelConfigError>>()?,
            current: 0,
            back: Channel::new(plan.back.clone(), &rng.child("back"))?,
            back_delay: plan.back.delay,
            policer: (plan.policer).map(|it| (it, it.burst.0 as f64, Instant::START)),
        })
    }

    pub(super) fn forward(&mut self, now: Instant, len: ByteCount) -> Fate {
        if let Some((policer, tokens, since)) = &mut self.policer {
            let span = now.saturating_since(*since).as_secs_f64();
            let rate = policer.rate.as_bits_per_second() as f64 / 8.0;
            *tokens = (*tokens + span * rate).min(policer.burst.0 as f64);
            *since = now;
            if *tokens < len.0 as f64 {
                return Fate::NoRoom;
            }
            *tokens -= len.0 as f64;
        }
        while self
            .out
            .get(self.current + 1)
            .is_some_and(|(from, _)| *from <= now)
        {
            self.current += 1;
        }
        let (_, channel) = &mut self.out[self.current];
        let free_at = channel.queue(now).free_at;
        match channel.admit(now, len) {
            ChannelVerdict::Deliver(delivery) => Fate::Arrives {
                at: delivery.at,
                waited: free_at.saturating_since(now),
            },
            ChannelVerdict::Drop(ChannelDropReason::Queue) => Fate::NoRoom,
            _ => Fate::Lost,
        }
    }

    /// The arrival of a report, unless it is lost.
    pub(super) fn back(&mut self, now: Instant) -> Option<Instant> {
        match self.back.admit(now, ByteCount(60)) {
            ChannelVerdict::Deliver(delivery) => Some(delivery.at),
            _ => None,
        }
    }

    /// The arrival of an acknowledgement.
    pub(super) fn back_surely(&self, now: Instant) -> Instant {
        now + self.back_delay
    }
}
