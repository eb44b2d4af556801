//! The emulator over real loopback sockets: loss, damage, rate, flows and counters.
//!
//! Method: an emulator in a thread between plain UDP sockets. Random decisions come from a fixed
//! seed, so shares are compared with intervals of four standard errors. Times have lower bounds
//! only: a packet may be late on a loaded machine, but never early.

use crate::reader;
use fulmar_channel::{BitErrors, ChannelConfig, LossModel, QueueLimit};
use fulmar_net::clock::Clock;
use fulmar_net::emulator::{
    DamagePolicy, Emulator, EmulatorConfig, EmulatorReport, EmulatorTap, Watch,
};
use fulmar_net::recording::RecordingConfig;
use fulmar_net::wait::{Waker, waker};
use fulmar_proto::units::{BitErrorRate, Bitrate, ByteCount, Duration, Instant, PacketErrorRate};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A wait that is longer than the loopback takes under load, and short enough for a test.
const SILENCE: Duration = Duration::from_millis(300);

struct Running {
    address: SocketAddr,
    waker: Waker,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<EmulatorReport>,
}

impl Running {
    fn start(config: EmulatorConfig) -> Self {
        Self::start_captured(config, None)
    }

    fn start_captured(config: EmulatorConfig, capture: Option<RecordingConfig>) -> Self {
        let (waker, wake_up) = waker().expect("descriptors are left");
        let clock = Clock::start();
        let mut emulator = Emulator::bind(clock, config).expect("a free port");
        if let Some(capture) = capture {
            let tap = EmulatorTap::start(clock, capture, "a test", |_| {});
            emulator.set_tap(tap.expect("a file and a thread"));
        }
        let address = emulator.local().expect("it is bound");
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut watch = |_: Instant, _: EmulatorReport| {
                if stopping.load(Ordering::SeqCst) {
                    Watch::Stop
                } else {
                    Watch::WhenWoken
                }
            };
            emulator
                .run(&wake_up, &mut watch)
                .expect("the sockets hold");
            emulator.report()
        });
        Self {
            address,
            waker,
            stop,
            thread,
        }
    }

    fn end(self) -> EmulatorReport {
        self.stop.store(true, Ordering::SeqCst);
        self.waker.wake().expect("the emulator listens");
        self.thread.join().expect("the emulator did not panic")
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket2::SockRef::from(&socket)
        .set_recv_buffer_size(4 << 20)
        .expect("a larger buffer");
    socket.set_read_timeout(Some(SILENCE)).expect("a timeout");
    socket
}

fn between(target: &UdpSocket, up: ChannelConfig) -> EmulatorConfig {
    let to = target.local_addr().expect("it is bound");
    let mut config = EmulatorConfig::perfect(([127, 0, 0, 1], 0).into(), to);
    config.up = up;
    config
}

fn arrivals(target: &UdpSocket) -> Vec<Vec<u8>> {
    let mut room = [0; 2_000];
    let mut all = Vec::new();
    while let Ok(len) = target.recv(&mut room) {
        all.push(room[..len].to_vec());
    }
    all
}

/// Sends `count` copies of `payload` through a link and returns the datagrams that came out, with the counters.
fn through(
    config: ChannelConfig,
    damage: DamagePolicy,
    count: u64,
    payload: &[u8],
) -> (Vec<Vec<u8>>, EmulatorReport) {
    let (client, target) = (socket(), socket());
    let running = Running::start(EmulatorConfig {
        damage,
        ..between(&target, config)
    });
    for _ in 0..count {
        client
            .send_to(payload, running.address)
            .expect("loopback takes it");
    }
    let arrived = arrivals(&target);
    let report = running.end();
    assert_eq!(
        report.up.offered_packets, count,
        "the loopback itself lost packets"
    );
    assert_eq!(report.up.arrived_packets, arrived.len() as u64);
    (arrived, report)
}

#[test]
fn the_loss_share_is_that_of_the_model() {
    const COUNT: u64 = 2_000;
    let loss = LossModel::Bernoulli(PacketErrorRate::new(0.2).unwrap());
    let config = ChannelConfig {
        loss,
        ..ChannelConfig::default()
    };
    let (arrived, report) = through(config, DamagePolicy::Deliver, COUNT, b"payload");
    assert_eq!(report.up.dropped_packets.loss, COUNT - arrived.len() as u64);
    // Four standard errors of a share of 2,000 at 0.2 are 0.0358.
    let share = report.up.dropped_packets.loss as f64 / COUNT as f64;
    assert!((share - 0.2).abs() < 0.0358, "{share}");
}

