//! One history, and what must hold in it.

use super::disk::{Fault, SimulatedDisk};
use crate::custody::aside::Aside;
use crate::custody::disk::Disk;
use crate::custody::flow::Shared;
use crate::custody::recovery::Recovery;
use crate::custody::room_look::RoomLook;
use crate::custody::segment::{self, HEADER_BYTES, Header};
use crate::custody::space::Space;
use crate::custody::sync::{Syncer, Worker};
use crate::custody::{FlowFault, FlowStore, Store, SyncPolicy};
use core::ops::AddAssign;
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::FlowId;
use fulmar_proto::units::ByteCount;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const SLOTS: u64 = 2;
const REUSE_BYTES: u64 = 600;
const APPEND_MAX: u64 = 900;
const LIMIT: ByteCount = ByteCount(64 << 10);

/// The sizes of a history's segments. Each seed has a history with either size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Segments {
    /// A flow has one or two, with many records.
    Large,
    /// A flow has many, and one release deletes several.
    Small,
}

impl Segments {
    pub(super) const fn of(seed: u64) -> Self {
        if seed.is_multiple_of(3) {
            Self::Small
        } else {
            Self::Large
        }
    }

    const fn bytes(self) -> u64 {
        match self {
            Self::Large => 2_500,
            Self::Small => HEADER_BYTES as u64 + 300,
        }
    }
}

/// Counts of the things that happened, such as faults and kills.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Happened {
    pub(super) faults: u64,
    pub(super) kills: u64,
    pub(super) power_cuts: u64,
    pub(super) flips: u64,
    pub(super) damaged: u64,
    pub(super) compared_bytes: u64,
    /// Faults that struck with a part of a flow's files deleted.
    pub(super) among_deletions: u64,
}

impl AddAssign for Happened {
    fn add_assign(&mut self, other: Self) {
        self.faults += other.faults;
        self.kills += other.kills;
        self.power_cuts += other.power_cuts;
        self.flips += other.flips;
        self.damaged += other.damaged;
        self.compared_bytes += other.compared_bytes;
        self.among_deletions += other.among_deletions;
    }
}

/// The facts that are known about a flow.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each was asked for or not")]
struct Model {
    /// Whether it was begun for sure.
    begun: bool,
    /// Whether forgetting was asked for.
    forgotten: bool,
    acknowledged: u64,
    /// The octets on the disk, as the store said.
    synced: u64,
    released: u64,
    /// Whether `finish` was called, and whether it has returned well.
    finishing: bool,
    finished: bool,
    /// The ends that it was given. A power cut may move the end.
    totals: Vec<u64>,
    /// The record may be any of these.
    records: Vec<Vec<u8>>,
    /// Whether a bit was flipped in it, or it could not be read at a start: it may end anywhere.
    hit: bool,
}

impl Model {
    /// Whether a file alone tells what is lost: of a flow that was hit, a power cut may bring a file back beside
    /// one that has the same octets.
    const fn is_checked(&self) -> bool {
        !self.forgotten && !self.hit
    }
}

/// The way in which the last life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Kill,
    PowerCut,
}

struct History {
    seed: u64,
    rng: Rng,
    disk: SimulatedDisk,
    policy: SyncPolicy,
    segments: Segments,
    models: BTreeMap<FlowId, Model>,
    next: u64,
    /// Whether a fault came at some time: files that could not be deleted may be back.
    troubled: bool,
    happened: Happened,
}

/// A process with the store.
struct Life {
    store: Store,
    worker: Option<Worker>,
    flows: BTreeMap<FlowId, FlowStore>,
}

/// The octet of a flow at an offset.
fn octet(flow: FlowId, offset: u64) -> u8 {
    let mixed = (offset ^ u64::from(flow.0[15]) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.to_be_bytes()[0]
}

fn octets(flow: FlowId, from: u64, len: u64) -> Vec<u8> {
    (from..from + len).map(|at| octet(flow, at)).collect()
}

/// Says which history it was, whatever panicked in it.
struct Name(u64, Segments);

impl Drop for Name {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("history {} with segments {:?}", self.0, self.1);
        }
    }
}

pub(super) fn run(seed: u64, segments: Segments) -> Happened {
    let _name = Name(seed, segments);
    let mut rng = Rng::from_seed(seed);
    let policy = match rng.below(3) {
        0 => SyncPolicy::Always,
        1 => SyncPolicy::Every(Duration::from_millis(50)),
        _ => SyncPolicy::Never,
    };
    let mut history = History {
        seed,
        disk: SimulatedDisk::new(rng.child("disk")),
        rng,
        policy,
        segments,
        models: BTreeMap::new(),
        next: 0,
        troubled: false,
        happened: Happened::default(),
    };
    let mut end = End::Kill;
    for _ in 0..=history.rng.below(4) {
        let plan = history.plan();
        end = history.live(plan, end);
    }
    history.disk.set_capacity(usize::MAX);
    history.disk.revive(None);
    let mut life = history.open(end).expect("nothing fails any more");
    for (id, flow) in &mut life.flows {
        history.compare(*id, flow);
    }
    history.happened
}

