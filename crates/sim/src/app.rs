//! Traffic: when an application has data to send, and how much.
//!
//! Three sources, and those of one's own ([`TrafficSource`]). *Messages* are of one length, one every so often; each is written by itself, where the transport knows messages.
//! *Bulk* has everything at once and writes as much as the transport accepts. *Constant rate*
//! makes a write of fixed length at a fixed interval (the papers' and ns-3's `OnOff` source, always on:
//! 1472 octets 375 times a second are 4.416 Mbit/s). Octets that the transport does not accept yet wait in
//! the application, and their delay counts from when they were made. The number of writes is the smallest
//! that reaches the asked amount, so the amount is rounded up to whole writes, as ns-3's `MaxBytes` does: 1
//! MB in writes of 1472 octets is 680 writes or 1,000,960 octets.

use crate::own::{OwnTraffic, SourceView, TrafficSource};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};

/// The octets that an application sends, and their timing.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// All of `bytes` are there at once.
    Bulk {
        /// Octets in all.
        bytes: ByteCount,
    },
    /// Writes of `write` octets at `rate` until `bytes` are reached.
    ConstantRate {
        /// Octets in all, rounded up to whole writes.
        bytes: ByteCount,
        /// Octets in one write.
        write: ByteCount,
        /// Application octets per second of simulated time, as bits.
        rate: Bitrate,
        /// The time of the first write.
        first: FirstWrite,
    },
    /// Messages of `size` octets, one every `interval`, until `bytes` are reached.
    Messages {
        /// Octets in all, rounded up to whole messages.
        bytes: ByteCount,
        /// Octets in one message.
        size: ByteCount,
        /// The time between two messages.
        interval: Duration,
        /// The time of the first message.
        first: FirstWrite,
    },
    /// Writes of a source of one's own, until `bytes` are reached or it says that it ends.
    Own {
        /// Octets in all, at most.
        bytes: ByteCount,
        /// The maker of the source.
        source: OwnTraffic,
    },
}

/// The time at which a constant-rate source makes its first write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstWrite {
    /// With the start of the flow.
    AtOnce,
    /// One interval after the start of the flow.
    AfterInterval,
    /// One interval after the transport has its connection, as ns-3's `OnOff` application does. A transport
    /// without connections is treated as with [`FirstWrite::AfterInterval`].
    AfterConnect,
}

impl Traffic {
    /// Octets that are sent in all.
    pub fn total(&self) -> ByteCount {
        match *self {
            Self::Bulk { bytes } | Self::Own { bytes, .. } => bytes,
            Self::ConstantRate {
                bytes, write: size, ..
            }
            | Self::Messages { bytes, size, .. } => {
                ByteCount(bytes.0.div_ceil(size.0.max(1)).saturating_mul(size.0))
            }
        }
    }

    /// The time from the start to the write after `intervals` others, of a source that writes by the clock.
    pub(crate) fn elapsed(&self, intervals: u64) -> Duration {
        match *self {
            Self::Bulk { .. } | Self::Own { .. } => Duration::ZERO,
            Self::ConstantRate { write, rate, .. } => {
                rate.time_to_send(ByteCount(write.0.saturating_mul(intervals)))
            }
            Self::Messages { interval, .. } => {
                interval.saturating_mul(u32::try_from(intervals).unwrap_or(u32::MAX))
            }
        }
    }

    /// The time of the first write, of a source that writes by the clock.
    const fn first(&self) -> Option<FirstWrite> {
        match *self {
            Self::Bulk { .. } | Self::Own { .. } => None,
            Self::ConstantRate { first, .. } | Self::Messages { first, .. } => Some(first),
        }
    }
}

/// The sending application of one flow.
#[derive(Debug)]
pub(crate) struct AppSource {
    traffic: Traffic,
    start: Instant,
    total: u64,
    made: u64,
    writes_made: u64,
    accepted: u64,
    own: Option<OwnSource>,
}

/// A source of one's own, and the next of its writes.
#[derive(Debug)]
struct OwnSource {
    source: Box<dyn TrafficSource>,
    next: Option<(Instant, u64)>,
}

impl AppSource {
    /// The application of one flow, whose chance comes from `rng`.
    pub(crate) fn new(traffic: Traffic, start: Instant, rng: &Rng) -> Self {
        let own = match &traffic {
            Traffic::Own { source, .. } => Some(OwnSource {
                source: source.for_run(rng),
                next: None,
            }),
            Traffic::Bulk { .. } | Traffic::ConstantRate { .. } | Traffic::Messages { .. } => None,
        };
        let mut source = Self {
            total: traffic.total().0,
            traffic,
            start,
            made: 0,
            writes_made: 0,
            accepted: 0,
            own,
        };
        source.ask_own(start);
        source
    }

