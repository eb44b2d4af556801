//! Rates, and the share of one source in them.
//!
//! A host chooses its ports as it likes, and in IPv6 the lower half of its address, too. So sources are
//! told apart by bits that they do not choose: the host by its address (IPv4) or by the 64 bits that name its
//! subnet (IPv6), and the network by the prefix that is routed as one: 24 bits in IPv4, and the 48 bits of a site
//! in IPv6.

use super::sizes::MAPPED;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use std::hash::{DefaultHasher, Hasher};

/// A rate: so many a second, and so many at once.
#[derive(Clone, Copy)]
pub(super) struct Rate {
    each: Duration,
    burst: u32,
}

impl Rate {
    pub(super) const fn per_second(count: u32, burst: u32) -> Self {
        let count = if count == 0 { 1 } else { count };
        Self {
            each: Duration::from_nanos(1_000_000_000 / count as u64),
            burst,
        }
    }
}

/// A token bucket, kept as one instant.
#[derive(Clone, Copy)]
pub(super) struct Bucket {
    /// The time at which it will be full again.
    full_at: Instant,
}

impl Bucket {
    pub(super) const FULL: Self = Self {
        full_at: Instant::START,
    };

    /// Whether there is one to take.
    pub(super) fn has(self, now: Instant, rate: Rate) -> bool {
        self.full_at.saturating_since(now) + rate.each <= rate.each * rate.burst
    }

    /// Takes one, if one is there.
    pub(super) fn take(&mut self, now: Instant, rate: Rate) -> bool {
        let has = self.has(now, rate);
        if has {
            self.full_at = self.full_at.max(now) + rate.each;
        }
        has
    }

    /// Whether octets may be taken: no more than those of `burst` are taken ahead of the rate.
    pub(super) fn has_octets(self, now: Instant, burst: Duration) -> bool {
        self.full_at.saturating_since(now) < burst
    }

    /// Takes so many octets at a rate, unless those of `burst` are taken ahead of it.
    pub(super) fn take_octets(
        &mut self,
        now: Instant,
        octets: usize,
        rate: Bitrate,
        burst: Duration,
    ) -> bool {
        let has = self.has_octets(now, burst);
        if has {
            let takes = rate.time_to_send(ByteCount::from_usize(octets));
            self.full_at = self.full_at.max(now) + takes;
        }
        has
    }

    /// Whether half of it is taken.
    pub(super) fn is_past_half(self, now: Instant, rate: Rate) -> bool {
        self.full_at.saturating_since(now) * 2 >= rate.each * rate.burst
    }
}

/// The sources of each kind that are told apart at once. If there are more, some share a bucket.
const SOURCES: usize = 1_024;

/// The part of a source that its host cannot choose, and the part that its network cannot choose. A driver that
/// knows no addresses gives other octets, which all count.
pub(crate) fn host_and_network(source: &[u8]) -> [&[u8]; 2] {
    match source.split_at_checked(16) {
        Some((address, _)) => match address.strip_prefix(&MAPPED) {
            Some(v4) => [v4, v4.get(..3).unwrap_or(v4)],
            None => [
                address.get(..8).unwrap_or(address),
                address.get(..6).unwrap_or(address),
            ],
        },
        None => [source, source],
    }
}

/// Octets of the key by which sources find their buckets.
const KEY_BYTES: usize = 16;

/// Buckets of many sources, in constant memory.
struct Sources {
    rate: Rate,
    buckets: Box<[Bucket; SOURCES]>,
}

impl Sources {
    fn new(rate: Rate) -> Self {
        Self {
            rate,
            buckets: Box::new([Bucket::FULL; SOURCES]),
        }
    }

    /// The bucket of `name`. Since `key` is secret, nobody else can tell which names share it. Each datagram of a flood
    /// has its bucket looked up, so this uses `SipHash`, which was made for that, and not the slower hash of checks.
    fn bucket(&mut self, key: &[u8; KEY_BYTES], name: &[u8]) -> &mut Bucket {
        let mut hasher = DefaultHasher::new();
        hasher.write(key);
        hasher.write(name);
        let [low, high, ..] = hasher.finish().to_le_bytes();
        &mut self.buckets[usize::from(u16::from_le_bytes([low, high])) % SOURCES]
    }
}

/// A rate for each host, and a larger one for all hosts of a network.
pub(super) struct SourceLimits {
    key: [u8; KEY_BYTES],
    hosts: Sources,
    networks: Sources,
}

impl SourceLimits {
    /// The limits, with a secret `key`.
    pub(super) fn new(key: [u8; KEY_BYTES], host: Rate, network: Rate) -> Self {
        Self {
            key,
            hosts: Sources::new(host),
            networks: Sources::new(network),
        }
    }

    /// Takes one for `source`, if its host and its network both have one.
    pub(super) fn take(&mut self, now: Instant, source: &[u8]) -> bool {
        let [host, network] = host_and_network(source);
        let (of_host, of_network) = (self.hosts.rate, self.networks.rate);
        let host = self.hosts.bucket(&self.key, host);
        if !host.has(now, of_host) {
            return false;
        }
        self.networks
            .bucket(&self.key, network)
            .take(now, of_network)
            && host.take(now, of_host)
    }
}

#[cfg(test)]
mod tests {
    use super::super::source_octets;
    use super::*;

    fn limits() -> SourceLimits {
        SourceLimits::new(
            [7; KEY_BYTES],
            Rate::per_second(8, 16),
            Rate::per_second(16, 32),
        )
    }

    /// The number of datagrams let in when one comes from each of these addresses at once.
    fn let_in(addresses: impl Iterator<Item = String>) -> usize {
        let mut limits = limits();
        let taken = addresses.filter(|address| {
            let source = source_octets(address.parse().expect("an address"));
            limits.take(Instant::START, &source)
        });
        taken.count()
    }

    #[test]
    fn ports_are_of_one_host_and_hosts_of_one_network() {
        assert_eq!(
            let_in((1..12_000).map(|port| format!("192.0.2.1:{port}"))),
            16
        );
        assert_eq!(let_in((0..256).map(|n| format!("192.0.2.{n}:4914"))), 32);
        assert_eq!(
            let_in((0..4_096).map(|n| format!("[2001:db8:1:1::{n:x}]:4914"))),
            16
        );
        assert_eq!(
            let_in((0..4_096).map(|n| format!("[2001:db8:1:{n:x}::1]:4914"))),
            32
        );
    }

    #[test]
    fn other_networks_are_not_touched() {
        let two = (0..256).map(|n| format!("192.0.{}.{}:4914", 2 + n % 2, n / 2));
        assert_eq!(let_in(two), 64);
    }

    #[test]
    fn a_host_that_has_none_left_takes_nothing_of_its_network() {
        let greedy = (0..1_000).map(|port| format!("192.0.2.1:{}", 1 + port));
        let modest = (2..18).map(|n| format!("192.0.2.{n}:4914"));
        assert_eq!(let_in(greedy.chain(modest)), 16 + 16);
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let rate = Rate::per_second(10, 5);
        let mut bucket = Bucket::FULL;
        let at = |millis| Instant::START + Duration::from_millis(millis);
        let mut taken = |from: u64, to: u64| {
            (from..to)
                .filter(|millis| bucket.take(at(*millis), rate))
                .count()
        };
        assert_eq!(taken(0, 1), 1);
        assert_eq!(taken(1, 100), 4);
        assert_eq!(taken(100, 1_100), 10);
    }
}
