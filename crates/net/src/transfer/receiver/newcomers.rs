//! Newcomers: the connections that are let in, and those that give way to them.

use super::super::incoming::Transfer;
use super::{ReceiveObserver, Receiver};
use crate::places::{Seat, TakenPlace, seat};
use fulmar_proto::machine::PathId;
use fulmar_proto::transport::aerotp::{AerotpEndpoint, ConnectionId};
use fulmar_proto::units::Instant;

/// The most connections at once. A connection that introduced no file gives way, and so does one whose octets belong
/// to no known file.
const CONNECTIONS_MAX: usize = 128;

impl<O: ReceiveObserver> Receiver<O> {
    pub(super) fn on_incoming(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        (id, path): (ConnectionId, PathId),
        lossy: bool,
    ) {
        let guest = self.latest.guest(path);
        self.origins.insert(id, (path, guest));
        let talk = self.transfers.iter();
        let talk = talk.map(|(id, transfer)| (*id, transfer.name().is_none()));
        let lanes = self.lanes.iter().map(|(id, owner)| (*id, owner.is_none()));
        let taken = talk.chain(lanes).filter_map(|(id, gives_way)| {
            let (_, guest) = *self.origins.get(&id)?;
            Some(TakenPlace {
                id,
                guest,
                gives_way,
            })
        });
        let mut taken: Vec<_> = taken.collect();
        // In the order in which they came.
        taken.sort_unstable_by_key(|one| one.id);
        match seat(CONNECTIONS_MAX, guest, &taken) {
            Seat::Free => {}
            Seat::Of(goes) => {
                machine.abort(now, goes);
                self.transfers.remove(&goes);
                self.lanes.remove(&goes);
            }
            Seat::Nowhere => return machine.abort(now, id),
        }
        if lossy {
            self.lanes.insert(id, None);
        } else {
            self.transfers.insert(id, Transfer::new(id, now));
        }
    }
}
