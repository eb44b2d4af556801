//! Received datagrams, many to a system call.

use fulmar_proto::machine::Ecn;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta};
use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr};

/// The longest GRO train: as many octets as a UDP length field can count.
const TRAIN_OCTETS_MAX: usize = 65_536;

/// Room for one system call's worth of datagrams; any number of sockets of one thread may share it.
#[derive(Debug)]
pub struct Batch {
    octets: Vec<u8>,
    trains: [RecvMeta; BATCH_SIZE],
    filled: usize,
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
            octets: vec![0; BATCH_SIZE * TRAIN_OCTETS_MAX],
            trains: [RecvMeta::default(); BATCH_SIZE],
            filled: 0,
        }
    }
}

impl Batch {
    /// Lets `receive` fill the batch; it returns how many trains it wrote.
    pub(crate) fn fill<E>(
        &mut self,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> Result<usize, E>,
    ) -> Result<(), E> {
        self.filled = 0;
        let mut rooms = self.octets.chunks_exact_mut(TRAIN_OCTETS_MAX);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            core::array::from_fn(|_| IoSliceMut::new(rooms.next().unwrap_or_default()));
        self.filled = receive(&mut slices, &mut self.trains)?;
        Ok(())
    }

    /// The datagrams received, in order of arrival. The kernel's GRO makes trains of several datagrams.
    pub fn trains(&self) -> impl Iterator<Item = Train<'_>> {
        let rooms = self.octets.chunks_exact(TRAIN_OCTETS_MAX);
        let trains = self.trains.iter().zip(rooms).take(self.filled);
        trains.map(|(train, room)| Train {
            from: train.addr,
            to: train.dst_ip,
            ecn: ecn_of(train.ecn),
            octets: room.get(..train.len).unwrap_or_default(),
            stride: train.stride.max(1),
        })
    }
}

fn ecn_of(codepoint: Option<EcnCodepoint>) -> Ecn {
    match codepoint {
        None => Ecn::NotCapable,
        Some(EcnCodepoint::Ect0 | EcnCodepoint::Ect1) => Ecn::Capable,
        Some(EcnCodepoint::Ce) => Ecn::Congested,
    }
}
