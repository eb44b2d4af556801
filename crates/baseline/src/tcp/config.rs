//! What a user may choose of a TCP, and what is sane.

use crate::congestion::Algorithm;
use core::num::NonZeroU8;
use fulmar_proto::units::{ByteCount, Duration};

/// Bounds of the retransmission timeout (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoBounds {
    /// Before the first sample: of the SYN, and of data when there was none by then.
    pub initial: Duration,
    /// Never less.
    pub min: Duration,
    /// Never more, backed off or not.
    pub max: Duration,
}

/// How the retransmission timeout follows from the round trip, within its [`RtoBounds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoRule {
    /// The clock's grain, the G of RFC 6298: added at the least.
    pub granularity: Duration,
    /// How many variations are added, its K.
    pub variations: u8,
    /// How many smoothed round trips are added at the least.
    pub round_trips: u8,
}

impl RtoRule {
    /// SRTT + max(G, 4 RTTVAR) with G of 1 ms.
    pub const RFC_6298: Self = Self {
        granularity: Duration::from_millis(1),
        variations: 4,
        round_trips: 0,
    };
    /// Hardly above the round trip: SRTT + max(10 us, RTTVAR). The free-space-optics paper's "aggressive"
    /// calculation (section 4.1.1), which it does not give.
    pub const AGGRESSIVE: Self = Self {
        granularity: Duration::from_micros(10),
        variations: 1,
        round_trips: 0,
    };
    /// One that "tends to overestimate" (the same): SRTT + max(10 us, 4 RTTVAR, SRTT), twice the round
    /// trip at least as by RFC 793 with its largest beta.
    pub const CONSERVATIVE: Self = Self {
        granularity: Duration::from_micros(10),
        variations: 4,
        round_trips: 1,
    };

    /// All of them by name.
    pub const ALL: [(&'static str, Self); 3] = [
        ("rfc6298", Self::RFC_6298),
        ("aggressive", Self::AGGRESSIVE),
        ("conservative", Self::CONSERVATIVE),
    ];
}

/// When a receiver acknowledges what comes in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAcks {
    /// The longest wait for another segment; zero acknowledges each at once.
    pub time: Duration,
    /// Segments to one acknowledgement, at least 1.
    pub every: u8,
    /// Delayed acknowledgements after slow start (RFC 2760, section 3.2): each segment is
    /// acknowledged at once until the first gap shows that the peer's slow start has ended.
    pub after_slow_start: bool,
    /// A listener's end acknowledges the first segment at once, as ns-3 does.
    pub first_at_once: bool,
}

/// How a sender tells loss and what it does then.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a published option of its own"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Selective acknowledgements (RFC 2018, RFC 6675), if the peer has them too.
    pub sack: bool,
    /// Duplicate acknowledgements that tell a loss; zero tells losses by timeouts alone, as
    /// RFC 793 does.
    pub duplicates: u8,
    /// New segments on the first duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// In fast recovery with SACK the newest segment is sent again when there is nothing else to
    /// send (RFC 6675, `NextSeg`, rule 4).
    pub rescue: bool,
    /// In fast recovery what leaves follows what arrives (RFC 9937).
    pub rate_reduction: bool,
    /// Detection of spurious timeouts (RFC 5682).
    pub frto: bool,
    /// After a timeout without SACK, duplicates count again only when something sent after it was
    /// acknowledged (RFC 6582, section 3.2, step 1); otherwise with the last that was sent before.
    pub careful: bool,
    /// What is taken by half (or by CUBIC's share) at a loss.
    pub reduce: ReduceFrom,
}

/// What "half of the flight" is half of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceFrom {
    /// What was sent and is not cumulatively acknowledged (RFC 5681, equation 4).
    Flight,
    /// What is thought to be in the network still: the flight less what duplicates or SACK tell to
    /// have left it. The choice of ns-3.
    Pipe,
    /// The congestion window, whether it was used or not, as Linux does.
    Window,
}

/// How a congestion window grows.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a published option of its own"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The rule.
    pub algorithm: Algorithm,
    /// The first window in segments.
    pub initial_window: u16,
    /// Acknowledged octets count, not acknowledgements: a segment for each window's worth in
    /// congestion avoidance, up to two for each acknowledgement in slow start (RFC 3465).
    pub byte_counting: bool,
    /// A window that is not used does not grow (RFC 7661, section 4.3, in its plainest form).
    pub validation: bool,
    /// The acknowledgement that ends a fast recovery lets the window grow, too: ns-3 does so, RFC
    /// 6582 leaves it at the threshold.
    pub at_recovery_end: bool,
    /// The acknowledgement that ends the repair after a timeout lets the window grow, as any other
    /// of new data does (RFC 5681, equations 2 and 3). Otherwise it does by the whole segments above
    /// what was sent before the timeout, as in ns-3: a window of one segment then stays one for as
    /// long as each is repaired by a timeout.
    pub at_repair_end: bool,
    /// After a silence of a timeout the window begins anew (RFC 5681, section 4.1).
    pub restart_after_idle: bool,
}

