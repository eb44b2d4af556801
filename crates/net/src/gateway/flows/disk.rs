//! Custody of a flow on disk: octets survive the gateway.
//!
//! An opener's file begins with the first octet, so a full disk makes a new client wait like any other. An
//! acceptor's file begins before the destination is given anything, so that no later start connects to it a second
//! time. The limits do not hold for an acceptor's beginning. Where the disk itself has no room for it, the flow is
//! refused.
//!
//! The files of a peer's flows count against the peer's share of the store's limit.

use super::custody::{Budget, Custody};
use super::flow_record::{FlowRecord, Partner};
use crate::custody::{FlowStore, Store};
use fulmar_proto::splice::FlowId;
use fulmar_proto::units::ByteCount;
use std::io::{self, ErrorKind};
use std::rc::Rc;

/// One flow's octets in the gateway's store.
#[derive(Debug)]
pub(in crate::gateway) struct DiskCustody {
    store: Rc<Store>,
    flow: FlowId,
    record: FlowRecord,
    kept: Option<FlowStore>,
    limit: usize,
    /// The peer's share of the store, in octets of files.
    budget: Budget,
    /// The octets of `kept` in `budget`.
    counted: usize,
}

impl DiskCustody {
    /// The custody of a flow that may keep `limit` octets; `kept` is the flow's part of the store, if it was found
    /// there.
    pub(in crate::gateway) fn new(
        store: Rc<Store>,
        (flow, record): (FlowId, FlowRecord),
        kept: Option<FlowStore>,
        limit: ByteCount,
        budget: Budget,
    ) -> Self {
        let mut custody = Self {
            store,
            flow,
            record,
            kept,
            limit: limit.as_usize(),
            budget,
            counted: 0,
        };
        custody.count();
        custody
    }
}

impl DiskCustody {
    fn begin(&mut self) -> io::Result<()> {
        if self.kept.is_none() && self.room() > 0 {
            self.kept = self.store.begin(self.flow, 0, &self.record.encode())?;
            self.count();
        }
        Ok(())
    }

    /// Makes the budget follow the flow's files. A file without octets of use counts as a header: it is not cut at each
    /// release, and many quiet flows would use the share up with nothing.
    fn count(&mut self) {
        let files = self.kept.as_ref().map_or(0, |kept| {
            if kept.start() == kept.end() {
                FlowStore::EMPTY_BYTES
            } else {
                kept.used().as_usize()
            }
        });
        self.budget.exchange(self.counted, files);
        self.counted = files;
    }

    /// Octets that the limits of the store and of the peer's share leave.
    fn left(&self) -> usize {
        let share = FlowStore::room_in(self.budget.left() as u64);
        let store = self.kept.as_ref().map(FlowStore::room);
        if store == Some(0) || !self.store.has_room() {
            self.store.note_limit();
        } else if share == 0 && self.budget.is_first_refusal() {
            let (peer, files_bytes) = (&*self.record.peer, self.budget.held());
            tracing::warn!(event = "custody_share_reached", peer, files_bytes);
        }
        share.min(store.unwrap_or(share))
    }
}

impl Drop for DiskCustody {
    fn drop(&mut self) {
        self.budget.exchange(self.counted, 0);
    }
}

impl Custody for DiskCustody {
    fn append(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.begin()?;
        let room = self.room();
        let taken = match &mut self.kept {
            Some(kept) => kept.append(&octets[..octets.len().min(room)]),
            None => Ok(0),
        };
        self.count();
        Ok(taken?)
    }

    fn read(&mut self, from: u64, max: usize) -> io::Result<&[u8]> {
        match &mut self.kept {
            Some(kept) => Ok(kept.read(from, max)?),
            None => Ok(&[]),
        }
    }

    fn release(&mut self, to: u64) {
        if let Some(kept) = &mut self.kept {
            kept.release(to);
            self.count();
        }
    }

    fn room(&self) -> usize {
        let held = usize::try_from(self.end() - self.start()).unwrap_or(usize::MAX);
        let own = self.limit.saturating_sub(held);
        if own == 0 { 0 } else { own.min(self.left()) }
    }

    fn start(&self) -> u64 {
        self.kept.as_ref().map_or(0, FlowStore::start)
    }

    fn end(&self) -> u64 {
        self.kept.as_ref().map_or(0, FlowStore::end)
    }

    fn note_begun(&mut self) -> io::Result<()> {
        if self.kept.is_none() {
            let record = self.record.encode();
            self.kept = self.store.begin_beyond(self.flow, 0, &record)?;
            self.count();
        }
        match self.kept {
            Some(_) => Ok(()),
            None => Err(ErrorKind::StorageFull.into()),
        }
    }

    fn is_durable(&self) -> bool {
        true
    }

    fn safe_end(&self) -> u64 {
        self.kept.as_ref().map_or(0, FlowStore::safe_end)
    }

    fn is_finished(&self) -> bool {
        self.kept
            .as_ref()
            .is_some_and(|kept| kept.finished().is_some())
    }

    fn finish(&mut self) -> io::Result<()> {
        match &mut self.kept {
            Some(kept) => Ok(kept.finish()?),
            None => Ok(()),
        }
    }

    fn note_received(&mut self, offset: u64) -> io::Result<()> {
        self.record.received = offset;
        match &mut self.kept {
            Some(kept) => Ok(kept.set_record(&self.record.encode())?),
            None => Ok(()),
        }
    }

