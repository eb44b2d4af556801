//! The custody store loses nothing that it took when its process is killed.
//!
//! Method: this program starts itself as a child that works on a store and reports each step on its standard
//! output, after the step. The parent kills it (SIGKILL) after a random number of lines, opens the store, and
//! checks it against the last lines. Every octet follows from its flow and offset. The same is done on a disk
//! that is full most of the time: a `tmpfs` of 128 KiB in a mount namespace of its own, in which this program
//! runs once more ([`mount_namespace`]).
//!
//! `FULMAR_KILLS=1000 cargo test -p fulmar-net --test custody_killed` kills so often in all, a fifth of them
//! on the full disk.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod mount_namespace;

use fulmar_net::custody::{FlowStore, Store, StoreConfig, SyncPolicy};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::FlowId;
use fulmar_proto::units::ByteCount;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const KILLS: u64 = 40;
const DISK: &str = "128k";
/// The most lines before the kill.
const LINES_MAX: u64 = 400;
const FLOWS: u64 = 3;

fn open(directory: &Path) -> (Store, BTreeMap<FlowId, FlowStore>) {
    let config = StoreConfig {
        directory: directory.to_owned(),
        limit: ByteCount(8 << 20),
        sync: SyncPolicy::Every(core::time::Duration::from_millis(50)),
    };
    let (store, recovery) = Store::open(config, None).unwrap();
    assert!(recovery.damaged.is_empty(), "{:?}", recovery.damaged);
    let flows = recovery.flows.into_iter();
    let flows = flows.map(|found| (found.store.flow(), found.store));
    let flows = flows.collect();
    (store, flows)
}

/// The octets of a flow from `offset` on. A flow that is begun anew has another name.
fn octets(flow: FlowId, offset: u64, len: usize) -> Vec<u8> {
    let key = u64::from(flow.0[15]) * 7 + u64::from(flow.0[14]) * 31;
    let octet = |at: u64| {
        let mixed = (at ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed.to_be_bytes()[0]
    };
    (offset..offset + len as u64).map(octet).collect()
}

#[test]
#[ignore = "is the child of the test below, and waits for its parent's words"]
fn child() {
    let mut words = String::new();
    std::io::stdin().read_line(&mut words).unwrap();
    let (seed, rest) = words.trim_end().split_once(' ').unwrap();
    let (disk, directory) = rest.split_once(' ').unwrap();
    let is_small = disk == "small";
    let mut rng = Rng::from_seed(seed.parse().unwrap());
    let (store, mut flows) = open(Path::new(directory));
    let mut out = std::io::stdout();
    for generation in 0_u64.. {
        let slot = rng.below(FLOWS);
        let found = flows.keys().copied().find(|id| u64::from(id.0[15]) == slot);
        let id = found.unwrap_or_else(|| {
            let mut id = FlowId([0; 16]);
            id.0[..8].copy_from_slice(&rng.next_u64().to_be_bytes());
            id.0[14] = generation.to_be_bytes()[7];
            id.0[15] = u8::try_from(slot).unwrap();
            id
        });
        if found.is_none() {
            let Some(flow) = store.begin(id, 0, b"a flow").unwrap() else {
                // The store is full: the octets in it have to be released first.
                assert!(is_small);
                for flow in flows.values_mut() {
                    writeln!(out, "@ {} release {}", flow.flow(), flow.end()).unwrap();
                    flow.release(flow.end());
                }
                continue;
            };
            flows.insert(id, flow);
        }
        let flow = flows.get_mut(&id).unwrap();
        // After a kill between the end and the forgetting, the flow is found with its end.
        let is_finished = flow.finished().is_some();
        match rng.below(12) {
            0..6 if !is_finished => {
                let most = 90_000 >> rng.below(12);
                let len = usize::try_from(1 + rng.below(most)).unwrap();
                let taken = flow.append(&octets(id, flow.end(), len)).unwrap();
                assert!(taken == len || flow.room() == 0 || is_small);
                if taken < len {
                    writeln!(out, "@ {id} full 0").unwrap();
                }
                writeln!(out, "@ {id} end {}", flow.end()).unwrap();
            }
            0..11 => {
                let to = flow.start() + rng.below(flow.end() - flow.start() + 1);
                writeln!(out, "@ {id} release {to}").unwrap();
                flow.release(to);
            }
            _ if rng.below(4) == 0 => {
                writeln!(out, "@ {id} forget 0").unwrap();
                flows.remove(&id).unwrap().forget().unwrap();
            }
            _ => {
                flow.set_record(b"another record").unwrap();
                flow.finish().unwrap();
                writeln!(out, "@ {id} finished {}", flow.end()).unwrap();
                writeln!(out, "@ {id} forget 0").unwrap();
                flows.remove(&id).unwrap().forget().unwrap();
            }
        }
    }
}

fn start_child(directory: &Path, disk: &str, seed: u64) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{seed} {disk} {}", directory.display()).unwrap();
    child
}

