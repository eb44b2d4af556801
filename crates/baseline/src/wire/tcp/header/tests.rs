//! Golden octets, round trips, and hostile octets.

use super::*;
use crate::wire::tcp::{SackBlock, SackBlocks, Timestamps};
use fulmar_proto::wire::network::NodeAddress;
use proptest::prelude::*;

const PAIR: AddressPair = AddressPair::nodes(NodeAddress(0x0A00_0001), NodeAddress(0x0A00_0002));

fn encoded(header: &TcpHeader, pair: &AddressPair, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0xAA];
    let len = header.write(pair, payload, &mut out);
    assert_eq!(out.len(), len + 1);
    out.split_off(1)
}

#[test]
fn golden_octets_of_a_syn() {
    let header = TcpHeader {
        source: Port(4000),
        destination: Port(80),
        seq: TcpSeq(1),
        flags: TcpFlags::SYN,
        window: 0xFFFF,
        options: TcpOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 2, echo: 0 }),
            ..TcpOptions::default()
        },
        ..TcpHeader::default()
    };
    let golden: [u8; 40] = [
        0x0F, 0xA0, 0x00, 0x50, 0, 0, 0, 1, 0, 0, 0, 0, 0xA0, 0x02, 0xFF, 0xFF, 0x24, 0x0B, 0,
        0, //
        2, 4, 0x05, 0xB4, 1, 3, 3, 7, 4, 2, 8, 10, 0, 0, 0, 2, 0, 0, 0, 0,
    ];
    // The checksum by hand: the words of the pseudo header sum to 1431, those above to C7C3; DBF4 in all.
    assert_eq!(encoded(&header, &PAIR, &[]), golden);
}

#[test]
fn both_address_families_vouch_for_their_addresses() {
    let v6 = AddressPair::V6 {
        source: [1; 16],
        destination: [2; 16],
    };
    for pair in [PAIR, v6] {
        let octets = encoded(&TcpHeader::default(), &pair, b"odd");
        assert!(TcpHeader::parse(&pair, &octets).is_ok());
        // A sum does not know the order of its terms.
        assert!(TcpHeader::parse(&pair.reversed(), &octets).is_ok());
    }
    let octets = encoded(&TcpHeader::default(), &PAIR, b"");
    assert_eq!(
        TcpHeader::parse(&v6, &octets).map(|_| ()),
        Err(TcpReject::Checksum)
    );
}

/// A header of `octets` with a right checksum.
fn signed(mut octets: Vec<u8>) -> Vec<u8> {
    octets[16..18].fill(0);
    let len = u32::try_from(octets.len()).unwrap();
    let sum = PAIR.pseudo_header(len).and(&octets).finish();
    octets[16..18].copy_from_slice(&sum.to_be_bytes());
    octets
}

#[test]
fn impossible_lengths_are_refused_by_name() {
    let reject = |octets: Vec<u8>| TcpHeader::parse(&PAIR, &signed(octets)).map(|_| ()).err();
    let with = |offset: u8, options: &[u8]| {
        let mut octets = vec![0; TCP_HEADER_BYTES];
        octets[12] = offset << 4;
        octets.extend_from_slice(options);
        octets
    };
    assert_eq!(reject(with(4, &[])), Some(TcpReject::DataOffset));
    assert_eq!(reject(with(6, &[])), Some(TcpReject::Truncated));
    assert_eq!(reject(with(6, &[8, 0, 0, 0])), Some(TcpReject::Option));
    assert_eq!(reject(with(6, &[1, 1, 1, 8])), Some(TcpReject::Option));
    assert_eq!(reject(with(6, &[8, 10, 0, 0])), Some(TcpReject::Option));
    assert_eq!(reject(with(6, &[99, 4, 0, 0])), None, "unknown is skipped");
    assert_eq!(
        TcpHeader::parse(&PAIR, &[0; 19]).map(|_| ()),
        Err(TcpReject::Truncated)
    );
}

fn options() -> impl Strategy<Value = TcpOptions> {
    let stamps = any::<Option<(u32, u32)>>();
    let blocks = proptest::collection::vec(any::<(u32, u32)>(), 0..=4);
    let syn = any::<(Option<u16>, Option<u8>, bool)>();
    (stamps, blocks, syn).prop_map(|(stamps, blocks, (mss, window_scale, sack_permitted))| {
        let mut options = TcpOptions {
            mss,
            window_scale,
            sack_permitted,
            timestamps: stamps.map(|(value, echo)| Timestamps { value, echo }),
            sack: SackBlocks::default(),
        };
        for (start, end) in blocks.into_iter().take(options.sack_room()) {
            let (start, end) = (TcpSeq(start), TcpSeq(end));
            options.sack.push(SackBlock { start, end });
        }
        options
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        ports: (u16, u16), numbers: (u32, u32), flags: u8, window: u16, urgent: u16,
        options in options(), payload: Vec<u8>,
    ) {
        let header = TcpHeader {
            source: Port(ports.0),
            destination: Port(ports.1),
            seq: TcpSeq(numbers.0),
            ack: TcpSeq(numbers.1),
            flags: TcpFlags(flags),
            window,
            urgent,
            options,
        };
        let octets = encoded(&header, &PAIR, &payload);
        prop_assert_eq!(octets.len(), TCP_HEADER_BYTES + options.len() + payload.len());
        let segment = TcpHeader::parse(&PAIR, &octets).expect("written by us");
        prop_assert_eq!(segment.header, header);
        prop_assert_eq!(segment.payload, &payload[..]);
        // One wrong bit never passes a sum of ones' complements.
        let mut damaged = octets.clone();
        let bit = usize::from(window) % (octets.len() * 8);
        damaged[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(TcpHeader::parse(&PAIR, &damaged).map(|_| ()), Err(TcpReject::Checksum));
    }

    #[test]
    fn hostile_octets_with_a_right_checksum_are_read_or_refused(
        mut octets in proptest::collection::vec(any::<u8>(), 20..80), offset in 5_u8..16,
    ) {
        octets[12] = offset << 4;
        if let Ok(segment) = TcpHeader::parse(&PAIR, &signed(octets.clone())) {
            prop_assert_eq!(segment.payload.len() + usize::from(offset) * 4, octets.len());
        }
    }
}
