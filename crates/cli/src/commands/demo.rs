//! `fulmar demo`: every mode on a bad link, side by side.

use super::overwrite;
use crate::demo::plan::{Condition, DemoCarrier, SEED};
use crate::demo::row::{Row, table};
use crate::demo::timeline::Timeline;
use crate::demo::{aerotp, plain, tcp};
use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use crate::signals::Signals;
use crate::table::Columns;
use anyhow::{Context, anyhow};
use fulmar_net::transfer::Stop;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

/// The size of the file if the user has none.
const OWN_FILE_BYTES: u64 = 4_000_000;
/// Each on both links. Ten take a quarter of two cores.
const AT_ONCE_PER_CORE: usize = 5;
const STYLE: &str = "{prefix:24} {wide_bar} {percent:>3} % {eta_precise}";

const ABOUT: &str = "\
Examples:
  fulmar demo
      a sender that is told nothing beside TCP and plain UDP, and every mode; 20 seconds or less
  fulmar demo --file photo.jpg --modes reliable,nack-mack,plain-udp --out /tmp/demo
      your file, three rows, and result.json elsewhere
  fulmar demo --json | jq 'select(.link == \"lossy\") | [.mode, .goodput_bps]'
      rows as NDJSON

Two endpoints and an emulated link in one process, over real UDP sockets of the loopback: 5 Mbit/s, \
10 ms each way, a queue of 100 packets; once clean, once with 2 % of the packets lost and one bit in \
100,000 inverted. At 1500 octets that damages every ninth packet, so without repair 13 % are lost in \
all. Both links of five modes for each core run at the same time, each with sockets of its own. The file is yours, or the first \
4 MB of this program. No privileges are needed.

reliable-found is what `fulmar send` does without options: mode reliable, and nobody tells it the \
link's rate. tcp-cubic is the simulator's TCP with Linux's rules, which finds its rate, too; its segments \
travel as UDP datagrams, with 8 octets more than the kernel's. All others, plain UDP among them, are told \
the rate. TCP is cut off after twice the time that the file takes at the link's rate and two seconds more, \
and its figures are of what had come by then.

Goodput: 8 x delivered bytes / (last delivery - first submission).
Of capacity: goodput over the link's capacity, rate x (1 - loss) x (1 - H(BER)).
Delay: from handing 1440 bytes to the transport, whose send buffer holds 64 KiB, to their delivery.
Overhead: all octets on the link, both ways and with 28 octets of lower headers for each packet, less \
the delivered.
Verified: yes if every byte of the file arrived as it was; \"rest intact\" if some are lost and all \
others are as they were; \"cut off\" if that is so of TCP when its time is up.
";

/// The arguments of `fulmar demo`.
#[derive(clap::Args, Debug)]
#[command(after_help = ABOUT, after_long_help = ABOUT)]
pub(crate) struct DemoArgs {
    /// The file to send.
    #[arg(long)]
    file: Option<PathBuf>,
    /// The directory for result.json.
    #[arg(long, value_name = "DIR", default_value = "target/demo")]
    out: PathBuf,
    /// Only these modes, by name; reliable-found, tcp-cubic and plain-udp are three.
    #[arg(long, value_name = "MODE", value_delimiter = ',')]
    modes: Vec<String>,
    /// As many modes at a time [default: 5 for each core]. Fewer on a slow machine.
    #[arg(long, value_name = "MODES")]
    at_once: Option<NonZeroUsize>,
    /// The rows as NDJSON on stdout instead of the table, and no talk on stderr.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    columns: Columns,
}

fn at_once(args: &DemoArgs) -> usize {
    let cores = || available_parallelism().map_or(1, NonZeroUsize::get);
    args.at_once
        .map_or_else(|| AT_ONCE_PER_CORE * cores(), NonZeroUsize::get)
}

fn carriers(args: &DemoArgs) -> Result<Vec<DemoCarrier>, Failure> {
    let known = || DemoCarrier::ALL.map(DemoCarrier::name).join(", ");
    if args.modes.is_empty() {
        return Ok(DemoCarrier::ALL.to_vec());
    }
    let find = |name: &String| {
        DemoCarrier::ALL
            .into_iter()
            .find(|carrier| carrier.name() == name)
            .ok_or_else(|| anyhow!("--modes {name}: there are {}", known()))
            .or_exit(Exit::Usage)
    };
    args.modes.iter().map(find).collect()
}

