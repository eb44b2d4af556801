//! Loss by the fates of recorded packets, which stand in the scenario itself.
//!
//! The text is a row of runs: `31+1 5+2` is 31 packets that arrived and one that was lost, then five and two. Behind the last
//! packet the first comes again.

use crate::replay::{AtEnd, LossTrace, PacketTrace, Replay};
use core::fmt;
use fulmar_proto::units::PacketErrorRate;
use std::sync::Arc;

/// The fates of recorded packets in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Fates {
    trace: Arc<LossTrace>,
    /// Whether each run begins at a place drawn from its seed.
    pub is_shifted: bool,
}

impl Fates {
    /// The most packets of a row.
    pub const PACKETS_MAX: usize = 1 << 20;

    /// A row of packets, each lost or not, from whose beginning every run begins; none if it is empty or longer than
    /// [`Fates::PACKETS_MAX`].
    pub fn of(lost: impl IntoIterator<Item = bool>) -> Option<Self> {
        let mut packets = PacketTrace::default();
        for lost in lost.into_iter().take(Self::PACKETS_MAX + 1) {
            packets.push(lost).ok()?;
        }
        if packets.is_empty() || packets.len() > Self::PACKETS_MAX {
            return None;
        }
        Some(Self {
            trace: Arc::new(LossTrace::Packets(packets)),
            is_shifted: false,
        })
    }

    /// The row that a text has; none if it has no runs, or more packets than [`Fates::PACKETS_MAX`].
    pub(crate) fn read(words: &[&str]) -> Option<Self> {
        let (words, is_shifted) = match words {
            [words @ .., "shifted"] => (words, true),
            words => (words, false),
        };
        let mut runs = Vec::with_capacity(words.len());
        let mut left = Self::PACKETS_MAX;
        for word in words {
            let (arrived, lost) = word.split_once('+')?;
            let run: (usize, usize) = (arrived.parse().ok()?, lost.parse().ok()?);
            // Refused before anything is made of it.
            left = left.checked_sub(run.0)?.checked_sub(run.1)?;
            runs.push(run);
        }
        let fates = runs.into_iter().flat_map(|(arrived, lost)| {
            core::iter::repeat_n(false, arrived).chain(core::iter::repeat_n(true, lost))
        });
        let row = Self::of(fates)?;
        Some(Self { is_shifted, ..row })
    }

    /// The share of them that is lost.
    pub fn mean_loss(&self) -> PacketErrorRate {
        self.trace.mean_loss()
    }

    /// The same as a trace that begins again and again.
    pub(crate) fn replay(&self) -> Replay {
        Replay {
            name: "of fates".to_owned(),
            at_end: if self.is_shifted {
                AtEnd::LoopShifted
            } else {
                AtEnd::Loop
            },
            trace: Some(Arc::clone(&self.trace)),
        }
    }

    /// Whether this packet is lost; none behind the last.
    fn fate(&self, index: usize) -> Option<bool> {
        match self.trace.as_ref() {
            LossTrace::Packets(packets) => packets.get(index),
            LossTrace::Time(_) => None,
        }
    }

    /// The lengths of its runs: so many that arrived, and so many behind them that were lost.
    fn runs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let mut index = 0;
        let count = move |index: &mut usize, lost: bool| {
            let first = *index;
            while self.fate(*index) == Some(lost) {
                *index += 1;
            }
            *index - first
        };
        core::iter::from_fn(move || {
            let run = (count(&mut index, false), count(&mut index, true));
            (run != (0, 0)).then_some(run)
        })
    }
}

impl fmt::Display for Fates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (arrived, lost)) in self.runs().enumerate() {
            let gap = if place == 0 { "" } else { " " };
            write!(f, "{gap}{arrived}+{lost}")?;
        }
        if self.is_shifted {
            f.write_str(" shifted")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Fates> {
        Fates::read(&text.split_whitespace().collect::<Vec<_>>())
    }

    #[test]
    fn a_row_is_read_as_it_is_written() {
        for text in ["31+1 5+2 40+0", "0+3", "7+0 shifted", "0+1 2+2 shifted"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        let fates = read("3+1  0+1 4+0 ").unwrap();
        assert_eq!(fates.to_string(), "3+2 4+0");
        assert!((fates.mean_loss().value() - 2.0 / 9.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_row_or_longer_than_its_bound_is_refused() {
        let most = Fates::PACKETS_MAX;
        assert!(read(&format!("{}+1", most - 1)).is_some());
        let (one_more, endless) = (format!("{most}+1"), format!("{0}+{0}", usize::MAX));
        for text in [
            "",
            "shifted",
            "3",
            "3+",
            "-1+2",
            "0+0",
            "3+1 shifted 4+0",
            &one_more,
            &endless,
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
