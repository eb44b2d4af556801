//! `fulmar fit FILE`: the loss model behind a recording, ready to be pasted into a scenario.

use super::overwrite;
use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use crate::table::{Columns, HEAVIEST, Listing};
use anyhow::Context;
use clap::ValueEnum;
use fulmar_lab::fitting::{FittedRecording, FittingOptions, LEVEL, read_losses};
use fulmar_trace::fit::{Fit, Fitted, Goodness, Parameter};
use fulmar_trace::{CaptureOptions, CapturedProtocol, Losses, SequenceOptions};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  fulmar fit losses.csv
      a table with the columns `lost` (1 or 0 for each packet sent), and `sent_s` if known; or
      `sequence`, and `arrival_s` if known, of the packets that came
  fulmar fit radio.pcapng --port 5004
      a capture at the receiver, of RTP to UDP port 5004
  fulmar fit radio.pcap --port 4914 --protocol aerotp --trace losses.csv
      of AeroTP; and a table for `loss = \"trace losses.csv\"`
  fulmar fit losses.csv --json | jq -r .loss
      only what a scenario writes

Methods, columns and limits: docs/models/fit.md.
";

/// The arguments of `fulmar fit`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct FitArgs {
    /// The recording: CSV, pcap or pcapng; `-` is stdin.
    file: PathBuf,
    /// For a capture: the UDP port that the flow's packets were sent to.
    #[arg(long, value_name = "PORT")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// For a capture: the protocol whose sequence numbers its packets have.
    #[arg(long, value_name = "NAME", default_value = "rtp", requires = "port")]
    protocol: ProtocolArg,
    /// For a capture of RTP with several sources: the source to take.
    #[arg(long, value_name = "SSRC", requires = "port", value_parser = ssrc)]
    ssrc: Option<u32>,
    /// For a table: `sequence` has this many bits and begins again at 0.
    #[arg(long, value_name = "BITS", conflicts_with = "port")]
    #[arg(value_parser = clap::value_parser!(u32).range(4..=63))]
    wrap: Option<u32>,
    /// A packet that comes behind one with a number larger by more than this counts as lost.
    #[arg(long, value_name = "PACKETS", default_value_t = SequenceOptions::WINDOW)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(SequenceOptions::WINDOW_MAX)))]
    window: u32,
    /// Also write a table with a row for each packet, to be replayed.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    columns: Columns,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProtocolArg {
    /// RTP: 16 bits.
    Rtp,
    /// AeroTP: the numbers of data TPDUs.
    Aerotp,
}

/// An SSRC as tools print it: `0x1234abcd`, or decimal.
fn ssrc(text: &str) -> Result<u32, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| "write it as 0x1234abcd or as a decimal number".to_owned())
}

/// Fits and prints.
///
/// # Errors
/// The recording cannot be used, or the results cannot be written.
pub(crate) fn run(args: &FitArgs) -> Result<Exit, Failure> {
    let name = args.file.display().to_string();
    if let Some(path) = &args.trace {
        overwrite::refuse("--trace", path, &args.file)?;
    }
    let losses = read(args, &name)?;
    let fitted = FittedRecording::of(&name, &losses);
    let fit = &fitted.fit;
    if let Some(path) = &args.trace {
        write_trace(path, &losses).or_exit(Exit::Device)?;
        eprintln!(
            "fulmar: {} packets written to {}",
            fit.packets,
            path.display()
        );
    }
    let best = fit.best().context("every recording has a mean loss")?;
    if args.json {
        output::record(&fitted)?;
    } else {
        let table = table(fit).chosen(&args.columns)?;
        output::line(text(fit, best, &name, &table)?.trim_end())?;
    }
    Ok(Exit::Done)
}

fn read(args: &FitArgs, name: &str) -> Result<Losses, Failure> {
    let source: Box<dyn Read + Send> = if args.file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        let file = File::open(&args.file);
        Box::new(
            file.with_context(|| format!("cannot read {name}"))
                .or_exit(Exit::Usage)?,
        )
    };
    let options = FittingOptions {
        capture: args.port.map(|port| CaptureOptions {
            port,
            protocol: match args.protocol {
                ProtocolArg::Rtp => CapturedProtocol::Rtp,
                ProtocolArg::Aerotp => CapturedProtocol::Aerotp,
            },
            source: args.ssrc,
            window: args.window,
        }),
        sequence: SequenceOptions {
            bits: args.wrap,
            window: args.window,
        },
        port_option: "--port",
    };
    let recorded = read_losses(name, source, &options).or_exit(Exit::Usage)?;
    if let Some(cut) = recorded.cut {
        eprintln!("fulmar: warning: {name}: {cut}; a later packet is missing, not lost");
    }
    Ok(recorded.losses)
}

