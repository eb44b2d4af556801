//! SOCKS clients that have not said what they want: from their first octet to their flow.
//!
//! # Promises
//! - The keeper has an applicant's connection from the moment it was accepted until its flow claims it. A gateway that
//!   takes it over goes on where the negotiation stood, see [`Negotiation::resumed`].
//! - The keeper forgets an applicant that ends in any other way, before or as we close it: its connection would else
//!   stand for ever.

use super::applicant::Applicant;
use super::clients::{open_proxied, stream_class, turn_away};
use super::entrance::Entries;
use super::entry::{Rule, Way};
use super::socks::{Moved, Negotiation, Step, codec};
use crate::gateway::flows::{Floor, Newcomer, Permit, Traffic};
use crate::gateway::sockets::{Target, Token, kernel};
use crate::keeper::{AcceptedClient, Baseline};
use fulmar_proto::splice::FlowKind;
use fulmar_proto::units::{Duration, Instant};

/// The time that a proxy's client has to say what it wants.
const NEGOTIATION_MAX: Duration = Duration::from_secs(30);

/// The last word to an applicant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum LastWord {
    /// An ordinary end, behind the octets that were sent.
    End,
    Reset,
}

impl Entries {
    /// Starts the negotiation with a client of a SOCKS entry; `permit` is for its place.
    pub(in crate::gateway) fn apply(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        rule: &Rule,
        (negotiation, permit): (Negotiation, Permit),
    ) {
        let token = floor.sockets.token(Target::Negotiation);
        let watched = floor
            .sockets
            .poller
            .watch_edges(negotiation.stream(), token);
        if watched.is_err() {
            floor.sockets.forget(token);
            return turn_away(floor, "no_descriptor", negotiation.into_stream());
        }
        let applicant = Applicant {
            negotiation,
            rule: rule.clone(),
            since: floor.now,
            permit,
            kept: traffic.keeping.take_client(),
        };
        applicant.permit.belongs_to(Newcomer::Applicant(token));
        self.applicants.insert(token, applicant);
        self.applicant_ready(floor, traffic, token);
    }

    /// Goes on with clients that a killed gateway had accepted, and that no flow has.
    pub(in crate::gateway) fn restore_clients(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
    ) {
        for (port, AcceptedClient { client, socket }) in traffic.keeping.take_clients() {
            traffic.keeping.accepted_before(&port, client);
            let entry = self
                .ports
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
                        self.accepted(floor, traffic, &rule, (socket, moved));
                    } else {
                        kernel::reset(socket);
                    }
                }
                (None, _) | (_, Err(_)) => kernel::reset(socket),
            }
            traffic.keeping.end_accept();
        }
    }

    pub(in crate::gateway) fn applicant_ready(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        token: Token,
    ) {
        let Some(applicant) = self.applicants.get_mut(&token) else {
            return;
        };
        match applicant.negotiation.advance() {
            Step::Wait => {}
            Step::Failed(reason) => {
                if let Some(skipped) = floor.repeats.may_for(floor.now, "socks_failed", reason) {
                    tracing::info!(event = "socks_failed", reason, skipped);
                }
                self.end_applicant(floor, traffic, token, LastWord::End);
            }
            Step::Asked(request, len) => {
                floor.sockets.forget(token);
                if let Some(applicant) = self.applicants.remove(&token) {
                    self.asked(floor, traffic, applicant, (request, len));
                }
            }
        }
    }

    /// An applicant has said what it wants; its request are the first `len` octets in its socket.
    fn asked(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        applicant: Applicant,
        (request, len): (codec::SocksRequest, usize),
    ) {
        let Applicant {
            negotiation,
            rule,
            permit,
            kept,
            ..
        } = applicant;
        let stream = negotiation.into_stream();
        traffic.keeping.accept_again(kept);
        if request.command == codec::Command::Connect {
            let to = request.destination;
            let settings = stream_class(floor.config, &rule, to.port, &stream);
            let wish = settings.and_then(|settings| {
                let wish = rule.wish(FlowKind::Stream, to, settings.flow)?;
                Some((settings, wish))
            });
            if let Some((settings, wish)) = wish {
                open_proxied(floor, traffic, &settings, wish, (stream, len, permit));
            } else {
                kernel::reset(stream);
            }
        } else {
            self.associate(floor, &rule, (stream, len, permit));
        }
        // An association is over with its relay, whatever the keeper has.
        traffic.keeping.end_accept();
    }

    pub(in crate::gateway) fn expire_applicants(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
    ) {
        // Tokens are given in order, so that the first has waited for longest.
        while let Some((token, first)) = self.applicants.first_key_value()
            && floor.now >= first.since + NEGOTIATION_MAX
        {
            let token = *token;
            self.end_applicant(floor, traffic, token, LastWord::End);
        }
    }

    /// Lets an applicant go that has no flow; `None` if it is not there.
    pub(super) fn end_applicant(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        token: Token,
        last_word: LastWord,
    ) -> Option<()> {
        floor.sockets.forget(token);
        let applicant = self.applicants.remove(&token)?;
        let stream = applicant.negotiation.into_stream();
        // Before the keeper lets go: the next gateway is to see that all was said.
        match last_word {
            LastWord::End => kernel::finish(&stream),
            LastWord::Reset => kernel::reset(stream),
        }
        traffic.keeping.forget_client(applicant.kept);
        Some(())
    }

    /// The time at which the one that has waited for longest is let go.
    pub(in crate::gateway) fn next_expiry(&self) -> Option<Instant> {
        let (_, first) = self.applicants.first_key_value()?;
        Some(first.since + NEGOTIATION_MAX)
    }
}
