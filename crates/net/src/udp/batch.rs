//! Received datagrams, many to a system call.

use fulmar_proto::machine::Ecn;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta};
use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr};

/// One GRO train is at most what one UDP length field describes.
const TRAIN_OCTETS_MAX: usize = 65_536;

/// Room for one system call's worth of datagrams; any number of sockets of one thread may share it.
#[derive(Debug)]
pub struct Batch {
    octets: Vec<u8>,
    trains: [RecvMeta; BATCH_SIZE],
    filled: usize,
}

/// One datagram of a [`Batch`].
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// Who sent it.
    pub from: SocketAddr,
    /// The local address it was sent to, where the system says.
    pub to: Option<IpAddr>,
    /// Its payload.
    pub octets: &'a [u8],
    /// The network header's ECN field.
    pub ecn: Ecn,
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
    pub(super) fn fill<E>(
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

    /// The datagrams in order of arrival. GRO's trains are taken apart.
    pub fn datagrams(&self) -> impl Iterator<Item = Received<'_>> {
        let rooms = self.octets.chunks_exact(TRAIN_OCTETS_MAX);
        self.trains
            .iter()
            .zip(rooms)
            .take(self.filled)
            .flat_map(|(train, room)| {
                let octets = room.get(..train.len).unwrap_or_default();
                let received = |octets| Received {
                    from: train.addr,
                    to: train.dst_ip,
                    octets,
                    ecn: ecn_of(train.ecn),
                };
                // `chunks` has nothing to say about an empty datagram.
                let empty = octets.is_empty().then(|| received(octets));
                let cut = octets.chunks(train.stride.max(1)).map(received);
                empty.into_iter().chain(cut)
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
