//! The octets of a segment file.
//!
//! ```text
//! header, 512 octets                      record, 20 octets, then its octets
//!   0  magic "FulmarCu"                     0  kind: 1
//!   8  format, 2                            1  zero, 3
//!  10  0, or 1: the flow is over, 2         4  length of its octets, 4
//!  12  length of the flow's record, 4       8  offset of the first of them, 8
//!  16  flow, 16                            16  CRC-32 of 0 .. 16 and the octets
//!  32  offset of the first octet, 8
//!  40  total of the finished flow, 8, or all ones
//!  48  the flow's record, then zeros
//! 508  CRC-32 of 0 .. 508
//! ```
//!
//! Big-endian. The header is one sector, so that a power cut leaves the old one or the new one; it
//! lies in one page, so that a kill does. A record is valid only with its predecessor: its offset is
//! where that one ended. One that ends before the header's first octet is left over from an
//! interrupted reuse of the file.

use fulmar_proto::splice::FlowId;
use std::io::IoSlice;

/// The format's number.
pub(super) const FORMAT: u16 = 1;
pub(super) const HEADER_BYTES: usize = 512;
pub(super) const RECORD_HEADER_BYTES: usize = 20;
/// Octets in one record, at most: what one `peek` of a socket gives.
pub(super) const PAYLOAD_BYTES_MAX: usize = 65_536;
/// How long the driver's record of a flow may be.
pub const RECORD_BYTES_MAX: usize = CRC_AT - RECORD_AT;

const MAGIC: &[u8; 8] = b"FulmarCu";
const RECORD_AT: usize = 48;
const CRC_AT: usize = HEADER_BYTES - 4;
const KIND_DATA: u8 = 1;
const UNFINISHED: u64 = u64::MAX;

/// A segment's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) flow: FlowId,
    /// The offset of the segment's first octet.
    pub(super) start: u64,
    /// How many octets the whole flow has, once that is known.
    pub(super) finished: Option<u64>,
    /// The flow is over, and its files are being deleted.
    pub(super) ended: bool,
    /// The driver's, at most [`RECORD_BYTES_MAX`] octets.
    pub(super) record: Vec<u8>,
}

/// Why octets are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoHeader {
    /// Fewer than a header's, or zeros.
    Unwritten,
    /// Another format.
    Format(u16),
    /// Something else.
    Damaged,
}

impl Header {
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let record = &self.record[..self.record.len().min(RECORD_BYTES_MAX)];
        let len = u32::try_from(record.len()).expect("at most 460");
        let mut out = [0; HEADER_BYTES];
        out[..8].copy_from_slice(MAGIC);
        out[8..10].copy_from_slice(&FORMAT.to_be_bytes());
        out[10..12].copy_from_slice(&u16::from(self.ended).to_be_bytes());
        out[12..16].copy_from_slice(&len.to_be_bytes());
        out[16..32].copy_from_slice(&self.flow.0);
        out[32..40].copy_from_slice(&self.start.to_be_bytes());
        let finished = self.finished.unwrap_or(UNFINISHED);
        out[40..48].copy_from_slice(&finished.to_be_bytes());
        out[RECORD_AT..][..record.len()].copy_from_slice(record);
        let crc = crc32fast::hash(&out[..CRC_AT]);
        out[CRC_AT..].copy_from_slice(&crc.to_be_bytes());
        out
    }

    pub(super) fn decode(octets: &[u8]) -> Result<Self, NoHeader> {
        let Some(header) = octets.first_chunk::<HEADER_BYTES>() else {
            return Err(NoHeader::Unwritten);
        };
        if header.iter().all(|octet| *octet == 0) {
            return Err(NoHeader::Unwritten);
        }
        if !header.starts_with(MAGIC) {
            return Err(NoHeader::Damaged);
        }
        let format = u16::from_be_bytes(at(header, 8));
        if format != FORMAT {
            return Err(NoHeader::Format(format));
        }
        if crc32fast::hash(&header[..CRC_AT]) != u32::from_be_bytes(at(header, CRC_AT)) {
            return Err(NoHeader::Damaged);
        }
        let len = u32::from_be_bytes(at(header, 12));
        let record = usize::try_from(len)
            .ok()
            .and_then(|len| header[RECORD_AT..CRC_AT].get(..len))
            .ok_or(NoHeader::Damaged)?;
        Ok(Self {
            flow: FlowId(at(header, 16)),
            start: u64::from_be_bytes(at(header, 32)),
            finished: Some(u64::from_be_bytes(at(header, 40))).filter(|total| *total != UNFINISHED),
            ended: u16::from_be_bytes(at(header, 10)) != 0,
            record: record.to_vec(),
        })
    }
}

/// `N` octets of a header; `place` is a constant inside it.
fn at<const N: usize>(header: &[u8; HEADER_BYTES], place: usize) -> [u8; N] {
    *header[place..]
        .first_chunk()
        .expect("places lie inside a header")
}

