//! A receiver's counts, which are cut on the wire, all in all.

use crate::units::{Duration, Instant};

/// The age of the last report above which an older clock is another clock: the receiver has started again.
const REORDERED_MAX: Duration = Duration::from_secs(1);
/// The most by which the receiver's clock may run ahead of twice the time that passed here: reports are under way for
/// different times.
const CLOCK_AHEAD_MAX: Duration = Duration::from_secs(10);
/// The age of the last report above which a clock of 32 bits may have made a turn.
const TURN: Duration = Duration::from_secs(1_000);

/// The counts of a report, modulo 2^32.
#[derive(Clone, Copy, Debug)]
pub(in crate::transport::aerotp) struct Counts {
    pub(in crate::transport::aerotp) arrived: u32,
    pub(in crate::transport::aerotp) clock: u32,
    /// Marks, modulo 2^16; reports of acknowledgements count none.
    pub(in crate::transport::aerotp) marks: u16,
}

/// The last report.
#[derive(Clone, Copy, Debug)]
pub(in crate::transport::aerotp) struct Heard {
    pub(in crate::transport::aerotp) at: Instant,
    /// Its counts as they came, and all in all.
    pub(in crate::transport::aerotp) arrived: u32,
    pub(in crate::transport::aerotp) arrived_total: u64,
    pub(in crate::transport::aerotp) clock: u32,
    pub(in crate::transport::aerotp) clock_total: Duration,
    pub(in crate::transport::aerotp) marks: u16,
    pub(in crate::transport::aerotp) marks_total: u64,
}

impl Heard {
    /// The next report's counts. `None` if it is older; `Err` if it comes from another start of the receiver.
    pub(in crate::transport::aerotp) fn next(
        self,
        now: Instant,
        counts: Counts,
    ) -> Result<Option<Self>, OtherStart> {
        let since = now.saturating_since(self.at);
        let later = counts.clock.wrapping_sub(self.clock);
        let octets = counts.arrived.wrapping_sub(self.arrived);
        let later_by = Duration::from_micros(u64::from(later));
        let is_wild = later_by > since * 2 + CLOCK_AHEAD_MAX;
        if is_wild || later >= 1 << 31 || octets >= 1 << 31 || since > TURN {
            return if since > REORDERED_MAX {
                Err(OtherStart)
            } else {
                Ok(None)
            };
        }
        Ok(Some(Self {
            at: now,
            arrived: counts.arrived,
            arrived_total: self.arrived_total + u64::from(octets),
            clock: counts.clock,
            clock_total: self.clock_total + later_by,
            marks: counts.marks,
            marks_total: self.marks_total + u64::from(counts.marks.wrapping_sub(self.marks)),
        }))
    }

    pub(in crate::transport::aerotp) fn first(now: Instant, counts: Counts) -> Self {
        Self {
            at: now,
            arrived: counts.arrived,
            arrived_total: 0,
            clock: counts.clock,
            // Room for what is before it.
            clock_total: TURN,
            marks: counts.marks,
            marks_total: 0,
        }
    }
}

/// The receiver's counts have begun again.
#[derive(Clone, Copy, Debug)]
pub(in crate::transport::aerotp) struct OtherStart;
