//! One connection over several paths of different rates and delays: their sum for bulk, the quickest for thin flows.

use fulmar_proto::machine::{
    Datagram, Deadline, Ecn, Machine, MachineDriver, PathFacts, PathId, Strict, Transmit, drain,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, ConnectionConfig, ConnectionId, EndpointConfig, Event, RateSource, ThinRepair,
};
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use fulmar_proto::wire::Port;
use std::collections::BTreeMap;

const PORT: Port = Port(4000);
const HEADERS: ByteCount = ByteCount(28);

/// A path: its rate each way, its delay, and the share that it loses each way.
#[derive(Clone, Copy)]
struct Link {
    rate: Bitrate,
    delay: Duration,
    loss: f64,
}

const fn link(mbit: u64, millis: u64, loss: f64) -> Link {
    Link {
        rate: Bitrate::from_bits_per_second(1_000_000 * mbit),
        delay: Duration::from_millis(millis),
        loss,
    }
}

const QUICK: Link = link(10, 20, 0.02);
const SLOW: Link = link(5, 150, 0.10);

#[derive(Default)]
struct App {
    received: u64,
    /// Delays of messages, which begin with their time.
    delays: Vec<Duration>,
    id: Option<ConnectionId>,
}

struct Side {
    machine: Strict<AerotpEndpoint>,
    deadline: Option<Deadline>,
    app: App,
}

struct Ends<'a> {
    buffer: Vec<u8>,
    sent: Vec<(PathId, Vec<u8>)>,
    app: &'a mut App,
}

impl MachineDriver<Strict<AerotpEndpoint>> for Ends<'_> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        &mut self.buffer
    }
    fn send(&mut self, _now: Instant, transmit: Transmit) {
        self.sent.push((transmit.path, self.buffer.clone()));
    }
    fn deliver(&mut self, now: Instant, machine: &mut Strict<AerotpEndpoint>, event: Event) {
        match event {
            Event::Incoming { id, .. } => self.app.id = Some(id),
            Event::Readable(id) => {
                while let Some(chunk) = machine.app().read(now, id) {
                    self.app.received += chunk.octets.len() as u64;
                    if let Some(at) = chunk.octets.first_chunk() {
                        let written = Instant::from_nanos(u64::from_le_bytes(*at));
                        self.app.delays.push(now.saturating_since(written));
                    }
                }
            }
            _ => {}
        }
    }
}

/// Two ends with a connection between them.
struct World {
    now: Instant,
    sides: [Side; 2],
    links: Vec<Link>,
    /// The paths that carry nothing.
    down: Vec<bool>,
    free_at: Vec<[Instant; 2]>,
    flying: BTreeMap<(Instant, u64), (usize, PathId, Vec<u8>)>,
    /// Datagrams forward by path.
    sent: Vec<u64>,
    rng: Rng,
}

fn path(index: usize) -> PathId {
    PathId(u32::try_from(index).expect("few"))
}

impl World {
    fn new(links: &[Link]) -> Self {
        let config = ConnectionConfig {
            send_buffer_bytes: 4 << 20,
            window_tpdus: 8_192,
            ..ConnectionConfig::default()
        };
        Self::with(links, config)
    }

    fn with(links: &[Link], config: ConnectionConfig) -> Self {
        Self::knowing(links, config, (true, false))
    }

    /// Whose ends know nothing of the round trip of the first path.
    fn unknown(links: &[Link]) -> Self {
        Self::knowing(links, ConnectionConfig::default(), (false, false))
    }

