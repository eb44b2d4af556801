//! The MAC buffer of a terminal and the transmitter that its assignments drive.

use super::config::Dama;
use super::requests::{Assigned, Backlog, PARTS_PER_OCTET, Requests};
use crate::transmitter::{QueueLimit, Transmission};
use core::num::NonZeroU64;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Instant};
use std::collections::VecDeque;

/// A packet that has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TerminalDeparture {
    pub(crate) transmission: Transmission,
    pub(crate) len: ByteCount,
}

#[derive(Clone, Copy, Debug)]
struct Buffered {
    octets: u64,
    marked: bool,
    /// The time at which its first bit left.
    start: Option<u64>,
}

/// The buffer, the requests and the transmitter. Everything up to `clock` has happened.
#[derive(Clone, Debug)]
pub(crate) struct Terminal {
    dama: Dama,
    rate: NonZeroU64,
    limit: QueueLimit,
    threshold: Option<QueueLimit>,
    /// The super-frame in nanoseconds.
    frame: u64,
    clock: u64,
    /// The start of the next super-frame.
    boundary: u64,
    requests: Requests,
    /// The rest of the present super-frame's assignment.
    assigned: Assigned,
    buffer: VecDeque<Buffered>,
    octets_buffered: u64,
    /// Parts of the first packet that have been sent.
    sent: u128,
    /// Octets that came in since the last request.
    inflow: u64,
    departed: VecDeque<TerminalDeparture>,
}

impl Terminal {
    /// A terminal whose first super-frame begins at an instant drawn from `rng`, within one
    /// super-frame from the start of the run.
    pub(crate) fn new(
        dama: Dama,
        rate: NonZeroU64,
        limit: QueueLimit,
        threshold: Option<QueueLimit>,
        mut rng: Rng,
    ) -> Self {
        let frame = u64::try_from(dama.frame.as_nanos()).unwrap_or(u64::MAX);
        let mut requests = Requests::new(dama);
        let nothing = Backlog {
            inflow: 0,
            unsent: 0,
        };
        // The super-frame under way at the start has the capacity that needs no request.
        let assigned = requests.begin_frame(nothing, dama, rate, frame);
        Self {
            dama,
            rate,
            limit,
            threshold,
            frame,
            clock: 0,
            boundary: 1 + rng.below(frame),
            requests,
            assigned,
            buffer: VecDeque::new(),
            octets_buffered: 0,
            sent: 0,
            inflow: 0,
            departed: VecDeque::new(),
        }
    }

    /// Takes a packet into the buffer; false if there is no room.
    pub(crate) fn admit(&mut self, now: Instant, len: ByteCount) -> bool {
        self.advance(now);
        if !self.fits(self.limit, len) {
            return false;
        }
        let octets = octets_of(len);
        self.buffer.push_back(Buffered {
            octets,
            marked: self
                .threshold
                .is_some_and(|threshold| !self.fits(threshold, len)),
            start: None,
        });
        self.octets_buffered += octets;
        self.inflow += octets;
        true
    }

    /// Whether a packet of `len` octets would find room.
    pub(crate) fn has_room(&mut self, now: Instant, len: ByteCount) -> bool {
        self.advance(now);
        self.fits(self.limit, len)
    }

    fn fits(&self, limit: QueueLimit, len: ByteCount) -> bool {
        let (packets, octets) = self.held();
        packets == 0 || limit.allows(packets + 1, octets + octets_of(len))
    }

    /// Packets and octets that have not been sent; of the packet being sent, the rest.
    fn held(&self) -> (usize, u64) {
        let sent = u64::try_from(self.sent / PARTS_PER_OCTET).unwrap_or(u64::MAX);
        (self.buffer.len(), self.octets_buffered.saturating_sub(sent))
    }

    /// The same as [`Terminal::held`], at `now`.
    pub(crate) fn waiting(&mut self, now: Instant) -> (usize, ByteCount) {
        self.advance(now);
        let (packets, octets) = self.held();
        (packets, ByteCount(octets))
    }