#[test]
fn inverted_bits_are_real_and_counted() {
    const COUNT: u64 = 500;
    let payload = [0x55_u8; 1_000];
    let ber = BitErrorRate::new(1e-4).unwrap();
    let config = ChannelConfig {
        bits: BitErrors::Independent(ber),
        ..ChannelConfig::default()
    };
    let (arrived, report) = through(config, DamagePolicy::Deliver, COUNT, &payload);
    let differing = |octets: &Vec<u8>| -> u64 {
        octets
            .iter()
            .zip(payload)
            .map(|(a, b)| u64::from((a ^ b).count_ones()))
            .sum()
    };
    assert_eq!(
        report.up.flipped_bits,
        arrived.iter().map(differing).sum::<u64>()
    );
    let damaged = arrived
        .iter()
        .filter(|octets| differing(octets) > 0)
        .count();
    assert_eq!(report.up.damaged_packets, damaged as u64);
    assert!(damaged > 0);
}

#[test]
fn with_a_checksum_damaged_datagrams_vanish() {
    const COUNT: u64 = 500;
    let payload = [0x55_u8; 1_000];
    let ber = BitErrorRate::new(1e-4).unwrap();
    let config = ChannelConfig {
        bits: BitErrors::Independent(ber),
        ..ChannelConfig::default()
    };
    let (arrived, report) = through(config, DamagePolicy::Drop, COUNT, &payload);
    assert!(arrived.iter().all(|octets| octets[..] == payload));
    let dropped = report.up.dropped_packets;
    assert!(
        dropped.payload_damage > 0 && dropped.header_damage > 0,
        "{dropped:?}"
    );
}

#[test]
fn no_packet_arrives_before_the_rate_and_the_delay_allow() {
    const COUNT: u32 = 100;
    // 1222 + 28 octets at 10 mbit take 1 ms.
    let config = ChannelConfig {
        rate: Some(Bitrate::from_bits_per_second(10_000_000)),
        delay: Duration::from_millis(10),
        queue: QueueLimit::UNLIMITED,
        ..ChannelConfig::default()
    };
    let (client, target) = (socket(), socket());
    let running = Running::start(between(&target, config));
    let clock = Clock::start();
    for number in 0..COUNT {
        let mut payload = [0; 1_222];
        payload[..4].copy_from_slice(&number.to_be_bytes());
        client.send_to(&payload, running.address).unwrap();
    }
    let mut room = [0; 2_000];
    for number in 0..COUNT {
        target.recv(&mut room).unwrap();
        let due =
            Instant::START + Duration::from_millis(10) + (number + 1) * Duration::from_millis(1);
        assert!(clock.now() >= due, "packet {number} at {}", clock.now());
        assert_eq!(room[..4], number.to_be_bytes(), "in order");
    }
    let report = running.end();
    println!(
        "lateness: mean {:.1} us, max {:.1} us",
        report.punctuality.lateness_mean_s.unwrap() * 1e6,
        report.punctuality.lateness_max_s * 1e6
    );
}

#[test]
fn a_full_queue_drops_the_tail() {
    let config = ChannelConfig {
        rate: Some(Bitrate::from_bits_per_second(100_000)),
        queue: QueueLimit::packets(5),
        ..ChannelConfig::default()
    };
    // Twenty packets in much less than the 10 ms that one takes: one in transmission, five wait.
    let (arrived, report) = through(config, DamagePolicy::Deliver, 20, &[0; 97]);
    assert!(arrived.len() >= 6, "{}", arrived.len());
    assert_eq!(report.up.dropped_packets.queue, 20 - arrived.len() as u64);
    assert!(report.up.dropped_packets.queue > 0);
}

#[test]
fn each_client_gets_its_own_answers() {
    let (first, second, target) = (socket(), socket(), socket());
    let running = Running::start(between(&target, ChannelConfig::default()));
    let mut room = [0; 100];
    let mut sources = Vec::new();
    for (client, word) in [(&first, b"one"), (&second, b"two")] {
        client.send_to(word, running.address).unwrap();
        let (len, from) = target.recv_from(&mut room).unwrap();
        assert_eq!(room[..len], word[..]);
        sources.push(from);
    }
    assert_ne!(sources[0], sources[1], "the target can tell them apart");
    target.send_to(b"for two", sources[1]).unwrap();
    target.send_to(b"for one", sources[0]).unwrap();
    for (client, answer) in [(&first, b"for one"), (&second, b"for two")] {
        let (len, from) = client.recv_from(&mut room).unwrap();
        assert_eq!((&room[..len], from), (&answer[..], running.address));
    }
    let report = running.end();
    assert_eq!((report.flows.open, report.down.arrived_packets), (2, 2));
}

#[test]
fn a_client_too_many_is_refused_and_the_others_go_on() {
    let (first, second, target) = (socket(), socket(), socket());
    let config = EmulatorConfig {
        flows_max: 1,
        ..between(&target, ChannelConfig::default())
    };
    let running = Running::start(config);
    for (client, word) in [(&first, b"one"), (&second, b"two"), (&first, b"ten")] {
        client.send_to(word, running.address).unwrap();
    }
    assert_eq!(arrivals(&target), [b"one", b"ten"]);
    assert_eq!(running.end().flows.refused_packets, 1);
}