    fn knowing(
        links: &[Link],
        config: ConnectionConfig,
        (knows_home, follows_length): (bool, bool),
    ) -> Self {
        let side = |seed| {
            let settings = EndpointConfig {
                rate: RateSource::Told(links[0].rate),
                lower_overhead: HEADERS,
                follows_length,
                ..EndpointConfig::default()
            };
            let mut endpoint = AerotpEndpoint::new(settings, Rng::from_seed(seed));
            for (index, link) in links.iter().enumerate() {
                let facts = PathFacts {
                    round_trip: link.delay * 2,
                    home_round_trip: None,
                    rate: Some(link.rate),
                    cost: 0,
                };
                if knows_home || index > 0 {
                    endpoint.expect_round_trip(path(index), facts.round_trip);
                }
                if index > 0 {
                    assert!(endpoint.bond(Instant::START, path(0), path(index), facts));
                }
            }
            Side {
                machine: Strict::new(endpoint),
                deadline: None,
                app: App::default(),
            }
        };
        let mut world = Self {
            now: Instant::START,
            sides: [side(1), side(2)],
            down: vec![false; links.len()],
            free_at: vec![[Instant::START; 2]; links.len()],
            links: links.to_vec(),
            flying: BTreeMap::new(),
            sent: vec![0; links.len()],
            rng: Rng::from_seed(7),
        };
        let listens = world.sides[1].machine.app().listen(PORT, config);
        listens.expect("a sound configuration");
        let opener = world.sides[0].machine.app();
        let id = opener.connect(Instant::START, path(0), PORT, config);
        world.sides[0].app.id = Some(id.expect("there is a place"));
        world.settle(1);
        world.settle(0);
        world
    }

    fn settle(&mut self, index: usize) {
        let side = &mut self.sides[index];
        let mut ends = Ends {
            buffer: Vec::new(),
            sent: Vec::new(),
            app: &mut side.app,
        };
        side.deadline = drain(&mut side.machine, self.now, &mut ends);
        for (on, octets) in ends.sent {
            let place = on.0 as usize;
            let link = self.links[place];
            if index == 0 {
                self.sent[place] += 1;
            }
            let wire = ByteCount::from_usize(octets.len()) + HEADERS;
            let free = self.free_at[place][index].max(self.now) + link.rate.time_to_send(wire);
            self.free_at[place][index] = free;
            if !self.down[place] && !self.rng.chance(link.loss) {
                let ordinal = self.flying.len() as u64 + (self.sent.iter().sum::<u64>() << 20);
                let key = (free + link.delay, ordinal);
                self.flying.insert(key, (1 - index, on, octets));
            }
        }
    }

    /// Writes as much bulk as there is room for.
    fn write_bulk(&mut self) {
        let id = self.sides[0].app.id.expect("connected");
        while let Ok(1..) = self.sides[0]
            .machine
            .app()
            .write(self.now, id, &[0xA5; 16_000])
        {}
    }

    fn step(&mut self, until: Instant) -> bool {
        let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
        let timers = (0..2).filter_map(|side| Some((self.sides[side].deadline?.at, side)));
        let timer = timers.min();
        let (at, side) = match (arrival, timer) {
            (Some(at), timer) if timer.is_none_or(|(due, _)| at <= due) && at <= until => {
                self.now = at;
                let (_, (to, on, octets)) = self.flying.pop_first().expect("looked at");
                let datagram = Datagram {
                    path: on,
                    octets: &octets,
                    ecn: Ecn::NotCapable,
                };
                self.sides[to].machine.handle_datagram(at, datagram);
                (at, to)
            }
            (_, Some((at, side))) if at <= until => {
                self.now = at;
                self.sides[side].machine.handle_deadline(at);
                (at, side)
            }
            _ => {
                self.now = until;
                return false;
            }
        };
        self.now = at;
        self.settle(side);
        true
    }

    fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while self.step(until) {}
    }

    /// Bulk for so long. Returns what arrived, in bits a second.
    fn bulk(&mut self, span: Duration) -> f64 {
        let (before, began) = (self.sides[1].app.received, self.now);
        while self.now < began + span {
            self.write_bulk();
            self.settle(0);
            self.run(Duration::from_millis(2));
        }
        let octets = self.sides[1].app.received - before;
        octets as f64 * 8.0 / self.now.saturating_since(began).as_secs_f64()
    }

    fn hold(&mut self, place: usize, held: bool) {
        for side in 0..2 {
            let endpoint = self.sides[side].machine.app();
            endpoint.hold(self.now, path(place), held);
            self.settle(side);
        }
    }
}

