//! A flow that one end has forgotten ends at the other, soon after the link is up.
//!
//! Method: every short history of one flow is played with two real splicers. A history has acts of hosts, lost
//! datagrams, outages (some of them longer than every time limit), and restarts of either gateway that keep its
//! state of the flow, lose it, or find it damaged. Then the link is up, and the test measures when both sides
//! agree for good: both have the flow, or neither has. A flow that both have must still come to its end. At most
//! one of the connections made to the destination for one flow may have received octets, unless the first one had
//! ended before the acceptor restarted.
//!
//! A session lies between two gateways. This test models the news that a splicer gets from it: the
//! link is down or up, and, a round trip after the link is up, the peer has restarted.

use super::splicers::{PEER, Pair, SINK, pattern};
use fulmar_proto::splice::{FlowClass, FlowId, FlowKind, ResetCode, SplicerConfig};
use fulmar_proto::units::{ByteCount, Duration, Instant};
use std::cell::Cell;
use std::rc::Rc;
use std::thread;

/// The number of acts in a history, and the variable that sets a larger one.
const DEPTH: usize = 4;
const DEPTH_VARIABLE: &str = "SPLICE_DEPTH";
const SECOND: Duration = Duration::from_secs(1);
/// The time in which both sides agree after the link is up, for a link that loses nothing, besides so many round
/// trips: the promise of docs/protocol/splice.md.
const PROMISED: Duration = Duration::from_secs(2);
const PROMISED_ROUND_TRIPS: u32 = 2;
/// The number of promised times for which the outcome is watched: agreement has to last.
const LOOKED_AT: u32 = 4;
/// A time longer than every time limit of `config` in a row.
const OUTLASTS: Duration = Duration::from_secs(600);

fn config(incarnation: u32) -> SplicerConfig {
    let mut config = SplicerConfig {
        incarnation,
        answer_within: SECOND * 30,
        resume_within: SECOND * 3_600,
        ..SplicerConfig::default()
    };
    config.connection.give_up_after = SECOND * 60;
    config
}

/// The state in which a restarted gateway finds the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Kept,
    Lost,
    Damaged,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Say(usize),
    End(usize),
    /// The host resets its connection.
    Cut(usize),
    /// The host is gone while octets from it are under way.
    Break(usize),
    /// The side's next datagram is lost.
    Lose(usize),
    Down,
    Up,
    Wait,
    Outlast,
    Restart(usize, Left),
    /// Such an outage, in which the link lasts for the session's handshake and is down before anything
    /// else has passed.
    Glimpse(usize, Left),
}

/// The acts that may follow `history`, if they can have an effect.
fn acts(history: &[Act], durable: bool) -> Vec<Act> {
    let down = history.iter().rev().find_map(|act| match act {
        Act::Down | Act::Glimpse(..) => Some(true),
        Act::Up => Some(false),
        _ => None,
    });
    let last = history.last();
    let mut acts = Vec::new();
    for side in 0..2 {
        let over = |act: &Act| match *act {
            Act::Cut(of) | Act::Break(of) => of == side,
            Act::Restart(of, left) | Act::Glimpse(of, left) => of == side && left != Left::Kept,
            _ => false,
        };
        if !history.iter().any(over) {
            if !history.contains(&Act::End(side)) {
                acts.extend([Act::Say(side), Act::End(side)]);
            }
            acts.extend([Act::Cut(side), Act::Break(side)]);
        }
        acts.push(Act::Restart(side, Left::Lost));
        if durable {
            acts.extend([Left::Kept, Left::Damaged].map(|left| Act::Restart(side, left)));
        }
        if down != Some(true) && last != Some(&Act::Lose(side)) {
            acts.push(Act::Lose(side));
        }
    }
    if down == Some(true) {
        acts.push(Act::Up);
    } else {
        acts.extend([Act::Down, Act::Glimpse(1, Left::Lost)]);
        if durable {
            acts.push(Act::Glimpse(0, Left::Kept));
        }
    }
    if !matches!(last, Some(Act::Wait | Act::Outlast)) {
        acts.push(Act::Wait);
        acts.push(Act::Outlast);
    }
    acts
}

