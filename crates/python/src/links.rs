//! What a link can carry, and the model behind a recording, for Python: as the records of `fulmar plan --json` and
//! `fulmar fit --json`, in text.

use crate::part::PartFault;
use crate::waiting::wait_for;
use fulmar_lab::fitting::{FittedRecording, FittingOptions, read_losses};
use fulmar_lab::plan::{LinkErrors, PlanWish, PlannedLink};
use fulmar_lab::{StoppableReader, UnreadRecording};
use fulmar_proto::units::{
    BitErrorRate, Bitrate, ByteCount, Distance, OpticalPower, PacketErrorRate, Probability,
    parse_duration,
};
use fulmar_sim::theory::round_trip_time;
use fulmar_trace::{CaptureOptions, CapturedProtocol, SequenceOptions, TraceError};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The answer to `fulmar plan`, as its record of JSON. `wishes` has the flags of the command without their dashes, as
/// written.
#[pyfunction]
pub(crate) fn plan(py: Python<'_>, wishes: BTreeMap<String, String>) -> PyResult<String> {
    let wish = Wishes(wishes).link()?;
    let question = wish.checked().map_err(wrong)?;
    let plan = wait_for(py, None, &PartFault::default(), |_| {
        PlannedLink::of(&question)
    })?
    .map_err(wrong)?;
    serde_json::to_string(&plan).map_err(wrong)
}

/// The flags of `fulmar plan`, as written.
struct Wishes(BTreeMap<String, String>);

impl Wishes {
    fn link(&self) -> PyResult<PlanWish> {
        let distance = self.get("distance", str::parse::<Distance>)?;
        let (rtt, processing) = (
            self.get("rtt", parse_duration)?,
            self.get("processing", parse_duration)?,
        );
        let round_trip = match (distance, rtt) {
            (Some(distance), None) => round_trip_time(distance, processing.unwrap_or_default()),
            (None, Some(rtt)) => rtt,
            _ => return Err(wrong("give either distance or rtt")),
        };
        let errors = [
            self.parsed::<BitErrorRate>("ber")?.map(LinkErrors::Bits),
            self.parsed::<OpticalPower>("power")?.map(LinkErrors::Power),
            self.parsed::<PacketErrorRate>("loss")?
                .map(LinkErrors::Packets),
        ];
        let mut errors = errors.into_iter().flatten();
        let (Some(errors), None) = (errors.next(), errors.next()) else {
            return Err(wrong("give one of ber, power and loss"));
        };
        let needed = |name: &str| wrong(format!("{name} is missing"));
        Ok(PlanWish {
            rate: self
                .parsed::<Bitrate>("rate")?
                .ok_or_else(|| needed("rate"))?,
            round_trip,
            errors,
            header: self
                .parsed::<ByteCount>("header")?
                .ok_or_else(|| needed("header"))?,
            selective_header: self.parsed("selective_header")?,
            data: self.parsed("data")?,
            longest: self.parsed("longest")?,
            acknowledgement: self
                .parsed::<ByteCount>("ack")?
                .ok_or_else(|| needed("ack"))?,
            back: self.parsed("back_ber")?.unwrap_or_default(),
            confidence: self
                .parsed::<Probability>("confidence")?
                .ok_or_else(|| needed("confidence"))?,
        })
    }

    fn parsed<T: FromStr<Err: Display>>(&self, name: &str) -> PyResult<Option<T>> {
        self.get(name, str::parse)
    }

    fn get<T, E: Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> PyResult<Option<T>> {
        let written = self.0.get(name);
        let parsed = written.map(|written| {
            parse(written).map_err(|error| wrong(format!("{name} {written:?}: {error}")))
        });
        parsed.transpose()
    }
}

/// The model behind a recording, as the record of `fulmar fit --json`, and the place where a capture was cut off. Of a
/// capture, port, protocol (AeroTP, or RTP) and source say which flow is meant.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the binding makes values of Python's"
)]
pub(crate) fn fit(
    py: Python<'_>,
    path: PathBuf,
    captured: Option<(u16, bool, Option<u32>)>,
    wrap: Option<u32>,
    window: u32,
) -> PyResult<(String, Option<String>)> {
    let name = path.display().to_string();
    if window == 0 || window > SequenceOptions::WINDOW_MAX {
        let most = SequenceOptions::WINDOW_MAX;
        return Err(wrong(format!("window {window}: 1 to {most}")));
    }
    if let Some(bits) = wrap.filter(|bits| !(4..=63).contains(bits)) {
        return Err(wrong(format!("wrap {bits}: 4 to 63 bits")));
    }
    let file = File::open(&path).map_err(|error| unreadable(&path, &error))?;
    let options = FittingOptions {
        capture: captured.map(|(port, is_aerotp, source)| CaptureOptions {
            port,
            protocol: if is_aerotp {
                CapturedProtocol::Aerotp
            } else {
                CapturedProtocol::Rtp
            },
            source,
            window,
        }),
        sequence: SequenceOptions { bits: wrap, window },
        port_option: "port=",
    };
    wait_for(py, None, &PartFault::default(), |progress| {
        let file = StoppableReader::new(file, &progress.cancel);
        let recorded = read_losses(&name, file, &options).map_err(|error| match &error {
            UnreadRecording::Unreadable { error, .. }
            | UnreadRecording::Content(TraceError::Io { source: error, .. }) => {
                unreadable(&path, error)
            }
            _ => wrong(error),
        })?;
        let record = serde_json::to_string(&FittedRecording::of(&name, &recorded.losses));
        let cut = recorded.cut.map(|cut| cut.to_string());
        Ok((record.map_err(wrong)?, cut))
    })?
}

/// The error of a file that the system does not give or take, of the class of Python's that its number has.
pub(crate) fn unreadable(path: &Path, error: &io::Error) -> PyErr {
    PyOSError::new_err((error.raw_os_error(), error.to_string(), path.to_owned()))
}

fn wrong(reason: impl Display) -> PyErr {
    PyValueError::new_err(reason.to_string())
}
