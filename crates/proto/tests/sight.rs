//! The TPDUs that a test's pipe sees pass, in the form that they have there.

use super::FORM;
use fulmar_proto::machine::{Carried, Datagram, Machine, TpduForm};
use fulmar_proto::units::Instant;
use fulmar_proto::wire::aerotp::short::{Content, Ends, Known, Named, read};
use fulmar_proto::wire::aerotp::{Reject, Tpdu, parse};
use fulmar_proto::wire::{Mode, Port, TpduSeq};

/// The number that the pipe expects: tests begin there, or at zero.
const EXPECTED: TpduSeq = TpduSeq(u32::MAX - 20);

/// A pipe takes every name for that of a connection, of which it does not know the listening port.
struct Pipe;

impl Known for Pipe {
    fn ends(&self, named: Named) -> Option<Ends> {
        let listener = Port(named.name.listener_low());
        let opener = named.name.opener();
        let (local, remote) = if named.sender_opened {
            (listener, opener)
        } else {
            (opener, listener)
        };
        Some(Ends {
            local,
            remote,
            mode: Mode::Reliable,
            next_expected: EXPECTED,
            first_unsettled: EXPECTED,
        })
    }

    fn next_expected(&self, _: Port, _: Port) -> TpduSeq {
        EXPECTED
    }
}

/// The TPDU in a datagram of ours.
pub(crate) fn tpdu(octets: &[u8]) -> Result<Tpdu<'_>, Reject> {
    match FORM {
        TpduForm::Long => parse(octets),
        TpduForm::Short => {
            let frame = Content::of(octets).next().expect("there is always one");
            read(&frame.expect("our own"), &Pipe)
        }
    }
}

/// Hands over a datagram that has passed the pipe.
pub(crate) fn hand_over<M: Machine + Carried>(
    machine: &mut M,
    now: Instant,
    datagram: Datagram<'_>,
) {
    match FORM {
        TpduForm::Long => machine.handle_datagram(now, datagram),
        TpduForm::Short => machine.handle_frames(now, datagram),
    }
}

/// Whether what arrives is handed over at all: a seal lets nothing through that was not sent.
pub(crate) fn passes_seal(sent: &[u8], arrives: &[u8]) -> bool {
    FORM == TpduForm::Long || sent == arrives
}