/// The settings that vary beside the history.
#[derive(Clone, Copy, Debug)]
struct Setting {
    delay: Duration,
    /// The time between two acts.
    pause: Duration,
    resume: bool,
    durable: bool,
    /// Octets that leave with the first opening.
    presumed: usize,
}

struct Life {
    pair: Pair,
    setting: Setting,
    id: FlowId,
    up: Rc<Cell<bool>>,
    lose: Rc<[Cell<bool>; 2]>,
    starts: [u32; 2],
    broke: [bool; 2],
}

impl Life {
    fn new(setting: Setting) -> Self {
        let up = Rc::new(Cell::new(true));
        let lose = Rc::new([Cell::new(false), Cell::new(false)]);
        let (is_up, loses) = (Rc::clone(&up), Rc::clone(&lose));
        let script = Box::new(move |side: usize, _: Instant, octets: &[u8]| {
            if loses[side].take() || !is_up.get() {
                return Vec::new();
            }
            vec![(setting.delay, octets.to_vec())]
        });
        let mut pair = Pair::new(&config(0), script);
        let class = FlowClass {
            window: ByteCount(100_000),
            resume: setting.resume,
            durable: setting.durable,
            ..FlowClass::default()
        };
        let id = pair.open_only(FlowKind::Stream, SINK, class);
        pair.app(0, id).outgoing = pattern(setting.presumed);
        pair.touch(0, id);
        let mut life = Self {
            pair,
            setting,
            id,
            up,
            lose,
            starts: [0; 2],
            broke: [false; 2],
        };
        // Only the state on disk tells what a start has connected to.
        life.pair.sides[1].keeps = setting.durable;
        life.run(setting.pause);
        life
    }

    fn run(&mut self, span: Duration) {
        self.pair.run(span);
        for side in 0..2 {
            // A gateway whose host is gone resets the flow when custody is empty.
            let drained = |app: &mut super::splicers::App| {
                app.last.is_none() && app.delivered == app.outgoing.len() as u64
            };
            let apps = &mut self.pair.sides[side].apps;
            if self.broke[side] && apps.get_mut(&self.id).is_some_and(drained) {
                self.cut(side);
            }
        }
    }

    fn cut(&mut self, side: usize) {
        let id = self.id;
        self.pair.cut(side, id);
    }

    fn hold(&mut self, held: bool) {
        for side in 0..2 {
            self.pair
                .call(side, |splicer, now| splicer.hold(now, PEER, held));
        }
    }

    /// Holds the session's handshake, which takes a round trip and tells both sides what it found.
    fn meet(&mut self) {
        if self.up.get() {
            self.run(self.setting.delay * 2);
            self.pair.introduce();
            self.hold(false);
        }
    }

    /// Holds the session's handshake, and loses what the two sides say then.
    fn glimpse(&mut self) {
        self.run(self.setting.delay * 2);
        self.up.set(false);
        self.pair.introduce();
        self.hold(false);
        self.hold(true);
    }

    fn change(&mut self, side: usize, change: impl FnOnce(&mut super::splicers::App)) {
        let app = self.pair.sides[side].apps.get_mut(&self.id);
        if let Some(app) = app.filter(|app| app.last.is_none()) {
            change(app);
            self.pair.touch(side, self.id);
        }
    }

