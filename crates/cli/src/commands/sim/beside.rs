//! `fulmar sim --auto-vs-fixed`: `auto` beside every fixed setting.

use super::{SimArgs, print, written};
use crate::commands::watch::{Total, stoppable, watch};
use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use crate::signals::Signals;
use crate::table::Listing;
use anyhow::{Context, anyhow};
use fulmar_sim::beside::{
    AutoComparison, AutoScenario, SettingScore, compare, random, summary::BesideSummary,
};
use fulmar_sim::report::record::SCHEMA;
use fulmar_sim::scenario::{Document, PointPlan, RUNS_MAX};
use fulmar_sim::{Experiment, FixedSetting};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;

/// The fixed settings that a table for people shows.
const SHOWN: usize = 12;
/// The scenarios that are told one by one, those in which `auto` is furthest from the best.
const WORST: usize = 10;

/// The arguments of a comparison.
#[derive(clap::Args, Debug)]
pub(super) struct BesideArgs {
    /// Run the scenario as it is and with every fixed setting in place of mode = "auto", on the same seeds, and tell how far
    /// auto is from the best of them in hindsight.
    #[arg(long, conflicts_with_all = ["swarm", "out", "capture", "trace", "columns"])]
    pub(super) auto_vs_fixed: bool,
    /// With --auto-vs-fixed: of N random scenarios in place of one from a file. --seed is the first one's.
    #[arg(long, value_name = "N", requires = "auto_vs_fixed", conflicts_with_all = ["scenario", "sets", "runs"])]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=RUNS_MAX))]
    pub(super) random: Option<u64>,
    /// With --auto-vs-fixed: list the fixed settings, and run nothing.
    #[arg(long, requires = "auto_vs_fixed", conflicts_with_all = ["scenario", "random", "json", "csv"])]
    pub(super) settings: bool,
}

#[derive(Serialize)]
struct BesideRecord<'a> {
    record: &'static str,
    schema: u32,
    version: &'static str,
    seed: u64,
    #[serde(flatten)]
    comparison: &'a AutoComparison,
}

#[derive(Serialize)]
struct BesideSummaryRecord<'a> {
    record: &'static str,
    schema: u32,
    version: &'static str,
    seed: u64,
    incomplete: bool,
    #[serde(flatten)]
    summary: &'a BesideSummary,
}

/// Prints every fixed setting, one a line.
pub(super) fn list() -> Result<Exit, Failure> {
    let names: Vec<String> = FixedSetting::grid()
        .iter()
        .map(ToString::to_string)
        .collect();
    output::line(&names.join("\n"))?;
    Ok(Exit::Done)
}

/// Compares the one point of a scenario.
pub(super) fn one(args: &SimArgs) -> Result<Exit, Failure> {
    let experiment = super::read(args)?.experiment;
    let scenario_file = args.scenario.as_deref();
    let name = scenario_file.map_or_else(|| "-".to_owned(), |file| file.display().to_string());
    let Experiment {
        scenario, points, ..
    } = experiment;
    let [point] = points.as_slice() else {
        let problem = format!(
            "{name}: --auto-vs-fixed compares one point; take one value of the sweep by --set 'sweep.PATH=[VALUE]'"
        );
        return Err(anyhow!(problem)).or_exit(Exit::Usage);
    };
    let beside = AutoScenario::of(scenario, &point.plan)
        .with_context(|| name.clone())
        .or_exit(Exit::Usage)?;
    let (seed, seeds) = (point.plan.run.seed, print::seeds(&point.plan.run));
    let signals = Signals::catch(&[])?;
    let comparisons = computed(&[beside], args, &signals)?;
    let Some(comparison) = comparisons.first() else {
        eprintln!("fulmar: interrupted before every setting was run; nothing is reported");
        return Ok(signals.exit().unwrap_or(Exit::Failed));
    };
    if args.json {
        record(seed, comparison)?;
    } else if let Some(file) = &args.csv {
        written(csv_file(file, &comparisons))?;
    } else {
        tell(comparison, &seeds)?;
    }
    Ok(verdict(&comparisons, &signals))
}

