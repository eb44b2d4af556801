//! The state of a gateway at one instant: the answer to `/status`, and the source of the
//! [registry](super::registry)'s values.

pub use super::alarms::{Alarm, LinkGrade, LinkVerdict};
pub use super::losses::{CauseFigures, LossFigures};
pub use crate::gateway::links::ToldLinkReport;
use crate::gateway::peers::Decision;
pub use crate::gateway::peers::{OutageReport, RateReport, RepairReport, WaitingPath};
pub use crate::gateway::tunnels::TunnelReport;
use crate::session::{DamageCounts, DamageStatus, Passage, PathStatus, PathUse};
use fulmar_proto::damage::LengthBelief;
use fulmar_proto::machine::TransmitKind;
use fulmar_proto::splice::{RefuseCode, RepairTotals, ResetCode, SplicerCounters};
use fulmar_proto::transport::aerotp::Counters;
use fulmar_proto::transport::parts::{BurstLengths, DelaySpread};
use fulmar_proto::units::BitErrorRate;
use serde::Serialize;
use std::collections::BTreeMap;

/// One peer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PeerReport {
    /// Its name.
    pub name: String,
    /// The link to it in one sentence, with a grade.
    pub verdict: LinkVerdict,
    /// Whether datagrams pass: `up`, `down`, `connecting`.
    pub link: String,
    /// The address at which it is called, if there is one. The record has it in the sentence alone.
    #[serde(skip)]
    pub address: Option<String>,
    /// The seconds for which calls to it have been unanswered. The record has them in the sentence alone.
    #[serde(skip)]
    pub calling_seconds: Option<f64>,
    /// The seconds since anything came back, while the link is held for down.
    pub down_seconds: Option<f64>,
    /// The smoothed round trip.
    pub rtt_seconds: Option<f64>,
    /// The way by which it is reached, where a hub introduces it: `directly`, or through the hub, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<String>,
    /// Quantiles of the last round trips.
    pub rtt_quantiles_seconds: Option<Quantiles>,
    /// The largest IP packet that is known to arrive.
    pub path_mtu_bytes: u64,
    /// Octets around each TPDU: IP, UDP, the session's header and tag, parity of the carrier.
    pub packet_overhead_bytes: u64,
    /// The version of the data to and from it, 1 or 2, while there are keys.
    pub wire: Option<u8>,
    /// The carrier of data to it now, as a configuration names it.
    pub carrier: String,
    /// Whether datagrams are authenticated.
    pub secure: bool,
    /// The configured upper bound, if there is one.
    pub rate_bits_per_second: Option<u64>,
    /// The rate in use and why, while there are connections.
    pub rate: Option<RateReport>,
    /// The paths to it, if there are several.
    pub paths: Vec<PathFigures>,
    /// The further paths to it that wait for a device or an address here.
    pub waiting_paths: Vec<WaitingPath>,
    /// The links below paths to it that tell of themselves.
    pub links: Vec<ToldLinkReport>,
    /// Datagrams from here to it, as it told.
    pub outward: DirectionStatus,
    /// Datagrams from it to here.
    pub inward: DirectionStatus,
    /// The damage on the way, where datagrams are armoured.
    pub damage: Option<DamageFigures>,
    /// The length of packets to it, once streams to it lost any.
    pub length: Option<LengthFigures>,
    /// The losses of streams to it by cause, once there were any.
    pub losses: Option<LossFigures>,
    /// The losses of streams from it by cause, as it tells.
    pub told_losses: Option<LossFigures>,
    /// TPDUs from here that it put right or gave up, as it told.
    pub told: ToldReport,
    /// The times that the link was held for down.
    pub outages: OutageReport,
    /// The present flows.
    pub flows: u64,
    /// Octets kept in custody for it and for gateways behind it.
    pub custody_bytes: u64,
    /// The same by the gateway that they are for, where there are any.
    pub custody: Vec<CustodyFor>,
    /// AeroTP's counters.
    pub transport: TransportReport,
    /// AeroTP's counters for each class that had flows with it.
    pub classes: BTreeMap<String, TransportReport>,
}

