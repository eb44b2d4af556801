//! One bottleneck and the senders that share it, without a transport: datagrams, reports, and paces.
//! A minute of a link costs milliseconds, so that thousands of links can be tried.
//!
//! The media are those of `fulmar-channel` and the controller is that of `fulmar-proto`, as they are. What arrives
//! counts; repetition and parity are not modelled, since they change nothing of the rate.

mod bbr;
mod cubic;
mod found;
mod link;
mod links;
mod steadiness;

pub use link::BottleneckPlan;
pub use links::{LinkRange, random_link};
pub use steadiness::{Steadiness, TOO_MUCH, steadiness};

use bbr::BbrFlow;
use cubic::CubicFlow;
use found::FoundFlow;
use fulmar_proto::rate::{ArrivalReport, RateBelief, RateConfig};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use link::{Fate, Link};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The octets of every datagram, headers included.
pub const DATAGRAM: ByteCount = ByteCount(1500);
/// The least time between two reports of a receiver.
const REPORT_GAP: Duration = Duration::from_millis(10);
/// The first datagrams of a flow, each of which is reported.
const REPORTED_FIRST: u64 = 32;

/// The way in which a flow finds its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SenderPlan {
    /// The controller finds it.
    Found(RateConfig),
    /// It is told: a constant rate.
    Told(Bitrate),
    /// Small datagrams, one in so much time, as answers and pings are.
    Small {
        /// The octets of each, headers included.
        octets: ByteCount,
        /// The time from one to the next.
        every: Duration,
    },
    /// CUBIC's window, with perfect knowledge of what was lost.
    Cubic,
    /// BBR's model (version 1), with perfect knowledge of what was delivered.
    Bbr,
}

/// A flow and its beginning; all go on to the end of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderStart {
    /// The way in which it finds its rate.
    pub plan: SenderPlan,
    /// Its beginning.
    pub at: Instant,
}

/// The result of a sender.
#[derive(Clone, Debug, Default)]
pub struct SenderOutcome {
    /// Octets sent.
    pub sent: u64,
    /// Octets that arrived.
    pub arrived: u64,
    /// Octets dropped before the link: by a full queue, a policer, or a managed queue.
    pub dropped: u64,
    /// Octets that arrived in each tenth of a second.
    pub tenths: Vec<u64>,
    /// Octets sent in each tenth of a second.
    pub sent_tenths: Vec<u64>,
    /// The mean wait in the queue.
    pub queue_mean: Duration,
    /// The controller's belief at the end, if there was one.
    pub belief: Option<RateBelief>,
    waits: f64,
    passed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The flow may have something to send.
    Turn(usize),
    /// A datagram arrives, perhaps with a mark.
    Arrival(usize, u64, bool),
    /// A report, or for CUBIC and BBR an acknowledgement of one datagram, arrives.
    Report(usize, Reported),
    /// The flow's deadline.
    Deadline(usize),
}

/// The content of a report: the newest datagram, the receiver's clock, and its totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Reported {
    newest: u64,
    clock: Duration,
    octets: u64,
    marked: u64,
}

/// A sender.
#[derive(Debug)]
enum Sender {
    Found(Box<FoundFlow>),
    Told(Bitrate),
    Small(Duration),
    Cubic(Box<CubicFlow>),
    Bbr(Box<BbrFlow>),
}

#[derive(Debug, Default)]
struct Receiver {
    newest: Option<u64>,
    octets: u64,
    datagrams: u64,
    marked: u64,
    reported_at: Option<Instant>,
}

#[derive(Debug)]
struct Flow {
    sender: Sender,
    /// The octets of its datagrams.
    octets: ByteCount,
    receiver: Receiver,
    outcome: SenderOutcome,
    next_number: u64,
    /// The time at which the pace allows the next datagram.
    due: Instant,
    /// Whether a turn is on the way.
    turning: bool,
    timer: Option<Instant>,
}

struct Run {
    now: Instant,
    link: Link,
    clock_gain: f64,
    flows: Vec<Flow>,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    count: u64,
}

