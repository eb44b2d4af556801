//! Random sessions of gateways: the octets that a host sends reach the other host once and unaltered, and
//! every flow ends.
//!
//! A seed draws one to three gateways around another, links with loss, bursts, inverted bits, duplicates,
//! reordering, queues and outages, and flows of both kinds in either direction, with hosts that read slowly
//! or not at all, ends in any order, resets, and custody that fills up. In half of the sessions hosts are
//! lost while their octets are on the way, and links are held for down, rightly or not. Gateways restart: a
//! flow goes on if both ends and the custody survive that, and is reset otherwise. In half of the sessions flows have
//! goals: no message that is worth nothing late leaves after its deadline. In three of four sessions gateways have one to four
//! paths to each other, which come and go.

mod goal;
mod lanes;
mod local_end;
mod medium;
mod promises;
mod star;

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::{
    ClassId, Destination, FlowClass, FlowEvent, FlowId, FlowKind, OpenError, ResetCode, Role,
    SplicerConfig,
};
use fulmar_proto::transport::aerotp::{EndpointConfig, RateSource};
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use fulmar_proto::wire::Mode;
use lanes::{LANES_MAX, Lane};
use local_end::{ACCEPTOR_DURABLE, Asked, LocalEnd, OPENER_DURABLE};
use medium::Draw;
use star::{MIDDLE, Settings, Star};
use std::net::SocketAddr;

/// The report of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct SpliceReport {
    pub(super) broken: Vec<String>,
    /// Octets and messages' octets that hosts received.
    pub(super) delivered_bytes: u64,
    pub(super) flows_finished: u64,
    pub(super) flows_resumed: u64,
    pub(super) restarts: u64,
    pub(super) links_held: u64,
    pub(super) hosts_lost: u64,
    /// Messages that were held to a deadline.
    pub(super) messages_judged: u64,
    pub(super) packets: u64,
    pub(super) packets_lost: u64,
    pub(super) packets_damaged: u64,
    /// Times that a further path was there at one side.
    pub(super) paths_found: u64,
    pub(super) packets_on_further_paths: u64,
}

/// Draws, runs and checks the session of `seed`.
///
/// # Panics
/// A machine or its driver broke the contract, in builds that check it.
pub(super) fn session(seed: u64, cancel: &AtomicBool) -> SpliceReport {
    let mut session = Session::new(&Rng::from_seed(seed).child("splice swarm"));
    session.run(cancel);
    let mut report = session.report();
    if !cancel.load(Relaxed) {
        report.broken = session.broken(&mut report.messages_judged);
    }
    report
}

/// The end of the faults: what is left to do from then on takes no longer than the timeouts.
const HEALED_AT: Duration = Duration::from_secs(120);
/// The number of things that happen in a session.
const ACTS: usize = 60;
/// The longest pause between two of them, in microseconds.
const PAUSE_MICROS_MAX: u64 = 1_500_000;
/// The time after the last of them, longer than every timeout: `resume_within`, the flow's ending and the
/// connections' timeout follow one another.
const REST: Duration = Duration::from_secs(6_000);
const FLOWS_MAX: usize = 8;

/// A flow as it was drawn.
#[derive(Clone, Debug)]
struct Drawn {
    id: FlowId,
    kind: FlowKind,
    class: FlowClass,
    /// The gateways of the opener and of the acceptor.
    at: [usize; 2],
    /// The octets that the hosts at both send.
    says: [Vec<u8>; 2],
    /// Messages that were given to each side, by number: the times.
    told: [Vec<Instant>; 2],
    /// Whether a host reset it.
    cut: bool,
}

struct Session {
    star: Star,
    rng: Rng,
    /// The draws of links held for down and hosts lost, in sessions that have these.
    besides: Option<Rng>,
    /// The draws of goals, in sessions that have these.
    goals: Option<Rng>,
    /// The draws of further paths that come and go, in sessions that have these.
    lanes: Option<Rng>,
    flows: Vec<Drawn>,
}

