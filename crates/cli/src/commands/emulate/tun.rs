//! `fulmar emulate --tun` and `--tap`: the link between two devices.

use super::{EmulateArgs, begin_capture, end, failure, ticks};
use crate::commands::connection::wait_precisely;
use crate::commands::link::describe;
use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use crate::signals::Signals;
use anyhow::Context;
use core::str::FromStr;
use fulmar_net::clock::Clock;
use fulmar_net::emulator::{TunLink, TunLinkConfig};
use fulmar_net::priority::real_time;
use fulmar_net::tun::{AddressError, DeviceLayer, InterfaceAddress, TunEnd, TunPort};
use fulmar_net::wait::waker;
use fulmar_proto::units::ByteCount;
use serde::Serialize;

/// The MTU of the devices if none is given: Ethernet's.
const MTU: u16 = 1500;
/// The MTU that every IPv6 link must carry (RFC 8200, section 5).
const IPV6_MTU_MIN: u16 = 1280;

/// An end, and its properties as typed: `a=NAMESPACE/DEVICE:ADDRESS/PREFIX,...`.
#[derive(Clone, Debug)]
pub(super) struct EndArg {
    is_b: bool,
    namespace: Option<String>,
    device: Option<String>,
    addresses: Vec<InterfaceAddress>,
}

impl FromStr for EndArg {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (end, rest) = text
            .split_once('=')
            .filter(|(end, _)| ["a", "b"].contains(end))
            .context("write a=NAMESPACE:ADDRESS/PREFIX,... or b=...")?;
        let (place, addresses) = rest.split_once(':').unwrap_or((rest, ""));
        let (namespace, device) = match place.split_once('/') {
            Some((namespace, device)) => (namespace, Some(device.to_owned())),
            None => (place, None),
        };
        let addresses = addresses
            .split(',')
            .filter(|text| !text.is_empty())
            .map(str::parse)
            .collect::<Result<_, AddressError>>()?;
        Ok(Self {
            is_b: end == "b",
            namespace: Some(namespace.to_owned()).filter(|name| !name.is_empty()),
            device,
            addresses,
        })
    }
}

impl EndArg {
    fn meant(self, default: TunEnd) -> TunEnd {
        TunEnd {
            namespace: self.namespace,
            device: self.device.unwrap_or(default.device),
            addresses: if self.addresses.is_empty() {
                default.addresses
            } else {
                self.addresses
            },
            routes: Vec::new(),
        }
    }
}

#[derive(Serialize)]
struct EndRecord {
    namespace: Option<String>,
    made_namespace: bool,
    device: String,
    addresses: Vec<String>,
}

#[derive(Serialize)]
struct Start {
    schema: &'static str,
    kind: &'static str,
    a: EndRecord,
    b: EndRecord,
    mtu: u16,
    seed: u64,
    up: String,
    down: String,
}

/// The flag that asks for devices of this layer.
const fn flag(layer: DeviceLayer) -> &'static str {
    match layer {
        DeviceLayer::Ip => "--tun",
        DeviceLayer::Ethernet => "--tap",
    }
}

