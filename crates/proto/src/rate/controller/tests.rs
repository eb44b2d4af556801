mod anew;
mod looks;

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

#[test]
fn before_the_first_report_a_train_is_under_way_and_a_little_more_for_each_silence() {
    let mut controller = RateController::new(RateConfig::default());
    let train = 10;
    for number in 0..train {
        assert!(controller.in_flight() < controller.in_flight_max());
        controller.on_sent(at(0), number, PACKET, ENDLESS);
    }
    assert_eq!(controller.in_flight(), controller.in_flight_max());
    let first = controller.next_deadline().expect("no report yet").at;
    controller.handle_deadline(first);
    assert_eq!(controller.in_flight_max().0, 13 * PACKET.0);
    let second = controller.next_deadline().expect("no report yet").at;
    assert!(second.saturating_since(first) > first.saturating_since(at(0)));
}

#[test]
fn what_carries_no_octets_says_nothing_of_the_share_that_arrives() {
    let mut pipe = Pipe::new(RateConfig::default());
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
    pipe.run(at(500), spacing, delay);
    // As behind a search that has just ended: no stretch was counted yet.
    let rate = pipe.rate();
    (pipe.controller.share_octets, pipe.controller.window) = (0.0, None);
    (pipe.controller.found_more, pipe.controller.epochs[0].kind) = (0, EpochKind::Cruise);
    for report in 0..40 {
        pipe.now += Duration::from_millis(10);
        pipe.controller.on_number(pipe.now, pipe.next);
        let newest = pipe.next;
        let arrived_at = pipe.now.saturating_since(Instant::START) + delay / 2;
        pipe.next += 1;
        let report = ArrivalReport {
            newest,
            arrived_at: arrived_at + Duration::from_micros(report),
            hold: Duration::ZERO,
            octets: ByteCount(pipe.octets),
            marked: 0,
        };
        pipe.controller.on_report(pipe.now + delay, &report);
    }
    assert!(!pipe.controller.share.is_nan(), "an unknown share");
    pipe.run(pipe.now + Duration::from_secs(2), spacing, delay);
    assert!(pipe.rate() > 0.9 * rate, "{} {rate}", pipe.rate());
}

#[test]
fn a_rate_that_is_too_low_by_less_than_a_trial_adds_does_not_stay_so() {
    let (spacing, delay) = (Duration::from_micros(2_400), Duration::from_millis(20));
    let link = 5e6;
    for sharing in [RateSharing::Own, RateSharing::Fair] {
        for low in [0.97, 0.98, 0.99] {
            let mut pipe = Pipe::new(RateConfig {
                sharing,
                ..RateConfig::default()
            });
            pipe.run(at(3_000), spacing, delay);
            // As a datagram that was lost on the way out of a queue leaves it. Each trial ends with a queue all the same.
            pipe.controller.capacity = low * link / 8.0;
            pipe.run(at(6_000), spacing, delay);
            let share = pipe.rate() / link;
            assert!(share > 0.995, "{sharing:?}, {low}: {share}");
        }
    }
}

#[test]
fn a_link_that_delivers_by_the_clock_is_found_all_the_same() {
    // Frames of five round trips are too long: there it finds a tenth.
    for (frame, least) in [(20, 0.85), (50, 0.85), (100, 0.7)] {
        let mut pipe = Pipe::new(RateConfig::default());
        pipe.frame = Some(Duration::from_millis(frame));
        let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
        pipe.run(at(20_000), spacing, delay);
        let before = pipe.octets;
        pipe.run(at(30_000), spacing, delay);
        let sent = (pipe.octets - before) as f64 * 8.0 / 10.0 / 10e6;
        assert!(
            (least..1.1).contains(&sent),
            "{sent} of the link, frames of {frame} ms"
        );
    }
}

