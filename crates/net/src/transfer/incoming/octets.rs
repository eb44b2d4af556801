//! The file's octets on their way to the disk or the pipe: in order, or where they belong.

use super::super::report::ReceiveError;
use super::{Phase, Sink, Transfer};
use fulmar_proto::units::Instant;
use std::ops::Range;

impl Transfer {
    /// Takes file octets and returns the range of those that are new.
    pub(in super::super) fn on_data(
        &mut self,
        now: Instant,
        offset: u64,
        octets: &[u8],
    ) -> Result<Option<Range<u64>>, ReceiveError> {
        self.heard = now;
        if self.is_over() {
            return Ok(None);
        }
        if !matches!(self.phase, Phase::Receiving) || self.is_lossy() {
            return Err(ReceiveError::Sequence("sends data out of turn"));
        }
        let written = self.written();
        let known = written.checked_sub(offset);
        let Some(known) = known.and_then(|known| usize::try_from(known).ok()) else {
            return Err(ReceiveError::Sequence("leaves octets out"));
        };
        // These octets were sent before our offer was known, or again.
        let Some(fresh) = octets.get(known..).filter(|fresh| !fresh.is_empty()) else {
            return Ok(None);
        };
        match &mut self.sink {
            Some(Sink::Part(part)) => part.append(fresh)?,
            Some(Sink::Pipe {
                pipe,
                hasher,
                written,
            }) => {
                if let Some(error) = pipe.take_error() {
                    return Err(ReceiveError::Pipe(error));
                }
                hasher.update(fresh);
                pipe.push(fresh);
                *written += fresh.len() as u64;
            }
            Some(Sink::Present(present)) => {
                return Err(ReceiveError::Exists(present.path().to_owned()));
            }
            None => return Ok(None),
        }
        Ok(Some(written..written + fresh.len() as u64))
    }

    /// The octets that are here.
    pub(super) fn written(&self) -> u64 {
        match &self.sink {
            Some(Sink::Part(_)) if self.is_lossy() => self.coverage.covered(),
            Some(Sink::Part(part)) => part.written(),
            Some(Sink::Present(present)) => present.written(),
            Some(Sink::Pipe { written, .. }) => *written,
            None => 0,
        }
    }

    /// Takes file octets in any order and returns their range, if any of them is new.
    pub(in super::super) fn on_message(
        &mut self,
        now: Instant,
        offset: u64,
        octets: &[u8],
    ) -> Result<Option<Range<u64>>, ReceiveError> {
        self.heard = now;
        let end = offset.checked_add(octets.len() as u64);
        let within = |end: &u64| {
            let size = self.file.as_ref().and_then(|file| file.size);
            size.is_none_or(|size| *end <= size)
        };
        // An octet beyond the announced size would make a hole in the disk, not in the file.
        let (Some(end), true) = (end.filter(within), self.is_lossy()) else {
            return Ok(None);
        };
        let Some(Sink::Part(part)) = &mut self.sink else {
            return Ok(None);
        };
        if !matches!(self.phase, Phase::Receiving | Phase::Settling { .. }) {
            return Ok(None);
        }
        match self.coverage.add(offset..end) {
            None | Some(0) => Ok(None),
            Some(_) => {
                part.place(offset, octets)?;
                Ok(Some(offset..end))
            }
        }
    }
}
