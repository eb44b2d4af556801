//! The device of one tunnel, and which packets of the peer it lets in.

use super::greeting::{GREETING_MARK, Listed, Speakers, TunnelGreeting};
use crate::gateway::GatewayError;
use crate::gateway::config::TunnelSettings;
use crate::gateway::flows::Answers;
use crate::gateway::sockets::listed;
use crate::tun::{InterfaceAddress, TunPort};
use fulmar_proto::splice::Destination;
use fulmar_proto::tunnel::InnerPacket;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::{Rc, Weak};

/// Packets that crossed a device, and those that did not, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TunnelCounters {
    /// Packets of this host for the peer.
    pub(super) packets_in: u64,
    /// Packets of the peer for this host.
    pub(super) packets_out: u64,
    /// Octets of this host that are no whole IP packet.
    pub(super) dropped_not_ip: u64,
    /// Packets of this host without a flow: there was no place for one, or the peer has no such tunnel.
    pub(super) dropped_no_flow: u64,
    /// Packets of the peer that are no whole IP packet, or whose source is in none of the tunnel's networks.
    pub(super) dropped_source: u64,
    /// Packets of the peer that this host's kernel did not take.
    pub(super) dropped_kernel: u64,
}

/// One tunnel.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TunnelReport {
    /// Its name, the same at both gateways.
    pub name: String,
    /// The peer's name.
    pub peer: String,
    /// Its device here.
    pub device: String,
    /// The word of the other end about itself: `unheard`, `agrees`, `differs` (it drops packets of addresses here, or the
    /// other way round), or `missing` (the peer has no tunnel of this name).
    pub far_end: &'static str,
    /// Packets of this host for the peer.
    pub sent_packets: u64,
    /// Packets of the peer for this host.
    pub received_packets: u64,
    /// Packets that did not cross the device, by cause.
    pub dropped_packets: BTreeMap<&'static str, u64>,
}

/// The word of the tunnel's other end about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FarEnd {
    /// Nothing came from it.
    #[default]
    Unheard,
    /// Both ends take each other's packets.
    Agrees,
    /// Packets of one end's addresses are dropped at the other.
    Differs,
    /// The peer has no tunnel of this name.
    Missing,
}

/// News of a tunnel, under the name of the log's line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum TunnelChange {
    /// Both ends take each other's packets; their addresses in words.
    Up(String),
    /// Packets of one end are dropped at the other, whose in words.
    NetworksDiffer(String),
    /// The peer has no tunnel of this name.
    MissingThere,
    /// The device was removed; the kernel's word.
    DeviceLost(String),
}

impl FarEnd {
    const fn name(self) -> &'static str {
        match self {
            Self::Unheard => "unheard",
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Missing => "missing",
        }
    }
}

/// One device.
#[derive(Debug)]
pub(super) struct Device {
    port: TunPort,
    name: String,
    peer: String,
    interface: String,
    ours: TunnelGreeting,
    speakers: Speakers,
    counters: Cell<TunnelCounters>,
    far_end: Cell<FarEnd>,
    /// The last change that nobody has taken.
    change: RefCell<Option<TunnelChange>>,
}

impl Device {
    /// Makes the device of `tunnel` to `peer`, with its addresses and routes.
    pub(super) fn open(tunnel: &TunnelSettings, peer: &str) -> Result<Rc<Self>, GatewayError> {
        let own = listed();
        let taken = |address: &&InterfaceAddress| own.contains(&address.ip());
        if let Some(address) = tunnel.addresses.iter().find(taken) {
            return Err(GatewayError::TunnelAddress {
                address: address.ip(),
                device: tunnel.device.clone(),
            });
        }
        let port =
            TunPort::open(&tunnel.end(), tunnel.mtu).map_err(|source| GatewayError::Tunnel {
                tunnel: tunnel.name.to_string(),
                source,
            })?;
        let ours = TunnelGreeting::of(tunnel);
        Ok(Rc::new(Self {
            port,
            name: tunnel.name.to_string(),
            peer: peer.to_owned(),
            interface: tunnel.device.clone(),
            speakers: ours.speakers(),
            ours,
            counters: Cell::default(),
            far_end: Cell::default(),
            change: RefCell::default(),
        }))
    }

    /// The message that tells the other end of this one.
    pub(super) fn greeting(&self) -> Option<Vec<u8>> {
        self.ours.encode()
    }