#[test]
fn clocks_that_run_at_different_rates_are_no_queue() {
    let delay = Duration::from_millis(40);
    let spacing = Duration::from_micros(120);
    for sharing in [RateSharing::Own, RateSharing::Fair, RateSharing::Background] {
        // Where reports are late at random it takes seconds to tell a clock from a queue, which may be that of others.
        let late = match sharing {
            RateSharing::Fair => 0.75,
            RateSharing::Own | RateSharing::Background => 0.95,
        };
        for (ppm, jitter, least) in [
            (-100.0, 0, 0.97),
            (50.0, 0, 0.97),
            (0.0, 3, 0.97),
            (100.0, 3, late),
        ] {
            let mut pipe = Pipe::new(RateConfig {
                sharing,
                ..RateConfig::default()
            });
            (pipe.clock, pipe.jitter_back_millis) = (1.0 + ppm * 1e-6, jitter);
            pipe.run(at(40_000), spacing, delay);
            let before = pipe.octets;
            pipe.run(at(42_000), spacing, delay);
            let sent = (pipe.octets - before) as f64 * 8.0 / 2.0 / 100e6;
            assert!(
                (least..1.05).contains(&sent),
                "{sharing:?}, {ppm} ppm, jitter {jitter} ms: {sent}"
            );
        }
    }
}

#[test]
fn no_estimate_is_so_low_that_a_full_datagram_takes_more_than_a_second() {
    let delay = Duration::from_millis(40);
    let mut pipe = Pipe::new(RateConfig::default());
    pipe.run(at(120_000), Duration::from_secs(3), delay);
    assert!(pipe.rate() >= 12_000.0, "{}", pipe.rate());
    let told = Bitrate::from_bits_per_second(8_000);
    let mut pipe = Pipe::new(RateConfig {
        bound: Some(told),
        ..RateConfig::default()
    });
    pipe.run(at(120_000), Duration::from_secs(3), delay);
    assert!(pipe.rate() <= 8_000.0, "{}", pipe.rate());
}

#[test]
fn the_link_s_rate_is_found_and_kept() {
    let mut pipe = Pipe::new(RateConfig::default());
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
    pipe.run(at(500), spacing, delay);
    let found = pipe.rate() / 10e6;
    assert!((0.85..1.1).contains(&found), "{found}");
    for second in 1..20 {
        pipe.run(at(1_000 * second), spacing, delay);
        let found = pipe.rate() / 10e6;
        assert!((0.93..1.1).contains(&found), "{found} at {second} s");
        let queueing = pipe.controller.belief().queueing;
        assert!(
            queueing < Duration::from_millis(6),
            "{queueing:?} at {second} s"
        );
    }
}

#[test]
fn a_train_s_rate_that_a_few_more_prove_is_sent_after_two_round_trips() {
    for (spacing_micros, delay_millis) in [(1_200, 600), (120, 100), (120, 600)] {
        let mut pipe = Pipe::new(RateConfig::default());
        let spacing = Duration::from_micros(spacing_micros);
        let delay = Duration::from_millis(delay_millis);
        pipe.run(at(2 * delay_millis - 10), spacing, delay);
        let before = pipe.controller.belief().rate.as_bits_per_second() as f64;
        // Until then no more than forty datagrams in a round trip beside the forty of the proof.
        assert!(before < 40.0 * 12e6 / delay_millis as f64 + 1e3, "{before}");
        assert!(pipe.next < 110, "{}", pipe.next);
        pipe.run(at(2 * delay_millis + 150), spacing, delay);
        let reached = pipe.rate() * spacing_micros as f64 / 12e9;
        assert!((0.89..1.0).contains(&reached), "{delay:?}: {reached}");
    }
}

#[test]
fn what_leaves_alone_is_not_held_for_want_of_a_train() {
    let mut controller = RateController::new(RateConfig::default());
    // Answers and now and then a word, without a report for long.
    for number in 0..2_000 {
        let now = at(number);
        if number % 50 == 0 {
            let room = controller.in_flight() < controller.in_flight_max();
            assert!(room, "held at {now}");
            controller.on_sent(now, number, ByteCount(60), ByteCount::ZERO);
        } else {
            controller.on_sent_beside(now, number, ByteCount(44));
        }
    }
    // What is a train is held as before: ten datagrams.
    let (now, mut sent) = (at(2_000), 0);
    while controller.in_flight() < controller.in_flight_max() && sent < 1_000 {
        controller.on_sent(now, 2_000 + sent, PACKET, ENDLESS);
        sent += 1;
    }
    assert!((10..=11).contains(&sent), "{sent}");
}

