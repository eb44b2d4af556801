//! Two live gateways with traffic between them, an attacker who sees all of it and sends forged datagrams,
//! and crowds of strangers: the traffic arrives whole, memory stays, every datagram is counted.
//!
//! Method: the test carries the gateways' datagrams itself, keeps some of them, and sends forged ones from
//! the same sockets. The kernel counts the datagrams that it drops before a gateway reads them.

use crate::gateways::{Pair, client, echo, exchange, server, status_at};
use crate::processes;
use crate::processes::{octets, until};
use fulmar_net::session::{
    Entropy, MtuConfig, PeerConfig, SecretKey, Security, Session, SessionConfig,
};
use fulmar_net::wait::wait;
use fulmar_proto::machine::{Machine, PathId};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{AerotpEndpoint, EndpointConfig};
use fulmar_proto::units::Instant;
use fulmar_proto::wire::checksum::hec;
use std::collections::VecDeque;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The number of an attacker's datagrams, over both ends.
const FORGED: u64 = 1_000_000;
/// The number of calls of strangers, and the number of their addresses.
const CALLS: u64 = 100_000;
const STRANGERS: u64 = 2_000;
/// The number of datagrams after which an attacker pauses for a millisecond, so that the kernel's queue
/// holds them.
const BURST: u64 = 60;
/// The number of the latest datagrams from which the forged ones are made.
const RECORDED: usize = 500;
/// The most that memory may grow. One octet kept of every twentieth datagram would be more.
const GROWTH_MAX: u64 = 4 << 20;
/// The octets of a round of the traffic that runs beside it.
const ROUND: usize = 1_000_000;

/// The first five bits of data in wire 2, which these gateways agree on.
const DATA: u8 = 0x28;

fn pause() {
    wait(&[], Some(Duration::from_millis(1)), &mut Vec::new()).expect("poll works");
}

/// The link, as an attacker on it sees it: towards each end a socket, the address of that end, and the
/// latest datagrams.
struct Link {
    sockets: [UdpSocket; 2],
    ends: [Mutex<Option<SocketAddr>>; 2],
    seen: [Mutex<VecDeque<Vec<u8>>>; 2],
}

impl Link {
    fn to(ground: SocketAddr) -> Arc<Self> {
        let socket = || UdpSocket::bind("127.0.0.1:0").expect("a port");
        let link = Arc::new(Self {
            sockets: [socket(), socket()],
            ends: [Mutex::new(None), Mutex::new(Some(ground))],
            seen: Default::default(),
        });
        for from in [0, 1] {
            let link = Arc::clone(&link);
            thread::spawn(move || link.carry(from));
        }
        link
    }

    /// Carries datagrams from the end `from` to the other.
    fn carry(&self, from: usize) {
        let mut buffer = [0; 2_048];
        // ICMP errors of an end that is not there yet.
        loop {
            let Ok((len, source)) = self.sockets[from].recv_from(&mut buffer) else {
                continue;
            };
            *self.ends[from].lock().expect("whole") = Some(source);
            let to = *self.ends[1 - from].lock().expect("whole");
            if let Some(to) = to {
                drop(self.sockets[1 - from].send_to(&buffer[..len], to));
            }
            // Handshakes may be answered again; the rest must never be accepted twice.
            if buffer[0] & 0xF8 == DATA {
                let mut seen = self.seen[1 - from].lock().expect("whole");
                seen.push_back(buffer[..len].to_vec());
                if seen.len() > RECORDED {
                    seen.pop_front();
                }
            }
        }
    }

    fn end(&self, end: usize) -> SocketAddr {
        self.ends[end]
            .lock()
            .expect("whole")
            .expect("it has spoken")
    }
}

fn index(rng: &mut Rng, bound: usize) -> usize {
    usize::try_from(rng.below(bound as u64)).expect("in range")
}

fn with_hec(mut octets: Vec<u8>) -> Vec<u8> {
    if octets.len() >= 12 {
        let hec = hec(&octets[..2], &octets[4..12]);
        octets[2..4].copy_from_slice(&hec.to_be_bytes());
    }
    octets
}

