//! Any message, any strength, any damage into the packet code.
//!
//! Held: no panic; damage within half of each codeword's parity is undone and counted; a packet that is
//! called corrected is a valid region, which another correction leaves alone.

#![no_main]

use arbitrary::Arbitrary;
use fulmar_proto::fec::packet::{Corrected, PacketCode};
use fulmar_proto::wire::aerotp::FecStrength;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Damage {
    message: Vec<u8>,
    words: u16,
    errors: Vec<(u16, u8)>,
}

fuzz_target!(|damage: Damage| {
    let words = FecStrength::from_words(damage.words % 257).unwrap();
    let message = damage.message.len();
    let mut code = PacketCode::new();
    let mut received = damage.message;
    code.append_parity(&mut received, 0, words);
    if received.is_empty() {
        return;
    }
    let sent = received.clone();
    for &(place, by) in &damage.errors {
        let place = usize::from(place) % received.len();
        received[place] ^= by;
    }
    // Octet p belongs to codeword p mod n (docs/models/fec.md).
    let codewords = sent.len().div_ceil(255);
    let (mut parity, mut wrong) = (vec![0; codewords], vec![0; codewords]);
    for (place, (a, b)) in sent.iter().zip(&received).enumerate() {
        parity[place % codewords] += u32::from(place >= message);
        wrong[place % codewords] += u32::from(a != b);
    }
    let within = wrong
        .iter()
        .zip(&parity)
        .all(|(&wrong, &parity)| wrong <= parity / 2);
    let result = code.correct(&mut received, words);
    if message == 0 {
        assert!(result.is_err());
    } else if within {
        let symbols = wrong.iter().sum();
        assert_eq!(result, Ok(Corrected { symbols }));
        assert_eq!(received, sent);
    } else if result.is_ok() {
        let claimed = received.clone();
        assert_eq!(
            code.correct(&mut received, words),
            Ok(Corrected { symbols: 0 })
        );
        assert_eq!(received, claimed);
    }
});
