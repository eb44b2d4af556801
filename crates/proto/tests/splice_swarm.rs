//! Random sessions of two splicers under random faults: the delivered octets are those accepted,
//! nothing comes twice, and every flow ends.
//!
//! A seed draws a link with loss, inverted bits, duplicates, reordering and outages, and a handful
//! of flows of both kinds. The flows have readers that pause, ends in any order, and applications
//! that reset. Gateways restart and lose everything except what their drivers keep for flows that
//! resume.

use super::splicers;
use super::splicers::{Pair, SINK};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::{
    FlowClass, FlowEvent, FlowId, FlowKind, RefuseCode, ResetCode, SplicerConfig,
};
use fulmar_proto::units::{ByteCount, Duration, Instant};
use fulmar_proto::wire::Mode;
use std::collections::BTreeSet;

/// Sessions in one run of the test.
const SESSIONS: u64 = 2_000;
const SEED: &str = "SPLICE_SEED";
/// Seeds that once failed, with the fault that each found.
const FAILED_ONCE: [(u64, &str); 5] = [
    (
        10_298,
        "a report before ACCEPTED completed the opener, and a restarted acceptor never heard END",
    ),
    (6_083, "the same"),
    (30_282, "the same"),
    (
        9_762,
        "a connection of a flow that was over met a restarted peer: two ends that never agree",
    ),
    (46_315, "the same"),
];

fn config(incarnation: u32) -> SplicerConfig {
    let mut config = SplicerConfig {
        incarnation,
        flows_max: 64,
        receive_memory: ByteCount(2 << 20),
        first_credit: ByteCount(64 << 10),
        answer_within: Duration::from_secs(60),
        resume_within: Duration::from_secs(900),
        datagram_idle_max: Duration::from_secs(60),
        ..SplicerConfig::default()
    };
    config.connection.give_up_after = Duration::from_secs(300);
    config
}

/// A link's faults, drawn once for a session.
#[derive(Clone, Debug)]
struct Faults {
    delay: Duration,
    loss: f64,
    flip: f64,
    double: f64,
    late: f64,
    outages: Vec<(Instant, Instant)>,
    /// The time at which faults end, so that every session can end.
    until: Instant,
}

impl Faults {
    fn draw(rng: &mut Rng) -> Self {
        let until = Instant::START + Duration::from_secs(120);
        let outages = (0..rng.below(3)).map(|_| {
            let from = Instant::START + Duration::from_millis(rng.below(40_000));
            (from, from + Duration::from_millis(rng.below(30_000)))
        });
        let outages = outages.collect();
        let mut share = |most: f64| {
            if rng.chance(0.6) {
                rng.unit_f64() * most
            } else {
                0.0
            }
        };
        Self {
            loss: share(0.3),
            flip: share(0.1),
            double: share(0.2),
            late: share(0.2),
            delay: Duration::from_micros(100 + rng.below(150_000)),
            outages,
            until,
        }
    }

    fn fate(&self, rng: &mut Rng, now: Instant, octets: &[u8]) -> splicers::Fate {
        if now >= self.until {
            return vec![(self.delay, octets.to_vec())];
        }
        let out = |(from, to): &(Instant, Instant)| (*from..*to).contains(&now);
        if self.outages.iter().any(out) || rng.chance(self.loss) {
            return Vec::new();
        }
        let copies = 1 + usize::from(rng.chance(self.double));
        let copy = |_| {
            let mut octets = octets.to_vec();
            if rng.chance(self.flip) {
                for _ in 0..=rng.below(8) {
                    let bit = rng.below(octets.len() as u64 * 8);
                    let index = usize::try_from(bit / 8).expect("below a length");
                    octets[index] ^= 1 << (bit % 8);
                }
            }
            let late = if rng.chance(self.late) {
                Duration::from_micros(rng.below(200_000))
            } else {
                Duration::ZERO
            };
            (self.delay + late, octets)
        };
        (0..copies).map(copy).collect()
    }
}

/// The behaviour that was drawn for a flow.
#[derive(Clone, Debug)]
struct Drawn {
    id: FlowId,
    kind: FlowKind,
    class: FlowClass,
    /// Octets forwards and back.
    lens: [usize; 2],
    /// Whether an application cuts it off.
    cut: bool,
}

