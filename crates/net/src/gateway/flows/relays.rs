//! Flows that this gateway carries on to another: the octets between two flows, and what outlives the gateway.
//!
//! Each of the two flows has a file of its own in the store, with the octets that it is to send and the name of the other
//! flow. Both are written before the flow that was asked for is accepted. When one of them is over in order, the other's
//! file says so before its own is deleted. So the next start finds either both, or one that says what became of the other;
//! one whose other is missing without that word lost it, and is cut off when its octets have left.

use super::admission::Party;
use super::custody::{Custody, SpentCustody};
use super::floor::Floor;
use super::flow::{Body, Messages, NewFlow, RelayedFlow, Wish};
use super::flow_record::{FlowRecord, Partner};
use super::relayed::RelayEntry;
use super::restore::{path, peer_of};
use super::traffic::Traffic;
use crate::custody::FlowStore;
use crate::gateway::config::{ClassSettings, CustodyPlace};
use fulmar_proto::splice::{
    Acknowledge, FlowClass, FlowEvent, FlowId, FlowKind, Host, RefuseCode, ResetCode, Restored,
    Role, StreamRelay,
};
use fulmar_proto::units::{ByteCount, Duration};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The pauses before a store is asked again whether octets have become safe, and whether other stores left room.
const CHECK_SAFE_AFTER: Duration = Duration::from_millis(2);
const CHECK_ROOM_AFTER: Duration = Duration::from_millis(50);

/// The address that a flow's opener is told while nobody has connected to the destination.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// A flow that goes on to another gateway.
#[derive(Debug)]
pub(in crate::gateway) struct Onward {
    pub(in crate::gateway) wish: Wish,
    /// The peer that it came from.
    pub(in crate::gateway) from: usize,
}

/// Where octets of a flow that is carried on are kept, and when they count as delivered. `known` is its class here.
fn promise(
    known: Option<&ClassSettings>,
    class: &FlowClass,
    (keeps_on_disk, is_from_source): (bool, bool),
) -> (CustodyPlace, Acknowledge) {
    let custody = known.map_or(CustodyPlace::None, |known| known.custody);
    if keeps_on_disk {
        (CustodyPlace::Disk, Acknowledge::Custody)
    } else if class.durable || !class.resume || custody == CustodyPlace::None || !is_from_source {
        // The source counts on a disk, and there is none here; or it gives nothing into custody; or another gateway passes
        // on what is said here as the destination's word. The source keeps its octets until the destination has them.
        (CustodyPlace::Memory, Acknowledge::Destination)
    } else {
        (CustodyPlace::Memory, Acknowledge::Custody)
    }
}

/// The flows that are over, as the file of their partner says, although their own is still there.
fn over_already(found: impl Iterator<Item = (FlowId, Option<Partner>)>) -> Vec<FlowId> {
    let found: Vec<_> = found.collect();
    let notes = |other| found.contains(&(other, Some(Partner::Over)));
    let over = found.iter().filter_map(|(id, partner)| match partner {
        Some(Partner::Flow(other)) if notes(*other) => Some(*id),
        _ => None,
    });
    over.collect()
}

impl Traffic {
    /// Carries flow `id` on.
    pub(in crate::gateway) fn begin_relay(
        &mut self,
        floor: &mut Floor<'_>,
        id: FlowId,
        onward: &Onward,
    ) {
        let party = Party::new(onward.wish.peer, Role::Opener);
        let Ok(permit) = self.admit(floor, (party, None), |_, _, _| false) else {
            return self.give_up(floor, id, RefuseCode::TooMany);
        };
        let Some(next) = self.open(floor, &onward.wish) else {
            return self.give_up(floor, id, RefuseCode::TooMany);
        };
        let (bodies, is_accepted) = match onward.wish.kind {
            FlowKind::Datagrams => {
                let bodies = [next, id].map(|other| Body::Messages(Messages::Onward(other)));
                (bodies, true)
            }
            FlowKind::Stream => match self.relay_entry(floor, id, (next, onward)) {
                Ok(entry) => {
                    let relayed = RelayedFlow {
                        is_durable: entry.is_durable(),
                        kept_bytes: 0,
                    };
                    let is_accepted = entry.is_accepted;
                    self.relays.add(entry);
                    ([relayed; 2].map(Body::Relayed), is_accepted)
                }
                Err(code) => {
                    let splicer = floor.link.inner_mut();
                    splicer.reset(floor.now, next, ResetCode::Shutdown);
                    return self.give_up(floor, id, code);
                }
            },
        };
        let [first_body, next_body] = bodies;
        let new = NewFlow {
            kind: onward.wish.kind,
            peer: onward.wish.peer,
            class: onward.wish.class,
            destination: onward.wish.to.clone(),
            proxied: false,
            entered: true,
            body: next_body,
            token: None,
            permit,
        };
        self.flows.insert(floor.now, next, new);
        self.opened(floor, next);
        if let Some(flow) = self.flows.get_mut(id) {
            flow.body = first_body;
        }
        if is_accepted {
            floor.link.inner_mut().connected(floor.now, id, NOWHERE);
        }
        self.flows.wake(id);
    }

