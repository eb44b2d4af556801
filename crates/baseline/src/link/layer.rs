//! The list of link layers: settings by name, and the machines made from them.

use super::arq::{Arq, ArqConfig};
use super::harq::{HarqConfig, LlHarq};
use super::plain::Plain;
use super::slacp::{Slacp, SlacpConfig};
use super::{FrameTransmit, LinkCounters, LinkMachine, LinkPacket};
use fulmar_proto::machine::Deadline;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};

/// The knowledge that an end has of its hop, as a radio has of its own: from settings, not by
/// measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Medium {
    /// The rate at which this end transmits; with `None` a transmission takes no time.
    pub rate: Option<Bitrate>,
    /// The rate at which the other end transmits.
    pub back_rate: Option<Bitrate>,
    /// Propagation there and back.
    pub round_trip: Duration,
    /// The longest time from handing over a frame of [`Medium::FRAME`] octets, and then an answer of
    /// the same length, until their last bits have left. It contains transmission, buffers below,
    /// and waiting for capacity.
    pub access: Duration,
}

impl Medium {
    /// The size of the frame to which [`Medium::access`] refers: one with a full Ethernet packet.
    pub const FRAME: ByteCount = ByteCount(1_500);

    /// The part of [`Medium::access`] that is not transmission: buffers below, and waiting for
    /// capacity. Zero where a frame's transmission begins at once.
    pub(super) fn waiting(self) -> Duration {
        let transmission = self.frame_time(Self::FRAME) + self.back_frame_time(Self::FRAME);
        self.access.saturating_sub(transmission)
    }

    /// The time that a frame of `octets` occupies the way there.
    pub(super) fn frame_time(self, octets: ByteCount) -> Duration {
        self.rate
            .map_or(Duration::ZERO, |rate| rate.time_to_send(octets))
    }

    /// The time that a frame of `octets` occupies the way back.
    pub(super) fn back_frame_time(self, octets: ByteCount) -> Duration {
        self.back_rate
            .map_or(Duration::ZERO, |rate| rate.time_to_send(octets))
    }
}

/// A link layer with its settings.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkLayer {
    /// A frame check and no repair.
    Plain,
    /// Retransmission.
    Arq(ArqConfig),
    /// Parity, and one more round.
    LlHarq(HarqConfig),
    /// The satellite link layer [`Slacp`].
    Slacp(SlacpConfig),
}

impl LinkLayer {
    /// One end of a hop over `medium`. Its random numbers are drawn from `rng`, a stream of its
    /// own.
    pub fn machine(&self, medium: Medium, rng: &mut Rng) -> Link {
        match self {
            Self::Plain => Link::Plain(Plain::default()),
            Self::Arq(config) => Link::Arq(Box::new(Arq::new(*config, medium, rng))),
            Self::LlHarq(config) => Link::LlHarq(Box::new(LlHarq::new(*config, medium, rng))),
            Self::Slacp(config) => Link::Slacp(Box::new(Slacp::new(*config, medium, rng))),
        }
    }
}

/// A machine of any link layer.
#[derive(Clone, Debug)]
pub enum Link {
    /// The layer without repair, [`Plain`].
    Plain(Plain),
    /// The layer with retransmission, [`Arq`].
    Arq(Box<Arq>),
    /// The layer with parity and one more round, [`LlHarq`].
    LlHarq(Box<LlHarq>),
    /// The satellite link layer, [`Slacp`].
    Slacp(Box<Slacp>),
}

/// Calls the method of the machine, whichever it is.
macro_rules! of_each {
    ($self:expr, $machine:ident => $call:expr) => {
        match $self {
            Link::Plain($machine) => $call,
            Link::Arq($machine) => $call,
            Link::LlHarq($machine) => $call,
            Link::Slacp($machine) => $call,
        }
    };
}

impl LinkMachine for Link {
    fn ready(&self) -> bool {
        of_each!(self, machine => machine.ready())
    }

    fn offer(&mut self, now: Instant, packet: LinkPacket<'_>) {
        of_each!(self, machine => machine.offer(now, packet));
    }

    fn handle_frame(&mut self, now: Instant, octets: &[u8]) {
        of_each!(self, machine => machine.handle_frame(now, octets));
    }

    fn handle_deadline(&mut self, now: Instant) {
        of_each!(self, machine => machine.handle_deadline(now));
    }

    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameTransmit> {
        of_each!(self, machine => machine.poll_frame(now, out))
    }

    fn poll_packet(&mut self, out: &mut Vec<u8>) -> Option<usize> {
        of_each!(self, machine => machine.poll_packet(out))
    }

    fn next_deadline(&self) -> Option<Deadline> {
        of_each!(self, machine => machine.next_deadline())
    }

    fn held(&self) -> ByteCount {
        of_each!(self, machine => machine.held())
    }

    fn counters(&self) -> &LinkCounters {
        of_each!(self, machine => machine.counters())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_transmission_is_no_waiting() {
        let rate = |bits| Some(Bitrate::from_bits_per_second(bits));
        let medium = |access| Medium {
            rate: rate(128_000),
            back_rate: rate(512_000),
            round_trip: Duration::from_millis(500),
            access,
        };
        // 1500 octets at 128 and at 512 kbit/s: 93.75 and 23.4375 ms.
        let transmission = Duration::from_nanos(117_187_500);
        assert_eq!(medium(transmission).waiting(), Duration::ZERO);
        let wait = Duration::from_secs(2);
        assert_eq!(medium(transmission + wait).waiting(), wait);
        assert_eq!(medium(Duration::ZERO).waiting(), Duration::ZERO);
    }
}
