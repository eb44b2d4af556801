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
    /// Packets counted, as a number of them.
    pub const fn sent_packets(&self) -> u64 {
        whole(self.sent)
    }

    /// Those of them that were lost.
    pub const fn lost_packets(&self) -> u64 {
        whole(self.lost)
    }
}
