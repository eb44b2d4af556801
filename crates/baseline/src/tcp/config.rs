//! The settings of a TCP connection, and their check.

use crate::congestion::Algorithm;
use core::num::NonZeroU8;
use fulmar_proto::units::{ByteCount, Duration};
use fulmar_proto::wire::network::NodeAddress;

/// The endpoint's settings.
#[derive(Clone, Copy, Debug)]
pub struct TcpEndpointConfig {
    /// The address of this node, or its IPv4 address as a number. A remote node's address is the number of its
    /// [`PathId`](fulmar_proto::machine::PathId), unless [`TcpEndpoint::set_addresses`](super::TcpEndpoint::set_addresses) says otherwise.
    pub local: NodeAddress,
    /// Connections at once, at most; SYNs that would open more are dropped.
    pub connections_max: usize,
}

/// Bounds of the retransmission timeout (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoBounds {
    /// The timeout before the first sample: of the SYN, and of data when there was none by then.
    pub initial: Duration,
    /// The least timeout.
    pub min: Duration,
    /// The greatest timeout, backed off or not.
    pub max: Duration,
}

/// The rule for the retransmission timeout from the round-trip time, within its [`RtoBounds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoRule {
    /// The clock's granularity, the G of RFC 6298: at least this is added.
    pub granularity: Duration,
    /// The number of variations that are added, its K.
    pub variations: u8,
    /// The least number of smoothed round trips that is added.
    pub round_trips: u8,
}

impl RtoRule {
    /// The RFC's rule: SRTT + max(G, 4 RTTVAR) with G of 1 ms.
    pub const RFC_6298: Self = Self {
        granularity: Duration::from_millis(1),
        variations: 4,
        round_trips: 0,
    };
    /// A timeout hardly above the round trip: SRTT + max(10 us, RTTVAR). It stands for the "aggressive"
    /// calculation of the free-space-optics paper (section 4.1.1), which gives no formula.
    pub const AGGRESSIVE: Self = Self {
        granularity: Duration::from_micros(10),
        variations: 1,
        round_trips: 0,
    };
    /// A timeout that "tends to overestimate" (the same section): SRTT + max(10 us, 4 RTTVAR, SRTT).
    /// It is at least twice the round trip, as by RFC 793 with its largest beta.
    pub const CONSERVATIVE: Self = Self {
        granularity: Duration::from_micros(10),
        variations: 4,
        round_trips: 1,
    };

    /// Every rule by name.
    pub const ALL: [(&'static str, Self); 3] = [
        ("rfc6298", Self::RFC_6298),
        ("aggressive", Self::AGGRESSIVE),
        ("conservative", Self::CONSERVATIVE),
    ];
}

/// The rule by which a receiver acknowledges segments that arrive in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAcks {
    /// The longest wait for another segment; zero acknowledges each at once.
    pub time: Duration,
    /// Segments to one acknowledgement, at least 1.
    pub every: u8,
    /// Whether acknowledgements are delayed only after slow start (RFC 2760, section 3.2): each
    /// segment is acknowledged at once until the first gap shows that the peer's slow start has
    /// ended.
    pub after_slow_start: bool,
    /// Whether a listener's end acknowledges the first segment at once, as ns-3 does.
    pub first_at_once: bool,
}

/// The rules by which a sender detects loss and reacts to it.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a published option of its own"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryRules {
    /// Whether to use selective acknowledgements (RFC 2018, RFC 6675), if the peer has them too.
    pub sack: bool,
    /// The number of duplicate acknowledgements that shows a loss; with zero only timeouts do, as
    /// in RFC 793.
    pub duplicates: u8,
    /// Whether the first duplicate acknowledgements send new segments (RFC 3042).
    pub limited_transmit: bool,
    /// Whether, in fast recovery with SACK, the newest segment is retransmitted when there is
    /// nothing else to send (RFC 6675, `NextSeg`, rule 4).
    pub rescue: bool,
    /// Whether, in fast recovery, the octets that leave follow those that arrive (RFC 9937).
    pub rate_reduction: bool,
    /// Whether to detect spurious timeouts (RFC 5682).
    pub frto: bool,
    /// The start of counting duplicates after a timeout without SACK. If set, they count again only
    /// when data sent after the timeout was acknowledged (RFC 6582, section 3.2, step 1); otherwise
    /// with the last data sent before it.
    pub careful: bool,
    /// The amount that is halved (or multiplied by CUBIC's share) at a loss.
    pub reduce: ReduceFrom,
}

/// The amount of which "half of the flight" is half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceFrom {
    /// The octets sent and not cumulatively acknowledged (RFC 5681, equation 4).
    Flight,
    /// The octets that are probably still in the network: the flight less the octets that
    /// duplicates or SACK show to have left it. ns-3's choice.
    Pipe,
    /// The congestion window, whether it was used or not, as Linux does.
    Window,
}

