//! A wrapper that panics when the contract between a link machine and its driver is broken.

use super::{FrameTransmit, LinkCounters, LinkMachine, LinkPacket};
use core::cell::Cell;
use fulmar_proto::machine::{Deadline, Priority};
use fulmar_proto::units::{ByteCount, Instant};

/// The number of times that a machine may name the same deadline at one instant before it counts as
/// spinning.
const SAME_DEADLINE_MAX: u32 = 1_000;

/// A wrapper for a link machine in tests and debug builds. It panics on a breach of the contract:
/// time that goes backwards; a frame or a wake-up before the packets of the last one were fetched;
/// a packet offered to a machine that is not ready; a wake-up before its time; a deadline in the
/// past after a drain; the same deadline 1,000 times over at one instant; a length that does not
/// match the octets written.
#[derive(Debug)]
pub struct StrictLink<M> {
    machine: M,
    now: Instant,
    packets_drained: bool,
    seen: Cell<Option<(Instant, Deadline)>>,
    seen_count: Cell<u32>,
}

impl<M: LinkMachine> StrictLink<M> {
    /// Wraps `machine`.
    pub const fn new(machine: M) -> Self {
        Self {
            machine,
            now: Instant::START,
            packets_drained: true,
            seen: Cell::new(None),
            seen_count: Cell::new(0),
        }
    }

    /// The machine, for reading.
    pub const fn inner(&self) -> &M {
        &self.machine
    }

    fn advance(&mut self, now: Instant) {
        assert!(
            now >= self.now,
            "time went backwards: {now} after {}",
            self.now
        );
        self.now = now;
    }

    fn input(&mut self, now: Instant, what: &str) {
        self.advance(now);
        assert!(
            self.packets_drained,
            "{what} at {now} before the drain ended"
        );
        self.packets_drained = false;
    }

    fn progress(&self) {
        self.seen_count.set(0);
    }
}

impl<M: LinkMachine> LinkMachine for StrictLink<M> {
    fn ready(&self) -> bool {
        self.machine.ready()
    }

    fn overtaken_by(&self) -> Option<Priority> {
        self.machine.overtaken_by()
    }

    fn offer(&mut self, now: Instant, packet: LinkPacket<'_>) {
        self.advance(now);
        let overtakes = self.machine.overtaken_by();
        assert!(
            self.machine.ready() || overtakes.is_some_and(|least| packet.priority >= least),
            "offered a packet at {now} to a link that is not ready"
        );
        self.progress();
        self.machine.offer(now, packet);
    }

    fn handle_frame(&mut self, now: Instant, octets: &[u8]) {
        self.input(now, "handle_frame");
        self.progress();
        self.machine.handle_frame(now, octets);
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.input(now, "handle_deadline");
        let named = self.machine.next_deadline();
        assert!(
            named.is_none_or(|deadline| deadline.at <= now),
            "handle_deadline at {now} before its time: {named:?}"
        );
        self.machine.handle_deadline(now);
    }

    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameTransmit> {
        self.advance(now);
        let before = out.len();
        let frame = self.machine.poll_frame(now, out);
        let written = out.len().checked_sub(before);
        assert_eq!(
            Some(frame.map_or(0, |frame| frame.len)),
            written,
            "FrameTransmit::len is not what was written"
        );
        if frame.is_some() {
            self.progress();
        }
        frame
    }

    fn poll_packet(&mut self, out: &mut Vec<u8>) -> Option<usize> {
        let before = out.len();
        let len = self.machine.poll_packet(out);
        assert_eq!(
            Some(len.unwrap_or(0)),
            out.len().checked_sub(before),
            "a released packet's length is not what was written"
        );
        self.packets_drained = len.is_none();
        len
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let deadline = self.machine.next_deadline();
        if self.packets_drained {
            if let Some(Deadline { at, why }) = deadline {
                assert!(
                    at >= self.now,
                    "deadline `{why}` at {at} lies in the past of {}",
                    self.now
                );
            }
            let seen = deadline.map(|deadline| (self.now, deadline));
            let repeats = if seen == self.seen.get() {
                self.seen_count.get() + 1
            } else {
                0
            };
            self.seen.set(seen);
            self.seen_count.set(repeats);
            assert!(
                deadline.is_none() || repeats < SAME_DEADLINE_MAX,
                "the same deadline {repeats} times without progress: {deadline:?}"
            );
        }
        deadline
    }

    fn held(&self) -> ByteCount {
        self.machine.held()
    }

    fn counters(&self) -> &LinkCounters {
        self.machine.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{FlowHash, Plain};
    use crate::wire::link::plain;
    use fulmar_proto::machine::TransmitKind;

    const LATER: Instant = Instant::from_nanos(1_000);

    fn packet(octets: &[u8]) -> LinkPacket<'_> {
        LinkPacket {
            octets,
            flow: FlowHash(0),
            priority: Priority(0),
            kind: TransmitKind::Source,
            deadline: None,
        }
    }

    fn frame() -> Vec<u8> {
        let mut frame = Vec::new();
        plain::encode(b"packet", &mut frame);
        frame
    }

    #[test]
    #[should_panic(expected = "not ready")]
    fn a_second_packet_before_the_first_ones_frame_panics() {
        let mut strict = StrictLink::new(Plain::default());
        strict.offer(LATER, packet(b"one"));
        strict.offer(LATER, packet(b"two"));
    }

    #[test]
    #[should_panic(expected = "before the drain ended")]
    fn a_frame_before_the_last_ones_packet_was_fetched_panics() {
        let mut strict = StrictLink::new(Plain::default());
        strict.handle_frame(LATER, &frame());
        strict.handle_frame(LATER, &frame());
    }

    #[test]
    #[should_panic(expected = "time went backwards")]
    fn time_going_backwards_panics() {
        let mut strict = StrictLink::new(Plain::default());
        strict.handle_frame(LATER, &frame());
        while strict.poll_packet(&mut Vec::new()).is_some() {}
        strict.handle_frame(Instant::START, &frame());
    }
}
