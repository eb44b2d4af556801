//! A whole transport: so many packets under way, each until it is answered, delivered as they come.

use core::time::Duration;
use fulmar_sim::own::{
    Instant, OwnTransport, Rng, TransmitKind, TransportEnd, TransportSetup, TransportTurn,
};
use std::collections::BTreeMap;

/// Packets under way at most.
const WINDOW: usize = 64;
/// The time after which a packet that was not answered is sent again.
const PATIENCE: Duration = Duration::from_millis(200);
/// Octets before the data: the position in the stream.
const HEADER: usize = 8;

/// One end. The receiving end keeps nothing: positions say where octets belong.
#[derive(Debug)]
pub struct WindowedEnd {
    sends: bool,
    most: usize,
    next: u64,
    under_way: BTreeMap<u64, (Instant, Vec<u8>)>,
}

impl WindowedEnd {
    /// An end of this flow.
    pub fn new(setup: &TransportSetup, _: &Rng) -> Self {
        Self {
            sends: setup.sends,
            most: usize::try_from(setup.packet_max.0).unwrap_or(usize::MAX) - HEADER,
            next: 0,
            under_way: BTreeMap::new(),
        }
    }
}

impl TransportEnd for WindowedEnd {
    fn room(&self) -> usize {
        (WINDOW - self.under_way.len()) * self.most
    }

    fn write(&mut self, now: Instant, octets: &[u8], turn: &mut TransportTurn) {
        for octets in octets.chunks(self.most) {
            let packet = [&self.next.to_be_bytes(), octets].concat();
            turn.send(TransmitKind::Source, packet.clone());
            self.under_way.insert(self.next, (now, packet));
            self.next += octets.len() as u64;
        }
    }

    fn finish(&mut self, _: Instant, _: &mut TransportTurn) {}

    fn receive(&mut self, _: Instant, packet: &[u8], turn: &mut TransportTurn) {
        let Some((position, octets)) = packet.split_first_chunk() else {
            return;
        };
        let at = u64::from_be_bytes(*position);
        if self.sends {
            self.under_way.remove(&at);
        } else {
            turn.deliver_at(at, octets.to_vec());
            turn.send(TransmitKind::Control, position.to_vec());
        }
    }

    fn wake(&mut self, now: Instant, turn: &mut TransportTurn) {
        for (sent, packet) in self.under_way.values_mut() {
            if now.saturating_since(*sent) >= PATIENCE {
                *sent = now;
                turn.send(TransmitKind::Retransmission, packet.clone());
            }
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        let sent = self.under_way.values().map(|(sent, _)| *sent).min();
        sent.map(|sent| sent + PATIENCE)
    }
}

/// The transport by the name `windowed`.
pub fn windowed() -> OwnTransport {
    OwnTransport::new("windowed", WindowedEnd::new)
}