/// Compares so many random scenarios.
pub(super) fn random(count: u64, args: &SimArgs) -> Result<Exit, Failure> {
    let seed = args.seed.unwrap_or(1);
    if args.show {
        if count != 1 {
            let problem = format!(
                "--show prints one scenario: --auto-vs-fixed --random 1 --seed {seed} --show"
            );
            return Err(anyhow!(problem)).or_exit(Exit::Usage);
        }
        let text = random::scenario(seed);
        output::line(&format!(
            "# fulmar sim --auto-vs-fixed --random 1 --seed {seed}\n{}",
            text.trim_end()
        ))?;
        return Ok(Exit::Done);
    }
    let scenarios: Vec<AutoScenario> = (seed..seed.saturating_add(count))
        .map(drawn)
        .collect::<Result<_, _>>()?;
    let signals = Signals::catch(&[])?;
    let comparisons = computed(&scenarios, args, &signals)?;
    let over = comparisons.len() as u64;
    if args.json {
        for comparison in &comparisons {
            record(seed, comparison)?;
        }
        output::record(&BesideSummaryRecord {
            record: "auto-vs-fixed-summary",
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            seed,
            incomplete: over < count,
            summary: &BesideSummary::of(&comparisons),
        })?;
    } else if let Some(file) = &args.csv {
        written(csv_file(file, &comparisons))?;
    } else if over > 0 {
        tell_many(&comparisons)?;
    }
    if over < count {
        eprintln!("fulmar: interrupted; {over} of {count} scenarios were over and are reported");
    }
    Ok(verdict(&comparisons, &signals))
}

/// The random scenario of a seed, named by it.
fn drawn(seed: u64) -> Result<AutoScenario, Failure> {
    let name = format!("random-{seed}");
    let document = Document::parse(&name, &random::scenario(seed)).or_exit(Exit::Usage)?;
    let plan = PointPlan::read(&document).or_exit(Exit::Usage)?;
    AutoScenario::of(name, &plan).or_exit(Exit::Usage)
}

fn computed(
    scenarios: &[AutoScenario],
    args: &SimArgs,
    signals: &Signals,
) -> Result<Vec<AutoComparison>, Failure> {
    let progress = stoppable(signals);
    let runs = scenarios.iter().map(AutoScenario::run_count).sum::<usize>() as u64;
    let total = Total::of("runs", runs, runs);
    let work = || compare(scenarios, args.workers.jobs, &progress);
    watch(&total, &progress, work)?.or_exit(Exit::Device)
}

fn verdict(comparisons: &[AutoComparison], signals: &Signals) -> Exit {
    let broken = comparisons
        .iter()
        .find_map(|one| Some((one, one.error.as_ref()?)));
    if let Some((comparison, error)) = broken {
        eprintln!(
            "fulmar: {}: a promise was broken: {error}",
            comparison.scenario
        );
    }
    let verdict = broken.map_or(Exit::Done, |_| Exit::Failed);
    signals.exit().unwrap_or(verdict)
}

fn record(seed: u64, comparison: &AutoComparison) -> Result<(), Failure> {
    output::record(&BesideRecord {
        record: "auto-vs-fixed",
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        seed,
        comparison,
    })
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.2}", share * 100.0))
}

fn cells(row: &SettingScore) -> [String; 8] {
    [
        row.setting.clone(),
        format!("{:.4}", row.score),
        percent(row.in_time),
        percent(row.late),
        percent(row.lost),
        format!("{:.3}", row.octets),
        format!("{:.3}", row.goodput_bps / 1e6),
        row.unfit.map_or("", |unfit| unfit.name()).to_owned(),
    ]
}

