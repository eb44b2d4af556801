//! The settings of connections and endpoints, and their checks.

use super::config_error::ConfigError;
use super::endpoint::AddressKey;
use super::modes::AckScheme;
use super::packing::Packing;
use super::rate_source::RateSource;
use super::thin_repair::ThinRepair;
use crate::fec::block::BlockPlan;
use crate::machine::Priority;
use crate::transport::parts::RtoLimits;
use crate::units::{Bitrate, ByteCount, Duration};
use crate::wire::Mode;
use crate::wire::TpduSeq;
use crate::wire::aerotp::{FecStrength, payload_max, short};
use core::num::NonZeroU8;

/// The form of the MACKs that the receiver sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckStyle {
    /// Ours: everything before a number, plus a list, plus the receiver's window. A lost MACK costs
    /// nothing, since the next one repeats its content.
    #[default]
    Cumulative,
    /// The papers': a list of new acknowledgements, each listed once.
    Listed,
}

/// The rules by which the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// TPDUs to one MACK, 1 ..= 365 (hybrid-ARQ paper, Section IV-E).
    pub every: u16,
    /// The number of MACKs in which an arrival beyond a hole is listed, in the cumulative style.
    pub repeats: u16,
    /// The longest time that a MACK waits for more.
    pub flush: Duration,
    /// The form.
    pub style: AckStyle,
}

/// The factor by which near-reliable mode acknowledges more rarely: it relies on requests.
const SPARSE_FACTOR: u16 = 8;

impl AckPolicy {
    /// The policy as it holds in a mode.
    pub(super) fn in_mode(self, acks: AckScheme) -> Self {
        match acks {
            AckScheme::Sparse => Self {
                every: self.every.saturating_mul(SPARSE_FACTOR),
                flush: self.flush * u32::from(SPARSE_FACTOR),
                ..self
            },
            AckScheme::Aggregated | AckScheme::None => self,
        }
    }
}

impl Default for AckPolicy {
    fn default() -> Self {
        Self {
            every: 8,
            repeats: 8,
            flush: Duration::from_millis(5),
            style: AckStyle::Cumulative,
        }
    }
}

/// Waits for holes, in modes that may lose data: after them the hole is passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoleWaits {
    /// The wait for a TPDU that never arrived: the reordering tolerated.
    pub lost: Duration,
    /// The wait for a TPDU that arrived damaged and was asked for again.
    pub requested: Duration,
    /// The wait for repair symbols, in modes whose peer may send blocks. It bounds the wait that is
    /// learned from the blocks that come, and holds until it is known whether any come. Zero if
    /// none will.
    pub parity: Duration,
}

/// The share of the rate that a connection uses, among connections of its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The class. Its connections take turns.
    pub class: u8,
    /// The class's weight against other classes, at least 1: octets are shared in proportion.
    pub weight: u8,
}

impl Default for Share {
    fn default() -> Self {
        Self {
            class: 0,
            weight: 1,
        }
    }
}

/// The settings of one connection. Both ends should use the same; settings that must agree are on
/// the wire.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionConfig {
    /// The reliability mode. A listener takes the mode of the arriving TPDU instead.
    pub mode: Mode,
    /// Precedence over other flows of the endpoint.
    pub priority: Priority,
    /// The class among flows of the same priority.
    pub share: Share,
    /// Octets of one TPDU at most, from the header to the last parity word; on a path that speaks the short form, of
    /// content.
    pub tpdu_bytes_max: usize,
    /// Whether TPDUs carry a CRC-32. Without it, damage from the layers below goes unnoticed;
    /// parity needs it. In the short form the seal vouches for TPDUs, and only those with parity, or of which `adapt`
    /// has to know the damage, carry one.
    pub payload_crc: bool,
    /// Parity words inside each TPDU.
    pub fec_words: FecStrength,
    /// The time for which a fade of the channel stays as it is. If given, payload length and parity words of
    /// each TPDU follow the bit error rate that is expected, in modes that acknowledge. `fec_words` then
    /// holds until the peer's first estimate. Both ends need it.
    pub adapt: Option<Duration>,
    /// Parity across TPDUs, in modes that allow it.
    pub block: Option<BlockPlan>,
    /// The number of times that each TPDU with data is sent, one copy behind the other, whenever it is sent. This
    /// is repetition as forward error correction (FSO paper, Section 3.1; SCPS-TP's multiple forward
    /// transmission). Both ends need it.
    pub copies: NonZeroU8,
    /// The repair of data while nothing else waits to be sent, in modes that confirm soon. Without it such flows are
    /// treated like all others, as in the papers. Both ends should have it. A goal in any order holds for what arrives,
    /// too: it is read as it comes. Both ends need such a goal, or [`read_in_any_order`](super::AerotpEndpoint::read_in_any_order):
    /// who reads in order ends the connection ([`Disagreed`](super::CloseReason::Disagreed)) when a message is taken back.
    pub thin: Option<ThinRepair>,
    /// The rules for acknowledgements.
    pub ack: AckPolicy,
    /// TPDUs in flight or waiting to be read, at most.
    pub window_tpdus: u16,
    /// Octets written and not yet confirmed, at most.
    pub send_buffer_bytes: usize,
    /// Octets written and not yet sent, at most. A later write has to wait for them. A single
    /// message may be longer.
    pub unsent_bytes_max: usize,
    /// Bounds of the retransmission timeout.
    pub rto: RtoLimits,
    /// Waits for holes, in modes that may lose data.
    pub hole_waits: HoleWaits,
    /// Whether an unreliable connection delivers damaged payloads, marked as such.
    pub deliver_damaged: bool,
    /// The number of times that the last TPDUs of a transfer may be repeated on a lossy path while
    /// the link would otherwise be idle, at most. The number used follows from the loss.
    pub tail_repeats: u16,
    /// The time after which the connection is given up when nothing was heard although something
    /// was wanted.
    pub give_up_after: Duration,
    /// The first TPDU's number; the same at both ends.
    pub first_seq: TpduSeq,
}

