//! Admission: the share of a gateway's places for flows that each client and peer may take.
//!
//! A place is taken by a flow, by a SOCKS client that negotiates, and by a UDP association. Places are shared among
//! *parties*: for each peer the clients here that go out to it, and those that it sends here. Within a party, clients
//! here are told apart by their addresses.
//!
//! # Promises
//! - A party finds the places of its reserve free, whatever the others do ([`Shares`]).
//! - The first half of what a party may have goes to whoever asks. Of the rest a client gets a place only while it has
//!   at most an eighth of what is left, so that one client never has more than half, and some forty greedy ones are
//!   needed before the next finds nothing. (Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory
//!   packet switches", `IEEE/ACM ToN` 1998, bound what each may hold by what is left, too.)
//! - A place is given back when its [`Permit`] is dropped, and not before.

use crate::gateway::config::GatewayConfig;
use crate::gateway::sockets::Token;
use fulmar_proto::shares::Shares;
use fulmar_proto::splice::{FlowId, Role};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

/// While at least one in so many of a party's places is free, a client may take any.
const OPEN_PART: usize = 2;
/// When places are scarce, a client may have one in so many of those that are left.
const SCARCE_PART: usize = 8;

/// Hosts of one IPv6 link choose their addresses below these bits themselves (RFC 4291, section 2.5.1).
const V6_PREFIX_BITS: u32 = 64;

/// Flows that share places: those with one peer whose clients came in here ([`Role::Opener`]), or those that the
/// peer asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::gateway) struct Party {
    pub(in crate::gateway) peer: usize,
    /// [`Role`] has no order.
    entered: bool,
}

impl Party {
    pub(in crate::gateway) const fn new(peer: usize, role: Role) -> Self {
        Self {
            peer,
            entered: matches!(role, Role::Opener),
        }
    }
}

/// A host that has clients: an IPv4 address, or the addresses that one IPv6 host may give itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::gateway) struct Client(IpAddr);

impl From<IpAddr> for Client {
    fn from(ip: IpAddr) -> Self {
        Self(match ip.to_canonical() {
            v4 @ IpAddr::V4(_) => v4,
            IpAddr::V6(v6) => {
                let prefix = u128::from(v6) >> (128 - V6_PREFIX_BITS) << (128 - V6_PREFIX_BITS);
                Ipv6Addr::from(prefix).into()
            }
        })
    }
}

/// A newcomer that has taken a place and nothing else yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Newcomer {
    Flow(FlowId),
    Applicant(Token),
    Association(Token),
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Refusal {
    /// The party already has all places that it may have.
    Party,
    /// The client already has as many places as it may.
    Client,
}

impl Refusal {
    /// The name in logs.
    pub(in crate::gateway) const fn name(self) -> &'static str {
        match self {
            Self::Party => "too_many_flows",
            Self::Client => "too_many_flows_of_one_client",
        }
    }
}

#[derive(Debug)]
struct Table {
    places: Shares<Party>,
    per_client: usize,
    clients: BTreeMap<(Party, Client), usize>,
    next: u64,
    /// Newcomers, in the order of their arrival.
    newcomers: BTreeMap<(Party, u64), Newcomer>,
    newcomers_of: BTreeMap<(Party, Client, u64), Newcomer>,
}

/// The places of a gateway.
#[derive(Clone, Debug)]
pub(in crate::gateway) struct Admission(Rc<RefCell<Table>>);

/// The parties that a configuration lets have flows.
fn parties(config: &GatewayConfig) -> Vec<Party> {
    let onward = config.egress.relay.iter();
    let onward = onward.filter_map(|name| Some(config.route_to(name)?.peer));
    let entered = (config.forwards.iter().map(|entry| entry.route.peer))
        .chain(config.socks.iter().map(|entry| entry.route.peer))
        .chain(config.transparent.iter().map(|entry| entry.route.peer))
        .chain(onward)
        .chain(config.tunnels.iter().map(|tunnel| tunnel.peer));
    let tunnels = config.tunnels.iter().map(|tunnel| tunnel.peer);
    let asking = if config.egress.allow.is_empty() && config.egress.relay.is_empty() {
        0..0
    } else {
        0..config.peers.len()
    };
    entered
        .map(|peer| Party::new(peer, Role::Opener))
        .chain(
            asking
                .chain(tunnels)
                .map(|peer| Party::new(peer, Role::Acceptor)),
        )
        .collect()
}

