//! The port of a device, as `ethtool` tells of it over netlink (`linux/ethtool_netlink.h`).

use super::generic::{GenericNetlink, Question, attribute, number};
use fulmar_proto::units::Bitrate;
use netlink_packet_core::{DefaultNla, Emitable, NLA_F_NESTED};
use std::io;

const ETHTOOL_MSG_LINKMODES_GET: u8 = 4;
const ETHTOOL_MSG_LINKSTATE_GET: u8 = 6;
/// The header of a question or an answer: first in both commands.
const ETHTOOL_A_HEADER: u16 = 1;
const ETHTOOL_A_HEADER_DEV_INDEX: u16 = 1;
const ETHTOOL_A_LINKMODES_SPEED: u16 = 5;
const ETHTOOL_A_LINKSTATE_LINK: u16 = 2;
/// The speed of a port that does not know it.
const SPEED_UNKNOWN: u32 = u32::MAX;

/// The port of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Port {
    /// Whether something answers at the other end of the cable.
    pub(super) is_connected: Option<bool>,
    /// The speed that both ends have agreed on.
    pub(super) speed: Option<Bitrate>,
}

impl Port {
    pub(super) fn ask(netlink: &mut GenericNetlink, family: u16, index: u32) -> io::Result<Self> {
        let device = DefaultNla::new(ETHTOOL_A_HEADER_DEV_INDEX, index.to_ne_bytes().to_vec());
        let mut header = vec![0; device.buffer_len()];
        device.emit(&mut header);
        let header = [DefaultNla::new(ETHTOOL_A_HEADER | NLA_F_NESTED, header)];
        let mut ask = |command| {
            let question = Question {
                command,
                asks_for_all: false,
                attributes: &header,
            };
            netlink.ask(family, &question)
        };
        let state = ask(ETHTOOL_MSG_LINKSTATE_GET)?;
        let modes = match ask(ETHTOOL_MSG_LINKMODES_GET) {
            Ok(modes) => modes,
            // Devices without a cable, such as TUN in some kernels, have no modes.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Vec::new(),
            Err(error) => return Err(error),
        };
        let first = |answers: &[Vec<u8>]| answers.first().cloned().unwrap_or_default();
        Ok(Self::read(&first(&state), &first(&modes)))
    }

    /// Reads the attributes of both answers.
    fn read(state: &[u8], modes: &[u8]) -> Self {
        let link = attribute(state, ETHTOOL_A_LINKSTATE_LINK);
        let is_connected = link.and_then(|link| link.first().map(|link| *link != 0));
        let speed = number(modes, ETHTOOL_A_LINKMODES_SPEED);
        let speed = speed.filter(|mbit| *mbit != SPEED_UNKNOWN);
        Self {
            is_connected,
            speed: speed.map(|mbit| Bitrate::from_bits_per_second(u64::from(mbit) * 1_000_000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attributes of answers of Linux 6.18 on 2026-11-28, behind 20 octets of headers: `LINKSTATE_GET` and
    /// `LINKMODES_GET` of one end of a `veth` pair, and the modes of a virtual machine's `eth0`.
    const VETH_STATE: &str = "14000180080001000a00000007000200763000000500020001000000";
    const VETH_MODES: &str = "14000180080001000a00000007000200763000000500020000000000100003800800020079000000040003800800050010270000050006000100000005000a0000000000";
    const ETH_MODES: &str = "18000180080001000400000009000200657468300000000005000200000000001000038008000200790000000400038008000500ffffffff05000600ff00000005000a0000000000";

    fn octets(text: &str) -> Vec<u8> {
        let digits = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
        (0..text.len()).step_by(2).map(digits).collect()
    }

    #[test]
    fn recorded_answers_are_read() {
        let port = Port::read(&octets(VETH_STATE), &octets(VETH_MODES));
        assert_eq!(port.is_connected, Some(true));
        assert_eq!(
            port.speed,
            Some(Bitrate::from_bits_per_second(10_000_000_000))
        );
        let port = Port::read(&octets(VETH_STATE), &octets(ETH_MODES));
        assert_eq!(port.speed, None, "it does not know");
        assert_eq!(Port::read(&[], &[]), Port::default());
    }
}