/// The header of the record that holds `octets`, at most [`PAYLOAD_BYTES_MAX`], from `offset` on.
pub(super) fn record_header(offset: u64, octets: &[u8]) -> [u8; RECORD_HEADER_BYTES] {
    let len = u32::try_from(octets.len()).expect("at most 65,536");
    let mut out = [0; RECORD_HEADER_BYTES];
    out[0] = KIND_DATA;
    out[4..8].copy_from_slice(&len.to_be_bytes());
    out[8..16].copy_from_slice(&offset.to_be_bytes());
    let crc = record_crc(&out, octets);
    out[16..].copy_from_slice(&crc.to_be_bytes());
    out
}

/// A record for one write.
pub(super) fn record<'a>(
    header: &'a [u8; RECORD_HEADER_BYTES],
    octets: &'a [u8],
) -> [IoSlice<'a>; 2] {
    [IoSlice::new(header), IoSlice::new(octets)]
}

fn record_crc(header: &[u8; RECORD_HEADER_BYTES], octets: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&header[..16]);
    crc.update(octets);
    crc.finalize()
}

/// A record in a file's octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) offset: u64,
    pub(super) octets: &'a [u8],
}

impl Record<'_> {
    /// Octets of the file that it takes.
    pub(super) const fn file_bytes(&self) -> usize {
        RECORD_HEADER_BYTES + self.octets.len()
    }

    /// The offset after its last octet.
    pub(super) const fn end(&self) -> u64 {
        self.offset.saturating_add(self.octets.len() as u64)
    }
}

/// Why octets do not begin with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRecord {
    /// They end inside it, or were never written: the file's end.
    Torn,
    /// They were something else once.
    Damaged,
}

/// The record at the front of `octets`.
pub(super) fn first_record(octets: &[u8]) -> Result<Record<'_>, NoRecord> {
    let Some((header, rest)) = octets.split_first_chunk::<RECORD_HEADER_BYTES>() else {
        return Err(NoRecord::Torn);
    };
    if header.iter().all(|octet| *octet == 0) && rest.iter().all(|octet| *octet == 0) {
        return Err(NoRecord::Torn);
    }
    let [
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
        c0,
        c1,
        c2,
        c3,
    ] = *header
    else {
        return Err(NoRecord::Damaged);
    };
    let len = u32::from_be_bytes([l0, l1, l2, l3]);
    let len = usize::try_from(len).map_err(|_| NoRecord::Damaged)?;
    if kind != KIND_DATA || !(1..=PAYLOAD_BYTES_MAX).contains(&len) {
        return Err(NoRecord::Damaged);
    }
    let Some(octets) = rest.get(..len) else {
        return Err(NoRecord::Torn);
    };
    if record_crc(header, octets) != u32::from_be_bytes([c0, c1, c2, c3]) {
        return Err(NoRecord::Damaged);
    }
    Ok(Record {
        offset: u64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]),
        octets,
    })
}

/// The name of the file of the segment of `flow` that begins at `start`.
pub(super) fn file_name(flow: FlowId, start: u64) -> String {
    format!("{flow}-{start:016x}.segment")
}

/// The flow of a file of this name; `None` if no segment is called so. Offsets are the header's.
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
            record: b"to port 80".to_vec(),
        }
    }

    #[test]
    fn a_header_comes_back_and_no_flipped_bit_goes_unnoticed() {
        let octets = header().encode();
        assert_eq!(Header::decode(&octets), Ok(header()));
        let open = Header {
            finished: None,
            ended: true,
            record: vec![3; RECORD_BYTES_MAX],
            ..header()
        };
        assert_eq!(Header::decode(&open.encode()), Ok(open));
        for bit in 0..HEADER_BYTES * 8 {
            let mut flipped = octets;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&flipped).is_err(), "bit {bit}");
        }
        assert_eq!(Header::decode(&octets[..511]), Err(NoHeader::Unwritten));
        let mut newer = octets;
        newer[9] = 2;
        assert_eq!(Header::decode(&newer), Err(NoHeader::Format(2)));
    }

    #[test]
    fn a_record_comes_back_and_no_flipped_bit_or_cut_goes_unnoticed() {
        let mut octets = record_header(5, b"octets").to_vec();
        octets.extend_from_slice(b"octets");
        let whole = first_record(&octets).unwrap();
        assert_eq!(
            (whole.offset, whole.octets, whole.end()),
            (5, &b"octets"[..], 11)
        );
        for bit in 0..octets.len() * 8 {
            let mut flipped = octets.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(first_record(&flipped).is_err(), "bit {bit}");
        }
        for len in 0..octets.len() {
            assert_eq!(first_record(&octets[..len]), Err(NoRecord::Torn), "{len}");
        }
        assert_eq!(first_record(&[0; 999]), Err(NoRecord::Torn));
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
