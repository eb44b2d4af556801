//! The way from the numbers of packets that came to the packets that did not.
//!
//! Numbers wrap around, packets overtake each other, come twice, come too late, and senders start
//! again. A packet within `window` numbers of the highest still counts as received; a later one
//! counts as lost, as for any receiver that does not wait for ever. A jump that no wrap-around
//! explains is a restart if the next packet continues from it (RFC 3550, A.1, has the same test),
//! and a stray otherwise.
//!
//! Lost packets have no time of arrival. They get times evenly between those of the packets around
//! them, which is right for a sender of constant rate.

use crate::losses::Losses;
use std::collections::VecDeque;

/// Options for reading numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceOptions {
    /// Numbers have this many bits and begin again at 0; none if they do not wrap.
    pub bits: Option<u32>,
    /// A packet at most so many numbers behind the highest still counts as received.
    pub window: u32,
}

impl SequenceOptions {
    /// The usual window: a receiver with a second's buffer waits so long at a thousand packets a
    /// second.
    pub const WINDOW: u32 = 1000;
    /// The greatest window.
    pub const WINDOW_MAX: u32 = 16_384;
}

impl Default for SequenceOptions {
    fn default() -> Self {
        Self {
            bits: None,
            window: Self::WINDOW,
        }
    }
}

/// The greatest jump, where numbers do not wrap: more packets lost in a row mean another sender.
const JUMP_MAX: i128 = 1_000_000;

#[derive(Clone, Copy, Debug)]
struct Slot {
    came: bool,
    time: Option<f64>,
}

/// Reads numbers in the order of arrival.
#[derive(Clone, Debug)]
pub struct Tracker {
    options: SequenceOptions,
    losses: Losses,
    /// The packets that may still come, from `base` on, in extended numbers.
    slots: VecDeque<Slot>,
    base: i128,
    /// The first packet behind a jump, kept until the next one shows whether it was a restart.
    doubtful: Option<(u64, Option<f64>)>,
    /// Lost packets that wait for the time of the next one that came.
    unplaced: u64,
    /// The time of the last packet that came.
    placed: Option<f64>,
    received: u64,
}

impl Tracker {
    /// A reader of numbers.
    pub fn new(options: SequenceOptions) -> Self {
        Self {
            options,
            losses: Losses::default(),
            slots: VecDeque::new(),
            base: 0,
            doubtful: None,
            unplaced: 0,
            placed: None,
            received: 0,
        }
    }

    /// Counts the packets that came so far.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Takes the next packet that came: its number and, in seconds, its time.
    ///
    /// # Errors
    /// There are more packets than can be kept.
    pub fn feed(&mut self, number: u64, time: Option<f64>) -> Result<(), String> {
        if self.slots.is_empty() {
            self.begin(number, time);
            return Ok(());
        }
        if let Some((before, at)) = self.doubtful.take()
            && self.difference(before, number) == 1
        {
            self.losses.counts.strays -= 1;
            self.losses.counts.restarts += 1;
            self.flush()?;
            self.losses.break_off();
            self.placed = None;
            self.begin(before, at);
        }
        let highest = self.base + self.slots.len() as i128 - 1;
        let ahead = self.difference(self.short(highest), number);
        let reach = self
            .options
            .bits
            .map_or(JUMP_MAX, |bits| (1 << (bits - 1)) - 1);
        let window = i128::from(self.options.window);
        if ahead > reach.min(JUMP_MAX) || ahead < -reach.min(JUMP_MAX) {
            // A number that far back is a restart as well, not a very late packet.
            self.losses.counts.strays += 1;
            self.doubtful = Some((number, time));
            return Ok(());
        }
        let index = highest + ahead - self.base;
        match usize::try_from(index) {
            Ok(index) if index < self.slots.len() => {
                let slot = &mut self.slots[index];
                if slot.came {
                    self.losses.counts.duplicates += 1;
                } else {
                    *slot = Slot { came: true, time };
                    self.received += 1;
                    self.losses.counts.reordered += 1;
                }
            }
            Ok(_) => {
                for _ in 1..ahead {
                    self.slots.push_back(Slot {
                        came: false,
                        time: None,
                    });
                    self.shrink(window)?;
                }
                self.slots.push_back(Slot { came: true, time });
                self.received += 1;
                self.shrink(window)?;
            }
            // Behind the window: whether it was lost or is a duplicate cannot be told any more.
            Err(_) if -ahead > window => {
                self.losses.counts.late += 1;
                if -ahead > 2 * window {
                    self.doubtful = Some((number, time));
                    self.losses.counts.late -= 1;
                    self.losses.counts.strays += 1;
                }
            }
            // Before the very first packet, within the window: the recording begins earlier.
            Err(_) => {
                if self.losses.packets().is_empty() {
                    for _ in 1..-index {
                        self.slots.push_front(Slot {
                            came: false,
                            time: None,
                        });
                    }
                    self.slots.push_front(Slot { came: true, time });
                    self.base += index;
                    self.received += 1;
                    self.losses.counts.reordered += 1;
                } else {
                    self.losses.counts.late += 1;
                }
            }
        }
        Ok(())
    }

    /// The losses, when no more packets come.
    ///
    /// # Errors
    /// There are more packets than can be kept.
    pub fn finish(mut self) -> Result<Losses, String> {
        self.flush()?;
        Ok(self.losses)
    }

    fn begin(&mut self, number: u64, time: Option<f64>) {
        self.base = i128::from(number);
        self.slots.clear();
        self.slots.push_back(Slot { came: true, time });
        self.received += 1;
    }

    /// The number on the wire for an extended number.
    fn short(&self, extended: i128) -> u64 {
        let short = match self.options.bits {
            Some(bits) => extended.rem_euclid(1 << bits),
            None => extended,
        };
        u64::try_from(short).unwrap_or_default()
    }

    /// The distance from `from` to `to`; the shorter way round if numbers wrap.
    fn difference(&self, from: u64, to: u64) -> i128 {
        let plain = i128::from(to) - i128::from(from);
        match self.options.bits {
            Some(bits) => {
                let (whole, half) = (1_i128 << bits, 1_i128 << (bits - 1));
                (plain + half).rem_euclid(whole) - half
            }
            None => plain,
        }
    }

    /// Settles the packets behind the window.
    fn shrink(&mut self, window: i128) -> Result<(), String> {
        while self.slots.len() as i128 > window {
            self.settle()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), String> {
        while !self.slots.is_empty() {
            self.settle()?;
        }
        Ok(())
    }

    /// Settles the oldest packet. A lost packet waits for the next one that came, to be given a
    /// time.
    fn settle(&mut self) -> Result<(), String> {
        let Some(slot) = self.slots.pop_front() else {
            return Ok(());
        };
        self.base += 1;
        if !slot.came {
            self.unplaced += 1;
            return Ok(());
        }
        let gap = self.unplaced + 1;
        for index in 1..gap {
            let time = slot.time.zip(self.placed).map(|(time, before)| {
                before + (time - before).max(0.0) * index as f64 / gap as f64
            });
            self.losses.push(true, time)?;
        }
        self.losses.push(false, slot.time)?;
        self.unplaced = 0;
        self.placed = slot.time;
        Ok(())
    }
}