/// A message of so many octets that begins with the time.
fn message(now: Instant, len: usize) -> Vec<u8> {
    let mut message = vec![0; len];
    message[..8].copy_from_slice(&now.as_nanos().to_le_bytes());
    message
}

fn alone(link: Link) -> f64 {
    World::new(&[link]).bulk(Duration::from_secs(20))
}

#[test]
fn bulk_has_the_sum_of_two_paths_of_different_delay_and_loss() {
    let each = alone(QUICK) + alone(SLOW);
    let mut world = World::new(&[QUICK, SLOW]);
    let both = world.bulk(Duration::from_secs(20));
    assert!(both >= 0.95 * each, "{both:.0} of {each:.0}");
}

#[test]
fn a_thin_flow_keeps_to_the_quickest_path() {
    let mut world = World::new(&[QUICK, SLOW]);
    let id = world.sides[0].app.id.expect("connected");
    for _ in 0..500 {
        let mut message = [0; 1_000];
        message[..8].copy_from_slice(&world.now.as_nanos().to_le_bytes());
        let endpoint = world.sides[0].machine.app();
        assert!(endpoint.write_message(world.now, id, &message) == Ok(true));
        world.settle(0);
        world.run(Duration::from_millis(20));
    }
    let delays = &mut world.sides[1].app.delays;
    delays.sort_unstable();
    let p50 = delays[delays.len() / 2];
    assert!(p50 < Duration::from_millis(25), "{p50:?}");
    assert_eq!(world.sent[1], 0, "it would arrive later there");
}

#[test]
fn bulk_goes_on_while_one_of_two_paths_is_down_and_uses_it_again() {
    let mut world = World::new(&[QUICK, SLOW]);
    world.bulk(Duration::from_secs(5));
    for dead in [1, 0] {
        world.down[dead] = true;
        world.hold(dead, true);
        // What was under way is sent again, and all behind it waits for it.
        world.bulk(Duration::from_secs(1));
        let left = alone([QUICK, SLOW][1 - dead]);
        let got = world.bulk(Duration::from_secs(5));
        assert!(got >= 0.95 * left, "{dead} down: {got:.0} of {left:.0}");
        world.down[dead] = false;
        world.hold(dead, false);
        world.bulk(Duration::from_secs(1));
        let got = world.bulk(Duration::from_secs(5));
        let both = alone(QUICK) + alone(SLOW);
        assert!(got >= 0.95 * both, "{dead} up again: {got:.0} of {both:.0}");
    }
}

const EACH: Link = link(5, 20, 0.0);

/// Messages from which a flow knows its round trip.
const MESSAGES: usize = 20;

#[test]
fn what_a_thin_flow_repeats_leaves_on_another_path_than_before() {
    let config = ConnectionConfig {
        thin: Some(ThinRepair::default()),
        ..ConnectionConfig::default()
    };
    let mut world = World::with(&[EACH, link(5, 25, 0.0)], config);
    let id = world.sides[0].app.id.expect("connected");
    world.sent = vec![0; 2];
    for number in 0..=MESSAGES {
        if number == MESSAGES {
            // Nobody knows that the path is down on which they left.
            assert_eq!(world.sent[1], 0, "the other is slower");
            world.down[0] = true;
        }
        let octets = message(world.now, 1_000);
        let endpoint = world.sides[0].machine.app();
        assert!(endpoint.write_message(world.now, id, &octets) == Ok(true));
        world.settle(0);
        world.run(Duration::from_millis(150));
    }
    let delays = &world.sides[1].app.delays;
    let longest = delays.iter().max().copied().expect("both came");
    assert_eq!(delays.len(), MESSAGES + 1);
    assert!(longest < Duration::from_millis(120), "{longest:?}");
}

