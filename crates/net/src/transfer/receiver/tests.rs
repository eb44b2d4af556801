//! A receiver's promises towards hosts that take its places or its time.
//!
//! Method: a receiver that anyone can reach, and callers at addresses of the test's own, in virtual time; the files are
//! real.

use super::super::record::Records;
use super::*;
use fulmar_proto::machine::{Ecn, Machine};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{AddressKey, EndpointConfig};
use fulmar_proto::wire::Mode;
use std::net::SocketAddr;
use std::path::Path;

const STEP: Duration = Duration::from_millis(10);

fn endpoint(seed: u64, address_key: Option<AddressKey>) -> AerotpEndpoint {
    let config = EndpointConfig {
        address_key,
        ..EndpointConfig::default()
    };
    AerotpEndpoint::new(config, Rng::from_seed(seed))
}

/// A caller at one address.
struct Caller {
    machine: AerotpEndpoint,
    from: SocketAddr,
    /// Whether datagrams to it arrive.
    hears: bool,
}

struct World {
    now: Instant,
    machine: AerotpEndpoint,
    receiver: Receiver<()>,
    callers: Vec<Caller>,
}

impl World {
    fn new(directory: &Path) -> Self {
        let mut machine = endpoint(1, Some(AddressKey::new([5; 32])));
        let plan = ReceivePlan {
            destination: FileDestination::Directory {
                path: directory.to_owned(),
                replace: false,
            },
            connection: ConnectionConfig::default(),
            once: false,
            checkpoint_every: Duration::from_millis(50),
        };
        let receiver = Receiver::new(plan, &mut machine, Stop::default(), ());
        Self {
            now: Instant::START,
            machine,
            receiver: receiver.expect("sound settings"),
            callers: Vec::new(),
        }
    }

    /// Adds a caller and returns its number.
    fn caller(&mut self, from: &str) -> usize {
        let number = self.callers.len();
        self.callers.push(Caller {
            machine: endpoint(100 + number as u64, None),
            from: from.parse().expect("an address"),
            hears: true,
        });
        number
    }

    fn connect(&mut self, caller: usize, mode: Mode, octets: &[u8]) -> ConnectionId {
        let config = ConnectionConfig {
            mode,
            ..ConnectionConfig::default()
        };
        let machine = &mut self.callers[caller].machine;
        let id = machine.connect(self.now, PathId(0), FILE_PORT, config);
        let id = id.expect("room");
        if ModeRules::of(mode).complete {
            assert_eq!(machine.write(self.now, id, octets), Ok(octets.len()));
        } else {
            assert_eq!(machine.write_message(self.now, id, octets), Ok(true));
        }
        id
    }

    fn offer(&mut self, caller: usize, name: &str, size: u64) -> ConnectionId {
        let mut octets = Vec::new();
        let hello = Record::Hello {
            mode: Mode::Reliable,
            id: caller as u64,
            size: Some(size),
            seekable: true,
            name: name.to_owned(),
        };
        hello.encode(&mut octets);
        self.connect(caller, Mode::Reliable, &octets)
    }

    fn step(&mut self) {
        let now = self.now;
        for (path, caller) in (0..).map(PathId).zip(&mut self.callers) {
            caller.machine.handle_deadline(now);
            while caller.machine.poll_event().is_some() {}
            let mut octets = Vec::new();
            while caller.machine.poll_transmit(now, &mut octets).is_some() {
                let ecn = Ecn::NotCapable;
                let octets = std::mem::take(&mut octets);
                let octets = octets.as_slice();
                let datagram = Datagram { path, octets, ecn };
                let origin = DatagramOrigin {
                    from: caller.from,
                    at: now,
                };
                self.receiver
                    .arrived(now, &mut self.machine, datagram, origin);
                while let Some(event) = self.machine.poll_event() {
                    self.receiver.deliver(now, &mut self.machine, event);
                }
            }
        }
        self.machine.handle_deadline(now);
        loop {
            let step = self.receiver.work(now, &mut self.machine);
            while let Some(event) = self.machine.poll_event() {
                self.receiver.deliver(now, &mut self.machine, event);
            }
            if step != Step::Again {
                break;
            }
        }
        let mut octets = Vec::new();
        while let Some(transmit) = self.machine.poll_transmit(now, &mut octets) {
            let octets = std::mem::take(&mut octets);
            let caller = &mut self.callers[transmit.path.0 as usize];
            if caller.hears {
                let (path, octets, ecn) = (PathId(0), octets.as_slice(), Ecn::NotCapable);
                let datagram = Datagram { path, octets, ecn };
                caller.machine.handle_datagram(now, datagram);
            }
        }
        self.now += STEP;
    }

    fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while self.now < until {
            self.step();
        }
    }

    /// The records that came for `caller` on a connection.
    fn said(&mut self, caller: usize, id: ConnectionId) -> Vec<Record> {
        let machine = &mut self.callers[caller].machine;
        let (mut records, mut all) = (Records::default(), Vec::new());
        while let Some(chunk) = machine.read(self.now, id) {
            let mut octets = chunk.octets.as_slice();
            while let Some(item) = records.next(&mut octets).expect("ours") {
                let Item::Record(record) = item else {
                    panic!("{item:?}")
                };
                all.push(record);
            }
        }
        all
    }

    fn offered(&mut self, caller: usize, id: ConnectionId) -> Option<u64> {
        let said = self.said(caller, id);
        said.iter().find_map(|record| match record {
            Record::Offer { offset, .. } => Some(*offset),
            _ => None,
        })
    }
}

fn room() -> tempfile::TempDir {
    tempfile::tempdir().expect("room")
}

#[test]
fn a_host_that_announces_files_and_stands_still_keeps_nobody_out() {
    let directory = room();
    let mut world = World::new(directory.path());
    // Four of its ports, each with more connections than there are places together.
    for port in 1..=4 {
        let caller = world.caller(&format!("192.0.2.1:{port}"));
        for n in 0..50 {
            world.offer(caller, &format!("held-{port}-{n}"), 1_000);
            world.step();
        }
    }
    world.run(Duration::from_secs(1));
    assert_eq!(world.receiver.transfers.len(), 64, "it has half");
    for n in 1..=8 {
        let other = world.caller(&format!("198.51.100.{n}:1"));
        let id = world.offer(other, &format!("file-{n}"), 1_000);
        world.run(Duration::from_millis(500));
        assert_eq!(world.offered(other, id), Some(0), "{n}");
    }
}

#[test]
fn a_host_with_octets_of_no_file_keeps_nobody_out_and_they_give_way_the_oldest_first() {
    let directory = room();
    let mut world = World::new(directory.path());
    let greedy = world.caller("192.0.2.1:1");
    for _ in 0..200 {
        world.connect(greedy, Mode::Unreliable, b"no message of any file");
        world.step();
    }
    world.run(Duration::from_secs(1));
    let lanes = |world: &World| world.receiver.lanes.keys().copied().collect::<Vec<_>>();
    assert_eq!(lanes(&world).len(), 64);
    // Callers from everywhere take all places.
    let mut n = 0;
    while world.receiver.lanes.len() < 128 {
        n += 1;
        assert!(n < 256, "{}", world.receiver.lanes.len());
        let one = world.caller(&format!("10.{n}.0.1:1"));
        world.connect(one, Mode::Unreliable, b"no message of any file");
        world.run(STEP * 3);
    }
    let before = lanes(&world);
    let newcomer = world.caller("198.51.100.1:1");
    let id = world.offer(newcomer, "file", 1_000);
    world.run(Duration::from_millis(500));
    assert_eq!(world.offered(newcomer, id), Some(0));
    assert_eq!(
        lanes(&world),
        before[1..],
        "the oldest of the greediest gave way"
    );
}