    fn restart(&mut self, side: usize, left: Left) {
        if left == Left::Lost {
            self.pair.sides[side].apps.clear();
            self.pair.sides[side].keeps = false;
        }
        self.starts[side] += 1;
        // No datagram is made for a peer before it is there.
        self.pair.restart_held(side, &config(self.starts[side]));
        // Flows that are over are not remembered.
        let apps = &mut self.pair.sides[side].apps;
        apps.retain(|_, app| app.last.is_none());
        if left == Left::Damaged && apps.remove(&self.id).is_some() {
            let id = self.id;
            self.pair.sides[side].end(id);
            self.pair.call(side, |splicer, now| {
                splicer.reset(now, id, ResetCode::CustodyLost);
            });
        } else if self.broke[side] {
            let id = self.id;
            self.pair.call(side, |splicer, now| splicer.stop(now, id));
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Say(side) => self.change(side, |app| app.outgoing.extend(pattern(2_000))),
            Act::End(side) => self.change(side, |app| app.finishes = true),
            Act::Cut(side) => self.cut(side),
            Act::Break(side) => {
                let id = self.id;
                self.change(side, |app| app.withholds = true);
                self.broke[side] = true;
                self.pair.call(side, |splicer, now| splicer.stop(now, id));
            }
            Act::Lose(side) => self.lose[side].set(true),
            Act::Down => {
                self.up.set(false);
                self.hold(true);
            }
            Act::Up => {
                self.up.set(true);
                self.meet();
            }
            Act::Wait => self.run(SECOND * 10),
            Act::Outlast => self.run(OUTLASTS),
            Act::Restart(side, left) => {
                self.restart(side, left);
                self.meet();
            }
            Act::Glimpse(side, left) => {
                self.restart(side, left);
                self.glimpse();
            }
        }
        self.run(self.setting.pause);
    }

    /// Whether both sides have the flow, with a host behind it, or neither has anything of it.
    fn agree(&mut self) -> bool {
        let id = self.id;
        let mut has = [false; 2];
        for (side, has) in has.iter_mut().enumerate() {
            *has = self.pair.splicer(side).flows().any(|flow| flow == id);
            let app = self.pair.sides[side].apps.get(&id);
            if *has != app.is_some_and(|app| app.last.is_none()) {
                return false;
            }
        }
        has[0] == has[1]
    }

    /// Takes the link up for good. Returns the time until both sides agree for good.
    fn settle(&mut self) -> Result<Duration, String> {
        for lose in self.lose.iter() {
            lose.set(false);
        }
        if !self.up.replace(true) {
            self.meet();
        }
        let step = self.setting.delay;
        let promised = PROMISED + step * 2 * PROMISED_ROUND_TRIPS;
        let (mut took, mut agreed_at) = (Duration::ZERO, None);
        while took <= promised * LOOKED_AT {
            match (self.agree(), agreed_at) {
                (true, None) => agreed_at = Some(took),
                (false, _) => agreed_at = None,
                _ => {}
            }
            self.run(step);
            took += step;
        }
        agreed_at
            .filter(|at| *at <= promised)
            .ok_or_else(|| format!("agreed after {agreed_at:?}, {promised:?} promised"))
    }

    /// Checks that the flow, if both sides have it, comes to its end, and that nothing stays behind.
    fn conclude(&mut self) -> Result<(), String> {
        for side in 0..2 {
            self.change(side, |app| app.finishes = true);
        }
        self.run(SECOND * 60);
        if self.pair.sides[1].doubled.contains(&self.id) {
            return Err("the destination was given octets twice".to_owned());
        }
        for side in 0..2 {
            let app = self.pair.sides[side].apps.get(&self.id);
            if let Some(app) = app
                && app.last.is_none()
            {
                return Err(format!("side {side} does not end: {app:?}"));
            }
        }
        self.run(OUTLASTS);
        for side in 0..2 {
            let splicer = self.pair.splicer(side);
            let left = [
                splicer.entry_count() as u64,
                splicer.counters().credit_reserved,
                splicer.endpoint().connection_count() as u64,
            ];
            if left != [0; 3] {
                return Err(format!(
                    "side {side} keeps entries, credit, connections {left:?}"
                ));
            }
        }
        Ok(())
    }
}

/// Plays a history. Returns the time that agreement took.
fn play(setting: Setting, history: &[Act]) -> Result<Duration, String> {
    let mut life = Life::new(setting);
    for act in history {
        life.act(*act);
    }
    let took = life.settle()?;
    life.conclude()?;
    Ok(took)
}