/// The settings of a connection that an accepting application may choose once it knows the
/// connection's purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Treatment {
    /// Precedence over other flows of the endpoint.
    pub priority: Priority,
    /// The class among flows of the same priority.
    pub share: Share,
    /// Parity words inside each TPDU.
    pub fec_words: FecStrength,
    /// Parity across TPDUs, in modes that allow it.
    pub block: Option<BlockPlan>,
    /// Octets written and not yet sent, at most.
    pub unsent_bytes_max: usize,
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        Self {
            mode: Mode::Reliable,
            priority: Priority(0),
            share: Share::default(),
            tpdu_bytes_max: 1480,
            payload_crc: true,
            fec_words: FecStrength::NONE,
            adapt: None,
            block: None,
            copies: NonZeroU8::MIN,
            thin: None,
            ack: AckPolicy::default(),
            window_tpdus: 4096,
            send_buffer_bytes: 8 << 20,
            unsent_bytes_max: usize::MAX,
            rto: RtoLimits::default(),
            hole_waits: HoleWaits {
                lost: Duration::from_millis(20),
                requested: Duration::from_secs(2),
                // 32+16 TPDUs of 1500 octets take 0.6 s at 1 mbit.
                parity: Duration::from_secs(1),
            },
            deliver_damaged: false,
            tail_repeats: 8,
            give_up_after: Duration::from_secs(120),
            first_seq: TpduSeq(0),
        }
    }
}

/// The least time before a connection is given up: keep-alives come four times in it and must not
/// crowd the link.
const GIVE_UP_MIN: Duration = Duration::from_secs(1);

/// Octets of the length inside a repair symbol.
const SYMBOL_LENGTH_BYTES: usize = 2;

/// The least coherence that `adapt` takes.
const ADAPT_MIN: Duration = Duration::from_micros(1);
const ADAPT_MAX: Duration = Duration::from_secs(100);

impl ConnectionConfig {
    /// Payload octets of one TPDU, in the long form.
    ///
    /// # Errors
    /// [`ConfigError`] if headers and parity leave no room, or a number is out of range.
    pub fn payload_bytes(&self) -> Result<usize, ConfigError> {
        self.payload_bytes_in(Packing::Long)
    }

    /// Payload octets of one TPDU with these headers; the errors are those of
    /// [`ConnectionConfig::payload_bytes`].
    pub(super) fn payload_bytes_in(&self, packing: Packing) -> Result<usize, ConfigError> {
        let error = |field, problem: String| Err(ConfigError { field, problem });
        if !self.fec_words.is_none() && !self.payload_crc {
            return error(
                "payload_crc",
                "must be on when `fec_words` is above 0".into(),
            );
        }
        if let Some(coherence) = self.adapt {
            if !(ADAPT_MIN..=ADAPT_MAX).contains(&coherence) {
                return error("adapt", "must be 1us to 100s".into());
            }
            if !self.payload_crc {
                return error("payload_crc", "must be on for `adapt`".into());
            }
            if self.block.is_some() {
                let problem = "cannot be combined with `block`, whose symbols are of one length";
                return error("adapt", problem.into());
            }
        }
        if self.copies > NonZeroU8::MIN
            && let Some(problem) = self.against_copies()
        {
            return error("copies", problem.into());
        }
        if !(1..=365).contains(&self.ack.every) {
            return error(
                "ack.every",
                format!("is {}; it must be 1 to 365", self.ack.every),
            );
        }
        if self.give_up_after < GIVE_UP_MIN {
            let problem = "must be at least 1s".to_owned();
            return error("give_up_after", problem);
        }
        if !(2..=32_768).contains(&self.window_tpdus) {
            let problem = format!("is {}; it must be 2 to 32768", self.window_tpdus);
            return error("window_tpdus", problem);
        }
        let payload = self.room_in(packing);
        if !(1..=65_000).contains(&payload) {
            let problem = format!(
                "leaves {payload} of {} octets for payload beside {} FEC words; it must leave 1 to \
                 65000",
                self.tpdu_bytes_max,
                self.fec_words.words()
            );
            return error("tpdu_bytes_max", problem);
        }
        Ok(payload)
    }

