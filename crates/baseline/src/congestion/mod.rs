//! Congestion control: how large the window is.
//!
//! What was lost, and when a recovery begins and ends, is the sender's business; the rules here
//! only answer with a window. All amounts are octets.

mod cubic;
mod newreno;
mod unlimited;

use cubic::{Cubic, Revision};
use fulmar_proto::units::{Duration, Instant};
use newreno::NewReno;
use unlimited::Unlimited;

/// The rules by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Slow start and congestion avoidance of RFC 5681.
    NewReno,
    /// RFC 9438.
    Cubic,
    /// RFC 8312, as implementations have it: whole segments, and Reno's estimate grows by its
    /// share for ever.
    Cubic2018,
    /// No congestion control: the peer's window alone.
    None,
}

/// Octets were cumulatively acknowledged outside of fast recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    /// When.
    pub(crate) now: Instant,
    /// How many.
    pub(crate) octets: u64,
    /// The smoothed round trip, if there is one.
    pub(crate) rtt: Option<Duration>,
}

/// A rule for the congestion window.
pub(crate) trait CongestionControl: core::fmt::Debug + Send {
    /// The window.
    fn window(&self) -> u64;
    /// The slow start threshold; `u64::MAX` until a loss sets it.
    fn threshold(&self) -> u64;
    /// New octets were acknowledged and the window was used.
    fn on_acked(&mut self, acked: Acked);
    /// Duplicates, SACK or a congestion mark tell of a loss; `base` is what is reduced. The window
    /// becomes the threshold.
    fn on_loss(&mut self, now: Instant, base: u64);
    /// A timeout: the window becomes one segment. `again`: the same octets timed out before, and
    /// the threshold stays (RFC 5681, section 3.1).
    fn on_timeout(&mut self, now: Instant, base: u64, again: bool);
    /// The last reduction was a mistake: back to what was before it.
    fn undo(&mut self, now: Instant);
    /// Nothing was sent for a timeout: the window is no more than `window` (RFC 5681, section 4.1).
    fn on_idle(&mut self, now: Instant, window: u64);
    /// Begins with a threshold known from another connection.
    fn set_threshold(&mut self, threshold: u64);
}

/// How a window begins and what counts towards its growth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beginning {
    /// The octets of a segment.
    pub(crate) mss: u32,
    /// The first window in segments.
    pub(crate) segments: u16,
    /// Acknowledged octets count, not acknowledgements (RFC 3465).
    pub(crate) byte_counting: bool,
}

/// The rule of that name.
pub(crate) fn start(algorithm: Algorithm, beginning: Beginning) -> Box<dyn CongestionControl> {
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
