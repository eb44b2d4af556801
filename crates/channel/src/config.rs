//! The description of a channel.

use crate::aqm::{self, Aqm};
use crate::bits::BitErrors;
use crate::config_error::{ChannelConfigError, Field, Setting};
use crate::dama::Dama;
use crate::fading::Fading;
use crate::loss::LossModel;
use crate::outage::OutagePlan;
use crate::own::OwnChannel;
use crate::path::{Jitter, Reorder};
use crate::policer::Policer;
use crate::rate::computed_rate;
use crate::tdma::Tdma;
use crate::transmitter::{QueueLimit, WAITING_PACKETS_MAX};
use fulmar_proto::units::{
    Bitrate, ByteCount, Duration, PacketErrorRate, Probability, format_duration,
};

/// One direction of one hop. The default is a perfect medium: everything arrives at once and
/// intact.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChannelConfig {
    /// The rate of the transmitter; with `None` a transmission takes no time.
    pub rate: Option<Bitrate>,
    /// Propagation delay, from the last octet's departure to its arrival.
    pub delay: Duration,
    /// The limit on packets that wait for the transmitter. Without a `rate` nothing ever waits.
    pub queue: QueueLimit,
    /// The length of the queue above which packets are marked; it counts the packet itself.
    pub ecn_threshold: Option<QueueLimit>,
    /// The law by which the queue signals before it is full: by marks, and by drops of what cannot be marked.
    pub aqm: Option<Aqm>,
    /// A policer before the queue.
    pub policer: Option<Policer>,
    /// The loss of packets in flight.
    pub loss: LossModel,
    /// The inversion of bits in flight.
    pub bits: BitErrors,
    /// The fading of the received power: more inverted bits, darkness, and the delay of a pass.
    pub fading: Option<Fading>,
    /// Times in which nothing gets through.
    pub outages: OutagePlan,
    /// The holding back of packets, so that others overtake them.
    pub reorder: Option<Reorder>,
    /// The share of delivered packets that arrive twice. The copy costs no link time and has its
    /// own jitter, its own holding back and its own bit errors.
    pub duplicate: Probability,
    /// The variation of the delay.
    pub jitter: Option<Jitter>,
    /// Capacity on demand. `rate` is then the most that is ever assigned, and `queue` bounds the
    /// terminal's buffer, which holds the rest of the packet being sent as well.
    pub dama: Option<Dama>,
    /// The station's slots, outside of which nothing is sent.
    pub tdma: Option<Tdma>,
    /// A law from outside of this workspace, beside the models above.
    pub own: Option<OwnChannel>,
}

/// The longest delay: a year, so that sums of a few delays fit 64 bits.
pub(crate) const DELAY_MAX: Duration = Duration::from_secs(31_536_000);

impl ChannelConfig {
    /// The probability that a packet of `len` octets, once on the link and outside of outages, does
    /// not arrive intact: 1 - (1 - mean loss) × (1 - P(some bit inverted)). Fading, by its law,
    /// makes one more such factor.
    pub fn packet_error_rate(&self, len: ByteCount) -> PacketErrorRate {
        let arrives = 1.0 - self.loss.mean_loss().value();
        let intact = 1.0 - self.bits.packet_error_rate(len).value();
        let (lit, unfaded) = self.fading.as_ref().map_or((1.0, 1.0), |fading| {
            let hit = fading.packet_error_rate(len).value();
            (1.0 - fading.dark_share(), 1.0 - hit)
        });
        computed_rate(1.0 - arrives * intact * lit * unfaded)
    }

    /// Refuses a channel that can leave a verdict open, for drivers that ask once for each packet.
    ///
    /// # Errors
    /// The channel has a [`Dama`].
    pub fn decides_at_once(&self) -> Result<(), ChannelConfigError> {
        match self.dama {
            None => Ok(()),
            Some(dama) => Err(ChannelConfigError::new(
                Setting::Dama.whole(),
                dama,
                "not set here",
            )),
        }
    }

