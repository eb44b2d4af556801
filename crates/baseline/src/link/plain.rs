//! The layer without repair: a frame around each packet, and damaged frames dropped.
//!
//! It does what a link with a frame check and nothing else does, such as Ethernet or PPP: the
//! yardstick of the other layers. Nothing waits here except the one packet whose frame was not
//! asked for yet.

use super::{FrameClass, FrameTransmit, LinkCounters, LinkMachine, LinkPacket};
use crate::wire::link::plain;
use fulmar_proto::machine::{Deadline, Priority, TransmitKind};
use fulmar_proto::units::{ByteCount, Instant};
use std::collections::VecDeque;

/// Packets that arrived and were not fetched; a driver that drains has one at a time.
const INBOX_PACKETS_MAX: usize = 1_024;

/// One end of a plain hop.
#[derive(Clone, Debug, Default)]
pub struct Plain {
    waiting: Option<Waiting>,
    inbox: VecDeque<Vec<u8>>,
    counters: LinkCounters,
}

#[derive(Clone, Debug)]
struct Waiting {
    octets: Vec<u8>,
    kind: TransmitKind,
    priority: Priority,
}

impl LinkMachine for Plain {
    fn ready(&self) -> bool {
        self.waiting.is_none()
    }

    fn offer(&mut self, _now: Instant, packet: LinkPacket<'_>) {
        if self.waiting.is_some() || packet.octets.is_empty() {
            self.counters.refused += 1;
            return;
        }
        self.counters.offered += 1;
        self.waiting = Some(Waiting {
            octets: packet.octets.to_vec(),
            kind: packet.kind,
            priority: packet.priority,
        });
    }

    fn handle_frame(&mut self, _now: Instant, octets: &[u8]) {
        match plain::parse(octets) {
            Ok(packet) if self.inbox.len() < INBOX_PACKETS_MAX => {
                self.inbox.push_back(packet.to_vec());
            }
            Ok(_) => self.counters.skipped += 1,
            Err(reason) => self.counters.reject(reason),
        }
    }

    fn handle_deadline(&mut self, _now: Instant) {}

    fn poll_frame(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<FrameTransmit> {
        let packet = self.waiting.take()?;
        let start = out.len();
        plain::encode(&packet.octets, out);
        self.counters.frames.add(FrameClass::Data, 1);
        Some(FrameTransmit {
            len: out.len() - start,
            class: FrameClass::Data,
            kind: packet.kind,
            priority: packet.priority,
        })
    }

    fn poll_packet(&mut self, out: &mut Vec<u8>) -> Option<usize> {
        let packet = self.inbox.pop_front()?;
        out.extend_from_slice(&packet);
        self.counters.released += 1;
        Some(packet.len())
    }

    fn next_deadline(&self) -> Option<Deadline> {
        None
    }

    fn held(&self) -> ByteCount {
        let waiting = self.waiting.as_ref().map_or(0, |w| w.octets.len());
        let inbox: usize = self.inbox.iter().map(Vec::len).sum();
        ByteCount::from_usize(waiting + inbox)
    }

    fn counters(&self) -> &LinkCounters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::by_hand::{offer, packet};

    #[test]
    fn one_packet_waits_to_leave_and_leaves_once() {
        let mut machine = Plain::default();
        offer(&mut machine, Instant::START, &packet(1));
        assert!(!machine.ready());
        offer(&mut machine, Instant::START, &packet(2));
        assert_eq!(machine.counters().refused, 1);
        assert_eq!(machine.held(), ByteCount(1_000));
        let mut frame = Vec::new();
        assert!(machine.poll_frame(Instant::START, &mut frame).is_some());
        assert_eq!(plain::parse(&frame), Ok(&packet(1)[..]));
        assert!(machine.poll_frame(Instant::START, &mut frame).is_none());
    }

    #[test]
    fn what_nobody_fetches_is_kept_in_order_up_to_a_bound() {
        let mut machine = Plain::default();
        let most = u16::try_from(INBOX_PACKETS_MAX).unwrap();
        for number in 0..=most {
            let mut frame = Vec::new();
            plain::encode(&number.to_be_bytes(), &mut frame);
            machine.handle_frame(Instant::START, &frame);
        }
        assert_eq!(machine.counters().skipped, 1);
        let mut fetched = Vec::new();
        while machine.poll_packet(&mut fetched).is_some() {}
        let first: Vec<u8> = (0..most).flat_map(u16::to_be_bytes).collect();
        assert!(fetched == first);
    }
}
