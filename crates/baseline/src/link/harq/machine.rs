//! One end of a hop with LL-HARQ: routes frames between its halves.

use super::receiver::{ANSWER_SLACK_UNITS, GAP_UNITS, HarqReceiver, REPEAT_UNITS, repeats};
use super::sender::HarqSender;
use super::{FIRST_BLOCKS_APART, HarqConfig};
use crate::link::{FrameTransmit, LinkCounters, LinkMachine, LinkPacket, Medium};
use crate::wire::link::FrameNumber;
use crate::wire::link::arq::Epoch;
use crate::wire::link::harq::HarqFrame;
use fulmar_proto::machine::Deadline;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration, Instant};

/// The time added to every derived time, so that an answer comes first even on a medium that takes
/// no time.
const CLOCK_STEP: Duration = Duration::from_micros(20);
/// The frame times of the way back until a feedback has arrived: of the frame before it, its own,
/// and that of the next feedback in case it is lost.
const FEEDBACK_FRAMES: u32 = 3;
/// The receiver's delays between a last unit and its feedback, each with its step: the unit's, the
/// gap's, and the repetition's.
const FEEDBACK_STEPS: u32 = 3;

/// The longest packet that a block takes: a network packet's length has 16 bits.
const PACKET_BYTES_MAX: usize = 65_535;

/// One end of a hop with LL-HARQ.
#[derive(Clone, Debug)]
pub struct LlHarq {
    medium: Medium,
    epoch: Epoch,
    /// The longest frame that went either way: feedback may have to wait for such a frame.
    longest: ByteCount,
    /// The longest unit that came. A unit as long as that may follow a short one, so the receiver counts in its time.
    longest_unit: ByteCount,
    sender: HarqSender,
    receiver: HarqReceiver,
    counters: LinkCounters,
}

impl LlHarq {
    /// An end over `medium`, whose life gets its name and its first number from `rng`.
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
            longest_unit: ByteCount::ZERO,
            sender: HarqSender::new(config, medium.round_trip, (epoch, first)),
            receiver: HarqReceiver::new(config, medium, rng),
            counters: LinkCounters::default(),
        }
    }

    /// Names this life, if the peer has asked.
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

    /// The longest time from the start of a block's last unit to its feedback. It contains the way
    /// there and back, the gap that the receiver waits for, and the repetitions of feedback that was
    /// lost. It also contains the time for which the medium may hold up the last unit, and the unit
    /// that shows the gap.
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
                self.receiver.note_damaged();
                return;
            }
        };
        self.longest = self.longest.max(ByteCount::of(octets));
        match frame {
            HarqFrame::Unit(unit, content) => {
                self.longest_unit = self.longest_unit.max(ByteCount::of(octets));
                let time = self.medium.back_frame_time(self.longest_unit) + CLOCK_STEP;
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