#[test]
fn bulk_leaves_a_path_in_doubt_alone_until_something_is_heard_there() {
    let mut world = World::new(&[QUICK, SLOW]);
    world.bulk(Duration::from_secs(1));
    let doubt = |world: &mut World, is_doubted| {
        let endpoint = world.sides[0].machine.app();
        endpoint.doubt(world.now, path(0), is_doubted);
        world.settle(0);
    };
    doubt(&mut world, true);
    let before = world.sent.clone();
    world.bulk(Duration::from_millis(200));
    assert_eq!(world.sent[0], before[0]);
    assert!(world.sent[1] > before[1] + 50, "{:?}", world.sent);
    doubt(&mut world, false);
    world.bulk(Duration::from_millis(200));
    assert!(world.sent[0] > before[0] + 100, "{:?}", world.sent);
}

#[test]
fn a_thin_flow_waits_a_moment_for_a_path_that_is_up_and_leaves_the_one_in_doubt_alone() {
    let config = ConnectionConfig {
        thin: Some(ThinRepair::default()),
        ..ConnectionConfig::default()
    };
    let mut world = World::with(&[EACH, EACH], config);
    let id = world.sides[0].app.id.expect("connected");
    for is_doubted in [true, false] {
        world.sides[0]
            .machine
            .app()
            .doubt(world.now, path(0), is_doubted);
        world.sent = vec![0; 2];
        // The budget of a path has room for one of them at a time.
        for _ in 0..4 {
            let octets = message(world.now, 1_000);
            let endpoint = world.sides[0].machine.app();
            assert!(endpoint.write_message(world.now, id, &octets) == Ok(true));
        }
        world.settle(0);
        world.run(Duration::from_millis(200));
        assert_eq!(world.sent[0] == 0, is_doubted, "{:?}", world.sent);
    }
    assert_eq!(world.sides[1].app.delays.len(), 8);
}

#[test]
fn what_is_lost_on_a_path_of_unknown_round_trip_is_sent_again_soon() {
    let mut world = World::unknown(&[EACH, EACH]);
    let id = world.sides[0].app.id.expect("connected");
    for is_lost in [false, true] {
        // The first leaves on the path whose round trip is known; then the home alone is there.
        world.hold(1, is_lost);
        world.down[0] = is_lost;
        let octets = message(world.now, 1_000);
        let endpoint = world.sides[0].machine.app();
        assert!(endpoint.write_message(world.now, id, &octets) == Ok(true));
        world.settle(0);
        world.run(Duration::from_millis(100));
    }
    assert!(world.sent.iter().all(|sent| *sent > 0), "{:?}", world.sent);
    world.down[0] = false;
    world.run(Duration::from_secs(10));
    assert_eq!(world.sides[1].app.delays.len(), 2, "both came");
}

#[test]
fn an_outage_of_the_last_path_ends_no_stall_and_one_of_another_does() {
    let mut world = World::new(&[QUICK, SLOW]);
    world.bulk(Duration::from_secs(1));
    world.down = vec![true; 2];
    // Long enough for the sender to stall: it asks ever more rarely.
    for _ in 0..200 {
        world.write_bulk();
        world.settle(0);
        world.run(Duration::from_millis(20));
    }
    let before = world.sent.clone();
    world.hold(0, true);
    world.run(Duration::from_millis(100));
    let by_other = world.sent[1] - before[1];
    assert!(by_other > 20, "it goes on: {before:?}, {:?}", world.sent);
    world.run(Duration::from_secs(4));
    world.hold(1, true);
    let before = world.sent.clone();
    world.hold(1, false);
    world.run(Duration::from_millis(100));
    let again = world.sent[1] - before[1];
    assert!(again < 10, "it stalls as before: {again}");
}

#[test]
fn a_stalled_sender_asks_again_when_paths_are_back_that_took_all_that_was_under_way() {
    let mut world = World::new(&[QUICK, SLOW]);
    world.bulk(Duration::from_secs(1));
    world.down = vec![true; 2];
    // The peer takes its paths for up, and has no reason to say anything.
    for (place, held) in [(0, true), (1, true), (0, false), (1, false)] {
        // It goes on by the other path, and stalls there.
        world.run(Duration::from_secs(4));
        let endpoint = world.sides[0].machine.app();
        endpoint.hold(world.now, path(place), held);
        world.settle(0);
    }
    // What asks at once is lost as well.
    world.run(Duration::from_secs(1));
    world.down = vec![false; 2];
    let before = world.sides[1].app.received;
    world.run(Duration::from_secs(5));
    assert!(world.sides[1].app.received > before, "nothing came");
}

