//! Octets kept until the destination's host has them.
//!
//! A store holds one flow's octets by their offset since the flow's start: it grows at its end as
//! the client sends and is released at its start as the destination acknowledges. Memory is here;
//! a store on disk implements the same trait.

use fulmar_proto::shares::Shares;
use fulmar_proto::splice::RelayStore;
use fulmar_proto::units::ByteCount;
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::rc::Rc;

/// One flow's kept octets.
pub trait Custody: core::fmt::Debug {
    /// Appends octets and says how many were taken: fewer than offered when it is full. What it
    /// took counts as accepted, so it must be as safe as the store promises when this returns.
    ///
    /// # Errors
    /// The store cannot take octets any more; nothing was taken.
    fn append(&mut self, octets: &[u8]) -> io::Result<usize>;

    /// Octets from offset `from` on that lie in one piece, at most `max` of them; empty at the end.
    ///
    /// # Errors
    /// The store cannot give them, or they were released.
    fn read(&mut self, from: u64, max: usize) -> io::Result<&[u8]>;

    /// Releases everything before offset `to`, which is needed no more.
    fn release(&mut self, to: u64);

    /// The octets that [`Custody::append`] would take now.
    fn room(&self) -> usize;

    /// The offset of the first octet kept.
    fn start(&self) -> u64;

    /// The offset after the last octet kept.
    fn end(&self) -> u64;

    /// Notes, for the next process, that the destination is about to be given the flow's first octet.
    ///
    /// # Errors
    /// The store has not written that down, since it is full or the disk fails. The destination must be given
    /// nothing.
    fn note_begun(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Whether it outlives this process. Octets then stay in the socket until they are safe here.
    fn is_durable(&self) -> bool {
        false
    }

    /// The offset up to which octets are as safe as the store promises.
    fn safe_end(&self) -> u64 {
        self.end()
    }

    /// Whether [`Custody::finish`] was called, in this life or an earlier one.
    fn is_finished(&self) -> bool {
        false
    }

    /// Notes that nothing follows: the side that the octets came from has sent its end.
    ///
    /// # Errors
    /// The store cannot write that down.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Notes that the far side is about to be told that our host has the first `offset` octets of the other
    /// direction.
    ///
    /// # Errors
    /// The store cannot write that down.
    fn note_received(&mut self, _offset: u64) -> io::Result<()> {
        Ok(())
    }

    /// Notes, for the next process, that the flow that this one relays is over in order: `received` octets came from it.
    ///
    /// # Errors
    /// The store cannot write that down.
    fn note_partner_over(&mut self, _received: u64) -> io::Result<()> {
        Ok(())
    }

    /// Forgets the flow, which is over and whose octets nobody needs. A store that is merely dropped keeps
    /// whatever outlives the process.
    fn forget(self: Box<Self>) {}
}

impl RelayStore for Box<dyn Custody> {
    type Fault = io::Error;

    fn append(&mut self, octets: &[u8]) -> io::Result<usize> {
        (**self).append(octets)
    }

    fn read(&mut self, from: u64, max: usize) -> io::Result<&[u8]> {
        (**self).read(from, max)
    }

    fn release(&mut self, to: u64) {
        (**self).release(to);
    }

    fn room(&self) -> usize {
        (**self).room()
    }

    fn start(&self) -> u64 {
        (**self).start()
    }

    fn end(&self) -> u64 {
        (**self).end()
    }

    fn safe_end(&self) -> u64 {
        (**self).safe_end()
    }

    fn is_finished(&self) -> bool {
        (**self).is_finished()
    }

    fn finish(&mut self) -> io::Result<()> {
        (**self).finish()
    }
}

/// The store of a direction that is over: all of its octets were delivered before a restart.
#[derive(Debug)]
pub(in crate::gateway) struct SpentCustody {
    /// Octets that there were.
    pub(in crate::gateway) end: u64,
}

impl Custody for SpentCustody {
    fn append(&mut self, _octets: &[u8]) -> io::Result<usize> {
        Err(io::Error::other("octets after the end"))
    }

