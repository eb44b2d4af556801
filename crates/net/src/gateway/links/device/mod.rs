//! A device of this machine as the source of a link's words: the kernel knows whether it is connected, and how fast its medium is.
//!
//! Wi-Fi is asked for its station (`nl80211`), every other device for its port (`ethtool`), both over generic netlink. A device
//! that is not connected carries nothing. One that is says nothing of what lies behind the access point or the cable.

mod ethernet;
mod generic;
mod wifi;

use super::heard::{Heard, LinkWord};
use super::lack::SourceLack;
use ethernet::Port;
use fulmar_proto::dlep::wire::MacAddress;
use fulmar_proto::told::{LinkNews, TOLD_RATES};
use fulmar_proto::units::{Bitrate, Duration, Instant};
use generic::GenericNetlink;
use nix::errno::Errno;
use std::io;
use wifi::{BusyRate, Station};

/// The time between two looks, and the time for which one holds.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const HOLDS: Duration = Duration::from_secs(3);

/// A device of this machine.
#[derive(Debug)]
pub(super) struct Device {
    name: String,
    station: Option<MacAddress>,
    netlink: GenericNetlink,
    /// The kernel's numbers of `nl80211` and `ethtool`; none where it was built without.
    wifi: Option<u16>,
    ethtool: Option<u16>,
    busy: BusyRate,
    /// The reason why the last look said nothing.
    lack: Option<SourceLack>,
    next_at: Instant,
}

impl Device {
    /// Opens a socket to ask the kernel. The device itself may come later.
    ///
    /// # Errors
    /// The kernel has no generic netlink, or neither of the two families.
    pub(super) fn open(name: &str, station: Option<MacAddress>) -> io::Result<Self> {
        let mut netlink = GenericNetlink::open()?;
        let (wifi, ethtool) = (netlink.family("nl80211")?, netlink.family("ethtool")?);
        if wifi.is_none() && ethtool.is_none() {
            let problem = "the kernel tells neither of Wi-Fi (nl80211) nor of ports (ethtool over netlink, Linux 5.6); \
                           have a script write to a `socket` instead";
            return Err(io::Error::new(io::ErrorKind::Unsupported, problem));
        }
        Ok(Self {
            name: name.to_owned(),
            station,
            netlink,
            wifi,
            ethtool,
            busy: BusyRate::default(),
            lack: Some(SourceLack::Device(name.to_owned())),
            next_at: Instant::START,
        })
    }

    /// The reason why nothing is told, if nothing is.
    pub(super) const fn lack(&self) -> Option<&SourceLack> {
        self.lack.as_ref()
    }

    /// The time of the next look.
    pub(super) const fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Looks at the device, if it is time.
    pub(super) fn hear(&mut self, now: Instant) -> Heard {
        if now < self.next_at {
            return Heard::default();
        }
        self.next_at = now + LOOK_EVERY;
        let looked = self.look();
        let (word, messages) = match &looked {
            Ok(news) => (LinkWord::News(*news, Some(HOLDS)), 1),
            Err(SourceLack::Device(_)) => {
                let down = LinkNews {
                    is_up: Some(false),
                    ..LinkNews::default()
                };
                (LinkWord::News(down, Some(HOLDS)), 0)
            }
            Err(_) => (LinkWord::Gone, 0),
        };
        self.lack = looked.err();
        Heard {
            word: Some(word),
            messages,
            ..Heard::default()
        }
    }

    fn look(&mut self) -> Result<LinkNews, SourceLack> {
        let index = match nix::net::if_::if_nametoindex(self.name.as_str()) {
            Ok(index) => index,
            Err(Errno::ENODEV | Errno::ENXIO) => return Err(SourceLack::Device(self.name.clone())),
            Err(error) => return Err(SourceLack::Kernel(error.to_string())),
        };
        if let Some(family) = self.wifi
            && let Ok(stations) = wifi::stations(&mut self.netlink, family, index)
        {
            return self.wifi_news(&stations);
        }
        let Some(family) = self.ethtool else {
            let problem = "it is no Wi-Fi device, and the kernel does not tell of ports (ethtool over netlink, Linux 5.6)";
            return Err(SourceLack::Kernel(problem.to_owned()));
        };
        let port = Port::ask(&mut self.netlink, family, index)
            .map_err(|error| SourceLack::Kernel(error.to_string()))?;
        Ok(LinkNews {
            is_up: port.is_connected.filter(|is_connected| !is_connected),
            ceiling_out: known(port.speed),
            ..LinkNews::default()
        })
    }

    fn wifi_news(&mut self, stations: &[Station]) -> Result<LinkNews, SourceLack> {
        let is_meant = |one: &&Station| self.station.is_none_or(|meant| one.address == Some(meant));
        let mut meant = stations.iter().filter(is_meant);
        let Some(station) = meant.next() else {
            return Ok(LinkNews {
                is_up: Some(false),
                ..LinkNews::default()
            });
        };
        if meant.next().is_some() {
            return Err(SourceLack::Stations(stations.len()));
        }
        Ok(LinkNews {
            ceiling_out: known(self.busy.take(station)),
            rate_back: known(station.rate_back),
            signal_dbm: station.signal_dbm.map(f64::from),
            ..LinkNews::default()
        })
    }
}

fn known(rate: Option<Bitrate>) -> Option<Bitrate> {
    rate.filter(|rate| TOLD_RATES.contains(&rate.as_bits_per_second()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(name: &str) -> (Heard, Option<SourceLack>) {
        let mut device = Device::open(name, None).expect("everybody may ask");
        (device.hear(Instant::START), device.lack().cloned())
    }

    #[test]
    fn the_loopback_device_is_connected_and_has_no_speed() {
        let (heard, lack) = look("lo");
        let nothing = LinkNews::default();
        assert_eq!(heard.word, Some(LinkWord::News(nothing, Some(HOLDS))));
        assert_eq!((heard.messages, heard.fault, lack), (1, None, None));
    }

    #[test]
    fn a_device_that_is_not_there_is_a_link_that_is_down() {
        let (heard, lack) = look("nope0");
        let Some(LinkWord::News(news, _)) = heard.word else {
            panic!("{heard:?}");
        };
        assert_eq!(news.is_up, Some(false));
        assert_eq!((heard.messages, heard.fault), (0, None), "no message came");
        let lack = lack.expect("it is not there");
        assert!(lack.to_string().contains("no device `nope0`"), "{lack}");
    }

    #[test]
    fn one_of_several_stations_must_be_named() {
        let mut device = Device::open("wlan0", None).expect("everybody may ask");
        let mac = |last: u8| MacAddress::of(&[2, 0, 0, 0, 0, last]);
        let station = |last: u8| Station {
            address: mac(last),
            signal_dbm: Some(-50),
            ..Station::default()
        };
        let both = [station(1), station(2)];
        let unknown = device.wifi_news(&both).expect_err("which one?");
        assert!(unknown.to_string().contains("name the peer's"));
        device.station = mac(2);
        let news = device.wifi_news(&both).expect("named");
        assert_eq!((news.is_up, news.signal_dbm), (None, Some(-50.0)));
        device.station = mac(3);
        let news = device.wifi_news(&both).expect("it is away");
        assert_eq!(news.is_up, Some(false));
    }
}
