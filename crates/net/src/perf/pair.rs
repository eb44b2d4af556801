//! Client and server over a lossy link, in virtual time: whatever is asked for, the figures of both ends add up.

use super::figures::{Interval, Sent};
use super::test::{Limit, Test, TestDirection};
use super::{
    Client, ClientPlan, Observer, PERF_DATA_PORT, PerfError, PerfReport, PerfServer, STREAMS_MAX,
    ServerPlan,
};
use crate::transfer::Stop;
use crate::udp::{Application, Step};
use fulmar_proto::machine::{
    Datagram, Deadline, Ecn, Machine, MachineDriver, PathId, Transmit, drain,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, ConnectionConfig, EndpointConfig, ModeRules, RateSource,
};
use fulmar_proto::units::{Bitrate, Duration, Instant};
use fulmar_proto::wire::{Mode, Port};
use proptest::prelude::*;

const PATH: PathId = PathId(1);
const DELAY: Duration = Duration::from_millis(5);
const RATE: Bitrate = Bitrate::from_bits_per_second(20_000_000);
/// The virtual time from which on a test hangs.
const PATIENCE: Duration = Duration::from_secs(120);
/// Many times what any test here takes.
const STEPS_MAX: u32 = 1_000_000;
/// The reports that an end's observer got.
#[derive(Debug, Default)]
struct Told {
    intervals: Vec<Interval>,
    sent: Vec<Sent>,
    ended: Vec<Result<PerfReport, PerfError>>,
}

impl Observer for Told {
    fn interval(&mut self, _test: &Test, interval: &Interval) {
        self.intervals.push(interval.clone());
    }

    fn sent(&mut self, streams: &[Sent]) {
        self.sent = streams.to_vec();
    }

    fn ended(&mut self, outcome: &Result<PerfReport, PerfError>) {
        self.ended.push(outcome.clone());
    }
}

/// The things that an end hands over while it is drained.
struct Turn<'a, A> {
    app: &'a mut A,
    buffer: Vec<u8>,
    sent: Vec<Vec<u8>>,
    /// Whether the application was told something.
    told: bool,
}

impl<M: Machine, A: Application<M>> MachineDriver<M> for Turn<'_, A> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    fn send(&mut self, _now: Instant, _transmit: Transmit) {
        self.sent.push(std::mem::take(&mut self.buffer));
    }

    fn deliver(&mut self, now: Instant, machine: &mut M, event: M::Event) {
        self.told = true;
        self.app.deliver(now, machine, event);
    }
}

/// Lets an end do all that it can do now. Returns its datagrams, the time of its next turn, and whether it is done.
pub(crate) fn settle<M: Machine>(
    now: Instant,
    machine: &mut M,
    app: &mut impl Application<M>,
) -> (Vec<Vec<u8>>, Option<Deadline>, bool) {
    let mut turn = Turn {
        app,
        buffer: Vec::new(),
        sent: Vec::new(),
        told: false,
    };
    loop {
        if machine.next_deadline().is_some_and(|due| due.at <= now) {
            machine.handle_deadline(now);
        }
        drain(machine, now, &mut turn);
        let step = turn.app.work(now, machine);
        turn.told = false;
        let deadline = drain(machine, now, &mut turn);
        let is_due = deadline.is_some_and(|deadline| deadline.at <= now);
        if step == Step::Stop || (step == Step::Wait && !turn.told && !is_due) {
            let deadline = Deadline::earlier(deadline, turn.app.next_deadline());
            return (turn.sent, deadline, step == Step::Stop);
        }
    }
}

/// Both ends, and the datagrams between them, in the order of arrival.
struct Pair {
    now: Instant,
    machines: [AerotpEndpoint; 2],
    client: Client<Told>,
    server: PerfServer<Told>,
    /// The time of arrival, the end, and the octets.
    underway: Vec<(Instant, usize, Vec<u8>)>,
    loss: f64,
    rng: Rng,
    is_over: bool,
    /// Whether the server has ended, as one that serves a single test does, perhaps before the client has left.
    has_server_left: bool,
    /// Datagrams that the client sent.
    client_sent: usize,
}

