//! The packets of one flow in a part of a run, as a packet-flow figure shows them.
//!
//! A packet is noted as it is handed to a hop's channel, with its purpose as its octets say it and its fate on that hop. Notes
//! change nothing of the run. Packets under a seal, and frames of a link layer, do not say whose they are: all that cross the
//! flow's hops are noted.

mod reading;

use crate::measure::wire::WireLoss;
use crate::node::WayId;
use crate::recording::cause;
use crate::scenario::{AppDirection, FlowPlan, HopStep, TransportPlan};
use fulmar_channel::ChannelVerdict;
use fulmar_proto::machine::TransmitKind;
use fulmar_proto::units::{Duration, Instant};
use reading::{PacketReader, PacketReading};

/// The part of a run that is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowWindow {
    /// The flow, from 0.
    pub flow: usize,
    /// The time from the start of the run at which it begins.
    pub start: Duration,
    /// Its length; without one it lasts until `packets_max` were noted.
    pub span: Option<Duration>,
    /// Packets that are kept, at most.
    pub packets_max: usize,
}

impl FlowWindow {
    fn contains(&self, now: Instant) -> bool {
        let start = Instant::START + self.start;
        now >= start && self.span.is_none_or(|span| now < start + span)
    }
}

/// The purpose of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketPurpose {
    /// Application octets for the first time.
    Data,
    /// Application octets that are sent again.
    Repetition,
    /// Parity across packets.
    Parity,
    /// An acknowledgement.
    Acknowledgement,
    /// A negative acknowledgement: a request for packets.
    Request,
    /// Set-up, end, and whatever else carries no data.
    Control,
}

impl PacketPurpose {
    /// Every purpose, in the order of legends.
    pub const ALL: [Self; 6] = [
        Self::Data,
        Self::Repetition,
        Self::Parity,
        Self::Acknowledgement,
        Self::Request,
        Self::Control,
    ];

    /// The word in figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Repetition => "again",
            Self::Parity => "parity",
            Self::Acknowledgement => "ACK",
            Self::Request => "NACK",
            Self::Control => "control",
        }
    }
}

/// The fate of a packet on one hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFate {
    /// It arrives, perhaps with inverted bits.
    Arrives {
        /// The arrival of its last octet.
        at: Instant,
        /// Inverted bits.
        inverted_bits: usize,
    },
    /// It does not arrive.
    Lost(WireLoss),
}

/// A packet on one hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPacket {
    /// The time at which the hop took or refused it.
    pub sent_at: Instant,
    /// The hop, in the direction of the packet.
    pub step: HopStep,
    /// Whether it goes towards the flow's receiver.
    pub onward: bool,
    /// The purpose.
    pub purpose: PacketPurpose,
    /// The number that its octets name, counted from the flow's first: of a TPDU, or of the last octet that it carries; of an
    /// acknowledgement the last up to which all arrived.
    pub number: Option<u64>,
    /// The purpose with the numbers that its octets name, in a few words.
    pub text: String,
    /// The fate.
    pub fate: PacketFate,
}

/// The packets of a flow in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowPackets {
    /// Packets in the order in which hops took them.
    pub packets: Vec<FlowPacket>,
    /// Packets of the window for which there was no room.
    pub left_out: u64,
}

/// The notes of a run under way.
#[derive(Debug)]
pub(crate) struct FlowLog {
    window: FlowWindow,
    /// The first way that belongs to a hop of the scenario.
    first_way: usize,
    /// The hops of the flow's paths, from its sender on.
    steps: Vec<HopStep>,
    reader: PacketReader,
    pub(crate) noted: FlowPackets,
}

impl FlowLog {
    pub(crate) fn new(window: FlowWindow, flow: &FlowPlan, first_way: usize) -> Self {
        let paths = flow.ends.paths.iter();
        let under_seal = match &flow.transport {
            TransportPlan::Aerotp(plan) => plan.is_sealed(),
            TransportPlan::Gateway(_) => true,
            _ => false,
        };
        Self {
            window,
            first_way,
            steps: paths.flat_map(|path| path.steps.clone()).collect(),
            reader: PacketReader::new(window.flow, flow.transport.protocol(), under_seal),
            noted: FlowPackets::default(),
        }
    }

    /// Notes the verdict on what the channel of a way was handed; with a link layer these are frames.
    pub(crate) fn note(
        &mut self,
        (now, way): (Instant, WayId),
        (octets, kind, is_frame): (&[u8], TransmitKind, bool),
        (verdict, frame_check): (&ChannelVerdict, bool),
    ) {
        let Some(place) = way.0.checked_sub(self.first_way) else {
            return;
        };
        let direction = if place.is_multiple_of(2) {
            AppDirection::Forward
        } else {
            AppDirection::Reverse
        };
        let step = HopStep {
            hop: place / 2,
            direction,
        };
        let onward = self.steps.contains(&step);
        if !onward && !self.steps.contains(&step.back()) {
            return;
        }
        let fate = match verdict {
            ChannelVerdict::Waits => return,
            ChannelVerdict::Drop(reason) => PacketFate::Lost(cause(*reason)),
            ChannelVerdict::Deliver(delivery) => match delivery.flips.len() {
                bits if frame_check && bits > 0 => PacketFate::Lost(WireLoss::FrameCheck),
                inverted_bits => PacketFate::Arrives {
                    at: delivery.at,
                    inverted_bits,
                },
            },
        };
        // Numbers count from the flow's first packet, which may have left before the window.
        let read = if is_frame {
            Some(reading::of_kind(kind, onward))
        } else {
            self.reader.read(octets, kind, onward)
        };
        let Some(PacketReading {
            purpose,
            number,
            text,
        }) = read
        else {
            return;
        };
        if !self.window.contains(now) {
            return;
        }
        if self.noted.packets.len() >= self.window.packets_max {
            self.noted.left_out += 1;
            return;
        }
        self.noted.packets.push(FlowPacket {
            sent_at: now,
            step,
            onward,
            purpose,
            number,
            text,
            fate,
        });
    }
}
