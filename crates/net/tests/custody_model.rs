//! The custody store gives back what it took: across reopening, against a model that is a vector.
//!
//! Method: random operations on a few flows, each applied to the store and to the model; every read
//! is compared, and now and then the store is closed and opened again, which must find the model.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use fulmar_net::custody::{FlowStore, Store, StoreConfig, SyncPolicy};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::FlowId;
use fulmar_proto::units::ByteCount;
use std::collections::BTreeMap;
use std::path::Path;

/// A limit above the octets that the flows can hold, since the model knows none. Segments get the smallest size.
const LIMIT: ByteCount = ByteCount(16 << 20);
const FLOWS: u64 = 4;
const STEPS: usize = 400;
/// The longest append, which is larger than a segment.
const APPEND_MAX: u64 = 150_000;
const KEPT_MAX: u64 = 2 << 20;

#[derive(Debug, Default)]
struct Model {
    octets: Vec<u8>,
    released: u64,
    finished: bool,
    record: Vec<u8>,
}

fn open(directory: &Path, sync: SyncPolicy) -> (Store, BTreeMap<FlowId, FlowStore>) {
    let config = StoreConfig {
        directory: directory.to_owned(),
        limit: LIMIT,
        sync,
    };
    let (store, recovery) = Store::open(config, None).unwrap();
    assert!(recovery.damaged.is_empty(), "{:?}", recovery.damaged);
    let flows = recovery.flows.into_iter().map(|found| {
        assert_eq!(found.torn_bytes, 0);
        (found.store.flow(), found.store)
    });
    let flows = flows.collect();
    (store, flows)
}

fn check(flow: &mut FlowStore, model: &Model, seed: u64) {
    assert_eq!(flow.end(), model.octets.len() as u64, "seed {seed}");
    assert_eq!(flow.finished().is_some(), model.finished, "seed {seed}");
    assert_eq!(flow.record(), model.record, "seed {seed}");
    // Released octets may come back after a restart; others must not be missing.
    assert!(flow.start() <= model.released, "seed {seed}");
    let mut at = model.released;
    while at < flow.end() {
        let piece = flow.read(at, 50_000).unwrap();
        let from = usize::try_from(at).unwrap();
        assert!(!piece.is_empty(), "seed {seed} at {at}");
        assert!(
            piece == &model.octets[from..from + piece.len()],
            "seed {seed} at {at}"
        );
        at += piece.len() as u64;
    }
}

fn run(seed: u64, sync: SyncPolicy) {
    let directory = tempfile::tempdir().unwrap();
    let mut rng = Rng::from_seed(seed);
    let (mut store, mut flows) = open(directory.path(), sync);
    let mut models: BTreeMap<FlowId, Model> = BTreeMap::new();
    for step in 0..STEPS {
        let id = FlowId(u128::from(rng.below(FLOWS)).to_be_bytes());
        let flow = flows.entry(id).or_insert_with(|| {
            let record = format!("begun at {step}").into_bytes();
            let flow = store.begin(id, 0, &record).unwrap().unwrap();
            let model = Model {
                record,
                ..Model::default()
            };
            models.insert(id, model);
            flow
        });
        let model = models.get_mut(&id).unwrap();
        let kept = flow.end() - model.released;
        match rng.below(20) {
            0..8 if !model.finished && kept < KEPT_MAX => {
                // Small appends are as frequent as large ones.
                let most = APPEND_MAX >> rng.below(17);
                let mut octets = vec![0; usize::try_from(1 + rng.below(most)).unwrap()];
                rng.fill(&mut octets);
                assert_eq!(flow.append(&octets).unwrap(), octets.len(), "seed {seed}");
                model.octets.extend_from_slice(&octets);
            }
            8..13 => {
                model.released += rng.below(kept + 1);
                flow.release(model.released);
                assert_eq!(flow.start(), model.released, "seed {seed}");
                assert!(model.released == 0 || flow.read(model.released - 1, 1).is_err());
            }
            13 => {
                model.released = flow.end();
                flow.release(flow.end());
            }
            14 => {
                model.record = format!("noted at {step}").into_bytes();
                flow.set_record(&model.record).unwrap();
            }
            15 if rng.below(4) == 0 => {
                flow.finish().unwrap();
                model.finished = true;
            }
            16 if rng.below(3) == 0 => {
                flows.remove(&id).unwrap().forget().unwrap();
                models.remove(&id);
            }
            17 => {
                drop(flows);
                drop(store);
                (store, flows) = open(directory.path(), sync);
                assert!(flows.keys().eq(models.keys()), "seed {seed} step {step}");
            }
            _ => check(flow, model, seed),
        }
    }
    for (id, flow) in &mut flows {
        check(flow, &models[id], seed);
        // One segment, the octets that do not fill it, and headers may be left over.
        flow.release(flow.end());
    }
    assert!(
        store.used().0 <= FLOWS * (64 << 10),
        "{} left, seed {seed}",
        store.used()
    );
    for flow in flows.into_values() {
        flow.forget().unwrap();
    }
    assert_eq!(store.used(), ByteCount(0), "seed {seed}");
    drop(store);
    let names: Vec<_> = directory.path().read_dir().unwrap().collect();
    assert_eq!(
        names.len(),
        1,
        "only the store's own file is left: {names:?}"
    );
}

#[test]
fn what_a_store_took_it_gives_back_across_reopening() {
    for seed in 0..24 {
        run(seed, SyncPolicy::Never);
    }
}

#[test]
fn syncing_changes_nothing_of_that() {
    run(100, SyncPolicy::Always);
    run(
        101,
        SyncPolicy::Every(core::time::Duration::from_millis(50)),
    );
}