    /// The peer has no tunnel of this name.
    pub(super) fn is_missing_there(&self) {
        if self.far_end.replace(FarEnd::Missing) != FarEnd::Missing {
            self.change.replace(Some(TunnelChange::MissingThere));
            let (tunnel, peer) = (&self.name, &self.peer);
            tracing::warn!(
                event = "tunnel_missing_there",
                tunnel,
                peer,
                cure = "write the same name in the [[tunnel]] of both ends"
            );
        }
    }

    /// Compares what the other end says of itself with this one.
    fn greeted(&self, message: &[u8]) {
        let Some(theirs) = TunnelGreeting::decode(message) else {
            return self.count(|counters| counters.dropped_source += 1);
        };
        let (tunnel, peer, device) = (&self.name, &self.peer, &self.interface);
        let dropped_here = theirs.dropped_by(&self.speakers);
        let dropped_there = self.ours.dropped_by(&theirs.speakers());
        let there = Listed(&theirs.addresses);
        if dropped_here.is_empty() && dropped_there.is_empty() {
            self.far_end.set(FarEnd::Agrees);
            let here = Listed(&self.ours.addresses);
            let why = format!("{here} here and {there} there take each other's packets");
            self.change.replace(Some(TunnelChange::Up(why)));
            tracing::info!(event = "tunnel_up", tunnel, peer, device, %here, %there);
        } else {
            self.far_end.set(FarEnd::Differs);
            let [here, far] = [&dropped_here, &dropped_there].map(|all| Listed(all));
            let why = format!("packets from [{here}] are dropped here, those from [{far}] there");
            self.change.replace(Some(TunnelChange::NetworksDiffer(why)));
            tracing::warn!(
                event = "tunnel_networks_differ",
                tunnel, peer, device,
                dropped_here = %Listed(&dropped_here),
                dropped_there = %Listed(&dropped_there),
                %there,
                cure = "give both devices addresses of the same networks, or name the other's in routes"
            );
        }
    }

    /// The report on the tunnel of these settings.
    pub(super) fn report(&self, settings: &TunnelSettings, peer: &str) -> TunnelReport {
        let counters = self.counters.get();
        TunnelReport {
            name: settings.name.to_string(),
            peer: peer.to_owned(),
            device: settings.device.clone(),
            far_end: self.far_end.get().name(),
            sent_packets: counters.packets_in,
            received_packets: counters.packets_out,
            dropped_packets: BTreeMap::from([
                ("no_ip", counters.dropped_not_ip),
                ("no_flow", counters.dropped_no_flow),
                ("source", counters.dropped_source),
                ("kernel", counters.dropped_kernel),
            ]),
        }
    }

    /// Notes that the kernel has no such device any more.
    pub(super) fn is_lost(&self, error: &io::Error) {
        let (device, cure) = (&self.interface, "restart the gateway");
        tracing::error!(event = "tunnel_device_lost", device, %error, cure);
        let change = TunnelChange::DeviceLost(error.to_string());
        self.change.replace(Some(change));
    }

    /// The last change since this was asked.
    pub(super) fn take_change(&self) -> Option<TunnelChange> {
        self.change.take()
    }

    pub(super) fn count(&self, count: impl FnOnce(&mut TunnelCounters)) {
        let mut counters = self.counters.get();
        count(&mut counters);
        self.counters.set(counters);
    }

    /// The next packet of this host, if there is one.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.port.receive(buffer)
    }

    /// Hands a packet of the peer to this host, if the peer may speak for its source.
    fn deliver(&self, octets: &[u8]) {
        if octets.first() == Some(&GREETING_MARK) {
            return self.greeted(octets);
        }
        let packet = InnerPacket::parse(octets);
        let may = packet.is_some_and(|packet| self.speakers.include(packet.source));
        if !may {
            self.count(|counters| counters.dropped_source += 1);
        } else if self.port.send(octets) {
            self.count(|counters| counters.packets_out += 1);
        } else {
            self.count(|counters| counters.dropped_kernel += 1);
        }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.port.as_fd()
    }
}

/// The way out of a flow into a device, for as long as the device is there.
#[derive(Debug)]
pub(super) struct WayOut(pub(super) Weak<Device>);

impl Answers for WayOut {
    fn answer(&self, _source: &Destination, message: &[u8]) {
        if let Some(device) = self.0.upgrade() {
            device.deliver(message);
        }
    }
}
