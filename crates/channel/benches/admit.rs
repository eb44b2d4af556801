//! The cost of one packet through one channel, by error model.
//!
//! `cargo bench -p fulmar-channel`. The simulator's goal of 1.5 million packet-hops a second leaves
//! 667 ns for everything; the channel's share is meant to stay below 100 ns.

use core::hint::black_box;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fulmar_channel::{Channel, preset::ChannelPreset};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration, Instant};

/// One packet of 1500 octets each 2.4 ms: the link is exactly full and the queue in use.
fn admit(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("admit");
    group.throughput(Throughput::Elements(1));
    let cases = [
        ("clean", "none", "none"),
        ("ber 1e-5", "none", "1e-5"),
        ("ber 1e-4", "none", "1e-4"),
        ("ber 1e-3", "none", "1e-3"),
        ("bernoulli 10%", "10%", "none"),
        ("burst 10% of 4", "10% burst 4", "none"),
        ("on-off 30%", "on-off 30% period 50ms", "none"),
        (
            "on-off 30% exponential",
            "on-off 30% period 50ms exponential",
            "none",
        ),
    ];
    for (name, loss, bits) in cases {
        let mut config = ChannelPreset::AirborneFar.config();
        config.loss = loss.parse().expect("a loss model from the table above");
        config.bits = bits
            .parse()
            .expect("a bit error model from the table above");
        let rng = Rng::from_seed(1);
        let mut channel = Channel::new(config, &rng).expect("a preset with valid models");
        let mut now = Instant::START;
        for _ in 0..50 {
            channel.admit(now, ByteCount(1500));
        }
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                now += Duration::from_micros(2400);
                black_box(channel.admit(black_box(now), black_box(ByteCount(1500))))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, admit);
criterion_main!(benches);
