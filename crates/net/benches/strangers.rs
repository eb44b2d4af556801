//! The cost of a stranger's datagram for the thread that reads it, the kernel left out: the table of addresses,
//! the session, and the drain behind it. The rows are those of `session_work`, with noise from as many addresses.
//!
//! ```text
//! cargo bench -p fulmar-net --bench strangers -- [A ROW'S NAME]
//! ```
//!
//! `scripts/strangers` counts instructions in [`measured`], which do not depend on what
//! else the machine does.

#[path = "../tests/session_work/forging.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod forging;
#[path = "../tests/session_work/rows.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod rows;
#[path = "../tests/session_work/second_wire.rs"]
mod second_wire;
#[path = "../tests/session_pair/mod.rs"]
mod session_pair;

use forging::{a_stranger, at, random};
use fulmar_net::clock::Clock;
use fulmar_net::session::Wire;
use fulmar_net::udp::{Path, PathTable, PathTableConfig};
use fulmar_proto::machine::PathId;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::Duration;
use rows::{Row, called, many_presets};
use session_pair::PATH;
use session_pair::by_hand::{drain_into, session, take, the_peer};
use std::net::SocketAddr;

/// The wire of the data, unless a row says another one.
const WIRE: Wire = Wire::One;

/// The part of a driver's loop that a datagram passes, in the second that is measured. Never inlined: the script
/// looks for it by its name.
#[inline(never)]
fn measured(
    row: &mut Row,
    paths: &mut PathTable,
    out: &mut Vec<u8>,
    remote: SocketAddr,
    octets: &[u8],
) {
    one_datagram(row, paths, out, remote, octets);
}

fn one_datagram(
    row: &mut Row,
    paths: &mut PathTable,
    out: &mut Vec<u8>,
    remote: SocketAddr,
    octets: &[u8],
) {
    let (session, now) = (&mut row.victim, row.now);
    let local = None;
    let in_use = || Some(session.paths_in_use().collect());
    let Some(path) = paths.heard(now, Path::udp(remote, local), in_use) else {
        return;
    };
    take(session, now, (path, remote), octets);
    drain_into(session, now, out, |path, _| {
        paths.answer(path);
    });
}

/// The driver's table of paths, in which the peer has the path by which the session knows it.
fn paths(row: &Row) -> PathTable {
    let mut paths = PathTable::new(PathTableConfig::default());
    let mut port = 1;
    let mut heard = |remote| {
        let local = None;
        paths.heard(row.now, Path::udp(remote, local), || None)
    };
    while heard(at([192, 0, 2, 1], port).1) < Some(PathId(PATH.0 - 1)) {
        port += 1;
    }
    let path = heard(the_peer().1);
    assert_eq!(path, Some(PATH));
    paths.pin(PATH);
    paths
}

fn noise_from(
    name: &'static str,
    mut from: impl FnMut(u32, &mut Rng) -> SocketAddr + 'static,
) -> Row {
    Row::new(name, called(), move |n, rng| {
        let octets = random(rng, 396);
        ((PATH, from(n, rng)), octets)
    })
}

fn all_rows() -> Vec<Row> {
    let ports = noise_from("noise, from any port of one host", |n, _| {
        let port = 1 + u16::try_from(n % 12_000).expect("small");
        at([203, 0, 113, 9], port).1
    });
    let hosts = noise_from("noise, from forged addresses", |_, rng| {
        let mut address = [0; 4];
        rng.fill(&mut address);
        at(address, 4_914).1
    });
    // Each drain looks at the timers of all peers, whichever datagram came.
    let crowded = Row::new(
        "noise, where there are 256 peers",
        session(many_presets(), 2),
        |_, rng| (a_stranger(), random(rng, 396)),
    );
    let rows = [
        rows::blind_rows(),
        second_wire::blind_rows_of_two(),
        vec![ports, hosts, crowded],
        rows::calling_rows(),
        rows::seeing_rows(),
        second_wire::seeing_rows_of_two(),
        rows::parity_rows(),
        second_wire::parity_rows_of_two(),
    ];
    rows.into_iter().flatten().collect()
}

fn main() {
    let mut words = std::env::args().skip(1);
    let wanted = words
        .find(|word| !word.starts_with("--"))
        .unwrap_or_default();
    let clock = Clock::start();
    for mut row in all_rows() {
        if !wanted.is_empty() && row.name != wanted {
            continue;
        }
        let mut rng = Rng::from_seed(17).child(row.name);
        let (mut paths, mut out) = (paths(&row), Vec::new());
        let mut spent = Duration::ZERO;
        for n in 0..2 * row.rate {
            let ((_, remote), octets) = (row.forge)(n, &mut rng);
            row.now += Duration::from_secs(1) / row.rate;
            if n < row.rate {
                one_datagram(&mut row, &mut paths, &mut out, remote, &octets);
                continue;
            }
            let began = clock.now();
            measured(&mut row, &mut paths, &mut out, remote, &octets);
            spent += clock.now().saturating_since(began);
        }
        let each = spent.as_nanos() / u128::from(row.rate);
        println!("{each:>8} ns  {} a second: {}", row.rate, row.name);
    }
}