/// The forged datagram number `nth`: one of every kind, in turn.
fn forged(rng: &mut Rng, nth: u64, seen: &[Vec<u8>]) -> Vec<u8> {
    let mut octets = seen[index(rng, seen.len())].clone();
    match nth % 6 {
        0 => rng.fill(&mut octets),
        1 => octets.truncate(index(rng, octets.len())),
        2 => {}
        3 => {
            let bit = index(rng, octets.len() * 8);
            octets[bit / 8] ^= 1 << (bit % 8);
        }
        4 => {
            // The right session, any place and any counter, garbage inside.
            octets[0] = DATA | (rng.next_u64() & 0x07) as u8;
            rng.fill(&mut octets[5..]);
        }
        _ => {
            // The right session, and a sound header of wire 1 over garbage: any counter, any type.
            octets[0] = 0x10 | (rng.next_u64() & 0x07) as u8;
            octets.copy_within(1..5, 4);
            rng.fill(&mut octets[8..]);
            octets = with_hec(octets);
        }
    }
    octets
}

/// Sends the attacker's share to one end.
fn attack(link: &Link, end: usize, count: u64) {
    let mut rng = Rng::from_seed(end as u64).child("attack");
    let to = link.end(end);
    // As the other end, and as somebody else.
    let stranger = UdpSocket::bind((Ipv4Addr::new(127, 9, 9, 9), 0)).expect("a port");
    let mut seen = Vec::new();
    for n in 0..count {
        if n % 5_000 == 0 {
            seen = link.seen[end]
                .lock()
                .expect("whole")
                .iter()
                .cloned()
                .collect();
        }
        if n % BURST == 0 {
            pause();
        }
        let from = if n % 3 == 0 {
            &stranger
        } else {
            &link.sockets[end]
        };
        from.send_to(&forged(&mut rng, n, &seen), to)
            .expect("it is taken");
    }
}

/// Genuine calls for `key` by callers that it does not know.
fn calls(key: &str, count: u64) -> Vec<Vec<u8>> {
    let peer = PeerConfig {
        name: "victim".to_owned(),
        security: Security::Noise {
            peer: key.parse().expect("a key"),
            preset: None,
        },
        endpoints: vec![PathId(1)],
        mtu: MtuConfig::default(),
    };
    let own = SecretKey::generate(&mut Entropy::from_seed([66; 32]));
    let config = SessionConfig::new(Some(own), vec![peer], 1);
    let made = (0..count).map(|n| {
        let mut seed = [7; 32];
        seed[..8].copy_from_slice(&n.to_le_bytes());
        let inner = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(0));
        let session = Session::new(config.clone(), inner, Entropy::from_seed(seed));
        let mut octets = Vec::new();
        let call = session
            .expect("sound")
            .poll_transmit(Instant::START, &mut octets);
        call.expect("a call");
        octets
    });
    made.collect()
}

fn crowd(key: &str, to: SocketAddr) {
    let calls = calls(key, 500);
    // Each begins elsewhere in the list.
    let starts = (0..calls.len()).cycle();
    for (stranger, start) in (0..STRANGERS).zip(starts) {
        let [.., high, low] = stranger.to_be_bytes();
        let from = UdpSocket::bind((Ipv4Addr::new(127, 7, high, low.max(1)), 0)).expect("a port");
        for (n, call) in (0..CALLS / STRANGERS).zip(calls.iter().cycle().skip(start)) {
            if n % BURST == 0 {
                pause();
            }
            from.send_to(call, to).expect("it is taken");
        }
    }
}

/// Datagrams that the kernel dropped for want of room at the socket of this port (proc(5): `net/udp`).
fn kernel_drops(port: u16) -> u64 {
    let tables =
        ["/proc/net/udp", "/proc/net/udp6"].map(|table| fs::read_to_string(table).expect("Linux"));
    let of_port = format!(":{port:04X}");
    let lines = tables.iter().flat_map(|table| table.lines());
    let ours = lines.filter(|line| {
        line.split_whitespace()
            .nth(1)
            .is_some_and(|at| at.ends_with(&of_port))
    });
    ours.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok())
        .sum()
}

/// The number of datagrams that a gateway refused, for all reasons.
fn refused(server: SocketAddr) -> u64 {
    let status = status_at(server);
    let dropped = status["carrier"]["dropped"].as_object().expect("reasons");
    dropped.values().filter_map(serde_json::Value::as_u64).sum()
}

/// Answers to ends that nobody vouches for. Those to the attacker, who speaks for the other gateway, are refused there.
fn answered(server: SocketAddr) -> u64 {
    let operations = &status_at(server)["carrier"]["operations"];
    operations["answer"].as_u64().expect("a number")
}

