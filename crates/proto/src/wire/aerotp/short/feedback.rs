//! Cumulative MACKs and NACKs.
//!
//! ```text
//!  0x20 | O ASYN AFIN ECHO CHANNEL REPORT 0 0 | name 2 | next number 3  | echo 3 | window 2 | hold 2 | channel 4 | report 8 | ranges
//!  0x21 | O DAMAGED ECHO 0 0 0 0 0            | name 2 | first number 3 | echo 3 | ranges
//! ```

use super::super::channel_word::ChannelWord;
use super::super::feedback::{CumulativeWords, Handshake};
use super::super::header::{EcnField, Flags, Header};
use super::super::kind::TpduKind;
use super::super::nack::NackCause;
use super::super::path_report::PathReport;
use super::super::reject::Reject;
use super::super::tpdu::Tpdu;
use super::content::{Frame, MACK, NACK};
use super::known::{Known, Lookup};
use super::name::{Named, OPENED};
use super::octets::{number, split, time};
use super::ranges::{self, Order};
use crate::wire::{TpduSeq, cut};

const ASYN: u8 = 0x40;
const AFIN: u8 = 0x20;
const MACK_ECHO: u8 = 0x10;
const CHANNEL: u8 = 0x08;
const REPORT: u8 = 0x04;
const DAMAGED: u8 = 0x40;
const NACK_ECHO: u8 = 0x20;

/// Octets of a MACK without channel, report and ranges, type included.
pub const MACK_BYTES: usize = 14;
/// Octets of a NACK for one number, type included.
pub const NACK_BYTES: usize = 10;

/// Octets of the window and the hold.
const RECEIVER_BYTES: usize = 4;

/// The fields that the MACKs and NACKs of one moment have in common. Each method appends one frame and returns how many of the
/// offered numbers it took: all, unless the room or the format's bound (4,096 in one frame) ends before.
#[derive(Clone, Copy, Debug)]
pub struct ShortFeedback {
    /// The connection, in frames of this end.
    pub named: Named,
    /// The congestion seen; REDUCED has no place in the short form.
    pub ecn: EcnField,
    /// The timestamp of the TPDU most recently received: what [`read`](super::read()) gave, or another in microseconds, cut to 16 us.
    pub echo: u32,
    /// The octets that the frame may have. What is not optional is written in any case.
    pub frame_bytes_max: usize,
}

impl ShortFeedback {
    /// Appends a MACK: everything before `next_expected` is settled, and `above` arrived beyond it, in any order, those to be said rather than others
    /// first.
    pub fn cumulative(
        &self,
        handshake: Handshake,
        next_expected: TpduSeq,
        words: CumulativeWords,
        above: impl IntoIterator<Item = TpduSeq>,
        out: &mut Vec<u8>,
    ) -> usize {
        let start = out.len();
        let mut flags = match handshake {
            Handshake::None => 0,
            Handshake::Asyn => ASYN,
            Handshake::Afin => AFIN,
        };
        for (bit, set) in [
            (MACK_ECHO, self.ecn.echoes()),
            (CHANNEL, words.channel.is_some()),
            (REPORT, words.report.is_some()),
        ] {
            if set {
                flags |= bit;
            }
        }
        self.begin(MACK, flags, next_expected, out);
        out.extend_from_slice(&words.receiver.to_octets());
        if let Some(channel) = words.channel {
            out.extend_from_slice(&channel.to_octets());
        }
        if let Some(report) = words.report {
            out.extend_from_slice(&report.to_octets());
        }
        let room = self.room(start, out);
        ranges::write(Order::NewestFirst, next_expected, above, room, out)
    }

    /// Appends a NACK for `first` and `further`, which ascend: one that does not ends what is taken.
    pub fn nack(
        &self,
        cause: NackCause,
        first: TpduSeq,
        further: impl IntoIterator<Item = TpduSeq>,
        out: &mut Vec<u8>,
    ) -> usize {
        let start = out.len();
        let mut flags = match cause {
            NackCause::Damaged => DAMAGED,
            NackCause::Missing => 0,
        };
        if self.ecn.echoes() {
            flags |= NACK_ECHO;
        }
        self.begin(NACK, flags, first, out);
        let room = self.room(start, out);
        ranges::write(Order::OldestFirst, first, further, room, out)
    }

