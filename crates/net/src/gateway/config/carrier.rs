//! The carrier of a peer's datagrams, as a configuration names it.

use super::notation::{NotationError, not};
use crate::udp::Carrier;
use core::fmt;
use core::str::FromStr;

/// The way in which datagrams travel to a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CarrierChoice {
    /// UDP, with its checksum or without, as serves better.
    Auto,
    /// UDP with its checksum.
    #[default]
    Udp,
    /// UDP without checksum.
    UdpNoChecksum,
    /// UDP-Lite.
    UdpLite,
    /// Ethernet frames on the device of this name.
    Ethernet(String),
}

/// The longest name of a device (`IFNAMSIZ` of linux/if.h, less its end).
const DEVICE_BYTES_MAX: usize = 15;

impl CarrierChoice {
    /// Whether damaged datagrams may be let in.
    pub const fn may_let_damage_in(&self) -> bool {
        matches!(self, Self::Auto) || self.carrier().lets_damage_in()
    }

    /// The carrier, as ports know it; with [`CarrierChoice::Auto`] that at first.
    pub const fn carrier(&self) -> Carrier {
        match self {
            Self::Auto | Self::Udp => Carrier::Udp,
            Self::UdpNoChecksum => Carrier::UdpNoChecksum,
            Self::UdpLite => Carrier::UdpLite,
            Self::Ethernet(_) => Carrier::Ethernet,
        }
    }
}

impl FromStr for CarrierChoice {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        const EXPECTED: &str = "a carrier; write auto, udp, udp-nochecksum, udplite, or ethernet:DEV with a device's name";
        let is_device = |name: &&str| (1..=DEVICE_BYTES_MAX).contains(&name.len());
        match (text, text.strip_prefix("ethernet:").filter(is_device)) {
            ("auto", _) => Ok(Self::Auto),
            ("udp", _) => Ok(Self::Udp),
            ("udp-nochecksum", _) => Ok(Self::UdpNoChecksum),
            ("udplite", _) => Ok(Self::UdpLite),
            (_, Some(device)) => Ok(Self::Ethernet(device.to_owned())),
            _ => Err(not(text, EXPECTED)),
        }
    }
}

impl fmt::Display for CarrierChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Udp => f.write_str("udp"),
            Self::UdpNoChecksum => f.write_str("udp-nochecksum"),
            Self::UdpLite => f.write_str("udplite"),
            Self::Ethernet(device) => write!(f, "ethernet:{device}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::config::GatewayConfig;

    #[test]
    fn carriers_read_as_they_are_written_and_others_are_refused() {
        for text in [
            "auto",
            "udp",
            "udp-nochecksum",
            "udplite",
            "ethernet:fifteen-octets1",
        ] {
            let read: CarrierChoice = text.parse().unwrap();
            assert_eq!(read.to_string(), text);
        }
        for wrong in [
            "",
            "Auto",
            "UDP",
            "ethernet",
            "ethernet:",
            "ethernet:sixteen-octets12",
        ] {
            assert!(wrong.parse::<CarrierChoice>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_number_of_words_is_refused_where_the_carrier_is_to_be_chosen() {
        const TEXT: &str = "[gateway]\nfec_words = 3\n[security]\nkind = \"none\"\n\
                            [[peer]]\nname = \"b\"\ncarrier = \"auto\"\n[egress]\nallow = [\"10.0.0.1:80\"]\n";
        let error = GatewayConfig::read("a.toml", TEXT).expect_err("a contradiction");
        let error = error.to_string();
        assert!(
            error.starts_with("a.toml:2: `gateway.fec_words`"),
            "{error}"
        );
        assert!(error.contains("of peer `b`"), "{error}");
        for other in [
            TEXT.replace("fec_words = 3", "fec_words = 0"),
            TEXT.replace("auto", "udp-nochecksum"),
        ] {
            GatewayConfig::read("a.toml", &other).expect("no contradiction");
        }
    }
}
