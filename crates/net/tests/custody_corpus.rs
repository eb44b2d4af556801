//! The corpora of the fuzz targets `custody_files` and `keeper_messages`, as they are and damaged: without a
//! fuzzer, the same checks on fixed changes.

#[path = "../../../fuzz/checks/custody_files.rs"]
mod files;
#[path = "../../../fuzz/checks/keeper_messages.rs"]
mod messages;

use fulmar_proto::rng::Rng;
use std::path::PathBuf;

/// The changes of each input.
const CHANGES: usize = 40;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let files = std::fs::read_dir(folder.join(target)).expect("a corpus");
    let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();
    files
        .iter()
        .map(|file| std::fs::read(file).expect("an input"))
        .collect()
}

/// The input with some bits flipped, cut, or with a piece of another.
fn changed(input: &[u8], all: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut below = |end: usize| usize::try_from(rng.below(end.max(1) as u64)).expect("an index");
    let mut octets = input.to_vec();
    match below(4) {
        0 => octets.truncate(below(octets.len())),
        1 => {
            let other = &all[below(all.len())];
            octets.truncate(below(octets.len()));
            octets.extend_from_slice(&other[below(other.len())..]);
        }
        flips => {
            for _ in 0..flips {
                let bit = below(octets.len() * 8);
                octets[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
    octets
}

fn replay(target: &str, check: impl Fn(&[u8])) {
    let all = corpus(target);
    assert!(all.len() >= 9, "{target}");
    let mut rng = Rng::from_seed(1);
    for input in &all {
        check(input);
        for _ in 0..CHANGES {
            check(&changed(input, &all, &mut rng));
        }
    }
}

#[test]
fn any_files_leave_the_store_usable_and_the_flow_beside_them_whole() {
    replay("custody_files", files::check);
}

#[test]
fn any_packet_is_a_message_that_encodes_to_itself_or_none() {
    replay("keeper_messages", messages::check);
}
