//! The stations of a Wi-Fi device, as `nl80211` tells of them (`linux/nl80211.h`).

use super::generic::{GenericNetlink, Question, attribute, number};
use fulmar_proto::dlep::wire::MacAddress;
use fulmar_proto::units::Bitrate;
use netlink_packet_core::DefaultNla;
use std::collections::VecDeque;
use std::io;

const NL80211_CMD_GET_STATION: u8 = 17;
const NL80211_ATTR_IFINDEX: u16 = 3;
const NL80211_ATTR_MAC: u16 = 6;
const NL80211_ATTR_STA_INFO: u16 = 21;
const NL80211_STA_INFO_SIGNAL: u16 = 7;
const NL80211_STA_INFO_TX_BITRATE: u16 = 8;
const NL80211_STA_INFO_TX_PACKETS: u16 = 10;
const NL80211_STA_INFO_RX_BITRATE: u16 = 14;
/// Bit rates in 100 kbit/s, of 16 and of 32 bits.
const NL80211_RATE_INFO_BITRATE: u16 = 1;
const NL80211_RATE_INFO_BITRATE32: u16 = 5;
const RATE_UNIT: u64 = 100_000;

/// Packets to the station between two looks from which on the bit rate is that of data.
const BUSY_PACKETS: u32 = 20;
/// Looks at busy times of which the greatest bit rate counts: a driver tries other rates now and then.
const LOOKS_KEPT: usize = 5;

/// A station at the other end of the radio link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Station {
    pub(super) address: Option<MacAddress>,
    /// The power of what it sent last, as it was received here.
    pub(super) signal_dbm: Option<i8>,
    /// The bit rates of the medium towards it and from it, of the last data frame: data get less.
    pub(super) rate_out: Option<Bitrate>,
    pub(super) rate_back: Option<Bitrate>,
    /// Packets to it so far.
    pub(super) packets_out: u32,
}

/// The stations of the device of this number.
///
/// # Errors
/// It is no Wi-Fi device, or the kernel does not tell.
pub(super) fn stations(
    netlink: &mut GenericNetlink,
    family: u16,
    index: u32,
) -> io::Result<Vec<Station>> {
    let device = DefaultNla::new(NL80211_ATTR_IFINDEX, index.to_ne_bytes().to_vec());
    let question = Question {
        command: NL80211_CMD_GET_STATION,
        asks_for_all: true,
        attributes: &[device],
    };
    let answers = netlink.ask(family, &question)?;
    Ok(answers.iter().map(|answer| Station::read(answer)).collect())
}

impl Station {
    /// Reads the attributes of one answer.
    fn read(answer: &[u8]) -> Self {
        let info = attribute(answer, NL80211_ATTR_STA_INFO).unwrap_or_default();
        let signal = attribute(&info, NL80211_STA_INFO_SIGNAL);
        Self {
            address: attribute(answer, NL80211_ATTR_MAC).and_then(|mac| MacAddress::of(&mac)),
            signal_dbm: signal.and_then(|power| power.first().map(|power| power.cast_signed())),
            rate_out: rate(&info, NL80211_STA_INFO_TX_BITRATE),
            rate_back: rate(&info, NL80211_STA_INFO_RX_BITRATE),
            packets_out: number(&info, NL80211_STA_INFO_TX_PACKETS).unwrap_or(0),
        }
    }
}

fn rate(info: &[u8], kind: u16) -> Option<Bitrate> {
    let rate = attribute(info, kind)?;
    let wide = number(&rate, NL80211_RATE_INFO_BITRATE32);
    let units = wide.or_else(|| {
        let narrow = attribute(&rate, NL80211_RATE_INFO_BITRATE)?;
        Some(u32::from(u16::from_ne_bytes(*narrow.first_chunk()?)))
    })?;
    Some(Bitrate::from_bits_per_second(u64::from(units) * RATE_UNIT))
}

/// The bit rate at which data leave. An idle device sends a frame now and then, at the lowest rate of all, which says nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct BusyRate {
    address: Option<MacAddress>,
    packets: Option<u32>,
    rates: VecDeque<Bitrate>,
}