impl History {
    fn plan(&mut self) -> Option<(u64, Fault)> {
        let errno = [Errno::IO, Errno::NOSPC, Errno::DQUOT][self.below(3)];
        let fault = match self.rng.below(8) {
            0 => return None,
            1 | 2 => Fault::Fails(errno),
            3 => Fault::FailsLate(errno),
            4 => Fault::Short(errno),
            _ => Fault::Dies,
        };
        let calls = 80 >> self.rng.below(4);
        Some((1 + self.rng.below(calls), fault))
    }

    fn below(&mut self, end: u64) -> usize {
        usize::try_from(self.rng.below(end)).unwrap()
    }

    /// One life of a process, from the end of the one before.
    fn live(&mut self, plan: Option<(u64, Fault)>, end: End) -> End {
        self.disk.revive(plan);
        let opened = self.open(end);
        // The first life that gets so far compares what an earlier power cut took.
        let is_compared = opened.is_some();
        if let Some(mut life) = opened {
            for _ in 0..5 + self.rng.below(35) {
                self.step(&mut life);
                self.check_destroyed();
                if self.disk.is_dead() {
                    break;
                }
            }
        }
        if self.disk.has_fired() {
            self.troubled = true;
            self.happened.faults += 1;
            self.happened.among_deletions += u64::from(self.disk.has_fired_among_deletions());
        }
        if self.rng.chance(0.1) {
            self.flip();
        }
        if self.rng.chance(0.35) {
            self.disk.power_cut();
            self.happened.power_cuts += 1;
            End::PowerCut
        } else {
            self.happened.kills += 1;
            if is_compared { End::Kill } else { end }
        }
    }

    fn flip(&mut self) {
        let Some(name) = self.disk.flip() else { return };
        let flow = segment::flow_of(&name).unwrap();
        self.models.entry(flow).or_default().hit = true;
        self.happened.flips += 1;
    }

    /// Opens the store and compares it with the model; `None` if the process died while it did.
    fn open(&mut self, end: End) -> Option<Life> {
        for _ in 0..2 {
            let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
            let space = Arc::new(Space::new("/simulated".into(), LIMIT));
            let (syncer, worker) =
                Syncer::by_hand(self.policy, Arc::clone(&disk), Arc::clone(&space), None);
            let shared = Shared {
                directory: "/simulated".into(),
                aside: Aside::found(&*disk, ByteCount(u64::MAX)),
                room_look: RoomLook::new(Arc::clone(&disk), Arc::clone(&space), None),
                disk,
                space,
                syncer,
                segment_bytes: self.segments.bytes(),
                reuse_bytes: REUSE_BYTES,
            };
            let opened = Store::on(shared);
            self.check_destroyed();
            if self.disk.is_dead() {
                return None;
            }
            match opened {
                Ok((store, recovery)) => {
                    let flows = self.recovered(recovery, end);
                    return Some(Life {
                        store,
                        worker,
                        flows,
                    });
                }
                // Only a failing list of files keeps it from opening, and that once.
                Err(error) => assert!(self.disk.has_fired(), "seed {}: {error}", self.seed),
            }
        }
        panic!("seed {}: the store does not open", self.seed)
    }

