//! Samples on their way into a trace: each is checked, and those outside the wanted part are left
//! out.

use crate::error::TraceError;
use core::ops::ControlFlow;
use core::time::Duration;
use fulmar_channel::fading::{PowerTrace, Recorded, RecordingPart};
use fulmar_proto::units::{OpticalPower, format_duration};

/// Options for reading a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerOptions {
    /// The part of it to read, if not all.
    pub part: Option<RecordingPart>,
    /// The time from one sample to the next, in place of the file's own.
    pub spacing: Option<Duration>,
}

impl From<&Recorded> for PowerOptions {
    fn from(recorded: &Recorded) -> Self {
        Self {
            part: recorded.part,
            spacing: recorded.spacing,
        }
    }
}

/// A trace that grows.
pub(super) struct Collector<'a> {
    name: &'a str,
    pub(super) options: PowerOptions,
    trace: PowerTrace,
}

impl<'a> Collector<'a> {
    pub(super) fn new(name: &'a str, options: PowerOptions) -> Self {
        Self {
            name,
            options,
            trace: PowerTrace::new(options.spacing.unwrap_or_default()),
        }
    }

    /// Takes a sample `at` so many seconds from the recording's start. Breaks when the wanted part is
    /// complete.
    ///
    /// # Errors
    /// The power is wrong, or there are too many samples.
    pub(super) fn take(&mut self, at: f64, watts: f64) -> Result<ControlFlow<()>, String> {
        let Some(power) = OpticalPower::from_watts(watts) else {
            return Err(if watts < 0.0 {
                format!(
                    "{watts} is negative; subtract the detector's dark level, and write 0 for darkness"
                )
            } else {
                format!("{watts} is no power; cut the file there, or write what was received")
            });
        };
        if let Some(RecordingPart { from, length }) = self.options.part {
            let since = at - from.as_secs_f64();
            // Times in files are rounded, so a nanosecond does not matter.
            if since < -1e-9 {
                return Ok(ControlFlow::Continue(()));
            }
            if since >= length.as_secs_f64() - 1e-9 {
                return Ok(ControlFlow::Break(()));
            }
        }
        match self.trace.push(power) {
            Ok(()) => Ok(ControlFlow::Continue(())),
            Err(full) => Err(full.to_string()),
        }
    }

    /// The trace with samples `spacing` apart, of a recording that is `length` long or was left at the
    /// end of the wanted part.
    pub(super) fn finish(
        self,
        spacing: Duration,
        length: Option<f64>,
    ) -> Result<PowerTrace, TraceError> {
        let whole = |problem: String| {
            let name = self.name.to_owned();
            Err(TraceError::Whole { name, problem })
        };
        if let (Some(RecordingPart { from, length: part }), Some(length)) =
            (self.options.part, length)
            && (from + part).as_secs_f64() > length + spacing.as_secs_f64() / 2.0
        {
            let (from, part) = (format_duration(from), format_duration(part));
            return whole(format!(
                "it is {length} s long and ends before the part {from}+{part} does; take a part that it has"
            ));
        }
        if self.trace.is_empty() {
            return whole("there is no sample in it; a recording has one in each row".to_owned());
        }
        Ok(self.trace.with_spacing(spacing))
    }
}
