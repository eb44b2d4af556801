//! One direction of one hop: calls the models in their order and counts.

use crate::aqm::Manager;
use crate::bits::BitProcess;
use crate::config::{ChannelConfig, DELAY_MAX};
use crate::config_error::ChannelConfigError;
use crate::counters::ChannelCounters;
use crate::dama::Terminal;
use crate::fading::FadingProcess;
use crate::flips::Flips;
use crate::loss::{LossModel, LossProcess};
use crate::outage::OutageClock;
use crate::own::{ChannelLaw, PacketFlight};
use crate::path::PropagationPath;
use crate::policer::TokenBucket;
use crate::replay::UsedUp;
use crate::transmitter::{Transmission, Transmitter};
use crate::verdict::{ChannelDropReason, ChannelVerdict, Delivery};
use core::num::NonZeroU64;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{BitErrorRate, Bitrate, ByteCount, Instant, Probability};

/// One direction of one hop.
#[derive(Debug)]
pub struct Channel {
    config: ChannelConfig,
    policer: Option<TokenBucket>,
    sender: Sender,
    outages: OutageClock,
    loss: LossProcess,
    bits: BitProcess,
    fading: Option<FadingProcess>,
    law: Option<Box<dyn ChannelLaw>>,
    path: PropagationPath,
    copies: Option<Copies>,
    counters: ChannelCounters,
    latest: Instant,
}

/// The least rate that a law of one's own has.
const RATE_MIN: Bitrate = Bitrate::from_bits_per_second(1);

/// The part that takes packets and puts them on the link.
#[derive(Clone, Debug)]
enum Sender {
    Fixed(Transmitter),
    Managed(Transmitter, Box<Manager>),
    OnDemand(Box<Terminal>),
}

/// The state of the queue at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueState {
    /// Packets waiting, without the one in transmission. Zero if the queue has no limit, because
    /// nothing is kept then.
    pub packets: usize,
    /// Octets of those packets.
    pub bytes: ByteCount,
    /// The time at which the transmitter will have sent everything it holds; in the past or now if
    /// it is idle. Where capacity is assigned on demand, the earliest such time.
    pub free_at: Instant,
}

/// The second arrivals of duplicated packets: jitter and bit errors of their own.
#[derive(Clone, Debug)]
struct Copies {
    probability: Probability,
    rng: Rng,
    path: PropagationPath,
    bits: BitProcess,
}

impl ChannelConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// The first field out of range.
    pub fn validate(&self) -> Result<(), ChannelConfigError> {
        Channel::new(self.clone(), &Rng::from_seed(0)).map(drop)
    }
}

/// Takes a packet into a queue that signals congestion before it is full.
fn admit_managed(
    transmitter: &mut Transmitter,
    manager: &mut Manager,
    now: Instant,
    len: ByteCount,
    capable: bool,
) -> Result<Transmission, ChannelDropReason> {
    let (waiting, _) = transmitter.waiting(now);
    let wait = transmitter.free_at().saturating_since(now);
    let has_room = transmitter.has_room(now, len);
    let signals = manager.signals(now, len, (waiting, wait), has_room);
    if has_room && signals && !capable {
        return Err(ChannelDropReason::Early);
    }
    let Some(mut transmission) = transmitter.admit(now, len) else {
        return Err(ChannelDropReason::Queue);
    };
    manager.admitted(transmission.start);
    transmission.marked |= signals;
    Ok(transmission)
}

impl Channel {
    /// A channel whose models draw from streams below `rng`: `loss`, `bits`, `jitter`, `reorder`,
    /// `duplicate`, `dama`, `red`, `fading` and `own`.
    ///
    /// # Errors
    /// The first field of `config` that is out of range.
    pub fn new(config: ChannelConfig, rng: &Rng) -> Result<Self, ChannelConfigError> {
        config.check_plain_fields()?;
        let rate = config
            .rate
            .and_then(|rate| NonZeroU64::new(rate.as_bits_per_second()));
        let path =
            |rng: &Rng| PropagationPath::new(config.delay, config.jitter, config.reorder, rng);
        let copies = (!config.duplicate.is_zero()).then(|| {
            let rng = rng.child("duplicate");
            Copies {
                probability: config.duplicate,
                path: path(&rng),
                bits: BitProcess::new(config.bits, rng.child("bits")),
                rng,
            }
        });
        let (limit, threshold) = (config.queue, config.ecn_threshold);
        let fixed = Transmitter::new(rate, limit, threshold).in_slots(config.tdma);
        let sender = match (config.dama, rate) {
            (Some(dama), Some(rate)) => {
                let terminal = Terminal::new(dama, rate, limit, threshold, rng.child("dama"));
                Sender::OnDemand(Box::new(terminal))
            }
            _ => match (config.aqm, config.rate) {
                (Some(aqm), Some(rate)) => {
                    let manager = Manager::new(aqm, rate, rng);
                    Sender::Managed(fixed.watched(), Box::new(manager))
                }
                _ => Sender::Fixed(fixed),
            },
        };
        Ok(Self {
            policer: config.policer.map(TokenBucket::new),
            sender,
            outages: OutageClock::new(&config.outages)?,
            loss: LossProcess::new(&config.loss, rng.child("loss"))?,
            bits: BitProcess::new(config.bits, rng.child("bits")),
            fading: match &config.fading {
                Some(fading) => Some(FadingProcess::new(fading, rng)?),
                None => None,
            },
            law: config.own.as_ref().map(|own| own.law(&rng.child("own"))),
            path: path(rng),
            copies,
            counters: ChannelCounters::default(),
            latest: Instant::START,
            config,
        })
    }