    fn recovered(&mut self, recovery: Recovery, end: End) -> BTreeMap<FlowId, FlowStore> {
        let seed = self.seed;
        let mut flows = BTreeMap::new();
        for damaged in &recovery.damaged {
            self.happened.damaged += 1;
            let model = self.models.entry(damaged.flow).or_default();
            let is_unread = self.disk.has_fired_at_reading();
            let excused = model.hit || is_unread || !model.begun || model.forgotten;
            let unsynced = model.synced <= model.released;
            let ok = excused || (end == End::PowerCut && unsynced);
            assert!(ok, "seed {seed}, {end:?}: {damaged} {model:?}");
        }
        for mut found in recovery.flows {
            let id = found.store.flow();
            let model = self.models.entry(id).or_default();
            let excused = model.hit || self.disk.has_fired_at_reading() || model.forgotten;
            let told = format!(
                "seed {seed}, {end:?}: {id} {}..{} finished {:?} damage {:?} {model:?}",
                found.store.start(),
                found.store.end(),
                found.store.finished(),
                found.damage
            );
            let (from, to) = (found.store.start(), found.store.end());
            if !excused {
                assert!(end == End::PowerCut || found.damage.is_none(), "{told}");
                let promised = match end {
                    End::Kill => model.acknowledged,
                    End::PowerCut => model.synced,
                };
                assert!(promised <= model.released || to >= promised, "{told}");
                assert!(
                    promised <= model.released || from <= model.released,
                    "{told}"
                );
            }
            if let Some(total) = found.store.finished() {
                assert!(model.totals.contains(&total) && total == to, "{told}");
            }
            if !excused && end == End::Kill {
                assert!(
                    !model.finished || found.store.finished().is_some(),
                    "{told}"
                );
                let is_known = model
                    .records
                    .iter()
                    .any(|record| record == found.store.record());
                assert!(is_known, "{told}: {:?}", found.store.record());
            }
            model.hit |= found.damage.is_some();
            if end == End::PowerCut || excused {
                // What a power cut took is gone; what it left is all there is.
                model.acknowledged = model.acknowledged.min(to);
                model.released = model.released.clamp(from.min(to), to);
                model.finished = found.store.finished().is_some();
                model.records = vec![found.store.record().to_vec()];
            }
            model.acknowledged = model.acknowledged.max(to);
            model.synced = model.synced.min(to);
            model.begun = true;
            if model.forgotten {
                // The flow could not be deleted, or the power cut undid its deletion.
                self.troubled |= self.disk.has_fired() || end == End::PowerCut;
                assert!(self.troubled, "{told}");
            }
            self.compare(id, &mut found.store);
            flows.insert(id, found.store);
        }
        for (id, model) in &mut self.models {
            if flows.contains_key(id) {
                continue;
            }
            let is_unread = self.disk.has_fired_at_reading();
            let excused = model.hit || is_unread || !model.begun || model.forgotten;
            let unsynced = model.synced <= model.released;
            let ok = excused || (end == End::PowerCut && unsynced);
            assert!(ok, "seed {seed}, {end:?}: {id} is lost: {model:?}");
            // A power cut may still bring it back.
            model.forgotten = true;
        }
        flows
    }

    /// Checks that every octet that the store gives back is the one that was put there.
    fn compare(&mut self, id: FlowId, flow: &mut FlowStore) {
        self.compare_all(id, flow, true);
    }

    fn compare_all(&mut self, id: FlowId, flow: &mut FlowStore, may_fail: bool) {
        let mut at = flow.start();
        while at < flow.end() {
            let piece = match flow.read(at, usize::MAX) {
                Ok(piece) => piece,
                Err(fault) => {
                    let excused = may_fail && self.disk.has_fired();
                    assert!(excused, "seed {}: {id} at {at}: {fault}", self.seed);
                    return;
                }
            };
            let wanted = octets(id, at, piece.len() as u64);
            assert!(
                piece == wanted,
                "seed {}: {id} at {at} is altered",
                self.seed
            );
            at += piece.len() as u64;
            self.happened.compared_bytes += piece.len() as u64;
        }
    }

    /// Checks that no octet that was acknowledged and is still needed was deleted or cut off.
    fn check_destroyed(&self) {
        for destroyed in self.disk.take_destroyed() {
            let flow = segment::flow_of(&destroyed.name).unwrap();
            let Some(model) = self.models.get(&flow).filter(|model| model.is_checked()) else {
                continue;
            };
            let Some((start, end)) = range(&destroyed.before) else {
                continue;
            };
            let kept = range(&destroyed.after).map_or(start, |(_, end)| end);
            let from = start.max(kept).max(model.released);
            let to = end.min(model.acknowledged);
            assert!(
                from >= to,
                "seed {}: {} lost {from}..{to} of {start}..{end}, {} octets to {}: {model:?}",
                self.seed,
                destroyed.name,
                destroyed.before.len(),
                destroyed.after.len(),
            );
        }
    }

