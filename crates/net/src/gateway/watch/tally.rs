//! Rates and shares over a span of time: differences between two statuses.
//!
//! # Promises
//! - Every figure is finite. A figure that nothing was counted for is missing, rather than a zero or a NaN.

use super::status::{DirectionStatus, PeerReport, Status, ToldReport};
use fulmar_proto::transport::parts::DelaySpread;
use fulmar_proto::wire::aerotp::HEADER_BYTES;
use std::collections::BTreeMap;

const BITS: f64 = 8.0;

/// The figures of a status from which differences are taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::gateway) struct Tally {
    /// The gateway's uptime, in seconds.
    pub(in crate::gateway) at: f64,
    delivered_bytes: u64,
    received_bytes: u64,
    refused_flows: u64,
    dropped_messages: u64,
    false_datagrams: u64,
    peers: Vec<PeerTally>,
}

/// The reasons for which a datagram is dropped because it is not genuine.
const NOT_GENUINE: [&str; 5] = ["forged", "replayed", "wrong_mac", "unknown_peer", "flood"];

#[derive(Clone, Debug, Default, PartialEq)]
struct PeerTally {
    /// Octets of TPDUs sent, of all kinds.
    sent_bytes: u64,
    /// Octets of those sent that are parity or retransmissions.
    repair_bytes: u64,
    /// TPDUs sent, of all kinds.
    sent_tpdus: u64,
    /// The headers around each now, in octets. It changes with the path.
    overhead_bytes: u64,
    /// A bound on the rate, bits a second.
    rate: u64,
    payload_bytes: u64,
    confirmed_bytes: u64,
    /// Payload octets sent by classes that no confirmation ever came for.
    unconfirmed_bytes: u64,
    confirmed_after: DelaySpread,
    accepted: u64,
    lost: u64,
    recovered_fec: u64,
    /// Put right at the first, the second and any later repetition.
    recovered_arq: [u64; 3],
    residual: u64,
    /// From here to the peer, and from the peer to here.
    outward: DirectionStatus,
    inward: DirectionStatus,
    told: ToldReport,
    rtt: Option<f64>,
    is_up: bool,
}

impl PeerTally {
    fn of(peer: &PeerReport) -> Self {
        let transport = &peer.transport;
        let of = |kind: &str| transport.sent_bytes.get(kind).copied().unwrap_or(0);
        let by = |what: &str| transport.recovered_tpdus.get(what).copied().unwrap_or(0);
        let sent_bytes = transport.sent_bytes.values().sum();
        let unconfirmed = peer.classes.values().filter(|of| of.confirmed_tpdus == 0);
        let source = |of: &BTreeMap<&'static str, u64>| of.get("source").copied().unwrap_or(0);
        let unconfirmed_tpdus: u64 = unconfirmed.clone().map(|of| source(&of.sent_tpdus)).sum();
        let unconfirmed_octets: u64 = unconfirmed.map(|of| source(&of.sent_bytes)).sum();
        let headers = (HEADER_BYTES as u64).saturating_mul(unconfirmed_tpdus);
        Self {
            sent_bytes,
            repair_bytes: of("repair") + of("retransmission"),
            sent_tpdus: transport.sent_tpdus.values().sum(),
            overhead_bytes: peer.packet_overhead_bytes,
            rate: peer.rate_bits_per_second.unwrap_or_default(),
            payload_bytes: transport.payload_bytes,
            confirmed_bytes: transport.confirmed_bytes,
            unconfirmed_bytes: unconfirmed_octets.saturating_sub(headers),
            confirmed_after: transport.confirmed_after,
            accepted: transport.accepted_tpdus,
            lost: transport.wire_lost_tpdus,
            recovered_fec: by("fec_words") + by("fec_block"),
            recovered_arq: ["arq_1", "arq_2", "arq_3_or_more"].map(by),
            residual: transport.residual_lost_tpdus.values().sum(),
            outward: peer.outward,
            inward: peer.inward,
            told: peer.told,
            rtt: peer.rtt_seconds.filter(|rtt| rtt.is_finite()),
            is_up: peer.link == "up",
        }
    }
}

