//! Sealing and opening of datagrams under the keys of one handshake.

use super::cipher::{Cipher, FORGED_MAX, Number, blocks_of};
use super::dialect::Wire;
use super::handshake::Agreed;
use super::path_slot::PathSlot;
use super::replay::ReplayWindow;
use fulmar_proto::units::Instant;

/// The most that may be sealed under keys of one wire, in datagrams of one direction.
struct Limits {
    /// The datagrams after which other keys are due ...
    renew: u64,
    /// ... and after which nothing is sealed any more.
    last: u64,
}

impl Limits {
    const fn of(wire: Wire) -> Self {
        match wire {
            // Far below the end of nonces (2^64 - 1 is Noise's own).
            Wire::One => Self {
                renew: u64::MAX,
                last: u64::MAX - (1 << 16),
            },
            // Half of what the 24 bits of a counter hold, less the longest window: what was sealed under these keys and
            // those before them is then so close that numbers of TPDUs, cut to 24 bits, come back right (ADR 0029).
            Wire::Two => Self {
                renew: 1 << 22,
                last: (1 << 23) - (1 << 16),
            },
        }
    }
}

/// The datagrams that may be under way, and as many again: 1 gbit of full datagrams for 12 s.
const LATELY: u64 = 1 << 20;

/// The reason why a sealed datagram does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unopened {
    Replayed,
    Forged,
}

/// The number of an arriving datagram, as far as its header says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Wire 1: the low half of the counter.
    Low(u32),
    /// Wire 2: all of it.
    Whole(Number),
}

impl Told {
    pub(super) const fn wire(self) -> Wire {
        match self {
            Self::Low(_) => Wire::One,
            Self::Whole(_) => Wire::Two,
        }
    }
}

/// The numbers, among all datagrams that left for a peer, of those that left under one pair of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbered {
    /// The number of counter 0.
    first: u64,
    /// Counters that were used.
    count: u64,
}

impl Numbered {
    /// The number of counter 0, and one past the last number that was used.
    pub(super) const fn range(self) -> (u64, u64) {
        (self.first, self.first + self.count)
    }

    /// The number of a datagram that left with this counter.
    pub(super) const fn number(self, counter: u64) -> Option<u64> {
        if counter < self.count {
            Some(self.first + counter)
        } else {
            None
        }
    }
}

/// The datagrams that went under keys, without the keys: nothing opens with it.
#[derive(Debug)]
pub(super) struct KeyTraffic {
    /// Our index of the keys.
    pub(super) local: u32,
    /// The peer's index of the keys.
    pub(super) remote: u32,
    /// Those that left in the first place.
    pub(super) numbered: Option<Numbered>,
    arrived: Option<ReplayWindow>,
}

impl KeyTraffic {
    /// The counters that arrived in the first place.
    pub(super) const fn arrived(&self) -> ArrivedUnder<'_> {
        ArrivedUnder {
            local: self.local,
            window: self.arrived.as_ref(),
        }
    }
}

/// The counters that arrived in the first place under keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivedUnder<'a> {
    /// Our index of the keys.
    pub(super) local: u32,
    window: Option<&'a ReplayWindow>,
}

impl ArrivedUnder<'_> {
    /// One past the newest counter that arrived.
    pub(super) fn next_expected(self) -> u64 {
        self.window.map_or(0, ReplayWindow::newest)
    }

    /// Whether a datagram with this counter arrived lately.
    pub(super) fn has_come(self, counter: u64) -> bool {
        self.window.is_some_and(|window| window.has_seen(counter))
    }
}

