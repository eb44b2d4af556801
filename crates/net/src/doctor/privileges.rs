//! The rights of the process beyond sockets: TUN devices, transparent entries.

use super::finding::Finding;
use crate::tun;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::path::Path;

const TUN: &str = "TUN devices";
const TRANSPARENT: &str = "transparent entries";

/// The findings on devices. Without a configuration it is not known whether they are wanted, so a lack is not bad.
pub(super) fn devices() -> Vec<Finding> {
    let tun = match tun::may_make_devices() {
        Ok(()) if on_path("ip") => {
            Finding::good(TUN, "allowed, for [[tunnel]] and fulmar emulate --tun")
        }
        Ok(()) => Finding::poor(TUN, "there is no ip", "install iproute2"),
        Err(error) => Finding::poor(
            TUN,
            "not allowed; only [[tunnel]] and emulate --tun need them",
            error.to_string(),
        ),
    };
    let transparent = match transparent_socket() {
        Ok(()) => Finding::good(TRANSPARENT, "allowed"),
        Err((found, remedy)) => Finding::poor(
            TRANSPARENT,
            format!("{found}; only [[transparent]] needs them"),
            remedy,
        ),
    };
    vec![tun, transparent]
}

/// The obstacle between this process and `[[transparent]]`: what was found, and the remedy.
pub(super) fn transparent_socket() -> Result<(), (String, &'static str)> {
    let tried = || -> io::Result<()> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_ip_transparent_v4(true)
    };
    if let Err(error) = tried() {
        let remedy = "run it as root, or give it CAP_NET_ADMIN (AmbientCapabilities=CAP_NET_ADMIN)";
        return Err((error.to_string(), remedy));
    }
    if !on_path("nft") {
        return Err(("there is no nft".to_owned(), "install nftables"));
    }
    Ok(())
}

/// The obstacle between this process and the device of a `[[tunnel]]`: what was found, and the remedy.
pub(super) fn tunnel_device() -> Result<(), (String, String)> {
    if let Err(error) = tun::may_make_devices() {
        return Err(("not allowed".to_owned(), error.to_string()));
    }
    if !on_path("ip") {
        return Err(("there is no ip".to_owned(), "install iproute2".to_owned()));
    }
    Ok(())
}

pub(super) fn on_path(program: &str) -> bool {
    // Debian's place for it is not on every user's path.
    let places = [
        "/usr/sbin",
        "/sbin",
        "/usr/bin",
        "/bin",
        "/usr/local/sbin",
        "/usr/local/bin",
    ];
    places
        .iter()
        .any(|place| Path::new(place).join(program).exists())
}
