//! The cost of a session for a datagram: sealing at one end and opening at the other.

#[path = "../tests/session_pair/mod.rs"]
mod session_pair;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fulmar_net::session::Wire;
use fulmar_proto::units::Instant;
use session_pair::by_hand::{drain_into, joined, take, the_peer};

/// The wire of the data, unless a bench says another one.
const WIRE: Wire = Wire::One;

const OCTETS: usize = 1_400;

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("session");
    group.throughput(Throughput::Bytes(OCTETS as u64));
    let now = Instant::START;
    for (name, configs) in [
        ("noise", session_pair::noise()),
        (
            "noise in wire 2",
            session_pair::noise().map(|config| session_pair::speaking(config, Wire::Two)),
        ),
        ("preset", session_pair::preset_pair()),
        ("none", session_pair::unprotected()),
    ] {
        let (mut from, mut to, _) = joined(configs, now);
        from.inner_mut().octets = OCTETS;
        let mut buffer = Vec::new();
        group.bench_function(format!("seal and open, {name}"), |bencher| {
            bencher.iter(|| {
                from.inner_mut().left = 1;
                drain_into(&mut from, now, &mut buffer, |_, octets| {
                    take(&mut to, now, the_peer(), octets);
                });
            });
        });
        assert!(to.inner().received > 0, "nothing arrived");
    }
    group.finish();
}

criterion_group!(sessions, benches);
criterion_main!(sessions);
