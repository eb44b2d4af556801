//! One TCP connection and its flow: octets both ways, ends, resets, and the other host's acknowledgements.
//!
//! # Promises
//! - Nothing is read from the socket that neither the flow nor custody has room for: TCP's own
//!   window pushes back on the host behind it.
//! - `delivered` counts octets that the host behind the socket has acknowledged, never octets that
//!   merely left our hands.
//! - Octets in custody are carried to the destination even when the socket that they came from breaks.
//!   Octets that come for that socket meanwhile are dropped and never reported as delivered. The far side
//!   is told, and does not keep its own host waiting for them.

mod intake;
mod restored;

use super::custody::Custody;
use crate::gateway::sockets::kernel;
use fulmar_proto::splice::{FlowId, ResetCode, Splicer};
use fulmar_proto::units::{Duration, Instant};
use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, TcpStream};

/// Octets moved each way in one turn, so that one flow's abundance delays no other flow for long.
const TURN_BYTES: usize = 256 * 1024;
/// The first and the longest pause before the kernel is asked again what was acknowledged.
const CHECK_MIN: Duration = Duration::from_millis(2);
const CHECK_MAX: Duration = Duration::from_millis(50);

/// The result of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Turn {
    /// Nothing more to do until something happens.
    Rest,
    /// There is more to do at once.
    More,
    /// The flow must be reset with this code, and the socket closed.
    Over(ResetCode),
}

/// A stream flow's local side.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each end of each direction has its own state"
)]
pub(in crate::gateway) struct Stream {
    /// `None` if it was lost with the gateway before: custody then holds all that is left.
    socket: Option<TcpStream>,
    readable: bool,
    writable: bool,
    /// Sent to the client before the flow's octets: a proxy's reply.
    preface: Vec<u8>,
    /// Octets in the socket before the flow's: the request of a proxy's client.
    ahead: u64,
    /// The client must not be served before the destination has answered.
    held: bool,
    custody: Option<Box<dyn Custody>>,
    /// The local side sends no more.
    ended: bool,
    /// Whether the flow was told of that end.
    finished: bool,
    /// The far side sends no more, and everything was consumed.
    far_finished: bool,
    /// Whether the local host was told of that end.
    shut: bool,
    /// The socket is broken, or left alone; custody drains first.
    broken: bool,
    /// The reason for the reset that follows.
    over: ResetCode,
    /// The far side's host is gone: octets from our host reach nobody.
    unheard: bool,
    /// Something could be read, but custody is full, perhaps of other flows' octets.
    starved: bool,
    /// Octets written to the socket, without the preface.
    written: u64,
    /// Octets of those written that the local host has acknowledged, as far as reported.
    delivered: u64,
    /// Octets read from the local side. With durable custody, octets are appended before they are read.
    read: u64,
    /// Octets that come again from the far side and that the socket has already.
    doubled: u64,
    check_at: Option<Instant>,
    check_pause: Duration,
}

fn later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

impl Stream {
    /// A stream over a prepared socket.
    pub(in crate::gateway) fn new(socket: TcpStream, custody: Option<Box<dyn Custody>>) -> Self {
        kernel::die_with_reset(&socket);
        Self {
            socket: Some(socket),
            // True until the kernel says otherwise.
            readable: true,
            writable: true,
            preface: Vec::new(),
            ahead: 0,
            held: false,
            custody,
            ended: false,
            finished: false,
            far_finished: false,
            shut: false,
            broken: false,
            over: ResetCode::Reset,
            unheard: false,
            starved: false,
            written: 0,
            delivered: 0,
            read: 0,
            doubled: 0,
            check_at: None,
            check_pause: CHECK_MIN,
        }
    }

    /// Whether it can go on in another gateway.
    pub(super) fn is_durable(&self) -> bool {
        let durable = |custody: &dyn Custody| custody.is_durable();
        self.custody.as_deref().is_some_and(durable)
    }

    /// Whether the local side has sent an octet, or custody has one of it.
    pub(in crate::gateway) fn has_spoken(&self) -> bool {
        let kept = |custody: &dyn Custody| custody.end() > 0;
        self.read > 0 || self.custody.as_deref().is_some_and(kept)
    }

    /// Whether the local side could have been heard: a client that waits for an answer of ours cannot, nor one for
    /// whose octets there was no room.
    pub(super) const fn is_listened_to(&self) -> bool {
        !self.held && !self.readable
    }

    /// Octets that lie in the socket and are from before the flow began.
    pub(in crate::gateway) const fn ahead(&self) -> u64 {
        self.ahead
    }

    /// The first offset in custody, and the offset after the last.
    pub(super) fn custody_range(&self) -> (u64, u64) {
        let range = |custody: &dyn Custody| (custody.start(), custody.end());
        self.custody.as_deref().map_or((0, 0), range)
    }

    /// Octets of the far side that the local host had acknowledged when the stream was resumed.
    pub(in crate::gateway) const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Keeps the client waiting until [`Stream::begin`]; the first `ahead` octets in its socket are not the flow's.
    pub(in crate::gateway) const fn hold(&mut self, ahead: u64) {
        self.held = true;
        self.ahead = ahead;
    }

