//! The packet counters that were seen: each is accepted once, in any order within a window.
//!
//! The window is wide enough for 100 ms of reordering at 1 gbit/s in 1500-octet packets. Source of
//! the ring of words: RFC 6479.

/// Counters behind the newest one that may still arrive.
pub(super) const WINDOW: u64 = 8_192;

const WORD_BITS: u64 = 64;
/// One word more than the window, so that the word being cleared never holds live bits.
const WORDS: u16 = 129;
const _: () = assert!(WORDS as u64 == WINDOW / WORD_BITS + 1);

/// The counters of one key that have arrived.
#[derive(Clone, Debug)]
pub(crate) struct ReplayWindow {
    /// One past the newest counter.
    next: u64,
    words: Box<[u64; WORDS as usize]>,
}

impl Default for ReplayWindow {
    fn default() -> Self {
        Self {
            next: 0,
            words: Box::new([0; WORDS as usize]),
        }
    }
}

impl ReplayWindow {
    /// The full counter whose low 32 bits are `low`: the candidate nearest to the next one expected
    /// (RFC 9000, appendix A.3).
    pub(super) fn widen(&self, low: u32) -> u64 {
        const SPAN: u64 = 1 << 32;
        let candidate = (self.next & !(SPAN - 1)) | u64::from(low);
        if self.next.saturating_sub(candidate) >= SPAN / 2 {
            candidate.saturating_add(SPAN)
        } else if candidate > self.next.saturating_add(SPAN / 2) && candidate >= SPAN {
            candidate - SPAN
        } else {
            candidate
        }
    }

    /// Whether `counter` is new.
    pub(crate) fn is_new(&self, counter: u64) -> bool {
        if counter >= self.next {
            return true;
        }
        self.next - counter <= WINDOW && !self.has(counter)
    }

    /// One past the newest counter.
    pub(crate) const fn newest(&self) -> u64 {
        self.next
    }

    /// Whether `counter` arrived, if it is not older than the window.
    pub(super) fn has_seen(&self, counter: u64) -> bool {
        counter < self.next && self.next - counter <= WINDOW && self.has(counter)
    }

    /// Whether `counter` would be the newest.
    pub(super) const fn is_newest(&self, counter: u64) -> bool {
        counter >= self.next
    }

    /// Notes an authenticated `counter`.
    pub(crate) fn mark(&mut self, counter: u64) {
        if counter >= self.next {
            let first = self.next / WORD_BITS;
            let last = counter / WORD_BITS;
            // The word that `next` points into may hold live bits, unless it is yet untouched.
            let from = if self.next.is_multiple_of(WORD_BITS) {
                first
            } else {
                first + 1
            };
            for word in from..=last.min(from.saturating_add(u64::from(WORDS))) {
                if let Some(slot) = self.words.get_mut(Self::slot(word)) {
                    *slot = 0;
                }
            }
            self.next = counter.saturating_add(1);
        }
        if let Some(slot) = self.words.get_mut(Self::slot(counter / WORD_BITS)) {
            *slot |= 1 << (counter % WORD_BITS);
        }
    }

    fn slot(word: u64) -> usize {
        usize::try_from(word % u64::from(WORDS)).unwrap_or(0)
    }

    fn has(&self, counter: u64) -> bool {
        self.words
            .get(Self::slot(counter / WORD_BITS))
            .is_some_and(|word| word >> (counter % WORD_BITS) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_window_ends_exactly_where_it_says() {
        let mut window = ReplayWindow::default();
        window.mark(WINDOW + 10);
        assert!(window.is_new(11), "the oldest inside");
        assert!(!window.is_new(10), "one past it");
        assert!(!window.is_new(WINDOW + 10));
        window.mark(11);
        assert!(!window.is_new(11));
    }

    #[test]
    fn counters_widen_to_the_nearest_candidate() {
        let mut window = ReplayWindow::default();
        assert_eq!(window.widen(5), 5);
        assert_eq!(window.widen(u32::MAX), u64::from(u32::MAX));
        window.mark((1 << 32) - 2);
        assert_eq!(window.widen(3), (1 << 32) + 3);
        assert_eq!(window.widen(u32::MAX - 7), (1 << 32) - 8);
        window.mark((7 << 32) + 1);
        assert_eq!(window.widen(u32::MAX), (7 << 32) - 1);
        assert_eq!(window.widen(9), (7 << 32) + 9);
        window.mark(u64::MAX - 1);
        assert_eq!(window.widen(u32::MAX), u64::MAX);
    }

    proptest! {
        #[test]
        fn a_counter_is_new_exactly_once(
            steps in proptest::collection::vec((0_u64..3, 0_u64..20_000), 1..300),
        ) {
            let mut window = ReplayWindow::default();
            let mut seen = BTreeSet::new();
            let mut newest = 0;
            for (how, by) in steps {
                let counter = match how {
                    0 => newest + by % 70,
                    1 => newest + by,
                    _ => newest.saturating_sub(by),
                };
                let within = newest.saturating_sub(counter) < WINDOW;
                let expected = !seen.contains(&counter) && within;
                prop_assert_eq!(window.is_new(counter), expected, "{} at {}", counter, newest);
                if expected {
                    window.mark(counter);
                    seen.insert(counter);
                    newest = newest.max(counter);
                }
            }
        }
    }
}
