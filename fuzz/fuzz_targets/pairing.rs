//! See `laws/pairing.rs`, which an ordinary test holds the corpus to.

#![no_main]

#[path = "../laws/pairing.rs"]
mod law;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|plan: &[u8]| law::holds(plan));
