//! Any octets as a file transfer's conversation: records that parse are written and parse to the same, and
//! a stream cut anywhere gives the records that the whole gives.

#![no_main]

use fulmar_net::transfer::rewrite_conversation;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<u8>, Vec<u8>)| {
    let (octets, cuts) = input;
    let whole = rewrite_conversation(&octets, [octets.len()]);
    let cuts = cuts.iter().map(|cut| usize::from(*cut));
    assert_eq!(whole, rewrite_conversation(&octets, cuts));
    let (written, _) = whole;
    let again = rewrite_conversation(&written, [written.len()]);
    assert_eq!(again, (written, None));
});