#[test]
fn data_that_leave_one_by_one_are_held_once_forty_are_under_way() {
    let mut controller = RateController::new(RateConfig::default());
    let mut sent = 0;
    // 9.6 mbit of messages, and a link that lets none of them through yet.
    while controller.in_flight() < controller.in_flight_max() && sent < 1_000 {
        controller.on_sent(at(sent), sent, PACKET, ByteCount::ZERO);
        sent += 1;
    }
    assert_eq!(sent, 41);
    // The next one waits: it is a train as soon as there is room.
    let report = ArrivalReport {
        newest: 35,
        arrived_at: Duration::from_millis(35),
        hold: Duration::ZERO,
        octets: ByteCount(36 * PACKET.0),
        marked: 0,
    };
    controller.on_report(at(100), &report);
    assert!(controller.awaits_train() && controller.in_flight() < controller.in_flight_max());
}

#[test]
fn a_train_that_its_sender_spaced_is_none() {
    let mut controller = RateController::new(RateConfig::default());
    for number in 0..10 {
        let waiting = if number % 2 == 0 {
            PACKET
        } else {
            ByteCount::ZERO
        };
        controller.on_sent(at(5 * number), number, PACKET, waiting);
    }
    for number in 0..10 {
        let report = ArrivalReport {
            newest: number,
            arrived_at: Duration::from_millis(5 * number),
            hold: Duration::ZERO,
            octets: ByteCount(PACKET.0 * (number + 1)),
            marked: 0,
        };
        controller.on_report(at(5 * number + 600), &report);
    }
    assert!(controller.awaits_train());
    assert_eq!(controller.seen(), None);
}

#[test]
fn what_is_told_of_twice_arrived_once() {
    let mut pipe = Pipe::new(RateConfig::default());
    pipe.told = 2;
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
    pipe.run(at(5_000), spacing, delay);
    let last = pipe.controller.last.expect("reports came");
    let ahead = last.arrived.saturating_sub(last.sent.octets);
    assert!(ahead <= 2 * PACKET.0, "{ahead} octets more than were sent");
}

#[test]
fn little_to_send_at_first_says_nothing_of_the_link() {
    let mut pipe = Pipe::new(RateConfig::default());
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
    // A datagram in a tenth of a second, each reported before the next.
    for tenth in 1..100 {
        let report = ArrivalReport {
            newest: pipe.next,
            arrived_at: pipe.now.saturating_since(Instant::START) + delay / 2,
            hold: Duration::ZERO,
            octets: ByteCount(PACKET.0 * (pipe.next + 1)),
            marked: 0,
        };
        pipe.controller
            .on_sent(pipe.now, pipe.next, PACKET, ByteCount::ZERO);
        pipe.controller.on_report(pipe.now + delay, &report);
        (pipe.next, pipe.octets) = (pipe.next + 1, pipe.octets + PACKET.0);
        pipe.now = at(100 * tenth);
    }
    // Ten datagrams a round trip of 40 ms are 3 mbit.
    let before = pipe.rate();
    assert!(before > 2e6, "{before}");
    pipe.free_at = pipe.now;
    pipe.run(at(11_000), spacing, delay);
    let found = pipe.rate() / 10e6;
    assert!((0.85..1.1).contains(&found), "{found}");
}

#[test]
fn what_leaves_alone_is_no_train_and_what_follows_is() {
    let mut pipe = Pipe::new(RateConfig::default());
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(600));
    // A word, and what was asked for a round trip later.
    pipe.controller
        .on_sent(pipe.now, 0, ByteCount(100), ByteCount::ZERO);
    pipe.controller.on_report(
        at(600),
        &ArrivalReport {
            newest: 0,
            arrived_at: delay / 2,
            hold: Duration::ZERO,
            octets: ByteCount(100),
            marked: 0,
        },
    );
    assert!(pipe.controller.awaits_train());
    assert_eq!(pipe.controller.seen(), None);
    (pipe.next, pipe.octets) = (1, 100);
    (pipe.now, pipe.free_at) = (at(600), at(600));
    pipe.run(at(1_300), spacing, delay);
    let link = pipe.controller.seen().expect("the train shows it");
    let link = link.as_bits_per_second() as f64 / 10e6;
    assert!((0.95..1.05).contains(&link), "{link}");
    assert!(!pipe.controller.awaits_train());
}

