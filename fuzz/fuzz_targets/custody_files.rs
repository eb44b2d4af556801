//! Any files in a custody store: it opens, the flows it accepts can be used, and the flow beside them is
//! unharmed.

#![no_main]

#[path = "../checks/custody_files.rs"]
mod files;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| files::check(input));
