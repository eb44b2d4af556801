//! Datagrams on their way out, joined into bursts that one system call can send.
//!
//! Datagrams of one size to one path join (GSO); a smaller one may end a burst. A burst is capped,
//! because some middleboxes drop the tail of a long back-to-back train (quinn issue 2627).
//! The octets lie in one buffer and the bursts in one queue, both used again: nothing is allocated here once they have
//! grown, but for a burst that the interface refuses.

use quinn_udp::EcnCodepoint;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// The kernel takes a burst as one UDP payload before it cuts it up: 65,535 less IP and UDP headers.
const BURST_OCTETS_MAX: usize = 65_000;

/// The destination of a datagram, and the parts of its headers that are ours to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    pub(super) to: SocketAddr,
    pub(super) from: Option<IpAddr>,
    pub(super) ecn: Option<EcnCodepoint>,
    /// Whether UDP's checksum is left out.
    pub(super) unchecked: bool,
}

/// Consecutive datagrams for one system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Burst {
    pub(super) envelope: Envelope,
    pub(super) len: usize,
    pub(super) datagram_len: usize,
    pub(super) count: usize,
}

impl Burst {
    /// A datagram shorter than the first closes the burst.
    const fn is_closed(&self) -> bool {
        self.len < self.datagram_len * self.count
    }

    fn takes(&self, envelope: Envelope, len: usize, count_max: usize) -> bool {
        self.envelope == envelope
            && !self.is_closed()
            && len <= self.datagram_len
            && self.count < count_max
            && self.len + len <= BURST_OCTETS_MAX
    }
}

/// Queued bursts and their octets, in order.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    octets: Vec<u8>,
    taken: usize,
    bursts: VecDeque<Burst>,
}

