//! The way from octets to records.

use super::encode::{flags, goal_flags, host};
use super::{
    Accepted, Delivered, HEADER_BYTES, Hearer, MessageRecord, Open, QUESTIONS_MAX, Question,
    SpliceRecord, kind,
};
use crate::fec::block::BlockPlan;
use crate::machine::Priority;
use crate::repair::{Deliver, DeliveryGoal, DeliveryOrder};
use crate::splice::address::{Beyond, Destination, FlowId, FlowKind, Host, HostName};
use crate::splice::class::ClassId;
use crate::splice::codes::{RefuseCode, ResetCode};
use crate::transport::aerotp::ThinRepair;
use crate::tunnel::FLOW_BUCKETS;
use crate::units::Duration;
use crate::wire::aerotp::FecStrength;
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU8;

/// The reason why octets are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedRecord {
    /// The type is not known and may not be ignored.
    #[error("record type {0} is not known")]
    UnknownType(u8),
    /// The body's length does not fit its type.
    #[error("a record of type {kind} has a body of {len} octets")]
    Length {
        /// The record's type.
        kind: u8,
        /// The body's length.
        len: usize,
    },
    /// A field has a value that it may not have.
    #[error("a record of type {kind} has a wrong {field}")]
    Value {
        /// The record's type.
        kind: u8,
        /// The field's name in `docs/protocol/splice.md`.
        field: &'static str,
    },
    /// The TPDU ends inside a record, in a mode where it must not.
    #[error("a record is cut off")]
    CutOff,
}

/// The fields of one body, front to back.
struct Fields<'a> {
    kind: u8,
    len: usize,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    const fn new(kind: u8, body: &'a [u8]) -> Self {
        Self {
            kind,
            len: body.len(),
            rest: body,
        }
    }

    const fn too_short(&self) -> MalformedRecord {
        MalformedRecord::Length {
            kind: self.kind,
            len: self.len,
        }
    }

    const fn wrong(&self, field: &'static str) -> MalformedRecord {
        MalformedRecord::Value {
            kind: self.kind,
            field,
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MalformedRecord> {
        let Some((head, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.too_short());
        };
        self.rest = rest;
        Ok(*head)
    }

    fn octet(&mut self) -> Result<u8, MalformedRecord> {
        self.array::<1>().map(|[octet]| octet)
    }

    fn u16(&mut self) -> Result<u16, MalformedRecord> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, MalformedRecord> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, MalformedRecord> {
        self.array().map(u64::from_be_bytes)
    }

    fn octets(&mut self, len: usize) -> Result<&'a [u8], MalformedRecord> {
        let Some((head, rest)) = self.rest.split_at_checked(len) else {
            return Err(self.too_short());
        };
        self.rest = rest;
        Ok(head)
    }

    fn end(&self) -> Result<(), MalformedRecord> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.too_short())
        }
    }
}

impl<'a> SpliceRecord<'a> {
    /// The record of type `kind` with this body.
    ///
    /// # Errors
    /// [`MalformedRecord`] if the body is not such a record.
    pub fn decode(kind: u8, body: &'a [u8]) -> Result<Self, MalformedRecord> {
        let mut fields = Fields::new(kind, body);
        let record = match kind {
            kind::OPEN => return decode_open(fields).map(|open| Self::Open(Box::new(open))),
            kind::ACCEPTED => Self::Accepted(Accepted {
                received: fields.u64()?,
                limit: fields.u64()?,
                bound: decode_address(&mut fields)?,
            }),
            kind::REFUSED => Self::Refused(RefuseCode::from_number(fields.octet()?)),
            kind::DATA if body.is_empty() => return Err(fields.too_short()),
            kind::DATA => return Ok(Self::Data(body)),
            kind::END => Self::End {
                total: fields.u64()?,
            },
            kind::RESET => Self::Reset(ResetCode::from_number(fields.octet()?)),
            kind::DELIVERED => Self::Delivered(Delivered {
                offset: fields.u64()?,
                limit: fields.u64()?,
            }),
            kind::MESSAGE => return decode_message(fields).map(Self::Message),
            kind::FLOW => Self::Flow(FlowId(fields.array()?)),
            kind::FINISHED => Self::Finished,
            kind::STOP => Self::Stop,
            kind::ASK => return decode_ask(fields).map(Self::Ask),
            kind::GONE => return decode_gone(fields).map(Self::Gone),
            kind::GOAL => match decode_goal(&mut fields)? {
                Some(thin) => Self::Goal(thin),
                None => return Ok(Self::Ignored),
            },
            kind::UNKNOWN.. => return Ok(Self::Ignored),
            _ => return Err(MalformedRecord::UnknownType(kind)),
        };
        fields.end()?;
        Ok(record)
    }