    /// Whether TPDUs keep their CRC-32 under a seal, which vouches for every octet: parity needs it, and so does
    /// the estimate of the bit error rate. Then they have no short form.
    pub(super) fn keeps_check(&self) -> bool {
        !self.fec_words.is_none() || self.adapt.is_some()
    }

    /// Payload octets beside these headers and the parity.
    fn room_in(&self, packing: Packing) -> usize {
        let block = self.block.is_some();
        // A repair symbol has a length of two octets inside.
        let symbol_bytes = if block { SYMBOL_LENGTH_BYTES } else { 0 };
        let long = |crc| {
            let bytes = self.tpdu_bytes_max - packing.long_type_bytes().min(self.tpdu_bytes_max);
            payload_max(bytes, self.fec_words, crc, block).saturating_sub(symbol_bytes)
        };
        let short = |bytes| self.tpdu_bytes_max.saturating_sub(bytes);
        match packing {
            Packing::Long => long(self.payload_crc),
            _ if self.keeps_check() => long(self.payload_crc),
            // Without a name repair symbols have no short form.
            Packing::Full if block => long(false),
            Packing::Full => short(short::FULL_BYTES),
            Packing::Named if block => short(short::REPAIR_BYTES + symbol_bytes),
            Packing::Named => short(short::NAMED_BYTES),
        }
    }

    /// The reason why each TPDU cannot be sent more than once, if there is one.
    const fn against_copies(&self) -> Option<&'static str> {
        if matches!(self.mode, Mode::Datagram) {
            Some(
                "is for modes with a connection, which delivers one of the copies; unreliable is the least of them",
            )
        } else if self.block.is_some() {
            Some(
                "cannot be combined with `block`, which protects the same TPDUs; leave one of them out",
            )
        } else if self.adapt.is_some() {
            Some(
                "cannot be combined with `adapt`, which weighs TPDUs that are sent once; leave one of them out",
            )
        } else if self.deliver_damaged {
            Some(
                "cannot be combined with `deliver_damaged`, which takes a damaged copy for the TPDU; leave one of them out",
            )
        } else {
            None
        }
    }
}

/// The settings of an endpoint: its knowledge of the link, and its bounds.
#[derive(Clone, Copy, Debug)]
pub struct EndpointConfig {
    /// The rate of each path.
    pub rate: RateSource,
    /// The time by which the pacer may run ahead of that rate.
    pub burst: Duration,
    /// Network and carrier headers of one datagram (20 in the lab, 28 over UDP and IPv4).
    pub lower_overhead: ByteCount,
    /// Connections at once, at most; TPDUs that would open more are dropped.
    pub connections_max: usize,
    /// The memory for connections' send buffers and received payloads together. Above it, TPDUs
    /// that would open another connection are dropped; open connections continue within their own
    /// bounds.
    pub memory_max: ByteCount,
    /// Whether datagrams ask for marking instead of dropping. Where the rate is found, they do if a session around the endpoint
    /// counts the marks ([`AckedWays::out`](crate::machine::AckedWays::out)).
    pub ecn: bool,
    /// Whether remotes are told often what arrives, since one of them may find its rate by it. Where this end finds its
    /// own, they are anyway.
    pub reports_often: bool,
    /// Whether streams are cut into shorter TPDUs where a link's bit errors ask for it ([`LengthFollower`](crate::damage::LengthFollower)),
    /// in modes that confirm.
    pub follows_length: bool,
    /// Notes kept until [`AerotpEndpoint::take_note`](super::AerotpEndpoint::take_note) takes them; 0 for none.
    pub trace_records: usize,
    /// The key with which addresses are validated. With a key, whoever opens a connection must first
    /// show that it receives at its address, which takes a round trip; datagrams without a connection
    /// are accepted only after that. For listeners that anybody can reach: under a session every peer
    /// is known.
    pub address_key: Option<AddressKey>,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            rate: RateSource::Told(Bitrate::from_bits_per_second(5_000_000)),
            burst: Duration::ZERO,
            lower_overhead: ByteCount(20),
            connections_max: 4096,
            // 128 send buffers filled to their default bound.
            memory_max: ByteCount(1 << 30),
            ecn: true,
            reports_often: false,
            follows_length: false,
            trace_records: 0,
            address_key: None,
        }
    }
}
