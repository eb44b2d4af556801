//! Losses by cause in a report: as a sender finds them on its own way, told to its receiver.

use crate::damage::CAUSES;

/// The row's class, which no flow has.
pub(super) const LOSSES_ROW: u8 = 255;
/// Octets behind the row's class.
const BYTES: usize = 24;
/// A share of all.
const ALL: f64 = 255.0;

/// The share of a cause and its interval, in parts of 255.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToldShare {
    /// The likeliest share.
    pub share: u8,
    /// The lower end of its interval.
    pub low: u8,
    /// The upper end.
    pub high: u8,
}

/// The losses of streams by cause that their sender tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToldLosses {
    /// Packets whose fate is known.
    pub sent: u32,
    /// Those that were lost or damaged beyond repair.
    pub lost: u32,
    /// The causes, in the order of [`LossCause::ALL`](crate::damage::LossCause::ALL).
    pub shares: [ToldShare; CAUSES],
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to 255"
)]
fn part(ratio: f64) -> u8 {
    (ratio.clamp(0.0, 1.0) * ALL).round() as u8
}

impl ToldShare {
    /// The parts of these ratios, the likeliest, the lowest and the highest.
    pub fn of([share, low, high]: [f64; 3]) -> Self {
        let [share, low, high] = [share, low, high].map(part);
        Self { share, low, high }
    }

    /// The ratios.
    pub fn ratios(self) -> [f64; 3] {
        [self.share, self.low, self.high].map(|part| f64::from(part) / ALL)
    }
}

impl ToldLosses {
    /// Appends the row, its class included.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(LOSSES_ROW);
        out.extend_from_slice(&self.sent.to_be_bytes());
        out.extend_from_slice(&self.lost.to_be_bytes());
        for share in self.shares {
            out.extend_from_slice(&[share.share, share.low, share.high]);
        }
        out.push(0);
    }

    /// Reads what is behind the row's class; `None` if it ends in the middle.
    pub(super) fn decode(octets: &mut &[u8]) -> Option<Self> {
        let (row, rest) = octets.split_first_chunk::<BYTES>()?;
        *octets = rest;
        let (numbers, shares) = row.split_at(8);
        let (sent, lost) = numbers.split_first_chunk()?;
        let mut told = Self {
            sent: u32::from_be_bytes(*sent),
            lost: u32::from_be_bytes(*lost.first_chunk()?),
            ..Self::default()
        };
        for (told, parts) in told.shares.iter_mut().zip(shares.as_chunks().0) {
            let [share, low, high] = *parts;
            *told = ToldShare { share, low, high };
        }
        Some(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_these_octets_and_reads_back() {
        let mut told = ToldLosses {
            sent: 258,
            lost: 7,
            ..ToldLosses::default()
        };
        told.shares[0] = ToldShare::of([0.5, 0.25, 1.0]);
        told.shares[4] = ToldShare::of([0.2, -0.1, 2.0]);
        let mut octets = Vec::new();
        told.encode(&mut octets);
        let golden = [
            &[255, 0, 0, 1, 2, 0, 0, 0, 7][..],
            &[128, 64, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 51, 0, 255, 0],
        ];
        assert_eq!(octets, golden.concat());
        let mut rest = &octets[1..];
        assert_eq!(ToldLosses::decode(&mut rest), Some(told));
        assert!(rest.is_empty());
        assert_eq!(ToldLosses::decode(&mut &octets[2..]), None);
        let [share, low, high] = told.shares[0].ratios();
        assert!((share - 0.5).abs() < 0.002 && (low - 0.25).abs() < 0.002 && high >= 1.0);
    }
}
