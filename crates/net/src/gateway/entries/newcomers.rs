//! Clients that have taken a place and sent nothing yet: their time limit, and the order in which they give way when
//! places are short.
//!
//! A server by itself closes a connection on which nothing comes. Where the gateway has accepted the client and the
//! server speaks only when it is asked, nothing closes it: a port scan would keep its places for as long as idle flows
//! are kept. So a client has `tcp_silent` for its first octet, counted from the last octet that came for it.
//!
//! When no place is free, the oldest *newcomer* gives way: a flow that carried nothing, or a SOCKS client that did not
//! ask. The same is done with half-open connections (RFC 4987, section 3.4). Only newcomers of the same [`Party`] give
//! way, or of the same client, if it is the client that has too many.

use super::applicants::LastWord;
use crate::gateway::Link;
use crate::gateway::flows::{Body, Client, Newcomer, Party, Permit, Refusal};
use crate::gateway::running::Running;
use fulmar_proto::splice::{FlowId, RefuseCode, ResetCode};
use fulmar_proto::units::Instant;

/// The result of a look at a client that had said nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Spoke,
    /// Something came for it, or it could not be heard.
    Later,
    Silent,
}

impl Running {
    /// A place for a flow of `party`: a free one, or one that a newcomer gives up for it. `client` is known where the
    /// flow
    /// came in.
    pub(in crate::gateway) fn admit(
        &mut self,
        now: Instant,
        link: &mut Link,
        party: Party,
        client: Option<Client>,
    ) -> Result<Permit, Refusal> {
        let refusal = match self.admission.admit(party, client) {
            Ok(permit) => return Ok(permit),
            Err(refusal) => refusal,
        };
        let of_client = client.filter(|_| refusal == Refusal::Client);
        while let Some(newcomer) = self.admission.take_oldest(party, of_client) {
            if self.gives_way(now, link, newcomer) {
                return Ok(self.admission.permit(party, client));
            }
        }
        Err(refusal)
    }

    /// Ends what `newcomer` names, unless it has spoken.
    fn gives_way(&mut self, now: Instant, link: &mut Link, newcomer: Newcomer) -> bool {
        let ended = match newcomer {
            Newcomer::Flow(id) => self.flow_gives_way(now, link, id),
            Newcomer::Applicant(token) => self.end_applicant(token, LastWord::Reset),
            Newcomer::Association(token) => {
                let silent = self.associations.get(&token).filter(|a| !a.has_spoken());
                let is_silent = silent.is_some();
                is_silent.then(|| self.close_association(now, link, token))
            }
        };
        if ended.is_some()
            && let Some(skipped) = self.repeats.may(now, "gave_way")
        {
            tracing::info!(event = "newcomer_gave_way", skipped);
        }
        ended.is_some()
    }

    fn flow_gives_way(&mut self, now: Instant, link: &mut Link, id: FlowId) -> Option<()> {
        let flow = self.flows.get(id).filter(|flow| flow.is_newcomer())?;
        if matches!(flow.body, Body::Resolving | Body::Connecting(_)) {
            self.give_up(now, link, id, RefuseCode::TooMany);
        } else {
            link.inner_mut().reset(now, id, ResetCode::Idle);
            self.drop_flow(now, id, "gave_way", true);
        }
        Some(())
    }

    /// Resets the TCP clients that have been silent for too long.
    pub(in crate::gateway) fn expire_silent(&mut self, now: Instant, link: &mut Link) {
        while let Some(id) = self.flows.take_impatient(now) {
            match self.look(id) {
                Look::Spoke => {}
                Look::Later => {
                    let at = now + self.config.limits.tcp_silent;
                    self.flows.set_patience(id, at);
                }
                Look::Silent => {
                    link.inner_mut().reset(now, id, ResetCode::Idle);
                    self.drop_flow(now, id, "client_silent", true);
                    if let Some(skipped) = self.repeats.may(now, "client_silent") {
                        tracing::info!(event = "client_silent", skipped);
                    }
                }
            }
        }
    }

    fn look(&mut self, id: FlowId) -> Look {
        let Some(flow) = self.flows.get_mut(id) else {
            return Look::Spoke;
        };
        let Body::Stream(stream) = &flow.body else {
            return Look::Spoke;
        };
        let said = stream.moved().1;
        let news = said > core::mem::replace(&mut flow.said_to_silent, said);
        match (stream.has_spoken(), news || !stream.is_listened_to()) {
            (true, _) => Look::Spoke,
            (false, true) => Look::Later,
            (false, false) => Look::Silent,
        }
    }
}