    /// The relay between flow `id` and `next`. Both are written down before, if it outlives the gateway.
    fn relay_entry(
        &self,
        floor: &Floor<'_>,
        id: FlowId,
        (next, onward): (FlowId, &Onward),
    ) -> Result<RelayEntry, RefuseCode> {
        let flow = self.flows.get(id).ok_or(RefuseCode::Invalid)?;
        let class = &flow.class;
        let known = floor
            .config
            .classes
            .iter()
            .find(|it| it.flow.id == class.id);
        let keeps_here = self.keeps_on_disk(floor.config, class);
        let is_from_source = match &flow.destination.host {
            Host::Beyond(beyond) => beyond.passed() == 0,
            Host::Address(_) | Host::Name(_) | Host::Tunnel(_) => true,
        };
        let (place, acknowledge) = promise(known, class, (keeps_here, is_from_source));
        let keep = known.map_or(class.window, |known| known.keep);
        let record = |role, (peer, class), destination, partner| FlowRecord {
            role,
            peer: floor.config.peer_name(peer).to_owned(),
            destination,
            class,
            bound: None,
            received: 0,
            preface: Vec::new(),
            held: false,
            partner: Some(Partner::Flow(partner)),
        };
        let wish = &onward.wish;
        let outward = record(Role::Opener, (wish.peer, wish.class), wish.to.clone(), id);
        let asked = (onward.from, flow.class);
        let back = record(Role::Acceptor, asked, flow.destination.clone(), next);
        // The next flow first: without its file, the first would be one whose other was lost.
        let to_next = self.relay_store(place, (next, outward), (onward.wish.peer, keep))?;
        let to_first = self.relay_store(place, (id, back), (onward.from, keep));
        match to_first {
            Ok(to_first) => Ok(RelayEntry {
                relay: StreamRelay::new(acknowledge, [id, next]),
                stores: [to_next, to_first],
                is_accepted: acknowledge == Acknowledge::Custody,
            }),
            Err(code) => {
                to_next.forget();
                Err(code)
            }
        }
    }

    /// A store of octets to the flow of this record, which is written down if it is on the disk.
    fn relay_store(
        &self,
        place: CustodyPlace,
        (id, record): (FlowId, FlowRecord),
        (peer, keep): (usize, ByteCount),
    ) -> Result<Box<dyn Custody>, RefuseCode> {
        if place != CustodyPlace::Disk {
            return Ok(self.memory(peer, keep));
        }
        let budget = self.disk_budget.of(peer);
        let store = (self.keeping).custody((id, record), None, keep, budget);
        let mut store = store.ok_or(RefuseCode::NotKept)?;
        match store.note_begun() {
            Ok(()) => Ok(store),
            Err(error) => {
                tracing::error!(event = "relay_not_noted", %id, %error);
                store.forget();
                Err(RefuseCode::NotKept)
            }
        }
    }

