//! Going on with the flows that the gateway before left.
//!
//! A flow's octets are in the store, its socket at the keeper; either may be missing.
//!
//! | octets | socket | the flow |
//! |---|---|---|
//! | there or none yet | there | goes on; the kernel's counters say where |
//! | there | lost (reboot, keeper ended) | drained towards the destination, then reset |
//! | damaged after some | there | goes on if the client's were all before the damage, else reset on both sides |
//! | damaged after some | lost | drained up to the damage, then reset |
//! | damaged | any | reset on both sides |

use super::admission::Party;
use super::floor::Floor;
use super::flow::{Body, NewFlow};
use super::flow_record::FlowRecord;
use super::keeping::Found;
use super::stream::Stream;
use super::traffic::Traffic;
use crate::custody::FlowStore;
use crate::gateway::config::GatewayConfig;
use crate::gateway::sockets::{Target, kernel};
use crate::keeper::{Position, TakenSocket};
use fulmar_proto::machine::PathId;
use fulmar_proto::splice::{FlowId, FlowKind, ResetCode, Restored, Role};
use fulmar_proto::units::ByteCount;
use std::collections::BTreeMap;
use std::net::TcpStream;

/// The reason why a flow cannot go on.
type Problem = &'static str;

/// A flow as it was found.
struct Left {
    id: FlowId,
    record: FlowRecord,
    kept: Option<FlowStore>,
    socket: Option<(TcpStream, Position)>,
}

impl Traffic {
    /// Takes up all flows that were found. Flows that cannot go on are reset, each with a line in the log.
    pub(in crate::gateway) fn restore(&mut self, floor: &mut Floor<'_>, found: Found) {
        let mut sockets: BTreeMap<FlowId, TakenSocket> = BTreeMap::new();
        for taken in found.taken {
            sockets.insert(taken.flow, taken);
        }
        for damaged in found.recovery.damaged {
            tracing::error!(event = "custody_damaged", problem = %damaged);
            let taken = sockets.remove(&damaged.flow);
            // The header may be the damaged part; the keeper has the same record.
            let noted = taken.as_ref().map(|taken| &taken.record.note);
            let noted = noted.and_then(|note| FlowRecord::decode(note));
            let record = damaged.record.as_deref().and_then(FlowRecord::decode);
            let record = record.or(noted);
            if let Some(record) = record {
                say_lost(floor, damaged.flow, &record);
            }
            self.give_up_found(damaged.flow, taken.map(|taken| taken.socket));
        }
        let (mut resumed, mut drained) = (0_u32, 0_u32);
        let mut relayed = Vec::new();
        for recovered in found.recovery.flows {
            let id = recovered.store.flow();
            if let Some(damage) = recovered.damage {
                tracing::error!(event = "custody_damaged", problem = %damage);
            }
            if recovered.torn_bytes > 0 {
                let bytes = recovered.torn_bytes;
                tracing::warn!(event = "custody_torn", flow = %id, bytes);
            }
            let record = FlowRecord::decode(recovered.store.record());
            if let Some(record) = record.filter(|record| record.partner.is_some()) {
                relayed.push((record, recovered.store));
                continue;
            }
            let taken = sockets.remove(&id);
            let went_on = taken.is_some();
            if self.take_up(floor, id, Some(recovered.store), taken) {
                resumed += u32::from(went_on);
                drained += u32::from(!went_on);
            }
        }
        resumed += self.restore_relays(floor, relayed);
        for (id, taken) in sockets {
            resumed += u32::from(self.take_up(floor, id, None, Some(taken)));
        }
        if resumed + drained > 0 {
            tracing::info!(event = "flows_restored", resumed, drained);
        }
    }

    fn take_up(
        &mut self,
        floor: &mut Floor<'_>,
        id: FlowId,
        kept: Option<FlowStore>,
        taken: Option<TakenSocket>,
    ) -> bool {
        let record = taken
            .as_ref()
            .and_then(|taken| FlowRecord::decode(&taken.record.note))
            .or_else(|| FlowRecord::decode(kept.as_ref()?.record()));
        let position = taken
            .as_ref()
            .map(|taken| taken.record.baseline.position(&taken.socket));
        let socket = taken.map(|taken| {
            self.keeping.has(id, taken.record);
            taken.socket
        });
        let outcome = match (record, position.transpose()) {
            (None, _) => Err((socket, kept, "its record cannot be read")),
            (Some(record), Err(_)) => {
                say_lost(floor, id, &record);
                Err((socket, kept, "its socket cannot be asked"))
            }
            (Some(record), Ok(position)) => {
                let end = kept.as_ref().map_or(0, FlowStore::end);
                if position.is_some_and(|position| position.taken > end) {
                    say_lost(floor, id, &record);
                    Err((socket, kept, "octets of its client were not kept"))
                } else if record.held && position.is_some_and(|position| position.given > 0) {
                    // These octets may be a reply, which must not be taken for the beginning of the destination's
                    // answer.
                    say_lost(floor, id, &record);
                    Err((socket, kept, "its client was told what nobody noted"))
                } else if peer_of(floor.config, &record).is_none() {
                    Err((socket, kept, "its peer is not configured any more"))
                } else {
                    let left = Left {
                        id,
                        record,
                        kept,
                        socket: socket.zip(position),
                    };
                    self.go_on(floor, left)
                        .map_err(|problem| (None, None, problem))
                }
            }
        };
        match outcome {
            Ok(()) => true,
            Err((socket, kept, problem)) => {
                tracing::error!(event = "flow_not_restored", flow = %id, problem);
                self.give_up_found(id, socket);
                // These octets reach nobody, and are nowhere else.
                if let Some(kept) = kept {
                    kept.set_aside();
                }
                false
            }
        }
    }

