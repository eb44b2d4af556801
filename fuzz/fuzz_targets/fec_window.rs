//! Units of a window in any order into its decoder: honest, repeated, damaged and invented ones, and forgetting.
//!
//! Held: the decoder never panics; it keeps within its limits; as long as every unit it took was honest, what it
//! rebuilds is what was sent, each source once.

#![no_main]

use arbitrary::Arbitrary;
use fulmar_proto::fec::window::{
    Density, Rebuilt, RejectedSymbol, RepairSpan, WindowDecoder, WindowEncoder, WindowLimits,
};
use libfuzzer_sys::fuzz_target;

const LIMITS: WindowLimits = WindowLimits {
    sources: 48,
    equations: 16,
    memory_bytes: 4096,
};
/// The ordinals of the sources that exist.
const SOURCES: u64 = 128;

#[derive(Arbitrary, Debug)]
struct Plan {
    /// The sources, repeated in turn.
    payloads: Vec<Vec<u8>>,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug, Clone, Copy)]
struct Span {
    first: u8,
    count: u8,
    key: u16,
    density: u8,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Source { ordinal: u8 },
    Repair { span: Span },
    DamagedRepair { span: Span, octet: u16, by: u8 },
    InventedSource { ordinal: u64, payload: Vec<u8> },
    InventedRepair { first: u64, count: u16, span: Span, symbol: Vec<u8> },
    Forget { by: u8 },
}

struct Trial<'a> {
    payloads: Vec<&'a [u8]>,
    decoder: WindowDecoder,
    honest: bool,
    came: Vec<bool>,
}

impl Trial<'_> {
    fn payload(&self, ordinal: u64) -> &[u8] {
        self.payloads[ordinal as usize % self.payloads.len()]
    }

    fn span(&self, span: Span) -> RepairSpan {
        let first = u64::from(span.first) % SOURCES;
        RepairSpan {
            first,
            count: (u64::from(span.count) % 32 + 1).min(SOURCES - first) as u16,
            key: span.key,
            density: Density::new(span.density % 16).expect("below 16"),
        }
    }

    fn symbol(&self, span: RepairSpan) -> Vec<u8> {
        let end = span.first + u64::from(span.count);
        let sources: Vec<&[u8]> = (span.first..end).map(|o| self.payload(o)).collect();
        let mut symbol = Vec::new();
        let made = WindowEncoder::new().encode_repair(&sources, span.key, span.density, &mut symbol);
        made.expect("a span of honest sources");
        symbol
    }

    /// Looks at what came of a unit.
    fn look(&mut self, added: Result<Rebuilt, RejectedSymbol>) {
        assert!(self.decoder.memory_bytes() <= LIMITS.memory_bytes);
        assert!(self.decoder.end() - self.decoder.base() <= LIMITS.sources as u64);
        match added {
            Ok(rebuilt) if self.honest => {
                for (ordinal, payload) in rebuilt {
                    assert_eq!(payload, self.payload(ordinal));
                    assert!(!core::mem::replace(&mut self.came[ordinal as usize], true));
                }
            }
            Err(RejectedSymbol::Corrupt) => assert!(!self.honest),
            Ok(_) | Err(_) => {}
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Source { ordinal } => {
                let ordinal = u64::from(ordinal) % SOURCES;
                let payload = self.payload(ordinal).to_vec();
                let added = self.decoder.add_source(ordinal, &payload);
                if added.is_ok() {
                    self.came[ordinal as usize] = true;
                }
                self.look(added);
            }
            Step::Repair { span } => {
                let span = self.span(span);
                let symbol = self.symbol(span);
                let added = self.decoder.add_repair(span, &symbol);
                self.look(added);
            }
            Step::DamagedRepair { span, octet, by } => {
                let span = self.span(span);
                let mut symbol = self.symbol(span);
                let place = usize::from(octet) % symbol.len();
                symbol[place] ^= by;
                self.honest &= by == 0;
                let added = self.decoder.add_repair(span, &symbol);
                self.look(added);
            }
            Step::InventedSource { ordinal, payload } => {
                self.honest = false;
                let added = self.decoder.add_source(ordinal, &payload);
                self.look(added);
            }
            Step::InventedRepair { first, count, span, symbol } => {
                self.honest = false;
                let span = RepairSpan { first, count, ..self.span(span) };
                let added = self.decoder.add_repair(span, &symbol);
                self.look(added);
            }
            Step::Forget { by } => {
                let base = self.decoder.base();
                self.decoder.forget_before(base.saturating_add(u64::from(by % 8)));
            }
        }
    }
}

fuzz_target!(|plan: Plan| {
    let payloads: Vec<&[u8]> = match plan.payloads.as_slice() {
        [] => vec![&[]],
        some => some.iter().map(Vec::as_slice).collect(),
    };
    let mut trial = Trial {
        payloads,
        decoder: WindowDecoder::new(0, LIMITS),
        honest: true,
        came: vec![false; SOURCES as usize],
    };
    for step in plan.steps {
        trial.step(step);
    }
});
