//! The errors of TUN and TAP devices.

use super::address::InterfaceAddress;
use std::io;

/// The reason why a TUN device, its namespace or its addresses could not be had.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// The process lacks this privilege.
    #[error("TUN and TAP devices and network namespaces need {0}: run it as root")]
    Privilege(&'static str),
    /// The kernel has no such devices, or the container has none.
    #[error("there is no /dev/net/tun: load the module (modprobe tun) or give it to the container")]
    NoDriver,
    /// An interface has that name already.
    #[error("there is an interface {device} in {place} already: name another")]
    Taken {
        /// The name.
        device: String,
        /// The namespace, in words.
        place: String,
    },
    /// A name that no interface or namespace can have.
    #[error(
        "{name:?} cannot name {what}: letters, digits, '.', '_' and '-' only, at most {longest}"
    )]
    Name {
        /// The thing that was to be named.
        what: &'static str,
        /// The name.
        name: String,
        /// The longest name in octets.
        longest: usize,
    },
    /// The kernel refuses the device.
    #[error("cannot make the TUN or TAP device {device}")]
    Device {
        /// Its name.
        device: String,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The namespace cannot be entered.
    #[error("cannot enter the network namespace {name}")]
    Namespace {
        /// Its name.
        name: String,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// iproute2 is missing.
    #[error("cannot run ip: install iproute2")]
    NoIp(#[source] io::Error),
    /// There is a route to that network already.
    #[error(
        "there is a route to {network} already (`ip route show exact {network}` has it): remove it, or leave {network} \
         out of the routes for {device}"
    )]
    RouteTaken {
        /// The network.
        network: InterfaceAddress,
        /// The device that was to have the route.
        device: String,
    },
    /// iproute2 refuses.
    #[error("'ip {arguments}' says: {said}")]
    Ip {
        /// The command.
        arguments: String,
        /// The command's error message.
        said: String,
    },
}