#[test]
fn a_number_that_nobody_tells_of_at_once_has_its_own_time() {
    let mut pipe = Pipe::new(RateConfig::default());
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
    pipe.run(at(500), spacing, delay);
    let before = pipe.controller.belief().queueing;
    // It leaves right behind a datagram, long before the next one.
    let number = pipe.next;
    pipe.controller.on_number(pipe.now, number);
    pipe.controller
        .on_sent(pipe.now + delay, number + 1, PACKET, ENDLESS);
    let report = ArrivalReport {
        newest: number,
        arrived_at: pipe.free_at.max(pipe.now).saturating_since(Instant::START) + delay / 2,
        hold: Duration::ZERO,
        octets: ByteCount(pipe.octets),
        marked: 0,
    };
    pipe.controller.on_report(pipe.now + delay, &report);
    let after = pipe.controller.belief().queueing;
    assert!(after <= before + Duration::from_millis(4), "{after:?}");
    pipe.next += 2;
    pipe.now += delay;
    pipe.octets += PACKET.0;
    pipe.run(at(800), spacing, delay);
    let queueing = pipe.controller.belief().queueing;
    assert!(queueing < Duration::from_millis(6), "{queueing:?}");
}

#[test]
fn what_was_found_before_is_tried_at_once_unless_the_train_shows_less() {
    // 10 mbit at 600 ms are 500 datagrams under way; a train and its proof take two round trips more.
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(600));
    let sent = |first: Option<u64>, spacing: Duration, until: u64| {
        let mut pipe = Pipe::new(RateConfig {
            first: first.map(Bitrate::from_bits_per_second),
            ..RateConfig::default()
        });
        pipe.run(at(until), spacing, delay);
        (pipe.next, pipe.rate())
    };
    let (unknown, _) = sent(None, spacing, 1_250);
    let (known, rate) = sent(Some(10_000_000), spacing, 1_250);
    assert!(known > 2 * unknown, "{known} {unknown}");
    assert!((0.85e7..1.1e7).contains(&rate), "{rate}");
    // The link has become ten times slower.
    let (slow, rate) = sent(Some(10_000_000), spacing * 10, 1_800);
    assert!(slow < 250, "{slow}");
    assert!(rate < 1.2e6, "{rate}");
}

#[test]
fn a_bound_is_never_passed_and_is_named_as_the_reason() {
    let bound = Bitrate::from_bits_per_second(4_000_000);
    let mut pipe = Pipe::new(RateConfig {
        bound: Some(bound),
        ..RateConfig::default()
    });
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
    pipe.run(at(1), spacing, delay);
    let trained = pipe.next;
    while pipe.now < at(5_000) {
        let later = pipe.now + Duration::from_millis(100);
        pipe.run(later, spacing, delay);
        assert!(pipe.controller.pacing(pipe.now) <= bound);
    }
    let sent = (pipe.next - trained) as f64 * 12_000.0 / 5.0;
    assert!((3.8e6..4.1e6).contains(&sent), "{sent}");
    assert_eq!(pipe.controller.belief().cause, RateCause::Bound);
}

#[test]
fn a_bound_that_is_lowered_below_the_rate_is_the_reason_at_once() {
    let mut pipe = Pipe::new(RateConfig::default());
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
    pipe.run(at(3_000), spacing, delay);
    let found = pipe.controller.belief();
    assert!(found.rate > Bitrate::from_bits_per_second(8_000_000));
    let wider = Bitrate::from_bits_per_second(50_000_000);
    pipe.controller.set_bound(Some(wider));
    assert_eq!(pipe.controller.belief().cause, found.cause);
    let bound = Bitrate::from_bits_per_second(2_000_000);
    pipe.controller.set_bound(Some(bound));
    let lowered = pipe.controller.belief();
    assert_eq!((lowered.cause, lowered.rate), (RateCause::Bound, bound));
    assert_eq!(lowered.link, found.link, "what the link showed is kept");
}

