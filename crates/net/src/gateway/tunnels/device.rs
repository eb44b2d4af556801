//! The device of one tunnel, and which packets of the peer it lets in.

use crate::gateway::GatewayError;
use crate::gateway::config::TunnelSettings;
use crate::gateway::flows::Answers;
use crate::gateway::sockets::listed;
use crate::tun::{InterfaceAddress, TunPort};
use fulmar_proto::splice::Destination;
use fulmar_proto::tunnel::InnerPacket;
use serde::Serialize;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
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
    /// Packets of this host for the peer.
    pub sent_packets: u64,
    /// Packets of the peer for this host.
    pub received_packets: u64,
    /// Packets that did not cross the device, by cause.
    pub dropped_packets: BTreeMap<&'static str, u64>,
}

/// The hosts for which the peer may speak: those of the tunnel's networks, without this one.
#[derive(Debug)]
struct Speakers {
    networks: Vec<InterfaceAddress>,
    own: Vec<IpAddr>,
}

impl Speakers {
    fn new(addresses: &[InterfaceAddress], routes: &[InterfaceAddress]) -> Self {
        Self {
            networks: addresses.iter().chain(routes).copied().collect(),
            own: addresses.iter().map(|address| address.ip()).collect(),
        }
    }

    fn include(&self, source: IpAddr) -> bool {
        let mut networks = self.networks.iter();
        !self.own.contains(&source) && networks.any(|network| network.has(source))
    }
}

/// One device.
#[derive(Debug)]
pub(super) struct Device {
    port: TunPort,
    speakers: Speakers,
    counters: Cell<TunnelCounters>,
}

impl Device {
    /// Makes the device of `tunnel`, with its addresses and routes.
    pub(super) fn open(tunnel: &TunnelSettings) -> Result<Rc<Self>, GatewayError> {
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
        Ok(Rc::new(Self {
            port,
            speakers: Speakers::new(&tunnel.addresses, &tunnel.routes),
            counters: Cell::default(),
        }))
    }

    /// The report on the tunnel of these settings.
    pub(super) fn report(&self, settings: &TunnelSettings, peer: &str) -> TunnelReport {
        let counters = self.counters.get();
        TunnelReport {
            name: settings.name.to_string(),
            peer: peer.to_owned(),
            device: settings.device.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_speaks_for_hosts_of_the_tunnel_s_networks_and_never_for_this_one() {
        let networks = |texts: &[&str]| -> Vec<InterfaceAddress> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        let addresses = networks(&["10.88.0.1/24", "fd88::1/64"]);
        let speakers = Speakers::new(&addresses, &networks(&["192.168.7.0/24"]));
        for (source, may) in [
            ("10.88.0.2", true),
            ("192.168.7.30", true),
            ("fd88::2", true),
            ("10.88.0.1", false),
            ("fd88::1", false),
            ("192.168.8.30", false),
            ("8.8.8.8", false),
        ] {
            assert_eq!(speakers.include(source.parse().unwrap()), may, "{source}");
        }
    }
}