fn some_octets(rng: &mut Rng, scale: u64) -> Vec<u8> {
    let len = usize::try_from(rng.below(scale + 1)).expect("small");
    let mut octets = vec![0; len];
    rng.fill(&mut octets);
    octets
}

/// The message `number` of one side of a flow, which carries its number.
fn message(flow: usize, side: usize, number: u64) -> Vec<u8> {
    let name = format!("message {flow} {side} {number}");
    let mut rng = Rng::from_seed(number).child(&name);
    let mut message = number.to_be_bytes().to_vec();
    message.extend(some_octets(&mut rng, 4_000));
    message
}

impl Session {
    fn new(rng: &Rng) -> Self {
        let mut medium = rng.child("medium");
        let mut draw = Draw { rng: &mut medium };
        let rate = Bitrate::from_bits_per_second(draw.between(500_000, 50_000_000));
        let count = draw.one_of(&[1, 1, 2, 3]);
        // A stream of its own, so that the other draws of a seed stay as they were without further paths.
        let mut lanes = rng.child("lanes");
        let has_lanes = lanes.chance(0.75);
        let links = (0..count).map(|index| {
            let own = rng.child(&format!("link {index}"));
            let further = if has_lanes {
                lanes.below(LANES_MAX + 1)
            } else {
                0
            };
            let further = (0..further).map(|lane| Lane::drawn(&own.child(&format!("lane {lane}"))));
            (draw.link(rate, &own), further.collect())
        });
        let links = links.collect();
        let mut splicer = SplicerConfig {
            flows_max: 64,
            receive_memory: ByteCount(2 << 20),
            first_credit: ByteCount(64 << 10),
            answer_within: Duration::from_secs(60),
            resume_within: Duration::from_secs(900),
            datagram_idle_max: Duration::from_secs(60),
            ..SplicerConfig::default()
        };
        splicer.connection.give_up_after = Duration::from_secs(300);
        let settings = Settings {
            splicer,
            endpoint: EndpointConfig {
                rate: RateSource::Told(rate),
                ..EndpointConfig::default()
            },
            custody_bytes: draw.between(2_000, 300_000),
            healed_at: Instant::START + HEALED_AT,
            delay: Duration::from_millis(draw.between(1, 100)),
        };
        let mut besides = rng.child("besides");
        let mut goals = rng.child("goals");
        Self {
            star: Star::new(&settings, links, rng.child("gateways")),
            rng: rng.child("session"),
            besides: besides.chance(0.5).then_some(besides),
            goals: goals.chance(0.5).then_some(goals),
            lanes: has_lanes.then_some(lanes),
            flows: Vec::new(),
        }
    }

    fn class(&mut self, kind: FlowKind) -> FlowClass {
        let complete = [Mode::NearReliable, Mode::Reliable, Mode::HybridNackMack];
        let mut draw = Draw { rng: &mut self.rng };
        let mode = match kind {
            FlowKind::Stream => draw.one_of(&complete),
            FlowKind::Datagrams => draw.one_of(&Mode::ALL),
        };
        let durable = draw.one_of(&[
            0,
            OPENER_DURABLE,
            ACCEPTOR_DURABLE,
            OPENER_DURABLE | ACCEPTOR_DURABLE,
            OPENER_DURABLE | ACCEPTOR_DURABLE,
        ]);
        let rng = draw.rng;
        let window = ByteCount(1_000 + rng.below(200_000));
        let resume = kind == FlowKind::Stream && rng.chance(0.7);
        FlowClass {
            mode,
            id: ClassId(durable),
            window,
            resume,
            durable: resume && durable & OPENER_DURABLE != 0,
            deadline: rng
                .chance(0.3)
                .then(|| Duration::from_millis(50 + rng.below(2_000))),
            ..FlowClass::default()
        }
    }