impl Tally {
    pub(in crate::gateway) fn of(status: &Status) -> Self {
        let classes = status.classes.iter();
        let dropped = |reason: &&str| status.carrier.dropped.get(reason).copied();
        Self {
            at: status.uptime_seconds,
            delivered_bytes: classes.clone().map(|class| class.delivered_bytes).sum(),
            received_bytes: classes.clone().map(|class| class.received_bytes).sum(),
            refused_flows: classes
                .clone()
                .flat_map(|class| class.flows_refused.values())
                .sum(),
            dropped_messages: classes.flat_map(|class| class.messages_lost.values()).sum(),
            false_datagrams: NOT_GENUINE.iter().filter_map(dropped).sum(),
            peers: status.peers.iter().map(PeerTally::of).collect(),
        }
    }
}

/// The changes between two tallies.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::gateway) struct Window {
    /// The span in seconds.
    pub(in crate::gateway) seconds: f64,
    /// Octets that far hosts acknowledged, as bits a second.
    pub(in crate::gateway) delivered_rate: f64,
    /// Octets given to local sockets, as bits a second.
    pub(in crate::gateway) received_rate: f64,
    /// Flows refused, a second.
    pub(in crate::gateway) refused_rate: f64,
    /// Messages dropped here, a second.
    pub(in crate::gateway) dropped_rate: f64,
    /// Datagrams that were not genuine, a second.
    pub(in crate::gateway) false_rate: f64,
    /// The peers, in the order of the configuration.
    pub(in crate::gateway) peers: Vec<PeerWindow>,
}

/// The changes between two tallies for one peer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::gateway) struct PeerWindow {
    /// Packets to it, headers included, as bits a second.
    pub(in crate::gateway) wire_rate: f64,
    /// Payload from it that AeroTP handed up, as bits a second.
    pub(in crate::gateway) payload_rate: f64,
    /// Payload to it that it confirmed, as bits a second.
    pub(in crate::gateway) confirmed_rate: f64,
    /// Payload sent to it by classes that no confirmation ever came for, as bits a second: nobody knows what of it arrived.
    pub(in crate::gateway) unconfirmed_rate: f64,
    /// The times from first transmissions to their confirmations.
    pub(in crate::gateway) confirmed_after: DelaySpread,
    /// The share of parity and retransmissions in the octets of TPDUs sent.
    pub(in crate::gateway) repair_share: Option<f64>,
    /// The wire rate as a share of the configured rate.
    pub(in crate::gateway) capacity_share: Option<f64>,
    /// The share of holes noticed in the TPDUs that became whole or were given up.
    pub(in crate::gateway) loss_share: Option<f64>,
    /// The share of TPDUs given up in the TPDUs that became whole or were given up.
    pub(in crate::gateway) residual_share: Option<f64>,
    /// TPDUs lost on the wire, a second.
    pub(in crate::gateway) lost_rate: f64,
    /// TPDUs put right by parity, a second.
    pub(in crate::gateway) fec_rate: f64,
    /// TPDUs put right by retransmission, a second, as the sender counts.
    pub(in crate::gateway) arq_rate: f64,
    /// The same by repetition: the first, the second, any later one.
    pub(in crate::gateway) arq_rates: [f64; 3],
    /// TPDUs given up, a second.
    pub(in crate::gateway) residual_rate: f64,
    /// Datagrams from here to it.
    pub(in crate::gateway) outward: Loss,
    /// Datagrams from it to here.
    pub(in crate::gateway) inward: Loss,
    /// TPDUs from here a second that it put right by parity.
    pub(in crate::gateway) far_fec_rate: f64,
    /// TPDUs from here a second that it gave up.
    pub(in crate::gateway) far_residual_rate: f64,
    /// The share of them in the TPDUs sent.
    pub(in crate::gateway) far_residual_share: Option<f64>,
    /// The round trip at the end, in seconds.
    pub(in crate::gateway) rtt: Option<f64>,
    /// Whether datagrams passed at the end.
    pub(in crate::gateway) is_up: bool,
}

/// Datagrams of one direction that were lost on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::gateway) struct Loss {
    /// The share of the sent datagrams that were lost.
    pub(in crate::gateway) share: Option<f64>,
    /// Datagrams a second.
    pub(in crate::gateway) rate: f64,
    /// Datagrams that were sent in the span.
    pub(in crate::gateway) sent: u64,
}

