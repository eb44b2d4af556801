//! The 16-octet header: ports, sequence number, timestamp, and the word of small fields.
//!
//! ```text
//!  word 3:  mode 4 | NACK CRC FEC BLOCK | CWR ECE | URG MACK PSH RST ASYN AFIN | HEC 16
//! ```
//!
//! The layout of words 0 to 2 and the names in word 3 are the authors' ("AeroTP data unit
//! (preliminary)" on the `ResiliNets` wiki). The widths in word 3 are those of TCP's fourth word,
//! with the window's place given to the HEC.

use super::descriptor::BlockDescriptor;
use crate::units::FecStrength;
use crate::wire::{Mode, Port, TpduSeq};

/// The two ECN bits, in the places of TCP's CWR and ECE (RFC 3168, section 6.1), so that a gateway
/// can pass them through. A receiver sets ECHO in the first MACK or NACK after a TPDU arrived
/// congestion-marked; the next mark makes up for a lost echo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EcnField(u8);

impl EcnField {
    /// No congestion to tell of.
    pub const NONE: Self = Self(0b00);
    /// A TPDU arrived congestion-marked (ECE).
    pub const ECHO: Self = Self(0b01);
    /// The rate was lowered in answer to an echo (CWR).
    pub const REDUCED: Self = Self(0b10);

    /// The lower two bits of `bits`.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0b11)
    }

    /// The two bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Both fields' bits together.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether congestion is echoed.
    pub const fn echoes(self) -> bool {
        self.0 & Self::ECHO.0 != 0
    }

    /// Whether the sender says it lowered its rate.
    pub const fn reduced(self) -> bool {
        self.0 & Self::REDUCED.0 != 0
    }
}

/// The flags of a TPDU: TCP's six in TCP's places, then NACK and CUMULATIVE.
/// [`TpduKind`](super::TpduKind) tells which combinations have a meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u8);

impl Flags {
    /// The absence of all flags: a plain data TPDU.
    pub const NONE: Self = Self(0);
    /// End of data (TCP's FIN).
    pub const AFIN: Self = Self(1);
    /// Set-up (TCP's SYN): the sequence number is the connection's first.
    pub const ASYN: Self = Self(1 << 1);
    /// Abort.
    pub const RST: Self = Self(1 << 2);
    /// Push, carried between gateways.
    pub const PSH: Self = Self(1 << 3);
    /// An acknowledgement (TCP's ACK).
    pub const MACK: Self = Self(1 << 4);
    /// On data, TCP's urgent, carried between gateways. On a NACK: lost by error, not missing (ELN).
    pub const URG: Self = Self(1 << 5);
    /// A negative acknowledgement.
    pub const NACK: Self = Self(1 << 6);
    /// On a cumulative MACK: a report on the path follows the receiver word (TCP's PSH).
    pub const REPORT: Self = Self::PSH;
    /// On a cumulative MACK: the receiver's estimate of the channel follows the receiver word (TCP's
    /// URG).
    pub const CHANNEL: Self = Self::URG;
    /// On a MACK: the cumulative style. It has no meaning elsewhere, and is never sent there.
    pub const CUMULATIVE: Self = Self(1 << 7);

    /// A challenge to show an address: two flags that contradict each other otherwise.
    pub const CHALLENGE: Self = Self(Self::RST.0 | Self::ASYN.0);
    /// The answer to a challenge: two other flags that contradict each other otherwise.
    pub const RESPONSE: Self = Self(Self::RST.0 | Self::AFIN.0);

    /// The flags of both sets together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any flag outside `allowed` is set.
    pub(super) const fn beyond(self, allowed: Self) -> bool {
        self.0 & !allowed.0 != 0
    }
}

/// The fields of a header that mean the same in every TPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The sending end's port.
    pub source: Port,
    /// The receiving end's port.
    pub destination: Port,
    /// The sequence number; whose number it is depends on the kind of TPDU.
    pub seq: TpduSeq,
    /// The time of sending, in microseconds modulo 2^32; in a MACK or NACK, the echo of the
    /// timestamp of the most recently received TPDU.
    pub timestamp: u32,
    /// The connection's mode.
    pub mode: Mode,
    /// Congestion, echoed or answered.
    pub ecn: EcnField,
    /// The flags, which give its kind.
    pub flags: Flags,
}

/// The optional parts that follow the header: the resv bits CRC and FEC, and the words themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) crc: bool,
    pub(super) fec: FecStrength,
    pub(super) block: Option<BlockDescriptor>,
}

const NACK_BIT: u8 = 0b1000;
const CRC_BIT: u8 = 0b0100;
const FEC_BIT: u8 = 0b0010;
const BLOCK_BIT: u8 = 0b0001;

/// The third word's first two octets taken apart, not yet checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct SmallFields {
    pub(super) mode_code: u8,
    pub(super) crc: bool,
    pub(super) fec: bool,
    pub(super) block: bool,
    pub(super) ecn: EcnField,
    pub(super) flags: Flags,
}

impl SmallFields {
    pub(super) fn of(octets: [u8; 2]) -> Self {
        let resv = octets[0] & 0x0F;
        let mut flags = Flags(octets[1] & 0x3F);
        if resv & NACK_BIT != 0 {
            flags = flags.with(Flags::NACK);
        }
        let block_bit = resv & BLOCK_BIT != 0;
        let block = block_bit && !flags.has(Flags::MACK);
        if block_bit && !block {
            flags = flags.with(Flags::CUMULATIVE);
        }
        Self {
            mode_code: octets[0] >> 4,
            crc: resv & CRC_BIT != 0,
            fec: resv & FEC_BIT != 0,
            block,
            ecn: EcnField::from_bits(octets[1] >> 6),
            flags,
        }
    }
}

impl Header {
    /// The first 14 octets: all but the HEC.
    pub(super) fn to_octets(self, parts: Parts) -> [u8; 14] {
        let mut resv = 0;
        for (bit, set) in [
            (NACK_BIT, self.flags.has(Flags::NACK)),
            (CRC_BIT, parts.crc),
            (FEC_BIT, !parts.fec.is_none()),
            (
                BLOCK_BIT,
                parts.block.is_some() || self.flags.has(Flags::CUMULATIVE),
            ),
        ] {
            if set {
                resv |= bit;
            }
        }
        let mut octets = [0; 14];
        octets[0..2].copy_from_slice(&self.source.0.to_be_bytes());
        octets[2..4].copy_from_slice(&self.destination.0.to_be_bytes());
        octets[4..8].copy_from_slice(&self.seq.0.to_be_bytes());
        octets[8..12].copy_from_slice(&self.timestamp.to_be_bytes());
        octets[12] = self.mode.code() << 4 | resv;
        octets[13] = self.ecn.bits() << 6 | self.flags.0 & 0x3F;
        octets
    }

    /// The header in `octets` with the mode and small fields that were checked before.
    pub(super) fn from_octets(octets: &[u8; 14], mode: Mode, small: SmallFields) -> Self {
        let [s0, s1, d0, d1, n0, n1, n2, n3, t0, t1, t2, t3, ..] = *octets;
        Self {
            source: Port(u16::from_be_bytes([s0, s1])),
            destination: Port(u16::from_be_bytes([d0, d1])),
            seq: TpduSeq(u32::from_be_bytes([n0, n1, n2, n3])),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            mode,
            ecn: small.ecn,
            flags: small.flags,
        }
    }
}
