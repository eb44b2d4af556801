//! A flow with CUBIC's window. Every arrival is acknowledged, and no acknowledgement is lost.

use super::DATAGRAM;
use fulmar_baseline::congestion::{Acked, Algorithm, Beginning, CongestionControl, start};
use fulmar_proto::units::{Duration, Instant};
use std::collections::VecDeque;

/// Later arrivals after which a datagram is lost.
const LATER: u64 = 3;
const TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct CubicFlow {
    control: Box<dyn CongestionControl>,
    /// Datagrams under way: number, departure, and whether it was acknowledged.
    flying: VecDeque<(u64, Instant, bool)>,
    in_flight: u64,
    next: u64,
    /// The first number whose loss is a new one.
    recovered_at: u64,
    round_trip: Option<Duration>,
    heard_at: Instant,
}

impl CubicFlow {
    pub(super) fn new() -> Self {
        let beginning = Beginning {
            mss: u32::try_from(DATAGRAM.0).unwrap_or(u32::MAX),
            segments: 10,
            byte_counting: true,
        };
        Self {
            control: start(Algorithm::Cubic, beginning),
            flying: VecDeque::new(),
            in_flight: 0,
            next: 0,
            recovered_at: 0,
            round_trip: None,
            heard_at: Instant::START,
        }
    }

    pub(super) fn may_send(&self) -> bool {
        (self.in_flight + 1) * DATAGRAM.0 <= self.control.window()
    }

    pub(super) fn on_sent(&mut self, now: Instant, number: u64) {
        if self.flying.is_empty() {
            self.heard_at = now;
        }
        self.flying.push_back((number, now, false));
        self.in_flight += 1;
        self.next = number + 1;
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let timeout = TIMEOUT.max(self.round_trip.unwrap_or_default() * 2);
        (!self.flying.is_empty()).then_some(self.heard_at + timeout)
    }

    pub(super) fn handle_deadline(&mut self, now: Instant) {
        if self.next_deadline().is_some_and(|at| at <= now) {
            self.control.on_timeout(now, self.control.window(), false);
            self.flying.clear();
            self.in_flight = 0;
            self.recovered_at = self.next;
        }
    }

    pub(super) fn on_ack(&mut self, now: Instant, number: u64) {
        self.heard_at = now;
        let Ok(found) = self.flying.binary_search_by_key(&number, |flying| flying.0) else {
            return;
        };
        let (_, left, acked) = &mut self.flying[found];
        *acked = true;
        let sample = now.saturating_since(*left);
        let smoothed = self
            .round_trip
            .map_or(sample, |old| old * 7 / 8 + sample / 8);
        self.round_trip = Some(smoothed);
        let used = (self.in_flight + 2) * DATAGRAM.0 >= self.control.window();
        self.in_flight -= 1;
        let mut lost = false;
        while let Some(&(first, _, acked)) = self.flying.front()
            && (acked || first + LATER < number)
        {
            self.flying.pop_front();
            if !acked {
                self.in_flight -= 1;
                lost |= first >= self.recovered_at;
            }
        }
        if lost {
            self.recovered_at = self.next;
            self.control.on_loss(now, self.control.window());
        } else if used && number >= self.recovered_at {
            self.control.on_acked(Acked {
                now,
                octets: DATAGRAM.0,
                rtt: self.round_trip,
            });
        }
    }
}
