//! Recordings of runs for Python, and recordings of any link as a hop of a scenario.

use crate::links::unreadable;
use crate::part::PartFault;
use crate::table::NativeTable;
use crate::waiting::wait_for;
use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use core::time::Duration;
use fulmar_lab::replay::{self, PerfKeys};
use fulmar_lab::{ObservedPacket, RecordedLink, RecordingTables, UnreadRecording};
use fulmar_proto::units::Bitrate;
use fulmar_sim::own::{ByteCount, Instant};
use fulmar_sim::scenario::AppDirection;
use fulmar_trace::TraceError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};

/// The single events of a run as tables.
#[pyclass(frozen, module = "fulmar_lab._native")]
#[derive(Debug)]
pub(crate) struct NativeRecording {
    pub(crate) run: RecordBatch,
    pub(crate) tables: RecordingTables,
}

#[pymethods]
impl NativeRecording {
    /// The run's measures, a table of one row.
    #[getter]
    fn run(&self) -> NativeTable {
        table(&self.run)
    }

    /// A row for each packet on a measured hop.
    #[getter]
    fn packets(&self) -> NativeTable {
        table(&self.tables.packets)
    }

    /// A row for each piece that was delivered.
    #[getter]
    fn pieces(&self) -> NativeTable {
        table(&self.tables.pieces)
    }

    /// A row for each decision of a sender.
    #[getter]
    fn decisions(&self) -> NativeTable {
        table(&self.tables.decisions)
    }

    /// A row for each interval on each direction of each hop, with the rates in it.
    fn rates(&self, py: Python<'_>, every_s: f64) -> PyResult<NativeTable> {
        let wrong = || PyValueError::new_err(format!("every={every_s}: give seconds above 0"));
        let every = Duration::try_from_secs_f64(every_s).map_err(|_| wrong())?;
        if every.is_zero() {
            return Err(wrong());
        }
        let rates = py.detach(|| self.tables.rates(every));
        let problem = |error: ArrowError| match error {
            ArrowError::InvalidArgumentError(problem) => problem,
            other => other.to_string(),
        };
        let rates = rates.map_err(|error| PyValueError::new_err(problem(error)))?;
        Ok(table(&rates))
    }

    /// A recorded hop as tables of a scenario in TOML.
    fn hop_tables(&self, py: Python<'_>, hop: usize) -> PyResult<String> {
        py.detach(|| {
            let [forward, reverse] = [AppDirection::Forward, AppDirection::Reverse]
                .map(|way| replay::observed(&self.tables, hop, way));
            replay::hop_tables(&forward, &reverse, Some(Instant::START))
        })
        .map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

fn table(batch: &RecordBatch) -> NativeTable {
    NativeTable {
        schema: batch.schema(),
        batches: vec![batch.clone()],
    }
}

/// A packet as Python has it: seconds, octets, seconds.
type Packet = (f64, u64, Option<f64>);

fn told(packets: &[ObservedPacket], first: Instant) -> Vec<Packet> {
    let seconds = |at: Instant| at.saturating_since(first).as_secs_f64();
    let row = |packet: &ObservedPacket| {
        (
            seconds(packet.sent_at),
            packet.len.0,
            packet.arrived_at.map(seconds),
        )
    };
    packets.iter().map(row).collect()
}

/// The packets of captures at both ends of a link: there, back, remarks, and the seconds by which the clocks were apart.
type NativeLink = (Vec<Packet>, Vec<Packet>, Vec<String>, f64);

/// Reads a capture that shows both ends of a link, or one of each end. Ctrl-C gives it up.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the binding makes values of Python's"
)]
pub(crate) fn recorded_link(
    py: Python<'_>,
    path: PathBuf,
    other: Option<PathBuf>,
    hop: usize,
) -> PyResult<NativeLink> {
    let read = wait_for(py, None, &PartFault::default(), |progress| match &other {
        Some(other) => RecordedLink::between(&path, other, &progress.cancel),
        None => RecordedLink::open(&path, hop, &progress.cancel),
    })?;
    let link = read.map_err(|error| match &error {
        UnreadRecording::Unreadable { name, error }
        | UnreadRecording::Content(TraceError::Io {
            name,
            source: error,
        }) => unreadable(Path::new(name), error),
        UnreadRecording::Kind { .. } | UnreadRecording::Content(_) => {
            PyValueError::new_err(error.to_string())
        }
    })?;
    // Seconds since 1970 would lose a part of a microsecond.
    let packets = link.there.iter().chain(&link.back);
    let first = packets.map(|packet| packet.sent_at).min();
    let first = first.unwrap_or(Instant::START);
    Ok((
        told(&link.there, first),
        told(&link.back, first),
        link.remarks,
        link.clocks_apart.as_secs_f64(),
    ))
}

fn at(seconds: f64) -> PyResult<Instant> {
    let problem = || PyValueError::new_err(format!("a time of {seconds} s; give 0 or more"));
    let span = Duration::try_from_secs_f64(seconds).map_err(|_| problem())?;
    Ok(Instant::START + span)
}

fn observed(packets: Vec<Packet>) -> PyResult<Vec<ObservedPacket>> {
    let observed = packets.into_iter().map(|(sent, octets, arrived)| {
        Ok(ObservedPacket {
            sent_at: at(sent)?,
            len: ByteCount(octets),
            arrived_at: arrived.map(at).transpose()?,
        })
    });
    let mut observed = observed.collect::<PyResult<Vec<_>>>()?;
    observed.sort_by_key(|packet| packet.sent_at);
    Ok(observed)
}

/// A link of which these packets are known, there and back, as tables of a scenario in TOML. It begins at `start`, or
/// with the first packet.
#[pyfunction]
pub(crate) fn hop_tables(
    py: Python<'_>,
    there: Vec<Packet>,
    back: Vec<Packet>,
    start: Option<f64>,
) -> PyResult<String> {
    let (there, back) = (observed(there)?, observed(back)?);
    let start = start.map(at).transpose()?;
    py.detach(|| replay::hop_tables(&there, &back, start))
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The keys of flows and of hops in TOML with which flows send as `fulmar perf` does, told this rate or finding theirs.
#[pyfunction]
pub(crate) fn perf_keys(rate: Option<&str>) -> PyResult<(String, String)> {
    let rate = rate.map(str::parse::<Bitrate>).transpose();
    let rate = rate.map_err(|error| PyValueError::new_err(format!("as_perf: {error}")))?;
    let PerfKeys { flow, hop } = PerfKeys::told(rate);
    Ok((flow, hop))
}