impl Admission {
    pub(in crate::gateway) fn new(config: &GatewayConfig) -> Self {
        let admission = Self(Rc::new(RefCell::new(Table {
            places: Shares::new(config.limits.flows),
            per_client: config.limits.flows_per_client.unwrap_or(usize::MAX),
            clients: BTreeMap::new(),
            next: 0,
            newcomers: BTreeMap::new(),
            newcomers_of: BTreeMap::new(),
        })));
        admission.follow(config);
        admission
    }

    /// Another configuration is in use: reserves go to its parties.
    pub(in crate::gateway) fn follow(&self, config: &GatewayConfig) {
        self.0.borrow_mut().places.entitle(parties(config));
    }

    /// A place for `client`, which is known only where it came in.
    pub(in crate::gateway) fn admit(
        &self,
        party: Party,
        client: Option<Client>,
    ) -> Result<Permit, Refusal> {
        let table = self.0.borrow();
        let room = table.places.room(party);
        let all = room + table.places.held(party);
        let is_scarce = room <= all / OPEN_PART;
        let held = client.and_then(|client| table.clients.get(&(party, client)));
        let held = held.copied().unwrap_or(0);
        // Two flows of one client are as many as any program takes for granted.
        let is_greedy = is_scarce && held > 1.max(room / SCARCE_PART);
        if held > 0 && (is_greedy || held >= table.per_client) {
            return Err(Refusal::Client);
        }
        if room == 0 {
            return Err(Refusal::Party);
        }
        drop(table);
        Ok(self.permit(party, client))
    }

    /// A place for a flow that is there already, whether there is room or not.
    pub(in crate::gateway) fn permit(&self, party: Party, client: Option<Client>) -> Permit {
        let mut table = self.0.borrow_mut();
        table.places.take(party, 1);
        if let Some(client) = client {
            *table.clients.entry((party, client)).or_default() += 1;
        }
        let number = table.next;
        table.next += 1;
        drop(table);
        Permit {
            places: self.clone(),
            party,
            client,
            number,
        }
    }

    /// The oldest newcomer of a party, or of one of its clients. It is no newcomer any more.
    pub(super) fn take_oldest(&self, party: Party, client: Option<Client>) -> Option<Newcomer> {
        let mut table = self.0.borrow_mut();
        match client {
            None => {
                let of_party = (party, 0)..=(party, u64::MAX);
                let ((_, number), oldest) = table.newcomers.range(of_party).next()?;
                let (number, oldest) = (*number, *oldest);
                table.newcomers.remove(&(party, number));
                Some(oldest)
            }
            Some(client) => {
                let of_client = (party, client, 0)..=(party, client, u64::MAX);
                let ((.., number), oldest) = table.newcomers_of.range(of_client).next()?;
                let (number, oldest) = (*number, *oldest);
                table.newcomers_of.remove(&(party, client, number));
                table.newcomers.remove(&(party, number));
                Some(oldest)
            }
        }
    }

    /// Places taken.
    #[cfg(test)]
    pub(in crate::gateway) fn used(&self) -> usize {
        self.0.borrow().places.used()
    }
}

/// A place that is taken for as long as this is held.
#[derive(Debug)]
pub(in crate::gateway) struct Permit {
    places: Admission,
    party: Party,
    client: Option<Client>,
    number: u64,
}

impl Permit {
    /// From here on `newcomer` has the place, and may have to give it to another until it has spoken.
    pub(in crate::gateway) fn belongs_to(&self, newcomer: Newcomer) {
        let mut table = self.places.0.borrow_mut();
        table.newcomers.insert((self.party, self.number), newcomer);
        if let Some(client) = self.client {
            let key = (self.party, client, self.number);
            table.newcomers_of.insert(key, newcomer);
        }
    }

    pub(in crate::gateway) const fn party(&self) -> Party {
        self.party
    }

    pub(in crate::gateway) const fn client(&self) -> Option<Client> {
        self.client
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut table = self.places.0.borrow_mut();
        table.places.give_back(self.party, 1);
        table.newcomers.remove(&(self.party, self.number));
        let Some(client) = self.client else {
            return;
        };
        let key = (self.party, client, self.number);
        table.newcomers_of.remove(&key);
        if let Some(held) = table.clients.get_mut(&(self.party, client)) {
            *held -= 1;
            if *held == 0 {
                table.clients.remove(&(self.party, client));
            }
        }
    }
}

#[cfg(test)]
mod tests;