    fn open(&mut self) {
        let kind = if self.rng.chance(0.75) {
            FlowKind::Stream
        } else {
            FlowKind::Datagrams
        };
        let mut class = self.class(kind);
        if let Some(rng) = &mut self.goals {
            class = goal::drawn(rng, class);
        }
        let outer = 1 + self.rng.below(self.star.gateways.len() as u64 - 1);
        let outer = usize::try_from(outer).expect("a handful");
        let at = if self.rng.chance(0.6) {
            [MIDDLE, outer]
        } else {
            [outer, MIDDLE]
        };
        let scale = Draw { rng: &mut self.rng }.one_of(&[0, 100, 10_000, 120_000]);
        let says = [0; 2].map(|_| match kind {
            FlowKind::Stream => some_octets(&mut self.rng, scale),
            FlowKind::Datagrams => Vec::new(),
        });
        let destination = Destination::from(SocketAddr::from(([192, 0, 2, 1], 9)));
        let peer = Star::path(at[0], at[1]);
        let opened = self.star.call(at[0], |splicer, now| {
            splicer.open(now, peer, kind, destination.clone(), class)
        });
        let id = match opened {
            Ok(id) => id,
            Err(OpenError::TooMany) => return,
            Err(error) => panic!("the drawn class is sound: {error}"),
        };
        let asked = Asked {
            role: Role::Opener,
            peer,
            kind,
            class,
            destination,
        };
        let mut end = LocalEnd::new(asked, self.star.custody_bytes());
        end.says.clone_from(&says[0]);
        end.finishes = self.rng.chance(0.7);
        self.star.gateways[at[0]].ends.insert(id, end);
        self.star.touch(at[0], id);
        self.flows.push(Drawn {
            id,
            kind,
            class,
            at,
            says,
            told: [Vec::new(), Vec::new()],
            cut: false,
        });
    }

    /// Changes one local end of a flow, if it is there and the flow goes on.
    fn change(&mut self, flow: usize, side: usize, change: impl FnOnce(&mut LocalEnd)) {
        let Drawn { id, at, .. } = self.flows[flow];
        let end = self.star.gateways[at[side]].ends.get_mut(&id);
        if let Some(end) = end.filter(|end| end.last.is_none()) {
            change(end);
            self.star.touch(at[side], id);
        }
    }

    /// Ends the direction of a host, which has sent everything.
    fn conclude(&mut self, flow: usize, side: usize) {
        if self.flows[flow].kind == FlowKind::Stream {
            let says = self.flows[flow].says[side].clone();
            self.change(flow, side, |end| {
                end.says = says;
                end.finishes = true;
            });
        }
    }

    fn act(&mut self) {
        let flow = usize::try_from(self.rng.below(self.flows.len() as u64)).expect("small");
        let side = usize::from(self.rng.chance(0.5));
        match self.rng.below(100) {
            0..30 => self.conclude(flow, side),
            30..45 => {
                let appetite = Draw { rng: &mut self.rng }.one_of(&[None, Some(0), Some(1_000)]);
                self.change(flow, side, |end| end.appetite = appetite);
            }
            45..50 => {
                let withholds = self.rng.chance(0.5);
                self.change(flow, side, |end| end.withholds = withholds);
            }
            50..52 => self.cut(flow, side),
            52..56 => {
                let gateway = self.rng.below(self.star.gateways.len() as u64);
                self.star.restart(usize::try_from(gateway).expect("small"));
            }
            56..60 if self.flows.len() < FLOWS_MAX => self.open(),
            _ if self.flows[flow].kind == FlowKind::Datagrams => self.tell(flow, side),
            _ => {}
        }
    }

    /// Draws links held for down, and hosts that are lost.
    fn act_besides(&mut self) {
        let Some(rng) = &mut self.besides else { return };
        if rng.chance(0.2) {
            let outer = 1 + rng.below(self.star.gateways.len() as u64 - 1);
            let outer = usize::try_from(outer).expect("a handful");
            let (from, to) = if rng.chance(0.5) {
                (MIDDLE, outer)
            } else {
                (outer, MIDDLE)
            };
            self.star.toggle_hold(from, Star::path(from, to));
        } else if rng.chance(0.03) && !self.flows.is_empty() {
            let flow = usize::try_from(rng.below(self.flows.len() as u64)).expect("small");
            let side = usize::from(rng.chance(0.5));
            let drawn = &mut self.flows[flow];
            if drawn.kind == FlowKind::Stream && drawn.class.resume {
                drawn.cut = true;
                self.change(flow, side, |end| end.broke = true);
            }
        }
    }

