//! Link machines driven by hand, for tests: frames that leave, frames that arrive, packets that are
//! released.

use super::{FlowHash, FrameTransmit, LinkMachine, LinkPacket, StrictLink};
use fulmar_proto::machine::{Priority, TransmitKind};
use fulmar_proto::units::Instant;

/// A packet of a thousand octets that show its number.
pub(super) fn packet(number: u8) -> Vec<u8> {
    vec![number; 1_000]
}

/// Offers a packet of ordinary precedence.
pub(super) fn offer<M: LinkMachine>(machine: &mut M, now: Instant, octets: &[u8]) {
    let packet = LinkPacket {
        octets,
        flow: FlowHash(0),
        priority: Priority(0),
        kind: TransmitKind::Source,
        deadline: None,
    };
    machine.offer(now, packet);
}

/// Every frame that leaves now.
pub(super) fn frames<M: LinkMachine>(
    machine: &mut StrictLink<M>,
    now: Instant,
) -> Vec<(FrameTransmit, Vec<u8>)> {
    core::iter::from_fn(|| {
        let mut octets = Vec::new();
        let frame = machine.poll_frame(now, &mut octets)?;
        Some((frame, octets))
    })
    .collect()
}

/// Every packet that is released.
pub(super) fn packets<M: LinkMachine>(machine: &mut StrictLink<M>) -> Vec<Vec<u8>> {
    core::iter::from_fn(|| {
        let mut octets = Vec::new();
        machine.poll_packet(&mut octets).map(|_| octets)
    })
    .collect()
}

/// Every packet that is released when a frame arrives.
pub(super) fn arrive<M: LinkMachine>(
    machine: &mut StrictLink<M>,
    now: Instant,
    frame: &[u8],
) -> Vec<Vec<u8>> {
    machine.handle_frame(now, frame);
    packets(machine)
}
