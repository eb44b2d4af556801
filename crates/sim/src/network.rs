//! The network between machines: packets cross hops, get damaged, are checked and forwarded.
//!
//! A packet is real octets: 20 of network header, then the transport's. The channel says which
//! bits to invert and they are inverted here, so that every later check works on what a real
//! receiver would see. A node that finds the header check failed drops the packet, because no
//! address in it can be believed.

pub(crate) mod link_end;

use crate::event_queue::EventQueue;
use crate::flow_packets::FlowLog;
use crate::measure::wire::{WayMeter, WireLoss, WireMeter};
use crate::node::{NetworkNode, NodeId, StackId, WayId, with_alias_of};
use crate::own::transport::OWN_PROTOCOL;
use crate::pool::{PacketId, Pool, PooledPacket};
use crate::recording::{PacketLog, cause};
use crate::tap::{Came, Tap, verdict_of};
use fulmar_channel::{Channel, ChannelConfig, ChannelVerdict, Flips, UsedUp, apply_flips};
use fulmar_proto::machine::{PathId, Transmit};
use fulmar_proto::rng::Rng;
use fulmar_proto::told::ToldFacts;
use fulmar_proto::units::{ByteCount, Instant};
use fulmar_proto::wire::network::{
    NETWORK_HEADER_BYTES, NetworkHeader, NetworkProtocol, NetworkReject, NodeAddress, count_hop,
    mark_congested, may_be_marked,
};
use link_end::{LinkEnd, LinkId};
use std::collections::{BTreeMap, VecDeque};

/// An event on the calendar.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NetworkEvent {
    /// A packet's last octet reaches a node.
    Arrive { node: NodeId, packet: PacketId },
    /// A frame's last octet reaches the far end of its hop.
    Frame { link: LinkId, frame: PacketId },
    /// A link machine's deadline may have come.
    LinkWake(LinkId),
    /// A link's transmitter has sent its frame.
    LinkFree(LinkId),
    /// A machine's deadline may have come.
    Wake(StackId),
    /// A flow begins.
    Start(usize),
    /// An application makes its next write.
    Write(usize),
    /// A packet may have left a terminal's buffer.
    Depart(WayId),
    /// Hops change.
    Change,
    /// Radios tell what their hops are.
    News,
    /// Somebody wants to know what was sent and delivered by now.
    Mark,
}

/// A way as it is from a time on.
#[derive(Debug)]
pub(crate) struct WayChange {
    pub(crate) at: Instant,
    pub(crate) way: WayId,
    pub(crate) config: ChannelConfig,
    pub(crate) rng: Rng,
}

/// The word of a radio on the way that it sends on, from a time on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WayNews {
    pub(crate) at: Instant,
    pub(crate) way: WayId,
    pub(crate) told: ToldFacts,
}

/// One direction of one hop.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) channel: Channel,
    pub(crate) to: NodeId,
    pub(crate) measured: bool,
    pub(crate) frame_check: bool,
    /// Octets that the link itself puts around each packet.
    pub(crate) framing: ByteCount,
    /// Packets in the terminal's buffer, if the channel has one.
    pub(crate) standing: VecDeque<PacketId>,
    /// The time of the next [`NetworkEvent::Depart`].
    pub(crate) wake: Option<Instant>,
    /// The link layer that sends on it, if the hop has one.
    pub(crate) link: Option<LinkId>,
    pub(crate) meter: WayMeter,
}

/// Events, packets, nodes and the hops between them.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) queue: EventQueue<NetworkEvent>,
    pub(crate) pool: Pool,
    pub(crate) nodes: Vec<NetworkNode>,
    pub(crate) ways: Vec<Way>,
    pub(crate) links: Vec<LinkEnd>,
    pub(crate) meter: WireMeter,
    /// The changes that are still to come, the next one first.
    pub(crate) changes: VecDeque<WayChange>,
    /// The words of radios that are still to come, the next one first.
    pub(crate) news: VecDeque<WayNews>,
    /// Octets that each node's machines handed to the network, headers included, by protocol.
    sent: BTreeMap<(usize, u8), u64>,
    /// The tap that captures packets, if they are captured.
    pub(crate) tap: Option<Box<Tap>>,
    /// The log of packets, if they are recorded.
    pub(crate) log: Option<Box<PacketLog>>,
    /// The notes on the packets of one flow, if they are kept.
    pub(crate) flow_log: Option<Box<FlowLog>>,
    /// Flows whose connection was established since the world last looked.
    pub(crate) connected: Vec<usize>,
    /// The buffer into which machines write datagrams: a hole for the network header, then their octets.
    scratch: Vec<u8>,
    /// The packet that a link machine is offered.
    pub(crate) descending: Vec<u8>,
    /// The packet that a link machine hands up.
    pub(crate) ascending: Vec<u8>,
    /// The frame that a link machine sends.
    pub(crate) frame: Vec<u8>,
}