#[test]
fn what_is_old_or_was_never_sent_is_not_believed() {
    let mut pipe = Pipe::new(RateConfig::default());
    pipe.run(
        at(2_000),
        Duration::from_micros(1_200),
        Duration::from_millis(40),
    );
    let before = pipe.controller.belief();
    let wild = ArrivalReport {
        newest: pipe.next + 1_000,
        arrived_at: Duration::ZERO,
        hold: Duration::from_secs(1),
        octets: ByteCount(u64::MAX),
        marked: 0,
    };
    pipe.controller.on_report(at(2_000), &wild);
    pipe.controller
        .on_report(at(2_000), &ArrivalReport { newest: 0, ..wild });
    assert_eq!(pipe.controller.belief(), before);
}

#[test]
fn a_queue_of_ours_alone_is_not_shared_for_long() {
    let mut pipe = Pipe::new(RateConfig::default());
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
    pipe.run(at(2_000), spacing, delay);
    pipe.controller.share_hidden(pipe.now);
    assert!(pipe.controller.others.compete());
    pipe.run(at(8_000), spacing, delay);
    assert!(!pipe.controller.others.compete(), "arrivals follow nothing");
    pipe.run(at(12_000), spacing, delay);
    let found = pipe.rate() / 10e6;
    assert!((0.93..1.1).contains(&found), "{found}");
}