    /// The next packet that has left by `now`, in the order of admission.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<TerminalDeparture> {
        self.advance(now);
        self.departed.pop_front()
    }

    /// The time at which something may leave if nothing comes in before: at the latest the start of
    /// the next super-frame. `None` with an empty buffer.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        if let Some(departure) = self.departed.front() {
            return Some(departure.transmission.end);
        }
        let needed = self.needed()?;
        let Assigned { rate, parts } = self.assigned;
        let end = if rate == 0 || parts < needed {
            self.boundary
        } else {
            let span = u64::try_from(needed.div_ceil(u128::from(rate))).unwrap_or(u64::MAX);
            self.clock.saturating_add(span).min(self.boundary)
        };
        Some(Instant::from_nanos(end))
    }

    /// Parts of the first packet that have not been sent.
    fn needed(&self) -> Option<u128> {
        let first = self.buffer.front()?;
        Some((u128::from(first.octets) * PARTS_PER_OCTET).saturating_sub(self.sent))
    }

    fn advance(&mut self, now: Instant) {
        let now = now.as_nanos();
        while self.clock < now {
            self.serve(now.min(self.boundary));
            if self.clock == self.boundary {
                self.begin_frame(now);
            }
        }
    }

    fn begin_frame(&mut self, now: u64) {
        if self.buffer.is_empty() && self.inflow == 0 && self.requests.is_idle() {
            // Nothing happens in the super-frames that have passed since.
            let skipped = now.saturating_sub(self.boundary) / self.frame;
            self.boundary += skipped * self.frame;
            self.clock = self.boundary;
        }
        let unsent = u128::from(self.octets_buffered) * PARTS_PER_OCTET;
        let backlog = Backlog {
            inflow: u128::from(core::mem::take(&mut self.inflow)) * PARTS_PER_OCTET,
            unsent: unsent.saturating_sub(self.sent),
        };
        let (dama, rate, frame) = (self.dama, self.rate, self.frame);
        self.assigned = self.requests.begin_frame(backlog, dama, rate, frame);
        self.boundary = self.boundary.saturating_add(self.frame);
    }

    /// Sends what the assignment allows until `until`, which is within the super-frame.
    fn serve(&mut self, until: u64) {
        let rate = u128::from(self.assigned.rate);
        while let Some(needed) = self.needed()
            && self.assigned.parts > 0
            && self.clock < until
        {
            let span = u128::from(until - self.clock);
            let allowed = self.assigned.parts.min(rate * span);
            if let Some(first) = self.buffer.front_mut() {
                first.start.get_or_insert(self.clock);
            }
            if needed > allowed {
                self.sent += allowed;
                self.assigned.parts -= allowed;
                self.clock = until;
                return;
            }
            let taken = needed.div_ceil(rate);
            // The rest of a nanosecond goes to the next packet, if there is one.
            let carried = (rate * taken).min(self.assigned.parts) - needed;
            self.clock += u64::try_from(taken).unwrap_or(u64::MAX);
            self.assigned.parts -= needed;
            self.finish_first();
            if !self.buffer.is_empty() {
                self.sent = carried;
                self.assigned.parts -= carried;
            }
        }
        self.clock = until;
    }

    fn finish_first(&mut self) {
        self.sent = 0;
        if let Some(first) = self.buffer.pop_front() {
            self.octets_buffered -= first.octets;
            let end = Instant::from_nanos(self.clock);
            self.departed.push_back(TerminalDeparture {
                transmission: Transmission {
                    start: first.start.map_or(end, Instant::from_nanos),
                    end,
                    marked: first.marked,
                },
                len: ByteCount(first.octets),
            });
        }
    }
}

/// A packet without octets still takes a place; sums stay far below 2^63.
fn octets_of(len: ByteCount) -> u64 {
    len.0.clamp(1, u64::from(u32::MAX))
}