    fn begin(&self, code: u8, flags: u8, seq: TpduSeq, out: &mut Vec<u8>) {
        out.extend_from_slice(&[code, self.named.opened_bit() | flags]);
        out.extend_from_slice(&self.named.name.0.to_be_bytes());
        out.extend_from_slice(&cut::to_octets(seq.0));
        out.extend_from_slice(&cut::to_octets(cut::time24(self.echo)));
    }

    /// The octets left for ranges in the frame that begins at `start`.
    const fn room(&self, start: usize, out: &[u8]) -> usize {
        self.frame_bytes_max.saturating_sub(out.len() - start)
    }
}

/// The header that both kinds begin with, and the octets behind it.
fn read_header<'a>(
    frame: &Frame<'a>,
    known: &impl Known,
    flags_of: impl FnOnce(u8) -> Option<(Flags, bool)>,
) -> Result<(Header, &'a [u8]), Reject> {
    let ([bits], rest) = split::<1>(frame.fields())?;
    let (_, rest) = split::<2>(rest)?;
    let (seq, rest) = split::<3>(rest)?;
    let (echo, rest) = split::<3>(rest)?;
    let (flags, echoes) = flags_of(bits & !OPENED).ok_or(Reject::Flags)?;
    let ends = known.ends_of(frame)?;
    let ecn = if echoes {
        EcnField::ECHO
    } else {
        EcnField::NONE
    };
    let seq = number(ends.first_unsettled, seq);
    let header = Header {
        ecn,
        ..ends.header(seq, time(echo), flags)
    };
    Ok((header, rest))
}

/// The flags in `start` and those of `pairs` whose bits are set.
fn gather(start: Flags, bits: u8, pairs: &[(u8, Flags)]) -> Flags {
    let set = pairs.iter().filter(|(bit, _)| bits & bit != 0);
    set.fold(start, |flags, (_, flag)| flags.with(*flag))
}

/// Reads a MACK. Its body is that of the long form, but for the numbers.
pub(super) fn read_mack<'a>(frame: &Frame<'a>, known: &impl Known) -> Result<Tpdu<'a>, Reject> {
    let flags_of = |bits: u8| {
        let pairs = [
            (ASYN, Flags::ASYN),
            (AFIN, Flags::AFIN),
            (CHANNEL, Flags::CHANNEL),
            (REPORT, Flags::REPORT),
        ];
        let known = ASYN | AFIN | MACK_ECHO | CHANNEL | REPORT;
        let start = Flags::MACK.with(Flags::CUMULATIVE);
        let flags = gather(start, bits, &pairs);
        (bits & !known == 0).then_some((flags, bits & MACK_ECHO != 0))
    };
    let (header, body) = read_header(frame, known, flags_of)?;
    let with = |flag, bytes| if header.flags.has(flag) { bytes } else { 0 };
    let words = RECEIVER_BYTES
        + with(Flags::CHANNEL, ChannelWord::BYTES)
        + with(Flags::REPORT, PathReport::BYTES);
    let (_, above) = body.split_at_checked(words).ok_or(Reject::Truncated)?;
    let kind = TpduKind::of(&header, false, words)?;
    ranges::check(Order::NewestFirst, above)?;
    Ok(Tpdu::under_seal(header, None, body, kind))
}

/// Reads a NACK, whose body is the ranges.
pub(super) fn read_nack<'a>(frame: &Frame<'a>, known: &impl Known) -> Result<Tpdu<'a>, Reject> {
    let flags_of = |bits: u8| {
        let flags = gather(Flags::NACK, bits, &[(DAMAGED, Flags::URG)]);
        let is_known = bits & !(DAMAGED | NACK_ECHO) == 0;
        is_known.then_some((flags, bits & NACK_ECHO != 0))
    };
    let (header, body) = read_header(frame, known, flags_of)?;
    let kind = TpduKind::of(&header, false, 0)?;
    ranges::check(Order::OldestFirst, body)?;
    Ok(Tpdu::under_seal(header, None, body, kind))
}
