//! Studies for Python: a scenario with its sweep, and its runs in parts.

use crate::links::unreadable;
use crate::own::PythonParts;
use crate::part::PartFault;
use crate::recording::NativeRecording;
use crate::table::NativeTable;
use crate::waiting::wait_for;
use core::fmt;
use core::ops::Range;
use fulmar_lab::{
    KeptParts, PartError, RecordingTables, RunTable, Study, SweepPart, flow_figure, parts,
};
use fulmar_proto::units::Duration;
use fulmar_sim::scenario::{Document, NAMED_BY, TABLE_KEYS};
use fulmar_sim::{ExperimentError, FlowWindow, Observers, SettingsError};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyValueError};
use pyo3::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

create_exception!(
    fulmar_lab,
    ScenarioError,
    PyValueError,
    "A scenario, or a change to one, is wrong; the message names the file, the key and the cure."
);
create_exception!(
    fulmar_lab,
    SweepError,
    PyException,
    "A sweep could not be made, or its parts not be put together."
);

/// Parts with their files, files that are not needed, and spans that are.
type FoundParts = (
    Vec<(usize, usize, PathBuf)>,
    Vec<PathBuf>,
    Vec<(usize, usize)>,
);

/// A scenario with its sweep, ready to run.
#[pyclass(frozen, module = "fulmar_lab._native")]
#[derive(Debug)]
pub(crate) struct NativeStudy {
    study: Study,
    /// The document again, if the runs call Python: each call has parts whose exceptions are its own.
    own: Option<OwnReading>,
}

/// All that a scenario with parts of one's own is read from.
struct OwnReading {
    path: PathBuf,
    document: Document,
    parts: PythonParts,
}

impl fmt::Debug for OwnReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnReading").finish_non_exhaustive()
    }
}

impl OwnReading {
    fn study(&self, py: Python<'_>, fault: &PartFault) -> Result<Study, SettingsError> {
        let own = self.parts.own(py, fault);
        let (path, document, version) = (&self.path, &self.document, &self.parts.version);
        py.detach(|| Study::read_with(path, document, own, version))
    }
}

#[pymethods]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the binding makes values of Python's"
)]
impl NativeStudy {
    /// Reads a scenario. `path` is where its traces lie beside and what errors name; `sweep` is a TOML document whose
    /// table `[sweep]` takes the place of the scenario's own. `parts` are parts of one's own, which the scenario may name.
    #[new]
    #[pyo3(signature = (text, path, sets, sweep=None, parts=None))]
    fn new(
        py: Python<'_>,
        text: &str,
        path: PathBuf,
        sets: Vec<String>,
        sweep: Option<&str>,
        parts: Option<PythonParts>,
    ) -> PyResult<Self> {
        let name = path.display().to_string();
        let mut document = Document::parse(&name, text).map_err(wrong)?;
        document.named_by = NAMED_BY;
        if let Some(sweep) = sweep {
            let grid = Document::parse("the grid", sweep).map_err(wrong)?;
            document.root.remove("sweep");
            document.root.extend(grid.root);
        }
        for set in &sets {
            document.set(set).map_err(wrong)?;
        }
        let Some(parts) = parts.filter(|parts| !parts.is_empty()) else {
            let study = py.detach(|| Study::read(&path, &document)).map_err(wrong)?;
            return Ok(Self { study, own: None });
        };
        let own = OwnReading {
            path,
            document,
            parts,
        };
        Ok(Self {
            study: own.study(py, &PartFault::default()).map_err(wrong)?,
            own: Some(own),
        })
    }

    /// The picture of the first point, as SVG.
    fn drawing(&self, py: Python<'_>) -> Option<String> {
        let first = self.study.points().first()?;
        Some(py.detach(|| fulmar_lab::drawing::draw(&first.plan)))
    }

    /// The packets of a flow in the first run of the first point as a figure, SVG.
    fn flow_figure(
        &self,
        py: Python<'_>,
        flow: usize,
        times_s: (f64, Option<f64>),
        packets_max: usize,
    ) -> PyResult<String> {
        let (start_s, span_s) = times_s;
        let time = |seconds: f64| {
            let time = Duration::try_from_secs_f64(seconds);
            time.map_err(|error| PyValueError::new_err(format!("{seconds} s: {error}")))
        };
        let flows = self
            .study
            .points()
            .first()
            .map_or(0, |point| point.plan.flows.len());
        if flow >= flows {
            let last = flows.saturating_sub(1);
            let problem = format!("there is no flow {flow}; the last is {last}");
            return Err(ScenarioError::new_err(problem));
        }
        let window = FlowWindow {
            flow,
            start: time(start_s)?,
            span: span_s.map(time).transpose()?,
            packets_max,
        };
        if packets_max > flow_figure::ARROWS_MAX {
            let problem = format!(
                "a figure has at most {} packets, not {packets_max}",
                flow_figure::ARROWS_MAX
            );
            return Err(PyValueError::new_err(problem));
        }
        let (study, fault) = self.of_call(py)?;
        let noted = wait_for(py, None, &fault, |progress| {
            let observers = Observers::default().with_flow(Some(window));
            let (_, observed) = study.experiment.run_observed(observers, progress);
            observed.map(|observed| observed.flow)
        })?;
        let noted = noted.map_err(|error| SweepError::new_err(error.to_string()))?;
        let noted = noted.ok_or_else(|| SweepError::new_err("the run was cancelled"))?;
        Ok(py.detach(|| flow_figure::draw(&study.experiment, window, &noted)))
    }