impl Pair {
    fn new(test: Test, loss: f64, seed: u64) -> Self {
        Self::with_give_up(test, loss, seed, Duration::from_secs(10))
    }

    fn with_give_up(test: Test, loss: f64, seed: u64, give_up_after: Duration) -> Self {
        Self::sounding(test, loss, seed, (give_up_after, None))
    }

    fn sounding(
        test: Test,
        loss: f64,
        seed: u64,
        (give_up_after, sounding_every): (Duration, Option<Duration>),
    ) -> Self {
        let rng = Rng::from_seed(seed);
        let config = EndpointConfig {
            rate: RateSource::Told(RATE),
            ..EndpointConfig::default()
        };
        let mut machines =
            ["client", "server"].map(|end| AerotpEndpoint::new(config, rng.child(end)));
        let connection = ConnectionConfig {
            give_up_after,
            ..ConnectionConfig::default()
        };
        let plan = ClientPlan {
            test,
            connection,
            connect_timeout: Duration::from_secs(30),
            sounding_every,
        };
        let serve = ServerPlan {
            connection,
            rate_max: RATE,
            sharing: None,
            once: true,
        };
        let server = PerfServer::new(serve, &mut machines[1], Stop::default(), Told::default());
        Self {
            now: Instant::START,
            machines,
            client: Client::new(plan, PATH, Stop::default(), Told::default()),
            server: server.expect("sound settings"),
            underway: Vec::new(),
            loss,
            rng: rng.child("loss"),
            is_over: false,
            has_server_left: false,
            client_sent: 0,
        }
    }

    /// Lets both ends work, and moves on to the time of the next event.
    fn step(&mut self) {
        let mut next = None;
        let [ours, theirs] = &mut self.machines;
        let (said, at, is_over) = settle(self.now, ours, &mut self.client);
        self.is_over |= is_over;
        let (mut answered, mut until) = (Vec::new(), None);
        if !self.has_server_left {
            (answered, until, self.has_server_left) = settle(self.now, theirs, &mut self.server);
            until = until.filter(|_| !self.has_server_left);
        }
        self.client_sent += said.len();
        let datagrams = said.into_iter().map(|octets| (1, octets));
        for (to, octets) in datagrams.chain(answered.into_iter().map(|octets| (0, octets))) {
            if !self.rng.chance(self.loss) {
                self.underway.push((self.now + DELAY, to, octets));
            }
        }
        for deadline in [at, until] {
            next = Deadline::earlier(next, deadline);
        }
        let arrival = self.underway.first().map(|(at, ..)| *at);
        let due = next.map(|deadline| deadline.at);
        let next = arrival.into_iter().chain(due).min();
        self.now = next.expect("somebody waits for something").max(self.now);
        while self
            .underway
            .first()
            .is_some_and(|(at, ..)| *at <= self.now)
        {
            let (_, to, octets) = self.underway.remove(0);
            if to == 1 && self.has_server_left {
                continue;
            }
            let datagram = Datagram {
                path: PATH,
                octets: &octets,
                ecn: Ecn::default(),
            };
            self.machines[to].handle_datagram(self.now, datagram);
        }
    }

    /// Runs the test to the client's end.
    fn run(mut self) -> (Result<PerfReport, PerfError>, Self) {
        let mut steps = 0;
        while !self.is_over {
            self.step();
            steps += 1;
            let hangs = self.now > Instant::START + PATIENCE || steps > STEPS_MAX;
            assert!(!hangs, "it hangs at {}", self.now);
        }
        (self.client.take_outcome().expect("how it ended"), self)
    }
}