/// Octets in custody for one gateway: a peer, or one behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CustodyFor {
    /// The name of the gateway at the end of the flows' way.
    pub gateway: String,
    /// The flows that keep something.
    pub flows: u64,
    /// Octets kept.
    pub kept_bytes: u64,
}

/// One of several paths to a peer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PathFigures {
    /// Its number in the log: 0 is the first, on which the session began.
    pub path: u8,
    /// The device or address by which it leaves and the one that it leads to, as the configuration says; none of a path that
    /// the peer has chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<String>,
    /// Its cost: data leave on it while no path that costs less is up.
    pub cost: u8,
    /// Whether it carries data: `up`, `down`, or `tried` until a probe was answered on it.
    pub state: &'static str,
    /// The seconds for which it has been down, from the first datagram that nothing answered.
    pub down_seconds: Option<f64>,
    /// The times that it was down, this one included.
    pub outages: u64,
    /// The seconds for which it was down, in all.
    pub outage_seconds: f64,
    /// The smoothed round trip on it.
    pub rtt_seconds: Option<f64>,
    /// The rate in use on it, and why.
    pub rate: Option<RateReport>,
    /// The losses of streams on it by cause, once there were any.
    pub losses: Option<LossFigures>,
}

impl PathFigures {
    /// The path of this status; `rate` is that in use on it.
    pub(in crate::gateway) fn of(
        status: PathStatus,
        way: Option<String>,
        rate: Option<RateReport>,
        losses: Option<LossFigures>,
    ) -> Self {
        let (state, down) = match status.use_now {
            PathUse::Tried => ("tried", None),
            PathUse::Up => ("up", None),
            PathUse::Down(down) => ("down", Some(down)),
        };
        Self {
            path: status.place,
            way,
            cost: status.cost,
            state,
            down_seconds: down.map(|down| down.as_secs_f64()),
            outages: status.outages,
            outage_seconds: status.outage_time.as_secs_f64(),
            rtt_seconds: status.rtt.map(|rtt| rtt.as_secs_f64()),
            rate,
            losses,
        }
    }
}

/// Datagrams of one direction up to the last report about it: TPDUs, pieces of them, and heartbeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DirectionStatus {
    /// Datagrams that left.
    pub sent_datagrams: u64,
    /// Datagrams of them that arrived.
    pub arrived_datagrams: u64,
}

impl From<Passage> for DirectionStatus {
    fn from(passage: Passage) -> Self {
        Self {
            sent_datagrams: passage.sent,
            arrived_datagrams: passage.arrived,
        }
    }
}

/// Damage on the way to and from a peer, and the parity against it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DamageFigures {
    /// Words of parity behind a full datagram to it, in use now.
    pub words: u16,
    /// Armoured datagrams from here to it, as it told.
    pub outward: DamagedDirection,
    /// Armoured datagrams from it to here.
    pub inward: DamagedDirection,
}

/// Armoured datagrams of one direction that arrived, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DamagedDirection {
    /// The share of wrong bits, lately.
    pub bit_error_ratio: Option<f64>,
    /// Datagrams that arrived whole.
    pub whole_datagrams: u64,
    /// Datagrams that arrived damaged and were mended.
    pub mended_datagrams: u64,
    /// Datagrams that arrived damaged beyond repair, and are sent again.
    pub beyond_repair_datagrams: u64,
    /// Octets that parity put right.
    pub corrected_symbols: u64,
    /// The share that was beyond repair.
    pub residual_ratio: Option<f64>,
}

impl DamagedDirection {
    fn of(counts: DamageCounts, rate: Option<BitErrorRate>) -> Self {
        let all = counts.whole + counts.mended + counts.beyond_repair;
        let share = counts.beyond_repair as f64 / all as f64;
        Self {
            bit_error_ratio: rate.map(BitErrorRate::value),
            whole_datagrams: counts.whole,
            mended_datagrams: counts.mended,
            beyond_repair_datagrams: counts.beyond_repair,
            corrected_symbols: counts.corrected_symbols,
            residual_ratio: (all > 0).then_some(share),
        }
    }
}