    /// Draws further paths that come and go, and paths that are down or may be, as one side sees them.
    fn act_on_lanes(&mut self) {
        let Some(rng) = &mut self.lanes else { return };
        let link = rng.below(self.star.gateways.len() as u64 - 1);
        let link = usize::try_from(link).expect("a handful");
        let at = (link, usize::from(rng.chance(0.5)));
        let lane = rng.below(self.star.lane_count(link) as u64);
        let lane = usize::try_from(lane).expect("a handful");
        match rng.below(10) {
            0..4 => self.star.toggle_lane(at, lane),
            4..6 => self.star.toggle_hold_of(at, lane),
            6..8 => self.star.toggle_doubt_of(at, lane),
            _ => {}
        }
    }

    fn cut(&mut self, flow: usize, side: usize) {
        let Drawn { id, at, .. } = self.flows[flow];
        let ends = &mut self.star.gateways[at[side]].ends;
        if ends.get(&id).is_some_and(|end| end.last.is_none()) {
            self.flows[flow].cut = true;
            let end = ends.remove(&id).expect("looked at");
            self.star.gateways[at[side]].earlier.push((id, end));
            self.star.call(at[side], |splicer, now| {
                splicer.reset(now, id, ResetCode::Reset);
            });
        }
    }

    fn tell(&mut self, flow: usize, side: usize) {
        let now = self.star.now;
        let Drawn { id, at, told, .. } = &mut self.flows[flow];
        let (id, at) = (*id, *at);
        let message = message(flow, side, told[side].len() as u64);
        told[side].push(now);
        self.star.call(at[side], |splicer, now| {
            splicer.accept_datagram(now, id, &message);
        });
    }

    fn run(&mut self, cancel: &AtomicBool) {
        for _ in 0..=self.rng.below(4) {
            self.open();
        }
        for _ in 0..ACTS {
            let pause = self.rng.below(PAUSE_MICROS_MAX);
            self.star.run(Duration::from_micros(pause));
            self.act();
            self.act_besides();
            self.act_on_lanes();
            if cancel.load(Relaxed) {
                return;
            }
        }
        self.star.release_all();
        // From here on all hosts read and end what they send, also hosts that are connected only now.
        for _ in 0..40 {
            for flow in 0..self.flows.len() {
                for side in 0..2 {
                    self.change(flow, side, |end| {
                        end.appetite = None;
                        end.withholds = false;
                    });
                    self.conclude(flow, side);
                }
            }
            self.star.run(Duration::from_secs(60));
        }
        self.star.run(REST);
    }

    fn report(&self) -> SpliceReport {
        let crossed = self.star.crossed;
        let mut report = SpliceReport {
            packets: crossed.packets,
            packets_lost: crossed.lost,
            packets_damaged: crossed.damaged,
            links_held: self.star.holds,
            paths_found: self.star.bonds,
            packets_on_further_paths: crossed.by_lanes,
            ..SpliceReport::default()
        };
        for gateway in &self.star.gateways {
            report.restarts += u64::from(gateway.starts);
            let earlier = gateway.earlier.iter().map(|(_, end)| end);
            for end in gateway.ends.values().chain(earlier) {
                let messages: usize = end.messages.iter().map(|(_, got)| got.len()).sum();
                report.delivered_bytes += (end.received.len() + messages) as u64;
                report.flows_resumed += end.resumptions;
                report.hosts_lost += u64::from(end.broke);
                let finished = matches!(end.last, Some(FlowEvent::Closed(_)));
                report.flows_finished += u64::from(finished);
            }
        }
        report
    }
}
