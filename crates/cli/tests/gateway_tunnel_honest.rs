//! TCP inside a tunnel is told of nothing that has not arrived, and a packet's header fields cross unchanged.
//!
//! Method: two gateways with a tunnel in namespaces (see `gateway_tunnel`), the kernel's own TCP at both ends, and a host
//! behind the far gateway that dies without a word. Needs root.

use crate::gateway_tunnel::{AIR, GROUND, PATIENCE, Pair};
use crate::processes::until;
use crate::rig::ready;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// The time after which the sender's kernel gives up.
const USER_TIMEOUT: Duration = Duration::from_secs(4);

/// The octets that the kernel holds for acknowledged, of the connection to port 7000.
fn acknowledged(said: &str) -> Option<u64> {
    let (_, rest) = said.split_once("bytes_acked:")?;
    rest.split_whitespace().next()?.parse().ok()
}

#[test]
fn the_sender_s_kernel_knows_what_a_host_that_died_has_received() {
    if !ready(&["ss"]) {
        return;
    }
    let pair = Pair::start_with(
        "--rate 10mbit --delay 5ms --loss 20% --seed 22",
        |host, text| {
            let behind = if host == 1 {
                "routes = \"10.79.0.0/24\"\n"
            } else {
                ""
            };
            text + behind
        },
    );
    let host = pair.rig.host_behind_air();
    let server = (host.namespace).within(|| TcpListener::bind((host.v4, 7000)).expect("a port"));
    let mut client = (pair.rig.ground).within(|| {
        let client = TcpStream::connect((host.v4, 7000)).expect("it listens");
        SockRef::from(&client)
            .set_tcp_user_timeout(Some(USER_TIMEOUT))
            .expect("Linux");
        client
    });
    let (mut there, _) = server.accept().expect("it connects");
    thread::scope(|scope| {
        let sending = scope.spawn(move || {
            // Far more than crosses before the host dies.
            let error = loop {
                if let Err(error) = client.write_all(&[7; 8_192]) {
                    break error;
                }
            };
            (error, client)
        });
        let mut received = 0;
        let mut buffer = vec![0; 65_536];
        while received < 500_000 {
            received += there.read(&mut buffer).expect("it comes") as u64;
        }
        host.namespace.must("ip link set eth0 down");
        // Its kernel may have more than its program has read.
        there
            .set_read_timeout(Some(USER_TIMEOUT / 2))
            .expect("not zero");
        while let Ok(len @ 1..) = there.read(&mut buffer) {
            received += len as u64;
        }
        let line = "ss -H -n -t -i dst 10.79.0.2";
        let told = pair.rig.ground.must(line);
        let acknowledged = acknowledged(&told).unwrap_or_else(|| panic!("no count: {told}"));
        // The first octet is that of the SYN.
        assert!(
            acknowledged <= received + 1,
            "{acknowledged} told, {received} received"
        );
        assert!(acknowledged >= 400_000, "{told}");
        let (error, _client) = sending.join().expect("it ends");
        // Nobody answers, or the far router's word on that came through the tunnel.
        let is_told = matches!(
            error.kind(),
            ErrorKind::TimedOut | ErrorKind::HostUnreachable
        );
        assert!(is_told, "{error}");
    });
    until("the connection to be gone", || {
        pair.rig
            .ground
            .run("ss -H -n -t dst 10.79.0.2")
            .stdout
            .is_empty()
    });
}

#[test]
fn code_points_marks_flags_and_the_urgent_pointer_cross_unchanged() {
    const TCP: i32 = 6;
    // Expedited forwarding (RFC 3246) and ECT(0) (RFC 3168).
    const TRAFFIC_CLASS: u8 = 46 << 2 | 2;
    // CWR, ECE, URG, ACK, PSH (RFC 9293, section 3.1).
    const FLAGS: u8 = 0b1111_1000;
    if !ready(&[]) {
        return;
    }
    let pair = Pair::start("--rate 10mbit --delay 5ms --loss 20% --seed 22");
    let open = || Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(TCP))).expect("root");
    let mut receiver = pair.rig.air.within(open);
    let sender = pair.rig.ground.within(open);
    sender
        .set_tos_v4(TRAFFIC_CLASS.into())
        .expect("a code point");
    receiver.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let to = SocketAddr::from((AIR, 0)).into();
    let segment = |number: u8| {
        let mut segment = [0; 24];
        segment[..4].copy_from_slice(&[0x1b, 0x58, 0x1b, 0x59]);
        segment[7] = number;
        (segment[12], segment[13]) = (5 << 4, FLAGS);
        segment[14..16].copy_from_slice(&[0x10, 0x20]);
        segment[18..20].copy_from_slice(&[0x12, 0x34]);
        segment
    };
    for number in 0..20 {
        sender.send_to(&segment(number), &to).expect("it is sent");
    }
    for number in 0..20 {
        let mut buffer = [0; 256];
        let len = receiver.read(&mut buffer).expect("every one comes");
        assert_eq!(buffer[12..16], GROUND.octets());
        assert_eq!((len, buffer[1]), (44, TRAFFIC_CLASS), "segment {number}");
        assert_eq!(buffer[20..44], segment(number), "segment {number}");
    }
}