#[test]
fn what_is_here_is_read_once_however_often_it_is_offered() {
    const SIZE: usize = 5 << 20;
    let directory = room();
    std::fs::write(directory.path().join("file"), vec![7; SIZE]).expect("room");
    let mut world = World::new(directory.path());
    for n in 1..=20_u16 {
        let caller = world.caller(&format!("192.0.2.{}:1", n % 4));
        let id = world.offer(caller, "file", SIZE as u64);
        // Some leave before all is read, or before it may be read at all.
        world.run(STEP * u32::from(3 + n % 5));
        if n % 3 == 0 {
            world.run(Duration::from_secs(3));
            assert_eq!(world.offered(caller, id), Some(SIZE as u64), "{n}");
        }
        let now = world.now;
        world.callers[caller].machine.abort(now, id);
        world.run(STEP * 3);
    }
    assert_eq!(world.receiver.verified_bytes(), SIZE as u64);
    // A changed file is read again, and once.
    std::fs::write(directory.path().join("file"), vec![8; SIZE]).expect("room");
    for _ in 0..3 {
        let caller = world.caller("192.0.2.9:1");
        let id = world.offer(caller, "file", SIZE as u64);
        world.run(Duration::from_secs(3));
        assert_eq!(world.offered(caller, id), Some(SIZE as u64));
        let now = world.now;
        world.callers[caller].machine.abort(now, id);
        world.run(STEP * 3);
    }
    assert_eq!(world.receiver.verified_bytes(), 2 * SIZE as u64);
}

#[test]
fn a_part_is_not_read_again_for_who_comes_back_or_breaks_the_rules() {
    const SIZE: usize = 300_000;
    let directory = room();
    let mut world = World::new(directory.path());
    let caller = world.caller("192.0.2.1:1");
    let id = world.offer(caller, "file", 10 * SIZE as u64);
    world.run(Duration::from_millis(500));
    assert_eq!(world.offered(caller, id), Some(0));
    let mut octets = Vec::new();
    super::super::record::encode_data_head(0, 10_000, &mut octets);
    octets.resize(octets.len() + 10_000, 7);
    let now = world.now;
    let machine = &mut world.callers[caller].machine;
    assert_eq!(machine.write(now, id, &octets), Ok(octets.len()));
    world.run(Duration::from_secs(1));
    let now = world.now;
    world.callers[caller].machine.abort(now, id);
    world.run(STEP * 3);
    for n in 2..=10 {
        let caller = world.caller(&format!("192.0.2.{n}:1"));
        let id = world.offer(caller, "file", 10 * SIZE as u64);
        world.run(Duration::from_millis(500));
        assert_eq!(world.offered(caller, id), Some(10_000));
        let now = world.now;
        let machine = &mut world.callers[caller].machine;
        if n % 2 == 0 {
            machine.abort(now, id);
        } else {
            // A record of no type.
            assert_eq!(machine.write(now, id, &[99; 5]), Ok(5));
        }
        world.run(Duration::from_secs(8));
        assert!(world.receiver.transfers.is_empty(), "{n}");
    }
    assert_eq!(world.receiver.verified_bytes(), 0, "it was written here");
    // A receiver that was started anew does not know the file, and reads it once.
    let mut world = World::new(directory.path());
    for n in 1..=3 {
        let caller = world.caller(&format!("192.0.2.{n}:1"));
        let id = world.offer(caller, "file", 10 * SIZE as u64);
        world.run(Duration::from_millis(500));
        assert_eq!(world.offered(caller, id), Some(10_000));
        let now = world.now;
        world.callers[caller].machine.abort(now, id);
        world.run(STEP * 3);
    }
    assert_eq!(world.receiver.verified_bytes(), 10_000);
}

#[test]
fn nothing_is_read_for_an_address_that_was_not_shown() {
    let directory = room();
    std::fs::write(directory.path().join("file"), vec![7; 100_000]).expect("room");
    let mut world = World::new(directory.path());
    let forger = world.caller("192.0.2.1:1");
    world.callers[forger].hears = false;
    world.offer(forger, "file", 100_000);
    world.run(Duration::from_secs(10));
    assert_eq!(world.receiver.verified_bytes(), 0);
    let genuine = world.caller("192.0.2.1:2");
    world.offer(genuine, "file", 100_000);
    world.run(Duration::from_secs(10));
    assert_eq!(world.receiver.verified_bytes(), 100_000);
}
