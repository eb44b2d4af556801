//! One SOCKS client that has not said what it wants.

use super::entry::Rule;
use super::socks::Negotiation;
use crate::gateway::flows::{KeptClient, Permit};
use fulmar_proto::units::Instant;
use std::net::TcpStream;

/// One client that has not said yet what it wants.
#[derive(Debug)]
pub(in crate::gateway) struct Applicant {
    pub(super) negotiation: Negotiation,
    pub(in crate::gateway) rule: Rule,
    pub(in crate::gateway) since: Instant,
    pub(super) permit: Permit,
    pub(super) kept: Option<KeptClient>,
}

impl Applicant {
    /// Its name at the keeper, if it has one, and its connection.
    pub(super) const fn at_keeper(&mut self) -> Option<(&mut KeptClient, &TcpStream)> {
        match &mut self.kept {
            Some(kept) => Some((kept, self.negotiation.stream())),
            None => None,
        }
    }
}