impl Loss {
    fn between(first: DirectionStatus, last: DirectionStatus, seconds: f64) -> Self {
        let sent = last.sent_datagrams.saturating_sub(first.sent_datagrams);
        let arrived = last
            .arrived_datagrams
            .saturating_sub(first.arrived_datagrams);
        // Datagrams that were late for one report are counted by the next, so more can arrive than were sent.
        let lost = sent.saturating_sub(arrived);
        Self {
            share: share(lost, sent),
            rate: lost as f64 / seconds,
            sent,
        }
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    // A loss that is noticed now may have happened before, so a part can be more than its whole.
    (whole > 0).then(|| (part as f64 / whole as f64).min(1.0))
}

impl Window {
    /// `None` unless time passed from `first` to `last`.
    pub(in crate::gateway) fn between(first: &Tally, last: &Tally) -> Option<Self> {
        let seconds = last.at - first.at;
        if !(seconds.is_finite() && seconds > 0.0) {
            return None;
        }
        // Sums over connections may shrink when one of very many is forgotten.
        let bits = |first: u64, last: u64| last.saturating_sub(first) as f64 * BITS / seconds;
        let rate = |first: u64, last: u64| last.saturating_sub(first) as f64 / seconds;
        let peers = first.peers.iter().zip(&last.peers);
        Some(Self {
            seconds,
            delivered_rate: bits(first.delivered_bytes, last.delivered_bytes),
            received_rate: bits(first.received_bytes, last.received_bytes),
            refused_rate: rate(first.refused_flows, last.refused_flows),
            dropped_rate: rate(first.dropped_messages, last.dropped_messages),
            false_rate: rate(first.false_datagrams, last.false_datagrams),
            peers: peers
                .map(|(first, last)| PeerWindow::between(first, last, seconds))
                .collect(),
        })
    }
}

impl PeerWindow {
    fn between(first: &PeerTally, last: &PeerTally, seconds: f64) -> Self {
        let of = |pick: fn(&PeerTally) -> u64| pick(last).saturating_sub(pick(first));
        let rate = |count: u64| count as f64 / seconds;
        let surrounds = of(|t| t.sent_tpdus).saturating_mul(last.overhead_bytes);
        let wire_rate = rate(surrounds.saturating_add(of(|t| t.sent_bytes))) * BITS;
        let settled = of(|t| t.accepted) + of(|t| t.residual);
        Self {
            wire_rate,
            payload_rate: rate(of(|t| t.payload_bytes)) * BITS,
            confirmed_rate: rate(of(|t| t.confirmed_bytes)) * BITS,
            unconfirmed_rate: rate(of(|t| t.unconfirmed_bytes)) * BITS,
            confirmed_after: last.confirmed_after.since(&first.confirmed_after),
            repair_share: share(of(|t| t.repair_bytes), of(|t| t.sent_bytes)),
            capacity_share: (last.rate > 0).then(|| wire_rate / last.rate as f64),
            loss_share: share(of(|t| t.lost), settled),
            residual_share: share(of(|t| t.residual), settled),
            lost_rate: rate(of(|t| t.lost)),
            fec_rate: rate(of(|t| t.recovered_fec)),
            arq_rate: rate(of(|t| t.recovered_arq.iter().sum())),
            arq_rates: [
                rate(of(|t| t.recovered_arq[0])),
                rate(of(|t| t.recovered_arq[1])),
                rate(of(|t| t.recovered_arq[2])),
            ],
            residual_rate: rate(of(|t| t.residual)),
            outward: Loss::between(first.outward, last.outward, seconds),
            inward: Loss::between(first.inward, last.inward, seconds),
            far_fec_rate: rate(of(|t| t.told.recovered_fec_tpdus)),
            far_residual_rate: rate(of(|t| t.told.residual_lost_tpdus)),
            far_residual_share: share(of(|t| t.told.residual_lost_tpdus), of(|t| t.sent_tpdus)),
            rtt: last.rtt,
            is_up: last.is_up,
        }
    }
}

#[cfg(test)]
pub(in crate::gateway) mod tests {
    use super::*;
    use crate::gateway::watch::status::{ClassReport, TransportReport};
    use fulmar_proto::units::Duration;
    use std::collections::BTreeMap;

    /// `count` confirmations after 20 ms each, and before them one after a minute.
    fn spread(count: u64) -> DelaySpread {
        let mut spread = DelaySpread::default();
        spread.note(Duration::from_secs(60));
        for _ in 0..count {
            spread.note(Duration::from_millis(20));
        }
        spread
    }

