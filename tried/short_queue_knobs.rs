//! scratch
use fulmar_channel::{ChannelConfig, LossModel, Policer, QueueLimit};
use fulmar_proto::rate::{RateConfig, RateSharing};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use fulmar_sim::bottleneck::{BottleneckPlan, SenderPlan, SenderStart, LinkRange, random_link, run, steadiness};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const MBIT: u64 = 1_000_000;
fn at(s: f64) -> Instant { Instant::START + Duration::from_secs_f64(s) }
fn link(rate: u64, delay_ms: u64, packets: u32, loss: u32) -> BottleneckPlan {
    let loss: LossModel = format!("{loss}%").parse().expect("loss");
    let out = ChannelConfig { rate: Some(Bitrate::from_bits_per_second(rate)), delay: Duration::from_millis(delay_ms), queue: QueueLimit::packets(packets), loss: loss.clone(), ..ChannelConfig::default() };
    let back = ChannelConfig { delay: out.delay, loss, ..ChannelConfig::default() };
    BottleneckPlan { out: vec![(Instant::START, out)], back, policer: None, marks: false, clock_gain: 0.0 }
}
fn found(sharing: RateSharing, bound: u64) -> SenderPlan {
    SenderPlan::Found(RateConfig { bound: Some(Bitrate::from_bits_per_second(bound)), sharing, ..RateConfig::default() })
}
fn parallel<T: Send>(n: u64, f: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let next = AtomicU64::new(0);
    let out = Mutex::new(Vec::new());
    std::thread::scope(|s| { for _ in 0..2 { s.spawn(|| loop { let i = next.fetch_add(1, Ordering::Relaxed); if i >= n { break; } let r = f(i); out.lock().unwrap().push((i, r)); }); } });
    let mut v = out.into_inner().unwrap(); v.sort_by_key(|x| x.0); v.into_iter().map(|x| x.1).collect()
}
fn q(mut v: Vec<f64>, p: f64) -> f64 { v.sort_by(f64::total_cmp); v[((v.len() - 1) as f64 * p) as usize] }

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let way = if args[1] == "fair" { RateSharing::Fair } else { RateSharing::Own };
    if args.len() > 2 {
        let first: u64 = args[2].parse().unwrap(); let n: u64 = args[3].parse().unwrap();
        let max = Bitrate::from_bits_per_second(args[4].parse::<u64>().unwrap() * MBIT);
        let rows = parallel(n, |i| {
            let rng = Rng::from_seed(first + i);
            let (plan, lasts) = random_link(LinkRange { rate_max: max }, &rng);
            let s = SenderStart { plan: found(way, 10 * max.as_bits_per_second()), at: Instant::START };
            let o = run(&plan, &[s], Instant::START + lasts, &rng.child("run")).expect("sound").remove(0);
            let f = &plan.out[0].1;
            let mean = plan.out.iter().filter_map(|(_, c)| c.rate).map(|r| r.as_bits_per_second() as f64).sum::<f64>() / plan.out.len() as f64;
            let told = mean * (1.0 - f.loss.mean_loss().value()) * lasts.saturating_sub(f.delay).as_secs_f64() / 8.0;
            let st = steadiness(&plan, lasts, &o.sent_tenths);
            (o.arrived as f64 / told, o.dropped as f64 / o.sent.max(1) as f64, st.above, st.swing)
        });
        let sh: Vec<f64> = rows.iter().map(|r| r.0).collect();
        let dr: Vec<f64> = rows.iter().map(|r| r.1).collect();
        println!("{way:?} links {first}+{n}: 5% {:.3} med {:.3}; dropped med {:.4} p95 {:.4} mean {:.4}; above {} swing {}", q(sh.clone(), 0.05), q(sh, 0.5), q(dr.clone(), 0.5), q(dr.clone(), 0.95), dr.iter().sum::<f64>() / n as f64,
            rows.iter().filter(|r| r.2 > 1.0).count(), rows.iter().filter(|r| r.3 > 2.0).count());
        return;
    }
    let small = |octets, micros| SenderPlan::Small { octets: ByteCount(octets), every: Duration::from_micros(micros) };
    for kind in ["q3+small", "q3", "policer", "policer+small"] { for delay in [5u64, 20] { for loss in [0u32, 10] {
        if let Ok(only) = std::env::var("ONLY") { if only != format!("{kind},{delay},{loss}") { continue; } }
        let seeds: u64 = std::env::var("SEEDS").ok().map_or(24, |s| s.parse().unwrap());
        let mut plan = if kind.starts_with('q') { link(10 * MBIT, delay, 3, loss) } else { link(1000 * MBIT, delay, 100, loss) };
        if kind.starts_with('p') { plan.policer = Some(Policer { rate: Bitrate::from_bits_per_second(10 * MBIT), burst: ByteCount(15_000) }); }
        let mut senders = vec![found(way, 1000 * MBIT)];
        if kind.ends_with("small") { senders.extend([small(66, 14_300), small(84, 50_000), small(375, 10_300)]); }
        let carried = 1.0 - f64::from(loss) / 100.0;
        let rows = parallel(seeds, |i| {
            let starts: Vec<SenderStart> = senders.iter().enumerate().map(|(k, p)| SenderStart { plan: *p, at: at(k as f64 * (0.1 + 0.000_37 * i as f64)) }).collect();
            let o = run(&plan, &starts, at(20.0), &Rng::from_seed(1 + i)).expect("sound").remove(0);
            let s1: u64 = o.sent_tenths[..10].iter().sum(); let a1: u64 = o.tenths[..10.min(o.tenths.len())].iter().sum();
            let first = s1 as f64 * carried - a1 as f64 - 10e6/8.0*(delay as f64)*1e-3*carried;
            (o.arrived as f64 * 8.0 / 20.0 / (10e6 * carried), o.dropped as f64 / o.sent as f64, first / carried / o.sent as f64)
        });
        let m = |f: fn(&(f64, f64, f64)) -> f64| rows.iter().map(f).sum::<f64>() / rows.len() as f64;
        let dr: Vec<f64> = rows.iter().map(|r| r.1).collect();
        println!("{way:?} {kind:14} {delay:2} ms {loss:2} %: share {:.3}, dropped {:.2} % (first s {:.2}), max {:.2}, >3%: {}", m(|r| r.0), 100.0 * m(|r| r.1), 100.0 * m(|r| r.2), 100.0 * q(dr.clone(), 1.0), dr.iter().filter(|d| **d > 0.03).count());
    } } }
}