/// Checks the sums that must hold, whatever was lost.
fn assert_adds_up(report: &PerfReport) {
    let count = |of: fn(&super::Outcome) -> u64| report.streams.iter().map(of).sum::<u64>();
    let sum = &report.sum;
    assert_eq!(report.streams.len(), usize::from(report.test.streams));
    assert_eq!(count(|one| one.received.messages), sum.received.messages);
    assert_eq!(count(|one| one.received.bytes), sum.received.bytes);
    assert_eq!(
        count(|one| one.received.accepted_tpdus),
        sum.received.accepted_tpdus
    );
    assert_eq!(
        count(|one| one.received.wire_lost_tpdus),
        sum.received.wire_lost_tpdus
    );
    let delays = |outcome: &super::Outcome| outcome.received.delay.map_or(0, |delay| delay.count);
    assert_eq!(count(|one| one.received.messages), delays(sum));
    for stream in &report.streams {
        assert_eq!(delays(stream), stream.received.messages);
        assert!(stream.received.elapsed <= sum.received.elapsed);
        let sent = stream.sent.expect("it came to its end");
        assert!(stream.received.messages <= sent.messages, "{stream:?}");
    }
    assert_eq!(
        count(|one| one.sent.map_or(0, |sent| sent.messages)),
        sum.sent.expect("all of them did").messages
    );
    if let (Some(sum), Some(least), Some(most)) = (
        sum.received.delay,
        report
            .streams
            .iter()
            .filter_map(|one| one.received.delay)
            .map(|delay| delay.p50)
            .min(),
        report
            .streams
            .iter()
            .filter_map(|one| one.received.delay)
            .map(|delay| delay.p50)
            .max(),
    ) {
        assert!((least..=most).contains(&sum.p50), "{least} {sum:?} {most}");
    }
    let messages = report.intervals.iter().map(Interval::total).sum::<u64>();
    assert_eq!(messages, sum.received.messages);
    let least = 1.0 / f64::from(report.test.streams);
    if let Some(index) = report.fairness() {
        assert!((least - 1e-9..=1.0 + 1e-9).contains(&index), "{index}");
    }
}