    /// A gateway with one peer after `seconds`, in which everything happened in proportion to `count`.
    pub(in crate::gateway) fn status(seconds: f64, count: u64) -> Status {
        let transport = TransportReport {
            sent_bytes: BTreeMap::from([
                ("source", 800 * count),
                ("repair", 50 * count),
                ("retransmission", 100 * count),
                ("control", 50 * count),
            ]),
            sent_tpdus: BTreeMap::from([("source", count), ("control", count)]),
            accepted_tpdus: 90 * count,
            wire_lost_tpdus: 20 * count,
            recovered_tpdus: BTreeMap::from([("fec_block", 5 * count), ("arq_1", 5 * count)]),
            residual_lost_tpdus: BTreeMap::from([("lost", 10 * count)]),
            payload_bytes: 1_000 * count,
            confirmed_bytes: 700 * count,
            confirmed_after: spread(count),
            loss_bursts: BTreeMap::from([("1", 8 * count), ("9-16", count)]),
            ..TransportReport::default()
        };
        let peer = PeerReport {
            name: "ground".to_owned(),
            link: "up".to_owned(),
            rtt_seconds: Some(0.02),
            packet_overhead_bytes: 60,
            rate_bits_per_second: Some(100_000),
            outward: DirectionStatus {
                sent_datagrams: 100 * count,
                arrived_datagrams: 75 * count,
            },
            inward: DirectionStatus {
                sent_datagrams: 40 * count,
                arrived_datagrams: 36 * count,
            },
            told: ToldReport {
                recovered_fec_tpdus: 3 * count,
                residual_lost_tpdus: 2 * count,
            },
            classes: BTreeMap::from([("bulk".to_owned(), transport.clone())]),
            transport,
            ..PeerReport::default()
        };
        let class = ClassReport {
            name: "bulk".to_owned(),
            delivered_bytes: 500 * count,
            received_bytes: 250 * count,
            ..ClassReport::default()
        };
        Status {
            name: "air".to_owned(),
            uptime_seconds: seconds,
            peers: vec![peer],
            classes: vec![class],
            ..Status::default()
        }
    }

    fn close(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 1e-9, "{found} is not {wanted}");
    }

    #[test]
    fn rates_and_shares_are_of_the_span_between() {
        let first = Tally::of(&status(100.0, 1_000));
        let window = Window::between(&first, &Tally::of(&status(110.0, 1_010))).unwrap();
        close(window.seconds, 10.0);
        close(window.delivered_rate, 4_000.0);
        close(window.received_rate, 2_000.0);
        let peer = &window.peers[0];
        // 1000 octets and two surrounds of 60 a second.
        close(peer.wire_rate, 8_960.0);
        close(peer.capacity_share.unwrap(), 0.0896);
        close(peer.repair_share.unwrap(), 0.15);
        close(peer.loss_share.unwrap(), 0.2);
        close(peer.residual_share.unwrap(), 0.1);
        close(peer.outward.share.unwrap(), 0.25);
        close(peer.outward.rate, 25.0);
        close(peer.inward.share.unwrap(), 0.1);
        close(peer.inward.rate, 4.0);
        close(peer.far_fec_rate, 3.0);
        close(peer.far_residual_rate, 2.0);
        close(peer.payload_rate, 8_000.0);
        close(peer.confirmed_rate, 5_600.0);
        let slowest = peer.confirmed_after.quantile(1.0).unwrap();
        assert_eq!(peer.confirmed_after.count(), 10);
        assert!(slowest < Duration::from_millis(25), "{slowest:?}");
        close(
            peer.fec_rate + peer.arq_rate + peer.residual_rate,
            peer.lost_rate,
        );
    }

    #[test]
    fn another_overhead_counts_for_what_was_sent_in_the_span_only() {
        let (first, mut last) = (status(100.0, 1_000_000), status(110.0, 1_000_010));
        let rate = |last: &Status| {
            let window = Window::between(&Tally::of(&first), &Tally::of(last));
            window.unwrap().peers[0].wire_rate
        };
        close(rate(&last), 8_960.0);
        last.peers[0].packet_overhead_bytes = 80;
        close(rate(&last), 9_280.0);
        last.peers[0].packet_overhead_bytes = 40;
        close(rate(&last), 8_640.0);
    }

    #[test]
    fn where_nothing_was_counted_there_is_no_share() {
        let tally = |at| Tally::of(&status(at, 1_000));
        let window = Window::between(&tally(1.0), &tally(2.0)).unwrap();
        assert_eq!(window.peers[0].loss_share, None);
        assert_eq!(window.peers[0].outward, Loss::default());
        assert_eq!(window.peers[0].repair_share, None);
        assert_eq!(Window::between(&tally(2.0), &tally(2.0)), None);
        assert_eq!(Window::between(&tally(2.0), &tally(1.0)), None);
        let back = Window::between(&tally(1.0), &Tally::of(&status(2.0, 0))).unwrap();
        close(back.peers[0].wire_rate, 0.0);
    }
}