#[test]
fn a_target_that_does_not_listen_is_counted_and_ends_nothing() {
    let client = socket();
    // Nobody else uses this address: the port is another test's a moment later.
    let closed = UdpSocket::bind("127.0.0.2:0").and_then(|socket| socket.local_addr());
    let closed = closed.unwrap();
    let running = Running::start(EmulatorConfig::perfect(([127, 0, 0, 1], 0).into(), closed));
    for _ in 0..3 {
        client.send_to(b"anyone?", running.address).unwrap();
        // Gives the ICMP error time to come back; nothing is asserted about how long.
        assert!(client.recv(&mut [0; 10]).is_err());
    }
    let report = running.end();
    assert_eq!(report.up.offered_packets, 3);
    assert!(report.target_refused > 0);
}

#[test]
fn equal_seeds_and_equal_arrivals_give_equal_losses() {
    let loss = LossModel::Bernoulli(PacketErrorRate::new(0.5).unwrap());
    let config = ChannelConfig {
        loss,
        ..ChannelConfig::default()
    };
    let (client, target) = (socket(), socket());
    let mut runs = Vec::new();
    for seed in [7, 7, 8] {
        let running = Running::start(EmulatorConfig {
            seed,
            ..between(&target, config.clone())
        });
        for number in 0..200_u8 {
            client.send_to(&[number], running.address).unwrap();
        }
        runs.push(arrivals(&target));
        running.end();
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
}

#[test]
fn a_capture_has_every_datagram_with_what_the_link_did_to_it() {
    const SENT: usize = 600;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("link.pcapng");
    let target = socket();
    let mut config = between(
        &target,
        ChannelConfig {
            loss: LossModel::Bernoulli(PacketErrorRate::new(0.1).unwrap()),
            bits: BitErrors::Independent(BitErrorRate::new(1e-4).unwrap()),
            rate: Some(Bitrate::from_bits_per_second(20_000_000)),
            queue: QueueLimit::packets(20),
            ..ChannelConfig::default()
        },
    );
    config.damage = DamagePolicy::Deliver;
    let capture = RecordingConfig {
        file: file.clone(),
        max_size: ByteCount(u64::MAX),
        is_required: true,
    };
    let running = Running::start_captured(config, Some(capture));
    let client = socket();
    for number in (0..=u8::MAX).cycle().take(SENT) {
        // Enough datagrams at once for a full queue, as 20 mbit take 0.4 ms for each.
        client.send_to(&[number; 1_000], running.address).unwrap();
    }
    let arrived = arrivals(&target);
    let report = running.end();
    let capture = reader::read(&std::fs::read(&file).unwrap());
    assert_eq!(
        capture.interfaces,
        ["up/in", "up/out", "down/in", "down/out"]
    );
    let entered: Vec<_> = capture.of("up/in", false).collect();
    assert_eq!(entered.len() as u64, report.up.offered_packets);
    let dropped = report.up.dropped_packets;
    for (reason, count) in [
        ("queue", dropped.queue),
        ("loss", dropped.loss),
        ("header_damage", dropped.header_damage),
        ("outage", 0),
        ("overflow", 0),
    ] {
        assert_eq!(
            capture.count(&format!("dropped: {reason}")),
            count,
            "{reason}"
        );
        assert!(
            count > 0 || matches!(reason, "outage" | "overflow"),
            "{reason}"
        );
    }
    assert_eq!(capture.count("damaged"), report.up.damaged_packets);
    let left: Vec<_> = capture
        .of("up/out", true)
        .map(reader::Read::octets)
        .collect();
    assert_eq!(left.len() as u64, report.up.arrived_packets);
    assert!(left.iter().copied().eq(arrived.iter().map(Vec::as_slice)));
    for packet in &capture.packets {
        assert_eq!(packet.dissector(), "fulmar.datagram");
        assert_eq!(packet.missed, 0);
    }
}

#[test]
fn a_capture_that_a_device_does_not_take_leaves_the_link_alone() {
    let target = socket();
    let capture = RecordingConfig {
        file: "/dev/full".into(),
        max_size: ByteCount(u64::MAX),
        is_required: true,
    };
    let config = between(&target, ChannelConfig::default());
    let running = Running::start_captured(config, Some(capture));
    let client = socket();
    // The first of them are written after half a second; the others find the capture ended.
    for _ in 0..2 {
        client.send_to(b"datagram", running.address).unwrap();
        assert_eq!(arrivals(&target).len(), 1);
        arrivals(&target);
    }
    let report = running.end();
    assert_eq!(report.up.arrived_packets, 2);
}