fn octets(flow: usize, side: usize, len: usize) -> Vec<u8> {
    let mut rng = Rng::from_seed(flow as u64 * 2 + side as u64).child("octets");
    let mut octets = vec![0; len];
    rng.fill(&mut octets);
    octets
}

fn message(flow: usize, side: usize, number: usize) -> Vec<u8> {
    let len = 8 + (number * 397) % 3_000;
    let mut message = octets(flow + 100 + number, side, len);
    message[..8].copy_from_slice(&(number as u64).to_be_bytes());
    message
}

struct Session {
    pair: Pair,
    rng: Rng,
    flows: Vec<Drawn>,
    restarts: [u32; 2],
    told: [usize; 2],
}

impl Session {
    fn new(seed: u64) -> Self {
        let rng = Rng::from_seed(seed);
        let faults = Faults::draw(&mut rng.child("faults"));
        let mut fate = rng.child("fate");
        let script = Box::new(move |_: usize, now: Instant, octets: &[u8]| {
            faults.fate(&mut fate, now, octets)
        });
        Self {
            pair: Pair::new(&config(0), script),
            rng: rng.child("session"),
            flows: Vec::new(),
            restarts: [0; 2],
            told: [0; 2],
        }
    }

    fn open(&mut self) {
        let rng = &mut self.rng;
        let kind = if rng.chance(0.75) {
            FlowKind::Stream
        } else {
            FlowKind::Datagrams
        };
        let complete = [Mode::NearReliable, Mode::Reliable, Mode::HybridNackMack];
        let index = |rng: &mut Rng, len: usize| {
            usize::try_from(rng.below(len as u64)).expect("below a length")
        };
        let mode = match kind {
            FlowKind::Stream => complete[index(rng, complete.len())],
            FlowKind::Datagrams => Mode::ALL[index(rng, Mode::ALL.len())],
        };
        let mut class = FlowClass {
            mode,
            window: ByteCount(1_000 + rng.below(200_000)),
            resume: kind == FlowKind::Stream && rng.chance(0.7),
            deadline: rng
                .chance(0.3)
                .then(|| Duration::from_millis(50 + rng.below(2_000))),
            ..FlowClass::default()
        };
        // The applications keep what their gateways need after a restart.
        class.durable = class.resume;
        let scale = [0, 100, 10_000, 120_000][index(rng, 4)];
        let mut len = || usize::try_from(rng.below(scale + 1)).expect("small");
        let lens = [len(), len()];
        let id = self.pair.open_only(kind, SINK, class);
        if kind == FlowKind::Stream {
            let flow = self.flows.len();
            let app = self.pair.app(0, id);
            app.outgoing = octets(flow, 0, lens[0]);
            app.finishes = true;
        }
        self.pair.touch(0, id);
        self.flows.push(Drawn {
            id,
            kind,
            class,
            lens,
            cut: false,
        });
    }

    /// Makes an acceptor's application answer with the octets that were drawn.
    fn answer(&mut self, flow: usize) {
        let Drawn { id, lens, kind, .. } = self.flows[flow];
        let Some(app) = self.pair.sides[1].apps.get_mut(&id) else {
            return;
        };
        if kind == FlowKind::Stream && !app.finishes && app.last.is_none() {
            app.outgoing = octets(flow, 1, lens[1]);
            app.finishes = true;
            self.pair.touch(1, id);
        }
    }

