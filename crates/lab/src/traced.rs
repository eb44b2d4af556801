//! Event traces as datagrams that passed an end of a link: what a sender notes of each data TPDU that left, and a receiver of each
//! that it took.
//!
//! A trace has no octets, so a TPDU is known again by its number, which begins anew with each connection. The connection that
//! sent most is read, and the one that took most. A trace says neither when answers arrived nor what became of repair symbols.

use crate::unread::UnreadRecording;
use core::time::Duration;
use fulmar_proto::units::ByteCount;
use fulmar_proto::wire::network::NETWORK_HEADER_BYTES;
use fulmar_sim::scenario::SEAL_BYTES;
use fulmar_trace::{CapturePoint, CapturedPassages, PassedDatagram, TraceError};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::BufRead;

/// Octets of a TPDU's header, of the form that it has between gateways.
const TPDU_HEADER_BYTES: usize = 8;
/// The names of the points where a trace of the simulator shows both ends, those of the emulator's captures.
const BOTH_ENDS: [&str; 2] = ["up/in", "up/out"];

/// An event, as far as it is read.
#[derive(Deserialize)]
struct EventLine<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(default)]
    time_s: f64,
    #[serde(default)]
    start_unix_s: f64,
    #[serde(borrow)]
    peer: Option<Cow<'a, str>>,
    #[serde(borrow)]
    class: Option<Cow<'a, str>>,
    flow: Option<u64>,
    connection: Option<u64>,
    seq: Option<u64>,
    payload_bytes: Option<u64>,
    events: Option<u64>,
}

/// A connection as a trace tells it: the peer, the class and its number, or the flow of the simulator.
type Connection = (Option<String>, Option<String>, Option<u64>);

/// The TPDUs of a trace.
#[derive(Default)]
struct Noted {
    sent: BTreeMap<Connection, Vec<PassedDatagram>>,
    taken: BTreeMap<Connection, Vec<PassedDatagram>>,
    missed: u64,
}

/// Whether a file that begins so is an event trace.
pub(crate) fn is_trace(head: &[u8]) -> bool {
    head.first() == Some(&b'{')
}

/// Reads the TPDUs of a trace, with remarks for the user.
pub(crate) fn read_traced(
    name: &str,
    source: impl BufRead,
) -> Result<(CapturedPassages, Vec<String>), UnreadRecording> {
    let mut noted = Noted::default();
    let mut is_simulated = false;
    let mut start = Duration::ZERO;
    for (number, line) in source.lines().enumerate() {
        let line = line.map_err(|source| TraceError::Io {
            name: name.to_owned(),
            source,
        })?;
        let wrong = |problem: String| TraceError::Line {
            name: name.to_owned(),
            line: number as u64 + 1,
            field: "event".to_owned(),
            problem,
        };
        let event: EventLine<'_> = match serde_json::from_str(&line) {
            Ok(event) => event,
            // A crash cuts the last line off; the trace ends there.
            Err(error) if error.is_eof() && number > 0 => break,
            Err(error) => {
                return Err(wrong(format!("is no line of an event trace ({error})")).into());
            }
        };
        if number == 0 {
            is_simulated = event.event == "run";
            start = time(event.start_unix_s).map_err(&wrong)?;
            if !is_simulated && event.event != "started" {
                return Err(wrong(format!("`{}` begins no event trace", event.event)).into());
            }
        }
        let at = time(event.time_s).map_err(&wrong)?;
        noted.take(&event, start.saturating_add(at), is_simulated);
    }
    noted.passages(name, is_simulated)
}

fn time(seconds: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("a time of {seconds} s"))
}

impl Noted {
    fn take(&mut self, event: &EventLine<'_>, at: Duration, is_simulated: bool) {
        self.missed += event
            .events
            .filter(|_| event.event == "missed")
            .unwrap_or(0);
        let Some(seq) = event.seq else { return };
        let ends = match &*event.event {
            "sent" => &mut self.sent,
            "accepted" => &mut self.taken,
            _ => return,
        };
        let owned = |text: &Option<Cow<'_, str>>| text.as_deref().map(str::to_owned);
        // The simulator's two ends have a flow in common.
        let number = if is_simulated {
            event.flow
        } else {
            event.connection
        };
        let connection = (owned(&event.peer), owned(&event.class), number);
        let headers = NETWORK_HEADER_BYTES + SEAL_BYTES + TPDU_HEADER_BYTES;
        let len = event
            .payload_bytes
            .unwrap_or(0)
            .saturating_add(headers as u64);
        ends.entry(connection).or_default().push(PassedDatagram {
            at,
            digest: seq,
            len: ByteCount(len),
        });
    }

    fn passages(
        self,
        name: &str,
        is_simulated: bool,
    ) -> Result<(CapturedPassages, Vec<String>), UnreadRecording> {
        let others = self.sent.len().max(self.taken.len()).saturating_sub(1);
        let busiest = |of: &BTreeMap<Connection, Vec<PassedDatagram>>| {
            let most = of.iter().max_by_key(|(_, noted)| noted.len());
            most.map(|(connection, noted)| (connection.clone(), noted.clone()))
        };
        let sent = busiest(&self.sent);
        let taken = match &sent {
            Some((flow, _)) if is_simulated => {
                let taken = self.taken.get(flow);
                taken.map(|taken| (flow.clone(), taken.clone()))
            }
            _ => busiest(&self.taken),
        };
        let mut read = CapturedPassages::default();
        for (passages, leaves) in [(sent, true), (taken, false)] {
            let interface = BOTH_ENDS[usize::from(!leaves)];
            let point = CapturePoint {
                interface: is_simulated.then(|| interface.to_owned()),
                leaves: Some(leaves),
                sockets: None,
            };
            if let Some((_, passages)) = passages {
                read.points.insert(point, passages);
            }
        }
        if read.points.is_empty() {
            return Err(UnreadRecording::Kind {
                name: name.to_owned(),
                problem: "has no TPDU that was sent or taken; trace both ends while data flow"
                    .to_owned(),
            });
        }
        let mut remarks = Vec::new();
        if others > 0 {
            remarks.push(format!(
                "{name}: {others} other connections are left out: the busiest in each direction is taken"
            ));
        }
        if self.missed > 0 {
            remarks.push(format!(
                "{name}: {} events are missing, and what they say",
                self.missed
            ));
        }
        Ok((read, remarks))
    }
}
