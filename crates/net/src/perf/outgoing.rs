//! The sending end of the messages.

use super::message::Head;
use super::record::{Limit, Sent, Test};
use fulmar_proto::machine::{Deadline, Priority};
use fulmar_proto::transport::aerotp::{ConnectionConfig, ConnectionId, Endpoint, ModeRules};
use fulmar_proto::units::{Bitrate, Duration, Instant};

/// Messages handed over before the socket gets its turn.
const MESSAGES_PER_TURN: u32 = 64;
/// What may wait to be sent for the first time: as much as is sent in this, or two packets. It is part of the
/// delay.
const AHEAD: Duration = Duration::from_millis(2);
/// How long the end of the messages' connection may take once the last was written, at most, in modes that
/// confirm nothing.
const CLOSING_MAX: Duration = Duration::from_secs(5);

/// How a test's messages end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Writing,
    /// Closed, until the connection says that all was sent, or this is over.
    Closing {
        until: Option<Instant>,
    },
    Over,
}

/// One test's messages on their way out.
#[derive(Debug)]
pub(super) struct Outgoing {
    test: Test,
    lane: ConnectionId,
    is_stream: bool,
    begun: Instant,
    /// Messages written whole.
    written: u64,
    /// The message being written, and how much of it was.
    message: Vec<u8>,
    taken: usize,
    /// Writing waits for room, not for the time.
    blocked: bool,
    phase: Phase,
}

/// The settings of the messages' connection, over a link of `rate`.
pub(super) fn lane_config(test: &Test, rate: Bitrate, base: ConnectionConfig) -> ConnectionConfig {
    let mode = test.mode().unwrap_or(base.mode);
    ConnectionConfig {
        mode,
        fec_words: test.fec_words(),
        unsent_bytes_max: rate.bytes_in(AHEAD).as_usize().max(2 * base.tpdu_bytes_max),
        ..base
    }
}

/// The settings of the conversation's connection: ahead of the messages.
pub(super) fn control_config(base: ConnectionConfig) -> ConnectionConfig {
    ConnectionConfig {
        mode: fulmar_proto::wire::aerotp::Mode::Reliable,
        block: None,
        priority: Priority(base.priority.0.saturating_add(1)),
        ..base
    }
}

impl Outgoing {
    /// Sends `test`'s messages on `lane` from now on.
    pub(super) fn new(now: Instant, test: Test, lane: ConnectionId) -> Self {
        let is_stream = test.mode().is_ok_and(|mode| ModeRules::of(mode).complete);
        // What the octets are does not matter; that they are no run of zeros does, to links that compress.
        let pattern =
            (0..test.message_bytes).map(|place| (place.wrapping_mul(0x9E37_79B1) >> 24) as u8);
        Self {
            lane,
            is_stream,
            begun: now,
            written: 0,
            message: pattern.collect(),
            taken: 0,
            blocked: false,
            phase: Phase::Writing,
            test,
        }
    }

    pub(super) const fn lane(&self) -> ConnectionId {
        self.lane
    }

    /// Writes what is due and has room; whether it did anything.
    pub(super) fn work(&mut self, now: Instant, machine: &mut Endpoint) -> bool {
        if let Phase::Closing { until: Some(until) } = self.phase
            && until <= now
        {
            machine.abort(now, self.lane);
            self.phase = Phase::Over;
            return true;
        }
        if self.phase != Phase::Writing {
            return false;
        }
        self.blocked = false;
        for count in 0..MESSAGES_PER_TURN {
            if self.taken == 0 {
                if self.is_enough(now) {
                    self.finish(now, machine);
                    return true;
                }
                if self.due() > now {
                    return count > 0;
                }
            }
            if !self.write(now, machine) {
                self.blocked = true;
                return count > 0;
            }
        }
        true
    }

    /// Writes the current message, or more of it; whether it is written whole.
    fn write(&mut self, now: Instant, machine: &mut Endpoint) -> bool {
        if self.taken == 0 {
            let (id, sequence) = (self.test.id, self.written);
            let head = Head {
                id,
                sequence,
                sent: now,
            };
            head.write(&mut self.message);
        }
        let outcome = if self.is_stream {
            let rest = self.message.get(self.taken..).unwrap_or_default();
            machine.write(now, self.lane, rest)
        } else {
            let whole = self.message.len();
            let written = machine.write_message(now, self.lane, &self.message);
            written.map(|is_taken| if is_taken { whole } else { 0 })
        };
        let Ok(taken) = outcome else {
            // Why it is over, its own event says.
            self.phase = Phase::Over;
            return false;
        };
        self.taken += taken;
        let is_whole = self.taken == self.message.len();
        if is_whole {
            self.written += 1;
            self.taken = 0;
        }
        is_whole
    }

    fn due(&self) -> Instant {
        self.begun + self.test.due(self.written)
    }

    fn is_enough(&self, now: Instant) -> bool {
        match self.test.limit {
            Limit::Time(span) => now >= self.begun + span,
            Limit::Bytes(bytes) => self.written * u64::from(self.test.message_bytes) >= bytes,
        }
    }

    /// No further message; what was written is sent to its end.
    pub(super) fn finish(&mut self, now: Instant, machine: &mut Endpoint) {
        if self.phase == Phase::Writing {
            machine.close(now, self.lane);
            // Where everything is confirmed, only the connection's own patience ends the wait.
            let until = (!self.is_stream).then_some(now + CLOSING_MAX);
            self.phase = Phase::Closing { until };
        }
    }

    /// The connection says that everything written so far was sent or confirmed.
    pub(super) fn on_all_sent(&mut self) {
        if let Phase::Closing { .. } = self.phase {
            self.phase = Phase::Over;
        }
    }

    /// The connection is over.
    pub(super) fn on_closed(&mut self) {
        self.phase = Phase::Over;
    }

    /// Whether the last message was sent, and in modes that confirm, confirmed.
    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// What was sent.
    pub(super) fn sent(&self, machine: &Endpoint) -> Sent {
        let counters = machine.counters(self.lane);
        Sent::of(self.written, self.test.message_bytes, counters)
    }

    /// When there is something to do if nothing happens before.
    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        let at = match self.phase {
            Phase::Writing => {
                let end = match self.test.limit {
                    Limit::Time(span) => Some(self.begun + span),
                    Limit::Bytes(_) => None,
                };
                let due = (!self.blocked).then(|| self.due());
                return [end, due].into_iter().flatten().min().map(|at| Deadline {
                    at,
                    why: "the next message",
                });
            }
            Phase::Closing { until } => until?,
            Phase::Over => return None,
        };
        Some(Deadline {
            at,
            why: "patience with the messages' end",
        })
    }
}
