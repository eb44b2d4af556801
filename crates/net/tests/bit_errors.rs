//! Bit errors at random, for media that the tests make themselves.

use fulmar_proto::rng::Rng;

/// Inverts each bit of `octets` with probability `rate`.
pub(crate) fn flip(rng: &mut Rng, rate: f64, octets: &mut [u8]) {
    let bits = octets.len() * 8;
    let mut bit = 0_f64;
    loop {
        // Bit errors at random, drawn by the gaps between them.
        bit += -(1.0 - rng.unit_f64()).ln() / rate;
        if bit >= bits as f64 {
            return;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "in range"
        )]
        let place = bit as usize;
        octets[place / 8] ^= 1 << (place % 8);
    }
}
