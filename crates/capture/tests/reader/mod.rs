//! Captures of ours read with `pcap-parser`, which shares no code with the writer. Other crates' tests
//! use it by its path.
#![allow(dead_code, reason = "each test takes what it needs")]

use pcap_parser::{Block, PcapBlockOwned, PcapError, PcapNGOption, create_reader};

const COMMENT: u16 = 1;
const APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const PACKET_FLAGS: u16 = 2;
const PACKET_DROP_COUNT: u16 = 4;
/// Tags before the octets: the dissector's name first, and an end of length zero.
const TAG_DISSECTOR: u16 = 12;

/// A packet as it was read.
#[derive(Debug, PartialEq)]
pub(crate) struct Read {
    pub(crate) interface: usize,
    pub(crate) nanos: u64,
    pub(crate) data: Vec<u8>,
    /// The packet's comment; empty if there is none.
    pub(crate) comment: String,
    pub(crate) is_outbound: bool,
    pub(crate) missed: u64,
}

/// A capture as it was read.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Contents {
    pub(crate) section: Vec<(u16, String)>,
    pub(crate) interfaces: Vec<String>,
    pub(crate) packets: Vec<Read>,
}

impl Read {
    fn tag(&self, at: usize) -> (u16, usize) {
        let [a, b, c, d] = *self.data[at..].first_chunk().expect("a tag");
        let len = usize::from(u16::from_be_bytes([c, d]));
        (u16::from_be_bytes([a, b]), len)
    }

    /// The dissector that the tags name.
    pub(crate) fn dissector(&self) -> &str {
        let (code, len) = self.tag(0);
        assert_eq!(code, TAG_DISSECTOR);
        let name = core::str::from_utf8(&self.data[4..4 + len]).expect("a name");
        name.trim_end_matches('\0')
    }

    /// The captured octets, without the tags.
    pub(crate) fn octets(&self) -> &[u8] {
        let mut at = 0;
        loop {
            let (code, len) = self.tag(at);
            at += 4 + len;
            if code == 0 {
                return &self.data[at..];
            }
        }
    }
}

impl Contents {
    /// The packets of the interface `name`, in one direction.
    pub(crate) fn of<'a>(
        &'a self,
        name: &str,
        is_outbound: bool,
    ) -> impl Iterator<Item = &'a Read> {
        let place = self.interfaces.iter().position(|known| known == name);
        let place = place.unwrap_or_else(|| panic!("no {name} in {:?}", self.interfaces));
        let packets = self.packets.iter();
        packets.filter(move |packet| packet.interface == place && packet.is_outbound == is_outbound)
    }

    /// Counts the packets with this remark in their comment.
    pub(crate) fn count(&self, remark: &str) -> u64 {
        let packets = self.packets.iter();
        let remarks = packets.flat_map(|packet| packet.comment.split("; "));
        remarks.filter(|found| found.starts_with(remark)).count() as u64
    }
}

fn value<'a>(options: &'a [PcapNGOption<'_>], code: u16) -> Option<&'a [u8]> {
    let found = options.iter().find(|option| option.code.0 == code)?;
    Some(&found.value[..usize::from(found.len)])
}

fn text(options: &[PcapNGOption<'_>], code: u16) -> String {
    let value = value(options, code).unwrap_or_default();
    String::from_utf8(value.to_vec()).expect("UTF-8")
}

fn number(options: &[PcapNGOption<'_>], code: u16) -> u64 {
    let octets = value(options, code).unwrap_or_default().iter().rev();
    octets.fold(0, |sum, octet| sum << 8 | u64::from(*octet))
}

/// Reads a whole capture.
pub(crate) fn read(octets: &[u8]) -> Contents {
    let mut contents = Contents::default();
    let mut reader = create_reader(1 << 18, octets).expect("a capture");
    loop {
        match reader.next() {
            Ok((consumed, PcapBlockOwned::NG(block))) => {
                take(block, &mut contents);
                reader.consume(consumed);
            }
            Ok(_) => panic!("not pcapng"),
            Err(PcapError::Eof) => return contents,
            Err(PcapError::Incomplete(_)) => reader.refill().expect("whole blocks"),
            Err(error) => panic!("{error:?}"),
        }
    }
}

fn take(block: Block<'_>, contents: &mut Contents) {
    match block {
        Block::SectionHeader(header) => {
            let said = [COMMENT, APPLICATION];
            let said = said.map(|code| (code, text(&header.options, code)));
            contents.section = said.to_vec();
        }
        Block::InterfaceDescription(described) => {
            assert_eq!(described.linktype.0, 252);
            assert_eq!(described.ts_resolution(), Some(1_000_000_000));
            let name = text(&described.options, INTERFACE_NAME);
            contents.interfaces.push(name);
        }
        Block::EnhancedPacket(packet) => {
            assert_eq!(packet.caplen, packet.origlen);
            let direction = number(&packet.options, PACKET_FLAGS) & 3;
            assert!(matches!(direction, 1 | 2));
            contents.packets.push(Read {
                interface: packet.if_id as usize,
                nanos: u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low),
                data: packet.data[..packet.caplen as usize].to_vec(),
                comment: text(&packet.options, COMMENT),
                is_outbound: direction == 2,
                missed: number(&packet.options, PACKET_DROP_COUNT),
            });
        }
        other => panic!("{other:?}"),
    }
}