/// The keys of one handshake, with the counters of their use.
pub(super) struct Keypair {
    /// Our index, which the peer puts into its datagrams.
    pub(super) local: u32,
    /// The peer's index, which we put into our datagrams.
    pub(super) remote: u32,
    /// The form of the datagrams under them.
    pub(super) wire: Wire,
    cipher: Cipher,
    /// Datagrams sealed for each place, which is its next counter: it only rises, and is forgotten with the keys.
    sealed: [u64; PathSlot::COUNT],
    /// Datagrams sealed in all.
    sealed_in_all: u64,
    /// Datagrams that may be sealed.
    sealed_max: u64,
    /// The number of counter 0 in each place among all datagrams that left there for the peer, once one did under these keys.
    first_numbers: [Option<u64>; PathSlot::COUNT],
    /// Blocks of the cipher that they took.
    blocks: u64,
    /// Datagrams that did not open.
    forged: u64,
    /// The counters that arrived of each place, from the first genuine one on.
    windows: [Option<ReplayWindow>; PathSlot::COUNT],
    /// The time at which they were made.
    pub(super) made: Instant,
    /// Whether we began the handshake.
    pub(super) initiated: bool,
    /// Whether the peer is known to have them.
    pub(super) confirmed: bool,
}

impl Keypair {
    pub(super) fn new(
        agreed: Agreed,
        local: u32,
        remote: u32,
        made: Instant,
        initiated: bool,
    ) -> Self {
        Self {
            local,
            remote,
            wire: agreed.wire,
            cipher: agreed.cipher,
            sealed: [0; PathSlot::COUNT],
            sealed_in_all: 0,
            sealed_max: Limits::of(agreed.wire).last,
            first_numbers: [None; PathSlot::COUNT],
            blocks: 0,
            forged: 0,
            windows: [const { None }; PathSlot::COUNT],
            made,
            initiated,
            confirmed: false,
        }
    }

    /// Seals no more than `datagrams` in all.
    pub(super) fn stop_after(&mut self, datagrams: u64) {
        self.sealed_max = datagrams.min(Limits::of(self.wire).last);
    }

    /// Whether nothing more may be sealed.
    pub(super) fn is_spent(&self) -> bool {
        self.sealed_in_all >= self.sealed_max || self.blocks >= self.cipher.bounds().blocks_max
    }

    /// Whether so much was sealed that other keys are due.
    pub(super) fn is_worn(&self) -> bool {
        self.is_spent() || self.blocks >= self.cipher.bounds().renew_blocks
    }

    /// The number of the next datagram for `slot`; `None` when the keys are used up.
    pub(super) fn next_number(&mut self, slot: PathSlot) -> Option<Number> {
        if self.is_spent() {
            return None;
        }
        let next = &mut self.sealed[slot.index()];
        let counter = *next;
        *next += 1;
        self.sealed_in_all += 1;
        Some(Number { slot, counter })
    }

