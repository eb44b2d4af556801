//! SOCKS clients that have not said what they want: from their first octet to their flow.
//!
//! # Promises
//! - The keeper has an applicant's connection from the moment it was accepted until its flow claims it. A gateway that
//!   takes it over goes on where the negotiation stood, see [`Negotiation::resumed`].
//! - The keeper forgets an applicant that ends in any other way, before or as we close it: its connection would else
//!   stand for ever.

use super::clients::Wish;
use super::entry::{Rule, Way};
use super::socks::{Moved, Negotiation, Step, codec};
use crate::gateway::Link;
use crate::gateway::flows::{KeptClient, Newcomer, Permit};
use crate::gateway::running::{NEGOTIATION_MAX, Running, Target};
use crate::gateway::sockets::{Token, kernel};
use crate::keeper::{Accepted, Baseline};
use fulmar_proto::splice::FlowKind;
use fulmar_proto::units::Instant;
use std::net::TcpStream;

/// One client that has not said yet what it wants.
#[derive(Debug)]
pub(in crate::gateway) struct Applicant {
    negotiation: Negotiation,
    pub(in crate::gateway) rule: Rule,
    pub(in crate::gateway) since: Instant,
    permit: Permit,
    kept: Option<KeptClient>,
}

impl Applicant {
    /// Its name at the keeper, if it has one, and its connection.
    pub(in crate::gateway) const fn at_keeper(&mut self) -> Option<(&mut KeptClient, &TcpStream)> {
        match &mut self.kept {
            Some(kept) => Some((kept, self.negotiation.stream())),
            None => None,
        }
    }
}

/// The last word to an applicant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum LastWord {
    /// An ordinary end, behind the octets that were sent.
    End,
    Reset,
}

impl Running {
    /// Starts the negotiation with a client of a SOCKS entry; `permit` is for its place.
    pub(in crate::gateway) fn apply(
        &mut self,
        now: Instant,
        link: &mut Link,
        rule: &Rule,
        (negotiation, permit): (Negotiation, Permit),
    ) {
        let token = self.token(Target::Negotiation);
        let watched = self.poller.watch_edges(negotiation.stream(), token);
        if watched.is_err() {
            self.targets.remove(&token);
            return self.turn_away(now, "no_descriptor", negotiation.into_stream());
        }
        let applicant = Applicant {
            negotiation,
            rule: rule.clone(),
            since: now,
            permit,
            kept: self.keeping.take_client(),
        };
        applicant.permit.belongs_to(Newcomer::Applicant(token));
        self.applicants.insert(token, applicant);
        self.applicant_ready(now, link, token);
    }

    /// Goes on with clients that a killed gateway had accepted, and that no flow has.
    pub(in crate::gateway) fn restore_clients(&mut self, now: Instant, link: &mut Link) {
        for (port, Accepted { client, socket }) in self.keeping.take_clients() {
            self.keeping.accepted_before(&port, client);
            let entry = self
                .entries
                .values()
                .find(|entry| entry.kept.as_ref() == Some(&port));
            match (entry, Baseline::default().position(&socket)) {
                // Its last word was sent.
                (_, Ok(stands)) if stands.end_sent => kernel::finish(&socket),
                (Some(entry), Ok(stands)) => {
                    let moved = Moved {
                        taken: stands.taken,
                        given: stands.given,
                    };
                    let rule = entry.rule.clone();
                    if moved == Moved::default() || matches!(rule.way, Way::Socks(_)) {
                        self.accepted(now, link, &rule, (socket, moved));
                    } else {
                        kernel::reset(socket);
                    }
                }
                (None, _) | (_, Err(_)) => kernel::reset(socket),
            }
            self.keeping.end_accept();
        }
    }

    pub(in crate::gateway) fn applicant_ready(
        &mut self,
        now: Instant,
        link: &mut Link,
        token: Token,
    ) {
        let Some(applicant) = self.applicants.get_mut(&token) else {
            return;
        };
        match applicant.negotiation.advance() {
            Step::Wait => {}
            Step::Failed(reason) => {
                if let Some(skipped) = self.repeats.may_for(now, "socks_failed", reason) {
                    tracing::info!(event = "socks_failed", reason, skipped);
                }
                self.end_applicant(token, LastWord::End);
            }
            Step::Asked(request, len) => {
                self.targets.remove(&token);
                if let Some(applicant) = self.applicants.remove(&token) {
                    self.asked(now, link, applicant, (request, len));
                }
            }
        }
    }

    /// An applicant has said what it wants; its request are the first `len` octets in its socket.
    fn asked(
        &mut self,
        now: Instant,
        link: &mut Link,
        applicant: Applicant,
        (request, len): (codec::Request, usize),
    ) {
        let Applicant {
            negotiation,
            rule,
            permit,
            kept,
            ..
        } = applicant;
        let stream = negotiation.into_stream();
        self.keeping.accept_again(kept);
        if request.command == codec::Command::Connect {
            let to = request.destination;
            if let Some(settings) = self.stream_class(&rule, to.port, &stream) {
                let wish = Wish {
                    peer: rule.peer,
                    kind: FlowKind::Stream,
                    to,
                    class: settings.flow,
                };
                self.open_proxied(now, link, &settings, wish, (stream, len, permit));
            } else {
                kernel::reset(stream);
            }
        } else {
            self.associate(now, &rule, (stream, len, permit));
        }
        // An association is over with its relay, whatever the keeper has.
        self.keeping.end_accept();
    }

    pub(in crate::gateway) fn expire_applicants(&mut self, now: Instant) {
        // Tokens are given in order, so that the first has waited for longest.
        while let Some((token, first)) = self.applicants.first_key_value()
            && now >= first.since + NEGOTIATION_MAX
        {
            let token = *token;
            self.end_applicant(token, LastWord::End);
        }
    }

    /// Lets an applicant go that has no flow; `None` if it is not there.
    pub(in crate::gateway) fn end_applicant(
        &mut self,
        token: Token,
        last_word: LastWord,
    ) -> Option<()> {
        self.targets.remove(&token);
        let applicant = self.applicants.remove(&token)?;
        let stream = applicant.negotiation.into_stream();
        // Before the keeper lets go: the next gateway is to see that all was said.
        match last_word {
            LastWord::End => kernel::finish(&stream),
            LastWord::Reset => kernel::reset(stream),
        }
        self.keeping.forget_client(applicant.kept);
        Some(())
    }
}
