//! None of Fulmar's machines works so; this is the experiment that tells what the paper's numbers follow
//! from. The sender fills every slot: with the packet whose timer has ended and that is not known to have
//! been accepted, else with a new one. The receiver accepts the next packet and every packet that continues
//! or closes one of its runs. It begins another run while it has fewer than its blocks, and drops
//! everything else. The sender knows of an accepted packet a round trip later. Acknowledgements are not
//! lost, windows are without bound, and headers do not grow.

use super::forms::{Form, HEADER, KIODO, RATE_BPS, loss};
use fulmar_proto::rng::Rng;
use fulmar_sim::theory::ArqClass;
use std::collections::{BTreeMap, VecDeque};
use std::sync::OnceLock;

/// The header of the paper's selective repeat.
const SELECTIVE_HEADER: u64 = 60;
/// The blocks of a receiver that keeps everything.
pub(super) const EVERY: usize = usize::MAX;
/// The timeouts of the experiment, in round trips.
pub(super) const TIMEOUTS: [f64; 10] = [1.0, 1.1, 1.25, 1.4, 1.5, 1.75, 2.0, 3.0, 4.0, 5.0];
/// The numbers of blocks of the experiment; with none the receiver is a go-back-N's.
pub(super) const BLOCKS: [usize; 5] = [0, 4, 8, 16, EVERY];
const SECONDS: f64 = 8.0;
const SEED: u64 = 1;

/// A sender and a receiver of one direction.
#[derive(Clone, Copy, Debug)]
struct Slotted {
    /// Runs that the receiver keeps.
    blocks: usize,
    /// Slots from sending a packet to sending it again.
    timeout: usize,
    /// Slots from sending a packet to knowing that it was accepted.
    round_trip: usize,
    /// The share of packets that is lost.
    loss: f64,
}

/// The packets that the receiver holds behind the first hole.
#[derive(Clone, Debug, Default)]
struct Receiver {
    next: usize,
    /// Runs by their first packet, each with the packet behind its last.
    runs: BTreeMap<usize, usize>,
}

impl Receiver {
    /// Whether the packet is accepted, or was before.
    fn take(&mut self, number: usize, blocks: usize) -> bool {
        if number < self.next {
            return true;
        }
        let before = self.runs.range(..=number).next_back();
        let before = before.map(|(first, end)| (*first, *end));
        if before.is_some_and(|(_, end)| number < end) {
            return true;
        }
        let behind = self.runs.get(&(number + 1)).copied();
        if number == self.next {
            self.next = behind.unwrap_or(number + 1);
            self.runs.remove(&(number + 1));
            return true;
        }
        let first = before.filter(|(_, end)| *end == number);
        if first.is_none() && behind.is_none() && self.runs.len() >= blocks {
            return false;
        }
        self.runs.remove(&(number + 1));
        let first = first.map_or(number, |(first, _)| first);
        self.runs.insert(first, behind.unwrap_or(number + 1));
        true
    }
}

impl Slotted {
    /// The share of `slots` slots that carried a packet that was delivered in order in the end.
    fn delivered(&self, slots: usize, rng: &mut Rng) -> f64 {
        // By packet: the slot from which on it is known to have been accepted.
        let mut known: Vec<usize> = Vec::with_capacity(slots);
        let mut timers: VecDeque<(usize, usize)> = VecDeque::new();
        let mut receiver = Receiver::default();
        for slot in 0..slots {
            let mut again = None;
            while let Some(&(_, number)) = timers.front().filter(|(due, _)| *due <= slot) {
                timers.pop_front();
                if known.get(number).is_none_or(|known| *known > slot) {
                    again = Some(number);
                    break;
                }
            }
            let number = again.unwrap_or_else(|| {
                known.push(usize::MAX);
                known.len() - 1
            });
            timers.push_back((slot + self.timeout, number));
            if rng.chance(self.loss) || !receiver.take(number, self.blocks) {
                continue;
            }
            if let Some(known) = known.get_mut(number) {
                *known = (*known).min(slot + self.round_trip);
            }
        }
        receiver.next as f64 / slots as f64
    }
}

