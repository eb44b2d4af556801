//! One TUN or TAP device in its place: made, addressed, read and written.

use super::address::InterfaceAddress;
use super::error::TunError;
use super::ip_command::{ip, route_exists};
use super::namespace::Namespace;
use super::privilege;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// The longest interface name, without the zero octet behind it (`IFNAMSIZ`).
const DEVICE_NAME_MAX: usize = 15;
/// The longest name of a namespace: a file name's.
const NAMESPACE_NAME_MAX: usize = 255;
/// Packets that the kernel keeps for us while we are not scheduled: 60 ms of full-sized packets at
/// 2 gbit. They are pointers, so this costs memory only when it is used.
const KERNEL_QUEUE_PACKETS: u32 = 10_000;

/// The packets of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceLayer {
    /// IP packets: a TUN device.
    #[default]
    Ip,
    /// Ethernet frames without their frame check: a TAP device.
    Ethernet,
}

/// One end of a link as wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunEnd {
    /// The network namespace it stands in, made if there is none; `None` is the caller's own.
    pub namespace: Option<String>,
    /// The device's name.
    pub device: String,
    /// Its addresses.
    pub addresses: Vec<InterfaceAddress>,
    /// Networks that are reached through it, besides those of its addresses.
    pub routes: Vec<InterfaceAddress>,
}

impl TunEnd {
    /// Its namespace, in words.
    pub fn place(&self) -> String {
        place(self.namespace.as_deref())
    }

    /// # Errors
    /// [`TunError::Name`]: no interface can have that name.
    pub fn check_device(name: &str) -> Result<(), TunError> {
        named("an interface", name, DEVICE_NAME_MAX)
    }

    /// The arguments of `ip` that give a device that was made its addresses and routes, and take it up.
    pub fn commands(&self) -> Vec<String> {
        let name = &self.device;
        // Without link-local addresses and multicast the kernel sends nothing of its own on the link:
        // all packets that cross it, and that the counters count, were sent by programs.
        let quiet = format!("link set dev {name} addrgenmode none multicast off");
        let address = |address: &InterfaceAddress| {
            // A damaged probe for duplicates would disable the address; there is no second neighbour.
            let option = if address.ip().is_ipv6() { " nodad" } else { "" };
            format!("address add {address} dev {name}{option}")
        };
        let route = |route: &InterfaceAddress| self.route_command(route);
        core::iter::once(quiet)
            .chain(self.addresses.iter().map(address))
            .chain(core::iter::once(format!("link set dev {name} up")))
            .chain(self.routes.iter().map(route))
            .collect()
    }

    /// The error of a route that was refused because the kernel has one to that network; `None` if that is not why `command`
    /// failed.
    fn route_taken(&self, command: &str) -> Option<TunError> {
        let refused = |route: &&InterfaceAddress| self.route_command(route) == command;
        let network = *self.routes.iter().find(refused)?;
        route_exists(network).then(|| TunError::RouteTaken {
            network,
            device: self.device.clone(),
        })
    }

    fn route_command(&self, route: &InterfaceAddress) -> String {
        format!("route add {route} dev {}", self.device)
    }

    fn check(&self) -> Result<(), TunError> {
        Self::check_device(&self.device)?;
        self.namespace.as_ref().map_or(Ok(()), |name| {
            named("a network namespace", name, NAMESPACE_NAME_MAX)
        })
    }
}

fn place(namespace: Option<&str>) -> String {
    namespace.map_or_else(
        || "this namespace".to_owned(),
        |name| format!("namespace {name}"),
    )
}

fn named(what: &'static str, name: &str, longest: usize) -> Result<(), TunError> {
    let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let special = name.starts_with(['.', '-']);
    if name.is_empty() || name.len() > longest || special || !name.chars().all(sound) {
        return Err(TunError::Name {
            what,
            name: name.to_owned(),
            longest,
        });
    }
    Ok(())
}

/// A TUN or TAP device in its namespace. The device, and the namespace if it was made, are gone when this
/// is dropped.
pub struct TunPort {
    // In this order: the device leaves the namespace before the namespace is removed.
    device: SyncDevice,
    name: String,
    namespace: Option<Namespace>,
}

