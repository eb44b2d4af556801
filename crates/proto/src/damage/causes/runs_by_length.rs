//! Losses in a row, apart for times with packets of different lengths.
//!
//! Where wrong bits take packets, the loss follows the length, and the length changes on the way: the loss of one time and that of
//! another, taken together, would look like a link that is good and bad by turns.

use super::runs::{Link, Runs};
use crate::damage::loss_by_length::class_of;

/// The packets, the longest of which says which time it is: one in eight is short.
const LOOK: usize = 16;
/// Classes of lengths that are one time: half an octave.
const CLASSES_OF_TIME: usize = 2;

/// The longest of the last packets.
#[derive(Clone, Debug, Default)]
pub(super) struct LongestLately {
    classes: [usize; LOOK],
    next: usize,
}

impl LongestLately {
    /// Takes a packet, in the order of sending.
    pub(super) fn note(&mut self, octets: usize) {
        self.classes[self.next] = class_of(octets);
        self.next = (self.next + 1) % LOOK;
    }

    /// The time, by the length of its packets.
    pub(super) fn time(&self) -> TimeOfLength {
        TimeOfLength(
            self.classes
                .iter()
                .max()
                .map_or(0, |class| class / CLASSES_OF_TIME),
        )
    }
}

/// A time in which packets are of about one length, but for some short ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeOfLength(usize);

/// The links of the times.
pub(super) type Links = Vec<(TimeOfLength, Link)>;

/// Runs of lost packets of each time.
#[derive(Clone, Debug, Default)]
pub(super) struct RunsByLength(Vec<(TimeOfLength, Runs)>);

impl RunsByLength {
    fn of(&mut self, time: TimeOfLength) -> &mut Runs {
        let place = self.0.iter().position(|(one, _)| *one == time);
        let place = place.unwrap_or_else(|| {
            self.0.push((time, Runs::default()));
            self.0.len() - 1
        });
        &mut self.0[place].1
    }

    /// Counts a packet that arrived.
    pub(super) fn note_arrived(&mut self, time: TimeOfLength) {
        self.of(time).arrived += 1.0;
    }

    /// Counts so many lost ones in a row.
    pub(super) fn note(&mut self, time: TimeOfLength, length: usize) {
        self.of(time).note(length);
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (time, runs) in &other.0 {
            self.of(*time).add(runs);
        }
    }

    /// Packets that arrived.
    pub(super) fn arrived(&self) -> f64 {
        self.0.iter().map(|(_, runs)| runs.arrived).sum()
    }

    /// Lost packets.
    pub(super) fn lost(&self) -> f64 {
        self.0.iter().map(|(_, runs)| runs.lost()).sum()
    }

    /// The lost packets that are expected to belong to bursts, and the links that were found: a search that begins with them
    /// is shorter.
    pub(super) fn in_bursts(&self, begin: &Links) -> (f64, Links) {
        let mut links = Links::new();
        let mut sum = 0.0;
        for (time, runs) in &self.0 {
            let known = begin.iter().find(|(one, _)| one == time);
            let (in_bursts, link) = runs.in_bursts(known.map(|(_, link)| *link));
            sum += in_bursts;
            links.extend(link.map(|link| (*time, link)));
        }
        (sum, links)
    }
}