/// Goodput over KIODO's distance with independent errors at 1e-6, as a share of the link, with a timer of
/// `timeout` round trips.
fn share(user: u64, blocks: usize, timeout: f64) -> f64 {
    let arq = if blocks == 0 {
        ArqClass::GoBackN
    } else {
        ArqClass::SelectiveRepeat
    };
    let form = Form::figure(arq, KIODO, user, 1e-6);
    let header = if blocks == 0 {
        HEADER
    } else {
        SELECTIVE_HEADER
    };
    let form = form.with_header(header);
    let round_trip = whole(form.capacity().packets()) + 1;
    let slotted = Slotted {
        blocks,
        timeout: whole(round_trip as f64 * timeout),
        round_trip,
        // Table 1's convention: the headers are not hit.
        loss: loss(1e-6, user),
    };
    let packet = (user + header) as f64;
    let slots = whole(SECONDS * RATE_BPS / (8.0 * packet));
    let mut rng = Rng::from_seed(SEED).child("slots");
    slotted.delivered(slots, &mut rng) * user as f64 / packet
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate"
)]
fn whole(value: f64) -> usize {
    value.round() as usize
}

/// The shares at each of the experiment's timeouts, with 1000 octets of user data.
pub(super) fn by_timeout(blocks: usize) -> &'static [f64] {
    static SHARES: [OnceLock<Vec<f64>>; BLOCKS.len()] = [const { OnceLock::new() }; BLOCKS.len()];
    let place = BLOCKS.iter().position(|known| *known == blocks);
    let compute = || {
        TIMEOUTS
            .map(|timeout| share(1000, blocks, timeout))
            .to_vec()
    };
    SHARES[place.unwrap_or(0)].get_or_init(compute)
}

/// The shares at 500, 1000 and 1500 octets of user data with four blocks, by the experiment's timeouts.
pub(super) fn four_by_length() -> &'static [[f64; 3]] {
    static SHARES: OnceLock<Vec<[f64; 3]>> = OnceLock::new();
    SHARES.get_or_init(|| {
        let all = |timeout| [500, 1000, 1500].map(|user| share(user, 4, timeout));
        TIMEOUTS.map(all).to_vec()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slotted(blocks: usize, timeout: usize) -> Slotted {
        Slotted {
            blocks,
            timeout,
            round_trip: 101,
            loss: 0.01,
        }
    }

    /// A packet is delivered in 1 / (1 - p) slots, and of 2 10^6 slots those at the end are missing.
    #[test]
    fn with_every_block_it_is_the_selective_repeat_of_equation_8_whatever_the_timer() {
        for timeout in [101, 150, 400] {
            let mut rng = Rng::from_seed(8);
            let share = slotted(EVERY, timeout).delivered(2_000_000, &mut rng);
            // Standard deviation of the losses 0.00007, the end at most some timeouts: 0.001.
            assert!((share - 0.99).abs() < 0.0015, "{timeout}: {share}");
        }
    }

    #[test]
    fn without_blocks_and_with_the_round_trip_for_a_timer_it_is_the_go_back_n_of_equation_10() {
        let mut rng = Rng::from_seed(10);
        let share = slotted(0, 101).delivered(2_000_000, &mut rng);
        // Equation 10 with C = 100: (1 - p) / (1 + C p). 10,000 cycles, each with a geometric number of packets:
        // a standard error of 1 % times the share of waste, one half.
        let expected = 0.99 / (1.0 + 100.0 * 0.01);
        assert!(
            (share / expected - 1.0).abs() < 0.03,
            "{share} of {expected}"
        );
    }

    #[test]
    fn a_receiver_with_full_blocks_drops_what_begins_another_and_takes_what_continues_one() {
        let mut receiver = Receiver::default();
        assert!(receiver.take(0, 2));
        assert!(receiver.take(2, 2) && receiver.take(4, 2));
        assert!(!receiver.take(6, 2));
        assert!(receiver.take(5, 2) && receiver.take(3, 2));
        // 2 to 5 are one run now.
        assert!(receiver.take(7, 2));
        assert!(receiver.take(1, 2));
        assert_eq!(receiver.next, 6);
        assert!(receiver.take(6, 2));
        assert_eq!((receiver.next, receiver.runs.len()), (8, 0));
    }
}
