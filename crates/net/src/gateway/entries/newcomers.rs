//! Clients of a proxy that have no flow yet, and give way to others when places are short.

use super::applicants::LastWord;
use super::entrance::Entries;
use crate::gateway::flows::{Client, Floor, Newcomer, Party, Permit, Refusal, Traffic};
use crate::gateway::sockets::Token;

impl Entries {
    /// A place for a flow of `party`: a free one, or one that a newcomer gives up for it.
    pub(super) fn admit(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        (party, client): (Party, Option<Client>),
    ) -> Result<Permit, Refusal> {
        traffic.admit(floor, (party, client), |floor, traffic, newcomer| {
            self.gives_way(floor, traffic, newcomer).is_some()
        })
    }

    /// Ends what `newcomer` names, unless it has spoken.
    fn gives_way(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        newcomer: Newcomer,
    ) -> Option<()> {
        match newcomer {
            Newcomer::Flow(_) => None,
            Newcomer::Applicant(token) => {
                self.end_applicant(floor, traffic, token, LastWord::Reset)
            }
            Newcomer::Association(token) => {
                let silent = self.associations.get(&token).filter(|a| !a.has_spoken());
                let is_silent = silent.is_some();
                is_silent.then(|| self.close_association(floor, traffic, token))
            }
        }
    }

    /// Lets go clients of a proxy that have no flow to the peer yet, or whose next message would make one.
    pub(in crate::gateway) fn turn_away_newcomers(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        index: usize,
    ) {
        let applicants = self.applicants.iter();
        let of_peer = applicants.filter(|(_, it)| it.rule.peer == index);
        let tokens: Vec<Token> = of_peer.map(|(token, _)| *token).collect();
        for token in tokens {
            self.end_applicant(floor, traffic, token, LastWord::Reset);
        }
        let associations = self.associations.iter();
        let of_peer = associations.filter(|(_, it)| it.permit.party().peer == index);
        let tokens: Vec<Token> = of_peer.map(|(token, _)| *token).collect();
        for token in tokens {
            self.close_association(floor, traffic, token);
        }
    }
}