    /// Whether a datagram with this number was sent lately.
    pub(super) fn has_sent(&self, told: Told) -> bool {
        let back = match told {
            _ if told.wire() != self.wire => None,
            Told::Low(low) => self.newest_sent(PathSlot::FIRST).and_then(|newest| {
                // Only the low half is compared.
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "the header has the low half"
                )]
                let back = u64::from((newest as u32).wrapping_sub(low));
                (back <= newest).then_some(back)
            }),
            Told::Whole(Number { slot, counter }) => self
                .newest_sent(slot)
                .and_then(|newest| newest.checked_sub(counter)),
        };
        back.is_some_and(|back| back < LATELY)
    }

    /// The counter of the datagram that was sealed last for `slot`.
    pub(super) fn newest_sent(&self, slot: PathSlot) -> Option<u64> {
        self.sealed[slot.index()].checked_sub(1)
    }

    /// The number, among all datagrams that left for the peer, of the one that was sealed last for `slot`; `next` is
    /// that of the next one, or less if some left without being numbered.
    pub(super) fn note_number(&mut self, slot: PathSlot, next: u64) -> Option<u64> {
        let counter = self.newest_sent(slot)?;
        let first = self.first_numbers[slot.index()];
        let first = first.unwrap_or_else(|| next.saturating_sub(counter));
        self.first_numbers[slot.index()] = Some(first);
        Some(first + counter)
    }

    /// The numbers of the datagrams that left in a place under these keys.
    pub(super) fn numbered(&self, slot: PathSlot) -> Option<Numbered> {
        let first = self.first_numbers[slot.index()]?;
        let count = self.sealed[slot.index()];
        Some(Numbered { first, count })
    }

    /// The counters that arrived in the first place.
    pub(super) const fn arrived(&self) -> ArrivedUnder<'_> {
        ArrivedUnder {
            local: self.local,
            window: self.windows[PathSlot::FIRST.index()].as_ref(),
        }
    }

    /// What stays known of datagrams under them when they are forgotten.
    pub(super) fn into_traffic(mut self) -> KeyTraffic {
        KeyTraffic {
            local: self.local,
            remote: self.remote,
            numbered: self.numbered(PathSlot::FIRST),
            arrived: self.windows[PathSlot::FIRST.index()].take(),
        }
    }

    /// Datagrams that went either way, whichever is more.
    pub(super) fn used(&self) -> u64 {
        let windows = self.windows.iter().flatten();
        let received = windows.map(ReplayWindow::newest).sum();
        self.sealed_in_all.max(received)
    }

    /// Datagrams one way after which other keys are due, whatever the policy says.
    pub(super) fn renew_datagrams(&self) -> u64 {
        let bounds = self.cipher.bounds();
        bounds.renew_datagrams.min(Limits::of(self.wire).renew)
    }

    /// Seals the octets from `start` on, in their place, under a number of [`Keypair::next_number`].
    /// `false`: they are too many, or the keys are used up.
    pub(super) fn seal(&mut self, number: Number, start: usize, out: &mut Vec<u8>) -> bool {
        let blocks = self.blocks.saturating_add(blocks_of(out.len() - start));
        if blocks > self.cipher.bounds().blocks_max {
            self.blocks = self.cipher.bounds().blocks_max;
            return false;
        }
        self.blocks = blocks;
        self.cipher.seal(number, start, out)
    }

    /// The whole number of a datagram that arrived.
    fn number_of(&self, told: Told) -> Number {
        match told {
            Told::Low(low) => Number {
                slot: PathSlot::FIRST,
                counter: match &self.windows[PathSlot::FIRST.index()] {
                    Some(window) => window.widen(low),
                    None => u64::from(low),
                },
            },
            Told::Whole(number) => number,
        }
    }

    /// Opens octets that were sealed under the number that was told of, in the wire of these keys. Tells whether it is
    /// the newest so far of its place.
    pub(super) fn open(
        &mut self,
        told: Told,
        sealed: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Unopened> {
        let number = self.number_of(told);
        let window = &mut self.windows[number.slot.index()];
        if window
            .as_ref()
            .is_some_and(|window| !window.is_new(number.counter))
        {
            return Err(Unopened::Replayed);
        }
        if self.forged >= FORGED_MAX {
            return Err(Unopened::Forged);
        }
        if !self.cipher.open(number, sealed, out) {
            self.forged += 1;
            return Err(Unopened::Forged);
        }
        let window = window.get_or_insert_default();
        let newest = window.is_newest(number.counter);
        window.mark(number.counter);
        Ok(newest)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cipher::Suite;
    use super::*;

    /// The two ends of one handshake that agreed on wire 1.
    fn ends(suite: Suite) -> [Keypair; 2] {
        ends_of(suite, Wire::One)
    }

    fn ends_of(suite: Suite, wire: Wire) -> [Keypair; 2] {
        let key = [[1; 32], [2; 32]];
        let cipher = |ours: &[u8; 32], theirs: &[u8; 32]| Cipher::aead(suite, ours, theirs);
        [cipher(&key[0], &key[1]), cipher(&key[1], &key[0])].map(|cipher| {
            let cipher = cipher.expect("keys of the right length");
            let agreed = Agreed { cipher, wire };
            Keypair::new(agreed, 1, 2, Instant::START, true)
        })
    }

    /// Seals `len` octets, if that may be.
    fn sealed(keys: &mut Keypair, len: usize) -> Option<Vec<u8>> {
        sealed_in(keys, PathSlot::FIRST, len).map(|(_, octets)| octets)
    }

    fn sealed_in(keys: &mut Keypair, slot: PathSlot, len: usize) -> Option<(Number, Vec<u8>)> {
        let number = keys.next_number(slot)?;
        let mut octets = vec![7; len];
        keys.seal(number, 0, &mut octets)
            .then_some((number, octets))
    }

    #[test]
    fn aes_seals_up_to_its_bound_and_not_one_block_more() {
        let [mut here, mut there] = ends(Suite::Aes256Gcm);
        let max = 1 << 35;
        assert!(sealed(&mut here, 32).is_some());
        assert_eq!(here.blocks, 3, "two of content, one of the tag");
        // Near the bound, which would take days to reach by sealing.
        here.blocks = max - 2 * blocks_of(32);
        assert!(here.is_worn() && !here.is_spent());
        let last = [sealed(&mut here, 32), sealed(&mut here, 32)];
        let last = last.map(|octets| octets.expect("within the bound"));
        assert_eq!(here.blocks, max, "at the bound");
        for _ in 0..3 {
            assert_eq!(sealed(&mut here, 0), None, "past the bound");
        }
        assert!(here.is_spent());
        // What was sealed before opens, and what the peer seals, too.
        let mut out = Vec::new();
        for (counter, octets) in (1..).zip(&last) {
            assert_eq!(there.open(Told::Low(counter), octets, &mut out), Ok(true));
        }
        let answer = sealed(&mut there, 32).expect("the peer has sealed little");
        assert_eq!(here.open(Told::Low(0), &answer, &mut out), Ok(true));
    }

    #[test]
    fn a_datagram_that_crosses_the_bound_is_not_sealed() {
        let [mut here, _] = ends(Suite::Aes256Gcm);
        here.blocks = (1 << 35) - blocks_of(32);
        assert_eq!(sealed(&mut here, 33), None);
        assert!(here.is_spent(), "its counter is gone, so the keys are, too");
        let [mut chacha, _] = ends(Suite::ChaCha20Poly1305);
        chacha.blocks = 1 << 40;
        assert!(sealed(&mut chacha, 33).is_some());
    }

    #[test]
    fn after_too_many_forgeries_nothing_opens_any_more() {
        for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
            let [mut here, mut there] = ends(suite);
            let genuine = [sealed(&mut here, 8), sealed(&mut here, 8)];
            let genuine = genuine.map(|octets| octets.expect("keys are fresh"));
            let mut out = Vec::new();
            there.forged = FORGED_MAX - 1;
            assert_eq!(there.open(Told::Low(0), &genuine[0], &mut out), Ok(true));
            assert_eq!(
                there.open(Told::Low(1), &[0; 24], &mut out),
                Err(Unopened::Forged)
            );
            assert_eq!(
                there.open(Told::Low(1), &genuine[1], &mut out),
                Err(Unopened::Forged)
            );
        }
    }

    fn slots() -> impl Iterator<Item = PathSlot> {
        (0..8).map(PathSlot::of_bits)
    }

    #[test]
    fn each_place_counts_for_itself_and_takes_each_counter_once() {
        for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
            let [mut here, mut there] = ends_of(suite, Wire::Two);
            let mut left = Vec::new();
            for round in 0..100 {
                for slot in slots().filter(|slot| round % (slot.bits() + 1) == 0) {
                    left.push(sealed_in(&mut here, slot, 40).expect("keys are fresh"));
                }
            }
            let mut numbers: Vec<_> = (left.iter())
                .map(|(number, _)| (number.slot.bits(), number.counter))
                .collect();
            numbers.sort_unstable();
            for slot in slots() {
                let counters = numbers.iter().filter(|(of, _)| *of == slot.bits());
                assert!(
                    counters
                        .map(|(_, counter)| *counter)
                        .eq(0..here.sealed[slot.index()])
                );
            }
            assert_eq!(here.sealed_in_all, left.len() as u64);
            let mut out = Vec::new();
            // The newest first: those behind it are still taken.
            left.reverse();
            for (number, octets) in &left {
                let newest = number.counter + 1 == here.sealed[number.slot.index()];
                let told = Told::Whole(*number);
                assert_eq!(there.open(told, octets, &mut out), Ok(newest), "{number:?}");
                assert_eq!(there.open(told, octets, &mut out), Err(Unopened::Replayed));
            }
            assert_eq!(there.used(), left.len() as u64);
        }
    }

    #[test]
    fn what_was_sealed_for_one_place_opens_in_no_other_and_marks_none() {
        for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
            let [mut here, mut there] = ends_of(suite, Wire::Two);
            let mut out = Vec::new();
            for slot in slots() {
                let (number, octets) = sealed_in(&mut here, slot, 40).expect("keys are fresh");
                for other in slots().filter(|other| *other != slot) {
                    let told = Told::Whole(Number {
                        slot: other,
                        ..number
                    });
                    let opened = there.open(told, &octets, &mut out);
                    let is_seen = other.bits() < slot.bits();
                    let expected = if is_seen {
                        Unopened::Replayed
                    } else {
                        Unopened::Forged
                    };
                    assert_eq!(opened, Err(expected));
                }
                assert_eq!(there.open(Told::Whole(number), &octets, &mut out), Ok(true));
            }
        }
    }

    #[test]
    fn whole_counters_are_not_widened() {
        let [mut here, mut there] = ends_of(Suite::ChaCha20Poly1305, Wire::Two);
        here.sealed[0] = 50_000;
        let mut out = Vec::new();
        let (late, octets) = sealed_in(&mut here, PathSlot::FIRST, 1).expect("keys are fresh");
        assert_eq!(there.open(Told::Whole(late), &octets, &mut out), Ok(true));
        let old = Told::Whole(Number { counter: 7, ..late });
        assert_eq!(there.open(old, &octets, &mut out), Err(Unopened::Replayed));
    }

    #[test]
    fn keys_of_wire_2_are_renewed_and_end_before_24_bits_are_used_up_whatever_the_places() {
        let [mut here, _] = ends_of(Suite::ChaCha20Poly1305, Wire::Two);
        assert_eq!(here.renew_datagrams(), 1 << 22);
        let max = (1 << 23) - (1 << 16);
        here.stop_after(u64::MAX);
        // Sealed in two places, which sealing would take long to reach.
        here.sealed[3] = max - 2;
        here.sealed_in_all = max - 2;
        assert!(!here.is_spent());
        for slot in slots().take(2) {
            assert!(here.next_number(slot).is_some());
        }
        assert!(here.is_spent());
        for slot in slots() {
            assert_eq!(here.next_number(slot), None);
        }
        assert!(max < 1 << 24);
        here.stop_after(300);
        assert!(here.is_spent(), "the policy may say less, and never more");
        let [one, _] = ends(Suite::Aes256Gcm);
        assert_eq!(one.renew_datagrams(), 1 << 24, "the cipher's own");
    }

    #[test]
    fn a_number_was_sent_lately_if_it_is_one_of_those_that_left_in_its_place() {
        let number = |bits, counter| {
            Told::Whole(Number {
                slot: PathSlot::of_bits(bits),
                counter,
            })
        };
        let [mut two, _] = ends_of(Suite::ChaCha20Poly1305, Wire::Two);
        assert!(!two.has_sent(number(0, 0)), "nothing was sent");
        two.sealed[5] = 2_000_000;
        for (counter, sent) in [
            (1_999_999, true),
            (2_000_000, false),
            (2_000_000 - LATELY, true),
            (2_000_000 - LATELY - 1, false),
            (0, false),
        ] {
            assert_eq!(two.has_sent(number(5, counter)), sent, "{counter}");
            assert!(!two.has_sent(number(4, counter)), "another place");
        }
        assert!(!two.has_sent(Told::Low(1_999_999)), "another wire");
        let [mut one, _] = ends(Suite::ChaCha20Poly1305);
        one.sealed[0] = (1 << 32) + 5;
        for (low, sent) in [(4, true), (u32::MAX, true), (5, false)] {
            assert_eq!(one.has_sent(Told::Low(low)), sent, "{low}");
            assert!(!one.has_sent(number(0, low.into())), "another wire");
        }
        one.sealed[0] = 5;
        assert!(!one.has_sent(Told::Low(u32::MAX)), "before the first");
    }
}
