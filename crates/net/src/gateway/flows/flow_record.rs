//! The record of a flow on the disk, from which the next gateway goes on with it.

use core::net::{IpAddr, SocketAddr};
use fulmar_proto::fec::block::BlockPlan;
use fulmar_proto::machine::Priority;
use fulmar_proto::splice::{Beyond, ClassId, Destination, FlowClass, FlowId, Host, HostName, Role};
use fulmar_proto::units::{ByteCount, Duration};
use fulmar_proto::wire::aerotp::FecStrength;
use serde::{Deserialize, Serialize};

/// A flow, without its octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gateway) struct FlowRecord {
    /// Our side of it.
    pub(in crate::gateway) role: Role,
    /// The peer's name: its place in the configuration may change.
    pub(in crate::gateway) peer: String,
    /// The destination that the acceptor connects to.
    pub(in crate::gateway) destination: Destination,
    /// Its class.
    pub(in crate::gateway) class: FlowClass,
    /// The acceptor's address towards the destination.
    pub(in crate::gateway) bound: Option<SocketAddr>,
    /// Octets from the far side that our host has acknowledged, as the far side was told.
    pub(in crate::gateway) received: u64,
    /// Octets that we say to the client before the flow's.
    pub(in crate::gateway) preface: Vec<u8>,
    /// Whether its client waits for a proxy's reply.
    pub(in crate::gateway) held: bool,
    /// The flow that carries it on, or that it carries on.
    pub(in crate::gateway) partner: Option<Partner>,
}

/// The other flow of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Partner {
    /// The flow of this name.
    Flow(FlowId),
    /// It is over, complete in both directions.
    Over,
}

/// The record as the store keeps it, in postcard: the store has room for 460 octets, and a
/// destination's name alone may have 253.
#[derive(Serialize, Deserialize)]
struct Compact {
    opener: bool,
    peer: String,
    host: String,
    port: u16,
    mode: String,
    priority: u8,
    class: u8,
    weight: u8,
    fec: u16,
    block: Option<(core::num::NonZeroU8, u8, u64)>,
    window: u64,
    /// Whether the opener keeps nothing on its disk.
    volatile: bool,
    bound: Option<SocketAddr>,
    received: u64,
    preface: Vec<u8>,
    held: bool,
    partner: CompactPartner,
    gateways: Vec<String>,
    passed: u8,
    left_micros: u64,
}

/// A flow's partner as the store keeps it; the first stands for none.
#[derive(Serialize, Deserialize)]
enum CompactPartner {
    None,
    Over,
    Flow([u8; 16]),
}

/// Octets at the end that records of earlier versions lack, down to those without held flows: all would be 0.
const LACKING: [u8; 5] = [0; 5];

impl FlowRecord {
    pub(in crate::gateway) fn encode(&self) -> Vec<u8> {
        let class = &self.class;
        let plan = |plan: BlockPlan| {
            let micros = u64::try_from(plan.close_after().as_micros()).unwrap_or(u64::MAX);
            (plan.k(), plan.repairs(), micros)
        };
        let (host, way) = match &self.destination.host {
            Host::Beyond(beyond) => (beyond.host(), Some(beyond)),
            host => (host, None),
        };
        let gateways = way.map_or(&[][..], |way| way.gateways()).iter();
        let left = way.and_then(|way| way.left()).unwrap_or(Duration::ZERO);
        let compact = Compact {
            opener: self.role == Role::Opener,
            peer: self.peer.clone(),
            host: match host {
                Host::Address(ip) => ip.to_string(),
                Host::Name(name) | Host::Tunnel(name) => name.to_string(),
                // A way has no other way at its end.
                Host::Beyond(_) => String::new(),
            },
            port: self.destination.port,
            mode: class.mode.name().to_owned(),
            priority: class.priority.0,
            class: class.id.0,
            weight: class.weight,
            fec: class.fec_words.words(),
            block: class.block.map(plan),
            window: class.window.0,
            volatile: !class.durable,
            bound: self.bound,
            received: self.received,
            preface: self.preface.clone(),
            held: self.held,
            partner: match self.partner {
                None => CompactPartner::None,
                Some(Partner::Over) => CompactPartner::Over,
                Some(Partner::Flow(flow)) => CompactPartner::Flow(flow.0),
            },
            gateways: gateways.map(ToString::to_string).collect(),
            passed: way.map_or(0, |way| way.passed()),
            left_micros: u64::try_from(left.as_micros()).unwrap_or(u64::MAX),
        };
        postcard::to_stdvec(&compact).unwrap_or_default()
    }

