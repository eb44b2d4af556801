//! `--out DIR`: records on disk as they come, so that a killed sweep goes on where it was.
//!
//! `DIR/runs.ndjson` begins with a head that says which sweep it is; then comes one line for each run that
//! is over, in the order in which they ended. When the last one is over the file is replaced, in one step,
//! by the same records in the order of points and seeds, with the summary of each point behind its runs;
//! `DIR/runs.csv` has the same numbers as a table. The contents of these two depend on the scenario and the
//! program alone, not on how often the sweep was killed: the head has a digest of the program too, so that
//! runs of two builds are not mixed.
//!
//! A line is written by one call and ends with its line feed, so a process that is killed leaves at
//! most one line without one, the last. That is cut off. Anything else that is no record of this
//! sweep is the user's, and refused.

use crate::exit::{Exit, Failure, OrExit};
use anyhow::{Context, anyhow, bail};
use core::fmt::Display;
use fulmar_sim::experiment::{Experiment, RunIndex};
use fulmar_sim::report::aggregate::AggregateRecord;
use fulmar_sim::report::csv;
use fulmar_sim::report::record::{RunRecord, SCHEMA};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The records' file within the directory.
const RECORDS: &str = "runs.ndjson";
/// The table's file within the directory.
const ROWS: &str = "runs.csv";

/// The longest line that is read; a run with thousands of flows has less.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// The first line: which sweep this is.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    record: String,
    schema: u32,
    version: String,
    /// A digest of the program itself: builds of one version may give other numbers.
    #[serde(default)]
    build: String,
    scenario: String,
    /// A digest of every point's parameters and of the traces that they name.
    digest: String,
    points: usize,
    runs: usize,
}

/// The fields of a line by which it is found again.
#[derive(Deserialize)]
struct Line {
    record: String,
    point: Option<usize>,
    run: Option<usize>,
}

/// The place of a record in the file.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    at: u64,
    /// Octets without the line feed; zero while the run is missing.
    len: u32,
}

/// The file of a sweep, and an index of it.
#[derive(Debug)]
pub(super) struct Store {
    directory: PathBuf,
    /// Held for as long as this process writes here.
    _lock: File,
    head: String,
    records: Mutex<Records>,
    /// The number of the first run of each point.
    firsts: Vec<usize>,
}

#[derive(Debug)]
struct Records {
    file: File,
    end: u64,
    places: Vec<Place>,
}

impl Store {
    /// Opens or makes the directory, and finds out which runs are there.
    ///
    /// # Errors
    /// The directory cannot be used, another process uses it, or it belongs to another sweep.
    pub(super) fn open(
        directory: &Path,
        experiment: &Experiment,
        digest: &str,
    ) -> Result<Self, Failure> {
        let shown = directory.display();
        fs::create_dir_all(directory)
            .with_context(|| format!("--out: cannot make the directory {shown}"))
            .or_exit(Exit::Device)?;
        let lock = locked(directory)?;
        let head = Head {
            record: "sweep".to_owned(),
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: build().or_exit(Exit::Device)?,
            scenario: experiment.scenario.clone(),
            digest: digest.to_owned(),
            points: experiment.points.len(),
            runs: experiment.run_count(),
        };
        let mut total = 0;
        let firsts = experiment.points.iter().map(|point| {
            let first = total;
            total += point.plan.run.runs;
            first
        });
        let firsts: Vec<usize> = firsts.collect();
        let path = directory.join(RECORDS);
        refuse_foreign(directory).or_exit(Exit::Usage)?;
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .with_context(|| format!("--out: cannot open {}", path.display()))
            .or_exit(Exit::Device)?;
        let line = serde_json::to_string(&head).context("writing the head as JSON")? + "\n";
        let mut records = Records {
            file,
            end: 0,
            places: vec![Place::default(); total],
        };
        records.read(&path, &head, &line, &firsts)?;
        Ok(Self {
            directory: directory.to_owned(),
            _lock: lock,
            head: line,
            records: Mutex::new(records),
            firsts,
        })
    }

    /// The number of runs that are over.
    pub(super) fn count(&self) -> usize {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.places.iter().filter(|place| place.len > 0).count()
    }

    /// The runs that are still to be made, as a test for one of them.
    pub(super) fn missing(&self) -> impl Fn(RunIndex) -> bool + use<> {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let missing: Vec<bool> = records.places.iter().map(|place| place.len == 0).collect();
        let firsts = self.firsts.clone();
        move |index| missing[firsts[index.point] + index.run]
    }