/// The user's file, or the first octets of this program, as often as needed.
fn input(args: &DemoArgs) -> Result<PathBuf, Failure> {
    if let Some(file) = &args.file {
        let metadata = fs::metadata(file)
            .with_context(|| format!("reading {}", file.display()))
            .or_exit(Exit::Usage)?;
        if !metadata.is_file() || metadata.len() == 0 {
            let cause = anyhow!("{} is empty or not a file", file.display());
            return Err(Failure {
                exit: Exit::Usage,
                cause,
            });
        }
        overwrite::refuse("--out", &args.out.join("result.json"), file)?;
        return Ok(file.clone());
    }
    let path = args.out.join("input.bin");
    let make = || -> anyhow::Result<()> {
        let own = std::env::current_exe()?;
        let mut input = File::create(&path)?;
        let mut missing = OWN_FILE_BYTES;
        while missing > 0 {
            let mut octets = Vec::new();
            File::open(&own)?.take(missing).read_to_end(&mut octets)?;
            input.write_all(&octets)?;
            missing -= octets.len() as u64;
        }
        Ok(())
    };
    make()
        .with_context(|| format!("making {}", path.display()))
        .or_exit(Exit::Device)?;
    Ok(path)
}

struct Demo {
    file: PathBuf,
    size: u64,
    out: PathBuf,
    bars: MultiProgress,
    stop: Stop,
}

impl Demo {
    fn bar(&self, carrier: DemoCarrier, condition: Condition) -> ProgressBar {
        let style = ProgressStyle::with_template(STYLE).expect("the template is constant");
        let bar = self.bars.add(ProgressBar::new(self.size).with_style(style));
        bar.set_prefix(format!("{} {}", carrier.name(), condition.name()));
        bar
    }

    fn run(
        &self,
        carrier: DemoCarrier,
        condition: Condition,
        bar: &ProgressBar,
    ) -> anyhow::Result<Row> {
        let directory = self
            .out
            .join(format!("{}-{}", carrier.name(), condition.name()));
        fs::create_dir_all(&directory)
            .with_context(|| format!("creating {}", directory.display()))?;
        let timeline = Timeline::new(self.size, bar.clone());
        let (file, stop) = (&self.file, &self.stop);
        let moved = match (carrier, carrier.mode()) {
            (DemoCarrier::Tcp, _) => tcp::run(condition, file, &directory, &timeline, stop),
            (_, None) => plain::run(condition, file, &directory, &timeline, stop),
            (_, Some(mode)) => {
                let what = (carrier, mode);
                aerotp::run(what, condition, file, &directory, &timeline, stop)
            }
        };
        let row = moved.and_then(|m| Row::new(carrier, condition, file, self.size, &timeline, m));
        bar.finish_and_clear();
        fs::remove_dir_all(&directory)
            .with_context(|| format!("removing {}", directory.display()))?;
        row
    }

    /// Some carriers on both links, all at the same time.
    fn run_together(&self, carriers: &[DemoCarrier]) -> anyhow::Result<Vec<Row>> {
        std::thread::scope(|scope| {
            let mut runs = Vec::new();
            for &carrier in carriers {
                for condition in Condition::ALL {
                    let bar = self.bar(carrier, condition);
                    let run = scope.spawn(move || self.run(carrier, condition, &bar));
                    runs.push((carrier, run));
                }
            }
            let rows = runs.into_iter().map(|(carrier, run)| {
                run.join()
                    .unwrap_or_else(|_| Err(anyhow!("a panic")))
                    .with_context(|| carrier.name().to_owned())
            });
            rows.collect()
        })
    }
}

/// Keeps other demonstrations out of the directory until it is dropped.
fn claim(out: &Path) -> Result<File, Failure> {
    let attempt = || format!("using {}", out.display());
    let directory = File::open(out)
        .with_context(attempt)
        .or_exit(Exit::Device)?;
    match directory.try_lock() {
        Ok(()) => Ok(directory),
        Err(TryLockError::WouldBlock) => Err(anyhow!(
            "another `fulmar demo` is writing to {}; wait for it, or give another --out",
            out.display()
        ))
        .or_exit(Exit::Device),
        Err(TryLockError::Error(error)) => Err(error).with_context(attempt).or_exit(Exit::Device),
    }
}

