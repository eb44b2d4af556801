//! Channels written outside of this workspace: a law of the flight, behind our rate and queue and before our delay.
//!
//! The models of this crate are a closed set. A law of one's own comes in here, as a trait, and stands in line with them:
//! the packet has been queued and transmitted, the law decides what the medium does to it, and the hop's delay and
//! jitter come on top. A law that wants queue or rate for itself says the rate, or delays packets by what its queue holds.

use crate::flips::Flips;
use core::fmt;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use std::sync::Arc;

/// A law of one direction of one hop.
///
/// Its calls come in the order of transmissions. Equal seeds and equal calls must give equal answers: time is an
/// argument, and chance comes from the generator that its maker is given.
pub trait ChannelLaw: fmt::Debug + Send {
    /// The rate of the transmitter for packets that are handed over from `now` on, 1 bit/s at least; `None` leaves it as it is.
    /// Packets in the queue keep the times that they have.
    fn rate(&mut self, now: Instant) -> Option<Bitrate> {
        let _ = now;
        None
    }

    /// The fate of a packet that is on the link.
    fn fly(&mut self, flight: PacketFlight) -> FlightFate;
}

/// A packet on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketFlight {
    /// The time at which its first bit leaves.
    pub start: Instant,
    /// The time at which its last bit has left.
    pub end: Instant,
    /// Its length, lower headers included.
    pub len: ByteCount,
}

/// The fate of a packet on the link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlightFate {
    /// Whether it never arrives.
    pub lost: bool,
    /// The time that comes on top of the hop's delay, a year at most. Packets may overtake each other.
    pub later: Duration,
    /// The inverted bits, positions in 0..8 x length.
    pub flips: Flips,
}

impl FlightFate {
    /// It arrives whole and in time.
    pub const ARRIVES: Self = Self {
        lost: false,
        later: Duration::ZERO,
        flips: Flips::NONE,
    };
    /// It never arrives.
    pub const LOST: Self = Self {
        lost: true,
        later: Duration::ZERO,
        flips: Flips::NONE,
    };
}

/// A function that makes the law of one run and direction, with the randomness of its own.
type MakeLaw = dyn Fn(&Rng) -> Box<dyn ChannelLaw> + Send + Sync;

/// A channel written elsewhere, by its name: it makes a [`ChannelLaw`] for each direction and run.
#[derive(Clone)]
pub struct OwnChannel {
    name: Arc<str>,
    make: Arc<MakeLaw>,
}

impl OwnChannel {
    /// A channel that `make` makes from the generator of each run and direction.
    pub fn new<L: ChannelLaw + 'static>(
        name: &str,
        make: impl Fn(&Rng) -> L + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            make: Arc::new(move |rng| Box::new(make(rng))),
        }
    }

    /// The name under which scenarios know it.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn law(&self, rng: &Rng) -> Box<dyn ChannelLaw> {
        (self.make)(rng)
    }
}

impl fmt::Debug for OwnChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnChannel").field(&self.name).finish()
    }
}

impl PartialEq for OwnChannel {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.make, &other.make)
    }
}