/// Runs the link between devices of this layer until a signal comes.
///
/// # Errors
/// An argument is wrong; devices, namespaces or addresses cannot be had.
pub(super) fn run(
    args: &EmulateArgs,
    layer: DeviceLayer,
    typed: &[EndArg],
) -> Result<Exit, Failure> {
    let link = args.link.link()?;
    let mtu = args.mtu.unwrap_or(MTU);
    let [a, b] = ends(typed, layer, mtu)?;
    let mut config = TunLinkConfig::perfect(a.clone(), b.clone());
    config.layer = layer;
    config.mtu = mtu;
    config.up = link.up;
    config.down = link.down;
    config.changes = link.changes;
    config.seed = args.seed;
    config.damage = args.damage.into();
    config.largest = args.largest();
    config.overhead = args.overhead.unwrap_or(ByteCount::ZERO);
    let (up, down) = (describe(&config.up), describe(&config.down));
    let clock = Clock::start();
    let (waker, wake_up) = waker().context("making a waker").or_exit(Exit::Device)?;
    // Before anything is made, so that a signal during the set-up undoes it.
    let signals = Signals::catch_all(&[&waker])?;
    let mut emulator = TunLink::open(clock, config).map_err(failure)?;
    let ends = format!("{} to {}: up {up}; down {down}", said(&a), said(&b));
    if let Some(tap) = begin_capture(args, clock, &ends, &link.traces)? {
        emulator.set_tap(tap);
    }
    wait_precisely();
    if let Err(error) = real_time() {
        eprintln!("fulmar: packets will be late while the machine is busy: {error}");
    }
    let made = emulator.ends().map(TunPort::made_namespace);
    for namespace in emulator.ends().into_iter().filter_map(TunPort::taken_over) {
        eprintln!("fulmar: took over namespace {namespace}, which a killed run had left");
    }
    if !args.json {
        eprintln!(
            "fulmar: {} <-> {}: up {up}; down {down}; seed {}",
            said(&a),
            said(&b),
            args.seed
        );
        if let (Some(namespace), Some(there)) = (&a.namespace, b.addresses.first()) {
            let there = there.ip();
            eprintln!("fulmar: try: ip netns exec {namespace} ping {there}");
        }
    }
    output::record(&Start {
        schema: emulator.report().schema,
        kind: "start",
        a: record(a, made[0]),
        b: record(b, made[1]),
        mtu,
        seed: args.seed,
        up,
        down,
    })?;
    let mut broken = None;
    let mut watch = ticks(args.stats, &clock, &signals, &mut broken);
    let outcome = emulator.run(&wake_up, &mut watch);
    drop(watch);
    broken.map_or(Ok(()), Err)?;
    end(args, &signals, outcome, emulator.report(), emulator.tap())
}

/// Both ends, with defaults for what was not typed.
fn ends(typed: &[EndArg], layer: DeviceLayer, mtu: u16) -> Result<[TunEnd; 2], Failure> {
    let wrong = |cause: &str| Failure {
        exit: Exit::Usage,
        cause: anyhow::anyhow!("{}: {cause}", flag(layer)),
    };
    let [mut a, mut b] = [
        default_end("fulmar-a", "fulmar0", 1),
        default_end("fulmar-b", "fulmar1", 2),
    ];
    if layer == DeviceLayer::Ethernet {
        // Who wants IP on it says so: otherwise frames of programs alone cross it.
        a.addresses.clear();
        b.addresses.clear();
    }
    let mut said = [false, false];
    for arg in typed {
        let end = usize::from(arg.is_b);
        if core::mem::replace(&mut said[end], true) {
            return Err(wrong("one end is given twice; name a=... and b=..."));
        }
        let place = if arg.is_b { &mut b } else { &mut a };
        *place = arg.clone().meant(place.clone());
    }
    if a.namespace == b.namespace {
        return Err(wrong(
            "both ends in one namespace: the kernel would carry what they say to each other itself; name another for one",
        ));
    }
    let ipv6 = [&a, &b]
        .into_iter()
        .flat_map(|end| &end.addresses)
        .any(|address| address.ip().is_ipv6());
    if ipv6 && mtu < IPV6_MTU_MIN {
        return Err(wrong(
            "IPv6 needs --mtu 1280 or more; name IPv4 addresses only, a=NAMESPACE:10.77.0.1/24",
        ));
    }
    Ok([a, b])
}

fn default_end(namespace: &str, device: &str, host: u8) -> TunEnd {
    let addresses = [
        InterfaceAddress::new([10, 77, 0, host].into(), 24),
        InterfaceAddress::new([0xfd77, 0, 0, 0, 0, 0, 0, host.into()].into(), 64),
    ];
    TunEnd {
        namespace: Some(namespace.to_owned()),
        device: device.to_owned(),
        addresses: addresses.into_iter().flatten().collect(),
        routes: Vec::new(),
    }
}

fn addresses(end: &TunEnd) -> Vec<String> {
    end.addresses.iter().map(ToString::to_string).collect()
}

/// An end in one line, for people.
fn said(end: &TunEnd) -> String {
    let addresses = match addresses(end).join(", ") {
        none if none.is_empty() => none,
        some => format!(" ({some})"),
    };
    format!("{} in {}{addresses}", end.device, end.place())
}

fn record(end: TunEnd, made_namespace: bool) -> EndRecord {
    EndRecord {
        addresses: addresses(&end),
        namespace: end.namespace,
        made_namespace,
        device: end.device,
    }
}
