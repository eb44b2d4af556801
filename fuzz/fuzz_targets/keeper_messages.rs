//! Any octets as a packet between gateway and keeper: a message that encodes to itself, or none.

#![no_main]

#[path = "../checks/keeper_messages.rs"]
mod messages;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| messages::check(octets));