    fn act(&mut self) {
        let flow = usize::try_from(self.rng.below(self.flows.len() as u64)).expect("small");
        let Drawn { id, kind, .. } = self.flows[flow];
        let side = usize::from(self.rng.chance(0.5));
        match self.rng.below(100) {
            0..30 => self.answer(flow),
            30..50 => {
                if let Some(app) = self.pair.sides[side].apps.get_mut(&id) {
                    app.holds = self.rng.chance(0.5);
                    self.pair.touch(side, id);
                }
            }
            50..52 => {
                let known = self.pair.sides[side].apps.get(&id);
                if known.is_some_and(|app| app.last.is_none()) {
                    self.flows[flow].cut = true;
                    self.pair.sides[side].apps.remove(&id);
                    self.pair.call(side, |splicer, now| {
                        splicer.reset(now, id, ResetCode::Reset);
                    });
                }
            }
            52..56 => {
                self.restarts[side] += 1;
                let config = config(self.restarts[side]);
                self.pair.restart(side, &config);
            }
            56..60 if self.flows.len() < 8 => self.open(),
            _ if kind == FlowKind::Datagrams => {
                let message = message(flow, side, self.told[side]);
                self.told[side] += 1;
                self.pair.call(side, |splicer, now| {
                    splicer.accept_datagram(now, id, &message);
                });
            }
            _ => {}
        }
    }

    fn run(&mut self) {
        for _ in 0..=self.rng.below(4) {
            self.open();
        }
        for _ in 0..60 {
            let pause = self.rng.below(1_500_000);
            self.pair.run(Duration::from_micros(pause));
            self.act();
        }
        for side in 0..2 {
            for flow in 0..self.flows.len() {
                let id = self.flows[flow].id;
                if let Some(app) = self.pair.sides[side].apps.get_mut(&id) {
                    app.holds = false;
                    self.pair.touch(side, id);
                }
            }
        }
        // Requests that the acceptors have not had yet come in this time.
        for _ in 0..40 {
            self.pair.run(Duration::from_secs(60));
            for flow in 0..self.flows.len() {
                self.answer(flow);
            }
        }
        self.pair.run(Duration::from_secs(3_600));
    }

    fn check(&mut self) -> Vec<String> {
        let mut broken = Vec::new();
        for flow in 0..self.flows.len() {
            match self.flows[flow].kind {
                FlowKind::Stream => self.check_stream(flow, &mut broken),
                FlowKind::Datagrams => self.check_datagrams(flow, &mut broken),
            }
        }
        for side in 0..2 {
            let splicer = self.pair.splicer(side);
            let left = [
                splicer.entry_count() as u64,
                splicer.counters().flows_now,
                splicer.counters().credit_reserved,
                splicer.endpoint().connection_count() as u64,
            ];
            if left != [0; 4] {
                broken.push(format!(
                    "side {side}: entries, flows, credit, connections {left:?}"
                ));
            }
        }
        broken
    }

    fn check_stream(&self, flow: usize, broken: &mut Vec<String>) {
        let Drawn {
            id,
            class,
            lens,
            cut,
            ..
        } = self.flows[flow];
        let restarted = self.restarts.iter().any(|n| *n > 0);
        let apps = [0, 1].map(|side| self.pair.sides[side].apps.get(&id));
        let mut whole = [false; 2];
        for side in 0..2 {
            let Some(app) = apps[side] else { continue };
            let sent = octets(flow, 1 - side, lens[1 - side]);
            if !sent.starts_with(&app.received) {
                broken.push(format!("flow {flow}: altered or doubled at side {side}"));
            }
            whole[side] = app.received == sent;
        }
        for side in 0..2 {
            let Some(app) = apps[side] else { continue };
            let far = apps[1 - side].and_then(|far| far.last.as_ref());
            let far_done = matches!(far, Some(FlowEvent::Closed(_)));
            let fine = match &app.last {
                Some(FlowEvent::Closed(_)) => {
                    // Without resume, a gateway that restarted may have been asked again from the
                    // start.
                    whole[side] && (cut || whole[1 - side] || (!class.resume && restarted))
                }
                _ if cut => app.last.is_some(),
                // The far side's last word was lost with its memory: all is delivered.
                Some(FlowEvent::Reset { code, .. }) if class.resume => {
                    *code == ResetCode::PeerLost && far_done && self.restarts[1 - side] > 0
                }
                Some(FlowEvent::Reset { code, .. }) => *code == ResetCode::PeerLost && restarted,
                Some(FlowEvent::Refused { code, .. }) => match code {
                    RefuseCode::TooMany => true,
                    RefuseCode::Unreachable | RefuseCode::Forgotten => {
                        restarted && (!class.resume || far_done)
                    }
                    _ => false,
                },
                _ => false,
            };
            if !fine {
                let (last, received) = (&app.last, app.received.len());
                broken.push(format!(
                    "flow {flow} {class:?}: side {side} ends {last:?} with {received} of {} (far: \
                     {far:?})",
                    lens[1 - side]
                ));
            }
        }
    }

