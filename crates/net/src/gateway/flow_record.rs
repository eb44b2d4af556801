//! What is written down of a flow, so that the next gateway can go on with it.

use core::net::{IpAddr, SocketAddr};
use fulmar_proto::fec::block::BlockPlan;
use fulmar_proto::machine::Priority;
use fulmar_proto::splice::{ClassId, Destination, FlowClass, Host, Role};
use fulmar_proto::units::{ByteCount, Duration};
use fulmar_proto::wire::aerotp::FecStrength;
use serde::{Deserialize, Serialize};

/// A flow, without its octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FlowRecord {
    /// Which side of it we are.
    pub(super) role: Role,
    /// The peer's name: its place in the configuration may change.
    pub(super) peer: String,
    /// Where the acceptor connects to.
    pub(super) destination: Destination,
    /// How it is treated.
    pub(super) class: FlowClass,
    /// Acceptor: its address towards the destination.
    pub(super) bound: Option<SocketAddr>,
    /// Octets from the far side that our host has acknowledged, as the far side was told.
    pub(super) received: u64,
    /// What we say to the client before the flow's octets.
    pub(super) preface: Vec<u8>,
}

/// The record as JSON. Names are short, since the store has room for 460 octets.
#[derive(Serialize, Deserialize)]
struct Text {
    opener: bool,
    peer: String,
    host: String,
    port: u16,
    mode: String,
    priority: u8,
    class: u8,
    weight: u8,
    #[serde(default, skip_serializing_if = "is_zero")]
    fec: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    block: Option<(core::num::NonZeroU8, u8, u64)>,
    window: u64,
    /// The opener keeps nothing on its disk.
    #[serde(default, skip_serializing_if = "is_false")]
    volatile: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bound: Option<SocketAddr>,
    received: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    preface: Vec<u8>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(number: &u16) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl FlowRecord {
    pub(super) fn encode(&self) -> Vec<u8> {
        let class = &self.class;
        let plan = |plan: BlockPlan| {
            let micros = u64::try_from(plan.close_after().as_micros()).unwrap_or(u64::MAX);
            (plan.k(), plan.repairs(), micros)
        };
        let text = Text {
            opener: self.role == Role::Opener,
            peer: self.peer.clone(),
            host: match &self.destination.host {
                Host::Address(ip) => ip.to_string(),
                Host::Name(name) => name.to_string(),
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
        };
        serde_json::to_vec(&text).unwrap_or_default()
    }

    /// `None` if these octets are no record.
    pub(super) fn decode(octets: &[u8]) -> Option<Self> {
        let text: Text = serde_json::from_slice(octets).ok()?;
        let host = match text.host.parse::<IpAddr>() {
            Ok(ip) => Host::Address(ip),
            Err(_) => Host::Name(text.host.parse().ok()?),
        };
        let block = match text.block {
            Some((k, repairs, micros)) => {
                Some(BlockPlan::new(k, repairs, Duration::from_micros(micros))?)
            }
            None => None,
        };
        Some(Self {
            role: if text.opener {
                Role::Opener
            } else {
                Role::Acceptor
            },
            peer: text.peer,
            destination: Destination {
                host,
                port: text.port,
            },
            class: FlowClass {
                mode: text.mode.parse().ok()?,
                priority: Priority(text.priority),
                id: ClassId(text.class),
                weight: text.weight,
                deadline: None,
                fec_words: FecStrength::from_words(text.fec)?,
                block,
                window: ByteCount(text.window),
                resume: true,
                durable: !text.volatile,
            },
            bound: text.bound,
            received: text.received,
            preface: text.preface,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::custody::RECORD_BYTES_MAX;
    use fulmar_proto::wire::aerotp::Mode;

    #[test]
    fn a_record_comes_back_and_the_longest_fits_into_the_store() {
        let label = "a".repeat(63);
        let longest = [label.as_str(); 4].join(".")[..253].to_owned();
        for host in ["192.0.2.1", "2001:db8::1", &longest] {
            let named = Host::Address;
            let record = FlowRecord {
                role: Role::Acceptor,
                peer: "ground".to_owned(),
                destination: Destination {
                    host: host
                        .parse()
                        .map_or_else(|_| Host::Name(host.parse().unwrap()), named),
                    port: 65_535,
                },
                class: FlowClass {
                    mode: Mode::NearReliable,
                    priority: Priority(63),
                    id: ClassId(255),
                    weight: 255,
                    window: ByteCount(1 << 30),
                    resume: true,
                    ..FlowClass::default()
                },
                bound: Some("127.0.0.1:65535".parse().unwrap()),
                received: u64::MAX >> 16,
                preface: Vec::new(),
            };
            let octets = record.encode();
            assert!(octets.len() <= RECORD_BYTES_MAX, "{}", octets.len());
            assert_eq!(FlowRecord::decode(&octets), Some(record));
        }
        assert_eq!(FlowRecord::decode(b"{}"), None);
    }
}