    /// Handles an event of a relay's flow; `false` if it is of another.
    pub(in crate::gateway) fn relay_event(
        &mut self,
        floor: &mut Floor<'_>,
        event: &FlowEvent,
    ) -> bool {
        let id = event.flow();
        // A peer chooses the names of its flows: none of them reaches a relay.
        if matches!(event, FlowEvent::Requested { .. }) {
            return false;
        }
        let Some(entry) = self.relays.get_mut(id) else {
            return false;
        };
        let [first, next] = entry.relay.flows();
        let splicer = floor.link.inner_mut();
        let mut refused_first = None;
        match event {
            FlowEvent::Connected { bound, .. } if !entry.is_accepted => {
                entry.is_accepted = true;
                splicer.connected(floor.now, first, *bound);
            }
            FlowEvent::Refused { code, .. } if !entry.is_accepted => {
                splicer.refused(floor.now, first, *code);
                refused_first = Some(code.name());
            }
            _ => {}
        }
        let [one, two] = &mut entry.stores;
        let noted = (entry.relay).on_event(floor.now, event, splicer, [one, two]);
        if let Err(error) = noted {
            self.fail_relay(floor, id, &error);
            return true;
        }
        let ended = match event {
            FlowEvent::Closed(_) => {
                // Everything came from it; the other's file says so before its own is deleted.
                let place = usize::from(id == next);
                let [kept, own] = if place == 0 { [one, two] } else { [two, one] };
                let end = own.end();
                let spent = core::mem::replace(own, Box::new(SpentCustody { end }));
                match kept.note_partner_over(end) {
                    Ok(()) => spent.forget(),
                    // Its file stays, or the next start would take it for lost.
                    Err(error) => tracing::error!(event = "custody_failed", flow = %id, %error),
                }
                Some(("finished", false))
            }
            FlowEvent::Reset { code, .. } => Some((code.name(), true)),
            FlowEvent::Refused { code, .. } => Some((code.name(), true)),
            _ => None,
        };
        if let Some((reason, rst)) = ended {
            self.drop_flow(floor, id, reason, rst);
        }
        if let Some(reason) = refused_first {
            self.drop_flow(floor, first, reason, true);
        }
        self.wake_relay(id);
        true
    }

    /// Gives a turn to whichever flow of a relay is left.
    fn wake_relay(&mut self, id: FlowId) {
        let Some(entry) = self.relays.get_mut(id) else {
            return;
        };
        let flows = entry.relay.flows();
        if entry.relay.is_done() {
            return self.relays.remove(id);
        }
        for flow in flows {
            self.flows.wake(flow);
        }
    }

    /// Gives a relay its turn.
    pub(super) fn relay_turn(&mut self, floor: &mut Floor<'_>, id: FlowId) {
        let Some(entry) = self.relays.get_mut(id) else {
            return;
        };
        let flows = entry.relay.flows();
        let splicer = floor.link.inner_mut();
        let [one, two] = &mut entry.stores;
        let turn = match entry.relay.pump(floor.now, splicer, [one, two]) {
            Ok(turn) => turn,
            Err(error) => return self.fail_relay(floor, id, &error),
        };
        let ends = entry.stores.each_ref().map(|store| store.end());
        let kept = entry.stores.each_ref().map(|it| it.end() - it.start());
        for (place, flow) in flows.into_iter().enumerate() {
            // To a flow leaves what came from the other.
            if let Some(flow) = self.flows.get_mut(flow) {
                flow.moved = (ends[1 - place], ends[place]);
                if let Body::Relayed(relayed) = &mut flow.body {
                    relayed.kept_bytes = kept[1 - place];
                }
            }
        }
        if let Some((flow, code)) = turn.cut {
            return self.drop_flow(floor, flow, code.name(), true);
        }
        if turn.more {
            self.flows.wake(id);
        }
        let pause = match (turn.has_unsafe, turn.lacks_room) {
            (true, _) => Some(CHECK_SAFE_AFTER),
            (false, true) => Some(CHECK_ROOM_AFTER),
            (false, false) => None,
        };
        let check = pause.map(|pause| floor.now + pause);
        self.flows.set_timer(id, check);
    }

    /// Cuts off both flows of a relay whose store fails.
    fn fail_relay(&mut self, floor: &mut Floor<'_>, id: FlowId, error: &io::Error) {
        tracing::error!(event = "custody_failed", flow = %id, %error);
        let Some(entry) = self.relays.get_mut(id) else {
            return;
        };
        for flow in entry.relay.flows() {
            let splicer = floor.link.inner_mut();
            splicer.reset(floor.now, flow, ResetCode::CustodyLost);
            self.drop_flow(floor, flow, ResetCode::CustodyLost.name(), true);
        }
    }

