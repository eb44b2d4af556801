//! The flows that a peer has refused to a tunnel, and for how long none of them is asked for again.

use fulmar_proto::splice::RefuseCode;
use fulmar_proto::units::{Duration, Instant};
use std::collections::BTreeMap;

/// The pause after a refusal.
const PAUSE: Duration = Duration::from_secs(1);

/// The refusals of one tunnel that hold still.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// The end of the pause of all buckets: the peer has no such tunnel.
    missing_until: Option<Instant>,
    /// The end of the pause of a bucket for whose flow the peer had no room. Others may have theirs, so that a host which opens
    /// flows without end stops none of them.
    full_until: BTreeMap<u16, Instant>,
}

impl Refusals {
    /// Notes a refusal of a bucket's flow.
    pub(super) fn note(&mut self, now: Instant, bucket: u16, code: RefuseCode) {
        let until = now + PAUSE;
        match code {
            RefuseCode::NotAllowed => self.missing_until = Some(until),
            RefuseCode::TooMany => {
                self.full_until.retain(|_, until| now < *until);
                self.full_until.insert(bucket, until);
            }
            _ => {}
        }
    }

    /// Whether this bucket's flow would be refused again.
    pub(super) fn hold(&self, now: Instant, bucket: u16) -> bool {
        let full = self.full_until.get(&bucket);
        let mut ends = self.missing_until.iter().chain(full);
        ends.any(|until| now < *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_without_room_pauses_that_bucket_and_one_without_the_tunnel_all() {
        let start = Instant::START;
        let mut refusals = Refusals::default();
        refusals.note(start, 7, RefuseCode::TooMany);
        assert!(refusals.hold(start, 7));
        assert!(!refusals.hold(start, 8));
        assert!(!refusals.hold(start + PAUSE, 7));
        refusals.note(start, 7, RefuseCode::NotAllowed);
        assert!(refusals.hold(start, 8));
        assert!(!refusals.hold(start + PAUSE, 8));
    }

    #[test]
    fn refusals_that_are_over_take_no_memory() {
        let mut refusals = Refusals::default();
        refusals.note(Instant::START, 7, RefuseCode::TooMany);
        refusals.note(Instant::START + PAUSE, 8, RefuseCode::TooMany);
        assert_eq!(refusals.full_until.len(), 1);
    }
}
