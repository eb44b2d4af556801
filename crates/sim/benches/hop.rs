//! The simulator's cost: one packet over one hop, and whole runs.
//!
//! `packet hop` is the bare simulator: events, real headers, checks, channel draws, buffers; its packets
//! carry one octet. `udp run` adds 1472 octets of content, made, check-summed and compared; `aerotp run`
//! adds the machine of the papers' default mode. Throughput is in packet hops: packets handed to a channel.
//!
//! `sim link` sends the same datagrams over a hop with each link layer, once clean and once with a tenth of
//! the frames lost each way: frames, parity, timers and acknowledgements included. A packet hop is there a
//! packet that the layer took off its queue and handed up at the far end.

use core::hint::black_box;
use core::sync::atomic::AtomicBool;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fulmar_sim::report::record::Metrics;
use fulmar_sim::scenario::{Document, PointPlan};
use fulmar_sim::world::{World, WorldOptions};

const CHAIN: &str = r#"
[run]
duration = "1000s"
[lan]
rate = "10gbit"
[hop]
rate = "5mbit"
delay = "10ms"
loss = "1%"
ber = "1e-6"
[flow]
"#;

/// 2,000 datagrams at a rate that even stop-and-wait carries.
const LINK_FLOW: &str = r#"
[run]
duration = "1000s"
[[flow]]
transport = "udp"
traffic = "constant-rate"
bytes = "2944kB"
write = "1472B"
rate = "200kbit"
[[hop]]
rate = "10mbit"
delay = "10ms"
"#;

const LAYERS: [&str; 7] = [
    "plain",
    "stop-and-wait",
    "go-back-n",
    "selective-repeat",
    "ll-arq",
    "ll-harq",
    "slacp",
];

fn plan(flow: &str) -> PointPlan {
    read(&format!("{CHAIN}{flow}"))
}

fn read(text: &str) -> PointPlan {
    let document = Document::parse("bench", text).expect("the text above is TOML");
    PointPlan::read(&document).expect("the text above is a scenario")
}

fn packet_hops(plan: &PointPlan) -> u64 {
    let mut world = World::new(plan, 1, &WorldOptions::default()).expect("a valid plan");
    world.run(&AtomicBool::new(false));
    world.wire().packet_hops
}

fn link_packet_hops(plan: &PointPlan) -> u64 {
    let mut world = World::new(plan, 1, &WorldOptions::default()).expect("a valid plan");
    let end = world.run(&AtomicBool::new(false));
    let link = Metrics::of(&world, end, None).link;
    link.map_or(0, |link| link.released_packets)
}

fn links(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sim link");
    for layer in LAYERS {
        for (condition, loss) in [("clean", "0%"), ("10% lost", "10%")] {
            let plan = read(&format!(
                "{LINK_FLOW}link = \"{layer}\"\nloss = \"{loss}\"\n"
            ));
            group.throughput(Throughput::Elements(link_packet_hops(&plan)));
            group.sample_size(10);
            group.bench_function(format!("{layer}, {condition}"), |bencher| {
                bencher.iter(|| link_packet_hops(black_box(&plan)));
            });
        }
    }
    group.finish();
}

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sim");
    for (name, flow) in [
        (
            "packet hop",
            "transport = \"udp\"\ntraffic = \"constant-rate\"\nbytes = \"20kB\"\nwrite = \"1B\"\n\
             rate = \"100kbit\"",
        ),
        (
            "udp run",
            "transport = \"udp\"\ntraffic = \"constant-rate\"\nbytes = \"20MB\"\n\
             write = \"1472B\"\nrate = \"4.416mbit\"",
        ),
        (
            "aerotp run",
            "transport = \"aerotp\"\nmode = \"nack-mack\"\nfec_words = 0\nbytes = \"20MB\"",
        ),
    ] {
        let plan = plan(flow);
        group.throughput(Throughput::Elements(packet_hops(&plan)));
        group.sample_size(10);
        group.bench_function(name, |bencher| {
            bencher.iter(|| packet_hops(black_box(&plan)));
        });
    }
    group.finish();
}

criterion_group!(hop, benches, links);
criterion_main!(hop);
