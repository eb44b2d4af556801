//! A peer that starts anew under its key is served as fast when the first datagram of its new session is lost.
//!
//! Method: a receiver and a server of tests, each inside a session, in virtual time; a caller is cut off in the middle of
//! what it does, and another process with its key calls. The probe with which that one begins is lost or not.

use crate::session_pair::{PATH, PEER, connection_config, endpoint_config, noise};
use fulmar_net::perf::{Client, ClientPlan, Direction, Limit, Observer, Server, ServerPlan, Test};
use fulmar_net::secured::{Secured, SecuredEndpoint};
use fulmar_net::session::{Entropy, MtuConfig, Session, SessionConfig, SessionEvent};
use fulmar_net::transfer::{
    Destination, ReceiveObserver, ReceivePlan, Receiver, SendPlan, Sender, Source, Stop,
};
use fulmar_net::udp::{Application, Step};
use fulmar_proto::machine::{Datagram, Deadline, Driver, Ecn, Machine, Transmit, drain};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{Endpoint, Event};
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use fulmar_proto::wire::aerotp::Mode;
use std::path::Path;

const DELAY: Duration = Duration::from_millis(20);
/// A sealed probe: header, type, number, time, tag.
const PROBE_BYTES: usize = 12 + 1 + 4 + 4 + 16;

/// How often the receiver, or the server, was asked.
#[derive(Debug, Default)]
struct Asked(u32);

impl ReceiveObserver for Asked {
    fn started(&mut self, _name: &str, _size: Option<u64>, _resumed_at: u64) {
        self.0 += 1;
    }
}

impl Observer for Asked {
    fn began(&mut self, _test: &Test) {
        self.0 += 1;
    }
}

struct Turn<'a, 'b, A, T> {
    app: &'a mut Secured<'b, A, T>,
    buffer: Vec<u8>,
    sent: Vec<Vec<u8>>,
    told: bool,
}

impl<A: Application<Endpoint>, T: FnMut(&str)> Driver<SecuredEndpoint> for Turn<'_, '_, A, T> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    fn send(&mut self, _now: Instant, _transmit: Transmit) {
        self.sent.push(std::mem::take(&mut self.buffer));
    }

    fn deliver(&mut self, now: Instant, link: &mut SecuredEndpoint, event: SessionEvent<Event>) {
        self.told = true;
        self.app.deliver(now, link, event);
    }
}

/// One end: an application in a session.
struct End<A> {
    link: SecuredEndpoint,
    app: A,
}

impl<A: Application<Endpoint>> End<A> {
    fn new(config: SessionConfig, seed: u8, app: impl FnOnce(&mut Endpoint) -> A) -> Self {
        let mut endpoint = Endpoint::new(endpoint_config(), Rng::from_seed(seed.into()));
        endpoint.hold(Instant::START, PEER.inner_path(), true);
        let app = app(&mut endpoint);
        let entropy = Entropy::from_seed([seed; 32]);
        let link = Session::new(config, endpoint, entropy);
        Self {
            link: link.expect("a sound configuration"),
            app,
        }
    }

    /// Does all that can be done now; what is sent, and when the next turn is due.
    fn settle(&mut self, now: Instant) -> (Vec<Vec<u8>>, Option<Deadline>) {
        let mut app = Secured::new(&mut self.app, |text: &str| panic!("{text}"));
        let mut turn = Turn {
            app: &mut app,
            buffer: Vec::new(),
            sent: Vec::new(),
            told: false,
        };
        if self.link.next_deadline().is_some_and(|due| due.at <= now) {
            self.link.handle_deadline(now);
        }
        loop {
            drain(&mut self.link, now, &mut turn);
            let step = turn.app.work(now, &mut self.link);
            turn.told = false;
            let deadline = drain(&mut self.link, now, &mut turn);
            if step == Step::Wait && !turn.told {
                let deadline = Deadline::earlier(deadline, turn.app.next_deadline());
                return (turn.sent, deadline);
            }
        }
    }

    fn hear(&mut self, now: Instant, octets: &[u8]) {
        let (path, ecn) = (PATH, Ecn::NotCapable);
        let datagram = Datagram { path, octets, ecn };
        self.link.handle_datagram(now, datagram);
    }
}

/// Datagrams on their way, in the order of arrival.
type Underway = Vec<(Instant, Vec<u8>)>;

