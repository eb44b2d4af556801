//! The octets of a segment file.
//!
//! ```text
//! slot, 512 octets; two of them           record, 24 octets, then its octets
//!   0  magic "FulmarCu"                     0  kind: 2
//!   8  format, 2                            1  zero, 3
//!  10  0, or 1: the flow is over, 2         4  length of its octets, 4
//!  12  length of the flow's record, 4       8  offset of the first of them, 8
//!  16  flow, 16                            16  CRC-32 of 0 .. 16
//!  32  offset of the first octet, 8        20  CRC-32 of 0 .. 20 and the octets
//!  40  total of the finished flow, 8,
//!      or all ones
//!  48  generation, 8
//!  56  the flow's record, then zeros
//! 508  CRC-32 of 0 .. 508
//! ```
//!
//! Big-endian. The header is the slot with the higher generation of those that are whole; it is replaced
//! by writing the other one, so that a write that is cut short, fails or is torn by a power cut leaves the
//! old header. A record is valid only with its predecessor: its offset is where the predecessor ended. A record
//! that ends before the header's first octet is left over from an interrupted reuse of the file. Since a record's
//! length has a CRC of its own, it can be believed: an append that was cut short is told from damage.
//!
//! Format 1, which is read and not written to but for its header, has one slot, no generation (its
//! record begins at 48), and records of kind 1 without the first CRC, from octet 512 on.

use fulmar_proto::splice::FlowId;
use std::io::IoSlice;

/// The format's number.
pub(super) const FORMAT: u16 = 2;
const SLOT_BYTES: usize = 512;
/// Octets before the records.
pub(super) const HEADER_BYTES: usize = 2 * SLOT_BYTES;
pub(super) const RECORD_HEADER_BYTES: usize = 24;
/// The most octets in one record: as many as one `peek` of a socket gives.
pub(super) const PAYLOAD_BYTES_MAX: usize = 65_536;
/// The longest record that a driver may keep of a flow.
pub const RECORD_BYTES_MAX: usize = CRC_AT - RECORD_AT;

const MAGIC: &[u8; 8] = b"FulmarCu";
const RECORD_AT: usize = 56;
const CRC_AT: usize = SLOT_BYTES - 4;
const UNFINISHED: u64 = u64::MAX;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Format 1.
    One,
    /// Format 2.
    Two,
}

impl Layout {
    const fn format(self) -> u16 {
        match self {
            Self::One => 1,
            Self::Two => FORMAT,
        }
    }

    const fn of(format: u16) -> Option<Self> {
        match format {
            1 => Some(Self::One),
            FORMAT => Some(Self::Two),
            _ => None,
        }
    }

    /// Octets before the first record.
    pub(super) const fn header_bytes(self) -> usize {
        match self {
            Self::One => SLOT_BYTES,
            Self::Two => HEADER_BYTES,
        }
    }

    /// Octets before a record's octets.
    pub(super) const fn record_header_bytes(self) -> usize {
        match self {
            Self::One => 20,
            Self::Two => RECORD_HEADER_BYTES,
        }
    }

    const fn flow_record_at(self) -> usize {
        match self {
            Self::One => 48,
            Self::Two => RECORD_AT,
        }
    }

    const fn kind(self) -> u8 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

/// A segment's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) flow: FlowId,
    /// The offset of the segment's first octet.
    pub(super) start: u64,
    /// The octets of the whole flow, once that is known.
    pub(super) finished: Option<u64>,
    /// The flow is over, and its files are being deleted.
    pub(super) ended: bool,
    /// The number of this version of the header: of two whole slots, the one with the higher number is the header.
    pub(super) generation: u64,
    /// The driver's record, at most [`RECORD_BYTES_MAX`] octets.
    pub(super) record: Vec<u8>,
}

/// Why octets are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoHeader {
    /// Fewer than a slot's, or nothing but zeros.
    Unwritten,
    /// Whole, and of another format.
    Format(u16),
    /// Something else.
    Damaged,
}

/// A header that was found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundHeader {
    pub(super) header: Header,
    pub(super) layout: Layout,
    /// The slot with the header.
    pub(super) slot: u64,
}

