//! `fulmar replay RECORDING [OTHER]`: the link that a recording shows, with other modes over it.

use super::connection;
use super::sim::{self, RecordedScenario};
use crate::commands::overwrite;
use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use crate::table::Columns;
use crate::workers::Workers;
use anyhow::anyhow;
use core::sync::atomic::AtomicBool;
use core::time::Duration;
use fulmar_lab::replay::{PerfKeys, hop_tables};
use fulmar_lab::{ObservedPacket, RecordedLink};
use fulmar_proto::units::{Bitrate, Instant, parse_duration};
use fulmar_sim::scenario::RUNS_MAX;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  fulmar replay here.pcapng there.pcapng
      the link between two gateways, of the captures that both took, as a scenario for `fulmar sim`
  fulmar replay here.pcapng there.pcapng --mode reliable,nack-mack,near-reliable --runs 20
      20 runs of each mode over it, sending as much as was recorded: a table of means with 95 % intervals
  fulmar replay here.pcapng there.pcapng --auto-vs-fixed
      the mode auto beside every fixed setting
  fulmar replay here.pcapng there.pcapng --auto-vs-fixed --set flow.traffic=messages --set flow.size=1200B \\
      --set flow.interval=20ms --set flow.deadline=150ms
      the same for messages that are due
  fulmar perf -s -1 --capture there.pcapng          at one end, and at the other:
  fulmar perf -c HOST --capture here.pcapng
      a recording of any path, without gateways
  fulmar replay here.pcapng there.pcapng --mode nack-mack --as-perf=5mbit
      what fulmar perf -c HOST --mode nack-mack --rate 5mbit would have measured
  fulmar replay link.pcapng --mode reliable
      the link of one capture that shows both ends: of `fulmar emulate --capture` or `fulmar sim --capture`

A recording is a capture: of `fulmar gateway --capture`, of `fulmar perf --capture`, or of tcpdump at both hosts; or an event trace of `fulmar gateway --trace`. Forward is from the first file's end to the second's. What is read out of a recording, and what is
not: docs/guide/replay.md.
";

/// The head of the link's table.
const HOP: &str = "[[hop]]\n";

/// The arguments of `fulmar replay`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    /// The capture at one end of the link, or one that shows both.
    recording: PathBuf,
    /// The capture at the other end.
    other: Option<PathBuf>,
    /// The hop of a capture of `fulmar sim`, from 0.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "other")]
    hop: usize,
    /// Run these modes over the link, sending in bulk as much as came through in the recording.
    #[arg(
        long,
        value_name = "A,B",
        value_delimiter = ',',
        conflicts_with = "auto_vs_fixed"
    )]
    mode: Vec<String>,
    /// Run the mode auto and every fixed setting over the link, and tell how far auto is from the best of them.
    #[arg(long, conflicts_with = "columns")]
    auto_vs_fixed: bool,
    /// Let flows send as `fulmar perf --rate RATE` does, or without RATE as it does where it finds the rate: in datagrams of UDP, its
    /// messages as parts of a stream, in bursts, and shorter where that helps.
    #[arg(long, value_name = "RATE", value_parser = connection::rate, num_args = 0..=1, require_equals = true)]
    #[arg(conflicts_with = "auto_vs_fixed")]
    #[expect(
        clippy::option_option,
        reason = "the parser's form of a flag whose value may be left out"
    )]
    as_perf: Option<Option<Bitrate>>,
    /// The longest run; otherwise twice the recording and a minute.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Change a value of the scenario before the run, such as flow.bytes=20MB or flow.mtu=1200B.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    sets: Vec<String>,
    /// Runs for each mode.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=RUNS_MAX))]
    runs: Option<u64>,
    /// The first run's seed; the others follow by one.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    workers: Workers,
    /// Print records, one JSON object a line, instead of text.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    #[command(flatten)]
    columns: Columns,
    /// Write rows of comma-separated values to a file; `-` is stdout.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// Reads the recording, and prints the scenario or runs it.
