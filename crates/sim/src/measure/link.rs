//! The measures of a hop that has a link layer, in one direction: from the moment the layer takes a packet
//! off the queue above it to the moment it hands it up at the far end.
//!
//! A link layer's octets say nothing about when a packet was offered, so the meter keeps each offered
//! packet's hash and recognises the packet on release. A packet that was overtaken and never released is
//! lost; one that was not overtaken yet is still under way.

use core::time::Duration;
use fulmar_proto::machine::TransmitKind;
use fulmar_proto::units::{ByteCount, Instant};
use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};

/// A released packet is kept while this many later ones are released, for media that duplicate.
const OVERTAKEN_RELEASED_MAX: u64 = 64;
/// An unreleased packet is given up when this many later ones were released: more than any window.
const OVERTAKEN_MAX: u64 = 4_096;

/// The properties of a packet that only the measurement knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketIdentity {
    pub(crate) kind: TransmitKind,
    pub(crate) tag: u64,
}

#[derive(Clone, Copy, Debug)]
struct Offered {
    /// The hash of its octets.
    hash: u64,
    identity: PacketIdentity,
    at: Instant,
    released: bool,
}

/// One direction of one hop.
#[derive(Clone, Debug, Default)]
pub struct LinkMeter {
    /// The packets from place `forgotten_before` on, in the order in which they were offered.
    under_way: VecDeque<Offered>,
    forgotten_before: u64,
    /// The packets under way before that were released.
    released_before: u64,
    /// The places of the packets under way, by the hash of their octets.
    places: BTreeMap<u64, VecDeque<u64>>,
    /// The place behind the last released packet.
    released_up_to: u64,
    offered: u64,
    first_offer: Option<Instant>,
    released: u64,
    released_bytes: ByteCount,
    last_release: Option<Instant>,
    forgotten: u64,
    latencies: Vec<Duration>,
    /// The time in the queue above the layer, summed over the packets that the layer took.
    waited: Duration,
    /// Packets refused by the queue above the link, for lack of room.
    pub queue_full: u64,
    /// Packets dropped early by RED.
    pub queue_early: u64,
    /// Packets marked "congestion experienced".
    pub marked: u64,
}

/// FNV-1a over words of eight octets, in four lanes that need not wait for each other; equal octets
/// are all that matters here.
fn hash(octets: &[u8]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01B3;
    const SEED: u64 = 0xCBF2_9CE4_8422_2325;
    // A multiplication alone moves bits upwards only.
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(PRIME).rotate_left(29);
    let (blocks, rest) = octets.as_chunks::<32>();
    let mut lanes = [0, 1, 2, 3].map(|lane| SEED ^ lane);
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane = mix(*lane, u64::from_le_bytes(*word));
        }
    }
    let rest = rest.iter().map(|&octet| u64::from(octet));
    lanes.into_iter().chain(rest).fold(octets.len() as u64, mix)
}

impl LinkMeter {
    /// The packet that the layer takes next stood in the queue above it for `span`.
    pub(crate) fn wait(&mut self, span: Duration) {
        self.waited = self.waited.saturating_add(span);
    }

    /// The layer takes a packet.
    pub(crate) fn offer(&mut self, now: Instant, octets: &[u8], identity: PacketIdentity) {
        let hash = hash(octets);
        self.places.entry(hash).or_default().push_back(self.offered);
        self.offered += 1;
        self.first_offer.get_or_insert(now);
        self.under_way.push_back(Offered {
            hash,
            identity,
            at: now,
            released: false,
        });
    }

    /// The layer hands a packet up at the far end. Returns its identity; `None` if it was never offered:
    /// damage that the frame's check overlooked.
    pub(crate) fn release(&mut self, now: Instant, octets: &[u8]) -> Option<PacketIdentity> {
        let places = self.places.get(&hash(octets))?;
        let before = self.forgotten_before;
        let index_of = |place: u64| usize::try_from(place - before).ok();
        let is_first = |&place: &u64| {
            let offered = index_of(place).and_then(|index| self.under_way.get(index));
            offered.is_some_and(|offered| !offered.released)
        };
        let Some(place) = places.iter().copied().find(is_first) else {
            let copy = self.under_way.get(index_of(*places.front()?)?)?;
            return Some(copy.identity);
        };
        let offered = self.under_way.get_mut(index_of(place)?)?;
        offered.released = true;
        let (identity, at) = (offered.identity, offered.at);
        self.released_up_to = self.released_up_to.max(place + 1);
        self.released += 1;
        self.released_bytes += ByteCount::of(octets);
        self.last_release = Some(now);
        self.latencies.push(now.saturating_since(at));
        self.forget_overtaken();
        Some(identity)
    }

