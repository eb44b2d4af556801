//! The sockets that the gateway waits for, and whose each is.

use super::poller::{Poller, Token};
use fulmar_proto::splice::FlowId;
use std::collections::BTreeMap;

/// The owner of a ready socket.
#[derive(Clone, Copy, Debug)]
pub(in crate::gateway) enum Target {
    Entry,
    Negotiation,
    /// The relay or the control connection of an association.
    Association(Token),
    Flow(FlowId),
    Keeper,
    /// The kernel's word of changes at interfaces.
    Interfaces,
    /// The device of the tunnel in this place.
    Tunnel(usize),
    /// The rules that divert the TCP of the tunnel in this place.
    Diversion(usize),
    /// The source of the words of the link in this place.
    ToldLink(usize),
}

/// The poller, with the owners of the sockets that it watches.
#[derive(Debug)]
pub(in crate::gateway) struct Sockets {
    pub(in crate::gateway) poller: Poller,
    targets: BTreeMap<Token, Target>,
    next_token: u64,
    /// Whether sockets may be ready that the poller was not asked for.
    is_ready: bool,
}

impl Sockets {
    pub(in crate::gateway) const fn new(poller: Poller) -> Self {
        Self {
            poller,
            targets: BTreeMap::new(),
            next_token: 0,
            is_ready: true,
        }
    }

    /// A new name for a socket of `target`.
    pub(in crate::gateway) fn token(&mut self, target: Target) -> Token {
        self.token_for(|_| target)
    }

    /// A new name for a socket whose owner is known by that name.
    pub(in crate::gateway) fn token_for(&mut self, target: impl FnOnce(Token) -> Target) -> Token {
        let token = Token(self.next_token);
        self.next_token += 1;
        self.targets.insert(token, target(token));
        token
    }

    /// Forgets a socket, of which the poller may still tell in this very turn.
    pub(in crate::gateway) fn forget(&mut self, token: Token) {
        self.targets.remove(&token);
    }

    pub(in crate::gateway) fn target(&self, token: Token) -> Option<Target> {
        self.targets.get(&token).copied()
    }

    /// Makes the loop look at the sockets again: those watched for levels may have more.
    pub(in crate::gateway) const fn look_again(&mut self) {
        self.is_ready = true;
    }

    /// Whether sockets may be ready; not again until [`Sockets::look_again`].
    pub(in crate::gateway) const fn take_ready(&mut self) -> bool {
        core::mem::replace(&mut self.is_ready, false)
    }

    pub(in crate::gateway) const fn is_ready(&self) -> bool {
        self.is_ready
    }
}
