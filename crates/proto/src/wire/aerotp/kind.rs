//! The kind of a TPDU, from its flags; contradictory flags are refused here and nowhere else.

use super::channel_word::ChannelWord;
use super::header::{Flags, Header};
use super::overhead::LISTED_NUMBERS_MAX;
use super::path_report::PathReport;
use super::reject::Reject;
use crate::wire::Mode;

/// The kinds of TPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TpduKind {
    /// Pure set-up: the sequence number will be the first data TPDU's, and is not used up.
    Asyn,
    /// Data: application octets.
    Data {
        /// Whether this is the connection's first data TPDU (opportunistic set-up).
        asyn: bool,
    },
    /// A repair symbol of the block that starts at the sequence number.
    Repair,
    /// A repair symbol over TPDUs from the sequence number on. It has the short form alone, and no time.
    Window,
    /// Acknowledgements; see [`Mack`](super::Mack).
    Mack {
        /// Whether it also answers a set-up: ASYNACK.
        asyn: bool,
        /// Whether it also answers the end of data: AFINACK.
        afin: bool,
    },
    /// Negative acknowledgements; see [`Nack`](super::Nack).
    Nack,
    /// End of data: the sequence number is the one after the last data TPDU's.
    Afin,
    /// Abort.
    Reset,
    /// A challenge: whoever opens a connection is to show that it receives at its address. Number and
    /// timestamp are 64 bits to be sent back.
    Challenge,
    /// The response to a challenge, which sends its 64 bits back.
    Response,
}

impl TpduKind {
    /// The kind that these flags mean, once the body's length is known. Lengths come from the layer
    /// below and cannot be changed by bit errors, so they are checked even before the CRC-32.
    pub(super) fn of(header: &Header, block: bool, body_bytes: usize) -> Result<Self, Reject> {
        let flags = header.flags;
        let kind = match (block, flags) {
            (true, Flags::NONE) => Self::Repair,
            (true, _) => return Err(Reject::Flags),
            (false, Flags::CHALLENGE) => Self::Challenge,
            (false, Flags::RESPONSE) => Self::Response,
            (false, f) if f.has(Flags::MACK) => Self::mack(f)?,
            (false, f) if f.has(Flags::NACK) => only(Self::Nack, f, Flags::NACK.with(Flags::URG))?,
            (false, f) if f.has(Flags::RST) => only(Self::Reset, f, Flags::RST)?,
            (false, f) if f.has(Flags::AFIN) => only(Self::Afin, f, Flags::AFIN)?,
            (false, Flags::ASYN) if body_bytes == 0 => Self::Asyn,
            (false, f) => {
                let carried = Flags::URG.with(Flags::PSH).with(Flags::ASYN);
                let asyn = f.has(Flags::ASYN);
                only(Self::Data { asyn }, f, carried)?
            }
        };
        if header.mode == Mode::Datagram && kind != (Self::Data { asyn: false }) {
            // A datagram has no connection to set up, acknowledge, repair or end.
            return Err(Reject::Flags);
        }
        if kind.takes_body(header, body_bytes) {
            Ok(kind)
        } else {
            Err(Reject::BodyLength)
        }
    }

    fn mack(flags: Flags) -> Result<Self, Reject> {
        let (asyn, afin) = (flags.has(Flags::ASYN), flags.has(Flags::AFIN));
        let allowed = Flags::MACK
            .with(Flags::CUMULATIVE)
            .with(Flags::ASYN)
            .with(Flags::AFIN);
        let allowed = if flags.has(Flags::CUMULATIVE) {
            allowed.with(Flags::REPORT).with(Flags::CHANNEL)
        } else {
            allowed
        };
        if asyn && afin {
            return Err(Reject::Flags);
        }
        only(Self::Mack { asyn, afin }, flags, allowed)
    }

    fn takes_body(self, header: &Header, body_bytes: usize) -> bool {
        match self {
            Self::Asyn | Self::Afin | Self::Reset | Self::Challenge | Self::Response => {
                body_bytes == 0
            }
            // UDP knows empty datagrams; in a stream an empty TPDU says nothing.
            Self::Data { .. } => body_bytes > 0 || header.mode == Mode::Datagram,
            Self::Repair | Self::Window => body_bytes > 0,
            Self::Mack { .. } | Self::Nack => {
                let flags = header.flags;
                let with = |flag: Flags, bytes| if flags.has(flag) { bytes } else { 0 };
                let least = if flags.has(Flags::CUMULATIVE) {
                    let channel = with(Flags::CHANNEL, ChannelWord::BYTES);
                    4 + channel + with(Flags::REPORT, PathReport::BYTES)
                } else {
                    0
                };
                body_bytes.is_multiple_of(4)
                    && (least..=LISTED_NUMBERS_MAX * 4).contains(&body_bytes)
            }
        }
    }
}

fn only(kind: TpduKind, flags: Flags, allowed: Flags) -> Result<TpduKind, Reject> {
    if flags.beyond(allowed) {
        Err(Reject::Flags)
    } else {
        Ok(kind)
    }
}