    fn check_datagrams(&self, flow: usize, broken: &mut Vec<String>) {
        let Drawn { id, class, .. } = self.flows[flow];
        for side in 0..2 {
            let Some(app) = self.pair.sides[side].apps.get(&id) else {
                continue;
            };
            let mut seen = BTreeSet::new();
            for got in &app.messages {
                let number = got
                    .first_chunk()
                    .map_or(u64::MAX, |n| u64::from_be_bytes(*n));
                let number = usize::try_from(number).unwrap_or(usize::MAX);
                if number > self.told[1 - side] || *got != message(flow, 1 - side, number) {
                    broken.push(format!(
                        "flow {flow} {class:?}: a message altered at {side}"
                    ));
                } else if !seen.insert(number) {
                    broken.push(format!("flow {flow} {class:?}: {number} twice at {side}"));
                }
            }
            if app.last.is_none() {
                broken.push(format!("flow {flow} {class:?}: side {side} does not end"));
            }
        }
    }
}

/// Totals of the sessions, so that the drawing cannot degenerate unseen.
#[derive(Debug, Default)]
struct Totals {
    closed: u64,
    resumed: u64,
    octets: u64,
    messages: u64,
    malformed: u64,
}

impl Totals {
    fn add(&mut self, session: &Session) {
        for side in &session.pair.sides {
            for app in side.apps.values() {
                self.closed += u64::from(matches!(app.last, Some(FlowEvent::Closed(_))));
                self.resumed += app.resumed.len() as u64;
                self.octets += app.received.len() as u64;
                self.messages += app.messages.len() as u64;
            }
            self.malformed += side.machine.inner().counters().malformed;
        }
    }
}

impl core::ops::AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.closed += other.closed;
        self.resumed += other.resumed;
        self.octets += other.octets;
        self.messages += other.messages;
        self.malformed += other.malformed;
    }
}

fn session(seed: u64) -> (Vec<String>, Totals) {
    let mut session = Session::new(seed);
    session.run();
    let broken = session.check();
    let mut totals = Totals::default();
    totals.add(&session);
    (broken, totals)
}

#[test]
fn what_is_accepted_is_delivered_once_and_every_flow_ends() {
    #[expect(
        clippy::disallowed_methods,
        reason = "how a failing seed is repeated by hand"
    )]
    let one = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok());
    let seeds = one.map_or(0..SESSIONS, |seed: u64| seed..seed + 1);
    let mut failures = Vec::new();
    let mut totals = Totals::default();
    for seed in seeds {
        let ended = std::panic::catch_unwind(|| session(seed));
        let panicked = || (vec!["panicked".to_owned()], Totals::default());
        let (broken, did) = ended.unwrap_or_else(|_| panicked());
        totals += did;
        if !broken.is_empty() {
            let again = format!("{SEED}={seed} cargo test -p fulmar-proto --test it splice_swarm");
            failures.push(format!("{}\n  repeat: {again}", broken.join("\n")));
        }
    }
    assert!(
        failures.is_empty(),
        "{} sessions failed; the first:\n{}",
        failures.len(),
        failures[..failures.len().min(5)].join("\n")
    );
    if one.is_none() {
        let per_session = |count: u64| count / SESSIONS;
        assert!(per_session(totals.closed) >= 3, "{totals:?}");
        assert!(per_session(totals.resumed) >= 1, "{totals:?}");
        assert!(per_session(totals.octets) >= 50_000, "{totals:?}");
        assert!(per_session(totals.messages) >= 1, "{totals:?}");
        // Checks below catch inverted bits: none becomes a record.
        assert_eq!(totals.malformed, 0, "{totals:?}");
    }
}

#[test]
fn seeds_that_failed_once_hold() {
    for (seed, found) in FAILED_ONCE {
        let (broken, _) = session(seed);
        assert!(broken.is_empty(), "seed {seed}: {found}: {broken:?}");
    }
}