/// The rules by which a congestion window grows.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a published option of its own"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The congestion control rule.
    pub algorithm: Algorithm,
    /// The first window in segments.
    pub initial_window: u16,
    /// Whether acknowledged octets count, and not acknowledgements. The window then grows by a
    /// segment for each window's worth in congestion avoidance, and by up to two for each
    /// acknowledgement in slow start (RFC 3465).
    pub byte_counting: bool,
    /// Whether only a window that is used grows (RFC 7661, section 4.3, in its plainest form).
    pub validation: bool,
    /// Whether the acknowledgement that ends a fast recovery lets the window grow, too. ns-3 does
    /// so; RFC 6582 leaves the window at the threshold.
    pub at_recovery_end: bool,
    /// Whether the acknowledgement that ends the repair after a timeout lets the window grow like
    /// any other acknowledgement of new data (RFC 5681, equations 2 and 3). Otherwise it grows by
    /// the whole segments above those sent before the timeout, as in ns-3: a window of one segment
    /// then stays one for as long as each segment is repaired by a timeout.
    pub at_repair_end: bool,
    /// Whether the window begins anew after a timeout's length of silence (RFC 5681, section 4.1).
    pub restart_after_idle: bool,
}

/// The values that connections take over from earlier ones to the same host (RFC 9040).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Whether they take over the slow start threshold.
    pub ssthresh: bool,
    /// Whether they take over the round-trip time and its variation.
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
    /// The rules for acknowledgements.
    pub acks: DelayedAcks,
    /// The rules for losses.
    pub recovery: RecoveryRules,
    /// The rules for the congestion window.
    pub growth: Growth,
    /// The values shared with other connections.
    pub sharing: Sharing,
    /// The bounds of the timeout.
    pub rto: RtoBounds,
    /// The rule for the timeout within them.
    pub rto_rule: RtoRule,
    /// Whether retransmitted data give samples of the round trip, too, if there are timestamps (RFC
    /// 6298, section 3). Otherwise Karn's rule holds. A retransmitted SYN always gives a sample.
    pub samples_of_retransmissions: bool,
    /// Retransmissions of the SYN before the connection is given up.
    pub syn_retries: u8,
    /// Timeouts in a row after which the connection is given up, less one.
    pub data_retries: u8,
    /// Whether to use window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Whether to use timestamps and protection against wrapped sequence numbers (RFC 7323).
    pub timestamps: bool,
    /// Whether to use ECN (RFC 3168).
    pub ecn: bool,
    /// Whether small segments wait for acknowledgements of earlier ones (RFC 896).
    pub nagle: bool,
    /// Whether the receiver keeps segments that arrive out of order. Without that, the transfer is
    /// a go-back-N.
    pub keep_out_of_order: bool,
    /// The most runs beyond the first hole that the receiver keeps, if that is limited. A segment that
    /// would begin another run is dropped, as by a receiver that keeps no more than it can tell in one
    /// segment's SACK option (four blocks, three beside timestamps; free-space-optics paper, section
    /// 4.1.2).
    pub runs_kept_max: Option<NonZeroU8>,
    /// Octets received and not read, at most.
    pub receive_buffer: ByteCount,
    /// Octets written and not acknowledged, at most.
    pub send_buffer: ByteCount,
    /// The most octets among these that were never sent, if they have a limit of their own: Linux
    /// calls it `TCP_NOTSENT_LOWAT`. With it fewer octets wait and less memory is used; half of it
    /// has to suffice until the application writes again.
    pub unsent_max: Option<ByteCount>,
    /// The duration of TIME-WAIT: twice the maximum segment lifetime.
    pub time_wait: Duration,
}

/// The error about a configuration that cannot work: the field, and the values it allows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct TcpConfigError {
    /// The setting's name.
    pub field: &'static str,
    /// The values that would be right. Other fields stand in backquotes, so that who reads settings can name them as its
    /// users know them.
    pub problem: String,
}

/// The least segment size: timestamps and three SACK blocks take 36 octets of a segment; RFC 9293's
/// default is 536.
const MSS_MIN: u16 = 64;
/// The largest window that the largest shift can express (RFC 7323, section 2.3).
const BUFFER_MAX: u64 = 1 << 30;

impl TcpConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first setting that cannot work, and the values allowed.
    pub fn check(&self) -> Result<(), TcpConfigError> {
        let error = |field, problem: String| Err(TcpConfigError { field, problem });
        if self.mss < MSS_MIN {
            return error("mss", format!("must be at least {MSS_MIN}B"));
        }
        if self.growth.initial_window == 0 {
            return error("growth.initial_window", "must be at least 1 segment".into());
        }
        if self.acks.every == 0 {
            return error("acks.every", "must be at least 1 segment".into());
        }
        for (field, buffer) in [
            ("receive_buffer", self.receive_buffer),
            ("send_buffer", self.send_buffer),
        ] {
            if !(u64::from(self.mss)..=BUFFER_MAX).contains(&buffer.0) {
                let problem = format!("must be {}B (`mss`) to {BUFFER_MAX}B", self.mss);
                return error(field, problem);
            }
        }
        if let Some(unsent) = self.unsent_max
            && unsent.0 < u64::from(self.mss)
        {
            return error(
                "unsent_max",
                format!("must be at least {}B (`mss`)", self.mss),
            );
        }
        let RtoBounds { initial, min, max } = self.rto;
        if initial.is_zero() {
            return error("rto.initial", "must be longer than 0".into());
        }
        if min.is_zero() {
            return error("rto.min", "must be longer than 0".into());
        }
        if max < min || max < initial {
            let problem = "must not be below `rto.min` or `rto.initial`".into();
            return error("rto.max", problem);
        }
        Ok(())
    }
}
