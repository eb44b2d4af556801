//! Our TCP and the Linux kernel's on the two ends of a lossy link.
//!
//! ```text
//!   Strict<TcpEndpoint> -- IP header -- channel -- TUN device -- kernel sockets in a namespace
//!   10.77.0.1, fd77::1                                           10.77.0.2, fd77::2
//! ```
//!
//! The machine runs on the real clock, on the test's thread; the kernel's sockets are used from
//! others. Loss is drawn from a fixed seed in the order in which packets come; that order, and so
//! which segments are lost, depends on timing.

mod host;
mod ip;
mod kernel;
mod seen;

pub(crate) use host::{Flow, Host, OUR_PORT};
pub(crate) use kernel::{Features, Kernel, accept, exchange, read_all, write_all};

use fulmar_baseline::wire::tcp::AddressPair;
use fulmar_channel::{BitErrors, ChannelConfig, LossModel};
use fulmar_net::tun::{TunEnd, TunPort};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, PacketErrorRate};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) const MTU: u16 = 1500;
/// The delay of one way. It makes windows matter.
const DELAY: Duration = Duration::from_millis(2);
const OURS: (Ipv4Addr, Ipv6Addr) = (
    Ipv4Addr::new(10, 77, 0, 1),
    Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1),
);
const KERNELS: (Ipv4Addr, Ipv6Addr) = (
    Ipv4Addr::new(10, 77, 0, 2),
    Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2),
);

/// Whether a lab can be had. Says in one line what is missing, and fails instead where tests must
/// not be skipped (`CI=true`).
pub(crate) fn ready() -> bool {
    let root = rustix::process::geteuid().is_root();
    let places = std::env::var_os("PATH").unwrap_or_default();
    let ip = std::env::split_paths(&places).any(|place| place.join("ip").is_file());
    let missing = if !root || !Path::new("/dev/net/tun").exists() {
        "root and /dev/net/tun"
    } else if ip {
        return true;
    } else {
        "ip: run scripts/setup-debian"
    };
    let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!ci, "needs {missing}, and CI=true forbids to skip");
    // Not eprintln!, which the test harness keeps to itself.
    drop(writeln!(std::io::stderr(), "skipped: needs {missing}"));
    false
}

/// The network layer below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

/// A link that loses this share of packets in each direction.
pub(crate) fn losing(share: f64) -> ChannelConfig {
    let loss = if share > 0.0 {
        LossModel::Bernoulli(PacketErrorRate::new(share).expect("a share"))
    } else {
        LossModel::None
    };
    ChannelConfig {
        delay: DELAY,
        loss,
        ..ChannelConfig::default()
    }
}

/// A link that inverts bits and loses nothing.
pub(crate) fn damaging(bits: BitErrors) -> ChannelConfig {
    ChannelConfig {
        bits,
        ..losing(0.0)
    }
}

/// A new lab: our host, and the kernel with all its features.
pub(crate) fn lab(family: Family, link: &ChannelConfig, seed: u64) -> (Host, Kernel) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let namespace = format!("fulmar-{}-{count}-tcp", std::process::id());
    let end = TunEnd {
        routes: Vec::new(),
        namespace: Some(namespace.clone()),
        device: "fulmar0".to_owned(),
        addresses: vec![
            format!("{}/24", KERNELS.0).parse().expect("an address"),
            format!("{}/64", KERNELS.1).parse().expect("an address"),
        ],
    };
    let port = TunPort::open(&end, MTU).expect("root may make it");
    let (addresses, ours, kernels) = match family {
        Family::V4 => (
            AddressPair::V4 {
                source: OURS.0.octets(),
                destination: KERNELS.0.octets(),
            },
            IpAddr::V4(OURS.0),
            IpAddr::V4(KERNELS.0),
        ),
        Family::V6 => (
            AddressPair::V6 {
                source: OURS.1.octets(),
                destination: KERNELS.1.octets(),
            },
            IpAddr::V6(OURS.1),
            IpAddr::V6(KERNELS.1),
        ),
    };
    let kernel = Kernel {
        namespace,
        address: kernels,
        ours,
    };
    kernel.set_features(Features::ALL);
    let rng = Rng::from_seed(seed);
    (Host::new(port, addresses, link, &rng), kernel)
}

/// Octets of which no two pieces look alike.
pub(crate) fn octets(name: &str, len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    Rng::from_seed(1).child(name).fill(&mut octets);
    octets
}

/// Fails with the first difference, without the octets.
#[track_caller]
pub(crate) fn assert_same(what: &str, came: &[u8], sent: &[u8]) {
    let differs = came.iter().zip(sent).position(|(came, sent)| came != sent);
    assert_eq!(differs, None, "{what}: the octet that first differs");
    assert_eq!(came.len(), sent.len(), "{what}: octets");
}
