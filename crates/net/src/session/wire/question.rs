//! The question "is a gateway there, and which version does it speak?", asked without keys, and without a trace
//! in either session.
//!
//! The question is the header of an initiation of version 0, which no end speaks, so that any
//! gateway answers with a version datagram (docs/protocol/session.md, section 1).

use super::header::{DatagramType, HEADER_BYTES, Header};
use fulmar_proto::units::FecStrength;

/// The version of a question.
pub(in crate::session) const QUESTION_VERSION: u8 = 0;

/// Octets of a question.
pub const QUESTION_BYTES: usize = HEADER_BYTES;

/// A question; `index` is what its answer will carry.
pub fn version_question(index: u32) -> [u8; QUESTION_BYTES] {
    Header {
        kind: DatagramType::Initiation,
        fec: FecStrength::NONE,
        receiver: 0,
        low: index,
    }
    .to_octets_of(QUESTION_VERSION)
}

/// The version that `octets` name, if they answer the question `index`.
pub fn version_answer(octets: &[u8], index: u32) -> Option<u8> {
    let header = Header::parse(octets).ok()?;
    let version = octets.first()? >> 4;
    (header.kind == DatagramType::Version && header.receiver == index).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SESSION_VERSION;

    fn answer(index: u32, version: u8) -> [u8; QUESTION_BYTES] {
        Header {
            kind: DatagramType::Version,
            fec: FecStrength::NONE,
            receiver: index,
            low: 0,
        }
        .to_octets_of(version)
    }

    #[test]
    fn an_answer_names_its_version_and_only_to_its_own_question() {
        assert_eq!(version_answer(&answer(7, SESSION_VERSION), 7), Some(1));
        assert_eq!(version_answer(&answer(7, 9), 7), Some(9));
        assert_eq!(version_answer(&answer(7, 9), 8), None);
    }

    #[test]
    fn a_question_is_no_answer_and_neither_are_damaged_octets() {
        assert_eq!(version_answer(&version_question(7), 7), None);
        let mut damaged = answer(7, 1);
        damaged[11] ^= 1;
        assert_eq!(version_answer(&damaged, 7), None);
        assert_eq!(version_answer(&[], 7), None);
    }
}