impl Outbox {
    /// The buffer to which the next datagram's octets are appended.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.octets
    }

    /// The octets that wait.
    pub(super) fn waiting(&self) -> usize {
        self.octets.len() - self.taken
    }

    /// Addresses the `len` octets that were appended last.
    pub(super) fn push(&mut self, envelope: Envelope, len: usize, count_max: usize) {
        match self.bursts.back_mut() {
            Some(last) if last.takes(envelope, len, count_max) => {
                last.len += len;
                last.count += 1;
            }
            _ => self.bursts.push_back(Burst {
                envelope,
                len,
                datagram_len: len,
                count: 1,
            }),
        }
    }

    /// Forgets `len` octets that were appended but have nowhere to go.
    pub(super) fn withdraw(&mut self, len: usize) {
        self.octets.truncate(self.octets.len().saturating_sub(len));
    }

    /// The oldest burst.
    pub(super) fn front(&self) -> Option<(Burst, &[u8])> {
        let burst = *self.bursts.front()?;
        let octets = self.octets.get(self.taken..self.taken + burst.len)?;
        Some((burst, octets))
    }

    /// Whether nothing more can join the oldest burst: another has begun behind it.
    pub(super) fn has_whole_burst(&self) -> bool {
        self.bursts.len() > 1
    }

    /// The oldest burst has been sent or given up.
    pub(super) fn pop(&mut self) {
        if let Some(burst) = self.bursts.pop_front() {
            self.taken += burst.len;
        }
        // The rest may be the beginning of a burst, which moves to the front.
        if self.taken >= self.waiting() {
            self.octets.drain(..self.taken);
            self.taken = 0;
        }
    }

    /// Sends the oldest burst's datagrams one by one after all: the interface refuses GSO.
    pub(super) fn split_front(&mut self) {
        let Some(burst) = self.bursts.pop_front() else {
            return;
        };
        let mut left = burst.len;
        let mut singles = Vec::with_capacity(burst.count);
        while left > 0 {
            let len = left.min(burst.datagram_len);
            singles.push(Burst {
                len,
                datagram_len: len,
                count: 1,
                ..burst
            });
            left -= len;
        }
        for single in singles.into_iter().rev() {
            self.bursts.push_front(single);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(port: u16) -> Envelope {
        Envelope {
            to: SocketAddr::from(([127, 0, 0, 1], port)),
            from: None,
            ecn: None,
            unchecked: false,
        }
    }

    fn filled(lens: &[(u16, usize)], count_max: usize) -> Outbox {
        let mut outbox = Outbox::default();
        for &(port, len) in lens {
            let longer = outbox.buffer().len() + len;
            outbox.buffer().resize(longer, u8::try_from(port).unwrap());
            outbox.push(envelope(port), len, count_max);
        }
        outbox
    }

    fn drained(mut outbox: Outbox) -> Vec<(u16, usize, usize)> {
        let mut bursts = Vec::new();
        while let Some((burst, octets)) = outbox.front() {
            let port = burst.envelope.to.port();
            assert!(octets.iter().all(|&octet| u16::from(octet) == port));
            bursts.push((port, octets.len(), burst.count));
            outbox.pop();
        }
        assert_eq!(outbox.waiting(), 0);
        bursts
    }

    #[test]
    fn equal_sizes_to_one_path_join_and_a_shorter_one_ends_the_burst() {
        let outbox = filled(
            &[(1, 100), (1, 100), (1, 40), (1, 40), (2, 40), (2, 50)],
            16,
        );
        assert_eq!(
            drained(outbox),
            [(1, 240, 3), (1, 40, 1), (2, 40, 1), (2, 50, 1)]
        );
    }

    #[test]
    fn a_burst_stops_at_its_cap_in_datagrams_and_in_octets() {
        assert_eq!(drained(filled(&[(1, 10); 5], 4)), [(1, 40, 4), (1, 10, 1)]);
        let long = drained(filled(&[(1, 30_000); 3], 16));
        assert_eq!(long, [(1, 60_000, 2), (1, 30_000, 1)]);
    }

    #[test]
    fn a_refused_burst_goes_out_one_by_one_in_the_same_order() {
        let mut outbox = filled(&[(1, 100), (1, 100), (1, 40), (2, 7)], 16);
        outbox.split_front();
        assert_eq!(
            drained(outbox),
            [(1, 100, 1), (1, 100, 1), (1, 40, 1), (2, 7, 1)]
        );
    }

    #[test]
    fn a_burst_that_is_not_full_stays_and_grows_while_whole_ones_go() {
        /// The numbers of the datagrams that need not wait.
        fn send_whole(outbox: &mut Outbox) -> Vec<u8> {
            let mut sent = Vec::new();
            while outbox.has_whole_burst() {
                let (burst, octets) = outbox.front().unwrap();
                assert_eq!((burst.count, burst.len), (3, 30));
                sent.extend(octets.iter().step_by(10));
                outbox.pop();
            }
            sent
        }
        let mut outbox = Outbox::default();
        let push = |outbox: &mut Outbox, numbers: std::ops::Range<u8>| {
            for number in numbers {
                outbox.buffer().extend([number; 10]);
                outbox.push(envelope(1), 10, 3);
            }
        };
        push(&mut outbox, 0..2);
        assert!(!outbox.has_whole_burst(), "it may still grow");
        push(&mut outbox, 2..8);
        assert_eq!(send_whole(&mut outbox), [0, 1, 2, 3, 4, 5]);
        assert_eq!(outbox.waiting(), 20);
        assert_eq!(outbox.buffer().len(), 20, "it moved to the front");
        let octets = [[6; 10], [7; 10]].concat();
        assert_eq!(outbox.front().unwrap().1, octets);
        // The burst takes datagrams until it is full, and the next one makes it whole.
        push(&mut outbox, 8..11);
        assert_eq!(send_whole(&mut outbox), [6, 7, 8]);
        let (burst, octets) = outbox.front().unwrap();
        assert_eq!(burst.count, 2);
        assert_eq!(octets, [[9; 10], [10; 10]].concat());
        outbox.pop();
        assert_eq!((outbox.waiting(), outbox.buffer().len()), (0, 0));
    }
}
