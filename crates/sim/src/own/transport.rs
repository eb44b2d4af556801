//! A whole transport of one's own: one object at each end of a flow.
//!
//! The simulator hands it the application's octets, the packets that arrive and the times that it asked for, and takes what it sends
//! and delivers. It puts a header of four octets before each packet, the flow's ports, and no check: octets may arrive with
//! inverted bits where a hop lets them.

use core::fmt;
pub use fulmar_proto::machine::TransmitKind;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Instant};
use fulmar_proto::wire::network::NetworkProtocol;
use std::sync::Arc;

/// The protocol number of transports of one's own: no protocol has it, and the two that RFC 3692 leaves to experiments are AeroTP's
/// and LT-TCP's.
pub(crate) const OWN_PROTOCOL: NetworkProtocol = NetworkProtocol(252);
/// Octets of the header before each packet: the ports, as every transport's header begins.
pub(crate) const OWN_HEADER_BYTES: usize = 4;

/// One end of a flow.
pub trait TransportEnd: fmt::Debug + Send {
    /// Octets that it takes from the application now. It is asked after each of its turns.
    fn room(&self) -> usize;

    /// The application sends these octets, at most [`TransportEnd::room`], and all are taken. Only the sending end has an application
    /// that writes.
    fn write(&mut self, now: Instant, octets: &[u8], turn: &mut TransportTurn);

    /// The application has written everything.
    fn finish(&mut self, now: Instant, turn: &mut TransportTurn);

    /// A packet of the other end arrived.
    fn receive(&mut self, now: Instant, packet: &[u8], turn: &mut TransportTurn);

    /// The time of [`TransportEnd::next_wake`] has come.
    fn wake(&mut self, now: Instant, turn: &mut TransportTurn);

    /// The time at which it is woken, if it wants to be. A time that is over counts as a microsecond from now, so that a run ends.
    fn next_wake(&self) -> Option<Instant>;
}

/// A transport's knowledge of its flow when an end is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportSetup {
    /// Whether this is the end whose application writes.
    pub sends: bool,
    /// The lowest rate on the way, or the scenario's `send_rate`. Nobody but the transport keeps to it.
    pub rate: Bitrate,
    /// Octets of the longest packet.
    pub packet_max: ByteCount,
}

/// The things that an end does in one turn.
#[derive(Debug, Default)]
pub struct TransportTurn {
    pub(crate) packets: Vec<(TransmitKind, Vec<u8>)>,
    pub(crate) delivered: Vec<(Option<u64>, Vec<u8>)>,
}

impl TransportTurn {
    /// Sends a packet to the other end. Its kind counts in the measures alone.
    pub fn send(&mut self, kind: TransmitKind, packet: Vec<u8>) {
        self.packets.push((kind, packet));
    }

    /// Hands the application the octets that follow those before.
    pub fn deliver(&mut self, octets: Vec<u8>) {
        self.delivered.push((None, octets));
    }

    /// Hands the application octets at a position in the stream, before or behind others.
    pub fn deliver_at(&mut self, position: u64, octets: Vec<u8>) {
        self.delivered.push((Some(position), octets));
    }
}

type MakeEnd = dyn Fn(&TransportSetup, &Rng) -> Box<dyn TransportEnd> + Send + Sync;

/// A transport written elsewhere, by its name: it makes a [`TransportEnd`] for each end of each flow and run.
#[derive(Clone)]
pub struct OwnTransport {
    name: Arc<str>,
    make: Arc<MakeEnd>,
}

impl OwnTransport {
    /// A transport of this name whose ends `make` makes, from the generator of each run.
    pub fn new<E: TransportEnd + 'static>(
        name: &str,
        make: impl Fn(&TransportSetup, &Rng) -> E + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            make: Arc::new(move |setup, rng| Box::new(make(setup, rng))),
        }
    }

    /// The name under which scenarios know it.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn end(&self, setup: &TransportSetup, rng: &Rng) -> Box<dyn TransportEnd> {
        (self.make)(setup, rng)
    }
}

impl fmt::Debug for OwnTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnTransport").field(&self.name).finish()
    }
}

impl PartialEq for OwnTransport {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.make, &other.make)
    }
}
