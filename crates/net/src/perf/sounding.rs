//! Small datagrams beside a test's messages, which nobody reads.
//!
//! Messages that are repaired are sent ever less often while nothing answers. A capture of such a test shows the end of an
//! outage only as well as that. Soundings leave at one pace, whatever is answered.

use super::PERF_SOUNDING_PORT;
use super::outgoing::control_config;
use fulmar_proto::machine::{Deadline, PathId};
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, ConnectError, ConnectionConfig, ConnectionId,
};
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::Mode;

/// The content of a sounding. Its number is in AeroTP's header.
const CONTENT: [u8; 8] = *b"sounding";

/// The soundings of a test.
#[derive(Debug)]
pub(super) struct Sounding {
    connection: ConnectionId,
    every: Duration,
    next: Instant,
}

impl Sounding {
    /// Soundings on `path`, the first of them now.
    ///
    /// # Errors
    /// There is no room for another connection.
    pub(super) fn open(
        now: Instant,
        machine: &mut AerotpEndpoint,
        path: PathId,
        every: Duration,
        base: ConnectionConfig,
    ) -> Result<Self, ConnectError> {
        let config = ConnectionConfig {
            mode: Mode::Datagram,
            ..control_config(base)
        };
        Ok(Self {
            connection: machine.connect(now, path, PERF_SOUNDING_PORT, config)?,
            every,
            next: now,
        })
    }

    /// Sends one if it is due; returns whether it was. Those that were missed are not made up for.
    pub(super) fn work(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> bool {
        if self.next > now {
            return false;
        }
        // Without room this one is missed, too.
        let _ = machine.write_message(now, self.connection, &CONTENT);
        self.next += self.every;
        if self.next <= now {
            self.next = now + self.every;
        }
        true
    }

    /// Sends no more.
    pub(super) fn end(&self, now: Instant, machine: &mut AerotpEndpoint) {
        machine.abort(now, self.connection);
    }

    pub(super) const fn next_deadline(&self) -> Deadline {
        Deadline {
            at: self.next,
            why: "the next sounding",
        }
    }
}
