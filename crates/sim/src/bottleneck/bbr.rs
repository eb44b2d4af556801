//! A flow with BBR's model of its path. Every arrival is acknowledged, and no acknowledgement is lost.
//!
//! The pace and the window follow the greatest rate of delivery of ten rounds and the least round trip
//! of ten seconds; loss changes neither. But in the first round of a recovery no more is under way than before it, and with
//! random losses one recovery follows another: so little stands in the queue then. That is what Linux runs under the name
//! (version 1).
//!
//! # Sources
//! Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00 (states, gains, rounds, recovery) and
//! draft-cheng-iccrg-delivery-rate-estimation-00 (samples). The hundredth below the rate: Linux since 5.0.

use super::DATAGRAM;
use fulmar_proto::units::{Bitrate, Duration, Instant};
use recovery::{Change, Recovery};
use std::collections::VecDeque;

mod recovery;

/// 2/ln 2: the least gain that doubles the rate each round.
const HIGH_GAIN: f64 = 2.885;
/// The gains of the phases of a cycle, each of one least round trip.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The share of the rate that is sent, so that an estimate a little above the link builds no queue.
const MARGIN: f64 = 0.99;
/// The window as a multiple of the bandwidth-delay product.
const WINDOW_GAIN: f64 = 2.0;
/// The least window, and that of the look at the least round trip.
const WINDOW_MIN: f64 = 4.0;
const WINDOW_FIRST: f64 = 10.0;
/// Rounds in the maximum of the rate.
const RATE_ROUNDS: u64 = 10;
/// The age at which the least round trip is looked for, and the least length of the look.
const LEAST_SPAN: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(200);
/// Rounds without a quarter more after which the pipe is full.
const FULL_ROUNDS: u32 = 3;
const FULL_GROWTH: f64 = 1.25;
/// Later arrivals after which a datagram is lost.
const LATER: u64 = 3;
const TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Startup,
    Drain,
    Probe { phase: usize, since: Instant },
    Look { until: Option<Instant>, round: u64 },
}

#[derive(Clone, Copy, Debug)]
struct Flying {
    number: u64,
    /// The data in it: another number has them again if it is lost.
    data: u64,
    left: Instant,
    acked: bool,
    /// Datagrams delivered when it left, the time of the last of them, and its departure.
    delivered: u64,
    delivered_at: Instant,
    first_left: Instant,
}

#[derive(Debug)]
pub(super) struct BbrFlow {
    state: State,
    flying: VecDeque<Flying>,
    in_flight: u64,
    delivered: u64,
    delivered_at: Instant,
    first_left: Instant,
    /// The round, and the count of deliveries that ends it.
    round: u64,
    round_ends: u64,
    /// Rates in datagrams a second, each with its round, the greatest first.
    rates: VecDeque<(u64, f64)>,
    least: Option<(Duration, Instant)>,
    full_rate: f64,
    full_rounds: u32,
    window: f64,
    /// The window before the look at the least round trip, or before a recovery.
    window_before: f64,
    lost: bool,
    recovery: Recovery,
    /// The phase in which a cycle begins differs from flow to flow.
    first_phase: usize,
    heard_at: Instant,
}

impl BbrFlow {
    pub(super) fn new(index: usize) -> Self {
        Self {
            state: State::Startup,
            flying: VecDeque::new(),
            in_flight: 0,
            delivered: 0,
            delivered_at: Instant::START,
            first_left: Instant::START,
            round: 0,
            round_ends: 0,
            rates: VecDeque::new(),
            least: None,
            full_rate: 0.0,
            full_rounds: 0,
            window: WINDOW_FIRST,
            window_before: 0.0,
            lost: false,
            recovery: Recovery::default(),
            first_phase: 2 + index % (CYCLE.len() - 2),
            heard_at: Instant::START,
        }
    }

    fn rate(&self) -> f64 {
        self.rates.front().map_or(0.0, |(_, rate)| *rate)
    }

    /// The bandwidth-delay product in datagrams.
    fn product(&self) -> f64 {
        self.least
            .map_or(WINDOW_FIRST, |(least, _)| self.rate() * least.as_secs_f64())
    }

