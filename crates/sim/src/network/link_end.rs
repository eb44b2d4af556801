//! The link layer at one end of a hop: the queue above it, the machine, its wake-ups, its measures.
//!
//! ```text
//! forward --> queue --> machine --frames--> way --> the peer's machine --> arrival at the far node
//! ```

use crate::guard::GuardedLink;
use crate::measure::link::{LinkMeter, PacketIdentity};
use crate::measure::wire::WireLoss;
use crate::network::{Network, NetworkEvent};
use crate::node::{NodeId, WayId};
use crate::pool::PacketId;
use crate::tap::Came;
use fulmar_baseline::link::{
    AnyLink, FlowHash, FrameTransmit, LinkCounters, LinkDriver, LinkMachine, LinkPacket, drain,
};
use fulmar_capture::Comment;
use fulmar_channel::{PacketQueue, Queued};
use fulmar_proto::machine::{Ecn, Priority};
use fulmar_proto::units::{ByteCount, Instant};
use fulmar_proto::wire::network::{NetworkHeader, mark_congested};

/// The room that a terminal's buffer must have before a frame is made for it: an Ethernet packet
/// and what layers put around it.
const FRAME_ROOM: ByteCount = ByteCount(1_540);

/// One end of a hop with a link layer, by order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkId(pub(crate) usize);

/// A packet in the queue above a link layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedAbove {
    packet: PacketId,
    /// The time since which it waits.
    since: Instant,
    priority: Priority,
}

/// One end of a hop with a link layer.
#[derive(Debug)]
pub(crate) struct LinkEnd {
    /// Absent only while it is being drained.
    machine: Option<Box<GuardedLink<AnyLink>>>,
    queue: PacketQueue<QueuedAbove>,
    /// Whether packets of higher precedence leave the queue first.
    by_precedence: bool,
    /// The node it stands at.
    node: NodeId,
    /// The way its frames take.
    way: WayId,
    /// The other end.
    pub(crate) peer: LinkId,
    /// The time at which the machine is to be woken.
    wake: Option<Instant>,
    /// The time at which the transmitter has sent its frame, if something waits for that.
    free: Option<Instant>,
    /// The direction in which this end sends.
    pub(crate) meter: LinkMeter,
}

impl LinkEnd {
    pub(crate) fn new(
        machine: AnyLink,
        (queue, by_precedence): (PacketQueue<QueuedAbove>, bool),
        (node, way, peer): (NodeId, WayId, LinkId),
    ) -> Self {
        Self {
            machine: Some(Box::new(GuardedLink::new(machine))),
            queue,
            by_precedence,
            node,
            way,
            peer,
            wake: None,
            free: None,
            meter: LinkMeter::default(),
        }
    }

    /// The place in the queue of the packet that leaves it next, if it has at least this precedence.
    fn place_of_next(&self, least: Priority) -> Option<usize> {
        let mut first = (0, self.queue.iter().next()?.priority);
        if self.by_precedence {
            for (place, queued) in self.queue.iter().enumerate() {
                if queued.priority > first.1 {
                    first = (place, queued.priority);
                }
            }
        }
        (first.1 >= least).then_some(first.0)
    }

    /// The machine's counters.
    pub(crate) fn counters(&self) -> LinkCounters {
        self.machine
            .as_ref()
            .map(|machine| *machine.counters())
            .unwrap_or_default()
    }
}

/// The flow of a packet: FNV-1a over addresses and ports, 32 bits.
fn flow_of(header: &NetworkHeader, payload: &[u8]) -> FlowHash {
    // All transports begin with a source and a destination port of two octets each.
    let ports = payload.first_chunk::<4>().copied().unwrap_or_default();
    let words = [
        header.source.0,
        header.destination.0,
        u32::from(header.protocol.0),
        u32::from_be_bytes(ports),
    ];
    let octets = words.into_iter().flat_map(u32::to_be_bytes);
    FlowHash(octets.fold(0x811C_9DC5, |hash, octet| {
        (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193)
    }))
}

impl Network {
    /// Puts a packet into the queue above a link.
    pub(crate) fn enqueue(&mut self, now: Instant, link: LinkId, packet: PacketId) {
        let octets = &self.pool.packet(packet).octets;
        let header = NetworkHeader::parse(octets)
            .ok()
            .map(|parsed| parsed.header);
        let capable = header.is_some_and(|header| header.ecn != Ecn::NotCapable);
        let queued = QueuedAbove {
            packet,
            since: now,
            priority: header.map(|header| header.priority).unwrap_or_default(),
        };
        let len = ByteCount::of(octets);
        let end = &mut self.links[link.0];
        let way = end.way;
        let queued = end.queue.push(now, queued, len, capable);
        let mut comment = Comment::NONE;
        if let Queued::Waits { marked: true } = queued
            && mark_congested(&mut self.pool.packet_mut(packet).octets)
        {
            end.meter.marked += 1;
            self.meter.marked += 1;
            comment = comment.marked();
        }
        if let Some(tap) = &mut self.tap {
            if !matches!(queued, Queued::Waits { .. }) {
                comment = comment.dropped(WireLoss::Queue.name());
            }
            tap.offered(now, way, &self.pool.packet(packet).octets, &comment);
        }
        match queued {
            Queued::Waits { .. } => self.drain_link(now, link),
            Queued::Full => {
                end.meter.queue_full += 1;
                self.lose_on(way, packet, WireLoss::Queue);
            }
            Queued::Early => {
                end.meter.queue_early += 1;
                self.lose_on(way, packet, WireLoss::Queue);
            }
        }
    }

