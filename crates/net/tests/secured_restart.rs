//! A caller that starts anew under its key is served as fast when the first datagram of its new session is lost; and
//! where the end that is called starts anew, the file goes on, and a test ends, or is asked for again if it had no
//! answer.
//!
//! Method: a receiver and a server of tests, each inside a session, in virtual time. A caller is cut off in the middle
//! of what it does, and another process with its key calls; the probe with which that one begins is lost or not. Or
//! the end that is called is cut off, at several moments, and another process with its key listens, at once or later.

use crate::session_pair::{PATH, PEER, connection_config, endpoint_config, noise};
use fulmar_net::perf::{
    Client, ClientPlan, Limit, Observer, PerfError, PerfServer, ServerPlan, Test, TestDirection,
};
use fulmar_net::secured::{Secured, SecuredEndpoint, SecurityNote};
use fulmar_net::session::{Entropy, MtuConfig, Session, SessionConfig, SessionEvent};
use fulmar_net::transfer::{
    FileDestination, ReceiveObserver, ReceivePlan, Receiver, SendPlan, SendReport, Sender, Source,
    Stop,
};
use fulmar_net::udp::{Application, Step};
use fulmar_proto::machine::{Datagram, Deadline, Ecn, Machine, MachineDriver, Transmit, drain};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{AerotpEndpoint, Event};
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use fulmar_proto::wire::Mode;
use std::path::{Path, PathBuf};

const DELAY: Duration = Duration::from_millis(20);
/// A sealed probe: header, type, number, time, tag.
const PROBE_BYTES: usize = 12 + 1 + 4 + 4 + 16;

/// The number of times that the receiver, or the server, was asked.
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

impl<A: Application<AerotpEndpoint>, T: FnMut(SecurityNote)> MachineDriver<SecuredEndpoint>
    for Turn<'_, '_, A, T>
{
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

impl<A: Application<AerotpEndpoint>> End<A> {
    fn new(config: SessionConfig, seed: u8, app: impl FnOnce(&mut AerotpEndpoint) -> A) -> Self {
        let mut endpoint = AerotpEndpoint::new(endpoint_config(), Rng::from_seed(seed.into()));
        endpoint.hold(Instant::START, PEER.inner_path(), true);
        let app = app(&mut endpoint);
        let entropy = Entropy::from_seed([seed; 32]);
        let link = Session::new(config, endpoint, entropy);
        Self {
            link: link.expect("a sound configuration"),
            app,
        }
    }

    /// Does all that can be done now. Returns the datagrams sent, and the time of the next turn.
    fn settle(&mut self, now: Instant) -> (Vec<Vec<u8>>, Option<Deadline>) {
        let mut app = Secured::new(&mut self.app, |note: SecurityNote| panic!("{note:?}"));
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
            if step == Step::Stop || (step == Step::Wait && !turn.told) {
                let deadline = Deadline::earlier(deadline, turn.app.next_deadline());
                return (turn.sent, deadline);
            }
        }
    }

    /// Tells the end that nobody listens, as the network does.
    fn unreachable(&mut self, now: Instant) {
        let mut app = Secured::new(&mut self.app, |note: SecurityNote| panic!("{note:?}"));
        app.unreachable(now, &mut self.link, PATH);
    }

    fn hear(&mut self, now: Instant, octets: &[u8]) {
        let (path, ecn) = (PATH, Ecn::NotCapable);
        let datagram = Datagram { path, octets, ecn };
        self.link.handle_datagram(now, datagram);
    }
}

/// Datagrams on their way, in the order of arrival.
type Underway = Vec<(Instant, Vec<u8>)>;

/// Two ends, the datagrams between them, and the time.
struct Line<A, B> {
    now: Instant,
    call: End<A>,
    /// The end that is called; without it, the caller hears that nobody listens.
    called: Option<End<B>>,
    there: Underway,
    back: Underway,
    due: Option<Deadline>,
}

impl<A: Application<AerotpEndpoint>, B: Application<AerotpEndpoint>> Line<A, B> {
    fn new(call: End<A>, called: End<B>) -> Self {
        Self {
            now: Instant::START,
            call,
            called: Some(called),
            there: Vec::new(),
            back: Vec::new(),
            due: None,
        }
    }

    /// Lets both ends do all they can. The caller's datagrams for which `arrives` is `false` are lost.
    fn settle(&mut self, mut arrives: impl FnMut(&[u8]) -> bool) {
        let at = self.now + DELAY;
        let (sent, due) = self.call.settle(self.now);
        let sent = sent.into_iter().filter(|octets| arrives(octets));
        self.there.extend(sent.map(|octets| (at, octets)));
        let called = self.called.as_mut().map(|end| end.settle(self.now));
        let (answers, due_there) = called.unwrap_or_default();
        self.back
            .extend(answers.into_iter().map(|octets| (at, octets)));
        self.due = Deadline::earlier(due, due_there);
    }