impl From<DamageStatus> for DamageFigures {
    fn from(status: DamageStatus) -> Self {
        Self {
            words: status.words.words(),
            outward: DamagedDirection::of(status.outward, status.outward_rate),
            inward: DamagedDirection::of(status.inward, status.inward_rate),
        }
    }
}

/// The length of packets to a peer, and the loss that it follows from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LengthFigures {
    /// Octets of the longest IP packets that streams, and messages in order, are cut for; none while that is as many as the path carries.
    pub packet_bytes: Option<u64>,
    /// The share of wrong bits that explains how loss grows with length, where what is damaged is dropped.
    pub bit_error_ratio: f64,
    /// The share of packets that is lost whatever their length.
    pub lost_ratio: f64,
}

impl From<LengthBelief> for LengthFigures {
    fn from(belief: LengthBelief) -> Self {
        Self {
            packet_bytes: belief.octets.map(|octets| octets as u64),
            bit_error_ratio: belief.loss.bits().value(),
            lost_ratio: belief.loss.packets().value(),
        }
    }
}

/// TPDUs from here that a peer put right or gave up, as it reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToldReport {
    /// Put right by parity.
    pub recovered_fec_tpdus: u64,
    /// Given up.
    pub residual_lost_tpdus: u64,
}

impl From<RepairTotals> for ToldReport {
    fn from(totals: RepairTotals) -> Self {
        Self {
            recovered_fec_tpdus: totals.recovered_fec,
            residual_lost_tpdus: totals.residual,
        }
    }
}

/// Quantiles of the last measurements, without interpolation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// The number of measurements.
    pub samples: u64,
    /// The median.
    pub p50: f64,
    /// Nine in ten are at most this.
    pub p90: f64,
    /// Ninety-nine in a hundred are at most this.
    pub p99: f64,
}