    /// Handles that a relay's flow is gone here.
    pub(super) fn relayed_flow_dropped(&mut self, floor: &mut Floor<'_>, id: FlowId) {
        if let Some(entry) = self.relays.get_mut(id) {
            let splicer = floor.link.inner_mut();
            (entry.relay).cut(floor.now, id, ResetCode::Shutdown, splicer);
            self.wake_relay(id);
        }
    }

    /// Takes up the relays of the gateway before. Returns the number of flows that go on.
    pub(super) fn restore_relays(
        &mut self,
        floor: &mut Floor<'_>,
        found: Vec<(FlowRecord, FlowStore)>,
    ) -> u32 {
        let found = found
            .into_iter()
            .map(|(record, store)| (store.flow(), (record, store)));
        let mut found: BTreeMap<FlowId, (FlowRecord, FlowStore)> = found.collect();
        self.leave_out(floor, &mut found);
        let mut resumed = 0;
        while let Some((id, (record, store))) = found.pop_first() {
            let partner = record.partner;
            let other = match partner {
                Some(Partner::Flow(other)) => found.remove(&other).map(|it| (other, it)),
                _ => None,
            };
            let is_first = record.role == Role::Acceptor;
            let missing = match partner {
                Some(Partner::Flow(other)) => other,
                // Nobody has this name.
                _ => FlowId([0; 16]),
            };
            let other_id = other.as_ref().map_or(missing, |(other, _)| *other);
            let flows = if is_first {
                [id, other_id]
            } else {
                [other_id, id]
            };
            let mut relay = StreamRelay::new(Acknowledge::Custody, flows);
            let mine = (record.clone(), self.found_store(floor, id, (record, store)));
            let other = other.map(|(other, (record, store))| {
                (
                    record.clone(),
                    self.found_store(floor, other, (record, store)),
                )
            });
            if let (None, Some(Partner::Flow(lost))) = (&other, partner) {
                self.given_up.insert(lost);
            }
            if other.is_none() {
                relay = relay.without(other_id, partner == Some(Partner::Over));
            }
            let end = mine.0.received;
            let spent: Box<dyn Custody> = Box::new(SpentCustody { end });
            let (other_record, other_store) =
                other.map_or((None, spent), |(record, store)| (Some(record), store));
            let (my_record, my_store) = mine;
            let received = [other_store.end(), my_store.end()];
            let kept = [
                (my_store.start(), my_store.end()),
                (other_store.start(), other_store.end()),
            ];
            // A store holds what leaves on its flow, and its place is that of the flow where it came from.
            let stores = if is_first {
                [other_store, my_store]
            } else {
                [my_store, other_store]
            };
            self.relays.add(RelayEntry {
                relay,
                stores,
                is_accepted: true,
            });
            let records = [(id, Some(my_record)), (other_id, other_record)];
            for (place, (flow, record)) in records.into_iter().enumerate() {
                let Some(record) = record else {
                    continue;
                };
                let at = (received[place], kept[place]);
                resumed += u32::from(self.take_up_relayed(floor, (flow, record), at));
            }
            self.wake_relay(id);
        }
        resumed
    }

    /// Takes those out that are not gone on with: a flow whose end the other's file has noted, killed before its own file was
    /// deleted; and one whose peer is gone, whose octets are nowhere else.
    fn leave_out(
        &mut self,
        floor: &Floor<'_>,
        found: &mut BTreeMap<FlowId, (FlowRecord, FlowStore)>,
    ) {
        let over = over_already(found.iter().map(|(id, (record, _))| (*id, record.partner)));
        for id in over {
            if let Some((_, store)) = found.remove(&id)
                && let Err(error) = store.forget()
            {
                tracing::error!(event = "custody_not_deleted", flow = %id, %error);
            }
        }
        let is_gone =
            |(record, _): &(FlowRecord, FlowStore)| peer_of(floor.config, record).is_none();
        let gone: Vec<FlowId> = (found.iter().filter(|(_, it)| is_gone(it)))
            .map(|(id, _)| *id)
            .collect();
        for id in gone {
            if let Some((_, store)) = found.remove(&id) {
                let problem = "its peer is not configured any more";
                tracing::error!(event = "flow_not_restored", flow = %id, problem);
                self.given_up.insert(id);
                store.set_aside();
            }
        }
    }

