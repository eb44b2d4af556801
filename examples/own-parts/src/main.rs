//! Runs the parts. With `--speed` a law of one's own and the same law of Fulmar's, five times in turn: packets a second in
//! the fastest run of each, which is the one that other programs held up least.

use fulmar_sim::own::{ChannelLaw, FlightFate, OwnChannel, PacketFlight, Rng};
use fulmar_sim::scenario::points_with;
use fulmar_sim::{Document, Experiment, ExperimentProgress, OwnParts, RunRecord, WorldOptions};
use std::error::Error;
use std::time::Instant;

/// A camera behind rain, and messages whose repair follows one rule.
const SCENARIO: &str = r#"
[run]
duration = "60s"
[hop]
rate = "6mbit"
delay = "20ms"
channel = "rain"
[[flow]]
transport = "aerotp"
bytes = "100MB"
source = "camera"
[[flow]]
transport = "aerotp"
mode = "auto"
traffic = "messages"
size = "200B"
interval = "20ms"
deadline = "150ms"
bytes = "600kB"
controller = "one-rule"
"#;

/// A million datagrams, of which 5 % are lost.
const MANY: &str = r#"
[run]
duration = "2000s"
[hop]
rate = "12mbit"
[flow]
transport = "udp"
traffic = "bulk"
bytes = "1472MB"
"#;

/// Loss of each packet by itself, as `loss = "5%"` has it.
#[derive(Debug)]
struct OneInTwenty(Rng);

impl ChannelLaw for OneInTwenty {
    fn fly(&mut self, _: PacketFlight) -> FlightFate {
        FlightFate {
            lost: self.0.chance(0.05),
            ..FlightFate::ARRIVES
        }
    }
}

fn run(text: &str, set: &str, parts: &OwnParts) -> Result<RunRecord, Box<dyn Error>> {
    let mut document = Document::parse("own-parts.toml", text)?;
    if !set.is_empty() {
        document.set(set)?;
    }
    let experiment = Experiment {
        scenario: "own-parts.toml".to_owned(),
        points: points_with(&document, parts)?,
        options: WorldOptions::default(),
    };
    let mut results = experiment.run(1, &ExperimentProgress::default())?;
    Ok(results.remove(0).runs.remove(0))
}

fn main() -> Result<(), Box<dyn Error>> {
    let record = run(SCENARIO, "", &own_parts::parts())?;
    for (what, flow) in ["camera", "messages"].iter().zip(&record.flows) {
        let (octets, delay) = (flow.delivered_bytes, flow.delay_p99_s.unwrap_or_default());
        println!("{what}: {octets} octets delivered, 99 of 100 pieces within {delay:.3} s");
    }
    if std::env::args().any(|argument| argument == "--speed") {
        let own = OwnChannel::new("one-in-twenty", |rng| OneInTwenty(rng.clone()));
        let parts = OwnParts {
            channels: vec![own],
            ..OwnParts::default()
        };
        let laws = [
            ("ours", "hop.loss=5%"),
            ("own", "hop.channel=one-in-twenty"),
        ];
        let mut fastest = [0.0_f64; 2];
        for _ in 0..5 {
            for ((_, set), fastest) in laws.iter().zip(&mut fastest) {
                let start = Instant::now();
                let packets = run(MANY, set, &parts)?.metrics.wire_packets;
                *fastest = fastest.max(packets as f64 / start.elapsed().as_secs_f64());
            }
        }
        for ((what, _), rate) in laws.iter().zip(fastest) {
            println!("{what}: {rate:.0} packets a second");
        }
    }
    Ok(())
}