    /// Takes the first record off `octets`, which hold whole records.
    ///
    /// # Errors
    /// [`MalformedRecord`] if `octets` do not begin with a record.
    pub fn take(octets: &mut &'a [u8]) -> Result<Self, MalformedRecord> {
        let all = *octets;
        let Some(([kind, high, low], rest)) = all.split_first_chunk::<HEADER_BYTES>() else {
            return Err(MalformedRecord::CutOff);
        };
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        let Some((body, rest)) = rest.split_at_checked(len) else {
            return Err(MalformedRecord::CutOff);
        };
        *octets = rest;
        Self::decode(*kind, body)
    }
}

fn decode_open(mut fields: Fields<'_>) -> Result<Open, MalformedRecord> {
    let flow = FlowId(fields.array()?);
    let attempt = fields.u64()?;
    let set = fields.octet()?;
    let again = match (set & flags::AGAIN != 0, set & flags::ANSWERED) {
        (false, 0) => None,
        (false, _) => return Err(fields.wrong("flags")),
        (true, 0) => Some(Hearer::Present),
        (true, flags::EARLIER) => Some(Hearer::Earlier),
        (true, flags::UNKNOWN) => Some(Hearer::Unknown),
        (true, _) => Some(Hearer::Answered),
    };
    let (priority, class, weight) = (fields.octet()?, fields.octet()?, fields.octet()?);
    let words = FecStrength::from_words(fields.u16()?);
    let fec_words = words.ok_or_else(|| fields.wrong("fec words"))?;
    let block = decode_block(&mut fields)?;
    let deadline = match fields.u32()? {
        0 => None,
        micros => Some(Duration::from_micros(u64::from(micros))),
    };
    let (window, presumed) = (fields.u32()?, fields.u32()?);
    let (received, limit, kept_from) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let destination = decode_destination(&mut fields)?;
    Ok(Open {
        flow,
        attempt,
        kind: if set & flags::DATAGRAMS == 0 {
            FlowKind::Stream
        } else {
            FlowKind::Datagrams
        },
        resume: set & flags::RESUME != 0,
        durable: set & flags::DURABLE != 0,
        again,
        refresh: set & flags::REFRESH != 0,
        farewell: set & flags::FAREWELL != 0,
        priority: Priority(priority),
        class: ClassId(class),
        weight,
        fec_words,
        block,
        deadline,
        window,
        presumed,
        received,
        limit,
        kept_from,
        destination,
    })
}

/// The repair that a goal asks for; `None` if a later version says more about it.
fn decode_goal(fields: &mut Fields<'_>) -> Result<Option<ThinRepair>, MalformedRecord> {
    let (set, overhead) = (fields.octet()?, fields.octet()?);
    let (missed_millionths, micros) = (fields.u32()?, fields.u32()?);
    if set & !goal_flags::ALL != 0 {
        return Ok(None);
    }
    if overhead > ThinRepair::OVERHEAD_PERCENT_MAX {
        return Err(fields.wrong("overhead"));
    }
    let plain = ThinRepair::at_most(overhead);
    if micros == 0 {
        return if set == 0 && missed_millionths == 0 {
            Ok(Some(plain))
        } else {
            Err(fields.wrong("deadline"))
        };
    }
    let either = |flag: u8| set & flag != 0;
    let goal = DeliveryGoal {
        deadline: Duration::from_micros(u64::from(micros)),
        missed_millionths,
        deliver: if either(goal_flags::BY_DEADLINE) {
            Deliver::ByDeadline
        } else {
            Deliver::All
        },
        order: if either(goal_flags::ANY_ORDER) {
            DeliveryOrder::Any
        } else {
            DeliveryOrder::Kept
        },
    };
    let thin = plain.with_goal(goal).map_err(|error| match error.field {
        "deadline" => fields.wrong("deadline"),
        _ => fields.wrong("residual"),
    });
    thin.map(Some)
}