    /// The number of points.
    #[getter]
    fn points(&self) -> usize {
        self.study.points().len()
    }

    /// The number of runs in all.
    #[getter]
    fn runs(&self) -> usize {
        self.study.experiment.run_count()
    }

    /// The swept paths.
    #[getter]
    fn varied(&self) -> Vec<String> {
        self.study.varied()
    }

    /// The files of the traces that it has read.
    #[getter]
    fn inputs(&self) -> Vec<PathBuf> {
        self.study.inputs.clone()
    }

    /// A digest of all that the results depend on but for the program.
    #[getter]
    fn digest(&self) -> String {
        self.study.digest.clone()
    }

    /// Everything that the scenario says at a point, by path.
    fn parameters(&self, point: usize) -> PyResult<BTreeMap<String, String>> {
        let point = self.study.points().get(point);
        let point = point.ok_or_else(|| PyValueError::new_err("there is no such point"))?;
        Ok(point.parameters.clone())
    }

    /// A name for the part that depends on all that its octets depend on.
    fn part_name(&self, first: usize, count: usize, build: &str) -> String {
        part(first, count).content_name(&self.study, build)
    }

    /// The parts that a directory has, made by this build: first run, number and file of each; files that nobody needs;
    /// and the spans that remain, of `part_runs` runs at most.
    fn found_parts(
        &self,
        py: Python<'_>,
        directory: PathBuf,
        build: &str,
        part_runs: usize,
    ) -> PyResult<FoundParts> {
        let found = py.detach(|| {
            let found = KeptParts::found(&self.study, build, &directory)?;
            let missing = found.missing(&self.study, part_runs);
            Ok((found, missing))
        });
        let (found, missing) = found.map_err(|error| unreadable(&directory, &error))?;
        let missing = missing
            .iter()
            .map(|part| (part.runs.start, part.runs.len()));
        let missing = missing.collect();
        let parts = found.parts.into_iter().map(|kept| {
            let Range { start, end } = kept.part.runs;
            (start, end - start, kept.file)
        });
        Ok((parts.collect(), found.spare, missing))
    }

    /// Whether a file has this part, made by this build.
    fn has_part(
        &self,
        py: Python<'_>,
        first: usize,
        count: usize,
        build: &str,
        path: PathBuf,
    ) -> bool {
        let found = py.detach(|| SweepPart::found(&self.study, build, &path));
        found == Some(part(first, count))
    }

    /// Whether a file is the whole of this study; an error if it is something else.
    fn is_whole(&self, py: Python<'_>, path: PathBuf) -> PyResult<bool> {
        let whole = py.detach(|| parts::is_whole(&self.study, &path));
        whole.map_err(|error| raised(&error))
    }

    /// Makes runs and gives their table. `told` is called with the number of those that are over.
    #[pyo3(signature = (first, count, jobs, told=None))]
    fn make(
        &self,
        py: Python<'_>,
        first: usize,
        count: usize,
        jobs: usize,
        told: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<NativeTable> {
        let part = self.checked(first, count)?;
        let failed = |error: &dyn fmt::Display| SweepError::new_err(error.to_string());
        let (study, fault) = self.of_call(py)?;
        let table = RunTable::of(study.points());
        let runs = wait_for::<Result<_, ExperimentError>>(py, told, &fault, |progress| {
            let runs = part.make(&study, self.threads(jobs), progress)?;
            Ok(runs.map(|runs| table.batch(study.points(), &runs)))
        })?;
        let runs = runs.map_err(|error| failed(&error))?;
        let batch = runs.ok_or_else(|| failed(&"the runs were cancelled"))?;
        let batch = batch.map_err(|error| failed(&error))?;
        Ok(NativeTable {
            schema: table.schema(),
            batches: vec![batch],
        })
    }

    /// Makes the first run of the first point and keeps its single events.
    fn record(&self, py: Python<'_>) -> PyResult<NativeRecording> {
        let failed = |error: &dyn fmt::Display| SweepError::new_err(error.to_string());
        let (study, fault) = self.of_call(py)?;
        let made = wait_for(py, None, &fault, |progress| {
            let (run, recording) = study.experiment.run_recorded(progress)?;
            let table = RunTable::of(study.points());
            let run = table.batch(study.points(), &[run]);
            Some((run, RecordingTables::of(&recording)))
        })?;
        let (run, tables) = made.ok_or_else(|| failed(&"the run was cancelled"))?;
        Ok(NativeRecording {
            run: run.map_err(|error| failed(&error))?,
            tables: tables.map_err(|error| failed(&error))?,
        })
    }

    /// Makes runs and writes them to a file, a part of the sweep.
    #[pyo3(signature = (first, count, jobs, build, path, told=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "each is one of Python's keywords"
    )]
    fn write_part(
        &self,
        py: Python<'_>,
        first: usize,
        count: usize,
        jobs: usize,
        build: &str,
        path: PathBuf,
        told: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let part = self.checked(first, count)?;
        let (study, fault) = self.of_call(py)?;
        let written = wait_for(py, told, &fault, |progress| {
            let jobs = self.threads(jobs);
            part.write(&study, build, &path, jobs, progress)
        })?;
        written.map_err(|error| raised(&error))
    }
}