#[test]
fn copies_behind_a_dead_path_are_paid_for_by_a_thin_flow() {
    let config = ConnectionConfig {
        // It may not send anything twice without need.
        thin: Some(ThinRepair::at_most(0)),
        ..ConnectionConfig::default()
    };
    let mut world = World::with(&[EACH, EACH], config);
    let id = world.sides[0].app.id.expect("connected");
    world.down = vec![true; 2];
    let octets = message(world.now, 1_000);
    let endpoint = world.sides[0].machine.app();
    assert!(endpoint.write_message(world.now, id, &octets) == Ok(true));
    world.settle(0);
    world.run(Duration::from_millis(5));
    world.hold(0, true);
    let (mut most, mut before) = (0, world.sent[1]);
    for _ in 0..600 {
        world.run(Duration::from_millis(10));
        most = most.max(world.sent[1] - before);
        before = world.sent[1];
    }
    assert!(before >= 3, "it is sent again: {before}");
    assert_eq!(most, 1, "repetitions leave alone");
}

#[test]
fn a_path_that_costs_more_carries_nothing_while_a_cheaper_one_is_up() {
    let mut world = World::new(&[SLOW, QUICK]);
    for side in 0..2 {
        let facts = PathFacts {
            round_trip: QUICK.delay * 2,
            home_round_trip: None,
            rate: Some(QUICK.rate),
            cost: 1,
        };
        let endpoint = world.sides[side].machine.app();
        assert!(endpoint.bond(world.now, path(0), path(1), facts));
        world.settle(side);
    }
    let before = world.sent[1];
    world.bulk(Duration::from_secs(2));
    assert_eq!(world.sent[1], before);
    world.hold(0, true);
    world.bulk(Duration::from_secs(2));
    assert!(world.sent[1] > before + 500, "{:?}", world.sent);
    world.hold(0, false);
    let after = world.sent[1];
    world.bulk(Duration::from_secs(2));
    assert_eq!(world.sent[1], after);
}

#[test]
fn the_losses_of_each_path_are_told_apart_by_themselves() {
    let config = ConnectionConfig {
        send_buffer_bytes: 4 << 20,
        window_tpdus: 8_192,
        ..ConnectionConfig::default()
    };
    for links in [
        [link(10, 20, 0.0), link(5, 60, 0.1)],
        [link(10, 20, 0.1), link(5, 60, 0.0)],
    ] {
        let mut world = World::knowing(&links, config, (true, true));
        world.bulk(Duration::from_secs(20));
        for (place, link) in links.iter().enumerate() {
            let endpoint = world.sides[0].machine.app();
            let ratio = endpoint
                .path_losses(path(place))
                .map_or(0.0, |losses| losses.lost / losses.sent);
            let asked = link.loss;
            assert!(
                (ratio - asked).abs() < 0.01,
                "path {place}: {ratio} of {asked}"
            );
        }
    }
}

#[test]
fn what_waits_of_several_flows_is_ahead_of_each_on_the_quickest_path() {
    let mut world = World::new(&[link(10, 20, 0.0), link(10, 40, 0.0)]);
    let ids: Vec<ConnectionId> = (0..12)
        .map(|_| {
            let endpoint = world.sides[0].machine.app();
            let id = endpoint.connect(world.now, path(0), PORT, ConnectionConfig::default());
            id.expect("there is a place")
        })
        .collect();
    world.settle(0);
    world.run(Duration::from_secs(1));
    world.sent = vec![0; 2];
    for id in ids {
        for _ in 0..6 {
            let octets = message(world.now, 1_000);
            let endpoint = world.sides[0].machine.app();
            assert!(endpoint.write_message(world.now, id, &octets) == Ok(true));
        }
    }
    world.settle(0);
    world.run(Duration::from_secs(1));
    let delays = &world.sides[1].app.delays;
    assert_eq!(delays.len(), 72);
    assert!(world.sent[1] > 10, "{:?}", world.sent);
}
