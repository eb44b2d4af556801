//! The list of link layers: settings by name, and the machines made from them.

use super::arq::{Arq, ArqConfig};
use super::harq::{HarqConfig, LlHarq};
use super::plain::Plain;
use super::slacp::{Slacp, SlacpConfig};
use super::{FrameTransmit, LinkCounters, LinkMachine, LinkPacket, Medium};
use fulmar_proto::machine::{Deadline, Priority};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Instant};

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
    pub fn machine(&self, medium: Medium, rng: &mut Rng) -> AnyLink {
        match self {
            Self::Plain => AnyLink::Plain(Plain::default()),
            Self::Arq(config) => AnyLink::Arq(Box::new(Arq::new(*config, medium, rng))),
            Self::LlHarq(config) => AnyLink::LlHarq(Box::new(LlHarq::new(*config, medium, rng))),
            Self::Slacp(config) => AnyLink::Slacp(Box::new(Slacp::new(*config, medium, rng))),
        }
    }
}

/// A machine of any link layer.
#[derive(Clone, Debug)]
pub enum AnyLink {
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
            AnyLink::Plain($machine) => $call,
            AnyLink::Arq($machine) => $call,
            AnyLink::LlHarq($machine) => $call,
            AnyLink::Slacp($machine) => $call,
        }
    };
}

impl LinkMachine for AnyLink {
    fn ready(&self) -> bool {
        of_each!(self, machine => machine.ready())
    }

    fn overtaken_by(&self) -> Option<Priority> {
        of_each!(self, machine => machine.overtaken_by())
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
