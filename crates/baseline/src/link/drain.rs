//! The only drain loop of link machines.

use super::{FrameTransmit, LinkMachine, LinkPacket};
use fulmar_proto::machine::{Deadline, Priority};
use fulmar_proto::units::Instant;

/// The parts that a driver provides to a link machine: the queue above, the node above, and the
/// medium.
pub trait LinkDriver {
    /// Takes the next packet of at least this precedence off the queue above; `None` if there is none, or if it has to wait for
    /// others there.
    fn next_packet(&mut self, now: Instant, least: Priority) -> Option<LinkPacket<'_>>;

    /// The buffer that the next packet for the node above is appended to.
    fn packet_buffer(&mut self) -> &mut Vec<u8>;

    /// Hands up the packet of `len` octets that was appended to [`LinkDriver::packet_buffer`] last.
    fn deliver(&mut self, now: Instant, len: usize);

    /// Whether the medium takes a frame now. While it does not, frames stay in the machine and
    /// packets in the queue, and the driver drains again when it does.
    fn can_send(&self) -> bool;

    /// The buffer that the next frame is appended to.
    fn frame_buffer(&mut self) -> &mut Vec<u8>;

    /// Sends the frame that was appended to [`LinkDriver::frame_buffer`] last.
    fn send(&mut self, now: Instant, frame: FrameTransmit);
}

/// The most rounds of one drain; a machine that has not settled after this many is in a loop.
const DRAIN_ROUNDS_MAX: usize = 100_000;

/// Drains `machine` completely and returns the deadline to wait for.
///
/// A packet is taken from the queue above only when the medium takes a frame and the machine has
/// none of its own to send: repair goes first, and no new packet waits below the queue. A packet that overtakes all of that
/// ([`LinkMachine::overtaken_by`]) is taken at once.
///
/// # Panics
/// Panics when the machine does not settle, which is a bug in it.
pub fn drain<M: LinkMachine>(
    machine: &mut M,
    now: Instant,
    driver: &mut impl LinkDriver,
) -> Option<Deadline> {
    for _round in 0..DRAIN_ROUNDS_MAX {
        let mut busy = false;
        while let Some(len) = machine.poll_packet(driver.packet_buffer()) {
            driver.deliver(now, len);
            busy = true;
        }
        while driver.can_send() {
            if let Some(least) = machine.overtaken_by()
                && let Some(packet) = driver.next_packet(now, least)
            {
                machine.offer(now, packet);
            } else if let Some(frame) = machine.poll_frame(now, driver.frame_buffer()) {
                driver.send(now, frame);
            } else if machine.ready()
                && let Some(packet) = driver.next_packet(now, Priority::default())
            {
                machine.offer(now, packet);
            } else {
                break;
            }
            busy = true;
        }
        if !busy {
            return machine.next_deadline();
        }
    }
    panic!(
        "drain of a link did not settle at {now}: {:?}",
        machine.next_deadline()
    );
}