    /// Sends `preface` to the client and lets octets flow.
    pub(in crate::gateway) fn begin(&mut self, preface: Vec<u8>) {
        self.held = false;
        self.preface = preface;
    }

    pub(in crate::gateway) const fn is_held(&self) -> bool {
        self.held
    }

    /// Notes that the socket may be read or written again, as the kernel tells.
    pub(in crate::gateway) fn ready(&mut self, readable: bool, writable: bool) {
        self.readable |= readable;
        self.writable |= writable;
    }

    pub(in crate::gateway) fn far_finished(&mut self) {
        self.far_finished = true;
    }

    /// Notes that nobody hears the local host any more. Octets for it still arrive.
    pub(in crate::gateway) fn unheard(&mut self) {
        self.unheard = true;
    }

    /// Octets read from and written to the local side.
    pub(in crate::gateway) const fn moved(&self) -> (u64, u64) {
        (self.read, self.written)
    }

    /// The time at which it wants a turn if nothing happens before.
    pub(super) fn next_check(&self, now: Instant) -> Option<Instant> {
        let pause = if self.unsafe_bytes() > 0 {
            CHECK_MIN
        } else {
            CHECK_MAX
        };
        let starved = self.starved.then(|| now + pause);
        self.check_at.into_iter().chain(starved).min()
    }

    /// Notes that the far host has the first `offset` octets.
    pub(in crate::gateway) fn far_delivered(&mut self, offset: u64) {
        if let Some(custody) = &mut self.custody {
            custody.release(offset);
        }
    }

    /// Whether it keeps octets that the far host does not have yet.
    pub(in crate::gateway) const fn keeps(&self) -> bool {
        self.custody.is_some()
    }

    /// Octets kept in custody.
    pub(in crate::gateway) fn kept(&self) -> u64 {
        let kept = |custody: &dyn Custody| custody.end() - custody.start();
        self.custody.as_deref().map_or(0, kept)
    }

    pub(in crate::gateway) const fn socket(&self) -> Option<&TcpStream> {
        self.socket.as_ref()
    }

    /// The socket, and the custody that is to be forgotten with the flow.
    pub(super) fn into_parts(self) -> (Option<TcpStream>, Option<Box<dyn Custody>>) {
        (self.socket, self.custody)
    }

    /// Moves the octets that can be moved.
    pub(super) fn pump(
        &mut self,
        now: Instant,
        flow: FlowId,
        splicer: &mut Splicer,
        scratch: &mut [u8],
    ) -> Turn {
        if self.held {
            return Turn::Rest;
        }
        let mut more = false;
        // After the local host's own end, reading does not show a reset, and with nothing to write,
        // writing does not either.
        if self.ended
            && !self.broken
            && let Some(socket) = &self.socket
            && let Ok(Some(error)) = socket.take_error()
        {
            self.fail(&error);
        }
        if !self.broken {
            match self.take_in(now, flow, splicer, scratch) {
                Ok(again) => more |= again,
                Err(Fault::Socket(error)) => self.fail(&error),
                Err(Fault::Custody(error)) => self.end_with_custody(flow, &error),
            }
        }
        if let Err(error) = self.feed(now, flow, splicer) {
            return custody_lost(flow, &error);
        }
        if self.broken {
            return self.drain_custody(now, flow, splicer);
        }
        match self.put_out(now, flow, splicer) {
            Ok(again) => more |= again,
            Err(Fault::Socket(error)) => {
                self.fail(&error);
                return self.drain_custody(now, flow, splicer);
            }
            Err(Fault::Custody(error)) => {
                self.end_with_custody(flow, &error);
                return self.drain_custody(now, flow, splicer);
            }
        }
        if self.unheard && self.ended && self.shut && self.delivered == self.written {
            // Both directions have ended, and one of the ends reached nobody.
            return Turn::Over(ResetCode::Reset);
        }
        if more { Turn::More } else { Turn::Rest }
    }

    fn fail(&mut self, error: &io::Error) {
        tracing::debug!(%error, "local connection broke");
        self.leave_socket();
    }

    /// Ends the stream because custody takes no more. What it has is carried on, then both ends are reset.
    fn end_with_custody(&mut self, flow: FlowId, error: &io::Error) {
        tracing::error!(event = "custody_failed", %flow, %error);
        self.over = ResetCode::CustodyLost;
        self.leave_socket();
    }

    const fn leave_socket(&mut self) {
        self.broken = true;
        self.readable = false;
        self.writable = false;
        // Nothing more will come: custody holds all that is left.
        self.ended = true;
    }