impl BusyRate {
    /// Takes a look at the station. Returns the greatest bit rate of the last looks if data went to it meanwhile.
    pub(super) fn take(&mut self, station: &Station) -> Option<Bitrate> {
        if station.address != self.address {
            *self = Self {
                address: station.address,
                ..Self::default()
            };
        }
        let before = self.packets.replace(station.packets_out)?;
        if station.packets_out.wrapping_sub(before) < BUSY_PACKETS {
            self.rates.clear();
            return None;
        }
        self.rates.extend(station.rate_out);
        if self.rates.len() > LOOKS_KEPT {
            self.rates.pop_front();
        }
        self.rates.iter().max().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of a laptop's kernel to `NL80211_CMD_GET_STATION`, up to its signal: 104.0 Mbit/s there, 39.0 Mbit/s here,
    /// at -38 dBm. Source: the recording in `src/station.rs` of github.com/Eonm/nl80211 at 51875763, of which attribute 21
    /// is cut behind its attribute 12.
    const STATION: [&[u8]; 2] = [
        &[10, 0, 6, 0, 46, 46, 46, 46, 46, 46, 0, 0, 204, 0, 21, 0],
        &[
            8, 0, 16, 0, 17, 27, 0, 0, 8, 0, 1, 0, 248, 2, 0, 0, 8, 0, 2, 0, 43, 98, 156, 29, 8, 0,
            3, 0, 99, 123, 109, 1, 12, 0, 23, 0, 43, 98, 156, 29, 0, 0, 0, 0, 12, 0, 24, 0, 99,
            123, 109, 1, 0, 0, 0, 0, 5, 0, 7, 0, 218, 0, 0, 0, 5, 0, 13, 0, 215, 0, 0, 0, 20, 0,
            25, 0, 5, 0, 0, 0, 216, 0, 0, 0, 5, 0, 1, 0, 213, 0, 0, 0, 20, 0, 26, 0, 5, 0, 0, 0,
            212, 0, 0, 0, 5, 0, 1, 0, 211, 0, 0, 0, 28, 0, 8, 0, 8, 0, 5, 0, 16, 4, 0, 0, 6, 0, 1,
            0, 16, 4, 0, 0, 5, 0, 2, 0, 13, 0, 0, 0, 28, 0, 14, 0, 8, 0, 5, 0, 134, 1, 0, 0, 6, 0,
            1, 0, 134, 1, 0, 0, 5, 0, 2, 0, 4, 0, 0, 0, 8, 0, 9, 0, 226, 128, 7, 0, 8, 0, 10, 0, 9,
            170, 2, 0, 8, 0, 11, 0, 27, 130, 0, 0, 8, 0, 12, 0, 47, 0, 0, 0,
        ],
    ];

    const fn mbit(rate: u64) -> Bitrate {
        Bitrate::from_bits_per_second(rate * 1_000_000)
    }

    #[test]
    fn a_recorded_station_is_read() {
        let station = Station::read(&STATION.concat());
        assert_eq!(station.address, MacAddress::of(&[46; 6]));
        assert_eq!(station.signal_dbm, Some(-38));
        assert_eq!(
            (station.rate_out, station.rate_back),
            (Some(mbit(104)), Some(mbit(39)))
        );
        assert_eq!(station.packets_out, 174_601);
        assert_eq!(Station::read(&[]), Station::default());
    }

    #[test]
    fn the_rate_of_an_idle_station_is_not_that_of_data() {
        let mut busy = BusyRate::default();
        let mut look = |packets_out, rate| {
            busy.take(&Station {
                packets_out,
                rate_out: Some(mbit(rate)),
                ..Station::default()
            })
        };
        assert_eq!(look(100, 104), None, "nobody knows since when");
        assert_eq!(look(101, 6), None);
        assert_eq!(look(900, 104), Some(mbit(104)));
        assert_eq!(
            look(1_800, 52),
            Some(mbit(104)),
            "a driver tries other rates"
        );
        for packets in 3..7 {
            look(packets * 900, 52);
        }
        assert_eq!(look(7_000, 52), Some(mbit(52)));
        assert_eq!(look(7_001, 6), None);
    }
}
