//! How a gateway is: the answer to `/status`, and what `/metrics` is made of.

use fulmar_proto::machine::Kind;
use fulmar_proto::splice::{RefuseCode, ResetCode, SplicerCounters};
use fulmar_proto::transport::aerotp::Counters;
use serde::Serialize;
use std::collections::BTreeMap;

/// One peer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PeerReport {
    /// Its name.
    pub name: String,
    /// Whether datagrams pass: `up`, `down`, `connecting`.
    pub link: String,
    /// The smoothed round trip.
    pub rtt_seconds: Option<f64>,
    /// The largest IP packet that is known to arrive.
    pub path_mtu_bytes: u64,
    /// Whether datagrams are authenticated.
    pub secure: bool,
    /// The configured upper bound.
    pub rate_bits_per_second: u64,
    /// Flows now.
    pub flows: u64,
    /// What AeroTP did.
    pub transport: TransportReport,
    /// The same for each class that had flows with it.
    pub classes: BTreeMap<String, TransportReport>,
}

/// What AeroTP did towards and from one peer: lost on the wire, recovered, and lost for good are
/// counted apart, in TPDUs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TransportReport {
    /// Octets sent, by kind.
    pub sent_bytes: BTreeMap<&'static str, u64>,
    /// TPDUs sent, by kind.
    pub sent_tpdus: BTreeMap<&'static str, u64>,
    /// Receiver: holes noticed.
    pub wire_lost_tpdus: u64,
    /// Receiver: arrived damaged beyond their parity.
    pub wire_damaged_tpdus: u64,
    /// Put right, by what: `fec_words`, `fec_block` (receiver), `arq_1`, `arq_2`, `arq_3_or_more`
    /// retransmissions (sender).
    pub recovered_tpdus: BTreeMap<&'static str, u64>,
    /// Receiver: given up, by cause.
    pub residual_lost_tpdus: BTreeMap<&'static str, u64>,
    /// Sender: times that a whole timeout passed in silence.
    pub stalls: u64,
}

impl From<Counters> for TransportReport {
    fn from(counters: Counters) -> Self {
        let kinds = Kind::ALL.map(Kind::name);
        let [once, twice, more] = counters.recovered_arq;
        Self {
            sent_bytes: kinds.into_iter().zip(counters.sent_bytes).collect(),
            sent_tpdus: kinds.into_iter().zip(counters.sent_tpdus).collect(),
            wire_lost_tpdus: counters.wire_lost,
            wire_damaged_tpdus: counters.wire_damaged,
            recovered_tpdus: BTreeMap::from([
                ("fec_words", counters.recovered_fec_words),
                ("fec_block", counters.recovered_fec_block),
                ("arq_1", once),
                ("arq_2", twice),
                ("arq_3_or_more", more),
            ]),
            residual_lost_tpdus: BTreeMap::from([
                ("lost", counters.residual_lost),
                ("damaged", counters.residual_damaged),
            ]),
            stalls: counters.stalls,
        }
    }
}

/// One class.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ClassReport {
    /// Its name here.
    pub name: String,
    /// Flows opened or accepted.
    pub flows_opened: u64,
    /// Flows that ended complete.
    pub flows_finished: u64,
    /// Flows refused, by reason.
    pub flows_refused: BTreeMap<&'static str, u64>,
    /// Flows cut off by either side, by reason.
    pub flows_reset: BTreeMap<&'static str, u64>,
    /// Octets taken from local sockets.
    pub accepted_bytes: u64,
    /// Octets that the far host acknowledged.
    pub delivered_bytes: u64,
    /// Octets given to local sockets.
    pub received_bytes: u64,
    /// Messages taken from local sockets.
    pub messages_accepted: u64,
    /// Messages given to local sockets.
    pub messages_received: u64,
    /// Messages lost for good, by cause.
    pub messages_lost: BTreeMap<&'static str, u64>,
}

/// The carrier's socket and the session.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CarrierReport {
    /// Sealed datagrams sent.
    pub sent_datagrams: u64,
    /// Genuine datagrams received.
    pub received_datagrams: u64,
    /// Times a link was held for down.
    pub outages: u64,
    /// How long outages that are over have lasted.
    pub outage_seconds: f64,
    /// Times a peer was followed to another address.
    pub moves: u64,
    /// Handshakes completed.
    pub handshakes: u64,
    /// Datagrams that were dropped before a flow saw them, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
}

/// The whole answer.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The shape of this record.
    pub schema: &'static str,
    /// The gateway's name.
    pub name: String,
    /// Since its start.
    pub uptime_seconds: f64,
    /// Flows now.
    pub flows: u64,
    /// Octets kept in custody now.
    pub custody_bytes: u64,
    /// Peers.
    pub peers: Vec<PeerReport>,
    /// Classes that had flows.
    pub classes: Vec<ClassReport>,
    /// Below the flows.
    pub carrier: CarrierReport,
    /// Records of peers that made no sense.
    pub malformed_records: u64,
}

/// The name of [`Status::schema`].
pub const SCHEMA: &str = "fulmar.gateway.status.v1";

/// The classes of a splicer's counters; `name` gives each its own.
pub(super) fn classes(counters: &SplicerCounters, name: impl Fn(u8) -> String) -> Vec<ClassReport> {
    counters
        .classes
        .iter()
        .map(|(id, class)| {
            let refused = RefuseCode::ALL.into_iter().map(RefuseCode::name);
            let reset = ResetCode::ALL.into_iter().map(ResetCode::name);
            let resets = class.resets_local.iter().zip(&class.resets_remote);
            ClassReport {
                name: name(id.0),
                flows_opened: class.flows_opened,
                flows_finished: class.flows_finished,
                flows_refused: refused.zip(class.flows_refused).collect(),
                flows_reset: reset
                    .zip(resets.map(|(here, there)| here + there))
                    .collect(),
                accepted_bytes: class.octets_accepted,
                delivered_bytes: class.octets_delivered,
                received_bytes: class.octets_received,
                messages_accepted: class.messages_accepted,
                messages_received: class.messages_received,
                messages_lost: BTreeMap::from([
                    ("late_unsent", class.late_unsent),
                    ("late_arrived", class.late_arrived),
                    ("full", class.dropped_full),
                    ("oversize", class.dropped_oversize),
                    ("unread", class.dropped_unread),
                    ("incomplete", class.dropped_incomplete),
                ]),
            }
        })
        .collect()
}