    /// Moves octets from custody into the flow, and the end when everything is there.
    fn feed(&mut self, now: Instant, flow: FlowId, splicer: &mut Splicer) -> io::Result<()> {
        if let Some(custody) = &mut self.custody
            && !self.unheard
        {
            while let Some(from) = splicer.accepted_offset(flow)
                && from < custody.end()
            {
                let room = splicer.capacity(flow);
                if room == 0 {
                    return Ok(());
                }
                let octets = custody.read(from, room)?;
                if splicer.accept(now, flow, octets) == 0 {
                    return Ok(());
                }
            }
        }
        // A broken connection has no end: a reset follows when custody is empty. An end that was written
        // down came before the break.
        let has_end = (!self.broken && !self.unheard) || self.is_lost_after_end();
        if self.ended && has_end && !self.finished {
            self.finished = true;
            splicer.finish(now, flow);
        }
        Ok(())
    }

    /// Whether the socket was lost with a gateway before, after the local side had ended its direction. The
    /// flow may then end as if nothing had happened, except that nobody hears the answer.
    fn is_lost_after_end(&self) -> bool {
        let finished = |custody: &dyn Custody| custody.is_finished();
        self.socket.is_none() && self.custody.as_deref().is_some_and(finished)
    }

    /// Drains custody after the socket is gone: kept octets are carried on, and octets that come back are dropped.
    fn drain_custody(&mut self, now: Instant, flow: FlowId, splicer: &mut Splicer) -> Turn {
        if self.kept() == 0 && !self.is_lost_after_end() {
            return Turn::Over(self.over);
        }
        splicer.stop(now, flow);
        while let Some(len) = splicer.peek(flow).map(<[u8]>::len) {
            splicer.consume(now, flow, len);
        }
        self.check_at = None;
        Turn::Rest
    }

    /// Moves octets from the flow to the socket.
    fn put_out(
        &mut self,
        now: Instant,
        flow: FlowId,
        splicer: &mut Splicer,
    ) -> Result<bool, Fault> {
        let Some(socket) = &mut self.socket else {
            return Ok(false);
        };
        while self.writable && !self.preface.is_empty() {
            match socket.write(&self.preface) {
                Ok(len) => drop(self.preface.drain(..len)),
                Err(error) if later(&error) => self.writable = false,
                Err(error) => return Err(error.into()),
            }
        }
        let had_doubled = self.doubled > 0;
        while self.doubled > 0
            && let Some(octets) = splicer.peek(flow)
        {
            let len = usize::try_from(self.doubled)
                .unwrap_or(usize::MAX)
                .min(octets.len());
            splicer.consume(now, flow, len);
            self.doubled -= len as u64;
            self.written += len as u64;
        }
        let mut moved = 0;
        while self.writable && moved < TURN_BYTES && self.doubled == 0 {
            let Some(octets) = splicer.peek(flow) else {
                break;
            };
            match socket.write(octets) {
                Ok(len) => {
                    splicer.consume(now, flow, len);
                    moved += len;
                    self.written += len as u64;
                }
                Err(error) if later(&error) => self.writable = false,
                Err(error) => return Err(error.into()),
            }
        }
        let nothing_left = splicer.peek(flow).is_none();
        if self.far_finished && nothing_left && !self.shut && self.preface.is_empty() {
            self.shut = true;
            socket.shutdown(Shutdown::Write)?;
        }
        self.report(now, flow, splicer, moved > 0 || had_doubled)?;
        Ok(self.writable && !nothing_left)
    }

    /// Reports the octets that the local host has acknowledged. While it does not have all, asks again later.
    fn report(
        &mut self,
        now: Instant,
        flow: FlowId,
        splicer: &mut Splicer,
        moved: bool,
    ) -> Result<(), Fault> {
        if self.delivered == self.written {
            self.check_at = None;
            return Ok(());
        }
        let due = self.check_at.is_some_and(|at| now >= at);
        if !due && !moved {
            return Ok(());
        }
        let Some(socket) = &self.socket else {
            return Ok(());
        };
        // A reset empties the kernel's queue, which must not pass for an acknowledgement.
        if let Some(error) = socket.take_error()? {
            return Err(error.into());
        }
        let waiting = kernel::unacknowledged(socket)?;
        // The end counts as an octet of its own until it is acknowledged.
        let waiting = waiting.saturating_sub(u64::from(self.shut));
        let delivered = self.written.saturating_sub(waiting);
        self.check_pause = if delivered > self.delivered {
            CHECK_MIN
        } else {
            (self.check_pause * 2).min(CHECK_MAX)
        };
        if delivered > self.delivered {
            self.delivered = delivered;
            if let Some(custody) = &mut self.custody {
                custody.note_received(delivered).map_err(Fault::Custody)?;
            }
            splicer.delivered(now, flow, delivered);
        }
        self.check_at = (self.delivered < self.written).then(|| now + self.check_pause);
        Ok(())
    }
}

/// A fault that ends a stream. The operator needs the difference: a host went away, or a disk failed.
#[derive(Debug)]
enum Fault {
    Socket(io::Error),
    Custody(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

fn custody_lost(flow: FlowId, error: &io::Error) -> Turn {
    tracing::error!(event = "custody_failed", %flow, %error);
    Turn::Over(ResetCode::CustodyLost)
}

#[cfg(test)]
mod tests;
