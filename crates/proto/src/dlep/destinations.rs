//! The destinations behind a modem, and what it tells of the link to each.

use super::wire::{DataItem, MacAddress, item};
use crate::told::{LinkNews, TOLD_RATES};
use crate::units::{Bitrate, Duration};
use std::collections::BTreeMap;

/// The most destinations that are kept; further ones are refused.
pub const DESTINATIONS_MAX: usize = 64;

/// The link to a destination, as the modem tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DlepLink {
    /// The most that it receives and transmits, in bits a second.
    pub rate_most: [Option<u64>; 2],
    /// The rates at which it receives and transmits now.
    pub rate_now: [Option<u64>; 2],
    /// The delay over it.
    pub latency: Option<Duration>,
    /// The resources left, in per cent.
    pub resources_percent: Option<u8>,
    /// The qualities as it receives and transmits, 0 to 100; 0 is a link that is no use.
    pub quality: [Option<u8>; 2],
}

impl DlepLink {
    /// Takes an item. Of items that are no metrics there is nothing to take.
    pub(super) fn take(&mut self, item: DataItem) {
        let DataItem::Metric(kind, value) = item else {
            return;
        };
        let percent = u8::try_from(value).ok();
        match kind {
            item::MDRR => self.rate_most[0] = Some(value),
            item::MDRT => self.rate_most[1] = Some(value),
            item::CDRR => self.rate_now[0] = Some(value),
            item::CDRT => self.rate_now[1] = Some(value),
            item::LATENCY => self.latency = Some(Duration::from_micros(value)),
            item::RESOURCES => self.resources_percent = percent,
            item::RLQR => self.quality[0] = percent,
            item::RLQT => self.quality[1] = percent,
            _ => {}
        }
    }

    fn take_all(&mut self, items: &[DataItem]) {
        for item in items {
            self.take(*item);
        }
    }

    /// The same as news of a link that is up. A rate of 0 is one that the modem does not know (RFC 8175, section 13.14), and one
    /// beyond [`TOLD_RATES`] is none.
    pub fn news(&self) -> LinkNews {
        let rate = |place: usize| {
            let known = |rate: Option<u64>| rate.filter(|bits| TOLD_RATES.contains(bits));
            let now = known(self.rate_now.get(place).copied().flatten());
            let most = known(self.rate_most.get(place).copied().flatten());
            now.or(most).map(Bitrate::from_bits_per_second)
        };
        let is_of_use = self.quality[1] != Some(0);
        LinkNews {
            is_up: Some(is_of_use),
            rate_out: rate(1),
            rate_back: rate(0),
            ..LinkNews::default()
        }
    }
}

/// The destinations that are up, by address.
#[derive(Clone, Debug, Default)]
pub(super) struct Destinations {
    /// The usual values, for all that say nothing else.
    pub(super) common: DlepLink,
    known: BTreeMap<MacAddress, DlepLink>,
}

impl Destinations {
    /// Takes a destination that is up, or more of one. Returns whether there is room for it.
    pub(super) fn up(&mut self, mac: MacAddress, items: &[DataItem]) -> bool {
        if !self.known.contains_key(&mac) && self.known.len() >= DESTINATIONS_MAX {
            return false;
        }
        let link = self.known.entry(mac).or_insert(self.common);
        link.take_all(items);
        true
    }

    /// Takes other values of a destination. Returns whether it is known.
    pub(super) fn update(&mut self, mac: MacAddress, items: &[DataItem]) -> bool {
        let Some(link) = self.known.get_mut(&mac) else {
            return false;
        };
        link.take_all(items);
        true
    }

    /// Takes other values of all.
    pub(super) fn update_all(&mut self, items: &[DataItem]) {
        for item in items {
            self.common.take(*item);
            for link in self.known.values_mut() {
                link.take(*item);
            }
        }
    }

    pub(super) fn down(&mut self, mac: MacAddress) -> bool {
        self.known.remove(&mac).is_some()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The link to `wanted`, or to the only destination if none is wanted.
    pub(super) fn link(&self, wanted: Option<MacAddress>) -> Option<&DlepLink> {
        match wanted {
            Some(wanted) => self.known.get(&wanted),
            None => self.known.values().next().filter(|_| self.known.len() == 1),
        }
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = MacAddress> {
        self.known.keys().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}
