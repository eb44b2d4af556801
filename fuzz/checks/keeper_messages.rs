//! What holds for any packet between gateway and keeper.

use fulmar_net::keeper::{Message, NoMessage};

/// A message of ours says what it says when it is written again; nothing else is one.
pub(crate) fn check(octets: &[u8]) {
    match Message::decode(octets) {
        Ok(message) => {
            let again = message.encode();
            assert!(again.len() <= octets.len(), "{message:?} grew");
            assert_eq!(again[..], octets[..again.len()], "{message:?}");
            assert_eq!(Message::decode(&again), Ok(message));
        }
        Err(NoMessage::Version(version)) => assert_eq!(octets[0], version),
        Err(NoMessage::Malformed) => assert!(octets.len() < 2 || octets[0] == 1),
    }
}
