//! The times at which each piece of the file was handed to the transport, and to the receiver.

use fulmar_net::transfer::{Coverage, ReceiveObserver, SendObserver};
use fulmar_proto::units::{Duration, Instant};
use indicatif::ProgressBar;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// About one TPDU's payload.
const PIECE: u64 = 1_440;
/// An instant that has not come. Clocks start at zero and take a while to reach one.
const NOT_YET: u64 = 0;

/// Shared between the sending and the receiving thread, which read the same clock.
#[derive(Debug)]
pub(crate) struct Timeline {
    size: u64,
    submitted: Vec<AtomicU64>,
    delivered: Vec<AtomicU64>,
    coverage: Mutex<Coverage>,
    bar: ProgressBar,
}

/// The figures that a timeline gives at the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// The time from the first piece submitted to the last delivered.
    pub(crate) span: Duration,
    /// The mean time from submission to delivery, over the pieces that arrived.
    pub(crate) delay_mean: Option<Duration>,
    /// The delay that one piece in a hundred exceeds.
    pub(crate) delay_p99: Option<Duration>,
}

impl Timeline {
    /// A timeline for a file of `size` octets.
    pub(crate) fn new(size: u64, bar: ProgressBar) -> Arc<Self> {
        let pieces = || {
            (0..size.div_ceil(PIECE))
                .map(|_| AtomicU64::new(NOT_YET))
                .collect()
        };
        Arc::new(Self {
            size,
            submitted: pieces(),
            delivered: pieces(),
            coverage: Mutex::new(Coverage::default()),
            bar,
        })
    }

    /// A piece counts when its last octet does, and for the first time only.
    fn note(&self, times: &[AtomicU64], now: Instant, range: &Range<u64>) {
        let first = range.start / PIECE;
        let last = if range.end >= self.size {
            times.len() as u64
        } else {
            range.end / PIECE
        };
        let indices = usize::try_from(first).unwrap_or(usize::MAX)
            ..usize::try_from(last).unwrap_or(usize::MAX);
        for time in times.get(indices).unwrap_or_default() {
            // Either outcome is right: the slot holds the first instant.
            let _first =
                time.compare_exchange(NOT_YET, now.as_nanos(), Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    pub(crate) fn submitted(&self, now: Instant, range: &Range<u64>) {
        self.note(&self.submitted, now, range);
    }

    pub(crate) fn delivered(&self, now: Instant, range: Range<u64>) {
        self.note(&self.delivered, now, &range);
        self.bar.inc(range.end - range.start);
        self.coverage
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(range);
    }

    /// The octets that were delivered.
    pub(crate) fn coverage(&self) -> Coverage {
        self.coverage
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn times(&self) -> Times {
        let load = |time: &AtomicU64| Some(time.load(Ordering::SeqCst)).filter(|&at| at != NOT_YET);
        let pairs = self.submitted.iter().zip(&self.delivered);
        let both = pairs.filter_map(|(from, to)| Some((load(from)?, load(to)?)));
        let mut delays: Vec<u64> = both.map(|(from, to)| to.saturating_sub(from)).collect();
        delays.sort_unstable();
        let begin = self
            .submitted
            .iter()
            .filter_map(load)
            .min()
            .unwrap_or_default();
        let end = self
            .delivered
            .iter()
            .filter_map(load)
            .max()
            .unwrap_or_default();
        let count = delays.len();
        let mean = delays.iter().sum::<u64>().checked_div(count as u64);
        // The smallest delay that at least 99 of 100 pieces do not exceed.
        let rank = (count * 99).div_ceil(100).checked_sub(1);
        Times {
            span: Duration::from_nanos(end.saturating_sub(begin)),
            delay_mean: mean.map(Duration::from_nanos),
            delay_p99: rank
                .and_then(|rank| delays.get(rank))
                .copied()
                .map(Duration::from_nanos),
        }
    }
}

/// The sending side of a timeline.
#[derive(Debug)]
pub(crate) struct Submissions(pub(crate) Arc<Timeline>);

impl SendObserver for Submissions {
    fn submitted(&mut self, now: Instant, range: Range<u64>) {
        self.0.submitted(now, &range);
    }
}

/// The receiving side.
#[derive(Debug)]
pub(crate) struct Deliveries(pub(crate) Arc<Timeline>);

impl ReceiveObserver for Deliveries {
    fn delivered(&mut self, now: Instant, range: Range<u64>) {
        self.0.delivered(now, range);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    #[test]
    fn delays_run_from_a_pieces_last_octet_in_to_its_last_octet_out() {
        let timeline = Timeline::new(2 * PIECE + 1, ProgressBar::hidden());
        timeline.submitted(at(1), &(0..PIECE + 1));
        timeline.submitted(at(2), &(PIECE + 1..2 * PIECE + 1));
        timeline.delivered(at(11), 0..PIECE);
        timeline.delivered(at(12), PIECE..2 * PIECE);
        timeline.delivered(at(22), 2 * PIECE..2 * PIECE + 1);
        let times = timeline.times();
        assert_eq!(times.span, Duration::from_millis(21));
        // 10, 10 and 20 ms.
        assert_eq!(times.delay_mean, Some(Duration::from_nanos(13_333_333)));
        assert_eq!(times.delay_p99, Some(Duration::from_millis(20)));
        assert_eq!(timeline.coverage().covered(), 2 * PIECE + 1);
    }

    #[test]
    fn nothing_delivered_has_no_delay() {
        let timeline = Timeline::new(10, ProgressBar::hidden());
        timeline.submitted(at(1), &(0..10));
        assert_eq!(timeline.times().delay_mean, None);
    }
}
