//! The encoder of MACKs and NACKs, straight into the outgoing buffer.

use super::channel_word::ChannelWord;
use super::header::{EcnField, Flags, Header, Parts};
use super::mack::ReceiverWord;
use super::nack::NackCause;
use super::overhead::{
    CHANNEL_NUMBERS, CUMULATIVE_NUMBERS_MAX, LISTED_NUMBERS_MAX, REPORT_NUMBERS,
};
use super::path_report::PathReport;
use super::tpdu::encode_with;
use crate::units::FecStrength;
use crate::wire::Mode;
use crate::wire::Port;
use crate::wire::TpduSeq;

/// The handshake TPDU that a MACK answers, besides acknowledging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handshake {
    /// None: a plain MACK.
    #[default]
    None,
    /// A set-up: the MACK is an ASYNACK.
    Asyn,
    /// The end of data: the MACK is an AFINACK.
    Afin,
}

/// The fields that the MACKs and NACKs of one moment have in common.
///
/// Each method appends one TPDU up to its CRC-32 (the caller appends parity, if any) and returns
/// how many of the offered numbers it took: all, unless they are more than the format's bound. To
/// stay inside a smaller TPDU, offer no more than [`listed_numbers_max`](super::listed_numbers_max)
/// or [`cumulative_numbers_max`](super::cumulative_numbers_max).
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    /// The port of the end that acknowledges.
    pub source: Port,
    /// The port of the end that sent the data.
    pub destination: Port,
    /// The connection's mode.
    pub mode: Mode,
    /// The congestion seen.
    pub ecn: EcnField,
    /// The timestamp of the TPDU most recently received, microseconds modulo 2^32.
    pub echo: u32,
    /// Whether to append the CRC-32; with FEC it is appended in any case.
    pub crc: bool,
    /// The parity the caller will append.
    pub fec_words: FecStrength,
}

/// The words before the numbers of a cumulative MACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CumulativeWords {
    /// The receiver's window and hold time.
    pub receiver: ReceiverWord,
    /// The estimate of the channel, if there is one.
    pub channel: Option<ChannelWord>,
    /// The report on the path, if one is due.
    pub report: Option<PathReport>,
}

impl CumulativeWords {
    /// The number of numbers whose place the optional words take.
    pub const fn numbers(&self) -> usize {
        let channel = if self.channel.is_some() {
            CHANNEL_NUMBERS
        } else {
            0
        };
        if self.report.is_some() {
            channel + REPORT_NUMBERS
        } else {
            channel
        }
    }
}

impl From<ReceiverWord> for CumulativeWords {
    fn from(receiver: ReceiverWord) -> Self {
        Self {
            receiver,
            ..Self::default()
        }
    }
}

impl Feedback {
    /// Appends a MACK in the papers' style: `first` and `further` arrived. Takes at most 365
    /// further numbers.
    pub fn listed(
        &self,
        handshake: Handshake,
        first: TpduSeq,
        further: impl IntoIterator<Item = TpduSeq>,
        out: &mut Vec<u8>,
    ) -> usize {
        let flags = Flags::MACK.with(handshake.flags());
        self.write(flags, first, out, |out| {
            write_numbers(further, LISTED_NUMBERS_MAX, out)
        })
    }

    /// Appends a MACK in the cumulative style: everything before `next_expected` is settled, and
    /// `above` arrived beyond it. Takes at most 364 numbers, and [`CumulativeWords::numbers`] less
    /// with more words than the receiver's.
    pub fn cumulative(
        &self,
        handshake: Handshake,
        next_expected: TpduSeq,
        words: impl Into<CumulativeWords>,
        above: impl IntoIterator<Item = TpduSeq>,
        out: &mut Vec<u8>,
    ) -> usize {
        let words = words.into();
        let mut flags = Flags::MACK.with(Flags::CUMULATIVE).with(handshake.flags());
        if words.channel.is_some() {
            flags = flags.with(Flags::CHANNEL);
        }
        if words.report.is_some() {
            flags = flags.with(Flags::REPORT);
        }
        self.write(flags, next_expected, out, |out| {
            out.extend_from_slice(&words.receiver.to_octets());
            if let Some(channel) = words.channel {
                out.extend_from_slice(&channel.to_octets());
            }
            if let Some(report) = words.report {
                out.extend_from_slice(&report.to_octets());
            }
            write_numbers(above, CUMULATIVE_NUMBERS_MAX - words.numbers(), out)
        })
    }

    /// Appends a NACK for `first` and `further`. Takes at most 365 further numbers.
    pub fn nack(
        &self,
        cause: NackCause,
        first: TpduSeq,
        further: impl IntoIterator<Item = TpduSeq>,
        out: &mut Vec<u8>,
    ) -> usize {
        let flags = match cause {
            NackCause::Damaged => Flags::NACK.with(Flags::URG),
            NackCause::Missing => Flags::NACK,
        };
        self.write(flags, first, out, |out| {
            write_numbers(further, LISTED_NUMBERS_MAX, out)
        })
    }

    fn write(
        &self,
        flags: Flags,
        seq: TpduSeq,
        out: &mut Vec<u8>,
        write_body: impl FnOnce(&mut Vec<u8>) -> usize,
    ) -> usize {
        let header = Header {
            source: self.source,
            destination: self.destination,
            seq,
            timestamp: self.echo,
            mode: self.mode,
            ecn: self.ecn,
            flags,
        };
        let parts = Parts {
            crc: self.crc || !self.fec_words.is_none(),
            fec: self.fec_words,
            block: None,
        };
        let mut taken = 0;
        encode_with(header, parts, out, |out| taken = write_body(out));
        taken
    }
}

impl Handshake {
    const fn flags(self) -> Flags {
        match self {
            Self::None => Flags::NONE,
            Self::Asyn => Flags::ASYN,
            Self::Afin => Flags::AFIN,
        }
    }
}

fn write_numbers(
    numbers: impl IntoIterator<Item = TpduSeq>,
    limit: usize,
    out: &mut Vec<u8>,
) -> usize {
    let mut taken = 0;
    for number in numbers.into_iter().take(limit) {
        out.extend_from_slice(&number.0.to_be_bytes());
        taken += 1;
    }
    taken
}
