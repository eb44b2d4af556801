//! What a server makes of what its clients say.

use super::{Flow, Running, Server, ServerPlan};
use crate::entropy;
use crate::perf::client::STRAGGLING_MAX;
use crate::perf::meter::Meter;
use crate::perf::outgoing::{Outgoing, lane_config};
use crate::perf::record::{Direction, Record, Test};
use crate::perf::report::PerfError;
use crate::perf::{Observer, PERF_DATA_PORT};
use fulmar_proto::machine::PathId;
use fulmar_proto::transport::aerotp::{ConnectionId, Endpoint, ModeRules};
use fulmar_proto::transport::parts::LinkReport;
use fulmar_proto::units::Instant;

const FOREIGN_TOKEN: &str = "a number that it was not told";

/// Whether the server can do `test`.
///
/// # Errors
/// Why not, for the user.
fn refusal(test: &Test, plan: &ServerPlan) -> Result<(), String> {
    test.check()?;
    let mode = test.mode()?;
    let lane = lane_config(test, plan.rate_max, plan.connection);
    let payload = lane.payload_bytes().map_err(|error| error.to_string())?;
    let sends_messages = test.direction == Direction::Down && !ModeRules::of(mode).complete;
    if sends_messages && test.message_bytes as usize > payload {
        return Err(format!(
            "mode {mode} sends each message in one packet, and here that has {payload}B; ask with \
             --length {payload}"
        ));
    }
    Ok(())
}

impl<O: Observer> Server<O> {
    pub(super) fn take(
        &mut self,
        now: Instant,
        machine: &mut Endpoint,
        control: ConnectionId,
        mut octets: &[u8],
    ) -> Result<(), PerfError> {
        while let Some(conversation) = self.conversations.get_mut(&control) {
            let Some(record) = conversation.records.next(&mut octets)? else {
                break;
            };
            self.on_record(now, machine, control, record)?;
        }
        Ok(())
    }

    pub(super) fn on_record(
        &mut self,
        now: Instant,
        machine: &mut Endpoint,
        control: ConnectionId,
        record: Record,
    ) -> Result<(), PerfError> {
        let runs_here = self
            .running
            .as_ref()
            .is_some_and(|running| running.control == control);
        if let Some(running) = self.running.as_mut().filter(|_| runs_here) {
            running.heard = now;
        }
        let Some(conversation) = self.conversations.get_mut(&control) else {
            return Ok(());
        };
        match record {
            Record::Hello(test) if conversation.test.is_none() && !conversation.leaving => {
                if let Err(text) = refusal(&test, &self.plan) {
                    Record::Refuse { text }.encode(&mut conversation.outbox);
                    conversation.leaving = true;
                    return Ok(());
                }
                conversation.test = Some(test);
                // Each from the kernel: of numbers that were told, none can be foretold.
                let token = entropy::seed().map_err(|_| PerfError::Ended)?;
                conversation.token = token;
                Record::Accept { token }.encode(&mut conversation.outbox);
            }
            Record::Probe { token, sent } if conversation.test.is_some() => {
                if token != conversation.token {
                    return Err(PerfError::Sequence(FOREIGN_TOKEN));
                }
                let came = now.as_nanos();
                Record::Echo {
                    sent,
                    came,
                    answered: came,
                }
                .encode(&mut conversation.outbox);
            }
            Record::Begin { token, ahead } if !runs_here => {
                let Some(test) = conversation.test.clone() else {
                    return Err(PerfError::Sequence("BEGIN"));
                };
                if token != conversation.token {
                    return Err(PerfError::Sequence(FOREIGN_TOKEN));
                }
                // One that has its figures may have left without our hearing of it.
                let is_over = |running: &Running| matches!(running.flow, Flow::Told);
                if !self.running.as_ref().is_none_or(is_over) {
                    let text = "another test is running; try again when it is over".to_owned();
                    Record::Refuse { text }.encode(&mut conversation.outbox);
                    conversation.leaving = true;
                    return Ok(());
                }
                let path = conversation.path;
                Record::Go.encode(&mut conversation.outbox);
                self.start(now, machine, (control, path), test, ahead)?;
            }
            Record::End(sent) if runs_here => {
                if let Some(Running {
                    flow:
                        Flow::Up {
                            end: end @ None, ..
                        },
                    ..
                }) = &mut self.running
                {
                    *end = Some((sent, now + STRAGGLING_MAX));
                }
            }
            Record::Hello(_) => return Err(PerfError::Sequence("HELLO")),
            Record::Probe { .. } => return Err(PerfError::Sequence("PROBE")),
            Record::Begin { .. } => return Err(PerfError::Sequence("BEGIN")),
            Record::End(_) => return Err(PerfError::Sequence("END")),
            Record::Accept { .. } => return Err(PerfError::Sequence("ACCEPT")),
            Record::Go => return Err(PerfError::Sequence("GO")),
            Record::Refuse { .. } => return Err(PerfError::Sequence("REFUSE")),
            Record::Echo { .. } => return Err(PerfError::Sequence("ECHO")),
            Record::Interval(_) => return Err(PerfError::Sequence("INTERVAL")),
            Record::Result(_) => return Err(PerfError::Sequence("RESULT")),
        }
        Ok(())
    }

    fn start(
        &mut self,
        now: Instant,
        machine: &mut Endpoint,
        (control, path): (ConnectionId, PathId),
        test: Test,
        ahead: i64,
    ) -> Result<(), PerfError> {
        let flow = match test.direction {
            // The client is the sender, and our clock is ahead of its own by that.
            Direction::Up => Flow::Up {
                meter: Box::new(Meter::new(test.clone(), ahead)),
                lane: None,
                lane_over: false,
                end: None,
            },
            Direction::Down => {
                let rate = test.link_rate().min(self.plan.rate_max);
                let report = LinkReport {
                    available: Some(rate),
                    ..LinkReport::default()
                };
                machine.link_report(now, path, report);
                let config = lane_config(&test, rate, self.plan.connection);
                let lane = machine.connect(now, path, PERF_DATA_PORT, config)?;
                let outgoing = Outgoing::new(now, test.clone(), lane);
                Flow::Down { outgoing }
            }
        };
        self.observer.began(&test);
        self.running = Some(Running {
            control,
            test,
            heard: now,
            flow,
        });
        Ok(())
    }
}