/// The time that the second of two callers waits until it is served, the second time that `asked` counts.
fn served_after<A: Application<Endpoint>, B: Application<Endpoint>>(
    mut server: End<B>,
    caller: impl Fn(u8) -> End<A>,
    asked: impl Fn(&B) -> u32,
    loses_probe: bool,
) -> Duration {
    let mut now = Instant::START;
    let (mut there, mut back): (Underway, Underway) = (Vec::new(), Vec::new());
    let mut call = caller(21);
    let mut called_again = None;
    let mut lost = 0;
    loop {
        let (from_caller, due) = call.settle(now);
        for octets in from_caller {
            let is_probe = called_again.is_some() && octets.len() == PROBE_BYTES;
            if loses_probe && is_probe && lost == 0 {
                lost += 1;
            } else {
                there.push((now + DELAY, octets));
            }
        }
        let (from_server, due_there) = server.settle(now);
        back.extend(from_server.into_iter().map(|octets| (now + DELAY, octets)));
        match called_again {
            // In the middle of what it does.
            None if asked(&server.app) == 1 && now > Instant::START + DELAY * 20 => {
                (call, called_again) = (caller(22), Some(now));
                there.clear();
                back.clear();
                continue;
            }
            Some(since) if asked(&server.app) == 2 => {
                assert_eq!(lost, u32::from(loses_probe));
                return now.saturating_since(since);
            }
            _ => {}
        }
        let arrivals = there.iter().chain(&back).map(|(at, _)| *at);
        let due = [due, due_there].into_iter().flatten().map(|due| due.at);
        now = arrivals.chain(due).min().expect("somebody waits").max(now);
        assert!(
            now < Instant::START + Duration::from_secs(60),
            "it is never served"
        );
        let has_come = |(at, _): &(Instant, Vec<u8>)| *at <= now;
        if there.first().is_some_and(has_come) {
            server.hear(now, &there.remove(0).1);
        } else if back.first().is_some_and(has_come) {
            call.hear(now, &back.remove(0).1);
        }
    }
}

/// The configurations of the caller in its life `seed`, and of the end that is called.
fn config(seed: u8) -> [SessionConfig; 2] {
    let mut configs = noise();
    configs[0].boot_epoch += u64::from(seed) << 24;
    for config in &mut configs {
        // As such ends have it: nothing but the probe comes before what they have to say.
        config.peers[0].mtu = MtuConfig::fixed(ByteCount(1_500));
    }
    configs
}

fn receiver(directory: &Path) -> End<Receiver<Asked>> {
    let [_, config] = config(0);
    let plan = ReceivePlan {
        destination: Destination::Directory {
            path: directory.to_owned(),
            replace: false,
        },
        connection: connection_config(),
        once: false,
        checkpoint_every: Duration::from_millis(100),
    };
    End::new(config, 11, |endpoint| {
        let made = Receiver::new(plan, endpoint, Stop::default(), Asked::default());
        made.expect("sound settings")
    })
}

#[test]
fn a_sender_that_starts_anew_is_heard_at_once_though_its_first_datagram_is_lost() {
    let place = tempfile::tempdir().expect("room");
    let file = place.path().join("file");
    std::fs::write(&file, vec![7; 3_000_000]).expect("room");
    let waits = [false, true].map(|loses_probe| {
        let inbox = place.path().join(loses_probe.to_string());
        std::fs::create_dir(&inbox).expect("room");
        let caller = |seed: u8| {
            let [config, _] = config(seed);
            End::new(config, seed, |_| {
                let plan = SendPlan {
                    name: "file".to_owned(),
                    connection: connection_config(),
                    connect_timeout: Duration::from_secs(10),
                    id: seed.into(),
                };
                let source = Source::open(&file).expect("it was just written");
                Sender::new(plan, PEER.inner_path(), source, Stop::default(), ())
            })
        };
        let asked = |app: &Receiver<Asked>| app.observer.0;
        served_after(receiver(&inbox), caller, asked, loses_probe)
    });
    assert_eq!(waits[0], waits[1]);
    // The handshake, and the opening behind it.
    assert!(waits[0] <= DELAY * 4, "{waits:?}");
}

#[test]
fn a_test_that_is_asked_for_anew_begins_at_once_though_the_first_datagram_is_lost() {
    let waits = [false, true].map(|loses_probe| {
        let [_, there] = config(0);
        let server = End::new(there, 11, |endpoint| {
            let plan = ServerPlan {
                connection: connection_config(),
                rate_max: Bitrate::from_bits_per_second(10_000_000),
                once: false,
            };
            let made = Server::new(plan, endpoint, Stop::default(), Asked::default());
            made.expect("sound settings")
        });
        let caller = |seed: u8| {
            let [config, _] = config(seed);
            End::new(config, seed, |_| {
                let mut test = Test::new(seed.into(), Mode::Reliable, Direction::Up);
                test.limit = Limit::Time(Duration::from_secs(20));
                test.link_bps = 5_000_000;
                let plan = ClientPlan {
                    test,
                    connection: connection_config(),
                    connect_timeout: Duration::from_secs(10),
                };
                Client::new(plan, PEER.inner_path(), Stop::default(), Asked::default())
            })
        };
        served_after(server, caller, |app| app.observer.0, loses_probe)
    });
    assert_eq!(waits[0], waits[1]);
}
