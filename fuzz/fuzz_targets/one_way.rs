//! See `laws/one_way.rs`, which an ordinary test holds the corpus to.

#![no_main]

#[path = "../laws/one_way.rs"]
mod law;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| law::holds(octets));
