//! One end of a hop with ARQ: routes frames between its halves.

use super::ArqConfig;
use super::receiver::{ArqArrival, ArqReceiver};
use super::sender::ArqSender;
use crate::link::{FrameTransmit, LinkCounters, LinkMachine, LinkPacket, Medium};
use crate::wire::link::FrameNumber;
use crate::wire::link::arq::{self, ARQ_OVERHEAD_BYTES, ArqFrame, Epoch};
use fulmar_proto::machine::Deadline;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration, Instant};

/// One end of a hop with ARQ.
#[derive(Clone, Debug)]
pub struct Arq {
    config: ArqConfig,
    medium: Medium,
    epoch: Epoch,
    /// The longest frame that went either way: an acknowledgement may have to wait for such a
    /// frame.
    longest: ByteCount,
    sender: ArqSender,
    receiver: ArqReceiver,
    counters: LinkCounters,
}

impl Arq {
    /// An end over `medium`, whose life gets its name and its first number from `rng`.
    pub fn new(config: ArqConfig, medium: Medium, rng: &mut Rng) -> Self {
        // Below 2^16.
        let mut drawn = || u16::try_from(rng.below(1 << 16)).unwrap_or_default();
        let (epoch, first) = (Epoch(drawn()), FrameNumber(drawn()));
        Self {
            config,
            medium,
            epoch,
            longest: ByteCount::ZERO,
            sender: ArqSender::new(config, epoch, first),
            receiver: ArqReceiver::new(config, rng),
            counters: LinkCounters::default(),
        }
    }

    fn timeout(&self) -> Duration {
        self.config.timeout(self.medium, self.longest)
    }

    /// Names this life, if the peer has asked.
    fn poll_answer(&mut self, out: &mut Vec<u8>) -> Option<FrameTransmit> {
        let challenge = self.receiver.poll_answer()?;
        let start = out.len();
        ArqFrame::Answer {
            epoch: self.epoch,
            base: self.sender.base(),
            challenge,
        }
        .encode(out);
        Some(FrameTransmit::control(out.len() - start))
    }

    /// The time from its first transmission in which a frame is repeated if it is asked for: as long as the receiver asks for one
    /// that it missed at once. A gap that shows only later is too old to repair.
    fn lifetime(&self) -> Duration {
        self.timeout() * (u32::from(self.config.retries) + 2)
    }

    /// The longest time that a packet waits for one before it: the time in which the peer may send
    /// that packet, and half as long again for frames that had to wait for others.
    fn hold(&self) -> Duration {
        let tries = u32::from(self.config.retries) + 1;
        self.timeout() * (tries + tries / 2 + 1)
    }
}

impl LinkMachine for Arq {
    fn ready(&self) -> bool {
        self.sender.ready()
    }

    fn offer(&mut self, _now: Instant, packet: LinkPacket<'_>) {
        if !self.sender.ready() || packet.octets.is_empty() {
            self.counters.refused += 1;
            return;
        }
        self.counters.offered += 1;
        let frame = ByteCount::from_usize(packet.octets.len() + ARQ_OVERHEAD_BYTES);
        self.longest = self.longest.max(frame);
        self.sender.offer(packet);
    }

    fn handle_frame(&mut self, now: Instant, octets: &[u8]) {
        let frame = match ArqFrame::parse(octets) {
            Ok(frame) => frame,
            Err(reason) => {
                self.counters.reject(reason);
                return;
            }
        };
        self.longest = self.longest.max(ByteCount::of(octets));
        let hold = self.hold();
        match frame {
            ArqFrame::Data {
                epoch,
                number,
                base,
                again,
                packet,
            } => {
                let arrival = ArqArrival {
                    epoch,
                    number,
                    base,
                    again,
                    packet,
                };
                self.receiver.data(now, arrival, hold, &mut self.counters);
            }
            ArqFrame::Advance { epoch, base } => {
                let peer = (epoch, base);
                self.receiver.advance(now, peer, hold, &mut self.counters);
            }
            ArqFrame::Ack { epoch, next, bits } => {
                if epoch != self.epoch || !self.sender.acknowledge(next, bits) {
                    self.counters.unexpected += 1;
                }
            }
            ArqFrame::Request { epoch, ranges } => {
                if epoch == self.epoch {
                    self.sender
                        .request(now, arq::ranges(ranges), &mut self.counters);
                } else {
                    self.counters.unexpected += 1;
                }
            }
            ArqFrame::Challenge(challenge) => self.receiver.challenged(challenge),
            ArqFrame::Answer {
                epoch,
                base,
                challenge,
            } => {
                let peer = (epoch, base);
                self.receiver
                    .answer(now, peer, challenge, hold, &mut self.counters);
            }
        }
        self.counters.skipped = self.receiver.passed_over();
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.sender.handle_deadline(now, &mut self.counters);
        self.receiver.handle_deadline(now, self.hold());
        self.counters.skipped = self.receiver.passed_over();
    }

    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameTransmit> {
        let spans = (self.timeout(), self.lifetime());
        let frame = self.poll_answer(out);
        let frame = frame
            .or_else(|| self.receiver.poll(now, spans.0, out))
            .or_else(|| self.sender.poll(now, spans, out))?;
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