    /// Adds the record of a run that is over.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn keep(&self, record: &RunRecord) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(record).context("writing a record as JSON")?;
        let len = u32::try_from(line.len()).context("a record of more than 4 GB")?;
        line.push(b'\n');
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let at = records.end;
        records
            .file
            .write_all(&line)
            .with_context(|| format!("cannot write {}", self.path(RECORDS).display()))?;
        records.end += line.len() as u64;
        records.places[self.firsts[record.point] + record.run] = Place { at, len };
        Ok(())
    }

    /// Puts everything in order and writes the table, whose columns begin with the values of
    /// `varied`.
    ///
    /// # Errors
    /// A file cannot be written, or a line of the file is no record.
    pub(super) fn finish(self, varied: &[String]) -> anyhow::Result<Finished> {
        let mut records = Replacement::create(&self.path(RECORDS))?;
        let mut rows = Replacement::create(&self.path(ROWS))?;
        records.put(self.head.trim_end())?;
        let mut finished = Finished::default();
        let kept = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        for (point, &first) in self.firsts.iter().enumerate() {
            let next = self.firsts.get(point + 1).copied();
            let places = &kept.places[first..next.unwrap_or(kept.places.len())];
            let mut runs = Vec::with_capacity(places.len());
            for &place in places {
                let line = kept.line(place)?;
                let run: RunRecord = serde_json::from_str(&line).with_context(|| {
                    format!("{}: a line is no record", self.path(RECORDS).display())
                })?;
                records.put(&line)?;
                if finished.aggregates.is_empty() && runs.is_empty() {
                    rows.put(&csv::header(&run, varied))?;
                }
                rows.put(&csv::run_row(&run, varied))?;
                runs.push(run);
            }
            let aggregate = AggregateRecord::of(&runs, places.len());
            let aggregate = aggregate.context("a point has at least one run")?;
            records.put(&serde_json::to_string(&aggregate)?)?;
            rows.put(&csv::aggregate_row(&aggregate, varied))?;
            finished.aggregates.push(aggregate);
            for run in runs {
                if let Some(error) = run.error {
                    finished.failed += 1;
                    let first = (run.point, run.seed, error);
                    finished.first_failure.get_or_insert(first);
                }
            }
        }
        drop(kept);
        rows.publish()?;
        records.publish()?;
        Ok(finished)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// The result of a whole sweep.
#[derive(Debug, Default)]
pub(super) struct Finished {
    pub(super) aggregates: Vec<AggregateRecord>,
    /// Runs that broke a promise.
    pub(super) failed: usize,
    /// Point, seed and error of the first of them.
    pub(super) first_failure: Option<(usize, u64, String)>,
}

impl Records {
    /// Finds the records in the file, cuts off half a line at its end, and writes the head if there
    /// is none.
    fn read(
        &mut self,
        path: &Path,
        head: &Head,
        line: &str,
        firsts: &[usize],
    ) -> Result<(), Failure> {
        let shown = path.display();
        let unreadable = || format!("--out: cannot read {shown}");
        let mut reader = BufReader::new(&self.file);
        let mut text = Vec::new();
        let mut number = 0;
        loop {
            text.clear();
            let octets = (&mut reader)
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut text);
            octets.with_context(unreadable).or_exit(Exit::Device)?;
            number += 1;
            if text.len() as u64 == LINE_BYTES_MAX {
                let problem = "is longer than any record; name another directory";
                return Err(anyhow!("{shown}:{number}: {problem}")).or_exit(Exit::Usage);
            }
            if text.pop() != Some(b'\n') {
                break;
            }
            let told = || format!("{shown}:{number}");
            if number == 1 {
                check_head(&text, head)
                    .with_context(told)
                    .or_exit(Exit::Usage)?;
            } else if let Some(RunIndex { point, run }) =
                run_of(&text).with_context(told).or_exit(Exit::Usage)?
            {
                let place = firsts.get(point).and_then(|first| {
                    let end = firsts.get(point + 1).copied().unwrap_or(self.places.len());
                    self.places
                        .get_mut(first + run)
                        .filter(|_| first + run < end)
                });
                let Some(place) = place else {
                    let problem = "`run`: the sweep has no such run; remove the line";
                    return Err(anyhow!(problem))
                        .with_context(told)
                        .or_exit(Exit::Usage);
                };
                let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
                *place = Place { at: self.end, len };
            }
            self.end += text.len() as u64 + 1;
        }
        if number == 1 && !line.as_bytes().starts_with(&text) {
            let problem = "is not the record of a sweep; name another directory";
            return Err(anyhow!("{shown}:1: {problem}")).or_exit(Exit::Usage);
        }
        let written = self.file.set_len(self.end).and_then(|()| {
            let missing = if number == 1 { line } else { "" };
            self.end += missing.len() as u64;
            self.file.write_all(missing.as_bytes())
        });
        written
            .with_context(|| format!("--out: cannot write {shown}"))
            .or_exit(Exit::Device)
    }

    fn line(&self, place: Place) -> anyhow::Result<String> {
        let mut line = vec![0; place.len as usize];
        self.file.read_exact_at(&mut line, place.at)?;
        Ok(String::from_utf8(line)?)
    }
}