    /// The longest time from handing over a packet of `len` octets, as soon as [`Channel::takes`](crate::Channel::takes)
    /// allows it, until its last bit has left. It contains the transmission, and for a terminal
    /// also the buffer before the packet and the answer to its request; with slots, a frame. Outages come on top.
    pub fn access_max(&self, len: ByteCount) -> Duration {
        let time_to_send = |len| {
            self.mean_rate()
                .map_or(Duration::ZERO, |rate| rate.time_to_send(len))
        };
        let terminal = self.dama.map_or(Duration::ZERO, |dama| {
            dama.wait_max() + time_to_send(self.queue.bytes.unwrap_or_default())
        });
        let slot = self.tdma.map_or(Duration::ZERO, |tdma| tdma.frame);
        time_to_send(len) + terminal + slot
    }

    /// The rate that packets can have over a long time: `rate`, or the slots' share of it.
    pub fn mean_rate(&self) -> Option<Bitrate> {
        let rate = self.rate?;
        Some(self.tdma.map_or(rate, |tdma| tdma.mean_rate(rate)))
    }

    /// Checks the fields that no model checks itself.
    pub(crate) fn check_plain_fields(&self) -> Result<(), ChannelConfigError> {
        if self.rate == Some(Bitrate::ZERO) {
            let allowed = "at least 1bit, or none for a link that takes no time";
            return Err(ChannelConfigError::new(
                Setting::Rate.whole(),
                "0bit",
                allowed,
            ));
        }
        if let (Some(rate), Some(fading)) = (self.rate, &self.fading) {
            fading.check_at(rate)?;
        }
        let check_span = |field: Field, span: Duration, least: Duration, allowed: &str| {
            if (least..=DELAY_MAX).contains(&span) {
                Ok(())
            } else {
                Err(ChannelConfigError::new(
                    field,
                    format_duration(span),
                    allowed,
                ))
            }
        };
        check_span(
            Setting::Delay.whole(),
            self.delay,
            Duration::ZERO,
            "0s to 8760h",
        )?;
        if let Some(reorder) = self.reorder {
            let least = Duration::from_nanos(1);
            check_span(
                Setting::Reorder.part("extra"),
                reorder.extra,
                least,
                "1ns to 8760h",
            )?;
        }
        if let Some(jitter) = self.jitter
            && jitter.spread > self.delay
        {
            let allowed = format!("at most the delay, {}", format_duration(self.delay));
            let given = format_duration(jitter.spread);
            return Err(ChannelConfigError::new(
                Setting::Jitter.part("spread"),
                given,
                allowed,
            ));
        }
        if let Some(packets) = self.queue.packets
            && packets > WAITING_PACKETS_MAX
        {
            let allowed = format!("at most {WAITING_PACKETS_MAX} packets");
            return Err(ChannelConfigError::new(
                Setting::Queue.part("packets"),
                packets,
                allowed,
            ));
        }
        if let Some(dama) = self.dama {
            dama.check()?;
            if self.rate.is_none() {
                let allowed = "set only together with a rate";
                return Err(ChannelConfigError::new(
                    Setting::Dama.whole(),
                    dama,
                    allowed,
                ));
            }
        }
        self.check_slots()?;
        self.check_discipline()?;
        if self.ecn_threshold.is_some() && self.queue.is_unlimited() {
            let allowed = "set only together with a queue limit";
            return Err(ChannelConfigError::new(
                Setting::EcnThreshold.whole(),
                "set",
                allowed,
            ));
        }
        Ok(())
    }

    fn check_slots(&self) -> Result<(), ChannelConfigError> {
        let Some(tdma) = self.tdma else {
            return Ok(());
        };
        tdma.check()?;
        let refused = |allowed: &str| {
            Err(ChannelConfigError::new(
                Setting::Tdma.whole(),
                tdma,
                allowed,
            ))
        };
        if self.rate.is_none() {
            return refused("set only together with a rate");
        }
        if self.dama.is_some() || self.aqm.is_some() {
            return refused("not set together with dama or aqm");
        }
        Ok(())
    }

    /// Checks what stands before the link besides the queue's length.
    fn check_discipline(&self) -> Result<(), ChannelConfigError> {
        if let Some(policer) = self.policer {
            policer.check()?;
        }
        if let Some(law) = self.aqm {
            law.check()?;
            if self.rate.is_none() {
                return Err(aqm::unusable(law, "set only together with a rate"));
            }
            if self.dama.is_some() {
                return Err(aqm::unusable(law, "not set together with dama"));
            }
        }
        Ok(())
    }
}
