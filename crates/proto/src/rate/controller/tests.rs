mod anew;
mod found;
mod levels;
mod looks;
mod others;
mod reports;
mod told;
mod train;

use super::super::sent_log::Sent;
use super::*;
use crate::rng::Rng;

const PACKET: ByteCount = ByteCount(1500);
/// The octets that wait behind a datagram of one who always has something to send.
const ENDLESS: ByteCount = ByteCount(u64::MAX);
/// The time that a datagram takes on the line before a bucket.
const LINE_SPACING: Duration = Duration::from_micros(12);

fn at(milliseconds: u64) -> Instant {
    Instant::START + Duration::from_millis(milliseconds)
}

/// A link without loss: a datagram leaves it `spacing` after the one before, and `delay` later its
/// report is back.
struct Pipe {
    controller: RateController,
    now: Instant,
    next: u64,
    free_at: Instant,
    octets: u64,
    /// The number of times that each octet which arrives is told of.
    told: u64,
    /// The octets that wait behind each datagram.
    waiting: ByteCount,
    reports: VecDeque<(Instant, ArrivalReport)>,
    /// Datagrams that pass at line rate after a pause as long as each of them takes.
    bucket: u32,
    line_free_at: Instant,
    /// The time between two moments at which the link delivers what it holds, if it does so by the clock.
    frame: Option<Duration>,
    /// The seconds of the receiver's clock in one of the sender's.
    clock: f64,
    /// The most that a report is late, at random.
    jitter_back_millis: u64,
    rng: Rng,
}

impl Pipe {
    fn new(config: RateConfig) -> Self {
        Self {
            controller: RateController::new(config),
            now: Instant::START,
            next: 0,
            free_at: Instant::START,
            octets: 0,
            told: 1,
            waiting: ENDLESS,
            reports: VecDeque::new(),
            bucket: 0,
            line_free_at: Instant::START,
            frame: None,
            clock: 1.0,
            jitter_back_millis: 0,
            rng: Rng::from_seed(1),
        }
    }

    /// The time at which what passed the link is handed on.
    fn delivered_at(&self) -> Instant {
        let passed_at = if self.bucket > 0 {
            self.free_at.max(self.line_free_at)
        } else {
            self.free_at
        };
        let Some(frame) = self.frame else {
            return passed_at;
        };
        let passed = passed_at.saturating_since(Instant::START);
        let frames = passed.as_nanos().div_ceil(frame.as_nanos());
        Instant::START + frame * u32::try_from(frames).expect("a short test")
    }

    /// Sends until `end`, always with something to send.
    fn run(&mut self, end: Instant, spacing: Duration, delay: Duration) {
        while self.now < end {
            let waits = self.controller.in_flight() >= self.controller.in_flight_max();
            if let Some((when, report)) = self.reports.front().copied()
                && (when <= self.now || waits)
            {
                self.reports.pop_front();
                self.now = self.now.max(when);
                self.controller.on_report(self.now, &report);
                continue;
            }
            if waits {
                let deadline = self
                    .controller
                    .next_deadline()
                    .expect("something is under way");
                self.now = self.now.max(deadline.at);
                self.controller.handle_deadline(self.now);
                continue;
            }
            let pace = self.controller.pacing(self.now).time_to_send(PACKET);
            self.controller
                .on_sent(self.now, self.next, PACKET, self.waiting);
            self.line_free_at = self.line_free_at.max(self.now) + LINE_SPACING;
            self.free_at = self.free_at.max(self.now - spacing * self.bucket) + spacing;
            self.octets += PACKET.0;
            let arrived_at = self.delivered_at().saturating_since(Instant::START) + delay / 2;
            let report = ArrivalReport {
                newest: self.next,
                arrived_at: Duration::from_secs_f64(arrived_at.as_secs_f64() * self.clock),
                hold: Duration::ZERO,
                octets: ByteCount(self.told * self.octets),
                marked: 0,
            };
            let late = self.rng.below(1_000 * self.jitter_back_millis + 1);
            let when = self.delivered_at() + delay + Duration::from_micros(late);
            let behind = self
                .reports
                .back()
                .map_or(when, |(last, _)| when.max(*last));
            self.reports.push_back((behind, report));
            self.next += 1;
            self.now += pace;
        }
    }

    fn rate(&self) -> f64 {
        self.controller.belief().rate.as_bits_per_second() as f64
    }
}

/// A window in which so many octets left and arrived, over a second.
fn second_of(sent: u64, arrived: u64) -> Window {
    let point = |octets, arrived, seconds: u64| Point {
        sent: Sent {
            number: octets / PACKET.0,
            octets,
            at: at(1_000 * seconds),
        },
        arrived,
        marked: 0,
        arrived_at: seconds as f64,
        queueing: 0.0,
    };
    let mut window = Window::begin(point(0, 0, 0));
    window.add(point(sent, arrived, 1));
    window
}
