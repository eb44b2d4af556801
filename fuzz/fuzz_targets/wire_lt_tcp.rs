//! Any octets behind a sound TCP header into LT-TCP's parser: what parses is written as the same octets, lists are
//! bounded, and a unit has the length that it says. The octets are tried as a whole segment, too.

#![no_main]

use fulmar_baseline::wire::lt_tcp::{Extension, LtSegment, REPORTS_MAX, RUNS_MAX, write_segment};
use fulmar_baseline::wire::tcp::{AddressPair, TcpHeader};
use fulmar_proto::wire::network::NodeAddress;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    let addresses = AddressPair::nodes(NodeAddress(1), NodeAddress(2));
    let _ = LtSegment::parse(&addresses, octets);
    let mut segment = Vec::new();
    TcpHeader::default().write(&addresses, octets, &mut segment);
    let Ok(parsed) = LtSegment::parse(&addresses, &segment) else {
        return;
    };
    match &parsed.extension {
        Extension::None => assert!(octets.is_empty()),
        Extension::Unit(unit, content) => assert_eq!(content.len(), unit.payload_len()),
        Extension::Feedback(feedback) => {
            assert!(feedback.reports.len() <= REPORTS_MAX && feedback.runs.len() <= RUNS_MAX);
        }
    }
    let mut again = Vec::new();
    write_segment(
        &parsed.header,
        &parsed.extension,
        &addresses,
        &mut Vec::new(),
        &mut again,
    );
    assert_eq!(again, segment);
});
