//! The only drain loop in the project.

use super::{Deadline, Machine, Transmit};
use crate::units::Instant;

/// The parts that a driver provides: a buffer to write datagrams into, a way out, and the
/// application.
pub trait MachineDriver<M: Machine> {
    /// The buffer that the next datagram is appended to.
    fn buffer(&mut self) -> &mut Vec<u8>;

    /// Takes the datagram that was appended to [`MachineDriver::buffer`] last.
    fn send(&mut self, now: Instant, transmit: Transmit);

    /// Gives the application an event. It may call the machine (`read`, `write`, ...).
    fn deliver(&mut self, now: Instant, machine: &mut M, event: M::Event);

    /// Whether the way out takes another datagram at once. While it does not, the drain leaves
    /// datagrams in the machine, and the driver drains again when it can send.
    fn can_send(&self) -> bool {
        true
    }
}

/// The most rounds of one drain. Every event may cause another write, and every write another
/// event; a machine that has not settled after this many rounds is in a loop.
const DRAIN_ROUNDS_MAX: usize = 100_000;

/// Drains `machine` completely and returns the deadline to wait for.
///
/// # Panics
/// Panics when the machine does not settle, which is a bug in it.
pub fn drain<M: Machine>(
    machine: &mut M,
    now: Instant,
    driver: &mut impl MachineDriver<M>,
) -> Option<Deadline> {
    drain_between_inputs(machine, now, driver);
    machine.next_deadline()
}

/// The same as [`drain`], for drivers that have the next input at hand already and do not wait
/// before it.
///
/// # Panics
/// Panics when [`drain`] does.
pub fn drain_between_inputs<M: Machine>(
    machine: &mut M,
    now: Instant,
    driver: &mut impl MachineDriver<M>,
) {
    for _round in 0..DRAIN_ROUNDS_MAX {
        let mut busy = false;
        while let Some(event) = machine.poll_event() {
            driver.deliver(now, machine, event);
            busy = true;
        }
        while driver.can_send() {
            let Some(transmit) = machine.poll_transmit(now, driver.buffer()) else {
                break;
            };
            driver.send(now, transmit);
            busy = true;
        }
        if !busy {
            return;
        }
    }
    panic!(
        "drain did not settle at {now}: {:?}",
        machine.next_deadline()
    );
}
