//! Proportional rate reduction: in fast recovery, octets leave in proportion to those that arrive
//! (RFC 9937).

/// The rate reduction's state (RFC 9937, section 6), in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RateReduction {
    /// The octets that arrived since recovery began.
    delivered: u64,
    /// The octets that left since recovery began.
    sent: u64,
    /// The octets in flight when it began that had not arrived: `RecoverFS`.
    flight: u64,
    /// The window until the next acknowledgement.
    window: u64,
}

impl RateReduction {
    /// Begins with `flight` octets in flight that had not arrived before this acknowledgement.
    pub(super) const fn begin(flight: u64) -> Self {
        Self {
            delivered: 0,
            sent: 0,
            flight: if flight == 0 { 1 } else { flight },
            window: 0,
        }
    }

    /// Takes an acknowledgement of `delivered` octets; `is_safe` if it acknowledges retransmissions
    /// and tells of no further loss.
    pub(super) fn on_ack(
        &mut self,
        delivered: u64,
        is_safe: bool,
        pipe: u64,
        threshold: u64,
        mss: u64,
    ) {
        self.delivered += delivered;
        let count = if pipe > threshold {
            let product = u128::from(self.delivered) * u128::from(threshold);
            let share = product.div_ceil(u128::from(self.flight));
            u64::try_from(share)
                .unwrap_or(u64::MAX)
                .saturating_sub(self.sent)
        } else {
            let behind = self.delivered.saturating_sub(self.sent).max(delivered);
            let limit = behind + if is_safe { mss } else { 0 };
            limit.min(threshold - pipe)
        };
        self.window = pipe + count;
    }

    /// Notes that `len` octets left.
    pub(super) const fn on_sent(&mut self, len: u64) {
        self.sent += len;
    }

    /// The window.
    pub(super) const fn window(&self) -> u64 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    #[test]
    fn above_the_threshold_half_of_what_arrives_leaves() {
        let mut reduction = RateReduction::begin(20 * MSS);
        let mut sent = 0;
        for arrived in 1..=10 {
            let pipe = 20 * MSS - arrived * MSS + sent;
            reduction.on_ack(MSS, false, pipe, 10 * MSS, MSS);
            let room = (reduction.window() - pipe) / MSS * MSS;
            reduction.on_sent(room);
            sent += room;
            assert_eq!(
                sent,
                arrived.div_ceil(2) * MSS - if arrived % 2 == 1 { MSS } else { 0 }
            );
        }
    }

    #[test]
    fn below_it_as_much_leaves_as_arrives_and_a_segment_more_when_it_is_safe() {
        let mut reduction = RateReduction::begin(20 * MSS);
        reduction.on_ack(MSS, false, 3 * MSS, 10 * MSS, MSS);
        assert_eq!(reduction.window(), 4 * MSS);
        reduction.on_sent(MSS);
        reduction.on_ack(MSS, true, 3 * MSS, 10 * MSS, MSS);
        assert_eq!(reduction.window(), 5 * MSS);
        reduction.on_ack(9 * MSS, true, 9 * MSS, 10 * MSS, MSS);
        assert_eq!(reduction.window(), 10 * MSS, "never above the threshold");
    }
}
