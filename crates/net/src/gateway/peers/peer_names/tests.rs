//! Names that are answered, not answered, and answered late. All answers come from the test.

use super::*;
use crate::wait::{Interest, WakeUp, wait, waker};
use fulmar_proto::transport::aerotp::RateSource;
use fulmar_proto::units::ByteCount;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard};

/// Far beyond what any answer takes; it turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

fn host(last: u8) -> SocketAddr {
    ([192, 0, 2, last], 4_914).into()
}

/// The peers' names, and what they stand for. Names that begin with `slow` have no answer while the lock is held.
struct Lab {
    names: PeerNames,
    wake_up: WakeUp,
    zone: Arc<Mutex<BTreeMap<String, SocketAddr>>>,
    slow: Arc<Mutex<()>>,
    peers: Vec<PeerSettings>,
}

impl Lab {
    fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let (waker, wake_up) = waker().unwrap();
        let zone = Arc::new(Mutex::new(BTreeMap::new()));
        let slow = Arc::new(Mutex::new(()));
        let (asked, held) = (Arc::clone(&zone), Arc::clone(&slow));
        let lookup = move |name: &str, _port: u16| {
            if name.starts_with("slow") {
                drop(held.lock().unwrap());
            }
            let zone: MutexGuard<'_, BTreeMap<String, SocketAddr>> = asked.lock().unwrap();
            let found = zone.get(name).map(|found| vec![*found]);
            found.ok_or_else(|| io::Error::other("nobody has it"))
        };
        let resolver = Resolver::asking(&waker, lookup).unwrap();
        let mut lab = Self {
            names: PeerNames::new(resolver, false),
            wake_up,
            zone,
            slow,
            peers: names.into_iter().map(peer).collect(),
        };
        lab.names.follow(Instant::START, &lab.peers);
        lab
    }

    fn stands_for(&self, name: &str, address: SocketAddr) {
        let mut zone = self.zone.lock().unwrap();
        zone.insert(name.to_owned(), address);
    }

    /// Waits for an answer, which may be none of ours.
    fn sleep(&self) {
        let source = (self.wake_up.as_fd(), Interest::Readable);
        let mut ready = Vec::new();
        wait(&[source], Some(PATIENCE), &mut ready).unwrap();
        assert!(ready[0].readable, "waited in vain");
        self.wake_up.clear();
    }

    /// The next news at `now`, which must come.
    fn news(&mut self, now: Instant) -> (usize, SocketAddr) {
        loop {
            if let Some(news) = self.names.poll(now) {
                return news;
            }
            self.sleep();
        }
    }

    /// Lets every name that is asked for at `now` have its answer; whether there was news.
    fn settle(&mut self, now: Instant) -> bool {
        let mut any = self.names.poll(now).is_some();
        let waits = |lab: &Self| {
            let mut all = lab.names.sought.values();
            all.any(|sought| matches!(sought.turn, Turn::Answer(_)))
        };
        while waits(self) {
            self.sleep();
            while self.names.poll(now).is_some() {
                any = true;
            }
        }
        any
    }
}

fn peer(name: &str) -> PeerSettings {
    let host = Host::Name(name.parse().unwrap());
    PeerSettings {
        name: format!("peer {name}"),
        address: Some(Destination { host, port: 4_914 }),
        public_key: None,
        other_public_key: None,
        key_place: String::new(),
        rate: RateSource::of(None, None),
        mtu: ByteCount(1_500),
        carrier: crate::gateway::config::CarrierChoice::Udp,
        mtu_discovery: false,
        paths: Vec::new(),
        meeting: crate::gateway::config::MeetingSettings::default(),
        is_removed: false,
    }
}

#[test]
fn a_name_without_an_answer_delays_no_other() {
    let slow = ["slow-0", "slow-1", "slow-2"];
    let mut lab = Lab::of(slow.into_iter().chain(["ground"]));
    lab.stands_for("ground", host(1));
    let slow = Arc::clone(&lab.slow);
    let held = slow.lock().unwrap();
    assert_eq!(lab.news(Instant::START), (3, host(1)));
    // This goes on for as long as nobody answers for the others.
    let mut now = Instant::START;
    for n in 2..10 {
        lab.stands_for("ground", host(n));
        now += LOOK_AGAIN;
        assert_eq!(lab.names.next_look(), Some(now));
        assert_eq!(lab.news(now), (3, host(n)));
    }
    lab.stands_for("slow-1", host(99));
    drop(held);
    assert_eq!(lab.news(now), (1, host(99)));
}

#[test]
fn a_name_without_an_address_is_tried_for_ever_and_ever_more_rarely() {
    let mut lab = Lab::of(["ground"]);
    let mut now = Instant::START;
    let mut pauses = Vec::new();
    for _ in 0..9 {
        assert!(!lab.settle(now));
        let next = lab.names.next_look().unwrap();
        pauses.push(next.saturating_since(now).as_secs());
        let just_before = next
            .saturating_since(now)
            .saturating_sub(Duration::from_nanos(1));
        assert_eq!(lab.names.poll(now + just_before), None);
        assert_eq!(lab.names.next_look(), Some(next), "nobody was asked");
        now = next;
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    lab.stands_for("ground", host(1));
    assert_eq!(lab.news(now), (0, host(1)));
}

#[test]
fn an_address_is_news_once() {
    let mut lab = Lab::of(["ground"]);
    lab.stands_for("ground", host(1));
    assert_eq!(lab.news(Instant::START), (0, host(1)));
    let again = Instant::START + LOOK_AGAIN;
    assert_eq!(lab.names.next_look(), Some(again));
    assert!(!lab.settle(again));
    assert_eq!(lab.names.next_look(), Some(again + LOOK_AGAIN));
}

#[test]
fn a_reload_looks_at_once_and_an_answer_to_what_is_no_longer_asked_counts_for_nothing() {
    let mut lab = Lab::of(["ground", "slow"]);
    lab.stands_for("ground", host(1));
    lab.stands_for("slow", host(2));
    let slow = Arc::clone(&lab.slow);
    let held = slow.lock().unwrap();
    assert_eq!(lab.news(Instant::START), (0, host(1)));
    lab.stands_for("ground", host(3));
    lab.stands_for("elsewhere", host(4));
    lab.peers[1] = peer("elsewhere");
    lab.names.follow(Instant::START, &lab.peers);
    let mut news = [lab.news(Instant::START), lab.news(Instant::START)];
    news.sort_unstable();
    assert_eq!(news, [(0, host(3)), (1, host(4))]);
    drop(held);
    lab.sleep();
    assert_eq!(lab.names.poll(Instant::START), None, "it is elsewhere");
    lab.peers[0].is_removed = true;
    lab.peers[1].address = None;
    lab.names.follow(Instant::START, &lab.peers);
    assert_eq!(lab.names.next_look(), None);
}

#[test]
fn an_address_has_the_sockets_family() {
    let usable = |address: &str, v6| usable([address.parse().unwrap()].into_iter(), v6);
    let mapped: SocketAddr = "[::ffff:127.0.0.1]:4914".parse().unwrap();
    assert_eq!(usable("127.0.0.1:4914", true).unwrap(), mapped);
    let v4: SocketAddr = "127.0.0.1:4914".parse().unwrap();
    assert_eq!(usable("127.0.0.1:4914", false).unwrap(), v4);
    assert!(usable("[::1]:1", false).is_err());
}