    fn step(&mut self, life: &mut Life) {
        let slot = u8::try_from(self.rng.below(SLOTS)).unwrap();
        let in_slot = |id: &FlowId| id.0[0] == slot;
        let Some(id) = life.flows.keys().copied().find(in_slot) else {
            return self.begin(life, slot);
        };
        let flow = life.flows.get_mut(&id).unwrap();
        let model = self.models.get_mut(&id).unwrap();
        if model.forgotten {
            drop(life.flows.remove(&id).unwrap().forget());
            return;
        }
        match self.rng.below(20) {
            0..7 if !model.finishing => {
                let most = APPEND_MAX >> self.rng.below(7);
                let len = 1 + self.rng.below(most);
                let appended = flow.append(&octets(id, flow.end(), len));
                match appended {
                    Ok(taken) => model.acknowledged += taken as u64,
                    Err(FlowFault::Io { .. }) => return self.ended_by_fault(life, id),
                    Err(other) => panic!("seed {}: {other}", self.seed),
                }
                let end = flow.end();
                assert!(
                    self.disk.is_dead() || end == model.acknowledged,
                    "seed {}",
                    self.seed
                );
            }
            7..10 => {
                let kept = flow.end() - model.released;
                model.released += self.rng.below(kept + 1);
                flow.release(model.released);
            }
            10 => {
                model.released = flow.end();
                flow.release(model.released);
            }
            11 | 12 => {
                let record = vec![slot; self.below(80)];
                let model = self.models.get_mut(&id).unwrap();
                model.records.push(record.clone());
                if flow.set_record(&record).is_ok() {
                    model.records = vec![record];
                }
            }
            13 if self.rng.chance(0.3) => {
                model.finishing = true;
                model.totals.push(flow.end());
                model.finished = flow.finish().is_ok();
            }
            14 if self.rng.chance(0.3) => {
                model.forgotten = true;
                drop(life.flows.remove(&id).unwrap().forget());
            }
            15 => {
                let room = if self.rng.chance(0.5) {
                    usize::MAX
                } else {
                    3_000 + self.below(15_000)
                };
                self.disk.set_capacity(room);
            }
            16 => self.compare_some(life, id),
            _ => self.sync(life),
        }
    }

    /// Ends a flow as a gateway does: what is kept is delivered, then both ends are reset, and the files are evidence.
    fn ended_by_fault(&mut self, life: &mut Life, id: FlowId) {
        assert!(self.disk.has_fired(), "seed {}: no reason", self.seed);
        if self.rng.chance(0.5) && !self.disk.is_dead() {
            let mut flow = life.flows.remove(&id).unwrap();
            self.check_deliverable(id, &mut flow);
            self.models.get_mut(&id).unwrap().hit = true;
            drop(flow.forget());
        }
    }

    /// Checks that a failed append has cost nothing that was acknowledged before it.
    fn check_deliverable(&mut self, id: FlowId, flow: &mut FlowStore) {
        let model = &self.models[&id];
        if model.hit {
            return;
        }
        let told = format!("seed {}: {id} {}..{}", self.seed, flow.start(), flow.end());
        assert!(flow.start() <= model.released, "{told}: {model:?}");
        assert_eq!(flow.end(), model.acknowledged, "{told}");
        self.compare_all(id, flow, false);
    }

    fn compare_some(&mut self, life: &mut Life, id: FlowId) {
        let mut flow = life.flows.remove(&id).unwrap();
        self.compare(id, &mut flow);
        life.flows.insert(id, flow);
    }

    fn begin(&mut self, life: &mut Life, slot: u8) {
        let mut id = FlowId([0; 16]);
        id.0[0] = slot;
        // A flow that found the disk full tries again under its name.
        let waits = |(known, model): (&FlowId, &Model)| {
            (known.0[0] == slot && !model.begun && !model.forgotten).then_some(*known)
        };
        let waiting = self.models.iter().find_map(waits);
        id = waiting.unwrap_or_else(|| {
            self.next += 1;
            id.0[8..].copy_from_slice(&self.next.to_be_bytes());
            id
        });
        let record = vec![7; self.below(40)];
        let model = self.models.entry(id).or_default();
        model.records.push(record.clone());
        match life.store.begin(id, 0, &record) {
            Ok(Some(flow)) => {
                model.begun = true;
                model.records = vec![record];
                life.flows.insert(id, flow);
            }
            Ok(None) => {}
            Err(_) => model.forgotten = true,
        }
    }

    fn sync(&mut self, life: &mut Life) {
        let Some(worker) = &life.worker else { return };
        worker.run_once();
        for (id, flow) in &life.flows {
            let model = self.models.get_mut(id).unwrap();
            if !self.disk.is_dead() {
                model.synced = model.synced.max(flow.synced_end());
            }
        }
    }
}

/// The octets of a flow that a file holds.
fn range(content: &[u8]) -> Option<(u64, u64)> {
    let found = Header::find(content).ok()?;
    let start = found.header.start;
    let mut end = start;
    let mut rest = content.get(found.layout.header_bytes()..).unwrap_or(&[]);
    while let Ok(record) = segment::first_record(found.layout, rest) {
        if record.offset != end {
            break;
        }
        end = record.end();
        rest = &rest[record.file_bytes..];
    }
    Some((start, end))
}
