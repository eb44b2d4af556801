//! Received datagrams, many at a time.

use fulmar_proto::machine::Ecn;
use fulmar_proto::units::Duration;
use std::net::{IpAddr, SocketAddr};

/// The most trains that are read before any is handled.
pub(super) const TRAINS_MAX: usize = 32;

/// The longest GRO train: as many octets as a UDP length field can count.
const TRAIN_OCTETS_MAX: usize = 65_536;

/// The distance between rooms: a datagram more than the longest train, or the beginnings of all rooms, which is what is
/// used, would share few lines of the processor's caches.
const ROOM_OCTETS: usize = TRAIN_OCTETS_MAX + 1_600;

/// One datagram, or several of one size that the kernel joined (GRO).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) from: SocketAddr,
    pub(crate) to: Option<IpAddr>,
    pub(crate) ecn: Ecn,
    /// Octets of all, and of each but the last.
    pub(crate) len: usize,
    pub(crate) stride: usize,
    /// The time of day at which the first came.
    pub(crate) stamp: Option<Duration>,
}

/// Room for datagrams; any number of sockets of one thread may share it.
#[derive(Debug)]
pub struct Batch {
    octets: Vec<u8>,
    trains: Vec<Received>,
    /// The time of day at which they were read.
    read_at: Duration,
    /// Whether the socket had nothing more.
    is_all: bool,
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
            octets: vec![0; TRAINS_MAX * ROOM_OCTETS],
            trains: Vec::with_capacity(TRAINS_MAX),
            read_at: Duration::ZERO,
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

    /// Whether another train fits.
    pub(super) const fn has_room(&self) -> bool {
        self.trains.len() < TRAINS_MAX
    }

    /// The room for the next train; `None` if it is full.
    pub(crate) fn room(&mut self) -> Option<&mut [u8]> {
        let mut rooms = self.octets.chunks_exact_mut(ROOM_OCTETS);
        rooms.nth(self.trains.len())
    }

    /// The rooms for the next trains, and where to note, in their order, what was received into them.
    pub(super) fn vacancy(
        &mut self,
    ) -> (impl ExactSizeIterator<Item = &mut [u8]>, &mut Vec<Received>) {
        let rooms = self.octets.chunks_exact_mut(ROOM_OCTETS);
        (rooms.skip(self.trains.len()), &mut self.trains)
    }

    /// Keeps what was received into [`Batch::room`].
    pub(crate) fn push(&mut self, received: Received) {
        self.trains.push(received);
    }

    /// Notes that all of it was read at `time_of_day`.
    pub(super) const fn read_at(&mut self, time_of_day: Duration) {
        self.read_at = time_of_day;
    }

    /// The datagrams received, in order of arrival. The kernel's GRO makes trains of several datagrams.
    pub fn trains(&self) -> impl Iterator<Item = Train<'_>> {
        let rooms = self.octets.chunks_exact(ROOM_OCTETS);
        let trains = self.trains.iter().zip(rooms);
        trains.map(|(received, room)| Train {
            from: received.from,
            to: received.to,
            ecn: received.ecn,
            waited: received
                .stamp
                .map_or(Duration::ZERO, |stamp| self.read_at.saturating_sub(stamp)),
            octets: room.get(..received.len).unwrap_or_default(),
            stride: received.stride.max(1),
        })
    }
}
