//! Multiple acknowledgements, read from a TPDU.
//!
//! There are two styles (ADR-0002). *Listed*, the papers': every number is one TPDU that arrived.
//! *Cumulative*, ours: all TPDUs before the header's number are settled. Then come the receiver's
//! window, the time for which it held the acknowledgement, and the numbers beyond the first gap. The
//! content of a lost listed MACK is lost; the next cumulative MACK makes up for a lost one.

use core::time::Duration;

use super::channel_word::ChannelWord;
use super::header::{EcnField, Flags};
use super::kind::TpduKind;
use super::path_report::PathReport;
use super::reject::Reject;
use super::seq_list::SeqList;
use super::short::Order;
use super::tpdu::{BodyCheck, Tpdu};
use crate::wire::TpduSeq;

/// The time for which the receiver held an acknowledgement since the TPDU whose timestamp it
/// echoes: units of 16 us, saturating at 1.048 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HoldTime(u16);

impl HoldTime {
    /// A time longer than the field can hold, or no TPDU received yet.
    pub const UNKNOWN: Self = Self(u16::MAX);
    const UNIT: Duration = Duration::from_micros(16);

    /// The hold time for `held`, rounded down to a unit and saturating.
    pub fn from_duration(held: Duration) -> Self {
        let units = held.as_nanos() / Self::UNIT.as_nanos();
        Self(u16::try_from(units).unwrap_or(u16::MAX))
    }

    /// The time held, to the unit; `None` if it was too long for the field, and so of no use to a
    /// round-trip measurement.
    pub fn to_duration(self) -> Option<Duration> {
        (self.0 != u16::MAX).then(|| Self::UNIT * u32::from(self.0))
    }
}

/// The receiver's word on itself in a cumulative MACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ReceiverWord {
    /// The number of TPDUs that it accepts from the next expected one on, saturating.
    pub window: u16,
    /// The time for which it held this acknowledgement.
    pub hold: HoldTime,
}

impl ReceiverWord {
    pub(super) fn to_octets(self) -> [u8; 4] {
        let ([a, b], [c, d]) = (self.window.to_be_bytes(), self.hold.0.to_be_bytes());
        [a, b, c, d]
    }

    const fn from_octets(octets: [u8; 4]) -> Self {
        let [a, b, c, d] = octets;
        Self {
            window: u16::from_be_bytes([a, b]),
            hold: HoldTime(u16::from_be_bytes([c, d])),
        }
    }
}

/// The numbers that a MACK acknowledges.
#[derive(Clone, Debug)]
pub enum Acks<'a> {
    /// Each number is a TPDU that arrived.
    Listed {
        /// The header's number, which is always one TPDU that arrived.
        first: TpduSeq,
        /// The others, at most 365.
        further: SeqList<'a>,
    },
    /// All TPDUs before one number, and some beyond it.
    Cumulative {
        /// Everything before this is settled: arrived, or given up by the receiver's mode.
        next_expected: TpduSeq,
        /// The receiver's window and hold time.
        receiver: ReceiverWord,
        /// The estimate of the channel, if there is one.
        channel: Option<ChannelWord>,
        /// The report on the path, if there is one.
        report: Option<PathReport>,
        /// TPDUs that arrived beyond the first gap, at most 364; in the short form 4,096.
        above: SeqList<'a>,
    },
}

/// An acknowledgement; ASYNACK and AFINACK are among them.
#[derive(Clone, Debug)]
pub struct Mack<'a> {
    /// Whether it also answers a set-up.
    pub asyn: bool,
    /// Whether it also answers the end of data.
    pub afin: bool,
    /// The timestamp of the TPDU most recently received, microseconds modulo 2^32.
    pub echo: u32,
    /// Congestion the receiver saw.
    pub ecn: EcnField,
    /// The numbers that are acknowledged.
    pub acks: Acks<'a>,
}

impl<'a> Mack<'a> {
    /// Reads the MACK in `tpdu`.
    ///
    /// # Errors
    /// [`Reject::BodyCheck`] if the body is damaged; [`Reject::Flags`] if it is another kind.
    pub fn of(tpdu: &Tpdu<'a>) -> Result<Self, Reject> {
        let TpduKind::Mack { asyn, afin } = tpdu.kind() else {
            return Err(Reject::Flags);
        };
        if tpdu.check == BodyCheck::Damaged {
            return Err(Reject::BodyCheck);
        }
        let seq = tpdu.header.seq;
        let acks = if tpdu.header.flags.has(Flags::CUMULATIVE) {
            let (receiver, above) = tpdu
                .body
                .split_first_chunk::<4>()
                .ok_or(Reject::BodyLength)?;
            let (channel, above) = if tpdu.header.flags.has(Flags::CHANNEL) {
                let (channel, above) = above.split_first_chunk().ok_or(Reject::BodyLength)?;
                (Some(ChannelWord::from_octets(*channel)), above)
            } else {
                (None, above)
            };
            let (report, above) = if tpdu.header.flags.has(Flags::REPORT) {
                let (report, above) = above.split_first_chunk().ok_or(Reject::BodyLength)?;
                (Some(PathReport::from_octets(*report)), above)
            } else {
                (None, above)
            };
            Acks::Cumulative {
                next_expected: seq,
                receiver: ReceiverWord::from_octets(*receiver),
                channel,
                report,
                above: tpdu.numbers(Order::NewestFirst, above),
            }
        } else {
            Acks::Listed {
                first: seq,
                further: tpdu.numbers(Order::NewestFirst, tpdu.body),
            }
        };
        Ok(Self {
            asyn,
            afin,
            echo: tpdu.header.timestamp,
            ecn: tpdu.header.ecn,
            acks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hold_time_keeps_its_unit_and_owns_up_to_saturation() {
        let held = |micros| HoldTime::from_duration(Duration::from_micros(micros)).to_duration();
        assert_eq!(held(0), Some(Duration::ZERO));
        assert_eq!(held(15), Some(Duration::ZERO));
        assert_eq!(held(16), Some(Duration::from_micros(16)));
        assert_eq!(held(16 * 65_534), Some(Duration::from_micros(16 * 65_534)));
        assert_eq!(held(16 * 65_535), None);
        assert_eq!(held(u64::MAX), None);
    }
}