    /// Asks a source of one's own for its next write. If there is none, the stream ends.
    pub(crate) fn ask_own(&mut self, now: Instant) {
        let Some(own) = &mut self.own else {
            return;
        };
        let view = SourceView {
            now,
            written: ByteCount(self.made),
            waiting: ByteCount(self.made - self.accepted),
        };
        own.next = if self.made < self.total {
            let asked = own.source.next_write(view);
            asked.map(|write| {
                // Looks take time, so that they end.
                let after = write
                    .after
                    .max(Duration::from_nanos(u64::from(write.len.0 == 0)));
                (now + after, write.len.0)
            })
        } else {
            None
        };
        if own.next.is_none() {
            self.total = self.made;
        }
    }

    /// Octets that are sent in all, as far as it is known.
    pub(crate) const fn total(&self) -> ByteCount {
        ByteCount(self.total)
    }

    /// The time of the next write; `None` when all are made.
    pub(crate) fn next_write_at(&self) -> Option<Instant> {
        if self.made >= self.total {
            return None;
        }
        if let Some(own) = &self.own {
            return own.next.map(|(at, _)| at);
        }
        let intervals = match self.traffic.first() {
            None => return Some(self.start),
            Some(FirstWrite::AtOnce) => self.writes_made,
            Some(FirstWrite::AfterInterval | FirstWrite::AfterConnect) => self.writes_made + 1,
        };
        // From the start each time, so that rounding to nanoseconds does not add up.
        Some(self.start + self.traffic.elapsed(intervals))
    }

    /// Whether the first write waits for a connection.
    pub(crate) const fn waits_for_connection(&self) -> bool {
        matches!(self.traffic.first(), Some(FirstWrite::AfterConnect))
    }

    /// The connection is established: intervals count from `now`.
    pub(crate) const fn start_at(&mut self, now: Instant) {
        self.start = now;
    }

    /// Makes the next write and returns its length.
    pub(crate) fn make_write(&mut self) -> u64 {
        let left = self.total - self.made;
        let len = match self.traffic {
            Traffic::Bulk { .. } => left,
            Traffic::ConstantRate { write: size, .. } | Traffic::Messages { size, .. } => size.0,
            Traffic::Own { .. } => {
                let next = self.own.as_ref().and_then(|own| own.next);
                next.map_or(0, |(_, len)| len.min(left))
            }
        };
        self.made += len;
        self.writes_made += 1;
        len
    }

    /// The octets that were made and not yet accepted by the transport: position and length.
    pub(crate) const fn pending(&self) -> (u64, u64) {
        (self.accepted, self.made - self.accepted)
    }

    /// The transport accepted `len` octets.
    pub(crate) fn accept(&mut self, len: u64) {
        self.accepted += len;
        debug_assert!(self.accepted <= self.made, "a transport took too much");
    }

    /// Whether the transport has accepted everything.
    pub(crate) const fn is_finished(&self) -> bool {
        self.accepted >= self.total
    }

    /// Whether an octet counts as submitted when it is made; in bulk it is submitted when the transport
    /// accepts it.
    pub(crate) const fn submits_when_made(&self) -> bool {
        !matches!(self.traffic, Traffic::Bulk { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: Traffic = Traffic::ConstantRate {
        bytes: ByteCount(1_000_000),
        write: ByteCount(1472),
        rate: Bitrate::from_bits_per_second(4_416_000),
        first: FirstWrite::AfterInterval,
    };

    #[test]
    fn the_papers_source_makes_680_writes_375_times_a_second() {
        let mut source = AppSource::new(PAPER, Instant::START, &Rng::from_seed(1));
        let mut times = Vec::new();
        while let Some(at) = source.next_write_at() {
            times.push(at);
            source.make_write();
        }
        assert_eq!(times.len(), 680);
        assert_eq!(times[0], Instant::from_nanos(2_666_667));
        assert_eq!(times[374], Instant::from_nanos(1_000_000_000));
        assert_eq!(source.pending(), (0, 1_000_960));
    }

    #[test]
    fn messages_keep_their_interval_whatever_their_length() {
        let messages = Traffic::Messages {
            bytes: ByteCount(2_500),
            size: ByteCount(1_000),
            interval: Duration::from_millis(7),
            first: FirstWrite::AfterInterval,
        };
        let mut source = AppSource::new(messages, Instant::START, &Rng::from_seed(1));
        let mut made = Vec::new();
        while let Some(at) = source.next_write_at() {
            made.push((at.as_nanos() / 1_000_000, source.make_write()));
        }
        assert_eq!(made, [(7, 1_000), (14, 1_000), (21, 1_000)]);
    }

    #[test]
    fn a_source_at_once_starts_with_the_flow() {
        let Traffic::ConstantRate {
            bytes, write, rate, ..
        } = PAPER
        else {
            unreachable!()
        };
        let at_once = Traffic::ConstantRate {
            bytes,
            write,
            rate,
            first: FirstWrite::AtOnce,
        };
        let start = Instant::from_nanos(5);
        assert_eq!(
            AppSource::new(at_once, start, &Rng::from_seed(1)).next_write_at(),
            Some(start)
        );
    }
}
