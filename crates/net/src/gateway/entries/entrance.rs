//! All entries of a gateway, with those who came in and have no flow yet.

use super::applicant::Applicant;
use super::association::Association;
use super::entry::Entry;
use crate::gateway::flows::KeptClient;
use crate::gateway::sockets::Token;
use fulmar_proto::units::Instant;
use std::collections::BTreeMap;
use std::net::TcpStream;

/// The ports, and the clients that came in there.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Entries {
    pub(super) ports: BTreeMap<Token, Entry>,
    pub(super) applicants: BTreeMap<Token, Applicant>,
    pub(super) associations: BTreeMap<Token, Association>,
    /// Ports that are left alone until then.
    pub(super) resting: Option<(Instant, Vec<Token>)>,
    /// Whether no flow may begin any more.
    pub(super) is_closed: bool,
}

impl Entries {
    /// The open ports.
    pub(in crate::gateway) fn len(&self) -> usize {
        self.ports.len()
    }

    /// The time at which ports that were left alone are looked at again.
    pub(in crate::gateway) fn next_look(&self) -> Option<Instant> {
        self.resting.as_ref().map(|(until, _)| *until)
    }

    /// Those that have not said yet what they want, each with its name at the keeper if it has one.
    pub(in crate::gateway) fn waiting(
        &mut self,
    ) -> impl Iterator<Item = Option<(&mut KeptClient, &TcpStream)>> {
        self.applicants.values_mut().map(Applicant::at_keeper)
    }
}
