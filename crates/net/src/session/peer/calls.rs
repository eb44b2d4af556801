//! The times at which a peer is called, and the paths: for new keys, after an outage, and again while nobody answers.

use super::Peer;
use crate::session::guard::{COOKIE_LIFE, Mac};
use fulmar_proto::machine::PathId;
use fulmar_proto::units::{Duration, Instant};

/// The outage after which a handshake leaves besides the probes: the peer may have restarted.
const DOWN_BEFORE_HANDSHAKE: Duration = Duration::from_secs(1);

/// The calls of a handshake that go to the home alone, if it is not known to be down: on a link that loses a tenth each way, one
/// start in 800 begins on a further path, and one whose round trip is long is not left because another answers sooner.
const HOME_CALLS_FIRST: u32 = 4;

/// The turns of the paths on which a peer is called.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Calls {
    /// The calls on paths to its home, and on further ones.
    to_home: usize,
    to_further: usize,
    /// Whether the last one was to its home, and when that was called last.
    was_to_home: bool,
    home_called_at: Option<Instant>,
    /// The path from which a cookie has just come, or of which a hub has just told.
    next: Option<PathId>,
    /// Whether the last call was out of turn, for a cookie: whoever sends cookies has one call in two.
    was_out_of_turn: bool,
}

impl Calls {
    /// Makes `path` the next to be called.
    pub(super) const fn call_next(&mut self, path: PathId) {
        self.next = Some(path);
    }

    /// Calls `path` in its turn only.
    pub(super) fn forget_next(&mut self, path: PathId) {
        self.next.take_if(|next| *next == path);
    }

    /// Calls each path in its turn only.
    pub(super) const fn forget_all_next(&mut self) {
        self.next = None;
    }
}

/// The proof that a peer under load asks for: that we are where our calls come from.
#[derive(Clone, Copy)]
pub(in super::super) struct Cookie {
    pub(in super::super) value: Mac,
    pub(in super::super) since: Instant,
    /// The path on which it holds: calls on another one come from another address. `None`: it came from where the peer is
    /// not known to be, and holds on the path that was called, whichever that was.
    pub(in super::super) path: Option<PathId>,
}

