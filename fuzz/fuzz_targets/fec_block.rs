//! Any units in any order into a block decoder: honest, repeated, damaged and invented ones.
//!
//! Held: the decoder never panics; it counts what it needs from what it accepted; as long as every
//! accepted unit was honest, it rebuilds exactly the lost payloads as soon as it has k units.

#![no_main]

use arbitrary::Arbitrary;
use core::num::NonZeroU8;
use fulmar_proto::fec::block::{BlockDecoder, Undecodable, encode_repair};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Plan {
    k: NonZeroU8,
    /// The sources, repeated in turn until there are k.
    payloads: Vec<Vec<u8>>,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Source { index: u8 },
    Repair { index: u8 },
    DamagedRepair { index: u8, octet: u16, by: u8 },
    InventedSource { index: u8, payload: Vec<u8> },
    InventedRepair { index: u8, symbol: Vec<u8> },
    Decode,
}

/// The decoder, the block that it should collect, and whether only units of that block got in.
struct Trial<'a> {
    sources: Vec<&'a [u8]>,
    decoder: BlockDecoder,
    honest: bool,
    rebuilt: Vec<Option<Vec<u8>>>,
}

impl Trial<'_> {
    fn repair(&self, index: u8) -> Option<Vec<u8>> {
        let mut symbol = Vec::new();
        let made = encode_repair(&self.sources, index, &mut symbol);
        made.ok().map(|()| symbol)
    }

    /// Whether the decoder accepted the source.
    fn feed_source(&mut self, index: u8, payload: &[u8]) -> bool {
        let taken = self.decoder.add_source(index, payload).is_ok();
        self.honest &= !taken || self.sources[usize::from(index)] == payload;
        taken
    }

    /// Whether the decoder accepted the repair symbol.
    fn feed_repair(&mut self, index: u8, symbol: &[u8]) -> bool {
        let taken = self.decoder.add_repair(index, symbol).is_ok();
        self.honest &= !taken || self.repair(index).as_deref() == Some(symbol);
        taken
    }

    fn step(&mut self, step: Step) -> bool {
        match step {
            Step::Source { index } => match self.sources.get(usize::from(index)).copied() {
                Some(payload) => self.feed_source(index, payload),
                None => self.feed_source(index, &[]),
            },
            Step::Repair { index } => {
                let symbol = self.repair(index).unwrap_or_default();
                self.feed_repair(index, &symbol)
            }
            Step::DamagedRepair { index, octet, by } => {
                let mut symbol = self.repair(index).unwrap_or(vec![0; 2]);
                let place = usize::from(octet) % symbol.len();
                symbol[place] ^= by;
                self.feed_repair(index, &symbol)
            }
            Step::InventedSource { index, payload } => self.feed_source(index, &payload),
            Step::InventedRepair { index, symbol } => self.feed_repair(index, &symbol),
            Step::Decode => {
                self.decode();
                false
            }
        }
    }

    fn decode(&mut self) {
        let needed = self.decoder.needed();
        match self.decoder.decode() {
            Ok(lost) => {
                assert!(needed == 0 && self.decoder.is_complete());
                for (index, payload) in lost {
                    let index = usize::from(index);
                    assert!(!self.honest || payload == self.sources[index]);
                    let before = self.rebuilt[index].replace(payload);
                    assert_eq!(before, None, "each is rebuilt once");
                }
            }
            Err(Undecodable::Missing { units }) => assert!(units == needed && units > 0),
            Err(Undecodable::Corrupt { .. }) => {
                assert!(!self.honest && needed == 0);
                assert!(
                    self.decoder.needed() > 0,
                    "the repair symbols are forgotten"
                );
            }
        }
    }
}

fuzz_target!(|plan: Plan| {
    let none = Vec::new();
    let mut payloads = plan.payloads.iter().cycle();
    let mut trial = Trial {
        sources: (0..plan.k.get())
            .map(|_| payloads.next().unwrap_or(&none).as_slice())
            .collect(),
        decoder: BlockDecoder::new(plan.k),
        honest: true,
        rebuilt: vec![None; usize::from(plan.k.get())],
    };
    for step in plan.steps {
        let before = trial.decoder.needed();
        let decodes = matches!(step, Step::Decode);
        let taken = trial.step(step);
        let after = trial.decoder.needed();
        assert!(decodes || after == before || (taken && after + 1 == before));
    }
    for index in 0..plan.k.get() {
        let place = usize::from(index);
        let held = trial.decoder.source(index);
        assert!(held.is_none() || trial.rebuilt[place].is_none());
        assert!(!trial.honest || held.is_none_or(|payload| payload == trial.sources[place]));
    }
});