    fn note_partner_over(&mut self, received: u64) -> io::Result<()> {
        self.record.partner = Some(Partner::Over);
        self.note_received(received)
    }

    fn forget(mut self: Box<Self>) {
        if let Some(kept) = self.kept.take()
            && let Err(error) = kept.forget()
        {
            tracing::error!(event = "custody_not_deleted", flow = %self.flow, %error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::custody::{StoreNotice, faults};
    use fulmar_proto::splice::{Destination, FlowClass, Role};

    fn acceptors(limit: ByteCount, disk_bytes: usize) -> DiskCustody {
        let store = Rc::new(faults::store(limit, disk_bytes));
        in_store(store, (1, None), Budget::new(limit, [0]))
    }

    fn in_store(
        store: Rc<Store>,
        (flow, kept): (u8, Option<FlowStore>),
        budget: Budget,
    ) -> DiskCustody {
        let record = FlowRecord {
            role: Role::Acceptor,
            peer: "air".to_owned(),
            destination: Destination::from(std::net::SocketAddr::from(([192, 0, 2, 1], 80))),
            class: FlowClass::default(),
            bound: None,
            received: 0,
            preface: Vec::new(),
            held: false,
            partner: None,
        };
        let flow = (FlowId([flow; 16]), record);
        DiskCustody::new(store, flow, kept, ByteCount(1 << 20), budget)
    }

    #[test]
    fn a_peer_that_is_away_leaves_the_others_their_part_of_the_store() {
        let limit = ByteCount(1 << 20);
        let store = Rc::new(faults::store(limit, 4 << 20));
        let budget = Budget::new(limit, [0, 1]);
        let flow = |number, peer| in_store(Rc::clone(&store), (number, None), budget.of(peer));
        let octets = vec![7; 1 << 18];
        let mut away: Vec<_> = (0..8).map(|number| flow(number, 0)).collect();
        let kept: usize = away.iter_mut().map(|f| f.append(&octets).unwrap()).sum();
        let three_quarters = (1 << 20) / 4 * 3;
        assert!(
            (three_quarters - (16 << 10)..three_quarters).contains(&kept),
            "{kept}"
        );
        assert!(away.iter_mut().all(|f| f.room() == 0));

        let mut other = flow(8, 1);
        let taken = other.append(&octets).unwrap();
        assert!(taken > (1 << 18) - (16 << 10), "{taken}");
        other.release(taken as u64);
        assert_eq!(other.append(&octets[..1_000]).unwrap(), 1_000);

        // Whatever ends gives back what it had, with its files and without.
        for custody in away {
            Box::new(custody).forget();
        }
        drop(other);
        assert_eq!((budget.held(), budget.of(1).held()), (0, 0));
    }

    #[test]
    fn flows_that_keep_nothing_any_more_use_no_share_up() {
        let limit = ByteCount(1 << 20);
        let store = Rc::new(faults::store(limit, 8 << 20));
        let budget = Budget::new(limit, [0]);
        let flow = |number| in_store(Rc::clone(&store), (number, None), budget.clone());
        let mut quiet: Vec<_> = (0..40).map(flow).collect();
        for flow in &mut quiet {
            let taken = flow.append(&[7; 12 << 10]).unwrap();
            assert_eq!(taken, 12 << 10);
            flow.release(taken as u64);
        }
        assert_eq!(budget.held(), 40 * FlowStore::EMPTY_BYTES);
    }

    #[test]
    fn files_that_a_start_finds_count_against_their_peer() {
        let limit = ByteCount(1 << 20);
        let store = Rc::new(faults::store(limit, 4 << 20));
        let budget = Budget::new(limit, [0, 1]);
        let mut before = in_store(Rc::clone(&store), (1, None), budget.clone());
        before.append(&vec![7; 1 << 16]).unwrap();
        let held = budget.held();
        let kept = before.kept.take();
        drop(before);
        assert_eq!(budget.held(), 0);
        let found = in_store(store, (1, kept), budget.clone());
        assert_eq!(budget.held(), held);
        assert_eq!(found.end(), 1 << 16);
    }

    #[test]
    fn a_limit_that_a_flow_reaches_after_its_beginning_is_announced_once() {
        let mut only = acceptors(ByteCount(1 << 18), 4 << 20);
        let octets = vec![7; 1 << 20];
        while only.append(&octets).unwrap() > 0 {}
        assert_eq!((only.room(), only.room()), (0, 0));
        let notice = only.store.poll_notice();
        let is_limit = matches!(notice, Some(StoreNotice::LimitReached { .. }));
        assert!(is_limit, "{notice:?}");
        assert_eq!(only.store.poll_notice(), None);
    }

    #[test]
    fn a_flow_that_was_not_written_down_is_not_said_to_be() {
        const PLENTY: usize = 1 << 20;
        let plenty = ByteCount::from_usize(PLENTY);
        let mut noted = acceptors(plenty, PLENTY);
        assert!(noted.note_begun().is_ok());
        assert!(noted.kept.is_some());
        // What others keep refuses nobody a note: only the answer waits.
        let mut beyond = acceptors(ByteCount(0), PLENTY);
        assert!(beyond.note_begun().is_ok());
        assert_eq!(beyond.append(b"an answer waits").unwrap(), 0);
        let mut full = acceptors(plenty, 0);
        let error = full.note_begun().expect_err("there is no room");
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert_eq!(full.append(b"an answer waits").unwrap(), 0);
    }
}
