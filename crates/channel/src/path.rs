//! The time from the end of the transmission to the arrival: propagation, jitter, and holding back.
//!
//! arrival = end of transmission + delay + uniform(-spread, +spread) + (held back ? extra : 0)
//!
//! With [`PacketOrder::Kept`] an arrival is never before that of an earlier packet that was not held
//! back: the medium is a pipe, and a late packet delays those behind it. That makes the delay of
//! closely spaced packets larger on average than `delay`.

use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant, Probability};

/// Whether jitter may change the order of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketOrder {
    /// First in, first out.
    #[default]
    Kept,
    /// Each packet has its own delay, so that packets may overtake each other.
    Free,
}

/// A delay that varies from packet to packet, uniformly and independently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// The delay varies by at most this, up and down; at most the delay itself.
    pub spread: Duration,
    /// Whether packets may overtake each other because of it.
    pub order: PacketOrder,
}

/// Some packets are held back, so that later ones overtake them. The share of packets that arrive
/// out of order is `probability` when `extra` exceeds the spacing of the packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// The share of packets held back.
    pub probability: Probability,
    /// The time for which they are held back; above zero.
    pub extra: Duration,
}

/// The state of a path.
#[derive(Clone, Debug)]
pub(crate) struct PropagationPath {
    delay: Duration,
    jitter: Option<(Jitter, Rng)>,
    reorder: Option<(Reorder, Rng)>,
    latest: Instant,
}

/// The arrival of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathArrival {
    pub(crate) at: Instant,
    pub(crate) held_back: bool,
}

impl PropagationPath {
    pub(crate) fn new(
        delay: Duration,
        jitter: Option<Jitter>,
        reorder: Option<Reorder>,
        rng: &Rng,
    ) -> Self {
        Self {
            delay,
            jitter: jitter.map(|jitter| (jitter, rng.child("jitter"))),
            reorder: reorder.map(|reorder| (reorder, rng.child("reorder"))),
            latest: Instant::START,
        }
    }

    /// Packets that leave from now on take this time.
    pub(crate) const fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    pub(crate) fn arrive(&mut self, end: Instant) -> PathArrival {
        let mut at = end + self.delay;
        let mut order = PacketOrder::Free;
        if let Some((jitter, rng)) = &mut self.jitter {
            let spread = u64::try_from(jitter.spread.as_nanos()).unwrap_or(u64::MAX / 4);
            let shift = rng.below(2 * spread + 1);
            at = at - jitter.spread + Duration::from_nanos(shift);
            order = jitter.order;
        }
        if let Some((reorder, rng)) = &mut self.reorder
            && rng.chance(reorder.probability.value())
        {
            let at = at + reorder.extra;
            return PathArrival {
                at,
                held_back: true,
            };
        }
        if order == PacketOrder::Kept {
            at = at.max(self.latest);
            self.latest = at;
        }
        PathArrival {
            at,
            held_back: false,
        }
    }
}
