//! The end that is called: it shows a code, and serves one caller who knows it.

use super::calls::{Call, CallState, Calls, host};
use super::code::PairingCode;
use super::end::PairingEnd;
use super::exchange::{
    CONFIRM_BYTES, Exchange, PROOF_BYTES, PairingKeys, Role, SHARE_BYTES, TERMS_BYTES_MAX,
};
use super::wire::{COOKIE_BYTES, CallId, Kind, Read, Refusal, read, write};
use crate::session::{Entropy, KEY_BYTES, PublicKey, keyed_hash};
use core::time::Duration;
use fulmar_proto::units::Instant;
use std::net::{IpAddr, SocketAddr};

/// Wrong codes after which the listener ends.
pub const WRONG_CODES_MAX: u8 = 10;

/// The silence of a caller with the right code after which another code is shown.
const SILENCE: Duration = Duration::from_secs(30);
/// The time after the caller's last datagram in which a repeated one is still answered. A caller repeats itself twenty
/// times in it.
const LINGER: Duration = Duration::from_secs(5);

/// News of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenerEvent {
    /// A caller had another code. This one is spent, and [`PairingListener::code`] is a new one, good for as many wrong
    /// codes as are left.
    WrongCode {
        /// Wrong codes until the listener ends.
        left: u8,
    },
    /// There were too many wrong codes. Nothing more is answered.
    TooManyWrongCodes,
    /// A caller had the code, then fell silent. The code is spent, and [`PairingListener::code`] is a new one.
    CallerSilent,
    /// The caller has proved that it knows the code, has our key and has its files. Write ours, then say
    /// [`PairingListener::written`] or [`PairingListener::not_written`].
    Agreed(PublicKey),
    /// The caller needs no more answers.
    Over,
}

enum Phase {
    /// Nobody has proved that he knows the code.
    Waiting,
    /// A caller has the code and is told our key.
    Accepted {
        call: CallId,
        peer: PublicKey,
        keys: Box<PairingKeys>,
        silent_at: Instant,
    },
    /// The program writes its files.
    Writing {
        call: CallId,
        keys: Box<PairingKeys>,
        caller: SocketAddr,
    },
    /// The caller is told how it ended, as often as it asks.
    Answering {
        call: CallId,
        last: Vec<u8>,
        until: Instant,
    },
    Over,
}

/// The end of a pairing that is called.
pub struct PairingListener {
    own: PublicKey,
    terms: Vec<u8>,
    entropy: Entropy,
    cookie_key: [u8; KEY_BYTES],
    code: PairingCode,
    wrong_codes: u8,
    calls: Calls,
    phase: Phase,
    event: Option<ListenerEvent>,
    reply: Option<(SocketAddr, Vec<u8>)>,
}

impl PairingListener {
    /// A listener that gives `own` and `terms` to whoever knows its code. `None` if the terms are longer than
    /// [`TERMS_BYTES_MAX`].
    pub fn new(own: PublicKey, terms: Vec<u8>, mut entropy: Entropy) -> Option<Self> {
        (terms.len() <= TERMS_BYTES_MAX).then(|| Self {
            own,
            terms,
            cookie_key: entropy.array(),
            code: PairingCode::generate(&mut entropy),
            entropy,
            wrong_codes: 0,
            calls: Calls::default(),
            phase: Phase::Waiting,
            event: None,
            reply: None,
        })
    }

    /// The code that is good now.
    pub const fn code(&self) -> &PairingCode {
        &self.code
    }

    /// The next news.
    pub const fn poll_event(&mut self) -> Option<ListenerEvent> {
        self.event.take()
    }

    /// Our files are written, after [`ListenerEvent::Agreed`].
    pub fn written(&mut self, now: Instant) {
        self.answer(now, |keys, _| keys.proof(Kind::Bye));
    }

    /// Our files could not be written, after [`ListenerEvent::Agreed`]: the caller is told.
    pub fn not_written(&mut self, now: Instant) {
        self.answer(now, |_, call| refusal(call, Refusal::NotWritten));
    }

    fn answer(&mut self, now: Instant, last: impl FnOnce(&PairingKeys, CallId) -> Vec<u8>) {
        let Phase::Writing { call, keys, caller } = &self.phase else {
            return;
        };
        let last = last(keys, *call);
        self.reply = Some((*caller, last.clone()));
        self.phase = Phase::Answering {
            call: *call,
            last,
            until: now + LINGER,
        };
    }

    /// The code is spent: whoever opened a call on it is refused, and there is another one.
    fn spend_code(&mut self) {
        self.calls.spend();
        self.code = PairingCode::generate(&mut self.entropy);
        self.phase = Phase::Waiting;
    }

    fn cookie(&self, source: SocketAddr, call: CallId) -> [u8; COOKIE_BYTES] {
        let ip = match source.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let port = source.port().to_be_bytes();
        let hash = keyed_hash(
            &self.cookie_key,
            &[ip.octets().as_slice(), &port, &call.0].concat(),
        );
        let mut cookie = [0; COOKIE_BYTES];
        cookie.copy_from_slice(&hash[..COOKIE_BYTES]);
        cookie
    }

