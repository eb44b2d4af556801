//! The eight control bits.

use core::fmt;
use core::ops::BitOr;

/// Control bits of a segment (RFC 9293, section 3.1; RFC 3168 for ECE and CWR).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No bit set.
    pub const NONE: Self = Self(0);
    /// FIN: no more octets from the sender.
    pub const FIN: Self = Self(0x01);
    /// SYN: synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// RST: reset the connection.
    pub const RST: Self = Self(0x04);
    /// PSH: push.
    pub const PSH: Self = Self(0x08);
    /// ACK: the acknowledgement field is significant.
    pub const ACK: Self = Self(0x10);
    /// URG: the urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECE: congestion is echoed (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// CWR: the congestion window was reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// Whether every bit of `bits` is set.
    pub const fn has(self, bits: Self) -> bool {
        self.0 & bits.0 == bits.0
    }

    /// These bits, and `bits` if `wanted`.
    #[must_use]
    pub const fn with(self, bits: Self, wanted: bool) -> Self {
        if wanted { Self(self.0 | bits.0) } else { self }
    }
}

impl BitOr for TcpFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

const NAMES: [(TcpFlags, char); 8] = [
    (TcpFlags::FIN, 'F'),
    (TcpFlags::SYN, 'S'),
    (TcpFlags::RST, 'R'),
    (TcpFlags::PSH, 'P'),
    (TcpFlags::ACK, '.'),
    (TcpFlags::URG, 'U'),
    (TcpFlags::ECE, 'E'),
    (TcpFlags::CWR, 'W'),
];

impl fmt::Debug for TcpFlags {
    /// Prints the bits as tcpdump does: `S.` is a SYN with an acknowledgement.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = NAMES.iter().filter(|(flag, _)| self.has(*flag));
        let text: String = set.map(|(_, name)| *name).collect();
        f.write_str(if text.is_empty() { "-" } else { &text })
    }
}