    /// The store of a flow that was found.
    fn found_store(
        &self,
        floor: &Floor<'_>,
        id: FlowId,
        (record, store): (FlowRecord, FlowStore),
    ) -> Box<dyn Custody> {
        let class = record.class.id;
        let known = floor.config.classes.iter().find(|it| it.flow.id == class);
        let keep = known.map_or(ByteCount(u64::MAX), |class| class.keep);
        let budget = self
            .disk_budget
            .of(peer_of(floor.config, &record).unwrap_or_default());
        let end = store.end();
        let custody = (self.keeping).custody((id, record), Some(store), keep, budget);
        custody.unwrap_or_else(|| Box::new(SpentCustody { end }))
    }

    /// Goes on with one flow of a relay; `received` octets came from it, and those from the first to the second offset are
    /// kept for it. `false` if that is not possible: then it counts as cut off.
    fn take_up_relayed(
        &mut self,
        floor: &mut Floor<'_>,
        (id, record): (FlowId, FlowRecord),
        (received, (kept_from, accepted)): (u64, (u64, u64)),
    ) -> bool {
        let problem = match peer_of(floor.config, &record) {
            None => "its peer is not configured any more",
            Some(peer) => {
                floor.report_link(peer);
                let restored = Restored {
                    flow: id,
                    peer: path(peer),
                    role: record.role,
                    destination: record.destination.clone(),
                    class: record.class,
                    bound: (record.role == Role::Acceptor).then_some(NOWHERE),
                    received,
                    kept_from,
                    accepted,
                };
                let new = NewFlow {
                    kind: FlowKind::Stream,
                    peer,
                    class: record.class,
                    destination: record.destination,
                    proxied: false,
                    entered: record.role == Role::Opener,
                    body: Body::Relayed(RelayedFlow {
                        is_durable: true,
                        kept_bytes: accepted - kept_from,
                    }),
                    token: None,
                    permit: (self.admission).permit(Party::new(peer, record.role), None),
                };
                match floor.link.inner_mut().restore(floor.now, restored) {
                    Ok(()) => {
                        self.flows.insert(floor.now, id, new);
                        self.opened(floor, id);
                        return true;
                    }
                    Err(_) => "there are too many flows",
                }
            }
        };
        tracing::error!(event = "flow_not_restored", flow = %id, problem);
        self.given_up.insert(id);
        self.relayed_flow_dropped(floor, id);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_whose_end_its_partner_has_noted_is_over_whatever_their_names() {
        let [one, two, three] = [1, 2, 3].map(|name| FlowId([name; 16]));
        for (kept, ended) in [(one, two), (two, one)] {
            let found = [
                (kept, Some(Partner::Over)),
                (ended, Some(Partner::Flow(kept))),
                (three, Some(Partner::Flow(FlowId([9; 16])))),
            ];
            assert_eq!(over_already(found.into_iter()), [ended]);
        }
        let both = [
            (one, Some(Partner::Flow(two))),
            (two, Some(Partner::Flow(one))),
        ];
        assert!(over_already(both.into_iter()).is_empty());
    }

    #[test]
    fn memory_answers_only_to_the_source_itself() {
        let known = |custody| ClassSettings {
            name: "bulk".to_owned(),
            is_auto: false,
            flow: FlowClass::default(),
            custody,
            keep: ByteCount(1 << 20),
        };
        let memory = known(CustodyPlace::Memory);
        let class = FlowClass {
            resume: true,
            ..FlowClass::default()
        };
        let told = |class: &FlowClass, facts| promise(Some(&memory), class, facts).1;
        assert_eq!(told(&class, (false, true)), Acknowledge::Custody);
        assert_eq!(told(&class, (false, false)), Acknowledge::Destination);
        let on_disk = FlowClass {
            durable: true,
            ..class
        };
        assert_eq!(told(&on_disk, (false, true)), Acknowledge::Destination);
        assert_eq!(told(&on_disk, (true, false)), Acknowledge::Custody);
    }
}
