//! See `laws/session_messages.rs`, which an ordinary test holds the corpus to.

#![no_main]

#[path = "../laws/session_messages.rs"]
mod law;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| law::holds(octets));
