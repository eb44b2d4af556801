//! A window of message numbers that shows which messages came before.

/// Messages behind the newest that are told apart.
const WINDOW: u32 = 1_024;
const WORD: u32 = 64;
/// The bound on a first number, since a sender counts from 0. A first number below it means that those
/// before it were lost; a higher one means that this end came later.
const FIRST_MAX: u32 = 32;
/// The largest gap that loss can make; only a peer that misbehaves makes a larger one.
const LEAP_MAX: u32 = 1 << 20;

#[derive(Debug)]
pub(super) struct Seen {
    newest: Option<u32>,
    words: [u64; (WINDOW / WORD) as usize],
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            newest: None,
            words: [0; (WINDOW / WORD) as usize],
        }
    }
}

impl Seen {
    fn place(number: u32) -> (usize, u64) {
        let index = number % WINDOW;
        ((index / WORD) as usize, 1 << (index % WORD))
    }

    /// Whether `number` came before, or is so old that it must count as such.
    pub(super) fn contains(&self, number: u32) -> bool {
        let Some(newest) = self.newest else {
            return false;
        };
        let behind = newest.wrapping_sub(number);
        if behind >= 1 << 31 {
            return false;
        }
        let (word, bit) = Self::place(number);
        behind >= WINDOW || self.words[word] & bit != 0
    }

    /// Notes that `number` came. Returns how many numbers have passed with it, itself included.
    pub(super) fn insert(&mut self, number: u32) -> u32 {
        let ahead = self.newest.map_or(1, |newest| number.wrapping_sub(newest));
        let first = self.newest.is_none() && number < FIRST_MAX;
        if ahead < 1 << 31 {
            for step in 0..ahead.min(WINDOW) {
                let (word, bit) = Self::place(number.wrapping_sub(step));
                self.words[word] &= !bit;
            }
            self.newest = Some(number);
        } else if ahead.wrapping_neg() >= WINDOW {
            // Another number has its place by now.
            return 0;
        }
        let (word, bit) = Self::place(number);
        self.words[word] |= bit;
        match ahead {
            _ if first => number + 1,
            0..=LEAP_MAX => ahead,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_new_once_across_the_wrap() {
        let mut seen = Seen::default();
        let start = u32::MAX - 2_000;
        for i in 0..5_000 {
            let number = start.wrapping_add(i);
            assert!(!seen.contains(number));
            seen.insert(number);
            assert!(seen.contains(number));
            assert!(seen.contains(number.wrapping_sub(i.min(1_023))));
        }
    }

    #[test]
    fn each_number_is_passed_once_lost_or_not() {
        for (numbers, passed) in [
            (&[0, 1, 2][..], 3),
            (&[2, 5, 3, 4, 9], 10),
            (&[31], 32),
            // The messages before 32 were reported by somebody else.
            (&[32, 34], 3),
            (&[u32::MAX, 1], 3),
        ] {
            let mut seen = Seen::default();
            let sum: u32 = numbers.iter().map(|number| seen.insert(*number)).sum();
            assert_eq!(sum, passed, "{numbers:?}");
        }
        let mut seen = Seen::default();
        seen.insert(0);
        assert_eq!(seen.insert(1 << 30), 0, "no sender is so fast");
    }

    #[test]
    fn a_gap_leaves_its_numbers_new_and_what_is_far_behind_is_old() {
        let mut seen = Seen::default();
        seen.insert(10);
        seen.insert(1_500);
        for number in [477, 900, 1_499, 1_501] {
            assert!(!seen.contains(number), "{number}");
        }
        assert!(seen.contains(476), "out of the window");
        assert!(seen.contains(10));
        seen.insert(900);
        assert!(seen.contains(900) && !seen.contains(901));
        assert_eq!(seen.insert(1_000_000), 998_500);
        assert!(!seen.contains(999_999));
        // A message that was given up arrives long after.
        seen.insert(1_000_000 - 1_100);
        assert!(!seen.contains(1_000_000 - 1_100 + 1_024));
    }
}