    /// Takes rate, delay, loss and bit errors from `config` from now on, and leaves all else as it is. Packets that were
    /// admitted keep their times. The new loss, and bit errors that are others, draw from streams below `rng`. Where capacity is
    /// assigned on demand the rate stays.
    ///
    /// # Errors
    /// The first field of `config` that is out of range; then nothing has changed.
    pub fn change(&mut self, config: &ChannelConfig, rng: &Rng) -> Result<(), ChannelConfigError> {
        config.check_plain_fields()?;
        let loss = LossProcess::new(&config.loss, rng.child("loss"))?;
        self.set_rate(config.rate);
        // A row of fates that stays goes on where it was.
        let goes_on = matches!(config.loss, LossModel::Fates(_)) && self.config.loss == config.loss;
        if !goes_on {
            self.loss = loss;
        }
        self.path.set_delay(config.delay);
        if let Some(copies) = &mut self.copies {
            copies.path.set_delay(config.delay);
        }
        if self.config.bits != config.bits {
            self.config.bits = config.bits;
            self.bits = BitProcess::new(config.bits, rng.child("bits"));
            if let Some(copies) = &mut self.copies {
                copies.bits = BitProcess::new(config.bits, rng.child("duplicate").child("bits"));
            }
        }
        self.config.delay = config.delay;
        self.config.loss = config.loss.clone();
        Ok(())
    }

    /// Packets that are handed over from now on leave at this rate.
    fn set_rate(&mut self, rate: Option<Bitrate>) {
        self.config.rate = rate;
        let rate = rate.and_then(|rate| NonZeroU64::new(rate.as_bits_per_second()));
        match &mut self.sender {
            Sender::Fixed(transmitter) | Sender::Managed(transmitter, _) => {
                transmitter.set_rate(rate);
            }
            Sender::OnDemand(_) => {}
        }
    }

    /// Hands the link a packet of `len` octets, lower headers included, that cannot be marked, and returns its fate.
    /// `now` never decreases from call to call; a smaller one is read as the largest so far.
    pub fn admit(&mut self, now: Instant, len: ByteCount) -> ChannelVerdict {
        self.admit_capable(now, len, false)
    }

    /// The same for a packet that may be marked in place of being dropped (RFC 3168) if it is `capable`.
    pub fn admit_capable(&mut self, now: Instant, len: ByteCount, capable: bool) -> ChannelVerdict {
        self.latest = self.latest.max(now);
        self.counters.offered_packets += 1;
        self.counters.offered_bytes += len;
        if let Some(law) = &mut self.law
            && let Some(rate) = law.rate(self.latest)
        {
            let rate = Some(rate.max(RATE_MIN));
            if rate != self.config.rate {
                self.set_rate(rate);
            }
        }
        if let Some(policer) = &mut self.policer
            && !policer.takes(self.latest, len)
        {
            return self.drop_for(ChannelDropReason::Policer);
        }
        let transmission = match &mut self.sender {
            Sender::Fixed(transmitter) => transmitter
                .admit(self.latest, len)
                .ok_or(ChannelDropReason::Queue),
            Sender::Managed(transmitter, manager) => {
                admit_managed(transmitter, manager, self.latest, len, capable)
            }
            Sender::OnDemand(terminal) => {
                if terminal.admit(self.latest, len) {
                    return ChannelVerdict::Waits;
                }
                Err(ChannelDropReason::Queue)
            }
        };
        match transmission {
            Ok(transmission) => self.transmit(transmission, len),
            Err(reason) => self.drop_for(reason),
        }
    }

    /// The verdict on the next packet that has left a terminal's buffer by `now`, in the order in
    /// which they were admitted. `None` until one has, and always without [`crate::Dama`].
    pub fn poll_departure(&mut self, now: Instant) -> Option<ChannelVerdict> {
        self.latest = self.latest.max(now);
        let Sender::OnDemand(terminal) = &mut self.sender else {
            return None;
        };
        let departure = terminal.poll(self.latest)?;
        Some(self.transmit(departure.transmission, departure.len))
    }

