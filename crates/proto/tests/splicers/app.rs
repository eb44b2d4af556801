//! The application of one flow at one side, and its work at each turn.

use fulmar_proto::machine::PathId;
use fulmar_proto::splice::{Destination, FlowClass, FlowEvent, FlowId, Role, Splicer};
use fulmar_proto::units::Instant;
use std::net::SocketAddr;

/// The application of one flow at one side.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each one bit of the state"
)]
pub(crate) struct App {
    pub(crate) peer: Option<PathId>,
    pub(crate) role: Option<Role>,
    pub(crate) class: FlowClass,
    pub(crate) destination: Option<Destination>,
    pub(crate) bound: Option<SocketAddr>,
    /// All octets that were, or are to be, given to the splicer.
    pub(crate) outgoing: Vec<u8>,
    pub(crate) sent: usize,
    /// The greatest number of octets ever sent.
    pub(crate) most: usize,
    /// Whether to finish after the last octet.
    pub(crate) finishes: bool,
    pub(crate) finished: bool,
    pub(crate) received: Vec<u8>,
    /// Whether the local host has stopped reading.
    pub(crate) holds: bool,
    /// Whether the local host reads, but does not acknowledge.
    pub(crate) withholds: bool,
    pub(crate) delivered: u64,
    pub(crate) peer_finished: bool,
    /// The number of times that the far side's local host was reported gone.
    pub(crate) told_to_stop: u32,
    pub(crate) messages: Vec<Vec<u8>>,
    pub(crate) last: Option<FlowEvent>,
    pub(crate) resumed: Vec<u64>,
    pub(crate) echoes: bool,
}

impl App {
    pub(crate) fn pump(&mut self, now: Instant, id: FlowId, splicer: &mut Splicer) {
        if self.last.is_some() {
            return;
        }
        while !self.holds {
            let Some(octets) = splicer.peek(id) else {
                break;
            };
            let octets = octets.to_vec();
            self.received.extend_from_slice(&octets);
            if self.echoes {
                self.outgoing.extend_from_slice(&octets);
            }
            splicer.consume(now, id, octets.len());
        }
        while let Some(message) = splicer.poll_datagram(now, id) {
            if self.echoes {
                splicer.accept_datagram(now, id, &message);
            }
            self.messages.push(message);
        }
        if !self.withholds {
            splicer.delivered(now, id, self.received.len() as u64);
        }
        while self.sent < self.outgoing.len() {
            let room = splicer.capacity(id);
            let offered = &self.outgoing[self.sent..];
            let taken = splicer.accept(now, id, &offered[..offered.len().min(room)]);
            self.sent += taken;
            self.most = self.most.max(self.sent);
            if taken == 0 {
                break;
            }
        }
        let done = self.finishes || (self.echoes && self.peer_finished);
        if done && !self.finished && self.sent == self.outgoing.len() {
            self.finished = true;
            splicer.finish(now, id);
        }
    }
}
