//! One end of a hop with LL-HARQ: routes frames between its halves.

use super::receiver::{ANSWER_SLACK_UNITS, GAP_UNITS, REPEAT_UNITS, Receiver, repeats};
use super::sender::Sender;
use super::{FIRST_BLOCKS_APART, HarqConfig};
use crate::link::{FrameTransmit, LinkCounters, LinkMachine, LinkPacket, Medium};
use crate::wire::link::FrameNumber;
use crate::wire::link::arq::Epoch;
use crate::wire::link::harq::HarqFrame;
use fulmar_proto::machine::Deadline;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration, Instant};

/// Added to every derived time, so that on a medium that takes no time an answer is there first.
const CLOCK_STEP: Duration = Duration::from_micros(20);
/// Frame times of the way back until a feedback is here: of what stands before it, its own, and that
/// of the next one, should it be lost.
const FEEDBACK_FRAMES: u32 = 3;
/// Times of the receiver's, each with its step, between a last unit and its feedback: the unit's, the
/// gap, and the repetition.
const FEEDBACK_STEPS: u32 = 3;

/// The longest packet that a block takes: a network packet's length has 16 bits.
const PACKET_BYTES_MAX: usize = 65_535;

/// One end of a hop with LL-HARQ.
#[derive(Clone, Debug)]
pub struct LlHarq {
    medium: Medium,
    epoch: Epoch,
    /// The longest frame that went either way: what feedback may have to wait for.
    longest: ByteCount,
    sender: Sender,
    receiver: Receiver,
    counters: LinkCounters,
}

impl LlHarq {
    /// An end over `medium`, whose life gets a name and a first number from `rng`.
    pub fn new(config: HarqConfig, medium: Medium, rng: &mut Rng) -> Self {
        // Below 2^16.
        let mut drawn = || u16::try_from(rng.below(1 << 16)).unwrap_or_default();
        let epoch = Epoch(drawn());
        let first = drawn();
        let first = FrameNumber(first - first % FIRST_BLOCKS_APART);
        Self {
            medium,
            epoch,
            longest: ByteCount::ZERO,
            sender: Sender::new(config, medium.round_trip, (epoch, first)),
            receiver: Receiver::new(config, medium, rng),
            counters: LinkCounters::default(),
        }
    }

    /// Says which life this is, if the peer has asked.
    fn poll_answer(&mut self, out: &mut Vec<u8>) -> Option<FrameTransmit> {
        let challenge = self.receiver.poll_answer()?;
        let start = out.len();
        HarqFrame::Answer {
            epoch: self.epoch,
            base: self.sender.base(),
            challenge,
        }
        .encode(out);
        Some(FrameTransmit::control(out.len() - start))
    }

    /// From the start of a block's last unit to its feedback at the latest: the way there and back,
    /// the gap that the receiver waits for, feedback that was lost and repeated as often as it is, and
    /// what the medium may hold up: the last unit, and what the gap is told by.
    fn patience(&self) -> Duration {
        let there = self.medium.frame_time(self.longest);
        let back = self.medium.back_frame_time(self.longest);
        let repeats = repeats(self.receiver.loss()) * REPEAT_UNITS;
        let units = GAP_UNITS + ANSWER_SLACK_UNITS + repeats;
        let held_up = self.medium.waiting() * 2;
        let steps = CLOCK_STEP * FEEDBACK_STEPS;
        self.medium.round_trip + held_up + there * units + back * FEEDBACK_FRAMES + steps
    }
}

impl LinkMachine for LlHarq {
    fn ready(&self) -> bool {
        self.sender.ready()
    }

    fn offer(&mut self, _now: Instant, packet: LinkPacket<'_>) {
        let len = packet.octets.len();
        if !self.sender.ready() || len == 0 || len > PACKET_BYTES_MAX {
            self.counters.refused += 1;
            return;
        }
        self.counters.offered += 1;
        self.sender.offer(packet);
    }

    fn handle_frame(&mut self, now: Instant, octets: &[u8]) {
        let frame = match HarqFrame::parse(octets) {
            Ok(frame) => frame,
            Err(reason) => {
                self.counters.reject(reason);
                return;
            }
        };
        self.longest = self.longest.max(ByteCount::of(octets));
        match frame {
            HarqFrame::Unit(unit, content) => {
                let time = self.medium.back_frame_time(ByteCount::of(octets)) + CLOCK_STEP;
                self.receiver
                    .unit(now, unit, content, time, &mut self.counters);
            }
            HarqFrame::Feedback(feedback) => {
                if feedback.epoch != self.epoch || !self.sender.feedback(now, &feedback) {
                    self.counters.unexpected += 1;
                }
            }
            HarqFrame::Challenge(challenge) => self.receiver.challenged(challenge),
            HarqFrame::Answer {
                epoch,
                base,
                challenge,
            } => {
                let peer = (epoch, base);
                self.receiver
                    .answer(now, peer, challenge, &mut self.counters);
            }
        }
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.sender.handle_deadline(now);
        self.receiver.handle_deadline(now, &mut self.counters);
    }

    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameTransmit> {
        let frame = self.poll_answer(out);
        let loss = self.sender.loss();
        let frame = frame.or_else(|| self.receiver.poll(now, loss, out));
        let frame = frame.or_else(|| {
            let patience = self.patience();
            let unit_time = self.medium.frame_time(self.longest) + CLOCK_STEP;
            self.sender.poll(now, (patience, unit_time), out)
        })?;
        self.longest = self.longest.max(ByteCount::from_usize(frame.len));
        self.counters.frames.add(frame.class, 1);
        Some(frame)
    }

    fn poll_packet(&mut self, out: &mut Vec<u8>) -> Option<usize> {
        let len = self.receiver.pop(out)?;
        self.counters.released += 1;
        Some(len)
    }

    fn next_deadline(&self) -> Option<Deadline> {
        Deadline::earlier(self.sender.next_deadline(), self.receiver.next_deadline())
    }

    fn held(&self) -> ByteCount {
        ByteCount::from_usize(self.sender.held_octets() + self.receiver.held_octets())
    }

    fn counters(&self) -> &LinkCounters {
        &self.counters
    }
}
