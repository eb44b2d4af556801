//! The sender's last word when it ends before its file does.
//!
//! The connection is reset, so that nothing of the file takes up the link any more. A reset would be enough,
//! but nobody confirms it, and on a lossy link it may be lost. So the sender says the same once more, in a record
//! on a reliable connection of its own.

use super::super::FILE_PORT;
use super::super::record::Record;
use super::super::report::SendError;
use super::{Lane, Phase, SendObserver, Sender};
use fulmar_proto::machine::Priority;
use fulmar_proto::transport::aerotp::{AerotpEndpoint, ConnectionConfig, ConnectionId};
use fulmar_proto::transport::parts::RtoLimits;
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::Mode;

/// The round trips that the receiver may take to confirm our end: some of the records, and some of the
/// confirmations, are lost.
const FAREWELL_RTTS: u32 = 8;
/// The shortest and the longest time for them. The shortest has room for seven attempts on a short link.
/// A user who cannot wait sends the signal again.
const FAREWELL_MIN: Duration = Duration::from_secs(2);
const FAREWELL_MAX: Duration = Duration::from_secs(6);
/// The time if nobody has answered yet: perhaps nobody is there.
const FAREWELL_UNHEARD: Duration = Duration::from_secs(1);
/// The first timeout on the new connection, in round trips of the old one.
const FIRST_TIMEOUT_RTTS: u32 = 2;
/// The first timeout without a measured round trip.
const FIRST_TIMEOUT: Duration = Duration::from_millis(200);

/// The connection with the last word, and the reason for it.
#[derive(Debug)]
pub(super) struct Farewell {
    pub(super) connection: ConnectionId,
    pub(super) until: Instant,
    why: Option<SendError>,
}

impl<O: SendObserver> Sender<O> {
    /// Ends, and tells the receiver: a drain follows. Returns whether the confirmation must be waited for.
    pub(super) fn give_up(&mut self, now: Instant, machine: &mut AerotpEndpoint, error: SendError) {
        let control = self.control.take();
        let rtt = control.and_then(|control| machine.rtt(control));
        self.take_counters_of(machine, control);
        let lane = match self.lane.take() {
            Some(Lane::Open(data) | Lane::Closing(data)) => Some(data),
            Some(Lane::Empty) | None => None,
        };
        for connection in [control, lane].into_iter().flatten() {
            machine.abort(now, connection);
        }
        // Only an end of our own is news to the receiver, if it is there.
        let is_news = matches!(
            error,
            SendError::Stopped | SendError::Read(_) | SendError::Changed
        );
        if control.is_none() || !is_news {
            return self.fail(error);
        }
        let Some(connection) = self.say_farewell(now, machine, rtt) else {
            return self.fail(error);
        };
        let patience = if self.heard {
            (rtt.unwrap_or_default() * FAREWELL_RTTS).clamp(FAREWELL_MIN, FAREWELL_MAX)
        } else {
            FAREWELL_UNHEARD
        };
        self.phase = Phase::Farewell(Farewell {
            connection,
            until: now + patience,
            why: Some(error),
        });
    }

    fn say_farewell(
        &self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        rtt: Option<Duration>,
    ) -> Option<ConnectionId> {
        let mut rto = RtoLimits::default();
        let first = rtt.map_or(FIRST_TIMEOUT, |rtt| rtt * FIRST_TIMEOUT_RTTS + rto.margin);
        rto.initial = first.min(rto.initial);
        let config = ConnectionConfig {
            mode: Mode::Reliable,
            block: None,
            priority: Priority(u8::MAX),
            rto,
            ..self.plan.connection
        };
        let connection = machine.connect(now, self.path, FILE_PORT, config).ok()?;
        let mut word = Vec::new();
        Record::Leave { id: self.plan.id }.encode(&mut word);
        let taken = machine.write(now, connection, &word).ok()?;
        machine.close(now, connection);
        (taken == word.len()).then_some(connection)
    }

    /// Ends if `connection` is the one with the last word, which is then confirmed or lost; returns whether it is.
    pub(super) fn end_farewell(&mut self, connection: ConnectionId) -> bool {
        let is_it = matches!(&self.phase, Phase::Farewell(word) if word.connection == connection);
        if is_it {
            self.leave_farewell();
        }
        is_it
    }

    /// Ends, whether the last word was confirmed or not.
    pub(super) fn leave_farewell(&mut self) {
        if let Phase::Farewell(word) = &mut self.phase
            && let Some(why) = word.why.take()
        {
            self.fail(why);
        }
    }
}
