//! Active management of the queue before the link: it signals before the queue is full.
//!
//! A packet that may be marked (ECN-capable) is marked, and any other dropped. The queue is first in, first out
//! at a fixed rate, so the time at which a packet will leave it is known when it comes, and so is `CoDel`'s decision, which is due at
//! that time: packets leave in the order in which they came. What `CoDel` drops takes no time on the link.

use crate::codel::CoDel;
use crate::config_error::{ChannelConfigError, Setting};
use crate::red::{Red, RedConfig};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};

/// RED's typical packet (Floyd and Jacobson's simulations): it only scales idle time.
const TYPICAL_PACKET: ByteCount = ByteCount(1_000);

/// The law by which a queue signals early.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aqm {
    /// `CoDel` with RFC 8289's defaults, 5 ms and 100 ms.
    CoDel,
    /// Random early detection.
    Red(RedConfig),
}

impl Aqm {
    pub(crate) fn check(self) -> Result<(), ChannelConfigError> {
        match self {
            Self::CoDel => Ok(()),
            Self::Red(config) => config.validate(),
        }
    }
}

/// The state of a law.
#[derive(Clone, Debug)]
pub(crate) struct Manager {
    law: Law,
    rate: Bitrate,
    /// The longest packet so far.
    longest: ByteCount,
    /// The start of the last transmission, with which the last packet left the queue.
    left_at: Option<Instant>,
}

#[derive(Clone, Debug)]
enum Law {
    CoDel(CoDel),
    Red(Red),
}

impl Manager {
    pub(crate) fn new(aqm: Aqm, rate: Bitrate, rng: &Rng) -> Self {
        let law = match aqm {
            Aqm::CoDel => Law::CoDel(CoDel::default()),
            Aqm::Red(config) => {
                let packet_time = rate.time_to_send(TYPICAL_PACKET);
                Law::Red(Red::new(config, packet_time, rng.child("red")))
            }
        };
        Self {
            law,
            rate,
            longest: ByteCount::ZERO,
            left_at: None,
        }
    }

    /// Notes a packet that comes to a queue of `waiting`, and says whether to signal. `has_room` says whether the
    /// queue takes it, and it will leave the queue `wait` from now.
    pub(crate) fn signals(
        &mut self,
        now: Instant,
        len: ByteCount,
        (waiting, wait): (usize, Duration),
        has_room: bool,
    ) -> bool {
        match &mut self.law {
            Law::Red(red) => {
                if waiting == 0
                    && let Some(left_at) = self.left_at.take()
                {
                    red.idle(left_at);
                }
                red.arrival(now, waiting)
            }
            Law::CoDel(codel) => {
                self.longest = self.longest.max(len);
                // RFC 8289, section 4.3: a queue of at most one longest packet is no standing queue. One that
                // waits no longer than that packet takes had no more before it.
                let is_short = wait <= self.rate.time_to_send(self.longest);
                has_room && codel.signals(now + wait, wait, is_short)
            }
        }
    }

    /// Notes that a packet was admitted whose transmission starts at `start`.
    pub(crate) const fn admitted(&mut self, start: Instant) {
        self.left_at = Some(start);
    }
}

/// An error for a law without what it needs.
pub(crate) fn unusable(aqm: Aqm, allowed: &str) -> ChannelConfigError {
    ChannelConfigError::new(Setting::Aqm.whole(), aqm, allowed)
}