/// A packet for this node that passed the checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketArrival {
    pub(crate) stack: StackId,
    pub(crate) header: NetworkHeader,
}

/// The far end of a way.
#[derive(Clone, Copy, Debug)]
struct Far {
    node: NodeId,
    /// The way that begins there.
    end: WayId,
    /// The link layer there.
    link: Option<LinkId>,
    frame_check: bool,
    framing: ByteCount,
}

/// More hops than a path may have, so that only a damaged header can run out of them.
const HOPS_LEFT: u8 = 255;

impl Network {
    pub(crate) fn new(nodes: Vec<NetworkNode>, ways: Vec<Way>, links: Vec<LinkEnd>) -> Self {
        Self {
            queue: EventQueue::default(),
            pool: Pool::default(),
            nodes,
            ways,
            links,
            meter: WireMeter::default(),
            changes: VecDeque::new(),
            news: VecDeque::new(),
            sent: BTreeMap::new(),
            tap: None,
            log: None,
            flow_log: None,
            connected: Vec::new(),
            scratch: vec![0; NETWORK_HEADER_BYTES],
            descending: Vec::new(),
            ascending: Vec::new(),
            frame: Vec::new(),
        }
    }

    /// The buffer for the next datagram.
    pub(crate) const fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.scratch
    }

    /// Puts a network header before the octets that a machine wrote, and sends the packet on its way.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        node: NodeId,
        protocol: NetworkProtocol,
        transmit: Transmit,
        tag: u64,
    ) {
        let destination = address_of(transmit.path);
        let header = NetworkHeader {
            // Answers come back by the path on which this leaves.
            source: with_alias_of(self.nodes[node.0].address, destination),
            destination,
            protocol,
            priority: transmit.priority,
            ecn: transmit.ecn,
            hops_left: HOPS_LEFT,
        };
        let octets = header
            .to_octets(transmit.len)
            .expect("a scenario's mtu keeps packets below 65,536 octets");
        self.scratch[..NETWORK_HEADER_BYTES].copy_from_slice(&octets);
        let sent = self.sent.entry((node.0, protocol.0)).or_default();
        *sent += (NETWORK_HEADER_BYTES + transmit.len) as u64;
        let packet = self.pool.admit(&mut self.scratch, transmit.kind, tag);
        self.scratch.resize(NETWORK_HEADER_BYTES, 0);
        self.forward(now, node, header.destination, packet);
    }

    /// The octets that the machine of `protocol` at `node` has sent, headers included.
    pub(crate) fn sent(&self, node: NodeId, protocol: NetworkProtocol) -> u64 {
        let sent = self.sent.get(&(node.0, protocol.0));
        sent.copied().unwrap_or_default()
    }

    /// Puts the next change on the calendar.
    pub(crate) fn await_change(&mut self) {
        if let Some(next) = self.changes.front() {
            self.queue.push(next.at, NetworkEvent::Change);
        }
    }

    /// Puts the next words of radios on the calendar.
    pub(crate) fn await_news(&mut self) {
        if let Some(next) = self.news.front() {
            self.queue.push(next.at, NetworkEvent::News);
        }
    }

    /// The ways from a node to an address, in order.
    pub(crate) fn route(&self, from: NodeId, to: NodeAddress) -> Vec<WayId> {
        let mut route = Vec::new();
        let mut at = from;
        while route.len() < self.nodes.len()
            && let Some(way) = self.nodes[at.0].way_towards(to)
        {
            route.push(way);
            at = self.ways[way.0].to;
            if self.nodes[at.0].address == to {
                break;
            }
        }
        route
    }

    /// Makes the changes that are due.
    pub(crate) fn make_changes(&mut self, now: Instant) {
        while self.changes.front().is_some_and(|change| change.at <= now)
            && let Some(change) = self.changes.pop_front()
        {
            let channel = &mut self.ways[change.way.0].channel;
            channel
                .change(&change.config, &change.rng)
                .expect("reading a plan checks every channel's settings");
        }
    }

    /// Hands a packet to the way towards `destination`.
    fn forward(&mut self, now: Instant, node: NodeId, to: NodeAddress, packet: PacketId) {
        match self.nodes[node.0].way_towards(to) {
            Some(way) => self.take_way(now, way, packet),
            None => self.lose(packet, WireLoss::Address),
        }
    }

    fn take_way(&mut self, now: Instant, way: WayId, packet: PacketId) {
        match self.ways[way.0].link {
            Some(link) => self.enqueue(now, link, packet),
            None => self.cross(now, way, packet),
        }
    }

    /// The first trace that came to its end before the packets did.
    pub(crate) fn trace_used_up(&self) -> Option<UsedUp> {
        self.ways.iter().find_map(|way| way.channel.trace_used_up())
    }

    /// Lets a channel decide about a packet or a frame.
    pub(crate) fn cross(&mut self, now: Instant, way: WayId, packet: PacketId) {
        let Way {
            channel,
            measured,
            framing,
            standing,
            meter,
            ..
        } = &mut self.ways[way.0];
        let content = self.pool.packet(packet);
        let len = ByteCount::of(&content.octets) + *framing;
        let is_managed = channel.config().aqm.is_some();
        let capable = is_managed && may_be_marked(&content.octets);
        let verdict = channel.admit_capable(now, len, capable);
        self.meter.packet_hops += 1;
        let refused =
            matches!(verdict, ChannelVerdict::Drop(reason) if reason.is_before_the_link());
        if *measured && !refused {
            self.meter.octets.add(content.kind, len.0);
            self.meter.packets += 1;
            meter.add(now, len.0);
        }
        if verdict == ChannelVerdict::Waits {
            standing.push_back(packet);
            self.depart(now, way);
        } else {
            self.settle(now, way, packet, verdict);
        }
    }

    /// Sends on the packets that have left the buffer of a way's terminal, and puts the next look at the
    /// buffer on the calendar.
    pub(crate) fn depart(&mut self, now: Instant, id: WayId) {
        while let Some(verdict) = self.ways[id.0].channel.poll_departure(now) {
            if let Some(packet) = self.ways[id.0].standing.pop_front() {
                self.settle(now, id, packet, verdict);
            }
        }
        let way = &mut self.ways[id.0];
        way.wake = way.wake.filter(|&at| at > now);
        if let Some(at) = way.channel.wake_at()
            && way.wake.is_none_or(|known| at < known)
        {
            way.wake = Some(at);
            self.queue.push(at, NetworkEvent::Depart(id));
        }
    }

    /// Carries out a channel's verdict on a packet.
    fn settle(&mut self, now: Instant, id: WayId, packet: PacketId, verdict: ChannelVerdict) {
        if let Some(log) = &mut self.log
            && let Some(way) = self.ways.get_mut(id.0).filter(|way| way.measured)
        {
            let content = self.pool.packet(packet);
            let len = ByteCount::of(&content.octets) + way.framing;
            let queue = way.channel.queue(now);
            let packet = (len, content.kind);
            log.note((now, id), packet, queue, (&verdict, way.frame_check));
        }
        let way = &self.ways[id.0];
        if let Some(log) = &mut self.flow_log {
            let content = self.pool.packet(packet);
            let handed = (&content.octets[..], content.kind, way.link.is_some());
            log.note((now, id), handed, (&verdict, way.frame_check));
        }
        let far = Far {
            node: way.to,
            end: id.opposite(),
            link: way.link.map(|link| self.links[link.0].peer),
            frame_check: way.frame_check,
            framing: way.framing,
        };
        let content = self.pool.packet_mut(packet);
        content.short_term_rate = way.channel.short_term_rate();
        let wants_mark = matches!(&verdict, ChannelVerdict::Deliver(delivery) if delivery.marked);
        let is_marked = wants_mark && mark_congested(&mut content.octets);
        self.meter.marked += u64::from(is_marked);
        if let Some(tap) = &mut self.tap {
            let comment = verdict_of(&verdict, way.frame_check, is_marked);
            tap.sent(now, id, &content.octets, &comment);
        }
        match verdict {
            ChannelVerdict::Waits => {}
            ChannelVerdict::Deliver(delivery) => {
                if let Some((at, flips)) = delivery.duplicate {
                    let copy = self.pool.duplicate(packet);
                    self.meter.duplicated += 1;
                    self.note_came(far, copy, &flips, true);
                    self.arrive(at, far, copy, &flips);
                }
                self.note_came(far, packet, &delivery.flips, false);
                self.arrive(delivery.at, far, packet, &delivery.flips);
            }
            ChannelVerdict::Drop(reason) => self.lose_on(id, packet, cause(reason)),
        }
    }

    /// Notes how a packet will arrive, for the tap at its arrival.
    fn note_came(&mut self, far: Far, packet: PacketId, flips: &Flips, is_copy: bool) {
        if self.tap.is_some() {
            let (end, bits) = (far.end, flips.len());
            self.pool.packet_mut(packet).came = Some(Came::Wire { end, bits, is_copy });
        }
    }

    fn arrive(&mut self, at: Instant, far: Far, packet: PacketId, flips: &Flips) {
        if !flips.is_empty() {
            if far.frame_check {
                self.lose_on(far.end.opposite(), packet, WireLoss::FrameCheck);
                return;
            }
            self.meter.damaged += 1;
            self.meter.inverted_bits += flips.len() as u64;
            let _damage = apply_flips(&mut self.pool.packet_mut(packet).octets, flips, far.framing);
        }
        let event = match far.link {
            Some(link) => NetworkEvent::Frame {
                link,
                frame: packet,
            },
            None => NetworkEvent::Arrive {
                node: far.node,
                packet,
            },
        };
        self.queue.push(at, event);
    }

    /// Loses a packet on a way, or before it.
    pub(crate) fn lose_on(&mut self, way: WayId, packet: PacketId, cause: WireLoss) {
        self.ways[way.0].meter.lost.add(cause);
        self.lose(packet, cause);
    }

    fn lose(&mut self, packet: PacketId, cause: WireLoss) {
        self.meter.lost.add(cause);
        self.pool.release(packet);
    }

    /// Checks an arrived packet. One for others is forwarded, one for this node is returned.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        node: NodeId,
        packet: PacketId,
    ) -> Option<PacketArrival> {
        let octets = &self.pool.packet(packet).octets;
        let here = &self.nodes[node.0];
        let cause = match NetworkHeader::parse(octets) {
            Ok(parsed) if here.owns(parsed.header.destination) => {
                let header = parsed.header;
                let listeners = here.listeners(header.destination);
                let stack = match header.protocol {
                    NetworkProtocol::UDP => listeners.datagram,
                    NetworkProtocol::AEROTP => listeners.aerotp,
                    NetworkProtocol::TCP => listeners.tcp,
                    NetworkProtocol::LT_TCP => listeners.lt_tcp,
                    OWN_PROTOCOL => listeners.own,
                    _ => None,
                };
                match stack {
                    Some(stack) => {
                        self.show_arrival(now, packet, None);
                        return Some(PacketArrival { stack, header });
                    }
                    None => WireLoss::Address,
                }
            }
            Ok(parsed) => {
                let goes_on = parsed.header.hops_left > 1;
                let way = here.way_towards(parsed.header.destination);
                if let Some(way) = way.filter(|_| goes_on) {
                    self.show_arrival(now, packet, None);
                    let counted = count_hop(&mut self.pool.packet_mut(packet).octets);
                    debug_assert_eq!(counted, Ok(()));
                    self.take_way(now, way, packet);
                    return None;
                }
                WireLoss::Address
            }
            Err(NetworkReject::Checksum) => WireLoss::NetworkHeader,
            // The checksum held, so the damage cancelled out in it.
            Err(_) => WireLoss::Address,
        };
        self.show_arrival(now, packet, Some(cause));
        self.lose(packet, cause);
        None
    }

    /// Shows an arrival to the tap at its end, if packets are captured.
    fn show_arrival(&mut self, now: Instant, packet: PacketId, cause: Option<WireLoss>) {
        if let Some(tap) = &mut self.tap {
            let PooledPacket { octets, came, .. } = self.pool.packet(packet);
            if let Some(came) = *came {
                tap.arrived(now, came, octets, cause);
            }
        }
    }

    /// The transport's octets of a packet that [`Network::receive`] returned.
    pub(crate) fn payload(&self, packet: PacketId) -> &[u8] {
        NetworkHeader::parse(&self.pool.packet(packet).octets).map_or(&[], |parsed| parsed.payload)
    }
}

/// Machines know nodes as paths; the number is the address.
pub(crate) const fn address_of(path: PathId) -> NodeAddress {
    NodeAddress(path.0)
}

/// The reverse of [`address_of`].
pub(crate) const fn path_of(address: NodeAddress) -> PathId {
    PathId(address.0)
}