impl Header {
    /// A slot's octets.
    pub(super) fn encode(&self, layout: Layout) -> [u8; SLOT_BYTES] {
        let record = &self.record[..self.record.len().min(RECORD_BYTES_MAX)];
        let len = u32::try_from(record.len()).expect("at most 452");
        let mut out = [0; SLOT_BYTES];
        out[..8].copy_from_slice(MAGIC);
        out[8..10].copy_from_slice(&layout.format().to_be_bytes());
        out[10..12].copy_from_slice(&u16::from(self.ended).to_be_bytes());
        out[12..16].copy_from_slice(&len.to_be_bytes());
        out[16..32].copy_from_slice(&self.flow.0);
        out[32..40].copy_from_slice(&self.start.to_be_bytes());
        let finished = self.finished.unwrap_or(UNFINISHED);
        out[40..48].copy_from_slice(&finished.to_be_bytes());
        if layout == Layout::Two {
            out[48..RECORD_AT].copy_from_slice(&self.generation.to_be_bytes());
        }
        out[layout.flow_record_at()..][..record.len()].copy_from_slice(record);
        let crc = crc32fast::hash(&out[..CRC_AT]);
        out[CRC_AT..].copy_from_slice(&crc.to_be_bytes());
        out
    }

    /// The header of a file with these octets.
    pub(super) fn find(octets: &[u8]) -> Result<FoundHeader, NoHeader> {
        let (slots, _) = octets.as_chunks::<SLOT_BYTES>();
        let Some(first) = slots.first() else {
            return Err(NoHeader::Unwritten);
        };
        let first = Self::decode(first);
        // Format 1 has its first record here, whose first octets differ from a slot's.
        let second = slots.get(1).map_or(Err(NoHeader::Damaged), Self::decode);
        let second = second.ok().filter(|(_, layout)| *layout == Layout::Two);
        let found = |(header, layout), slot| FoundHeader {
            header,
            layout,
            slot,
        };
        match (first, second) {
            (Ok(first), Some(second)) if second.0.generation > first.0.generation => {
                Ok(found(second, 1))
            }
            (Ok(first), _) => Ok(found(first, 0)),
            (Err(_), Some(second)) => Ok(found(second, 1)),
            (Err(NoHeader::Format(format)), None) => Err(NoHeader::Format(format)),
            (Err(_), None) if octets.iter().all(|octet| *octet == 0) => Err(NoHeader::Unwritten),
            (Err(_), None) => Err(NoHeader::Damaged),
        }
    }

    fn decode(slot: &[u8; SLOT_BYTES]) -> Result<(Self, Layout), NoHeader> {
        // In this order: a format is believed only with its CRC, or a flipped bit would look like a
        // store of another fulmar.
        if !slot.starts_with(MAGIC)
            || crc32fast::hash(&slot[..CRC_AT]) != u32::from_be_bytes(at(slot, CRC_AT))
        {
            return Err(NoHeader::Damaged);
        }
        let format = u16::from_be_bytes(at(slot, 8));
        let layout = Layout::of(format).ok_or(NoHeader::Format(format))?;
        let len = u32::from_be_bytes(at(slot, 12));
        let record = usize::try_from(len)
            .ok()
            .and_then(|len| slot[layout.flow_record_at()..CRC_AT].get(..len))
            .ok_or(NoHeader::Damaged)?;
        let header = Self {
            flow: FlowId(at(slot, 16)),
            start: u64::from_be_bytes(at(slot, 32)),
            finished: Some(u64::from_be_bytes(at(slot, 40))).filter(|total| *total != UNFINISHED),
            ended: u16::from_be_bytes(at(slot, 10)) != 0,
            generation: match layout {
                Layout::One => 0,
                Layout::Two => u64::from_be_bytes(at(slot, 48)),
            },
            record: record.to_vec(),
        };
        Ok((header, layout))
    }
}

/// The place where a slot begins.
pub(super) const fn slot_place(slot: u64) -> u64 {
    slot * SLOT_BYTES as u64
}

/// `N` octets of a slot; `place` is a constant inside it.
fn at<const N: usize>(slot: &[u8; SLOT_BYTES], place: usize) -> [u8; N] {
    *slot[place..]
        .first_chunk()
        .expect("places lie inside a slot")
}

