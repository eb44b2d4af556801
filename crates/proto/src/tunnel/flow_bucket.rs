//! The bucket of a packet: packets of one bucket keep their order and share a queue.

use super::inner_packet::InnerPacket;
use core::net::IpAddr;

/// Buckets of a tunnel. Two of a thousand flows meet in one about as often as in the kernel's `fq_codel`, which has as
/// many.
pub const FLOW_BUCKETS: u16 = 1_024;

/// FNV-1a, 64 bits (draft-eastlake-fnv, section 2).
const OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01B3;

/// A number below [`FLOW_BUCKETS`], the same for both directions of a flow, and at both gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowBucket(u16);

impl FlowBucket {
    /// The bucket of this number; `None` if there is none.
    pub const fn new(number: u16) -> Option<Self> {
        if number < FLOW_BUCKETS {
            Some(Self(number))
        } else {
            None
        }
    }

    /// The bucket of a packet: of its addresses, ports and protocol.
    pub fn of(packet: &InnerPacket) -> Self {
        let (from, to) = packet.ports.unwrap_or_default();
        let mut ends = [(packet.source, from), (packet.destination, to)];
        ends.sort_unstable();
        let mut hash = fnv(OFFSET, &[packet.protocol]);
        for (ip, port) in ends {
            hash = match ip {
                IpAddr::V4(ip) => fnv(hash, &ip.octets()),
                IpAddr::V6(ip) => fnv(hash, &ip.octets()),
            };
            hash = fnv(hash, &port.to_be_bytes());
        }
        // The lowest bits of FNV-1a mix least (section 3 of the draft: XOR folding).
        let folded = hash ^ (hash >> 32) ^ (hash >> 16);
        Self(u16::try_from(folded % u64::from(FLOW_BUCKETS)).unwrap_or_default())
    }

    /// Its number.
    pub const fn number(self) -> u16 {
        self.0
    }
}

fn fnv(hash: u64, octets: &[u8]) -> u64 {
    octets.iter().fold(hash, |hash, octet| {
        (hash ^ u64::from(*octet)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn packet(rng: &mut Rng) -> InnerPacket {
        let mut octets = [0; 12];
        rng.fill(&mut octets);
        let ip =
            |at: usize| IpAddr::from([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]);
        InnerPacket {
            source: ip(0),
            destination: ip(4),
            protocol: 6,
            ports: Some((
                u16::from_be_bytes([octets[8], octets[9]]),
                u16::from_be_bytes([octets[10], octets[11]]),
            )),
            traffic_class: 0,
            header_bytes: 20,
        }
    }

    #[test]
    fn both_directions_of_a_flow_have_one_bucket() {
        let mut rng = Rng::from_seed(11);
        for _ in 0..10_000 {
            let there = packet(&mut rng);
            let back = InnerPacket {
                source: there.destination,
                destination: there.source,
                ports: there.ports.map(|(from, to)| (to, from)),
                ..there
            };
            assert_eq!(FlowBucket::of(&there), FlowBucket::of(&back));
        }
    }

    /// One client's connections to one server differ in one port alone: the case that a poor hash would heap up.
    #[test]
    fn flows_that_differ_in_one_port_spread_over_the_buckets() {
        let mut rng = Rng::from_seed(12);
        let first = packet(&mut rng);
        let mut held = vec![0_u32; usize::from(FLOW_BUCKETS)];
        for port in 0..16_384 {
            let one = InnerPacket {
                ports: Some((40_000 + port, 443)),
                ..first
            };
            held[usize::from(FlowBucket::of(&one).number())] += 1;
        }
        // Sixteen each on average; of a thousand Poisson counts the largest is below 40 but once in ten thousand times.
        assert!(held.iter().all(|count| (1..40).contains(count)), "{held:?}");
    }

    #[test]
    fn there_is_no_bucket_beyond_the_last() {
        assert_eq!(FlowBucket::new(1_023).map(FlowBucket::number), Some(1_023));
        assert_eq!(FlowBucket::new(1_024), None);
    }
}
