//! Damaged datagrams arrive by the carriers that let them in, and by no other.
//!
//! Method: our own ports over `fulmar emulate --tun`, which inverts bits in whole IP packets, and frames over
//! `fulmar emulate --tap`, which inverts them in whole frames, and over a pair of virtual devices. Needs root; without it each test says that it was skipped.

use crate::processes::until;
use crate::rig::{Namespace, Rig, ready};
use fulmar_net::ethernet::{EthernetPort, Neighbour};
use fulmar_net::udp::{Batch, Carrier, Path, PortConfig, PortProtocol, UdpPort};
use fulmar_net::wait::{Interest, wait};
use fulmar_proto::machine::Ecn;
use fulmar_proto::units::{ByteCount, Duration};
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

/// Datagrams by each carrier: 1.7 s of the link.
const COUNT: usize = 1_000;
const OCTETS: usize = 1_000;
/// The octet that all of a carrier's datagrams consist of, so that every inverted bit shows, and whose it was.
const CHECKED: u8 = 0;
const UNCHECKED: u8 = 0xFF;
/// Far longer than the link holds a packet.
const SILENCE: Duration = Duration::from_secs(2);

/// The datagrams that come until nothing does.
fn arriving<P: AsFd>(
    port: &mut P,
    mut receive: impl FnMut(&mut P, &mut Batch) -> bool,
) -> Vec<Vec<u8>> {
    let mut batch = Batch::default();
    let mut all = Vec::new();
    loop {
        let mut ready = Vec::new();
        let source = [(port.as_fd(), Interest::Readable)];
        wait(&source, Some(SILENCE), &mut ready).expect("the kernel waits");
        if !ready[0].readable {
            return all;
        }
        while receive(port, &mut batch) {
            let datagrams = batch.trains().flat_map(|train| train.datagrams());
            all.extend(datagrams.map(<[u8]>::to_vec));
        }
    }
}

/// Sends datagrams of each octet by its carrier, in turn, from one port on the ground to one in the air; returns those
/// that arrived. `None`: the kernel lacks the protocol.
fn across(
    rig: &Rig,
    (from, to): (IpAddr, IpAddr),
    config: PortConfig,
    carriers: &[(Carrier, u8)],
) -> Option<Vec<Vec<u8>>> {
    let bind = |address| UdpPort::bind(SocketAddr::new(address, 0), config);
    let mut receiver = rig.air.within(|| bind(to)).ok()?;
    let mut sender = rig.ground.within(|| bind(from)).ok()?;
    let remote = receiver.local().expect("it is bound");
    std::thread::scope(|scope| {
        let arrived = scope.spawn(|| {
            arriving(&mut receiver, |port, batch| {
                port.receive(batch).expect("the socket holds")
            })
        });
        for _ in 0..COUNT {
            for (carrier, octet) in carriers {
                let longer = sender.buffer().len() + OCTETS;
                sender.buffer().resize(longer, *octet);
                let path = Path {
                    carrier: *carrier,
                    ..Path::udp(remote, None)
                };
                sender.send(&path, OCTETS, Ecn::NotCapable);
                sender.flush();
            }
        }
        let sent = sender.counters().sent;
        assert_eq!(sent, (COUNT * carriers.len()) as u64, "the kernel took all");
        Some(arrived.join().expect("the receiver ends"))
    })
}

/// The datagrams of this octet, though some bits be inverted, and how many have any that is.
fn of(octet: u8, arrived: &[Vec<u8>]) -> [usize; 2] {
    let is_wrong = |one: &&u8| **one != octet;
    let wrong = |datagram: &&Vec<u8>| datagram.iter().filter(is_wrong).count();
    let ours = || {
        arrived
            .iter()
            .filter(|one| one.len() == OCTETS && wrong(one) < OCTETS / 2)
    };
    [ours().count(), ours().filter(|one| wrong(one) > 0).count()]
}

/// Asserts that the share of datagrams with an inverted bit is that of the link.
fn assert_damaged([count, damaged]: [usize; 2], what: &str) {
    // 1 - (1 - 2e-5)^8000 = 0.148; four standard errors of a share. Most of them come: 0.5 % have a damaged header.
    let share = damaged as f64 / count as f64;
    let four = 4.0 * (0.148 * 0.852 / count as f64).sqrt();
    assert!(count > COUNT / 2, "{what}: {count} came");
    assert!((share - 0.148).abs() < four, "{what}: {share} damaged");
}

fn damaging(seed: u32) -> Rig {
    Rig::start(&format!(
        "--rate 20mbit --queue unlimited --up-ber 2e-5 --damage deliver --seed {seed}"
    ))
}

#[test]
fn without_checksum_damaged_datagrams_arrive_and_with_one_they_do_not_from_one_port() {
    if !ready(&["cat"]) {
        return;
    }
    let rig = damaging(3);
    let config = PortConfig {
        takes_unchecked: true,
        ..PortConfig::default()
    };
    let carriers = [(Carrier::Udp, CHECKED), (Carrier::UdpNoChecksum, UNCHECKED)];
    for ends in Rig::GROUND.into_iter().zip(Rig::AIR) {
        let arrived = across(&rig, ends, config, &carriers).expect("UDP is there");
        let [count, damaged] = of(CHECKED, &arrived);
        assert!(count > COUNT / 2 && damaged == 0, "{damaged} of {count}");
        assert_damaged(of(UNCHECKED, &arrived), &format!("{ends:?}"));
    }
}

