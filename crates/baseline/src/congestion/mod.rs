//! Congestion control: the size of the window.
//!
//! The sender decides which segments are lost, and when a recovery begins and ends. The rules here
//! only answer with a window. All amounts are octets.

mod cubic;
mod newreno;
mod unlimited;

use cubic::{Cubic, Revision};
use fulmar_proto::units::{Duration, Instant};
use newreno::NewReno;
use unlimited::Unlimited;

/// The congestion control rules by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Slow start and congestion avoidance of RFC 5681.
    NewReno,
    /// RFC 9438.
    Cubic,
    /// RFC 8312, as implementations have it: windows are whole segments, and Reno's estimate keeps
    /// growing by the same share.
    Cubic2018,
    /// No congestion control: the peer's window alone.
    None,
}

/// Octets that were cumulatively acknowledged outside of fast recovery.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// The time.
    pub now: Instant,
    /// The number of octets.
    pub octets: u64,
    /// The smoothed round-trip time, if there is one.
    pub rtt: Option<Duration>,
}

/// A rule for the congestion window.
pub trait CongestionControl: core::fmt::Debug + Send {
    /// The window.
    fn window(&self) -> u64;
    /// The slow start threshold; `u64::MAX` until a loss sets it.
    fn threshold(&self) -> u64;
    /// Takes newly acknowledged octets, if the window was used.
    fn on_acked(&mut self, acked: Acked);
    /// Handles a loss that duplicates, SACK or a congestion mark showed; `base` is the amount that
    /// is reduced. The window becomes the threshold.
    fn on_loss(&mut self, now: Instant, base: u64);
    /// Handles a timeout: the window becomes one segment. `again` says that the same octets timed
    /// out before; the threshold then stays (RFC 5681, section 3.1).
    fn on_timeout(&mut self, now: Instant, base: u64, again: bool);
    /// Undoes the last reduction, which was a mistake.
    fn undo(&mut self, now: Instant);
    /// Handles a timeout's length without sending: the window becomes at most `window` (RFC 5681,
    /// section 4.1).
    fn on_idle(&mut self, now: Instant, window: u64);
    /// Begins with a threshold known from another connection.
    fn set_threshold(&mut self, threshold: u64);
}

/// The first window, and the rule for its growth.
#[derive(Clone, Copy, Debug)]
pub struct Beginning {
    /// Octets of a segment.
    pub mss: u32,
    /// The first window in segments.
    pub segments: u16,
    /// Whether octets that are acknowledged count, and not acknowledgements (RFC 3465).
    pub byte_counting: bool,
}

/// The rule with that name.
pub fn start(algorithm: Algorithm, beginning: Beginning) -> Box<dyn CongestionControl> {
    let mss = u64::from(beginning.mss);
    let window = mss * u64::from(beginning.segments);
    let counting = beginning.byte_counting;
    match algorithm {
        Algorithm::NewReno => Box::new(NewReno::new(mss, window, counting)),
        Algorithm::Cubic => Box::new(Cubic::new(mss, window, Revision::Rfc9438, counting)),
        Algorithm::Cubic2018 => Box::new(Cubic::new(mss, window, Revision::Rfc8312, counting)),
        Algorithm::None => Box::new(Unlimited),
    }
}

/// The smallest threshold, in segments (RFC 5681, equation 4).
const THRESHOLD_SEGMENTS_MIN: u64 = 2;