/// `auto`, the best fixed settings, each run with these seeds, and how far it is from the first of them.
fn tell(comparison: &AutoComparison, seeds: &str) -> Result<(), Failure> {
    let headings = [
        "setting",
        "score",
        "in time %",
        "late %",
        "lost %",
        "octets",
        "goodput Mbit/s",
        "not counted",
    ];
    let mut table = Listing::new(headings, 1).weigh([255, 250, 240, 200, 200, 230, 150, 100]);
    table.row(cells(&comparison.auto));
    comparison
        .fixed
        .iter()
        .take(SHOWN)
        .for_each(|row| table.row(cells(row)));
    let mut text = format!("{table}\neach setting with seeds {seeds}");
    let more = comparison.fixed.len().saturating_sub(SHOWN);
    if more > 0 {
        let _ = write!(
            text,
            "\n{more} more fixed settings; --json and --csv have all"
        );
    }
    let best = comparison.best();
    let _ = match (comparison.of_best, best) {
        (Some(of_best), Some(best)) => write!(
            text,
            "\nauto has {of_best:.4} of the score of the best fixed setting in hindsight, {}",
            best.setting
        ),
        _ => write!(text, "\nno fixed setting fits the goal"),
    };
    if let Some(unfit) = comparison.auto.unfit {
        let _ = write!(text, "\nauto does not fit its goal: it {}", unfit.name());
    }
    if comparison.best_changes {
        text.push_str("\nthe best fixed setting changes on the way");
    }
    output::line(&text)
}

/// The figures of many scenarios, and those in which `auto` is furthest from the best.
fn tell_many(comparisons: &[AutoComparison]) -> Result<(), Failure> {
    let summary = BesideSummary::of(comparisons);
    let mut worst: Vec<&AutoComparison> = comparisons
        .iter()
        .filter(|one| one.of_best.is_some())
        .collect();
    worst.sort_by(|a, b| {
        let ratio = |one: &AutoComparison| one.of_best.unwrap_or_default();
        ratio(a).total_cmp(&ratio(b))
    });
    let headings = [
        "scenario",
        "of the best",
        "auto",
        "in time %",
        "octets",
        "best",
        "in time %",
        "octets",
        "best fixed setting",
    ];
    let mut table = Listing::new(headings, 1);
    for one in worst.into_iter().take(WORST) {
        let Some(best) = one.best() else { continue };
        table.row([
            one.scenario.clone(),
            format!("{:.4}", one.of_best.unwrap_or_default()),
            format!("{:.4}", one.auto.score),
            percent(one.auto.in_time),
            format!("{:.3}", one.auto.octets),
            format!("{:.4}", best.score),
            percent(best.in_time),
            format!("{:.3}", best.octets),
            best.setting.clone(),
        ]);
    }
    let BesideSummary {
        scenarios,
        without_best,
        median,
        fifth_percentile,
        worst,
        changing,
        ahead,
        ahead_knowing,
        ahead_following,
        unfit,
    } = summary;
    output::line(&format!(
        "{table}\n{scenarios} scenarios, {} fixed settings; auto over the best of them in hindsight: median {median:.4}, \
         5th percentile {fifth_percentile:.4}, worst {worst:.4}\n\
         ahead of every fixed setting in {ahead} of {changing} scenarios whose best setting changes on the way; who switches between \
         the best fixed settings of each part, as hindsight knows them, in {ahead_knowing}, and if he follows changes later in {ahead_following}\n\
         auto does not fit its goal in {unfit}; no fixed setting does in {without_best}",
        FixedSetting::grid().len()
    ))
}

/// Every row of every scenario, `auto` first.
fn csv_file(file: &Path, comparisons: &[AutoComparison]) -> anyhow::Result<()> {
    let mut text = String::from(
        "scenario,setting,score,not_counted,in_time,late,lost,octets,goodput_bps,of_best\n",
    );
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for one in comparisons {
        for (index, row) in [&one.auto].into_iter().chain(&one.fixed).enumerate() {
            let of_best = one.of_best.filter(|_| index == 0);
            let _ = writeln!(
                text,
                "{},\"{}\",{},{},{},{},{},{},{},{}",
                one.scenario,
                row.setting,
                row.score,
                row.unfit.map_or("", |unfit| unfit.name()),
                number(row.in_time),
                number(row.late),
                number(row.lost),
                row.octets,
                row.goodput_bps,
                number(of_best),
            );
        }
    }
    if file == Path::new("-") {
        print_all(&text)
    } else {
        std::fs::write(file, &text).with_context(|| format!("cannot write {}", file.display()))
    }
}

fn print_all(text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context(super::STDOUT)
}