fn write_result(out: &Path, rows: &[Row]) -> Result<(), Failure> {
    let path = out.join("result.json");
    let text = serde_json::to_string_pretty(rows).context("writing the rows as JSON")?;
    fs::write(&path, text + "\n")
        .with_context(|| format!("writing {}", path.display()))
        .or_exit(Exit::Device)
}

/// Writes the rows to `result.json` and prints them.
fn report(args: &DemoArgs, rows: &[Row]) -> Result<(), Failure> {
    write_result(&args.out, rows)?;
    if args.json {
        return rows.iter().try_for_each(output::record);
    }
    output::line(&table(rows).chosen(&args.columns)?.to_string())?;
    let file = args.out.join("result.json");
    eprintln!("fulmar: written to {}", file.display());
    if let Some(hint) = where_it_is() {
        eprintln!("fulmar: {hint}");
    }
    Ok(())
}

/// The way to run this program again, for who has it only because `make demo` built it: no PATH leads to it.
fn where_it_is() -> Option<String> {
    let own = std::env::current_exe().ok()?;
    let directory = own.parent()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_known = std::env::split_paths(&path).any(|one| one == directory);
    (!is_known).then(|| {
        format!(
            "the program is {}; export PATH=\"{}:$PATH\", then `fulmar --help`",
            own.display(),
            directory.display()
        )
    })
}

/// Runs everything, prints the table and writes `result.json`.
///
/// # Errors
/// The file cannot be read, the directory not be written, or a mode broke its promise.
pub(crate) fn run(args: &DemoArgs) -> Result<Exit, Failure> {
    let carriers = carriers(args)?;
    // Before any time is spent.
    table(&[]).chosen(&args.columns)?;
    fs::create_dir_all(&args.out)
        .with_context(|| format!("creating {}", args.out.display()))
        .or_exit(Exit::Device)?;
    let _claim = claim(&args.out)?;
    let file = input(args)?;
    let size = fs::metadata(&file).context("the file's size")?.len();
    let signals = Signals::catch(&[])?;
    let bars = MultiProgress::with_draw_target(if args.json {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    });
    if !args.json {
        eprintln!(
            "fulmar: sending {} ({size} bytes) over 5Mbit/s, 10ms: clean, and with 2 % loss and BER \
             1e-5 (which damages every ninth packet: without repair that is another 11 % lost); \
             seed {SEED}",
            file.display()
        );
    }
    let demo = Demo {
        file,
        size,
        out: args.out.clone(),
        bars,
        stop: signals.stop(),
    };
    let mut rows = Vec::new();
    for together in carriers.chunks(at_once(args)) {
        rows.extend(demo.run_together(together)?);
        if signals.exit().is_some() {
            // A run that the signal cut off is no result.
            rows.retain(|row| row.error.is_none());
            break;
        }
    }
    // Clean first, as two tables in one.
    rows.sort_by_key(|row| row.link != Condition::Clean.name());
    // Of no row there is no table, and no result that would stand in the place of an earlier one.
    if !rows.is_empty() {
        report(args, &rows)?;
    }
    if let Some(exit) = signals.exit() {
        let finished = match rows.len() {
            0 => "no row was".to_owned(),
            1 => "1 row was".to_owned(),
            count => format!("{count} rows were"),
        };
        eprintln!("fulmar: interrupted; {finished} finished");
        return Ok(exit);
    }
    let broken: Vec<String> = rows
        .iter()
        .filter(|row| !row.is_good())
        .map(|row| {
            let why = row
                .error
                .as_deref()
                .unwrap_or("the bytes are not the original's");
            format!("{} on the {} link: {why}", row.mode, row.link)
        })
        .collect();
    if broken.is_empty() {
        Ok(Exit::Done)
    } else {
        Err(Failure {
            exit: Exit::Failed,
            cause: anyhow!(broken.join("; ")),
        })
    }
}