fn decode_block(fields: &mut Fields<'_>) -> Result<Option<BlockPlan>, MalformedRecord> {
    let (k, repairs) = (fields.octet()?, fields.octet()?);
    let close_after = Duration::from_micros(u64::from(fields.u32()?));
    match NonZeroU8::new(k) {
        None if repairs == 0 && close_after.is_zero() => Ok(None),
        None => Err(fields.wrong("block")),
        Some(k) => BlockPlan::new(k, repairs, close_after)
            .map(Some)
            .ok_or_else(|| fields.wrong("block")),
    }
}

fn decode_ip(fields: &mut Fields<'_>, family: u8) -> Result<IpAddr, MalformedRecord> {
    match family {
        host::V4 => Ok(IpAddr::from(fields.array::<4>()?)),
        host::V6 => Ok(IpAddr::from(fields.array::<16>()?)),
        _ => Err(fields.wrong("host type")),
    }
}

fn decode_address(fields: &mut Fields<'_>) -> Result<SocketAddr, MalformedRecord> {
    let (family, port) = (fields.octet()?, fields.u16()?);
    Ok(SocketAddr::new(decode_ip(fields, family)?, port))
}

fn decode_destination(fields: &mut Fields<'_>) -> Result<Destination, MalformedRecord> {
    let family = fields.octet()?;
    if family != host::BEYOND {
        return decode_end(fields, family);
    }
    let passed = fields.octet()?;
    let left = match fields.u32()? {
        0 => None,
        micros => Some(Duration::from_micros(u64::from(micros))),
    };
    let mut gateways = Vec::new();
    for _ in 0..fields.octet()? {
        let len = fields.octet()?;
        let text = fields.octets(usize::from(len))?;
        gateways.push(decode_name(fields, text, "gateway")?);
    }
    let family = fields.octet()?;
    if family == host::TUNNEL {
        return Err(fields.wrong("host type"));
    }
    let Destination { host, port } = decode_end(fields, family)?;
    let beyond = Beyond::new(gateways, host).map_err(|_| fields.wrong("gateways"))?;
    let beyond = beyond.after(passed).with_left(left);
    Ok(Destination {
        host: Host::Beyond(Box::new(beyond)),
        port,
    })
}

fn decode_name(
    fields: &Fields<'_>,
    octets: &[u8],
    field: &'static str,
) -> Result<HostName, MalformedRecord> {
    let text = core::str::from_utf8(octets).ok();
    let name = text.and_then(|text| text.parse::<HostName>().ok());
    name.ok_or_else(|| fields.wrong(field))
}

/// The rest of a destination behind its host type: nothing follows.
fn decode_end(fields: &mut Fields<'_>, family: u8) -> Result<Destination, MalformedRecord> {
    let port = fields.u16()?;
    if !matches!(family, host::NAME | host::TUNNEL) {
        let host = Host::Address(decode_ip(fields, family)?);
        fields.end()?;
        return Ok(Destination { host, port });
    }
    let name = decode_name(fields, fields.rest, "host name")?;
    let host = match family {
        host::NAME => Host::Name(name),
        _ if port < FLOW_BUCKETS => Host::Tunnel(name),
        _ => return Err(fields.wrong("bucket")),
    };
    Ok(Destination { host, port })
}

fn decode_ask(mut fields: Fields<'_>) -> Result<Vec<Question>, MalformedRecord> {
    let mut questions = Vec::new();
    while !fields.rest.is_empty() {
        questions.push(Question {
            flow: FlowId(fields.array()?),
            attempt: fields.u64()?,
        });
    }
    if questions.is_empty() || questions.len() > QUESTIONS_MAX {
        return Err(fields.too_short());
    }
    Ok(questions)
}

fn decode_gone(mut fields: Fields<'_>) -> Result<Vec<FlowId>, MalformedRecord> {
    let mut flows = Vec::new();
    while !fields.rest.is_empty() {
        flows.push(FlowId(fields.array()?));
    }
    if flows.len() > QUESTIONS_MAX {
        return Err(fields.too_short());
    }
    Ok(flows)
}

fn decode_message(mut fields: Fields<'_>) -> Result<MessageRecord<'_>, MalformedRecord> {
    let (number, stamp) = (fields.u32()?, fields.u32()?);
    let (index, last) = (fields.octet()?, fields.octet()?);
    if index > last {
        return Err(fields.wrong("part index"));
    }
    Ok(MessageRecord {
        number,
        stamp,
        index,
        last,
        octets: fields.rest,
    })
}