#[test]
fn way_is_made_for_a_queue_that_lasts_and_taken_back_when_it_is_gone() {
    let mut controller = RateController::new(RateConfig {
        sharing: RateSharing::Background,
        ..RateConfig::default()
    });
    controller.capacity = 1e6;
    controller.round_trip = 0.04;
    let mut span = |from: u64, queueing: f64| {
        for tick in 0..200 {
            controller.make_way(at(from + 10 * tick), queueing);
        }
        controller.yielding.share
    };
    let few = span(0, 0.02);
    assert!(few < 0.02, "{few}");
    let kept = span(2_000, 0.000_5);
    assert!(kept > 0.3, "{kept}");
    let all = span(4_000, 0.000_5);
    assert!((all - 1.0).abs() < 1e-9, "{all}");
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

#[test]
fn a_step_that_loses_what_it_adds_is_taken_back_to_the_level_before() {
    let mut controller = RateController::new(RateConfig::default());
    controller.capacity = 1e6;
    controller.weigh_level(at(1_000), &second_of(1_000_000, 500_000));
    controller.leave_level();
    // Half more is sent, and as much arrives as before.
    controller.capacity = 1.5e6;
    let mut second = 2;
    while controller.cause != RateCause::Cut && second < 8 {
        controller.weigh_level(at(1_000 * second), &second_of(1_500_000, 500_000));
        second += 1;
    }
    assert!(
        (controller.capacity / 1e6 - 1.0).abs() < 0.02,
        "{}",
        controller.capacity
    );
    assert_eq!(controller.cause, RateCause::Cut);
    // The same with half more arriving stays.
    controller.leave_level();
    controller.capacity = 1.5e6;
    for second in 8..14 {
        controller.weigh_level(at(1_000 * second), &second_of(1_500_000, 750_000));
    }
    assert!((controller.capacity / 1.5e6 - 1.0).abs() < 1e-9);
}

#[test]
fn a_queue_that_has_room_shows_what_the_medium_loses() {
    let mut controller = RateController::new(RateConfig::default());
    (controller.share, controller.share_octets) = (0.8, 1e6);
    // The longest delay of late is 40 ms.
    let mut longest = second_of(1_500, 1_500).last;
    longest.queueing = 0.04;
    controller.beside_others(at(1_000), longest, None);
    let window = |most: f64| {
        let mut window = second_of(1_000_000, 1_000_000);
        window.most = most;
        window
    };
    controller.learn_share(&window(0.03));
    assert!((controller.share - 0.8).abs() < 1e-9, "nearly full");
    controller.learn_share(&window(0.01));
    assert!(controller.share > 0.9, "{}", controller.share);
}

/// Whether a sender of 2 mbit who has seen the link carry 20 mbit takes a queue of so many milliseconds and more for others'.
fn is_taken_for_others(queue_milliseconds: f64) -> bool {
    let mut controller = RateController::new(RateConfig::default());
    (controller.capacity, controller.round_trip) = (250e3, 0.04);
    controller.others.link = 2_500e3;
    let mut octets = 0;
    for hundredth in 1..300 {
        octets += 2_500;
        let at = at(10 * hundredth);
        // Trials of several senders come and go: for most of the time it is longer, and no span is as the one before.
        let trial = (hundredth % 20) as f64 + (hundredth / 40) as f64;
        let point = Point {
            sent: Sent {
                number: hundredth,
                octets,
                at,
            },
            arrived: octets,
            marked: 0,
            arrived_at: at.as_secs_f64(),
            queueing: 1e-3 * (queue_milliseconds + trial),
        };
        controller.beside_others(at, point, None);
    }
    controller.others.share_it()
}

#[test]
fn several_of_ours_keep_what_each_of_them_waits_for_and_others_more() {
    // A datagram and a half at 2 mbit take 9 ms, and 0.9 ms at 20 mbit.
    assert!(!is_taken_for_others(7.0), "twice what each waits for");
    assert!(is_taken_for_others(21.0));
}

#[test]
fn nonsense_breaks_nothing() {
    for seed in 0..40 {
        let mut rng = Rng::from_seed(seed);
        let bound = Bitrate::from_bits_per_second(50_000_000);
        let mut controller = RateController::new(RateConfig {
            bound: Some(bound),
            ..RateConfig::default()
        });
        let (mut now, mut next) = (Instant::START, 0);
        for _ in 0..5_000 {
            now += Duration::from_micros(rng.below(20_000));
            match rng.below(4) {
                0 => controller.handle_deadline(now),
                1 => {
                    let report = ArrivalReport {
                        newest: rng.below(next + 2),
                        arrived_at: Duration::from_micros(rng.below(1 << 34)),
                        hold: Duration::from_micros(rng.below(1 << 20)),
                        octets: ByteCount(rng.next_u64() >> rng.below(64)),
                        marked: 0,
                    };
                    controller.on_report(now, &report);
                }
                _ => {
                    next += 1 + rng.below(3);
                    let waiting = if rng.chance(0.9) { 1_000_000 } else { 0 };
                    let octets = ByteCount(rng.below(9_000));
                    controller.on_sent(now, next, octets, ByteCount(waiting));
                }
            }
            assert!(controller.pacing(now) <= bound);
            assert!(controller.in_flight_max().0 > 0);
            assert!(
                controller
                    .next_deadline()
                    .is_none_or(|deadline| deadline.why == "no report")
            );
        }
    }
}

#[test]
fn a_thousand_told_rates_without_a_datagram_leave_one_stretch_to_judge() {
    let mut pipe = Pipe::new(RateConfig::default());
    let (spacing, delay) = (Duration::from_millis(12), Duration::from_millis(20));
    pipe.run(at(5_000), spacing, delay);
    let before = pipe.controller.epochs.len();
    for word in 0..1_000_u64 {
        let told = Bitrate::from_bits_per_second(2_000_000 + word * 1_000);
        pipe.controller.try_told(pipe.now, told);
    }
    assert!(pipe.controller.epochs.len() <= before + 1);
}

#[test]
fn a_small_part_of_what_the_train_showed_is_doubted_unless_a_loss_or_others_explain_it() {
    let mut pipe = Pipe::new(RateConfig::default());
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
    pipe.run(at(2_000), spacing, delay);
    assert!(!pipe.controller.belief().doubted, "all of it");
    pipe.controller.capacity /= 20.0;
    pipe.controller.cause = RateCause::Free;
    assert!(pipe.controller.belief().doubted);
    pipe.controller.cause = RateCause::Queue;
    assert!(!pipe.controller.belief().doubted, "a queue explains it");
    pipe.controller.not_carried(pipe.now);
    pipe.controller.cause = RateCause::Free;
    pipe.controller.queue_shows = true;
    assert!(!pipe.controller.belief().doubted, "a loss explains it");
    pipe.controller.is_cut = false;
    assert!(pipe.controller.belief().doubted);
    pipe.controller.share_hidden(pipe.now);
    pipe.controller.cause = RateCause::Free;
    assert!(!pipe.controller.belief().doubted, "others explain it");
}
