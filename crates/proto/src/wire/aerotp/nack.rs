//! Negative acknowledgements, read from a TPDU.

use core::iter;

use super::header::{EcnField, Flags};
use super::kind::TpduKind;
use super::reject::Reject;
use super::seq_list::SeqList;
use super::short::Order;
use super::tpdu::{BodyCheck, Tpdu};
use crate::wire::TpduSeq;

/// The reason why a receiver asks for TPDUs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NackCause {
    /// The TPDUs arrived damaged beyond repair: explicit loss by error, no sign of congestion (ELN).
    Damaged,
    /// The TPDUs are missing while later ones arrived (SNACK).
    Missing,
}

/// A request for TPDUs.
#[derive(Clone, Debug)]
pub struct Nack<'a> {
    /// The reason.
    pub cause: NackCause,
    /// The timestamp of the TPDU most recently received, microseconds modulo 2^32. Without a hold
    /// time it bounds a round trip from above only.
    pub echo: u32,
    /// Congestion the receiver saw.
    pub ecn: EcnField,
    first: TpduSeq,
    further: SeqList<'a>,
}

impl<'a> Nack<'a> {
    /// Reads the NACK in `tpdu`.
    ///
    /// # Errors
    /// [`Reject::BodyCheck`] if the body is damaged; [`Reject::Flags`] if it is another kind.
    pub fn of(tpdu: &Tpdu<'a>) -> Result<Self, Reject> {
        if tpdu.kind() != TpduKind::Nack {
            return Err(Reject::Flags);
        }
        if tpdu.check == BodyCheck::Damaged {
            return Err(Reject::BodyCheck);
        }
        let cause = if tpdu.header.flags.has(Flags::URG) {
            NackCause::Damaged
        } else {
            NackCause::Missing
        };
        let mut further = tpdu.numbers(Order::OldestFirst, tpdu.body);
        if tpdu.is_short() {
            // The first run begins with the header's number.
            further.next();
        }
        Ok(Self {
            cause,
            echo: tpdu.header.timestamp,
            ecn: tpdu.header.ecn,
            first: tpdu.header.seq,
            further,
        })
    }

    /// The TPDUs asked for: 1 to 366; in the short form to 4,096.
    pub fn wanted(&self) -> impl Iterator<Item = TpduSeq> + use<'a> {
        iter::once(self.first).chain(self.further.clone())
    }
}
