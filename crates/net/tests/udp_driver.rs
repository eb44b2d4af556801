//! The UDP driver runs a machine over real loopback sockets.
//!
//! Method: a toy machine that floods datagrams and counts those that arrive; it is wrapped in
//! [`Strict`], so that a breach of the contract by the loop panics. No test depends on speed: each
//! ends when its work is done, and a generous deadline only turns a hang into a failure.

use fulmar_net::clock::Clock;
use fulmar_net::udp::{
    Application, DatagramOrigin, Path, PathTableConfig, PortConfig, Step, UdpDriver, UdpPort,
};
use fulmar_net::wait::{Waker, waker};
use fulmar_proto::machine::{
    Datagram, Deadline, Ecn, Machine, PathId, Priority, Strict, Transmit, TransmitKind,
};
use fulmar_proto::units::{Duration, Instant};
use std::net::SocketAddr;

const GIVE_UP: Duration = Duration::from_secs(20);

/// A machine that floods `left` datagrams of `len` octets, and reports arrivals.
struct Flood {
    to: PathId,
    left: u32,
    len: usize,
    arrived: Vec<(usize, Ecn)>,
    reported: usize,
}

impl Flood {
    fn of(to: PathId, count: u32, len: usize) -> Strict<Self> {
        Strict::new(Self {
            to,
            left: count,
            len,
            arrived: Vec::new(),
            reported: 0,
        })
    }
}

impl Machine for Flood {
    type Event = usize;

    fn handle_datagram(&mut self, _now: Instant, datagram: Datagram<'_>) {
        self.arrived.push((datagram.octets.len(), datagram.ecn));
    }

    fn handle_deadline(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.left = self.left.checked_sub(1)?;
        out.resize(out.len() + self.len, 7);
        Some(Transmit {
            path: self.to,
            len: self.len,
            kind: TransmitKind::Source,
            priority: Priority(0),
            ecn: Ecn::Capable,
        })
    }

    fn poll_event(&mut self) -> Option<usize> {
        let arrived = self.arrived.len();
        (self.reported < arrived).then(|| {
            self.reported = arrived;
            arrived
        })
    }

    fn next_deadline(&self) -> Option<Deadline> {
        None
    }
}

/// An application that stops once `wanted` datagrams have arrived, the peer is unreachable, or time is up.
#[derive(Default)]
struct Until {
    wanted: usize,
    arrived: usize,
    unreachable: Vec<PathId>,
    gave_up: bool,
    started: Option<Instant>,
}

impl Application<Strict<Flood>> for Until {
    fn deliver(&mut self, _now: Instant, _machine: &mut Strict<Flood>, arrived: usize) {
        self.arrived = arrived;
    }

    fn work(&mut self, now: Instant, _machine: &mut Strict<Flood>) -> Step {
        let started = *self.started.get_or_insert(now);
        self.gave_up = now.saturating_since(started) >= GIVE_UP;
        if self.arrived >= self.wanted || self.gave_up || !self.unreachable.is_empty() {
            return Step::Stop;
        }
        Step::Wait
    }

    fn unreachable(&mut self, _now: Instant, _machine: &mut Strict<Flood>, path: PathId) {
        self.unreachable.push(path);
    }

    fn next_deadline(&self) -> Option<Deadline> {
        self.started.map(|started| Deadline {
            at: started + GIVE_UP,
            why: "test gives up",
        })
    }
}

fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

fn driver(port: UdpPort) -> (UdpDriver, Waker) {
    let (waker, wake_up) = waker().expect("descriptors are left");
    (
        UdpDriver::new(Clock::start(), port, wake_up, PathTableConfig::default()),
        waker,
    )
}

