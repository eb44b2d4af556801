//! The bottleneck: channels that follow each other in time.

use super::DATAGRAM;
use fulmar_channel::{
    Channel, ChannelConfig, ChannelConfigError, ChannelVerdict, Policer, TokenBucket,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};

/// A link: what the way out is like from each instant on, and the way back.
#[derive(Clone, Debug, PartialEq)]
pub struct BottleneckPlan {
    /// The way out; the first begins at the start. A change takes effect at once for datagrams that
    /// are sent later, and begins with an empty queue.
    pub out: Vec<(Instant, ChannelConfig)>,
    /// The way back, for reports.
    pub back: ChannelConfig,
    /// A policer before the way out, which stays when that changes.
    pub policer: Option<Policer>,
    /// Whether datagrams of found rates may be marked; CUBIC's and BBR's never are.
    pub marks: bool,
    /// The seconds that receivers' clocks gain in one of the senders'.
    pub clock_gain: f64,
}

/// The fate of a datagram.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    Arrives {
        at: Instant,
        waited: Duration,
        marked: bool,
    },
    NoRoom,
    Lost,
}

#[derive(Debug)]
pub(super) struct Link {
    out: Vec<(Instant, Bitrate, Channel)>,
    current: usize,
    back: Channel,
    back_delay: Duration,
    policer: Option<TokenBucket>,
    marks: bool,
    lateness: Rng,
}

impl Link {
    pub(super) fn new(plan: &BottleneckPlan, rng: &Rng) -> Result<Self, ChannelConfigError> {
        let out = plan.out.iter().map(|(from, config)| {
            let rate = config
                .rate
                .unwrap_or(Bitrate::from_bits_per_second(u64::MAX));
            let channel = Channel::new(config.clone(), &rng.child("out"))?;
            Ok((*from, rate, channel))
        });
        Ok(Self {
            out: out.collect::<Result<_, ChannelConfigError>>()?,
            current: 0,
            back: Channel::new(plan.back.clone(), &rng.child("back"))?,
            back_delay: plan.back.delay,
            policer: plan.policer.map(TokenBucket::new),
            marks: plan.marks,
            lateness: rng.child("lateness"),
        })
    }

    /// Takes a datagram of so many octets; `capable` says whether its sender hears of marks.
    pub(super) fn forward(&mut self, now: Instant, octets: ByteCount, capable: bool) -> Fate {
        if let Some(policer) = &mut self.policer
            && !policer.takes(now, octets)
        {
            return Fate::NoRoom;
        }
        while self
            .out
            .get(self.current + 1)
            .is_some_and(|(from, ..)| *from <= now)
        {
            self.current += 1;
        }
        let capable = capable && self.marks;
        let (_, _, channel) = &mut self.out[self.current];
        let free_at = channel.queue(now).free_at;
        match channel.admit_capable(now, octets, capable) {
            ChannelVerdict::Deliver(delivery) => Fate::Arrives {
                at: delivery.at,
                waited: free_at.saturating_since(now),
                marked: delivery.marked && capable,
            },
            ChannelVerdict::Drop(reason) if reason.is_before_the_link() => Fate::NoRoom,
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