    /// The answer to the caller's share, if its cookie shows that it is where it says.
    fn open(
        &mut self,
        source: SocketAddr,
        id: CallId,
        body: &[u8],
        now: Instant,
    ) -> Option<Vec<u8>> {
        let (cookie, share) = body.split_first_chunk::<COOKIE_BYTES>()?;
        let share: [u8; SHARE_BYTES] = share.try_into().ok()?;
        if *cookie != self.cookie(source, id) {
            return None;
        }
        if let Some(call) = self.calls.get(id) {
            return (call.caller_share == share).then(|| call.opened.clone());
        }
        if !matches!(self.phase, Phase::Waiting) {
            return Some(refusal(id, Refusal::Spent));
        }
        let host = host(source.ip());
        if !self.calls.may_begin(host, now) {
            return None;
        }
        let exchange = Exchange::begin(Role::Called, &self.code, &mut self.entropy)?;
        let opened = write(Kind::Opened, id, &exchange.share);
        let keys = exchange.finish(id, &share)?;
        self.calls.add(Call {
            id,
            host,
            begun: now,
            caller_share: share,
            opened: opened.clone(),
            state: CallState::Begun(Box::new(keys)),
        });
        Some(opened)
    }

    /// The answer to a caller's proof that it knows the code.
    fn confirm(&mut self, id: CallId, body: &[u8], now: Instant) -> Option<Vec<u8>> {
        if body.len() != CONFIRM_BYTES {
            return None;
        }
        let Some(call) = self.calls.get(id) else {
            // Forgotten, or of an earlier listener.
            return Some(refusal(id, Refusal::Spent));
        };
        let keys = match &call.state {
            CallState::Refused(reason) => return Some(refusal(id, *reason)),
            CallState::Accepted(accept) => {
                if let Phase::Accepted { silent_at, .. } = &mut self.phase {
                    *silent_at = now + SILENCE;
                }
                return Some(accept.clone());
            }
            CallState::Begun(keys) => keys,
        };
        let peer = keys.open(Kind::Confirm, body).map(|(key, _)| key);
        let Some(peer) = peer.filter(|key| *key != self.own) else {
            return Some(self.count_wrong_code(id));
        };
        let accept = keys.sealed(Kind::Accept, &self.own, &self.terms)?;
        let accepted = CallState::Accepted(accept.clone());
        let begun = core::mem::replace(&mut call.state, CallState::Refused(Refusal::Spent));
        // Every other call is too late.
        self.calls.spend();
        if let (CallState::Begun(keys), Some(call)) = (begun, self.calls.get(id)) {
            call.state = accepted;
            self.phase = Phase::Accepted {
                call: id,
                peer,
                keys,
                silent_at: now + SILENCE,
            };
        }
        Some(accept)
    }

    fn count_wrong_code(&mut self, id: CallId) -> Vec<u8> {
        if let Some(call) = self.calls.get(id) {
            call.state = CallState::Refused(Refusal::WrongCode);
        }
        self.spend_code();
        self.wrong_codes += 1;
        let left = WRONG_CODES_MAX.saturating_sub(self.wrong_codes);
        self.event = Some(if left == 0 {
            self.phase = Phase::Over;
            ListenerEvent::TooManyWrongCodes
        } else {
            ListenerEvent::WrongCode { left }
        });
        refusal(id, Refusal::WrongCode)
    }

    /// The answer to the caller's word that its files are written.
    fn done(
        &mut self,
        source: SocketAddr,
        id: CallId,
        body: &[u8],
        now: Instant,
    ) -> Option<Vec<u8>> {
        if body.len() != PROOF_BYTES {
            return None;
        }
        match &mut self.phase {
            Phase::Accepted {
                call, keys, peer, ..
            } if *call == id && keys.is_proof(Kind::Done, body) => {
                self.event = Some(ListenerEvent::Agreed(*peer));
                let before = core::mem::replace(&mut self.phase, Phase::Over);
                if let Phase::Accepted { call, keys, .. } = before {
                    let caller = source;
                    self.phase = Phase::Writing { call, keys, caller };
                }
                None
            }
            Phase::Answering { call, last, until } if *call == id => {
                *until = now + LINGER;
                Some(last.clone())
            }
            _ => None,
        }
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.calls.len()
    }
}

fn refusal(call: CallId, reason: Refusal) -> Vec<u8> {
    write(Kind::Refuse, call, &[reason as u8])
}

impl PairingEnd for PairingListener {
    fn handle(&mut self, source: SocketAddr, octets: &[u8], now: Instant) {
        if matches!(self.phase, Phase::Over) {
            return;
        }
        let reply = match read(octets) {
            Some(Read::Ours { kind, call, body }) => match kind {
                Kind::Knock if body.len() == COOKIE_BYTES => {
                    Some(write(Kind::Cookie, call, &self.cookie(source, call)))
                }
                Kind::Open => self.open(source, call, body, now),
                Kind::Confirm => self.confirm(call, body, now),
                Kind::Done => self.done(source, call, body, now),
                _ => None,
            },
            Some(Read::Other { call, .. }) => {
                let answer = refusal(call, Refusal::Version);
                (answer.len() <= octets.len()).then_some(answer)
            }
            None => None,
        };
        self.reply = reply
            .map(|datagram| (source, datagram))
            .or(self.reply.take());
    }

    fn handle_deadline(&mut self, now: Instant) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        if let Phase::Accepted { .. } = self.phase {
            self.event = Some(ListenerEvent::CallerSilent);
            self.spend_code();
        } else {
            self.event = Some(ListenerEvent::Over);
            self.phase = Phase::Over;
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Accepted { silent_at, .. } => Some(*silent_at),
            Phase::Answering { until, .. } => Some(*until),
            Phase::Waiting | Phase::Writing { .. } | Phase::Over => None,
        }
    }

    fn poll_transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.reply.take()
    }
}