    fn read(&mut self, _from: u64, _max: usize) -> io::Result<&[u8]> {
        Ok(&[])
    }

    fn release(&mut self, _to: u64) {}

    fn room(&self) -> usize {
        usize::MAX
    }

    fn start(&self) -> u64 {
        self.end
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn is_finished(&self) -> bool {
        true
    }
}

/// Room counts as room to spare when it is this part of what is kept.
const SPARE_PART: usize = 8;

/// The octets that a gateway's stores in memory, or those on disk, may keep together, shared among its peers: a peer that cannot be
/// reached for hours does not fill the room that the others' flows need.
#[derive(Clone, Debug)]
pub struct Budget {
    shares: Rc<RefCell<Shares<usize>>>,
    /// The peers that had no room, until they have some to spare.
    refused: Rc<RefCell<BTreeSet<usize>>>,
    peer: usize,
}

impl Budget {
    /// A budget of `limit` octets for the flows of all `peers`; this handle is that of the peer in place 0.
    pub fn new(limit: ByteCount, peers: impl IntoIterator<Item = usize>) -> Self {
        let budget = Self {
            shares: Rc::new(RefCell::new(Shares::new(limit.as_usize()))),
            refused: Rc::default(),
            peer: 0,
        };
        budget.follow(peers);
        budget
    }

    /// Adapts the shares to the present peers, by their places.
    pub fn follow(&self, peers: impl IntoIterator<Item = usize>) {
        self.shares.borrow_mut().entitle(peers);
    }

    /// The handle for another peer's flows.
    #[must_use]
    pub fn of(&self, peer: usize) -> Self {
        Self {
            shares: Rc::clone(&self.shares),
            refused: Rc::clone(&self.refused),
            peer,
        }
    }

    /// The octets that the peer may still keep.
    pub(super) fn left(&self) -> usize {
        self.shares.borrow().room(self.peer)
    }

    /// The octets that the peer keeps.
    pub(super) fn held(&self) -> usize {
        self.shares.borrow().held(self.peer)
    }

    /// Whether the peer has been refused no room since it had some to spare.
    pub(super) fn is_first_refusal(&self) -> bool {
        self.refused.borrow_mut().insert(self.peer)
    }

    /// Counts what `before` octets have become, whether there is room or not.
    pub(super) fn exchange(&self, before: usize, after: usize) {
        if after > before {
            self.take(after - before);
        } else if after < before {
            self.give_back(before - after);
            if self.left() >= self.held() / SPARE_PART {
                self.refused.borrow_mut().remove(&self.peer);
            }
        }
    }

    fn take(&self, octets: usize) {
        self.shares.borrow_mut().take(self.peer, octets);
    }

    fn give_back(&self, octets: usize) {
        self.shares.borrow_mut().give_back(self.peer, octets);
    }
}

/// Custody in memory: it survives outages, but not the gateway.
#[derive(Debug)]
pub struct MemoryCustody {
    octets: VecDeque<u8>,
    start: u64,
    limit: usize,
    budget: Budget,
    is_finished: bool,
}

impl MemoryCustody {
    /// An empty store of at most `limit` octets, which come out of `budget`.
    pub const fn new(limit: usize, budget: Budget) -> Self {
        Self {
            octets: VecDeque::new(),
            start: 0,
            limit,
            budget,
            is_finished: false,
        }
    }
}

impl Drop for MemoryCustody {
    fn drop(&mut self) {
        self.budget.give_back(self.octets.len());
    }
}

impl Custody for MemoryCustody {
    fn append(&mut self, octets: &[u8]) -> io::Result<usize> {
        let taken = octets.len().min(self.room());
        self.octets.extend(&octets[..taken]);
        self.budget.take(taken);
        Ok(taken)
    }

    fn read(&mut self, from: u64, max: usize) -> io::Result<&[u8]> {
        let skip = from
            .checked_sub(self.start)
            .and_then(|skip| usize::try_from(skip).ok())
            .filter(|skip| *skip <= self.octets.len())
            .ok_or_else(|| io::Error::other("octets that are not kept"))?;
        let (front, back) = self.octets.as_slices();
        let piece = match skip.checked_sub(front.len()) {
            None => &front[skip..],
            Some(skip) => &back[skip..],
        };
        Ok(&piece[..piece.len().min(max)])
    }