#[test]
fn an_ipv6_port_takes_datagrams_without_checksum_only_where_it_was_asked_to() {
    if !ready(&["cat"]) {
        return;
    }
    let rig = damaging(4);
    let carriers = [(Carrier::Udp, CHECKED), (Carrier::UdpNoChecksum, UNCHECKED)];
    let ends = (Rig::GROUND[1], Rig::AIR[1]);
    let arrived = across(&rig, ends, PortConfig::default(), &carriers).expect("UDP is there");
    assert_eq!(of(UNCHECKED, &arrived), [0, 0]);
    assert!(of(CHECKED, &arrived)[0] > COUNT / 2);
}

#[test]
fn by_udp_lite_damaged_datagrams_arrive() {
    if !ready(&["cat"]) {
        return;
    }
    let rig = damaging(5);
    let config = PortConfig {
        protocol: PortProtocol::UdpLite,
        ..PortConfig::default()
    };
    for ends in Rig::GROUND.into_iter().zip(Rig::AIR) {
        let Some(arrived) = across(&rig, ends, config, &[(Carrier::UdpLite, UNCHECKED)]) else {
            drop(writeln!(
                std::io::stderr(),
                "skipped: this kernel has no UDP-Lite"
            ));
            return;
        };
        assert_damaged(of(UNCHECKED, &arrived), &format!("{ends:?}"));
    }
}

#[test]
fn damaged_frames_arrive() {
    if !ready(&[]) {
        return;
    }
    let rig = Rig::of_frames(
        ["", ""],
        "--rate 20mbit --queue unlimited --up-ber 2e-5 --damage deliver --seed 6",
    );
    let open = || EthernetPort::open("radio", ByteCount(1 << 20)).expect("root may");
    let [mut here, mut there] = [&rig.ground, &rig.air].map(|place| place.within(open));
    let everybody = Neighbour::everybody(here.device()).address();
    let arrived = std::thread::scope(|scope| {
        let arrived = scope.spawn(|| {
            arriving(&mut there, |port, batch| {
                port.receive(batch).expect("the socket holds")
            })
        });
        for _ in 0..COUNT {
            here.send(everybody, &[UNCHECKED; OCTETS]);
            until("the kernel to take it", || {
                here.flush();
                here.can_send()
            });
        }
        arrived.join().expect("the receiver ends")
    });
    assert_damaged(of(UNCHECKED, &arrived), "frames");
    // Frames to everybody are lost by a bit of the type or the one that says so: 17 bits of a thousand frames, .34 of them.
    assert!(arrived.len() > COUNT - 6, "{} arrived", arrived.len());
    let end = rig.counters();
    assert_eq!(end["up"]["arrived_packets"], COUNT, "{end}");
}

#[test]
fn frames_carry_datagrams_of_every_length_to_everybody_and_back_to_one() {
    if !ready(&["ip"]) {
        return;
    }
    let (ground, air) = (Namespace::new("ground"), Namespace::new("air"));
    let inside = air.name();
    ground.must(&format!(
        "ip link add radio type veth peer name radio netns {inside}"
    ));
    for namespace in [&ground, &air] {
        namespace.must("ip link set radio up");
    }
    // Until the kernel has noted that the other end is there, it drops without a word what leaves.
    for namespace in [&ground, &air] {
        until("the device to be up", || {
            let shown = namespace.must("ip link show radio");
            shown.contains("state UP") && !shown.contains("qdisc noop ")
        });
    }
    let open = || EthernetPort::open("radio", ByteCount(1 << 20)).expect("root may");
    let [mut here, mut there] = [&ground, &air].map(|namespace| namespace.within(open));
    let datagrams: Vec<Vec<u8>> = (0..=1_499)
        .step_by(7)
        .map(|len: usize| {
            let octets = (0..len).map(|octet| u8::try_from(octet % 251).expect("below 256"));
            octets.collect()
        })
        .collect();
    let everybody = Neighbour::everybody(here.device()).address();
    for datagram in &datagrams {
        here.send(everybody, datagram);
    }
    assert_eq!(here.counters().sent, datagrams.len() as u64);
    let mut sender = None;
    let arrived = arriving(&mut there, |port, batch| {
        let more = port.receive(batch).expect("the socket holds");
        sender = batch.trains().next().map(|train| train.from).or(sender);
        more
    });
    assert_eq!(arrived, datagrams);
    let sender = sender.expect("somebody sent");
    assert_ne!(Neighbour::of(sender), None);
    there.send(sender, b"for you");
    let back = arriving(&mut here, |port, batch| {
        port.receive(batch).expect("the socket holds")
    });
    assert_eq!(back, [b"for you"]);
    here.send(everybody, &[7; 1_500]);
    assert_eq!(here.take_too_large(), Some(everybody));
}
