//! Custody of a flow on disk: octets survive the gateway.
//!
//! An opener's file begins with the first octet, so a full disk makes a new client wait like any other. An
//! acceptor's file begins before the destination is given anything, so that no later start connects to it a second
//! time. The store's limit does not hold for an acceptor's beginning, or one peer's octets would keep out the flows
//! of all others. Where the disk itself has no room for it, the flow is refused.

use super::custody::Custody;
use super::flow_record::FlowRecord;
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
}

impl DiskCustody {
    /// The custody of a flow that may keep `limit` octets; `kept` is the flow's part of the store, if it was found
    /// there.
    pub(in crate::gateway) fn new(
        store: Rc<Store>,
        (flow, record): (FlowId, FlowRecord),
        kept: Option<FlowStore>,
        limit: ByteCount,
    ) -> Self {
        Self {
            store,
            flow,
            record,
            kept,
            limit: limit.as_usize(),
        }
    }
}

impl DiskCustody {
    fn begin(&mut self) -> io::Result<()> {
        if self.kept.is_none() {
            self.kept = self.store.begin(self.flow, 0, &self.record.encode())?;
        }
        Ok(())
    }
}

impl Custody for DiskCustody {
    fn append(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.begin()?;
        let room = self.room();
        match &mut self.kept {
            Some(kept) => Ok(kept.append(&octets[..octets.len().min(room)])?),
            None => Ok(0),
        }
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
        }
    }

    fn room(&self) -> usize {
        let held = usize::try_from(self.end() - self.start()).unwrap_or(usize::MAX);
        let own = self.limit.saturating_sub(held);
        own.min(self.kept.as_ref().map_or(own, FlowStore::room))
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

    fn forget(self: Box<Self>) {
        if let Some(kept) = self.kept
            && let Err(error) = kept.forget()
        {
            tracing::error!(event = "custody_not_deleted", flow = %self.flow, %error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::custody::faults;
    use fulmar_proto::splice::{Destination, FlowClass, Role};

    fn acceptors(limit: ByteCount, disk_bytes: usize) -> DiskCustody {
        let record = FlowRecord {
            role: Role::Acceptor,
            peer: "air".to_owned(),
            destination: Destination::from(std::net::SocketAddr::from(([192, 0, 2, 1], 80))),
            class: FlowClass::default(),
            bound: None,
            received: 0,
            preface: Vec::new(),
            held: false,
        };
        let store = Rc::new(faults::store(limit, disk_bytes));
        let flow = (FlowId([1; 16]), record);
        DiskCustody::new(store, flow, None, ByteCount(1_000))
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
