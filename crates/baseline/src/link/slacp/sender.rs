//! The sending side of a lane: packets that were sent and are not settled.

use super::WINDOW;
use super::config::{LaneSettings, Timing};
use crate::wire::link::slacp::{Ack, FrameSeq};
use fulmar_proto::units::Instant;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
struct Sent {
    /// The packet; `None` once it is known to have come, or is given up.
    packet: Option<Vec<u8>>,
    /// The time at which it was first sent.
    since: Instant,
    /// The time at which it was last sent.
    at: Instant,
    /// The number that the lane's next new packet had then. When a packet with this number or a
    /// later one has come, and this one has not, this one is lost, because the medium keeps order.
    before: FrameSeq,
    tries: u8,
    /// Whether it waits to be retransmitted.
    queued: bool,
}

/// A packet that has to be retransmitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) seq: FrameSeq,
    pub(super) packet: Vec<u8>,
    /// The number of times it was asked for, this time included.
    pub(super) round: u8,
    /// The time from which on it is not worth sending.
    pub(super) until: Instant,
}

/// The outcome of an acknowledgement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) wanted: Vec<Wanted>,
    pub(super) given_up: u64,
}

/// The sender of a lane: packets from `base` on, in order, that the receiver may still ask for.
#[derive(Clone, Debug)]
pub(super) struct LaneSender {
    settings: LaneSettings,
    base: FrameSeq,
    sent: VecDeque<Sent>,
    /// Whether the receiver waits for a packet before `base`.
    pub(super) floor_due: bool,
}

impl LaneSender {
    pub(super) const fn new(settings: LaneSettings) -> Self {
        Self {
            settings,
            base: FrameSeq(0),
            sent: VecDeque::new(),
            floor_due: false,
        }
    }

    /// The number before which no packet is retransmitted.
    pub(super) const fn floor(&self) -> FrameSeq {
        self.base
    }

    pub(super) const fn settings(&self) -> LaneSettings {
        self.settings
    }

    /// Octets of packets kept here.
    pub(super) fn held_octets(&self) -> usize {
        let packets = self.sent.iter().filter_map(|sent| sent.packet.as_ref());
        packets.map(Vec::len).sum()
    }

    /// The number of the next packet.
    pub(super) fn next(&self) -> FrameSeq {
        // The window bounds the length.
        self.base
            .plus(u16::try_from(self.sent.len()).unwrap_or(u16::MAX))
    }

    /// Sends the next packet. Returns the number of older ones that are given up for it.
    pub(super) fn send(&mut self, now: Instant, packet: Vec<u8>) -> u64 {
        self.sent.push_back(Sent {
            packet: self.settings.repairs().then_some(packet),
            since: now,
            at: now,
            before: self.next().plus(1),
            tries: 0,
            queued: false,
        });
        let mut given_up = 0;
        if self.sent.len() > usize::from(WINDOW) {
            let oldest = self.sent.pop_front();
            given_up = u64::from(oldest.is_some_and(|oldest| oldest.packet.is_some()));
            self.base = self.base.plus(1);
        }
        self.pass_settled();
        given_up
    }

    /// Drops packets at the front that nobody will ask for.
    fn pass_settled(&mut self) {
        while self.sent.front().is_some_and(|sent| sent.packet.is_none()) {
            self.sent.pop_front();
            self.base = self.base.plus(1);
        }
    }

    /// Notes that retransmission `seq` is sent now.
    pub(super) fn sent_again(&mut self, now: Instant, seq: FrameSeq) {
        let before = self.next();
        let offset = usize::from(seq.offset_from(self.base));
        if let Some(sent) = self.sent.get_mut(offset) {
            sent.at = now;
            sent.before = before;
            sent.queued = false;
        }
    }

    /// Takes an acknowledgement; `None` if it names packets that were never sent. Packets that were
    /// sent less than a round trip ago are not held for lost unless later ones have come. At most
    /// `room` packets are asked for.
    pub(super) fn acknowledge(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        timing: &Timing,
        room: usize,
    ) -> Option<Answer> {
        let behind = self.base.offset_from(ack.expected);
        if (1..=WINDOW).contains(&behind) {
            self.floor_due = true;
        }
        let behind = if behind > WINDOW { 0 } else { behind };
        // Both are distances from `base`; nothing is kept before it.
        let expected = ack.expected.plus(behind).offset_from(self.base);
        let end = if behind > ack.end.offset_from(ack.expected) {
            0
        } else {
            ack.end.offset_from(self.base)
        };
        let (expected, end) = (usize::from(expected), usize::from(end));
        if expected > self.sent.len() || end > self.sent.len() {
            return None;
        }
        let mut came: VecDeque<bool> = (0..end).map(|_| true).collect();
        for missing in ack.missing() {
            for step in 0..missing.count {
                let offset = missing.start.plus(step).offset_from(self.base);
                if let Some(came) = came.get_mut(usize::from(offset)) {
                    *came = false;
                }
            }
        }
        let mut answer = Answer::default();
        let base = self.base;
        let lifetime = timing.lifetime(self.settings.persistence);
        for (offset, sent) in self.sent.iter_mut().enumerate() {
            if came.get(offset).copied().unwrap_or(false) || offset < expected {
                sent.packet = None;
                continue;
            }
            let overtaken = offset < end && usize::from(sent.before.offset_from(base)) < end;
            let lost = overtaken || sent.at + timing.round_trip <= now;
            let Some(packet) = &sent.packet else { continue };
            let until = sent.since + lifetime;
            let is_over = until <= now;
            if !is_over && (sent.queued || !lost) {
                continue;
            }
            if is_over || sent.tries >= self.settings.persistence {
                sent.packet = None;
                answer.given_up += 1;
                self.floor_due = true;
            } else if answer.wanted.len() < room {
                sent.tries += 1;
                sent.queued = true;
                // The window bounds the offset.
                let seq = base.plus(u16::try_from(offset).unwrap_or(u16::MAX));
                answer.wanted.push(Wanted {
                    seq,
                    packet: packet.clone(),
                    round: sent.tries,
                    until,
                });
            }
        }
        self.pass_settled();
        Some(answer)
    }
}