    /// `None` if these octets are no record.
    pub(in crate::gateway) fn decode(octets: &[u8]) -> Option<Self> {
        let compact: Compact = postcard::from_bytes(&[octets, &LACKING].concat()).ok()?;
        let end = match compact.host.parse::<IpAddr>() {
            Ok(ip) => Host::Address(ip),
            Err(_) => Host::Name(compact.host.parse().ok()?),
        };
        let names = compact.gateways.iter().map(|name| name.parse::<HostName>());
        let gateways: Vec<HostName> = names.collect::<Result<_, _>>().ok()?;
        let host = if gateways.is_empty() {
            end
        } else {
            let left = Duration::from_micros(compact.left_micros);
            let beyond = Beyond::new(gateways, end).ok()?.after(compact.passed);
            Host::Beyond(Box::new(
                beyond.with_left(Some(left).filter(|left| !left.is_zero())),
            ))
        };
        let block = match compact.block {
            Some((k, repairs, micros)) => {
                Some(BlockPlan::new(k, repairs, Duration::from_micros(micros))?)
            }
            None => None,
        };
        Some(Self {
            role: if compact.opener {
                Role::Opener
            } else {
                Role::Acceptor
            },
            peer: compact.peer,
            destination: Destination {
                host,
                port: compact.port,
            },
            class: FlowClass {
                mode: compact.mode.parse().ok()?,
                priority: Priority(compact.priority),
                id: ClassId(compact.class),
                weight: compact.weight,
                deadline: None,
                fec_words: FecStrength::from_words(compact.fec)?,
                block,
                thin: None,
                thin_messages: None,
                window: ByteCount(compact.window),
                resume: true,
                durable: !compact.volatile,
            },
            bound: compact.bound,
            received: compact.received,
            preface: compact.preface,
            held: compact.held,
            partner: match compact.partner {
                CompactPartner::None => None,
                CompactPartner::Over => Some(Partner::Over),
                CompactPartner::Flow(flow) => Some(Partner::Flow(FlowId(flow))),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::custody::RECORD_BYTES_MAX;
    use crate::gateway::config::PEER_NAME_BYTES_MAX;
    use core::num::NonZeroU8;
    use fulmar_proto::wire::Mode;

    #[test]
    fn a_record_comes_back_and_the_longest_fits_into_the_store() {
        let label = "a".repeat(63);
        let longest = [label.as_str(); 4].join(".")[..253].to_owned();
        for host in ["192.0.2.1", "2001:db8::1", &longest] {
            let named = Host::Address;
            let record = FlowRecord {
                role: Role::Acceptor,
                peer: "p".repeat(PEER_NAME_BYTES_MAX),
                destination: Destination {
                    host: host
                        .parse()
                        .map_or_else(|_| Host::Name(host.parse().unwrap()), named),
                    port: 65_535,
                },
                class: FlowClass {
                    mode: Mode::NearReliable,
                    priority: Priority(u8::MAX),
                    id: ClassId(u8::MAX),
                    weight: u8::MAX,
                    deadline: None,
                    fec_words: FecStrength::from_words(256).unwrap(),
                    block: BlockPlan::new(NonZeroU8::MAX, 1, Duration::from_secs(10)),
                    thin: None,
                    thin_messages: None,
                    window: ByteCount(u64::MAX),
                    resume: true,
                    durable: false,
                },
                bound: Some(
                    "[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:65535"
                        .parse()
                        .unwrap(),
                ),
                received: u64::MAX,
                preface: vec![255; 22],
                held: false,
                partner: None,
            };
            let octets = record.encode();
            assert!(octets.len() <= RECORD_BYTES_MAX, "{}", octets.len());
            for lacking in 1..=LACKING.len() {
                let before = &octets[..octets.len() - lacking];
                assert_eq!(FlowRecord::decode(before).as_ref(), Some(&record));
            }
            let record = FlowRecord {
                held: true,
                ..record
            };
            assert_eq!(FlowRecord::decode(&record.encode()).as_ref(), Some(&record));
            for partner in [Partner::Over, Partner::Flow(FlowId([7; 16]))] {
                let relayed = FlowRecord {
                    preface: Vec::new(),
                    partner: Some(partner),
                    ..record.clone()
                };
                let octets = relayed.encode();
                assert!(octets.len() <= RECORD_BYTES_MAX, "{}", octets.len());
                assert_eq!(FlowRecord::decode(&octets), Some(relayed));
            }
            let names = |count| vec!["g".repeat(30).parse().unwrap(); count];
            let Ok(beyond) = Beyond::new(names(7), record.destination.host.clone()) else {
                continue;
            };
            let left = Some(Duration::from_millis(7));
            let far = FlowRecord {
                destination: Destination {
                    host: Host::Beyond(Box::new(beyond.after(3).with_left(left))),
                    port: 9,
                },
                partner: Some(Partner::Flow(FlowId([255; 16]))),
                ..record
            };
            let octets = far.encode();
            assert!(octets.len() <= RECORD_BYTES_MAX, "{}", octets.len());
            assert_eq!(FlowRecord::decode(&octets), Some(far));
        }
        assert_eq!(FlowRecord::decode(b""), None);
    }
}
