//! TCP presets by name.

use super::config::{
    DelayedAcks, Growth, RecoveryRules, ReduceFrom, RtoBounds, RtoRule, Sharing, TcpConfig,
};
use crate::congestion::Algorithm;
use fulmar_proto::units::{ByteCount, Duration};

/// A TCP of a paper, a time or a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpPreset {
    /// The link-layer paper's reference TCP (FDPW 2005): initial window 1, RFC 2581, `NewReno`
    /// (RFC 2582), delayed acknowledgements of 200 ms, no SACK.
    Reference,
    /// The link-layer paper's enhanced TCP: initial window 4, SACK, window scaling, Limited
    /// Transmit, F-RTO, delayed acknowledgements after slow start. Reuse of ssthresh was applied to
    /// a part of its tests and is a setting.
    Enhanced,
    /// The TCP of hosts in 2005: RFC 2988's 3 s, `NewReno` with window scaling and timestamps,
    /// Limited Transmit, initial window 2.
    NewReno2005,
    /// A TCP like Linux's: CUBIC, SACK, initial window 10, 200 ms minimum timeout, ECN not asked
    /// for.
    LinuxLike,
    /// RFC 793 without congestion control, a go-back-N (free-space-optics paper).
    Rfc793NoCc,
    /// The free-space-optics paper's selective repeat: SACK without congestion control. It keeps
    /// every run; the paper's limit of four (three with timestamps) is
    /// [`TcpConfig::runs_kept_max`].
    SackNoCc,
}

impl TcpPreset {
    /// Every preset by name.
    pub const ALL: [(&'static str, Self); 6] = [
        ("reference", Self::Reference),
        ("enhanced", Self::Enhanced),
        ("newreno-2005", Self::NewReno2005),
        ("linux-like", Self::LinuxLike),
        ("rfc793-no-cc", Self::Rfc793NoCc),
        ("sack-no-cc", Self::SackNoCc),
    ];

    /// The settings, for an MTU of 1500 octets.
    pub const fn config(self) -> TcpConfig {
        match self {
            Self::Reference => REFERENCE,
            Self::Enhanced => ENHANCED,
            Self::NewReno2005 => NEWRENO_2005,
            Self::LinuxLike => LINUX_LIKE,
            Self::Rfc793NoCc => RFC793_NO_CC,
            Self::SackNoCc => SACK_NO_CC,
        }
    }
}

/// RFC 2988's initial timeout, the standard until 2011; and its minimum.
const RTO_2000: RtoBounds = RtoBounds {
    initial: Duration::from_secs(3),
    min: Duration::from_secs(1),
    max: Duration::from_secs(60),
};

const REFERENCE: TcpConfig = TcpConfig {
    mss: 1460,
    acks: DelayedAcks {
        time: Duration::from_millis(200),
        every: 2,
        after_slow_start: false,
        first_at_once: false,
    },
    recovery: RecoveryRules {
        sack: false,
        duplicates: 3,
        limited_transmit: false,
        rescue: false,
        rate_reduction: false,
        frto: false,
        careful: true,
        reduce: ReduceFrom::Flight,
    },
    growth: Growth {
        algorithm: Algorithm::NewReno,
        initial_window: 1,
        byte_counting: false,
        validation: false,
        at_recovery_end: false,
        at_repair_end: true,
        restart_after_idle: true,
    },
    sharing: Sharing {
        ssthresh: false,
        rtt: false,
    },
    rto: RTO_2000,
    rto_rule: RtoRule::RFC_6298,
    samples_of_retransmissions: true,
    syn_retries: 6,
    data_retries: 14,
    window_scaling: false,
    timestamps: false,
    ecn: false,
    nagle: false,
    keep_out_of_order: true,
    runs_kept_max: None,
    receive_buffer: ByteCount(4 << 20),
    send_buffer: ByteCount(4 << 20),
    unsent_max: None,
    time_wait: Duration::from_secs(60),
};

const ENHANCED: TcpConfig = TcpConfig {
    acks: DelayedAcks {
        after_slow_start: true,
        first_at_once: false,
        ..REFERENCE.acks
    },
    recovery: RecoveryRules {
        sack: true,
        limited_transmit: true,
        frto: true,
        ..REFERENCE.recovery
    },
    growth: Growth {
        initial_window: 4,
        ..REFERENCE.growth
    },
    window_scaling: true,
    ..REFERENCE
};

const NEWRENO_2005: TcpConfig = TcpConfig {
    recovery: RecoveryRules {
        limited_transmit: true,
        ..REFERENCE.recovery
    },
    growth: Growth {
        initial_window: 2,
        ..REFERENCE.growth
    },
    window_scaling: true,
    timestamps: true,
    ..REFERENCE
};

const LINUX_LIKE: TcpConfig = TcpConfig {
    acks: DelayedAcks {
        time: Duration::from_millis(40),
        every: 2,
        after_slow_start: true,
        first_at_once: false,
    },
    recovery: RecoveryRules {
        sack: true,
        duplicates: 3,
        limited_transmit: true,
        rescue: false,
        rate_reduction: true,
        frto: true,
        careful: true,
        reduce: ReduceFrom::Window,
    },
    growth: Growth {
        algorithm: Algorithm::Cubic,
        initial_window: 10,
        byte_counting: true,
        validation: true,
        at_recovery_end: false,
        at_repair_end: true,
        restart_after_idle: true,
    },
    rto: RtoBounds {
        initial: Duration::from_secs(1),
        min: Duration::from_millis(200),
        max: Duration::from_secs(120),
    },
    data_retries: 15,
    window_scaling: true,
    timestamps: true,
    ..REFERENCE
};

const RFC793_NO_CC: TcpConfig = TcpConfig {
    acks: DelayedAcks {
        time: Duration::ZERO,
        every: 1,
        after_slow_start: false,
        first_at_once: false,
    },
    recovery: RecoveryRules {
        duplicates: 0,
        ..REFERENCE.recovery
    },
    growth: Growth {
        algorithm: Algorithm::None,
        restart_after_idle: false,
        ..REFERENCE.growth
    },
    window_scaling: true,
    keep_out_of_order: false,
    ..REFERENCE
};

const SACK_NO_CC: TcpConfig = TcpConfig {
    recovery: RecoveryRules {
        sack: true,
        duplicates: 3,
        ..RFC793_NO_CC.recovery
    },
    keep_out_of_order: true,
    ..RFC793_NO_CC
};