impl Peer {
    /// The time at which we should begin a handshake, if none is pending.
    fn handshake_at(&self) -> Option<Instant> {
        // An address that a hub told may have been given up.
        let has_home = self.path_proven && self.path.is_some() || !self.config.endpoints.is_empty();
        if !has_home && self.further.calls().next().is_none() {
            return None;
        }
        let rekey = self.keys.rekey_at().unwrap_or(Instant::START);
        if self.doubt.is_raised {
            return Some(self.not_before);
        }
        // The last of several paths counts: another may have been down for long.
        let lost = (self.liveness.down_since()).filter(|_| !self.further.is_any_up());
        let lost = lost.max(self.further.down_since().filter(|_| lost.is_some()));
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
        // The further paths are called without the home.
        if !self.liveness.is_told_down() || self.further.calls().next().is_some() {
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

    /// The path of the next attempt to agree on keys. While there is no session, or the home is down, further paths have
    /// every second turn, those included that the user named and that have no place before there is a session.
    pub(in super::super) fn next_call(&mut self, now: Instant) -> Option<PathId> {
        let was_out_of_turn = core::mem::take(&mut self.calls.was_out_of_turn);
        let asked = self.calls.next.take();
        if let Some(path) = asked.filter(|_| !was_out_of_turn) {
            self.calls.was_out_of_turn = true;
            return Some(path);
        }
        let calls = self.calls;
        let is_home_up = self.keys.is_usable(now) && !self.liveness.is_down();
        let further = self.further.calls();
        let further = further.filter(|path| !self.home_paths().any(|home| home == *path));
        let beside = further.clone().count();
        // A home that tells that it is down is called as rarely as it is probed: the word may be wrong.
        let is_rare = self.liveness.is_told_down() && beside > 0;
        let again = |at| self.liveness.keep_alive().map(|pause| at + pause);
        let may_call_home = !is_rare
            || (calls.home_called_at).is_none_or(|at| again(at).is_some_and(|again| again <= now));
        let tries = self.pending.as_ref().map_or(0, |pending| pending.tries);
        let is_first = tries < HOME_CALLS_FIRST && !self.liveness.is_down();
        let is_turn = is_home_up || is_first || !calls.was_to_home;
        let homes = self.home_paths().count();
        let is_home_next = homes > 0 && (beside == 0 || (is_turn && may_call_home));
        let path = if is_home_next {
            self.home_paths().nth(calls.to_home % homes)
        } else {
            further.clone().nth(calls.to_further.checked_rem(beside)?)
        };
        self.calls.was_to_home = is_home_next;
        if is_home_next {
            self.calls.to_home = calls.to_home.wrapping_add(1);
            self.calls.home_called_at = Some(now);
        } else {
            self.calls.to_further = calls.to_further.wrapping_add(1);
        }
        path
    }

    /// Takes a cookie that came on `path`. Returns whether it is another one than before: then that path is called next.
    pub(in super::super) fn take_cookie(&mut self, now: Instant, path: PathId, value: Mac) -> bool {
        let is_news = self.cookie.is_none_or(|known| known.value != value);
        let path = Some(path).filter(|path| self.may_be_at(*path));
        if is_news {
            self.calls.next = path;
        }
        let since = now;
        self.cookie = Some(Cookie { value, since, path });
        is_news
    }

    /// The cookie for a call on `path`, if there is a fresh one.
    pub(in super::super) fn cookie_for(&self, now: Instant, path: PathId) -> Option<Mac> {
        let holds = |cookie: &Cookie| {
            let is_fresh = now.saturating_since(cookie.since) < COOKIE_LIFE;
            is_fresh && cookie.path.is_none_or(|of| of == path)
        };
        Some(self.cookie.filter(holds)?.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{MtuConfig, PathTerms, PeerConfig, PeerIndex, Security, SessionConfig};
    use fulmar_proto::liveness::LivenessConfig;

    const NOW: Instant = Instant::START;
    const HOME: PathId = PathId(7);
    const FURTHER: [PathId; 2] = [PathId(8), PathId(9)];

    fn peer() -> Peer {
        let config = PeerConfig {
            name: "ground".to_owned(),
            security: Security::Nobody,
            endpoints: vec![HOME],
            mtu: MtuConfig::default(),
        };
        let session = SessionConfig::new(None, vec![config.clone()], 0);
        let mut peer = Peer::new(PeerIndex(0), config, &session, 0);
        for path in FURTHER {
            let named = (path, PathTerms::default());
            peer.further.name(NOW, named, LivenessConfig::default());
        }
        peer.liveness.fall_unheard(NOW);
        peer
    }

    #[test]
    fn a_home_that_is_down_and_each_named_path_have_turns() {
        let mut peer = peer();
        let called: Vec<_> = (0..6).map_while(|_| peer.next_call(NOW)).collect();
        let [one, other] = FURTHER;
        assert_eq!(called, [HOME, one, HOME, other, HOME, one]);
    }

    #[test]
    fn a_cookie_is_sent_back_at_once_on_the_path_on_which_it_came_and_on_no_other() {
        let mut peer = peer();
        let [one, other] = FURTHER;
        assert_eq!(peer.next_call(NOW), Some(HOME));
        let (cookie, another) = (*b"a cookie for one", *b"one for another.");
        // Both paths carry: the other end sees two addresses, and has a cookie for each.
        assert!(peer.take_cookie(NOW, one, cookie));
        assert_eq!(peer.next_call(NOW), Some(one));
        assert_eq!(peer.cookie_for(NOW, one), Some(cookie));
        assert_eq!(peer.cookie_for(NOW, other), None);
        assert!(!peer.take_cookie(NOW, one, cookie), "it is known");
        assert_ne!(peer.next_call(NOW), None);
        assert!(peer.take_cookie(NOW, other, another));
        assert_eq!(peer.next_call(NOW), Some(other));
        assert_eq!(peer.cookie_for(NOW, other), Some(another));
        assert_eq!(peer.cookie_for(NOW, one), None);
        assert_eq!(peer.cookie_for(NOW + COOKIE_LIFE, other), None, "it is old");
    }

    #[test]
    fn a_cookie_from_where_the_peer_is_not_known_to_be_holds_on_any_path() {
        let mut peer = peer();
        let cookie = *b"from elsewhere ?";
        assert!(peer.take_cookie(NOW, PathId(70), cookie));
        assert_eq!(peer.next_call(NOW), Some(HOME), "nobody is called there");
        assert_eq!(peer.cookie_for(NOW, HOME), Some(cookie));
    }
}