    /// A frame reaches a link's end.
    pub(crate) fn receive_frame(&mut self, now: Instant, link: LinkId, frame: PacketId) {
        self.show_arrival(now, frame, None);
        let octets = &self.pool.packet(frame).octets;
        if let Some(machine) = &mut self.links[link.0].machine {
            machine.handle_frame(now, octets);
        }
        self.pool.release(frame);
        self.drain_link(now, link);
    }

    /// A link's deadline may have come.
    pub(crate) fn wake_link(&mut self, now: Instant, link: LinkId) {
        let end = &mut self.links[link.0];
        if end.wake != Some(now) {
            // Replaced by an earlier one.
            return;
        }
        end.wake = None;
        if let Some(machine) = &mut end.machine
            && machine.next_deadline().is_some_and(|d| d.at <= now)
        {
            machine.handle_deadline(now);
        }
        self.drain_link(now, link);
    }

    /// A link's transmitter may have become free.
    pub(crate) fn free_link(&mut self, now: Instant, link: LinkId) {
        let end = &mut self.links[link.0];
        if end.free == Some(now) {
            end.free = None;
            self.drain_link(now, link);
        }
    }

    /// Packets or frames may leave the buffer of a way's terminal.
    pub(crate) fn look_at_terminal(&mut self, now: Instant, way: WayId) {
        self.depart(now, way);
        if let Some(link) = self.ways[way.0].link {
            self.drain_link(now, link);
        }
    }

    fn drain_link(&mut self, now: Instant, link: LinkId) {
        let Some(mut machine) = self.links[link.0].machine.take() else {
            return;
        };
        let mut port = Port {
            takes: self.takes(now, link),
            network: self,
            link,
        };
        let deadline = drain(machine.as_mut(), now, &mut port);
        let end = &mut self.links[link.0];
        end.machine = Some(machine);
        if let Some(deadline) = deadline
            && end.wake.is_none_or(|wake| deadline.at < wake)
        {
            let at = deadline.at.max(now);
            end.wake = Some(at);
            self.queue.push(at, NetworkEvent::LinkWake(link));
        }
    }

    /// Whether a link's medium takes a frame.
    fn takes(&mut self, now: Instant, link: LinkId) -> bool {
        let way = &mut self.ways[self.links[link.0].way.0];
        way.channel.takes(now, FRAME_ROOM + way.framing)
    }
}

/// The driver into which a link machine is drained.
struct Port<'a> {
    network: &'a mut Network,
    link: LinkId,
    /// Whether the medium takes a frame.
    takes: bool,
}

impl LinkDriver for Port<'_> {
    fn next_packet(&mut self, now: Instant, least: Priority) -> Option<LinkPacket<'_>> {
        let Network {
            links,
            pool,
            descending,
            ..
        } = &mut *self.network;
        let end = &mut links[self.link.0];
        let place = end.place_of_next(least)?;
        let QueuedAbove {
            packet: id, since, ..
        } = end.queue.take(now, place)?;
        end.meter.wait(now.saturating_since(since));
        let packet = pool.packet_mut(id);
        let (kind, tag) = (packet.kind, packet.tag);
        descending.clear();
        core::mem::swap(descending, &mut packet.octets);
        pool.release(id);
        end.meter
            .offer(now, descending, PacketIdentity { kind, tag });
        let parsed = NetworkHeader::parse(descending).ok();
        Some(LinkPacket {
            octets: descending,
            flow: parsed.map_or_else(FlowHash::default, |p| flow_of(&p.header, p.payload)),
            priority: parsed.map(|p| p.header.priority).unwrap_or_default(),
            kind,
            deadline: None,
        })
    }

    fn packet_buffer(&mut self) -> &mut Vec<u8> {
        &mut self.network.ascending
    }

    fn deliver(&mut self, now: Instant, _len: usize) {
        let Network {
            links,
            pool,
            ascending,
            queue,
            tap,
            ..
        } = &mut *self.network;
        let LinkEnd {
            peer, node, way, ..
        } = links[self.link.0];
        let known = links[peer.0].meter.release(now, ascending);
        let PacketIdentity { kind, tag } = known.unwrap_or(PacketIdentity {
            kind: fulmar_proto::machine::TransmitKind::Source,
            tag: 0,
        });
        let packet = pool.admit(ascending, kind, tag);
        if tap.is_some() {
            pool.packet_mut(packet).came = Some(Came::Layer { end: way });
        }
        queue.push(now, NetworkEvent::Arrive { node, packet });
    }

    fn can_send(&self) -> bool {
        self.takes
    }

    fn frame_buffer(&mut self) -> &mut Vec<u8> {
        &mut self.network.frame
    }

    fn send(&mut self, now: Instant, frame: FrameTransmit) {
        let way = self.network.links[self.link.0].way;
        let packet = self
            .network
            .pool
            .admit(&mut self.network.frame, frame.kind, 0);
        self.network.cross(now, way, packet);
        self.takes = self.network.takes(now, self.link);
        let channel = &mut self.network.ways[way.0].channel;
        // A terminal's buffer calls when a frame has left it.
        if !self.takes && channel.wake_at().is_none() {
            let free = channel.queue(now).free_at;
            self.network.links[self.link.0].free = Some(free);
            self.network
                .queue
                .push(free, NetworkEvent::LinkFree(self.link));
        }
    }
}