#[derive(Debug, Default)]
struct Walked {
    histories: u64,
    longest: (Duration, Vec<Act>),
    failed: Vec<String>,
}

impl Walked {
    fn add(&mut self, other: Self) {
        self.histories += other.histories;
        if other.longest.0 > self.longest.0 {
            self.longest = other.longest;
        }
        self.failed.extend(other.failed);
    }

    /// Plays every history of at most `depth` acts that begins with `history`.
    fn walk(&mut self, setting: Setting, history: &mut Vec<Act>, depth: usize) {
        self.histories += 1;
        match play(setting, history) {
            Ok(took) if took > self.longest.0 => self.longest = (took, history.clone()),
            Err(problem) if self.failed.len() < 10 => {
                self.failed
                    .push(format!("{history:?} {setting:?}: {problem}"));
            }
            Ok(_) | Err(_) => {}
        }
        if history.len() == depth {
            return;
        }
        for act in acts(history, setting.durable) {
            history.push(act);
            self.walk(setting, history, depth);
            history.pop();
        }
    }
}

fn walk(setting: Setting, depth: usize) -> Walked {
    let mut walked = Walked::default();
    let first = acts(&[], setting.durable);
    let workers: Vec<_> = (0..2)
        .map(|worker| {
            let first: Vec<Act> = first.iter().copied().skip(worker).step_by(2).collect();
            thread::spawn(move || {
                let mut walked = Walked::default();
                for act in first {
                    walked.walk(setting, &mut vec![act], depth);
                }
                walked
            })
        })
        .collect();
    for worker in workers {
        walked.add(worker.join().expect("no panic"));
    }
    println!(
        "{setting:?}: {} histories, the longest {:?}",
        walked.histories, walked.longest
    );
    walked
}

fn depth() -> usize {
    #[expect(
        clippy::disallowed_methods,
        reason = "how longer histories are walked by hand"
    )]
    let asked = std::env::var(DEPTH_VARIABLE);
    asked
        .ok()
        .and_then(|depth| depth.parse().ok())
        .unwrap_or(DEPTH)
}

const SHORT: Duration = Duration::from_millis(10);
/// The delay of a geostationary satellite.
const LONG: Duration = Duration::from_millis(300);

fn hold_to_the_promise(settings: impl IntoIterator<Item = Setting>, depth: usize) {
    for setting in settings {
        let walked = walk(setting, depth);
        assert!(walked.histories > 1_000, "{walked:?}");
        assert!(walked.failed.is_empty(), "{:#?}", walked.failed);
    }
}

const DURABLE: Setting = Setting {
    delay: SHORT,
    pause: Duration::from_millis(15),
    resume: true,
    durable: true,
    presumed: 0,
};

#[test]
fn after_every_short_history_of_a_durable_flow_both_sides_agree_in_time() {
    hold_to_the_promise([DURABLE], depth());
}

#[test]
fn the_same_holds_when_acts_follow_at_once_and_over_a_long_link() {
    let at_once = Setting {
        pause: Duration::ZERO,
        ..DURABLE
    };
    let long = Setting {
        delay: LONG,
        pause: LONG / 2,
        ..DURABLE
    };
    hold_to_the_promise([at_once, long], depth() - 1);
}

#[test]
fn the_same_holds_when_the_first_octets_leave_with_the_opening() {
    let presumed = Setting {
        presumed: 500,
        pause: SHORT / 2,
        ..DURABLE
    };
    hold_to_the_promise([presumed], depth() - 1);
}

#[test]
fn the_same_holds_for_flows_that_die_with_a_gateway_or_with_their_connection() {
    let volatile = Setting {
        durable: false,
        ..DURABLE
    };
    let fleeting = Setting {
        resume: false,
        ..volatile
    };
    hold_to_the_promise([volatile, fleeting], depth() - 1);
}
