use super::*;
use fulmar_proto::units::{Bitrate, Duration};
use proptest::prelude::*;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn transmitter(bits_per_second: u64, limit: QueueLimit) -> Transmitter {
    Transmitter::new(NonZeroU64::new(bits_per_second), limit, None)
}

#[test]
fn packets_back_to_back_take_their_bits_over_the_rate_rounded_up_once() {
    // 12,000 bits at 7 mbit/s are 1,714,285.71 ns: rounding each would be 2857 ns too late.
    let mut link = transmitter(7_000_000, QueueLimit::UNLIMITED);
    let mut last = at(0);
    for _ in 0..10_000 {
        last = link.admit(at(0), ByteCount(1500)).unwrap().end;
    }
    assert_eq!(last, at(120_000_000_000_000_000_u64.div_ceil(7_000_000)));
}

#[test]
fn a_single_packet_takes_what_the_rate_says() {
    for rate in [1, 999, 5_000_000, 10_000_000_000, 399_999_999_999] {
        for len in [0, 1, 40, 1502, 65_535, 1 << 33] {
            let mut link = transmitter(rate, QueueLimit::default());
            let sent = link.admit(at(5), ByteCount(len)).unwrap();
            let expected = Bitrate::from_bits_per_second(rate).time_to_send(ByteCount(len));
            assert_eq!(sent.end, at(5) + expected, "{rate} bit/s, {len} octets");
            assert_eq!(sent.start, at(5));
        }
    }
}

#[test]
fn the_queue_takes_its_limit_besides_the_packet_in_transmission_and_not_one_more() {
    let mut link = transmitter(8_000_000, QueueLimit::packets(100));
    for _ in 0..101 {
        assert!(link.admit(at(0), ByteCount(1000)).is_some());
    }
    assert_eq!(link.waiting(at(0)), (100, ByteCount(100_000)));
    assert_eq!(link.admit(at(0), ByteCount(1000)), None);
    // 1000 octets take 1 ms. One nanosecond before the first has left, still no room.
    assert_eq!(link.admit(at(999_999), ByteCount(1000)), None);
    let sent = link.admit(at(1_000_000), ByteCount(1000)).unwrap();
    assert_eq!(sent.start, at(101_000_000));
    assert_eq!(link.admit(at(1_000_000), ByteCount(1000)), None);
}

#[test]
fn a_limit_in_octets_counts_what_waits() {
    let mut link = transmitter(8_000_000, QueueLimit::bytes(ByteCount(2500)));
    // Larger than the limit, but nothing waits: it goes straight out.
    assert!(link.admit(at(0), ByteCount(3000)).is_some());
    assert!(link.admit(at(0), ByteCount(1500)).is_some());
    assert_eq!(link.admit(at(0), ByteCount(1001)), None);
    assert!(link.admit(at(0), ByteCount(1000)).is_some());
    assert_eq!(link.admit(at(0), ByteCount(0)), None);
}

#[test]
fn no_waiting_room_admits_to_an_idle_link_only() {
    let mut link = transmitter(8_000_000, QueueLimit::packets(0));
    assert!(link.admit(at(0), ByteCount(1000)).is_some());
    assert_eq!(link.admit(at(999_999), ByteCount(1000)), None);
    assert!(link.admit(at(1_000_000), ByteCount(1000)).is_some());
}

#[test]
fn packets_beyond_the_threshold_are_marked() {
    let threshold = Some(QueueLimit::packets(2));
    let rate = NonZeroU64::new(8_000_000);
    let mut link = Transmitter::new(rate, QueueLimit::packets(4), threshold);
    let marks: Vec<Option<bool>> = (0..6)
        .map(|_| link.admit(at(0), ByteCount(1000)).map(|sent| sent.marked))
        .collect();
    // In transmission, two within the threshold, two beyond it, and no room.
    let (free, marked) = (Some(false), Some(true));
    assert_eq!(marks, [free, free, free, marked, marked, None]);
}

#[test]
fn an_infinite_rate_never_queues() {
    let mut link = Transmitter::new(None, QueueLimit::packets(0), Some(QueueLimit::packets(0)));
    for _ in 0..1000 {
        let sent = link.admit(at(7), ByteCount(1500)).unwrap();
        assert_eq!((sent.start, sent.end, sent.marked), (at(7), at(7), false));
    }
}

#[test]
fn a_transmission_that_outlasts_time_ends_in_the_far_future() {
    let mut link = transmitter(1, QueueLimit::default());
    for _ in 0..3 {
        let sent = link.admit(at(1), ByteCount(u64::MAX)).unwrap();
        assert_eq!(sent.end, Instant::FAR_FUTURE);
    }
}

/// The same link, computed from every packet ever sent and in exact fractions of a nanosecond.
struct Naive {
    rate: u128,
    limit: QueueLimit,
    /// Start and end in units of 1 / rate nanoseconds, and octets.
    sent: Vec<(u128, u128, u64)>,
}

impl Naive {
    fn admit(&mut self, now: Instant, len: ByteCount) -> Option<Instant> {
        let moment = u128::from(now.as_nanos()) * self.rate;
        let inside = self.sent.iter().filter(|&&(_, end, _)| end > moment);
        let busy = inside.clone().count() > 0;
        let waiting = inside.skip(1);
        let packets = waiting.clone().count() as u64 + 1;
        let octets = waiting.map(|&(_, _, octets)| octets).sum::<u64>() + len.0;
        let refused = self.limit.packets.is_some_and(|p| packets > u64::from(p))
            || self.limit.bytes.is_some_and(|b| octets > b.0);
        if busy && refused {
            return None;
        }
        let start = self.sent.last().map_or(0, |&(_, end, _)| end).max(moment);
        let end = start + u128::from(len.0) * 8_000_000_000;
        self.sent.push((start, end, len.0));
        Some(at(u64::try_from(end.div_ceil(self.rate)).unwrap()))
    }
}

proptest! {
    #[test]
    fn agrees_with_a_link_that_remembers_everything(
        rate in 1_000_u64..10_000_000_000,
        packets in proptest::option::of(0_u32..6),
        bytes in proptest::option::of(0_u64..6_000),
        // Gaps in units of the time that 1000 octets take, in thousandths.
        arrivals in prop::collection::vec((0_u64..2_500, 1_u64..1_500), 1..120),
    ) {
        let limit = QueueLimit { packets, bytes: bytes.map(ByteCount) };
        let mut link = transmitter(rate, limit);
        let mut naive = Naive { rate: u128::from(rate), limit, sent: Vec::new() };
        let unit = Bitrate::from_bits_per_second(rate).time_to_send(ByteCount(1000));
        let mut now = at(0);
        for (gap, len) in arrivals {
            let gap = unit.as_nanos() * u128::from(gap) / 1000;
            now += Duration::from_nanos(u64::try_from(gap).unwrap());
            let got = link.admit(now, ByteCount(len)).map(|sent| sent.end);
            prop_assert_eq!(got, naive.admit(now, ByteCount(len)));
        }
    }
}
