//! The laws of the short form (`fuzz/laws/wire_short.rs`) hold for every committed input, for its beginnings, and for
//! a great many changes of it.

#[path = "../../../fuzz/laws/wire_short.rs"]
mod law;

use fulmar_proto::rng::Rng;
use fulmar_proto::wire::aerotp::short::{
    Content, FrameError, Name, Named, ShortFeedback, write_followed,
};
use fulmar_proto::wire::aerotp::{CumulativeWords, EcnField, Handshake};
use fulmar_proto::wire::{TpduSeq, varint};
use std::fs;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/wire_short");
const SEED: u64 = 0x0529;

/// The committed inputs, in the order of their names.
fn corpus() -> Vec<Vec<u8>> {
    let files = fs::read_dir(CORPUS).expect("a corpus");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    let inputs = paths.iter().map(|path| fs::read(path).expect("a file"));
    inputs.collect()
}

#[test]
fn every_input_and_every_beginning_of_it_keeps_the_laws() {
    let inputs = corpus();
    assert!(inputs.len() >= 10);
    for input in inputs {
        for end in 0..=input.len() {
            law::holds(&input[..end]);
        }
    }
}

fn below(stream: &mut Rng, bound: usize) -> usize {
    usize::try_from(stream.below(bound as u64)).expect("it is below a length")
}

fn octet(stream: &mut Rng) -> u8 {
    u8::try_from(stream.below(256)).expect("an octet")
}

#[test]
fn changed_and_joined_inputs_keep_the_laws() {
    let mut stream = Rng::from_seed(SEED).child("wire/short");
    let inputs = corpus();
    for _ in 0..200_000 {
        let mut octets = Vec::new();
        for _ in 0..below(&mut stream, 3) {
            let input = &inputs[below(&mut stream, inputs.len())];
            // A repair symbol is the last frame, as data are.
            if input[0] < 0x40 && !matches!(input[0], 0x30..=0x33) {
                write_followed(input, &mut octets);
            }
        }
        octets.extend_from_slice(&inputs[below(&mut stream, inputs.len())]);
        for _ in 0..below(&mut stream, 6) {
            let at = below(&mut stream, octets.len());
            octets[at] = octet(&mut stream);
        }
        for _ in 0..below(&mut stream, 12) {
            octets.push(octet(&mut stream));
        }
        law::holds(&octets);
    }
}

#[test]
fn noise_keeps_the_laws() {
    let mut stream = Rng::from_seed(SEED).child("wire/short/noise");
    for _ in 0..200_000 {
        let len = below(&mut stream, 64);
        let octets: Vec<u8> = (0..len).map(|_| octet(&mut stream)).collect();
        law::holds(&octets);
    }
}

/// A MACK whose list is `ranges`.
fn mack(ranges: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    let feedback = ShortFeedback {
        named: Named {
            name: Name(1),
            sender_opened: true,
        },
        ecn: EcnField::NONE,
        echo: 0,
        frame_bytes_max: 0,
    };
    let words = CumulativeWords::default();
    feedback.cumulative(Handshake::None, TpduSeq(0), words, [], &mut out);
    for number in ranges {
        varint::write(*number, &mut out);
    }
    out
}

#[test]
fn the_greatest_lists_keep_the_laws() {
    let most = (1 << 23) - 1;
    for ranges in [
        &[most, most][..],
        &[most, 0, most - 2, 0],
        &[most, 0, most - 1, 0],
        &[most + 1, 0],
        &[varint::MAX, varint::MAX],
        &[5, varint::MAX],
        &[5, 6],
        &[5, 5, 0, 0],
    ] {
        law::holds(&mack(ranges));
    }
    // A datagram of 64 KiB with nothing but runs of one.
    let many: Vec<u64> = core::iter::once(most)
        .chain(core::iter::repeat_n(0, 65_001))
        .collect();
    law::holds(&mack(&many));
}

#[test]
fn a_flood_of_frames_ends_at_the_sixteenth() {
    let empty = [0x87, 0x00].repeat(30_000);
    let frames: Vec<_> = Content::of(&empty).collect();
    assert_eq!(frames.len(), 17);
    assert!(frames[..16].iter().all(Result::is_ok));
    assert_eq!(frames[16], Err(FrameError::TooMany));
    law::holds(&empty);
}
