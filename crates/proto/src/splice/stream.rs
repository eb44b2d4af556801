//! A stream's two directions: the octets received from the client, and those that the far host has.
//!
//! Offsets count octets from the flow's start and survive the connection that carries them.

use super::credit::{CreditGiven, CreditPool};
use super::spare_buffers::SpareBuffers;
use std::collections::VecDeque;

/// The direction towards the far side. If the flow may resume, the driver must keep the octets that
/// were taken and not delivered; nothing is kept here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    accepted: u64,
    /// The greatest value of `accepted`, before a resumption took it back.
    most: u64,
    limit: u64,
    delivered: u64,
    end: Option<u64>,
    end_sent: bool,
    ready: bool,
}

/// The error about a far side that asks for, or claims to have, octets that it cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Impossible;

impl Outgoing {
    /// A direction whose octets were delivered up to `delivered` and taken up to `accepted`.
    pub(super) const fn new(delivered: u64, accepted: u64, limit: u64) -> Self {
        Self {
            accepted,
            most: accepted,
            limit,
            delivered,
            end: None,
            end_sent: false,
            ready: false,
        }
    }

    pub(super) const fn accepted(&self) -> u64 {
        self.accepted
    }

    pub(super) const fn delivered(&self) -> u64 {
        self.delivered
    }

    pub(super) const fn is_ready(&self) -> bool {
        self.ready
    }

    /// Sets whether there is a connection on which data may follow.
    pub(super) const fn set_ready(&mut self, ready: bool) {
        self.ready = ready;
    }

    /// The number of octets that may be taken now.
    pub(super) fn allowance(&self, window: u64) -> u64 {
        if !self.ready {
            return 0;
        }
        let window_end = self.delivered.saturating_add(window);
        let end = self.limit.min(window_end).min(self.end.unwrap_or(u64::MAX));
        end.saturating_sub(self.accepted)
    }

    /// Takes `len` octets. Returns how many of them were never taken before.
    pub(super) fn take(&mut self, len: u64) -> u64 {
        self.accepted += len;
        let new = self.accepted.saturating_sub(self.most);
        self.most += new;
        new
    }

    /// Notes that no more octets follow.
    pub(super) fn finish(&mut self) {
        self.end.get_or_insert(self.most);
    }

    /// The end of the direction, when it is time to tell it.
    pub(super) fn take_end(&mut self) -> Option<u64> {
        let due = self.ready && !self.end_sent && self.end == Some(self.accepted);
        self.end_sent |= due;
        self.end.filter(|_| due)
    }

    /// Notes that the far side may be sent up to `limit`, and that its host has `offset`. Returns
    /// whether that is new. Old reports may come late over a new connection.
    pub(super) fn on_delivered(&mut self, offset: u64, limit: u64) -> Result<bool, Impossible> {
        if offset > self.accepted.max(self.delivered) {
            return Err(Impossible);
        }
        self.limit = self.limit.max(limit);
        let news = offset > self.delivered;
        self.delivered = self.delivered.max(offset);
        Ok(news)
    }

    /// Continues over a new connection, on which the far side has `received` octets and allows up
    /// to `limit`.
    pub(super) fn go_on(&mut self, received: u64, limit: u64) -> Result<(), Impossible> {
        if received < self.delivered || received > self.most {
            return Err(Impossible);
        }
        self.accepted = received;
        self.end_sent = false;
        // A far side that has restarted may allow less than before; earlier reports do not come on this connection.
        self.limit = limit;
        self.ready = true;
        Ok(())
    }

    /// Whether everything, including the end, was sent and acknowledged by the far host.
    pub(super) fn is_complete(&self) -> bool {
        self.end_sent && self.end == Some(self.delivered)
    }
}

/// The direction from the far side: octets that arrived and were not consumed yet.
#[derive(Debug)]
pub(super) struct Incoming {
    buffer: VecDeque<u8>,
    received: u64,
    /// Octets that this connection brings again.
    repeated: u64,
    end: Option<u64>,
    end_told: bool,
    pub(super) credit: CreditGiven,
}

/// The fault in octets that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unexpected {
    /// More octets than were allowed.
    Credit,
    /// Octets after the end, or an end elsewhere.
    End,
}

impl Incoming {
    /// A direction whose local host has `start` octets.
    pub(super) const fn new(start: u64) -> Self {
        Self {
            buffer: VecDeque::new(),
            received: start,
            repeated: 0,
            end: None,
            end_told: false,
            credit: CreditGiven::starting_at(start),
        }
    }

    pub(super) const fn received(&self) -> u64 {
        self.received
    }

    /// Begins at `offset` over a new connection.
    pub(super) const fn begin_at(&mut self, offset: u64) {
        self.repeated = self.received.saturating_sub(offset);
    }

    /// Takes octets that arrived. Returns whether there was nothing to read before.
    pub(super) fn on_data(
        &mut self,
        spare: &mut SpareBuffers,
        octets: &[u8],
    ) -> Result<bool, Unexpected> {
        let known = usize::try_from(self.repeated).unwrap_or(usize::MAX);
        let (known, octets) = octets.split_at(known.min(octets.len()));
        self.repeated -= known.len() as u64;
        if octets.is_empty() {
            return Ok(false);
        }
        let received = self.received.saturating_add(octets.len() as u64);
        if self.end.is_some() {
            return Err(Unexpected::End);
        }
        if received > self.credit.limit() {
            return Err(Unexpected::Credit);
        }
        let was_empty = self.buffer.is_empty();
        if self.buffer.capacity() == 0 {
            self.buffer = spare.take();
        }
        self.buffer.extend(octets);
        self.received = received;
        Ok(was_empty)
    }