    fn go_on(&mut self, floor: &mut Floor<'_>, left: Left) -> Result<(), Problem> {
        let Left {
            id,
            record,
            kept,
            socket,
        } = left;
        let peer = peer_of(floor.config, &record).ok_or("its peer is not configured any more")?;
        floor.report_link(peer);
        let known = floor
            .config
            .classes
            .iter()
            .find(|c| c.flow.id == record.class.id);
        let keep = known.map_or(ByteCount(u64::MAX), |class| class.keep);
        let flow = (id, record.clone());
        let budget = self.disk_budget.of(peer);
        let custody = self.keeping.custody(flow, kept, keep, budget);
        let custody = custody.ok_or("there is no store")?;
        let stream = Stream::restored(socket, custody, &record);
        let (kept_from, accepted) = stream.custody_range();
        let restored = Restored {
            flow: id,
            peer: path(peer),
            role: record.role,
            destination: record.destination.clone(),
            class: record.class,
            bound: record.bound.filter(|_| record.role == Role::Acceptor),
            received: stream.delivered(),
            kept_from,
            accepted,
        };
        let token = floor.sockets.token(Target::Flow(id));
        let watched = match stream.socket() {
            Some(socket) => kernel::prepare(socket)
                .and_then(|()| floor.sockets.poller.watch_edges(socket, token)),
            None => Ok(()),
        };
        let party = Party::new(peer, record.role);
        let client = stream.socket().filter(|_| record.role == Role::Opener);
        let client = client.and_then(|client| client.peer_addr().ok());
        let new = NewFlow {
            kind: FlowKind::Stream,
            peer,
            class: record.class,
            destination: record.destination,
            proxied: record.held,
            entered: record.role == Role::Opener,
            body: Body::Stream(stream),
            token: Some(token),
            // The flow had a place before, and keeps it.
            permit: (self.admission).permit(party, client.map(|client| client.ip().into())),
        };
        self.flows.insert(floor.now, id, new);
        if record.role == Role::Opener {
            self.flows
                .set_patience(id, floor.now + floor.config.limits.tcp_silent);
        }
        let goes_on =
            watched.is_ok() && floor.link.inner_mut().restore(floor.now, restored).is_ok();
        self.opened(floor, id);
        if !goes_on {
            floor
                .link
                .inner_mut()
                .reset(floor.now, id, ResetCode::Shutdown);
            self.drop_flow(floor, id, "not_restored", true);
            return Err("there are too many flows");
        }
        if record.role == Role::Acceptor && self.note_begun(floor.config, id).is_err() {
            floor
                .link
                .inner_mut()
                .reset(floor.now, id, ResetCode::CustodyLost);
            self.drop_flow(floor, id, "not_restored", true);
            return Err("it cannot be written down");
        }
        Ok(())
    }

    /// Gives up a flow that was found. It is remembered, since its peer may ask for it again, and nobody knows
    /// which octets the destination was given.
    fn give_up_found(&mut self, id: FlowId, socket: Option<TcpStream>) {
        self.given_up.insert(id);
        self.keeping.forget(id);
        if let Some(socket) = socket {
            kernel::reset(socket);
        }
    }
}

/// Tells the far side that a flow is over.
fn say_lost(floor: &mut Floor<'_>, id: FlowId, record: &FlowRecord) {
    let Some(peer) = peer_of(floor.config, record) else {
        return;
    };
    let restored = Restored {
        flow: id,
        peer: path(peer),
        role: record.role,
        destination: record.destination.clone(),
        class: record.class,
        bound: record.bound,
        received: record.received,
        kept_from: 0,
        accepted: 0,
    };
    if floor.link.inner_mut().restore(floor.now, restored).is_ok() {
        floor
            .link
            .inner_mut()
            .reset(floor.now, id, ResetCode::CustodyLost);
    }
}

pub(super) fn peer_of(config: &GatewayConfig, record: &FlowRecord) -> Option<usize> {
    let mut peers = config.peers.iter();
    peers.position(|peer| peer.name == record.peer)
}

pub(super) fn path(peer: usize) -> PathId {
    PathId(u32::try_from(peer).unwrap_or(u32::MAX))
}