impl NativeStudy {
    /// The study of one call, and the exceptions of its parts.
    fn of_call(&self, py: Python<'_>) -> PyResult<(Cow<'_, Study>, PartFault)> {
        let fault = PartFault::default();
        let Some(own) = &self.own else {
            return Ok((Cow::Borrowed(&self.study), fault));
        };
        let study = own.study(py, &fault).map_err(wrong)?;
        if study.digest != self.study.digest {
            let problem = "a trace that the scenario names was changed while it is in use";
            return Err(SweepError::new_err(problem));
        }
        Ok((Cow::Owned(study), fault))
    }

    /// The threads that make runs, of `jobs` that were asked for: Python has one at a time.
    const fn threads(&self, jobs: usize) -> usize {
        if self.own.is_some() { 1 } else { jobs }
    }

    fn checked(&self, first: usize, count: usize) -> PyResult<SweepPart> {
        let runs = self.study.experiment.run_count();
        let is_within = first.checked_add(count).is_some_and(|end| end <= runs);
        let problem = || PyValueError::new_err(format!("there are {runs} runs, from 0"));
        is_within.then(|| part(first, count)).ok_or_else(problem)
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it maps errors, which are values"
)]
fn wrong(error: SettingsError) -> PyErr {
    let text = error.to_string();
    // A changed value is no flag here.
    let text = text.strip_prefix("--set ").unwrap_or(&text);
    ScenarioError::new_err(text.to_owned())
}

fn part(first: usize, count: usize) -> SweepPart {
    SweepPart {
        runs: first..first.saturating_add(count),
    }
}

fn raised(error: &PartError) -> PyErr {
    // The system's errors have numbers; what is wrong in a file has none.
    let cause = error.system();
    let cause = cause.filter(|cause| cause.raw_os_error().is_some());
    match (error, cause) {
        (PartError::Write { path, .. } | PartError::Read { path, .. }, Some(cause)) => {
            unreadable(path, cause)
        }
        (PartError::Write { .. }, None) => PyOSError::new_err(error.to_string()),
        _ => SweepError::new_err(error.to_string()),
    }
}

/// The keys that each table of a scenario may have, by the path of the table.
#[pyfunction]
pub(crate) fn table_keys() -> BTreeMap<&'static str, Vec<&'static str>> {
    let tables = TABLE_KEYS.iter();
    tables.map(|(path, keys)| (*path, keys.concat())).collect()
}

/// Puts parts together to a file of runs and a file of points. Ctrl-C ends it, and no file is written then.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the binding makes values of Python's"
)]
pub(crate) fn merge(
    py: Python<'_>,
    files: Vec<PathBuf>,
    runs: PathBuf,
    points: PathBuf,
) -> PyResult<()> {
    wait_for(py, None, &PartFault::default(), |progress| {
        parts::merge(&files, &runs, &points, &progress.cancel)
    })?
    .map(drop)
    .map_err(|error| raised(&error))
}

/// The description that a file of runs or of points has of itself, as JSON.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the binding makes values of Python's"
)]
pub(crate) fn description(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let described = py.detach(|| parts::description(&path));
    described.map_err(|error| raised(&error))
}

/// Reads a file of runs or of points.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the binding makes values of Python's"
)]
pub(crate) fn read_table(py: Python<'_>, path: PathBuf) -> PyResult<NativeTable> {
    let (schema, batches) = py
        .detach(|| parts::read(&path))
        .map_err(|error| raised(&error))?;
    Ok(NativeTable { schema, batches })
}
