//! Any octets as splice records: what parses encodes to what parses to the same, a stream cut
//! anywhere gives the records that the whole gives, and a reader keeps no more than one record.

#![no_main]

use fulmar_proto::splice::records::{BODY_BYTES_MAX, HEADER_BYTES, RecordPiece, SpliceRecord, RecordReader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<u8>, Vec<u8>)| {
    let (octets, cuts) = input;
    let whole = records(&octets);
    let cut = records_of_cuts(&octets, &cuts);
    // A reader hands out data before its record is complete, and nothing else early.
    for (index, record) in whole.iter().enumerate() {
        let last = index + 1 == whole.len();
        let same = cut[index] == *record;
        let longer = last && record[0] == DATA && cut[index].starts_with(record);
        assert!(same || longer, "{record:?} came as {:?}", cut[index]);
    }
    let more = &cut[whole.len()..];
    assert!(more.len() <= 1 && more.iter().all(|record| record[0] == DATA));
});

const DATA: u8 = 4;

/// The whole records at the front, each as it would be sent.
fn records(octets: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = octets;
    let mut records = Vec::new();
    while let Ok(record) = SpliceRecord::take(&mut rest) {
        if record == SpliceRecord::Ignored {
            continue;
        }
        let sent = sent(&record);
        let mut again = sent.as_slice();
        assert_eq!(SpliceRecord::take(&mut again).as_ref(), Ok(&record));
        assert!(again.is_empty());
        append(&mut records, sent);
    }
    records
}

fn sent(record: &SpliceRecord<'_>) -> Vec<u8> {
    let mut octets = Vec::new();
    record.encode(&mut octets);
    octets
}

/// Data that follows data is one record, without a length, however it was cut.
fn append(records: &mut Vec<Vec<u8>>, mut sent: Vec<u8>) {
    if sent[0] == DATA {
        sent.drain(1..HEADER_BYTES);
    }
    match records.last_mut() {
        Some(last) if sent[0] == DATA && last[0] == DATA => last.extend_from_slice(&sent[1..]),
        _ => records.push(sent),
    }
}

fn records_of_cuts(octets: &[u8], cuts: &[u8]) -> Vec<Vec<u8>> {
    let mut reader = RecordReader::default();
    let mut records = Vec::new();
    let mut rest = octets;
    let mut cuts = cuts.iter().copied().chain(core::iter::repeat(u8::MAX));
    while !rest.is_empty() {
        let len = usize::from(cuts.next().unwrap_or(u8::MAX)).clamp(1, rest.len());
        let (mut part, after) = rest.split_at(len);
        rest = after;
        loop {
            match reader.next(&mut part) {
                Ok(RecordPiece::Wait) => break,
                Ok(RecordPiece::Record(SpliceRecord::Ignored)) => {}
                Ok(RecordPiece::Record(record)) => append(&mut records, sent(&record)),
                Err(_) => return records,
            }
        }
        assert!(part.is_empty());
        assert!(reader.held_bytes() <= HEADER_BYTES + BODY_BYTES_MAX);
    }
    records
}
