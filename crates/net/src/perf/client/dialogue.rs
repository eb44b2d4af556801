//! A client's reactions to the words of its server.

use super::{Client, PROBE_EVERY, Phase};
use crate::perf::Observer;
use crate::perf::clocks::{ClockOffset, EXCHANGES};
use crate::perf::incoming::Incoming;
use crate::perf::outgoing::Outgoing;
use crate::perf::record::Record;
use crate::perf::report::PerfError;
use crate::perf::sounding::Sounding;
use crate::perf::test::{RATE_ABOVE_ZERO, TestDirection};
use fulmar_proto::transport::aerotp::{AerotpEndpoint, ConnectError};
use fulmar_proto::units::Instant;

impl<O: Observer> Client<O> {
    pub(super) fn listen(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
    ) -> Result<bool, PerfError> {
        let incoming = self.flows.incoming.as_mut();
        let mut busy = incoming.is_some_and(|incoming| incoming.read(now, machine));
        let Some(control) = self.control else {
            return Ok(busy);
        };
        while let Some(chunk) = machine.read(now, control) {
            busy = true;
            self.heard = true;
            self.heard_at = now;
            let mut octets = chunk.octets.as_slice();
            while let Some(record) = self.records.next(&mut octets)? {
                self.on_record(now, machine, record)?;
            }
            machine.recycle(control, chunk.octets);
        }
        Ok(busy)
    }

    pub(super) fn on_record(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        record: Record,
    ) -> Result<(), PerfError> {
        let name = record.name();
        let is_running = matches!(self.phase, Phase::Running { .. });
        match record {
            Record::Accept { token } if matches!(self.phase, Phase::Asking) => {
                self.token = token;
                self.phase = Phase::Probing;
                self.probe(now);
            }
            Record::Refuse { text } => {
                if text == RATE_ABOVE_ZERO && self.plan.test.link_rate().is_none() {
                    return Err(PerfError::NeedsRate);
                }
                // The text goes to a terminal.
                return Err(PerfError::Refused(text.replace(char::is_control, " ")));
            }
            Record::Echo {
                sent,
                came,
                answered,
            } if matches!(self.phase, Phase::Probing) => {
                let at = Instant::from_nanos;
                let offset =
                    ClockOffset::add(self.clocks, (at(sent), now), (at(came), at(answered)));
                self.clocks = Some(offset);
                if offset.exchanges < EXCHANGES {
                    self.probe(now);
                } else {
                    self.ask_to_begin(now, machine, offset.ahead)?;
                }
            }
            // Answers to later probes show nothing new: those only tell that we are there.
            Record::Echo { .. } => {}
            Record::Go if is_running && self.flows.outgoing.is_none() => self.go(now, machine)?,
            Record::Interval(interval) if self.flows.outgoing.is_some() => {
                let (told, streams) = (interval.messages.len(), self.plan.test.streams);
                if told != usize::from(streams) {
                    return Err(PerfError::Streams { told, streams });
                }
                if self.plan.test.interval.is_some() {
                    self.on_interval(interval);
                }
            }
            Record::End { stream, sent } if self.flows.incoming.is_some() => {
                if let Some(incoming) = &mut self.flows.incoming {
                    incoming.on_end(now, stream, sent)?;
                }
            }
            Record::Result { stream, measured } if self.sent.is_some() => {
                match stream {
                    Some(stream) => self.results.put(stream, measured, name)?,
                    None if self.result.is_none() => self.result = Some(measured),
                    None => return Err(PerfError::Sequence(name)),
                }
                if matches!(self.phase, Phase::Settling { .. }) {
                    self.settle(now);
                }
            }
            // The record left before the server heard that we have finished.
            Record::End { .. } if matches!(self.phase, Phase::Leaving { .. }) => {}
            _ => return Err(PerfError::Sequence(name)),
        }
        Ok(())
    }

    pub(super) fn probe(&mut self, now: Instant) {
        self.say(&Record::Probe {
            token: self.token,
            sent: now.as_nanos(),
        });
    }

    fn ask_to_begin(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        ahead: i64,
    ) -> Result<(), PerfError> {
        let test = self.plan.test.clone();
        if test.direction == TestDirection::Down {
            // The server is the sender, and its clock is ahead of ours by that.
            let ahead = ahead.saturating_neg();
            let incoming = Incoming::open(machine, test, self.plan.connection, ahead);
            self.flows.incoming = Some(incoming.map_err(ConnectError::from)?);
        }
        let token = self.token;
        self.say(&Record::Begin { token, ahead });
        self.phase = Phase::Running {
            next_probe: now + PROBE_EVERY,
        };
        Ok(())
    }

    /// The server expects the messages.
    fn go(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> Result<(), PerfError> {
        let test = self.plan.test.clone();
        if test.direction == TestDirection::Up && !self.stopped {
            let link = (test.link_rate(), self.plan.connection);
            let outgoing = Outgoing::open(now, machine, self.path, (test, link.0), link.1)?;
            self.flows.outgoing = Some(outgoing);
            self.sounding = match self.plan.sounding_every {
                Some(every) => {
                    let connection = self.plan.connection;
                    Some(Sounding::open(now, machine, self.path, every, connection)?)
                }
                None => None,
            };
        }
        Ok(())
    }
}