/// The number of kills asked for in all.
fn kills_wanted() -> u64 {
    let wanted = std::env::var_os("FULMAR_KILLS");
    let wanted = wanted.map(|text| text.to_str().and_then(|text| text.parse().ok()));
    wanted.map_or(KILLS, |kills| kills.expect("a number of kills"))
}

/// A child's word on one flow.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    end: u64,
    release: u64,
    forget: bool,
}

#[test]
fn nothing_that_was_appended_is_lost_when_the_process_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let kills = kills_wanted() - kills_wanted() / 5;
    let (checked_bytes, _) = kill_often(directory.path(), "large", kills);
    assert!(
        checked_bytes > 1 << 20,
        "only {checked_bytes} octets were there to check"
    );
    println!("{kills} kills, {checked_bytes} octets compared");
}

#[test]
#[ignore = "is the next test, inside its mount namespace"]
fn on_a_small_disk() {
    let words = mount_namespace::words();
    let (kills, root) = words.split_once(' ').unwrap();
    mount_namespace::mount(Path::new(root), DISK);
    let kills = kills.parse().unwrap();
    let (checked_bytes, full) = kill_often(&Path::new(root).join("custody"), "small", kills);
    assert!(full > kills / 8, "full {full} times");
    println!("the small disk: {kills} kills, full {full} times, {checked_bytes} octets compared");
}

#[test]
fn nothing_that_was_appended_is_lost_when_the_process_is_killed_on_a_full_disk() {
    let directory = tempfile::tempdir().unwrap();
    let words = format!("{} {}", kills_wanted() / 5, directory.path().display());
    let Some(said) = mount_namespace::run("on_a_small_disk", &words, directory.path()) else {
        return;
    };
    let line = said.lines().find(|line| line.contains("the small disk:"));
    println!("{}", line.expect("the child's result"));
}

/// Kills a child `kills` times. Returns the number of octets compared, and how often there was no room.
fn kill_often(directory: &Path, disk: &str, kills: u64) -> (usize, u64) {
    let mut moments = Rng::from_seed(7);
    let mut said: BTreeMap<String, Said> = BTreeMap::new();
    let (mut checked_bytes, mut full) = (0, 0);
    for seed in 0..kills {
        let mut child = start_child(directory, disk, seed);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut hear = |line: String| {
            // The test harness writes its own words in front of the first line.
            let Some(at) = line.find("@ ") else { return };
            let words: Vec<&str> = line[at..].split(' ').collect();
            let [_, flow, verb, number] = words[..] else {
                return;
            };
            let entry = said.entry(flow.to_owned()).or_default();
            match verb {
                "end" => entry.end = number.parse().unwrap(),
                "release" => entry.release = number.parse().unwrap(),
                "forget" => entry.forget = true,
                "full" => full += 1,
                _ => {}
            }
        };
        for _ in 0..moments.below(LINES_MAX) {
            hear(lines.next().expect("the child goes on for ever").unwrap());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // These lines had not been read before the kill; the last one may be cut.
        while let Some(Ok(line)) = lines.next() {
            hear(line);
        }
        let (_store, mut flows) = open(directory);
        for (flow, said) in &said {
            let found = flows
                .values_mut()
                .find(|found| found.flow().to_string() == *flow);
            let Some(found) = found else {
                assert!(
                    said.forget || said.end == 0,
                    "{flow} is lost, seed {seed}: {said:?}"
                );
                continue;
            };
            assert!(
                found.end() >= said.end,
                "seed {seed}: {said:?}, end {}",
                found.end()
            );
            assert!(found.start() <= said.release.max(said.end), "seed {seed}");
            if !said.forget {
                assert!(found.start() <= said.release, "seed {seed}: {said:?}");
            }
            let id = found.flow();
            let mut at = found.start();
            while at < found.end() {
                let piece = found.read(at, usize::MAX).unwrap();
                assert!(
                    piece == octets(id, at, piece.len()),
                    "{flow} at {at}, seed {seed}"
                );
                at += piece.len() as u64;
                checked_bytes += piece.len();
            }
        }
        let kept: Vec<String> = flows.keys().map(ToString::to_string).collect();
        said.retain(|flow, _| kept.contains(flow));
    }
    (checked_bytes, full)
}
