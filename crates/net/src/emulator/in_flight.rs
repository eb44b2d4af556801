//! Packets between the link and the receiver, and how punctually they left.

use super::direction::{Arrival, Arrivals};
use super::report::Punctuality;
use fulmar_proto::units::{ByteCount, Duration, Instant};
use std::collections::BTreeMap;

const LATE: Duration = Duration::from_millis(1);

/// Arrivals held until they are due, each with the `T` it is for; bounded in octets.
#[derive(Debug)]
pub(super) struct InFlight<T> {
    /// The packets by their arrival; the count keeps the order of those that arrive together.
    held: BTreeMap<(Instant, u64), (T, Arrival)>,
    held_bytes: ByteCount,
    held_max: ByteCount,
    admitted: u64,
    overflow_packets: u64,
    left_packets: u64,
    late_packets: u64,
    lateness_sum: Duration,
    lateness_max: Duration,
}

impl<T: Copy> InFlight<T> {
    pub(super) const fn new(held_max: ByteCount) -> Self {
        Self {
            held: BTreeMap::new(),
            held_bytes: ByteCount::ZERO,
            held_max,
            admitted: 0,
            overflow_packets: 0,
            left_packets: 0,
            late_packets: 0,
            lateness_sum: Duration::ZERO,
            lateness_max: Duration::ZERO,
        }
    }

    /// Holds what will arrive; says how many of it found no room.
    pub(super) fn hold(&mut self, receiver: T, arrivals: Arrivals) -> usize {
        let mut overflow = 0;
        for arrival in [arrivals.first, arrivals.copy].into_iter().flatten() {
            let len = ByteCount::of(&arrival.octets);
            if self.held_bytes + len > self.held_max {
                self.overflow_packets += 1;
                overflow += 1;
                continue;
            }
            self.held_bytes += len;
            let order = self.admitted;
            self.admitted += 1;
            self.held.insert((arrival.at, order), (receiver, arrival));
        }
        overflow
    }

    /// The time at which the next packet is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.held.first_key_value().map(|(&(at, _), _)| at)
    }

    /// The next packet, if it is due at `now`.
    pub(super) fn take(&mut self, now: Instant) -> Option<(T, Arrival)> {
        let entry = self.held.first_entry().filter(|next| next.key().0 <= now)?;
        let (receiver, arrival) = entry.remove();
        self.held_bytes = self
            .held_bytes
            .saturating_sub(ByteCount::of(&arrival.octets));
        let late = now.saturating_since(arrival.at);
        self.left_packets += 1;
        self.late_packets += u64::from(late > LATE);
        self.lateness_sum += late;
        self.lateness_max = self.lateness_max.max(late);
        Some((receiver, arrival))
    }

    pub(super) fn punctuality(&self) -> Punctuality {
        let left = self.left_packets;
        Punctuality {
            overflow_packets: self.overflow_packets,
            lateness_mean_s: (left > 0).then(|| self.lateness_sum.as_secs_f64() / left as f64),
            lateness_max_s: self.lateness_max.as_secs_f64(),
            late_1ms_packets: self.late_packets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::machine::Ecn;

    fn arriving(at: Duration, octet: u8) -> Arrivals {
        let arrival = Arrival {
            at: Instant::START + at,
            octets: vec![octet; 100],
            ecn: Ecn::NotCapable,
        };
        Arrivals {
            first: Some(arrival),
            copy: None,
        }
    }

    #[test]
    fn packets_leave_when_they_are_due_and_those_of_one_instant_in_order() {
        let mut flight = InFlight::new(ByteCount(1_000));
        flight.hold((), arriving(Duration::from_millis(2), 1));
        flight.hold((), arriving(Duration::from_millis(1), 2));
        flight.hold((), arriving(Duration::from_millis(1), 3));
        assert_eq!(
            flight.due(),
            Some(Instant::START + Duration::from_millis(1))
        );
        assert!(flight.take(Instant::START).is_none());
        let now = Instant::START + Duration::from_millis(4);
        let order: Vec<u8> = std::iter::from_fn(|| flight.take(now))
            .map(|((), arrival)| arrival.octets[0])
            .collect();
        assert_eq!(order, [2, 3, 1]);
        let punctuality = flight.punctuality();
        // Late by 3, 3 and 2 ms.
        assert_eq!(punctuality.late_1ms_packets, 3);
        assert!((punctuality.lateness_mean_s.unwrap() - 8e-3 / 3.0).abs() < 1e-9);
        assert!((punctuality.lateness_max_s - 3e-3).abs() < 1e-9);
    }

    #[test]
    fn what_exceeds_the_bound_is_dropped_and_counted_until_there_is_room() {
        let mut flight = InFlight::new(ByteCount(150));
        flight.hold((), arriving(Duration::ZERO, 1));
        flight.hold((), arriving(Duration::ZERO, 2));
        assert_eq!(flight.punctuality().overflow_packets, 1);
        assert_eq!(flight.take(Instant::START).unwrap().1.octets[0], 1);
        flight.hold((), arriving(Duration::ZERO, 3));
        assert_eq!(flight.punctuality().overflow_packets, 1);
        assert_eq!(flight.take(Instant::START).unwrap().1.octets[0], 3);
    }
}
