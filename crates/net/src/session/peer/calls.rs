//! The times at which a peer is called: for new keys, after an outage, and again while nobody answers.

use super::Peer;
use fulmar_proto::units::{Duration, Instant};

/// The outage after which a handshake leaves besides the probes: the peer may have restarted.
const DOWN_BEFORE_HANDSHAKE: Duration = Duration::from_secs(1);

impl Peer {
    /// The time at which we should begin a handshake, if none is pending.
    fn handshake_at(&self) -> Option<Instant> {
        if !self.path_proven && self.config.endpoints.is_empty() {
            return None;
        }
        let rekey = self.keys.rekey_at().unwrap_or(Instant::START);
        if self.doubt.is_raised {
            return Some(self.not_before);
        }
        let lost = (self.liveness.down_since()).filter(|_| !self.further.is_any_up());
        let lost = lost.map_or(Instant::FAR_FUTURE, |since| since + DOWN_BEFORE_HANDSHAKE);
        Some(rekey.min(lost).max(self.not_before))
    }

    /// Whether a handshake is to be begun, or its first message repeated.
    pub(in super::super) fn wants_initiation(&self, now: Instant) -> bool {
        self.initiation_at().is_some_and(|at| at <= now)
    }

    pub(super) fn initiation_at(&self) -> Option<Instant> {
        let at = match &self.pending {
            Some(pending) => Some(pending.next_at),
            None => self.handshake_at(),
        };
        if !self.liveness.is_told_down() || self.further.is_any_up() {
            return at;
        }
        // The word may be wrong: probes find that out, and where there are no keys for them, calls as rare.
        if self.keys.expires_at().is_some() {
            return None;
        }
        let pause = self.liveness.keep_alive()?;
        let again = self.called_at.map_or(Instant::START, |at| at + pause);
        Some(at?.max(again))
    }
}
