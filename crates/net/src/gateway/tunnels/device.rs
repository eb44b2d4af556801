//! The device of one tunnel, and which packets of the peer it lets in.

use super::far_end::{FarEnd, TunnelChange};
use super::greeting::{GREETING_MARK, TunnelGreeting};
use crate::gateway::GatewayError;
use crate::gateway::config::TunnelSettings;
use crate::gateway::flows::Answers;
use crate::gateway::sockets::listed;
use crate::tun::{InterfaceAddress, TunPort};
use fulmar_proto::splice::Destination;
use fulmar_proto::tunnel::InnerPacket;
use fulmar_proto::units::Instant;
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
    pub(super) sent: u64,
    /// Packets of the peer for this host.
    pub(super) received: u64,
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
    /// Whether its TCP is split here: `no`, `yes`, or `lost` (`nft` has ended, and the rules with it: TCP goes through as it is).
    pub accelerate: &'static str,
    /// The addresses and routes that its device has lost, in words; empty if it has all.
    pub lost: String,
    /// Packets of this host for the peer.
    pub sent_packets: u64,
    /// Packets of the peer for this host.
    pub received_packets: u64,
    /// Packets that did not cross the device, by cause.
    pub dropped_packets: BTreeMap<&'static str, u64>,
}

/// One device.
#[derive(Debug)]
pub(super) struct Device {
    port: TunPort,
    name: String,
    peer: String,
    interface: String,
    counters: Cell<TunnelCounters>,
    far_end: FarEnd,
    /// The kernel's word where the device was removed, until that is told.
    removed: RefCell<Option<String>>,
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
        Ok(Rc::new(Self {
            port,
            name: tunnel.name.to_string(),
            peer: peer.to_owned(),
            interface: tunnel.device.clone(),
            counters: Cell::default(),
            far_end: FarEnd::new(TunnelGreeting::of(tunnel)),
            removed: RefCell::default(),
        }))
    }

    /// The message that tells the other end of this one.
    pub(super) fn greeting(&self) -> Option<Vec<u8>> {
        self.far_end.greeting()
    }

    /// The peer has no tunnel of this name.
    pub(super) fn is_missing_there(&self) {
        self.far_end.is_missing();
    }

    /// The report on the tunnel of these settings.
    pub(super) fn report(&self, settings: &TunnelSettings, peer: &str) -> TunnelReport {
        let counters = self.counters.get();
        TunnelReport {
            name: settings.name.to_string(),
            peer: peer.to_owned(),
            device: settings.device.clone(),
            far_end: self.far_end.word().name(),
            accelerate: "no",
            lost: String::new(),
            sent_packets: counters.sent,
            received_packets: counters.received,
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
        self.removed.replace(Some(error.to_string()));
    }

    /// The change to tell now, which is logged.
    pub(super) fn take_change(&self, now: Instant) -> Option<TunnelChange> {
        let removed = self.removed.take().map(TunnelChange::DeviceLost);
        let change = removed.or_else(|| self.far_end.take_change(now))?;
        change.log((&self.name, &self.peer, &self.interface));
        Some(change)
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
            if !self.far_end.greets(octets) {
                self.count(|counters| counters.dropped_source += 1);
            }
            return;
        }
        let packet = InnerPacket::parse(octets);
        let may = packet.is_some_and(|packet| self.far_end.may_speak_for(packet.source));
        if !may {
            self.count(|counters| counters.dropped_source += 1);
        } else if self.port.send(octets) {
            self.count(|counters| counters.received += 1);
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