/// AeroTP's counters towards and from one peer: lost on the wire, recovered, and lost for good are
/// counted apart, in TPDUs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TransportReport {
    /// Octets sent, by kind.
    pub sent_bytes: BTreeMap<&'static str, u64>,
    /// TPDUs sent, by kind.
    pub sent_tpdus: BTreeMap<&'static str, u64>,
    /// Sender: confirmed by the receiver.
    pub confirmed_tpdus: u64,
    /// Sender: payload octets of them.
    pub confirmed_bytes: u64,
    /// Sender: from the first transmission of a TPDU until its confirmation arrived.
    #[serde(skip)]
    pub confirmed_after: DelaySpread,
    /// Sender: held for lost, by what said so.
    pub held_lost_tpdus: BTreeMap<&'static str, u64>,
    /// Receiver: first copies accepted, those put right or sent again included.
    pub accepted_tpdus: u64,
    /// Receiver: copies of what was there already.
    pub duplicate_tpdus: u64,
    /// Receiver: payload octets handed up.
    pub payload_bytes: u64,
    /// Receiver: holes noticed.
    pub wire_lost_tpdus: u64,
    /// Receiver: holes noticed in a row, by their number.
    pub loss_bursts: BTreeMap<&'static str, u64>,
    /// Receiver: arrived damaged beyond their parity.
    pub wire_damaged_tpdus: u64,
    /// Receiver: octets that parity inside TPDUs put right.
    pub corrected_bytes: u64,
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
        let kinds = TransmitKind::ALL.map(TransmitKind::name);
        let [once, twice, more] = counters.recovered_arq;
        Self {
            sent_bytes: kinds.into_iter().zip(counters.sent_bytes).collect(),
            sent_tpdus: kinds.into_iter().zip(counters.sent_tpdus).collect(),
            confirmed_tpdus: counters.confirmed_tpdus,
            confirmed_bytes: counters.confirmed_bytes,
            confirmed_after: counters.confirmed_after,
            held_lost_tpdus: BTreeMap::from([
                ("overtaken", counters.held_lost_overtaken),
                ("asked_for", counters.held_lost_nack),
                ("timeout", counters.held_lost_timeout),
                ("damaged", counters.held_lost_damaged),
            ]),
            accepted_tpdus: counters.accepted_tpdus,
            duplicate_tpdus: counters.duplicates,
            payload_bytes: counters.delivered_bytes,
            wire_lost_tpdus: counters.wire_lost,
            loss_bursts: BurstLengths::NAMES
                .into_iter()
                .zip(counters.loss_bursts.counts())
                .collect(),
            wire_damaged_tpdus: counters.wire_damaged,
            corrected_bytes: counters.corrected_symbols,
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
    /// Times that a flow lost its connection and went on with another.
    pub flows_resumed: u64,
    /// Flows refused, by reason.
    pub flows_refused: BTreeMap<&'static str, u64>,
    /// Flows cut off by either side, by reason.
    pub flows_reset: BTreeMap<&'static str, u64>,
    /// Octets taken from local sockets.
    pub accepted_bytes: u64,
    /// Octets that the far host acknowledged; of messages, those that the peer gave to it.
    pub delivered_bytes: u64,
    /// Octets given to local sockets.
    pub received_bytes: u64,
    /// Octets taken once more after a flow was resumed.
    pub repeated_bytes: u64,
    /// Messages taken from local sockets.
    pub messages_accepted: u64,
    /// Messages given to local sockets.
    pub messages_received: u64,
    /// Messages that the peer gave to the far host, as it told.
    pub messages_delivered: u64,
    /// Messages whose turn has passed at the peer and that it did not give to the far host, as it told.
    pub messages_undelivered: u64,
    /// Packets of tunnels that were marked, so that their senders slow down.
    pub messages_marked: u64,
    /// Messages lost for good, by cause.
    pub messages_lost: BTreeMap<&'static str, u64>,
    /// The last changes of its flows' repair, where it has a goal, the latest last.
    pub repair: Vec<RepairReport>,
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
    /// The seconds that outages that are over have lasted.
    pub outage_seconds: f64,
    /// Times a peer was followed to another address.
    pub moves: u64,
    /// Handshakes completed.
    pub handshakes: u64,
    /// Handshakes of them that renewed keys while older ones were still in use.
    pub rekeys: u64,
    /// Datagrams made for a larger path that left in pieces.
    pub fragmented_datagrams: u64,
    /// Datagrams that arrived in pieces, whole.
    pub reassembled_datagrams: u64,
    /// Datagrams that found no room in the session's queue.
    pub queue_full_datagrams: u64,
    /// Datagrams that were passed on from one peer to another, which a hub does.
    pub relayed_datagrams: u64,
    /// Datagrams for another peer that were not passed on: they may not be, it is not there, or too many came. At an end, those for a
    /// peer that the hub takes none for now.
    pub unrelayed_datagrams: u64,
    /// Datagrams, sealed and opened, in the capture.
    pub captured_packets: u64,
    /// Those left out of it.
    pub capture_missed_packets: u64,
    /// Lines of the event trace.
    pub traced_events: u64,
    /// Events left out of it.
    pub trace_missed_events: u64,
    /// Datagrams that were dropped before a flow saw them, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Damaged datagrams that were not corrected: too many were, in vain.
    pub uncorrected_datagrams: u64,
    /// Operations that it took to judge and to answer what arrived, by name.
    pub operations: BTreeMap<&'static str, u64>,
}

/// One flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowStatus {
    /// Its name in logs.
    pub id: String,
    /// The peer's name.
    pub peer: String,
    /// Its class here.
    pub class: String,
    /// `tcp`, `udp`, or `ip` for packets of a tunnel.
    pub protocol: &'static str,
    /// Whether its client came in here: `in`; else its server is reached from here: `out`.
    pub direction: &'static str,
    /// The destination that the client asked for.
    pub destination: String,
    /// Octets taken from the local socket.
    pub sent_bytes: u64,
    /// Octets given to the local socket.
    pub received_bytes: u64,
    /// The seconds since it began.
    pub seconds: f64,
}

