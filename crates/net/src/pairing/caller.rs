//! The end that calls: it has the code that a person typed, and asks until it is answered.

use super::code::PairingCode;
use super::end::PairingEnd;
use super::exchange::{Exchange, PairingKeys, Role, SHARE_BYTES, TERMS_BYTES_MAX};
use super::wire::{COOKIE_BYTES, CallId, Kind, PAIRING_VERSION, Read, Refusal, read, write};
use crate::session::{Entropy, PublicKey};
use core::time::Duration;
use fulmar_proto::units::Instant;
use std::net::SocketAddr;

/// The time between a question and its repetition.
const REPEAT: Duration = Duration::from_millis(250);
/// The silence of the other end after which the caller ends.
const PATIENCE: Duration = Duration::from_secs(30);

/// News of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallerEvent {
    /// The called end has proved that it knows the code. Write the files, then say [`PairingCaller::written`], or end.
    Agreed {
        /// Its key.
        peer: PublicKey,
        /// The terms that it set.
        terms: Vec<u8>,
    },
    /// The called end has written its files, too.
    Paired,
    /// It came to nothing. After [`CallerEvent::Agreed`] the files must go again.
    Failed(PairingFailure),
}

/// The reason why a call came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PairingFailure {
    /// Nothing came back.
    #[error(
        "nobody answers: see that `fulmar init --pair` runs at the other end and that its UDP port is let in; the code is still good"
    )]
    NoAnswer,
    /// Answers stopped.
    #[error(
        "the other end fell silent: see what it says, and call again with the code that it shows then"
    )]
    Silent,
    /// The called end has another code.
    #[error("the code is wrong: the other end shows a new one, call again with that")]
    WrongCode,
    /// The code is no longer good, or another caller has it.
    #[error("the code is spent: call again with the one that the other end shows now")]
    Spent,
    /// The called end could not write its files.
    #[error("the other end could not write its files, and says why: mend that, and pair again")]
    NotWritten,
    /// The called end pairs in another version.
    #[error(
        "the other end pairs in version {theirs} of the protocol, this one in version {PAIRING_VERSION}: install the same fulmar at both ends"
    )]
    Version {
        /// Its version.
        theirs: u8,
    },
    /// The called end does not say whether its files are written.
    #[error(
        "the other end does not say that it has its files: if it does say so there, remove them there, and pair again"
    )]
    Unacknowledged,
}

/// The question that is asked until it is answered.
enum Question {
    Knock,
    Open(Box<Exchange>),
    Confirm(Box<PairingKeys>),
    /// The program writes its files.
    Writing(Box<PairingKeys>),
    Done(Box<PairingKeys>),
    Over,
}

/// The end of a pairing that calls.
pub struct PairingCaller {
    own: PublicKey,
    remote: SocketAddr,
    code: PairingCode,
    entropy: Entropy,
    call: CallId,
    question: Question,
    /// The question's datagram, which the repetitions are as well.
    datagram: Vec<u8>,
    next_at: Instant,
    gives_up_at: Instant,
    is_answered: bool,
    event: Option<CallerEvent>,
    is_due: bool,
}

impl PairingCaller {
    /// A caller that gives `own` to the end at `remote`, if that knows `code`.
    pub fn new(
        own: PublicKey,
        remote: SocketAddr,
        code: PairingCode,
        mut entropy: Entropy,
        now: Instant,
    ) -> Self {
        let call = CallId(entropy.array());
        Self {
            own,
            remote,
            code,
            entropy,
            call,
            question: Question::Knock,
            // Room for the cookie: no answer is longer than its question.
            datagram: write(Kind::Knock, call, &[0; COOKIE_BYTES]),
            next_at: now + REPEAT,
            gives_up_at: now + PATIENCE,
            is_answered: false,
            event: None,
            is_due: true,
        }
    }

    /// The next news.
    pub const fn poll_event(&mut self) -> Option<CallerEvent> {
        self.event.take()
    }

    /// The files are written, after [`CallerEvent::Agreed`]: the called end writes its own now.
    pub fn written(&mut self, now: Instant) {
        match core::mem::replace(&mut self.question, Question::Over) {
            Question::Writing(keys) => {
                let datagram = keys.proof(Kind::Done);
                self.ask(Question::Done(keys), datagram, now);
            }
            other => self.question = other,
        }
    }

