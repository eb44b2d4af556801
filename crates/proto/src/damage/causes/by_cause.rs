//! Losses by cause, as they are reported.

/// The causes.
pub const CAUSES: usize = 5;

/// The reason why a packet did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossCause {
    /// Wrong bits, for which it was dropped.
    BitErrors,
    /// None that others share.
    Random,
    /// A short time in which the link loses all.
    Burst,
    /// A queue without room.
    Queue,
    /// A time in which nothing gets through.
    Outage,
}

impl LossCause {
    /// All, in the order of reports.
    pub const ALL: [Self; CAUSES] = [
        Self::BitErrors,
        Self::Random,
        Self::Burst,
        Self::Queue,
        Self::Outage,
    ];

    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BitErrors => "bit-errors",
            Self::Random => "random",
            Self::Burst => "burst",
            Self::Queue => "queue",
            Self::Outage => "outage",
        }
    }
}

/// The share of a cause among all losses, with an interval that has the true one in nine cases of ten.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CauseShare {
    /// The cause.
    pub cause: LossCause,
    /// The likeliest share.
    pub share: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Losses by cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossByCause {
    /// Packets counted.
    pub sent: f64,
    /// Those of them that were lost.
    pub lost: f64,
    /// The share of each cause, in the order of [`LossCause::ALL`].
    pub shares: [CauseShare; CAUSES],
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of packets, whole and not negative"
)]
const fn whole(packets: f64) -> u64 {
    packets.round() as u64
}

impl LossByCause {
    /// The losses of several, each cause by its part of all that was lost. The intervals are put together likewise, which makes
    /// them no narrower than they are.
    pub fn together(each: impl Iterator<Item = Self>) -> Option<Self> {
        each.reduce(|one, other| {
            let lost = one.lost + other.lost;
            if lost <= 0.0 {
                return one;
            }
            let mix = |a: f64, b: f64| (a * one.lost + b * other.lost) / lost;
            let mut shares = one.shares;
            for (share, more) in shares.iter_mut().zip(other.shares) {
                share.share = mix(share.share, more.share);
                share.low = mix(share.low, more.low);
                share.high = mix(share.high, more.high);
            }
            Self {
                sent: one.sent + other.sent,
                lost,
                shares,
            }
        })
    }

    /// Packets counted, as a number of them.
    pub const fn sent_packets(&self) -> u64 {
        whole(self.sent)
    }

    /// Those of them that were lost.
    pub const fn lost_packets(&self) -> u64 {
        whole(self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_causes_of_several_losses_count_by_what_each_lost() {
        let of = |lost: f64, cause: LossCause| LossByCause {
            sent: 1_000.0,
            lost,
            shares: LossCause::ALL.map(|one| CauseShare {
                cause: one,
                share: f64::from(u8::from(one == cause)),
                low: 0.0,
                high: 1.0,
            }),
        };
        let all = [of(30.0, LossCause::Random), of(10.0, LossCause::Burst)];
        let sum = LossByCause::together(all.into_iter()).expect("two");
        assert_eq!((sum.sent_packets(), sum.lost_packets()), (2_000, 40));
        let share = |cause: LossCause| sum.shares[cause as usize].share;
        assert!((share(LossCause::Random) - 0.75).abs() < 1e-9);
        assert!((share(LossCause::Burst) - 0.25).abs() < 1e-9);
        assert_eq!(LossByCause::together(core::iter::empty()), None);
    }
}
