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

use super::admission::{Client, Newcomer, Party, Permit, Refusal};
use super::floor::Floor;
use super::flow::Body;
use super::traffic::Traffic;
use fulmar_proto::splice::{FlowId, RefuseCode, ResetCode};

/// The result of a look at a client that had said nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Spoke,
    /// Something came for it, or it could not be heard.
    Later,
    Silent,
}

impl Traffic {
    /// A place for a flow of `party`: a free one, or one that a newcomer gives up for it. `client` is known where the
    /// flow came in. `others` ends a newcomer that is no flow, unless it has spoken.
    pub(in crate::gateway) fn admit(
        &mut self,
        floor: &mut Floor<'_>,
        (party, client): (Party, Option<Client>),
        mut others: impl FnMut(&mut Floor<'_>, &mut Self, Newcomer) -> bool,
    ) -> Result<Permit, Refusal> {
        let refusal = match self.admission.admit(party, client) {
            Ok(permit) => return Ok(permit),
            Err(refusal) => refusal,
        };
        let of_client = client.filter(|_| refusal == Refusal::Client);
        while let Some(newcomer) = self.admission.take_oldest(party, of_client) {
            let gave_way = match newcomer {
                Newcomer::Flow(id) => self.flow_gives_way(floor, id).is_some(),
                other => others(floor, self, other),
            };
            if gave_way {
                if let Some(skipped) = floor.repeats.may(floor.now, "gave_way") {
                    tracing::info!(event = "newcomer_gave_way", skipped);
                }
                return Ok(self.admission.permit(party, client));
            }
        }
        Err(refusal)
    }

    fn flow_gives_way(&mut self, floor: &mut Floor<'_>, id: FlowId) -> Option<()> {
        let flow = self.flows.get(id).filter(|flow| flow.is_newcomer())?;
        if matches!(flow.body, Body::Resolving | Body::Connecting) {
            self.give_up(floor, id, RefuseCode::TooMany);
        } else {
            floor.link.inner_mut().reset(floor.now, id, ResetCode::Idle);
            self.drop_flow(floor, id, "gave_way", true);
        }
        Some(())
    }

    /// Resets the TCP clients that have been silent for too long.
    pub(in crate::gateway) fn expire_silent(&mut self, floor: &mut Floor<'_>) {
        while let Some(id) = self.flows.take_impatient(floor.now) {
            match self.look(id) {
                Look::Spoke => {}
                Look::Later => {
                    let at = floor.now + floor.config.limits.tcp_silent;
                    self.flows.set_patience(id, at);
                }
                Look::Silent => {
                    floor.link.inner_mut().reset(floor.now, id, ResetCode::Idle);
                    self.drop_flow(floor, id, "client_silent", true);
                    if let Some(skipped) = floor.repeats.may(floor.now, "client_silent") {
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
