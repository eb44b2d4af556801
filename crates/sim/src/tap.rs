//! Taps at the ends of hops, and the events of machines: a run as its observers see it.
//!
//! A tap stands at each end of a hop, where a node's port is. An outgoing packet is captured as it is
//! handed to the channel, with the channel's verdict; an incoming one as it arrives, with the fault that
//! the node finds in it. A hop with a link layer has a second tap at each end, above the layer: frames pass
//! below, packets above.
//!
//! # Promises
//! - A run is the same with and without taps: nothing is drawn, and no event is put on the calendar.
//! - Without taps, a packet costs one comparison.
//!
//! # Does not
//! - Stop a run whose output cannot be written: [`crate::world::World::finish_observers`] says so at its end.

use crate::flow_packets::{FlowPackets, FlowWindow};
use crate::measure::wire::WireLoss;
use crate::node::WayId;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr};
use fulmar_capture::{
    About, Comment, Dissector, EventLines, EventPlace, InterfaceId, Packet, PacketDirection,
    PacketEnds, Pcapng, Section,
};
use fulmar_channel::{ChannelVerdict, Delivery};
use fulmar_proto::transport::aerotp::{AerotpEndpoint, Note};
use fulmar_proto::units::Instant;
use fulmar_proto::wire::network::NodeAddress;
use std::io::{self, Write};

/// A destination for a capture or a trace.
pub type Output = Box<dyn Write + Send>;

/// The observers of a run.
#[derive(Default)]
pub struct Observers {
    /// The scenario's name.
    pub(crate) scenario: String,
    /// The point of the sweep, from 0.
    pub(crate) point: usize,
    /// The comment that the capture's file carries about itself.
    pub(crate) about: String,
    /// Receives the packets, as pcapng.
    pub(crate) capture: Option<Output>,
    /// Receives the events of AeroTP's machines, as JSON lines.
    pub(crate) events: Option<Output>,
    /// Whether packets, pieces and decisions are kept.
    pub(crate) recording: bool,
    /// The flow and the part of the run whose packets are kept for a figure.
    pub(crate) window: Option<FlowWindow>,
}

impl Observers {
    /// Observers that write packets, as pcapng, and events of AeroTP's machines, as JSON lines.
    pub fn new(capture: Option<Output>, events: Option<Output>) -> Self {
        Self {
            capture,
            events,
            ..Self::default()
        }
    }

    /// The same observers, which also keep the packets of one flow in a part of the run ([`Observed::flow`]).
    #[must_use]
    pub fn with_flow(self, window: Option<FlowWindow>) -> Self {
        Self { window, ..self }
    }

    /// Observers that keep packets, pieces and decisions ([`RunRecording`](crate::RunRecording)).
    pub fn recording() -> Self {
        Self {
            recording: true,
            ..Self::default()
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observers")
            .field("about", &self.about)
            .field("capture", &self.capture.is_some())
            .field("events", &self.events.is_some())
            .finish_non_exhaustive()
    }
}

/// The amounts that observers were shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Packets captured.
    pub packets: u64,
    /// Lines of events.
    pub lines: u64,
    /// The packets of the flow that was asked for.
    pub flow: Option<FlowPackets>,
}

/// One end of a hop, as its taps know it.
#[derive(Clone, Debug)]
pub(crate) struct TapEnd {
    /// The hop, and the end of the chain towards which it leads.
    pub(crate) name: String,
    pub(crate) here: NodeAddress,
    pub(crate) there: NodeAddress,
    /// The dissector of the link layer's frames, if the hop has a link layer.
    pub(crate) layer: Option<Dissector>,
}

/// The way on which a packet came to a node; only kept while packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// From the channel, at the end of the hop where the way `end` begins.
    Wire {
        end: WayId,
        bits: usize,
        is_copy: bool,
    },
    /// From the link layer at the end of the hop where the way `end` begins.
    Layer { end: WayId },
}

#[derive(Debug)]
struct Interfaces {
    wire: InterfaceId,
    above: InterfaceId,
    dissector: Dissector,
    out: PacketEnds,
    back: PacketEnds,
}

/// The taps of a run.
pub(crate) struct Tap {
    pcapng: Pcapng<Output>,
    /// The interfaces of each end, by the way that begins there.
    ends: Vec<Interfaces>,
    failed: Option<io::Error>,
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tap").finish_non_exhaustive()
    }
}

impl Tap {
    /// A tap at each of `ends`, which are in the order of the ways that begin there.
    pub(crate) fn new(output: Output, about: String, ends: &[TapEnd]) -> io::Result<Self> {
        let section = Section {
            comment: about,
            ..Section::default()
        };
        let mut pcapng = Pcapng::new(output, &section)?;
        let ends = ends.iter().map(|end| {
            let text = format!("at {}", ip(end.here));
            let wire = pcapng.interface(&end.name, &text)?;
            let above = match end.layer {
                Some(_) => pcapng.interface(
                    &format!("{}/packets", end.name),
                    &format!("{text}, above the link layer"),
                )?,
                None => wire,
            };
            let (here, there) = (ip(end.here), ip(end.there));
            let hosts = |from, to| PacketEnds::Hosts { from, to };
            Ok(Interfaces {
                wire,
                above,
                dissector: end.layer.unwrap_or(Dissector::Ip),
                out: hosts(here, there),
                back: hosts(there, here),
            })
        });
        let ends = ends.collect::<io::Result<_>>()?;
        Ok(Self {
            pcapng,
            ends,
            failed: None,
        })
    }

