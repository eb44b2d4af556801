//! Flows that send as `fulmar perf` does over UDP and IPv4.
//!
//! Its messages are parts of a stream, its datagrams have the eight octets of UDP, its sender runs ahead by a burst, and where
//! packets are lost it now and then tries shorter ones. All of that moves delays: a scenario's flow without it is no prediction of a
//! test of `fulmar perf`.

use fulmar_proto::units::Bitrate;

/// The octets of UDP's header, and of the longest packet with it.
const UDP_BYTES: u64 = 8;
const PACKET_BYTES: u64 = 1_500;

/// The keys of a scenario whose flows send as `fulmar perf` does, as lines of TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfKeys {
    /// Those of each flow.
    pub flow: String,
    /// Those of each hop.
    pub hop: String,
}

impl PerfKeys {
    /// The keys of tests that are told this rate by `--rate`, or find theirs without it.
    pub fn told(rate: Option<Bitrate>) -> Self {
        // A flow counts its packets without UDP's header, which takes its part of the rate.
        let without_udp = |rate: Bitrate| {
            let bits = u128::from(rate.as_bits_per_second());
            let part = bits * u128::from(PACKET_BYTES - UDP_BYTES) / u128::from(PACKET_BYTES);
            format!("{part}bit")
        };
        let send_rate = rate.map_or_else(|| "found".to_owned(), without_udp);
        let mtu = PACKET_BYTES - UDP_BYTES;
        Self {
            flow: format!(
                "mtu = \"{mtu}B\"\nburst = \"500us\"\nwindow = 32768\nfollow_length = true\nsend_rate = \"{send_rate}\"\n"
            ),
            hop: format!("framing = \"{UDP_BYTES}B\"\n"),
        }
    }
}