/// Traffic that goes on until it is told to end; it counts the rounds that came back whole.
fn traffic(entry: SocketAddr, go_on: Arc<AtomicBool>, rounds: Arc<AtomicU64>) -> JoinHandle<()> {
    thread::spawn(move || {
        while go_on.load(Ordering::SeqCst) {
            let n = rounds.load(Ordering::SeqCst);
            let sent = octets(n, ROUND);
            let back = exchange(client(entry), sent.clone());
            assert!(back == sent, "round {n} came back changed");
            rounds.store(n + 1, Ordering::SeqCst);
        }
    })
}

#[test]
fn a_million_forged_datagrams_and_a_crowd_of_strangers_leave_live_gateways_as_they_were() {
    let entry = format!(
        "[[forward]]\nprotocol = \"tcp\"\nlisten = \"127.0.0.1:0\"\nto = \"{}\"\n",
        server(echo)
    );
    let mut link = None;
    let over = |ground| {
        let made = link.insert(Link::to(ground));
        (made.sockets[0].local_addr().expect("it is bound"), None)
    };
    let pair = Pair::start_over(over, &entry);
    let link = link.expect("it was asked for");
    // Warm: buffers have their sizes.
    for seed in 0..4 {
        let sent = octets(seed, 4 * ROUND);
        assert!(exchange(client(pair.entries[0]), sent.clone()) == sent);
    }
    let resident = || [&pair.air, &pair.ground].map(processes::Running::resident_bytes);
    let refusals = || refused(pair.metrics) + refused(pair.ground_metrics);
    let drops = || {
        [0, 1]
            .map(|end| kernel_drops(link.end(end).port()))
            .iter()
            .sum::<u64>()
    };

    let go_on = Arc::new(AtomicBool::new(true));
    let rounds = Arc::new(AtomicU64::new(0));
    let traffic = traffic(pair.entries[0], Arc::clone(&go_on), Arc::clone(&rounds));

    let answers = || answered(pair.metrics) + answered(pair.ground_metrics);
    let (before, refused, dropped, answers_before) = (resident(), refusals(), drops(), answers());
    thread::scope(|scope| {
        for end in [0, 1] {
            let link = &link;
            scope.spawn(move || attack(link, end, FORGED / 2));
        }
    });
    // One that the kernel dropped may be a true one, whose repetition is then taken as the first.
    let counted = |count, refused, dropped| {
        until("every datagram to be counted", || {
            refusals() - refused + 2 * (drops() - dropped) >= count
        });
    };
    counted(FORGED, refused, dropped);
    let whole = rounds.load(Ordering::SeqCst);
    let (after, refused, dropped) = (resident(), refusals() - refused, drops() - dropped);
    println!(
        "{FORGED} forged: {refused} refused, {dropped} dropped by the kernel, {whole} rounds of {ROUND} \
         octets whole, resident {before:?} before, {after:?} after"
    );
    assert!(whole > 0, "nothing arrived meanwhile");
    let (unknown, answers) = (2 * dropped + 100, answers() - answers_before);
    assert!(
        (FORGED - unknown..=FORGED + answers + unknown).contains(&refused),
        "{refused} {dropped} {answers}"
    );
    for (before, after) in before.iter().zip(after) {
        assert!(
            after <= before + GROWTH_MAX,
            "{before} before, {after} after"
        );
    }

    let (refused, dropped) = (refusals(), drops());
    crowd(&pair.ground_key, link.end(1));
    counted(CALLS, refused, dropped);
    let crowded = rounds.load(Ordering::SeqCst) - whole;
    let (crowd, refused, dropped) = (resident(), refusals() - refused, drops() - dropped);
    println!(
        "{CALLS} calls from {STRANGERS} addresses: {refused} refused, {dropped} dropped by the kernel, \
         {crowded} rounds whole, resident {crowd:?}"
    );
    assert!(crowded > 0, "nothing arrived meanwhile");
    assert!(
        refused.abs_diff(CALLS) <= dropped + 100,
        "{refused} {dropped}"
    );
    for (after, crowd) in after.iter().zip(crowd) {
        assert!(crowd <= after + GROWTH_MAX, "{after} before, {crowd} after");
    }
    go_on.store(false, Ordering::SeqCst);
    traffic.join().expect("all of it came back whole");
    let outages = status_at(pair.metrics)["carrier"]["outages"].clone();
    // A busy machine may hold a gateway up for longer than it takes a link to be down.
    println!("outages: {outages}");
}