/// What connections to the same host take over from those before (RFC 9040).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The slow start threshold.
    pub ssthresh: bool,
    /// The round trip and its variation.
    pub rtt: bool,
}

/// One connection's settings.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a published option of its own"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// The longest segment in octets of payload and options (RFC 6691): MTU less 40 for IPv4.
    pub mss: u16,
    /// Acknowledgements.
    pub acks: DelayedAcks,
    /// Loss.
    pub recovery: Recovery,
    /// The congestion window.
    pub growth: Growth,
    /// What is shared with other connections.
    pub sharing: Sharing,
    /// Timeouts.
    pub rto: RtoBounds,
    /// Within them.
    pub rto_rule: RtoRule,
    /// With timestamps, data sent again give a sample of the round trip, too (RFC 6298, section 3);
    /// otherwise Karn's rule holds. A SYN sent again always gives one.
    pub samples_of_retransmissions: bool,
    /// SYNs sent again before the connection is given up.
    pub syn_retries: u8,
    /// Timeouts in a row after which the connection is given up, less one.
    pub data_retries: u8,
    /// Window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Timestamps and protection against wrapped sequence numbers (RFC 7323).
    pub timestamps: bool,
    /// ECN (RFC 3168).
    pub ecn: bool,
    /// Small segments wait for acknowledgements of earlier ones (RFC 896).
    pub nagle: bool,
    /// The receiver keeps what comes out of order. Without, the transfer is a go-back-N.
    pub keep_out_of_order: bool,
    /// Runs beyond the first hole that the receiver keeps, at most, if that is a limit: what would begin
    /// another is dropped, as by a receiver that keeps no more than it can tell in one segment's SACK
    /// option (four blocks, three beside timestamps; free-space-optics paper, section 4.1.2).
    pub runs_kept_max: Option<NonZeroU8>,
    /// Octets received and not read, at most.
    pub receive_buffer: ByteCount,
    /// Octets written and not acknowledged, at most.
    pub send_buffer: ByteCount,
    /// Of these, octets that were never sent, at most, if that is a limit of its own: what Linux
    /// calls `TCP_NOTSENT_LOWAT`. Less waits, and less memory is taken; half of it has to suffice
    /// until the application writes on.
    pub unsent_max: Option<ByteCount>,
    /// Twice the maximum segment lifetime: how long TIME-WAIT lasts.
    pub time_wait: Duration,
}

/// Why a configuration cannot work: the field, and what it allows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct TcpConfigError {
    /// The setting's name.
    pub field: &'static str,
    /// What would be right.
    pub problem: String,
}

/// Timestamps and three SACK blocks take 36 octets of a segment; RFC 9293's default is 536.
const MSS_MIN: u16 = 64;
/// The largest window that the largest shift can tell (RFC 7323, section 2.3).
const BUFFER_MAX: u64 = 1 << 30;

impl TcpConfig {
    /// Whether the settings are sane.
    ///
    /// # Errors
    /// The first that is not, and what would be.
    pub fn check(&self) -> Result<(), TcpConfigError> {
        let error = |field, problem: String| Err(TcpConfigError { field, problem });
        if self.mss < MSS_MIN {
            return error("mss", format!("must be at least {MSS_MIN}B"));
        }
        if self.growth.initial_window == 0 {
            return error("initial_window", "must be at least 1 segment".into());
        }
        if self.acks.every == 0 {
            return error("ack_every", "must be at least 1 segment".into());
        }
        for (field, buffer) in [
            ("receive_buffer", self.receive_buffer),
            ("send_buffer", self.send_buffer),
        ] {
            if !(u64::from(self.mss)..=BUFFER_MAX).contains(&buffer.0) {
                let problem = format!("must be {}B (mss) to {BUFFER_MAX}B", self.mss);
                return error(field, problem);
            }
        }
        if let Some(unsent) = self.unsent_max
            && unsent.0 < u64::from(self.mss)
        {
            return error("unsent", format!("must be at least {}B (mss)", self.mss));
        }
        let RtoBounds { initial, min, max } = self.rto;
        if initial.is_zero() {
            return error("rto_initial", "must be longer than 0".into());
        }
        if min.is_zero() {
            return error("rto_min", "must be longer than 0".into());
        }
        if max < min || max < initial {
            let problem = "must not be below rto_min or rto_initial".into();
            return error("rto_max", problem);
        }
        Ok(())
    }
}