    fn ask(&mut self, question: Question, datagram: Vec<u8>, now: Instant) {
        self.question = question;
        self.datagram = datagram;
        self.next_at = now + REPEAT;
        self.gives_up_at = now + PATIENCE;
        self.is_due = true;
    }

    fn end(&mut self, event: CallerEvent) {
        self.event = Some(event);
        self.question = Question::Over;
        self.is_due = false;
    }

    /// Takes an answer of our version; `None` if it answers nothing that we ask.
    fn answered(&mut self, kind: Kind, body: &[u8], now: Instant) -> Option<()> {
        match (&self.question, kind) {
            (Question::Knock, Kind::Cookie) => {
                let cookie: &[u8; COOKIE_BYTES] = body.try_into().ok()?;
                let exchange = Exchange::begin(Role::Caller, &self.code, &mut self.entropy)?;
                let body = [cookie.as_slice(), &exchange.share].concat();
                let datagram = write(Kind::Open, self.call, &body);
                self.ask(Question::Open(Box::new(exchange)), datagram, now);
            }
            (Question::Open(_), Kind::Opened) => {
                let share: &[u8; SHARE_BYTES] = body.try_into().ok()?;
                // Whoever answers first has the one try that there is.
                let Question::Open(exchange) =
                    core::mem::replace(&mut self.question, Question::Over)
                else {
                    return None;
                };
                let Some(keys) = exchange.finish(self.call, share) else {
                    self.end(CallerEvent::Failed(PairingFailure::WrongCode));
                    return None;
                };
                let datagram = keys.sealed(Kind::Confirm, &self.own, &[])?;
                self.ask(Question::Confirm(Box::new(keys)), datagram, now);
            }
            (Question::Confirm(keys), Kind::Accept) => {
                let (peer, terms) = keys.open(Kind::Accept, body)?;
                if peer == self.own || terms.len() > TERMS_BYTES_MAX {
                    return None;
                }
                if let Question::Confirm(keys) =
                    core::mem::replace(&mut self.question, Question::Over)
                {
                    self.question = Question::Writing(keys);
                }
                self.event = Some(CallerEvent::Agreed { peer, terms });
            }
            (Question::Done(keys), Kind::Bye) if keys.is_proof(Kind::Bye, body) => {
                self.end(CallerEvent::Paired);
            }
            (Question::Writing(_) | Question::Over, _) => return None,
            (_, Kind::Refuse) => {
                let [reason] = body else {
                    return None;
                };
                let failure = match Refusal::of_octet(*reason)? {
                    Refusal::WrongCode => PairingFailure::WrongCode,
                    Refusal::Spent => PairingFailure::Spent,
                    Refusal::NotWritten => PairingFailure::NotWritten,
                    // In our own version it says nothing.
                    Refusal::Version => return None,
                };
                self.end(CallerEvent::Failed(failure));
            }
            _ => return None,
        }
        Some(())
    }
}

impl PairingEnd for PairingCaller {
    /// Takes a datagram, whatever address it is from: only who saw ours knows the call's number.
    fn handle(&mut self, _source: SocketAddr, octets: &[u8], now: Instant) {
        match read(octets) {
            Some(Read::Ours { kind, call, body })
                if call == self.call && self.answered(kind, body, now).is_some() =>
            {
                self.is_answered = true;
            }
            Some(Read::Other { version, call })
                if call == self.call && matches!(self.question, Question::Knock) =>
            {
                let theirs = version;
                self.end(CallerEvent::Failed(PairingFailure::Version { theirs }));
            }
            _ => {}
        }
    }

    fn handle_deadline(&mut self, now: Instant) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        if now >= self.gives_up_at {
            let failure = match self.question {
                Question::Done(_) => PairingFailure::Unacknowledged,
                _ if self.is_answered => PairingFailure::Silent,
                _ => PairingFailure::NoAnswer,
            };
            self.end(CallerEvent::Failed(failure));
        } else {
            self.is_due = true;
            self.next_at = now + REPEAT;
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let asks = !matches!(self.question, Question::Writing(_) | Question::Over);
        asks.then(|| self.next_at.min(self.gives_up_at))
    }

    fn poll_transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        core::mem::take(&mut self.is_due).then(|| (self.remote, self.datagram.clone()))
    }
}
