//! One direction of the link, without sockets and clocks: octets in, arrivals out.

use super::config::{DamagePolicy, LargestPacket};
use super::error::EmulatorError;
use super::report::{DirectionReport, DropReport};
use fulmar_capture::Comment;
use fulmar_channel::{
    Channel, ChannelConfig, ChannelConfigError, ChannelDropReason, ChannelVerdict, Flips,
    apply_flips,
};
use fulmar_proto::machine::Ecn;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration, Instant};
use std::borrow::Cow;
use std::collections::VecDeque;

/// A datagram that will arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The time at which its last octet is there.
    pub at: Instant,
    /// Its payload, bit errors included.
    pub octets: Vec<u8>,
    /// The mark in its network header on arrival.
    pub ecn: Ecn,
}

/// The arrivals of one datagram: none, one, or two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// The datagram itself.
    pub first: Option<Arrival>,
    /// A duplicate.
    pub copy: Option<Arrival>,
}

/// Octets of the header of an IP packet: of IPv4 as it says (RFC 791), of IPv6 without extensions (RFC 8200).
fn ip_header_len(packet: &[u8]) -> usize {
    match packet.first() {
        Some(first) if first >> 4 == 4 => usize::from(first & 0x0F) * 4,
        Some(first) if first >> 4 == 6 => 40,
        _ => 0,
    }
}

/// The octets of an Ethernet header without tags: two addresses and a type.
pub(super) const FRAME_HEADER_BYTES: usize = 14;

/// The kind of a direction's payloads: it says which octets of them are a header.
#[derive(Clone, Copy, Debug)]
enum Payloads {
    /// Octets of whatever kind.
    Plain,
    IpPackets,
    EthernetFrames,
}

impl Payloads {
    fn header_len(self, payload: &[u8]) -> usize {
        match self {
            Self::Plain => 0,
            Self::IpPackets => ip_header_len(payload),
            Self::EthernetFrames => FRAME_HEADER_BYTES,
        }
    }
}

/// A channel with headers in front of its payloads and a rule for damage.
#[derive(Debug)]
pub struct Direction {
    channel: Channel,
    /// The changes to come, each with the stream that its loss draws from.
    changes: VecDeque<(Instant, ChannelConfig, Rng)>,
    overhead: ByteCount,
    policy: DamagePolicy,
    payloads: Payloads,
    largest: Option<LargestPacket>,
    dropped_too_large: u64,
    dropped_header_damage: u64,
    dropped_payload_damage: u64,
    damaged_packets: u64,
    flipped_bits: u64,
    arrived_packets: u64,
    arrived_bytes: u64,
    marked_packets: u64,
    /// The channel's acts on the last packet, if somebody captures.
    comment: Option<Comment>,
}

impl Direction {
    /// A direction that draws from streams below `rng`.
    ///
    /// # Errors
    /// A field of `config` is out of range.
    pub fn new(
        config: ChannelConfig,
        overhead: ByteCount,
        policy: DamagePolicy,
        rng: &Rng,
    ) -> Result<Self, ChannelConfigError> {
        Ok(Self {
            channel: config
                .decides_at_once()
                .and_then(|()| Channel::new(config, rng))?,
            changes: VecDeque::new(),
            overhead,
            policy,
            payloads: Payloads::Plain,
            largest: None,
            dropped_too_large: 0,
            dropped_header_damage: 0,
            dropped_payload_damage: 0,
            damaged_packets: 0,
            flipped_bits: 0,
            arrived_packets: 0,
            arrived_bytes: 0,
            marked_packets: 0,
            comment: None,
        })
    }

    /// The direction with a limit: packets longer than `largest` vanish.
    #[must_use]
    pub const fn dropping_above(mut self, largest: Option<LargestPacket>) -> Self {
        self.largest = largest;
        self
    }

    /// The direction with changes of rate, delay, loss and bit errors to come, in the order of their times from the start.
    pub(super) fn changing(
        mut self,
        name: &'static str,
        changes: impl Iterator<Item = (Duration, ChannelConfig)>,
        rng: &Rng,
    ) -> Result<Self, EmulatorError> {
        for (number, (after, config)) in changes.enumerate() {
            config.validate().map_err(|error| EmulatorError::Link {
                direction: name,
                error,
            })?;
            let stream = rng.child(&format!("{name}/change-{number}"));
            let at = Instant::START + after;
            self.changes.push_back((at, config, stream));
        }
        Ok(self)
    }