fn tests() -> impl Strategy<Value = Test> {
    let limit = prop_oneof![
        (1..200_000_u64).prop_map(Limit::Bytes),
        (100..600_u64).prop_map(|ms| Limit::Time(Duration::from_millis(ms))),
    ];
    (
        prop::sample::select(&Mode::ALL[1..]),
        prop::sample::select(&[1_u8, 2, 3, 16, STREAMS_MAX][..]),
        any::<bool>(),
        20..1_400_u32,
        prop::option::of(100_000..10_000_000_u64),
        limit,
    )
        .prop_map(|(mode, streams, is_down, message_bytes, rate_bps, limit)| {
            let direction = if is_down {
                TestDirection::Down
            } else {
                TestDirection::Up
            };
            Test {
                streams,
                message_bytes,
                rate_bps,
                limit,
                link_bps: RATE.as_bits_per_second(),
                interval: Some(Duration::from_millis(100)),
                ..Test::new(7, mode, direction)
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn all_streams_end_and_their_figures_add_up(
        test in tests(),
        loss in prop::sample::select(&[0.0, 0.02, 0.2][..]),
        seed in any::<u64>(),
    ) {
        let (outcome, pair) = Pair::new(test.clone(), loss, seed).run();
        let report = outcome.expect("it comes to its end");
        assert_adds_up(&report);
        let sent = report.sum.sent.expect("told").messages;
        if let Some(enough) = test.messages_max() {
            assert_eq!(sent, enough, "of all streams together");
        }
        let is_complete = test.mode().is_ok_and(|mode| ModeRules::of(mode).complete);
        if is_complete || loss == 0.0 {
            assert_eq!(report.sum.received.messages, sent);
        }
        // The end that measured told its own user the same.
        match test.direction {
            TestDirection::Up => {
                let theirs = pair.server.observer.ended.first().expect("it ended").as_ref();
                let theirs = theirs.expect("well");
                assert_eq!(theirs.streams, report.streams);
                assert_eq!(theirs.sum, report.sum);
            }
            TestDirection::Down => {
                let each: Vec<Sent> = report.streams.iter().filter_map(|one| one.sent).collect();
                assert_eq!(pair.server.observer.sent, each);
            }
        }
        assert_eq!(pair.client.observer.intervals, report.intervals);
    }
}

fn sixteen(direction: TestDirection) -> Test {
    Test {
        streams: 16,
        link_bps: RATE.as_bits_per_second(),
        limit: Limit::Time(Duration::from_secs(2)),
        interval: Some(Duration::from_millis(100)),
        ..Test::new(7, Mode::Reliable, direction)
    }
}

#[test]
fn streams_share_the_link_fairly_and_leave_none_of_it_unused() {
    for direction in [TestDirection::Up, TestDirection::Down] {
        let (outcome, _) = Pair::new(sixteen(direction), 0.02, 1).run();
        let report = outcome.expect("it comes to its end");
        let index = report.fairness().expect("something came");
        // Of some 3,200 messages each has 200: two more or less of each cost 0.0001.
        assert!(index > 0.999, "{index}");
        // 1,000 of 1,528 octets on the wire belong to a message, at 2 % loss and for two packets in three.
        let rate = report.sum.goodput().as_bits_per_second();
        assert!(rate > 15_000_000, "{rate}");
        assert!(rate < RATE.as_bits_per_second(), "{rate}");
    }
}

#[test]
fn a_stream_that_ends_early_does_not_end_the_others() {
    for direction in [TestDirection::Up, TestDirection::Down] {
        let mut pair = Pair::new(sixteen(direction), 0.0, 1);
        while pair.now < Instant::START + Duration::from_secs(1) {
            pair.step();
        }
        // The receiver's end of one stream breaks.
        let (machine, incoming) = match direction {
            TestDirection::Up => {
                let running = pair.server.running.as_ref().expect("it runs");
                (&mut pair.machines[1], running.flows.incoming.as_ref())
            }
            TestDirection::Down => (&mut pair.machines[0], pair.client.flows.incoming.as_ref()),
        };
        let broken = incoming.expect("it receives").lane(5).expect("it began");
        machine.abort(pair.now, broken);
        let (outcome, _) = pair.run();
        let report = outcome.expect("it comes to its end");
        assert_eq!(report.streams.len(), 16);
        let of = |stream: usize| report.streams[stream].received.messages;
        let others: Vec<u64> = (0..16).filter(|stream| *stream != 5).map(of).collect();
        let least = others.iter().min().copied().expect("fifteen");
        assert!(of(5) > 0 && of(5) * 3 / 2 < least, "{} {others:?}", of(5));
        let sum = of(5) + others.iter().sum::<u64>();
        assert_eq!(sum, report.sum.received.messages);
    }
}

#[test]
fn a_stream_that_was_not_announced_brings_nothing() {
    let mut pair = Pair::new(sixteen(TestDirection::Up), 0.0, 1);
    while pair.now < Instant::START + Duration::from_millis(500) {
        pair.step();
    }
    let config = ConnectionConfig::default();
    // The seventeenth of sixteen, the first once more, and the first in another mode.
    let strangers = [
        (16, Mode::Reliable),
        (0, Mode::Reliable),
        (0, Mode::Unreliable),
    ];
    let mut message = vec![0; 1_000];
    let head = super::message::Head {
        id: 7,
        sequence: 1 << 40,
        sent: Instant::START,
    };
    head.write(&mut message);
    let ids = strangers.map(|(stream, mode)| {
        // A server that had a test of more streams before still listens at their ports.
        let port = Port(PERF_DATA_PORT.0 + stream);
        pair.machines[1].listen(port, config).expect("sound");
        let machine = &mut pair.machines[0];
        let config = ConnectionConfig { mode, ..config };
        let id = machine.connect(pair.now, PATH, port, config).expect("room");
        let written = machine.write_message(pair.now, id, &message);
        assert_eq!(written, Ok(true));
        id
    });
    let (outcome, pair) = pair.run();
    let report = outcome.expect("it comes to its end");
    assert_adds_up(&report);
    assert_eq!(
        report.sum.received.reordered, 0,
        "a message of theirs counted"
    );
    for id in ids {
        assert_eq!(pair.machines[0].state(id), None, "it was dropped");
    }
}

#[test]
fn a_test_of_one_message_has_an_interval_with_it() {
    for direction in [TestDirection::Up, TestDirection::Down] {
        let test = Test {
            limit: Limit::Bytes(1),
            interval: Some(Duration::from_millis(100)),
            ..Test::new(7, Mode::Unreliable, direction)
        };
        let (outcome, _) = Pair::new(test, 0.0, 0).run();
        let report = outcome.expect("it comes to its end");
        let totals: Vec<u64> = report.intervals.iter().map(Interval::total).collect();
        assert_eq!(totals, [1]);
    }
}

/// The server's last acknowledgement is lost, and it ends while the client waits for that: the first seed in which it does.
#[test]
fn a_client_leaves_by_itself_when_the_server_has_ended() {
    let test = Test {
        streams: 16,
        message_bytes: 925,
        limit: Limit::Time(Duration::from_millis(319)),
        link_bps: RATE.as_bits_per_second(),
        interval: Some(Duration::from_millis(100)),
        ..Test::new(7, Mode::HybridNackMack, TestDirection::Up)
    };
    let (outcome, pair) = Pair::new(test, 0.3, 101).run();
    assert_adds_up(&outcome.expect("it comes to its end"));
    assert!(pair.has_server_left);
}

#[test]
fn a_time_to_give_up_that_is_no_longer_than_the_pause_between_signs_of_life_ends_no_test() {
    let test = Test {
        rate_bps: Some(1_000_000),
        limit: Limit::Time(Duration::from_secs(10)),
        ..Test::new(7, Mode::Unreliable, TestDirection::Down)
    };
    let (outcome, _) = Pair::with_give_up(test, 0.2, 1, Duration::from_secs(1)).run();
    outcome.expect("both ends are there");
}

/// The datagrams that a client sends in an outage of a second, and the outcome.
fn sent_in_an_outage(sounding_every: Option<Duration>) -> (usize, PerfReport) {
    let test = Test {
        rate_bps: Some(1_000_000),
        limit: Limit::Time(Duration::from_secs(3)),
        ..Test::new(7, Mode::Reliable, TestDirection::Up)
    };
    let patience = Duration::from_secs(10);
    let mut pair = Pair::sounding(test, 0.0, 1, (patience, sounding_every));
    let until = |pair: &mut Pair, end: Duration| {
        while pair.now < Instant::START + end {
            pair.step();
        }
    };
    until(&mut pair, Duration::from_secs(1));
    pair.loss = 1.0;
    // The repetitions that a lost packet has at once are over.
    until(&mut pair, Duration::from_millis(1_500));
    let before = pair.client_sent;
    until(&mut pair, Duration::from_secs(2));
    let sent = pair.client_sent - before;
    pair.loss = 0.0;
    let (outcome, _) = pair.run();
    (sent, outcome.expect("it comes to its end"))
}

#[test]
fn soundings_go_on_through_an_outage_and_change_no_figure_of_the_messages() {
    let (without, _) = sent_in_an_outage(None);
    let (sent, report) = sent_in_an_outage(Some(Duration::from_millis(10)));
    // Fifty in half a second, beside what the messages do.
    assert!((45..=55).contains(&(sent - without)), "{sent} {without}");
    let messages = report.sum.sent.expect("told").messages;
    assert_eq!(report.sum.received.messages, messages);
}