/// Runs `flows` over `link` until `end`. The same arguments give the same outcome.
///
/// # Errors
/// The first field of the plan's channels that is out of range.
pub fn run(
    link: &BottleneckPlan,
    flows: &[SenderStart],
    end: Instant,
    rng: &Rng,
) -> Result<Vec<SenderOutcome>, fulmar_channel::ChannelConfigError> {
    let mut run = Run {
        now: Instant::START,
        link: Link::new(link, rng)?,
        clock_gain: link.clock_gain,
        flows: (0..)
            .zip(flows)
            .map(|(index, flow)| Flow::new(index, flow))
            .collect(),
        events: BinaryHeap::new(),
        count: 0,
    };
    for (index, flow) in flows.iter().enumerate() {
        run.flows[index].turning = true;
        run.push(flow.at, Event::Turn(index));
    }
    while let Some(Reverse((at, _, event))) = run.events.pop() {
        if at >= end {
            break;
        }
        run.now = at;
        run.handle(event);
    }
    let finished = run.flows.into_iter().map(Flow::finish);
    Ok(finished.collect())
}

impl Flow {
    fn new(index: usize, start: &SenderStart) -> Self {
        let sender = match start.plan {
            SenderPlan::Found(config) => Sender::Found(Box::new(FoundFlow::new(config))),
            SenderPlan::Told(rate) => Sender::Told(rate),
            SenderPlan::Small { every, .. } => Sender::Small(every),
            SenderPlan::Cubic => Sender::Cubic(Box::new(CubicFlow::new())),
            SenderPlan::Bbr => Sender::Bbr(Box::new(BbrFlow::new(index))),
        };
        let octets = match start.plan {
            SenderPlan::Small { octets, .. } => octets,
            _ => DATAGRAM,
        };
        Self {
            sender,
            octets,
            receiver: Receiver::default(),
            outcome: SenderOutcome::default(),
            next_number: 0,
            due: start.at,
            turning: false,
            timer: None,
        }
    }

    fn finish(self) -> SenderOutcome {
        let mut outcome = self.outcome;
        outcome.queue_mean = Duration::from_secs_f64(outcome.waits / outcome.passed.max(1) as f64);
        if let Sender::Found(found) = &self.sender {
            outcome.belief = Some(found.controller.belief());
        }
        outcome
    }
}

fn count(tenths: &mut Vec<u64>, now: Instant, octets: ByteCount) {
    let tenth = usize::try_from(now.as_nanos() / 100_000_000).unwrap_or(usize::MAX);
    if tenths.len() <= tenth {
        tenths.resize(tenth + 1, 0);
    }
    tenths[tenth] += octets.0;
}