fn write_trace(path: &Path, losses: &Losses) -> anyhow::Result<()> {
    let cannot = || format!("--trace: cannot write {}", path.display());
    let mut out = BufWriter::new(File::create(path).with_context(cannot)?);
    let packets = losses.packets();
    out.write_all(b"lost\n").with_context(cannot)?;
    for index in 0..packets.len() {
        let row: &[u8] = if packets.get(index) == Some(true) {
            b"1\n"
        } else {
            b"0\n"
        };
        out.write_all(row).with_context(cannot)?;
    }
    out.flush().with_context(cannot)
}

fn table(fit: &Fit) -> Listing {
    let headings = [
        "model",
        "parameters, 95 % intervals",
        "log-likelihood",
        "BIC",
        "chi-square of runs",
    ];
    // By BIC and by the runs a model is judged.
    let mut table = Listing::new(headings, 2).weigh([HEAVIEST, HEAVIEST, 50, 90, 100]);
    for fitted in &fit.models {
        let parameters: Vec<String> = fitted.parameters.iter().map(shown).collect();
        table.row([
            fitted.model.name().to_owned(),
            parameters.join("\n"),
            format!("{:.1}", fitted.log_likelihood),
            format!("{:.1}", fitted.bic),
            fitted.goodness.map_or_else(|| "-".to_owned(), goodness),
        ]);
    }
    table
}

/// The table, the compared models, and the lines to paste.
fn text(fit: &Fit, best: &Fitted, name: &str, table: &Listing) -> anyhow::Result<String> {
    let mut text = String::new();
    let share = 100.0 * output::share(fit.lost, fit.packets);
    write!(
        text,
        "{name}: {} packets, {} lost ({share:.4} %)",
        fit.packets, fit.lost
    )?;
    if let Some(seconds) = fit.duration_s {
        write!(text, ", {seconds:.3} s")?;
    }
    let counts = &fit.counts;
    for (count, what) in [
        (counts.duplicates, "came twice"),
        (counts.reordered, "out of order"),
        (counts.late, "too late to count"),
        (counts.restarts, "restarts"),
        (counts.strays, "left out for their numbers"),
    ] {
        if count > 0 {
            write!(text, ", {count} {what}")?;
        }
    }
    writeln!(text, "\n{table}")?;
    for (model, reason) in &fit.skipped {
        writeln!(text, "{} is left out: {reason}", model.name())?;
    }
    for comparison in &fit.comparisons {
        let (smaller, larger) = (comparison.smaller.name(), comparison.larger.name());
        let (statistic, degrees) = (comparison.statistic, comparison.degrees);
        let p = probability(comparison.p);
        writeln!(
            text,
            "{larger} against {smaller}: likelihood ratio {statistic:.1} ({degrees} more), {p}"
        )?;
    }
    writeln!(text, "lowest BIC: {}", best.model.name())?;
    if fit.lost == 0 || fit.lost == fit.packets {
        writeln!(
            text,
            "one fate only: the interval of the mean loss is all that can be said"
        )?;
    } else if let Some(goodness) = best.goodness {
        if goodness.p < LEVEL {
            let p = probability(goodness.p);
            writeln!(
                text,
                "but its runs are not those of the recording ({p}): replay it instead, --trace FILE"
            )?;
        }
    } else {
        writeln!(
            text,
            "whether its runs are those of the recording cannot be tested: the losses are too few, or \
             come too regularly to be chance; replay it instead, --trace FILE"
        )?;
    }
    writeln!(text, "\n[hop]\nloss = \"{}\"", best.loss)?;
    Ok(text)
}

fn shown(parameter: &Parameter) -> String {
    let Parameter {
        name,
        value,
        low,
        high,
    } = parameter;
    let number = |value: f64| {
        if name.contains("loss") {
            format!("{:.4} %", value * 100.0)
        } else {
            format!("{value:.4}")
        }
    };
    match low.zip(*high) {
        Some((low, high)) => format!(
            "{name} {} [{}, {}]",
            number(*value),
            number(low),
            number(high)
        ),
        None => format!("{name} {}", number(*value)),
    }
}

fn goodness(goodness: Goodness) -> String {
    let Goodness {
        chi_square,
        degrees,
        p,
    } = goodness;
    format!("{chi_square:.1} ({degrees}), {}", probability(p))
}

fn probability(p: f64) -> String {
    if p < 1e-6 {
        "p < 1e-6".to_owned()
    } else {
        format!("p = {p:.3}")
    }
}
