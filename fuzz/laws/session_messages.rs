//! Any octets as a message of a session: what reads is written as no more octets, which read as the same.

use fulmar_net::session::rewrite_message;

/// # Panics
/// A law is broken.
pub(crate) fn holds(octets: &[u8]) {
    let Some(written) = rewrite_message(octets) else {
        return;
    };
    assert!(written.len() <= octets.len(), "nothing is made up");
    assert_eq!(written.first(), octets.first(), "the same type");
    assert_eq!(rewrite_message(&written), Some(written.clone()));
}