impl Run {
    fn push(&mut self, at: Instant, event: Event) {
        self.count += 1;
        self.events.push(Reverse((at, self.count, event)));
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Turn(index) => {
                self.flows[index].turning = false;
                self.send(index);
            }
            Event::Arrival(index, number, marked) => self.on_arrival(index, number, marked),
            Event::Report(index, reported) => self.on_report(index, reported),
            Event::Deadline(index) => self.on_deadline(index),
        }
    }

    /// Sends what the flow may send now, and arranges its next turn.
    fn send(&mut self, index: usize) {
        let now = self.now;
        loop {
            let flow = &mut self.flows[index];
            let may = match &flow.sender {
                Sender::Found(found) => found.may_send(),
                Sender::Told(_) | Sender::Small(_) => true,
                Sender::Cubic(cubic) => cubic.may_send(),
                Sender::Bbr(bbr) => bbr.may_send(),
            };
            if !may {
                break;
            }
            if flow.due > now {
                if !flow.turning {
                    flow.turning = true;
                    let due = flow.due;
                    self.push(due, Event::Turn(index));
                }
                break;
            }
            let number = flow.next_number;
            flow.next_number += 1;
            let octets = flow.octets;
            let pause = match &mut flow.sender {
                Sender::Found(found) => {
                    let rate = found.controller.pacing(now);
                    let waiting = ByteCount(u64::MAX);
                    found.controller.on_sent(now, number, octets, waiting);
                    Some(rate.time_to_send(octets))
                }
                Sender::Told(rate) => Some(rate.time_to_send(octets)),
                Sender::Small(every) => Some(*every),
                Sender::Cubic(cubic) => {
                    cubic.on_sent(now, number);
                    None
                }
                Sender::Bbr(bbr) => Some(bbr.on_sent(now, number).time_to_send(octets)),
            };
            if let Some(pause) = pause {
                flow.due = flow.due.max(now) + pause;
            }
            flow.outcome.sent += octets.0;
            count(&mut flow.outcome.sent_tenths, now, octets);
            let capable = matches!(flow.sender, Sender::Found(_));
            let fate = self.link.forward(now, octets, capable);
            self.on_fate(index, number, fate);
        }
        self.arm(index);
    }

    fn on_fate(&mut self, index: usize, number: u64, fate: Fate) {
        let flow = &mut self.flows[index];
        let outcome = &mut flow.outcome;
        match fate {
            Fate::Arrives { at, waited, marked } => {
                outcome.waits += waited.as_secs_f64();
                outcome.passed += 1;
                self.push(at, Event::Arrival(index, number, marked));
            }
            Fate::NoRoom => outcome.dropped += flow.octets.0,
            Fate::Lost => {}
        }
    }

    fn arm(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        let deadline = match &flow.sender {
            Sender::Found(found) => found.controller.next_deadline().map(|deadline| deadline.at),
            Sender::Told(_) | Sender::Small(_) => None,
            Sender::Cubic(cubic) => cubic.next_deadline(),
            Sender::Bbr(bbr) => bbr.next_deadline(),
        };
        if let Some(at) = deadline
            && flow.timer.is_none()
        {
            let at = at.max(now);
            flow.timer = Some(at);
            self.push(at, Event::Deadline(index));
        }
    }

    fn on_deadline(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        flow.timer = None;
        match &mut flow.sender {
            Sender::Found(found) => found.controller.handle_deadline(now),
            Sender::Told(_) | Sender::Small(_) => {}
            Sender::Cubic(cubic) => cubic.handle_deadline(now),
            Sender::Bbr(bbr) => bbr.handle_deadline(now),
        }
        self.send(index);
    }

    fn on_arrival(&mut self, index: usize, number: u64, marked: bool) {
        let now = self.now;
        let flow = &mut self.flows[index];
        let octets = flow.octets;
        flow.outcome.arrived += octets.0;
        count(&mut flow.outcome.tenths, now, octets);
        let receiver = &mut flow.receiver;
        receiver.octets += octets.0;
        receiver.datagrams += 1;
        receiver.marked += u64::from(marked);
        let is_newest = receiver.newest.is_none_or(|newest| newest < number);
        if is_newest {
            receiver.newest = Some(number);
        }
        let mut reported = Reported {
            newest: number,
            ..Reported::default()
        };
        match &flow.sender {
            Sender::Found(_) => {
                let due = receiver.datagrams <= REPORTED_FIRST
                    || receiver
                        .reported_at
                        .is_none_or(|at| now.saturating_since(at) >= REPORT_GAP);
                if !due || !is_newest {
                    return;
                }
                receiver.reported_at = Some(now);
                let clock = now.saturating_since(Instant::START).as_secs_f64();
                reported.clock = Duration::from_secs_f64(clock * (1.0 + self.clock_gain));
                reported.octets = receiver.octets;
                reported.marked = receiver.marked;
                if let Some(at) = self.link.back(now) {
                    self.push(at, Event::Report(index, reported));
                }
            }
            Sender::Cubic(_) | Sender::Bbr(_) => {
                let at = self.link.back_surely(now);
                self.push(at, Event::Report(index, reported));
            }
            Sender::Told(_) | Sender::Small(_) => {}
        }
    }

    fn on_report(&mut self, index: usize, reported: Reported) {
        let now = self.now;
        match &mut self.flows[index].sender {
            Sender::Found(found) => {
                let report = ArrivalReport {
                    newest: reported.newest,
                    arrived_at: reported.clock,
                    hold: Duration::ZERO,
                    octets: ByteCount(reported.octets),
                    marked: reported.marked,
                };
                found.controller.on_report(now, &report);
            }
            Sender::Cubic(cubic) => cubic.on_ack(now, reported.newest),
            Sender::Bbr(bbr) => bbr.on_ack(now, reported.newest),
            Sender::Told(_) | Sender::Small(_) => {}
        }
        self.send(index);
    }
}
