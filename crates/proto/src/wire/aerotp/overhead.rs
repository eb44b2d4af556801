//! The size of a TPDU's parts, and the octets left for the application.

use crate::units::FecStrength;

/// Octets of the header, HEC included.
pub const HEADER_BYTES: usize = 16;
/// Octets of the payload check.
pub const CRC_BYTES: usize = 4;
/// Octets of one descriptor word.
pub const DESCRIPTOR_BYTES: usize = 4;
/// Further numbers a listed MACK or a NACK may carry: (1500 - 20 network - 20 AeroTP) / 4
/// (AeroTP hybrid ARQ, Section IV-E: "up to 365").
pub const LISTED_NUMBERS_MAX: usize = 365;
/// Numbers a cumulative MACK may carry: one fewer, for the receiver word.
pub const CUMULATIVE_NUMBERS_MAX: usize = LISTED_NUMBERS_MAX - 1;
/// Numbers whose place a report on the path takes.
pub const REPORT_NUMBERS: usize = 2;

/// Numbers whose place a word on the channel takes.
pub const CHANNEL_NUMBERS: usize = 1;

/// The body octets that fit a TPDU of `tpdu_bytes` (without the network header): zero if none do.
/// FEC brings the CRC-32 with it, asked for or not.
pub fn payload_max(tpdu_bytes: usize, fec: FecStrength, crc: bool, block: bool) -> usize {
    let mut taken = HEADER_BYTES + fec.parity_bytes();
    if !fec.is_none() {
        taken += DESCRIPTOR_BYTES;
    }
    if crc || !fec.is_none() {
        taken += CRC_BYTES;
    }
    if block {
        taken += DESCRIPTOR_BYTES;
    }
    tpdu_bytes.saturating_sub(taken)
}

/// The further numbers of a listed MACK or a NACK that fit a TPDU of `tpdu_bytes`.
pub fn listed_numbers_max(tpdu_bytes: usize, fec: FecStrength, crc: bool) -> usize {
    (payload_max(tpdu_bytes, fec, crc, false) / 4).min(LISTED_NUMBERS_MAX)
}

/// The numbers of a cumulative MACK that fit a TPDU of `tpdu_bytes`.
pub fn cumulative_numbers_max(tpdu_bytes: usize, fec: FecStrength, crc: bool) -> usize {
    (payload_max(tpdu_bytes, fec, crc, false) / 4)
        .saturating_sub(1)
        .min(CUMULATIVE_NUMBERS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_1500_octet_packet_carries_the_papers_amounts() {
        let tpdu_bytes = 1500 - 20;
        assert_eq!(
            payload_max(tpdu_bytes, FecStrength::NONE, true, false),
            1460
        );
        assert_eq!(
            listed_numbers_max(tpdu_bytes, FecStrength::NONE, true),
            LISTED_NUMBERS_MAX
        );
        assert_eq!(
            cumulative_numbers_max(tpdu_bytes, FecStrength::NONE, true),
            CUMULATIVE_NUMBERS_MAX
        );
    }

    #[test]
    fn every_part_takes_its_octets() {
        let words = FecStrength::from_words(24).unwrap();
        assert_eq!(payload_max(100, FecStrength::NONE, false, false), 84);
        assert_eq!(payload_max(100, FecStrength::NONE, false, true), 80);
        assert_eq!(payload_max(200, words, true, false), 200 - 16 - 4 - 4 - 96);
        assert_eq!(
            payload_max(200, words, false, false),
            payload_max(200, words, true, false)
        );
        assert_eq!(payload_max(10, FecStrength::MAX, true, true), 0);
        assert_eq!(cumulative_numbers_max(20, FecStrength::NONE, true), 0);
    }
}
