//! The bottleneck: channels that follow each other in time, and a policer before them.

use super::DATAGRAM;
use super::managed::{Leaves, ManagedQueue, QueueManagement, Waiting};
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
    /// The management of the queue before the way out; without it the queue is drop-tail.
    pub managed: Option<QueueManagement>,
}

/// The fate of a datagram.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    Arrives {
        at: Instant,
        waited: Duration,
    },
    NoRoom,
    Lost,
    /// The datagram stands in a managed queue.
    Waits,
}

#[derive(Debug)]
pub(super) struct Link {
    out: Vec<(Instant, Bitrate, Channel)>,
    current: usize,
    back: Channel,
    back_delay: Duration,
    policer: Option<(Policer, f64, Instant)>,
    managed: Option<ManagedQueue>,
    lateness: Rng,
}

impl Link {
    pub(super) fn new(plan: &BottleneckPlan, rng: &Rng) -> Result<Self, ChannelConfigError> {
        let out = plan.out.iter().map(|(from, config)| {
            let mut config = config.clone();
            let rate = config
                .rate
                .unwrap_or(Bitrate::from_bits_per_second(u64::MAX));
            if plan.managed.is_some() {
                // The queue and the link's time are before the channel.
                config.rate = None;
            }
            let channel = Channel::new(config, &rng.child("out"))?;
            Ok((*from, rate, channel))
        });
        let managed = plan.managed.zip(plan.out.first()).map(|(it, (_, config))| {
            let rate = config
                .rate
                .unwrap_or(Bitrate::from_bits_per_second(u64::MAX));
            ManagedQueue::new(it, config.queue, rate, rng)
        });
        Ok(Self {
            out: out.collect::<Result<_, ChannelConfigError>>()?,
            current: 0,
            back: Channel::new(plan.back.clone(), &rng.child("back"))?,
            back_delay: plan.back.delay,
            policer: (plan.policer).map(|it| (it, it.burst.0 as f64, Instant::START)),
            managed,
            lateness: rng.child("lateness"),
        })
    }

    /// Takes a datagram of [`DATAGRAM`] octets.
    pub(super) fn forward(&mut self, now: Instant, waiting: Waiting) -> Fate {
        if let Some((policer, tokens, since)) = &mut self.policer {
            let span = now.saturating_since(*since).as_secs_f64();
            let rate = policer.rate.as_bits_per_second() as f64 / 8.0;
            *tokens = (*tokens + span * rate).min(policer.burst.0 as f64);
            *since = now;
            if *tokens < DATAGRAM.0 as f64 {
                return Fate::NoRoom;
            }
            *tokens -= DATAGRAM.0 as f64;
        }
        match &mut self.managed {
            Some(queue) => {
                if queue.push(now, waiting) {
                    Fate::Waits
                } else {
                    Fate::NoRoom
                }
            }
            None => self.fly(now),
        }
    }

    /// The next that leaves the managed queue, if the link is free; and the time at which it has left.
    pub(super) fn next(&mut self, now: Instant) -> Option<(Leaves, Instant)> {
        self.advance(now);
        let (_, rate, _) = &self.out[self.current];
        let queue = self.managed.as_mut().filter(|queue| !queue.sending)?;
        let leaves = queue.pop(now)?;
        queue.sending = matches!(leaves, Leaves::Onto(..));
        Some((leaves, now + rate.time_to_send(DATAGRAM)))
    }

    /// The fate of a datagram that has left the managed queue, after which the link is free.
    pub(super) fn left(&mut self, now: Instant) -> Fate {
        if let Some(queue) = &mut self.managed {
            queue.sending = false;
        }
        self.fly(now)
    }

    fn advance(&mut self, now: Instant) {
        while self
            .out
            .get(self.current + 1)
            .is_some_and(|(from, ..)| *from <= now)
        {
            self.current += 1;
        }
    }

    fn fly(&mut self, now: Instant) -> Fate {
        self.advance(now);
        let (_, _, channel) = &mut self.out[self.current];
        let free_at = channel.queue(now).free_at;
        match channel.admit(now, DATAGRAM) {
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

    /// The arrival of an acknowledgement. It is late by up to the time of a datagram on the link:
    /// senders whose datagrams leave exactly with the acknowledgements always find the place in a full
    /// queue that has just become free, and others never do, which no real host's timing gives (Floyd
    /// and Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", 1992, section 4).
    pub(super) fn back_surely(&mut self, now: Instant) -> Instant {
        let (_, rate, _) = &self.out[self.current];
        let late = rate
            .time_to_send(DATAGRAM)
            .mul_f64(self.lateness.unit_f64());
        now + self.back_delay + late
    }
}