    fn release(&mut self, to: u64) {
        let count = to.saturating_sub(self.start);
        let count = usize::try_from(count)
            .unwrap_or(usize::MAX)
            .min(self.octets.len());
        self.octets.drain(..count);
        self.budget.give_back(count);
        self.start += count as u64;
        // The memory of a burst that is over must not be held for ever.
        if self.octets.len() < self.octets.capacity() / 4 {
            self.octets.shrink_to(self.octets.len() * 2);
        }
    }

    fn room(&self) -> usize {
        let own = self.limit.saturating_sub(self.octets.len());
        own.min(self.budget.left())
    }

    fn start(&self) -> u64 {
        self.start
    }

    fn end(&self) -> u64 {
        self.start + self.octets.len() as u64
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }

    fn finish(&mut self) -> io::Result<()> {
        self.is_finished = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plenty() -> Budget {
        Budget::new(ByteCount(1 << 20), [0])
    }

    #[test]
    fn stores_share_a_budget_and_give_back_what_they_took() {
        let budget = Budget::new(ByteCount(6), [0]);
        let mut one = MemoryCustody::new(4, budget.clone());
        let mut two = MemoryCustody::new(4, budget);
        assert_eq!(one.append(b"abcde").unwrap(), 4);
        assert_eq!(two.append(b"abcde").unwrap(), 2);
        one.release(1);
        assert_eq!(two.room(), 1);
        drop(one);
        assert_eq!(two.room(), 2, "its own limit");
    }

    #[test]
    fn flows_of_a_peer_that_keep_all_they_may_leave_the_others_their_reserve() {
        let budget = Budget::new(ByteCount(100), [0, 1]);
        let stores = |peer| -> Vec<(usize, MemoryCustody)> {
            let store = || MemoryCustody::new(10, budget.of(peer));
            let full = |mut store: MemoryCustody| (store.append(&[7; 20]).unwrap(), store);
            (0..20).map(|_| full(store())).collect()
        };
        let kept = |stores: &[(usize, MemoryCustody)]| stores.iter().map(|s| s.0).sum::<usize>();
        let first = stores(0);
        assert_eq!(kept(&first), 75);
        assert_eq!(kept(&stores(1)), 25);
        drop(first);
        assert_eq!(kept(&stores(1)), 75);
    }

    #[test]
    fn peers_that_are_gone_keep_no_reserve_from_the_others() {
        let budget = Budget::new(ByteCount(100), 0..4);
        let room = |places: &[usize]| {
            budget.follow(places.iter().copied());
            places.iter().map(|place| budget.of(*place).left()).max()
        };
        assert_eq!(room(&[0, 1, 2, 3]), Some(64));
        assert_eq!(room(&[3]), Some(100));
    }

    #[test]
    fn octets_are_found_by_their_offset_until_they_are_released() {
        let mut store = MemoryCustody::new(8, plenty());
        assert_eq!(
            store.append(b"abcdefghij").unwrap(),
            8,
            "no more than its limit"
        );
        store.release(3);
        assert_eq!(store.append(b"ijklm").unwrap(), 3);
        assert_eq!((store.start(), store.end(), store.room()), (3, 11, 0));
        let mut all = Vec::new();
        while all.len() < 8 {
            let from = 3 + all.len() as u64;
            all.extend_from_slice(store.read(from, 2).unwrap());
        }
        assert_eq!(all, b"defghijk");
        assert!(store.read(11, 9).unwrap().is_empty());
        assert!(store.read(2, 1).is_err() && store.read(12, 1).is_err());
    }

    #[test]
    fn releasing_more_than_there_is_empties_it() {
        let mut store = MemoryCustody::new(8, plenty());
        store.append(b"abc").unwrap();
        store.release(2);
        store.release(1);
        assert_eq!(store.start(), 2, "never backwards");
        store.release(3);
        assert_eq!((store.start(), store.end(), store.room()), (3, 3, 8));
    }
}