/// The most flows that are listed, the oldest first.
pub const FLOWS_LISTED_MAX: usize = 200;

/// The whole answer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// The shape of this record.
    pub schema: &'static str,
    /// The gateway's name.
    pub name: String,
    /// The seconds since its start.
    pub uptime_seconds: f64,
    /// The worst grade of its links and alarms, that of missing keys apart.
    pub grade: LinkGrade,
    /// Whether there are no keys, so that nothing is authenticated or encrypted.
    #[serde(rename = "unprotected")]
    pub is_unprotected: bool,
    /// The alarms, the worst first.
    pub alarms: Vec<Alarm>,
    /// The present flows.
    pub flows: u64,
    /// Octets kept in custody now.
    pub custody_bytes: u64,
    /// Octets of damaged custody that are set aside in `damaged/` of its directory.
    pub custody_damaged_bytes: u64,
    /// Whether custody on disk has no room, so that clients wait.
    pub custody_full: bool,
    /// Peers.
    pub peers: Vec<PeerReport>,
    /// Tunnels.
    pub tunnels: Vec<TunnelReport>,
    /// Classes that had flows.
    pub classes: Vec<ClassReport>,
    /// The carrier's socket and the session.
    pub carrier: CarrierReport,
    /// The records of peers that made no sense.
    pub malformed_records: u64,
    /// The oldest flows, at most [`FLOWS_LISTED_MAX`].
    pub flow_list: Vec<FlowStatus>,
    /// The latest decisions and their reasons, the last one last.
    pub decisions: Vec<Decision>,
}

/// The link of a peer that a reload removed. The peer stays in the list until a restart, since the history refers to
/// places in it.
pub(in crate::gateway) const REMOVED: &str = "removed";

/// The name of [`Status::schema`].
pub const SCHEMA: &str = "fulmar.gateway.status.v1";

/// The classes of a splicer's counters; `known` gives each its name and the changes of its repair.
pub(in crate::gateway) fn classes(
    counters: &SplicerCounters,
    known: impl Fn(u8) -> (String, Vec<RepairReport>),
) -> Vec<ClassReport> {
    counters
        .classes
        .iter()
        .map(|(id, class)| {
            let refused = RefuseCode::ALL.into_iter().map(RefuseCode::name);
            let reset = ResetCode::ALL.into_iter().map(ResetCode::name);
            let resets = class.resets_local.iter().zip(&class.resets_remote);
            let (name, repair) = known(id.0);
            ClassReport {
                name,
                repair,
                flows_opened: class.flows_opened,
                flows_finished: class.flows_finished,
                flows_resumed: class.resumed,
                flows_refused: refused.zip(class.flows_refused).collect(),
                flows_reset: reset
                    .zip(resets.map(|(here, there)| here + there))
                    .collect(),
                accepted_bytes: class.octets_accepted,
                delivered_bytes: class.octets_delivered,
                received_bytes: class.octets_received,
                repeated_bytes: class.octets_repeated,
                messages_accepted: class.messages_accepted,
                messages_received: class.messages_received,
                messages_delivered: class.messages_delivered,
                messages_undelivered: class
                    .messages_expected
                    .saturating_sub(class.messages_delivered),
                messages_marked: class.queue_marked,
                messages_lost: BTreeMap::from([
                    ("late_unsent", class.late_unsent),
                    ("late_given_up", class.late_given_up),
                    ("late_arrived", class.late_arrived),
                    ("full", class.dropped_full),
                    ("queue", class.queue_dropped),
                    ("oversize", class.dropped_oversize),
                    ("unread", class.dropped_unread),
                    ("incomplete", class.dropped_incomplete),
                ]),
            }
        })
        .collect()
}
