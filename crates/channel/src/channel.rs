//! One direction of one hop: puts the parts in order and counts.

use crate::bits::BitProcess;
use crate::config::{Config, ConfigError};
use crate::counters::Counters;
use crate::flips::Flips;
use crate::loss::LossProcess;
use crate::outage::OutageClock;
use crate::path::Path;
use crate::replay::UsedUp;
use crate::transmitter::{Transmission, Transmitter};
use crate::verdict::{Delivery, DropReason, Verdict};
use core::num::NonZeroU64;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Instant, Probability};

/// One direction of one hop.
#[derive(Clone, Debug)]
pub struct Channel {
    config: Config,
    transmitter: Transmitter,
    outages: OutageClock,
    loss: LossProcess,
    bits: BitProcess,
    path: Path,
    copies: Option<Copies>,
    counters: Counters,
    latest: Instant,
}

/// The state of the queue at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueState {
    /// Packets waiting, without the one in transmission. Zero if the queue has no limit, because
    /// nothing is kept then.
    pub packets: usize,
    /// Octets of those packets.
    pub bytes: ByteCount,
    /// When the transmitter has sent all it was given; in the past or now if it is idle.
    pub free_at: Instant,
}

/// Second arrivals: a way and bit errors of their own.
#[derive(Clone, Debug)]
struct Copies {
    probability: Probability,
    rng: Rng,
    path: Path,
    bits: BitProcess,
}

impl Channel {
    /// A channel whose models draw from streams below `rng`: `loss`, `bits`, `jitter`, `reorder`
    /// and `duplicate`.
    ///
    /// # Errors
    /// The first field of `config` that is out of range.
    pub fn new(config: Config, rng: &Rng) -> Result<Self, ConfigError> {
        config.check_plain_fields()?;
        let rate = config
            .rate
            .and_then(|rate| NonZeroU64::new(rate.as_bits_per_second()));
        let path = |rng: &Rng| Path::new(config.delay, config.jitter, config.reorder, rng);
        let copies = (!config.duplicate.is_zero()).then(|| {
            let rng = rng.child("duplicate");
            Copies {
                probability: config.duplicate,
                path: path(&rng),
                bits: BitProcess::new(config.bits, rng.child("bits")),
                rng,
            }
        });
        Ok(Self {
            transmitter: Transmitter::new(rate, config.queue, config.ecn_threshold),
            outages: OutageClock::new(&config.outages)?,
            loss: LossProcess::new(&config.loss, rng.child("loss"))?,
            bits: BitProcess::new(config.bits, rng.child("bits")),
            path: path(rng),
            copies,
            counters: Counters::default(),
            latest: Instant::START,
            config,
        })
    }

    /// Hands the link a packet of `len` octets, lower headers included, and says what becomes of
    /// it. `now` never decreases from call to call; a smaller one is read as the largest so far.
    pub fn admit(&mut self, now: Instant, len: ByteCount) -> Verdict {
        self.latest = self.latest.max(now);
        self.counters.offered_packets += 1;
        self.counters.offered_bytes += len;
        let Some(transmission) = self.transmitter.admit(self.latest, len) else {
            return self.drop_for(DropReason::Queue);
        };
        self.counters.transmitted_packets += 1;
        self.counters.transmitted_bytes += len;
        self.transmit(transmission, len)
    }

    /// Every model draws for every transmitted packet, so that none moves another's draws.
    fn transmit(&mut self, transmission: Transmission, len: ByteCount) -> Verdict {
        let Transmission { start, end, marked } = transmission;
        let out = self.outages.takes(start, end);
        let lost = self.loss.takes(start, end);
        let flips = self.bits.pass(len);
        let arrival = self.path.arrive(end);
        let copied = self.copies.as_mut().is_some_and(Copies::draw);
        if out {
            return self.drop_for(DropReason::Outage);
        }
        if lost {
            return self.drop_for(DropReason::Loss);
        }
        let duplicate = match &mut self.copies {
            Some(copies) if copied => {
                self.counters.duplicated_packets += 1;
                Some(copies.make(end, len))
            }
            _ => None,
        };
        let counters = &mut self.counters;
        counters.delivered_packets += 1;
        counters.delivered_bytes += len;
        counters.damaged_packets += u64::from(!flips.is_empty());
        counters.flipped_bits += flips.len() as u64;
        counters.marked_packets += u64::from(marked);
        counters.reordered_packets += u64::from(arrival.held_back);
        Verdict::Deliver(Delivery {
            at: arrival.at,
            flips,
            marked,
            duplicate,
        })
    }

    fn drop_for(&mut self, reason: DropReason) -> Verdict {
        self.counters.count_drop(reason);
        Verdict::Drop(reason)
    }

    /// The queue at `now`: what a cross-layer rate control may look at.
    pub fn queue(&mut self, now: Instant) -> QueueState {
        let (packets, bytes) = self.transmitter.waiting(now.max(self.latest));
        QueueState {
            packets,
            bytes,
            free_at: self.transmitter.free_at(),
        }
    }

    /// What the channel did so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether a replayed trace came to its end before the packets did: what was decided since is
    /// worth nothing, and the driver must end the run with this error.
    pub fn trace_used_up(&self) -> Option<UsedUp> {
        self.loss.used_up()
    }

    /// What the channel was made from.
    pub const fn config(&self) -> &Config {
        &self.config
    }
}

impl Copies {
    fn draw(&mut self) -> bool {
        self.rng.chance(self.probability.value())
    }

    fn make(&mut self, end: Instant, len: ByteCount) -> (Instant, Flips) {
        (self.path.arrive(end).at, self.bits.pass(len))
    }
}