    fn pace(&self) -> Bitrate {
        let gain = match self.state {
            State::Startup => HIGH_GAIN,
            State::Drain => 1.0 / HIGH_GAIN,
            State::Probe { phase, .. } => CYCLE[phase],
            State::Look { .. } => 1.0,
        };
        // Before the first sample: the first window in a millisecond.
        let rate = if self.rates.is_empty() {
            WINDOW_FIRST / 0.001
        } else {
            self.rate()
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "rates are positive, and a cast saturates"
        )]
        let bits = (MARGIN * rate * gain * DATAGRAM.bits() as f64) as u64;
        Bitrate::from_bits_per_second(bits.max(1_000))
    }

    pub(super) fn may_send(&self) -> bool {
        (self.in_flight as f64) < self.window
    }

    /// Counts a departure, and gives the pace until the next.
    pub(super) fn on_sent(&mut self, now: Instant, number: u64) -> Bitrate {
        if self.in_flight == 0 {
            self.heard_at = now;
            self.first_left = now;
            self.delivered_at = now;
        }
        self.flying.push_back(Flying {
            number,
            data: self.recovery.leave(),
            left: now,
            acked: false,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_left: self.first_left,
        });
        self.in_flight += 1;
        self.pace()
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let least = self.least.map_or(Duration::ZERO, |(least, _)| least);
        (!self.flying.is_empty()).then_some(self.heard_at + TIMEOUT.max(least * 4))
    }

    pub(super) fn handle_deadline(&mut self, now: Instant) {
        if self.next_deadline().is_some_and(|at| at <= now) {
            self.flying.clear();
            self.recovery.restart();
            self.in_flight = 0;
            self.window = WINDOW_MIN;
            self.heard_at = now;
        }
    }

    pub(super) fn on_ack(&mut self, now: Instant, number: u64) {
        self.heard_at = now;
        let Ok(found) = self
            .flying
            .binary_search_by_key(&number, |flying| flying.number)
        else {
            return;
        };
        self.flying[found].acked = true;
        let sent = self.flying[found];
        self.in_flight -= 1;
        self.delivered += 1;
        self.delivered_at = now;
        self.first_left = sent.left;
        self.recovery.on_delivered(sent.data);
        let mut lost = 0.0;
        while let Some(&first) = self.flying.front()
            && (first.acked || first.number + LATER < number)
        {
            self.flying.pop_front();
            if !first.acked {
                self.in_flight -= 1;
                self.recovery.on_lost(first.data);
                lost += 1.0;
            }
        }
        self.lost = lost > 0.0;
        let new_round = sent.delivered >= self.round_ends;
        if new_round {
            self.round_ends = self.delivered;
            self.round += 1;
            self.recovery.on_round();
        }
        self.take_rate(now, &sent);
        self.take_round_trip(now, now.saturating_since(sent.left));
        self.next_state(now, new_round);
        self.recover(lost);
        self.next_window();
    }

    /// Takes an acknowledgement that tells of so many losses.
    fn recover(&mut self, lost: f64) {
        let window = self.window;
        self.window = (self.window - lost).max(1.0);
        match self.recovery.step() {
            Change::Begins => {
                self.window_before = if matches!(self.state, State::Look { .. }) {
                    self.window_before.max(window)
                } else {
                    window
                };
                self.round_ends = self.delivered;
                self.window = self.in_flight as f64 + 1.0;
            }
            Change::Ends => self.window = self.window.max(self.window_before),
            Change::None => {}
        }
    }

    fn take_rate(&mut self, now: Instant, sent: &Flying) {
        let sending = sent.left.saturating_since(sent.first_left);
        let arriving = now.saturating_since(sent.delivered_at);
        let span = sending.max(arriving).as_secs_f64();
        let least = self.least.map_or(0.0, |(least, _)| least.as_secs_f64());
        if span <= 0.0 || span < least {
            return;
        }
        let rate = (self.delivered - sent.delivered) as f64 / span;
        while self.rates.back().is_some_and(|(_, older)| *older <= rate) {
            self.rates.pop_back();
        }
        self.rates.push_back((self.round, rate));
        while self
            .rates
            .front()
            .is_some_and(|(round, _)| round + RATE_ROUNDS < self.round)
        {
            self.rates.pop_front();
        }
    }

    fn take_round_trip(&mut self, now: Instant, sample: Duration) {
        let old = self
            .least
            .is_some_and(|(_, at)| now.saturating_since(at) > LEAST_SPAN);
        if old && !matches!(self.state, State::Look { .. } | State::Startup) {
            self.window_before = self.window_before.max(self.window);
            self.state = State::Look {
                until: None,
                round: 0,
            };
        }
        if old || self.least.is_none_or(|(least, _)| sample <= least) {
            self.least = Some((sample, now));
        }
    }

    fn next_state(&mut self, now: Instant, new_round: bool) {
        let in_flight = self.in_flight as f64;
        match self.state {
            State::Startup => {
                if new_round {
                    if self.rate() >= FULL_GROWTH * self.full_rate {
                        self.full_rate = self.rate();
                        self.full_rounds = 0;
                    } else {
                        self.full_rounds += 1;
                    }
                    if self.full_rounds >= FULL_ROUNDS {
                        self.state = State::Drain;
                    }
                }
            }
            State::Drain if in_flight <= self.product() => self.probe(now),
            State::Drain => {}
            State::Probe { phase, since } => {
                let least = self.least.map_or(Duration::ZERO, |(least, _)| least);
                let over = now.saturating_since(since) > least;
                let next = match phase {
                    0 => over && (self.lost || in_flight >= CYCLE[0] * self.product()),
                    1 => over || in_flight <= self.product(),
                    _ => over,
                };
                if next {
                    let phase = (phase + 1) % CYCLE.len();
                    self.state = State::Probe { phase, since: now };
                }
            }
            State::Look { until: None, .. } => {
                if in_flight <= WINDOW_MIN {
                    let round = self.round + 1;
                    let until = Some(now + LOOK);
                    self.state = State::Look { until, round };
                }
            }
            State::Look {
                until: Some(until),
                round,
            } => {
                if now >= until && self.round >= round {
                    self.window = self.window.max(self.window_before);
                    if let Some((_, at)) = &mut self.least {
                        *at = now;
                    }
                    if self.full_rounds >= FULL_ROUNDS {
                        self.probe(now);
                    } else {
                        self.state = State::Startup;
                    }
                }
            }
        }
    }

    fn probe(&mut self, now: Instant) {
        self.state = State::Probe {
            phase: self.first_phase,
            since: now,
        };
    }

    fn next_window(&mut self) {
        if self.recovery.conserves() {
            self.window = self.window.max(self.in_flight as f64 + 1.0);
        } else {
            self.grow_window();
        }
        if matches!(self.state, State::Look { .. }) {
            self.window = self.window.min(WINDOW_MIN);
        }
    }

    fn grow_window(&mut self) {
        let full = self.full_rounds >= FULL_ROUNDS;
        let gain = if full { WINDOW_GAIN } else { HIGH_GAIN };
        let target = (gain * self.product() + 3.0).max(WINDOW_MIN);
        if full {
            self.window = (self.window + 1.0).min(target);
        } else if self.window < target || self.delivered < 10 {
            self.window += 1.0;
        }
        self.window = self.window.max(WINDOW_MIN);
    }
}