    /// Goes on to the next arrival or deadline, or to `other`.
    fn advance(&mut self, other: Option<Instant>) {
        let arrivals = self.there.iter().chain(&self.back).map(|(at, _)| *at);
        let due = [self.due.map(|due| due.at), other];
        let next = arrivals.chain(due.into_iter().flatten()).min();
        self.now = next.expect("somebody waits").max(self.now);
        assert!(
            self.now < Instant::START + Duration::from_secs(60),
            "it never ends"
        );
        let has_come = |(at, _): &(Instant, Vec<u8>)| *at <= self.now;
        if self.there.first().is_some_and(has_come) {
            let (_, octets) = self.there.remove(0);
            match &mut self.called {
                Some(called) => called.hear(self.now, &octets),
                None => self.call.unreachable(self.now),
            }
        } else if self.back.first().is_some_and(has_come) {
            self.call.hear(self.now, &self.back.remove(0).1);
        }
    }

    fn lose_all(&mut self) {
        self.there.clear();
        self.back.clear();
    }
}

/// The time that the second of two callers waits until it is served, the second time that `asked` counts.
fn served_after<A: Application<AerotpEndpoint>, B: Application<AerotpEndpoint>>(
    server: End<B>,
    caller: impl Fn(u8) -> End<A>,
    asked: impl Fn(&B) -> u32,
    loses_probe: bool,
) -> Duration {
    let mut line = Line::new(caller(21), server);
    let mut called_again = None;
    let mut lost = 0;
    loop {
        line.settle(|octets| {
            let is_probe = called_again.is_some() && octets.len() == PROBE_BYTES;
            let is_lost = loses_probe && is_probe && lost == 0;
            lost += u32::from(is_lost);
            !is_lost
        });
        let asked = line.called.as_ref().map(|server| asked(&server.app));
        match called_again {
            // The caller is cut off in the middle of its work.
            None if asked == Some(1) && line.now > Instant::START + DELAY * 20 => {
                (line.call, called_again) = (caller(22), Some(line.now));
                line.lose_all();
                continue;
            }
            Some(since) if asked == Some(2) => {
                assert_eq!(lost, u32::from(loses_probe));
                return line.now.saturating_since(since);
            }
            _ => {}
        }
        line.advance(None);
    }
}

/// The first word of `ends` about a caller and the end it calls, after that was killed `after` the start and started
/// again `away` later.
fn after_restart<A: Application<AerotpEndpoint>, B: Application<AerotpEndpoint>, R>(
    call: End<A>,
    called: impl Fn(u8) -> End<B>,
    (after, away): (Duration, Duration),
    ends: impl Fn(&mut A, &B) -> Option<R>,
) -> R {
    let mut line = Line::new(call, called(0));
    let killed = Instant::START + after;
    let back = killed + away;
    let mut life = 0;
    loop {
        line.settle(|_| true);
        if line.called.is_some() && life == 0 && line.now >= killed {
            line.called = None;
            line.lose_all();
        }
        if line.called.is_none() && line.now >= back {
            life = 1;
            line.called = Some(called(life));
        }
        if let Some(called) = line.called.as_ref().filter(|_| life == 1)
            && let Some(end) = ends(&mut line.call.app, &called.app)
        {
            return end;
        }
        let next = [killed, back].into_iter().find(|at| *at > line.now);
        line.advance(next);
    }
}

/// The configurations of the caller and of the end that is called, each in one of its lives.
fn config(lives: [u8; 2]) -> [SessionConfig; 2] {
    let mut configs = noise();
    for (config, life) in configs.iter_mut().zip(lives) {
        config.boot_epoch += u64::from(life) << 24;
        // As real ends have it: only the probe comes before the first record.
        config.peers[0].mtu = MtuConfig::fixed(ByteCount(1_500));
    }
    configs
}

fn receiver(directory: &Path, life: u8) -> End<Receiver<Asked>> {
    let [_, config] = config([0, life]);
    let plan = ReceivePlan {
        destination: FileDestination::Directory {
            path: directory.to_owned(),
            replace: false,
        },
        connection: connection_config(),
        once: false,
        checkpoint_every: Duration::from_millis(100),
    };
    End::new(config, 11 + life, |endpoint| {
        let made = Receiver::new(plan, endpoint, Stop::default(), Asked::default());
        made.expect("sound settings")
    })
}

/// A sender of `file`, in its life `life`.
fn sender(file: &Path, life: u8) -> End<Sender<()>> {
    let [config, _] = config([life, 0]);
    End::new(config, life, |_| {
        let plan = SendPlan {
            name: "file".to_owned(),
            connection: connection_config(),
            connect_timeout: Duration::from_secs(10),
            id: life.into(),
        };
        let source = Source::open(file).expect("it was just written");
        Sender::new(plan, PEER.inner_path(), source, Stop::default(), ())
    })
}

fn server(life: u8) -> End<PerfServer<Asked>> {
    let [_, config] = config([0, life]);
    End::new(config, 11 + life, |endpoint| {
        let plan = ServerPlan {
            connection: connection_config(),
            rate_max: Bitrate::from_bits_per_second(10_000_000),
            sharing: None,
            once: false,
        };
        let made = PerfServer::new(plan, endpoint, Stop::default(), Asked::default());
        made.expect("sound settings")
    })
}

