//! A server's reactions to the words of its clients.

use super::{PerfServer, Running, ServerPlan};
use crate::entropy;
use crate::perf::Observer;
use crate::perf::flows::Flows;
use crate::perf::incoming::Incoming;
use crate::perf::outgoing::Outgoing;
use crate::perf::record::{BadPerfRecord, Record};
use crate::perf::report::PerfError;
use crate::perf::streams::lane_config;
use crate::perf::test::{Test, TestDirection};
use fulmar_proto::machine::PathId;
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, ConnectError, ConnectionId, ModeRules, RateSource,
};
use fulmar_proto::units::Instant;
use fulmar_settings::{FieldKeys, with_keys};

/// The words of a client's user for the fields of a connection.
const OPTIONS: &FieldKeys = &[
    ("tpdu_bytes_max", "the server's --mtu"),
    ("fec_words", "--fec-words"),
];
const FOREIGN_TOKEN: &str = "a number that it was not told";

/// Whether the server can do `test`.
///
/// # Errors
/// The reason why not, for the user.
fn refusal(test: &Test, plan: &ServerPlan) -> Result<(), String> {
    test.check()?;
    let mode = test.mode()?;
    let lane = lane_config(test, Some(plan.rate_max), plan.connection);
    let payload = lane.payload_bytes();
    let payload = payload.map_err(|error| with_keys(OPTIONS, &error.to_string()))?;
    let sends_messages = test.direction == TestDirection::Down && !ModeRules::of(mode).complete;
    if sends_messages && test.message_bytes as usize > payload {
        return Err(format!(
            "mode {mode} sends each message in one packet, and here that has {payload}B; ask with \
             --length {payload}"
        ));
    }
    Ok(())
}

impl<O: Observer> PerfServer<O> {
    pub(super) fn take(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        control: ConnectionId,
        mut octets: &[u8],
    ) -> Result<(), PerfError> {
        while let Some(conversation) = self.conversations.get_mut(&control) {
            match conversation.records.next(&mut octets) {
                Ok(Some(record)) => self.on_record(now, machine, control, record)?,
                Ok(None) => break,
                // Older and newer clients understand a refusal.
                Err(BadPerfRecord::Version(theirs)) if conversation.is_new() => {
                    conversation.refuse(BadPerfRecord::Version(theirs).to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    pub(super) fn on_record(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
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
        let name = record.name();
        match record {
            Record::Hello(test) if conversation.is_new() => {
                if let Err(text) = refusal(&test, &self.plan) {
                    conversation.refuse(text);
                    return Ok(());
                }
                conversation.test = Some(test);
                // Each comes from the kernel: earlier numbers do not help to guess it.
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
                // A client that has its figures may have left without our hearing of it.
                let is_over = |running: &Running| running.flows.is_empty();
                if !self.running.as_ref().is_none_or(is_over) {
                    let text = "another test is running; try again when it is over".to_owned();
                    conversation.refuse(text);
                    return Ok(());
                }
                let path = conversation.path;
                Record::Go.encode(&mut conversation.outbox);
                self.start(now, machine, (control, path), &test, ahead)?;
            }
            Record::End { stream, sent } if runs_here => {
                let running = self.running.as_mut();
                let incoming = running.and_then(|running| running.flows.incoming.as_mut());
                let incoming = incoming.ok_or(PerfError::Sequence(name))?;
                incoming.on_end(now, stream, sent)?;
            }
            _ => return Err(PerfError::Sequence(name)),
        }
        Ok(())
    }

    pub(super) fn start(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        (control, path): (ConnectionId, PathId),
        test: &Test,
        ahead: i64,
    ) -> Result<(), PerfError> {
        let mut flows = Flows::default();
        match test.direction {
            // The client is the sender, and our clock is ahead of its clock by that.
            TestDirection::Up => {
                let base = self.plan.connection;
                let incoming = Incoming::open(machine, test.clone(), base, ahead);
                flows.incoming = Some(incoming.map_err(ConnectError::from)?);
            }
            TestDirection::Down => {
                let rate = test.link_rate().map(|rate| rate.min(self.plan.rate_max));
                let sharing = self.plan.sharing;
                let source = match rate {
                    Some(rate) => RateSource::of(Some(rate), sharing),
                    None => RateSource::Found {
                        bound: Some(self.plan.rate_max),
                        first: None,
                        sharing: sharing.unwrap_or_default(),
                    },
                };
                self.forget_rate(now, machine);
                machine.set_rate_source(now, path, source);
                self.rated = Some(path);
                let (what, base) = ((test.clone(), rate), self.plan.connection);
                flows.outgoing = Some(Outgoing::open(now, machine, path, what, base)?);
            }
        }
        self.observer.began(test);
        self.running = Some(Running {
            control,
            heard: now,
            flows,
        });
        Ok(())
    }
}