/// Refuses files under our names that are not ours: they are the user's.
fn refuse_foreign(directory: &Path) -> anyhow::Result<()> {
    let (records, rows) = (directory.join(RECORDS), directory.join(ROWS));
    match fs::metadata(&records) {
        Ok(there) if !there.is_file() => {
            bail!(
                "--out: {} is not a regular file; name another directory",
                records.display()
            );
        }
        Err(_) if fs::symlink_metadata(&rows).is_ok() => bail!(
            "--out: {} is there, and no {RECORDS} that it would belong to; name another directory",
            rows.display()
        ),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Compares the first line with what it must be, field by field.
fn check_head(text: &[u8], expected: &Head) -> anyhow::Result<()> {
    let remedy = "name another --out, or remove this file to begin anew";
    let Ok(found) = serde_json::from_slice::<Head>(text) else {
        bail!("`record`: this is not the head of a sweep; {remedy}");
    };
    let differs = |field: &str, found: &dyn Display, expected: &dyn Display| {
        Err(anyhow!(
            "`{field}`: these runs are of {found}, this sweep is of {expected}; {remedy}"
        ))
    };
    if (&found.version, found.schema) != (&expected.version, expected.schema) {
        let name = |head: &Head| format!("fulmar {} (schema {})", head.version, head.schema);
        return differs("version", &name(&found), &name(expected));
    }
    if found.build != expected.build {
        bail!(
            "`build`: another build of fulmar {} made these runs, and may give other numbers; go on with \
             that program, {remedy}",
            expected.version
        );
    }
    if found.scenario != expected.scenario {
        return differs("scenario", &found.scenario, &expected.scenario);
    }
    if found != *expected {
        bail!(
            "`digest`: the scenario, a --set or a trace is another than that of these runs; {remedy}"
        );
    }
    Ok(())
}

/// A digest of the program that runs.
pub(super) fn build() -> anyhow::Result<String> {
    // Linux keeps it readable there even if the file was replaced meanwhile.
    let running = Path::new("/proc/self/exe");
    let program = match File::open(running) {
        Ok(program) => program,
        Err(_) => File::open(std::env::current_exe()?)?,
    };
    let mut digest = blake3::Hasher::new();
    digest
        .update_reader(program)
        .context("reading the program, of which --out keeps a digest")?;
    Ok(digest.finalize().to_hex().to_string())
}

/// The run that a line records; `None` if it is a summary.
fn run_of(text: &[u8]) -> anyhow::Result<Option<RunIndex>> {
    let line: Result<Line, _> = serde_json::from_slice(text);
    match line {
        Ok(Line {
            record,
            point: Some(point),
            run: Some(run),
        }) if record == "run" => Ok(Some(RunIndex { point, run })),
        Ok(Line { record, .. }) if record == "aggregate" => Ok(None),
        _ => {
            bail!("`record`: the line is no record of a run; remove it, and the run is made again")
        }
    }
}

/// A file that appears under its name only when it is whole.
struct Replacement {
    path: PathBuf,
    partial: PathBuf,
    out: BufWriter<File>,
}

impl Replacement {
    fn create(path: &Path) -> anyhow::Result<Self> {
        let partial = path.with_file_name(format!(
            "{}.part",
            path.file_name().unwrap_or_default().display()
        ));
        let file = File::create(&partial)
            .with_context(|| format!("cannot create {}", partial.display()))?;
        Ok(Self {
            path: path.to_owned(),
            partial,
            out: BufWriter::new(file),
        })
    }

    fn put(&mut self, line: &str) -> anyhow::Result<()> {
        writeln!(self.out, "{line}")
            .with_context(|| format!("cannot write {}", self.partial.display()))
    }

    /// Gives the file its name. After this it is there even if the power fails.
    fn publish(mut self) -> anyhow::Result<()> {
        self.out
            .flush()
            .and_then(|()| self.out.get_ref().sync_all())
            .and_then(|()| fs::rename(&self.partial, &self.path))
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// Keeps a second sweep out of the directory until this process ends.
fn locked(directory: &Path) -> Result<File, Failure> {
    let shown = directory.display();
    let lock = File::open(directory)
        .with_context(|| format!("--out: cannot open {shown}"))
        .or_exit(Exit::Device)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            let problem = format!(
                "--out: another `fulmar sim` writes to {shown}; wait for it, or name another"
            );
            Err(anyhow!(problem)).or_exit(Exit::Device)
        }
        Err(TryLockError::Error(error)) => Err(error)
            .with_context(|| format!("--out: cannot lock {shown}"))
            .or_exit(Exit::Device),
    }
}
