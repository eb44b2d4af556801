//! The end of a transfer: is all there, will more come, and what is the file then?

use super::super::record::{Digest, Record};
use super::super::report::{ReceiveError, TransferVerdict};
use super::{Sink, Transfer};
use fulmar_proto::transport::aerotp::AerotpEndpoint;
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::Mode;

/// The silence after END from which on missing octets are given up.
const QUIET_DATAGRAMS: Duration = Duration::from_secs(1);
/// The same silence where the connection itself tells its end; only a guard.
const QUIET_CONNECTION: Duration = Duration::from_secs(8);
/// The most missing ranges listed in a report.
const RANGES_LISTED: usize = 1_000;

impl Transfer {
    /// After END, decides if all octets are here or nothing more will come; returns whether it decided.
    pub(super) fn settle(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        size: u64,
        digest: Digest,
    ) -> Result<bool, ReceiveError> {
        if self.is_lossy() {
            self.settle_lossy(now, machine, size, digest)
        } else {
            self.settle_complete(now, machine, size, digest)
        }
    }

    fn settle_complete(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        size: u64,
        digest: Digest,
    ) -> Result<bool, ReceiveError> {
        let intact = match &mut self.sink {
            Some(Sink::Part(part)) => part.written() == size && part.digest() == digest,
            Some(Sink::Present(present)) => {
                if present.written() != size || present.digest() != digest {
                    return Err(ReceiveError::Exists(present.path().to_owned()));
                }
                true
            }
            Some(Sink::Pipe {
                pipe,
                hasher,
                written,
            }) => {
                let Some(outcome) = pipe.finish() else {
                    return Ok(false);
                };
                outcome.map_err(ReceiveError::Pipe)?;
                *written == size && *hasher.finalize().as_bytes() == digest
            }
            None => return Ok(false),
        };
        self.delivered = self.written();
        self.finish(now, machine, intact)?;
        Ok(true)
    }

    /// Gives the file its name, or takes it away, and tells the sender.
    fn finish(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        intact: bool,
    ) -> Result<(), ReceiveError> {
        let replace = self.file.as_ref().is_some_and(|file| file.replace);
        match self.sink.take() {
            Some(Sink::Part(part)) if intact => self.path = Some(part.finish(replace)?),
            Some(Sink::Part(mut part)) => part.restart()?,
            Some(Sink::Present(present)) => self.path = Some(present.path().to_owned()),
            Some(Sink::Pipe { .. }) | None => {}
        }
        self.verdict = Some(if intact {
            TransferVerdict::Complete
        } else {
            TransferVerdict::Corrupt
        });
        let done = Record::Done {
            delivered: self.delivered,
            missing: 0,
            intact,
        };
        self.leave(now, machine, &done);
        Ok(())
    }

    fn settle_lossy(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        size: u64,
        digest: Digest,
    ) -> Result<bool, ReceiveError> {
        let covered = self.coverage.covered();
        if covered < size && !self.lane_ended && now < self.heard + self.quiet() {
            return Ok(false);
        }
        self.delivered = covered.min(size);
        self.missing = size.saturating_sub(covered);
        let Some(Sink::Part(part)) = &mut self.sink else {
            return Ok(false);
        };
        if self.missing == 0 {
            let intact = part.rehash(size)? == digest;
            self.finish(now, machine, intact)?;
            return Ok(true);
        }
        for range in self.coverage.missing(size) {
            self.missing_range_count += 1;
            if self.missing_ranges.len() < RANGES_LISTED {
                self.missing_ranges.push(range);
            }
        }
        if let Some(Sink::Part(part)) = self.sink.take() {
            self.path = Some(part.keep_incomplete(size)?);
        }
        self.verdict = Some(TransferVerdict::Incomplete);
        let done = Record::Done {
            delivered: self.delivered,
            missing: self.missing,
            intact: false,
        };
        self.leave(now, machine, &done);
        Ok(true)
    }

    pub(super) fn quiet(&self) -> Duration {
        let is_datagram = self
            .file
            .as_ref()
            .is_some_and(|file| file.mode == Mode::Datagram);
        if is_datagram {
            QUIET_DATAGRAMS
        } else {
            QUIET_CONNECTION
        }
    }
}
