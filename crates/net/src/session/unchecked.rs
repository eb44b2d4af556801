//! The agreement of two ends on data that travels by carriers which let damage through.
//!
//! An end that says `unchecked` mends armoured data, with as many words of parity as each datagram's header says, and
//! takes datagrams without checksum where its network lets it. Whoever sends there may armour its data then
//! ([ADR 0033](../../../../docs/adr/0033-damaged-datagrams-count.md)).

use super::wire::Capability;
use fulmar_proto::units::FecStrength;

const CAPABILITY: &str = "unchecked";
const VERSION: &str = "1";

/// The words of parity behind each message of a handshake on such a carrier. At one wrong bit in a thousand an
/// initiation cannot be mended once in ten million times. Nothing is agreed on yet, so the number is fixed.
pub(super) const HANDSHAKE_WORDS: FecStrength = FecStrength::from_words(12).expect("a few words");

/// The capability in a hello of an end that mends armoured data.
pub fn unchecked() -> Capability {
    Capability {
        name: CAPABILITY.to_owned(),
        value: VERSION.to_owned(),
        must_agree: false,
    }
}

/// Whether an end that says this mends armoured data.
pub(super) fn mends(capabilities: &[Capability]) -> bool {
    let mut said = capabilities.iter();
    said.any(|one| one.name == CAPABILITY && one.value == VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_mends_if_it_says_so_in_this_version() {
        let other = Capability {
            value: "2".to_owned(),
            ..unchecked()
        };
        assert!(mends(&[other.clone(), unchecked()]));
        assert!(!mends(&[other]));
        assert!(!mends(&[]));
    }
}