#[test]
fn a_flood_arrives_in_bursts_with_its_ecn_field() {
    const COUNT: u32 = 200;
    const LEN: usize = 1_000;
    let (mut receiver, _receiver_waker) =
        driver(UdpPort::bind(loopback(), PortConfig::default()).unwrap());
    let to = receiver.port().local().unwrap();
    let (mut sender, _sender_waker) = driver(UdpPort::connect(to, PortConfig::default()).unwrap());
    let path = sender.path_to(to).unwrap();

    let mut flood = Flood::of(path, COUNT, LEN);
    sender.run(&mut flood, &mut Until::default()).unwrap();
    let sent = sender.port().counters();
    assert_eq!(sent.sent, u64::from(COUNT));
    assert!(sent.bursts > 0, "GSO joined nothing: {sent:?}");

    let mut sink = Flood::of(PathId(0), 0, 0);
    let mut until = Until {
        wanted: COUNT as usize,
        ..Until::default()
    };
    receiver.run(&mut sink, &mut until).unwrap();
    assert!(!until.gave_up, "only {} of {COUNT} arrived", until.arrived);
    for (index, arrived) in sink.inner().arrived.iter().enumerate() {
        assert_eq!(*arrived, (LEN, Ecn::Capable), "datagram {index}");
    }
}

#[test]
fn a_refused_datagram_is_told_to_the_application_and_ends_nothing() {
    // Connected elsewhere, so that what others send there is refused, and held, so that nobody else gets the port.
    let held = std::net::UdpSocket::bind(loopback()).unwrap();
    held.connect("127.0.0.1:9").unwrap();
    let closed = held.local_addr().unwrap();
    let (mut sender, _waker) = driver(UdpPort::connect(closed, PortConfig::default()).unwrap());
    let path = sender.path_to(closed).unwrap();
    let mut until = Until {
        wanted: 1,
        ..Until::default()
    };
    sender
        .run(&mut Flood::of(path, 1, 100), &mut until)
        .unwrap();
    assert_eq!(until.unreachable, [path]);
    assert!(sender.port().counters().refused > 0);
}

#[test]
fn a_datagram_above_the_largest_possible_is_counted_and_the_next_one_sent() {
    let sink = std::net::UdpSocket::bind(loopback()).unwrap();
    let remote = sink.local_addr().unwrap();
    let mut port = UdpPort::connect(remote, PortConfig::default()).unwrap();
    for len in [65_536, 10] {
        let longer = port.buffer().len() + len;
        port.buffer().resize(longer, 0);
        port.send(&Path::udp(remote, None), len, Ecn::NotCapable);
    }
    port.flush();
    assert_eq!((port.counters().too_big, port.counters().sent), (1, 1));
    assert_eq!(sink.recv(&mut [0; 100]).unwrap(), 10);
}

/// A machine that answers every datagram with one octet.
#[derive(Default)]
struct Echo(Vec<PathId>);

impl Machine for Echo {
    type Event = ();

    fn handle_datagram(&mut self, _now: Instant, datagram: Datagram<'_>) {
        self.0.push(datagram.path);
    }

    fn handle_deadline(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let path = self.0.pop()?;
        out.push(7);
        Some(Transmit {
            path,
            len: 1,
            kind: TransmitKind::Control,
            priority: Priority(0),
            ecn: Ecn::NotCapable,
        })
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn next_deadline(&self) -> Option<Deadline> {
        None
    }
}

/// An application that wants a path to a named peer once four datagrams have come, and stops when it knows whether
/// there is one.
struct Named {
    heard: Vec<PathId>,
    peer: SocketAddr,
    /// The number of the first paths that are in use.
    in_use: usize,
    is_answered: bool,
    made: Option<PathId>,
}

impl Application<Echo> for Named {
    fn deliver(&mut self, _now: Instant, _machine: &mut Echo, _event: ()) {}

    fn arrived(
        &mut self,
        now: Instant,
        machine: &mut Echo,
        datagram: Datagram<'_>,
        _origin: DatagramOrigin,
    ) {
        self.heard.push(datagram.path);
        machine.handle_datagram(now, datagram);
    }

