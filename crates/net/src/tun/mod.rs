//! TUN and TAP devices and their namespaces: IP packets, or Ethernet frames, of any program, as octets.
//!
//! A [`TunPort`] is one device, made inside its network namespace, with addresses and routes. Packets
//! that the host sends into it can be read here, and the host receives packets that are written here. Devices
//! and namespaces that were made are gone once their value is dropped, however the run ends. If
//! the process is killed, the kernel removes the devices, and the namespaces stay.
//!
//! Devices come from `tun-rs`, without offloads: a packet is never longer than the MTU, its
//! checksums are complete, and those of written packets are verified by the kernel. Namespaces,
//! addresses and routes come from iproute2's `ip`.
//!
//! Sources: Linux `Documentation/networking/tuntap.rst`, `network_namespaces(7)`, ip-netns(8).

mod address;
mod error;
mod ip_command;
mod namespace;
mod owner;
mod port;
mod privilege;

pub use address::{AddressError, InterfaceAddress};
pub use error::TunError;
pub use port::{DeviceLayer, TunEnd, TunPort};

/// Whether the kernel has a route to exactly this network that keeps it from taking another without a metric.
pub(crate) fn has_route(network: InterfaceAddress) -> bool {
    ip_command::route_exists(network)
}

/// Whether this process may make devices, before it tries.
///
/// # Errors
/// [`TunError::Privilege`] or [`TunError::NoDriver`].
pub(crate) fn may_make_devices() -> Result<(), TunError> {
    privilege::check(false)
}