    /// Makes the changes whose time has come.
    fn change(&mut self, now: Instant) {
        while self.changes.front().is_some_and(|(at, ..)| *at <= now)
            && let Some((_, config, rng)) = self.changes.pop_front()
        {
            self.channel
                .change(&config, &rng)
                .expect("they were checked when the direction was made");
        }
    }

    /// The direction for payloads that are IP packets.
    #[must_use]
    pub const fn of_ip_packets(mut self) -> Self {
        self.payloads = Payloads::IpPackets;
        self
    }

    /// The direction for payloads that are Ethernet frames.
    #[must_use]
    pub const fn of_ethernet_frames(mut self) -> Self {
        self.payloads = Payloads::EthernetFrames;
        self
    }

    /// The flips that are not in headers which stay whole.
    fn harmful<'a>(&self, octets: &[u8], flips: &'a Flips) -> Cow<'a, Flips> {
        if self.policy != DamagePolicy::DeliverBehindHeaders || flips.as_slice().is_empty() {
            return Cow::Borrowed(flips);
        }
        let header = self.payloads.header_len(octets);
        let spared = (self.overhead + ByteCount::from_usize(header)).0 * 8;
        let positions = flips.as_slice().iter().copied();
        let behind = positions.filter(|position| u64::from(*position) >= spared);
        Cow::Owned(Flips::from_positions(behind))
    }

    /// Keeps, from here on, what was done with the last packet.
    pub(super) fn keep_comments(&mut self) {
        self.comment = Some(Comment::NONE);
    }

    /// The channel's acts on the last packet; nothing if that is not kept.
    pub(super) fn take_comment(&mut self) -> Comment {
        self.comment
            .as_mut()
            .map(core::mem::take)
            .unwrap_or_default()
    }

    fn remark(&mut self, remark: impl FnOnce(Comment) -> Comment) {
        if let Some(comment) = &mut self.comment {
            *comment = remark(core::mem::take(comment));
        }
    }

    /// A direction called `name`, which names its stream below `rng` and any error.
    pub(super) fn named(
        name: &'static str,
        config: ChannelConfig,
        overhead: ByteCount,
        policy: DamagePolicy,
        rng: &Rng,
    ) -> Result<Self, EmulatorError> {
        Self::new(config, overhead, policy, &rng.child(name)).map_err(|error| EmulatorError::Link {
            direction: name,
            error,
        })
    }

    /// Puts a datagram with payload `octets` on the link at `now`.
    pub fn admit(&mut self, now: Instant, octets: &[u8], ecn: Ecn) -> Arrivals {
        self.change(now);
        let len = ByteCount::of(octets) + self.overhead;
        let vanishes = |largest: LargestPacket| {
            len > largest.octets && now.saturating_since(Instant::START) >= largest.after
        };
        if self.largest.is_some_and(vanishes) {
            self.dropped_too_large += 1;
            self.remark(|comment| comment.dropped("too_large"));
            return Arrivals::default();
        }
        let delivery = match self.channel.admit_capable(now, len, ecn != Ecn::NotCapable) {
            ChannelVerdict::Deliver(delivery) => delivery,
            ChannelVerdict::Drop(reason) => {
                self.remark(|comment| comment.dropped(reason.name()));
                return Arrivals::default();
            }
            ChannelVerdict::Waits => return Arrivals::default(),
        };
        let ecn = if delivery.marked && ecn == Ecn::Capable {
            self.marked_packets += 1;
            self.remark(Comment::marked);
            Ecn::Congested
        } else {
            ecn
        };
        let first = self.arrive(delivery.at, octets, &delivery.flips, ecn);
        let copy = delivery.duplicate.and_then(|(at, flips)| {
            self.remark(Comment::duplicated);
            self.arrive(at, octets, &flips, ecn)
        });
        Arrivals { first, copy }
    }

    fn arrive(&mut self, at: Instant, octets: &[u8], flips: &Flips, ecn: Ecn) -> Option<Arrival> {
        let mut octets = octets.to_vec();
        let flips = self.harmful(&octets, flips);
        let damage = apply_flips(&mut octets, &flips, self.overhead);
        if damage.lower_header_hit() {
            self.dropped_header_damage += 1;
            self.remark(|comment| comment.dropped("header_damage"));
            return None;
        }
        if !damage.buffer_intact() {
            if self.policy == DamagePolicy::Drop {
                self.dropped_payload_damage += 1;
                self.remark(|comment| comment.dropped("payload_damage"));
                return None;
            }
            self.damaged_packets += 1;
            self.flipped_bits += damage.upper_bits as u64;
            self.remark(|comment| comment.damaged(damage.upper_bits));
        }
        self.arrived_packets += 1;
        self.arrived_bytes += octets.len() as u64;
        Some(Arrival { at, octets, ecn })
    }

    /// Ends the link of the direction `name` when its trace has come to its end.
    pub(super) fn check_trace(&self, name: &'static str) -> Result<(), EmulatorError> {
        match self.channel.trace_used_up() {
            None => Ok(()),
            Some(error) => Err(EmulatorError::Trace {
                direction: name,
                error,
            }),
        }
    }

    /// The counters so far.
    pub fn report(&self) -> DirectionReport {
        let link = self.channel.counters();
        let dropped_packets = DropReport {
            too_large: self.dropped_too_large,
            queue: link.dropped(ChannelDropReason::Queue),
            policer: link.dropped(ChannelDropReason::Policer),
            early: link.dropped(ChannelDropReason::Early),
            outage: link.dropped(ChannelDropReason::Outage),
            loss: link.dropped(ChannelDropReason::Loss),
            header_damage: self.dropped_header_damage,
            payload_damage: self.dropped_payload_damage,
        };
        DirectionReport {
            offered_packets: link.offered_packets,
            offered_bytes: link.offered_bytes.0,
            transmitted_packets: link.transmitted_packets,
            transmitted_bytes: link.transmitted_bytes.0,
            arrived_packets: self.arrived_packets,
            arrived_payload_bytes: self.arrived_bytes,
            damaged_packets: self.damaged_packets,
            flipped_bits: self.flipped_bits,
            marked_packets: self.marked_packets,
            reordered_packets: link.reordered_packets,
            duplicated_packets: link.duplicated_packets,
            dropped_packets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_channel::{BitErrors, LossModel, QueueLimit};
    use fulmar_proto::units::{BitErrorRate, Bitrate, Duration, PacketErrorRate, Probability};

    const PAYLOAD: [u8; 1_472] = [0x5A; 1_472];
    const OVERHEAD: ByteCount = ByteCount(28);

    fn direction(config: ChannelConfig, policy: DamagePolicy) -> Direction {
        Direction::new(config, OVERHEAD, policy, &Rng::from_seed(1)).unwrap()
    }

    fn bit_errors(ber: f64) -> ChannelConfig {
        let ber = BitErrorRate::new(ber).unwrap();
        ChannelConfig {
            bits: BitErrors::Independent(ber),
            ..ChannelConfig::default()
        }
    }

    #[test]
    fn the_lower_header_takes_time_on_the_link() {
        let rate = Some(Bitrate::from_bits_per_second(1_000_000));
        let delay = Duration::from_millis(10);
        let mut link = direction(
            ChannelConfig {
                rate,
                delay,
                ..ChannelConfig::default()
            },
            DamagePolicy::Deliver,
        );
        let arrival = link
            .admit(Instant::START, &PAYLOAD, Ecn::NotCapable)
            .first
            .unwrap();
        // 1472 + 28 octets at 1 mbit take 12 ms.
        assert_eq!(arrival.at, Instant::START + Duration::from_millis(22));
        assert_eq!(arrival.octets, PAYLOAD);
    }

    #[test]
    fn every_bit_of_the_counters_is_an_inverted_bit_of_an_arrival() {
        const PACKETS: u64 = 2_000;
        let mut link = direction(bit_errors(1e-4), DamagePolicy::Deliver);
        let mut seen_bits = 0;
        let mut arrived = 0;
        for _ in 0..PACKETS {
            let Some(arrival) = link.admit(Instant::START, &PAYLOAD, Ecn::NotCapable).first else {
                continue;
            };
            arrived += 1;
            let differing = arrival.octets.iter().zip(PAYLOAD);
            seen_bits += differing
                .map(|(a, b)| u64::from((a ^ b).count_ones()))
                .sum::<u64>();
        }
        let report = link.report();
        assert_eq!(
            (report.arrived_packets, report.flipped_bits),
            (arrived, seen_bits)
        );
        assert_eq!(report.dropped_packets.header_damage, PACKETS - arrived);
        // P(a header bit is hit) = 1 - (1 - 1e-4)^224 = 0.02215; four standard errors of a share of
        // 2,000 are 0.0132.
        let share = (PACKETS - arrived) as f64 / PACKETS as f64;
        assert!((share - 0.02215).abs() < 0.0132, "{share}");
        // Mean 1.1776 bits in 11,776; four standard errors of the mean over 2,000 are 0.097.
        let mean = seen_bits as f64 / arrived as f64;
        assert!((mean - 1.1776).abs() < 0.097, "{mean}");
    }

    #[test]
    fn with_a_checksum_no_damaged_payload_arrives() {
        let mut link = direction(bit_errors(1e-4), DamagePolicy::Drop);
        for _ in 0..500 {
            let arrivals = link.admit(Instant::START, &PAYLOAD, Ecn::NotCapable);
            assert!(
                arrivals
                    .first
                    .is_none_or(|arrival| arrival.octets == PAYLOAD)
            );
        }
        let report = link.report();
        assert_eq!((report.damaged_packets, report.flipped_bits), (0, 0));
        assert!(report.dropped_packets.payload_damage > 0);
        assert_eq!(
            report.arrived_packets
                + report.dropped_packets.payload_damage
                + report.dropped_packets.header_damage,
            500
        );
    }

    #[test]
    fn headers_that_stay_whole_cost_nothing_and_the_octets_behind_them_are_hit_as_before() {
        for (first, header) in [(0x45, 20), (0x46, 24), (0x60, 40)] {
            let link = direction(bit_errors(1e-3), DamagePolicy::DeliverBehindHeaders);
            let mut link = link.of_ip_packets();
            let mut packet = PAYLOAD;
            packet[0] = first;
            let mut hit = [0_u64; 2];
            for _ in 0..500 {
                let arrivals = link.admit(Instant::START, &packet, Ecn::NotCapable);
                let arrival = arrivals.first.unwrap();
                for (place, (a, b)) in arrival.octets.iter().zip(packet).enumerate() {
                    hit[usize::from(place >= header)] += u64::from((a ^ b).count_ones());
                }
            }
            let report = link.report();
            assert_eq!((hit[0], hit[1]), (0, report.flipped_bits));
            assert_eq!(report.dropped_packets.header_damage, 0);
            // Mean 11.5 in 1,448 octets; four standard errors of the mean over 500 are 0.61.
            let expected = (PAYLOAD.len() - header) as f64 * 8.0 * 1e-3;
            let mean = hit[1] as f64 / 500.0;
            assert!((mean - expected).abs() < 0.61, "{mean} of {expected}");
        }
    }

    #[test]
    fn the_header_of_a_frame_stays_whole_if_it_is_to_and_is_hit_otherwise() {
        const ROUNDS: usize = 500;
        let hits = |policy| {
            let mut link = direction(bit_errors(1e-3), policy).of_ethernet_frames();
            let mut hit = [0_u64; 2];
            for _ in 0..ROUNDS {
                // What is left is what overhead does not lose.
                let arrivals = link.admit(Instant::START, &PAYLOAD, Ecn::NotCapable);
                let octets = arrivals
                    .first
                    .map_or(PAYLOAD.to_vec(), |first| first.octets);
                for (place, (a, b)) in octets.iter().zip(PAYLOAD).enumerate() {
                    hit[usize::from(place >= 14)] += u64::from((a ^ b).count_ones());
                }
            }
            hit
        };
        let spared = hits(DamagePolicy::DeliverBehindHeaders);
        assert!(spared[0] == 0 && spared[1] > 4_000, "{spared:?}");
        // 0.112 bits of 112 in a frame, of which four in five arrive: 45 +- 4 x 6.7.
        let hit = hits(DamagePolicy::Deliver);
        assert!((18..72).contains(&hit[0]), "{hit:?}");
    }

    #[test]
    fn duplicates_come_with_damage_of_their_own_and_are_counted() {
        let config = ChannelConfig {
            duplicate: Probability::new(1.0).unwrap(),
            ..bit_errors(1e-4)
        };
        let mut link = direction(config, DamagePolicy::Deliver);
        let mut differing = 0;
        for _ in 0..100 {
            let Arrivals { first, copy } = link.admit(Instant::START, &PAYLOAD, Ecn::NotCapable);
            differing += u32::from(first != copy);
        }
        assert!(differing > 0);
        assert_eq!(link.report().duplicated_packets, 100);
    }

    #[test]
    fn a_managed_queue_marks_and_drops_and_a_policer_drops() {
        let config = ChannelConfig {
            rate: Some(Bitrate::from_bits_per_second(12_000_000)),
            aqm: Some(fulmar_channel::Aqm::CoDel),
            queue: QueueLimit::packets(1_000),
            ..ChannelConfig::default()
        };
        for (ecn, marks) in [(Ecn::Capable, true), (Ecn::NotCapable, false)] {
            let mut link = direction(config.clone(), DamagePolicy::Deliver);
            for packet in 0..2_000 {
                let now = Instant::START + Duration::from_micros(800) * packet;
                link.admit(now, &PAYLOAD, ecn);
            }
            let report = link.report();
            assert_eq!(report.marked_packets > 0, marks, "{report:?}");
            assert_eq!(report.dropped_packets.early > 0, !marks, "{report:?}");
        }
        let policed = ChannelConfig {
            policer: Some("12mbit,15kB".parse().unwrap()),
            ..ChannelConfig::default()
        };
        let mut link = direction(policed, DamagePolicy::Deliver);
        for _ in 0..15 {
            link.admit(Instant::START, &PAYLOAD, Ecn::NotCapable);
        }
        assert_eq!(link.report().dropped_packets.policer, 5);
    }

    #[test]
    fn only_a_capable_packet_is_marked() {
        let config = ChannelConfig {
            rate: Some(Bitrate::from_bits_per_second(1_000)),
            queue: QueueLimit::packets(10),
            ecn_threshold: Some(QueueLimit::packets(0)),
            ..ChannelConfig::default()
        };
        let mut link = direction(config, DamagePolicy::Deliver);
        link.admit(Instant::START, b"first", Ecn::Capable);
        let marked = link
            .admit(Instant::START, b"second", Ecn::Capable)
            .first
            .unwrap();
        let plain = link
            .admit(Instant::START, b"third", Ecn::NotCapable)
            .first
            .unwrap();
        assert_eq!((marked.ecn, plain.ecn), (Ecn::Congested, Ecn::NotCapable));
        assert_eq!(link.report().marked_packets, 1);
    }

    #[test]
    fn what_is_longer_than_the_path_carries_vanishes_from_then_on() {
        let largest = LargestPacket {
            octets: ByteCount(1_499),
            after: Duration::from_secs(1),
        };
        let mut link = direction(ChannelConfig::default(), DamagePolicy::Deliver)
            .dropping_above(Some(largest));
        let mut arrives = |millis, len| {
            let now = Instant::START + Duration::from_millis(millis);
            let arrivals = link.admit(now, &PAYLOAD[..len], Ecn::NotCapable);
            arrivals.first.is_some()
        };
        assert!(arrives(999, 1_472));
        assert!(!arrives(1_000, 1_472));
        assert!(arrives(1_000, 1_471));
        let report = link.report();
        assert_eq!(report.dropped_packets.too_large, 1);
        assert_eq!(report.offered_packets, 2, "the link never saw it");
    }

    #[test]
    fn the_link_changes_when_its_time_comes() {
        let lost = LossModel::Bernoulli(PacketErrorRate::new(1.0).unwrap());
        let first = ChannelConfig {
            delay: Duration::from_millis(5),
            ..ChannelConfig::default()
        };
        let second = ChannelConfig {
            delay: Duration::from_millis(9),
            ..first.clone()
        };
        let third = ChannelConfig {
            loss: lost,
            ..second.clone()
        };
        let changes = [(1, second), (2, third)];
        let changes = changes.map(|(after, config)| (Duration::from_secs(after), config));
        let rng = Rng::from_seed(1);
        let mut link = direction(first, DamagePolicy::Deliver)
            .changing("up", changes.into_iter(), &rng)
            .unwrap();
        let mut delay = |millis| {
            let now = Instant::START + Duration::from_millis(millis);
            let arrivals = link.admit(now, b"packet", Ecn::NotCapable);
            let arrival = arrivals.first?;
            Some(arrival.at.saturating_since(now).as_millis())
        };
        assert_eq!(delay(999), Some(5));
        assert_eq!(delay(1_000), Some(9));
        assert_eq!(delay(1_999), Some(9));
        assert_eq!(delay(2_000), None);
    }

    #[test]
    fn a_lost_packet_becomes_nothing_and_has_its_reason() {
        let loss = LossModel::Bernoulli(PacketErrorRate::new(1.0).unwrap());
        let mut link = direction(
            ChannelConfig {
                loss,
                ..ChannelConfig::default()
            },
            DamagePolicy::Deliver,
        );
        let arrivals = link.admit(Instant::START, &PAYLOAD, Ecn::NotCapable);
        assert_eq!(arrivals, Arrivals::default());
        assert_eq!(link.report().dropped_packets.loss, 1);
    }
}
