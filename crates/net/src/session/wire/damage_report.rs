//! The frame that says what became of armoured datagrams (0x16, in wire 2).

use crate::session::path_slot::PathSlot;
use fulmar_proto::wire::aerotp::ChannelWord;

/// Octets of its fields before the claims.
pub(in crate::session) const DAMAGE_REPORT_BYTES: usize = 1 + ChannelWord::BYTES + 4 * COUNTS;
/// Octets of a claim: a counter.
pub(in crate::session) const CLAIM_BYTES: usize = 3;
/// The most claims of one frame; more are not read.
pub(in crate::session) const CLAIMS_MAX: usize = 64;

/// The counts: datagrams whole, mended, beyond repair, and octets put right.
const COUNTS: usize = 4;

/// A receiver's word on the damage that arrived on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) struct DamageReport<'a> {
    /// The place of the path that it is about.
    pub(in crate::session) slot: PathSlot,
    /// The rates of wrong bits.
    pub(in crate::session) word: ChannelWord,
    /// Datagrams that arrived whole, that were mended and that were beyond repair, and octets that were put right, each
    /// modulo 2^32.
    pub(in crate::session) counts: [u32; COUNTS],
    /// The counters of datagrams beyond repair, three octets each.
    pub(in crate::session) claims: &'a [u8],
}

impl<'a> DamageReport<'a> {
    /// Appends the fields.
    pub(in crate::session) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.slot.bits());
        out.extend_from_slice(&self.word.to_octets());
        for count in self.counts {
            out.extend_from_slice(&count.to_be_bytes());
        }
        out.extend_from_slice(self.claims);
    }

    /// Reads the fields; `None` if they are not there in full, or about a place that cannot be.
    pub(in crate::session) fn read(fields: &'a [u8]) -> Option<Self> {
        let (&[slot], fields) = fields.split_first_chunk()?;
        let (word, fields) = fields.split_first_chunk()?;
        let (counts, claims) = fields.split_first_chunk::<{ 4 * COUNTS }>()?;
        let (each, _) = counts.as_chunks::<4>();
        let mut counts = [0; COUNTS];
        for (count, octets) in counts.iter_mut().zip(each) {
            *count = u32::from_be_bytes(*octets);
        }
        let whole = claims.len() / CLAIM_BYTES;
        let claims = claims.get(..whole.min(CLAIMS_MAX) * CLAIM_BYTES)?;
        (usize::from(slot) < PathSlot::COUNT).then(|| Self {
            slot: PathSlot::of_bits(slot),
            word: ChannelWord::from_octets(*word),
            counts,
            claims,
        })
    }

    /// The counters that are claimed.
    pub(in crate::session) fn counters(&self) -> impl Iterator<Item = u64> + use<'a> {
        let (claims, _) = self.claims.as_chunks::<CLAIM_BYTES>();
        let counters = claims.iter();
        counters.map(|[c0, c1, c2]| u64::from(u32::from_be_bytes([0, *c0, *c1, *c2])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_has_these_octets() {
        let report = DamageReport {
            slot: PathSlot::FIRST,
            word: ChannelWord::from_octets([0x28, 0, 0x34, 1]),
            counts: [1, 2, 3, 0x0A0B_0C0D],
            claims: b"\x01\x02\x03\0\0\x07",
        };
        let mut octets = Vec::new();
        report.write(&mut octets);
        let golden =
            b"\0\x28\0\x34\x01\0\0\0\x01\0\0\0\x02\0\0\0\x03\x0a\x0b\x0c\x0d\x01\x02\x03\0\0\x07";
        assert_eq!(octets, golden);
        assert_eq!(DamageReport::read(&octets), Some(report));
        assert!(report.counters().eq([0x01_0203, 7]));
        // 2^-10 and 2^-13.
        let rates = [report.word.recent, report.word.lasting].map(|code| code.rate().value());
        assert!((rates[0] * 1024.0 - 1.0).abs() < 1e-9 && (rates[1] * 8192.0 - 1.0).abs() < 1e-3);
        assert_eq!(DamageReport::read(&octets[..DAMAGE_REPORT_BYTES - 1]), None);
        octets.push(9);
        assert_eq!(
            DamageReport::read(&octets),
            Some(report),
            "a third of a claim"
        );
        octets[0] = 8;
        assert_eq!(DamageReport::read(&octets), None, "no such place");
    }

    proptest! {
        #[test]
        fn any_octets_read_to_what_writes_them_again_and_few_claims(octets: Vec<u8>) {
            if let Some(report) = DamageReport::read(&octets) {
                prop_assert!(report.counters().count() <= CLAIMS_MAX);
                let mut again = Vec::new();
                report.write(&mut again);
                prop_assert_eq!(&again[..], &octets[..again.len()]);
            } else {
                prop_assert!(octets.len() < DAMAGE_REPORT_BYTES || octets[0] > 7);
            }
        }
    }
}