    fn forget_overtaken(&mut self) {
        while let Some(&first) = self.under_way.front() {
            let most = if first.released {
                OVERTAKEN_RELEASED_MAX
            } else {
                OVERTAKEN_MAX
            };
            // All that were released and do not stand before it.
            let overtaken = self.released - self.released_before - u64::from(first.released);
            if overtaken < most {
                break;
            }
            self.forgotten += u64::from(!first.released);
            self.released_before += u64::from(first.released);
            self.forgotten_before += 1;
            self.under_way.pop_front();
            if let Entry::Occupied(mut places) = self.places.entry(first.hash) {
                places.get_mut().pop_front();
                if places.get().is_empty() {
                    places.remove();
                }
            }
        }
    }

    /// Packets that the layer took.
    pub const fn offered(&self) -> u64 {
        self.offered
    }

    /// Packets that it handed up at the far end.
    pub const fn released(&self) -> u64 {
        self.released
    }

    /// Packets that were taken and never came out, though later ones did.
    pub fn lost(&self) -> u64 {
        let passed_over =
            usize::try_from(self.released_up_to.saturating_sub(self.forgotten_before));
        let passed_over = self
            .under_way
            .iter()
            .take(passed_over.unwrap_or(usize::MAX));
        self.forgotten + passed_over.filter(|offered| !offered.released).count() as u64
    }

    /// The spans from offer to release, in the order of release.
    pub fn latencies(&self) -> &[Duration] {
        &self.latencies
    }

    /// Mean span in the queue above the layer, of the packets that it took.
    pub fn wait_mean_s(&self) -> Option<f64> {
        (self.offered > 0).then(|| self.waited.as_secs_f64() / self.offered as f64)
    }

    /// Released octets per second between the first offer and the last release, as bits.
    pub fn goodput_bps(&self) -> Option<f64> {
        let span = self.last_release?.saturating_since(self.first_offer?);
        (!span.is_zero()).then(|| self.released_bytes.bits() as f64 / span.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: PacketIdentity = PacketIdentity {
        kind: TransmitKind::Source,
        tag: 7,
    };

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    #[test]
    fn a_packet_is_timed_from_offer_to_release_and_one_passed_over_is_lost() {
        let mut meter = LinkMeter::default();
        for (millis, octets) in [(0, b"one"), (1, b"two"), (2, b"six")] {
            meter.offer(at(millis), octets, ID);
        }
        assert_eq!(meter.release(at(10), b"one"), Some(ID));
        assert_eq!(meter.lost(), 0);
        assert_eq!(meter.release(at(13), b"six"), Some(ID));
        assert_eq!((meter.offered(), meter.released(), meter.lost()), (3, 2, 1));
        let millis: Vec<u128> = meter.latencies().iter().map(Duration::as_millis).collect();
        assert_eq!(millis, [10, 11]);
        // 6 octets in 13 ms.
        assert!((meter.goodput_bps().unwrap() - 48.0 / 0.013).abs() < 1e-6);
    }

    #[test]
    fn a_copy_is_recognised_and_not_counted_and_a_stranger_is_neither() {
        let mut meter = LinkMeter::default();
        meter.offer(at(0), b"one", ID);
        assert_eq!(meter.release(at(1), b"one"), Some(ID));
        assert_eq!(meter.release(at(2), b"one"), Some(ID));
        assert_eq!(meter.release(at(3), b"two"), None);
        assert_eq!(meter.released(), 1);
    }

    #[test]
    fn a_packet_that_never_came_out_is_forgotten_as_lost_once_enough_have_overtaken_it() {
        let mut meter = LinkMeter::default();
        meter.offer(at(0), b"lost", ID);
        let last = u32::try_from(OVERTAKEN_MAX).unwrap() - 1;
        for number in 0..=last {
            meter.offer(at(1), &number.to_be_bytes(), ID);
            meter.release(at(2), &number.to_be_bytes());
            assert_eq!(meter.places.contains_key(&hash(b"lost")), number < last);
        }
        assert_eq!((meter.released(), meter.lost()), (OVERTAKEN_MAX, 1));
        // Copies of the last ones are still known, older ones are not.
        assert_eq!(meter.release(at(3), &last.to_be_bytes()), Some(ID));
        assert_eq!(meter.release(at(3), &0_u32.to_be_bytes()), None);
        assert_eq!(
            meter.under_way.len(),
            usize::try_from(OVERTAKEN_RELEASED_MAX).unwrap()
        );
    }

    #[test]
    fn equal_packets_are_released_one_by_one() {
        let mut meter = LinkMeter::default();
        for tag in [1, 2] {
            meter.offer(at(0), b"same", PacketIdentity { tag, ..ID });
        }
        let tags = [at(1), at(2)].map(|now| meter.release(now, b"same").map(|id| id.tag));
        assert_eq!(tags, [Some(1), Some(2)]);
    }
}