    fn work(&mut self, _now: Instant, _machine: &mut Echo) -> Step {
        if self.is_answered {
            Step::Stop
        } else {
            Step::Wait
        }
    }

    fn unreachable(&mut self, _now: Instant, _machine: &mut Echo, _path: PathId) {}

    fn paths_in_use(&self, _now: Instant, _machine: &Echo) -> Option<Vec<PathId>> {
        let mut paths = self.heard.clone();
        paths.dedup();
        paths.truncate(self.in_use);
        Some(paths)
    }

    fn wants_path(&self, _now: Instant) -> Option<SocketAddr> {
        (self.heard.len() == 4 && !self.is_answered).then_some(self.peer)
    }

    fn path_made(
        &mut self,
        _now: Instant,
        _machine: &mut Echo,
        remote: SocketAddr,
        path: Option<PathId>,
    ) {
        assert_eq!(remote, self.peer);
        self.is_answered = true;
        self.made = path;
    }

    fn next_deadline(&self) -> Option<Deadline> {
        None
    }
}

#[test]
fn a_named_peer_finds_its_place_among_talkers_unless_every_place_is_in_use() {
    for in_use in 0..=2 {
        let (_waker, wake_up) = waker().expect("descriptors are left");
        let port = UdpPort::bind(loopback(), PortConfig::default()).unwrap();
        let own = port.local().unwrap();
        let places = PathTableConfig {
            paths_max: 2,
            ..PathTableConfig::default()
        };
        let mut driver = UdpDriver::new(Clock::start(), port, wake_up, places);
        let talkers = std::thread::spawn(move || {
            for _ in 0..2 {
                let talker = std::net::UdpSocket::bind(loopback()).unwrap();
                for _ in 0..2 {
                    talker.send_to(&[1], own).unwrap();
                    assert_eq!(talker.recv(&mut [0; 10]).unwrap(), 1);
                }
            }
        });
        let mut named = Named {
            heard: Vec::new(),
            peer: ([192, 0, 2, 1], 4_914).into(),
            in_use,
            is_answered: false,
            made: None,
        };
        driver.run(&mut Echo::default(), &mut named).unwrap();
        talkers.join().unwrap();
        let made = named.made;
        assert_eq!(made.is_some(), in_use < 2);
        let remote = made.and_then(|path| driver.remote(path));
        assert_eq!(remote, made.map(|_| named.peer));
        let kept = named.heard.iter().step_by(2).take(in_use);
        for path in kept {
            assert!(driver.remote(*path).is_some(), "it is in use");
        }
    }
}

/// An application that stops when it has been woken.
struct Woken {
    turns: u32,
}

impl Application<Strict<Flood>> for Woken {
    fn deliver(&mut self, _now: Instant, _machine: &mut Strict<Flood>, _arrived: usize) {}

    fn work(&mut self, _now: Instant, _machine: &mut Strict<Flood>) -> Step {
        self.turns += 1;
        if self.turns > 1 {
            Step::Stop
        } else {
            Step::Wait
        }
    }

    fn unreachable(&mut self, _now: Instant, _machine: &mut Strict<Flood>, _path: PathId) {}

    fn next_deadline(&self) -> Option<Deadline> {
        None
    }
}

#[test]
fn another_thread_wakes_a_loop_that_waits_for_nothing() {
    let (mut idle, waker) = driver(UdpPort::bind(loopback(), PortConfig::default()).unwrap());
    let caller = std::thread::spawn(move || waker.wake().unwrap());
    let mut woken = Woken { turns: 0 };
    idle.run(&mut Flood::of(PathId(0), 0, 0), &mut woken)
        .unwrap();
    caller.join().unwrap();
    assert_eq!(woken.turns, 2);
}

/// An application that looks, when it works for the first time, whether what the machine had to say has arrived.
struct Looking {
    receiver: std::net::UdpSocket,
    times_departures: bool,
    has_left: Option<bool>,
}

impl Application<Strict<Flood>> for Looking {
    fn deliver(&mut self, _now: Instant, _machine: &mut Strict<Flood>, _arrived: usize) {}