    /// A packet or a frame was handed to the channel that begins at `end`.
    pub(crate) fn sent(&mut self, now: Instant, end: WayId, octets: &[u8], comment: &Comment) {
        let direction = PacketDirection::Outbound;
        self.wire(now, end, direction, octets, comment);
    }

    /// A packet was offered to the queue above the link layer at `end`.
    pub(crate) fn offered(&mut self, now: Instant, end: WayId, octets: &[u8], comment: &Comment) {
        self.above(now, end, PacketDirection::Outbound, octets, comment);
    }

    /// A packet or a frame arrived, and was dropped for `cause` if there is one.
    pub(crate) fn arrived(
        &mut self,
        now: Instant,
        came: Came,
        octets: &[u8],
        cause: Option<WireLoss>,
    ) {
        let judged = |comment: Comment| match cause {
            Some(cause) => comment.dropped(cause.name()),
            None => comment,
        };
        match came {
            Came::Wire { end, bits, is_copy } => {
                let mut comment = Comment::NONE.damaged(bits);
                if is_copy {
                    comment = comment.duplicate();
                }
                self.wire(now, end, PacketDirection::Inbound, octets, &judged(comment));
            }
            Came::Layer { end } => {
                let comment = judged(Comment::NONE);
                self.above(now, end, PacketDirection::Inbound, octets, &comment);
            }
        }
    }

    fn wire(
        &mut self,
        now: Instant,
        end: WayId,
        direction: PacketDirection,
        octets: &[u8],
        comment: &Comment,
    ) {
        let at = &self.ends[end.0];
        let ends = match direction {
            PacketDirection::Outbound => at.out,
            PacketDirection::Inbound => at.back,
        };
        let packet = Packet {
            interface: at.wire,
            at: now,
            direction,
            dissector: at.dissector,
            // A network header says it itself.
            ends: (at.dissector != Dissector::Ip).then_some(ends),
            octets,
            comment,
            missed: 0,
        };
        write(&mut self.pcapng, &mut self.failed, &packet);
    }

    fn above(
        &mut self,
        now: Instant,
        end: WayId,
        direction: PacketDirection,
        octets: &[u8],
        comment: &Comment,
    ) {
        let packet = Packet {
            interface: self.ends[end.0].above,
            at: now,
            direction,
            dissector: Dissector::Ip,
            ends: None,
            octets,
            comment,
            missed: 0,
        };
        write(&mut self.pcapng, &mut self.failed, &packet);
    }

    /// The number of packets written; or the first error in writing them.
    pub(crate) fn finish(&mut self) -> io::Result<u64> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.pcapng.out().flush().map(|()| self.pcapng.packets()),
        }
    }
}

fn write(pcapng: &mut Pcapng<Output>, failed: &mut Option<io::Error>, packet: &Packet<'_>) {
    if failed.is_none() {
        *failed = pcapng.packet(packet).err();
    }
}

/// A node's address as an IP address.
pub(crate) fn ip(address: NodeAddress) -> IpAddr {
    Ipv4Addr::from(address.0).into()
}

/// The capture's comment on a channel's verdict; the packet's marking is known.
pub(crate) fn verdict_of(verdict: &ChannelVerdict, frame_check: bool, is_marked: bool) -> Comment {
    let damage = |comment: Comment, bits: usize| {
        if frame_check && bits > 0 {
            comment.dropped(WireLoss::FrameCheck.name())
        } else {
            comment.damaged(bits)
        }
    };
    match verdict {
        ChannelVerdict::Waits => Comment::NONE,
        ChannelVerdict::Drop(reason) => Comment::NONE.dropped(reason.name()),
        ChannelVerdict::Deliver(Delivery {
            flips, duplicate, ..
        }) => {
            let mut comment = damage(Comment::NONE, flips.len());
            if is_marked {
                comment = comment.marked();
            }
            if let Some((_, flips)) = duplicate {
                comment = damage(comment.duplicated(), flips.len());
            }
            comment
        }
    }
}

/// The events of a run.
pub(crate) struct EventLog {
    lines: EventLines<Output>,
    failed: Option<io::Error>,
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLog").finish_non_exhaustive()
    }
}

impl EventLog {
    pub(crate) fn new(output: Output, about: &About<'_>) -> io::Result<Self> {
        Ok(Self {
            lines: EventLines::new(output, about)?,
            failed: None,
        })
    }

    /// Takes the notes of the connections of `node`; `whose` says more of each note's place.
    pub(crate) fn take_notes(
        &mut self,
        now: Instant,
        node: NodeAddress,
        endpoint: &mut AerotpEndpoint,
        mut whose: impl for<'a> FnMut(&Note, EventPlace<'a>) -> EventPlace<'a>,
    ) {
        let node = ip(node).to_string();
        let of_node = EventPlace {
            node: Some(&node),
            ..EventPlace::default()
        };
        while let Some(note) = endpoint.take_note() {
            if self.failed.is_none() {
                let place = whose(&note, of_node);
                self.failed = self.lines.record(note.at, place, note.record).err();
            }
        }
        let missed = endpoint.take_missed_notes();
        if missed > 0 && self.failed.is_none() {
            self.failed = self.lines.missed(now, of_node, missed).err();
        }
    }

    /// Writes the last line. Returns the number of lines, or the first error in writing them.
    pub(crate) fn finish(&mut self, at: Instant, how: &str) -> io::Result<u64> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.lines.end(at, how).map(|()| self.lines.lines()),
        }
    }
}
