//! The law for any packet between gateway and keeper.

use fulmar_net::keeper::{KeeperMessage, NoMessage};

/// Checks that a message means the same when it is written again, and that nothing else is a message.
pub(crate) fn check(octets: &[u8]) {
    match KeeperMessage::decode(octets) {
        Ok(message) => {
            let again = message.encode();
            assert!(again.len() <= octets.len(), "{message:?} grew");
            assert_eq!(again[..], octets[..again.len()], "{message:?}");
            assert_eq!(KeeperMessage::decode(&again), Ok(message));
        }
        Err(NoMessage::Version(version)) => assert_eq!(octets[0], version),
        Err(NoMessage::Malformed) => assert!(octets.len() < 2 || octets[0] == 1),
    }
}
