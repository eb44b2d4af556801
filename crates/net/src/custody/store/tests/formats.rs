//! Other formats, and flows of format 1.

use super::*;

#[test]
fn other_formats_and_other_directories_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(&directory));
    let file = directory.path().join("store");
    fs::write(&file, line(9)).unwrap();
    let refused = Store::open(config(directory.path()), None).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("format 9") && text.contains("reads format 2"),
        "{text}"
    );
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("letter.txt"), "dear").unwrap();
    for _ in 0..2 {
        let refused = Store::open(config(other.path()), None).unwrap_err();
        assert!(matches!(refused, StoreError::NotAStore(_)), "{refused}");
        fs::write(other.path().join("store"), "apples, pears, and two melons").unwrap();
    }
    // A segment of another format, with a check that says that it is one.
    let directory = two_flows();
    let mut octets = fs::read(only_file(&directory, A)).unwrap();
    octets[9] = 9;
    let crc = crc32fast::hash(&octets[..508]);
    octets[508..512].copy_from_slice(&crc.to_be_bytes());
    fs::write(only_file(&directory, A), octets).unwrap();
    let refused = Store::open(config(directory.path()), None).unwrap_err();
    assert!(matches!(refused, StoreError::Version { .. }), "{refused}");
}

#[test]
fn a_flipped_bit_in_the_line_of_the_format_is_mended_and_said() {
    for first in [line(FORMAT), LINE_OF_FORMAT_1.to_owned()] {
        for bit in 0..first.len() * 8 {
            let directory = two_flows();
            let file = directory.path().join("store");
            let mut octets = first.clone().into_bytes();
            octets[bit / 8] ^= 1 << (bit % 8);
            fs::write(&file, octets).unwrap();
            let (store, found) = open(&directory);
            assert_eq!((found.flows.len(), found.damaged.len()), (2, 0));
            let said = store.poll_notice();
            assert!(
                matches!(said, Some(StoreNotice::LineMended { .. })),
                "{said:?}"
            );
            assert_eq!(fs::read_to_string(&file).unwrap(), line(FORMAT));
        }
    }
}

/// A segment as format 1 has it.
fn of_format_1(flow: FlowId, octets: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..8].copy_from_slice(b"FulmarCu");
    header[9] = 1;
    header[15] = 3;
    header[16..32].copy_from_slice(&flow.0);
    header[40..48].copy_from_slice(&[0xff; 8]);
    header[48..51].copy_from_slice(b"old");
    let crc = crc32fast::hash(&header[..508]);
    header[508..].copy_from_slice(&crc.to_be_bytes());
    if octets.is_empty() {
        return header;
    }
    let mut record = vec![0; 16];
    record[0] = 1;
    record[7] = u8::try_from(octets.len()).unwrap();
    let crc = crc32fast::hash(&[&record, octets].concat());
    record.extend_from_slice(&crc.to_be_bytes());
    [&header, &record, octets].concat()
}

#[test]
fn flows_of_format_1_go_on() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(&directory));
    fs::write(directory.path().join("store"), LINE_OF_FORMAT_1).unwrap();
    fs::write(only_file(&directory, A), of_format_1(A, b"octets")).unwrap();
    fs::write(only_file(&directory, B), of_format_1(B, b"")).unwrap();
    for file in [A, B] {
        let mut mode = fs::metadata(only_file(&directory, file))
            .unwrap()
            .permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o600);
        fs::set_permissions(only_file(&directory, file), mode).unwrap();
    }
    let mut wanted = [b"octets".to_vec(), Vec::new()];
    for _ in 0..3 {
        let (_store, mut found) = open(&directory);
        assert_eq!((found.flows.len(), found.damaged.len()), (2, 0));
        for (found, wanted) in found.flows.iter_mut().zip(&mut wanted) {
            assert_eq!(found.damage, None);
            assert_eq!(found.store.record(), b"old");
            assert_eq!(all(&mut found.store), *wanted);
            found.store.set_record(b"old").unwrap();
            found.store.append(b" and more").unwrap();
            wanted.extend_from_slice(b" and more");
            assert_eq!(all(&mut found.store), *wanted);
        }
    }
}
