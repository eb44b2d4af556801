//! The laws of the fuzz targets (`fuzz/laws`), checked for every committed input.

use std::fs;
use std::path::Path;

#[path = "../../../fuzz/laws/gateway_http.rs"]
mod gateway_http;
#[path = "../../../fuzz/laws/gateway_socks.rs"]
mod gateway_socks;
#[path = "../../../fuzz/laws/one_way.rs"]
mod one_way;
#[path = "../../../fuzz/laws/pairing.rs"]
mod pairing;
#[path = "../../../fuzz/laws/session_messages.rs"]
mod session_messages;

/// Checks every input of a target, and every beginning of each.
fn replay(target: &str, law: fn(&[u8])) {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let inputs = fs::read_dir(place.join(target)).expect("a corpus");
    let mut seen = 0;
    for input in inputs {
        let path = input.expect("a file").path();
        let octets = fs::read(&path).expect("a file");
        println!("{}", path.display());
        law(&octets);
        // Some beginnings of long inputs.
        for end in (0..octets.len()).step_by(1 + octets.len() / 300) {
            law(&octets[..end]);
        }
        seen += 1;
    }
    assert!(seen >= 10, "{seen} inputs of {target}");
}

#[test]
fn requests_of_the_http_corpus_keep_its_laws() {
    replay("gateway_http", gateway_http::holds);
}

#[test]
fn messages_of_the_socks_corpus_keep_its_laws() {
    replay("gateway_socks", gateway_socks::holds);
}

#[test]
fn datagrams_of_the_one_way_corpus_keep_its_laws() {
    replay("one_way", one_way::holds);
}

#[test]
fn plans_of_the_pairing_corpus_keep_its_laws() {
    replay("pairing", pairing::holds);
}

#[test]
fn messages_of_the_session_corpus_keep_its_laws() {
    replay("session_messages", session_messages::holds);
}