/// A client that asks for a test of 20 s, in its life `life`.
fn client(life: u8, direction: TestDirection) -> End<Client<Asked>> {
    let [config, _] = config([life, 0]);
    End::new(config, life, |_| {
        let mut test = Test::new(life.into(), Mode::Reliable, direction);
        test.limit = Limit::Time(Duration::from_secs(20));
        test.link_bps = 5_000_000;
        let plan = ClientPlan {
            test,
            connection: connection_config(),
            connect_timeout: Duration::from_secs(10),
            sounding_every: None,
        };
        Client::new(plan, PEER.inner_path(), Stop::default(), Asked::default())
    })
}

/// A file that takes 2.4 s, in a place of its own.
fn file() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().expect("room");
    let file = place.path().join("file");
    std::fs::write(&file, vec![7; 3_000_000]).expect("room");
    (place, file)
}

#[test]
fn a_sender_that_starts_anew_is_heard_at_once_though_its_first_datagram_is_lost() {
    let (place, file) = file();
    let waits = [false, true].map(|loses_probe| {
        let inbox = place.path().join(loses_probe.to_string());
        std::fs::create_dir(&inbox).expect("room");
        let asked = |app: &Receiver<Asked>| app.observer.0;
        let caller = |life| sender(&file, life);
        served_after(receiver(&inbox, 0), caller, asked, loses_probe)
    });
    assert_eq!(waits[0], waits[1]);
    // The wait covers the handshake, and the opening behind it.
    assert!(waits[0] <= DELAY * 4, "{waits:?}");
}

#[test]
fn a_test_that_is_asked_for_anew_begins_at_once_though_the_first_datagram_is_lost() {
    let waits = [false, true].map(|loses_probe| {
        let caller = |life| client(life, TestDirection::Up);
        served_after(server(0), caller, |app| app.observer.0, loses_probe)
    });
    assert_eq!(waits[0], waits[1]);
}

/// The times of the kill: before the session stands, and between that and the first answer inside it.
const BEFORE_AN_ANSWER: [Duration; 2] = [Duration::from_millis(30), Duration::from_millis(50)];
const IN_THE_MIDDLE: Duration = Duration::from_secs(1);
/// The times until the restart: at once, and after the caller has been told that nobody listens and has opened a
/// further
/// connection.
const AWAY: [Duration; 2] = [Duration::ZERO, Duration::from_millis(600)];

/// The report of a sender whose receiver is killed and started again, once the file has arrived.
fn sent_in_spite_of(killed: (Duration, Duration)) -> SendReport {
    let (place, file) = file();
    let inbox = place.path().join("in");
    std::fs::create_dir(&inbox).expect("room");
    let called = |life| receiver(&inbox, life);
    let ends = |sender: &mut Sender<()>, _: &Receiver<Asked>| sender.take_outcome();
    let report = after_restart(sender(&file, 21), called, killed, ends);
    let report = report.unwrap_or_else(|error| panic!("{killed:?}: {error}"));
    let arrived = std::fs::read(inbox.join("file")).expect("it is there");
    assert!(arrived == vec![7; 3_000_000], "{killed:?}");
    report
}

#[test]
fn a_receiver_that_starts_anew_costs_a_reconnection_and_not_the_file() {
    for away in AWAY {
        let report = sent_in_spite_of((IN_THE_MIDDLE, away));
        assert_eq!(report.reconnections, 1, "{away:?}");
        assert!(report.resumed_at > 0, "{away:?}");
    }
}

#[test]
fn a_receiver_that_starts_anew_before_it_has_answered_gets_the_file() {
    for after in BEFORE_AN_ANSWER {
        for away in AWAY {
            let report = sent_in_spite_of((after, away));
            assert_eq!(report.reconnections, 0, "{after:?}, {away:?}");
        }
    }
}

#[test]
fn a_server_that_starts_anew_before_it_has_answered_is_asked_again() {
    for after in BEFORE_AN_ANSWER {
        for direction in [TestDirection::Up, TestDirection::Down] {
            let served = |client: &mut Client<Asked>, server: &PerfServer<Asked>| {
                let outcome = client.take_outcome().map(|outcome| outcome.map(drop));
                outcome.or((server.observer.0 == 1).then_some(Ok(())))
            };
            let killed = (after, Duration::ZERO);
            let outcome = after_restart(client(21, direction), server, killed, served);
            outcome.unwrap_or_else(|error| panic!("{after:?}, {direction:?}: {error}"));
        }
    }
}

#[test]
fn a_server_that_starts_anew_in_the_middle_of_a_test_ends_it() {
    for direction in [TestDirection::Up, TestDirection::Down] {
        for away in AWAY {
            let ends = |client: &mut Client<Asked>, _: &PerfServer<Asked>| client.take_outcome();
            let killed = (IN_THE_MIDDLE, away);
            let outcome = after_restart(client(21, direction), server, killed, ends);
            assert!(matches!(outcome, Err(PerfError::Ended)), "{outcome:?}");
        }
    }
}
