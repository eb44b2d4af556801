use super::*;
use proptest::prelude::*;

fn records() -> Vec<Record> {
    vec![
        Record::Hello {
            mode: Mode::HybridNackMack,
            id: 0x0123_4567_89AB_CDEF,
            size: Some(5),
            seekable: true,
            name: "größe.bin".to_owned(),
        },
        Record::Hello {
            mode: Mode::Reliable,
            id: 1,
            size: None,
            seekable: false,
            name: String::new(),
        },
        Record::Offer {
            offset: 7,
            digest: [9; 32],
        },
        Record::Start { offset: 0 },
        Record::End {
            size: 5,
            digest: [3; 32],
        },
        Record::Done {
            delivered: 4,
            missing: 1,
            intact: false,
        },
        Record::Refuse {
            reason: TransferRefusal::Storage,
            text: "disk full".to_owned(),
        },
        Record::Leave { id: u64::MAX - 1 },
        Record::Ping,
    ]
}

/// Reads everything in pieces of `cut` octets; DATA is joined by place.
fn read(octets: &[u8], cut: usize) -> Result<(Vec<Record>, Vec<u8>), BadRecord> {
    let mut reader = Records::default();
    let (mut found, mut data) = (Vec::new(), Vec::new());
    for mut piece in octets.chunks(cut) {
        while let Some(item) = reader.next(&mut piece)? {
            match item {
                Item::Record(record) => found.push(record),
                Item::Data { offset, octets } => {
                    assert_eq!(offset, data.len() as u64);
                    data.extend_from_slice(octets);
                }
            }
        }
        assert!(piece.is_empty());
    }
    Ok((found, data))
}

#[test]
fn every_record_survives_every_cut() {
    let mut octets = Vec::new();
    for record in records() {
        record.encode(&mut octets);
    }
    encode_data_head(0, 300, &mut octets);
    octets.extend_from_slice(&[5; 300]);
    Record::Start { offset: 8 }.encode(&mut octets);
    let mut wanted = records();
    wanted.push(Record::Start { offset: 8 });
    for cut in 1..octets.len() {
        assert_eq!(
            read(&octets, cut),
            Ok((wanted.clone(), vec![5; 300])),
            "cut at {cut}"
        );
    }
}

#[test]
fn the_octets_of_a_hello_are_pinned() {
    let mut octets = Vec::new();
    records()[0].encode(&mut octets);
    let mut wanted = vec![1, 0, 0, 0, 30, 1, 6, 3];
    wanted.extend_from_slice(&[0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF]);
    wanted.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 5]);
    wanted.extend_from_slice("größe.bin".as_bytes());
    assert_eq!(octets, wanted);
}

#[test]
fn records_that_make_no_sense_are_named() {
    assert_eq!(read(&[99, 0, 0, 0, 0], 5), Err(BadRecord::Type(99)));
    let too_long = BadRecord::Length {
        kind: HELLO,
        length: 0x7FFF_FFFF,
    };
    assert_eq!(read(&[HELLO, 0x7F, 0xFF, 0xFF, 0xFF], 5), Err(too_long));
    let empty_data = BadRecord::Length {
        kind: DATA,
        length: 8,
    };
    assert_eq!(read(&[DATA, 0, 0, 0, 8], 5), Err(empty_data));
    assert_eq!(read(&[HELLO, 0, 0, 0, 1, 2], 6), Err(BadRecord::Version(2)));
    assert_eq!(
        read(&[REFUSE, 0, 0, 0, 1, 9], 6),
        Err(BadRecord::Field(REFUSE))
    );
    let trailing = BadRecord::Length {
        kind: START,
        length: 9,
    };
    assert_eq!(
        read(&[START, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0], 14),
        Err(trailing)
    );
}

#[test]
fn a_message_knows_its_place() {
    let mut message = Vec::new();
    encode_message_head(0xAAAA_BBBB_CCCC_DDDD, 1 << 40, &mut message);
    assert_eq!(message.len(), MESSAGE_HEAD_BYTES);
    message.extend_from_slice(b"octets");
    let wanted: (u32, u64, &[u8]) = (0xCCCC_DDDD, 1 << 40, b"octets");
    assert_eq!(decode_message(&message), Some(wanted));
    assert_eq!(decode_message(&message[..11]), None);
}

proptest! {
    #[test]
    fn random_octets_never_panic_and_hold_little(
        octets in proptest::collection::vec(any::<u8>(), 0..4_000),
        cut in 1_usize..100,
    ) {
        let mut reader = Records::default();
        'stream: for mut piece in octets.chunks(cut) {
            loop {
                match reader.next(&mut piece) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => break 'stream,
                }
            }
            prop_assert!(reader.held.len() <= HEAD_BYTES + BODY_BYTES_MAX);
        }
    }
}

#[test]
fn corpus_of_the_fuzzer() {
    let seeds = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/corpus/transfer_records"
    );
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).expect("it is committed") {
        let path = seed.expect("it is there").path();
        let octets = std::fs::read(&path).expect("it is there");
        let whole = rewrite_conversation(&octets, [octets.len()]);
        for step in 1..8 {
            let cuts = std::iter::repeat(step);
            assert_eq!(
                whole,
                rewrite_conversation(&octets, cuts),
                "{}",
                path.display()
            );
        }
        let (written, error) = whole;
        let is_bad = path.ends_with("unknown-type") || path.ends_with("too-long");
        assert_eq!(error.is_some(), is_bad, "{}", path.display());
        let again = rewrite_conversation(&written, [written.len()]);
        assert_eq!(again, (written, None), "{}", path.display());
        count += 1;
    }
    assert!(count >= 20, "{count} seeds");
}

#[test]
fn octets_of_a_conversation_are_rewritten_in_the_longest_records() {
    let mut octets = Vec::new();
    for offset in [0, 20_000] {
        encode_data_head(offset, 20_000, &mut octets);
        octets.resize(octets.len() + 20_000, 7);
    }
    let mut expected = Vec::new();
    encode_data_head(0, DATA_BYTES_MAX, &mut expected);
    expected.resize(expected.len() + DATA_BYTES_MAX, 7);
    encode_data_head(
        DATA_BYTES_MAX as u64,
        40_000 - DATA_BYTES_MAX,
        &mut expected,
    );
    expected.resize(expected.len() + 40_000 - DATA_BYTES_MAX, 7);
    assert_eq!(rewrite_conversation(&octets, [999]), (expected, None));
}