/// The header of the record that holds `octets`, at most [`PAYLOAD_BYTES_MAX`], from `offset` on.
pub(super) fn record_header(offset: u64, octets: &[u8]) -> [u8; RECORD_HEADER_BYTES] {
    let len = u32::try_from(octets.len()).expect("at most 65,536");
    let mut out = [0; RECORD_HEADER_BYTES];
    out[0] = Layout::Two.kind();
    out[4..8].copy_from_slice(&len.to_be_bytes());
    out[8..16].copy_from_slice(&offset.to_be_bytes());
    let own = crc32fast::hash(&out[..16]);
    out[16..20].copy_from_slice(&own.to_be_bytes());
    let crc = crc(&[&out[..20], octets]);
    out[20..].copy_from_slice(&crc.to_be_bytes());
    out
}

/// A record for one write.
pub(super) fn record<'a>(
    header: &'a [u8; RECORD_HEADER_BYTES],
    octets: &'a [u8],
) -> [IoSlice<'a>; 2] {
    [IoSlice::new(header), IoSlice::new(octets)]
}

fn crc(pieces: &[&[u8]]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    for piece in pieces {
        crc.update(piece);
    }
    crc.finalize()
}

/// A record in a file's octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) offset: u64,
    pub(super) octets: &'a [u8],
    /// Octets of the file that it takes.
    pub(super) file_bytes: usize,
}

impl Record<'_> {
    /// The offset after its last octet.
    pub(super) const fn end(&self) -> u64 {
        self.offset.saturating_add(self.octets.len() as u64)
    }
}

/// Why octets do not begin with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRecord {
    /// The octets end inside the record, or were never written: this is the file's end.
    Torn,
    /// The octets were something else once.
    Damaged,
}

/// The record at the front of `octets`.
pub(super) fn first_record(layout: Layout, octets: &[u8]) -> Result<Record<'_>, NoRecord> {
    let Some((header, rest)) = octets.split_at_checked(layout.record_header_bytes()) else {
        return Err(NoRecord::Torn);
    };
    if octets.iter().all(|octet| *octet == 0) {
        return Err(NoRecord::Torn);
    }
    let (own, checks) = header.split_at(16);
    let &[
        kind,
        0,
        0,
        0,
        l0,
        l1,
        l2,
        l3,
        o0,
        o1,
        o2,
        o3,
        o4,
        o5,
        o6,
        o7,
    ] = own
    else {
        return Err(NoRecord::Damaged);
    };
    let is = |wanted: u32, found: &[u8]| wanted.to_be_bytes() == *found;
    let (of_header, of_all) = checks.split_at(checks.len() - 4);
    if layout == Layout::Two && !is(crc32fast::hash(own), of_header) {
        return Err(NoRecord::Damaged);
    }
    let len = usize::try_from(u32::from_be_bytes([l0, l1, l2, l3])).unwrap_or(usize::MAX);
    if kind != layout.kind() || !(1..=PAYLOAD_BYTES_MAX).contains(&len) {
        return Err(NoRecord::Damaged);
    }
    let Some(octets) = rest.get(..len) else {
        return Err(NoRecord::Torn);
    };
    if !is(crc(&[own, of_header, octets]), of_all) {
        return Err(NoRecord::Damaged);
    }
    let offset = u64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]);
    if offset.checked_add(octets.len() as u64).is_none() {
        return Err(NoRecord::Damaged);
    }
    Ok(Record {
        offset,
        octets,
        file_bytes: header.len() + len,
    })
}

/// The name of the file of the segment of `flow` that begins at `start`.
pub(super) fn file_name(flow: FlowId, start: u64) -> String {
    format!("{flow}-{start:016x}.segment")
}

