//! The addresses of peers with names, looked up again and again: a gateway may start before the network does.
//!
//! # Promises
//! - Neither the start nor the loop waits for a name. No name waits for another, unless as many names as the
//!   [`Resolver`] has threads are without an answer.
//! - A name that cannot be resolved is tried again, ever more rarely, at least once in
//!   [`PAUSE_MAX`] after the system gave up; each try is a line of the log.
//! - A name that was resolved is looked up again now and then, and after a reload: the peer may have moved.

use crate::gateway::config::PeerSettings;
use crate::gateway::sockets::{Answer, Question, Resolver};
use fulmar_proto::splice::{Destination, Host};
use fulmar_proto::units::{Duration, Instant, format_duration};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// The pause after the first failure, and the longest after further ones.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// The pause between looks at a name that was resolved.
const LOOK_AGAIN: Duration = Duration::from_secs(300);

/// A peer's address in the form of the carrier's socket: on a socket for both families, IPv4 hosts have mapped
/// addresses.
pub(in crate::gateway) fn usable(
    found: impl Iterator<Item = SocketAddr>,
    v6: bool,
) -> Result<SocketAddr, io::Error> {
    let mut any = false;
    let mut found = found.inspect(|_| any = true);
    let usable = found.find(|found| v6 || found.is_ipv4());
    let usable = usable.ok_or_else(|| {
        io::Error::other(if any {
            "it has no IPv4 address, and the gateway listens on IPv4 only; write listen = \":4914\""
        } else {
            "no address belongs to that name"
        })
    })?;
    Ok(match usable.ip() {
        IpAddr::V4(v4) if v6 => (v4.to_ipv6_mapped(), usable.port()).into(),
        _ => usable,
    })
}

/// A name that is looked for.
#[derive(Debug)]
struct Sought {
    peer: String,
    address: Destination,
    known: Option<SocketAddr>,
    pause: Duration,
    turn: Turn,
}

/// A name's next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// The name is to be asked for at this time.
    At(Instant),
    /// The name waits for the answer to this question.
    Answer(u64),
}

impl Sought {
    fn new(now: Instant, peer: &PeerSettings, address: &Destination) -> Self {
        Self {
            peer: peer.name.clone(),
            address: address.clone(),
            known: None,
            pause: PAUSE_FIRST,
            turn: Turn::At(now),
        }
    }

    /// The name's address, if it is a new one.
    fn take(&mut self, now: Instant, found: io::Result<SocketAddr>) -> Option<SocketAddr> {
        match found {
            Ok(address) => {
                self.pause = PAUSE_FIRST;
                self.turn = Turn::At(now + LOOK_AGAIN);
                let is_news = self.known.replace(address) != Some(address);
                is_news.then_some(address)
            }
            Err(error) => {
                self.turn = Turn::At(now + self.pause);
                let again_in = format_duration(self.pause);
                self.pause = (self.pause * 2).min(PAUSE_MAX);
                let (peer, address) = (&self.peer, &self.address);
                tracing::warn!(event = "peer_unresolved", peer, %address, %error, again_in);
                None
            }
        }
    }
}

/// The names of peers, each looked up on its own.
#[derive(Debug)]
pub(in crate::gateway) struct PeerNames {
    sought: BTreeMap<usize, Sought>,
    /// Its answers are recognised by the numbers of the questions: a name may have been replaced meanwhile.
    resolver: Resolver<(usize, u64)>,
    asked: u64,
    v6: bool,
}

impl PeerNames {
    /// An empty set of names. Addresses are made for a socket of IPv6, if the carrier's is one (`v6`).
    pub(in crate::gateway) const fn new(resolver: Resolver<(usize, u64)>, v6: bool) -> Self {
        Self {
            sought: BTreeMap::new(),
            resolver,
            asked: 0,
            v6,
        }
    }

    /// Looks for those of `peers` that have names from now on. Names that it knows already are looked up again at once.
    pub(in crate::gateway) fn follow(&mut self, now: Instant, peers: &[PeerSettings]) {
        let mut before = core::mem::take(&mut self.sought);
        for (index, peer) in peers.iter().enumerate().filter(|(_, p)| !p.is_removed) {
            let named = |address: &&Destination| matches!(address.host, Host::Name(_));
            let Some(address) = peer.address.as_ref().filter(named) else {
                continue;
            };
            let known = before.remove(&index).filter(|it| it.address == *address);
            let mut sought = known.unwrap_or_else(|| Sought::new(now, peer, address));
            if let Turn::At(at) = &mut sought.turn {
                *at = now;
                sought.pause = PAUSE_FIRST;
            }
            self.sought.insert(index, sought);
        }
    }

    /// The next peer with a new address, and that address. Asks for the names that are due before it returns `None`.
    pub(in crate::gateway) fn poll(&mut self, now: Instant) -> Option<(usize, SocketAddr)> {
        while let Some(Answer { tag, addresses }) = self.resolver.poll() {
            let (peer, asked) = tag;
            let found = addresses.and_then(|found| usable(found.into_iter(), self.v6));
            let sought = self.sought.get_mut(&peer);
            let sought = sought.filter(|sought| sought.turn == Turn::Answer(asked));
            if let Some(address) = sought.and_then(|sought| sought.take(now, found)) {
                return Some((peer, address));
            }
        }
        for (&peer, sought) in &mut self.sought {
            if !matches!(sought.turn, Turn::At(at) if at <= now) {
                continue;
            }
            let Host::Name(name) = &sought.address.host else {
                continue;
            };
            let question = Question {
                peer,
                tag: (peer, self.asked),
                name: name.as_str().to_owned(),
                port: sought.address.port,
            };
            if self.resolver.ask(question) {
                sought.turn = Turn::Answer(self.asked);
            } else {
                let error = io::Error::other("the system gives no thread to look for it");
                sought.take(now, Err(error));
            }
            self.asked += 1;
        }
        None
    }

    /// The time at which the next name is to be asked for.
    pub(in crate::gateway) fn next_look(&self) -> Option<Instant> {
        let turns = self.sought.values().map(|sought| sought.turn);
        let times = turns.filter_map(|turn| match turn {
            Turn::At(at) => Some(at),
            Turn::Answer(_) => None,
        });
        times.min()
    }
}

#[cfg(test)]
mod tests;
