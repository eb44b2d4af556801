//! The controller that finds its rate (`fulmar_proto::rate`) on links drawn at random: the table of docs/models/random-links.md.
//!
//! ```text
//! make random-links                     # 1,000 links up to 1 Gbit/s
//! make random-links LINKS=200 RATE_MAX=20mbit FIRST=5000
//! make random-links LINKS=1 FIRST=474   # what was sent and what arrived over time, too
//! ```

use fulmar_channel::LossModel;
use fulmar_proto::rate::{RateCause, RateConfig};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, Instant};
use fulmar_sim::bottleneck::{
    BottleneckPlan, DATAGRAM, LinkRange, SenderOutcome, SenderPlan, SenderStart, Steadiness,
    TOO_MUCH, random_link, run, steadiness,
};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A link and what became of it.
struct Row {
    seed: u64,
    plan: BottleneckPlan,
    seconds: f64,
    outcome: SenderOutcome,
    /// The share that arrived, of what a sender would bring that is told the true rate at every moment.
    share: f64,
    steadiness: Steadiness,
}

fn row(seed: u64, rate_max: Bitrate) -> Row {
    let rng = Rng::from_seed(seed);
    let (plan, lasts) = random_link(LinkRange { rate_max }, &rng);
    // A bound far above every link keeps a mistake from taking hours.
    let bound = Bitrate::from_bits_per_second(10 * rate_max.as_bits_per_second());
    let config = RateConfig {
        bound: Some(bound),
        ..RateConfig::default()
    };
    let start = SenderStart {
        plan: SenderPlan::Found(config),
        at: Instant::START,
    };
    let end = Instant::START + lasts;
    let outcome = run(&plan, &[start], end, &rng.child("run"))
        .expect("a drawn link is sound")
        .remove(0);
    let first = &plan.out[0].1;
    let rates = plan.out.iter().filter_map(|(_, config)| config.rate);
    let mean = rates
        .map(|rate| rate.as_bits_per_second() as f64)
        .sum::<f64>()
        / plan.out.len() as f64;
    let carried = 1.0 - first.loss.mean_loss().value();
    let told = mean * carried * lasts.saturating_sub(first.delay).as_secs_f64() / 8.0;
    Row {
        seed,
        seconds: lasts.as_secs_f64(),
        share: outcome.arrived as f64 / told,
        steadiness: steadiness(&plan, lasts, &outcome.sent_tenths),
        plan,
        outcome,
    }
}

impl Row {
    fn dropped(&self) -> f64 {
        self.outcome.dropped as f64 / self.outcome.sent.max(1) as f64
    }

    /// The rate sent in the last third, as a multiple of the link's last rate.
    fn late(&self) -> f64 {
        let sent = &self.outcome.sent_tenths;
        let from = sent.len() * 2 / 3;
        let octets: u64 = sent[from..].iter().sum();
        let last = self.plan.out.last().and_then(|(_, config)| config.rate);
        let rate = last.unwrap_or_default().as_bits_per_second() as f64;
        octets as f64 * 80.0 / (sent.len() - from).max(1) as f64 / rate
    }

    fn line(&self) -> String {
        let (_, first) = &self.plan.out[0];
        let rates: Vec<String> = (self.plan.out.iter())
            .filter_map(|(_, config)| config.rate)
            .map(|rate| format!("{:.3}", rate.as_bits_per_second() as f64 * 1e-6))
            .collect();
        let packets = first.queue.packets.unwrap_or_default();
        let product = first.rate.unwrap_or_default().as_bits_per_second() as f64
            * 2.0
            * first.delay.as_secs_f64()
            / DATAGRAM.bits() as f64;
        let loss = match &first.loss {
            LossModel::None => "none".to_owned(),
            loss => loss.to_string(),
        };
        let cause = self.outcome.belief.map(|belief| belief.cause);
        let steadiness = &self.steadiness;
        format!(
            "| {} | {:.3} | {:.2} | {:.2} at {:.1} | {:.1} at {:.0} and {:.0} | {} | {:.1} | {packets} ({:.2}) | {loss} | {:.1} | {:.2} | {} | {:.0} |",
            self.seed,
            self.share,
            steadiness.above,
            steadiness.most,
            steadiness.most_at.as_secs_f64(),
            steadiness.swing,
            steadiness.swing_at.0.as_secs_f64(),
            steadiness.swing_at.1.as_secs_f64(),
            rates.join(", then "),
            first.delay.as_secs_f64() * 1e3,
            f64::from(packets) / product,
            self.dropped() * 100.0,
            self.late(),
            cause.map_or("-", RateCause::name),
            self.seconds,
        )
    }
}

