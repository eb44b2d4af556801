//! The law for any files in a custody store.
//!
//! An input is a list of files: two octets of flags, two of the offset in the name, two of the length, then
//! as many octets as that. Flag 1 makes slots of a header out of the first octets, flag 2 makes records out
//! of the octets after them, flag 4 chooses the flow. Without these flags no CRC would ever be right, and
//! nothing behind it be reached.

use fulmar_net::custody::{Store, StoreConfig, SyncPolicy};
use fulmar_proto::splice::FlowId;
use fulmar_proto::units::ByteCount;
use std::fs;
use std::path::Path;

const SOUND: FlowId = FlowId([0x50; 16]);
const FILES_MAX: usize = 6;
const SLOT: usize = 512;
const RECORDS_AT: usize = 1_024;
const RECORD_HEADER: usize = 24;

/// Opens a store with these files, and checks that it opens, that a sound flow beside them is whole, and
/// that the flows it accepts can be read, continued and forgotten.
pub(crate) fn check(input: &[u8]) {
    let place = tempfile::tempdir().expect("a directory");
    let open = || {
        let config = StoreConfig {
            directory: place.path().to_owned(),
            limit: ByteCount(1 << 20),
            sync: SyncPolicy::Never,
        };
        Store::open(config, None).expect("no file keeps a store from opening")
    };
    let (store, _) = open();
    let sound = store.begin(SOUND, 0, b"sound").expect("a disk");
    sound.expect("room").append(b"whole").expect("a disk");
    drop(store);
    write_files(place.path(), input);
    let (store, recovery) = open();
    let mut is_whole = false;
    for mut found in recovery.flows {
        let flow = &mut found.store;
        let mut all = Vec::new();
        let mut at = flow.start();
        while at < flow.end() {
            let piece = flow
                .read(at, usize::MAX)
                .expect("what was taken up can be read");
            assert!(!piece.is_empty());
            all.extend_from_slice(piece);
            at += piece.len() as u64;
        }
        if flow.flow() == SOUND {
            is_whole = all == b"whole" && flow.record() == b"sound" && found.damage.is_none();
            continue;
        }
        assert!(
            found.damage.is_none() || flow.finished().is_none(),
            "no clean end"
        );
        if flow.finished().is_none() && flow.end() < u64::MAX / 2 {
            assert_eq!(flow.append(b"more").expect("a disk"), 4);
            let from = flow.end() - 4;
            assert_eq!(flow.read(from, 4).expect("it was just appended"), b"more");
        }
        flow.release(flow.end());
        found.store.forget().expect("a disk");
    }
    assert!(is_whole, "the flow beside was harmed");
    drop(store);
    let (_, recovery) = open();
    assert_eq!(recovery.flows.len(), 1, "the others are over");
}

fn write_files(directory: &Path, input: &[u8]) {
    let mut rest = input;
    for _ in 0..FILES_MAX {
        let Some((&[_, flags, s0, s1, l0, l1], after)) = rest.split_first_chunk::<6>() else {
            return;
        };
        let len = usize::from(u16::from_be_bytes([l0, l1])).min(after.len());
        let (octets, after) = after.split_at(len);
        rest = after;
        let flow = FlowId([if flags & 4 == 0 { 1 } else { 2 }; 16]);
        let mut octets = octets.to_vec();
        if flags & 1 != 0 {
            for slot in octets.chunks_exact_mut(SLOT).take(2) {
                seal_slot(slot, flow);
            }
        }
        if flags & 2 != 0 {
            seal_records(octets.get_mut(RECORDS_AT..).unwrap_or(&mut []));
        }
        let start = u16::from_be_bytes([s0, s1]);
        let path = directory.join(format!("{flow}-{start:016x}.segment"));
        fs::write(&path, octets).expect("a disk");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&path, mode).expect("a file of ours");
    }
}

/// Makes a slot: fills in the fields that no input would guess, and leaves the others.
fn seal_slot(slot: &mut [u8], flow: FlowId) {
    slot[..8].copy_from_slice(b"FulmarCu");
    let format = 1 + u8::from(slot[9] != 1);
    slot[8..10].copy_from_slice(&[0, format]);
    slot[16..32].copy_from_slice(&flow.0);
    let crc = crc32fast::hash(&slot[..508]);
    slot[508..].copy_from_slice(&crc.to_be_bytes());
}

/// Makes records of the lengths found there, for as long as they fit.
fn seal_records(mut octets: &mut [u8]) {
    while octets.len() > RECORD_HEADER {
        octets[..4].copy_from_slice(&[2, 0, 0, 0]);
        let len = u32::from_be_bytes([octets[4], octets[5], octets[6], octets[7]]);
        let Some(record) = RECORD_HEADER
            .checked_add(len as usize)
            .and_then(|end| octets.get_mut(..end))
        else {
            return;
        };
        let crc = crc32fast::hash(&record[..16]);
        record[16..20].copy_from_slice(&crc.to_be_bytes());
        let crc = {
            let mut all = record[..20].to_vec();
            all.extend_from_slice(&record[RECORD_HEADER..]);
            crc32fast::hash(&all)
        };
        record[20..24].copy_from_slice(&crc.to_be_bytes());
        let end = record.len();
        octets = &mut octets[end..];
    }
}
