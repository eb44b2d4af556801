//! Outages: spans of time in which nothing gets through.
//!
//! An outage of length L from t covers t up to, not including, t + L. It drops every packet whose
//! transmission overlaps it, even by one nanosecond, since a packet with a hole is no packet.
//! Packets wholly sent before it arrive, because the medium is out at the sending end. The queue
//! and the transmitter continue, as those of a blocked optical or radio link do.

use crate::config_error::{ChannelConfigError, Setting};
use fulmar_proto::units::{Duration, Instant, format_duration};

/// One outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The start of the outage.
    pub start: Instant,
    /// The length of the outage; above zero.
    pub length: Duration,
}

/// Outages that repeat for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutageCycle {
    /// The start of the first outage.
    pub first: Instant,
    /// The time from the beginning of one outage to the beginning of the next.
    pub every: Duration,
    /// The length of each outage; above zero and below `every`.
    pub length: Duration,
}

/// All outages of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutagePlan {
    /// Single outages, in any order; they may overlap.
    pub single: Vec<Outage>,
    /// Repeated outages.
    pub cycles: Vec<OutageCycle>,
}

impl OutagePlan {
    /// The link is never out.
    pub const NONE: Self = Self {
        single: Vec::new(),
        cycles: Vec::new(),
    };

    /// Whether the link is never out.
    pub fn is_empty(&self) -> bool {
        self.single.is_empty() && self.cycles.is_empty()
    }

    fn check(&self) -> Result<(), ChannelConfigError> {
        let too_short = |length: Duration| {
            let given = format_duration(length);
            ChannelConfigError::new(Setting::Outages.part("length"), given, "above zero")
        };
        if let Some(outage) = self.single.iter().find(|outage| outage.length.is_zero()) {
            return Err(too_short(outage.length));
        }
        for cycle in &self.cycles {
            if cycle.length.is_zero() {
                return Err(too_short(cycle.length));
            }
            if cycle.length >= cycle.every {
                let given = format_duration(cycle.length);
                let allowed = format!("below the cycle of {}", format_duration(cycle.every));
                return Err(ChannelConfigError::new(
                    Setting::Outages.part("length"),
                    given,
                    allowed,
                ));
            }
        }
        Ok(())
    }
}

/// The state of an outage plan.
#[derive(Clone, Debug)]
pub(crate) struct OutageClock {
    /// Start and end of the outages still to come or under way, sorted, the next one last.
    coming: Vec<(u64, u64)>,
    cycles: Vec<Cycle>,
}

#[derive(Clone, Copy, Debug)]
struct Cycle {
    first: u64,
    every: u64,
    length: u64,
}

impl OutageClock {
    /// # Errors
    /// [`ChannelConfigError`] for an outage without length, or one as long as its cycle.
    pub(crate) fn new(plan: &OutagePlan) -> Result<Self, ChannelConfigError> {
        plan.check()?;
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let mut sorted: Vec<(u64, u64)> = plan
            .single
            .iter()
            .map(|outage| {
                (
                    outage.start.as_nanos(),
                    (outage.start + outage.length).as_nanos(),
                )
            })
            .collect();
        sorted.sort_unstable();
        // Overlapping outages are joined, so that the next to begin is also the next to end.
        let mut coming: Vec<(u64, u64)> = Vec::with_capacity(sorted.len());
        for (start, end) in sorted {
            match coming.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => coming.push((start, end)),
            }
        }
        coming.reverse();
        let cycles = plan
            .cycles
            .iter()
            .map(|cycle| Cycle {
                first: cycle.first.as_nanos(),
                every: nanos(cycle.every),
                length: nanos(cycle.length),
            })
            .collect();
        Ok(Self { coming, cycles })
    }

    /// Whether an outage overlaps the transmission from `start` to `end`. `start` never decreases.
    pub(crate) fn takes(&mut self, start: Instant, end: Instant) -> bool {
        let start = start.as_nanos();
        // The last nanosecond in which the packet is on the link.
        let last = end.as_nanos().saturating_sub(1).max(start);
        while self.coming.last().is_some_and(|&(_, over)| over <= start) {
            self.coming.pop();
        }
        self.coming.last().is_some_and(|&(begin, _)| begin <= last)
            || self.cycles.iter().any(|cycle| cycle.overlaps(start, last))
    }
}

impl Cycle {
    fn overlaps(&self, start: u64, last: u64) -> bool {
        // The latest outage to begin by `last`; earlier ones are over before it begins.
        last.checked_sub(self.first).is_some_and(|since| {
            let begin = last - since % self.every;
            start < begin.saturating_add(self.length)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(plan: &str) -> OutageClock {
        OutageClock::new(&plan.parse().unwrap()).unwrap()
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn an_outage_takes_what_overlaps_it_and_nothing_else() {
        let mut outages = clock("10ms+5ms");
        let cases = [
            (0, 9, false),
            (8, 10, false),
            (8, 11, true),
            (8, 20, true),
            (10, 10, true),
            (11, 12, true),
            (14, 16, true),
            (15, 15, false),
            (15, 16, false),
        ];
        for (start, end, taken) in cases {
            assert_eq!(
                outages.takes(at(start), at(end)),
                taken,
                "{start}..{end} ms"
            );
        }
    }

    #[test]
    fn cycles_come_back_for_ever() {
        let mut outages = clock("every 30ms for 2ms from 10ms");
        for millis in 0..10_000 {
            let expected = millis >= 10 && (millis - 10) % 30 < 2;
            assert_eq!(
                outages.takes(at(millis), at(millis)),
                expected,
                "{millis} ms"
            );
        }
        let mut outages = clock("every 30ms for 2ms from 10ms");
        assert!(!outages.takes(at(0), at(10)));
        assert!(
            outages.takes(at(11), at(40)),
            "ends as the next begins, starts within the first"
        );
        assert!(!outages.takes(at(12), at(40)));
        assert!(outages.takes(at(12), at(41)));
    }

    #[test]
    fn overlapping_and_unsorted_outages_agree_with_looking_at_each() {
        let plan: OutagePlan = "50ms+10ms, 10ms+30ms, 20ms+5ms, 40ms+2ms, 55ms+20ms"
            .parse()
            .unwrap();
        let mut outages = OutageClock::new(&plan).unwrap();
        for millis in 0..100 {
            let expected = plan
                .single
                .iter()
                .any(|o| o.start <= at(millis) && at(millis) < o.start + o.length);
            assert_eq!(
                outages.takes(at(millis), at(millis)),
                expected,
                "{millis} ms"
            );
        }
    }

    #[test]
    fn outages_without_length_or_without_end_are_refused() {
        let cycle = OutageCycle {
            first: Instant::START,
            every: Duration::from_secs(2),
            length: Duration::from_secs(2),
        };
        let plan = OutagePlan {
            single: Vec::new(),
            cycles: vec![cycle],
        };
        let refused = OutageClock::new(&plan).unwrap_err().to_string();
        assert!(refused.contains("below the cycle of 2s"), "{refused}");
        let nothing = Outage {
            start: Instant::START,
            length: Duration::ZERO,
        };
        let plan = OutagePlan {
            single: vec![nothing],
            cycles: Vec::new(),
        };
        assert!(OutageClock::new(&plan).is_err());
    }
}
