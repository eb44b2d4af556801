//! The name of a connection: two octets in the place of its ports.

use core::fmt;

use crate::wire::Port;

/// The bit O in an octet of flags.
pub(super) const OPENED: u8 = 0x80;
/// The first port that an opener's name can hold: that of the dynamic ports (RFC 6335, section 6).
const OPENER_FIRST: u16 = 49_152;

/// The name of a connection between two ends: the opener's port above 49,152 in 14 bits, then the listening port modulo 4.
///
/// It stands for one connection only together with the end that opened it ([`Named`]), and only while the
/// opener has no other of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub u16);

impl Name {
    /// The name of the connection between these ports; `None` if the opener's is below 49,152.
    pub const fn of(opener: Port, listener: Port) -> Option<Self> {
        match opener.0.checked_sub(OPENER_FIRST) {
            Some(above) => Some(Self(above << 2 | listener.0 & 0b11)),
            None => None,
        }
    }

    /// The opener's port.
    pub const fn opener(self) -> Port {
        Port(OPENER_FIRST + (self.0 >> 2))
    }

    /// The listening port modulo 4.
    pub const fn listener_low(self) -> u16 {
        self.0 & 0b11
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.opener(), self.listener_low())
    }
}

/// A name in a frame, with the side that it is seen from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Named {
    /// The name.
    pub name: Name,
    /// Whether the end that sends the frame has opened the connection.
    pub sender_opened: bool,
}

impl Named {
    /// The bit O in an octet of flags.
    pub(super) const fn opened_bit(self) -> u8 {
        if self.sender_opened { OPENED } else { 0 }
    }

    /// The same connection in a frame of the other end.
    #[must_use]
    pub const fn answered(self) -> Self {
        Self {
            sender_opened: !self.sender_opened,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_of_a_dynamic_port_and_a_remainder_has_a_name_of_its_own() {
        let mut next = 0_u32;
        for opener in OPENER_FIRST..=u16::MAX {
            for listener in 7_072..=7_075 {
                let name = Name::of(Port(opener), Port(listener)).unwrap();
                assert_eq!(u32::from(name.0), next);
                assert_eq!(
                    (name.opener(), name.listener_low()),
                    (Port(opener), listener % 4)
                );
                next += 1;
            }
        }
        assert_eq!(next, 1 << 16);
    }

    #[test]
    fn an_opener_below_the_dynamic_ports_has_no_name() {
        assert_eq!(Name::of(Port(49_151), Port(7_070)), None);
        assert_eq!(Name::of(Port(0), Port(7_070)), None);
        assert_eq!(Name::of(Port(49_152), Port(0)), Some(Name(0)));
        let name = Name::of(Port(50_081), Port(7_070)).unwrap();
        assert_eq!(
            (name, name.to_string()),
            (Name(0x0E86), "50081+2".to_owned())
        );
    }
}
