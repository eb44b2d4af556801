//! The fingerprint that both ends show.

use crate::session::{PublicKey, derive_key};
use core::fmt::Write;

const CONTEXT: &str = "fulmar 2026-11-28 pairing fingerprint";
/// 64 bits: whoever stands between two ends knows both of their keys before he must choose the last of his own, and has
/// the time of one exchange for 2^64 tries.
const BYTES: usize = 8;

/// The fingerprint of both keys of a pair: four groups of four hexadecimal digits, the same at either end.
pub fn fingerprint(called: &PublicKey, caller: &PublicKey) -> String {
    let hash = derive_key(CONTEXT, &[*called.octets(), *caller.octets()].concat());
    let mut text = String::new();
    for (n, octet) in hash.iter().take(BYTES).enumerate() {
        let joint = if n > 0 && n % 2 == 0 { " " } else { "" };
        // A string takes all.
        let _written = write!(text, "{joint}{octet:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_depends_on_both_keys_and_their_ends() {
        let [a, b] = [1, 2].map(|octet| PublicKey::from_octets([octet; 32]));
        let shown = fingerprint(&a, &b);
        assert_eq!(shown.len(), 19, "{shown}");
        assert_ne!(shown, fingerprint(&b, &a));
        assert_ne!(shown, fingerprint(&a, &a));
        assert_ne!(shown, fingerprint(&b, &b));
    }
}