/// The course of a link's run: what was sent and what arrived in each fortieth of it.
fn course(row: &Row) {
    let (sent, arrived) = (&row.outcome.sent_tenths, &row.outcome.tenths);
    let step = sent.len().div_ceil(40).max(1);
    let mbit =
        |octets: &[u64]| octets.iter().sum::<u64>() as f64 * 80e-6 / octets.len().max(1) as f64;
    println!("\n| s | sent, Mbit/s | arrived |\n|---|---|---|");
    for (number, octets) in sent.chunks(step).enumerate() {
        let from = number * step;
        let came = arrived.get(from..arrived.len().min(from + step));
        println!(
            "| {:.0} | {:.3} | {:.3} |",
            from as f64 / 10.0,
            mbit(octets),
            mbit(came.unwrap_or_default())
        );
    }
}

/// The value below which this part of the values lies.
fn quantile(mut values: Vec<f64>, part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index below the length"
    )]
    let index = ((values.len() - 1) as f64 * part) as usize;
    values[index]
}

/// Shows the first of the rows for which something holds, and how many there are.
fn show(name: &str, rows: &[Row], shown: usize, holds: impl Fn(&Row) -> bool) {
    let rows: Vec<&Row> = rows.iter().filter(|row| holds(row)).collect();
    println!(
        "\n{name}: {}\n\n\
         | seed | share | above | most | swing | Mbit/s | ms one way | queue, packets (BDP) | loss | dropped % | late | cause | s |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|",
        rows.len()
    );
    for row in rows.iter().take(shown) {
        println!("{}", row.line());
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let usage = "random_links [COUNT [RATE_MAX [FIRST_SEED [SHOWN]]]]";
    let count: u64 = next("1000").parse().expect(usage);
    let rate_max: Bitrate = next("1gbit").parse().expect(usage);
    let first: u64 = next("0").parse().expect(usage);
    let shown: usize = next("10").parse().expect(usage);
    let (seeds, rows) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let seed = seeds.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                break;
            }
            let row = row(seed, rate_max);
            rows.lock().expect("no other thread panics").push(row);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let mut rows = rows.into_inner().expect("no other thread panics");
    rows.sort_by(|a, b| a.share.total_cmp(&b.share));
    let of = |value: fn(&Row) -> f64, part| quantile(rows.iter().map(value).collect(), part);
    println!("{count} links from 100 kbit to {rate_max}, seeds from {first}:\n");
    println!(
        "| | least | 5 % | 10 % | median | 90 % | 95 % | most |\n|---|---|---|---|---|---|---|---|"
    );
    let parts = [0.0, 0.05, 0.1, 0.5, 0.9, 0.95, 1.0];
    for (name, value) in [
        (
            "share of what the true rate told would bring",
            (|row| row.share) as fn(&Row) -> f64,
        ),
        ("dropped by its own doing, of what was sent", Row::dropped),
        ("sent in the last third, of the link's rate", Row::late),
    ] {
        let cells: Vec<String> = (parts.iter())
            .map(|part| format!("{:.3}", of(value, *part)))
            .collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    show("The least shares", &rows, shown, |_| true);
    show(
        "Above 1.25 x the link for longer than allowed",
        &rows,
        shown,
        |row| row.steadiness.above > 1.0,
    );
    show(
        "More than 1.25 x the link in the allowed time",
        &rows,
        shown,
        |row| row.steadiness.most > TOO_MUCH,
    );
    show(
        "Swings by more than two where it should be steady",
        &rows,
        shown,
        |row| row.steadiness.swing > 2.0,
    );
    if let [row] = &rows[..] {
        course(row);
    }
}
