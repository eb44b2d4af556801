//! Any octets into the TPDU parser: what parses encodes to the same octets, and lists have their
//! length. The octets are tried as they are and once more under a matching header check, without
//! which a fuzzer would rarely get past the first sixteen bits of it.

#![no_main]

use fulmar_proto::wire::aerotp::{
    Acks, BodyCheck, CRC_BYTES, DESCRIPTOR_BYTES, HEADER_BYTES, Mack, Nack, Outgoing, TpduKind,
    encode, parse, split_parity,
};
use fulmar_proto::wire::checksum::hec;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    holds_together(octets);
    if let Some(octets) = under_matching_check(octets) {
        holds_together(&octets);
    }
});

fn under_matching_check(octets: &[u8]) -> Option<Vec<u8>> {
    let mut octets = octets.to_vec();
    let &[resv, flags] = octets.get(12..14)?.first_chunk()?;
    let (fec, block, mack) = (resv & 2 != 0, resv & 1 != 0, flags & 16 != 0);
    let words = usize::from(fec) + usize::from(block && !mack);
    let descriptors = octets.get(HEADER_BYTES..HEADER_BYTES + DESCRIPTOR_BYTES * words)?;
    let hec = hec(octets.get(..14)?, descriptors);
    octets[14..16].copy_from_slice(&hec.to_be_bytes());
    Some(octets)
}

fn holds_together(octets: &[u8]) {
    let Ok(tpdu) = parse(octets) else {
        return;
    };
    assert_eq!([tpdu.covered, tpdu.parity].concat(), octets);
    let split = split_parity(octets, tpdu.fec_words);
    assert!(tpdu.fec_words.is_none() || split == Some((tpdu.covered, tpdu.parity)));
    let outgoing = Outgoing {
        header: tpdu.header,
        crc: tpdu.check != BodyCheck::Unchecked,
        fec_words: tpdu.fec_words,
        block: tpdu.block,
        body: tpdu.body,
    };
    let mut again = Vec::new();
    encode(&outgoing, &mut again);
    let same = match tpdu.check {
        BodyCheck::Damaged => tpdu.covered.len() - CRC_BYTES,
        BodyCheck::Intact | BodyCheck::Unchecked => tpdu.covered.len(),
    };
    assert_eq!(again.len(), tpdu.covered.len());
    assert_eq!(again[..same], tpdu.covered[..same]);
    let listed = match (Mack::of(&tpdu), Nack::of(&tpdu)) {
        (Ok(mack), Err(_)) => Some(match mack.acks {
            Acks::Listed { further, .. } => further.count(),
            Acks::Cumulative { above, .. } => above.count() + 1,
        }),
        (Err(_), Ok(nack)) => Some(nack.wanted().count() - 1),
        (Err(_), Err(_)) => None,
        (Ok(_), Ok(_)) => panic!("both a MACK and a NACK"),
    };
    let is_list = matches!(tpdu.kind(), TpduKind::Mack { .. } | TpduKind::Nack);
    assert_eq!(
        listed.is_some(),
        is_list && tpdu.check != BodyCheck::Damaged
    );
    assert!(listed.is_none_or(|count| count * 4 == tpdu.body.len() && count <= 365));
}
