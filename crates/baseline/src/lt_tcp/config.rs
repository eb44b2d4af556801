//! The settings of an LT-TCP connection, and their check.

use crate::tcp::{RtoBounds, TcpConfigError};
use crate::wire::lt_tcp::{REPAIR_PREFIX_BYTES, UNIT_EXTENSION_BYTES};
use fulmar_proto::units::{ByteCount, Duration, Probability};

/// The amount of parity, and the estimate that it follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LtFec {
    /// The probability that a block needs no feedback, for which PFEC is sized; zero sends none.
    pub proactive: Probability,
    /// The probability that one round of RFEC completes a block.
    pub reactive: Probability,
    /// The number of mean deviations by which the loss is assumed to lie above its estimate.
    pub deviations: f64,
    /// The estimate below which no PFEC is sent.
    pub floor: Probability,
    /// The weight of the newest loss ratio in the estimate.
    pub gain: Probability,
}

/// One connection's settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LtTcpConfig {
    /// The longest segment behind the TCP header: MTU less 40 for IPv4.
    pub mss: u16,
    /// The least length of units.
    pub unit_min: u16,
    /// The least number of units in a window (G), while that leaves them `unit_min`.
    pub granularity: u8,
    /// The most units of a block, parity included.
    pub units_max: u8,
    /// The settings of parity.
    pub fec: LtFec,
    /// The first window in segments of `mss`.
    pub initial_window: u16,
    /// Units received in order for one feedback, at least 1.
    pub ack_every: u8,
    /// The longest time that feedback waits for another unit.
    pub ack_delay: Duration,
    /// Whether to use ECN (RFC 3168), if the peer has it too.
    pub ecn: bool,
    /// The bounds of the timeout.
    pub rto: RtoBounds,
    /// Retransmissions of the SYN before the connection is given up.
    pub syn_retries: u8,
    /// Timeouts in a row after which the connection is given up, less one.
    pub data_retries: u8,
    /// Octets received and not read, at most.
    pub receive_buffer: ByteCount,
    /// Octets written and not acknowledged, at most.
    pub send_buffer: ByteCount,
    /// The time for which the side that closed first answers late copies.
    pub time_wait: Duration,
}

impl Default for LtTcpConfig {
    /// The defaults for an MTU of 1500 octets. `docs/models/lt-tcp.md` has the reasons.
    fn default() -> Self {
        let share = |value| Probability::new(value).unwrap_or_default();
        Self {
            mss: 1460,
            unit_min: 200,
            granularity: 10,
            units_max: 128,
            fec: LtFec {
                proactive: share(0.5),
                reactive: share(0.97),
                deviations: 1.0,
                floor: share(0.001),
                gain: share(0.5),
            },
            initial_window: 3,
            ack_every: 2,
            ack_delay: Duration::from_millis(20),
            ecn: true,
            rto: RtoBounds {
                initial: Duration::from_secs(1),
                min: Duration::from_millis(200),
                max: Duration::from_secs(10),
            },
            syn_retries: 6,
            data_retries: 20,
            receive_buffer: ByteCount(4 << 20),
            send_buffer: ByteCount(4 << 20),
            time_wait: Duration::from_secs(60),
        }
    }
}

/// The least length of units that may be set: a unit of 64 octets has half of its packet in headers
/// already.
const UNIT_MIN: u16 = 64;
const BUFFER_MAX: u64 = 1 << 30;
/// The most units of a block that may be set. Half of a block's 256 units stay for RFEC, so repair
/// at 60 % loss does not run out of them.
const UNITS_MAX: u8 = 160;
/// The greatest probability that may be set: beyond it parity grows without bound.
const CHANCE_MAX: f64 = 0.9999;
const DEVIATIONS_MAX: f64 = 10.0;

impl LtTcpConfig {
    /// Octets of the longest unit: a repair unit must fit the segment, too.
    pub fn unit_max(&self) -> u16 {
        let taken = UNIT_EXTENSION_BYTES + REPAIR_PREFIX_BYTES;
        self.mss
            .saturating_sub(u16::try_from(taken).unwrap_or(u16::MAX))
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// The first setting that cannot work, and the values allowed.
    pub fn check(&self) -> Result<(), TcpConfigError> {
        let error = |field, problem: String| Err(TcpConfigError { field, problem });
        if self.unit_min < UNIT_MIN || self.unit_min > self.unit_max() {
            let max = self.unit_max();
            let problem = format!("must be {UNIT_MIN}B to {max}B (`mss` - 14B)");
            return error("unit_min", problem);
        }
        if self.granularity == 0 {
            return error("granularity", "must be at least 1 unit".into());
        }
        if !(self.granularity..=UNITS_MAX).contains(&self.units_max) {
            let problem = format!(
                "must be {} (`granularity`) to {UNITS_MAX}",
                self.granularity
            );
            return error("units_max", problem);
        }
        for (field, chance) in [
            ("fec.proactive", self.fec.proactive),
            ("fec.reactive", self.fec.reactive),
        ] {
            if chance.value() > CHANCE_MAX {
                return error(field, format!("must be at most {CHANCE_MAX}"));
            }
        }
        if self.fec.gain.is_zero() {
            return error("fec.gain", "must be above 0".into());
        }
        if !(0.0..=DEVIATIONS_MAX).contains(&self.fec.deviations) {
            return error("fec.deviations", format!("must be 0 to {DEVIATIONS_MAX}"));
        }
        if self.initial_window == 0 {
            return error("initial_window", "must be at least 1 segment".into());
        }
        if self.ack_every == 0 {
            return error("ack_every", "must be at least 1 unit".into());
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
        let RtoBounds { initial, min, max } = self.rto;
        if initial.is_zero() {
            return error("rto.initial", "must be longer than 0".into());
        }
        if min.is_zero() {
            return error("rto.min", "must be longer than 0".into());
        }
        if max < min || max < initial {
            return error(
                "rto.max",
                "must not be below `rto.min` or `rto.initial`".into(),
            );
        }
        Ok(())
    }
}
