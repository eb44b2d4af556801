//! Received datagrams, many at a time.

use super::receiving::Received;
use fulmar_proto::machine::Ecn;
use fulmar_proto::units::Duration;
use std::net::{IpAddr, SocketAddr};

/// The most trains that are read before any is handled.
const TRAINS_MAX: usize = 32;

/// The longest GRO train: as many octets as a UDP length field can count.
const TRAIN_OCTETS_MAX: usize = 65_536;

/// Room for datagrams; any number of sockets of one thread may share it.
#[derive(Debug)]
pub struct Batch {
    octets: Vec<u8>,
    trains: Vec<Filled>,
    /// Whether the socket had nothing more.
    is_all: bool,
}

/// The content of one of the rooms.
#[derive(Clone, Copy, Debug)]
struct Filled {
    received: Received,
    waited: Duration,
}

/// Datagrams of a [`Batch`] that came one behind the other from one sender.
#[derive(Clone, Copy, Debug)]
pub struct Train<'a> {
    /// The sender's address.
    pub from: SocketAddr,
    /// The local address that they were sent to, where the system tells it.
    pub to: Option<IpAddr>,
    /// Their network headers' ECN field.
    pub ecn: Ecn,
    /// The time from the arrival of the first to its being read, where the system tells it.
    pub waited: Duration,
    octets: &'a [u8],
    stride: usize,
}

impl<'a> Train<'a> {
    /// The payloads of its datagrams.
    pub fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        // `chunks` has nothing to say about an empty datagram.
        let empty = self.octets.is_empty().then_some(self.octets);
        empty.into_iter().chain(self.octets.chunks(self.stride))
    }

    /// The number of datagrams, and their octets.
    pub(crate) const fn counts(&self) -> (u64, u64) {
        let octets = self.octets.len() as u64;
        let datagrams = octets.div_ceil(self.stride as u64);
        (if datagrams == 0 { 1 } else { datagrams }, octets)
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            octets: vec![0; TRAINS_MAX * TRAIN_OCTETS_MAX],
            trains: Vec::with_capacity(TRAINS_MAX),
            is_all: false,
        }
    }
}

impl Batch {
    /// Forgets what is in it.
    pub(crate) fn clear(&mut self) {
        self.trains.clear();
        self.is_all = false;
    }

    /// Notes that the socket had nothing more.
    pub(crate) const fn end(&mut self) {
        self.is_all = true;
    }

    /// Whether the socket had nothing more when it was read.
    pub(super) const fn is_all(&self) -> bool {
        self.is_all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.trains.is_empty()
    }

    /// The room for the next train; `None` if it is full.
    pub(crate) fn room(&mut self) -> Option<&mut [u8]> {
        let mut rooms = self.octets.chunks_exact_mut(TRAIN_OCTETS_MAX);
        rooms.nth(self.trains.len())
    }

    /// Keeps what was received into [`Batch::room`].
    pub(crate) fn push(&mut self, received: Received) {
        let waited = Duration::ZERO;
        self.trains.push(Filled { received, waited });
    }

    /// Notes that all of it was read at `time_of_day`.
    pub(super) fn read_at(&mut self, time_of_day: Duration) {
        for train in &mut self.trains {
            let stamp = train.received.stamp.unwrap_or(time_of_day);
            train.waited = time_of_day.saturating_sub(stamp);
        }
    }

    /// The datagrams received, in order of arrival. The kernel's GRO makes trains of several datagrams.
    pub fn trains(&self) -> impl Iterator<Item = Train<'_>> {
        let rooms = self.octets.chunks_exact(TRAIN_OCTETS_MAX);
        let trains = self.trains.iter().zip(rooms);
        trains.map(|(Filled { received, waited }, room)| Train {
            from: received.from,
            to: received.to,
            ecn: received.ecn,
            waited: *waited,
            octets: room.get(..received.len).unwrap_or_default(),
            stride: received.stride.max(1),
        })
    }
}