impl std::fmt::Debug for TunPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TunPort")
            .field("name", &self.name)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl TunPort {
    /// Makes a TUN device inside its namespace, gives it its addresses and takes it up. A namespace
    /// that is made for it also gets its loopback interface and default routes over the device.
    ///
    /// # Errors
    /// [`TunError`]; nothing that was made is left behind.
    pub fn open(end: &TunEnd, mtu: u16) -> Result<Self, TunError> {
        Self::open_layer(end, DeviceLayer::Ip, mtu)
    }

    /// Makes a device of this layer, as [`TunPort::open`] does. `mtu` counts what is behind an Ethernet header.
    ///
    /// # Errors
    /// [`TunError`]; nothing that was made is left behind.
    pub fn open_layer(end: &TunEnd, layer: DeviceLayer, mtu: u16) -> Result<Self, TunError> {
        end.check()?;
        privilege::check(end.namespace.is_some())?;
        let namespace = end
            .namespace
            .as_deref()
            .map(Namespace::open_or_make)
            .transpose()?;
        let made = namespace.as_ref().is_some_and(Namespace::made);
        let device = match &namespace {
            Some(namespace) => namespace.within(|| open_here(end, (layer, mtu), made))??,
            None => open_here(end, (layer, mtu), made)?,
        };
        Ok(Self {
            device,
            name: end.device.clone(),
            namespace,
        })
    }

    /// Whether its namespace was made for it.
    pub fn made_namespace(&self) -> bool {
        self.namespace.as_ref().is_some_and(Namespace::made)
    }

    /// The namespace that a killed process of ours had left behind, and that this one stands in.
    pub fn taken_over(&self) -> Option<&str> {
        let namespace = self.namespace.as_ref().filter(|n| n.taken_over());
        namespace.map(Namespace::name)
    }

    /// Reads one packet that the host sent; returns its length, or `None` if none waits.
    ///
    /// # Errors
    /// The device is gone.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.device.recv(buffer) {
            Ok(len) => Ok(Some(len)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands one packet to the host. `false` if the kernel refuses it: it is no packet of the device's layer
    /// any more, or the interface is down.
    pub fn send(&self, packet: &[u8]) -> bool {
        self.device.send(packet).is_ok()
    }

    /// Packets that the host sent and the kernel dropped because they were not read in time; `None`
    /// if the kernel does not say.
    pub fn unread(&self) -> Option<u64> {
        let look = || dropped_in_transmit(&interfaces()?, &self.name);
        match &self.namespace {
            Some(namespace) => namespace.within(look).ok()?,
            None => look(),
        }
    }

    /// Its namespace, in words.
    pub fn place(&self) -> String {
        place(self.namespace.as_ref().map(Namespace::name))
    }
}

impl AsFd for TunPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Makes the device in the namespace of the calling thread.
fn open_here(
    end: &TunEnd,
    (layer, mtu): (DeviceLayer, u16),
    own_namespace: bool,
) -> Result<SyncDevice, TunError> {
    let name = &end.device;
    // The kernel would attach us to a device that somebody left behind, whose state is unknown.
    if interfaces().is_some_and(|table| dropped_in_transmit(&table, name).is_some()) {
        return Err(TunError::Taken {
            device: name.clone(),
            place: end.place(),
        });
    }
    let device = DeviceBuilder::new()
        .name(name)
        .layer(match layer {
            DeviceLayer::Ip => Layer::L3,
            DeviceLayer::Ethernet => Layer::L2,
        })
        .mtu(mtu)
        .enable(false)
        .with(|linux| {
            linux.tx_queue_len(KERNEL_QUEUE_PACKETS);
        })
        .build_sync()
        .and_then(|device| device.set_nonblocking(true).map(|()| device))
        .map_err(|source| TunError::Device {
            device: name.clone(),
            source,
        })?;
    for command in end.commands() {
        ip(&command).map_err(|error| end.route_taken(&command).unwrap_or(error))?;
    }
    if own_namespace {
        for family in ["-4", "-6"] {
            let wanted = |address: &&InterfaceAddress| address.ip().is_ipv6() == (family == "-6");
            if end.addresses.iter().any(|address| wanted(&address)) {
                ip(&format!("{family} route add default dev {name}"))?;
            }
        }
    }
    Ok(device)
}

/// The kernel's table of interfaces in the namespace of the calling thread (`proc_net(5)`).
fn interfaces() -> Option<String> {
    std::fs::read_to_string("/proc/thread-self/net/dev").ok()
}

/// The column "drop" of "Transmit" in the row of `device`.
fn dropped_in_transmit(table: &str, device: &str) -> Option<u64> {
    const COLUMN: usize = 11;
    let row = |line: &'_ str| {
        line.trim_start()
            .strip_prefix(device)?
            .strip_prefix(':')
            .map(str::to_owned)
    };
    let row = table.lines().find_map(row)?;
    row.split_whitespace().nth(COLUMN)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_read_by_name_and_column() {
        let table = "Inter-|   Receive                            |  Transmit\n\
             face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop\n\
             \x20 fulmar01: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
             fulmar0: 0 0 0 0 0 0 0 0 9000 6 0 77 0 0 0 0\n";
        assert_eq!(dropped_in_transmit(table, "fulmar0"), Some(77));
        assert_eq!(dropped_in_transmit(table, "fulmar01"), Some(12));
        assert_eq!(dropped_in_transmit(table, "fulmar"), None);
    }

    #[test]
    fn a_name_that_leaves_its_directory_or_is_an_option_is_refused() {
        for name in ["", "..", "a/b", "-n", "a b", "sixteen-octets-x"] {
            assert!(
                named("an interface", name, DEVICE_NAME_MAX).is_err(),
                "{name}"
            );
        }
        assert!(named("an interface", "fulmar0", DEVICE_NAME_MAX).is_ok());
    }
}