    /// Notes the far side's word that the direction has `total` octets.
    pub(super) fn on_end(&mut self, total: u64) -> Result<(), Unexpected> {
        if total != self.received || self.repeated > 0 {
            return Err(Unexpected::End);
        }
        self.end = Some(total);
        Ok(())
    }

    pub(super) fn peek(&self) -> Option<&[u8]> {
        Some(self.buffer.as_slices().0).filter(|front| !front.is_empty())
    }

    pub(super) fn consume(&mut self, spare: &mut SpareBuffers, len: usize) {
        self.buffer.drain(..len.min(self.buffer.len()));
        if self.buffer.is_empty() {
            spare.keep(core::mem::take(&mut self.buffer));
        }
    }

    /// Whether the end was reached; `true` is returned once.
    pub(super) fn take_end(&mut self) -> bool {
        let news = self.end.is_some() && self.buffer.is_empty() && !self.end_told;
        self.end_told |= news;
        news
    }

    /// Notes that the local host has acknowledged `total` of the octets that were consumed.
    pub(super) fn on_delivered(&mut self, pool: &mut CreditPool, total: u64) {
        let consumed = self.received - self.buffer.len() as u64;
        self.credit.on_delivered(pool, total.min(consumed));
    }

    /// Whether the far side waits for nothing but the report that everything was delivered.
    pub(super) fn is_delivered(&self) -> bool {
        self.end == Some(self.credit.delivered())
    }

    /// Whether the local host has everything and the far side knows it.
    pub(super) fn is_complete(&self) -> bool {
        self.is_delivered() && self.credit.is_told()
    }

    /// Discards the octets that nobody will read.
    pub(super) fn discard(&mut self, pool: &mut CreditPool) {
        self.buffer = VecDeque::new();
        self.credit.release(pool);
    }
}

/// Both directions of a stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) out: Outgoing,
    pub(super) incoming: Incoming,
}

impl Stream {
    /// Whether nothing remains to be done in either direction.
    pub(super) fn is_complete(&self) -> bool {
        self.out.is_complete() && self.incoming.is_complete()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(limit: u64) -> Outgoing {
        let mut out = Outgoing::new(0, 0, limit);
        out.set_ready(true);
        out
    }

    #[test]
    fn what_may_be_taken_is_bounded_by_credit_and_by_the_window() {
        let mut out = ready(100);
        assert_eq!(out.allowance(1_000), 100);
        assert_eq!(out.allowance(60), 60);
        assert_eq!(out.take(60), 60);
        assert_eq!(out.allowance(60), 0);
        assert_eq!(out.on_delivered(25, 200), Ok(true));
        assert_eq!(out.allowance(60), 25);
        assert_eq!(out.on_delivered(20, 10), Ok(false), "an old report");
        assert_eq!(out.allowance(1_000), 140, "credit is not taken back");
        assert_eq!(out.on_delivered(61, 200), Err(Impossible));
    }

    #[test]
    fn a_resumption_goes_back_no_further_than_what_was_delivered_and_not_ahead() {
        let mut out = ready(100);
        out.take(80);
        out.finish();
        assert_eq!(out.take_end(), Some(80));
        out.on_delivered(30, 100).expect("was sent");
        assert_eq!(out.go_on(29, 100), Err(Impossible));
        assert_eq!(out.go_on(81, 100), Err(Impossible));
        assert_eq!(out.go_on(30, 90), Ok(()));
        assert_eq!(out.accepted(), 30);
        assert_eq!(out.take_end(), None, "the rest comes first");
        assert_eq!(out.allowance(1_000), 50, "no further than the end");
        assert_eq!(out.take(50), 0, "nothing of it is new");
        assert_eq!(out.take_end(), Some(80), "the end is said again");
        assert!(!out.is_complete());
        out.on_delivered(80, 100).expect("was sent");
        assert!(out.is_complete());
    }

    #[test]
    fn octets_beyond_credit_or_after_the_end_are_unexpected() {
        let mut pool = CreditPool::new(1 << 20, 1).expect("one floor fits");
        let mut incoming = Incoming::new(0);
        let mut spare = SpareBuffers::default();
        assert!(incoming.credit.presume(&mut pool, 10));
        assert_eq!(incoming.on_data(&mut spare, &[1; 6]), Ok(true));
        assert_eq!(
            incoming.on_data(&mut spare, &[1; 5]),
            Err(Unexpected::Credit)
        );
        assert_eq!(incoming.on_data(&mut spare, &[1; 4]), Ok(false));
        assert_eq!(incoming.on_end(11), Err(Unexpected::End));
        assert_eq!(incoming.on_end(10), Ok(()));
        assert_eq!(incoming.on_data(&mut spare, &[1]), Err(Unexpected::End));
        assert_eq!(incoming.on_end(10), Ok(()), "said again");
        assert!(!incoming.take_end(), "unread");
        incoming.consume(&mut spare, 10);
        assert!(incoming.take_end());
        assert!(!incoming.take_end());
    }

    #[test]
    fn what_is_delivered_is_at_most_what_was_consumed() {
        let mut pool = CreditPool::new(1 << 20, 1).expect("one floor fits");
        let mut incoming = Incoming::new(0);
        let mut spare = SpareBuffers::default();
        incoming.credit.presume(&mut pool, 10);
        incoming.on_data(&mut spare, &[1; 10]).expect("allowed");
        incoming.consume(&mut spare, 4);
        incoming.on_delivered(&mut pool, 10);
        assert_eq!(incoming.credit.delivered(), 4);
        assert_eq!(pool.reserved(), 6);
        incoming.discard(&mut pool);
        assert_eq!(pool.reserved(), 0);
    }
}