    /// The latest time to call [`Channel::poll_departure`] if nothing is admitted before: a packet
    /// may have left then, or more capacity is assigned. `None` while the buffer is empty, and
    /// always without [`crate::Dama`].
    pub fn wake_at(&self) -> Option<Instant> {
        match &self.sender {
            Sender::Fixed(_) | Sender::Managed(..) => None,
            Sender::OnDemand(terminal) => terminal.wake_at(),
        }
    }

    /// Whether the link can take a packet of `len` octets at once: the transmitter is idle, or the
    /// terminal's buffer, from which requests are made, has room. A link layer that keeps packets
    /// back until then can still send a more urgent packet first.
    pub fn takes(&mut self, now: Instant, len: ByteCount) -> bool {
        self.latest = self.latest.max(now);
        match &mut self.sender {
            Sender::Fixed(transmitter) | Sender::Managed(transmitter, _) => {
                transmitter.free_at() <= self.latest
            }
            Sender::OnDemand(terminal) => terminal.has_room(self.latest, len),
        }
    }

    /// Puts a packet through the models. Every model draws for every transmitted packet, so that no
    /// model changes another's draws.
    fn transmit(&mut self, transmission: Transmission, len: ByteCount) -> ChannelVerdict {
        let Transmission { start, end, marked } = transmission;
        self.counters.transmitted_packets += 1;
        self.counters.transmitted_bytes += len;
        let mut out = self.outages.takes(start, end);
        let mut lost = self.loss.takes(start, end);
        let mut flips = self.bits.pass(len);
        let mut gone = end;
        if let Some(law) = &mut self.law {
            let fate = law.fly(PacketFlight { start, end, len });
            lost |= fate.lost;
            flips = flips.and(fate.flips);
            gone += fate.later.min(DELAY_MAX);
        }
        if let Some(fading) = &mut self.fading {
            out |= fading.takes(start, end, len);
            flips = flips.and(fading.flips());
            gone += fading.delay(end);
        }
        let arrival = self.path.arrive(gone);
        let copied = self.copies.as_mut().is_some_and(Copies::draw);
        if out {
            return self.drop_for(ChannelDropReason::Outage);
        }
        if lost {
            return self.drop_for(ChannelDropReason::Loss);
        }
        let duplicate = match &mut self.copies {
            Some(copies) if copied => {
                self.counters.duplicated_packets += 1;
                let (at, flips) = copies.make(gone, len);
                let faded = self.fading.as_mut().map(FadingProcess::flips_of_copy);
                Some((at, flips.and(faded.unwrap_or_default())))
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
        ChannelVerdict::Deliver(Delivery {
            at: arrival.at,
            flips,
            marked,
            duplicate,
        })
    }

    fn drop_for(&mut self, reason: ChannelDropReason) -> ChannelVerdict {
        self.counters.count_drop(reason);
        ChannelVerdict::Drop(reason)
    }

    /// The queue at `now`, for a cross-layer rate control.
    pub fn queue(&mut self, now: Instant) -> QueueState {
        self.latest = self.latest.max(now);
        match &mut self.sender {
            Sender::Fixed(transmitter) | Sender::Managed(transmitter, _) => {
                let (packets, bytes) = transmitter.waiting(self.latest);
                QueueState {
                    packets,
                    bytes,
                    free_at: transmitter.free_at(),
                }
            }
            Sender::OnDemand(terminal) => {
                let (packets, bytes) = terminal.waiting(self.latest);
                let rate = self.config.rate.unwrap_or_default();
                QueueState {
                    packets,
                    bytes,
                    free_at: self.latest + rate.time_to_send(bytes),
                }
            }
        }
    }

    /// The short-term bit error rate at the end of the last transmission, if the channel fades. It is what the far
    /// end's power meter shows when that packet has arrived.
    pub fn short_term_rate(&self) -> Option<BitErrorRate> {
        self.fading.as_ref().map(FadingProcess::short_term_rate)
    }

    /// The channel's counters so far.
    pub const fn counters(&self) -> &ChannelCounters {
        &self.counters
    }

    /// The error that a replayed trace ended before the packets did. Verdicts since then are worth
    /// nothing, and the driver must end the run with this error.
    pub fn trace_used_up(&self) -> Option<UsedUp> {
        let fading = self.fading.as_ref();
        self.loss
            .used_up()
            .or_else(|| fading.and_then(FadingProcess::used_up))
    }

    /// The description that the channel was made from.
    pub const fn config(&self) -> &ChannelConfig {
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