    fn work(&mut self, _now: Instant, _machine: &mut Strict<Flood>) -> Step {
        let octets = self.receiver.recv(&mut [0; 1_000]);
        self.has_left = Some(octets.is_ok());
        Step::Stop
    }

    fn unreachable(&mut self, _now: Instant, _machine: &mut Strict<Flood>, _path: PathId) {}

    fn times_departures(&self, _machine: &Strict<Flood>) -> bool {
        self.times_departures
    }

    fn next_deadline(&self) -> Option<Deadline> {
        None
    }
}

#[test]
fn what_a_machine_made_leaves_before_the_work_where_the_time_of_leaving_matters_and_with_it_elsewhere()
 {
    for times_departures in [true, false] {
        let receiver = std::net::UdpSocket::bind(loopback()).unwrap();
        // What should have left may be on its way; what should not have is not waited for.
        receiver.set_nonblocking(!times_departures).unwrap();
        let patience = Duration::from_secs(20);
        receiver.set_read_timeout(Some(patience)).unwrap();
        let to = receiver.local_addr().unwrap();
        let (mut sender, _waker) = driver(UdpPort::connect(to, PortConfig::default()).unwrap());
        let path = sender.path_to(to).unwrap();
        // Later than the least time between two bursts after the start.
        while sender.clock().now() < Instant::START + Duration::from_millis(1) {}
        let mut looking = Looking {
            receiver,
            times_departures,
            has_left: None,
        };
        sender
            .run(&mut Flood::of(path, 1, 100), &mut looking)
            .unwrap();
        assert_eq!(looking.has_left, Some(times_departures));
        assert_eq!(sender.port().counters().sent, 1, "it leaves at the end");
    }
}

/// An application that stops at its first work after something arrived, and sends one more datagram to its own socket
/// with each of the first that arrive.
struct Following {
    own: SocketAddr,
    more: std::net::UdpSocket,
    to_send: u32,
    arrived: u32,
    works: u32,
}

impl Application<Strict<Flood>> for Following {
    fn deliver(&mut self, _now: Instant, _machine: &mut Strict<Flood>, _arrived: usize) {}

    fn arrived(
        &mut self,
        now: Instant,
        machine: &mut Strict<Flood>,
        datagram: Datagram<'_>,
        _origin: DatagramOrigin,
    ) {
        self.arrived += 1;
        if let Some(left) = self.to_send.checked_sub(1) {
            self.to_send = left;
            let sent = self.more.send_to(&[7; 10], self.own);
            sent.expect("the loopback takes it");
        }
        machine.handle_datagram(now, datagram);
    }

    fn work(&mut self, _now: Instant, _machine: &mut Strict<Flood>) -> Step {
        self.works += u32::from(self.arrived > 0);
        if self.works > 0 {
            Step::Stop
        } else {
            Step::Wait
        }
    }

    fn unreachable(&mut self, _now: Instant, _machine: &mut Strict<Flood>, _path: PathId) {}

    fn next_deadline(&self) -> Option<Deadline> {
        None
    }
}

#[test]
fn what_came_while_datagrams_were_taken_is_taken_before_the_application_works() {
    let (mut receiver, _waker) = driver(UdpPort::bind(loopback(), PortConfig::default()).unwrap());
    let own = receiver.port().local().unwrap();
    let more = std::net::UdpSocket::bind(loopback()).unwrap();
    more.send_to(&[7; 10], own).unwrap();
    let mut following = Following {
        own,
        more,
        to_send: 2,
        arrived: 0,
        works: 0,
    };
    receiver
        .run(&mut Flood::of(PathId(0), 0, 0), &mut following)
        .unwrap();
    assert_eq!(following.arrived, 3);
}