///
/// # Errors
/// The recording shows no link, or the scenario cannot be run.
pub(crate) fn run(args: &ReplayArgs) -> Result<Exit, Failure> {
    for input in core::iter::once(&args.recording).chain(&args.other) {
        if let Some(file) = &args.csv {
            overwrite::refuse("--csv", file, input)?;
        }
    }
    // A signal ends the program.
    let unstopped = AtomicBool::new(false);
    let link = match &args.other {
        Some(other) => RecordedLink::between(&args.recording, other, &unstopped),
        None => RecordedLink::open(&args.recording, args.hop, &unstopped),
    };
    let link = link.or_exit(Exit::Usage)?;
    tell(&link);
    let name = args.recording.display();
    let hop = hop_tables(&link.there, &link.back, None);
    let hop = hop.map_err(|error| anyhow!("{name}: {error}"));
    let mut hop = hop.or_exit(Exit::Usage)?;
    let perf = args.as_perf.map(PerfKeys::told);
    if let Some(perf) = &perf {
        hop = hop.replacen(HOP, &format!("{HOP}{}", perf.hop), 1);
    }
    let mut text = scenario(args, &link, perf.as_ref());
    text.push_str(&hop);
    let is_run = args.auto_vs_fixed || !args.mode.is_empty();
    if !is_run {
        if let Some(flag) = idle_flag(args) {
            let problem =
                format!("{flag}: nothing is run; say which modes by --mode, or --auto-vs-fixed");
            return Err(anyhow!(problem)).or_exit(Exit::Usage);
        }
        output::line(text.trim_end())?;
        return Ok(Exit::Done);
    }
    let mut sets = args.sets.clone();
    sets.extend(match args.mode.as_slice() {
        [] => None,
        // One alone, too: each row then names its mode.
        modes => Some(format!("sweep.flow.mode=[{}]", modes.join(", "))),
    });
    sim::run_recorded(RecordedScenario {
        recording: args.recording.clone(),
        text,
        sets,
        auto_vs_fixed: args.auto_vs_fixed,
        runs: args.runs,
        seed: args.seed,
        workers: args.workers,
        json: args.json,
        columns: args.columns.clone(),
        csv: args.csv.clone(),
    })
}

/// The first flag that says how to run, where nothing is run.
fn idle_flag(args: &ReplayArgs) -> Option<&'static str> {
    let flags = [
        ("--set", !args.sets.is_empty()),
        ("--runs", args.runs.is_some()),
        ("--seed", args.seed.is_some()),
        ("--json", args.json),
        ("--columns", !args.columns.columns.is_empty()),
        ("--csv", args.csv.is_some()),
    ];
    let given = flags.into_iter().find(|(_, given)| *given);
    given.map(|(flag, _)| flag)
}

/// Says on stderr what the recording shows.
fn tell(link: &RecordedLink) {
    for remark in &link.remarks {
        eprintln!("fulmar: {remark}");
    }
    if link.clocks_apart > Duration::ZERO {
        eprintln!(
            "fulmar: the clocks of the two captures differ by {:?}, if the delay is the same both ways",
            link.clocks_apart
        );
    }
    for (way, packets) in [("there", &link.there), ("back", &link.back)] {
        let lost = packets.iter().filter(|packet| packet.arrived_at.is_none());
        eprintln!(
            "fulmar: {way}: {} packets in {:.1} s, {} of them lost",
            packets.len(),
            length(packets).as_secs_f64(),
            lost.count()
        );
    }
}

/// The time from the first packet to the last.
fn length(packets: &[ObservedPacket]) -> Duration {
    let at =
        |packet: Option<&ObservedPacket>| packet.map_or(Instant::START, |packet| packet.sent_at);
    at(packets.last()).saturating_since(at(packets.first()))
}

/// The tables of the scenario but for the link: it sends as much as came through.
fn scenario(args: &ReplayArgs, link: &RecordedLink, perf: Option<&PerfKeys>) -> String {
    let recorded = length(&link.there).max(length(&link.back));
    let duration = args
        .duration
        .unwrap_or(recorded * 2 + Duration::from_secs(60));
    let arrived = link
        .there
        .iter()
        .filter(|packet| packet.arrived_at.is_some());
    let octets: u64 = arrived.map(|packet| packet.len.0).sum();
    // Tests know no mode that chooses.
    let mode = if perf.is_some() { "reliable" } else { "auto" };
    format!(
        "# {name}\n[run]\nduration = \"{seconds:.3}s\"\n\n[flow]\ntransport = \"aerotp\"\nmode = \"{mode}\"\n\
         traffic = \"bulk\"\nbytes = \"{octets}B\"\n{keys}\n",
        name = args.recording.display().to_string().replace('\n', " "),
        seconds = duration.as_secs_f64(),
        keys = perf.map_or("", |perf| perf.flow.as_str()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_net::udp::BURST_TIME;

    #[test]
    fn what_a_flow_has_of_perf_is_what_perf_has() {
        let keys = PerfKeys::told("5mbit".parse().ok()).flow;
        let burst = format!("burst = \"{}us\"\n", BURST_TIME.as_micros());
        let window = format!("window = {}\n", connection::WINDOW_TPDUS);
        assert!(keys.contains(&burst) && keys.contains(&window), "{keys}");
        let without = connection::lower_overhead(([127, 0, 0, 1], 0).into(), false);
        // Twenty of them are the network header, which flows have.
        let mtu = format!("mtu = \"{}B\"\n", 1_500 - (without.0 - 20));
        assert!(keys.contains(&mtu), "{keys}");
        assert_eq!(keys.lines().last(), Some("send_rate = \"4973333bit\""));
        let found = PerfKeys::told(None).flow;
        assert_eq!(found.lines().last(), Some("send_rate = \"found\""));
    }
}