/// The flow of a file of this name; `None` if it is no segment's name. The offset is read from the header.
pub(super) fn flow_of(name: &str) -> Option<FlowId> {
    let (flow, start) = name.strip_suffix(".segment")?.split_once('-')?;
    let hex = |text: &str| text.bytes().all(|c| c.is_ascii_hexdigit());
    if flow.len() != 32 || start.len() != 16 || !hex(flow) || !hex(start) {
        return None;
    }
    u128::from_str_radix(flow, 16)
        .ok()
        .map(|number| FlowId(number.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: FlowId = FlowId([0xab; 16]);

    fn header() -> Header {
        Header {
            flow: FLOW,
            start: 7,
            finished: Some(9),
            ended: false,
            generation: 3,
            record: b"to port 80".to_vec(),
        }
    }

    fn found(header: &Header, layout: Layout, slot: u64) -> FoundHeader {
        let header = header.clone();
        FoundHeader {
            header,
            layout,
            slot,
        }
    }

    #[test]
    fn a_header_comes_back_and_no_flipped_bit_goes_unnoticed() {
        let open = Header {
            finished: None,
            ended: true,
            record: vec![3; RECORD_BYTES_MAX],
            ..header()
        };
        let old = Header {
            generation: 0,
            ..header()
        };
        for (layout, header) in [
            (Layout::Two, header()),
            (Layout::Two, open),
            (Layout::One, old),
        ] {
            let octets = header.encode(layout);
            assert_eq!(Header::find(&octets), Ok(found(&header, layout, 0)));
            for bit in 0..SLOT_BYTES * 8 {
                let mut flipped = octets;
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Header::find(&flipped), Err(NoHeader::Damaged), "bit {bit}");
            }
            assert_eq!(Header::find(&octets[..511]), Err(NoHeader::Unwritten));
        }
        assert_eq!(Header::find(&[0; HEADER_BYTES]), Err(NoHeader::Unwritten));
        let mut newer = header().encode(Layout::Two);
        newer[9] = 9;
        assert_eq!(Header::find(&newer), Err(NoHeader::Damaged), "no CRC");
        let crc = crc32fast::hash(&newer[..CRC_AT]);
        newer[CRC_AT..].copy_from_slice(&crc.to_be_bytes());
        assert_eq!(Header::find(&newer), Err(NoHeader::Format(9)));
    }

    #[test]
    fn of_two_slots_the_newer_counts_and_the_older_stands_in_for_it() {
        let newer = Header {
            start: 8,
            generation: 4,
            ..header()
        };
        for newer_slot in [0, 1] {
            let mut slots = [header().encode(Layout::Two), newer.encode(Layout::Two)];
            if newer_slot == 0 {
                slots.reverse();
            }
            assert_eq!(
                Header::find(slots.as_flattened()),
                Ok(found(&newer, Layout::Two, newer_slot as u64))
            );
            for bit in 0..SLOT_BYTES * 8 {
                let mut torn = slots;
                torn[newer_slot][bit / 8] ^= 1 << (bit % 8);
                let older = found(&header(), Layout::Two, 1 - newer_slot as u64);
                assert_eq!(Header::find(torn.as_flattened()), Ok(older), "bit {bit}");
            }
        }
    }

    #[test]
    fn a_record_comes_back_and_no_flipped_bit_or_cut_goes_unnoticed() {
        let mut octets = record_header(5, b"octets").to_vec();
        octets.extend_from_slice(b"octets");
        let whole = first_record(Layout::Two, &octets).unwrap();
        assert_eq!(
            (whole.offset, whole.octets, whole.end()),
            (5, &b"octets"[..], 11)
        );
        assert_eq!(whole.file_bytes, octets.len());
        for bit in 0..octets.len() * 8 {
            let mut flipped = octets.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let found = first_record(Layout::Two, &flipped);
            assert_eq!(found, Err(NoRecord::Damaged), "bit {bit}");
        }
        for len in 0..octets.len() {
            let cut = first_record(Layout::Two, &octets[..len]);
            assert_eq!(cut, Err(NoRecord::Torn), "{len}");
        }
        assert_eq!(first_record(Layout::Two, &[0; 999]), Err(NoRecord::Torn));
    }

    #[test]
    fn names_of_segments_are_told_from_others() {
        assert_eq!(flow_of(&file_name(FLOW, 4096)), Some(FLOW));
        for other in [
            "store",
            "x.segment",
            "ab-cd.segment",
            &file_name(FLOW, 1)[1..],
        ] {
            assert_eq!(flow_of(other), None, "{other}");
        }
    }
}
